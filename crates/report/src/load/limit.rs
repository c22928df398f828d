//! What limited a step, and the evidence for it.

use serde::{Deserialize, Serialize};

/// What kept a step, or a search, from more. Stored under its name.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Limit {
    /// Nothing did: what was offered was sent in time and answered.
    Nothing,
    /// The server: it was busy all the time, its socket was full, or it left requests unanswered that it had read.
    Server,
    /// The server's host: other work had the server's processor.
    Host,
    /// The generator, or the host that it runs on.
    Generator,
    /// The way between both.
    Path,
    /// Something beyond the generator: what is known does not tell the server from the path.
    #[default]
    #[serde(other)]
    Unknown,
}

/// What limited a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What did.
    pub by: Limit,
    /// Why that is said: sentences with figures, the weightiest first.
    pub why: Vec<String>,
}

/// What is known of a generator's hosts during a step, apart from counts and times of operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Share of the step in which the busiest sending thread had nothing to do but wait, from 0 to 1.
    pub idle_share: Option<f64>,
    /// Share of the step in which a sending thread was ready to run and another thread had its processor: the largest.
    pub preempted_share: Option<f64>,
    /// Share of its processors' time that the host's own hypervisor gave to others: the largest.
    pub steal_share: Option<f64>,
    /// Times at which a sending thread stood still.
    pub stalls: Stalls,
    /// How often the time of day was set during the step: the most that any thread saw.
    pub clock_jumps: u64,
    /// Datagrams that the generator's hosts dropped.
    pub drops: Drops,
    /// Requests of measured clients that fell due while a sending thread stood still, in a trial of a search: neither
    /// sent nor counted.
    #[serde(skip_serializing_if = "crate::load::is_default")]
    pub cut: u64,
    /// SYNs that these hosts sent again, from the first operation that counts until all had ended (`TCPSynRetrans`), of
    /// all connections of their network namespaces; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn_repeats: Option<u64>,
}

/// Times at which a sending thread stood still for a millisecond or more with something to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stalls {
    /// How often.
    pub count: u64,
    /// The longest, in microseconds.
    pub longest_us: f64,
    /// All of them together, in microseconds; of the thread that stood still longest.
    pub total_us: f64,
}

/// Datagrams that the generator's hosts dropped during a step, by the kernel's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Drops {
    /// Answers for which sockets of the generator had no room, as it had not read earlier ones.
    pub unread: u64,
    /// Requests that the host's UDP had no buffer for (`SndbufErrors`).
    pub send_buffer: u64,
    /// Requests that the queue of the interface dropped.
    pub queue: u64,
}

/// What a server's host counted of UDP, and of connections that were not accepted, during a step: of all sockets in the
/// server's network namespace. Datagrams of the generator, if it shares the namespace, are subtracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// Datagrams that were read (`InDatagrams`).
    pub read: u64,
    /// Datagrams that came and found their socket full (`RcvbufErrors`).
    pub full: u64,
    /// Datagrams that were sent (`OutDatagrams`).
    pub sent: u64,
    /// Datagrams that still waited in the server's sockets at the end, at most (`rx_queue`, which counts memory).
    pub unread: u64,
    /// How far each of these may be off, as counting began while datagrams were on their way: after a warm-up.
    pub uncertain: u64,
    /// Connections that found an accept queue full (`ListenOverflows`); absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_overflows: Option<u64>,
    /// Connections that were dropped before they were accepted, those included (`ListenDrops`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_drops: Option<u64>,
}

/// One second of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Operations that began in it.
    pub sent: u64,
    /// Operations that were answered in it.
    pub answered: u64,
    /// Operations that failed in it: an unanswered one does so when its time is up.
    pub failed: u64,
    /// Median latency of its answers, in microseconds.
    pub p50_us: Option<f64>,
    /// The 99th percentile.
    pub p99_us: Option<f64>,
}

/// What a server answers when it always has work: the rate of a closed loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Operations answered, a second.
    pub rate_rps: f64,
    /// Operations that each worker kept in flight.
    pub window: u32,
}

/// What a search found: the server's capacity lies from `at_least` to `below`, as far as the search could tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The highest rate whose loss is at most the tolerated one, with the confidence of the search; requests a second.
    pub at_least: Option<f64>,
    /// The lowest rate whose loss is above it, with the same confidence; absent if none was found, as for a server that
    /// carries more than the generator can offer.
    pub below: Option<f64>,
    /// What the limit was at the upper end.
    pub limited_by: Limit,
    /// What a closed loop answered before the open trials; absent if nothing was, in searches with a highest rate, and
    /// in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
}

impl Evidence {
    /// Adds what is known of another thread or host in the same step.
    pub fn merge(&mut self, other: &Evidence) {
        let most = |mine: Option<f64>, other: Option<f64>| mine.into_iter().chain(other).reduce(f64::max);
        self.idle_share = self.idle_share.into_iter().chain(other.idle_share).reduce(f64::min);
        self.preempted_share = most(self.preempted_share, other.preempted_share);
        self.steal_share = most(self.steal_share, other.steal_share);
        self.clock_jumps = self.clock_jumps.max(other.clock_jumps);
        self.stalls = Stalls {
            count: self.stalls.count.saturating_add(other.stalls.count),
            longest_us: self.stalls.longest_us.max(other.stalls.longest_us),
            total_us: self.stalls.total_us.max(other.stalls.total_us),
        };
        self.drops = Drops {
            unread: self.drops.unread.saturating_add(other.drops.unread),
            send_buffer: self.drops.send_buffer.saturating_add(other.drops.send_buffer),
            queue: self.drops.queue.saturating_add(other.drops.queue),
        };
        self.cut = self.cut.saturating_add(other.cut);
        let repeats = self.syn_repeats.into_iter().chain(other.syn_repeats);
        self.syn_repeats = repeats.reduce(u64::saturating_add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_hosts_the_worst_counts_and_drops_add_up() {
        let mut one = Evidence {
            idle_share: Some(0.9),
            steal_share: Some(0.1),
            stalls: Stalls { count: 1, longest_us: 5.0, total_us: 5.0 },
            drops: Drops { unread: 1, ..Drops::default() },
            ..Evidence::default()
        };
        one.merge(&Evidence {
            idle_share: Some(0.2),
            preempted_share: Some(0.3),
            stalls: Stalls { count: 2, longest_us: 4.0, total_us: 8.0 },
            clock_jumps: 1,
            drops: Drops { unread: 2, queue: 3, ..Drops::default() },
            cut: 6,
            syn_repeats: Some(4),
            ..Evidence::default()
        });
        assert_eq!(one.cut, 6);
        assert_eq!((one.idle_share, one.preempted_share, one.steal_share), (Some(0.2), Some(0.3), Some(0.1)));
        assert_eq!(one.stalls, Stalls { count: 3, longest_us: 5.0, total_us: 8.0 });
        assert_eq!((one.clock_jumps, one.drops), (1, Drops { unread: 3, send_buffer: 0, queue: 3 }));
        assert_eq!(one.syn_repeats, Some(4));
        one.merge(&Evidence { syn_repeats: Some(u64::MAX), ..Evidence::default() });
        assert_eq!(one.syn_repeats, Some(u64::MAX));
    }
}
