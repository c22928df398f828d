//! Two load runs against each other: ratios of what they carried and how long answers took, and what else differs.
//!
//! Serves as a regression gate. Absolute figures of two machines say little; a ratio on one machine says much.

use super::{LoadRecord, Percentiles, Step};
use crate::render::{Block, Layout, Medium, Report, Section, Table, Tone, or_absent};
use crate::units::{microseconds, rate, ratio};

/// Offered rates that differ by no more than this share are equal.
const RATE_TOLERANCE: f64 = 1e-6;

/// The figure by which two runs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yardstick {
    /// The capacity that both searched for.
    Capacity,
    /// The most answers a second in a valid step.
    HighestAnswered,
}

/// What one run did at some rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// Answers a second.
    pub answered_rps: f64,
    /// Their latency in microseconds; `None` if there were none.
    pub latency_us: Option<Percentiles>,
}

/// What both runs did at a rate that both offered, in valid steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatePair {
    /// Requests a second that were offered.
    pub offered_rps: f64,
    /// The newer run.
    pub new: At,
    /// The older run.
    pub old: At,
}

impl RatePair {
    /// The new 99th percentile of latency by the old one; `None` if there is none, or the old one is zero.
    #[must_use]
    pub fn p99_ratio(&self) -> Option<f64> {
        let old = self.old.latency_us?.p99;
        (old > 0.0).then_some(self.new.latency_us?.p99 / old)
    }

    /// The new answers by the old ones; `None` if there were no old ones.
    #[must_use]
    pub fn answered_ratio(&self) -> Option<f64> {
        (self.old.answered_rps > 0.0).then(|| self.new.answered_rps / self.old.answered_rps)
    }
}

/// The comparison of a run with an older one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What `new_rps` and `old_rps` are.
    pub yardstick: Yardstick,
    /// What the newer run carried, requests a second; `None` if that is not known.
    pub new_rps: Option<f64>,
    /// What the older run carried.
    pub old_rps: Option<f64>,
    /// What both did at equal rates, lowest rate first.
    pub pairs: Vec<RatePair>,
    /// Differences between the runs, so that the server may not be the only reason for the ratio: a sentence each.
    pub differences: Vec<String>,
    what: &'static str,
    runs: [String; 2],
}

/// Compares two runs: by capacity if both searched for it, else by the most answers a second in a valid step.
#[must_use]
pub fn against(new: &LoadRecord, old: &LoadRecord) -> Comparison {
    let searched = |record: &LoadRecord| record.capacity_rps.is_some() || record.search.is_some();
    let yardstick = match searched(new) && searched(old) {
        true => Yardstick::Capacity,
        false => Yardstick::HighestAnswered,
    };
    let figure = |record: &LoadRecord| match yardstick {
        Yardstick::Capacity => record.capacity_rps,
        Yardstick::HighestAnswered => record.highest_answered().map(Step::answered_rps),
    };
    Comparison {
        yardstick,
        new_rps: figure(new),
        old_rps: figure(old),
        pairs: pairs(new, old),
        differences: differences(new, old),
        what: new.operation().offered(),
        runs: [new, old].map(|record| {
            format!("{}, authentick {}, commit {}", record.label(), record.version, record.commit)
        }),
    }
}

impl Comparison {
    /// What the new run carried, divided by what the old one did; `None` if one of them is not known, or the old one
    /// carried nothing.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let old = self.old_rps.filter(|&old| old > 0.0)?;
        Some(self.new_rps? / old)
    }

    /// Whether a gate that requires at least `least` fails. It also fails if there is no ratio: what could not be
    /// measured has not passed.
    #[must_use]
    pub fn below(&self, least: f64) -> bool {
        self.ratio().is_none_or(|ratio| ratio < least)
    }

    /// The comparison for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        Report::new("", Layout::Flat, vec![self.section("new", "old")]).text()
    }

    /// The comparison under the names that the page has for both.
    pub(super) fn section(&self, new: &str, old: &str) -> Section {
        let mut section = Section::new(format!("{new} against {old}"));
        for (name, run) in ["new", "old"].iter().zip(&self.runs) {
            section.say_in(Medium::Text, format!("{name}: {run}"));
        }
        section.add(Block::Paragraph(self.finding().into(), Tone::Lead));
        if !self.differences.is_empty() {
            let unlike = format!("What is not alike (new is {new}, old is {old}):");
            section.say_in(Medium::Page, unlike);
            self.add_differences(&mut section);
        }
        match self.pairs.is_empty() {
            true => section.say("No rate was offered in a valid step of both."),
            false => section.show([self.table(new, old)]),
        }
        section
    }

    /// Differences between the runs, as a list on the page and lines of the text.
    pub(crate) fn add_differences(&self, section: &mut Section) {
        section.add_to(Medium::Page, Block::list(self.differences.iter().map(String::as_str)));
        for difference in &self.differences {
            section.say_in(Medium::Text, format!("differs: {difference}"));
        }
    }

    /// Both runs at equal rates.
    fn table(&self, new: &str, old: &str) -> Table {
        let point = |at: &At, get: fn(&Percentiles) -> f64| {
            or_absent(at.latency_us.as_ref().map(get).map(microseconds))
        };
        Table::of("Both runs at equal rates", &self.pairs)
            .number(("Offered/s", "offered/s"), |pair| rate(pair.offered_rps))
            .number((format!("{new} answered/s"), "answered/s new"), |pair| rate(pair.new.answered_rps))
            .number((format!("{old} answered/s"), "old"), |pair| rate(pair.old.answered_rps))
            .number((format!("{new} / {old}"), "ratio"), |pair| or_absent(pair.answered_ratio().map(ratio)))
            .number((format!("{new} p50"), "p50 new"), |pair| point(&pair.new, |latency| latency.p50))
            .number((format!("{old} p50"), "old"), |pair| point(&pair.old, |latency| latency.p50))
            .number((format!("{new} p99"), "p99 new"), |pair| point(&pair.new, |latency| latency.p99))
            .number((format!("{old} p99"), "old"), |pair| point(&pair.old, |latency| latency.p99))
            .number((format!("p99 {new} / {old}"), "ratio"), |pair| or_absent(pair.p99_ratio().map(ratio)))
            .table()
    }

    /// What was carried, with the ratio, as a sentence.
    #[must_use]
    pub fn finding(&self) -> String {
        let what = self.what;
        let name = match self.yardstick {
            Yardstick::Capacity => "Capacity",
            Yardstick::HighestAnswered => "Most answered in a valid step",
        };
        let figure = |rps: Option<f64>| rps.map_or_else(|| "unknown".to_owned(), rate);
        let (new, old) = (figure(self.new_rps), figure(self.old_rps));
        match self.ratio() {
            Some(value) => {
                format!("{name}: {new} against {old} {what} a second, a ratio of {}.", ratio(value))
            }
            None => format!("{name}: {new} against {old} {what} a second; there is no ratio."),
        }
    }
}

/// Both runs at equal rates. Of several steps at one rate, the one with the median 99th percentile is used.
fn pairs(new: &LoadRecord, old: &LoadRecord) -> Vec<RatePair> {
    let mut rates: Vec<f64> = offered(new).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup_by(|later, earlier| same_rate(*later, *earlier));
    let pair = |&offered_rps: &f64| {
        Some(RatePair { offered_rps, new: middle_at(new, offered_rps)?, old: middle_at(old, offered_rps)? })
    };
    rates.iter().filter_map(pair).collect()
}

fn offered(record: &LoadRecord) -> impl Iterator<Item = f64> {
    record.steps.iter().filter(|step| step.valid).filter_map(|step| step.offered_rps)
}

/// Whether two offered rates are meant to be the same.
pub(super) fn same_rate(left: f64, right: f64) -> bool {
    (left - right).abs() <= RATE_TOLERANCE * left.abs().max(right.abs())
}

/// The middle one of the valid steps at an offered rate; such without answers are the slowest.
fn middle_at(record: &LoadRecord, offered_rps: f64) -> Option<At> {
    let at = |step: &&Step| step.valid && step.offered_rps.is_some_and(|rate| same_rate(rate, offered_rps));
    let mut found: Vec<At> = record
        .steps
        .iter()
        .filter(at)
        .map(|step| At { answered_rps: step.answered_rps(), latency_us: step.tally.latency_us })
        .collect();
    let p99 = |at: &At| at.latency_us.map_or(f64::INFINITY, |latency| latency.p99);
    found.sort_by(|left, right| p99(left).total_cmp(&p99(right)));
    found.get(found.len().checked_sub(1)? / 2).copied()
}

fn differences(new: &LoadRecord, old: &LoadRecord) -> Vec<String> {
    let largest = |record: &LoadRecord| record.steps.iter().map(|step| step.request_size).max().unwrap_or(0);
    let option = |value: Option<u32>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
    let text = |name: &'static str, get: &dyn Fn(&LoadRecord) -> String| {
        let (new, old) = (get(new), get(old));
        (new != old).then(|| format!("{name}: new {new}; old {old}"))
    };
    let compared = [
        text("scheme", &|record| record.scheme.clone()),
        text("authentication", &|record| record.authentication.clone()),
        text("path", &|record| record.path.clone()),
        text("processor of the generator", &|record| {
            format!("{}, {} of them", record.host.cpu, record.host.cpu_count)
        }),
        text("kernel of the generator", &|record| record.host.kernel.clone()),
        text("target", &|record| record.target.clone()),
        text("engine", &|record| record.engine.clone()),
        text("arrivals", &|record| record.parameters.arrivals.clone()),
        text("requests in flight", &|record| option(record.parameters.window)),
        text("seconds a step", &|record| record.parameters.step_seconds.to_string()),
        text("clients", &|record| record.parameters.clients.to_string()),
        text("workers", &|record| record.parameters.workers.to_string()),
        text("agents", &|record| record.parameters.agents.len().to_string()),
        text("timeout in seconds", &|record| record.parameters.timeout_seconds.to_string()),
        text("timeout of a key exchange in seconds", &|record| {
            record.parameters.ke_timeout_seconds.to_string()
        }),
        text("one cookie sent again and again", &|record| record.parameters.replay_cookie.to_string()),
        text("transfers for each key exchange", &|record| option(record.parameters.transfers_per_exchange)),
        text("the same cookie for these", &|record| record.parameters.same_cookie.to_string()),
        text("background a second", &|record| record.parameters.background_rps.to_string()),
        text("octets of a request", &|record| largest(record).to_string()),
        text("tolerated loss", &|record| {
            record
                .search
                .as_ref()
                .map_or_else(|| "not searched".to_owned(), |search| search.loss_max.to_string())
        }),
    ];
    let mut found: Vec<String> = compared.into_iter().flatten().collect();
    for (name, record) in [("new", new), ("old", old)] {
        if let Some(remark) = record.search.as_ref().and_then(|search| search.remark.as_ref()) {
            found.push(format!("the search of the {name} run remarks: {remark}"));
        }
        if let Some(why) = &record.interrupted {
            found.push(format!("the {name} run was interrupted: {why}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::record;

    #[test]
    fn run_against_itself_has_ratio_one_and_no_difference() {
        let comparison = against(&record(), &record());
        assert_eq!(comparison.yardstick, Yardstick::Capacity);
        assert_eq!(comparison.ratio(), Some(1.0));
        assert!(comparison.differences.is_empty(), "{:?}", comparison.differences);
        // The fourth step is invalid in both.
        let rates: Vec<f64> = comparison.pairs.iter().map(|pair| pair.offered_rps).collect();
        assert_eq!(rates, [1000.0, 2000.0, 4000.0]);
        assert!(comparison.pairs.iter().all(|pair| pair.p99_ratio() == Some(1.0)));
        assert!(!comparison.below(1.0) && comparison.below(1.001));
    }

    #[test]
    fn without_a_search_the_best_valid_step_counts() {
        let (new, mut old) = (record(), record());
        old.capacity_rps = None;
        old.search = None;
        // What is left of the old run answers 2,000 a second, what is best of the new one 3,425.
        old.steps.truncate(2);
        let comparison = against(&new, &old);
        assert_eq!(comparison.yardstick, Yardstick::HighestAnswered);
        assert_eq!((comparison.new_rps, comparison.old_rps), (Some(3425.0), Some(2000.0)));
        assert!(comparison.text().contains("a ratio of 1.71."), "{}", comparison.text());
        assert!(comparison.text().contains("differs: tolerated loss: new 0.01; old not searched"));
    }

    #[test]
    fn search_that_found_nothing_does_not_pass_a_gate() {
        let mut new = record();
        new.capacity_rps = None;
        let comparison = against(&new, &record());
        assert_eq!(comparison.ratio(), None);
        assert!(comparison.below(0.0) && comparison.text().contains("unknown against 2,800"));
        let mut old = record();
        old.capacity_rps = Some(0.0);
        assert!(against(&record(), &old).below(0.0));
    }

    #[test]
    fn unlike_things_are_compared_and_named() {
        let mut new = record();
        new.scheme = "plain".to_owned();
        new.path = "loopback".to_owned();
        new.host.cpu = "Other CPU".to_owned();
        new.parameters.replay_cookie = true;
        new.search.as_mut().unwrap().remark = Some("the generator set the limit".to_owned());
        let comparison = against(&new, &record());
        assert!(comparison.ratio().is_some());
        let text = comparison.text();
        for part in [
            "differs: scheme: new plain; old nts",
            "differs: path: new loopback; old network",
            "Other CPU",
            "again and again: new true; old false",
            "the search of the new run remarks: the generator set the limit",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert_eq!(comparison.differences.len(), 5);
    }

    #[test]
    fn of_trials_at_one_rate_the_middle_one_counts() {
        let mut new = record();
        let trial = |p99: f64| {
            let mut step = record().steps[1].clone();
            step.tally.latency_us.as_mut().unwrap().p99 = p99;
            step
        };
        new.steps = vec![trial(900.0), trial(100.0), trial(300.0)];
        let pairs = against(&new, &record()).pairs;
        assert_eq!(pairs.len(), 1);
        let p99 = |at: At| at.latency_us.unwrap().p99;
        assert_eq!((p99(pairs[0].new), p99(pairs[0].old)), (300.0, 260.0));
        assert_eq!(pairs[0].answered_ratio(), Some(1.0));
    }
}
