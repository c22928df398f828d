//! When operations are to begin: pure functions of a rate, a duration and a seed. This module reads no clock.
//!
//! An instant is in nanoseconds from the start of its step. Constant arrivals are computed from their index, so no
//! error adds up: request k of a rate r is due at (k + u) / r. The phase u, from 0 to 1, is drawn from the seed, so
//! that steps with different seeds offer different instants.

use std::time::Duration;

use authentick_crypto::Entropy;

use crate::nanos;
use crate::plan::Arrivals;

/// Bits of the phase of constant arrivals. With those of an index below 2^32 they fit into the 53 of a double, so that
/// the phase is the same throughout a step, and no instant of its end is rounded out of it.
const PHASE_BITS: u32 = 20;

/// The instants at which one of several workers begins operations in one step.
#[derive(Debug)]
pub struct Schedule {
    pace: Pace,
    end_ns: u64,
    next_ns: Option<u64>,
}

#[derive(Debug)]
enum Pace {
    /// Every `stride`-th instant of the whole rate, from `index` on; all are later by `phase`, a share of the interval.
    Constant { rate_rps: f64, index: u64, stride: u64, phase: f64 },
    /// A Poisson process of the worker's own share.
    Exponential { mean_ns: f64, at_ns: f64, entropy: Box<Entropy> },
}

/// Which of how many workers a schedule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// From 0.
    pub index: u32,
    /// At least 1.
    pub count: u32,
}

impl Schedule {
    /// The share of a worker in `rate_rps` operations a second for `duration`. A rate of zero has no instants. All
    /// workers of a host have one seed: their constant arrivals have one phase, and are evenly spaced together.
    #[must_use]
    pub fn new(arrivals: Arrivals, rate_rps: f64, duration: Duration, share: Share, seed: u64) -> Self {
        let end_ns = nanos(duration);
        let count = u64::from(share.count.max(1));
        let pace = match arrivals {
            Arrivals::Constant | Arrivals::Closed { .. } => {
                Pace::Constant { rate_rps, index: u64::from(share.index), stride: count, phase: phase(seed) }
            }
            Arrivals::Exponential => Pace::Exponential {
                mean_ns: 1e9 * count as f64 / rate_rps,
                at_ns: 0.0,
                // Another worker or step with the same seed must not repeat the arrivals of this one.
                entropy: Box::new(Entropy::from_seed(seed ^ (u64::from(share.index) << 48))),
            },
        };
        let mut schedule = Schedule { pace, end_ns, next_ns: None };
        if rate_rps > 0.0 {
            schedule.advance();
        }
        schedule
    }

    /// The next instant; `None` after the last.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// Goes on to the instant after the next.
    pub fn advance(&mut self) {
        let at_ns = match &mut self.pace {
            Pace::Constant { rate_rps, index, stride, phase } => {
                let at_ns = (*index as f64 + *phase) * 1e9 / *rate_rps;
                *index += *stride;
                at_ns
            }
            Pace::Exponential { mean_ns, at_ns, entropy } => {
                // 53 bits, never zero: the logarithm of zero is no time.
                let uniform = ((entropy.u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                *at_ns += -uniform.ln() * *mean_ns;
                *at_ns
            }
        };
        self.next_ns = (at_ns < self.end_ns as f64).then_some(at_ns as u64);
    }
}

/// Uniform from 0 to 1, without 1.
fn phase(seed: u64) -> f64 {
    (Entropy::from_seed(seed).u64() >> (u64::BITS - PHASE_BITS)) as f64 / f64::from(1u32 << PHASE_BITS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALONE: Share = Share { index: 0, count: 1 };

    fn instants(mut schedule: Schedule) -> impl Iterator<Item = u64> {
        std::iter::from_fn(move || {
            let next = schedule.next_ns();
            schedule.advance();
            next
        })
    }

    #[test]
    fn constant_arrivals_lie_an_interval_apart_from_a_phase_that_the_seed_draws() {
        let of = |seed| {
            let schedule = Schedule::new(Arrivals::Constant, 3.0, Duration::from_secs(2), ALONE, seed);
            instants(schedule).collect::<Vec<_>>()
        };
        for seed in 0..100 {
            let first_ns = phase(seed) * 1e9 / 3.0;
            let expected: Vec<u64> = (0..6).map(|k| (first_ns + f64::from(k) * 1e9 / 3.0) as u64).collect();
            let instants = of(seed);
            assert!(instants.len() == 6 && instants[0] < 333_333_333, "{instants:?}");
            assert!(
                instants.iter().zip(&expected).all(|(at, expected)| at.abs_diff(*expected) <= 1),
                "{instants:?}"
            );
            assert_eq!(instants, of(seed), "the same seed repeats");
            assert_ne!(instants, of(seed + 1));
        }
        let none = Schedule::new(Arrivals::Constant, 0.0, Duration::from_secs(2), ALONE, 0);
        assert_eq!(none.next_ns(), None);
    }

    /// Kolmogorov and Smirnov: of 10,000 the distance from a uniform distribution is above 0.0195 once in a thousand.
    #[test]
    fn phases_are_uniform() {
        let mut phases: Vec<f64> = (0..10_000).map(phase).collect();
        phases.sort_by(f64::total_cmp);
        assert!(phases.iter().all(|phase| (0.0..1.0).contains(phase)));
        let distance = phases.iter().enumerate().map(|(number, phase)| (phase - number as f64 / 1e4).abs());
        let distance = distance.reduce(f64::max).unwrap();
        assert!(distance < 0.0195, "{distance}");
    }

    #[test]
    fn long_runs_do_not_drift() {
        let schedule = Schedule::new(Arrivals::Constant, 700_000.0, Duration::from_secs(100), ALONE, 0);
        assert_eq!(instants(schedule).count(), 70_000_000);
    }

    #[test]
    fn exponential_arrivals_have_mean_and_deviation_of_their_rate() {
        let at = |share| {
            let duration = Duration::from_secs(20);
            instants(Schedule::new(Arrivals::Exponential, 10_000.0, duration, share, 7)).collect::<Vec<_>>()
        };
        let instants = at(ALONE);
        let gaps: Vec<f64> = instants.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        // 200,000 gaps: the mean is within five of its standard errors, 0.22 percent each.
        assert!((mean / 100_000.0 - 1.0).abs() < 0.012, "{mean}");
        assert!((deviation / mean - 1.0).abs() < 0.02, "{deviation}");
        assert_eq!(instants, at(ALONE), "the same seed repeats");
        assert_ne!(at(Share { index: 0, count: 2 }), at(Share { index: 1, count: 2 }));
    }

    proptest! {
        #[test]
        fn shares_of_workers_make_up_the_whole(
            rate in 1.0f64..5000.0, count in 1u32..6, milliseconds in 1u64..2000, seed: u64,
        ) {
            let duration = Duration::from_millis(milliseconds);
            let share = |index, count| {
                instants(Schedule::new(Arrivals::Constant, rate, duration, Share { index, count }, seed))
            };
            let mut shares: Vec<u64> = (0..count).flat_map(|index| share(index, count)).collect();
            shares.sort_unstable();
            prop_assert_eq!(shares, share(0, 1).collect::<Vec<_>>());
        }

        #[test]
        fn step_of_whole_intervals_has_one_instant_for_each(
            rate in 1u32..100_000, seconds in 1u64..5, seed: u64,
        ) {
            let duration = Duration::from_secs(seconds);
            let schedule = Schedule::new(Arrivals::Constant, f64::from(rate), duration, ALONE, seed);
            prop_assert_eq!(instants(schedule).count() as u64, u64::from(rate) * seconds);
        }
    }
}
