//! How long answers take, and how far off the time in them is, at a share of what a cell answers.

use serde::{Deserialize, Serialize};

use super::{Cell, FieldRecord, Scheme};
use crate::load::{Histogram, Step};
use crate::stats::bootstrap::Estimate;
use crate::study::antp::why_invalid;

/// How much of what a cell answered in a closed loop of the same round is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// 50 % of it.
    Half,
    /// 90 % of it.
    Most,
}

impl Level {
    /// Both.
    pub const ALL: [Level; 2] = [Level::Half, Level::Most];

    /// The share of what was answered.
    #[must_use]
    pub const fn share(self) -> f64 {
        match self {
            Level::Half => 0.5,
            Level::Most => 0.9,
        }
    }

    /// The same in names of tasks.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Level::Half => "50",
            Level::Most => "90",
        }
    }

    /// The same in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Level::Half => "50 %",
            Level::Most => "90 %",
        }
    }
}

/// Two points of a distribution, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Points {
    /// The median.
    pub p50: f64,
    /// Exceeded by at most one value in a hundred.
    pub p99: f64,
}

impl Points {
    /// Those of times in nanoseconds; `None` if there are none.
    fn of_ns(histogram: &Histogram) -> Option<Self> {
        let at = |share| histogram.quantile(share).map(|ns| ns as f64 / 1e3);
        Some(Points { p50: at(0.5)?, p99: at(0.99)? })
    }

    pub(super) fn is_sound(self) -> bool {
        self.p50 >= 0.0 && self.p50 <= self.p99 && self.p99.is_finite()
    }
}

/// One trial: requests at a rate, whether or not those before them were answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Who answered, and how it was asked.
    #[serde(flatten)]
    pub cell: Cell,
    /// How much was asked for.
    pub level: Level,
    /// The round, from 1.
    pub round: u32,
    /// The same in requests a second.
    pub offered_rps: f64,
    /// Answers a second that passed every check.
    pub answered_rps: f64,
    /// The share of requests without such an answer.
    pub loss_ratio: f64,
    /// The share of its one processor that the server used; null if unknown.
    pub server_share: Option<f64>,
    /// From the instant at which a request was due to its answer; null if there was none.
    pub latency_us: Option<Points>,
    /// How far the offset by an answer is from the truth, either way: client and server read one clock, so it is zero;
    /// null if they do not.
    pub offset_error_us: Option<Points>,
    /// Why the trial says nothing about the server; null if it does.
    pub why_invalid: Option<String>,
}

impl Latency {
    /// What the step of a load run says that asked for `offered_rps`; `shares_clock`: client and server read one clock.
    #[must_use]
    pub fn of(
        (cell, level, round): (Cell, Level, u32),
        offered_rps: f64,
        step: &Step,
        shares_clock: bool,
    ) -> Self {
        let errors = step.tally.histograms.offset_ns.pairs().iter();
        let errors: Vec<(i64, u64)> = errors.map(|&(ns, count)| (ns.saturating_abs(), count)).collect();
        let used = step.server.filter(|_| step.seconds > 0.0);
        Latency {
            cell,
            level,
            round,
            offered_rps,
            answered_rps: step.answered_rps(),
            loss_ratio: step.tally.loss_ratio(),
            server_share: used.map(|used| used.cpu_seconds / step.seconds),
            latency_us: Points::of_ns(&step.tally.histograms.latency_ns),
            offset_error_us: shares_clock.then(|| Points::of_ns(&Histogram::from(errors))).flatten(),
            why_invalid: why_invalid(step),
        }
    }
}

impl FieldRecord {
    /// The trials of a cell at a level.
    pub(super) fn latencies(&self, cell: Cell, level: Level) -> impl Iterator<Item = &Latency> {
        self.latencies.iter().filter(move |trial| trial.cell == cell && trial.level == level)
    }

    /// A figure of those that count and have it.
    pub(super) fn latency(
        &self,
        cell: Cell,
        level: Level,
        figure: impl Fn(&Latency) -> Option<f64>,
    ) -> Option<Estimate> {
        let counted = self.latencies(cell, level).filter(|trial| trial.why_invalid.is_none());
        Estimate::of(counted.filter_map(figure))
    }

    /// What an answer takes longer than a plain one of the same server, level and round, in microseconds, by medians.
    pub(super) fn added_us(&self, cell: Cell, level: Level) -> Option<Estimate> {
        let median = |trial: &Latency| {
            trial.latency_us.filter(|_| trial.why_invalid.is_none()).map(|points| points.p50)
        };
        let plain = Cell { scheme: Scheme::Plain, ..cell };
        let added = self.latencies(cell, level).filter_map(|trial| {
            let beside = self.latencies(plain, level).find(|other| other.round == trial.round)?;
            Some(median(trial)? - median(beside)?)
        });
        Estimate::of(added)
    }

    /// The cells and levels that there is a trial of, scheme after scheme of a server.
    pub(super) fn levels(&self) -> Vec<(Cell, Level)> {
        let all = self.measured().into_iter().flat_map(|cell| Level::ALL.map(|level| (cell, level)));
        all.filter(|&(cell, level)| self.latencies(cell, level).next().is_some()).collect()
    }

    pub(super) fn check_latencies(&self) -> Result<(), String> {
        let rate = |number: f64| number >= 0.0 && number.is_finite();
        for (index, trial) in self.latencies.iter().enumerate() {
            let Latency { cell, level, round, .. } = trial;
            let place = format!(
                "latencies, {} at {}, {}, round {round}",
                cell.scheme.name(),
                cell.server.name(),
                level.name()
            );
            let is_sound = rate(trial.offered_rps)
                && rate(trial.answered_rps)
                && (0.0..=1.0).contains(&trial.loss_ratio)
                && trial.server_share.is_none_or(rate)
                && trial.latency_us.is_none_or(Points::is_sound)
                && trial.offset_error_us.is_none_or(Points::is_sound);
            if !is_sound {
                return Err(format!("{place}: a rate, a share or a time cannot be"));
            }
            let is_same = |other: &Latency| (other.cell, other.level, other.round) == (*cell, *level, *round);
            if self.latencies[..index].iter().any(is_same) {
                return Err(format!("{place}: it is there twice"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Server;
    use super::super::tests::record;
    use super::*;

    const NTS: Cell = Cell { server: Server::Chrony, scheme: Scheme::Nts15 };

    #[test]
    fn errors_of_either_sign_count_alike() {
        let errors = Histogram::from(
            vec![(-4_000, 98), (9_000, 2)]
                .into_iter()
                .map(|(ns, n): (i64, u64)| (ns.saturating_abs(), n))
                .collect::<Vec<_>>(),
        );
        assert_eq!(Points::of_ns(&errors), Some(Points { p50: 4.0, p99: 9.0 }));
        assert_eq!(Points::of_ns(&Histogram::default()), None);
    }

    #[test]
    fn what_a_scheme_adds_is_taken_within_a_round() {
        let mut record = record();
        let added = record.added_us(NTS, Level::Half).unwrap();
        assert!((added.median - 3.0).abs() < 1e-9, "{added:?}");
        // A round in which everything takes longer changes nothing.
        for trial in record.latencies.iter_mut().filter(|trial| trial.round == 1) {
            let points = trial.latency_us.as_mut().unwrap();
            (points.p50, points.p99) = (points.p50 + 50.0, points.p99 + 50.0);
        }
        assert!((record.added_us(NTS, Level::Half).unwrap().median - 3.0).abs() < 1e-9);
        // One that does not count, or has no plain one beside it, is left out.
        let is_plain = |trial: &&mut Latency| trial.cell == Cell { scheme: Scheme::Plain, ..NTS };
        record
            .latencies
            .iter_mut()
            .filter(is_plain)
            .for_each(|trial| trial.why_invalid = Some("late".to_owned()));
        assert_eq!(record.added_us(NTS, Level::Half), None);
        assert!(record.latency(NTS, Level::Half, |trial| Some(trial.answered_rps)).is_some());
    }
}
