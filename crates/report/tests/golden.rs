//! One small record, rendered every way and compared with files in `golden/`.
//!
//! `AUTHENTICK_UPDATE_GOLDEN=1 cargo test -p authentick-report` writes the files anew; look at the difference before
//! committing it.

use std::path::{Path, PathBuf};

use authentick_report::{Exchange, Failure, Format, Host, KeyExchange, RunRecord, SchemeRun, html, table};

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
        format: Format::V1,
        command: "authentick demo".to_owned(),
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        started_unix_s: 1_783_080_000,
        host: Host {
            cpu: "Example CPU @ 2.50GHz".to_owned(),
            cpu_count: 4,
            kernel: "Linux 6.12.0".to_owned(),
        },
        path: "loopback".to_owned(),
        schemes: vec![
            SchemeRun {
                scheme: "plain".to_owned(),
                authentication: "none".to_owned(),
                key_exchange: None,
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

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn read(name: &str) -> String {
    let path = path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn check(name: &str, rendered: &str) {
    if std::env::var_os("AUTHENTICK_UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(path(name), rendered).expect("golden files can be written");
    }
    let golden = read(name);
    if rendered == golden {
        return;
    }
    let mut pairs = golden.lines().zip(rendered.lines());
    let same = pairs.by_ref().take_while(|(expected, found)| expected == found).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(the end)").to_owned();
    panic!(
        "{} differs from what is rendered now, first in line {}:\n- {}\n+ {}\n\
         If that is meant, run again with AUTHENTICK_UPDATE_GOLDEN=1 and look at the difference.",
        path(name).display(),
        same + 1,
        line(&golden),
        line(rendered)
    );
}

#[test]
fn text_table_is_golden() {
    check("run.txt", &table::text(&record()));
}

#[test]
fn csv_is_golden() {
    check("run.csv", &table::csv(&record()));
}

#[test]
fn html_is_golden() {
    check("run.html", &html::page(&record()));
}

/// Guards the stored format: records that are written today must be read by every later version.
#[test]
fn json_is_golden_and_is_read_back() {
    check("run.json", &record().to_json());
    assert_eq!(RunRecord::from_json(&read("run.json")).unwrap(), record());
}
