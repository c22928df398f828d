//! With a rate limit, requests that others send from a client's address take nothing from a client with a key.
//!
//! All attacks at all rates are in `proto`, in virtual time; here is the first one, over a network, with chrony on the
//! same host and under the same flood. What chrony loses is printed.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::chronyd;
use authentick_lab::process::{Process, wait_for};
use authentick_lab::spoof::Spoofer;
use authentick_report::load::LoadRecord;
use authentick_wire::header::Header;
use authentick_wire::time::NtpTime;

use crate::lab::{Lab, program, text};

/// Ports of our server and of chrony.
const NTP: [u16; 2] = [1123, 2123];
const KE: [u16; 2] = [4460, 5460];
const RATES_RPS: [u32; 3] = [20, 200, 2_000];
const ATTACKER: Host = Host::Client(0);
const VICTIM: Host = Host::Client(1);

/// chrony on the server's host, with the same limit, and every second refused request answered.
fn start_chrony(hosts: &Hosts, lab: &Lab) -> Option<Process> {
    let (program, libraries) = chronyd()?;
    let folder = lab.path().join("chrony");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    let (config, shown) = (folder.join("chrony.conf"), folder.display());
    let text = format!(
        "local stratum 1\nallow\nport {}\nntsport {}\nntsserverkey {}\nntsservercert {}\nntsdumpdir {shown}\n\
         ratelimit interval 0 burst 8 leak 2\ncmdport 0\nbindcmdaddress /\npidfile {shown}/pid\nuser root\n",
        NTP[1],
        KE[1],
        lab.key().display(),
        lab.chain().display(),
    );
    std::fs::write(&config, text).unwrap();
    let mut command = hosts.on(Host::Server, program);
    let mut process =
        Process::start(command.env("LD_LIBRARY_PATH", libraries).args(["-x", "-d", "-f"]).arg(config));
    process.wait_for_line("chronyd version");
    Some(process)
}

/// Requests of an NTS client of the server with this index, and those without a response. Once a second and a quarter
/// is within the limit.
fn losses(hosts: &Hosts, server: usize, ca: &Path) -> (u64, u64) {
    let to = SocketAddr::new(hosts.address(Host::Server), NTP[server]);
    let run = || {
        let mut load = hosts.on(VICTIM, program().path());
        load.args(["load", "nts", &to.to_string(), "--ke-port", &KE[server].to_string(), "--unpinned"]);
        load.args(["--server-name", "ntp.test", "--clients", "1", "--rate", "0.8", "--step-seconds", "15"]);
        load.args(["--json", "--force-first", "--ca"]).arg(ca);
        let output = load.output().unwrap();
        let record = LoadRecord::from_json(&String::from_utf8_lossy(&output.stdout));
        record.unwrap_or_else(|error| panic!("{error}: {}", text(&output)))
    };
    let tally = run().steps[0].tally.clone();
    (tally.sent, tally.sent - tally.answered)
}

#[test]
fn spoofed_flood_takes_no_time_from_an_nts_client() {
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let lab = Lab::new();
    let limit = "rate-limit = { requests-per-second = 1, burst = 8 }";
    let config = lab.config(
        &format!("listen = [\"0.0.0.0:{}\"]\n{limit}", NTP[0]),
        &format!("ke-listen = [\"0.0.0.0:{}\"]", KE[0]),
    );
    let server = program().serve_on(&hosts, Host::Server, &config);
    let chrony = start_chrony(&hosts, &lab);
    let count = 1 + u64::from(chrony.is_some());
    let address = hosts.address(Host::Server);
    let from = SocketAddr::new(hosts.address(VICTIM), 123);
    let (hosts, ca) = (&hosts, &lab.ca());
    let outcome = |label| hosts.within(Host::Server, || server.outcome(label));
    for rate_rps in RATES_RPS {
        let stop = &AtomicBool::new(false);
        let (nts, plain) = (outcome("nts"), outcome("plain"));
        let lost = thread::scope(|scope| {
            let flood = scope.spawn(move || {
                hosts.within(ATTACKER, || {
                    let mut request = [0; 48];
                    Header::minimal_request(NtpTime::from_bits(1)).emit(&mut request);
                    let to = |number| SocketAddr::new(address, NTP[(number % count) as usize]);
                    let rate_rps = rate_rps * u32::try_from(count).unwrap();
                    Spoofer::new(address).flood(rate_rps, stop, |number| (from, to(number), request.to_vec()))
                })
            });
            thread::sleep(Duration::from_secs(2));
            let ours = scope.spawn(move || losses(hosts, 0, ca));
            let theirs = (count == 2).then(|| scope.spawn(move || losses(hosts, 1, ca)));
            let (ours, theirs) = (ours.join(), theirs.and_then(|client| client.join().ok()));
            stop.store(true, Ordering::Relaxed);
            assert!(flood.join().unwrap() > 10 * u64::from(rate_rps));
            println!("spoofed flood of {rate_rps}/s: requests and losses: {ours:?}; chrony {theirs:?}");
            ours.unwrap()
        });
        let (sent, lost) = lost;
        assert!(sent >= 10 && lost == 0, "{rate_rps}/s: {lost} of {sent} lost");
        // The first request finds the server; the last of the load may still be counted.
        wait_for("requests under NTS to be counted", || (outcome("nts") - nts >= sent as f64).then_some(()));
        assert!(outcome("plain") - plain < 100.0, "what is reflected to the victim");
    }
    assert!(outcome("rate_limited") > 10.0 * f64::from(RATES_RPS[2]));
}
