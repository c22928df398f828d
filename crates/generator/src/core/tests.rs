//! A worker's core against a server that answers every request after a time of its own, in virtual time.

use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_report::load::{Second, Tally};
use authentick_wire::time::{NtpSpan, NtpTime};

use super::*;

const MS: u64 = 1_000_000;
const START_NS: u64 = 5_000 * MS;

/// Clocks that go on when they are looked at, or told to.
#[derive(Debug, Default)]
struct Virtual {
    ns: Cell<u64>,
    /// The time of day less the monotonic clock.
    set_ns: Cell<i64>,
}

impl Virtual {
    /// The time of day at this instant, if the clock is not set meanwhile.
    fn at(&self, ns: u64) -> NtpTime {
        NtpTime::from_unix(1_800_000_000, 0) + NtpSpan::from_nanos(ns as i64 + self.set_ns.get())
    }
}

impl Clock for Virtual {
    fn monotonic_ns(&self) -> u64 {
        self.ns.set(self.ns.get() + 40);
        self.ns.get()
    }

    fn time_of_day(&self) -> NtpTime {
        self.at(self.ns.get())
    }
}

/// A worker and its server.
struct Bench {
    core: Core,
    clock: Virtual,
    buffers: Vec<Buffer>,
    /// Answers on their way: when each comes, and to which client.
    answers: VecDeque<(u64, u32, Vec<u8>)>,
    /// Answers that have come, with their receive stamps by the clock of that moment.
    came: VecDeque<(NtpTime, u32, Vec<u8>)>,
    /// From a request to its answer.
    way_ns: u64,
    /// The server's time for each request, which those after it wait for.
    service_ns: u64,
}

impl Bench {
    fn new(arrivals: Arrivals, share: Share, way_ns: u64) -> Self {
        let settings = Settings {
            scheme: Scheme::Plain,
            arrivals,
            seed: 7,
            share,
            measured_count: 2,
            timeout: Duration::from_millis(100),
            ke_timeout: Duration::from_millis(100),
            key: None,
            guide: None,
            alternative_keys: false,
            replay_cookie: false,
            joinable: true,
        };
        let mut core = Core::new(settings, Entropy::from_seed(1)).unwrap();
        for port in 1..=3 {
            core.add_client(SocketAddr::from(([127, 0, 0, 1], port)));
        }
        let clock = Virtual { ns: Cell::new(START_NS - 1_000 * MS), ..Virtual::default() };
        Bench {
            core,
            clock,
            buffers: vec![[0; _]; BATCH_SIZE],
            answers: VecDeque::new(),
            came: VecDeque::new(),
            way_ns,
            service_ns: 0,
        }
    }

    /// A whole step that begins at [`START_NS`]; `meanwhile` sees the clock in each turn.
    fn step(&mut self, order: &Order, mut meanwhile: impl FnMut(&Virtual)) -> Part {
        self.core.start(order, START_NS);
        let mut now_ns = self.clock.monotonic_ns();
        while !self.core.is_over(now_ns) {
            self.core.open_turn();
            while self.tell(|core, desk| core.begin(now_ns, desk)) {}
            self.send();
            let due_ns = self.core.next_due_ns(now_ns);
            let next_ns = due_ns.into_iter().chain(self.answers.front().map(|(at_ns, ..)| *at_ns)).min();
            self.clock.ns.set(next_ns.unwrap_or(now_ns).max(now_ns));
            self.arrive();
            meanwhile(&self.clock);
            self.look();
            now_ns = self.clock.monotonic_ns();
            while self.tell(|core, desk| core.expire(now_ns, desk)) {}
        }
        let part = self.core.finish(0);
        let tallies = [Some(&part.tally), part.accompanying.as_ref(), part.background.as_ref()];
        assert!(tallies.into_iter().flatten().all(Tally::adds_up));
        assert!([true, false].iter().all(|&principal| self.core.warm_up_counts(principal).tally().adds_up()));
        part
    }

    fn tell<T>(&mut self, tell: impl FnOnce(&mut Core, &mut Desk<'_, Virtual>) -> T) -> T {
        if self.core.is_full() {
            self.send();
        }
        let out = &mut self.buffers[self.core.slot()];
        tell(&mut self.core, &mut Desk { clock: &self.clock, out })
    }

    fn send(&mut self) {
        if !self.core.close_batch(self.buffers.iter_mut()) {
            return;
        }
        while let Some(Run { client, slots }) = self.core.next_run() {
            let from = self.clock.reading_before_sending();
            for slot in slots.clone() {
                let request = &self.buffers[slot][..self.core.size_of(slot)];
                let free_ns = self.answers.back().map_or(0, |(at_ns, ..)| at_ns + self.service_ns);
                let at_ns = free_ns.max(from.ns + self.way_ns);
                self.answers.push_back((at_ns, client, answer(request, from.time_of_day)));
            }
            self.core.departed(slots.len(), &from, 0);
        }
    }

    /// What has come by now is stamped.
    fn arrive(&mut self) {
        let now_ns = self.clock.ns.get();
        while let Some((at_ns, client, octets)) = self.answers.pop_front_if(|(at_ns, ..)| *at_ns <= now_ns) {
            self.came.push_back((self.clock.at(at_ns), client, octets));
        }
    }

    /// The worker looks at what has come.
    fn look(&mut self) {
        while !self.came.is_empty() {
            let now = self.clock.reading();
            let count = self.came.len().min(BATCH_SIZE);
            let mut batch: Vec<_> = self.came.drain(..count).collect();
            for (at, client, octets) in &batch {
                self.tell(|core, desk| core.inspect(*client, octets, now.arrival(Some(*at)), desk));
            }
            self.core.verify(batch.iter_mut().map(|(.., octets)| &mut octets[..]), &self.clock);
            for (number, (at, _, octets)) in batch.iter_mut().enumerate() {
                self.tell(|core, desk| core.conclude(number, octets, now.arrival(Some(*at)), desk));
            }
            self.core.concluded();
        }
    }
}

/// The answer of a server whose clock says `now`.
fn answer(request: &[u8], now: NtpTime) -> Vec<u8> {
    let mut answer = vec![0; 48];
    // Version 4, mode 4, stratum 1.
    (answer[0], answer[1]) = (0b00_100_100, 1);
    answer[12..16].copy_from_slice(b"GPS\0");
    answer[24..32].copy_from_slice(&request[40..48]);
    for place in [16, 32, 40] {
        answer[place..place + 8].copy_from_slice(&now.to_be_bytes());
    }
    answer
}

const ALONE: Share = Share { index: 0, count: 1 };

fn order(rate_rps: Option<f64>, warm_up_ms: u64, duration_ms: u64) -> Order {
    let [warm_up, duration] = [warm_up_ms, duration_ms].map(Duration::from_millis);
    Order { rate_rps, warm_up, duration, ..Order::default() }
}

#[test]
fn warm_up_is_sent_and_counts_nowhere() {
    let mut bench = Bench::new(Arrivals::Constant, ALONE, MS);
    let part = bench.step(&order(Some(1_000.0), 250, 1_000), |_| {});
    let tally = &part.tally;
    assert_eq!((tally.scheduled, tally.sent, tally.answered), (1_000, 1_000, 1_000));
    assert_eq!(tally.histograms.latency_ns.count(), 1_000);
    assert_eq!((part.lateness_ns.count(), part.joinables.len()), (1_000, 1_000));
    let warm_up = bench.core.warm_up_counts(true);
    assert_eq!((warm_up.scheduled, warm_up.answered), (250, 250));
    assert!((part.seconds - 1.0).abs() < 1e-6, "{}", part.seconds);
    assert_eq!((tally.surplus, &part.why_invalid), (0, &None));
}

#[test]
fn warm_up_of_a_closed_loop_counts_nowhere() {
    let mut bench = Bench::new(Arrivals::Closed { window: 3 }, ALONE, 10 * MS);
    let part = bench.step(&order(None, 100, 200), |_| {});
    // Three every 10 ms, and a little for each turn.
    let (count, warm_up) = (part.tally.answered, bench.core.warm_up_counts(true).answered);
    assert!((54..=60).contains(&count) && (27..=33).contains(&warm_up), "{count} {warm_up}");
    assert_eq!((part.tally.sent, part.lateness_ns.count()), (count, count));
}

#[test]
fn closed_loop_finds_the_capacity_of_a_server_however_short_the_step() {
    // A thousand a second, or what the way allows: fifty every 80 ms.
    for (way_ns, service_ns, capacity_rps) in [(MS, MS, 1_000.0), (80 * MS, 0, 625.0)] {
        for warm_up_ms in [0, 150] {
            let mut bench = Bench::new(Arrivals::Closed { window: 50 }, ALONE, way_ns);
            bench.service_ns = service_ns;
            let Part { tally, seconds, .. } = bench.step(&order(None, warm_up_ms, 450), |_| {});
            let found_rps = tally.answered_within() as f64 / seconds;
            let whole = format!("{warm_up_ms} ms of warm-up: {found_rps}; {:?}", tally.backlog);
            // Fifty come at once, at the end or after it.
            let off_rps = if service_ns > 0 { 10.0 } else { 50.0 / 0.45 };
            assert!((found_rps - capacity_rps).abs() <= off_rps, "{whole}");
        }
    }
}

#[test]
fn latency_from_the_send_lacks_the_wait_before_it() {
    let mut bench = Bench::new(Arrivals::Constant, ALONE, MS);
    let mut is_held = false;
    // Once the worker is held up for 50 ms.
    let part = bench.step(&order(Some(100.0), 0, 1_000), |clock| {
        if !is_held && clock.ns.get() > START_NS + 500 * MS {
            is_held = true;
            clock.ns.set(clock.ns.get() + 50 * MS);
        }
    });
    let (due, sent) = (part.tally.latency_us.unwrap(), part.tally.from_send_us.unwrap());
    assert_eq!(part.tally.histograms.from_send_ns.count(), part.tally.answered);
    assert!(due.max > 30_000.0 && (sent.max - 1_000.0).abs() < 10.0, "{due:?} {sent:?}");
    assert!((due.p50 - sent.p50).abs() < 10.0, "{due:?} {sent:?}");
}

#[test]
fn backlog_says_how_much_more_is_asked_than_answered() {
    // Four thousand a second, 5 ms on their way, of which the server can answer all, or half.
    for (service_ns, middle, end, unsustained) in [(0, 20, 20, 0), (MS / 2, 90, 170, 160)] {
        let mut bench = Bench::new(Arrivals::Constant, ALONE, 5 * MS);
        bench.service_ns = service_ns;
        let Part { tally, .. } = bench.step(&order(Some(4_000.0), 0, 80), |_| {});
        assert_eq!((tally.sent, tally.answered), (320, 320));
        let near = |found: u64, expected: u64| found.abs_diff(expected) <= 2;
        assert!(near(tally.backlog.middle, middle) && near(tally.backlog.end, end), "{:?}", tally.backlog);
        assert!(tally.unsustained().abs_diff(unsustained) <= 4, "{:?}", tally.backlog);
    }
}

#[test]
fn first_operation_is_planned_by_the_workers_share() {
    let first = |arrivals, share, order: &Order| {
        let mut bench = Bench::new(arrivals, share, MS);
        bench.core.start(order, START_NS);
        bench.core.first_due_ns().map(|first_ns| first_ns as i64 - START_NS as i64)
    };
    let second_of_four = Share { index: 1, count: 4 };
    let second = first(Arrivals::Constant, second_of_four, &order(Some(10.0), 0, 1_000)).unwrap();
    assert!((100..200).contains(&(second / MS as i64)), "{second}");
    assert_eq!(first(Arrivals::Constant, second_of_four, &order(Some(10.0), 500, 1_000)), Some(second));
    let next = first(Arrivals::Constant, second_of_four, &Order { number: 1, ..order(Some(10.0), 0, 1_000) });
    assert_ne!(next, Some(second), "another step has another phase");
    assert_eq!(first(Arrivals::Constant, second_of_four, &order(Some(10.0), 0, 50)), None);
    assert!(first(Arrivals::Exponential, ALONE, &order(Some(10.0), 0, 9_000)).unwrap() > MS as i64);
    assert_eq!(first(Arrivals::Closed { window: 1 }, second_of_four, &order(None, 0, 1_000)), Some(0));
    let background = Order { background_rps: 5.0, ..order(Some(10.0), 0, 1_000) };
    let first = first(Arrivals::Constant, ALONE, &background).unwrap();
    assert!((-500..-300).contains(&(first / MS as i64)), "{first}");
}

#[test]
fn clock_that_is_set_spoils_the_step_and_no_latency() {
    for set_ms in [1_000, -1_000, 2, -2] {
        let mut bench = Bench::new(Arrivals::Constant, ALONE, MS);
        let mut is_set = false;
        // Answers have come and are not looked at; others are on their way.
        let part = bench.step(&order(Some(2_000.0), 0, 1_000), |clock| {
            if !is_set && clock.ns.get() > START_NS + 500 * MS {
                is_set = true;
                clock.set_ns.set(set_ms * MS as i64);
            }
        });
        assert_eq!(part.evidence.clock_jumps, 1, "{set_ms}");
        let why = part.why_invalid.unwrap();
        assert!(why.contains(&format!("the time of day was set by {set_ms:+}.0 ms")), "{why}");
        assert_eq!((part.tally.answered, part.tally.histograms.from_send_ns.count()), (2_000, 2_000));
        for latency in [part.tally.latency_us.unwrap(), part.tally.from_send_us.unwrap()] {
            assert!(latency.min > 950.0 && latency.max < 1_700.0, "{set_ms} {latency:?}");
        }
        let offset = part.tally.offset_us.unwrap();
        assert!(offset.min > -1_000.0 && offset.max < 1_000.0, "{set_ms} {offset:?}");
        assert!((1_990..2_000).contains(&part.tally.histograms.offset_ns.count()));
    }
}

#[test]
fn clock_that_is_slewed_spoils_nothing() {
    for ppm in [500, -500] {
        let mut bench = Bench::new(Arrivals::Constant, ALONE, MS);
        let part = bench.step(&order(Some(500.0), 0, 4_000), |clock| {
            let since_ns = clock.ns.get().saturating_sub(START_NS);
            clock.set_ns.set(since_ns as i64 / 1_000_000 * ppm);
        });
        assert_eq!((part.evidence.clock_jumps, part.why_invalid, part.tally.answered), (0, None, 2_000));
    }
}

#[test]
fn series_adds_up_to_the_tally_and_lacks_the_warm_up() {
    for (arrivals, rate_rps) in [
        (Arrivals::Constant, Some(100.0)),
        (Arrivals::Exponential, Some(300.0)),
        (Arrivals::Closed { window: 2 }, None),
    ] {
        let mut bench = Bench::new(arrivals, ALONE, 10 * MS);
        let part = bench.step(&order(rate_rps, 1_500, 3_000), |_| {});
        let sum = |of: fn(&Second) -> u64| part.series.iter().map(of).sum::<u64>();
        let tally = &part.tally;
        assert_eq!(sum(|second| second.sent), tally.sent);
        assert_eq!(sum(|second| second.answered), tally.answered);
        assert_eq!(sum(|second| second.failed), tally.lost + tally.invalid);
        let rest = part.series.get(3).map_or(0, |second| second.sent);
        assert!((3..=4).contains(&part.series.len()) && rest == 0, "{:?}", part.series);
        assert!(
            part.series[0].p50_us.is_some_and(|us| (us / 10_000.0 - 1.0).abs() < 0.04),
            "{:?}",
            part.series
        );
        assert_eq!(part.series.len(), part.series_ns.len());
    }
}
