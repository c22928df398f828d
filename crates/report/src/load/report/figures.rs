//! Which lines the plots of load runs have, and their captions.

use std::borrow::Cow;

use crate::load::compare::same_rate;
use crate::load::words::causes_of_run;
use crate::load::{Cause, LoadRecord, Second, Step, selected};
use crate::render::{Block, Chart, Cumulative, Distribution, Line, Point, Unit, Words};
use crate::units::rate;

/// Runs that a plot draws, so that their colours differ.
pub(super) const RUN_COUNT_MAX: usize = 6;
/// Causes that a plot draws, for the same reason; the table has all.
const CAUSE_COUNT_MAX: usize = 6;

const ANSWERS: Words = Words {
    label: Cow::Borrowed("Cumulative distribution of latency; the table of steps has its percentiles"),
    share_of: "answers",
    time: "latency",
};
const SPANS: Words = Words {
    label: Cow::Borrowed("Cumulative distribution of the spans; the table has their percentiles"),
    share_of: "exchanges",
    time: "span",
};

/// A run with the letter that the page knows it by; empty if it is the only one.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) letter: &'static str,
    pub(super) record: &'a LoadRecord,
}

impl Run<'_> {
    /// `A (chrony)`: its letter, and which server it loaded.
    pub(super) fn name(&self) -> String {
        format!("{} ({})", self.letter, self.record.server())
    }

    /// `text`, said of this run.
    fn named(&self, text: &str) -> String {
        if self.letter.is_empty() { text.to_owned() } else { format!("{}: {text}", self.name()) }
    }

    fn line(&self, name: &str, look: [usize; 2], value: impl Fn(&Step) -> Option<f64>) -> Line {
        let point = |step: &Step| {
            Some(Point { rate: step.rate_rps(), value: value(step)?, valid: step.valid, interval: None })
        };
        let [colour, dashes] = look;
        Line {
            name: self.named(name),
            colour,
            dashes,
            points: self.record.steps.iter().filter_map(point).collect(),
        }
    }
}

/// What crosses are called.
const VOID: &str = "invalid step";

/// What the horizontal axes count: a closed loop offers no rate.
fn along(runs: &[Run<'_>]) -> &'static str {
    let mut steps = runs.iter().flat_map(|run| &run.record.steps);
    if steps.any(|step| step.offered_rps.is_none()) { "sent a second" } else { "offered a second" }
}

/// Answered and lost against the rate.
pub(super) fn carried(runs: &[Run<'_>]) -> Block {
    let mut lines = Vec::new();
    for (index, run) in runs.iter().take(RUN_COUNT_MAX).enumerate() {
        let several = runs.len() > 1;
        let of = |quantity: usize| [if several { index } else { [0, 1, 5][quantity] }, quantity];
        lines.push(run.line("answered", of(0), |step| Some(step.answered_rps())));
        lines.push(run.line("lost", of(1), |step| Some(step.per_second(step.tally.lost))));
        if run.record.steps.iter().any(|step| step.tally.invalid > 0) {
            let invalid = |step: &Step| Some(step.per_second(step.tally.invalid));
            lines.push(run.line("answers that failed a check", of(2), invalid));
        }
    }
    let capacity = match runs {
        [run] => run.record.capacity_rps(),
        _ => None,
    };
    let chart = Chart {
        label: "Answered and lost against the offered rate; the table of steps has the figures".into(),
        up: "a second",
        along: along(runs),
        unit: Unit::Rate,
        diagonal: Some("all that is offered"),
        void: VOID,
        marks: capacity.map(|capacity| (capacity, "capacity".to_owned())).into_iter().collect(),
        lines,
        ..Chart::default()
    };
    let caption = "Where the line of the answered leaves the dotted one, the server or the path has reached its limit. \
                   A cross is a step in which the generator did not do its part: it says nothing about the server.";
    Block::figure(chart, caption)
}

/// Percentiles of latency against the rate.
pub(super) fn latency(runs: &[Run<'_>]) -> Block {
    let several = runs.len() > 1;
    // Three lines for each of many runs are no picture.
    let quantities = if runs.len() > 3 { 1..2 } else { 0..3 };
    let mut lines = Vec::new();
    for (index, run) in runs.iter().take(RUN_COUNT_MAX).enumerate() {
        for quantity in quantities.clone() {
            let value = |step: &Step| {
                let latency = step.tally.latency_us?;
                Some([latency.p50, latency.p99, latency.p999][quantity] * 1000.0)
            };
            let colour = if several { index } else { [2, 0, 3][quantity] };
            lines.push(run.line(["p50", "p99", "p99.9"][quantity], [colour, quantity], value));
        }
    }
    let chart = Chart {
        label: "Percentiles of latency against the offered rate; the table of steps has the figures".into(),
        up: "latency, logarithmic scale",
        along: along(runs),
        unit: Unit::Time,
        void: VOID,
        lines,
        ..Chart::default()
    };
    let caption = "Latency counts from the instant at which a request was to leave, so a server that stops for a \
                   while shows here; what was lost has no latency.";
    Block::figure(chart, caption)
}

/// What each second brought, one step after the other; nothing if there are not two of them.
pub(super) fn series(run: Run<'_>) -> Vec<Block> {
    let steps = &run.record.steps;
    let seconds: Vec<(f64, &Second, bool)> = steps
        .iter()
        .flat_map(|step| step.series.iter().map(move |second| (second, step.valid)))
        .enumerate()
        .map(|(index, (second, valid))| ((index + 1) as f64, second, valid))
        .collect();
    if seconds.len() < 2 {
        return Vec::new();
    }
    let line = |name: &str, colour: usize, value: &dyn Fn(&Second) -> Option<f64>| {
        let point = |&(rate, second, valid): &(f64, &Second, bool)| {
            Some(Point { rate, value: value(second)?, valid, interval: None })
        };
        let points = seconds.iter().filter_map(point).collect();
        Line { name: name.to_owned(), colour, dashes: colour, points }
    };
    let counts = Chart {
        label: "Operations that were sent, answered and failed in each second of the run".into(),
        up: "in this second",
        along: SECONDS,
        unit: Unit::Rate,
        void: VOID,
        lines: vec![
            line("sent", 2, &|second| Some(second.sent as f64)),
            line("answered", 0, &|second| Some(second.answered as f64)),
            line("failed", 1, &|second| Some(second.failed as f64)),
        ],
        ..Chart::default()
    };
    let latency = Chart {
        label: "Median and 99th percentile of latency in each second of the run".into(),
        up: "latency, logarithmic scale",
        along: SECONDS,
        unit: Unit::Time,
        void: VOID,
        lines: vec![
            line("p50", 2, &|second| Some(second.p50_us? * 1000.0)),
            line("p99", 0, &|second| Some(second.p99_us? * 1000.0)),
        ],
        ..Chart::default()
    };
    let caption = "One step follows the other, in the order of measuring, without warm-up and pauses.";
    vec![
        Block::figure(counts, caption),
        Block::figure(
            latency,
            "Of the answers in each second, from the instant at which each request was due.",
        ),
    ]
}

const SECONDS: &str = "seconds of measuring";

/// The share of each cause against the rate.
pub(super) fn causes(run: Run<'_>) -> Block {
    let causes = causes_of_run(&run.record.steps, |step| Some(&step.tally));
    let line = |(series, &(cause, _)): (usize, &(Cause, u64))| {
        let share = |step: &Step| {
            (step.tally.scheduled > 0)
                .then(|| 1e6 * step.tally.count_of(cause) as f64 / step.tally.scheduled as f64)
        };
        Run { letter: "", ..run }.line(&cause.to_string(), [series, series], share)
    };
    let chart = Chart {
        label: "Causes of failures against the offered rate; the table of causes has their sums".into(),
        up: "share of what was to be sent, logarithmic scale",
        along: along(&[run]),
        unit: Unit::Share,
        void: VOID,
        lines: causes.iter().take(CAUSE_COUNT_MAX).enumerate().map(line).collect(),
        ..Chart::default()
    };
    let caption = "Whatever failed has one cause; what did not happen at a rate is not drawn there.";
    Block::figure(chart, caption)
}

/// How long answers took: several steps of one run, or a step of each run.
pub(super) fn distributions(runs: &[Run<'_>]) -> Block {
    let has_answers = |step: &Step| step.valid && !step.tally.histograms.latency_ns.pairs().is_empty();
    let chosen: Vec<(String, &Step)> = match runs {
        [run] => selected(&run.record.steps, has_answers).into_iter().map(|step| (at(step), step)).collect(),
        _ => {
            let common = common_rate(runs, has_answers);
            let runs = runs.iter().take(RUN_COUNT_MAX);
            runs.filter_map(|run| Some((run, step_at(*run, common, has_answers)?)))
                .map(|(run, step)| (run.named(&at(step)), step))
                .collect()
        }
    };
    let series = chosen.into_iter().map(|(name, step)| (name, (&step.tally.histograms.latency_ns).into()));
    Block::Figure {
        drawing: Box::new(Cumulative { words: ANSWERS, series: series.collect(), has_ends: false }),
        caption: "Where a line crosses 50 % is the median at that rate.".to_owned(),
        otherwise: Some("No valid step has a distribution, so there is nothing to draw."),
    }
}

/// Of the steps that pass `test` the one at a rate, or the one that answered most.
fn step_at<'a>(run: Run<'a>, rate_rps: Option<f64>, test: impl Fn(&Step) -> bool) -> Option<&'a Step> {
    let mut steps = run.record.steps.iter().filter(|step| test(step));
    match rate_rps {
        Some(rate_rps) => steps.find(|step| same_rate(step.rate_rps(), rate_rps)),
        None => steps.max_by(|left, right| left.answered_rps().total_cmp(&right.answered_rps())),
    }
}

/// The spans of the highest valid rate that has them.
pub(super) fn spans(run: Run<'_>) -> Option<Block> {
    let steps = selected(&run.record.steps, |step| step.valid && step.spans.is_some());
    let (step, spans) = steps.last().and_then(|step| Some((step, step.spans.as_ref()?)))?;
    let series = spans
        .shown(&run.record.scheme)
        .map(|measure| (measure.name.to_owned(), Distribution::from(measure.times_ns)));
    let cumulative = Cumulative { words: SPANS, series: series.collect(), has_ends: false };
    Some(Block::figure(cumulative, format!("At {}.", at(step))))
}

/// `4,000/s`.
fn at(step: &Step) -> String {
    format!("{}/s", rate(step.rate_rps()))
}

/// The highest rate that a step of every run has.
fn common_rate(runs: &[Run<'_>], test: impl Fn(&Step) -> bool) -> Option<f64> {
    let (first, others) = runs.split_first()?;
    let rates = first.record.steps.iter().filter(|step| test(step)).map(Step::rate_rps);
    let has = |run: &Run<'_>, rate: f64| {
        run.record.steps.iter().any(|step| test(step) && same_rate(step.rate_rps(), rate))
    };
    rates.filter(|&rate| others.iter().all(|run| has(run, rate))).reduce(f64::max)
}
