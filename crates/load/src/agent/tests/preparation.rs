//! How an agent gets ready, and who can end that.

use super::*;

/// An agent whose generator is never ready: it waits until its watch is stopped. Beside it, how often it has begun to
/// wait and given up.
fn endless_agent(authority: &Authority, limits: Limits) -> (TestAgent, [Arc<AtomicU64>; 2]) {
    let counts = [(); 2].map(|()| Arc::<AtomicU64>::default());
    let [begun, ended] = counts.each_ref().map(Arc::clone);
    let make = move |_, watch: &Watch| {
        begun.fetch_add(1, Ordering::SeqCst);
        await_that(|| watch.is_stopped());
        ended.fetch_add(1, Ordering::SeqCst);
        Err("stopped while clients were getting their keys".to_owned())
    };
    (TestAgent::making(authority, authority, limits, make), counts)
}

fn is_at(count: &AtomicU64, number: u64) -> impl Fn() -> bool {
    move || count.load(Ordering::SeqCst) == number
}

#[test]
fn coordinator_that_is_stopped_ends_the_preparation_of_all() {
    let authority = Authority::new();
    let agents = [(); 2].map(|()| endless_agent(&authority, Limits::default()));
    let names = agents.each_ref().map(|(agent, _)| agent.name());
    let identity = authority.identity("coordinator.test", &authority);
    let watch = Watch::default();
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            agents.iter().for_each(|(_, [begun, _])| await_that(is_at(begun, 1)));
            watch.stop();
        });
        Coordinator::connect(&names, &identity, &plan(), &watch).err().unwrap()
    });
    assert_eq!(error.fault, Fault::Stopped, "{error}");
    agents.iter().for_each(|(_, [_, ended])| await_that(is_at(ended, 1)));
}

#[test]
fn coordinator_that_vanishes_ends_the_preparation() {
    let authority = Authority::new();
    let (agent, [begun, ended]) = endless_agent(&authority, Limits::default());
    let (sender, _receiver) = raw(&authority, &agent);
    sender.send(&ToAgent::Prepare(Box::new(plan()))).unwrap();
    await_that(is_at(&begun, 1));
    sender.close();
    await_that(is_at(&ended, 1));
}

#[test]
fn order_to_stop_ends_the_preparation() {
    let authority = Authority::new();
    let (agent, [begun, _]) = endless_agent(&authority, Limits::default());
    let (sender, mut receiver) = raw(&authority, &agent);
    sender.send(&ToAgent::Prepare(Box::new(plan()))).unwrap();
    await_that(is_at(&begun, 1));
    sender.send(&ToAgent::Stop).unwrap();
    assert_eq!(refusal(&mut receiver), "stopped while clients were getting their keys");
}

#[test]
fn preparation_that_takes_too_long_is_ended_and_its_bound_is_named() {
    let authority = Authority::new();
    let limits = Limits { preparation_max: Duration::from_millis(300), ..Limits::default() };
    let (agent, [_, ended]) = endless_agent(&authority, limits);
    let error = connect(&authority, &[agent.name()]).err().unwrap();
    assert_eq!((error.fault, error.agent.as_deref()), (Fault::Refused, Some(&*agent.name())), "{error}");
    assert!(
        error.to_string().contains("not ready after 0.3 s") && error.to_string().contains("fewer clients")
    );
    assert!(is_at(&ended, 1)(), "nothing goes on");
}
