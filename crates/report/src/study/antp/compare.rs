//! The paper's ratios of two rows, each with what the spread of trials leaves open; or why a ratio would mean nothing.
//!
//! The paper tuned its rates until the server's core was near 95 % busy. Where ours was not, the rate is that of the
//! generator, or of the link, and a share of it is no share of what the server can do: such a ratio is withheld.

use super::figures::{Mean, Which};
use super::{AntpRecord, Level, Path, Subject};
use crate::published::antp::SERVER_SHARE;
use crate::units::{percent, ratio, signed_share};

/// What the server must have used of its processor, to be near what the paper tuned to.
pub(super) const SERVER_SHARE_MIN: f64 = SERVER_SHARE - 0.05;
/// How far a load may be from the share of the throughput that it was to be.
const LOAD_DEVIATION_MAX: f64 = 0.1;

/// A ratio of two means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    /// The one mean by the other.
    pub(super) value: f64,
    /// The least and the most that trials allow: of the least of the one and the most of the other, and the reverse.
    pub(super) least: f64,
    pub(super) most: f64,
    /// Trials of the row that has fewer.
    pub(super) trials: usize,
}

impl Ratio {
    fn of(over: Range, under: Range) -> Option<Self> {
        (over.least > 0.0 && under.least > 0.0).then(|| Ratio {
            value: over.mean / under.mean,
            least: over.least / under.most,
            most: over.most / under.least,
            trials: over.count.min(under.count),
        })
    }

    /// The reciprocal.
    pub(super) fn inverse(self) -> Self {
        Ratio { value: 1.0 / self.value, least: 1.0 / self.most, most: 1.0 / self.least, ..self }
    }

    /// Whether trials carry that the two are different at all: one alone does not.
    pub(super) fn is_clear(self) -> bool {
        self.trials > 1 && (self.least > 1.0 || self.most < 1.0)
    }

    /// `1.25 (1.24 .. 1.26)`.
    pub(super) fn text(self) -> String {
        self.beside(ratio(self.value), [self.least, self.most].map(ratio))
    }

    /// The same as a change: `10 % (5 % .. 15 %)`.
    pub(super) fn change(self) -> String {
        self.beside(
            signed_share(self.value - 1.0),
            [self.least, self.most].map(|one| signed_share(one - 1.0)),
        )
    }

    fn beside(self, value: String, [least, most]: [String; 2]) -> String {
        if self.trials == 1 { value } else { format!("{value} ({least} .. {most})") }
    }
}

/// What two rows give.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Compared {
    /// One of them is not measured.
    Missing,
    /// Both are, and a ratio of them would say nothing: why.
    Withheld(String),
    /// Their ratio.
    Found(Ratio),
}

impl Compared {
    /// Of two rows: what was measured, and why that says nothing, if so.
    fn of(rows: [(Option<Range>, Option<String>); 2]) -> Compared {
        let [(Some(over), over_why), (Some(under), under_why)] = rows else { return Compared::Missing };
        match over_why.or(under_why) {
            Some(why) => Compared::Withheld(why),
            None => Ratio::of(over, under).map_or(Compared::Missing, Compared::Found),
        }
    }

    /// The ratio, if there is one.
    pub(super) fn found(self) -> Option<Ratio> {
        match self {
            Compared::Found(found) => Some(found),
            Compared::Missing | Compared::Withheld(_) => None,
        }
    }
}

/// The mean of trials, and their extremes.
#[derive(Clone, Copy, Debug)]
struct Range {
    mean: f64,
    least: f64,
    most: f64,
    count: usize,
}

impl Range {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        let mean = Mean::of(values.iter().copied())?.value;
        let (least, most) =
            (values.iter().copied().fold(mean, f64::min), values.iter().copied().fold(mean, f64::max));
        Some(Range { mean, least, most, count: values.len() })
    }
}

impl AntpRecord {
    /// Throughput of the one by that of the other, over the short path.
    pub(super) fn throughput_ratio(&self, over: Subject, under: Subject) -> Compared {
        let rps = |subject| {
            let trials = self.trials(subject, Path::Short).filter(|trial| trial.why_invalid.is_none());
            Range::of(trials.map(|trial| trial.answered_rps))
        };
        Compared::of([over, under].map(|subject| (rps(subject), self.why_idle(subject))))
    }

    /// Median latency of the one by that of the other, over the short path.
    pub(super) fn latency_ratio(&self, over: Subject, under: Subject, level: Level) -> Compared {
        let p50_us = |subject| {
            let trials = self.chosen(Which::Valid, subject, level, Path::Short);
            Range::of(trials.filter_map(|latency| Some(latency.times?.p50_us)))
        };
        let why = |subject: Subject| {
            self.why_idle(subject.background()).or_else(|| self.why_another_load(subject, level))
        };
        Compared::of([over, under].map(|subject| (p50_us(subject), why(subject))))
    }

    /// Why a row's throughput is not the server's, if so.
    pub(super) fn why_idle(&self, subject: Subject) -> Option<String> {
        let found = self.throughput(Which::Valid, subject, Path::Short)?;
        match found.server_share {
            Some(share) if share.value >= SERVER_SHARE_MIN => None,
            Some(share) => Some(format!(
                "the server used {} % of its processor in {subject}, so something else was the limit",
                percent(share.value)
            )),
            None => Some(format!("it is not known how busy the server was in {subject}")),
        }
    }

    /// Why a row's latency was taken under another load than was meant, if so.
    fn why_another_load(&self, subject: Subject, level: Level) -> Option<String> {
        let background = subject.background();
        let throughput = self.throughput(Which::Valid, background, Path::Short)?.rps.value;
        let trials = self.chosen(Which::Valid, subject, level, Path::Short);
        let share = Mean::of(trials.map(|latency| latency.background_rps / throughput))?.value;
        ((share / level.share() - 1.0).abs() > LOAD_DEVIATION_MAX).then(|| {
            format!(
                "the load of {subject} was {} % of the throughput in place of {} %",
                percent(share),
                percent(level.share())
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::super::{Phase, Suite};
    use super::*;

    const ECDH: Subject = Subject::new(Phase::Exchange, Suite::Ecdh);
    const RSA: Subject = Subject::new(Phase::Exchange, Suite::Rsa);

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }

    fn why(compared: Compared) -> String {
        match compared {
            Compared::Withheld(why) => why,
            Compared::Missing | Compared::Found(_) => panic!("{compared:?}"),
        }
    }

    #[test]
    fn ratios_are_those_of_the_papers_sentences_with_what_trials_allow() {
        let record = record();
        let exchanges = record.throughput_ratio(ECDH, RSA).found().unwrap();
        close(exchanges.value, 5.0);
        // 19,900 and 20,100 by 4,020 and 3,980.
        close(exchanges.least, 19_900.0 / 4_020.0);
        close(exchanges.most, 20_100.0 / 3_980.0);
        assert_eq!(exchanges.text(), "5.00 (4.95 .. 5.05)");
        assert!(exchanges.is_clear());
        let plain = record.throughput_ratio(Subject::PLAIN, Subject::TIME).found().unwrap();
        close(plain.value, 1.25);
        close(plain.inverse().value, 0.8);
        assert!(plain.inverse().least < 0.8 && plain.inverse().most > 0.8);
        close(record.latency_ratio(RSA, ECDH, Level::Most).found().unwrap().value, 3.0);
        let latency = record.latency_ratio(Subject::TIME, Subject::PLAIN, Level::Half).found().unwrap();
        close(latency.value, 1.1);
        assert_eq!(latency.change(), "+10 %");
        assert!(!latency.is_clear(), "one trial has no spread");
        assert_eq!(
            record.throughput_ratio(Subject::new(Phase::Complete, Suite::Rsa), RSA),
            Compared::Missing
        );
    }

    #[test]
    fn difference_that_is_within_the_spread_of_trials_is_not_clear() {
        let mut record = record();
        for (trial, rps) in record
            .trials
            .iter_mut()
            .filter(|trial| trial.subject == Subject::TIME)
            .zip([240_000.0, 255_000.0])
        {
            trial.answered_rps = rps;
        }
        let found = record.throughput_ratio(Subject::PLAIN, Subject::TIME).found().unwrap();
        assert!(found.least < 1.0 && found.most > 1.0 && !found.is_clear(), "{found:?}");
    }

    #[test]
    fn ratio_is_withheld_where_the_server_was_idle_or_unknown() {
        let mut record = record();
        let of_plain = |trial: &&mut crate::study::antp::Trial| trial.subject == Subject::PLAIN;
        record.trials.iter_mut().filter(of_plain).for_each(|trial| trial.server_share = Some(0.39));
        let why_not = why(record.throughput_ratio(Subject::PLAIN, Subject::TIME));
        assert!(why_not.contains("39.00 % of its processor in plain NTP"), "{why_not}");
        // A share of such a rate is no share of what the server can do.
        assert_eq!(why(record.latency_ratio(Subject::TIME, Subject::PLAIN, Level::Half)), why_not);
        assert!(record.throughput_ratio(ECDH, RSA).found().is_some());
        record.trials.iter_mut().filter(of_plain).for_each(|trial| trial.server_share = None);
        assert!(why(record.throughput_ratio(Subject::PLAIN, Subject::TIME)).contains("not known how busy"));
    }

    #[test]
    fn latency_under_another_load_than_was_meant_is_in_no_ratio() {
        let mut record = record();
        // 2,049 a second where 90 % of it was to be.
        for latency in record.latencies.iter_mut().filter(|latency| latency.subject == RSA) {
            latency.background_rps *= 1.26;
        }
        let why = why(record.latency_ratio(RSA, ECDH, Level::Most));
        assert!(why.contains("113.40 % of the throughput in place of 90.00 %"), "{why}");
    }
}
