//! Where the bench runs: two hosts made of network namespaces where we may make them, else loopback; and the programs
//! that run there, each on a processor of its own, all ended when the bench ends.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Processor of the servers.
pub(crate) const SERVER_CPU: usize = 0;
/// Processor of the generator.
pub(crate) const CLIENT_CPU: usize = 1;

/// A pair of hosts.
pub(crate) struct Lab {
    namespaces: Option<(String, String)>,
}

impl Lab {
    /// Two namespaces joined by a veth pair with one queue each; loopback if they cannot be made, with the reason.
    pub(crate) fn new() -> (Self, Option<String>) {
        let (server, client) =
            (format!("atk-s-{}", std::process::id()), format!("atk-c-{}", std::process::id()));
        let lab = Lab { namespaces: Some((server.clone(), client.clone())) };
        match make(&server, &client) {
            Ok(()) => (lab, None),
            Err(reason) => {
                drop(lab);
                (Lab { namespaces: None }, Some(reason))
            }
        }
    }

    /// Loopback, without trying anything else.
    pub(crate) const fn loopback() -> (Self, Option<String>) {
        (Lab { namespaces: None }, None)
    }

    pub(crate) fn name(&self) -> &'static str {
        if self.namespaces.is_some() { "veth between two network namespaces" } else { "loopback" }
    }

    /// The address at which servers are asked.
    pub(crate) fn server_address(&self) -> IpAddr {
        match self.namespaces {
            Some(_) => Ipv4Addr::new(198, 18, 0, 1).into(),
            None => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// A command that will run on the servers' host and processor.
    pub(crate) fn on_server(&self, program: &Path) -> Command {
        command(self.namespaces.as_ref().map(|(server, _)| server.as_str()), SERVER_CPU, program)
    }

    /// A command that will run on the generator's host and processor.
    pub(crate) fn on_client(&self, program: &Path) -> Command {
        command(self.namespaces.as_ref().map(|(_, client)| client.as_str()), CLIENT_CPU, program)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some((server, client)) = &self.namespaces {
            for namespace in [server, client] {
                let _ = run("ip", &["netns", "del", namespace]);
            }
        }
    }
}

fn command(namespace: Option<&str>, cpu: usize, program: &Path) -> Command {
    let cpu = cpu.to_string();
    let mut command = match namespace {
        Some(namespace) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", namespace, "taskset", "-c", &cpu]);
            command
        }
        None => {
            let mut command = Command::new("taskset");
            command.args(["-c", &cpu]);
            command
        }
    };
    command.arg(program);
    command
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{program} {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

fn make(server: &str, client: &str) -> Result<(), String> {
    let ip = |text: &str| run("ip", &text.split(' ').collect::<Vec<_>>());
    ip(&format!("netns add {server}"))?;
    ip(&format!("netns add {client}"))?;
    ip(&format!(
        "link add vs numtxqueues 1 numrxqueues 1 netns {server} type veth \
         peer name vc numtxqueues 1 numrxqueues 1 netns {client}"
    ))?;
    ip(&format!("-n {server} addr add 198.18.0.1/24 dev vs"))?;
    ip(&format!("-n {client} addr add 198.18.0.2/24 dev vc"))?;
    for (namespace, link) in [(server, "lo"), (server, "vs"), (client, "lo"), (client, "vc")] {
        ip(&format!("-n {namespace} link set {link} up"))?;
    }
    Ok(())
}

/// A program that ends with the bench.
pub(crate) struct Program {
    child: Child,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Program {
            child: command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?,
        })
    }

    /// Resident memory in octets, and processor time in seconds; zeros if the system does not tell.
    pub(crate) fn usage(&self) -> (u64, f64) {
        // `ip netns exec` and `taskset` replace themselves, so the child is the program itself.
        let pid = self.child.id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok())
            .unwrap_or(0);
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks: f64 = [11, 12].iter().filter_map(|&index| fields.get(index)?.parse::<f64>().ok()).sum();
        (resident * 1024, ticks / 100.0)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A peer's program below the folder of peers, and the folder of its libraries; `None` if it is not there.
pub(crate) fn chronyd() -> Option<(PathBuf, PathBuf)> {
    let peers = match std::env::var_os("AUTHENTICK_PEERS") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
    };
    let program = peers.join("chrony/usr/sbin/chronyd");
    program
        .exists()
        .then(|| (program, peers.join(format!("chrony/usr/lib/{}-linux-gnu", std::env::consts::ARCH))))
}
