//! Single tags, each timed for itself by the time-stamp counter: the drafts' argument is that time servers want MACs
//! whose latency does not vary.

use authentick_net::instructions::clear_upper_halves;
use authentick_net::ticks;
use authentick_report::mac::{Spread, Timing};
use authentick_report::stats::{Percentile, Sample};

use super::hundredth;
use super::subject::{Subject, Work, work};

/// Work that is timed bit by bit.
struct Watched {
    work: Work,
    ticks: Vec<u64>,
}

impl Watched {
    fn new(work: Work) -> Self {
        Watched { work, ticks: Vec::new() }
    }
}

/// The subjects of a process.
pub(super) struct Spreads {
    watched: Vec<(Timing, Watched)>,
    /// What does nothing, timed likewise: what reading the counter takes.
    floor: Watched,
    /// Tags of each subject in a round.
    count: u32,
}

impl Spreads {
    /// `subjects` have batches of one.
    pub(super) fn new(subjects: Vec<Subject>, count: u32) -> Self {
        let watched = subjects.into_iter().map(|subject| (subject.timing, Watched::new(subject.work)));
        let nothing = work(|number| {
            std::hint::black_box(number);
        });
        Spreads { watched: watched.collect(), floor: Watched::new(nothing), count }
    }

    /// One turn of each.
    pub(super) fn round(&mut self) {
        let subjects = self.watched.iter_mut().map(|(_, watched)| watched);
        for watched in std::iter::once(&mut self.floor).chain(subjects) {
            clear_upper_halves();
            // The first ones after somebody else's turn find cold caches.
            (watched.work)(u64::from(self.count / 8) + 1);
            for _ in 0..self.count {
                let start = ticks::now();
                (watched.work)(1);
                watched.ticks.push(ticks::now().wrapping_sub(start));
            }
        }
    }

    /// What was measured; `reference_hz` is the counter's rate, or `None` where it counts nanoseconds.
    pub(super) fn finish(self, reference_hz: Option<f64>) -> Vec<Spread> {
        let ns_per_tick = reference_hz.map_or(1.0, |hz| 1e9 / hz);
        let floor: Sample<u64> = self.floor.ticks.into_iter().collect();
        let floor = floor.median().unwrap_or(0);
        let spread = |(subject, watched): (Timing, Watched)| {
            let sample: Sample<u64> =
                watched.ticks.into_iter().map(|ticks| ticks.saturating_sub(floor)).collect();
            let p99 = sample.percentile(Percentile::P99)?;
            let quiet: Sample<u64> =
                sample.values().iter().copied().take_while(|&ticks| ticks <= p99).collect();
            let ns = |ticks: f64| hundredth(ticks * ns_per_tick);
            Some(Spread {
                algorithm: subject.algorithm,
                implementation: subject.implementation,
                count: sample.values().len() as u64,
                p50_ns: ns(sample.median()? as f64),
                p99_ns: ns(p99 as f64),
                deviation_ns: ns(sample.standard_deviation()?),
                quiet_deviation_ns: ns(quiet.standard_deviation().unwrap_or(0.0)),
            })
        };
        self.watched.into_iter().filter_map(spread).collect()
    }
}

#[cfg(test)]
mod tests {
    use authentick_report::mac::{Algorithm, Implementation, KeyUse};

    use super::*;

    #[test]
    fn spread_is_that_of_what_was_timed_less_the_floor() {
        // One in ten takes longer.
        let work = work(|number| {
            let us = if number.is_multiple_of(10) { 300 } else { 100 };
            std::thread::sleep(std::time::Duration::from_micros(us));
        });
        let (algorithm, implementation) = (Algorithm::Cmac128, Implementation::Authentick);
        let subject = Subject::single(algorithm, implementation, KeyUse::Kept, work);
        let mut spreads = Spreads::new(vec![subject], 100);
        spreads.round();
        let spread = spreads.finish(ticks::reference_hz()).remove(0);
        assert_eq!((spread.algorithm, spread.count), (Algorithm::Cmac128, 100));
        assert!(spread.p50_ns >= 90_000.0 && spread.p99_ns >= 280_000.0, "{spread:?}");
        assert!(
            spread.quiet_deviation_ns <= spread.deviation_ns && spread.deviation_ns > 10_000.0,
            "{spread:?}"
        );
    }
}
