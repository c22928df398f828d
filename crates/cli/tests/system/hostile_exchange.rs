//! What strangers do to the key exchange, and that time is served meanwhile.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use authentick_lab::daemon::Server;
use authentick_lab::kernel;
use authentick_lab::prober::{Prober, lost_count};
use authentick_lab::process::Process;
use authentick_rig::process::threads;

use crate::lab::{Lab, program, start, wait_for};

/// Handshakes are limited by nothing but the processor.
const UNLIMITED: &str = "ke-limits = { per-prefix-rate = 0, per-network-rate = 0, per-prefix = 1000 }";

/// Asks for time all the while that `work` takes, and a little longer; nothing is lost.
#[track_caller]
fn while_time_is_served<T>(server: &Server, work: impl FnOnce() -> T) -> T {
    let prober = Prober::start(server.ntp);
    let result = work();
    std::thread::sleep(Duration::from_millis(300));
    let probes = prober.stop();
    assert!(probes.len() >= 3, "{}", probes.len());
    assert_eq!(lost_count(&probes), 0, "of {}:\n{}", probes.len(), server.process.log());
    result
}

fn ended(server: &Server, outcome: &str) -> f64 {
    server.metric(&format!("nts_ke_connections_total{{outcome=\"{outcome}\"}}"))
}

fn assert_gives_cookies(server: &Server, lab: &Lab) {
    let output = server.query(lab, &[]);
    assert_eq!(output.status.code(), Some(0), "{}\n{}", crate::lab::text(&output), server.process.log());
}

fn connect(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(address).unwrap()).collect()
}

#[test]
fn time_is_served_beside_a_flood_of_handshakes() {
    let lab = Lab::new();
    // A packet worker on every processor: key exchange has none of its own.
    let server = start(&lab.config("workers = 0", UNLIMITED));
    let ca = lab.ca();
    while_time_is_served(&server, || {
        let mut flood = Command::new(program().path());
        flood.args(["load", "ke", &server.ke.to_string(), "--server-name", "ntp.test", "--unpinned"]);
        flood.args(["--closed", "32", "--step-seconds", "3", "--ca"]).arg(&ca);
        let mut flood = Process::start(&mut flood);
        flood.wait();
        // How many there were is the machine's affair; that there were some is ours.
        assert!(ended(&server, "served") >= 10.0, "{}", flood.log());
    });
    assert_gives_cookies(&server, &lab);
}

#[test]
fn flood_above_the_rate_is_reset_and_counted_and_strangers_are_denied() {
    let lab = Lab::new();
    let limits = "ke-limits = { per-prefix-rate = 0.001, per-prefix-burst = 3 }";
    let server = start(&lab.config("", limits));
    while_time_is_served(&server, || {
        for _ in 0..3 {
            assert_gives_cookies(&server, &lab);
        }
        for _ in 0..500 {
            // The reset may be here before the call returns.
            let _ = TcpStream::connect(server.ke);
        }
        wait_for("all to be refused", || (ended(&server, "prefix_rate") >= 500.0).then_some(()));
    });
    assert_ne!(server.query(&lab, &[]).status.code(), Some(0), "no token is left");
    assert_eq!(ended(&server, "served"), 3.0);
    drop(server);
    let server = start(&lab.config("allow = [\"198.18.0.0/15\"]", ""));
    assert_ne!(server.query(&lab, &[]).status.code(), Some(0));
    assert!(ended(&server, "denied") >= 1.0 && ended(&server, "served") == 0.0);
}

#[test]
fn connections_leave_descriptors_for_files_metrics_and_newcomers() {
    let lab = Lab::new();
    let limits = "ke-limits = { connections = 60000, per-prefix = 60000, timeout = \"60s\", per-prefix-rate = 0, \
                  per-network-rate = 0 }";
    let mut server = program().serve_with_descriptors(160, &lab.config("", limits));
    server.process.wait_for_line("nts.ke-limits.connections = 60000: this process may have 160 descriptors");
    while_time_is_served(&server, || {
        let silent = connect(server.ke, 300);
        wait_for("the oldest to give way", || (ended(&server, "evicted") > 100.0).then_some(()));
        assert_eq!(server.metric("nts_ke_accept_failures_total"), 0.0);
        // Files can be read, and whoever comes now is served.
        lab.renew(|params| params.distinguished_name.push(rcgen::DnType::CommonName, "renewed.test"));
        server.process.signal("-HUP");
        assert_eq!(wait_for_log(&server, "certificate read again"), 1);
        assert_gives_cookies(&server, &lab);
        drop(silent);
    });
}

/// Waits until a line contains `part`; returns how many do.
fn wait_for_log(server: &Server, part: &str) -> usize {
    wait_for(part, || Some(server.process.log().matches(part).count()).filter(|&count| count > 0))
}

/// Sets the soft limit of a running process.
fn limit_descriptors(server: &Server, soft: usize) {
    let arguments = [format!("--pid={}", server.process.id()), format!("--nofile={soft}:")];
    assert!(Command::new("prlimit").args(arguments).status().unwrap().success());
}

fn descriptor_count(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.process.id())).unwrap().count()
}

#[test]
fn server_without_a_descriptor_left_serves_time_and_recovers() {
    let lab = Lab::new();
    let limits =
        "ke-limits = { per-prefix = 60000, timeout = \"60s\", per-prefix-rate = 0, per-network-rate = 0 }";
    let server = start(&lab.config("", limits));
    let began = Instant::now();
    let waiting = while_time_is_served(&server, || {
        limit_descriptors(&server, descriptor_count(&server));
        let waiting = connect(server.ke, 50);
        std::thread::sleep(Duration::from_secs(2));
        limit_descriptors(&server, 4096);
        waiting
    });
    let failures = wait_for("failures", || {
        Some(server.metric("nts_ke_accept_failures_total")).filter(|&count| count >= 1.0)
    });
    // Each thread tries again every 50 ms, and no sooner.
    let threads = threads(server.process.id(), "ke-").len() as f64;
    assert!(failures <= threads * (began.elapsed().as_secs_f64() / 0.05 + 1.0), "{failures}");
    assert_gives_cookies(&server, &lab);
    server.process.signal("-HUP");
    wait_for_log(&server, "certificate read again");
    drop(waiting);
}

#[test]
fn kernel_without_ipv6_leaves_the_wildcard_out_and_serves() {
    let lab = Lab::new();
    let both = "[\"127.0.0.1:0\", \"[::]:0\"]";
    let config = lab.config(&format!("listen = {both}"), &format!("ke-listen = {both}"));
    let server = kernel::without_ipv6(|| start(&config));
    let log = server.process.log();
    for key in ["server.listen", "nts.ke-listen"] {
        assert!(log.contains(&format!("{key}: [::]:0 is left out: this kernel has no IPv6")), "{log}");
    }
    assert_gives_cookies(&server, &lab);
    // Who names an address of IPv6, or nothing else, is told.
    for listen in ["[\"127.0.0.1:0\", \"[::1]:0\"]", "[\"[::]:0\"]"] {
        let config = lab.config(&format!("listen = {listen}"), "");
        let path = config.to_str().unwrap();
        let output = kernel::without_ipv6(|| crate::lab::authentick(["serve", "--config", path]));
        assert_eq!(output.status.code(), Some(78), "{}", crate::lab::text(&output));
        assert!(crate::lab::text(&output).contains("server.listen"));
    }
}
