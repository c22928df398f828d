//! Debian's NTPsec, which asks and serves port 123 alone: authenticated time from it, and to its daemon and ntpdig.

use std::net::SocketAddr;
use std::path::PathBuf;

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::NtpSec;
use authentick_report::load::LoadRecord;

use crate::lab::{Lab, Server, has_measured, program, text, wait_for};

/// The server and a client that runs NTPsec.
struct Star {
    hosts: Hosts,
    lab: Lab,
}

impl Star {
    /// A star, and NTPsec on one of its hosts.
    fn with_ntpsec(host: Host) -> Option<(Self, NtpSec)> {
        let hosts = match Hosts::new(1) {
            Ok(hosts) => hosts,
            Err(skip) => {
                skip.tell();
                return None;
            }
        };
        let ntpsec = NtpSec::find(&hosts, host)?;
        Some((Star { hosts, lab: Lab::new() }, ntpsec))
    }

    /// Ours on the server, on the ports that clients expect.
    fn serve(&self, nts: &str) -> Server {
        let nts = format!("ke-listen = [\"0.0.0.0:4460\"]\n{nts}");
        let config = self.lab.config("listen = [\"0.0.0.0:123\"]", &nts);
        program().serve_on(&self.hosts, Host::Server, &config)
    }

    fn outcome(&self, server: &Server, label: &str) -> f64 {
        self.hosts.within(Host::Server, || server.outcome(label))
    }

    /// Our program on the client, with the lab's authority.
    fn ours(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = self.hosts.on(Host::Client(0), program().path());
        command.args(arguments).arg("--ca").arg(self.lab.ca()).output().unwrap()
    }

    /// What a plain question to this host brings.
    fn plain(&self, host: Host) -> String {
        let address = SocketAddr::new(self.hosts.address(host), 123).to_string();
        let program = program();
        text(
            &self
                .hosts
                .on(Host::Server, program.path())
                .args(["query", &address, "--auth", "plain"])
                .output()
                .unwrap(),
        )
    }
}

#[test]
fn we_take_authenticated_time_from_ntpsec() {
    let Some((star, ntpsec)) = Star::with_ntpsec(Host::Server) else { return };
    let server = ntpsec.server(&star.lab, "");
    let address = star.hosts.address(Host::Server).to_string();
    wait_for("NTPsec to take itself for synchronised", || {
        star.plain(Host::Server).contains("stratum        1").then_some(())
    });
    for (aead, name) in [("15", "AES-SIV-CMAC-256"), ("16", "-384"), ("17", "-512")] {
        let output = star.ours(&["query", &address, "--aead", aead, "--count", "12", "--interval", "0.01"]);
        assert!(text(&output).contains("12 of 12 exchanges"), "{}{}", text(&output), server.log());
        let output = star.ours(&["query", &address, "--aead", aead]);
        assert!(text(&output).contains(name), "{}", text(&output));
    }
    // What is offered unless the user says otherwise.
    let output = star.ours(&["query", &address]);
    assert!(output.status.success() && text(&output).contains("AES-SIV-CMAC-256"), "{}", text(&output));
}

#[test]
fn ntpsec_under_load_answers_every_exchange_and_transfer() {
    let Some((star, ntpsec)) = Star::with_ntpsec(Host::Server) else { return };
    let server = ntpsec.server(&star.lab, "");
    let address = star.hosts.address(Host::Server).to_string();
    wait_for("NTPsec to take itself for synchronised", || {
        star.plain(Host::Server).contains("stratum        1").then_some(())
    });
    // Its key exchange is one thread that takes 40 ms for each: clients are few and patient.
    for scheme in [["nts", "--rate", "50"], ["ke", "--rate", "5"]] {
        let file = star.lab.path().join("record.json");
        let more =
            ["--step-seconds", "1", "--clients", "4", "--unpinned", "--record", file.to_str().unwrap()];
        let clients = if scheme[0] == "ke" { &more[..2] } else { &more[..4] };
        let arguments = [&["load", scheme[0], &address][..], &scheme[1..], clients, &more[4..]].concat();
        let output = star.ours(&arguments);
        assert!(has_measured(&output), "{}{}", text(&output), server.log());
        let record = LoadRecord::from_json(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let tally = &record.steps[0].tally;
        assert!(tally.sent > 0 && tally.answered == tally.sent, "{}: {tally:?}", scheme[0]);
    }
}

#[test]
fn ntpsec_s_daemon_takes_authenticated_time_from_us() {
    let Some((star, ntpsec)) = Star::with_ntpsec(Host::Client(0)) else { return };
    let server = star.serve("");
    let address = star.hosts.address(Host::Server);
    let mut client = ntpsec.client(&star.lab, &format!("{address}:4460"));
    assert_eq!(client.wait_for_line("Got 8 cookies, length ").split_once(' ').unwrap().1, "aead=15.");
    // It believes us: what it serves itself now hangs on our server.
    wait_for("NTPsec to follow us", || {
        let answer = star.plain(Host::Client(0));
        (answer.contains("stratum        2") && answer.contains(&address.to_string())).then_some(())
    });
    assert!(star.outcome(&server, "nts") >= 3.0);
    for outcome in ["plain", "nts_nak_unknown_key", "nts_nak_cookie", "nts_nak_tag", "nts_malformed"] {
        assert_eq!(star.outcome(&server, outcome), 0.0, "{outcome}");
    }
}

#[test]
fn ntpdig_takes_plain_time_and_time_under_a_key_from_us() {
    const KEY: &str = "7EA62AE64D190114D46D5A082F948EC1";
    let Some((star, ntpsec)) = Star::with_ntpsec(Host::Client(0)) else { return };
    // The one file is ntpd's, the other chrony's: the same key.
    let file = |name: &str, line: String| -> PathBuf {
        let path = star.lab.path().join(name);
        std::fs::write(&path, line).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        path
    };
    let (ours, theirs) =
        (file("keys", format!("1 AES128 HEX:{KEY}\n")), file("ntp.keys", format!("1 AES-128 {KEY}\n")));
    let wrong = file("wrong.keys", format!("1 AES-128 {}\n", KEY.replace('7', "8")));
    let server = star.serve(&format!("[symmetric]\nkeys = {ours:?}"));
    let address = star.hosts.address(Host::Server).to_string();
    let ask = |arguments: &[&str]| -> Option<serde_json::Value> {
        let output = ntpsec.ask_once(&[arguments, &[&address]].concat());
        serde_json::from_slice(&output.stdout).ok()
    };
    let good = |answer: Option<serde_json::Value>| {
        let answer = answer.expect("an answer");
        assert_eq!((&answer["stratum"], &answer["leap"]), (&1.into(), &"no-leap".into()), "{answer}");
        assert!(answer["offset"].as_f64().unwrap().abs() < 0.5, "{answer}");
    };
    good(ask(&[]));
    assert_eq!((star.outcome(&server, "plain"), star.outcome(&server, "mac")), (1.0, 0.0));
    good(ask(&["-a", "1", "-k", theirs.to_str().unwrap()]));
    assert_eq!((star.outcome(&server, "plain"), star.outcome(&server, "mac")), (1.0, 1.0));
    assert_eq!(ask(&["-t", "1", "-a", "1", "-k", wrong.to_str().unwrap()]), None);
    assert_eq!((star.outcome(&server, "plain"), star.outcome(&server, "mac")), (1.0, 1.0));
}
