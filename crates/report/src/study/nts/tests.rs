//! Records by hand with round figures, and the report on them.

use super::*;
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
        host: Host {
            cpu: "A <b>processor".to_owned(),
            cpu_count: 2,
            kernel: "Linux 6.18".to_owned(),
            memory_octets: None,
        },
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

/// Everything measured.
pub(crate) fn records() -> Vec<UnloadedRecord> {
    Cell::all().into_iter().map(|cell| record(&cell.id())).collect()
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
    let text = report(&plan, &records()).text();
    for part in [
        "This is a short study (--quick)",
        "Table II, theirs and ours, medians:",
        "Table II, ours in both readings:",
        "Figure 4, client:",
        "Figure 5, server:",
        "Equation (6) and a plain transfer:",
        "What the path makes of it:",
        "2.26 ms",
        "80.8 us",
        "Its data: 117.757, cut off",
        "3 and 1 round trips",
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
    let (text, page) = (report(&plan, &[]).text(), report(&plan, &[]).page());
    assert!(
        text.contains("1 of 7 tasks is not measured: unloaded: there is <script> no memcached."),
        "{text}"
    );
    assert!(unfolded(&text).contains("6 of 7 tasks are not measured yet"), "{text}");
    assert!(!page.contains("<figure>") && !page.contains("<script"));
    // Published figures and data stand there all the same.
    assert_eq!(unfolded(&text).matches(" Its data: ").count(), statement::all().count());
}

#[test]
fn page_is_whole_and_escapes_what_comes_from_records() {
    let (mut plan, mut records) = (plan(), records());
    plan.found.remarks.push("<script>".to_owned());
    records[0].memcached = Some("<i>".to_owned());
    let page = report(&plan, &records).page();
    assert_escaped(&page);
    assert_eq!(page.matches("<figure>").count(), 2);
}

#[test]
fn records_cannot_steer_the_terminal() {
    let (mut plan, mut records) = (plan(), records());
    plan.found.remarks.push("\u{9b}31m".to_owned());
    records[0].memcached = Some("\u{1b}[2J".to_owned());
    assert!(report(&plan, &records).text().chars().all(|c| c == '\n' || !c.is_control()));
}
