//! Which lines the plots of a load page have, their legends and their captions.

use super::compare::same_rate;
use super::words::causes_of_run;
use super::{Cause, LoadRecord, Step, selected};
use crate::chart::{Chart, Line, Point, Unit, cross_swatch, diagonal_swatch, swatch};
use crate::page::{Escaped, Page};
use crate::plot::{Distribution, NARROW, WIDE, Words, cumulative};
use crate::units::rate;

/// Runs that a plot draws, so that their colours differ.
pub(super) const RUN_COUNT_MAX: usize = 6;
/// Causes that a plot draws, for the same reason; the table has all.
const CAUSE_COUNT_MAX: usize = 6;

const ANSWERS: Words = Words {
    label: "Cumulative distribution of latency; the table of steps has its percentiles",
    share_of: "answers",
    time: "latency",
};
const SPANS: Words = Words {
    label: "Cumulative distribution of the spans; the table has their percentiles",
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
    /// `text`, said of this run.
    fn named(&self, text: &str) -> String {
        if self.letter.is_empty() { text.to_owned() } else { format!("{}: {text}", self.letter) }
    }

    fn line(&self, colour: usize, dashes: usize, value: impl Fn(&Step) -> Option<f64>) -> Line {
        let point =
            |step: &Step| Some(Point { rate: step.rate_rps(), value: value(step)?, valid: step.valid });
        Line { colour, dashes, points: self.record.steps.iter().filter_map(point).collect() }
    }
}

/// Lines with the names that the legend gives them.
type Named = Vec<(String, Line)>;

/// Draws a chart with its legend; returns whether there was anything to draw.
fn draw(page: &mut Page, mut chart: Chart, named: Named, caption: &str) -> bool {
    let crosses = named.iter().any(|(_, line)| line.points.iter().any(|point| !point.valid));
    let (names, lines): (Vec<String>, Vec<Line>) = named.into_iter().unzip();
    let swatches: Vec<String> = lines.iter().map(|line| swatch(line.colour, line.dashes)).collect();
    chart.lines = lines;
    let [Some(wide), Some(narrow)] = [WIDE, NARROW].map(|size| chart.svg(size)) else { return false };
    page.add(format_args!("<figure>\n<ul class=\"legend\">\n"));
    for (swatch, name) in swatches.iter().zip(&names) {
        page.add(format_args!("<li>{swatch}<span>{}</span></li>\n", Escaped(name)));
    }
    if chart.has_diagonal {
        page.add(format_args!("<li>{}<span>all that is offered</span></li>\n", diagonal_swatch()));
    }
    if crosses {
        page.add(format_args!("<li>{}<span>invalid step</span></li>\n", cross_swatch()));
    }
    page.add(format_args!("</ul>\n{wide}{narrow}<figcaption>{caption}</figcaption>\n</figure>\n"));
    true
}

/// What the horizontal axes count: a closed loop offers no rate.
fn along(runs: &[Run<'_>]) -> &'static str {
    let mut steps = runs.iter().flat_map(|run| &run.record.steps);
    if steps.any(|step| step.offered_rps.is_none()) { "sent a second" } else { "offered a second" }
}

/// Answered and lost against the rate.
pub(super) fn carried(page: &mut Page, runs: &[Run<'_>]) {
    let mut named = Named::new();
    for (index, run) in runs.iter().take(RUN_COUNT_MAX).enumerate() {
        let several = runs.len() > 1;
        let of = |quantity: usize| if several { index } else { [0, 1, 5][quantity] };
        named.push((run.named("answered"), run.line(of(0), 0, |step| Some(step.answered_rps()))));
        let lost = |step: &Step| Some(step.per_second(step.tally.lost));
        named.push((run.named("lost"), run.line(of(1), 1, lost)));
        if run.record.steps.iter().any(|step| step.tally.invalid > 0) {
            let invalid = |step: &Step| Some(step.per_second(step.tally.invalid));
            named.push((run.named("answers that failed a check"), run.line(of(2), 2, invalid)));
        }
    }
    let capacity = match runs {
        [run] => run.record.capacity_rps,
        _ => None,
    };
    let chart = Chart {
        label: "Answered and lost against the offered rate; the table of steps has the figures",
        up: "a second",
        along: along(runs),
        unit: Unit::Rate,
        has_diagonal: true,
        mark: capacity.map(|capacity| (capacity, "capacity")),
        lines: Vec::new(),
    };
    let caption = "Where the line of the answered leaves the dotted one, the server or the path has reached its limit. \
                   A cross is a step in which the generator did not do its part: it says nothing about the server.";
    draw(page, chart, named, caption);
}

/// Percentiles of latency against the rate.
pub(super) fn latency(page: &mut Page, runs: &[Run<'_>]) {
    let several = runs.len() > 1;
    // Three lines for each of many runs are no picture.
    let quantities = if runs.len() > 3 { 1..2 } else { 0..3 };
    let mut named = Named::new();
    for (index, run) in runs.iter().take(RUN_COUNT_MAX).enumerate() {
        for quantity in quantities.clone() {
            let value = |step: &Step| {
                let latency = step.tally.latency_us?;
                Some([latency.p50, latency.p99, latency.p999][quantity] * 1000.0)
            };
            let name = ["p50", "p99", "p99.9"][quantity];
            let colour = if several { index } else { [2, 0, 3][quantity] };
            named.push((run.named(name), run.line(colour, quantity, value)));
        }
    }
    let chart = Chart {
        label: "Percentiles of latency against the offered rate; the table of steps has the figures",
        up: "latency, logarithmic scale",
        along: along(runs),
        unit: Unit::Time,
        has_diagonal: false,
        mark: None,
        lines: Vec::new(),
    };
    let caption = "Latency counts from the instant at which a request was to leave, so a server that stops for a \
                   while shows here; what was lost has no latency.";
    draw(page, chart, named, caption);
}

/// The share of each cause against the rate; returns whether there was anything to draw.
pub(super) fn causes(page: &mut Page, run: Run<'_>) -> bool {
    let causes = causes_of_run(&run.record.steps, |step| Some(&step.tally));
    let line = |(series, &(cause, _)): (usize, &(Cause, u64))| {
        let share = |step: &Step| {
            (step.tally.scheduled > 0)
                .then(|| 1e6 * step.tally.count_of(cause) as f64 / step.tally.scheduled as f64)
        };
        (cause.name().to_owned(), run.line(series, series, share))
    };
    let named: Named = causes.iter().take(CAUSE_COUNT_MAX).enumerate().map(line).collect();
    let chart = Chart {
        label: "Causes of failures against the offered rate; the table of causes has their sums",
        up: "share of what was to be sent, logarithmic scale",
        along: along(&[run]),
        unit: Unit::Share,
        has_diagonal: false,
        mark: None,
        lines: Vec::new(),
    };
    draw(
        page,
        chart,
        named,
        "Whatever failed has one cause; what did not happen at a rate is not drawn there.",
    )
}

/// How long answers took: several steps of one run, or a step of each run.
pub(super) fn distributions(page: &mut Page, runs: &[Run<'_>]) {
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
    let drawn: Vec<Distribution> =
        chosen.iter().map(|(_, step)| Distribution::from(&step.tally.histograms.latency_ns)).collect();
    let names: Vec<String> = chosen.into_iter().map(|(name, _)| name).collect();
    let nothing = "<p>No valid step has a distribution, so there is nothing to draw.</p>\n";
    if !steps_figure(
        page,
        &names,
        &drawn,
        ANSWERS,
        "Where a line crosses 50\u{a0}% is the median at that rate.",
    ) {
        page.add(format_args!("{nothing}"));
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
pub(super) fn spans(page: &mut Page, run: Run<'_>) {
    let steps = selected(&run.record.steps, |step| step.valid && step.spans.is_some());
    let Some((step, spans)) = steps.last().and_then(|step| Some((step, step.spans.as_ref()?))) else {
        return;
    };
    let measures = spans.measures();
    let drawn = measures.map(|measure| Distribution::from(measure.times_ns));
    let names = measures.map(|measure| measure.name.to_owned());
    let caption = format!("At {}.", at(step));
    steps_figure(page, &names, &drawn, SPANS, &caption);
}

/// `4,000/s`; a number, so that it needs no escaping.
fn at(step: &Step) -> String {
    format!("{}/s", rate(step.rate_rps()))
}

fn steps_figure(
    page: &mut Page,
    names: &[String],
    drawn: &[Distribution],
    words: Words,
    caption: &str,
) -> bool {
    let [Some(wide), Some(narrow)] = [WIDE, NARROW].map(|size| cumulative(drawn, words, size)) else {
        return false;
    };
    page.add(format_args!("<figure>\n<ul class=\"legend\">\n"));
    for (series, name) in names.iter().enumerate().filter(|&(series, _)| !drawn[series].is_empty()) {
        page.add(format_args!("<li>{}<span>{}</span></li>\n", swatch(series, series), Escaped(name)));
    }
    page.add(format_args!("</ul>\n{wide}{narrow}<figcaption>{caption}</figcaption>\n</figure>\n"));
    true
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
