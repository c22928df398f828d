//! A small study of what authentication costs, rendered every way and compared with files in `golden/`.
//!
//! `AUTHENTICK_UPDATE_GOLDEN=1 cargo test -p authentick-report` writes the files anew; look at the difference before
//! committing it.

mod golden_file;

use std::collections::BTreeMap;

use authentick_report::Host;
use authentick_report::load::Limit;
use authentick_report::study::field::{
    Cell, FieldRecord, Latency, Level, Points, Scheme, Server, Settings, Trial, report,
};
use golden_file::{check, read};

/// Microseconds of processor time of an answer in three rounds, and octets of a request.
const COSTS: [(Server, Scheme, [f64; 3], u32); 8] = [
    (Server::Authentick, Scheme::Plain, [4.0, 4.1, 3.9], 48),
    (Server::Authentick, Scheme::Cmac128, [4.2, 4.2, 4.0], 68),
    (Server::Authentick, Scheme::Nts15, [4.4, 4.5, 4.5], 224),
    (Server::Chrony, Scheme::Plain, [5.2, 5.0, 5.1], 48),
    (Server::Chrony, Scheme::Cmac128, [5.5, 5.4, 5.3], 68),
    (Server::Chrony, Scheme::Nts15, [7.6, 7.5, 8.0], 228),
    (Server::NtpdRs, Scheme::Plain, [9.0, 9.5, 9.1], 48),
    (Server::NtpdRs, Scheme::Nts15, [14.0, 14.2, 13.5], 224),
];

fn trial(server: Server, scheme: Scheme, round: u32, cpu_us: f64, request_size: u32) -> Trial {
    // One round of chrony's NTS was disturbed; one of its plain rounds was limited by something else.
    let (is_disturbed, is_limited) = match (server, scheme, round) {
        (Server::Chrony, Scheme::Nts15, 3) => (true, false),
        (Server::Chrony, Scheme::Plain, 2) => (false, true),
        _ => (false, false),
    };
    Trial {
        cell: Cell { server, scheme },
        round,
        answered_rps: (0.9e6 / cpu_us).round(),
        loss_ratio: if server == Server::NtpdRs { 0.002 } else { 0.0 },
        cpu_us: Some(cpu_us),
        server_share: Some(0.9),
        memory_octets: Some(if server == Server::Authentick { 14 << 20 } else { 5 << 20 }),
        request_size,
        response_size: request_size,
        limited_by: if is_limited { Limit::Path } else { Limit::Server },
        why_invalid: is_disturbed
            .then(|| "the generator\u{2019}s host dropped 3 answers <unread>".to_owned()),
    }
}

/// Key exchanges of two servers.
fn exchanges() -> impl Iterator<Item = Trial> {
    (1..=3).flat_map(|round: u32| {
        let spread = f64::from(round) * 3.0;
        [(Server::Authentick, 110.0), (Server::Chrony, 260.0)].map(|(server, us)| Trial {
            limited_by: Limit::Generator,
            server_share: Some(if server == Server::Chrony { 0.65 } else { 0.25 }),
            ..trial(server, Scheme::Nts15, round, us + spread, 0)
        })
    })
}

/// Latencies of the first round.
fn latencies() -> impl Iterator<Item = Latency> {
    let cells = COSTS.iter().filter(|(_, scheme, ..)| *scheme != Scheme::Cmac128);
    cells.flat_map(|&(server, scheme, us, _)| {
        Level::ALL.map(|level| {
            let p50 = ((15.0 + us[0]) / (1.1 - level.share())).round();
            let is_late = server == Server::NtpdRs && level == Level::Most;
            Latency {
                cell: Cell { server, scheme },
                level,
                round: 1,
                offered_rps: (0.9e6 / us[0] * level.share()).round(),
                answered_rps: (0.9e6 / us[0] * level.share()).round(),
                loss_ratio: 0.0,
                server_share: Some(level.share()),
                latency_us: Some(Points { p50, p99: 4.0 * p50 }),
                offset_error_us: Some(Points { p50: 3.0, p99: 20.0 }),
                why_invalid: is_late.then(|| "the generator was late".to_owned()),
            }
        })
    })
}

fn record() -> FieldRecord {
    let trials = (1..=3).flat_map(|round: u32| {
        COSTS.iter().map(move |&(server, scheme, us, size)| {
            trial(server, scheme, round, us[round as usize - 1], size)
        })
    });
    FieldRecord {
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        command: "authentick study run field --quick --out study".to_owned(),
        started_unix_s: 1_790_000_000,
        host: Host {
            cpu: "Example CPU @ 2.50GHz".to_owned(),
            cpu_count: 2,
            online_cpu_count: None,
            cpu_quota_millicpus: None,
            memory_octets: Some(8 << 30),
            kernel: "Linux 6.12.0".to_owned(),
        },
        settings: Settings {
            quick: true,
            servers: vec![Server::Authentick, Server::Chrony, Server::NtpdRs],
            given: Vec::new(),
            schemes: vec![Scheme::Plain, Scheme::Cmac128, Scheme::Nts15],
            rounds: 3,
            trial_seconds: 2.0,
            warm_up_seconds: 0.2,
            window: 128,
            exchange_window: 16,
            latency_rounds: 1,
            latency_seconds: 2.0,
        },
        remarks: vec!["Servers and generator share one <machine>.".to_owned()],
        titles: BTreeMap::from([
            (Server::Authentick, "authentick 0.1.0".to_owned()),
            (Server::Chrony, "chrony 4.3".to_owned()),
            (Server::NtpdRs, "ntpd-rs 1.6.2".to_owned()),
        ]),
        trials: trials.collect(),
        exchanges: exchanges().collect(),
        latencies: latencies().collect(),
    }
}

#[test]
fn text_is_golden() {
    check("field.txt", &report(&record()).text());
}

#[test]
fn html_is_golden() {
    check("field.html", &report(&record()).page());
}

/// Guards the stored format: records that are written today must be read by every later version.
#[test]
fn json_is_golden_and_is_read_back() {
    check("field.json", &record().to_json());
    assert!(FieldRecord::from_json(&read("field.json")).is_ok_and(|found| found == record()));
}
