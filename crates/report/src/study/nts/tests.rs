//! Records by hand with round figures, and the report on them.

use std::collections::BTreeMap;

use super::*;
use crate::load::{Cause, Limit};
use crate::published::nts::statement;
use crate::render::page::assert_escaped;
use crate::run::Host;
use crate::study::{End, Outcome};

pub(crate) fn settings() -> Settings {
    Settings {
        quick: true,
        warm_ups: 10,
        study_rounds: 60,
        study_interval_seconds: 0.0,
        rounds: 60,
        long_rounds: 10,
        ladder_first_rps: 500,
        ladder_step_rps: 500,
        ladder_last_rps: 8_000,
        step_seconds: 3.0,
        core_steps: 16,
        deadline_seconds: 10.0,
        transfers: 3,
        operation_rounds: 5,
        operation_seconds: 0.03,
        session_window: 16,
        session_seconds: 0.5,
        rate_steps: 4,
        rate_seconds: 0.5,
    }
}

pub(crate) fn plan() -> Plan {
    let tasks = settings().tasks();
    crate::study::tests::plan_of(settings(), Found::default(), tasks)
}

/// A record of a task: each row a little longer than the one before, so that the first is also the median of two.
pub(crate) fn record(task: &str) -> UnloadedRecord {
    let cell = Cell::of(task).unwrap();
    let path = u64::from(cell.way().round_trip_us().max(20)) * 1000;
    let look_up = if cell.has_look_up() { 360_000 } else { 0 };
    let exchange = [look_up, 90_000, path + 50_000, path + 1_480_000, path + 210_000, 20_000];
    let of = |wait: u64, server: [u64; 7], more: u64| {
        Transfer([look_up, 40_000, 15_000, path + wait + more, 5_000], Some(server))
    };
    UnloadedRecord {
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        command: "authentick study run nts --quick --out study".to_owned(),
        started_unix_s: 1_790_000_000,
        host: host(),
        task: task.to_owned(),
        isolated: true,
        memcached: (cell.store() == Store::Memcached).then(|| "1.6.18".to_owned()),
        relayed: (cell.way() != Way::Near).then(|| Relayed {
            delay_us: f64::from(cell.way().round_trip_us()) / 2.0 - 20.0,
            echo_us: f64::from(cell.way().round_trip_us()),
            late_mean_us: 3.0,
            exchange_round_trips: Some([3, 3]),
            transfer_round_trips: Some([1, 1]),
        }),
        clock_ns: 21,
        failed: 0,
        exchanges: (0..2)
            .map(|more| {
                let mut client = exchange;
                client[4] += more;
                KeyExchange(client, Some([1_100_000, 300, 9_000, 7_000, 2_000]))
            })
            .collect(),
        transfers: (0..2).map(|more| of(300_000, [400, 100, 1_200, 1_000, 800, 600, 1_000], more)).collect(),
        plain: (0..2).map(|more| of(260_000, [400, 100, 0, 0, 0, 600, 0], more)).collect(),
    }
}

fn host() -> Host {
    Host {
        cpu: "A <b>processor".to_owned(),
        cpu_count: 2,
        online_cpu_count: None,
        cpu_quota_millicpus: None,
        kernel: "Linux 6.18".to_owned(),
        memory_octets: None,
    }
}

/// What the server of a ladder serves: 800 key exchanges a second with half a core.
pub(crate) fn scale(task: &str) -> ScaleRecord {
    let Some(Measure::Scale(ladder)) = Measure::of(task) else { panic!("{task} is no scale") };
    let to_scale = ladder == Ladder::ToScale;
    ScaleRecord {
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        command: "authentick study run nts --quick --out study".to_owned(),
        started_unix_s: 1_790_000_000,
        host: host(),
        task: task.to_owned(),
        isolated: true,
        memcached: (ladder.store() == Store::Memcached).then(|| "1.6.18".to_owned()),
        whole_core_rps: Some(1_600.0),
        generator_rps: 3_200.0,
        descriptors: Some(20_000),
        quota_share: to_scale.then_some(0.5),
        capacity_rps: if to_scale { 800.0 } else { 1_600.0 },
        factor: if to_scale { 0.4 } else { 1.0 },
    }
}

/// Values around a median: 1 % of them are ten times as long, a few are a little shorter.
fn around(median_ns: u64, count: u64) -> Option<Times> {
    let median = median_ns as i64;
    let (short, long) = (count * 3 / 10, count / 100);
    let pairs =
        vec![(median * 9 / 10, short), (median, count.saturating_sub(short + long)), (median * 10, long)];
    Times::of(&pairs.into())
}

/// A step of a ladder whose server ends at 2,000 of the paper's axis, or 1,600 a second: d_CKE is 2 ms below that and
/// 80 ms above, where a fifth of the exchanges find no connection and one in a hundred no answer.
pub(crate) fn rung(task: &str) -> RungRecord {
    let Some(Measure::Rung(ladder, rung)) = Measure::of(task) else { panic!("{task} is no step") };
    let to_scale = ladder == Ladder::ToScale;
    let factor = scale(&ladder.scale_id()).factor;
    let load_rps = match (rung, to_scale) {
        (Rung::Unloaded, _) => None,
        (Rung::Load(load), true) => Some(f64::from(load)),
        (Rung::Load(number), false) => Some(f64::from(number) * 200.0),
    };
    let all = load_rps.map_or(10.0, |load| load * factor);
    let measured = if load_rps.is_some() { 200.0_f64.min(all) } else { all };
    let scheduled = (measured * 3.0) as u64;
    let is_past = all > scale(&ladder.scale_id()).capacity_rps;
    let causes = match is_past {
        false => BTreeMap::new(),
        true => BTreeMap::from([
            (Cause::ConnectionTimedOut, scheduled / 5),
            (Cause::ResourceTemporarilyUnavailable, scheduled / 100),
        ]),
    };
    let answered = scheduled - causes.values().sum::<u64>();
    let background = (load_rps.is_some()).then(|| {
        let scheduled = ((all - measured) * 3.0) as u64;
        Outcomes { scheduled, sent: scheduled, answered: scheduled, causes: BTreeMap::new() }
    });
    let transfers = Outcomes {
        scheduled: answered * 3,
        sent: answered * 3,
        answered: answered * 3,
        ..Default::default()
    };
    RungRecord {
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        command: "authentick study run nts --quick --out study".to_owned(),
        started_unix_s: 1_790_000_000,
        host: host(),
        task: task.to_owned(),
        load_rps,
        factor,
        measured_rps: measured,
        background_rps: all - measured,
        seconds: 3.0,
        isolated: true,
        memcached: (ladder.store() == Store::Memcached).then(|| "1.6.18".to_owned()),
        quota_share: to_scale.then_some(0.5),
        exchanges: Outcomes { scheduled, sent: scheduled, answered, causes },
        transfers,
        background,
        accept_overflows: Some(if is_past { 400 } else { 0 }),
        accept_drops: Some(if is_past { 420 } else { 0 }),
        syn_repeats: Some(if is_past { 600 } else { 0 }),
        server_share: Some(if is_past { 0.5 } else { 0.1 }),
        throttled_share: Some(if is_past { 0.45 } else { 0.0 }),
        generator_busy_share: Some(0.3),
        lateness_p99_us: Some(80.0),
        clock_ns: Some(21),
        joined: answered * 4,
        unmatched: 0,
        why_invalid: None,
        times: RungTimes {
            d_cke: around(if is_past { 80_000_000 } else { 2_000_000 }, answered),
            d_cnts: around(400_000, answered * 3),
            d_ske: around(1_200_000, answered),
            d_ske_of_program: around(18_000, answered),
            d_sntp: around(700, answered * 3),
            d_snts: around(3_000, answered * 3),
            d_snts_of_program: around(4_000, answered * 3),
        },
    }
}

/// Operations alone: the first takes 1 us, the next 2 us, and so on; rounds differ by a twentieth.
pub(crate) fn operations(task: &str) -> OperationsRecord {
    let Some(Measure::Operations(of)) = Measure::of(task) else { panic!("{task} measures no operation") };
    let times = |(index, operation): (usize, Operation)| {
        let median = (index + 1) as f64 * 1_000.0;
        OperationTimes {
            operation,
            block: 4,
            count: 500,
            p5_ns: median * 0.9,
            p50_ns: median,
            mean_ns: median * 1.1,
            p95_ns: median * 1.5,
            rounds_ns: [0.95, 1.0, 1.05, 1.0, 1.0].map(|factor: f64| (median * factor).round()).into(),
        }
    };
    let all = Operation::ALL.into_iter().enumerate().filter(|(_, operation)| operation.of() == of);
    OperationsRecord {
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        command: "authentick study run nts --quick --out study".to_owned(),
        started_unix_s: 1_790_000_000,
        host: host(),
        task: task.to_owned(),
        path: "VAES-512".to_owned(),
        group: 16,
        memcached: (of == Operations::Memcached).then(|| "1.6.18".to_owned()),
        size: Some(if of == Operations::Memcached { 400 } else { 192 }),
        clock_ns: 42.0,
        operations: all.map(times).collect(),
    }
}

fn all_answered(scheduled: u64) -> Outcomes {
    Outcomes { scheduled, sent: scheduled, answered: scheduled, ..Outcomes::default() }
}

/// Sessions of a server whom an exchange takes 250 us and a transfer 5 us.
pub(crate) fn sessions(task: &str) -> SessionsRecord {
    let Some(Measure::Sessions(pattern)) = Measure::of(task) else { panic!("{task} has no sessions") };
    let (exchanges, transfers) = match pattern {
        Pattern::Exchanges => (1_000, 0),
        Pattern::Transfers(_) => (0, 100_000),
        Pattern::Sessions(count, _) => (1_000, 1_000 * u64::from(count)),
    };
    SessionsRecord {
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        command: "authentick study run nts --quick --out study".to_owned(),
        started_unix_s: 1_790_000_000,
        host: host(),
        task: task.to_owned(),
        isolated: true,
        window: 16,
        seconds: 0.5,
        exchanges: all_answered(exchanges),
        transfers: all_answered(transfers),
        answered_within: exchanges.max(transfers * u64::from(exchanges == 0)),
        server_cpu_seconds: Some((exchanges * 250 + transfers * 5) as f64 / 1e6),
        generator_busy_share: Some(0.9),
        why_invalid: None,
    }
}

/// Rates of 24,000, 48,000 and 96,000 transfers a second, of the last of which a fifth is lost.
pub(crate) fn rates(task: &str) -> RatesRecord {
    let Some(Measure::Rates(workers)) = Measure::of(task) else { panic!("{task} has no rates") };
    let step = |offered_rps: f64, lost: u64, p50_ns: u64, limited_by| {
        let mut transfers = all_answered(offered_rps as u64);
        transfers.answered -= lost;
        transfers.causes.extend((lost > 0).then_some((Cause::Timeout, lost)));
        RateStep {
            offered_rps,
            seconds: 1.0,
            transfers,
            p50_ns: Some(p50_ns),
            p95_ns: Some(p50_ns * 3),
            server_us: Some(5.5),
            generator_busy_share: Some(0.6),
            limited_by,
            why_invalid: None,
        }
    };
    RatesRecord {
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        command: "authentick study run nts --quick --out study".to_owned(),
        started_unix_s: 1_790_000_000,
        host: host(),
        task: task.to_owned(),
        isolated: true,
        shares_processor: workers == Workers::Two,
        closed_rps: 80_000.0,
        closed_busy_share: Some(0.97),
        steps: vec![
            step(24_000.0, 0, 120_000, Limit::Nothing),
            step(48_000.0, 0, 150_000, Limit::Nothing),
            step(96_000.0, 19_200, 400_000_000, Limit::Server),
        ],
    }
}

/// Every cell.
pub(crate) fn records() -> Vec<UnloadedRecord> {
    Cell::all().into_iter().map(|cell| record(&cell.id())).collect()
}

/// Everything measured.
pub(crate) fn all_records() -> Records {
    let mut records = Records { unloaded: records(), ..Records::default() };
    for task in settings().tasks() {
        match Measure::of(&task.id).unwrap() {
            Measure::Cell(_) => {}
            Measure::Operations(_) => records.operations.push(operations(&task.id)),
            Measure::Sessions(_) => records.sessions.push(sessions(&task.id)),
            Measure::Rates(_) => records.rates.push(rates(&task.id)),
            Measure::Scale(_) => records.scales.push(scale(&task.id)),
            Measure::Rung(..) => records.rungs.push(rung(&task.id)),
        }
    }
    records
}

fn ended(outcome: Outcome, why: Option<&str>) -> Option<End> {
    Some(End {
        outcome,
        why: why.map(str::to_owned),
        sha256: why.is_none().then(|| "0f".repeat(32)),
        started_unix_s: 1,
        seconds: 2.0,
        boot_id: None,
        steal_seconds: None,
    })
}

/// A text without its line breaks.
fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn report_has_theirs_beside_ours_and_answers_every_statement() {
    let mut plan = plan();
    for task in &mut plan.tasks {
        task.end = ended(Outcome::Measured, None);
    }
    let text = report(&plan, &all_records()).text();
    for part in [
        "This is a short study (--quick)",
        "Table II, theirs and ours, medians:",
        "Table II, ours in both readings:",
        "Figure 4, client:",
        "Figure 5, server:",
        "Equation (6) and a plain transfer:",
        "What the path makes of it:",
        "Steps, to scale:",
        "Key exchange bends at 2,500 a second here (to scale); the paper says about 2,000, and by its data",
        "Steps, a whole core:",
        "Figure 8: key exchanges that failed",
        "ours bends at 2,500 key exchanges a second",
        "2.26 ms",
        "80.8 us",
        "Its data: 117.757, cut off",
        "3 and 1 round trips",
        "Operations alone:",
        "would be 20.0 us, 1.09 times d_SKE",
        "Beyond the paper",
        "one exchange is worth 50 transfers",
        "NTS alone is carried up to 48,000 transfers a second",
    ] {
        assert!(unfolded(&text).contains(part), "{part}\n{text}");
    }
    assert_eq!(unfolded(&text).matches(" Ours: ").count(), statement::all().count());
    assert!(text.lines().all(|line| line.trim_end() == line));
    assert!(!text.contains("not measured yet"), "{text}");
}

#[test]
fn study_without_a_record_says_what_is_missing_and_shows_no_figure() {
    let mut plan = plan();
    plan.tasks[0].end = ended(Outcome::Infeasible, Some("there is <script> no memcached"));
    let (text, page) = (report(&plan, &Records::default()).text(), report(&plan, &Records::default()).page());
    assert!(
        text.contains("1 of 78 tasks is not measured: unloaded: there is <script> no memcached."),
        "{text}"
    );
    assert!(unfolded(&text).contains("77 of 78 tasks are not measured yet"), "{text}");
    assert!(!page.contains("<figure>") && !page.contains("<script"));
    // Published figures and data stand there all the same.
    assert_eq!(unfolded(&text).matches(" Its data: ").count(), statement::all().count());
}

#[test]
fn page_is_whole_and_escapes_what_comes_from_records() {
    let (mut plan, mut records) = (plan(), all_records());
    plan.found.remarks.push("<script>".to_owned());
    records.unloaded[0].memcached = Some("<i>".to_owned());
    let page = report(&plan, &records).page();
    assert_escaped(&page);
    // Table II, Figures 4 and 5, each of 7 to 12 to scale and on a whole core, sessions and rates.
    assert_eq!(page.matches("<figure>").count(), 3 + 6 * 2 + 2);
}

/// Theirs, and ours in both readings where there are two: five measures, each in both sizes of its picture.
#[test]
fn figures_4_and_5_have_both_readings_and_mark_where_each_begins_and_ends() {
    let page = report(&plan(), &all_records()).page();
    let curves = |names: &str| page.matches(&format!("<title>{names}: the smallest, ")).count();
    for measure in ["d_CNTS", "d_CKE", "d_SKE", "d_SNTS"] {
        for names in ["theirs", "ours, as their program did", "ours, by the equations"] {
            assert_eq!(curves(&format!("{measure}, {names}")), 2, "{measure}, {names}");
        }
    }
    assert_eq!((curves("d_SNTP, theirs"), curves("d_SNTP, ours")), (2, 2));
    for said in [
        "d_CKE, theirs: the largest, 5.49 ms",
        "d_SKE, ours, as their program did: the largest, 18.3\u{a0}\u{b5}s",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(page.contains("d_CKE: ours, as their program did, from "));
}

#[test]
fn records_cannot_steer_the_terminal() {
    let (mut plan, mut records) = (plan(), all_records());
    plan.found.remarks.push("\u{9b}31m".to_owned());
    records.unloaded[0].memcached = Some("\u{1b}[2J".to_owned());
    assert!(report(&plan, &records).text().chars().all(|c| c == '\n' || !c.is_control()));
}
