//! NTS clients as somebody sees them who stands between them and the server.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use authentick_lab::corrupt::{Changed, Corrupt, Damage, Record, Tap};
use authentick_report::load::{Cause, Operation};

use super::{behind, failures, load_nts, only};
use crate::lab::{Lab, wait_for};

/// Requests by client, in the order in which they came.
fn by_client(tap: &Tap) -> HashMap<SocketAddr, Vec<&Record>> {
    let mut clients: HashMap<SocketAddr, Vec<&Record>> = HashMap::new();
    for request in tap.requests() {
        clients.entry(request.client).or_default().push(request);
    }
    clients
}

#[test]
fn cookies_are_never_sent_twice_and_placeholders_make_up_for_losses() {
    let lab = Lab::new();
    let middle = (Tap::default(), Corrupt::new(Damage::LostResponse, 10));
    let (server, relay) = behind(&lab, middle);
    // Each client asks every second: its last request has ended before, and even a slow answer is in time.
    let arguments = ["--rate", "100", "--step-seconds", "4", "--clients", "100", "--timeout", "0.45"];
    let record = load_nts("nts", server.ke, &lab, &arguments);
    let tally = &only(&record).tally;
    relay.with(|(tap, corrupt)| {
        assert_eq!((tap.unrecorded(), tap.requests().len() as u64), (0, tally.sent + 1));
        assert_eq!(failures(tally), [(Cause::Timeout, corrupt.damaged())].into());
        assert!(corrupt.damaged() >= 25);
        let uses = tap.cookie_uses();
        assert_eq!(uses.len(), tap.requests().len(), "a cookie each");
        assert!(uses.iter().all(|&uses| uses == 1));
        // The tap is nearer to the client than the loss, so it sees which requests had no answer.
        let mut expected = BTreeMap::<usize, u64>::new();
        let mut found = BTreeMap::<usize, u64>::new();
        for requests in by_client(tap).values() {
            let mut missing = 0;
            for request in requests {
                *expected.entry(missing).or_default() += 1;
                *found.entry(request.placeholder_count()).or_default() += 1;
                let transmit = &request.octets[40..48];
                let answered = tap.responses().iter().any(|response| &response.octets[24..32] == transmit);
                // What came back filled the jar; what was lost leaves a place more.
                missing = if answered { 0 } else { missing + 1 };
            }
        }
        assert_eq!(found, expected, "requests by their placeholders");
        assert!(found.contains_key(&1));
    });
}

#[test]
fn replayed_cookies_are_one_for_each_client_and_the_record_says_so() {
    let lab = Lab::new();
    let (server, relay) = behind(&lab, Tap::default());
    let arguments = ["--rate", "200", "--step-seconds", "1", "--clients", "10", "--replay-cookie"];
    let record = load_nts("nts", server.ke, &lab, &arguments);
    let tally = &only(&record).tally;
    assert!(record.parameters.replay_cookie);
    let page = authentick_report::load::text::summary(&record);
    assert!(page.contains("one cookie of each client sent again and again"), "{page}");
    assert_eq!((tally.answered, failures(tally)), (tally.sent, [].into()));
    relay.with(|tap| {
        // The first request is of the load itself, which has a client of its own for it.
        let uses = tap.cookie_uses();
        assert_eq!((uses[0], uses.len(), tap.requests().len() as u64), (1, 11, tally.sent + 1));
        for requests in by_client(tap).values() {
            assert!(requests.iter().all(|request| request.cookie() == requests[0].cookie()));
            assert!(requests.iter().all(|request| request.placeholder_count() == 0));
        }
    });
}

#[test]
fn three_transfers_with_one_cookie_follow_each_key_exchange() {
    let lab = Lab::new();
    let (server, relay) = behind(&lab, Tap::default());
    let arguments = ["--rate", "30", "--step-seconds", "1", "--same-cookie", "--transfers-per-exchange", "3"];
    let record = load_nts("mix", server.ke, &lab, &arguments);
    let step = only(&record);
    let transfers = step.accompanying.as_ref().unwrap();
    assert!(record.parameters.same_cookie && step.tally.answered >= 20);
    assert_eq!(transfers.sent, 3 * step.tally.answered);
    let uses = relay.with(|tap| tap.cookie_uses());
    assert_eq!(uses[0], 1, "the load's own first request");
    assert_eq!(uses.len() as u64 - 1, step.tally.answered);
    assert!(uses[1..].iter().all(|&uses| uses == 3), "{uses:?}");
}

#[test]
fn background_without_transfers_exchanges_keys_and_holds_no_client() {
    let lab = Lab::new();
    let (server, relay) = behind(&lab, Tap::default());
    let background = ["--background", "40", "--background-transfers", "0", "--background-clients", "1"];
    let arguments = ["--rate", "10", "--step-seconds", "1", "--transfers-per-exchange", "2"];
    let record = load_nts("mix", server.ke, &lab, &[&arguments[..], &background].concat());
    let step = only(&record);
    let exchanges = step.background.as_ref().unwrap();
    // One client could not carry so many at once: nothing was skipped for want of one.
    assert_eq!((exchanges.skipped, step.background_accompanying.as_ref()), (0, None));
    assert!(exchanges.answered >= 40, "{exchanges:?}");
    let transfers = step.accompanying.as_ref().unwrap();
    assert_eq!(transfers.sent, 2 * step.tally.answered);
    // But for the load's own first request.
    assert_eq!(relay.with(|tap| tap.requests().len()) as u64, transfers.sent + 1);
    assert_eq!(record.parameters.background_transfers, Some(0));
}

#[test]
fn transfers_after_a_key_exchange_have_a_cookie_each_unless_told_otherwise() {
    let lab = Lab::new();
    let (server, relay) = behind(&lab, Tap::default());
    let arguments = ["--rate", "30", "--step-seconds", "1", "--transfers-per-exchange", "3"];
    let record = load_nts("mix", server.ke, &lab, &arguments);
    let uses = relay.with(|tap| tap.cookie_uses());
    assert_eq!(uses.len() as u64, 1 + 3 * only(&record).tally.answered);
    assert!(uses.iter().all(|&uses| uses == 1), "{uses:?}");
}

#[test]
fn background_is_offered_and_not_measured() {
    let lab = Lab::new();
    let (server, relay) = behind(&lab, Tap::default());
    let arguments =
        ["--rate", "10", "--background", "40", "--step-seconds", "1.5", "--transfers-per-exchange", "2"];
    let record = load_nts("mix", server.ke, &lab, &arguments);
    let step = only(&record);
    let (measured, background) = (&step.tally, step.background.as_ref().unwrap());
    // It begins half a second earlier.
    assert_eq!((measured.scheduled, background.scheduled), (15, 80));
    assert_eq!((step.offered_rps, record.parameters.background_rps), (Some(10.0), 40.0));
    assert_eq!(measured.histograms.latency_ns.count(), measured.answered);
    assert_eq!(background.histograms.latency_ns.count(), 0);
    assert!(measured.answered >= 10 && background.answered >= 60, "{measured:?} {background:?}");
    let transfers = step.accompanying.as_ref().unwrap();
    assert_eq!(transfers.sent, 2 * measured.answered);
    let beside = step.background_accompanying.as_ref().unwrap();
    assert_eq!((beside.sent, beside.operation), (2 * background.answered, Operation::Transfer));
    // The server and the tap saw all of them.
    let served = (measured.sent + background.sent + 1) as f64;
    let metric = "nts_ke_connections_total{outcome=\"served\"}";
    wait_for("key exchanges", || (server.metric(metric) == served).then_some(()));
    let seen = relay.with(|tap| tap.requests().len() as u64);
    assert_eq!(seen, 2 * (measured.answered + background.answered) + 1);
}

#[test]
fn background_of_time_transfers_is_kept_apart_too() {
    let lab = Lab::new();
    let server = crate::lab::serve(&lab);
    let address = server.ntp.to_string();
    let arguments = ["plain", &address, "--rate", "100", "--background", "300", "--step-seconds", "1"];
    let record = super::load(&arguments);
    let step = only(&record);
    let background = step.background.as_ref().unwrap();
    assert_eq!((step.tally.scheduled, background.scheduled), (100, 450));
    let received = (step.tally.sent + background.sent + 1) as f64;
    wait_for("requests", || (server.outcome("plain") == received).then_some(()));
}

#[test]
fn transfers_that_follow_a_key_exchange_end_with_the_step() {
    let lab = Lab::new();
    // A thousand transfers of 5 ms each, one after the other.
    let slow = |response: Vec<u8>| {
        std::thread::sleep(Duration::from_millis(5));
        vec![response]
    };
    let (server, _relay) = behind(&lab, Changed(slow));
    let arguments = ["--rate", "4", "--step-seconds", "0.5", "--timeout", "0.5", "--same-cookie"];
    let more = ["--transfers-per-exchange", "1000"];
    let record = load_nts("mix", server.ke, &lab, &[&arguments[..], &more].concat());
    let step = only(&record);
    let transfers = step.accompanying.as_ref().unwrap();
    assert!(step.tally.answered > 0 && transfers.answered > 0, "{step:?}");
    // They have the step and a timeout after it, in which 200 fit.
    assert!(transfers.scheduled < 1000 * step.tally.answered, "{transfers:?}");
    assert!(transfers.adds_up(), "{transfers:?}");
    assert!(step.seconds < 0.9, "transfers make no step longer: {} s", step.seconds);
}
