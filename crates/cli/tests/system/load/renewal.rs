//! How NTS clients lose their keys and get new ones, or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use authentick_lab::corrupt::{Changed, Corrupt, Damage};
use authentick_lab::exchanges::{Behaviour, KeServer};
use authentick_report::load::{Cause, Operation};
use authentick_wire::header::ReferenceId;

use super::{begin, behind, failures, finish, load, load_nts, only, under_nts};
use crate::lab::{Lab, free_port, start, wait_for};

#[test]
fn every_ntsn_costs_a_request_and_a_key_exchange() {
    let lab = Lab::new();
    let (server, relay) = behind(&lab, Corrupt::new(Damage::Kiss(ReferenceId::NTSN), 25));
    let arguments = ["--rate", "150", "--step-seconds", "2", "--clients", "30", "--timeout", "0.5"];
    let record = load_nts("nts", server.ke, &lab, &arguments);
    let step = only(&record);
    let damaged = relay.with(|corrupt| corrupt.damaged());
    assert!(damaged >= 8);
    assert_eq!(failures(&step.tally), [(Cause::Ntsn, damaged)].into());
    let exchanges = step.accompanying.as_ref().unwrap();
    assert_eq!(exchanges.operation, Operation::KeyExchange);
    assert_eq!((exchanges.sent, exchanges.answered), (damaged, damaged));
    assert_eq!(server.metric("nts_ke_connections_accepted_total"), (1 + 30 + damaged) as f64);
}

#[test]
fn server_whose_cookie_keys_are_gone_is_asked_for_new_ones_and_answers_again() {
    let lab = Lab::new();
    let (ntp, ke) = (free_port(), free_port());
    let listen = format!("listen = [\"127.0.0.1:{ntp}\"]");
    let config = lab.config(&listen, &format!("ke-listen = [\"127.0.0.1:{ke}\"]"));
    let before = start(&config);
    let arguments = ["--rate", "100", "--step-seconds", "3", "--clients", "20", "--timeout", "0.3"];
    let process = begin(&under_nts("nts", before.ke, &lab, &arguments));
    wait_for("some requests", || (before.outcome("nts") > 50.0).then_some(()));
    drop(before);
    std::fs::remove_dir_all(lab.state()).unwrap();
    let after = start(&config);
    let record = finish(process);
    let step = only(&record);
    let ntsn = step.tally.count_of(Cause::Ntsn);
    assert!(ntsn > 0 && ntsn as f64 == after.outcome("nts_nak_unknown_key"), "{:?}", step.tally.causes);
    let exchanges = step.accompanying.as_ref().unwrap();
    assert!((1..=20).contains(&exchanges.answered), "{exchanges:?}");
    assert_eq!(exchanges.answered as f64, after.metric("nts_ke_connections_total{outcome=\"served\"}"));
    assert!(after.outcome("nts") >= 50.0, "later requests were answered: {:?}", step.tally);
    // Nothing else is wrong with them, but for those that came while nobody was there.
    let known = [Cause::Ntsn, Cause::Refused, Cause::Timeout, Cause::Late];
    assert!(failures(&step.tally).keys().all(|cause| known.contains(cause)), "{:?}", step.tally.causes);
}

#[test]
fn clients_whose_cookies_are_gone_and_get_none_skip_what_was_due() {
    const CLIENT_COUNT: u64 = 3;
    let lab = Lab::new();
    // Fifty responses come back, the load's own among them, and then none.
    let left = Arc::new(AtomicU64::new(50));
    let some = move |response| {
        let passes = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if passes.is_ok() { vec![response] } else { Vec::new() }
    };
    let (server, relay) = behind(&lab, Changed(some));
    // The load's own key exchange and one for each client.
    let ke = KeServer::start_after(1 + CLIENT_COUNT, server.ke, Behaviour::Gone, &lab);
    let arguments = ["--rate", "100", "--step-seconds", "2", "--clients", "3", "--timeout", "0.4"];
    let record = load(&under_nts("nts", ke.address(), &lab, &arguments));
    let step = only(&record);
    let tally = &step.tally;
    // Each client had eight cookies then.
    let timeouts = tally.count_of(Cause::Timeout);
    assert_eq!((tally.answered, failures(tally)), (49, [(Cause::Timeout, 8 * CLIENT_COUNT)].into()));
    assert_eq!(relay.counts().requests, 1 + 49 + timeouts);
    let without = tally.count_of(Cause::NoCookie);
    assert!(
        without > 50 && without + tally.count_of(Cause::FellBehind) == tally.skipped,
        "{:?}",
        tally.causes
    );
    let exchanges = step.accompanying.as_ref().unwrap();
    assert!(exchanges.sent >= CLIENT_COUNT, "each tried again: {exchanges:?}");
    assert_eq!(failures(exchanges), [(Cause::Refused, exchanges.sent)].into());
    let why = step.why_invalid.as_deref().unwrap_or_default();
    assert!(!why.contains("cookie"), "it is the server's fault that there were none: {why}");
}

#[test]
fn late_answers_under_keys_that_were_replaced_meanwhile_are_late_and_genuine() {
    let lab = Lab::new();
    // The answer to every second request is held back, until the next one has come by.
    let mut held: Option<Vec<u8>> = None;
    let mut count = 0;
    let hold = move |response: Vec<u8>| {
        count += 1;
        match held.take() {
            Some(earlier) => vec![earlier, response],
            // The first one is the load's own.
            None if count > 1 => {
                held = Some(response);
                Vec::new()
            }
            None => vec![response],
        }
    };
    let (server, relay) = behind(&lab, Changed(hold));
    // A client that exchanges keys every 300 ms, and waits for 200 ms, or twice as long for what is late.
    let arguments =
        ["--clients", "1", "--rate", "3.3333", "--step-seconds", "3", "--transfers-per-exchange", "1"];
    let record = load_nts("mix", server.ke, &lab, &[&arguments[..], &["--timeout", "0.2"]].concat());
    let transfers = only(&record).accompanying.as_ref().unwrap();
    let late = transfers.count_of(Cause::Late);
    assert!(late >= 3, "{:?}", transfers.causes);
    // The last one may be held for ever.
    let timeouts = transfers.count_of(Cause::Timeout);
    assert!(timeouts <= 2, "{:?}", transfers.causes);
    assert_eq!((transfers.invalid, transfers.lost), (0, late + timeouts), "{:?}", transfers.causes);
    assert_eq!(relay.counts().requests, transfers.sent + 1);
}

#[test]
fn answers_that_nobody_vouches_for_are_not_believed_while_keys_are_exchanged() {
    let lab = Lab::new();
    // After some, each response is a kiss that takes the client's keys away, and a header without authentication for
    // the request before, which still waits.
    let mut earlier: Option<Vec<u8>> = None;
    let mut count = 0;
    let forge = move |response: Vec<u8>| {
        count += 1;
        match earlier.take() {
            _ if count <= 11 => vec![response],
            None => {
                earlier = Some(response[..48].to_vec());
                Vec::new()
            }
            Some(bare) => {
                let mut corrupt = Corrupt::new(Damage::Kiss(ReferenceId::NTSN), 1);
                let any = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
                let kiss = authentick_lab::corrupt::Middle::response(&mut corrupt, response, any);
                kiss.into_iter().chain([bare]).collect()
            }
        }
    };
    let (server, _relay) = behind(&lab, Changed(forge));
    let arguments = ["--clients", "1", "--rate", "20", "--step-seconds", "1.5", "--timeout", "0.3"];
    let record = load_nts("nts", server.ke, &lab, &arguments);
    let tally = &only(&record).tally;
    // One is of the load itself.
    assert_eq!(tally.answered, 10, "{:?}", tally.causes);
    assert!(tally.count_of(Cause::Ntsn) >= 3, "{:?}", tally.causes);
}
