//! ANTP under load: each phase and whole runs, against a server that counts what came, and with somebody in the middle.

mod renewal;
mod server;

use authentick_lab::corrupt::Changed;
use authentick_lab::skip::skip;
use authentick_report::load::{Cause, LoadRecord, Operation, text as report};
use authentick_wire::antp::Suite;

use self::server::AntpServer;
use super::{failures, load, load_ending, only};
use crate::lab::{Lab, Relay, authentick, free_port, start, text, wait_for};

/// Arguments of a load of `server` by way of `port`, short and with few clients unless `more` says otherwise.
fn arguments(scheme: &str, server: &AntpServer, port: u16, more: &[&str]) -> Vec<String> {
    let (target, ca) = (format!("127.0.0.1:{port}"), server.ca());
    let mut all = vec![scheme, &target, "--ca", ca.to_str().unwrap()];
    for usual in [["--step-seconds", "0.5"], ["--clients", "20"]] {
        if !more.contains(&usual[0]) {
            all.extend(usual);
        }
    }
    all.iter().chain(more).map(ToString::to_string).collect()
}

#[track_caller]
fn load_antp(scheme: &str, server: &AntpServer, more: &[&str]) -> LoadRecord {
    load(&arguments(scheme, server, server.address.port(), more))
}

/// Loads a P-256 server whose responses pass through `change`.
#[track_caller]
fn load_changed(
    scheme: &str,
    more: &[&str],
    change: impl FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
) -> LoadRecord {
    let server = AntpServer::start(&[Suite::P256]);
    let port = free_port();
    let _relay = Relay::on_loopback(port, server.address, Changed(change));
    load(&arguments(scheme, &server, port, more))
}

/// Loads with one mechanism in every way; the probe is one request of each phase, and of m1 as many as the chain takes.
fn every_scheme(kem: &str, suite: Suite) {
    let server = AntpServer::start(&[suite]);
    let mut before = [0; 3];
    let mut measure = |scheme: &str, more: &[&str]| {
        let record = load_antp(scheme, &server, &[&["--kem", kem, "--rate", "200"], more].concat());
        let now = server.counts();
        let seen = [0, 1, 2].map(|phase| now[phase] - before[phase]);
        before = now;
        let step = only(&record).clone();
        assert_eq!((step.tally.scheduled, step.tally.skipped), (100, 0), "{kem} {scheme} {:?}", step.tally);
        assert_eq!(step.tally.answered, step.tally.sent, "{kem} {scheme} {:?}", step.tally.causes);
        let antp = record.parameters.antp.clone().unwrap();
        assert_eq!((antp.kem.as_str(), record.scheme.as_str()), (kem, scheme));
        (step, seen, u64::from(antp.round_count))
    };
    for replay in [&[][..], &["--replay"]] {
        let (step, seen, rounds) = measure("antp-negotiate", replay);
        let each = if replay.is_empty() { rounds } else { 1 };
        assert_eq!(step.tally.operation, Operation::Negotiation);
        assert_eq!(seen, [rounds + 100 * each, 1, 1], "{kem}");

        let (step, seen, rounds) = measure("antp-exchange", replay);
        assert_eq!((step.tally.operation, seen[1], seen[2]), (Operation::KeyExchange, 101, 1), "{kem}");
        assert!(seen[0] >= rounds + 20, "each of 20 clients has a C1 of its own: {seen:?}");
        assert!(step.accompanying.is_none(), "no C1 is 30 s old: {step:?}");
        let crypto = step.antp.unwrap().client_crypto_us.unwrap();
        assert!(crypto.p50 > 0.0, "{crypto:?}");

        let (step, seen, _) = measure("antp", replay);
        assert_eq!((step.tally.operation, seen[1], seen[2]), (Operation::Transfer, 21, 101), "{kem}");
        assert_eq!((step.request_size, step.antp.unwrap().early), (152, 0));
    }
    let (step, seen, rounds) = measure("antp-full", &[]);
    assert_eq!((step.tally.operation, seen), (Operation::Run, [101 * rounds, 101, 101]), "{kem}");
}

#[test]
fn our_own_server_holds_every_phase() {
    // A key for ANTP serves nothing else.
    let (lab, own) = (Lab::new(), Lab::new());
    let config = lab.config("", "");
    let suite = format!("certificate-chain = {:?}\nprivate-key = {:?}\n", own.chain(), own.key());
    let text = std::fs::read_to_string(&config).unwrap()
        + "[antp]\nenable = true\n\
           rate-limit = { negotiations-per-second = 0, exchanges-per-second = 0, times-per-second = 0 }\n\
           [antp.ecdh]\n"
        + &suite;
    std::fs::write(&config, text).unwrap();
    let server = start(&config);
    let (target, ca) = (server.ntp.to_string(), own.ca());
    for (scheme, more) in [
        ("antp-negotiate", &[][..]),
        ("antp-exchange", &["--replay"]),
        ("antp", &["--replay"]),
        ("antp", &["--separate-tag"]),
        ("antp-full", &["--separate-tag"]),
    ] {
        // The thread for public keys gives way to all else that this machine has to do.
        let usual = ["--rate", "200", "--step-seconds", "0.5", "--clients", "20", "--timeout", "30"];
        let record = load(&[&[scheme, &target, "--ca", ca.to_str().unwrap()], &usual[..], more].concat());
        let step = only(&record);
        assert_eq!((step.tally.answered, step.tally.sent), (100, 100), "{scheme} {more:?} {:?}", step.tally);
        let early = if more == ["--separate-tag"] { 100 } else { 0 };
        assert_eq!(step.antp.as_ref().unwrap().early, early, "{scheme} {more:?}");
    }
}

#[test]
fn every_scheme_is_answered_and_counted_with_ecdh() {
    every_scheme("ecdh", Suite::P256);
}

#[test]
fn every_scheme_is_answered_and_counted_with_rsa() {
    every_scheme("rsa", Suite::RSA_PKCS1);
}

#[test]
fn every_scheme_is_answered_and_counted_with_rsa_oaep() {
    every_scheme("rsa-oaep", Suite::RSA_OAEP);
}

#[test]
fn every_scheme_is_answered_and_counted_with_x25519() {
    every_scheme("x25519", Suite::X25519);
}

#[test]
fn static_requests_cost_the_generator_no_public_key_work() {
    let server = AntpServer::start(&[Suite::P256]);
    let median = |more: &[&str]| {
        let record = load_antp("antp-exchange", &server, more);
        only(&record).antp.as_ref().unwrap().client_crypto_us.unwrap().p50
    };
    let (fresh, fixed) = (median(&["--rate", "300"]), median(&["--rate", "300", "--replay"]));
    assert!(fixed * 2.0 < fresh, "{fixed} us with --replay, {fresh} us without");
}

#[test]
fn wrong_tags_of_m4_and_m6_are_found_and_also_under_static_requests() {
    // m4 has 160 octets, m6 has 92; the tag is the end of both.
    for (scheme, size) in [("antp-exchange", 160), ("antp", 92)] {
        for replay in [&[][..], &["--replay"]] {
            let mut seen = 0;
            let record = load_changed(
                scheme,
                &[&["--rate", "200", "--timeout", "0.4"], replay].concat(),
                move |mut octets| {
                    seen += usize::from(octets.len() == size);
                    // What comes before the load is left alone.
                    if octets.len() == size && seen > 40 && seen % 10 == 0 {
                        octets[size - 1] ^= 1;
                    }
                    vec![octets]
                },
            );
            let tally = &only(&record).tally;
            // With that of the probe there are 101: the 50th, 60th, up to the 100th.
            let damaged = 6;
            assert_eq!(failures(tally), [(Cause::BadTag, damaged)].into(), "{scheme} {replay:?}");
            assert_eq!((tally.invalid, tally.answered), (damaged, tally.sent - damaged));
        }
    }
}

#[test]
fn plain_answers_errors_and_foreign_suites_each_have_their_cause() {
    fn error(mut octets: Vec<u8>, code: u8) -> Vec<u8> {
        octets.truncate(48);
        octets.extend([0xFA, 0x09, 0, 40]);
        octets.extend(*b"ANTP\x01\x00\x00\x00");
        octets.extend([0, code]);
        octets.extend([0; 26]);
        octets
    }
    type Case = (&'static str, usize, fn(Vec<u8>) -> Vec<u8>, Cause);
    let change: [Case; 5] = [
        ("antp", 92, |octets| octets[..48].to_vec(), Cause::BadTag),
        ("antp", 92, |octets| error(octets, 4), Cause::AntpRate),
        ("antp", 92, |octets| error(octets, 2), Cause::AntpRefused),
        ("antp-exchange", 160, |octets| octets[..47].to_vec(), Cause::Malformed),
        // The suite in m2's prefix, in its last field of 128 octets.
        (
            "antp-negotiate",
            0,
            |mut octets| {
                let suite = octets.len() - 128 + 4 + 6;
                octets[suite] ^= 1;
                octets
            },
            Cause::Negotiation,
        ),
    ];
    std::thread::scope(|scope| {
        for (scheme, size, change, cause) in change {
            scope.spawn(move || {
                let mut seen = 0;
                let record = load_changed(scheme, &["--rate", "100", "--timeout", "0.3"], move |octets| {
                    seen += u32::from(size == 0 || octets.len() == size);
                    let strikes = (size == 0 || octets.len() == size) && seen > 30 && seen % 5 == 0;
                    vec![if strikes { change(octets) } else { octets }]
                });
                let found = failures(&only(&record).tally);
                assert_eq!(found.keys().collect::<Vec<_>>(), [&cause], "{scheme} {cause}");
                assert!(found[&cause] >= 4, "{found:?}");
            });
        }
    });
}

#[test]
fn state_that_the_server_forgot_is_renewed_and_the_load_goes_on() {
    for scheme in ["antp", "antp-exchange"] {
        for replay in [&[][..], &["--replay"]] {
            let server = AntpServer::start(&[Suite::P256]);
            let record = std::thread::scope(|scope| {
                scope.spawn(|| {
                    // Once the load has begun in earnest, all state is worth nothing.
                    let phase = if scheme == "antp" { 2 } else { 1 };
                    wait_for("the load", || (server.counts()[phase] >= 60).then_some(()));
                    server.forget();
                });
                let more = ["--rate", "100", "--step-seconds", "2", "--timeout", "0.3", "--clients", "5"];
                load_antp(scheme, &server, &[&more, replay].concat())
            });
            let step = only(&record);
            let found = failures(&step.tally);
            assert_eq!(found.keys().collect::<Vec<_>>(), [&Cause::StateExpired], "{scheme} {replay:?}");
            // Each of the five clients learned it once, or with what it had in flight.
            assert!((5..30).contains(&found[&Cause::StateExpired]), "{scheme} {replay:?} {found:?}");
            let renewed = step.accompanying.as_ref().unwrap();
            assert_eq!((renewed.answered, renewed.sent), (5, 5), "{scheme} {replay:?}");
            let operation = if scheme == "antp" { Operation::KeyExchange } else { Operation::Negotiation };
            assert_eq!(renewed.operation, operation);
        }
    }
}

#[test]
fn separate_tags_time_the_early_packet_if_it_came_and_was_genuine() {
    let more = ["--rate", "200", "--separate-tag", "--timeout", "0.3"];
    let early = |record: &LoadRecord| only(record).antp.as_ref().unwrap().early;
    let all = load_changed("antp", &more, |octets| vec![octets]);
    assert_eq!((only(&all).tally.answered, early(&all), only(&all).request_size), (100, 100, 224));
    assert_eq!(only(&all).response_size, 76 + 120);
    assert!(all.parameters.antp.as_ref().unwrap().separate_tag);
    // An early packet has 76 octets, a follow-up 120. A guess of the former times nothing.
    let guessed = load_changed("antp", &more, |mut octets| {
        if octets.len() == 76 {
            octets[75] ^= 1;
        }
        vec![octets]
    });
    assert_eq!((only(&guessed).tally.answered, early(&guessed)), (100, 0));
    let untagged = arguments_of_untagged(&more);
    assert_eq!(failures(&only(&untagged).tally), [(Cause::Timeout, 100)].into());
}

/// A load whose follow-ups are all lost: not an answer is time.
fn arguments_of_untagged(more: &[&str]) -> LoadRecord {
    let server = AntpServer::start(&[Suite::P256]);
    let port = free_port();
    let change = |octets: Vec<u8>| if octets.len() == 120 { vec![] } else { vec![octets] };
    let _relay = Relay::on_loopback(port, server.address, Changed(change));
    load_ending(1, &arguments("antp", &server, port, more))
}

#[test]
fn whole_run_takes_as_long_as_its_phases_and_the_clients_cryptography() {
    let server = AntpServer::start(&[Suite::RSA_PKCS1]);
    let record = load_antp("antp-full", &server, &["--kem", "rsa", "--closed", "1", "--clients", "1"]);
    let step = only(&record);
    let figures = step.antp.as_ref().unwrap();
    let [negotiation, exchange, time, sum, crypto] = [
        figures.negotiation_us,
        figures.key_exchange_us,
        figures.time_us,
        figures.phases_us,
        figures.client_crypto_us,
    ]
    .map(Option::unwrap);
    let run = step.tally.latency_us.unwrap();
    assert!(exchange.p50 > time.p50, "a private operation with RSA: {exchange:?} {time:?}");
    assert!(sum.p50 > negotiation.p50 && sum.p50 > exchange.p50);
    assert!(run.p50 > sum.p50 && crypto.p50 > 0.0, "{run:?} {sum:?} {crypto:?}");
    assert_eq!(figures.histograms.phases_ns.count(), step.tally.answered);
    let shown = report::summary(&record);
    assert!(shown.contains("the phases of a run added up"), "{shown}");
}

/// How often a capacity is searched that a busy machine hides.
const SEARCH_COUNT: usize = 4;

#[test]
fn search_prints_the_capacity_of_a_phase() {
    let server = AntpServer::start(&[Suite::P256]);
    let search = ["--search", "--search-from", "100", "--rate-max", "200", "--timeout", "1", "--replay"];
    let find = || load_antp("antp-exchange", &server, &search);
    let mut record = find();
    for _ in 1..SEARCH_COUNT {
        if record.held_rps() == Some(200.0) {
            break;
        }
        record = find();
    }
    let words = report::conclusion(&record);
    // Where the generator stands still, less is answered a second than is offered.
    assert!(record.capacity_rps().is_none_or(|rate| rate <= 200.0), "{words}");
    if record.held_rps() != Some(200.0) {
        return skip("this machine is too busy for a generator to keep its times");
    }
    for part in ["/s; no higher rate was allowed.", "Rates are of key exchanges"] {
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn server_without_the_suite_or_with_a_strange_certificate_is_not_loaded() {
    let (server, other) = (AntpServer::start(&[Suite::P256]), AntpServer::start(&[Suite::P256]));
    let run = |arguments: &[&str]| {
        let output = authentick(["load"].iter().chain(arguments).copied());
        (output.status.code(), text(&output))
    };
    let (target, ca) = (server.address.to_string(), server.ca());
    let ca = ca.to_str().unwrap();
    let (code, said) = run(&["antp", &target, "--ca", ca, "--kem", "rsa"]);
    assert!(code == Some(2) && said.contains("error from the server"), "{code:?}: {said}");
    let (code, said) = run(&["antp", &target, "--ca", ca, "--server-name", "other.test"]);
    assert!(code == Some(2) && said.contains("certificate"), "{code:?}: {said}");
    let (code, said) = run(&["antp-negotiate", &target, "--ca", ca, "--separate-tag"]);
    assert_eq!(code, Some(64), "{said}");
    assert_eq!(other.counts(), [0; 3]);
    assert_eq!(server.counts()[1..], [0, 0]);
}

#[test]
fn plan_prints_the_papers_clients_and_what_its_nine_hours_are() {
    let run =
        |more: &[&str]| authentick(["plan", "antp", "--time-rate", "175644"].iter().chain(more).copied());
    let output = run(&["--poll", "32768", "--rekey", "30days"]);
    let said = text(&output);
    assert!(output.status.success() && said.contains("5,755,502,592") && said.contains("2^15 s"), "{said}");
    let json = run(&["--poll", "30min", "--rekey", "180days", "--json"]);
    assert!(
        String::from_utf8_lossy(&json.stdout).contains("\"times_per_exchange\":8640.0"),
        "{}",
        text(&json)
    );
    let nonsense = run(&["--poll", "30days", "--rekey", "30min"]);
    assert_eq!(nonsense.status.code(), Some(64));
}
