//! A record by hand with round figures, and what is refused of one.

use super::*;

pub(crate) fn settings() -> Settings {
    Settings {
        quick: true,
        servers: vec![Server::Authentick, Server::Chrony],
        given: Vec::new(),
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
        // All but plain ones are a little shorter than requests.
        response_size: if request_size > 68 { request_size - 8 } else { request_size },
        limited_by: Limit::Server,
        why_invalid: None,
    }
}

/// The same, and a server that somebody else runs, of whose processes nothing is known. It answers as often as chrony.
pub(crate) fn record_with_given() -> (FieldRecord, Server) {
    let mut record = record();
    let given: Given = "cfnts=198.18.0.1:123:4460".parse().unwrap();
    let server = Server::Given(given.name);
    record.settings.servers.push(server);
    record.settings.given.push(given);
    record.titles.insert(server, "cfnts at 198.18.0.1:123".to_owned());
    let is_asked = |cell: Cell| cell.server == Server::Chrony && server.lacks(cell.scheme).is_none();
    let of_given = |cell: Cell| Cell { server, ..cell };
    for trials in [&mut record.trials, &mut record.exchanges] {
        let chrony: Vec<Trial> = trials.iter().filter(|trial| is_asked(trial.cell)).cloned().collect();
        trials.extend(chrony.into_iter().map(|trial| Trial {
            cell: of_given(trial.cell),
            cpu_us: None,
            server_share: None,
            memory_octets: None,
            limited_by: Limit::Unknown,
            ..trial
        }));
    }
    let chrony: Vec<Latency> =
        record.latencies.iter().filter(|trial| is_asked(trial.cell)).cloned().collect();
    record.latencies.extend(chrony.into_iter().map(|trial| Latency {
        cell: of_given(trial.cell),
        server_share: None,
        offset_error_us: None,
        ..trial
    }));
    (record, server)
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
    let (given, _) = record_with_given();
    assert!(FieldRecord::from_json(&given.to_json()).unwrap() == given);
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
    let changes: [(Change, &str); 10] = [
        (
            |record| {
                let (found, server) = record_with_given();
                *record = found;
                record.settings.given.clear();
                record.settings.servers.retain(|known| *known != server);
            },
            "trials: the settings do not say where \"cfnts\" is",
        ),
        (
            |record| {
                let given = record_with_given().0.settings.given;
                record.settings.given = [given.clone(), given].concat();
            },
            "settings, given: \"cfnts\" names two servers",
        ),
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
