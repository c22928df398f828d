//! What this host did during a step, beside what its sending threads did themselves, as `/proc` tells; proc(5).
//!
//! The kernel's counts are of everything on this host (processor time) or in this network namespace (UDP, interfaces),
//! so differences over a step hold what others did too. What it cannot see: datagrams that the queue of an interface
//! drops (`tc -s qdisc`) are not among the interface's own; the sockets report these as a full buffer.

use std::fs;

use authentick_report::load::{Drops, Evidence, Tally};

/// Up to this share of the requests may have been dropped on this host: a tenth of the loss that searches tolerate.
const DROPPED_SHARE_MAX: f64 = 0.001;

/// Counts since some time before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Processor time in ticks: what a hypervisor gave to others, and all of it.
    steal: Option<(u64, u64)>,
    /// Datagrams for which UDP had no buffer to send.
    send_buffer: Option<u64>,
    /// Packets that interfaces dropped instead of sending.
    queue: Option<u64>,
}

impl Counters {
    /// The counts now; what the kernel does not tell is absent.
    pub(crate) fn read() -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let v4 = snmp(&read("/proc/thread-self/net/snmp"), "Udp", "SndbufErrors");
        let v6 = snmp6(&read("/proc/thread-self/net/snmp6"), "Udp6SndbufErrors");
        Counters {
            steal: steal(&read("/proc/stat")),
            send_buffer: v4.map(|v4| v4.saturating_add(v6.unwrap_or(0))),
            queue: queue(&read("/proc/thread-self/net/dev")),
        }
    }

    /// What happened from here until `later`.
    pub(crate) fn until(&self, later: &Counters) -> Evidence {
        let more = |before: Option<u64>, after: Option<u64>| {
            before.zip(after).map_or(0, |(before, after)| after.saturating_sub(before))
        };
        let share = self.steal.zip(later.steal).and_then(|(before, after)| {
            let whole = after.1.checked_sub(before.1).filter(|&whole| whole > 0)?;
            Some((after.0.saturating_sub(before.0) as f64 / whole as f64).min(1.0))
        });
        Evidence {
            steal_share: share,
            drops: Drops {
                send_buffer: more(self.send_buffer, later.send_buffer),
                queue: more(self.queue, later.queue),
                ..Drops::default()
            },
            ..Evidence::default()
        }
    }
}

/// Why the figures say nothing about the server, if so much was dropped before it left this host; `None` if it was not.
pub(crate) fn why_invalid(drops: &Drops, tally: &Tally) -> Option<String> {
    if drops.unread > 0 {
        return Some(format!(
            "generator fell behind: it did not read {} answers in time; offer less, or use more --workers or hosts",
            drops.unread
        ));
    }
    // A refusal of the queue may show in both. What others on this host lost explains no loss here.
    let dropped = drops.send_buffer.max(drops.queue).min(tally.lost);
    (dropped as f64 > DROPPED_SHARE_MAX * tally.sent as f64).then(|| {
        format!(
            "this host dropped datagrams that were to be sent: that may be {dropped} of {} lost requests; offer less, \
             or give the interface a longer queue",
            tally.lost
        )
    })
}

/// How long this thread has been ready to run and did not, in nanoseconds; `None` if the kernel does not tell.
pub(crate) fn run_delay_ns() -> Option<u64> {
    run_delay(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// The second number of a schedstat. Documentation/scheduler/sched-stats.rst of Linux.
fn run_delay(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Stolen ticks and all ticks, of the first line of `/proc/stat`. Time of guests is in that of users.
fn steal(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|tick| tick.parse().ok()).take(8).collect();
    Some((*ticks.get(7)?, ticks.iter().sum()))
}

/// A counter of `/proc/net/snmp`, in which each protocol has a line of names and one of values.
pub(crate) fn snmp(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let rest = |line: &'_ str| -> Option<Vec<String>> {
        let rest = line.strip_prefix(protocol)?.strip_prefix(':')?;
        Some(rest.split_whitespace().map(str::to_owned).collect())
    };
    let mut lines = text.lines().filter_map(rest);
    let (names, values) = (lines.next()?, lines.next()?);
    values.get(names.iter().position(|other| other == name)?)?.parse().ok()
}

/// A counter of `/proc/net/snmp6`, in which each has a line.
pub(crate) fn snmp6(text: &str, name: &str) -> Option<u64> {
    let value = |line: &str| {
        let (first, value) = line.split_once(char::is_whitespace)?;
        (first == name).then(|| value.trim().parse().ok())?
    };
    text.lines().find_map(value)
}

/// What all interfaces of `/proc/net/dev` dropped instead of sending: the twelfth of their numbers.
fn queue(text: &str) -> Option<u64> {
    let of_line = |line: &str| -> Option<u64> {
        let (_, numbers) = line.split_once(':')?;
        numbers.split_whitespace().nth(11)?.parse().ok()
    };
    let dropped: Vec<u64> = text.lines().filter_map(of_line).collect();
    (!dropped.is_empty()).then(|| dropped.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
                        Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
                        Udp: 1000 2 3 900 4 5\nUdpLite: InDatagrams SndbufErrors\nUdpLite: 7 8\n";

    #[test]
    fn counters_are_found_by_protocol_and_name() {
        assert_eq!(snmp(SNMP, "Udp", "InDatagrams"), Some(1000));
        assert_eq!(snmp(SNMP, "Udp", "SndbufErrors"), Some(5));
        assert_eq!(snmp(SNMP, "UdpLite", "SndbufErrors"), Some(8));
        assert_eq!((snmp(SNMP, "Udp", "Nonsense"), snmp("", "Udp", "InDatagrams")), (None, None));
        let text = "Udp6InDatagrams                 \t12\nUdp6SndbufErrors                \t3\n";
        assert_eq!((snmp6(text, "Udp6SndbufErrors"), snmp6(text, "Udp6")), (Some(3), None));
    }

    #[test]
    fn stolen_time_is_the_eighth_number_and_guests_are_not_counted_twice() {
        let text = "cpu  100 0 50 800 10 5 5 30 70 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(steal(text), Some((30, 1000)));
        assert_eq!((steal("cpu 1 2 3"), steal("")), (None, None));
    }

    #[test]
    fn drops_of_all_interfaces_are_added() {
        let text = "Inter-|   Receive                            |  Transmit\n\
                    face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n\
                    lo: 10 1 0 0 0 0 0 0 10 1 0 2 0 0 0 0\n  eth0:10 1 0 9 0 0 0 0 10 1 0 40 0 0 0 0\n";
        assert_eq!((queue(text), queue("")), (Some(42), None));
    }

    #[test]
    fn differences_are_of_the_step_and_absent_where_nothing_is_known() {
        let before = Counters { steal: Some((10, 1000)), send_buffer: Some(5), queue: None };
        let after = Counters { steal: Some((60, 1200)), send_buffer: Some(7), queue: Some(3) };
        let evidence = before.until(&after);
        assert_eq!(evidence.steal_share, Some(0.25));
        assert_eq!((evidence.drops.send_buffer, evidence.drops.queue), (2, 0));
        assert_eq!(before.until(&before).steal_share, None);
        assert_eq!(Counters::default().until(&after), Evidence::default());
    }

    #[test]
    fn this_host_tells() {
        let before = Counters::read();
        assert!(before.steal.is_some() && before.queue.is_some(), "{before:?}");
        assert!(run_delay_ns().is_none_or(|ns| ns < u64::MAX / 2));
        assert_eq!(run_delay("123 456 7\n"), Some(456));
        assert_eq!(run_delay("123"), None);
    }

    #[test]
    fn drops_of_this_host_that_explain_losses_invalidate_a_step() {
        let why = |unread, send_buffer, queue, lost| {
            let drops = Drops { unread, send_buffer, queue };
            let tally = Tally { sent: 10_000, lost, ..Tally::default() };
            why_invalid(&drops, &tally)
        };
        assert!(why(1, 0, 0, 0).is_some_and(|why| why.contains("did not read 1 answers")));
        assert!(why(0, 11, 11, 500).is_some_and(|why| why.contains("11 of 500")));
        assert!(why(0, 0, 90, 20).is_some_and(|why| why.contains("20 of 20")));
        assert_eq!([why(0, 10, 10, 500), why(0, 5_000, 5_000, 0), why(0, 0, 0, 9_000)], [None, None, None]);
    }
}
