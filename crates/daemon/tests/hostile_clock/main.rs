//! A node on a host whose clock is hostile: it starts in 1970, jumps, runs back. Keys stay, and a client that asks ten
//! times a second loses nothing.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod host;

use std::sync::Arc;

use authentick_daemon::keystore::{MemoryStore, Stores};
use authentick_lab::prober::{Prober, lost_count};
use authentick_lab::process::wait_for;
use authentick_net::clock::KernelClock;
use authentick_proto::client::Check;
use authentick_wire::header::{Header, Leap, ReferenceId};

use self::host::{ASSERTED, DAY, Host, KERNEL, TWO_LOOKS, Upstream, ask, wait_for_line};

/// Tries cases side by side, as each of them mostly waits.
fn at_once<C: Send + Copy, const N: usize>(cases: [C; N], try_it: impl Fn(C) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let try_it = &try_it;
            scope.spawn(move || try_it(case));
        }
    });
}

#[test]
fn host_that_starts_in_1970_loses_no_key_when_its_clock_is_set() {
    at_once([ASSERTED, KERNEL], |reference| {
        let host = Host::new();
        // Keys and cookies of last year's process, so to say: of before the host was switched off.
        let node = host.start(reference);
        let (mut session, key) = (host.session(&node), host.current_key());
        node.stop();
        host.clocks.set_to_1970();
        let node = host.start(reference);
        let prober = Prober::start(node.address());
        std::thread::sleep(TWO_LOOKS);
        ask(&mut session, &node).unwrap();
        let mut early = host.session(&node);
        host.clocks.set_ahead(0);
        std::thread::sleep(TWO_LOOKS);
        ask(&mut session, &node).unwrap();
        ask(&mut early, &node).unwrap();
        assert_eq!((node.rotations(), host.current_key()), (0.0, key), "{reference}");
        let probes = prober.stop();
        assert!(probes.len() > 20);
        assert_eq!(lost_count(&probes), 0);
        assert!(probes.iter().all(|probe| probe.told.is_some_and(|told| told.leap == Leap::None)));
        node.stop();
    });
}

#[test]
fn jump_of_a_running_hosts_clock_costs_no_key_either_way() {
    at_once([ASSERTED, KERNEL], |reference| {
        let host = Host::new();
        let node = host.start(reference);
        let (mut session, key) = (host.session(&node), host.current_key());
        let prober = Prober::start(node.address());
        // Until its thread has looked for the first time, a jump is downtime to it, which it makes up for.
        std::thread::sleep(TWO_LOOKS);
        for ahead in [9 * DAY as i64, -(DAY as i64), 0] {
            host.clocks.set_ahead(ahead);
            std::thread::sleep(TWO_LOOKS);
            ask(&mut session, &node).unwrap();
            assert_eq!((node.rotations(), host.current_key()), (0.0, key), "{reference} {ahead}");
        }
        // A period by the clock that is never set is one rotation, and nine of them at once are one more.
        host.clocks.pass(DAY);
        node.wait_for_rotations(1.0);
        host.clocks.pass(9 * DAY);
        node.wait_for_rotations(2.0);
        std::thread::sleep(TWO_LOOKS);
        assert_eq!((node.rotations(), host.current_key()), (2.0, key.wrapping_add(2)), "{reference}");
        ask(&mut session, &node).unwrap();
        let probes = prober.stop();
        assert_eq!(lost_count(&probes), 0, "of {}", probes.len());
        node.stop();
    });
}

#[test]
fn host_that_restarts_daily_in_1970_rotates_all_the_same() {
    let host = Host::new();
    host.clocks.set_to_1970();
    let mut keys = Vec::new();
    for _ in 0..3 {
        let node = host.start(ASSERTED);
        keys.push(host.current_key());
        // Sixteen hours of every day it is on.
        host.clocks.pass(16 * 3600);
        std::thread::sleep(TWO_LOOKS);
        node.stop();
        host.clocks.set_to_1970();
    }
    let first = keys[0];
    assert_eq!(keys, [first, first, first.wrapping_add(1)], "32 hours of service are one rotation");
}

#[test]
fn downtime_is_made_up_for_at_the_start_and_the_key_that_sealed_last_survives() {
    at_once([(KERNEL, 3, 3), (KERNEL, 400, 7), (ASSERTED, 3, 1)], |(reference, days, rotations)| {
        let host = Host::new();
        let node = host.start(reference);
        let (mut session, key) = (host.session(&node), host.current_key());
        node.stop();
        host.clocks.pass(days * DAY);
        let node = host.start(reference);
        node.wait_for_rotations(1.0);
        std::thread::sleep(TWO_LOOKS);
        assert_eq!(host.current_key(), key.wrapping_add(rotations), "{reference} {days}");
        ask(&mut session, &node).unwrap();
        // A second start at the same time makes up for nothing.
        node.stop();
        let node = host.start(reference);
        std::thread::sleep(TWO_LOOKS);
        assert_eq!(host.current_key(), key.wrapping_add(rotations), "{reference} {days}");
        node.stop();
    });
}

#[test]
fn derived_keys_go_by_a_clock_that_somebody_vouches_for_and_leave_the_key_that_sealed_last() {
    at_once([ASSERTED, KERNEL], |reference| {
        let host = Host::new();
        // An operator makes the first keys.
        host.start(reference).stop();
        let key = host.current_key();
        let is_at = |count: u32| {
            std::thread::sleep(TWO_LOOKS);
            assert_eq!(host.current_key(), key.wrapping_add(count), "{reference}");
        };
        let node = host.start_derived(reference);
        let mut session = host.session(&node);
        is_at(0);
        // Ahead by two days, and back: nothing is undone, and the client stays.
        host.clocks.set_ahead(2 * DAY as i64);
        is_at(2);
        host.clocks.set_ahead(0);
        is_at(2);
        ask(&mut session, &node).unwrap();
        host.clocks.pass(2 * DAY);
        is_at(2);
        host.clocks.pass(DAY);
        is_at(3);
        ask(&mut session, &node).unwrap();
        // So far ahead that no key would be left.
        host.clocks.set_ahead(90 * DAY as i64);
        is_at(3);
        wait_for_line(&["not rotated as the clock says", "copy ", "SIGHUP"]);
        ask(&mut session, &node).unwrap();
        host.clocks.set_ahead(3 * DAY as i64);
        is_at(3);
        node.stop();
        // Away for three days, and for a year.
        for (days, count) in [(3, 6), (365, if reference == KERNEL { 371 } else { 6 })] {
            host.clocks.pass(days * DAY);
            let node = host.start_derived(reference);
            is_at(count);
            node.stop();
        }
    });
}

/// Waits until the server tells the client this leap indicator.
fn wait_for_leap(prober: &Prober, leap: Leap) {
    wait_for(&format!("{leap:?}"), || {
        prober
            .so_far()
            .last()
            .is_some_and(|probe| probe.told.is_some_and(|told| told.leap == leap))
            .then_some(())
    });
}

#[test]
fn loss_of_the_kernels_word_is_told_and_so_is_its_return() {
    let host = Host::new();
    let node = host.start(KERNEL);
    let prober = Prober::start(node.address());
    wait_for_leap(&prober, Leap::None);
    for lost in [KernelClock::Unsynchronised, KernelClock::Unknown] {
        host.clocks.set_kernel(lost);
        wait_for_leap(&prober, Leap::Unsynchronised);
        assert_eq!(node.metric("ntp_system_leap_indicator"), 3.0);
        host.clocks.set_kernel(KernelClock::Synchronised { leap: Some(true), error_max_us: 700 });
        wait_for_leap(&prober, Leap::Insert);
    }
    for parts in [
        ["WARN", "the kernel reports", "serving leap=3"],
        ["WARN", "cannot ask the kernel", "serving leap=3"],
        ["INFO", "synchronised:", "source=kernel"],
    ] {
        wait_for_line(&parts);
    }
    let probes = prober.stop();
    assert_eq!(lost_count(&probes), 0);
    let told = probes.iter().filter_map(|probe| probe.told);
    for told in told.filter(|told| told.leap == Leap::Unsynchronised) {
        assert_eq!((told.stratum, told.reference_id), (0, ReferenceId(*b"INIT")));
    }
    node.stop();
}

#[test]
fn upstream_that_loses_its_clock_or_has_another_one_is_not_mirrored() {
    let (host, upstream) = (Host::new(), Upstream::start());
    let node = host.start(&upstream.reference());
    let prober = Prober::start(node.address());
    wait_for_leap(&prober, Leap::None);
    let (good, address) = (Upstream::good(), upstream.address.to_string());
    wait_for_line(&["INFO", &address, "synchronised: source=", "stratum=3"]);
    let unsynchronised = Header { leap: Leap::Unsynchronised, ..good };
    let far = Header { stratum: 16, ..good };
    let kiss = Header { stratum: 0, reference_id: ReferenceId::DENY, ..unsynchronised };
    for (says, why) in
        [(unsynchronised, "clock is not synchronised"), (far, "stratum: 16"), (kiss, "kiss code DENY")]
    {
        upstream.says(Some(says));
        // At the next question, and not after a minute.
        wait_for_leap(&prober, Leap::Unsynchronised);
        wait_for_line(&["WARN", &address, why]);
        assert_eq!(node.metric("ntp_system_stratum"), 0.0);
        upstream.says(Some(good));
        wait_for_leap(&prober, Leap::None);
    }
    // The host's clock jumps, and the upstream's does not: they are two clocks.
    host.clocks.set_ahead(9 * DAY as i64);
    wait_for_leap(&prober, Leap::Unsynchronised);
    wait_for_line(&["WARN", &address, "it keeps another clock"]);
    host.clocks.set_ahead(0);
    wait_for_leap(&prober, Leap::None);
    // The kernel has agreed, and withdraws its word: whoever answers now may be anybody.
    host.clocks.set_kernel(KernelClock::Unsynchronised);
    wait_for_leap(&prober, Leap::Unsynchronised);
    wait_for_line(&["WARN", &address, "though the upstream vouches"]);
    host.clocks.set_kernel(KernelClock::Synchronised { leap: None, error_max_us: 500 });
    wait_for_leap(&prober, Leap::None);
    // Silence counts for a minute if the kernel agrees.
    upstream.says(None);
    std::thread::sleep(TWO_LOOKS);
    host.clocks.pass(50);
    std::thread::sleep(TWO_LOOKS);
    wait_for_leap(&prober, Leap::None);
    host.clocks.pass(15);
    wait_for_leap(&prober, Leap::Unsynchronised);
    wait_for_line(&["WARN", &address, "does not answer"]);
    let probes = prober.stop();
    assert_eq!(lost_count(&probes), 0, "of {}", probes.len());
    node.stop();
}

#[test]
fn clock_that_nobody_looks_at_any_more_is_not_vouched_for() {
    let host = Host::new();
    let node = host.start(KERNEL);
    let prober = Prober::start(node.address());
    wait_for_leap(&prober, Leap::None);
    let hanging = host.clocks.hang();
    // Eleven seconds by the clock that is never set.
    host.clocks.pass(11);
    wait_for_leap(&prober, Leap::Unsynchronised);
    assert_eq!(node.metric("ntp_system_leap_indicator"), 3.0);
    assert!(node.metric("ntp_heartbeat_age_seconds{thread=\"clock\"}") > 10.0);
    wait_for_line(&["ERROR", "nobody has looked at the clock for 10 s"]);
    drop(hanging);
    wait_for_leap(&prober, Leap::None);
    wait_for("a heartbeat", || {
        (node.metric("ntp_heartbeat_age_seconds{thread=\"clock\"}") < 5.0).then_some(())
    });
    let probes = prober.stop();
    assert_eq!(lost_count(&probes), 0, "of {}", probes.len());
    node.stop();
}

#[test]
fn nodes_that_share_a_store_open_each_others_cookies_whoever_rotates() {
    let stores = Stores {
        cookie_keys: Arc::new(MemoryStore::default()),
        ..Stores::in_directory(std::path::Path::new("/nonexistent"))
    };
    let (here, there) = (Host::new(), Host::new());
    let one = here.start_with(ASSERTED, stores.clone());
    let other = there.start_with(ASSERTED, stores.clone());
    let (mut first, mut second) = (here.session(&one), there.session(&other));
    // Both keys are as old, and the first to look rotates.
    for host in [&here, &there] {
        host.clocks.pass(DAY - 1000);
    }
    here.clocks.pass(1000);
    one.wait_for_rotations(1.0);
    let current = || stores.cookie_keys.load().unwrap().unwrap().keys.current().id();
    let key = current();
    there.clocks.pass(1000);
    std::thread::sleep(TWO_LOOKS);
    assert_eq!((one.rotations(), other.rotations(), current()), (1.0, 0.0, key));
    for node in [&one, &other] {
        ask(&mut first, node).unwrap();
        ask(&mut second, node).unwrap();
        ask(&mut here.session(&one), node).unwrap();
        ask(&mut there.session(&other), node).unwrap();
    }
    one.stop();
    other.stop();
}

#[test]
fn cookie_of_a_key_that_is_gone_is_told_so() {
    // The other tests assert that no cookie is lost; this one that they would notice.
    let host = Host::new();
    let node = host.start(ASSERTED);
    let mut session = host.session(&node);
    for count in 1..=8 {
        host.clocks.pass(DAY);
        node.wait_for_rotations(f64::from(count));
    }
    assert_eq!(ask(&mut session, &node), Err(Check::Kiss(ReferenceId::NTSN)));
    node.stop();
}
