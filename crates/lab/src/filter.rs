//! What passes a host's interfaces: counted, dropped, refused or rewritten by nftables, without looking at it from user
//! space.

use std::path::PathBuf;
use std::process::Command;

use authentick_rig::Error;
use authentick_rig::process::run;

use crate::hosts::{Host, Hosts};
use crate::{Skip, peers};

/// Octets before the payload of a UDP datagram.
const UDP_HEADER_SIZE: u16 = 8;

/// The direction, as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// What arrives for the host itself.
    In,
    /// What the host itself sends.
    Out,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// UDP to a port.
    UdpTo(u16),
    /// UDP from a port.
    UdpFrom(u16),
    /// UDP to a port, of a payload of so many octets.
    UdpSizeTo(u16, u16),
    /// UDP from a port, of a payload of so many octets.
    UdpSizeFrom(u16, u16),
    /// TCP to a port.
    TcpTo(u16),
    /// The first segment of each TCP connection to a port; repeated ones count again.
    TcpOpenTo(u16),
}

impl Traffic {
    fn text(self) -> String {
        let sized = |size: u16| size + UDP_HEADER_SIZE;
        match self {
            Traffic::UdpTo(port) => format!("udp dport {port}"),
            Traffic::UdpFrom(port) => format!("udp sport {port}"),
            Traffic::UdpSizeTo(port, size) => format!("udp dport {port} udp length {}", sized(size)),
            Traffic::UdpSizeFrom(port, size) => format!("udp sport {port} udp length {}", sized(size)),
            Traffic::TcpTo(port) => format!("tcp dport {port}"),
            Traffic::TcpOpenTo(port) => format!("tcp dport {port} tcp flags & (syn|ack) == syn"),
        }
    }
}

/// What a rule does, beside counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Count,
    /// Drops it.
    Drop,
    /// Drops a share at random, in parts of a million; the counter counts what is dropped.
    DropShare {
        /// How many of a million.
        ppm: u32,
    },
    /// Refuses it with a TCP reset.
    Reset,
    /// Sets the stratum in the NTP header. The datagram still arrives.
    SetStratum(u8),
}

/// A counter of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter(u32);

/// The rules of one host, in the order in which they were added; a dropping rule hides packets from later ones. They go
/// away with the hosts.
#[derive(Debug)]
pub struct Filter<'a> {
    hosts: &'a Hosts,
    host: Host,
    nft: Nft,
    rule_count: u32,
}

/// Loads a set of rules, as a file of nftables has it, on `host`.
///
/// # Errors
/// A skip, with the reason, where nftables is not installed or not in the kernel.
///
/// # Panics
/// If nftables refuses these rules, and takes others.
pub fn load(hosts: &Hosts, host: Host, rules: &str) -> Result<(), Skip> {
    let filter = Filter::new(hosts, host)?;
    filter.run("delete table inet atk\n").unwrap_or_else(|error| panic!("{error}"));
    filter.run(rules).unwrap_or_else(|error| panic!("{rules}: {error}"));
    Ok(())
}

impl<'a> Filter<'a> {
    /// An empty set of rules on `host`, instead of any that were there.
    ///
    /// # Errors
    /// A skip, with the reason, where nftables is not installed or not in the kernel.
    pub fn new(hosts: &'a Hosts, host: Host) -> Result<Self, Skip> {
        let filter = Filter { hosts, host, nft: Nft::find()?, rule_count: 0 };
        let chain = |name: &str| {
            format!("add chain inet atk {name} {{ type filter hook {name} priority 0; policy accept; }}\n")
        };
        let rules =
            format!("add table inet atk\nflush table inet atk\n{}{}", chain("input"), chain("output"));
        filter.run(&rules).map_err(|error| Skip::new(format!("no nftables: {error}")))?;
        Ok(filter)
    }

    /// Adds a rule; the counter tells what it has matched.
    ///
    /// # Panics
    /// If nftables refuses it.
    pub fn add(&mut self, way: Way, traffic: Traffic, action: Action) -> Counter {
        let counter = Counter(self.rule_count);
        self.rule_count += 1;
        let chain = match way {
            Way::In => "input",
            Way::Out => "output",
        };
        let (traffic, count) = (traffic.text(), format!("counter name c{}", counter.0));
        let effect = match action {
            Action::Count => count,
            Action::Drop => format!("{count} drop"),
            Action::DropShare { ppm } => format!("numgen random mod 1000000 < {ppm} {count} drop"),
            Action::Reset => format!("{count} reject with tcp reset"),
            // Behind the UDP header and the NTP header's first octet.
            Action::SetStratum(stratum) => format!("{count} @th,72,8 set {stratum}"),
        };
        let rules =
            format!("add counter inet atk c{}\nadd rule inet atk {chain} {traffic} {effect}\n", counter.0);
        self.run(&rules).unwrap_or_else(|error| panic!("{rules}: {error}"));
        counter
    }

    /// How many packets a rule has matched.
    ///
    /// # Panics
    /// If the counter is of another filter.
    #[must_use]
    pub fn packets(&self, counter: Counter) -> u64 {
        let (mut nft, name) = (self.nft.on(self.hosts, self.host), format!("c{}", counter.0));
        let output = nft.args(["list", "counter", "inet", "atk", &name]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let after = text.split_once("packets ").unwrap_or_else(|| panic!("no counter: {text}")).1;
        after.split_whitespace().next().unwrap().parse().unwrap()
    }

    fn run(&self, rules: &str) -> Result<(), Error> {
        run(self.nft.on(self.hosts, self.host).args(["-f", "-"]), rules)
    }
}

/// The program, of this system or of the peers.
#[derive(Debug)]
struct Nft {
    program: PathBuf,
    libraries: Option<PathBuf>,
}

impl Nft {
    fn find() -> Result<Self, Skip> {
        let peer = peers::folder().join("nftables");
        let unpacked = Nft { program: peer.join("usr/sbin/nft"), libraries: Some(peers::libraries(&peer)) };
        let installed = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"]
            .map(|path| Nft { program: path.into(), libraries: None });
        let mut all = installed.into_iter().chain([unpacked]);
        let missing = || Skip::new("there is no nft; install nftables or run cargo xtask peers");
        all.find(|nft| nft.program.exists()).ok_or_else(missing)
    }

    fn on(&self, hosts: &Hosts, host: Host) -> Command {
        let mut command = hosts.on(host, &self.program);
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }
}
