//! Two load runs against each other: ratios of what they carried and how long answers took, and what else differs.
//!
//! Serves as a regression gate. Absolute figures of two machines say little; a ratio on one machine says much. The rate
//! at which a ramp stopped is no capacity: only a search has one, or a step whose limit was the server.

use super::ceiling::Ip;
use super::{Interval, Limit, LoadRecord, Percentiles, Point, Step, Tally};
use crate::render::text::printable;
use crate::render::{Block, Layout, Medium, Report, Section, Table, Tone, or_absent};
use crate::units::{microseconds, rate, ratio};

/// Offered rates that differ by no more than this share are equal.
const RATE_TOLERANCE: f64 = 1e-6;

/// By what a run tells the server's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yardstick {
    /// A search.
    Search,
    /// The most answers a second in a step, of an open or a closed loop, whose limit was the server.
    Saturation,
}

/// What a server carried, in operations a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// How that is known.
    pub yardstick: Yardstick,
    /// So many at least.
    pub at_least_rps: f64,
    /// Fewer than so many; `None` if no rate was found that is too much.
    pub below_rps: Option<f64>,
}

/// Why a run says nothing about the server's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[non_exhaustive]
pub enum NoCapacity {
    /// What was found is the generator's.
    #[strum(serialize = "the generator was the limit")]
    Generator,
    /// What was found is that of a server without a processor of its own.
    #[strum(serialize = "other work on the server's processor was the limit")]
    Host,
    /// What was found is the path's.
    #[strum(serialize = "the path was the limit")]
    Path,
    /// There was a search without a result.
    #[strum(serialize = "the search found no rate that holds")]
    NotFound,
    /// There was none.
    #[strum(serialize = "there was no search, and no step that the server limited")]
    NotSearched,
    /// The older run knows no upper end, so there is nothing to divide by.
    #[strum(serialize = "every rate held, up to the highest that was tried")]
    Unlimited,
    /// A search is not compared with single steps.
    #[strum(serialize = "one run is a search, the other is none")]
    Yardsticks,
}

/// What one run did at some rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// Answers a second.
    pub answered_rps: f64,
    /// Their latency in microseconds from the instant at which each was due; `None` if there were none.
    pub latency_us: Option<Percentiles>,
    /// The same from the send.
    pub from_send_us: Option<Percentiles>,
}

impl At {
    /// One point of the latencies; `None` if nothing was answered.
    #[must_use]
    pub fn interval(&self, point: Point) -> Option<Interval> {
        let At { latency_us, from_send_us, .. } = *self;
        Tally { latency_us, from_send_us, ..Tally::default() }.interval(point)
    }
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
    /// A percentile of the new latency by the old one; `None` if there is none, or the old one is zero.
    #[must_use]
    pub fn latency_ratio(&self, point: Point) -> Option<f64> {
        let old = self.old.latency_us?.at(point)?;
        let new = self.new.latency_us?.at(point)?;
        (old > 0.0).then_some(new / old)
    }

    /// The new answers by the old ones; `None` if there were no old ones.
    #[must_use]
    pub fn answered_ratio(&self) -> Option<f64> {
        (self.old.answered_rps > 0.0).then(|| self.new.answered_rps / self.old.answered_rps)
    }

    /// Whose generator may have had a part in a percentile: `new`, `old` or both.
    fn spoilt(&self, point: Point) -> String {
        let parts = |at: &At| at.interval(point).is_some_and(|interval| interval.parts());
        match (parts(&self.new), parts(&self.old)) {
            (true, true) => "generator (both)".to_owned(),
            (true, false) => "generator (new)".to_owned(),
            (false, true) => "generator (old)".to_owned(),
            (false, false) => String::new(),
        }
    }
}

/// What a new run must fulfil beside an older one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gate {
    /// The least ratio of capacities; `None`: they are not compared.
    pub least: Option<f64>,
    /// The greatest ratio of latencies at equal rates; `None`: they are not compared.
    pub most: Option<f64>,
    /// The percentile of latency that is compared.
    pub point: Point,
    /// Whether unlike runs are compared all the same.
    pub allow_unlike: bool,
}

/// The comparison of a run with an older one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What the newer run says of the server's capacity.
    pub new: Result<Carried, NoCapacity>,
    /// What the older one says of it.
    pub old: Result<Carried, NoCapacity>,
    /// What both did at equal rates, lowest rate first.
    pub pairs: Vec<RatePair>,
    /// Differences because of which a ratio says nothing about the server: a sentence each.
    pub unlike: Vec<String>,
    /// Other differences, which it may be about.
    pub differences: Vec<String>,
    what: &'static str,
    runs: [String; 2],
}

/// Compares two runs.
#[must_use]
pub fn against(new: &LoadRecord, old: &LoadRecord) -> Comparison {
    let (unlike, differences) = differences(new, old);
    let (new_carried, mut old_carried) = (carried(new), carried(old));
    if let Ok(Carried { yardstick, below_rps, .. }) = old_carried {
        if new_carried.is_ok_and(|new| new.yardstick != yardstick) {
            old_carried = Err(NoCapacity::Yardsticks);
        } else if below_rps.is_none() {
            old_carried = Err(NoCapacity::Unlimited);
        }
    }
    Comparison {
        new: new_carried,
        old: old_carried,
        pairs: pairs(new, old),
        unlike,
        differences,
        what: new.operation().offered(),
        runs: [new, old].map(|record| {
            let LoadRecord { version, commit, .. } = record;
            let (server, label) = (record.server(), record.label());
            format!("{server}, {label}, measured by authentick {version}, commit {commit}")
        }),
    }
}

/// What a run says of the server's capacity.
fn carried(record: &LoadRecord) -> Result<Carried, NoCapacity> {
    if record.search.is_none() && record.capacity.is_none() {
        return carried_at_the_limit(record);
    }
    let capacity = record.capacity.unwrap_or_default();
    match (capacity.limited_by, capacity.at_least) {
        (Limit::Generator, _) => Err(NoCapacity::Generator),
        (Limit::Host, _) => Err(NoCapacity::Host),
        (Limit::Path, _) => Err(NoCapacity::Path),
        (Limit::Nothing | Limit::Server | Limit::Unknown, None) => Err(NoCapacity::NotFound),
        (Limit::Nothing | Limit::Server | Limit::Unknown, Some(at_least_rps)) => {
            Ok(Carried { yardstick: Yardstick::Search, at_least_rps, below_rps: capacity.below })
        }
    }
}

fn carried_at_the_limit(record: &LoadRecord) -> Result<Carried, NoCapacity> {
    let steps = || record.steps.iter();
    let by = |step: &&Step, limit: Limit| step.limit.as_ref().is_some_and(|verdict| verdict.by == limit);
    let servers = steps().filter(|step| step.valid && by(step, Limit::Server));
    match servers.map(Step::answered_rps).reduce(f64::max) {
        Some(rps) => {
            Ok(Carried { yardstick: Yardstick::Saturation, at_least_rps: rps, below_rps: Some(rps) })
        }
        None if steps().any(|step| by(&step, Limit::Generator)) => Err(NoCapacity::Generator),
        None if steps().any(|step| by(&step, Limit::Path)) => Err(NoCapacity::Path),
        None => Err(NoCapacity::NotSearched),
    }
}

impl Comparison {
    /// What the new run carried at least, divided by the same of the old one; `None` if one of them is not known, or
    /// the old one carried nothing.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let (new, old) = (self.new.ok()?, self.old.ok()?);
        (old.at_least_rps > 0.0).then(|| new.at_least_rps / old.at_least_rps)
    }

    /// The least and the greatest ratio that the intervals of both allow; the greatest may have no bound.
    #[must_use]
    pub fn range(&self) -> Option<(f64, Option<f64>)> {
        let (new, old) = (self.new.ok()?, self.old.ok()?);
        let most = new.below_rps.filter(|_| old.at_least_rps > 0.0).map(|new| new / old.at_least_rps);
        Some((new.at_least_rps / old.below_rps.filter(|&below| below > 0.0)?, most))
    }

    /// Why a gate refuses to compare these runs: how they are unlike. `None` if they are alike, or it is told not to
    /// mind.
    #[must_use]
    pub fn refused(&self, gate: &Gate) -> Option<String> {
        let is_refused = !gate.allow_unlike && !self.unlike.is_empty();
        is_refused.then(|| printable(&self.unlike.join("; ")).into_owned())
    }

    /// What of a gate is not fulfilled, a sentence each. What could not be measured has not passed.
    #[must_use]
    pub fn failures(&self, gate: &Gate) -> Vec<String> {
        let carried = gate.least.and_then(|least| self.carries_less(least));
        carried.into_iter().chain(gate.most.and_then(|most| self.takes_longer(most, gate.point))).collect()
    }

    fn carries_less(&self, least: f64) -> Option<String> {
        match self.ratio() {
            None => Some(self.missing()),
            Some(ratio) if ratio < least => {
                Some(format!("the ratio is {ratio:.3}, less than {least}; {}", self.allowed()))
            }
            Some(_) => None,
        }
    }

    /// The rate at which latency grew most, if it grew by too much.
    fn takes_longer(&self, most: f64, point: Point) -> Option<String> {
        let latency = |at: &At| at.latency_us.and_then(|latency| latency.at(point));
        if let Some(pair) =
            self.pairs.iter().find(|pair| latency(&pair.new).is_none() && latency(&pair.old).is_some())
        {
            return Some(format!(
                "at {}/s the new run had no answer, and the old one had",
                rate(pair.offered_rps)
            ));
        }
        let known = self.pairs.iter().filter_map(|pair| Some((pair, pair.latency_ratio(point)?)));
        let Some((pair, ratio)) = known.max_by(|(_, left), (_, right)| left.total_cmp(right)) else {
            return Some(format!("no {point} to compare: no rate was answered in a valid step of both runs"));
        };
        (ratio > most).then(|| {
            let of = |at: &At| or_absent(at.interval(point));
            let spoilt = match pair.spoilt(point).as_str() {
                "" => String::new(),
                spoilt => format!("; {spoilt}: from the send to the due instant"),
            };
            format!(
                "the ratio of {point} at {}/s is {ratio:.3}, more than {most} ({} against {}{spoilt})",
                rate(pair.offered_rps),
                of(&pair.new),
                of(&pair.old)
            )
        })
    }

    /// The comparison for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        Report::new("", Layout::Flat, vec![self.section("new", "old", ["new", "old"])]).text()
    }

    /// The comparison under the names that the page has for both, and shorter ones for its columns.
    pub(super) fn section(&self, new: &str, old: &str, columns: [&str; 2]) -> Section {
        let mut section = Section::new(format!("{new} against {old}"));
        for (name, run) in ["new", "old"].iter().zip(&self.runs) {
            section.say_in(Medium::Text, format!("{name}: {run}"));
        }
        section.add(Block::Paragraph(self.finding().into(), Tone::Lead));
        if !(self.unlike.is_empty() && self.differences.is_empty()) {
            let unlike = format!("What is not alike (new is {new}, old is {old}):");
            section.say_in(Medium::Page, unlike);
            self.add_differences(&mut section);
        }
        match self.pairs.is_empty() {
            true => section.say("No rate was offered in a valid step of both."),
            false => section.show([self.table(columns)]),
        }
        section
    }

    /// Differences between the runs, as a list on the page and lines of the text; those that make them unlike first.
    pub(crate) fn add_differences(&self, section: &mut Section) {
        let all = || self.unlike.iter().chain(&self.differences);
        section.add_to(Medium::Page, Block::list(all().map(String::as_str)));
        for (what, found) in [("unlike", &self.unlike), ("differs", &self.differences)] {
            for difference in found {
                section.say_in(Medium::Text, format!("{what}: {difference}"));
            }
        }
    }

    /// Whether the runs differ in anything.
    pub(crate) fn has_differences(&self) -> bool {
        !(self.unlike.is_empty() && self.differences.is_empty())
    }

    /// Both runs at equal rates.
    fn table(&self, [new, old]: [&str; 2]) -> Table {
        let point = |at: &At, point: Point| {
            or_absent(at.latency_us.and_then(|latency| latency.at(point)).map(microseconds))
        };
        let p99 = |pair: &&RatePair| or_absent(pair.latency_ratio(Point::P99).map(ratio));
        Table::of("Both runs at equal rates", &self.pairs)
            .number(("Offered/s", "offered/s"), |pair| rate(pair.offered_rps))
            .number((format!("{new} answered/s"), "answered/s new"), |pair| rate(pair.new.answered_rps))
            .number((format!("{old} answered/s"), "old"), |pair| rate(pair.old.answered_rps))
            .number((format!("{new} / {old}"), "ratio"), |pair| or_absent(pair.answered_ratio().map(ratio)))
            .number((format!("{new} p50"), "p50 new"), |pair| point(&pair.new, Point::P50))
            .number((format!("{old} p50"), "old"), |pair| point(&pair.old, Point::P50))
            .number((format!("{new} p95"), "p95 new"), |pair| point(&pair.new, Point::P95))
            .number((format!("{old} p95"), "old"), |pair| point(&pair.old, Point::P95))
            .number((format!("{new} p99"), "p99 new"), |pair| point(&pair.new, Point::P99))
            .number((format!("{old} p99"), "old"), |pair| point(&pair.old, Point::P99))
            .number((format!("p99 {new} / {old}"), "ratio"), p99)
            .number((format!("{new} p99.99"), "p99.99 new"), |pair| point(&pair.new, Point::P9999))
            .number((format!("{old} p99.99"), "old"), |pair| point(&pair.old, Point::P9999))
            .words(("In the p99", ""), |pair| pair.spoilt(Point::P99))
            .table()
    }

    /// What was carried, with the ratio, as a sentence.
    #[must_use]
    pub fn finding(&self) -> String {
        let (Ok(new), Ok(old), Some(value)) = (self.new, self.old, self.ratio()) else {
            return format!("There is no ratio: {}.", self.missing());
        };
        let what = self.what;
        let name = match new.yardstick {
            Yardstick::Search => "Capacity",
            Yardstick::Saturation => "Most answered in a step that the server limited",
        };
        let said = format!("{name}: {new} against {old} {what} a second, a ratio of {}", ratio(value));
        match new.yardstick {
            Yardstick::Search => format!("{said}; {}.", self.allowed()),
            Yardstick::Saturation => format!("{said}."),
        }
    }

    /// The ratios that both intervals allow.
    fn allowed(&self) -> String {
        match self.range() {
            Some((least, Some(most))) => format!("the intervals allow {} to {}", ratio(least), ratio(most)),
            Some((least, None)) => format!("the intervals allow {} or more", ratio(least)),
            None => "the intervals do not tell how exact that is".to_owned(),
        }
    }

    /// Why there is no ratio.
    fn missing(&self) -> String {
        match (self.new, self.old) {
            (Err(new), Err(old)) if new == old => format!("no capacity in either run: {new}"),
            (Err(new), Err(old)) => format!("no capacity in either run: new: {new}; old: {old}"),
            (Err(new), Ok(_)) => format!("no capacity in the new run: {new}"),
            (Ok(_), Err(old)) => format!("no capacity in the old run: {old}"),
            (Ok(_), Ok(_)) => "the old run carried nothing".to_owned(),
        }
    }
}

impl std::fmt::Display for Carried {
    /// `from 2,800 to 2,900`, `at least 2,800`, `3,425`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at_least = rate(self.at_least_rps);
        match (self.yardstick, self.below_rps) {
            (Yardstick::Saturation, _) => f.write_str(&at_least),
            (Yardstick::Search, Some(below)) => write!(f, "from {at_least} to {}", rate(below)),
            (Yardstick::Search, None) => write!(f, "at least {at_least}"),
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
        .map(|step| At {
            answered_rps: step.answered_rps(),
            latency_us: step.tally.latency_us,
            from_send_us: step.tally.from_send_us,
        })
        .collect();
    let p99 = |at: &At| at.latency_us.map_or(f64::INFINITY, |latency| latency.p99);
    found.sort_by(|left, right| p99(left).total_cmp(&p99(right)));
    found.get(found.len().checked_sub(1)? / 2).copied()
}

/// How the runs are unlike, and in what else they differ.
fn differences(new: &LoadRecord, old: &LoadRecord) -> (Vec<String>, Vec<String>) {
    let text = |name: &'static str, get: &dyn Fn(&LoadRecord) -> String| {
        let (new, old) = (get(new), get(old));
        (new != old).then(|| format!("{name}: new {new}; old {old}"))
    };
    let unlike = shapes().into_iter().filter_map(|(name, get)| text(name, &get));
    let interrupted = [("new", new), ("old", old)].into_iter().filter_map(|(name, record)| {
        record.interrupted.as_ref().map(|why| format!("the {name} run was interrupted: {why}"))
    });
    let limit = |record: &LoadRecord| match &record.capacity {
        Some(capacity) => capacity.limited_by.to_string(),
        None => "not searched".to_owned(),
    };
    let others = [
        text("server", &|record| record.server().to_owned()),
        text("target", &|record| record.target.clone()),
        text("kernel of the generator", &|record| record.host.kernel.clone()),
        text("limit of the search", &limit),
    ];
    (unlike.chain(interrupted).collect(), others.into_iter().flatten().collect())
}

type Shape = (&'static str, fn(&LoadRecord) -> String);

/// What two runs must have alike if a ratio is to tell of the server.
fn shapes() -> [Shape; 24] {
    fn option(value: Option<u32>) -> String {
        value.map_or_else(|| "none".to_owned(), |value| value.to_string())
    }
    /// The smallest, as what is lost makes requests of NTS longer.
    fn request_size(record: &LoadRecord) -> String {
        let sizes = record.steps.iter().map(|step| step.request_size).filter(|&size| size > 0);
        option(sizes.min())
    }
    fn loss_max(record: &LoadRecord) -> String {
        let search = record.search.as_ref();
        search.map_or_else(|| "not searched".to_owned(), |search| search.loss_max.to_string())
    }
    fn antp(record: &LoadRecord) -> String {
        let antp = record.parameters.antp.as_ref();
        antp.map_or_else(
            || "not used".to_owned(),
            |antp| {
                format!("requests sent again and again {}, separate tags {}", antp.replay, antp.separate_tag)
            },
        )
    }
    [
        ("scheme", |record| record.scheme.clone()),
        ("authentication", |record| record.authentication.clone()),
        ("path", |record| record.path.clone()),
        ("version of IP", |record| Ip::of(&record.address).name().to_owned()),
        ("processor of the generator", |LoadRecord { host, .. }| {
            format!("{}, {}", host.cpu, host.processors())
        }),
        ("engine", |record| record.engine.clone()),
        ("arrivals", |record| record.parameters.arrivals.clone()),
        ("requests in flight", |record| option(record.parameters.window)),
        ("seconds a step", |record| record.parameters.step_seconds.to_string()),
        ("seconds of warm-up", |record| record.parameters.warm_up_seconds.to_string()),
        ("clients", |record| record.parameters.clients.to_string()),
        ("workers", |record| record.parameters.workers.to_string()),
        ("agents", |record| record.parameters.agents.len().to_string()),
        ("timeout in seconds", |record| record.parameters.timeout_seconds.to_string()),
        ("timeout of a key exchange in seconds", |record| record.parameters.ke_timeout_seconds.to_string()),
        ("one cookie sent again and again", |record| record.parameters.replay_cookie.to_string()),
        ("transfers for each key exchange", |record| option(record.parameters.transfers_per_exchange)),
        ("the same cookie for these", |record| record.parameters.same_cookie.to_string()),
        ("ANTP", antp),
        ("background a second", |record| record.parameters.background_rps.to_string()),
        ("transfers of the background", |record| option(record.parameters.background_transfers)),
        ("clients of the background", |record| option(record.parameters.background_clients)),
        ("octets of a request", request_size),
        ("tolerated loss", loss_max),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::record;
    use crate::load::{AntpParameters, Capacity, Verdict};

    fn capacity(
        at_least: impl Into<Option<f64>>,
        below: impl Into<Option<f64>>,
        limited_by: Limit,
    ) -> LoadRecord {
        let capacity =
            Capacity { at_least: at_least.into(), below: below.into(), limited_by, throughput: None };
        LoadRecord { capacity: Some(capacity), ..record() }
    }

    /// A run of one closed loop.
    fn closed(by: Limit) -> LoadRecord {
        let mut record = LoadRecord { capacity: None, search: None, ..record() };
        record.steps.truncate(1);
        record.steps[0].offered_rps = None;
        record.steps[0].limit = Some(Verdict { by, ..Verdict::default() });
        record
    }

    const LEAST: Gate = Gate { least: Some(0.01), most: None, point: Point::P99, allow_unlike: false };

    fn failed(new: &LoadRecord, old: &LoadRecord) -> String {
        against(new, old).failures(&LEAST).join("; ")
    }

    #[test]
    fn run_against_itself_has_ratio_one_and_no_difference() {
        let comparison = against(&record(), &record());
        assert_eq!((comparison.ratio(), comparison.has_differences()), (Some(1.0), false));
        // The fourth step is invalid in both.
        let rates: Vec<f64> = comparison.pairs.iter().map(|pair| pair.offered_rps).collect();
        assert_eq!(rates, [1000.0, 2000.0, 4000.0]);
        assert!(comparison.pairs.iter().all(|pair| pair.latency_ratio(Point::P99) == Some(1.0)));
        let gate = |least| Gate { least: Some(least), most: Some(1.0), ..Gate::default() };
        assert!(comparison.failures(&gate(1.0)).is_empty() && !comparison.failures(&gate(1.001)).is_empty());
    }

    #[test]
    fn ratio_is_told_with_what_both_intervals_allow() {
        let comparison =
            against(&capacity(4000.0, 5000.0, Limit::Server), &capacity(2000.0, 2500.0, Limit::Unknown));
        assert_eq!((comparison.ratio(), comparison.range()), (Some(2.0), Some((1.6, Some(2.5)))));
        assert_eq!(
            comparison.finding(),
            "Capacity: from 4,000 to 5,000 against from 2,000 to 2,500 requests a second, a ratio of 2.00; the \
             intervals allow 1.60 to 2.50."
        );
        let gate = Gate { least: Some(2.1), ..Gate::default() };
        assert_eq!(
            comparison.failures(&gate),
            ["the ratio is 2.000, less than 2.1; the intervals allow 1.60 to 2.50"]
        );
        // Without an upper end the new run carries so much at least.
        let comparison =
            against(&capacity(4000.0, None, Limit::Nothing), &capacity(2000.0, 2500.0, Limit::Server));
        assert_eq!(comparison.range(), Some((1.6, None)));
        assert!(comparison.finding().contains("at least 4,000 against from 2,000 to 2,500"));
    }

    #[test]
    fn capacity_that_is_not_the_servers_passes_no_gate() {
        let good = record();
        for (new, old, why) in [
            (
                capacity(9e5, None, Limit::Generator),
                capacity(1e3, None, Limit::Generator),
                "no capacity in either run: the generator was the limit",
            ),
            (
                capacity(9e5, None, Limit::Generator),
                good.clone(),
                "no capacity in the new run: the generator was the limit",
            ),
            (
                good.clone(),
                capacity(1e3, None, Limit::Generator),
                "no capacity in the old run: the generator was the limit",
            ),
            (
                capacity(9e5, 1e6, Limit::Path),
                capacity(None, 5.0, Limit::Server),
                "no capacity in either run: new: the path was the limit; old: the search found no rate that holds",
            ),
            (
                good.clone(),
                capacity(1e3, None, Limit::Nothing),
                "no capacity in the old run: every rate held, up to the highest that was tried",
            ),
            (
                capacity(1.0, 2.0, Limit::Server),
                capacity(0.0, 1.0, Limit::Server),
                "the old run carried nothing",
            ),
        ] {
            assert_eq!(failed(&new, &old), why);
            assert_eq!(against(&new, &old).finding(), format!("There is no ratio: {why}."));
        }
    }

    #[test]
    fn where_ramps_stopped_is_no_capacity() {
        let ramp = |count| {
            let mut record = LoadRecord { capacity: None, search: None, ..record() };
            record.steps.truncate(count);
            record.steps.iter_mut().for_each(|step| step.limit = None);
            record
        };
        let why = "no capacity in either run: there was no search, and no step that the server limited";
        assert_eq!(failed(&ramp(3), &ramp(2)), why);
    }

    #[test]
    fn step_that_the_server_limited_counts_at_whatever_rate_it_was_offered() {
        let mut new = LoadRecord { capacity: None, search: None, ..record() };
        let old = new.clone();
        let index = new.steps.iter().position(|step| step.valid && step.limit.is_some()).unwrap();
        let limit = Some(Verdict { by: Limit::Server, why: Vec::new() });
        new.steps.iter_mut().enumerate().for_each(|(other, step)| {
            step.limit = limit.clone().filter(|_| other == index);
        });
        let most = new.steps[index].answered_rps();
        assert_eq!(against(&new, &new).new.map(|new| new.at_least_rps), Ok(most));
        assert!(against(&new, &old).ratio().is_some());
    }

    #[test]
    fn closed_loop_counts_if_its_limit_was_the_server() {
        let mut faster = closed(Limit::Server);
        faster.steps[0].seconds /= 2.0;
        let comparison = against(&faster, &closed(Limit::Server));
        assert_eq!(comparison.ratio(), Some(2.0));
        assert!(comparison.finding().ends_with("2,000 against 1,000 requests a second, a ratio of 2.00."));
        for (limit, why) in [
            (Limit::Generator, "the generator was the limit"),
            (Limit::Path, "the path was the limit"),
            (Limit::Unknown, "there was no search, and no step that the server limited"),
        ] {
            assert_eq!(failed(&closed(limit), &closed(limit)), format!("no capacity in either run: {why}"));
        }
        let one = "no capacity in the old run: one run is a search, the other is none";
        assert_eq!(failed(&closed(Limit::Server), &record()), one);
    }

    #[test]
    fn latency_is_gated_at_equal_rates() {
        let gate = |most, point| Gate { most: Some(most), point, ..Gate::default() };
        let mut new = record();
        new.steps[1].tally.latency_us.as_mut().unwrap().p99 = 520.0;
        new.steps[1].tally.from_send_us =
            Some(Percentiles { p99: 260.0, ..new.steps[1].tally.latency_us.unwrap() });
        let mut old = record();
        old.steps.iter_mut().for_each(|step| step.tally.from_send_us = None);
        let comparison = against(&new, &old);
        assert!(comparison.failures(&gate(2.0, Point::P99)).is_empty());
        assert!(comparison.failures(&gate(1.0, Point::P50)).is_empty(), "another percentile is as it was");
        assert_eq!(
            comparison.failures(&gate(1.9, Point::P99)),
            ["the ratio of p99 at 2,000/s is 2.000, more than 1.9 (260.0-520.0 us against 260.0 us; \
              generator (new): from the send to the due instant)"]
        );
        // Silence at a rate that was answered before is worse than any latency.
        new.steps[0].tally.latency_us = None;
        let silent = against(&new, &old).failures(&gate(9.0, Point::P99)).concat();
        assert!(silent.contains("at 1,000/s the new run had no answer"), "{silent}");
        new.steps.iter_mut().for_each(|step| step.offered_rps = None);
        let none = against(&new, &old).failures(&gate(9.0, Point::P99)).concat();
        assert!(none.contains("no p99 to compare"), "{none}");
    }

    #[test]
    fn unlike_runs_are_refused_with_every_difference_unless_told() {
        let mut new = record();
        new.scheme = "plain".to_owned();
        new.path = "loopback".to_owned();
        new.address = "[2001:db8::1]:123".to_owned();
        new.host.cpu = "Other CPU".to_owned();
        new.parameters.arrivals = "exponential".to_owned();
        new.parameters.warm_up_seconds = 2.0;
        new.parameters.clients = 7;
        new.parameters.workers = 3;
        new.parameters.antp = Some(AntpParameters { replay: true, ..AntpParameters::default() });
        new.parameters.replay_cookie = true;
        new.search.as_mut().unwrap().loss_max = 0.02;
        new.steps.iter_mut().for_each(|step| step.request_size = 48);
        new.interrupted = Some("the cable".to_owned().into());
        let comparison = against(&new, &record());
        let refusal = comparison.refused(&LEAST).unwrap();
        for part in [
            "scheme: new plain; old nts; ",
            "path: new loopback; old network",
            "version of IP: new IPv6; old IPv4",
            "Other CPU",
            "arrivals: new exponential; old constant",
            "seconds of warm-up: new 2; old 0",
            "clients: new 7; old 100",
            "ANTP: new requests sent again and again true, separate tags false; old not used",
            "workers: new 3; old 1",
            "again and again: new true; old false",
            "tolerated loss: new 0.02; old 0.01",
            "octets of a request: new 48; old 228",
            "the new run was interrupted: the cable",
        ] {
            assert!(refusal.contains(part), "{part}:\n{refusal}");
        }
        assert_eq!(comparison.unlike.len(), 13);
        assert!(comparison.text().contains("unlike: scheme: new plain; old nts"));
        assert_eq!(comparison.refused(&Gate { allow_unlike: true, ..LEAST }), None);
        assert!(comparison.ratio().is_some(), "they are compared all the same");
    }

    #[test]
    fn other_servers_and_kernels_are_what_a_ratio_may_be_about() {
        let mut new = record();
        new.server_label = Some("the new build".to_owned());
        new.host.kernel = "Linux 7".to_owned();
        let comparison = against(&new, &record());
        assert_eq!((comparison.refused(&LEAST), comparison.differences.len()), (None, 2));
        let text = comparison.text();
        assert!(
            text.starts_with("new: the new build, nts (AEAD_AES_SIV_CMAC_256), measured by authentick"),
            "{text}"
        );
        assert!(text.contains("differs: server: new the new build; old "), "{text}");
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
