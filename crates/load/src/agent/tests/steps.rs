//! Steps of one run on several hosts: what they add up to, and how they end early.

use super::*;

#[test]
fn three_agents_work_in_lockstep_and_add_up() {
    const STEPS: usize = 3;
    let authority = Authority::new();
    let agents = [(); 3].map(|()| TestAgent::start(&authority));
    let names: Vec<String> = agents.iter().map(TestAgent::name).collect();
    let mut coordinator = connect(&authority, &names).unwrap();
    let watch = Watch::default();
    for _ in 0..STEPS {
        let part = coordinator.step(&order(1000.0, 0.2), Instant::now(), &watch).unwrap();
        assert!(part.tally.adds_up());
        // 334, 333 and 333 a second: 67 operations each, of which six are lost.
        assert_eq!((part.tally.sent, part.tally.lost, part.tally.answered), (201, 18, 183));
        assert_eq!(part.tally.histograms.latency_ns.count(), 183);
        assert_eq!((part.why_invalid, part.request_size), (None, 228));
        let rows = coordinator.hosts();
        assert_eq!(rows.iter().map(|row| &row.name).collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
        assert_eq!(rows.iter().filter_map(|row| row.offered_rps).collect::<Vec<_>>(), [334.0, 333.0, 333.0]);
        for row in rows {
            assert!(row.valid && row.tally.adds_up() && row.tally.sent == 67, "{row:?}");
            assert_eq!(row.tally.histograms, Histograms::default());
            assert_eq!((row.busy_share, row.cpu_count), (Some(0.25), Some(3)));
            assert_eq!(row.cpu.as_deref(), Some("a  [31mprocessor"), "nothing steers a terminal");
            assert_eq!((row.kernel.as_deref(), row.version.as_deref()), (Some("Linux 6"), Some("9.8.7")));
            assert!(row.start_skew_error_us > 0.0 && row.start_skew_error_us < 100_000.0, "{row:?}");
            // All clocks are this host's, so the skew is the generator's own lateness, which is not negative.
            assert!(row.start_skew_us >= -row.start_skew_error_us - 1.0, "{row:?}");
        }
    }
    assert_eq!(watch.counts(), [201 * STEPS as u64, 201 * STEPS as u64, 0], "the watch sees all");
    let steps: Vec<_> = agents.iter().map(|agent| agent.deeds.steps.lock().unwrap().clone()).collect();
    for number in 1..STEPS {
        let ended = steps.iter().map(|steps| steps[number - 1].1).max().unwrap();
        let began = steps.iter().map(|steps| steps[number].0).min().unwrap();
        assert!(began > ended, "step {number}");
    }
    let plans = agents.each_ref().map(|agent| agent.deeds.plans.lock().unwrap()[0].clone());
    assert_eq!(plans.iter().map(|plan| plan.clients).collect::<Vec<_>>(), [3, 3, 3]);
    assert!(plans[0].seed != plans[1].seed && plans[1].seed != plans[2].seed);
}

#[test]
fn start_skew_is_the_generators_own_lateness() {
    struct Late(Counter);
    impl Crew for Late {
        fn step(&mut self, order: &Order, start: Instant, watch: &Watch) -> Result<Part, CrewError> {
            self.0.step(order, start + Duration::from_millis(150), &Watch::default()).inspect(|_| {
                watch.note_start(Duration::from_millis(150));
            })
        }
    }
    let authority = Authority::new();
    let make = |deeds| Box::new(Late(Counter { deeds, bulk: false })) as Box<dyn Crew>;
    let late = TestAgent::with(&authority, &authority, Limits::default(), make);
    let mut coordinator = connect(&authority, &[late.name()]).unwrap();
    let start = Instant::now() + Duration::from_millis(400);
    coordinator.step(&order(100.0, 0.1), start, &Watch::default()).unwrap();
    let rows = coordinator.hosts();
    assert!((rows[0].start_skew_us - 150_000.0).abs() <= rows[0].start_skew_error_us + 10.0, "{rows:?}");
}

#[test]
fn report_of_many_megabytes_arrives() {
    let authority = Authority::new();
    let make = |deeds| Box::new(Counter { deeds, bulk: true }) as Box<dyn Crew>;
    let agents = [(); 2].map(|()| TestAgent::with(&authority, &authority, Limits::default(), make));
    let mut coordinator = connect(&authority, &agents.each_ref().map(TestAgent::name)).unwrap();
    let part = coordinator.step(&order(1000.0, 0.1), Instant::now(), &Watch::default()).unwrap();
    assert_eq!(part.lateness_ns.count(), 400_000);
    // Both agents report the same.
    let kept = part.joinables.len();
    assert_eq!(kept as u64 + part.joinables_left_out, 2 * JOINABLE_COUNT_MAX as u64);
    assert!((JOINABLE_COUNT_MAX / 8..=JOINABLE_COUNT_MAX).contains(&kept), "{kept}");
}

#[test]
fn stop_in_a_step_reaches_all_and_what_was_done_is_reported() {
    let authority = Authority::new();
    let agents = [(); 2].map(|()| TestAgent::start(&authority));
    let mut coordinator = connect(&authority, &agents.each_ref().map(TestAgent::name)).unwrap();
    let watch = Watch::default();
    let (stopped, result) = thread::scope(|scope| {
        let stopper = scope.spawn(|| {
            agents.iter().for_each(TestAgent::await_sending);
            let now = Instant::now();
            watch.stop();
            now
        });
        let result = coordinator.step(&order(2000.0, 60.0), Instant::now(), &watch);
        (stopper.join().unwrap(), result)
    });
    let (part, rows) = (result.unwrap(), coordinator.hosts());
    let sent: u64 = agents.iter().map(|agent| agent.deeds.sent.load(Ordering::SeqCst)).sum();
    assert!(part.tally.adds_up() && part.tally.sent == sent && sent > 0 && sent < 100_000);
    assert_eq!(rows.len(), 2);
    assert_eq!(watch.counts()[0], sent);
    for agent in &agents {
        let after = agent.await_step_end().saturating_duration_since(stopped);
        assert!(after < Duration::from_millis(150), "it went on for {after:?}");
    }
}

#[test]
fn step_that_is_stopped_before_its_start_reports_nothing_done() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let mut coordinator = connect(&authority, &[agent.name()]).unwrap();
    let watch = Watch::default();
    watch.stop();
    let start = Instant::now() + Duration::from_secs(20);
    let part = coordinator.step(&order(2000.0, 60.0), start, &watch).unwrap();
    let rows = coordinator.hosts();
    assert_eq!(part.tally.sent, 0);
    assert!(!rows[0].valid && rows[0].why_invalid.as_ref().unwrap().contains("before it began"));
    assert_eq!(part.why_invalid, Some(format!("{}: it was stopped before it began", agent.name())));
}

#[test]
fn coordinator_that_vanishes_stops_the_step_at_once() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let (sender, mut receiver) = raw(&authority, &agent);
    begin(&agent, &sender, &mut receiver);
    let gone = Instant::now();
    sender.close();
    let after = agent.await_step_end().saturating_duration_since(gone);
    assert!(after < Duration::from_millis(100), "it went on for {after:?}");
    assert_free(&authority, &agent);
}

#[test]
fn coordinator_that_falls_silent_stops_the_step() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let (sender, mut receiver) = raw(&authority, &agent);
    begin(&agent, &sender, &mut receiver);
    // The connection stays open, and no sign of life is given.
    agent.await_step_end();
    assert_free(&authority, &agent);
}

#[test]
fn agent_that_is_told_to_end_stops_its_step_and_is_named() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let mut coordinator = connect(&authority, &[agent.name()]).unwrap();
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            agent.await_sending();
            agent.stop.store(true, Ordering::SeqCst);
        });
        coordinator.step(&order(1000.0, 60.0), Instant::now(), &Watch::default()).unwrap_err()
    });
    assert_eq!((error.fault, error.agent.as_deref()), (Fault::Lost, Some(&*agent.name())), "{error}");
}

#[test]
fn generator_that_panics_costs_its_connection_and_not_the_agent() {
    struct Bomb;
    impl Crew for Bomb {
        fn step(&mut self, _: &Order, _: Instant, _: &Watch) -> Result<Part, CrewError> {
            panic!("on purpose");
        }
    }
    let authority = Authority::new();
    let agent = TestAgent::with(&authority, &authority, Limits::default(), |_| Box::new(Bomb));
    let mut coordinator = connect(&authority, &[agent.name()]).unwrap();
    let result = coordinator.step(&order(10.0, 0.1), Instant::now(), &Watch::default());
    assert_eq!(result.unwrap_err().fault, Fault::Lost);
    assert_free(&authority, &agent);
}

#[test]
fn order_that_cannot_be_carried_out_never_leaves() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let longest = Order { duration: Duration::MAX, ..order(1.0, 1.0) };
    for wrong in [order(f64::NAN, 1.0), order(-1.0, 1.0), order(f64::INFINITY, 1.0), longest] {
        let mut coordinator = connect(&authority, &[agent.name()]).unwrap();
        let result = coordinator.step(&wrong, Instant::now(), &Watch::default());
        assert_eq!(result.unwrap_err().fault, Fault::Usage, "{wrong:?}");
    }
}
