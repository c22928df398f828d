//! Floods of key exchanges from many addresses. All of 127.0.0.0/8 is this host's, so any of it can be a source.

use authentick_daemon::Running;

use super::*;

/// Waits until `outcome` was counted so often.
fn counted(node: &Running, outcome: Outcome, count: u64) {
    let seen = || node.totals().of_outcome(outcome);
    let what = || format!("{} of {count} {}", seen(), outcome.label());
    let end = Instant::now() + PATIENCE;
    while seen() != count {
        assert!(Instant::now() < end, "{}", what());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn key_exchanges_are_served_beside_a_flood_of_m3_from_sources_that_nobody_proved() {
    const ROUND_COUNT: usize = 10;
    const SOURCE_COUNT: u8 = 60;
    let folder = tempfile::tempdir().unwrap();
    // What honest clients do one after the other is no more than these two and a prefix's burst.
    let antp = "queue = 2\nrate-limit = { all-exchanges-per-second = 0 }";
    let node = node::start(&config(folder.path(), antp, &suites(folder.path()))).unwrap();
    // The attacker has an address, and so a C1. It sends its m3 as if it were many.
    let mut attacker = Client::at(&node, [127, 0, 1, 1]);
    let done = attacker.negotiate(Suite::RSA_PKCS1);
    let (_, m3) = attacker.key_request(&done);
    let spoofed: Vec<Client> = (1..=SOURCE_COUNT).map(|last| Client::at(&node, [127, 0, 2, last])).collect();
    let mut honest = Client::new(&node);
    let done = honest.negotiate(Suite::RSA_PKCS1);
    for round in 0..ROUND_COUNT {
        for source in &spoofed {
            source.socket.send(&m3).unwrap();
        }
        let (mut exchange, request) = honest.key_request(&done);
        let session = exchange.receive(&honest.ask(&request));
        assert!(session.is_ok(), "round {round}: {session:?}");
    }
    counted(&node, Outcome::AntpExpired, ROUND_COUNT as u64 * u64::from(SOURCE_COUNT));
    counted(&node, Outcome::AntpKeyExchange, ROUND_COUNT as u64);
    counted(&node, Outcome::AntpQueueFull, 0);
    for source in &spoofed {
        assert_eq!(source.receive().len(), 88, "an error, which is smaller than the m3");
    }
    assert!(node.stop());
}

#[test]
fn client_whose_address_changes_negotiates_anew_unless_sources_are_not_checked() {
    for (antp, is_checked) in [("", true), ("check-source = false", false)] {
        let folder = tempfile::tempdir().unwrap();
        let node = node::start(&config(folder.path(), antp, &suites(folder.path()))).unwrap();
        let (mut here, mut there) = (Client::new(&node), Client::at(&node, [127, 0, 0, 9]));
        let done = here.negotiate(Suite::P256);
        let (mut exchange, request) = here.key_request(&done);
        let moved = exchange.receive(&there.ask(&request));
        match is_checked {
            true => assert_eq!(moved, Err(Check::Server(ErrorCode::EXPIRED))),
            false => assert!(moved.is_ok(), "{moved:?}"),
        }
        let mut session = there.session(Suite::P256);
        // Of a session, no address is kept.
        assert!(matches!(here.time(&mut session, Wanted::default()), Ok(Event::Accepted(_))));
        assert!(node.stop());
    }
}

#[test]
fn key_exchanges_of_all_sources_together_have_a_rate_and_time_is_still_served() {
    let folder = tempfile::tempdir().unwrap();
    let antp = "queue = 4\nrate-limit = { all-exchanges-per-second = 0.001 }";
    let node = node::start(&config(folder.path(), antp, &suites(folder.path()))).unwrap();
    let mut first = Client::new(&node);
    let mut session = first.session(Suite::P256);
    let mut refused = 0;
    for last in 1..=8 {
        let mut client = Client::at(&node, [127, 0, 3, last]);
        let done = client.negotiate(Suite::P256);
        let (mut exchange, request) = client.key_request(&done);
        match exchange.receive(&client.ask(&request)) {
            Ok(_) => assert!(last <= 3, "as many at once as have room in the queue"),
            Err(Check::Server(ErrorCode::RATE)) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(refused, 5);
    counted(&node, Outcome::AntpBusy, refused);
    assert!(matches!(first.time(&mut session, Wanted::default()), Ok(Event::Accepted(_))));
    assert!(node.stop());
}
