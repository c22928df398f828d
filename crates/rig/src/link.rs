//! What a link does to a packet: a pure model, to which time and randomness are handed.

use std::time::{Duration, Instant};

use authentick_crypto::Entropy;

/// Octets that Ethernet adds to an IP packet: preamble 8, header 14, check sequence 4, gap 12.
pub const ETHERNET_OVERHEAD: usize = 38;

/// The least that a packet takes on Ethernet: 64 octets of frame, preamble, gap.
pub const ETHERNET_SIZE_MIN: usize = 84;

/// One direction of a path. The default passes everything at once.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// The time that every packet takes.
    pub delay: Duration,
    /// The most that is added to it, evenly distributed. Packets stay in order: one that drew less than the one before
    /// it leaves together with that one.
    pub jitter: Duration,
    /// Packets that never arrive, in parts of a million. They use the link.
    pub lost_ppm: u32,
    /// Bits a second on Ethernet, frames and gaps included; absent: no limit.
    pub rate_bps: Option<u64>,
    /// The most octets that wait for a link with a rate, beside the packet that is being sent; a packet that finds no
    /// room is dropped.
    pub queue_size: usize,
    /// When the link has sent what it has.
    free: Option<Instant>,
    /// When the last packet leaves.
    last: Option<Instant>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives then.
    Arrives(Instant),
    /// It is lost on the way.
    Lost,
    /// It finds no room in the queue.
    Overflowed,
}

impl Link {
    /// A link with a delay alone.
    #[must_use]
    pub fn delayed(delay: Duration) -> Self {
        Link { delay, ..Link::default() }
    }

    /// A link with a rate alone and a queue of `queue`, so long does the last packet in it wait.
    #[must_use]
    pub fn limited(rate_bps: u64, queue: Duration) -> Self {
        let queue_size = (rate_bps as f64 * queue.as_secs_f64() / 8.0) as usize;
        Link { rate_bps: Some(rate_bps), queue_size, ..Link::default() }
    }

    /// The same with another delay.
    #[must_use]
    pub fn with_delay(self, delay: Duration) -> Self {
        Link { delay, ..self }
    }

    /// Adds a jitter of at most `jitter`.
    #[must_use]
    pub fn with_jitter(self, jitter: Duration) -> Self {
        Link { jitter, ..self }
    }

    /// Adds a loss of so many in a million.
    #[must_use]
    pub fn with_loss(self, lost_ppm: u32) -> Self {
        Link { lost_ppm, ..self }
    }

    /// Octets on Ethernet of an IP packet of `size` octets.
    #[must_use]
    pub const fn ethernet_size(size: usize) -> usize {
        let framed = size + ETHERNET_OVERHEAD;
        if framed < ETHERNET_SIZE_MIN { ETHERNET_SIZE_MIN } else { framed }
    }

    /// IP packets of `size` octets that an Ethernet of `rate_bps` carries in a second.
    #[must_use]
    pub fn packets_per_second(rate_bps: u64, size: usize) -> f64 {
        rate_bps as f64 / 8.0 / Link::ethernet_size(size) as f64
    }

    /// Decides on an IP packet of `size` octets that comes at `now`, no earlier than the one before it. Draws as many
    /// numbers from `entropy` whatever becomes of the packet, so that histories with one seed differ only where their
    /// links do.
    pub fn admit(&mut self, now: Instant, size: usize, entropy: &mut Entropy) -> Fate {
        let (loss, jitter) = (entropy.u64() % 1_000_000, entropy.u64());
        let mut sent = now;
        if let Some(rate_bps) = self.rate_bps {
            let time_of =
                |octets: usize| Duration::from_nanos((octets as u64 * 8_000_000_000) / rate_bps.max(1));
            let begins = self.free.map_or(now, |free| free.max(now));
            if begins - now > time_of(self.queue_size) {
                return Fate::Overflowed;
            }
            sent = begins + time_of(Link::ethernet_size(size));
            self.free = Some(sent);
        }
        if loss < u64::from(self.lost_ppm) {
            return Fate::Lost;
        }
        let jitter = Duration::from_nanos(jitter % (self.jitter.as_nanos() as u64 + 1));
        let arrives = sent + self.delay + jitter;
        let arrives = self.last.map_or(arrives, |last| last.max(arrives));
        self.last = Some(arrives);
        Fate::Arrives(arrives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Arrivals after the start, one packet every `gap`; `None` for those that do not arrive.
    fn carry(mut link: Link, count: u32, gap: Duration, size: usize, seed: u64) -> Vec<Option<Duration>> {
        let (start, mut entropy) = (Instant::now(), Entropy::from_seed(seed));
        let mut at = |index| match link.admit(start + gap * index, size, &mut entropy) {
            Fate::Arrives(at) => Some(at - start),
            Fate::Lost | Fate::Overflowed => None,
        };
        (0..count).map(&mut at).collect()
    }

    #[test]
    fn delay_is_added_to_every_packet() {
        let arrivals = carry(Link::delayed(20 * MS), 10, MS, 76, 1);
        assert!(arrivals.iter().zip(0..).all(|(at, index)| *at == Some(20 * MS + MS * index)));
    }

    #[test]
    fn jitter_is_spread_over_its_range_and_keeps_the_order() {
        let link = Link::delayed(20 * MS).with_jitter(10 * MS);
        let arrivals: Vec<Duration> =
            carry(link.clone(), 2000, 20 * MS, 76, 2).into_iter().flatten().collect();
        let delays: Vec<Duration> =
            arrivals.iter().zip(0..).map(|(at, index)| *at - 20 * MS * index).collect();
        assert!(delays.iter().all(|delay| (20 * MS..=30 * MS).contains(delay)));
        let mean = delays.iter().sum::<Duration>() / 2000;
        // 25 ms within four standard errors of 10 ms / sqrt(12 * 2000).
        assert!(mean.abs_diff(25 * MS) < Duration::from_micros(260), "{mean:?}");
        let dense: Vec<Duration> = carry(link, 2000, MS / 10, 76, 3).into_iter().flatten().collect();
        assert!(dense.is_sorted() && dense.len() == 2000);
    }

    #[test]
    fn loss_is_the_share_that_was_set_and_repeats_with_the_seed() {
        let lost = |seed| {
            let arrivals = carry(Link::default().with_loss(100_000), 20_000, MS, 76, seed);
            arrivals.iter().map(Option::is_none).collect::<Vec<_>>()
        };
        let count = lost(4).iter().filter(|&&lost| lost).count();
        // 2000 within four standard deviations of sqrt(20000 * 0.1 * 0.9).
        assert!(count.abs_diff(2000) < 170, "{count}");
        assert_eq!(lost(4), lost(4));
        assert_ne!(lost(4), lost(5));
        assert!(carry(Link::default().with_loss(1_000_000), 100, MS, 76, 6).iter().all(Option::is_none));
    }

    #[test]
    fn full_link_carries_its_rate_exactly_and_its_queue_delays_by_its_length() {
        // 48 octets of payload are 114 on Ethernet: 109,649 a second.
        let rate = 100_000_000;
        assert_eq!(Link::packets_per_second(rate, 76).round(), 109_649.0);
        let gap = Duration::from_nanos(4000);
        let arrivals = carry(Link::limited(rate, 5 * MS), 250_000, gap, 76, 7);
        let arrived: Vec<Duration> = arrivals.iter().copied().flatten().collect();
        let within = arrived.iter().filter(|at| **at < Duration::from_secs(1)).count();
        assert!(within.abs_diff(109_649) <= 1, "{within}");
        let waits = arrivals.iter().zip(0..).filter_map(|(at, index)| Some((*at)? - gap * index));
        let longest = waits.max().unwrap();
        assert!((5 * MS..5 * MS + Duration::from_micros(20)).contains(&longest), "{longest:?}");
    }

    #[test]
    fn link_that_is_not_full_delays_by_the_time_of_sending_alone() {
        // 1500 octets are 1538 on Ethernet: 12.304 us at 1 Gbit/s.
        let arrivals = carry(Link::limited(1_000_000_000, MS), 1000, Duration::from_micros(13), 1500, 8);
        assert!(arrivals.iter().zip(0..).all(|(at, index)| {
            *at == Some(Duration::from_micros(13) * index + Duration::from_nanos(12_304))
        }));
    }

    #[test]
    fn small_packets_take_the_least_frame() {
        assert_eq!([0, 46, 47, 1500].map(Link::ethernet_size), [84, 84, 85, 1538]);
    }
}
