//! Figure 8: key exchanges that failed, by class, over all that were to be made.

use super::curve::keys_in;
use super::{Climb, Step, Titles};
use crate::load::Cause;
use crate::published::nts::LOAD_STEP_RPS;
use crate::published::nts::curves::{Step as Published, steps};
use crate::render::{Bar, Block, Panel, Stack};
use crate::study::nts::rung::Outcomes;
use crate::units::rate;

/// How a key exchange may end that brings no cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    TimedOut,
    Unavailable,
    Other,
    Generator,
}

impl Class {
    pub(super) const ALL: [Class; 4] = [Class::TimedOut, Class::Unavailable, Class::Other, Class::Generator];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Class::TimedOut => "connection timed out",
            Class::Unavailable => "resource temporarily unavailable",
            Class::Other => "otherwise failed",
            Class::Generator => "not sent by the generator",
        }
    }

    fn of(cause: Cause) -> Self {
        if cause == Cause::ConnectionTimedOut {
            Class::TimedOut
        } else if cause == Cause::ResourceTemporarilyUnavailable {
            Class::Unavailable
        } else if cause.is_skip() {
            Class::Generator
        } else {
            Class::Other
        }
    }

    /// How many of these operations ended so.
    pub(super) fn count(self, outcomes: &Outcomes) -> u64 {
        let counts = outcomes.causes.iter().filter(|(cause, _)| Class::of(**cause) == self);
        counts.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Their share of all that were to be made.
    pub(super) fn share(self, outcomes: &Outcomes) -> f64 {
        match outcomes.scheduled {
            0 => 0.0,
            scheduled => self.count(outcomes) as f64 / scheduled as f64,
        }
    }

    /// The share of theirs, over requests; they had two classes.
    pub(super) fn share_of_theirs(self, step: &Published) -> f64 {
        let count = match self {
            Class::TimedOut => step.timed_out,
            Class::Unavailable => step.unavailable,
            Class::Other | Class::Generator => 0,
        };
        f64::from(count) / f64::from(step.requests())
    }
}

/// The share that failed of all that were to be made, without those that the generator did not send.
pub(super) fn failed_share(step: Step<'_>) -> f64 {
    let shares = Class::ALL.into_iter().filter(|class| *class != Class::Generator);
    shares.map(|class| class.share(&step.record.exchanges)).sum()
}

/// A share in percent to tenths; more would be of chance. A value above zero is never shown as zero.
pub(super) fn tenths(share: f64) -> String {
    if share > 0.0 && share < 0.000_5 { "<0.1".to_owned() } else { format!("{:.1}", share * 100.0) }
}

const VOID: &str = "a step of ours that does not count";

fn stack(label: String, along: &'static str, panels: Vec<Panel>, titles: Titles) -> Stack {
    let classes = Class::ALL.map(|class| class.name().to_owned()).to_vec();
    Stack { label, along, up: "share of key exchanges", classes, void: VOID, panels, titles: titles.told() }
}

fn panel(name: &str, climb: &Climb<'_>) -> Panel {
    let bar = |step: &Step<'_>| Bar {
        rate: step.load,
        shares: Class::ALL.map(|class| class.share(&step.record.exchanges)).to_vec(),
        valid: step.counts(),
    };
    Panel { name: name.to_owned(), distance: climb.distance(), bars: climb.steps.iter().map(bar).collect() }
}

/// Shares by class, in half a sentence.
fn told(share: impl Fn(Class) -> f64) -> String {
    let parts = Class::ALL.into_iter().map(|class| (class, share(class))).filter(|(_, share)| *share > 0.0);
    let parts: Vec<String> =
        parts.map(|(class, share)| format!("{} % {}", tenths(share), class.name())).collect();
    if parts.is_empty() { "none failed".to_owned() } else { parts.join(", ") }
}

fn told_of(step: Step<'_>) -> String {
    let shares = told(|class| class.share(&step.record.exchanges));
    match &step.record.why_invalid {
        Some(why) => format!("{shares}, which does not count: {why}"),
        None => shares,
    }
}

/// Theirs above ours.
pub(super) fn beside_theirs(climb: &Climb<'_>, finding: &str) -> Block {
    let bar = |step: &Published| Bar {
        rate: f64::from(step.offered_rps),
        shares: Class::ALL.map(|class| class.share_of_theirs(step)).to_vec(),
        valid: true,
    };
    let bars = steps().iter().map(bar).collect();
    let theirs = Panel { name: "theirs".to_owned(), distance: f64::from(LOAD_STEP_RPS), bars };
    let mut titles = Titles::default();
    for step in steps() {
        titles.add(step.offered_rps.into(), format!("theirs {}", told(|class| class.share_of_theirs(step))));
    }
    climb.steps.iter().for_each(|step| titles.add(step.load, format!("ours {}", told_of(*step))));
    let label = format!("Key exchanges that failed against the load, theirs and ours. {finding}");
    let along = "L, key exchanges a second, ours to scale";
    let drawing = stack(label, along, vec![theirs, panel("ours, to scale", climb)], titles);
    let caption = "Shares of all key exchanges of the measured client. The paper draws them over the successes, which \
                   makes them larger. A deadline that passes before there is a connection is the first class, and one \
                   that passes after it the second: theirs was 15 s for each of several steps, and ours is 10 s for \
                   all.";
    Block::figure(drawing, caption)
}

/// Ours on whole cores.
pub(super) fn on_a_core(cores: &[&Climb<'_>]) -> Block {
    let most = cores.iter().map(|climb| {
        let last = climb.counted().last();
        let told = last.map_or_else(
            || "no step counts".to_owned(),
            |step| format!("at {} a second {} % fail", rate(step.load), tenths(failed_share(step))),
        );
        format!("with {} {told}", keys_in(climb))
    });
    let said = most.collect::<Vec<_>>().join("; ");
    let mut titles = Titles::default();
    for climb in cores {
        let name = keys_in(climb);
        climb.steps.iter().for_each(|step| titles.add(step.load, format!("{name}: {}", told_of(*step))));
    }
    let panels = cores.iter().map(|climb| panel(keys_in(climb), climb)).collect();
    let label = format!("Key exchanges that failed against the load, on a whole core: {said}.");
    let drawing = stack(label, "key exchanges a second", panels, titles);
    Block::figure(drawing, format!("Ours on a whole core: {said}."))
}
