//! A host and a processor each for a server and for its load: two network namespaces where we may make them, else this
//! machine's loopback.

use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::Command;

use crate::Error;
use crate::hosts::{Host, Hosts};

/// The processor of servers.
pub const SERVER_CPU: usize = 0;
/// The processor of generators.
pub const CLIENT_CPU: usize = 1;

/// A pair of hosts, or this one.
#[derive(Debug)]
pub struct Pair(Option<Hosts>);

impl Pair {
    /// Two namespaces joined by a cable if `isolated`; loopback otherwise, or if they cannot be made, with the reason.
    #[must_use]
    pub fn new(isolated: bool) -> (Self, Option<Error>) {
        match isolated.then(|| Hosts::new(1)) {
            Some(Ok(hosts)) => (Pair(Some(hosts)), None),
            Some(Err(reason)) => (Pair(None), Some(reason)),
            None => (Pair(None), None),
        }
    }

    /// What lies between the two.
    #[must_use]
    pub const fn path_name(&self) -> &'static str {
        if self.0.is_some() { "veth between two network namespaces" } else { "loopback" }
    }

    /// The address at which servers are asked.
    #[must_use]
    pub fn server_address(&self) -> IpAddr {
        self.0.as_ref().map_or(Ipv4Addr::LOCALHOST.into(), |hosts| hosts.address(Host::Server))
    }

    /// A command that will run on the servers' host and processor.
    #[must_use]
    pub fn on_server(&self, program: &Path) -> Command {
        self.command(Host::Server, SERVER_CPU, program)
    }

    /// A command that will run on the generators' host and processor.
    #[must_use]
    pub fn on_client(&self, program: &Path) -> Command {
        self.command(Host::Client(0), CLIENT_CPU, program)
    }

    fn command(&self, host: Host, cpu: usize, program: &Path) -> Command {
        let mut command =
            self.0.as_ref().map_or_else(|| Command::new("taskset"), |hosts| hosts.on(host, "taskset"));
        command.args(["-c", &cpu.to_string()]).arg(program);
        command
    }

    /// A socket on the servers' host that nobody reads: what comes is dropped by the kernel once it is full.
    ///
    /// # Errors
    /// The system's.
    pub fn sink(&self) -> io::Result<UdpSocket> {
        let bind = || UdpSocket::bind((self.server_address(), 0));
        self.0.as_ref().map_or_else(bind, |hosts| hosts.within(Host::Server, bind).flatten())
    }
}
