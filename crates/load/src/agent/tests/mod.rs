//! Several hosts over loopback: what the tests share. Agents with generators that only count, impostors that speak for
//! themselves.
//!
//! Nothing is asserted of how long something takes but what is promised: sending ends soon after a stop.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use authentick_report::load::{Cause, Histograms, Tally};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::{AlertDescription, ClientConfig, ClientConnection, ServerConnection};

use super::clock::Monotonic;
use super::limits::{ALPN, JOINABLE_COUNT_MAX, ORDER_SIZE_MAX, REPORT_SIZE_MAX};
use super::link::{self, LinkError, Receiver, Sender};
use super::message::{About, FromAgent, ToAgent};
use super::{Agent, Allow, Coordinator, CrewError, Fault, Identity, Limits};
use crate::plan::{Arrivals, Crew, Joinable, Order, Part, Plan, Scheme, Watch};

mod admission;
mod liars;
mod preparation;
mod steps;

/// A plan for targets that nobody sends anything to.
pub(crate) fn plan() -> Plan {
    Plan {
        scheme: Scheme::Nts,
        ntp: "127.0.0.1:123".parse().unwrap(),
        ke: "127.0.0.1:4460".parse().unwrap(),
        server_name: "ntp.test".to_owned(),
        authorities_pem: None,
        shared_key: None,
        antp: None,
        aeads: vec![30, 15],
        alternative_keys: false,
        clients: 9,
        background_clients: 0,
        sources: vec![],
        background_sources: vec![],
        workers: 1,
        pinned: true,
        arrivals: Arrivals::Constant,
        seed: 7,
        timeout: Duration::from_millis(100),
        ke_timeout: Duration::from_millis(100),
        replay_cookie: false,
        joinable: false,
    }
}

pub(super) fn order(rate_rps: f64, seconds: f64) -> Order {
    Order { rate_rps: Some(rate_rps), duration: Duration::from_secs_f64(seconds), ..Order::default() }
}

/// So many operations, of which so many got no answer.
pub(super) fn tally(sent: u64, lost: u64) -> Tally {
    let answered = sent - lost;
    let mut tally = Tally {
        scheduled: sent,
        sent,
        answered,
        lost,
        causes: if lost > 0 { [(Cause::Timeout, lost)].into() } else { [].into() },
        histograms: Histograms { latency_ns: vec![(20_000, answered)].into(), ..Histograms::default() },
        ..Tally::default()
    };
    tally.summarise();
    tally
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Chain and key of a certificate for `name` and 127.0.0.1.
    fn issue(&self, name: &str) -> (String, String) {
        self.issue_for(name, vec![])
    }

    /// The same, for these usages alone, if there are any.
    fn issue_for(&self, name: &str, usages: Vec<ExtendedKeyUsagePurpose>) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = usages;
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// An identity of this authority that believes those of `other`.
    fn identity(&self, name: &str, other: &Authority) -> Identity {
        let (chain, key) = self.issue(name);
        Identity::from_pem(chain.as_bytes(), key.as_bytes(), other.0.pem().as_bytes()).unwrap()
    }
}

/// What the generator of a test agent did, for the test to see.
#[derive(Default)]
struct Deeds {
    plans: Mutex<Vec<Plan>>,
    /// The first and the last operation of each step.
    steps: Mutex<Vec<(Instant, Instant)>>,
    sent: AtomicU64,
    last: Mutex<Option<Instant>>,
}

/// A generator that counts instead of sending, at the order's rate; every tenth operation gets no answer.
struct Counter {
    deeds: Arc<Deeds>,
    bulk: bool,
}

impl Crew for Counter {
    fn step(&mut self, order: &Order, start: Instant, watch: &Watch) -> Result<Part, CrewError> {
        while Instant::now() < start {
            if watch.is_stopped() {
                return Ok(Part::default());
            }
            thread::sleep(Duration::from_millis(1).min(start.saturating_duration_since(Instant::now())));
        }
        let rate = order.rate_rps.ok_or_else(|| CrewError::of_run(Fault::Usage, "no rate"))?;
        let began = Instant::now();
        watch.note_start(began - start);
        let whole = (rate * order.duration.as_secs_f64()).round() as u64;
        let mut sent = 0;
        while sent < whole && !watch.is_stopped() {
            let due = (rate * start.elapsed().as_secs_f64()) as u64;
            let new = due.min(whole).saturating_sub(sent);
            sent += new;
            if new > 0 {
                watch.tell(&mut [0; 3], [new, new, 0]);
                self.deeds.sent.fetch_add(new, Ordering::SeqCst);
                *self.deeds.last.lock().unwrap() = Some(Instant::now());
            }
            thread::sleep(Duration::from_millis(2));
        }
        self.deeds.steps.lock().unwrap().push((began, Instant::now()));
        let mut part = Part {
            tally: tally(sent, sent / 10),
            request_size: 228,
            response_size: 228,
            busy_share: Some(0.25),
            ..Part::default()
        };
        if self.bulk {
            part.lateness_ns = (0..200_000).map(|n| (n * 1000, 1)).collect::<Vec<_>>().into();
            let source = "[2001:db8::1]:65535".parse().unwrap();
            let joinable = |n| Joinable { source, transmit: Some(u64::MAX - n), whole_ns: u64::MAX };
            part.joinables = (0..JOINABLE_COUNT_MAX as u64).map(joinable).collect();
        }
        Ok(part)
    }
}

/// An agent in this process.
struct TestAgent {
    address: SocketAddr,
    deeds: Arc<Deeds>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl TestAgent {
    fn start(authority: &Authority) -> Self {
        TestAgent::with(authority, authority, Limits::default(), |deeds| {
            Box::new(Counter { deeds, bulk: false })
        })
    }

    fn with(
        authority: &Authority,
        coordinators: &Authority,
        limits: Limits,
        make: impl Fn(Arc<Deeds>) -> Box<dyn Crew> + Send + Sync + 'static,
    ) -> Self {
        TestAgent::making(authority, coordinators, limits, move |deeds, _| Ok(make(deeds)))
    }

    fn making(
        authority: &Authority,
        coordinators: &Authority,
        limits: Limits,
        make: impl Fn(Arc<Deeds>, &Watch) -> Result<Box<dyn Crew>, String> + Send + Sync + 'static,
    ) -> Self {
        let identity = authority.identity("agent.test", coordinators);
        let (deeds, stop) = (Arc::<Deeds>::default(), Arc::<AtomicBool>::default());
        let (seen, until) = (Arc::clone(&deeds), Arc::clone(&stop));
        let make = move |plan, watch: &Watch| {
            seen.plans.lock().unwrap().push(plan);
            make(Arc::clone(&seen), watch)
        };
        let loopback = "127.0.0.1:0".parse().unwrap();
        let agent = Agent::bind(loopback, &identity, Allow::default(), limits, about(), make).unwrap();
        let address = agent.address().unwrap();
        let thread = Some(thread::spawn(move || agent.run(&until)));
        TestAgent { address, deeds, stop, thread }
    }

    fn name(&self) -> String {
        self.address.to_string()
    }

    /// Waits until operations are counted.
    fn await_sending(&self) {
        await_that(|| self.deeds.sent.load(Ordering::SeqCst) > 0);
    }

    /// Waits until no step is in progress; when its last operation was.
    fn await_step_end(&self) -> Instant {
        await_that(|| !self.deeds.steps.lock().unwrap().is_empty());
        self.deeds.last.lock().unwrap().unwrap()
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || matches!(ended, Ok(Ok(()))));
        }
    }
}

/// What a test agent says of its host, with what no terminal is to see.
fn about() -> About {
    About {
        version: "9.8.7".to_owned(),
        cpu: "a \x1b[31mprocessor".to_owned(),
        cpu_count: 3,
        online_cpu_count: Some(4),
        cpu_quota_millicpus: Some(1500),
        kernel: "Linux 6".to_owned(),
    }
}

fn await_that(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "it does not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

/// An agent that speaks for itself: `script` has its end of the connection.
fn impostor(
    authority: &Authority,
    script: impl FnOnce(Sender<FromAgent>, Receiver<ToAgent>) + Send + 'static,
) -> (String, JoinHandle<()>) {
    let tls = authority.identity("agent.test", authority).server_config().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = listener.local_addr().unwrap().to_string();
    let run = move || {
        let (stream, _) = listener.accept().unwrap();
        let (sender, receiver) = link::open(stream, ServerConnection::new(tls).unwrap()).unwrap();
        sender.send(&FromAgent::Welcome(about())).unwrap();
        script(sender, receiver);
    };
    (name, thread::spawn(run))
}

/// Plays an honest agent, but for what `twist` answers instead. A `None` in its answers ends the script.
fn play(
    sender: &Sender<FromAgent>,
    mut receiver: Receiver<ToAgent>,
    mut twist: impl FnMut(&ToAgent, &Monotonic) -> Option<Vec<Option<FromAgent>>>,
) {
    let clock = Monotonic::start();
    while let Ok((message, at)) = receiver.receive() {
        let answers = twist(&message, &clock).unwrap_or_else(|| match message {
            ToAgent::Prepare(_) => vec![Some(FromAgent::Ready)],
            ToAgent::Ping { number } => {
                vec![Some(FromAgent::Pong { number, received_ns: clock.at(at), sent_ns: clock.now() })]
            }
            ToAgent::Step { number, order, start_ns } => {
                let end = clock.instant(start_ns).unwrap() + order.duration;
                thread::sleep(end.saturating_duration_since(Instant::now()));
                vec![Some(done(number, Some(start_ns)))]
            }
            ToAgent::Stop | ToAgent::Beat => vec![],
        });
        for answer in answers {
            let Some(answer) = answer else { return };
            if sender.send(&answer).is_err() {
                return;
            }
        }
    }
}

fn done(step: u64, started_ns: Option<u64>) -> FromAgent {
    FromAgent::Done {
        step,
        started_ns,
        counts: [1, 1, 0],
        part: Box::new(Part { tally: tally(1, 0), ..Part::default() }),
    }
}

fn connect(authority: &Authority, agents: &[String]) -> Result<Coordinator, CrewError> {
    let identity = authority.identity("coordinator.test", authority);
    Coordinator::connect(agents, &identity, &plan(), &Watch::default())
}

/// Connects to an honest agent and an impostor and runs a step; the error, which names the impostor. Afterwards the
/// honest agent has stopped.
fn exposed(
    twist: impl FnMut(&ToAgent, &Monotonic) -> Option<Vec<Option<FromAgent>>> + Send + 'static,
) -> CrewError {
    let authority = Authority::new();
    let honest = TestAgent::start(&authority);
    let (liar, thread) = impostor(&authority, |sender, receiver| play(&sender, receiver, twist));
    let mut coordinator = connect(&authority, &[honest.name(), liar.clone()]).unwrap();
    let result = coordinator.step(&order(2000.0, 0.2), Instant::now(), &Watch::default());
    let error = result.unwrap_err();
    assert_eq!(error.agent.as_deref(), Some(&*liar), "{error}");
    let again = coordinator.step(&order(1.0, 0.1), Instant::now(), &Watch::default());
    assert_eq!(again.unwrap_err(), error, "the run has ended");
    thread.join().unwrap();
    assert_free(&authority, &honest);
    error
}

/// The agent takes orders, which it does when no other connection has its turn.
fn assert_free(authority: &Authority, agent: &TestAgent) {
    await_that(|| match connect(authority, &[agent.name()]) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.fault, Fault::Busy, "{error}");
            false
        }
    });
}

/// A connection to an agent on which the test speaks for itself, past the welcome.
fn raw(authority: &Authority, agent: &TestAgent) -> (Sender<ToAgent>, Receiver<FromAgent>) {
    let tls = authority.identity("coordinator.test", authority).client_config();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let tls = ClientConnection::new(Arc::clone(&tls), "agent.test".try_into().unwrap()).unwrap();
        let stream = TcpStream::connect(agent.address).unwrap();
        let (sender, mut receiver) = link::open(stream, tls).unwrap();
        match receiver.receive().unwrap().0 {
            FromAgent::Welcome(_) => return (sender, receiver),
            // The connection before this one is on its way out.
            FromAgent::Busy { .. } if Instant::now() < deadline => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Starts a step of a minute as a coordinator does, and waits until operations are counted.
fn begin(agent: &TestAgent, sender: &Sender<ToAgent>, receiver: &mut Receiver<FromAgent>) {
    sender.send(&ToAgent::Prepare(Box::new(plan()))).unwrap();
    sender.send(&ToAgent::Ping { number: 1 }).unwrap();
    let (mut ready, mut now) = (false, None);
    while !ready || now.is_none() {
        match receiver.receive().unwrap().0 {
            FromAgent::Ready => ready = true,
            FromAgent::Pong { sent_ns, .. } => now = Some(sent_ns),
            other => assert!(matches!(other, FromAgent::Beat { .. }), "{other:?}"),
        }
    }
    let start_ns = now.unwrap() + 50_000_000;
    sender.send(&ToAgent::Step { number: 1, order: order(1000.0, 60.0), start_ns }).unwrap();
    agent.await_sending();
}

/// The refusal that comes, signs of life passed over.
fn refusal(receiver: &mut Receiver<FromAgent>) -> String {
    loop {
        match receiver.receive().unwrap().0 {
            FromAgent::Refused { why } => return why,
            FromAgent::Beat { .. } | FromAgent::Ready => {}
            other => panic!("{other:?}"),
        }
    }
}
