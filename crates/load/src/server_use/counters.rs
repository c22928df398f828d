//! What the network namespaces of processes count of UDP (`/proc/PID/net/snmp` and `snmp6`), and of connections that
//! nobody accepted (`netstat`).
//!
//! As measured here: `InDatagrams` counts datagrams that an application has read, not those that came; `RcvbufErrors`
//! those that came and found their socket full; `OutDatagrams` those that an application sent, unless this host's queue
//! dropped them. All sockets of the namespace count, those of the generator too if it shares the namespace. A server
//! that bypasses sockets shows nothing. Of 100 messages of eight requests each that the kernel takes apart
//! (`UDP_SEGMENT`), 100 were counted as sent and 800 as read, or dropped one by one.
//!
//! `ListenOverflows` counts packets that were to open a connection and found the accept queue full, `ListenDrops` those
//! and whatever else kept one from opening: a SYN that is sent again counts again.
//!
//! What waits in a socket is in none of these. `/proc/PID/net/udp` and `udp6` have how much memory it takes
//! (`rx_queue`): for a short datagram 768 octets of an x86-64 kernel over loopback, and never less than
//! [`DATAGRAM_MEMORY_MIN`]. So a server that hangs is not mistaken for a network that loses.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use authentick_report::load::Traffic;

use crate::host::{snmp, snmp6};

/// Memory that a datagram takes in a socket, at the least: its buffer has the kernel's own data at both ends.
const DATAGRAM_MEMORY_MIN: u64 = 512;

/// The counters of the namespaces of some processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Added up over all of them.
    pub(super) total: Traffic,
    /// Whether one of them is that of this process.
    pub(super) shared: bool,
}

impl Counters {
    /// Those of a server on `port`. `None` if a process has ended, or its namespace is not told.
    pub(super) fn read(pids: &[u32], port: u16) -> Option<Self> {
        let own = namespace("thread-self");
        let mut namespaces = BTreeMap::new();
        for pid in pids {
            namespaces.entry(namespace(&pid.to_string())?).or_insert(*pid);
        }
        let shared = own.is_some_and(|own| namespaces.contains_key(&own));
        let mut total = Traffic::default();
        for pid in namespaces.values() {
            let old = parse(&fs::read_to_string(format!("/proc/{pid}/net/snmp")).ok()?)?;
            // A host without IPv6 has no such file.
            let new = fs::read_to_string(format!("/proc/{pid}/net/snmp6")).ok().map(|text| parse_v6(&text));
            total = [Some(old), new].into_iter().flatten().fold(total, plus);
            let refused = fs::read_to_string(format!("/proc/{pid}/net/netstat")).unwrap_or_default();
            total = plus(total, parse_refused(&refused));
            let sockets = ["udp", "udp6"].map(|name| fs::read_to_string(format!("/proc/{pid}/net/{name}")));
            let memory =
                sockets.iter().flatten().map(|text| waiting_size(text, port)).fold(0, u64::saturating_add);
            total.unread = total.unread.saturating_add(memory.div_ceil(DATAGRAM_MEMORY_MIN));
        }
        Some(Counters { total, shared })
    }

    /// What was counted from these to later ones.
    pub(super) fn until(&self, later: &Counters) -> Traffic {
        Traffic {
            read: later.total.read.saturating_sub(self.total.read),
            full: later.total.full.saturating_sub(self.total.full),
            sent: later.total.sent.saturating_sub(self.total.sent),
            unread: later.total.unread,
            uncertain: 0,
            accept_overflows: more(self.total.accept_overflows, later.total.accept_overflows),
            accept_drops: more(self.total.accept_drops, later.total.accept_drops),
        }
    }
}

fn more(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    after.zip(before).map(|(after, before)| after.saturating_sub(before))
}

/// What identifies the network namespace of a process. The link `ns/net` is for its owner only; but the files of each
/// namespace under `net` have numbers of their own, which everybody sees.
fn namespace(process: &str) -> Option<(u64, u64)> {
    fs::metadata(format!("/proc/{process}/net/snmp")).ok().map(|file| (file.dev(), file.ino()))
}

fn plus(left: Traffic, right: Traffic) -> Traffic {
    Traffic {
        read: left.read.saturating_add(right.read),
        full: left.full.saturating_add(right.full),
        sent: left.sent.saturating_add(right.sent),
        unread: left.unread.saturating_add(right.unread),
        uncertain: left.uncertain.max(right.uncertain),
        accept_overflows: sum(left.accept_overflows, right.accept_overflows),
        accept_drops: sum(left.accept_drops, right.accept_drops),
    }
}

/// The sum of what is known.
fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    left.into_iter().chain(right).reduce(u64::saturating_add)
}

/// From `snmp`.
fn parse(text: &str) -> Option<Traffic> {
    let value = |name: &str| snmp(text, "Udp", name);
    Some(Traffic {
        read: value("InDatagrams")?,
        full: value("RcvbufErrors")?,
        sent: value("OutDatagrams")?,
        ..Traffic::default()
    })
}

/// From `netstat`.
fn parse_refused(text: &str) -> Traffic {
    let value = |name: &str| snmp(text, "TcpExt", name);
    Traffic {
        accept_overflows: value("ListenOverflows"),
        accept_drops: value("ListenDrops"),
        ..Traffic::default()
    }
}

/// From `snmp6`.
fn parse_v6(text: &str) -> Traffic {
    let value = |name: &str| snmp6(text, name).unwrap_or(0);
    Traffic {
        read: value("Udp6InDatagrams"),
        full: value("Udp6RcvbufErrors"),
        sent: value("Udp6OutDatagrams"),
        ..Traffic::default()
    }
}

/// The memory of what waits in sockets on `port`, from `udp` or `udp6`: addresses and sizes are hexadecimal.
fn waiting_size(text: &str, port: u16) -> u64 {
    let size = |line: &str| {
        let mut words = line.split_whitespace();
        let (_, local) = words.nth(1)?.rsplit_once(':')?;
        let (_, waiting) = words.nth(2)?.split_once(':')?;
        let is_it = u16::from_str_radix(local, 16) == Ok(port);
        is_it.then(|| u64::from_str_radix(waiting, 16).ok()).flatten()
    };
    text.lines().skip(1).filter_map(size).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_both_families_are_read_by_their_names() {
        let old = "Ip: Forwarding InDatagrams\nIp: 1 77\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
            Udp: 10 1 2 20 3\nUdpLite: InDatagrams OutDatagrams RcvbufErrors\nUdpLite: 5 5 5\n";
        assert_eq!(parse(old), Some(Traffic { read: 10, full: 3, sent: 20, ..Traffic::default() }));
        let new = "Ip6InReceives 9\nUdp6InDatagrams      \t5058\nUdp6OutDatagrams \t7\nUdp6RcvbufErrors\t4\n";
        assert_eq!(parse_v6(new), Traffic { read: 5058, full: 4, sent: 7, ..Traffic::default() });
        assert_eq!(parse("Udp: InDatagrams\n"), None);
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPSynRetrans\nTcpExt: 1 7 9 4\n\
            IpExt: InNoRoutes ListenDrops\nIpExt: 5 5\n";
        let refused = Traffic { accept_overflows: Some(7), accept_drops: Some(9), ..Traffic::default() };
        assert_eq!((parse_refused(text), parse_refused("")), (refused, Traffic::default()));
    }

    #[test]
    fn connection_that_finds_the_queue_full_is_counted() {
        use std::net::{TcpListener, TcpStream};
        use std::time::Duration;

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let pids = [std::process::id()];
        let before = Counters::read(&pids, 1).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let patience = Duration::from_millis(200);
        let held: Vec<TcpStream> =
            std::iter::from_fn(|| TcpStream::connect_timeout(&address, patience).ok()).collect();
        assert!(!held.is_empty());
        let seen = before.until(&Counters::read(&pids, 1).unwrap());
        assert!(seen.accept_overflows.is_some_and(|count| count > 0), "{seen:?}");
        assert!(seen.accept_drops >= seen.accept_overflows, "{seen:?}");
    }

    #[test]
    fn memory_of_what_waits_is_that_of_the_sockets_on_the_port() {
        let text = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout\n  \
            151: 0100007F:007B 00000000:0000 07 00000000:00000300 00:00000000 00000000     0        0 1 2 0 0\n  \
            152: 00000000:007B 00000000:0000 07 00000900:00000C00 00:00000000 00000000     0        0 1 2 0 0\n  \
            153: 00000000:007C 00000000:0000 07 00000000:0000FF00 00:00000000 00000000     0        0 1 2 0 0\n\
            154: nonsense\n";
        assert_eq!(
            (waiting_size(text, 123), waiting_size(text, 124), waiting_size(text, 125)),
            (0xF00, 0xFF00, 0)
        );
        let text = "head\n1: 00000000000000000000000001000000:115C 0:0 07 00000000:00000001 0\n";
        assert_eq!(waiting_size(text, 0x115C), 1);
    }

    #[test]
    fn reading_counts_and_not_arriving() {
        // Other tests of this process may read and send meanwhile.
        use std::net::UdpSocket;
        let pids = [std::process::id()];
        let (client, server) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let port = server.local_addr().unwrap().port();
        let read = || Counters::read(&pids, port).unwrap();
        let before = read();
        assert_eq!(before.total.unread, 0);
        assert!(before.shared);
        for _ in 0..50 {
            client.send_to(&[0; 48], server.local_addr().unwrap()).unwrap();
        }
        let sent = read().total;
        assert!(sent.sent >= before.total.sent + 50);
        for _ in 0..50 {
            server.recv_from(&mut [0; 48]).unwrap();
        }
        let after = read().total;
        assert!(after.read >= before.total.read + 50);
        // What waits takes more memory than that of the smallest, and is gone when it is read.
        assert!((50..1000).contains(&sent.unread) && after.unread == 0, "{sent:?}");
        assert_eq!(before.until(&Counters { total: sent, shared: true }).unread, sent.unread);
        assert_eq!(Counters::read(&[u32::MAX], port), None);
    }
}
