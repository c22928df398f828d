//! What a load run's record and rows say of a step.

use authentick_report::load::span_rows::{SpanRow, Timed};
use authentick_report::load::{Histogram, Operation, ServerUse, Step, Traffic};
use authentick_report::study::Task;
use authentick_report::study::nts::{Outcomes, Plan, RungRecord, RungTimes, ScaleRecord, Times};

use super::{Climbed, Offer};

/// The record of the step that `task` is, on the ladder that `scale` is of.
pub(in crate::nts) fn rung_record(
    climbed: &Climbed,
    plan: &Plan,
    task: &Task,
    scale: &ScaleRecord,
) -> RungRecord {
    let Climbed { offer, step, rows, memcached, isolated } = climbed;
    let Offer { load_rps, measured_rps, background_rps } = *offer;
    let server = step.server.as_ref();
    let traffic: Option<&Traffic> = server.and_then(|server: &ServerUse| server.traffic.as_ref());
    let spans = step.spans.as_ref();
    RungRecord {
        version: plan.version.clone(),
        commit: plan.commit.clone(),
        command: plan.command.clone(),
        started_unix_s: plan.started_unix_s,
        host: plan.machine.clone(),
        task: task.id.clone(),
        load_rps,
        factor: scale.factor,
        measured_rps,
        background_rps,
        seconds: step.seconds,
        isolated: *isolated,
        memcached: memcached.clone(),
        quota_share: scale.quota_share,
        exchanges: Outcomes::from(&step.tally),
        transfers: step.accompanying.as_ref().map(Outcomes::from).unwrap_or_default(),
        background: step.background.as_ref().map(Outcomes::from),
        accept_overflows: traffic.and_then(|traffic| traffic.accept_overflows),
        accept_drops: traffic.and_then(|traffic| traffic.accept_drops),
        syn_repeats: step.evidence.as_ref().and_then(|evidence| evidence.syn_repeats),
        server_share: server.and_then(|server| server.busiest_thread_share),
        throttled_share: server.and_then(|server| server.throttled_share),
        generator_busy_share: step.generator_busy_share,
        lateness_p99_us: step.lateness_us.map(|late| late.p99.max(0.0)),
        clock_ns: spans.and_then(|spans| spans.clock_ns),
        joined: spans.map_or(0, |spans| spans.joined),
        unmatched: spans.map_or(0, |spans| spans.unmatched),
        why_invalid: why_invalid(step),
        times: times(rows),
    }
}

/// Why a step says nothing about the server, if so.
pub(in crate::nts) fn why_invalid(step: &Step) -> Option<String> {
    let unknown = || "the load run does not say why".to_owned();
    (!step.valid).then(|| step.why_invalid.clone().unwrap_or_else(unknown))
}

/// The measures, of the rows that a step has.
fn times(rows: &[SpanRow]) -> RungTimes {
    let of = |of: &dyn Fn(&SpanRow) -> Option<u64>| {
        let values = rows.iter().filter_map(of).map(|ns| (i64::try_from(ns).unwrap_or(i64::MAX), 1));
        Times::of(&Histogram::from(values.collect::<Vec<_>>()))
    };
    let client = |operation| move |row: &SpanRow| (row.operation() == operation).then_some(row.client_ns);
    let ns = |time: Option<Timed>| time.map(|time| time.ns);
    RungTimes {
        d_cke: of(&client(Operation::KeyExchange)),
        d_cnts: of(&client(Operation::Transfer)),
        d_ske: of(&|row| ns(row.d_ske_from_accept())),
        d_ske_of_program: of(&|row| ns(row.d_ske_to_response())),
        d_sntp: of(&|row| ns(row.d_sntp())),
        d_snts: of(&|row| ns(row.d_snts())),
        d_snts_of_program: of(&|row| Some(row.d_snts()?.ns.saturating_add(row.d_fresh_cookie()?.ns))),
    }
}
