//! What the steps say, one by one.

use super::curve::Curve;
use super::failures::{Class, failed_share, tenths};
use super::{Climb, Step};
use crate::published::nts::curves::{Step as Published, step as published};
use crate::render::{Medium, Table, Weight, or_absent, or_empty};
use crate::study::nts::rung::RungRecord;
use crate::units::{count, rate, time};

fn ns(value: f64) -> String {
    time(value.round() as u64)
}

/// The published step at the load of one of ours.
fn theirs(step: &Step<'_>) -> Option<&'static Published> {
    published(step.load.round() as u32)
}

/// Key exchanges a second of all clients that were to begin, and of them those that ended well, by the share of what
/// was due: the background begins a little before its step is counted.
fn offered_and_answered(record: &RungRecord) -> [f64; 2] {
    let offered = record.measured_rps + record.background_rps;
    let all = || std::iter::once(&record.exchanges).chain(&record.background);
    let due = all().fold(0, |sum: u64, outcomes| sum.saturating_add(outcomes.scheduled));
    let answered = all().fold(0, |sum: u64, outcomes| sum.saturating_add(outcomes.answered));
    [offered, offered * answered as f64 / due.max(1) as f64]
}

fn of<'a>(step: &Step<'a>) -> &'a RungRecord {
    step.record
}

/// Every step of a ladder.
pub(super) fn steps(climb: &Climb<'_>) -> Table {
    let times = |step: &Step<'_>| step.record.times.d_cke.clone();
    let table = Table::of(format!("Steps, {}", climb.ladder.name()), climb.steps.iter().copied())
        .number("L", |step: &Step<'_>| rate(step.load))
        .number_on(Medium::Page, "offered /s", |step| rate(of(step).measured_rps + of(step).background_rps))
        .number("answered /s", |step| rate(offered_and_answered(of(step))[1]))
        // A terminal has no room for each class.
        .number_on(Medium::Text, "failed", |step| count(of(step).exchanges.failed()));
    let table = Class::ALL.into_iter().fold(table, |table, class| {
        table.number_on(Medium::Page, class.name(), |step| count(class.count(&of(step).exchanges)))
    });
    table
        .number("d_CKE p50", |step| or_absent(times(step).map(|times| time(times.p50_ns))))
        .number("d_CKE p95", |step| or_absent(times(step).map(|times| time(times.p95_ns))))
        .number("Listen-Overflows", |step| or_absent(of(step).accept_overflows.map(count)))
        .number("SYNs again", |step| or_absent(of(step).syn_repeats.map(count)))
        .number_on(Medium::Page, "server\u{2019}s busiest thread", |step| {
            or_absent(of(step).server_share.map(|share| format!("{} %", tenths(share))))
        })
        .words("does not count", |step| or_empty(of(step).why_invalid.as_ref()))
        .weighed(|step| Weight::of(step.counts()))
        .noted([
            "What failed is of the measured client\u{2019}s key exchanges. Offered and answered are of all clients, in \
             key exchanges a second of this machine; what was due in a step counts as answered by the deadline, after \
             its end too. ListenOverflows: connections that found the accept queue full. SYNs again: TCPSynRetrans of \
             the clients. Busiest thread: for what share of the step it ran.",
        ])
}

/// A time of each step of ours, beside theirs.
pub(super) fn beside(climb: &Climb<'_>, curve: &Curve) -> Table {
    let of_theirs = |value: f64| ns(curve.theirs(value));
    let raw = move |step: &Step<'_>, index: usize| {
        or_absent(curve.raw.and_then(|raw| theirs(step).map(|step| of_theirs(raw(step)[index]))))
    };
    let drawn = |step: &Step<'_>| theirs(step).map(curve.drawn);
    let ours = |step: &Step<'_>| (curve.ours)(step.record).cloned();
    let name = format!("Figure {}, {}", curve.figure, curve.measure.symbol());
    let table = Table::of(name, climb.steps.iter().copied()).number("L", |step: &Step<'_>| rate(step.load));
    let table = match curve.raw {
        Some(_) => table.number("theirs p50", |step| raw(step, 0)).number("theirs p95", |step| raw(step, 1)),
        None => table,
    };
    let table = table
        .number("printed, fastest 50 %", |step| {
            or_absent(drawn(step).map(|drawn| of_theirs(drawn.fastest_50)))
        })
        .number("printed, fastest 95 %", |step| {
            or_absent(drawn(step).map(|drawn| of_theirs(drawn.fastest_95)))
        })
        .number("ours p50", |step| or_absent(ours(step).map(|times| time(times.p50_ns))))
        .number("ours p95", |step| or_absent(ours(step).map(|times| time(times.p95_ns))))
        .number("ours, fastest 50 %", |step| or_absent(ours(step).map(|times| ns(times.fastest_50_ns))))
        .number("ours, fastest 95 %", |step| or_absent(ours(step).map(|times| ns(times.fastest_95_ns))));
    let table = match curve.equations {
        Some(equations) => table.number("ours p50, by the equations", |step| {
            or_absent(equations(step.record).map(|times| time(times.p50_ns)))
        }),
        None => table,
    };
    table.weighed(|step| Weight::of(step.counts())).noted([
        "Printed are means of the fastest half and of the fastest 95 %, which the paper\u{2019}s legend calls median \
         and 95th percentile.",
    ])
}

/// What failed in each step of ours, beside theirs.
pub(super) fn failures(climb: &Climb<'_>) -> Table {
    let share = |value: f64| format!("{} %", tenths(value));
    Table::of("Figure 8, shares of key exchanges", climb.steps.iter().copied())
        .number("L", |step: &Step<'_>| rate(step.load))
        .each(
            [Class::TimedOut, Class::Unavailable],
            |class| format!("theirs, {}", class.name()),
            |step, class| or_absent(theirs(step).map(|step| share(class.share_of_theirs(step)))),
        )
        .number("theirs, as drawn", |step| {
            or_absent(theirs(step).map(|step| share(step.failed_over_answered_percent() / 100.0)))
        })
        .number("ours, all classes", |step| share(failed_share(*step)))
        .each(
            Class::ALL,
            |class| format!("ours, {}", class.name()),
            |step, class| share(class.share(&step.record.exchanges)),
        )
        .weighed(|step| Weight::of(step.counts()))
        .noted(["As drawn: the paper\u{2019}s percentages are of both classes together, over the successes."])
}
