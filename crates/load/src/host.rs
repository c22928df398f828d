//! What this host did during a step, beside what its sending threads did themselves, as `/proc` tells; proc(5).
//!
//! The kernel's counts are of everything on this host (processor time) or in this network namespace (UDP, TCP,
//! interfaces), so differences over a step hold what others did too. What it cannot see: datagrams that the queue of an
//! interface drops (`tc -s qdisc`) are not among the interface's own; the sockets report these as a full buffer.

use std::fs;
use std::time::{Duration, Instant};

use authentick_generator::validity::OFFER_LESS;
use authentick_net::affinity;
use authentick_net::clock::monotonic_ns;
use authentick_report::load::{Drops, Evidence, Tally};
use authentick_report::units::{count, plural};

/// Up to this share of the requests may have been dropped on this host: a tenth of the loss that searches tolerate.
const DROPPED_SHARE_MAX: f64 = 0.001;

/// Counts since some time before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// When they were read, monotonic.
    at_ns: u64,
    /// For how long each thread was ready to run and did not, in nanoseconds.
    delays_ns: Vec<Option<u64>>,
    /// Processor time in ticks: what a hypervisor gave to others, and all of it.
    steal: Option<(u64, u64)>,
    /// Datagrams for which UDP had no buffer to send.
    send_buffer: Option<u64>,
    /// Packets that interfaces dropped instead of sending.
    queue: Option<u64>,
    /// SYNs that were sent again.
    syn_repeats: Option<u64>,
}

impl Counters {
    /// The counts now, of these threads of this process, and of the network namespace of the first. What the kernel
    /// does not tell is absent.
    pub(crate) fn read(threads: &[i32]) -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let of = |thread: &i32, file: &str| read(&format!("/proc/self/task/{thread}/{file}"));
        let first = |file: &str| threads.first().map(|thread| of(thread, file)).unwrap_or_default();
        let v4 = snmp(&first("net/snmp"), "Udp", "SndbufErrors");
        let v6 = snmp6(&first("net/snmp6"), "Udp6SndbufErrors");
        let cpus = affinity::allowed().unwrap_or_default();
        Counters {
            at_ns: monotonic_ns(),
            delays_ns: threads.iter().map(|thread| run_delay(&of(thread, "schedstat"))).collect(),
            steal: steal(&read("/proc/stat"), &cpus),
            send_buffer: v4.map(|v4| v4.saturating_add(v6.unwrap_or(0))),
            queue: queue(&first("net/dev")),
            syn_repeats: snmp(&first("net/netstat"), "TcpExt", "TCPSynRetrans"),
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
        let lasted_ns = later.at_ns.saturating_sub(self.at_ns);
        let delays = self.delays_ns.iter().zip(&later.delays_ns);
        let longest_ns = delays
            .filter_map(|(before, after)| after.zip(*before))
            .map(|(after, before)| after.saturating_sub(before));
        let longest_ns = longest_ns.max().filter(|_| lasted_ns > 0);
        Evidence {
            preempted_share: longest_ns.map(|ns| (ns as f64 / lasted_ns as f64).min(1.0)),
            steal_share: share,
            drops: Drops {
                send_buffer: more(self.send_buffer, later.send_buffer),
                queue: more(self.queue, later.queue),
                ..Drops::default()
            },
            ..Evidence::default()
        }
    }

    /// How many SYNs were sent again from here until `later`; absent if the kernel does not tell.
    pub(crate) fn syn_repeats_until(&self, later: &Counters) -> Option<u64> {
        later.syn_repeats.zip(self.syn_repeats).map(|(after, before)| after.saturating_sub(before))
    }
}

/// Why the figures say nothing about the server, if so much was dropped before it left this host; `None` if it was not.
pub(crate) fn why_invalid(drops: &Drops, tally: &Tally) -> Option<String> {
    if drops.unread > 0 {
        return Some(format!(
            "generator fell behind: it did not read {} in time; {OFFER_LESS}",
            plural(drops.unread, "answer")
        ));
    }
    // A refusal of the queue may show in both. What others on this host lost explains no loss here.
    let dropped = drops.send_buffer.max(drops.queue).min(tally.lost);
    (dropped as f64 > DROPPED_SHARE_MAX * tally.sent as f64).then(|| {
        format!(
            "this host dropped datagrams that were to be sent: that may be {} of {}; offer less, or give the interface \
             a longer queue",
            count(dropped),
            plural(tally.lost, "lost request")
        )
    })
}

/// Waits until `at`, or until `is_over` says that there is no need to.
pub(crate) fn wait_until(at: Instant, mut is_over: impl FnMut() -> bool) {
    const PATIENCE_MAX: Duration = Duration::from_millis(100);
    loop {
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() || is_over() {
            return;
        }
        std::thread::sleep(left.min(PATIENCE_MAX));
    }
}

/// The second number of a schedstat. Documentation/scheduler/sched-stats.rst of Linux.
fn run_delay(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Stolen ticks and all ticks, of the processors with these numbers, from `/proc/stat`. Time of guests is in that of
/// users.
fn steal(text: &str, cpus: &[usize]) -> Option<(u64, u64)> {
    let mut sum = None;
    for line in text.lines() {
        let mut fields = line.split_whitespace();
        let number: Option<usize> = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
        if number.is_some_and(|number| cpus.contains(&number)) {
            let ticks: Vec<u64> = fields.map_while(|tick| tick.parse().ok()).take(8).collect();
            let (stolen, all) = sum.unwrap_or((0, 0));
            sum = Some((stolen + ticks.get(7)?, all + ticks.iter().sum::<u64>()));
        }
    }
    sum
}

/// A counter of `/proc/net/snmp` or `netstat`, in which each protocol has a line of names and one of values.
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
        let text = "cpu  100 0 50 800 10 5 5 30 70 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 10 0 0 0 0 0 0 5 5 5\nctxt 1\n";
        assert_eq!((steal(text, &[0]), steal(text, &[0, 1])), (Some((8, 36)), Some((13, 51))));
        assert_eq!((steal(text, &[2]), steal("cpu0 1 2 3", &[0]), steal("", &[0])), (None, None, None));
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
        let before = Counters {
            at_ns: 1_000,
            delays_ns: vec![Some(100), None, Some(500)],
            steal: Some((10, 1000)),
            send_buffer: Some(5),
            queue: None,
            syn_repeats: Some(8),
        };
        let after = Counters {
            at_ns: 11_000,
            delays_ns: vec![Some(3_100), Some(9_000), Some(700)],
            steal: Some((60, 1200)),
            send_buffer: Some(7),
            queue: Some(3),
            syn_repeats: Some(11),
        };
        let evidence = before.until(&after);
        assert_eq!((evidence.steal_share, evidence.preempted_share), (Some(0.25), Some(0.3)));
        assert_eq!((evidence.drops.send_buffer, evidence.drops.queue), (2, 0));
        assert_eq!((before.syn_repeats_until(&after), after.syn_repeats_until(&before)), (Some(3), Some(0)));
        assert_eq!(Counters::default().syn_repeats_until(&after), None);
        let nothing = before.until(&before);
        assert_eq!((nothing.steal_share, nothing.preempted_share), (None, None));
        assert_eq!(Counters::default().until(&after), Evidence::default());
    }

    #[test]
    fn this_host_tells() {
        let before = Counters::read(&[affinity::thread_number()]);
        assert!(
            before.steal.is_some() && before.queue.is_some() && before.send_buffer.is_some(),
            "{before:?}"
        );
        let gone = Counters::read(&[i32::MAX]);
        assert_eq!((gone.delays_ns, gone.send_buffer, gone.queue), (vec![None], None, None));
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
        assert!(why(1, 0, 0, 0).is_some_and(|why| why.contains("did not read 1 answer in time")));
        assert!(why(0, 11, 11, 500).is_some_and(|why| why.contains("11 of 500")));
        assert!(why(0, 0, 90, 20).is_some_and(|why| why.contains("20 of 20")));
        assert_eq!([why(0, 10, 10, 500), why(0, 5_000, 5_000, 0), why(0, 0, 0, 9_000)], [None, None, None]);
    }
}
