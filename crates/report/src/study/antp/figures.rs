//! Means over trials, and what follows from them alone.
//!
//! A trial in which the generator did not do its part is ignored here, unless it is asked for: figures of such trials
//! are shown with a mark, and are in no ratio.

use super::{AntpRecord, Latency, Level, Parts, Path, Phase, Primitive, Subject, Suite, Times, Trial};
use crate::load::ceiling::{Ip, requests_per_second};

/// Which trials are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that count.
    Valid,
    /// Those that do not.
    Invalid,
}

impl Which {
    fn takes(self, why_invalid: Option<&String>) -> bool {
        (self == Which::Invalid) == why_invalid.is_some()
    }
}

/// The mean of trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mean {
    pub(super) value: f64,
    /// The standard deviation of the population that the trials are a sample of; `None` of a single trial.
    pub(super) deviation: Option<f64>,
}

impl Mean {
    /// `None` without values.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        let count = values.len() as f64;
        let value = (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)?;
        let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
        Some(Mean { value, deviation: (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt()) })
    }
}

/// The results of the trials of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Throughput {
    /// Answers a second.
    pub(super) rps: Mean,
    pub(super) loss_ratio: Mean,
    /// The share of a processor that the server used.
    pub(super) server_share: Option<Mean>,
    /// The same of its threads for public keys.
    pub(super) public_key_share: Option<Mean>,
    /// Trials that count, and all.
    pub(super) counted: usize,
    pub(super) all: usize,
}

impl Throughput {
    /// What an answer cost the server, in microseconds of processor time.
    pub(super) fn server_us(&self) -> Option<f64> {
        (self.rps.value > 0.0).then_some(self.server_share?.value / self.rps.value * 1e6)
    }

    /// What it cost the threads for public keys.
    pub(super) fn public_key_us(&self) -> Option<f64> {
        (self.rps.value > 0.0).then_some(self.public_key_share?.value / self.rps.value * 1e6)
    }
}

/// The results of the trials of a cell: means over trials of each figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) p50_us: Mean,
    pub(super) p99_us: Mean,
    pub(super) mean_us: Mean,
    /// Trials that count, and all.
    pub(super) counted: usize,
    pub(super) all: usize,
}

impl Cell {
    fn of(times: &[Times], all: usize) -> Option<Self> {
        let of = |figure: fn(&Times) -> f64| Mean::of(times.iter().map(figure));
        Some(Cell {
            p50_us: of(|times| times.p50_us)?,
            p99_us: of(|times| times.p99_us)?,
            mean_us: of(|times| times.mean_us)?,
            counted: times.len(),
            all,
        })
    }
}

/// Complete runs of all phases: how long they took, and for what. Means over trials of arithmetic means, as only means
/// add up; in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Complete {
    pub(super) whole_us: f64,
    pub(super) negotiation_us: f64,
    pub(super) exchange_us: f64,
    pub(super) time_us: f64,
    /// The client's own cryptography, as it was timed.
    pub(super) client_crypto_us: f64,
}

impl Complete {
    /// The three phases, from departures to arrivals.
    pub(super) fn phases_us(&self) -> f64 {
        self.negotiation_us + self.exchange_us + self.time_us
    }

    /// What the run took beyond its phases. The paper puts it down to the client's cryptography.
    pub(super) fn difference_us(&self) -> f64 {
        self.whole_us - self.phases_us()
    }
}

impl AntpRecord {
    /// The throughput of a row; `None` if there are no such trials.
    pub(super) fn throughput(&self, which: Which, subject: Subject, path: Path) -> Option<Throughput> {
        let all = self.trials(subject, path).count();
        let counted: Vec<&Trial> =
            self.trials(subject, path).filter(|trial| which.takes(trial.why_invalid.as_ref())).collect();
        let optional =
            |figure: fn(&Trial) -> Option<f64>| Mean::of(counted.iter().filter_map(|trial| figure(trial)));
        Some(Throughput {
            rps: Mean::of(counted.iter().map(|trial| trial.answered_rps))?,
            loss_ratio: Mean::of(counted.iter().map(|trial| trial.loss_ratio))?,
            server_share: optional(|trial| trial.server_share),
            public_key_share: optional(|trial| trial.public_key_share),
            counted: counted.len(),
            all,
        })
    }

    /// The latency of a row under a load of its own phase, or for complete runs under one of time synchronisation.
    pub(super) fn cell(&self, which: Which, subject: Subject, level: Level, path: Path) -> Option<Cell> {
        let background = subject.background();
        let all = self.latencies(subject, background, level, path).count();
        let times: Vec<Times> =
            self.chosen(which, subject, level, path).filter_map(|latency| latency.times).collect();
        Cell::of(&times, all)
    }

    pub(super) fn chosen(
        &self,
        which: Which,
        subject: Subject,
        level: Level,
        path: Path,
    ) -> impl Iterator<Item = &Latency> {
        let all = self.latencies(subject, subject.background(), level, path);
        all.filter(move |latency| which.takes(latency.why_invalid.as_ref()))
    }

    /// Where the time of complete runs went.
    pub(super) fn complete(&self, which: Which, suite: Suite, level: Level, path: Path) -> Option<Complete> {
        let subject = Subject::new(Phase::Complete, suite);
        let trials: Vec<(Times, Parts)> = self
            .chosen(which, subject, level, path)
            .filter_map(|latency| Some((latency.times?, latency.parts?)))
            .collect();
        let of = |figure: fn(&(Times, Parts)) -> Times| {
            Mean::of(trials.iter().map(|trial| figure(trial).mean_us)).map(|mean| mean.value)
        };
        Some(Complete {
            whole_us: of(|(whole, _)| *whole)?,
            negotiation_us: of(|(_, parts)| parts.negotiation)?,
            exchange_us: of(|(_, parts)| parts.exchange)?,
            time_us: of(|(_, parts)| parts.time)?,
            client_crypto_us: of(|(_, parts)| parts.client_crypto)?,
        })
    }

    /// What a suite's primitives take, if it was measured.
    pub(super) fn primitive(&self, suite: Suite) -> Option<Primitive> {
        self.primitives.iter().copied().find(|primitive| primitive.suite == suite)
    }

    /// How many times as long the library's operation of RSA takes as that of P-256.
    pub(super) fn primitive_ratio(&self) -> Option<f64> {
        let us = |suite| Some(self.primitive(suite)?.library_us);
        quotient(us(Suite::Rsa)?, us(Suite::Ecdh)?)
    }

    /// The share of a link of 1 Gbit/s that a row filled behind one, and what fills it, a second.
    pub(super) fn link_share(&self, subject: Subject) -> Option<(f64, f64)> {
        let capacity = self.capacity(subject, Path::Gigabit)?;
        let ceiling = requests_per_second(1, capacity.request_size, Ip::V4)?;
        Some((self.throughput(Which::Valid, subject, Path::Gigabit)?.rps.value / ceiling, ceiling))
    }
}

fn quotient(over: f64, under: f64) -> Option<f64> {
    (under > 0.0).then_some(over / under)
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    const ECDH: Subject = Subject::new(Phase::Exchange, Suite::Ecdh);

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn mean_and_deviation_are_those_of_the_trials() {
        let mean = Mean::of([2.0, 4.0, 9.0].into_iter()).unwrap();
        close(mean.value, 5.0);
        close(mean.deviation.unwrap(), 13.0_f64.sqrt());
        assert_eq!(Mean::of(std::iter::once(7.0)), Some(Mean { value: 7.0, deviation: None }));
        assert_eq!(Mean::of(std::iter::empty()), None);
    }

    #[test]
    fn throughput_counts_valid_trials_alone_and_says_how_many() {
        let mut record = record();
        let found = record.throughput(Which::Valid, ECDH, Path::Short).unwrap();
        close(found.rps.value, 20_000.0);
        assert_eq!((found.counted, found.all), (2, 2));
        // 0.95 of a processor for 20,000 exchanges, 0.60 of it for public keys.
        close(found.server_us().unwrap(), 47.5);
        close(found.public_key_us().unwrap(), 30.0);
        let first = record.trials.iter_mut().find(|trial| trial.subject == ECDH).unwrap();
        first.answered_rps = 1.0;
        first.why_invalid = Some("it fell behind".to_owned());
        let found = record.throughput(Which::Valid, ECDH, Path::Short).unwrap();
        assert_eq!((found.counted, found.all), (1, 2));
        close(found.rps.value, 20_100.0);
        record.trials.iter_mut().for_each(|trial| trial.why_invalid = Some(String::new()));
        assert_eq!(record.throughput(Which::Valid, ECDH, Path::Short), None);
    }

    #[test]
    fn complete_run_is_its_phases_and_what_is_left() {
        let record = record();
        let complete = record.complete(Which::Valid, Suite::Ecdh, Level::Half, Path::Short).unwrap();
        close(complete.phases_us(), 400.0);
        close(complete.difference_us(), 300.0);
        close(complete.client_crypto_us, 280.0);
        assert_eq!(record.complete(Which::Valid, Suite::Ecdh, Level::Half, Path::Gigabit), None);
    }

    #[test]
    fn link_is_full_of_requests_with_all_that_ethernet_adds() {
        let record = record();
        // 1072 octets of payload: 109,841 requests a second fill the link.
        let (share, ceiling) = record.link_share(Subject::new(Phase::Negotiation, Suite::Ecdh)).unwrap();
        assert!((ceiling - 109_841.0).abs() < 1.0, "{ceiling}");
        close(share, 100_000.0 / ceiling);
        assert_eq!(record.link_share(ECDH), None);
    }
}
