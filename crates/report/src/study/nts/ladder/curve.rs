//! Figures 7 and 9 to 12: a time against the load.

use super::found::between;
use super::{Bend, Climb, Step, Titles, their_knee};
use crate::published::nts::curves::{Drawn, Step as Published, steps};
use crate::published::nts::{CAPACITY_RPS, Measure};
use crate::render::{Block, Chart, Line, Point, Unit};
use crate::study::nts::{Ladder, RungRecord, Store, Times};
use crate::units::{rate, time};

/// A time against the load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    /// The number of the paper's figure.
    pub(super) figure: u8,
    pub(super) measure: Measure,
    /// Ours as it stands beside theirs: as their program took it, where that differs at the server.
    pub(super) ours: fn(&RungRecord) -> Option<&Times>,
    /// Ours by the equations, where that is something else.
    pub(super) equations: Option<fn(&RungRecord) -> Option<&Times>>,
    /// Theirs as it was drawn.
    pub(super) drawn: fn(&Published) -> Drawn,
    /// The median and the 95th percentile of their raw results, where these were at hand.
    pub(super) raw: Option<fn(&Published) -> [f64; 2]>,
}

/// Figures 7, 9, 10, 11 and 12.
pub(super) const CURVES: [Curve; 5] = [
    Curve {
        figure: 7,
        measure: Measure::Cke,
        ours: |record| record.times.d_cke.as_ref(),
        equations: None,
        drawn: |step| step.figure_7_ms,
        raw: Some(|step| [step.d_cke_ms.p50, step.d_cke_ms.p95]),
    },
    Curve {
        figure: 9,
        measure: Measure::Cnts,
        ours: |record| record.times.d_cnts.as_ref(),
        equations: None,
        drawn: |step| step.figure_9_ms,
        raw: None,
    },
    Curve {
        figure: 10,
        measure: Measure::Ske,
        ours: |record| record.times.d_ske_of_program.as_ref(),
        equations: Some(|record| record.times.d_ske.as_ref()),
        drawn: |step| step.figure_10_us,
        raw: Some(|step| [step.d_ske_p50_us, step.d_ske_p95_us]),
    },
    Curve {
        figure: 11,
        measure: Measure::Sntp,
        ours: |record| record.times.d_sntp.as_ref(),
        equations: None,
        drawn: |step| step.figure_11_us,
        raw: None,
    },
    Curve {
        figure: 12,
        measure: Measure::Snts,
        ours: |record| record.times.d_snts_of_program.as_ref(),
        equations: Some(|record| record.times.d_snts.as_ref()),
        drawn: |step| step.figure_12_us,
        raw: None,
    },
];

/// Colours: ours, their raw results, what they drew, and ours with the other store.
const OURS: usize = 0;
const RAW: usize = 1;
const DRAWN: usize = 4;
const OURS_IN_A_FILE: usize = 2;

const VOID: &str = "a step of ours that does not count";
const UP: &str = "time, logarithmic scale";

fn ns(value: f64) -> String {
    time(value.round() as u64)
}

impl Curve {
    pub(super) fn heading(&self) -> String {
        format!("Figure {}: {} under load", self.figure, self.measure.symbol())
    }

    /// A figure of theirs, in nanoseconds.
    pub(super) fn theirs(&self, value: f64) -> f64 {
        value * self.measure.unit().ns()
    }

    /// Median and 95th percentile of ours in a step, in nanoseconds.
    pub(super) fn of(&self, record: &RungRecord) -> Option<[f64; 2]> {
        (self.ours)(record).map(|times| [times.p50_ns as f64, times.p95_ns as f64])
    }

    fn ours_lines(&self, climb: &Climb<'_>, who: &str, colour: usize) -> [Line; 2] {
        ["median", "95th percentile"]
            .into_iter()
            .enumerate()
            .map(|(index, name)| {
                let point = |step: &Step<'_>| {
                    let value = self.of(step.record)?[index];
                    let interval = (self.ours)(step.record).and_then(Times::median_interval_ns);
                    let interval = interval.filter(|_| index == 0);
                    Some(Point { rate: step.load, value, valid: step.counts(), interval })
                };
                let points = climb.steps.iter().filter_map(point).collect();
                Line { name: format!("{who}, {name}"), colour, dashes: index, points }
            })
            .collect::<Vec<_>>()
            .try_into()
            .expect("two of two")
    }

    fn their_lines(&self) -> Vec<Line> {
        let line = |name: &str, colour: usize, dashes: usize, value: &dyn Fn(&Published) -> f64| {
            let point = |step: &Published| Point {
                rate: f64::from(step.offered_rps),
                value: self.theirs(value(step)),
                valid: true,
                interval: None,
            };
            Line {
                name: format!("theirs, {name}"),
                colour,
                dashes,
                points: steps().iter().map(point).collect(),
            }
        };
        let raw = self.raw.into_iter().flat_map(|raw| {
            [
                line("median", RAW, 0, &|step| raw(step)[0]),
                line("95th percentile", RAW, 1, &|step| raw(step)[1]),
            ]
        });
        let drawn = self.drawn;
        let printed = [
            line("mean of the fastest half (printed as the median)", DRAWN, 2, &|step| {
                drawn(step).fastest_50
            }),
            line("mean of the fastest 95 % (printed as the 95th percentile)", DRAWN, 3, &|step| {
                drawn(step).fastest_95
            }),
        ];
        raw.chain(printed).collect()
    }

    /// What a step of ours has, in half a sentence.
    fn told(&self, step: Step<'_>) -> String {
        let times = self.of(step.record).map_or_else(
            || "no value".to_owned(),
            |[p50, p95]| format!("median {}, 95th percentile {}", ns(p50), ns(p95)),
        );
        match &step.record.why_invalid {
            Some(why) => format!("ours {times}, which does not count: {why}"),
            None => format!("ours {times}"),
        }
    }

    /// What theirs has at a load, in half a sentence.
    fn told_of_theirs(&self, step: &Published) -> String {
        let drawn = (self.drawn)(step);
        let [half, most] = [drawn.fastest_50, drawn.fastest_95].map(|value| ns(self.theirs(value)));
        let raw = self.raw.map(|raw| raw(step).map(|value| ns(self.theirs(value))));
        let raw = raw.map(|[p50, p95]| format!("median {p50}, 95th percentile {p95}, "));
        format!("theirs {}printed {half} and {most}", raw.unwrap_or_default())
    }

    /// Theirs and ours in one frame; `finding` says what there is to be seen.
    pub(super) fn beside_theirs(&self, climb: &Climb<'_>, finding: &str) -> Block {
        let mut titles = Titles::default();
        steps().iter().for_each(|step| titles.add(step.offered_rps.into(), self.told_of_theirs(step)));
        climb.steps.iter().for_each(|step| titles.add(step.load, self.told(*step)));
        let theirs = their_knee();
        let marks = match climb.bend() {
            Bend::At { step, .. } if step.load == theirs => vec![(theirs, "the knee of both".to_owned())],
            Bend::At { step, .. } => {
                vec![(theirs, "their knee".to_owned()), (step.load, "our knee".to_owned())]
            }
            Bend::Nowhere { .. } | Bend::NoReference | Bend::NoSteps => {
                vec![(theirs, "their knee".to_owned())]
            }
        };
        let mut lines = self.their_lines();
        lines.extend(self.ours_lines(climb, "ours", OURS));
        let chart = Chart {
            label: format!("{} against the load, theirs and ours. {finding}", self.measure.symbol()).into(),
            up: UP,
            along: "L, key exchanges a second, ours to scale",
            unit: Unit::Time,
            void: VOID,
            marks,
            titles: titles.told(),
            is_dense: true,
            lines,
            ..Chart::default()
        };
        Block::figure(chart, self.caption(climb))
    }

    fn caption(&self, climb: &Climb<'_>) -> String {
        let scale = format!(
            " Ours to scale: 1,000 on the axis are {} key exchanges a second here{}, so that {} are what its server \
             serves.",
            rate(climb.factor() * 1e3),
            match climb.ladder {
                Ladder::ToScale => "",
                Ladder::WholeCore(_) => ", of the ladder on a whole core",
            },
            rate(f64::from(CAPACITY_RPS))
        );
        let theirs = match self.raw {
            Some(_) => "Theirs is drawn twice: percentiles of the raw results, and what was printed.",
            None => "Their raw results were not at hand: theirs is what was printed, which is no percentile.",
        };
        let reading = match self.equations {
            Some(_) => " Ours is taken as their program did; the table has it by the equations, too.",
            None => "",
        };
        let file = match self.measure {
            Measure::Snts => " Theirs read a file for each request, and ours reads none.",
            Measure::Cke | Measure::Cntp | Measure::Cnts | Measure::Ske | Measure::Sntp => "",
        };
        let axis = match self.measure {
            Measure::Cnts | Measure::Sntp | Measure::Snts => {
                " The paper\u{2019}s axis has three transfers for each key exchange, which its auxiliary clients did \
                 not make; this one has the load."
            }
            Measure::Cke | Measure::Cntp | Measure::Ske => "",
        };
        format!("{theirs}{reading}{file}{scale}{axis}")
    }

    /// Ours on whole cores, with rates as they are; theirs has no place on this axis.
    pub(super) fn on_a_core(&self, cores: &[&Climb<'_>]) -> Block {
        let (mut lines, mut titles) = (Vec::new(), Titles::default());
        let (mut marks, mut said) = (Vec::new(), Vec::new());
        for climb in cores {
            let name = keys_in(climb);
            lines.extend(self.ours_lines(climb, name, colour_of(climb)));
            climb
                .steps
                .iter()
                .for_each(|step| titles.add(step.load, format!("{name}: {}", self.told(*step))));
            let knee = match climb.bend() {
                Bend::At { step, .. } => {
                    match marks.iter_mut().find(|(load, _): &&mut (f64, String)| *load == step.load) {
                        Some((_, both)) => "knee, with both stores".clone_into(both),
                        None => marks.push((step.load, format!("knee, {name}"))),
                    }
                    format!("the knee is at {}", rate(step.load))
                }
                Bend::Nowhere { last } => format!("there is no knee up to {}", rate(last)),
                Bend::NoReference | Bend::NoSteps => "nobody knows where the knee is".to_owned(),
            };
            let ends = found_ends(self, climb)
                .map_or_else(String::new, |ends| format!(", and medians of steps are {}", between(ends, ns)));
            said.push(format!("with {name} {knee}{ends}"));
        }
        let chart = Chart {
            label: format!(
                "{} against the load on a whole core. {}.",
                self.measure.symbol(),
                said.join("; ")
            )
            .into(),
            up: UP,
            along: "key exchanges a second",
            unit: Unit::Time,
            void: VOID,
            marks,
            titles: titles.told(),
            lines,
            ..Chart::default()
        };
        let caption = format!(
            "Ours on a whole core, in key exchanges a second of this machine, up to what the generator can offer: {}.",
            said.join("; ")
        );
        Block::figure(chart, caption)
    }
}

/// Which ladder on a whole core it is.
pub(super) const fn keys_in(climb: &Climb<'_>) -> &'static str {
    match climb.ladder.store() {
        Store::Memcached => "keys in memcached",
        Store::File => "keys in a file",
    }
}

const fn colour_of(climb: &Climb<'_>) -> usize {
    match climb.ladder.store() {
        Store::Memcached => OURS,
        Store::File => OURS_IN_A_FILE,
    }
}

/// The smallest and the largest median of the steps that count.
pub(super) fn found_ends(curve: &Curve, climb: &Climb<'_>) -> Option<[f64; 2]> {
    let medians = climb.counted().filter_map(|step| Some(curve.of(step.record)?[0]));
    medians.fold(None, |ends, median| {
        let [low, high] = ends.unwrap_or([median; 2]);
        Some([median.min(low), median.max(high)])
    })
}
