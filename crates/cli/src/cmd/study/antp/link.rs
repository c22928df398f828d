//! A path of 1 Gbit/s on one machine: a server in a network namespace of its own, behind a cable that a token bucket
//! keeps to what Ethernet carries.
//!
//! It takes root, iproute2 and the kernel's tbf; where one is missing the study goes without. Addresses are those for
//! benchmarks (RFC 2544), and only the namespace and its cable are touched, which both go away with this value.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use authentick_net::privilege::is_root;

use crate::cmd::study::helper::is_there;

/// What namespaces of studies are called.
const NAMESPACE: &str = "authentick-study-";
/// Where iproute2 keeps the names of namespaces.
const NAMESPACES: &str = "/run/netns";
/// What Ethernet adds to a packet that the bucket does not see: preamble 8, check sequence 4, gap 12.
const OVERHEAD_SIZE: &str = "24";

/// The cable, and the namespace behind it.
#[derive(Debug)]
pub(super) struct Link {
    namespace: String,
    /// The server's address.
    pub(super) address: String,
}

impl Link {
    /// Lays the cable.
    ///
    /// # Errors
    /// Why there can be none, in half a sentence.
    pub(super) fn new() -> Result<Self, String> {
        if !is_root() {
            return Err("only root may make network namespaces".to_owned());
        }
        if let Some(program) = ["ip", "tc"].into_iter().find(|program| !is_there(program)) {
            return Err(format!("there is no program {program:?} (iproute2)"));
        }
        remove_orphans();
        let pid = std::process::id();
        // A /30 of 198.18.0.0/15 for each study that runs at the same time.
        let [third, fourth] = [pid / 64 % 256, pid % 64 * 4].map(|part| part.to_string());
        let address = |host: u32| {
            let fourth: u32 = fourth.parse::<u32>().unwrap_or(0) + host;
            format!("198.19.{third}.{fourth}")
        };
        let link = Link { namespace: format!("{NAMESPACE}{pid}"), address: address(2) };
        let namespace = &link.namespace;
        let (near, far) = (format!("ats{pid}a"), format!("ats{pid}b"));
        let segments = "gso_max_segs 1";
        for line in [
            format!("ip netns add {namespace}"),
            format!("ip link add {near} {segments} type veth peer name {far} {segments}"),
            format!("ip link set {far} netns {namespace}"),
            format!("ip addr add {}/30 dev {near}", address(1)),
            format!("ip link set {near} up"),
            format!("ip -n {namespace} addr add {}/30 dev {far}", address(2)),
            format!("ip -n {namespace} link set {far} up"),
            format!("ip -n {namespace} link set lo up"),
            format!(
                "tc qdisc add dev {near} root tbf rate 1gbit burst 64kb limit 512kb overhead {OVERHEAD_SIZE}"
            ),
            format!(
                "tc -n {namespace} qdisc add dev {far} root tbf rate 1gbit burst 64kb limit 512kb overhead \
                 {OVERHEAD_SIZE}"
            ),
        ] {
            carry_out(&line)?;
        }
        Ok(link)
    }

    /// What starts a program in the namespace.
    pub(super) fn before(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.namespace].map(str::to_owned).to_vec()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The cable goes with its end in the namespace.
        let _ = carry_out(&format!("ip netns del {}", self.namespace));
    }
}

/// Removes namespaces of studies that were killed.
fn remove_orphans() {
    for entry in fs::read_dir(NAMESPACES).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let pid = name.strip_prefix(NAMESPACE).and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = carry_out(&format!("ip netns del {name}"));
        }
    }
}

/// Runs a command of words without spaces.
fn carry_out(line: &str) -> Result<(), String> {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap_or_default())
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{line}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
