//! Thresholds on the steps of a load run: conditions under which it has failed, such as `p99>2ms` or `loss>1%`.
//!
//! ```text
//! FIGURE  COMPARISON  VALUE
//! p99     >           2ms      a percentile of latency and a time: ns, us, ms or s
//! loss    >           1%       a share of what was sent
//! bad-tag >           0        a count of a step, or its share of what was sent
//! answered <          100000   requests a second
//! ```
//!
//! What cannot be measured has not passed: a run without a valid step breaches every threshold, and a step without an
//! answer each one on latency. Latency counts from the instant at which a request was due.

use std::fmt;
use std::str::FromStr;

use super::{Cause, LoadRecord, Point, Step};
use crate::units::{count, microseconds, percent, plural, rate};

/// A condition that fails a run if any of its steps fulfils it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    figure: Figure,
    comparison: Comparison,
    value: f64,
    unit: Unit,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Latency(Point),
    /// Rates of a step.
    Sent,
    Answered,
    /// The share of what was sent that was not answered, or answered wrongly.
    Loss,
    /// Counts, or their share of what was sent; of what was scheduled for those that did not begin.
    Lost,
    Invalid,
    Skipped,
    Surplus,
    Failed(Cause),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
enum Comparison {
    #[strum(serialize = ">=")]
    AtLeast,
    #[strum(serialize = "<=")]
    AtMost,
    #[strum(serialize = ">")]
    Above,
    #[strum(serialize = "<")]
    Below,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
enum Unit {
    #[strum(serialize = "")]
    None,
    #[strum(serialize = "%")]
    Percent,
    #[strum(serialize = "/s")]
    PerSecond,
    #[strum(serialize = "ns")]
    Nanoseconds,
    #[strum(serialize = "us")]
    Microseconds,
    #[strum(serialize = "ms")]
    Milliseconds,
    #[strum(serialize = "s")]
    Seconds,
}

/// Why a text is no threshold: what stands where, and what may stand there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ThresholdError {
    /// There is no comparison.
    #[error("{0:?} has no comparison; write a figure, one of > >= < <=, and a value, such as p99>2ms")]
    Comparison(String),
    /// What stands before the comparison is no figure.
    #[error(
        "{0:?}, before the comparison, is no figure; use {points} (latency), sent or \
         answered (a second), loss, lost, invalid, skipped, surplus, or a cause such as timeout or bad-tag",
        points = Point::NAMES
    )]
    Figure(String),
    /// What follows the comparison does not begin with a number that is not negative.
    #[error(
        "{0:?}, after the comparison, is no number of 0 or more with its unit; write one such as 2ms, 1% or 100"
    )]
    Value(String),
    /// The unit does not suit the figure.
    #[error("{value:?}, after the comparison, is not in a unit of {figure}; {remedy}")]
    Unit {
        /// The number with what follows it.
        value: String,
        /// The figure.
        figure: String,
        /// What units there are.
        remedy: &'static str,
    },
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let at = text.find(['<', '>']).ok_or_else(|| ThresholdError::Comparison(text.to_owned()))?;
        let (figure, rest) = text.split_at(at);
        let (comparison, value) = match rest.as_bytes() {
            [b'>', b'=', ..] => (Comparison::AtLeast, &rest[2..]),
            [b'<', b'=', ..] => (Comparison::AtMost, &rest[2..]),
            [b'>', ..] => (Comparison::Above, &rest[1..]),
            _ => (Comparison::Below, &rest[1..]),
        };
        let (figure, text) = (figure.trim().parse::<Figure>()?, value.trim());
        let unit_at = text.find(|char: char| char != '.' && !char.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let wrong = || ThresholdError::Value(text.to_owned());
        let value: f64 = number.parse().map_err(|_| wrong())?;
        let unit = Unit::named(unit.trim()).ok_or_else(wrong)?;
        if !figure.is_in(unit) {
            let value = text.to_owned();
            return Err(ThresholdError::Unit { value, figure: figure.to_string(), remedy: figure.units() });
        }
        Ok(Threshold { figure, comparison, value, unit })
    }
}

impl fmt::Display for Threshold {
    /// As it is written, without spaces: `p99>2ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Threshold { figure, comparison, value, unit } = self;
        write!(f, "{figure}{comparison}{value}{unit}")
    }
}

impl FromStr for Figure {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let cause = || Cause::ALL.into_iter().find(|cause| cause.to_string() == text);
        match text {
            "sent" => Ok(Figure::Sent),
            "answered" => Ok(Figure::Answered),
            "loss" => Ok(Figure::Loss),
            "lost" => Ok(Figure::Lost),
            "invalid" => Ok(Figure::Invalid),
            "skipped" => Ok(Figure::Skipped),
            "surplus" => Ok(Figure::Surplus),
            _ => match (text.parse(), cause()) {
                (Ok(point), _) => Ok(Figure::Latency(point)),
                (Err(_), Some(cause)) => Ok(Figure::Failed(cause)),
                (Err(_), None) => Err(ThresholdError::Figure(text.to_owned())),
            },
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Latency(point) => write!(f, "{point}"),
            Figure::Sent => f.write_str("sent"),
            Figure::Answered => f.write_str("answered"),
            Figure::Loss => f.write_str("loss"),
            Figure::Lost => f.write_str("lost"),
            Figure::Invalid => f.write_str("invalid"),
            Figure::Skipped => f.write_str("skipped"),
            Figure::Surplus => f.write_str("surplus"),
            Figure::Failed(cause) => write!(f, "{cause}"),
        }
    }
}

impl Unit {
    fn named(text: &str) -> Option<Self> {
        Some(match text {
            "" => Unit::None,
            "%" => Unit::Percent,
            "/s" => Unit::PerSecond,
            "ns" => Unit::Nanoseconds,
            "us" => Unit::Microseconds,
            "ms" => Unit::Milliseconds,
            "s" => Unit::Seconds,
            _ => return None,
        })
    }

    /// What a number in it is multiplied by: times are in microseconds, shares from 0 to 1.
    const fn factor(self) -> f64 {
        match self {
            Unit::None | Unit::PerSecond | Unit::Microseconds => 1.0,
            Unit::Percent => 0.01,
            Unit::Nanoseconds => 0.001,
            Unit::Milliseconds => 1e3,
            Unit::Seconds => 1e6,
        }
    }
}

impl Figure {
    fn is_in(self, unit: Unit) -> bool {
        match self {
            Figure::Latency(_) => {
                matches!(unit, Unit::Nanoseconds | Unit::Microseconds | Unit::Milliseconds | Unit::Seconds)
            }
            Figure::Sent | Figure::Answered => matches!(unit, Unit::None | Unit::PerSecond),
            Figure::Loss => unit == Unit::Percent,
            Figure::Lost | Figure::Invalid | Figure::Skipped | Figure::Surplus | Figure::Failed(_) => {
                matches!(unit, Unit::None | Unit::Percent)
            }
        }
    }

    /// In what units it is given.
    const fn units(self) -> &'static str {
        match self {
            Figure::Latency(_) => "write a time such as 500us or 2ms (ns, us, ms or s)",
            Figure::Sent | Figure::Answered => "write requests a second such as 100000",
            Figure::Loss => "write a share such as 1%",
            Figure::Lost | Figure::Invalid | Figure::Skipped | Figure::Surplus | Figure::Failed(_) => {
                "write a count such as 0, or a share such as 1%"
            }
        }
    }

    /// The count that it is of a step; 0 if it is none.
    fn count_of(self, step: &Step) -> u64 {
        let tally = &step.tally;
        match self {
            Figure::Loss => tally.lost.saturating_add(tally.invalid),
            Figure::Lost => tally.lost,
            Figure::Invalid => tally.invalid,
            Figure::Skipped => tally.skipped,
            Figure::Surplus => tally.surplus,
            Figure::Failed(cause) => tally.count_of(cause),
            Figure::Latency(_) | Figure::Sent | Figure::Answered => 0,
        }
    }

    /// Of what it is a share.
    fn whole(self, step: &Step) -> u64 {
        match self {
            Figure::Skipped => step.tally.scheduled,
            Figure::Failed(cause) if cause.is_skip() => step.tally.scheduled,
            _ => step.tally.sent,
        }
    }
}

impl Threshold {
    /// Says which step of a run fulfils the condition, the worst of several; `None` if none does.
    ///
    /// Valid steps count. Of a search, which tries rates that a server cannot carry, only the trials at the highest
    /// rate within the capacity do. A run without such a step is told of too.
    #[must_use]
    pub fn breached(&self, record: &LoadRecord) -> Option<String> {
        let steps = self.steps(record);
        if steps.is_empty() {
            let what =
                if record.search.is_some() { "no valid step within a capacity" } else { "no valid step" };
            return Some(format!("{self}: there is {what}, so nothing shows the opposite"));
        }
        let failed: Vec<(&Step, Option<f64>)> = steps
            .iter()
            .map(|step| (*step, self.measured(step)))
            .filter(|(_, measured)| measured.is_none_or(|measured| self.is_fulfilled(measured)))
            .collect();
        // Nothing known is worse than anything known.
        let badness = |measured: Option<f64>| match (measured, self.comparison) {
            (None, _) => f64::INFINITY,
            (Some(measured), Comparison::Above | Comparison::AtLeast) => measured,
            (Some(measured), Comparison::Below | Comparison::AtMost) => -measured,
        };
        let (worst, measured) =
            failed.iter().max_by(|(_, left), (_, right)| badness(*left).total_cmp(&badness(*right)))?;
        let number = record.steps.iter().position(|step| std::ptr::eq(step, *worst)).unwrap_or(0) + 1;
        let which = match steps.len() {
            1 => String::new(),
            all => {
                format!(" ({} of {} that count; this is the worst)", failed.len(), plural(all as u64, "step"))
            }
        };
        let found = self.found(worst, *measured);
        Some(format!("{self}: step {number} at {}/s {found}{which}", rate(worst.rate_rps())))
    }

    /// Why the figure is not known of any step, if it is a latency and all requests left too late for it: then the
    /// condition is neither fulfilled nor not.
    #[must_use]
    pub fn unknown(&self, record: &LoadRecord) -> Option<String> {
        let is_latency = matches!(self.figure, Figure::Latency(_));
        let is_known = !is_latency || record.steps.iter().any(|step| step.valid);
        let late = record.steps.iter().find(|step| step.loss_valid).filter(|_| !is_known)?;
        Some(format!("{self} is not known: {}", super::words::why(late.why_invalid.as_ref())))
    }

    /// The steps that count: for latencies those whose requests left in time.
    fn steps<'a>(&self, record: &'a LoadRecord) -> Vec<&'a Step> {
        let is_latency = matches!(self.figure, Figure::Latency(_));
        let valid = record.steps.iter().filter(|step| step.valid || (step.loss_valid && !is_latency));
        if record.search.is_none() {
            return valid.collect();
        }
        let Some(held_rps) = record.held_rps() else { return Vec::new() };
        let within: Vec<&Step> = valid.filter(|step| step.rate_rps() <= held_rps * (1.0 + 1e-9)).collect();
        let highest = within.iter().map(|step| step.rate_rps()).reduce(f64::max);
        within
            .into_iter()
            .filter(|step| highest.is_some_and(|highest| super::compare::same_rate(step.rate_rps(), highest)))
            .collect()
    }

    /// The figure of a step, in the unit of comparison; `None` if there is nothing to measure it by.
    fn measured(&self, step: &Step) -> Option<f64> {
        match (self.figure, self.unit) {
            (Figure::Latency(point), _) => step.tally.latency_us.and_then(|latency| latency.at(point)),
            (Figure::Sent, _) => Some(step.sent_rps()),
            (Figure::Answered, _) => Some(step.answered_rps()),
            (figure, Unit::Percent) => {
                let whole = figure.whole(step);
                (whole > 0).then(|| figure.count_of(step) as f64 / whole as f64)
            }
            (figure, _) => Some(figure.count_of(step) as f64),
        }
    }

    fn is_fulfilled(&self, measured: f64) -> bool {
        let value = self.value * self.unit.factor();
        match self.comparison {
            Comparison::AtLeast => measured >= value,
            Comparison::AtMost => measured <= value,
            Comparison::Above => measured > value,
            Comparison::Below => measured < value,
        }
    }

    /// What a step has of it, as the end of a sentence.
    fn found(&self, step: &Step, measured: Option<f64>) -> String {
        match (self.figure, self.unit, measured) {
            (Figure::Latency(_), _, None) => "had no answer".to_owned(),
            (_, _, None) => "sent nothing".to_owned(),
            (Figure::Latency(point), _, Some(us)) => {
                let from_send = step.tally.interval(point).filter(super::Interval::parts);
                let waited = from_send.map_or_else(String::new, |interval| {
                    format!(
                        ", {} of it from the send: the generator was late",
                        microseconds(interval.from_send_us)
                    )
                });
                format!("had {}{waited}", microseconds(us))
            }
            (Figure::Sent, _, Some(rps)) => format!("sent {}/s", rate(rps)),
            (Figure::Answered, _, Some(rps)) => format!("answered {}/s", rate(rps)),
            (_, Unit::Percent, Some(share)) => format!("had {} %", percent(share)),
            (figure, ..) => format!("had {}", count(figure.count_of(step))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::record;
    use crate::load::{Percentiles, Tally};

    fn breached(text: &str, record: &LoadRecord) -> Option<String> {
        text.parse::<Threshold>().unwrap_or_else(|error| panic!("{text}: {error}")).breached(record)
    }

    /// The golden record without its search: of its four steps the last is invalid.
    fn ramp() -> LoadRecord {
        let mut record = record();
        record.search = None;
        record
    }

    #[test]
    fn every_figure_is_read_and_written_as_it_was() {
        for text in [
            "p99>2ms",
            "p50>=500us",
            "p90<3s",
            "p99.9<=100ns",
            "p95>10s",
            "p99.99>1s",
            "min>0.5ms",
            "max>1s",
            "loss>1%",
            "loss>=0.5%",
            "lost>0",
            "invalid>0",
            "invalid>1%",
            "skipped>0",
            "surplus>3",
            "late>1%",
            "timeout>0",
            "bad-tag>0",
            "fell-behind>0",
            "answered<100000",
            "answered<100000/s",
            "sent<=5",
        ] {
            assert_eq!(text.parse::<Threshold>().unwrap().to_string(), text);
        }
        assert_eq!(" p999  >= 2.50 ms ".parse::<Threshold>().unwrap().to_string(), "p99.9>=2.5ms");
    }

    #[test]
    fn wrong_ones_are_refused_with_place_and_remedy() {
        for (text, parts) in [
            ("", ["\"\" has no comparison", "such as p99>2ms"]),
            ("p99=2ms", ["\"p99=2ms\" has no comparison", "> >= < <="]),
            ("p98>2ms", ["\"p98\", before the comparison, is no figure", "p99.9"]),
            (">2ms", ["\"\", before the comparison", "no figure"]),
            ("P99>2ms", ["\"P99\"", "no figure"]),
            ("p99>", ["\"\", after the comparison, is no number", "2ms"]),
            ("p99>>2ms", ["\">2ms\", after the comparison", "number"]),
            ("p99>-2ms", ["\"-2ms\", after", "0 or more"]),
            ("p99>2h", ["\"2h\", after", "number of 0 or more with its unit"]),
            ("p99>1e3ms", ["\"1e3ms\"", "no number"]),
            ("p99>1.2.3ms", ["\"1.2.3ms\"", "no number"]),
            ("p99>2", ["\"2\", after the comparison, is not in a unit of p99", "500us or 2ms"]),
            ("p99>2%", ["not in a unit of p99", "a time"]),
            ("loss>0.01", ["\"0.01\"", "not in a unit of loss; write a share such as 1%"]),
            ("answered<1%", ["not in a unit of answered", "100000"]),
            ("bad-tag>1ms", ["not in a unit of bad-tag", "a count such as 0"]),
        ] {
            let error = text.parse::<Threshold>().unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }

    #[test]
    fn worst_valid_step_is_named() {
        let record = ramp();
        assert_eq!(breached("p99>9ms", &record), None);
        assert_eq!(
            breached("p99>=9ms", &record).unwrap(),
            "p99>=9ms: step 3 at 4,000/s had 9.00 ms (1 of 3 steps that count; this is the worst)"
        );
        assert_eq!(
            breached("p99>100us", &record).unwrap(),
            "p99>100us: step 3 at 4,000/s had 9.00 ms (3 of 3 steps that count; this is the worst)"
        );
        // The lowest is the worst of what is too low.
        assert!(
            breached("answered<3000", &record)
                .unwrap()
                .contains("step 1 at 1,000/s answered 1,000/s (2 of 3")
        );
    }

    #[test]
    fn each_figure_has_its_measure() {
        let record = ramp();
        // Of the third step: 8,000 sent, 6,850 answered, 1,138 lost, 12 invalid.
        for (text, found) in [
            ("loss>14%", "had 14.37 %"),
            ("lost>1000", "had 1,138"),
            ("lost>14%", "had 14.22 %"),
            ("invalid>0", "had 12"),
            ("invalid>=0.15%", "had 0.15 %"),
            ("late>0.4%", "had 0.47 %"),
            ("bad-tag>7", "had 8"),
            ("surplus>=3", "had 3"),
        ] {
            let sentence = breached(text, &record).unwrap_or_else(|| panic!("{text}"));
            assert!(sentence.contains(&format!("step 3 at 4,000/s {found}")), "{sentence}");
        }
        for text in
            ["loss>14.4%", "lost>1138", "invalid>12", "late>0.5%", "skipped>0", "fell-behind>0", "sent<1000"]
        {
            assert_eq!(breached(text, &record), None);
        }
    }

    #[test]
    fn what_is_not_known_has_not_passed() {
        let mut record = ramp();
        let silent = Tally {
            scheduled: 10,
            sent: 10,
            lost: 10,
            causes: [(Cause::Timeout, 10)].into(),
            ..Tally::default()
        };
        record.steps[0].tally = silent;
        let sentence = breached("p99>1s", &record).unwrap();
        assert!(sentence.contains("step 1") && sentence.contains("had no answer"), "{sentence}");
        record.steps[0].tally = Tally::default();
        assert!(breached("loss>99%", &record).unwrap().contains("sent nothing"));
        record.steps.iter_mut().for_each(|step| step.valid = false);
        for text in ["p99>1s", "answered<1", "invalid>0"] {
            assert!(breached(text, &record).unwrap().contains("no valid step"), "{text}");
        }
    }

    #[test]
    fn of_a_search_the_trials_at_its_result_count() {
        let mut record = record();
        // 2,800/s: the step at 4,000/s lost too much and is beyond it, that at 1,000/s is well within.
        assert_eq!(breached("loss>0%", &record), None);
        let sentence = breached("p99>=260us", &record).unwrap();
        assert_eq!(sentence, "p99>=260us: step 2 at 2,000/s had 260.0 us");
        assert_eq!(breached("p50<=120us", &record), None);
        record.steps.drain(..2);
        assert!(breached("loss>99%", &record).unwrap().contains("no valid step within a capacity"));
    }

    #[test]
    fn wait_of_the_generator_is_told_beside_latency() {
        let mut record = ramp();
        let latency = record.steps[2].tally.latency_us.unwrap();
        record.steps[2].tally.from_send_us = Some(Percentiles { p99: 3000.0, ..latency });
        let sentence = breached("p99>8ms", &record).unwrap();
        assert!(
            sentence.contains("had 9.00 ms, 3.00 ms of it from the send: the generator was late"),
            "{sentence}"
        );
    }
}
