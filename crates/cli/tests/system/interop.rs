//! Authenticated time taken from us by others, and by us from others.

use std::time::Duration;

use authentick_lab::peers::{Chrony, FacebookTime, NtpdRs};

use crate::lab::{Lab, Server, authentick, free_port, serve, start, text, wait_for};

fn chrony_source(server: &Server, options: &str) -> String {
    format!("server 127.0.0.1 port {} minpoll 0 {options}", server.ntp.port())
}

//= rfc8915#4.3-1, rfc8915#4.3-2, rfc8915#5.1-2, rfc8915#5.1-4, rfc8915#5.6-2, rfc8915#5.6-3, rfc8915#5.6-4
#[test]
fn chrony_takes_authenticated_time_from_us() {
    let Some(chrony) = Chrony::find() else { return };
    let (lab, server);
    lab = Lab::new();
    server = serve(&lab);
    let source = chrony_source(&server, &format!("iburst maxsamples 1 nts ntsport {}", server.ke.port()));
    let output = chrony.ask_once(&lab, &source);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("System clock wrong by"), "{}", text(&output));
    assert!(server.outcome("nts") >= 1.0 && server.outcome("plain") == 0.0);
    // As a daemon it says which AEAD was agreed upon.
    let mut client = chrony.daemon(&lab, &source);
    wait_for("AEAD 15, keys of 256 bits", || client.ask("authdata").contains(",NTS,1,15,256,").then_some(()));
}

#[test]
fn chrony_refuses_a_certificate_that_is_not_ours() {
    let Some(chrony) = Chrony::find() else { return };
    let (lab, other) = (Lab::new(), Lab::new());
    let server = serve(&lab);
    let source = chrony_source(&server, &format!("iburst maxsamples 1 nts ntsport {}", server.ke.port()));
    let output = chrony.ask_once(&other, &source);
    assert!(!output.status.success());
    assert_eq!(server.outcome("nts"), 0.0);
}

#[test]
fn restart_by_kill_costs_a_chrony_client_no_cookie() {
    let Some(chrony) = Chrony::find() else { return };
    let lab = Lab::new();
    let (ntp, ke) = (free_port(), free_port());
    let config =
        lab.config(&format!("listen = [\"127.0.0.1:{ntp}\"]"), &format!("ke-listen = [\"127.0.0.1:{ke}\"]"));
    let server = start(&config);
    let lines = format!("server 127.0.0.1 port {ntp} iburst minpoll 0 maxpoll 0 nts ntsport {ke}");
    let mut client = chrony.daemon(&lab, &lines);
    // host,NTS,KeyID,Type,KLen,Last,Atmp,NAK,Cook,CLen
    let mut authdata = move || -> Option<(u64, u64, u64, u64)> {
        let line = client.ask("authdata");
        let fields: Vec<&str> = line.split(',').collect();
        let number = |index: usize| fields.get(index)?.parse().ok();
        Some((number(2)?, number(5)?, number(7)?, number(8)?))
    };
    wait_for("chrony to have a full jar", || {
        authdata().filter(|&(id, _, _, cookies)| id == 1 && cookies == 8)
    });
    wait_for("answers", || (server.outcome("nts") >= 4.0).then_some(()));
    server.process.signal("-KILL");
    drop(server);
    let server = start(&config);
    wait_for("answers after the restart", || (server.outcome("nts") >= 4.0).then_some(()));
    let (key_id, last_exchange, nak, _) = authdata().unwrap();
    assert_eq!((key_id, nak), (1, 0), "one key exchange ever, and no NAK");
    assert!(last_exchange >= 4, "seconds since that key exchange still grow: {last_exchange}");
    for outcome in ["nts_nak_unknown_key", "nts_nak_cookie", "nts_nak_tag"] {
        assert_eq!(server.outcome(outcome), 0.0);
    }
    assert_eq!(server.metric("nts_ke_connections_accepted_total"), 0.0);
}

#[test]
fn chrony_goes_interleaved_with_us() {
    let Some(chrony) = Chrony::find() else { return };
    let lab = Lab::new();
    let server = serve(&lab);
    let source = chrony_source(&server, "maxpoll 0 xleave");
    let mut client = chrony.daemon(&lab, &source);
    // The last eight fields of ntpdata: interleaved, authenticated, two kinds of timestamping, four totals.
    wait_for("interleaved mode", || {
        let data = client.ask("ntpdata");
        data.rsplit(',').nth(7).is_some_and(|interleaved| interleaved == "Yes").then_some(())
    });
}

//= rfc8915#4.3-1, rfc8915#4.3-2, rfc8915#5.1-2, rfc8915#5.1-4, rfc8915#5.6-2, rfc8915#5.6-3, rfc8915#5.6-4
#[test]
fn we_take_authenticated_time_from_chrony() {
    let Some(chrony) = Chrony::find() else { return };
    let lab = Lab::new();
    let (ntp, ke) = (free_port(), free_port());
    let _server = chrony.server(&lab, ntp, ke);
    take_time(&lab, ke, ntp, "AES-SIV-CMAC-256");
}

#[test]
fn ntpd_rs_takes_authenticated_time_from_us_with_aead_17_and_15() {
    let Some(ntpd_rs) = NtpdRs::find() else { return };
    // Alone, so that no other can have been agreed upon.
    for aeads in ["[17]", "[15]"] {
        let lab = Lab::new();
        let server = start(&lab.config("", &format!("aeads = {aeads}")));
        let client = ntpd_rs.client(&lab, server.ke);
        let status = wait_for("ntpd-rs to have a full jar", || {
            Some(client.status()).filter(|status| status.contains("8/8") && server.outcome("nts") >= 2.0)
        });
        assert!(status.contains("NTS"), "{status}");
        assert!(client.process.log().contains("ntp"), "it logs");
        for outcome in ["nts_nak_unknown_key", "nts_nak_cookie", "nts_nak_tag", "nts_malformed", "plain"] {
            assert_eq!(server.outcome(outcome), 0.0, "{aeads} {outcome}");
        }
    }
}

#[test]
fn we_take_authenticated_time_from_ntpd_rs() {
    let Some(ntpd_rs) = NtpdRs::find() else { return };
    let lab = Lab::new();
    let (ntp, ke) = (free_port(), free_port());
    let _server = ntpd_rs.server(&lab, ntp, ke);
    take_time(&lab, ke, ntp, "AES-SIV-CMAC-256");
    let output = query(&lab, ke, ntp, &["--aead", "17"]);
    assert!(text(&output).contains("AES-SIV-CMAC-512"), "{}", text(&output));
}

#[test]
fn facebook_time_takes_authenticated_time_from_us_with_aead_30_as_the_rfc_exports_its_keys() {
    let Some(facebook_time) = FacebookTime::find() else { return };
    let lab = Lab::new();
    // Alone, so that no other can have been agreed upon. The client exports as RFC 8915 says; the server would export
    // as chrony does, had they not agreed on that by record 1024.
    let server = start(&lab.config("", "aeads = [30]"));
    let output = facebook_time.ask_once(&lab, server.ke, server.ntp);
    assert!(output.status.success() && text(&output).contains("[ntp] PASS"), "{}", text(&output));
    assert!(server.outcome("nts") >= 1.0 && server.outcome("nts_nak_tag") == 0.0);
}

#[test]
fn we_take_authenticated_time_from_facebook_time() {
    let Some(facebook_time) = FacebookTime::find() else { return };
    let lab = Lab::new();
    let (ntp, ke) = (free_port(), free_port());
    let _server = facebook_time.server(&lab, ntp, ke);
    take_time(&lab, ke, ntp, "AES-128-GCM-SIV");
}

#[test]
fn upstream_chrony_is_mirrored() {
    let Some(chrony) = Chrony::find() else { return };
    let lab = Lab::new();
    let port = free_port();
    let upstream = chrony.daemon(&lab, &format!("local stratum 5\nallow\nport {port}"));
    let server = start(&lab.config(&format!("reference = {{ upstream = \"localhost:{port}\" }}"), ""));
    wait_for("the upstream's stratum", || (server.metric("ntp_system_stratum") == 5.0).then_some(()));
    assert_eq!(server.metric("ntp_system_leap_indicator"), 0.0);
    let ntp = server.ntp.to_string();
    let output = authentick(["query", &ntp, "--auth", "plain"]);
    assert!(text(&output).contains("stratum        5"), "{}", text(&output));
    drop(upstream);
}

fn query(lab: &Lab, ke: u16, ntp: u16, arguments: &[&str]) -> std::process::Output {
    let (ca, server, ke) = (lab.ca(), format!("127.0.0.1:{ntp}"), ke.to_string());
    let mut all = vec!["query", &server, "--ca", ca.to_str().unwrap(), "--ke-port", &ke, "--timeout", "2"];
    all.extend(arguments);
    authentick(all)
}

/// Queries until the server is up, then once more with the whole jar.
fn take_time(lab: &Lab, ke: u16, ntp: u16, aead: &str) {
    let output = wait_for("an authenticated answer", || {
        Some(query(lab, ke, ntp, &[])).filter(|output| {
            std::thread::sleep(Duration::from_millis(50));
            output.status.success()
        })
    });
    assert!(text(&output).contains(aead), "{}", text(&output));
    let output = query(lab, ke, ntp, &["--count", "12", "--interval", "0.01"]);
    assert!(text(&output).contains("12 of 12 exchanges"), "{}", text(&output));
}
