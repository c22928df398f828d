//! Where the bench runs: two hosts made of network namespaces where we may make them, else loopback; server and
//! generator have a processor each.

use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;

use authentick_lab::Skip;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers;

const SERVER_CPU: &str = "0";
const CLIENT_CPU: &str = "1";

/// Two hosts, or this one.
pub(crate) struct Place(Option<Hosts>);

impl Place {
    /// Two namespaces joined by a cable if `isolated`; loopback otherwise, or if they cannot be made, with the reason.
    pub(crate) fn new(isolated: bool) -> (Self, Option<Skip>) {
        match isolated.then(|| Hosts::new(1)) {
            Some(Ok(hosts)) => (Place(Some(hosts)), None),
            Some(Err(skip)) => (Place(None), Some(skip)),
            None => (Place(None), None),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        if self.0.is_some() { "veth between two network namespaces" } else { "loopback" }
    }

    /// The address of servers.
    pub(crate) fn server_address(&self) -> IpAddr {
        self.0.as_ref().map_or(Ipv4Addr::LOCALHOST.into(), |hosts| hosts.address(Host::Server))
    }

    /// A command that will run on the server's host and processor.
    pub(crate) fn on_server(&self, program: &Path) -> Command {
        self.command(Host::Server, SERVER_CPU, program)
    }

    /// A command that will run on the generator's host and processor.
    pub(crate) fn on_client(&self, program: &Path) -> Command {
        self.command(Host::Client(0), CLIENT_CPU, program)
    }

    fn command(&self, host: Host, cpu: &str, program: &Path) -> Command {
        let mut command =
            self.0.as_ref().map_or_else(|| Command::new("taskset"), |hosts| hosts.on(host, "taskset"));
        command.args(["-c", cpu]).arg(program);
        command
    }

    /// A socket on the server's host that nobody reads: what comes is dropped by the kernel once it is full.
    pub(crate) fn sink(&self) -> io::Result<UdpSocket> {
        let bind = || UdpSocket::bind((self.server_address(), 0));
        self.0.as_ref().map_or_else(bind, |hosts| hosts.within(Host::Server, bind))
    }
}

/// chrony's daemon among the peers, and the folder of its libraries; `None` if it is not there.
pub(crate) fn chronyd() -> Option<(PathBuf, PathBuf)> {
    let peer = peers::folder().join("chrony");
    let program = peer.join("usr/sbin/chronyd");
    program.exists().then(|| (program, peers::libraries(&peer)))
}
