//! What a record tells of the server's process and its own times, and what the load's own process uses.

use std::time::Duration;

use super::{begin, finish, finish_ending, load_nts, only};
use crate::lab::{Lab, Server, serve, start};
use authentick_lab::process::closed_port;
use authentick_lab::skip::skip;
use authentick_report::load::span_rows;

#[test]
fn server_s_process_and_spans_are_joined() {
    let lab = Lab::new();
    let server = serve(&lab);
    let (pid, metrics) = (server.process.id().to_string(), server.metrics.to_string());
    let arguments =
        ["--rate", "400", "--step-seconds", "2", "--server-pid", &pid, "--server-metrics", &metrics];
    let record = load_nts("nts", server.ke, &lab, &arguments);
    let step = only(&record);
    let used = step.server.unwrap();
    assert!((0.0..20.0).contains(&used.cpu_seconds), "{used:?}");
    let per_request = used.cpu_us_per_request.unwrap();
    assert!((per_request - used.cpu_seconds * 1e6 / step.tally.answered as f64).abs() < 0.01, "{used:?}");
    let (resident, _) = server.process.usage();
    assert!(used.resident_size > 1 << 20 && used.resident_size.abs_diff(resident) < 16 << 20, "{used:?}");

    let spans = step.spans.as_ref().unwrap();
    assert_eq!((spans.joined, spans.unmatched), (step.tally.answered, 0));
    let [cnts, sntp, snts, cntp] = [&spans.d_cnts_ns, &spans.d_sntp_ns, &spans.d_snts_ns, &spans.d_cntp_ns];
    for times in [cnts, sntp, snts, cntp] {
        assert_eq!(times.count(), spans.joined);
        assert!(times.pairs()[0].0 >= 0);
    }
    // Equation (6) of the study: d_CNTP = d_CNTS - d_SNTS, for each exchange and so for the means.
    let mean = |times: &authentick_report::load::Histogram| times.mean().unwrap();
    assert!((mean(cnts) - mean(snts) - mean(cntp)).abs() < 1.0, "{spans:?}");
    assert!(mean(snts) > 0.0 && mean(sntp) > 0.0 && mean(cntp) > 0.0);
    assert_eq!(spans.d_cke_ns.count(), 0, "no client needed new keys");
}

#[test]
fn spans_of_key_exchanges_are_joined_and_the_background_s_are_not() {
    let lab = Lab::new();
    let server = serve(&lab);
    let metrics = server.metrics.to_string();
    let arguments =
        ["--rate", "20", "--background", "30", "--step-seconds", "1", "--server-metrics", &metrics];
    let record = load_nts("mix", server.ke, &lab, &arguments);
    let step = only(&record);
    let spans = step.spans.as_ref().unwrap();
    let transfers = step.accompanying.as_ref().unwrap().answered;
    assert_eq!((spans.d_cke_ns.count(), spans.d_cnts_ns.count()), (step.tally.answered, transfers));
    assert_eq!((spans.d_ske_ns.count(), spans.d_cntp_ns.count()), (step.tally.answered, transfers));
    assert_eq!((spans.joined, spans.unmatched), (step.tally.answered + transfers, 0));
    let mean = |times: &authentick_report::load::Histogram| times.mean().unwrap();
    assert!(mean(&spans.d_cke_ns) > mean(&spans.d_ske_ns), "a client's exchange contains the server's");
}

#[test]
fn only_measured_clients_are_timed_if_the_background_has_an_address_of_its_own() {
    let lab = Lab::new();
    let server = serve_timing(&lab, "\"127.0.0.1\"", 1);
    let file = lab.path().join("spans.csv");
    let (metrics, file) = (server.metrics.to_string(), file.to_str().unwrap().to_owned());
    let background = ["--background", "30", "--background-sources", "127.0.0.2,127.0.0.3"];
    let arguments = ["--rate", "20", "--step-seconds", "1", "--server-metrics", &metrics, "--spans", &file];
    let record = load_nts("mix", server.ke, &lab, &[&arguments[..], &background].concat());
    let step = only(&record);
    assert_eq!(record.parameters.background_sources, ["127.0.0.2", "127.0.0.3"]);
    let transfers = step.accompanying.as_ref().unwrap();
    let of_background = [step.background.as_ref().unwrap(), step.background_accompanying.as_ref().unwrap()];
    assert!(of_background.iter().all(|tally| tally.answered > 0), "{of_background:?}");
    // The server has seen them all, and timed those of the measured client, and of the first exchange, which finds out
    // whether it answers.
    let spans: serde_json::Value = serde_json::from_str(&server.get("/spans")).unwrap();
    for (kind, measured) in [("ke", &step.tally), ("ntp", transfers)] {
        let records = spans[kind].as_array().unwrap();
        assert_eq!(records.len() as u64, measured.sent + 1, "{kind}: {measured:?}");
        let is_measured =
            |record: &serde_json::Value| record["source"].as_str().unwrap().starts_with("127.0.0.1:");
        assert!(records.iter().all(is_measured), "{records:?}");
    }
    let rows = span_rows::parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(rows.len() as u64, step.tally.answered + transfers.answered);
    for row in rows {
        assert!(row.source.ip().is_loopback() && row.step == 1 && row.offered_rps == Some(20.0));
        // Each contains what the server did.
        let (server_ns, clock_ns) = match row.transmit {
            None => (row.d_ske_from_accept(), 4 * row.clock_ns),
            Some(_) => (row.d_snts(), 3 * row.clock_ns),
        };
        let server_ns = server_ns.unwrap();
        assert!(server_ns.raw_ns < row.client_ns, "{row:?}");
        assert!((0..=clock_ns).contains(&(server_ns.raw_ns - server_ns.ns)), "{row:?}");
    }
}

#[test]
fn one_request_in_so_many_is_timed_and_every_key_exchange() {
    let lab = Lab::new();
    let server = serve_timing(&lab, "\"127.0.0.0/8\"", 8);
    let metrics = server.metrics.to_string();
    let arguments = ["--rate", "500", "--step-seconds", "2", "--server-metrics", &metrics];
    let record = load_nts("nts", server.ke, &lab, &arguments);
    let spans = only(&record).spans.clone().unwrap();
    assert_eq!(spans.joined + spans.unmatched, only(&record).tally.answered);
    assert_eq!(spans.every, Some(8));
    // 125 on average.
    assert!((75..175).contains(&spans.joined), "{spans:?}");
    let shown: serde_json::Value = serde_json::from_str(&server.get("/spans")).unwrap();
    assert_eq!(shown["every"], 8);
    assert_eq!(shown["clock_ns"].as_u64(), spans.clock_ns);
    let exchanges = server.metric("nts_ke_connections_total{outcome=\"served\"}");
    assert_eq!(shown["ke"].as_array().unwrap().len() as f64, exchanges);
}

/// A server that times one request in `every` of these clients.
fn serve_timing(lab: &Lab, clients: &str, every: u32) -> Server {
    let config = lab.config("", "");
    let text = std::fs::read_to_string(&config).unwrap();
    let timing = format!("span-clients = [{clients}]\nspan-every = {every}");
    let changed = text.replace("span-clients = [\"127.0.0.0/8\"]", &timing);
    assert_ne!(changed, text);
    std::fs::write(&config, changed).unwrap();
    start(&config)
}

#[test]
fn server_that_ends_while_it_is_watched_makes_the_step_invalid_and_is_reported() {
    let lab = Lab::new();
    let server = serve(&lab);
    let (pid, address) = (server.process.id().to_string(), server.ntp.to_string());
    let arguments = ["--rate", "100", "--step-seconds", "1.5", "--timeout", "0.3", "--server-pid", &pid];
    let process = begin(&[&["plain", address.as_str()], &arguments[..]].concat());
    crate::lab::wait_for("requests", || (server.outcome("plain") > 20.0).then_some(()));
    drop(server);
    let record = finish_ending(3, process);
    let step = only(&record);
    assert!(step.remarks[0].starts_with("What the server used is missing: process "), "{:?}", step.remarks);
    assert!(!step.valid && step.server.is_none() && step.tally.answered >= 20 && step.tally.lost > 0);
    // A pid that nobody has is told before.
    let lab = Lab::new();
    let server = serve(&lab);
    let output =
        crate::lab::authentick(["load", "plain", &server.ntp.to_string(), "--server-pid", "4194305"]);
    assert_eq!(output.status.code(), Some(64), "{}", crate::lab::text(&output));
}

/// Of a process: the most memory that it has held, in octets, and its open descriptors.
fn held(pid: u32) -> Option<(u64, usize)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some((kibibytes * 1024, std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count()))
}

/// The most descriptors that a process here may have open.
fn descriptor_limit() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap_or(u64::MAX)
}

#[test]
fn eight_thousand_clients_fit_into_200_mib() {
    const CLIENT_COUNT: usize = 8000;
    if descriptor_limit() < CLIENT_COUNT as u64 + 100 {
        return skip("needs a limit of 8,100 open files (ulimit -Hn)");
    }
    let lab = Lab::new();
    let server = serve(&lab);
    let address = server.ntp.to_string();
    let process = begin(&["plain", &address, "--clients", "8000", "--rate", "8000", "--step-seconds", "2"]);
    let (mut most, mut descriptors) = (0, 0);
    while !process.log().contains("authentick-load/") {
        if let Some((memory, open)) = held(process.id()) {
            (most, descriptors) = (most.max(memory), descriptors.max(open));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let record = finish(process);
    let step = only(&record);
    assert!(descriptors >= CLIENT_COUNT, "{descriptors}");
    assert!((1 << 20..200 << 20).contains(&most), "{most} octets");
    assert_eq!((step.tally.scheduled, record.parameters.clients), (16_000, 8000));
    assert!(step.tally.answered > 1000, "{:?}", step.tally.causes);
}

#[test]
fn metrics_that_are_not_there_or_time_nobody_are_told_before_any_load() {
    let lab = Lab::new();
    let server = serve(&lab);
    let address = server.ntp.to_string();
    let before = server.outcome("plain");
    let closed = closed_port();
    for endpoint in ["127.0.0.1:1", &closed.local_addr().unwrap().to_string()] {
        let output =
            crate::lab::authentick(["load", "plain", &address, "--server-metrics", endpoint, "--rate", "10"]);
        assert_eq!(output.status.code(), Some(69), "{}", crate::lab::text(&output));
        assert!(crate::lab::text(&output).contains("--server-metrics"));
    }
    // Each asked once whether the server answers.
    assert_eq!(server.outcome("plain"), before + 2.0);
}
