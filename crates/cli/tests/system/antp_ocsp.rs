//! `authentick query --auth antp --ocsp`: OpenSSL's responder, and responders that are wrong in each way.

use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use authentick_lab::ocsp::{Openssl, Reply, Responder, access};
use rcgen::CertificateParams;

use crate::antp::{Bench, assert_rejected};
use crate::lab::{Lab, free_port, text};

/// 2082-06-01, and 2003-06-01.
const IN_2082: u64 = 3_547_497_600;
const IN_2003: u64 = 1_054_425_600;

/// A server whose certificate names `responder`.
fn bench(lab: Lab, responder: &Responder, change: impl Fn(&mut CertificateParams)) -> Bench {
    let url = responder.url();
    Bench::of(lab, &["ecdh"], |params| {
        params.custom_extensions.push(access(&url));
        change(params);
    })
}

/// A server whose responder answers by what `openssl` makes of the request.
fn with_openssl(
    lab: Lab,
    openssl: &Openssl,
    reply: impl Fn(&Openssl, &[u8]) -> Vec<u8> + Send + 'static,
) -> (Bench, Responder) {
    let ours = openssl.clone();
    let responder = Responder::start(move |request| Reply::Octets(reply(&ours, request)));
    (bench(lab, &responder, |_| {}), responder)
}

/// A server whose responder sends this, and the arguments that ask it.
fn with_reply(reply: Reply) -> (Bench, Responder) {
    let responder = Responder::start(move |_| reply.clone());
    (bench(Lab::new(), &responder, |_| {}), responder)
}

#[test]
fn responder_of_openssl_vouches_for_a_good_certificate_and_the_time() {
    let lab = Lab::new();
    let Some(openssl) = Openssl::find(&lab) else { return };
    let (bench, responder) = with_openssl(lab, &openssl, Openssl::answer);
    openssl.list(&bench.lab.antp_chain("ecdh"), false);
    let url = responder.url();
    for arguments in [&["--ocsp"][..], &["--ocsp", &url]] {
        let before = SystemTime::now();
        let result = bench.json(arguments);
        let authentication = &result["authentication"];
        assert_eq!(authentication["trusted_by"], "authorities and OCSP");
        let vouches = authentication["ocsp"].as_array().unwrap();
        assert!(vouches.len() == 1, "the chain has no other certificate than the leaf: {vouches:?}");
        let vouch = &vouches[0];
        assert_eq!((&vouch["responder"], &vouch["signed_by"]), (&url.as_str().into(), &"delegate".into()));
        assert_eq!(vouch["subject"], "CN=ntp.test");
        let instant = |name: &str| humantime::parse_rfc3339(vouch[name].as_str().unwrap()).unwrap();
        let produced = instant("produced_at");
        assert!(produced + Duration::from_secs(1) >= before && produced <= SystemTime::now(), "{vouch}");
        assert!(instant("this_update") <= produced && produced < instant("next_update"), "{vouch}");
    }
    let output = bench.ask(&["--ocsp"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let (out, remarks) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for part in ["authorities and OCSP", "CN=ntp.test was good at 20", &url] {
        assert!(out.contains(part), "{part} is not in {out}");
    }
    assert!(remarks.contains("trust: CN=ntp.test was good at") && remarks.contains("OCSP with a nonce"));
    let requests = responder.requests();
    assert!(requests.len() == 3 && requests[0] != requests[1] && requests[1] != requests[2]);
    let plain = bench.json(&[]);
    assert!(plain["authentication"]["ocsp"].is_null() && responder.requests().len() == 3, "asked unasked");
}

#[test]
fn certificate_that_openssl_says_is_revoked_or_does_not_know_is_exit_2() {
    let lab = Lab::new();
    let Some(openssl) = Openssl::find(&lab) else { return };
    let (bench, _responder) = with_openssl(lab, &openssl, Openssl::answer);
    assert_rejected(&bench.ask(&["--ocsp"]), "certificate check: ocsp: certificate unknown");
    openssl.list(&bench.lab.antp_chain("ecdh"), true);
    let revoked = "ocsp: certificate revoked: since 2026-01-01T00:00:00Z: its key was compromised";
    assert_rejected(&bench.ask(&["--ocsp"]), revoked);
    assert_eq!(bench.ask(&[]).status.code(), Some(0), "nobody asks, nobody knows");
}

#[test]
fn answer_without_nonce_or_to_an_earlier_question_is_exit_2() {
    let lab = Lab::new();
    let Some(openssl) = Openssl::find(&lab) else { return };
    let (bench, _responder) = with_openssl(lab, &openssl, Openssl::answer_without_nonce);
    openssl.list(&bench.lab.antp_chain("ecdh"), false);
    let output = bench.ask(&["--ocsp"]);
    assert_rejected(&output, "ocsp nonce: the response has none, and may be old");

    // Somebody who has kept what a responder said when the certificate was good.
    let kept = Arc::new(Mutex::new(None));
    let ours = openssl.clone();
    let replays = Responder::start(move |request| {
        let mut kept = kept.lock().unwrap();
        Reply::Octets(kept.get_or_insert_with(|| ours.answer(request)).clone())
    });
    let url = replays.url();
    assert_eq!(bench.ask(&["--ocsp", &url]).status.code(), Some(0), "it was fresh once");
    openssl.list(&bench.lab.antp_chain("ecdh"), true);
    assert_rejected(&bench.ask(&["--ocsp", &url]), "ocsp nonce: it is not that of the question");
    assert_eq!(replays.requests().len(), 2);
}

#[test]
fn delegate_that_has_expired_or_was_never_one_is_exit_2() {
    type Change = fn(&mut CertificateParams);
    let changes: [(Change, &str); 2] = [
        (|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1), "ocsp signer"),
        (|params| params.extended_key_usages.clear(), "ocsp signer"),
    ];
    for (change, part) in changes {
        let lab = Lab::new();
        let Some(openssl) = Openssl::with_delegate(&lab, change) else { return };
        let (bench, _responder) = with_openssl(lab, &openssl, Openssl::answer);
        openssl.list(&bench.lab.antp_chain("ecdh"), false);
        assert_rejected(&bench.ask(&["--ocsp"]), part);
    }
}

/// A certificate of the 2080s is to this machine what one of today is to a host whose clock shows 1970.
#[test]
fn dates_are_judged_at_the_time_that_the_responder_vouches_for_decades_from_the_clock() {
    let date = |year| rcgen::date_time_ymd(year, 1, 1);
    let at = |unix_seconds: u64, from: i32, until: i32| {
        let lab = Lab::new();
        let signer = lab.ocsp_signer();
        let responder = Responder::start(move |request| Reply::Octets(signer.answer(request, unix_seconds)));
        let bench = bench(lab, &responder, |params| {
            (params.not_before, params.not_after) = (date(from), date(until));
        });
        (bench, responder)
    };
    let (bench, _responder) = at(IN_2082, 2080, 2085);
    assert_rejected(&bench.ask(&[]), "certificate validity: not yet valid");
    let output = bench.ask(&["--ocsp"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let remarks = String::from_utf8_lossy(&output.stderr);
    assert!(remarks.contains("was good at 2082-06-01") && remarks.contains("not at the time of this host's"));
    let saved = std::fs::read_to_string(bench.state().join("antp-time")).unwrap();
    assert!(saved.starts_with(&humantime::format_rfc3339(SystemTime::now()).to_string()[..4]), "{saved}");

    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let (early, _responder) = at(now, 2080, 2085);
    let output = early.ask(&["--ocsp"]);
    assert_rejected(&output, "certificate validity: not yet valid");
    assert!(text(&output).contains("the time that a responder vouches for"), "{}", text(&output));
    let (late, _responder) = at(IN_2082, 2020, 2081);
    assert_rejected(&late.ask(&["--ocsp"]), "certificate validity: expired");
    // Whoever has a key that was good in 2003 cannot make it 2003 again.
    let (past, _responder) = at(IN_2003, 2000, 2005);
    std::fs::DirBuilder::new().mode(0o700).create(past.state()).unwrap();
    std::fs::write(past.state().join("antp-time"), "2020-01-01T00:00:00Z\n").unwrap();
    assert_rejected(&past.ask(&["--ocsp"]), "ocsp time: the responder says that it is 2003-06-01");
}

#[test]
fn nothing_is_asked_about_a_certificate_that_is_for_another_name() {
    let (bench, responder) = with_reply(Reply::Octets(vec![]));
    assert_rejected(&bench.ask(&["--ocsp", "--server-name", "other.test"]), "certificate name");
    assert_eq!(responder.requests().len(), 0);
}

#[test]
fn certificate_without_a_responder_needs_one_that_is_named() {
    let lab = Lab::new();
    let signer = lab.ocsp_signer();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let responder = Responder::start(move |request| Reply::Octets(signer.answer(request, now)));
    let bench = Bench::of(lab, &["ecdh"], |_| {});
    assert_rejected(&bench.ask(&["--ocsp"]), "ocsp responder: CN=ntp.test: the certificate names none");
    let result = bench.json(&["--ocsp", &responder.url()]);
    assert_eq!(result["authentication"]["ocsp"][0]["signed_by"], "issuer");
}

#[test]
fn responder_that_is_down_or_silent_is_exit_1_and_one_that_declines_69() {
    let (bench, _responder) = with_reply(Reply::Silence(Duration::from_secs(2)));
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    for (arguments, code, part) in [
        (&["--ocsp", &nobody][..], 1, "nothing listens there"),
        (&["--ocsp", "--timeout", "0.5"], 1, "no answer within 0.5 s"),
    ] {
        let output = bench.ask(arguments);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        assert!(
            text(&output).contains(part) && text(&output).contains("ocsp responder"),
            "{}",
            text(&output)
        );
    }
    for status in ["503 Service Unavailable", "404 Not Found", "302 Found\r\nLocation: http://127.0.0.1:1/"] {
        let (bench, responder) = with_reply(Reply::Status(status));
        let output = bench.ask(&["--ocsp"]);
        assert_eq!(output.status.code(), Some(69), "{status}: {}", text(&output));
        assert!(text(&output).contains(&status[..3]), "{}", text(&output));
        assert_eq!(responder.requests().len(), 1);
    }
}

#[test]
fn body_that_is_too_long_or_no_response_is_exit_2() {
    let try_later = vec![0x30, 3, 0x0a, 1, 3];
    for (body, part) in [
        (vec![0x30; (64 << 10) + 2], "ocsp response: longer than 65536 octets"),
        (vec![0; 64 << 10], "ocsp response: no OCSP response"),
        (vec![], "ocsp response: no OCSP response"),
        (b"<html>Please sign in to this network</html>".to_vec(), "ocsp response: no OCSP response"),
        (try_later, "ocsp status: the responder is busy"),
    ] {
        let (bench, _responder) = with_reply(Reply::Octets(body));
        assert_rejected(&bench.ask(&["--ocsp"]), part);
    }
}
