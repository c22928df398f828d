//! A record by hand with round figures, and what is refused of one.

use super::*;

pub(crate) fn settings() -> Settings {
    Settings {
        quick: true,
        trial_seconds: 1.0,
        throughput_trials: 2,
        latency_trials: 1,
        latency_seconds: 1.0,
        search_seconds: 0.3,
        measured_rps: 200.0,
        long_path_ms: 70.0,
    }
}

pub(crate) fn plan() -> Plan {
    let tasks = settings().tasks();
    crate::study::tests::plan_of(settings(), Found::default(), tasks)
}

fn times(us: f64) -> Times {
    Times { p50_us: us, p99_us: 3.0 * us, mean_us: 1.2 * us }
}

/// Rates and median latencies over the short path at both levels, of [`Subject::ALL`].
const ROWS: [(f64, [f64; 2]); 7] = [
    (250_000.0, [100.0, 200.0]),
    (150_000.0, [120.0, 300.0]),
    (140_000.0, [120.0, 250.0]),
    (20_000.0, [150.0, 400.0]),
    (4_000.0, [350.0, 1200.0]),
    (200_000.0, [110.0, 240.0]),
    (180_000.0, [105.0, 230.0]),
];

/// The rate of a row.
fn rate_of(subject: Subject) -> f64 {
    let row = Subject::ALL.iter().position(|one| *one == subject).expect("it has a throughput");
    ROWS[row].0
}

fn latency(subject: Subject, level: Level, path: Path, us: f64) -> Latency {
    Latency {
        subject,
        background: subject.background(),
        level,
        path,
        background_rps: level.share() * rate_of(subject.background()),
        answered: 200,
        failed: 0,
        times: Some(times(us)),
        parts: None,
        why_invalid: None,
    }
}

/// Everything measured, with two trials of throughput and one of latency.
pub(crate) fn record() -> AntpRecord {
    let mut record = AntpRecord {
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        command: "authentick study run antp --quick --out study".to_owned(),
        started_unix_s: 1_790_000_000,
        host: Host {
            cpu: "A <b>processor".to_owned(),
            cpu_count: 2,
            online_cpu_count: None,
            cpu_quota_millicpus: None,
            kernel: "Linux 6.18".to_owned(),
            memory_octets: None,
        },
        settings: settings(),
        remarks: vec!["Server and generators share a machine.".to_owned()],
        primitives: [(Suite::Ecdh, 28.0), (Suite::Rsa, 196.0)]
            .map(|(suite, library_us)| Primitive {
                suite,
                library_us,
                decapsulation_us: library_us + 2.0,
                encapsulation_us: 60.0,
            })
            .to_vec(),
        capacities: Vec::new(),
        trials: Vec::new(),
        latencies: Vec::new(),
    };
    let add = |record: &mut AntpRecord, subject: Subject, path, rps: f64, request_size| {
        let capacity = Capacity {
            subject,
            path,
            rps: Some(rps),
            searched_rps: None,
            window: None,
            request_size,
            remark: None,
        };
        record.capacities.push(capacity);
        let public_key_share = (subject.phase == Phase::Exchange).then_some(0.6);
        record.trials.extend([0.995, 1.005].map(|part| Trial {
            subject,
            path,
            offered_rps: rps,
            answered_rps: (rps * part).round(),
            loss_ratio: 0.004,
            server_share: Some(0.95),
            public_key_share,
            why_invalid: None,
        }));
    };
    for (subject, (rps, us)) in Subject::ALL.into_iter().zip(ROWS) {
        add(&mut record, subject, Path::Short, rps, 152);
        for (level, us) in Level::ALL.into_iter().zip(us) {
            record.latencies.push(latency(subject, level, Path::Short, us));
            record.latencies.push(latency(subject, level, Path::Long, us + 70_000.0));
        }
    }
    for (suite, rps) in [(Suite::Ecdh, 100_000.0), (Suite::Rsa, 90_000.0)] {
        add(&mut record, Subject::new(Phase::Negotiation, suite), Path::Gigabit, rps, 1072);
        for level in Level::ALL {
            for (path, round_us) in [(Path::Short, 0.0), (Path::Long, 70_000.0)] {
                let of = |us: f64| Times { p50_us: us, p99_us: us, mean_us: us };
                let whole = 700.0 + 3.0 * round_us;
                record.latencies.push(Latency {
                    times: Some(of(whole)),
                    parts: Some(Parts {
                        negotiation: of(130.0 + round_us),
                        exchange: of(160.0 + round_us),
                        time: of(110.0 + round_us),
                        phases: of(400.0 + 3.0 * round_us),
                        client_crypto: of(280.0),
                    }),
                    ..latency(Subject::new(Phase::Complete, suite), level, path, whole)
                });
            }
        }
    }
    record
}

#[test]
fn record_survives_its_file() {
    assert!(AntpRecord::from_json(&record().to_json()).unwrap() == record());
}

#[test]
fn wrong_records_are_refused_with_the_reason() {
    let error = |text: &str| AntpRecord::from_json(text).unwrap_err().to_string();
    let text = record().to_json();
    assert!(error(&text.replace("antp-study/1", "antp-study/2")).contains("authentick-antp-study/2"));
    assert!(error(&text.replace("\"trials\":", "\"tries\":")).contains("missing field `trials`"));
    assert!(error("{").contains("not a record of study run antp"));
    type Change = fn(&mut AntpRecord);
    let changes: [(Change, &str); 7] = [
        (|record| record.primitives[1].library_us = 0.0, "primitives, RSA: a time"),
        (|record| record.capacities[0].rps = Some(-1.0), "capacities, plain NTP: not above zero"),
        (|record| record.capacities[1].subject = Subject::PLAIN, "capacities, plain NTP: it is there twice"),
        (|record| record.trials[0].loss_ratio = 1.5, "trials, plain NTP: a rate or a share"),
        (|record| record.trials[3].server_share = Some(-0.1), "trials, negotiation, ECDH"),
        (
            |record| record.latencies[0].times = Some(Times { p50_us: 2.0, p99_us: 1.0, mean_us: 1.0 }),
            "latencies, plain NTP: times",
        ),
        (|record| record.latencies[4].background_rps = -1.0, "latencies, negotiation, ECDH: times or a rate"),
    ];
    for (change, part) in changes {
        let mut record = record();
        change(&mut record);
        assert!(error(&record.to_json()).contains(part), "{part}: {}", error(&record.to_json()));
    }
}
