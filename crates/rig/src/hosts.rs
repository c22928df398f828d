//! Hosts: one server and up to four clients, each a network namespace, joined in a star.
//!
//! ```text
//! client 1  198.18.0.2 [s] ---- [c1] 198.18.0.1  server
//! client 2  198.18.0.3 [s] ---- [c2]
//! ```
//! Each cable is a veth pair with one queue at each end, as native XDP wants it. Neighbours are static, so nothing
//! asks for addresses. The server forwards, so clients reach each other. 198.18.0.0/15 is the benchmarking range
//! (RFC 2544) and fd00::/8 is local (RFC 4193): nothing here can reach another network.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::Error;
use crate::process::{is_running, run};
use crate::threads::on_own_thread;

/// The most clients of one star.
pub const CLIENT_COUNT_MAX: usize = 4;

/// What Ethernet adds to a packet that a token bucket does not see: preamble 8, check sequence 4, gap 12.
const UNSEEN_SIZE: usize = 24;

/// Stars that this process has made: their names must differ.
static STAR_COUNT: AtomicU32 = AtomicU32::new(0);

/// One of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// The one in the middle.
    Server,
    /// A client, counted from 0.
    Client(usize),
}

/// A star of hosts, which goes away with this value, processes in it or not. A client that does not exist has no name,
/// and whatever is asked of it fails.
#[derive(Debug)]
pub struct Hosts {
    /// The server's name, then the clients'.
    names: Vec<String>,
    path_count: AtomicU32,
}

impl Hosts {
    /// A server and `client_count` clients.
    ///
    /// # Errors
    /// Where namespaces cannot be made, or if `client_count` is 0 or above [`CLIENT_COUNT_MAX`].
    pub fn new(client_count: usize) -> Result<Self, Error> {
        if !(1..=CLIENT_COUNT_MAX).contains(&client_count) {
            return Err(Error::Misuse("a star has from one to four clients"));
        }
        let star = format!("atk-{}-{}", std::process::id(), STAR_COUNT.fetch_add(1, Ordering::Relaxed));
        // Filled before anything is made, so that whatever was made until an error goes away.
        let mut hosts = Hosts { names: Vec::new(), path_count: AtomicU32::new(0) };
        hosts.names.push(format!("{star}-s"));
        hosts.names.extend((1..=client_count).map(|number| format!("{star}-c{number}")));
        remove_orphans();
        hosts.make().map_err(|reason| Error::unavailable("no network namespaces", &reason))?;
        Ok(hosts)
    }

    /// How many clients there are.
    #[must_use]
    pub const fn client_count(&self) -> usize {
        self.names.len() - 1
    }

    /// The name of the host's namespace, as `ip netns` knows it.
    #[must_use]
    pub fn name(&self, host: Host) -> &str {
        let index = match host {
            Host::Server => 0,
            Host::Client(index) => 1 + index,
        };
        self.names.get(index).map_or("", String::as_str)
    }

    /// The host's IPv4 address.
    #[must_use]
    pub fn address(&self, host: Host) -> IpAddr {
        Ipv4Addr::new(198, 18, 0, last_octet(host)).into()
    }

    /// The host's IPv6 address.
    #[must_use]
    pub fn address_v6(&self, host: Host) -> IpAddr {
        Ipv6Addr::new(0xFD00, 0xA7, 0, 0, 0, 0, 0, last_octet(host).into()).into()
    }

    /// The name of the interface by which a client hangs on the star, at the client's end.
    #[must_use]
    pub const fn client_interface() -> &'static str {
        "s"
    }

    /// The name of the same cable's interface at the server's end.
    #[must_use]
    pub fn server_interface(index: usize) -> String {
        format!("c{}", index + 1)
    }

    /// A command that will run on `host`. `ip` replaces itself by the program, so the child is the program.
    #[must_use]
    pub fn on(&self, host: Host, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name(host)]).arg(program);
        command
    }

    /// Runs `work` on a thread of its own on `host`. Sockets that it opens stay on that host, wherever they are used
    /// later, and threads that it starts are on that host too.
    ///
    /// # Errors
    /// If there is no such host, or this process may not enter it.
    pub fn within<T: Send>(&self, host: Host, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        within(self.name(host), work)
    }

    /// Sets a kernel parameter of the host's network, such as `ipv4/tcp_tw_reuse`.
    ///
    /// # Errors
    /// If the kernel does not know it, or does not take the value.
    pub fn set(&self, host: Host, parameter: &str, value: &str) -> Result<(), Error> {
        self.within(host, || std::fs::write(format!("/proc/sys/net/{parameter}"), value))
            .flatten()
            .map_err(Error::system(parameter))
    }

    /// Makes all addresses of `range`, such as `198.19.0.0/24`, the client's own, with the way back at the server and
    /// at the other clients. Nothing else may use the range, which lies outside of 198.18.0.0/16.
    ///
    /// # Errors
    /// If it is no range, or one that is in use.
    pub fn add_sources(&self, client: usize, range: &str) -> Result<(), Error> {
        let via = match range.contains(':') {
            true => {
                // Without this, an IPv6 address that no interface carries cannot be bound.
                self.set(Host::Client(client), "ipv6/ip_nonlocal_bind", "1")?;
                self.address_v6(Host::Client(client))
            }
            false => self.address(Host::Client(client)),
        };
        self.ip(Host::Client(client), &format!("route add local {range} dev lo"))?;
        let interface = Hosts::server_interface(client);
        self.ip(Host::Server, &format!("route add {range} via {via} dev {interface}"))
    }

    /// Keeps a client's cable to what Ethernet of 1 Gbit/s carries, in both directions, by token buckets.
    ///
    /// A bucket counts what Ethernet adds to a packet once for all segments that a program sends in one call: of
    /// 1,072 octets, 2 % more than a wire would carry pass in calls of 16 segments, and none in calls of one.
    ///
    /// # Errors
    /// Where the kernel has no token buckets (tbf), or there is no `tc` (iproute2).
    pub fn limit_to_gigabit(&self, client: usize) -> Result<(), Error> {
        let ends = [
            (Host::Server, Hosts::server_interface(client)),
            (Host::Client(client), Hosts::client_interface().to_owned()),
        ];
        for (host, interface) in ends {
            // A bucket lets no packet pass that is larger than itself, as what is to be cut into segments may be.
            self.ip(host, &format!("link set {interface} gso_max_segs 1"))?;
            let bucket = format!(
                "qdisc add dev {interface} root tbf rate 1gbit burst 64kb limit 512kb overhead {UNSEEN_SIZE}\n"
            );
            run(Command::new("tc").args(["-n", self.name(host), "-batch", "-"]), &bucket)?;
        }
        Ok(())
    }

    /// Runs lines of `ip` commands, each without the `ip`, on `host`.
    pub(crate) fn ip(&self, host: Host, lines: &str) -> Result<(), Error> {
        run(Command::new("ip").args(["-n", self.name(host), "-batch", "-"]), lines)
    }

    /// A number for the next path, which no other path of these hosts has.
    pub(crate) fn next_path(&self) -> u32 {
        self.path_count.fetch_add(1, Ordering::Relaxed)
    }

    fn make(&self) -> Result<(), Error> {
        for name in &self.names {
            run(Command::new("ip").args(["netns", "add", name]), "")?;
        }
        let (server, server_v6) = (self.address(Host::Server), self.address_v6(Host::Server));
        self.ip(
            Host::Server,
            // A new IPv6 address is tentative for a moment, on `lo` too, and no route may have it as its source.
            &format!("link set lo up\naddr add {server}/32 dev lo\naddr add {server_v6}/128 dev lo nodad\n"),
        )?;
        for index in 0..self.client_count() {
            self.plug_in(index)?;
        }
        self.set(Host::Server, "ipv4/ip_forward", "1")?;
        self.set(Host::Server, "ipv6/conf/all/forwarding", "1")
    }

    /// Lays the cable between the server and a client.
    fn plug_in(&self, index: usize) -> Result<(), Error> {
        let (client, near, far) =
            (Host::Client(index), Hosts::client_interface(), Hosts::server_interface(index));
        let (address, address_v6) = (self.address(client), self.address_v6(client));
        let (server, server_v6) = (self.address(Host::Server), self.address_v6(Host::Server));
        // Hardware addresses are set rather than asked for: neighbours are known before the cable lies.
        let (client_mac, server_mac) =
            (format!("02:00:00:00:01:0{index}"), format!("02:00:00:00:02:0{index}"));
        let name = self.name(client);
        self.ip(
            Host::Server,
            &format!(
                "link add {far} address {server_mac} numtxqueues 1 numrxqueues 1 type veth \
                 peer name {near} address {client_mac} numtxqueues 1 numrxqueues 1 netns {name}\n\
                 link set {far} up\n\
                 neigh replace {address} lladdr {client_mac} dev {far} nud permanent\n\
                 neigh replace {address_v6} lladdr {client_mac} dev {far} nud permanent\n\
                 route add {address}/32 dev {far} src {server}\n\
                 route add {address_v6}/128 dev {far} src {server_v6}\n"
            ),
        )?;
        self.ip(
            client,
            &format!(
                "link set lo up\nlink set {near} up\n\
                 addr add {address}/32 dev {near}\n\
                 addr add {address_v6}/128 dev {near} nodad\n\
                 neigh replace {server} lladdr {server_mac} dev {near} nud permanent\n\
                 neigh replace {server_v6} lladdr {server_mac} dev {near} nud permanent\n\
                 route add {server}/32 dev {near} src {address}\n\
                 route add {server_v6}/128 dev {near} src {address_v6}\n\
                 route add 198.18.0.0/15 via {server} dev {near} src {address}\n\
                 route add fd00::/8 via {server_v6} dev {near} src {address_v6}\n"
            ),
        )
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // One that was never made is no matter.
            let _ = run(Command::new("ip").args(["netns", "del", name]), "");
        }
    }
}

/// Runs `work` on a thread of its own in the network namespace of this name.
pub(crate) fn within<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let space = File::open(format!("/run/netns/{name}"))?;
    on_own_thread(|| {
        move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(work())
    })
}

/// Removes hosts whose process has ended without doing so, killed perhaps.
fn remove_orphans() {
    let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
        if owner(&name).is_some_and(|pid| !is_running(pid)) {
            // Somebody else may be doing the same.
            let _ = run(Command::new("ip").args(["netns", "del", &name]), "");
        }
    }
}

/// The process that made the host of this name, as in `atk-1234-0-s`; `None` for names that are not of this kind.
fn owner(name: &str) -> Option<u32> {
    match name.split('-').collect::<Vec<_>>()[..] {
        ["atk", pid, star, host] if star.parse::<u32>().is_ok() && host.starts_with(['s', 'c']) => {
            pid.parse().ok()
        }
        _ => None,
    }
}

fn last_octet(host: Host) -> u8 {
    match host {
        Host::Server => 1,
        Host::Client(index) => u8::try_from(index).unwrap_or(u8::MAX).saturating_add(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_read_from_names_of_hosts_alone() {
        assert_eq!((owner("atk-1234-0-s"), owner("atk-1-17-c4")), (Some(1234), Some(1)));
        for other in ["atk-server", "atk-s-1234", "atk-1234-0", "atk-x-0-s", "other-1-0-s", "atk-1-0-x"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
