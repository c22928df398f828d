//! What the network namespaces of processes count of UDP: `/proc/PID/net/snmp` and `snmp6`.
//!
//! As measured here: `InDatagrams` counts datagrams that an application has read, not those that came; `RcvbufErrors`
//! those that came and found their socket full; `OutDatagrams` those that an application sent, unless this host's queue
//! dropped them. All sockets of the namespace count, those of the generator too if it shares the namespace. A server
//! that bypasses sockets shows nothing. Of 100 messages of eight requests each that the kernel takes apart
//! (`UDP_SEGMENT`), 100 were counted as sent and 800 as read, or dropped one by one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use authentick_report::load::Traffic;

use crate::host::{snmp, snmp6};

/// The counters of the namespaces of some processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Added up over all of them.
    pub(super) total: Traffic,
    /// Whether one of them is that of this process.
    pub(super) shared: bool,
}

impl Counters {
    /// `None` if a process has ended, or its namespace is not told.
    pub(super) fn read(pids: &[u32]) -> Option<Self> {
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
        }
        Some(Counters { total, shared })
    }

    /// What was counted from these to later ones.
    pub(super) fn until(&self, later: &Counters) -> Traffic {
        Traffic {
            read: later.total.read.saturating_sub(self.total.read),
            full: later.total.full.saturating_sub(self.total.full),
            sent: later.total.sent.saturating_sub(self.total.sent),
            uncertain: 0,
        }
    }
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
        uncertain: left.uncertain.max(right.uncertain),
    }
}

/// From `snmp`.
fn parse(text: &str) -> Option<Traffic> {
    let value = |name: &str| snmp(text, "Udp", name);
    Some(Traffic {
        read: value("InDatagrams")?,
        full: value("RcvbufErrors")?,
        sent: value("OutDatagrams")?,
        uncertain: 0,
    })
}

/// From `snmp6`.
fn parse_v6(text: &str) -> Traffic {
    let value = |name: &str| snmp6(text, name).unwrap_or(0);
    Traffic {
        read: value("Udp6InDatagrams"),
        full: value("Udp6RcvbufErrors"),
        sent: value("Udp6OutDatagrams"),
        uncertain: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_both_families_are_read_by_their_names() {
        let old = "Ip: Forwarding InDatagrams\nIp: 1 77\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
            Udp: 10 1 2 20 3\nUdpLite: InDatagrams OutDatagrams RcvbufErrors\nUdpLite: 5 5 5\n";
        assert_eq!(parse(old), Some(Traffic { read: 10, full: 3, sent: 20, uncertain: 0 }));
        let new = "Ip6InReceives 9\nUdp6InDatagrams      \t5058\nUdp6OutDatagrams \t7\nUdp6RcvbufErrors\t4\n";
        assert_eq!(parse_v6(new), Traffic { read: 5058, full: 4, sent: 7, uncertain: 0 });
        assert_eq!(parse("Udp: InDatagrams\n"), None);
    }

    #[test]
    fn reading_counts_and_not_arriving() {
        // Other tests of this process may read and send meanwhile.
        use std::net::UdpSocket;
        let pids = [std::process::id()];
        let (client, server) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let before = Counters::read(&pids).unwrap();
        assert!(before.shared);
        for _ in 0..50 {
            client.send_to(&[0; 48], server.local_addr().unwrap()).unwrap();
        }
        let sent = Counters::read(&pids).unwrap().total;
        assert!(sent.sent >= before.total.sent + 50);
        for _ in 0..50 {
            server.recv_from(&mut [0; 48]).unwrap();
        }
        assert!(Counters::read(&pids).unwrap().total.read >= before.total.read + 50);
        assert_eq!(Counters::read(&[u32::MAX]), None);
    }
}
