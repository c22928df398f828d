//! A load against a server that says nothing takes as much memory as is stated, however long and fast it is.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::cell::Cell;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_generator::limits::{BATCH_SIZE, FLIGHT_COUNT_MAX};
use authentick_generator::schedule::Share;
use authentick_generator::{Arrivals, Buffer, Clock, Core, Desk, Order, Run, Scheme, Settings};
use authentick_report::load::Cause;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::{NtpSpan, NtpTime};

const SECOND_NS: u64 = 1_000_000_000;
const RATE_RPS: u64 = 100_000;
const SECONDS: u64 = 60;
/// So long that none of the requests is given up.
const TIMEOUT: Duration = Duration::from_secs(50);

/// A clock that the test sets.
#[derive(Debug)]
struct Hand(Cell<u64>);

impl Clock for Hand {
    fn monotonic_ns(&self) -> u64 {
        self.0.get()
    }

    fn time_of_day(&self) -> NtpTime {
        NtpTime::from_bits(1 << 63) + NtpSpan::from_nanos(self.0.get() as i64)
    }
}

fn core() -> Core {
    let settings = Settings {
        scheme: Scheme::Plain,
        arrivals: Arrivals::Constant,
        seed: 1,
        share: Share { index: 0, count: 1 },
        measured_count: 1,
        timeout: TIMEOUT,
        ke_timeout: TIMEOUT,
        key: None,
        guide: None,
        alternative_keys: false,
        replay_cookie: false,
        joinable: false,
    };
    let mut core = Core::new(settings, Entropy::from_seed(1)).unwrap();
    core.add_client("198.18.0.1:9".parse().unwrap());
    core
}

/// Sends what is written.
fn flush(core: &mut Core, clock: &Hand, buffers: &mut [Buffer]) {
    if !core.close_batch(buffers.iter_mut()) {
        return;
    }
    while let Some(Run { slots, .. }) = core.next_run() {
        core.departed(slots.len(), &clock.reading_before_sending(), 0);
    }
}

#[test]
fn requests_that_wait_are_bounded_and_the_rest_is_the_generators_own_loss() {
    let (mut core, clock) = (core(), Hand(Cell::new(SECOND_NS)));
    let mut buffers = vec![[0; DATAGRAM_SIZE_MAX]; BATCH_SIZE];
    let order =
        Order { rate_rps: Some(RATE_RPS as f64), duration: Duration::from_secs(SECONDS), ..Order::default() };
    core.start(&order, SECOND_NS);
    loop {
        let now_ns = clock.0.get();
        core.open_turn();
        while core.begin(now_ns, &mut Desk { clock: &clock, out: &mut buffers[core.slot()] }) {
            if core.is_full() {
                flush(&mut core, &clock, &mut buffers);
            }
        }
        flush(&mut core, &clock, &mut buffers);
        while core.expire(now_ns, &mut Desk { clock: &clock, out: &mut buffers[0] }) {}
        assert!(core.waiting_count() <= FLIGHT_COUNT_MAX);
        if core.is_over(now_ns) {
            break;
        }
        clock.0.set(core.next_due_ns(now_ns).unwrap_or(now_ns).max(now_ns + SECOND_NS / 2_000));
    }
    let part = core.finish(0);
    let tally = &part.tally;
    assert!(tally.adds_up(), "{tally:?}");
    assert_eq!((tally.scheduled, tally.answered), (RATE_RPS * SECONDS, 0));
    // As many as may wait at once.
    assert_eq!(tally.sent, FLIGHT_COUNT_MAX as u64);
    assert_eq!(tally.count_of(Cause::LocalMemory), tally.skipped);
    assert_eq!(tally.count_of(Cause::Timeout), tally.sent);
    let why = part.why_invalid.unwrap();
    assert!(why.contains("as many answers as it can"), "{why}");
}
