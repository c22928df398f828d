//! Where the bench runs: two hosts made of network namespaces where we may make them, else loopback; servers and
//! generator have a processor each.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;

use authentick_lab::Skip;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers;

/// Processor of the servers.
pub(crate) const SERVER_CPU: usize = 0;
/// Processor of the generator.
pub(crate) const CLIENT_CPU: usize = 1;

/// A pair of hosts.
pub(crate) struct Pair {
    hosts: Option<Hosts>,
}

impl Pair {
    /// Two namespaces joined by a veth pair with one queue each; loopback if they cannot be made, with the reason.
    pub(crate) fn new() -> (Self, Option<Skip>) {
        match Hosts::new(1) {
            Ok(hosts) => (Pair { hosts: Some(hosts) }, None),
            Err(skip) => (Pair { hosts: None }, Some(skip)),
        }
    }

    /// Loopback, without trying anything else.
    pub(crate) const fn loopback() -> (Self, Option<Skip>) {
        (Pair { hosts: None }, None)
    }

    pub(crate) fn name(&self) -> &'static str {
        if self.hosts.is_some() { "veth between two network namespaces" } else { "loopback" }
    }

    /// The address at which servers are asked.
    pub(crate) fn server_address(&self) -> IpAddr {
        self.hosts.as_ref().map_or(Ipv4Addr::LOCALHOST.into(), |hosts| hosts.address(Host::Server))
    }

    /// A command that will run on the servers' host and processor.
    pub(crate) fn on_server(&self, program: &Path) -> Command {
        self.command(Host::Server, SERVER_CPU, program)
    }

    /// A command that will run on the generator's host and processor.
    pub(crate) fn on_client(&self, program: &Path) -> Command {
        self.command(Host::Client(0), CLIENT_CPU, program)
    }

    fn command(&self, host: Host, cpu: usize, program: &Path) -> Command {
        let taskset = "taskset";
        let mut command =
            self.hosts.as_ref().map_or_else(|| Command::new(taskset), |hosts| hosts.on(host, taskset));
        command.args(["-c", &cpu.to_string()]).arg(program);
        command
    }
}

/// chrony's daemon among the peers, and the folder of its libraries; `None` if it is not there.
pub(crate) fn chronyd() -> Option<(PathBuf, PathBuf)> {
    let peer = peers::folder().join("chrony");
    let program = peer.join("usr/sbin/chronyd");
    program.exists().then(|| (program, peers::libraries(&peer)))
}
