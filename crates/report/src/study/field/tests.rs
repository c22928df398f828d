//! A record by hand with round figures, and what is refused of one.

use super::*;

pub(crate) fn settings() -> Settings {
    Settings {
        quick: true,
        servers: vec![Server::Authentick, Server::Chrony],
        schemes: Scheme::MAIN.to_vec(),
        rounds: 3,
        trial_seconds: 1.0,
        warm_up_seconds: 0.2,
        window: 64,
        exchange_window: 16,
        latency_rounds: 1,
        latency_seconds: 1.0,
    }
}

pub(crate) fn plan() -> Plan {
    let found = Found { remarks: vec!["Servers have the first processor.".to_owned()], titles: titles() };
    crate::study::tests::plan_of(settings(), found, settings().tasks())
}

fn titles() -> BTreeMap<Server, String> {
    BTreeMap::from([
        (Server::Authentick, "authentick 0.1.0".to_owned()),
        (Server::Chrony, "chrony 4.3".to_owned()),
    ])
}

/// Processor time of an answer, in microseconds, and octets of a request.
fn figures(cell: Cell) -> (f64, u32) {
    match (cell.server, cell.scheme) {
        (Server::Authentick, Scheme::Plain) => (4.0, 48),
        (Server::Authentick, Scheme::Cmac128) => (4.0 / 0.96, 68),
        (Server::Authentick, Scheme::Antp) => (4.0 / 0.93, 156),
        (Server::Authentick, _) => (4.4, 224),
        (_, Scheme::Plain) => (5.0, 48),
        (_, Scheme::Cmac128) => (5.5, 68),
        (..) => (8.0, 228),
    }
}

/// Everything measured, in three rounds.
pub(crate) fn record() -> FieldRecord {
    let mut record = FieldRecord::merged(&plan(), []);
    record.remarks.truncate(1);
    for task in settings().tasks() {
        match Measure::of(&task.id).unwrap_or_else(|| panic!("{task:?}")) {
            Measure::Capacity(cell, round) => {
                let (us, request_size) = figures(cell);
                record.trials.push(trial(cell, round, us, request_size));
            }
            Measure::Exchange(server, round) => {
                let us = if server == Server::Authentick { 100.0 } else { 250.0 };
                let cell = Cell { server, scheme: server.exchanges_for() };
                record.exchanges.push(trial(cell, round, us, 0));
            }
            Measure::Latency(cell, level, round) => record.latencies.push(latency(cell, level, round)),
        }
    }
    record
}

fn trial(cell: Cell, round: u32, us: f64, request_size: u32) -> Trial {
    Trial {
        cell,
        round,
        answered_rps: (0.95e6 / us).round(),
        loss_ratio: 0.0,
        cpu_us: Some(us),
        server_share: Some(0.95),
        memory_octets: Some(12 << 20),
        request_size,
        limited_by: Limit::Server,
        why_invalid: None,
    }
}

/// An answer takes 15 us more than its processor time, and one in a hundred twice as long.
fn latency(cell: Cell, level: Level, round: u32) -> Latency {
    let (us, _) = figures(cell);
    let offered_rps = (0.95e6 / us).round() * level.share();
    Latency {
        cell,
        level,
        round,
        offered_rps,
        answered_rps: offered_rps,
        loss_ratio: 0.0,
        server_share: Some(level.share()),
        latency_us: Some(Points { p50: 15.0 + us, p99: 2.0 * (15.0 + us) }),
        offset_error_us: Some(Points { p50: 2.0, p99: 8.0 }),
        why_invalid: None,
    }
}

#[test]
fn record_survives_its_file() {
    assert!(FieldRecord::from_json(&record().to_json()).unwrap() == record());
}

#[test]
fn records_of_tasks_make_one() {
    let (plan, whole) = (plan(), record());
    let part = |change: &dyn Fn(&mut FieldRecord)| {
        let mut part = FieldRecord::of(&plan);
        change(&mut part);
        part
    };
    let trials = whole.trials.iter().map(|trial| part(&|part| part.trials.push(trial.clone())));
    let exchanges = whole.exchanges.iter().map(|trial| part(&|part| part.exchanges.push(trial.clone())));
    let latencies = whole.latencies.iter().map(|trial| part(&|part| part.latencies.push(trial.clone())));
    let merged = FieldRecord::merged(&plan, trials.chain(exchanges).chain(latencies).collect::<Vec<_>>());
    assert_eq!(merged.trials, whole.trials);
    assert_eq!(merged.exchanges, whole.exchanges);
    assert_eq!(merged.latencies, whole.latencies);
}

#[test]
fn wrong_records_are_refused_with_the_reason() {
    let error = |text: &str| FieldRecord::from_json(text).unwrap_err().to_string();
    let text = record().to_json();
    assert!(error(&text.replace("field-study/1", "field-study/2")).contains("authentick-field-study/2"));
    assert!(error(&text.replace("\"trials\":", "\"tries\":")).contains("missing field `trials`"));
    assert!(error("{").contains("not a record of study run field"));
    type Change = fn(&mut FieldRecord);
    let changes: [(Change, &str); 8] = [
        (
            |record| record.exchanges[0].loss_ratio = -0.5,
            "exchanges, NTS, AEAD 15 at authentick, round 1: a rate",
        ),
        (
            |record| record.latencies[1].latency_us = Some(Points { p50: 2.0, p99: 1.0 }),
            "latencies, plain NTP at chrony, 50 %, round 1: a rate, a share or a time",
        ),
        (
            |record| record.latencies[1] = record.latencies[0].clone(),
            "latencies, plain NTP at authentick, 50 %, round 1: it is there twice",
        ),
        (|record| record.trials[0].loss_ratio = 1.5, "plain NTP at authentick, round 1: a rate"),
        (|record| record.trials[1].cpu_us = Some(0.0), "plain NTP at chrony, round 1"),
        (|record| record.trials[1].answered_rps = -1.0, "plain NTP at chrony, round 1"),
        (|record| record.trials[1].server_share = Some(-0.1), "plain NTP at chrony, round 1"),
        (|record| record.trials[1] = record.trials[0].clone(), "round 1: it is there twice"),
    ];
    for (change, part) in changes {
        let mut record = record();
        change(&mut record);
        assert!(error(&record.to_json()).contains(part), "{part}: {}", error(&record.to_json()));
    }
}
