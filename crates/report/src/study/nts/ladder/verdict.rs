//! Whether Figures 7 to 12 are the same here, by what a ladder beside theirs has.

use super::curve::{CURVES, Curve, found_ends};
use super::failures::{failed_share, tenths};
use super::found::between;
use super::{Bend, Climb, Ladders, Step, their_knee};
use crate::published::nts::recompute::first_failure_rps;
use crate::published::nts::{CAPACITY_RPS, Measure};
use crate::study::tally::{Judged, Verdict};
use crate::units::{rate, ratio, time};

/// From this many times a median without load on a time is affected by load: the rule by which a knee is found.
const AFFECTED: f64 = 2.0;

/// What is compared of a figure, and when it is the same.
pub(in super::super) fn claim(figure: u8) -> String {
    match figure {
        7 => "On an axis where 2,000 are what the server serves, the knee of d_CKE lies where theirs does: between the \
              same two steps, or between two that overlap them."
            .to_owned(),
        8 => "No key exchange fails in a step below the knee, and some do in the highest step that counts.".to_owned(),
        _ => "Load does not affect it: no step that counts has a median above twice that without load, and one of \
              them is past what the server serves."
            .to_owned(),
    }
}

/// The verdict on a figure; `None` without a step of ours.
pub(in super::super) fn judge(ladders: &Ladders<'_>, figure: u8) -> Option<Judged> {
    let climb = ladders.beside_theirs()?;
    climb.counted().next()?;
    Some(match figure {
        7 => knee(&climb),
        8 => failures(&climb),
        _ => affected(&climb, CURVES.iter().find(|curve| curve.figure == figure)?),
    })
}

fn could_not(why: impl Into<String>) -> Judged {
    (Verdict::CouldNot, why.into())
}

fn knee(climb: &Climb<'_>) -> Judged {
    let theirs = format!("theirs above {} and at {} at most", rate(CAPACITY_RPS.into()), rate(their_knee()));
    match climb.bend() {
        Bend::NoReference => could_not("No step without load counts, so that nobody knows where ours bends."),
        Bend::NoSteps => could_not("No step of ours counts."),
        Bend::Nowhere { last } if last < their_knee() => {
            could_not(format!("The highest step that counts is {}, below their knee.", rate(last)))
        }
        Bend::Nowhere { last } => {
            (Verdict::Differs, format!("Ours does not bend up to {} a second; {theirs}.", rate(last)))
        }
        Bend::At { step, before, .. } => {
            let at = rate(step.load);
            match (step.is_at_the_server_s_limit(), before) {
                (Some(false), _) => {
                    could_not(format!("Ours bends at {at}, where the server was not at its limit."))
                }
                (None, _) => could_not(format!(
                    "Ours bends at {at}; whether the server was at its limit is not known."
                )),
                (Some(true), None) => {
                    could_not(format!("Ours bends at {at} or below: no lower step counts."))
                }
                (Some(true), Some(before)) => {
                    let ours = format!("Ours bends above {} and at {at} at most, {theirs}.", rate(before));
                    let overlaps = before < their_knee() && step.load > f64::from(CAPACITY_RPS);
                    (if overlaps { Verdict::Reproduced } else { Verdict::Differs }, ours)
                }
            }
        }
    }
}

fn failures(climb: &Climb<'_>) -> Judged {
    let Some(last) = climb.counted().last() else { return could_not("No step of ours counts.") };
    let theirs = format!("theirs begin at {}", rate(first_failure_rps()));
    let share = |step: Step<'_>| format!("{} % at {}", tenths(failed_share(step)), rate(step.load));
    if last.load < first_failure_rps() {
        let last = rate(last.load);
        return could_not(format!("The highest step that counts is {last}; {theirs}."));
    }
    if failed_share(last) == 0.0 {
        return (Verdict::Differs, format!("None of ours fails at {}; {theirs}.", rate(last.load)));
    }
    let Bend::At { step: knee, .. } = climb.bend() else {
        return could_not(format!("Ours fail, {}, and where the knee is is not known.", share(last)));
    };
    match climb.counted().find(|step| step.load < knee.load && failed_share(*step) > 0.0) {
        Some(early) => {
            let (knee, early) = (rate(knee.load), share(early));
            (Verdict::Differs, format!("Ours fail below the knee at {knee} already: {early}; {theirs}."))
        }
        None => {
            let (knee, last) = (rate(knee.load), share(last));
            (
                Verdict::Reproduced,
                format!("None of ours fails below the knee at {knee}, and {last}; {theirs}."),
            )
        }
    }
}

fn affected(climb: &Climb<'_>, curve: &Curve) -> Judged {
    let symbol = curve.measure.symbol();
    let Some(unloaded) = climb.reference(curve.ours).filter(|unloaded| *unloaded > 0.0) else {
        return could_not("No step without load counts that has a value.");
    };
    let Some(ends) = found_ends(curve, climb) else {
        return could_not(format!("No step of ours that counts has a value of {symbol}."));
    };
    let is_past = |step: &Step<'_>| step.load > f64::from(CAPACITY_RPS) && curve.of(step.record).is_some();
    if !climb.counted().any(|step| is_past(&step)) {
        return could_not(format!("No step past {} counts that has a value.", rate(CAPACITY_RPS.into())));
    }
    let factors = ends.map(|median| median / unloaded);
    let verdict = if factors[1] <= AFFECTED { Verdict::Reproduced } else { Verdict::Differs };
    let file = match (verdict, curve.measure) {
        (Verdict::Differs, Measure::Snts) => " Theirs is mostly a file that it read for each request.",
        (_, _) => "",
    };
    (
        verdict,
        format!(
            "Medians of {symbol} of ours are {} times the {} without load.{file}",
            between(factors, ratio),
            time(unloaded.round() as u64)
        ),
    )
}
