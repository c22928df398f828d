//! One small record, rendered every way and compared with files in `golden/`.
//!
//! `AUTHENTICK_UPDATE_GOLDEN=1 cargo test -p authentick-report` writes the files anew; look at the difference before
//! committing it.

mod golden_file;

use authentick_report::run::{csv, report};
use authentick_report::{Exchange, Failure, Host, KeyExchange, RunRecord, SchemeRun};
use golden_file::{check, read};

/// Exchanges a millisecond apart, of which `whole_ns` took the given times, and the server 300 ns.
fn exchanges(first_ns: i64, offset_ns: i64, whole_ns: &[u64]) -> Vec<Exchange> {
    let exchange = |(index, &whole_ns): (usize, &u64)| {
        let sent_ns = first_ns + 1_000_000 * index as i64;
        let delay_ns = whole_ns as i64 - 8_000;
        let server_receive_ns = sent_ns + delay_ns / 2 + offset_ns;
        Exchange {
            sent_ns,
            server_receive_ns,
            server_transmit_ns: server_receive_ns + 300,
            arrived_ns: sent_ns + delay_ns + 300,
            offset_ns,
            delay_ns,
            whole_ns,
        }
    };
    whole_ns.iter().enumerate().map(exchange).collect()
}

fn record() -> RunRecord {
    RunRecord {
        command: "authentick demo".to_owned(),
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        started_unix_s: 1_783_080_000,
        host: Host {
            cpu: "Example CPU @ 2.50GHz".to_owned(),
            cpu_count: 4,
            online_cpu_count: None,
            cpu_quota_millicpus: None,
            memory_octets: None,
            kernel: "Linux 6.12.0".to_owned(),
        },
        path: "loopback".to_owned(),
        schemes: vec![
            SchemeRun {
                scheme: "plain".to_owned(),
                authentication: "none".to_owned(),
                key_exchange: None,
                antp_phases: None,
                exchanges: exchanges(
                    1_783_080_000_000_000_000,
                    80,
                    &[61_204, 58_930, 59_871, 64_019, 97_455, 60_366],
                ),
                failures: Vec::new(),
            },
            SchemeRun {
                scheme: "nts".to_owned(),
                authentication: "AES-SIV-CMAC-256".to_owned(),
                key_exchange: Some(KeyExchange {
                    connect_ns: 55_100,
                    handshake_ns: 1_204_000,
                    exchange_ns: 48_700,
                }),
                antp_phases: None,
                exchanges: exchanges(
                    1_783_080_001_000_000_000,
                    -420,
                    &[81_116, 77_402, 78_951, 1_312_000, 79_640, 83_008, 78_533],
                ),
                failures: vec![Failure { cause: "no answer".to_owned(), count: 1 }],
            },
        ],
    }
}

#[test]
fn text_table_is_golden() {
    check("run.txt", &report(&record()).text());
}

#[test]
fn csv_is_golden() {
    check("run.csv", &csv(&record()));
}

#[test]
fn html_is_golden() {
    check("run.html", &report(&record()).page());
}

/// Guards the stored format: records that are written today must be read by every later version.
#[test]
fn json_is_golden_and_is_read_back() {
    check("run.json", &record().to_json());
    assert_eq!(RunRecord::from_json(&read("run.json")).unwrap(), record());
}
