//! Agents that lie, vanish or talk nonsense in a step: each is named, and the run ends everywhere.

use super::*;

#[test]
fn agent_that_closes_in_a_step_ends_it_everywhere() {
    let authority = Authority::new();
    let honest = TestAgent::start(&authority);
    let (gone, closed) = (Arc::new(Mutex::new(None)), Arc::<AtomicBool>::default());
    let (tell, close) = (Arc::clone(&gone), Arc::clone(&closed));
    let (name, thread) = impostor(&authority, move |sender, receiver| {
        play(&sender, receiver, |message, _| {
            (matches!(message, ToAgent::Beat) && close.load(Ordering::SeqCst)
                || matches!(message, ToAgent::Step { .. }))
            .then(|| {
                if matches!(message, ToAgent::Step { .. }) {
                    return vec![];
                }
                *tell.lock().unwrap() = Some(Instant::now());
                vec![None]
            })
        });
        sender.close();
    });
    let mut coordinator = connect(&authority, &[honest.name(), name.clone()]).unwrap();
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            honest.await_sending();
            closed.store(true, Ordering::SeqCst);
        });
        coordinator.step(&order(2000.0, 20.0), Instant::now(), &Watch::default()).unwrap_err()
    });
    assert_eq!((error.fault, error.agent.as_deref()), (Fault::Lost, Some(&*name)), "{error}");
    thread.join().unwrap();
    let last = honest.await_step_end();
    let after = last.saturating_duration_since(gone.lock().unwrap().unwrap());
    assert!(after < Duration::from_millis(200), "it went on for {after:?}");
}

#[test]
fn agent_that_falls_silent_in_a_step_ends_it() {
    // It hears the order and says nothing more, not even that it lives.
    let error = exposed(|message, _| {
        matches!(message, ToAgent::Step { .. }).then(|| {
            thread::sleep(Duration::from_secs(3));
            vec![None]
        })
    });
    assert_eq!(error.fault, Fault::Lost);
    assert!(error.message.contains("silent for 2500 ms"), "{error}");
}

#[test]
fn clock_that_jumps_between_pings_is_exposed() {
    let mut pings = 0;
    let error = exposed(move |message, clock| {
        let ToAgent::Ping { number } = *message else { return None };
        pings += 1;
        let now = clock.now() + if pings > 4 { 2_000_000_000 } else { 0 };
        Some(vec![Some(FromAgent::Pong { number, received_ns: now, sent_ns: now })])
    });
    assert_eq!(error.fault, Fault::Clock);
    assert!(error.message.contains("its clock moved by") && error.message.contains("500 ppm"), "{error}");
}

#[test]
fn clock_that_jumps_during_a_step_is_exposed() {
    let mut jump = 0;
    let error = exposed(move |message, clock| match *message {
        ToAgent::Ping { number } => {
            let now = clock.now() + jump;
            Some(vec![Some(FromAgent::Pong { number, received_ns: now, sent_ns: now })])
        }
        ToAgent::Step { .. } => {
            jump = 2_000_000_000;
            None
        }
        _ => None,
    });
    assert_eq!(error.fault, Fault::Clock);
    assert!(error.message.starts_with("over the step, its clock moved by "), "{error}");
}

#[test]
fn impossible_starts_are_exposed() {
    type Answer = fn(u64, u64) -> FromAgent;
    let cases: [(Answer, &str); 3] = [
        (|step, start_ns| done(step, Some(start_ns - 5000)), "5.0 us before the start that it was told"),
        (|step, start_ns| done(step, Some(start_ns + 60_000_000_000)), "after its report was here"),
        (|step, _| done(step, None), "never began"),
    ];
    for (answer, part) in cases {
        let error = exposed(move |message, clock| {
            let ToAgent::Step { number, start_ns, .. } = *message else { return None };
            thread::sleep(clock.instant(start_ns).unwrap().saturating_duration_since(Instant::now()));
            Some(vec![Some(answer(number, start_ns))])
        });
        assert_eq!(error.fault, Fault::Clock);
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn report_before_the_step_is_exposed() {
    let error = exposed(|message, _| match *message {
        ToAgent::Step { number, start_ns, .. } => Some(vec![Some(done(number, Some(start_ns)))]),
        _ => None,
    });
    assert_eq!(error.fault, Fault::Clock);
    assert!(error.message.contains("before it was to begin"), "{error}");
}

#[test]
fn counts_that_do_not_add_up_are_exposed() {
    let error = exposed(|message, clock| {
        let ToAgent::Step { number, start_ns, .. } = *message else { return None };
        thread::sleep(clock.instant(start_ns).unwrap().saturating_duration_since(Instant::now()));
        let tally = Tally { answered: u64::MAX, ..tally(10, 1) };
        let part = Box::new(Part { tally, ..Part::default() });
        Some(vec![Some(FromAgent::Done { step: number, started_ns: Some(start_ns), counts: [0; 3], part })])
    });
    assert_eq!(error.fault, Fault::Protocol);
    assert!(error.message.contains("do not add up"), "{error}");
}

#[test]
fn words_out_of_turn_are_exposed() {
    for answer in [FromAgent::Ready, done(9, Some(1)), FromAgent::Welcome(about())] {
        let error = exposed(move |message, _| {
            matches!(message, ToAgent::Step { .. }).then(|| vec![Some(answer.clone())])
        });
        assert_eq!(error.fault, Fault::Protocol, "{error}");
    }
}

#[test]
fn generator_that_fails_is_named_and_cannot_steer_the_terminal() {
    let error = exposed(|message, _| match *message {
        ToAgent::Step { number: step, .. } => {
            Some(vec![Some(FromAgent::Failed { step, why: "no\x1b[31m descriptors".to_owned() })])
        }
        _ => None,
    });
    assert_eq!(error.fault, Fault::Generator);
    assert!(error.message.ends_with("no [31m descriptors"), "{error}");
}

#[test]
fn garbage_and_oversized_messages_from_an_agent_end_the_run() {
    for octets in [
        [&5u32.to_be_bytes()[..], b"\"no\"!"].concat(),
        [&7u32.to_be_bytes()[..], b"\xff\xfe\x00{{{["].concat(),
        (REPORT_SIZE_MAX + 1).to_be_bytes().to_vec(),
    ] {
        let authority = Authority::new();
        let (name, thread) = impostor(&authority, move |sender, receiver| {
            let mut end = |message: &ToAgent, _: &Monotonic| {
                matches!(message, ToAgent::Step { .. }).then(|| vec![None])
            };
            play(&sender, receiver, &mut end);
            sender.send_octets(&octets).unwrap();
        });
        let mut coordinator = connect(&authority, std::slice::from_ref(&name)).unwrap();
        let result = coordinator.step(&order(10.0, 0.1), Instant::now(), &Watch::default());
        let error = result.unwrap_err();
        assert_eq!((error.fault, error.agent.as_deref()), (Fault::Protocol, Some(&*name)), "{error}");
        thread.join().unwrap();
    }
}
