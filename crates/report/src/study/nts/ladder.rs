//! Ladders of loads: what was measured step by step, where that bends, and the paper's Figures 7 to 12 with it.
//!
//! - [`Climb`]: the steps of a ladder, and its knee.
//! - `curve`: which times Figures 7 and 9 to 12 are of, and how they are drawn.
//! - `failures`: Figure 8.
//! - `found`: what the steps say, in sentences.
//! - `tables`: what they say step by step.
//! - `verdict`: whether the paper's figures are the same here.
//!
//! A step that the generator spoiled is drawn as a cross, and no figure of it is in a sentence. There is no ratio to
//! theirs where the server was not what limited ours, and none that is finer than the steps.

mod curve;
mod failures;
pub(super) mod found;
mod tables;
#[cfg(test)]
mod tests;
pub(super) mod verdict;

use self::curve::{CURVES, Curve};
use super::{Ladder, Measure, Records, Rung, RungRecord, ScaleRecord, Times};
use crate::published::nts::CAPACITY_RPS;
use crate::published::nts::recompute::published_knee;
use crate::render::{Block, Medium, Section, Tone};
use crate::stats::knee::{Knee, Step as KneeStep, knee};
use crate::units::rate;

/// From this share of what a server may use on, its busiest thread has used all of it: the others have the rest.
const EXHAUSTED_SHARE: f64 = 0.8;
/// A bar takes at most so much of the axis: its length over this, and to scale so many key exchanges a second.
const WIDEST_STEPS: f64 = 16.0;
const WIDEST_RPS: f64 = 200.0;
/// From this share of a step on a quota has held a server up.
const THROTTLED_SHARE: f64 = 0.05;

/// A step of a ladder with a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    /// Key exchanges a second on the ladder's axis.
    pub(super) load: f64,
    pub(super) record: &'a RungRecord,
}

impl Step<'_> {
    pub(super) fn counts(&self) -> bool {
        self.record.why_invalid.is_none()
    }

    /// Whether the server had used all that it may; `None`: nobody knows.
    fn is_at_the_server_s_limit(&self) -> Option<bool> {
        let RungRecord { server_share, throttled_share, quota_share, .. } = *self.record;
        let is_held = throttled_share.map(|share| share >= THROTTLED_SHARE);
        let is_used = server_share.map(|share| share >= quota_share.unwrap_or(1.0) * EXHAUSTED_SHARE);
        match (is_held, is_used) {
            (None, None) => None,
            (is_held, is_used) => Some(is_held == Some(true) || is_used == Some(true)),
        }
    }
}

/// Where a ladder bends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bend<'a> {
    /// At this step; the last one below it that counts had this load.
    At { knee: Knee, step: Step<'a>, before: Option<f64> },
    /// Nowhere up to this load.
    Nowhere { last: f64 },
    /// Nobody knows: no step without load counts.
    NoReference,
    /// Nobody knows: no step with a load counts.
    NoSteps,
}

/// A ladder as far as it was climbed.
#[derive(Clone, Debug)]
pub(super) struct Climb<'a> {
    pub(super) ladder: Ladder,
    pub(super) scale: Option<&'a ScaleRecord>,
    /// The step without load, if it counts.
    pub(super) unloaded: Option<&'a RungRecord>,
    /// Those with a load, the least first.
    pub(super) steps: Vec<Step<'a>>,
}

impl<'a> Climb<'a> {
    fn of(records: &'a Records, ladder: Ladder) -> Self {
        let is_scale = |record: &&ScaleRecord| Measure::of(&record.task) == Some(Measure::Scale(ladder));
        let mut steps = Vec::new();
        let mut unloaded = None;
        for record in &records.rungs {
            match record.place() {
                Some((of, Rung::Load(_))) if of == ladder => {
                    steps.extend(record.load_rps.map(|load| Step { load, record }));
                }
                Some((of, Rung::Unloaded)) if of == ladder && record.why_invalid.is_none() => {
                    unloaded = Some(record);
                }
                Some(_) | None => {}
            }
        }
        steps.sort_by(|left, right| left.load.total_cmp(&right.load));
        Climb { ladder, scale: records.scales.iter().find(is_scale), unloaded, steps }
    }

    /// Steps that count.
    pub(super) fn counted(&self) -> impl Iterator<Item = Step<'a>> + '_ {
        self.steps.iter().copied().filter(Step::counts)
    }

    /// What each of its steps may take of the axis: the distance to the next one, but no wide block where few were
    /// measured, and not much more than one of theirs beside it.
    fn distance(&self) -> f64 {
        let most = self.steps.last().map_or(1.0, |last| last.load) / WIDEST_STEPS;
        let distances = self.steps.windows(2).map(|pair| pair[1].load - pair[0].load);
        let distance = distances.fold(most, f64::min);
        match self.ladder {
            Ladder::ToScale => distance.min(WIDEST_RPS),
            Ladder::WholeCore(_) => distance,
        }
    }

    /// Key exchanges a second here for each of the axis, where 2,000 are what the server serves.
    fn factor(&self) -> f64 {
        let of_record = || self.steps.first().map_or(1.0, |step| step.record.factor);
        match (self.ladder, self.scale) {
            (Ladder::ToScale, scale) => scale.map_or_else(of_record, |scale| scale.factor),
            (Ladder::WholeCore(_), scale) => {
                let served = scale.and_then(|scale| scale.whole_core_rps);
                served.map_or(1.0, |served| served / f64::from(CAPACITY_RPS))
            }
        }
    }

    /// The same steps on the paper's axis; `None` if nobody knows what the server serves.
    fn scaled(&self) -> Option<Self> {
        let factor = self.scale?.whole_core_rps.map(|_| self.factor()).filter(|factor| *factor > 0.0)?;
        let steps = self.steps.iter().map(|step| Step { load: step.load / factor, ..*step }).collect();
        Some(Climb { steps, ..self.clone() })
    }

    /// A median of a time without load, in nanoseconds.
    fn reference(&self, times: fn(&RungRecord) -> Option<&Times>) -> Option<f64> {
        Some(times(self.unloaded?)?.p50_ns as f64)
    }

    pub(super) fn bend(&self) -> Bend<'a> {
        let Some(last) = self.counted().last() else { return Bend::NoSteps };
        let Some(unloaded) = self.reference(|record| record.times.d_cke.as_ref()) else {
            return Bend::NoReference;
        };
        let median = |record: &RungRecord| match &record.times.d_cke {
            Some(times) => times.p50_ns as f64,
            // Nobody was answered, or nobody asked.
            None if record.exchanges.scheduled > 0 => f64::INFINITY,
            None => f64::NAN,
        };
        let of =
            |step: Step<'_>| KneeStep { offered_rps: step.load.round() as u32, median: median(step.record) };
        let steps: Vec<KneeStep> = self.counted().map(of).collect();
        let found = knee(unloaded, &steps).and_then(|knee| {
            let step = self.counted().find(|step| step.load.round() as u32 == knee.offered_rps)?;
            let before = self.counted().filter(|other| other.load < step.load).last();
            Some(Bend::At { knee, step, before: before.map(|before| before.load) })
        });
        found.unwrap_or(Bend::Nowhere { last: last.load })
    }
}

/// All ladders.
#[derive(Clone, Debug)]
pub(super) struct Ladders<'a>(Vec<Climb<'a>>);

impl<'a> Ladders<'a> {
    pub(super) fn new(records: &'a Records) -> Self {
        Ladders(Ladder::ALL.into_iter().map(|ladder| Climb::of(records, ladder)).collect())
    }

    /// Those of which a step with a load was measured, whether it counts or not.
    pub(super) fn climbed(&self) -> impl Iterator<Item = &Climb<'a>> {
        self.0.iter().filter(|climb| !climb.steps.is_empty())
    }

    /// The ladder to scale, if a step of it was measured.
    pub(super) fn to_scale(&self) -> Option<&Climb<'a>> {
        self.climbed().find(|climb| climb.ladder == Ladder::ToScale)
    }

    /// What stands in one frame with theirs: the ladder to scale, or else one on a whole core on the paper's axis.
    fn beside_theirs(&self) -> Option<Climb<'a>> {
        self.to_scale().cloned().or_else(|| self.climbed().find_map(Climb::scaled))
    }

    /// Ladders on a whole core.
    fn on_a_core(&self) -> Vec<&Climb<'a>> {
        self.climbed().filter(|climb| climb.ladder != Ladder::ToScale).collect()
    }

    /// Whether there is a step of the ladder that counts.
    pub(super) fn has(&self, to_scale: bool) -> bool {
        let mut of = self.climbed().filter(|climb| (climb.ladder == Ladder::ToScale) == to_scale);
        of.any(|climb| climb.counted().next().is_some())
    }
}

/// What a reader is told who points at a load.
#[derive(Debug, Default)]
struct Titles(Vec<(f64, String)>);

impl Titles {
    /// Adds half a sentence on a load.
    fn add(&mut self, load: f64, told: String) {
        match self.0.iter_mut().find(|(other, _)| *other == load) {
            Some((_, before)) => *before = format!("{before}; {told}"),
            None => self.0.push((load, told)),
        }
    }

    fn told(self) -> Vec<(f64, String)> {
        let told = |(load, told): (f64, String)| (load, format!("{} a second: {told}", rate(load)));
        self.0.into_iter().map(told).collect()
    }
}

/// The load at which theirs bends, by their data.
fn their_knee() -> f64 {
    published_knee().map_or(f64::NAN, |knee| f64::from(knee.offered_rps))
}

const FIGURE_8: &str = "Figure 8: key exchanges that failed";

/// The heading of the figure with this number.
pub(super) fn heading(figure: u8) -> String {
    let curve = CURVES.iter().find(|curve| curve.figure == figure);
    curve.map_or_else(|| FIGURE_8.to_owned(), Curve::heading)
}

/// The figures under load.
pub(super) fn sections(ladders: &Ladders<'_>) -> Vec<Section> {
    if ladders.climbed().next().is_none() {
        let blocks = [Block::paragraph(found::nothing())];
        return vec![Section::of("Figures 7 to 12: under load", blocks)];
    }
    let mut sections = vec![overview(ladders)];
    sections.push(curve(ladders, &CURVES[0]));
    sections.push(failed(ladders));
    sections.extend(CURVES[1..].iter().map(|of| curve(ladders, of)));
    sections
}

/// What was offered to whom, and each step of it.
fn overview(ladders: &Ladders<'_>) -> Section {
    let mut section = Section::new("Ladders: what was offered, and what became of it");
    section.add(Block::findings(found::findings(ladders)));
    section.say_all(ladders.climbed().map(found::about));
    section.show(ladders.climbed().map(tables::steps));
    section
}

/// Figure 7, or one of 9 to 12.
fn curve(ladders: &Ladders<'_>, curve: &Curve) -> Section {
    let mut section = Section::new(curve.heading());
    let finding = found::of_curve(ladders, curve);
    section.add(Block::Paragraph(finding.as_str().into(), Tone::Lead));
    let beside = ladders.beside_theirs();
    if let Some(climb) = &beside {
        section.add(curve.beside_theirs(climb, &finding));
    }
    let cores = ladders.on_a_core();
    if !cores.is_empty() {
        section.add(curve.on_a_core(&cores));
    }
    if let Some(climb) = &beside {
        section.add_to(Medium::Page, Block::Table(tables::beside(climb, curve)));
    }
    section
}

/// Figure 8.
fn failed(ladders: &Ladders<'_>) -> Section {
    let mut section = Section::new(FIGURE_8);
    let finding = found::of_failures(ladders);
    section.add(Block::Paragraph(finding.as_str().into(), Tone::Lead));
    let beside = ladders.beside_theirs();
    if let Some(climb) = &beside {
        section.add(failures::beside_theirs(climb, &finding));
    }
    let cores = ladders.on_a_core();
    if !cores.is_empty() {
        section.add(failures::on_a_core(&cores));
    }
    if let Some(climb) = &beside {
        section.add_to(Medium::Page, Block::Table(tables::failures(climb)));
    }
    section
}
