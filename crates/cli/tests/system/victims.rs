//! With a rate limit, requests that others send from a client's address take nothing from a client with a key.
//!
//! All attacks at all rates are in `proto`, in virtual time; here is the first one, over a network.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::spoof::Spoofer;
use authentick_wire::header::Header;
use authentick_wire::time::NtpTime;

use crate::lab::{Lab, program, text};

const NTP: u16 = 1123;
const KE: u16 = 4460;
const RATE_RPS: u32 = 2_000;
const REQUEST_COUNT: u32 = 12;

#[test]
fn spoofed_flood_takes_no_time_from_an_nts_client() {
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let (attacker, victim) = (Host::Client(0), Host::Client(1));
    let lab = Lab::new();
    let limit = "rate-limit = { requests-per-second = 1, burst = 8 }";
    let config = lab.config(
        &format!("listen = [\"0.0.0.0:{NTP}\"]\n{limit}"),
        &format!("ke-listen = [\"0.0.0.0:{KE}\"]"),
    );
    let server = program().serve_on(&hosts, Host::Server, &config);
    let to = SocketAddr::new(hosts.address(Host::Server), NTP);
    let from = SocketAddr::new(hosts.address(victim), 123);
    let (hosts, stop) = (&hosts, &AtomicBool::new(false));
    let output = thread::scope(|scope| {
        let flood = scope.spawn(move || {
            hosts.within(attacker, || {
                let mut request = [0; 48];
                Header::minimal_request(NtpTime::from_bits(1)).emit(&mut request);
                Spoofer::new(to.ip()).flood(RATE_RPS, stop, |_| (from, to, request.to_vec()))
            })
        });
        thread::sleep(Duration::from_secs(2));
        let mut query = hosts.on(victim, program().path());
        query.args(["query", &to.ip().to_string(), "--server-name", "ntp.test", "--interval", "1.2"]);
        query.args(["--count", &REQUEST_COUNT.to_string(), "--ca"]).arg(lab.ca());
        let output = query.output().unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(flood.join().unwrap() > 10 * u64::from(RATE_RPS));
        output
    });
    let outcome = |label| hosts.within(Host::Server, || server.outcome(label));
    assert_eq!(outcome("nts"), f64::from(REQUEST_COUNT), "{}", text(&output));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(outcome("rate_limited") > 10.0 * f64::from(RATE_RPS));
    assert!(outcome("plain") < 100.0, "what is reflected to the victim");
}
