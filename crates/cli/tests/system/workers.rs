//! More than one worker, which is what every host with more than one processor has: each has a socket of its own on the
//! same port, the kernel spreads clients over them, and what they know of clients they share.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use authentick_lab::peers::Chrony;
use authentick_report::load::LoadRecord;
use authentick_wire::header::Header;
use authentick_wire::time::NtpTime;

use crate::lab::{Lab, Server, authentick, has_measured, start, text, wait_for};

const COUNTS: [usize; 2] = [2, 4];

/// So many clients that the chance is 10^-24 that one of four workers has none.
const CLIENT_COUNT: usize = 200;

fn config(lab: &Lab, count: usize, server: &str) -> std::path::PathBuf {
    lab.config(&format!("workers = {count}\n{server}"), &format!("ke-workers = {count}"))
}

/// Sends one plain request from each of so many ports; how many are answered.
fn ask_from_many_ports(server: SocketAddr) -> usize {
    let clients: Vec<UdpSocket> =
        (0..CLIENT_COUNT).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let mut request = [0; 48];
    Header::minimal_request(NtpTime::from_bits(1)).emit(&mut request);
    for client in &clients {
        client.connect(server).unwrap();
        client.send(&request).unwrap();
    }
    // The first wait is long, as the machine may be busy; the rest is there by then or not at all.
    let mut wait = Duration::from_secs(2);
    let answered = clients.iter().filter(|client| {
        client.set_read_timeout(Some(wait)).unwrap();
        let is_answered = client.recv(&mut [0; 48]).is_ok();
        wait = Duration::from_millis(20);
        is_answered
    });
    answered.count()
}

/// The sockets that are bound to this port of 127.0.0.1. proc(5).
fn socket_count(port: u16) -> usize {
    let local = format!(" 0100007F:{port:04X} 00000000:0000 ");
    let table = std::fs::read_to_string("/proc/net/udp").unwrap();
    table.lines().filter(|line| line.contains(&local)).count()
}

/// Threads whose names begin so, and the processors that each may use.
fn threads(server: &Server, prefix: &str) -> Vec<String> {
    let folder = format!("/proc/{}/task", server.process.id());
    let tasks = std::fs::read_dir(folder).unwrap().map(|task| task.unwrap().path());
    let read = |task: &Path, file: &str| std::fs::read_to_string(task.join(file)).unwrap();
    let named = tasks.filter(|task| read(task, "comm").starts_with(prefix));
    let allowed = named.map(|task| {
        let status = read(&task, "status");
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    });
    allowed.collect()
}

#[test]
fn every_worker_has_a_socket_and_a_processor_and_answers_its_clients() {
    for count in COUNTS {
        let lab = Lab::new();
        let server = start(&config(&lab, count, ""));
        assert_eq!(socket_count(server.ntp.port()), count);
        let workers = wait_for("every worker to have a processor", || {
            let workers = threads(&server, "ntp-");
            // A thread that has just begun has another's name.
            let is_ready = workers.len() == count && workers.iter().all(|list| list.parse::<u32>().is_ok());
            is_ready.then_some(workers)
        });
        assert_eq!(workers.len(), count);
        wait_for("every thread of key exchange", || (threads(&server, "ke-").len() == count).then_some(()));
        assert_eq!(ask_from_many_ports(server.ntp), CLIENT_COUNT, "{count} workers");
        assert_eq!(server.outcome("plain"), CLIENT_COUNT as f64);
    }
}

#[test]
fn limit_of_a_client_holds_over_all_workers() {
    for count in COUNTS {
        let lab = Lab::new();
        let limit = "rate-limit = { requests-per-second = 0.001, burst = 20 }";
        let server = start(&config(&lab, count, limit));
        assert_eq!(ask_from_many_ports(server.ntp), 20, "{count} workers");
        assert_eq!(
            (server.outcome("plain"), server.outcome("rate_limited")),
            (20.0, CLIENT_COUNT as f64 - 20.0)
        );
    }
}

/// Clients under NTS with ports of their own get keys from whichever thread accepts them, and time from whichever
/// worker the kernel chooses.
fn load_under_nts(lab: &Lab, server: &Server) {
    let (ke, ca, file) = (server.ke.port().to_string(), lab.ca(), lab.path().join("record.json"));
    let mut arguments =
        vec!["load", "nts", "127.0.0.1", "--unpinned", "--rate", "100", "--step-seconds", "1"];
    arguments.extend(["--clients", "40", "--timeout", "2", "--ke-port", &ke, "--ca", ca.to_str().unwrap()]);
    arguments.extend(["--record", file.to_str().unwrap()]);
    let output = authentick(arguments);
    assert!(has_measured(&output), "{}", text(&output));
    let record = LoadRecord::from_json(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let tally = &record.steps[0].tally;
    assert!(tally.sent >= 40 && tally.answered == tally.sent, "{tally:?}");
}

#[test]
fn cookies_of_any_exchange_are_good_at_any_worker_before_and_after_a_rotation() {
    for count in COUNTS {
        let lab = Lab::new();
        let mut server = start(&config(&lab, count, ""));
        load_under_nts(&lab, &server);
        let state = lab.state();
        let output = authentick(["keys", "rotate", "--state-directory", state.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        server.process.signal("-HUP");
        server.process.wait_for_line("cookie keys read again");
        load_under_nts(&lab, &server);
        for outcome in ["nts_nak_unknown_key", "nts_nak_cookie", "nts_nak_tag", "nts_malformed"] {
            assert_eq!(server.outcome(outcome), 0.0, "{count} workers: {outcome}");
        }
        // Two loads with a client's keys each, and two questions whether anybody answers.
        assert_eq!(server.metric("nts_ke_connections_total{outcome=\"served\"}"), 82.0);
    }
}

#[test]
fn interleaved_mode_goes_on_from_one_worker_to_another() {
    let Some(_) = Chrony::find() else { return };
    std::thread::scope(|scope| {
        for count in COUNTS {
            scope.spawn(move || {
                let Some(chrony) = Chrony::find() else { return };
                let lab = Lab::new();
                let server = start(&config(&lab, count, ""));
                // chrony asks from another port each time, so other workers answer.
                let source =
                    format!("server 127.0.0.1 port {} minpoll 0 maxpoll 0 xleave", server.ntp.port());
                let mut client = chrony.daemon(&lab, &source);
                let is_interleaved = |data: String| data.rsplit(',').nth(7) == Some("Yes");
                wait_for("interleaved mode", || is_interleaved(client.ask("ntpdata")).then_some(()));
                let before = server.outcome("plain");
                wait_for("more answers", || (server.outcome("plain") >= before + 4.0).then_some(()));
                assert!(is_interleaved(client.ask("ntpdata")), "{count} workers");
            });
        }
    });
}

#[test]
fn session_of_antp_is_known_to_every_worker() {
    for count in COUNTS {
        let lab = Lab::new();
        lab.antp_identity("ecdh", |_| {});
        let server = start(&lab.antp_config(&["ecdh"], &format!("workers = {count}"), "workers = 2"));
        let (ntp, ca, state) = (server.ntp.to_string(), lab.ca(), lab.path().join("client"));
        // Each exchange has a port of its own.
        let output = authentick([
            "query",
            &ntp,
            "--auth",
            "antp",
            "--ca",
            ca.to_str().unwrap(),
            "--state-directory",
            state.to_str().unwrap(),
            "--count",
            "24",
            "--interval",
            "0.01",
        ]);
        assert!(text(&output).contains("24 of 24 exchanges"), "{count} workers: {}", text(&output));
    }
}
