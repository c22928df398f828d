//! What the ladders say, in sentences: the finding of each figure first, with its figures.

use super::curve::{CURVES, Curve, found_ends};
use super::failures::{failed_share, tenths};
use super::{Bend, Climb, Ladders, Step, their_knee};
use crate::published::nts::curves::{step as published, steps};
use crate::published::nts::recompute::first_failure_rps;
use crate::published::nts::{CAPACITY_RPS, FIRST_ERRORS_RPS, Measure, table_2};
use crate::study::nts::rung::ScaleRecord;
use crate::study::nts::{Ladder, Store};
use crate::units::{count, plural, rate, ratio, time};

fn ns(value: f64) -> String {
    time(value.round() as u64)
}

fn paper_s() -> String {
    format!(
        "the paper says about {}, and by its data the knee is at {}",
        count(CAPACITY_RPS.into()),
        rate(their_knee())
    )
}

/// What there is to say without a step.
pub(in super::super) fn nothing() -> String {
    format!(
        "No step of a ladder was measured here, so that nothing stands beside the paper\u{2019}s Figures 7 to 12. Of \
         how many key exchanges a second a server carries {}.",
        paper_s()
    )
}

/// What a ladder was climbed with.
pub(in super::super) fn about(climb: &Climb<'_>) -> String {
    let steps = climb.steps.len() as u64;
    let void = steps - climb.counted().count() as u64;
    let void = match void {
        0 => String::new(),
        void => format!(", {} of which the generator spoiled: crosses in the figures", count(void)),
    };
    let climbed = format!("{}{void}", plural(steps, "step"));
    let name = crate::units::capital(climb.ladder.name());
    let Some(ScaleRecord { whole_core_rps, generator_rps, quota_share, capacity_rps, factor, .. }) =
        climb.scale
    else {
        return format!("{name}: {climbed}.");
    };
    let generator = format!("the generator can offer {}", rate(*generator_rps));
    let most = whole_core_rps.map_or_else(
        || "more than the generator can offer".to_owned(),
        |whole| format!("{} key exchanges a second", rate(whole)),
    );
    match quota_share {
        Some(quota) => format!(
            "{name}: the server has {} % of a core, and serves {} key exchanges a second with that; these are 2,000 on \
             the axis, so that all rates are the paper\u{2019}s times {factor:.3}. With a whole core it serves {most}; \
             {generator}. {climbed}.",
            tenths(*quota),
            rate(*capacity_rps)
        ),
        None => format!("{name}: the server serves {most}; {generator}. {climbed}."),
    }
}

/// How our knee to scale compares with theirs: no finer than the steps.
fn beside_theirs(step: Step<'_>, before: Option<f64>) -> String {
    let theirs = their_knee();
    let no_ratio = |why: &str| format!("{why}: no ratio to theirs follows.");
    match (step.is_at_the_server_s_limit(), before) {
        (Some(false), _) => no_ratio("The server was not at its limit in that step"),
        (None, _) => no_ratio("Whether the server was at its limit there is not known"),
        (Some(true), None) => no_ratio("No lower step counts, so that it may be anywhere below"),
        // Theirs is above 2,000 and at most 2,100; ours above the step before.
        (Some(true), Some(before)) if before < theirs && step.load > f64::from(CAPACITY_RPS) => format!(
            "The step before, {0}, is normal: ours bends above {0} and at {1} at most, and so does theirs.",
            rate(before),
            rate(step.load)
        ),
        (Some(true), Some(before)) => {
            let ratio = between([before, step.load], |load| format!("{:.1}", load / theirs));
            let before = rate(before);
            format!("The step before, {before}, is normal: ours bends at {ratio} times the load of theirs.")
        }
    }
}

/// Where a ladder bends, and how that compares.
pub(in super::super) fn bend(climb: &Climb<'_>) -> String {
    let is_to_scale = climb.ladder == Ladder::ToScale;
    let where_ = match climb.ladder {
        Ladder::ToScale => "To scale",
        Ladder::WholeCore(Store::Memcached) => "On a whole core",
        Ladder::WholeCore(Store::File) => "On a whole core with the keys in a file",
    };
    let against = if is_to_scale { format!("; {}", paper_s()) } else { String::new() };
    match climb.bend() {
        Bend::NoSteps => format!("{where_}, no step counts, and nobody knows where ours bends{against}."),
        Bend::NoReference => {
            format!("{where_}, no step without load counts, and nobody knows where ours bends{against}.")
        }
        Bend::Nowhere { last } => format!(
            "{where_}, ours does not bend up to {} key exchanges a second: no median of d_CKE is above twice \
             the unloaded one for good{against}.",
            rate(last)
        ),
        Bend::At { knee, step, before } => {
            let unloaded = climb.reference(|record| record.times.d_cke.as_ref()).map(ns).unwrap_or_default();
            let there = match &step.record.times.d_cke {
                Some(times) => {
                    format!("the median of d_CKE is {}, and {unloaded} without load", time(times.p50_ns))
                }
                None => "nobody was answered".to_owned(),
            };
            let later = match knee.later_count {
                0 => " It is the last step, and nothing but it says so.".to_owned(),
                later => format!(
                    " Of {}, {} exceed twice the unloaded median, too.",
                    plural(later as u64, "later step"),
                    knee.exceeding_count
                ),
            };
            let compared = match is_to_scale {
                true => format!(" {}", beside_theirs(step, before)),
                false => on_a_core(climb, step),
            };
            format!(
                "{where_}, ours bends at {} key exchanges a second, where {there}{against}.{later}{compared}",
                rate(step.load)
            )
        }
    }
}

/// Where ours bends and where theirs does, in one sentence; `None` if no step counts.
pub(in super::super) fn in_short(ladders: &Ladders<'_>) -> Option<String> {
    let climb = ladders.to_scale().or_else(|| ladders.climbed().next())?;
    let name = climb.ladder.name();
    let ours = match climb.bend() {
        Bend::At { step, .. } => format!("Key exchange bends at {} a second here ({name})", rate(step.load)),
        Bend::Nowhere { last } => {
            format!("Key exchange does not bend up to {} a second here ({name})", rate(last))
        }
        Bend::NoReference | Bend::NoSteps => return None,
    };
    Some(format!("{ours}; {}.", paper_s()))
}

/// What a knee on a whole core is beside what the server serves.
fn on_a_core(climb: &Climb<'_>, step: Step<'_>) -> String {
    let capacity = climb.scale.and_then(|scale| scale.whole_core_rps);
    match (step.is_at_the_server_s_limit(), capacity) {
        (Some(true), Some(capacity)) if capacity > 0.0 => format!(
            " That is {} times what it serves, {}. Theirs had four cores of another kind: there is no ratio to it.",
            ratio(step.load / capacity),
            rate(capacity)
        ),
        (Some(true), _) => " Theirs had four cores of another kind: there is no ratio to it.".to_owned(),
        (Some(false) | None, _) => {
            " That the server was at its limit there is not known: the knee may be of the generator."
                .to_owned()
        }
    }
}

/// What stands out of all ladders.
pub(super) fn findings(ladders: &Ladders<'_>) -> Vec<String> {
    let mut findings: Vec<String> = ladders.climbed().map(bend).collect();
    findings.extend(ladders.climbed().find_map(queue));
    findings
}

/// Whether the accept queue was full where clients sent SYNs again: what the tail of d_CKE at 1, 3 and 7 s suggests.
pub(in super::super) fn queue(climb: &Climb<'_>) -> Option<String> {
    let known: Vec<(Step<'_>, u64, u64)> = climb
        .counted()
        .filter_map(|step| Some((step, step.record.accept_overflows?, step.record.syn_repeats?)))
        .collect();
    let (last, overflows, repeats) = *known.last()?;
    let full = known
        .iter()
        .filter(|(_, overflows, _)| *overflows > 0)
        .map(|(step, ..)| step.load)
        .collect::<Vec<_>>();
    let name = climb.ladder.name();
    Some(match full.first() {
        Some(first) => format!(
            "The accept queue of our server overflowed from {} key exchanges a second on ({name}), in {} of {}; at {} \
             it did {}, and clients sent SYNs again {}. Their tail past the knee stands at 1, 3 and 7 s, where Linux \
             repeats a SYN: that it is of a full queue is an inference, and ours is counted.",
            rate(*first),
            full.len(),
            plural(known.len() as u64, "step"),
            rate(last.load),
            times(overflows),
            times(repeats)
        ),
        // Below what a server serves there is no queue to be full.
        None if !matches!(climb.bend(), Bend::At { .. }) => return None,
        None => format!(
            "The accept queue of our server overflowed in no step ({name}), and at {} clients sent SYNs again {}. \
             Their tail past the knee stands at 1, 3 and 7 s, as if theirs had.",
            rate(last.load),
            times(repeats)
        ),
    })
}

fn times(count: u64) -> String {
    match count {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        count => format!("{} times", crate::units::count(count)),
    }
}

/// The finding of Figure 7 or of one of 9 to 12.
pub(super) fn of_curve(ladders: &Ladders<'_>, curve: &Curve) -> String {
    let climb = ladders.to_scale().or_else(|| ladders.climbed().next());
    let Some(climb) = climb else { return nothing() };
    match curve.measure {
        Measure::Cke if climb.ladder == Ladder::ToScale => bend(climb),
        Measure::Cke => format!("{} Of theirs {}.", bend(climb), paper_s()),
        Measure::Cntp | Measure::Cnts | Measure::Ske | Measure::Sntp | Measure::Snts => {
            format!("{}; {}.", ours_of(climb, curve), theirs_of(curve))
        }
    }
}

/// Two values as `2.0 to 3.0`, or one where they look alike.
pub(super) fn between(ends: [f64; 2], told: impl Fn(f64) -> String) -> String {
    let [low, high] = ends.map(told);
    if low == high { low } else { format!("{low} to {high}") }
}

/// By how much a median changes with load.
fn ours_of(climb: &Climb<'_>, curve: &Curve) -> String {
    let (symbol, name) = (curve.measure.symbol(), climb.ladder.name());
    let Some([low, high]) = found_ends(curve, climb) else {
        return format!("No step of ours that counts has a value of {symbol} ({name})");
    };
    let reference = climb.reference(curve.ours).filter(|reference| *reference > 0.0);
    let beside = reference.map_or_else(
        || "no step without load counts".to_owned(),
        |reference| {
            format!(
                "{} times the {} without load",
                between([low / reference, high / reference], ratio),
                ns(reference)
            )
        },
    );
    format!(
        "Medians of {symbol} of ours are {} over all steps that count ({name}), {beside}",
        between([low, high], ns)
    )
}

/// The same of theirs: what was drawn, and what Table II has.
fn theirs_of(curve: &Curve) -> String {
    let halves = steps().iter().map(|step| curve.theirs((curve.drawn)(step).fastest_50));
    let (low, high) =
        halves.fold((f64::INFINITY, 0.0_f64), |(low, high), half| (low.min(half), high.max(half)));
    let unloaded = table_2(curve.measure).map_or_else(String::new, |value| {
        format!(", and {} without load, a median", ns(curve.theirs(value)))
    });
    format!("theirs, as means of the fastest half, are {}{unloaded}", between([low, high], ns))
}

/// The finding of Figure 8.
pub(super) fn of_failures(ladders: &Ladders<'_>) -> String {
    let Some(climb) = ladders.to_scale().or_else(|| ladders.climbed().next()) else { return nothing() };
    let theirs = format!(
        "theirs begin at {}, where the paper says {}",
        rate(first_failure_rps()),
        count(FIRST_ERRORS_RPS.into())
    );
    let name = climb.ladder.name();
    let Some(last) = climb.counted().last() else {
        return format!("No step of ours counts ({name}); failures of {theirs}.");
    };
    let first = climb.counted().find(|step| failed_share(*step) > 0.0);
    let first = first.map_or_else(
        || format!("No key exchange of ours fails up to {} a second ({name})", rate(last.load)),
        |step| format!("Failures of ours begin at {} key exchanges a second ({name})", rate(step.load)),
    );
    if failed_share(last) == 0.0 {
        return format!("{first}; {theirs}.");
    }
    let ours = format!("at {} a second {} % of ours fail", rate(last.load), tenths(failed_share(last)));
    let beside = published(last.load.round() as u32).filter(|_| climb.ladder == Ladder::ToScale);
    let beside = beside.map_or_else(String::new, |step| {
        format!(
            ", and of theirs {} %, which the paper draws as {} %, over successes",
            tenths(step.failed_percent() / 100.0),
            tenths(step.failed_over_answered_percent() / 100.0)
        )
    });
    format!("{first}; {theirs}. In the highest step that counts, {ours}{beside}.")
}

/// The finding of the figure with this number; `None` if it is none under load.
pub(in super::super) fn of_figure(ladders: &Ladders<'_>, figure: u8) -> Option<String> {
    match figure {
        8 => Some(of_failures(ladders)),
        _ => CURVES.iter().find(|curve| curve.figure == figure).map(|curve| of_curve(ladders, curve)),
    }
}

/// The 95th percentile of d_CKE below the knee, beside the unloaded median.
pub(in super::super) fn tails(climb: &Climb<'_>) -> Option<String> {
    let unloaded = climb.reference(|record| record.times.d_cke.as_ref())?;
    let end = match climb.bend() {
        Bend::At { step, .. } => step.load,
        Bend::Nowhere { .. } => f64::INFINITY,
        Bend::NoReference | Bend::NoSteps => return None,
    };
    let below: Vec<(f64, f64)> = climb
        .counted()
        .filter(|step| step.load < end)
        .filter_map(|step| Some((step.load, step.record.times.d_cke.as_ref()?.p95_ns as f64)))
        .collect();
    let (load, most) = below.iter().copied().rev().max_by(|left, right| left.1.total_cmp(&right.1))?;
    Some(format!(
        "below the knee the largest 95th percentile of d_CKE of ours is {}, at {} a second ({}); the median without \
         load is {}.",
        ns(most),
        rate(load),
        climb.ladder.name(),
        ns(unloaded)
    ))
}
