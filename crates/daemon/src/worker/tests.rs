//! A worker behind an engine without sockets: answers, what it takes over between two batches, and its counters.

use authentick_crypto::{Algorithm, Entropy, Key};
use authentick_net::allocations::{self, Counting, Tally};
use authentick_net::clock;
use authentick_net::engine::tests::{MemoryEngine, MemoryPeer};
use authentick_proto::client::{Check, Exchange, NtsSession};
use authentick_proto::cookie::{self, SessionKeys};
use authentick_proto::server::Policy;
use authentick_proto::server::outcome::Outcome;
use authentick_proto::server::snapshot::Snapshot;
use authentick_wire::header::{Header, Leap, ReferenceId};
use authentick_wire::limits::DATAGRAM_SIZE_MAX;

use super::*;
use crate::addresses::ServedAddresses;
use crate::clock::SystemClock;
use crate::heartbeat::Heartbeat;
use crate::metrics::counters::{Counter, Totals};
use crate::retired::Retired;
use crate::rotator::{InForce, Trouble};
use crate::shared::NtsState;

#[global_allocator]
static COUNTING: Counting = Counting;

const PATIENCE: Duration = Duration::from_secs(20);

/// What a node with one worker shares.
fn shared(keys: KeySet) -> Shared {
    let keys = InForce {
        keys: Arc::new(ArcSwapOption::from_pointee(keys)),
        rotations: Counter::default(),
        rotation_failures: Counter::default(),
        trouble: Trouble::default(),
    };
    let good = Snapshot::primary(-20, ReferenceId(*b"TEST"), clock::now());
    Shared {
        clock: Arc::new(SystemClock),
        addresses: ServedAddresses::new(&[], &[]),
        looked: Arc::new(ArcSwap::from_pointee(Looked::new(good, SystemClock.boot_ns()))),
        policy: Arc::new(ArcSwap::from_pointee(Policy::open())),
        files: Heartbeat::new(0),
        leaps: None,
        nts: Some(NtsState { keys: Arc::new(keys), exchange: None }),
        symmetric: None,
        antp: None,
        fleet: None,
        cfnts: None,
        workers: vec![WorkerCounters::new(clock::boot_ns())],
        spans: None,
        started: std::time::Instant::now(),
        reloads: Default::default(),
    }
}

/// A client with two cookies that `keys` have sealed.
fn session(keys: &KeySet, entropy: &mut Entropy) -> NtsSession {
    let key = |octet| Key::new(Algorithm::SivCmac256, &[octet; 32]).unwrap();
    let session_keys = SessionKeys::new(&key(1), &key(2)).unwrap();
    let mut session = NtsSession::new(session_keys.clone(), None);
    let mut cookies = vec![vec![0; cookie::size(Algorithm::SivCmac256)]; 2];
    cookie::seal_all(keys, entropy, cookies.iter_mut().map(|cookie| (&session_keys, &mut cookie[..])));
    cookies.iter().for_each(|cookie| assert!(session.jar.add(cookie)));
    session
}

fn ask(peer: &MemoryPeer, session: &mut NtsSession, entropy: &mut Entropy) -> Result<(), Check> {
    let mut buffer = [0; DATAGRAM_SIZE_MAX];
    let (mut exchange, size) = Exchange::nts(session, entropy, &mut buffer).unwrap();
    peer.send(([198, 18, 0, 1], 123).into(), &buffer[..size]);
    let (_, mut answer) = peer.receive(PATIENCE).unwrap();
    exchange.receive(&mut answer, Some(session)).map(drop)
}

#[test]
fn worker_takes_over_keys_between_batches_and_its_counters_add_up() {
    let mut entropy = Entropy::from_seed(1);
    let keys = KeySet::generate(0, &mut entropy);
    let mut session = session(&keys, &mut entropy);
    let later = keys.rotate(1, 0, &mut entropy).rotate(2, 0, &mut entropy);
    let (shared, stop) = (shared(keys), AtomicBool::new(false));
    // It looks soon whether it should stop.
    let (mut engine, peer) = MemoryEngine::new(Duration::from_millis(20), engine::BATCH_SIZE);
    std::thread::scope(|scope| {
        let responder = Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(2));
        let worker = PacketWorker::new(&shared, 0, responder);
        let working = scope.spawn(|| worker.run(&mut engine, &stop));
        peer.send(([198, 18, 0, 3], 123).into(), b"no request");
        assert_eq!(ask(&peer, &mut session, &mut entropy), Ok(()));
        shared.nts.as_ref().unwrap().keys.keys.store(Some(Arc::new(later)));
        assert_eq!(ask(&peer, &mut session, &mut entropy), Err(Check::Kiss(ReferenceId::NTSN)));
        stop.store(true, Ordering::Relaxed);
        working.join().unwrap().unwrap();
    });
    let totals = Totals::of(&shared.workers);
    let of = |outcome| totals.of_outcome(outcome);
    assert_eq!((of(Outcome::Nts), of(Outcome::NakUnknownKey), of(Outcome::Malformed)), (1, 1, 1));
    assert_eq!((totals.received, totals.outcomes.iter().sum()), (3, 3));
}

#[test]
fn datagram_is_counted_before_its_answer_leaves() {
    let mut entropy = Entropy::from_seed(1);
    let shared = shared(KeySet::generate(0, &mut entropy));
    let responder = Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(2));
    let mut worker = PacketWorker::new(&shared, 0, responder);
    let mut request = [0; DATAGRAM_SIZE_MAX];
    let (_, size) = Exchange::plain(&mut entropy, &mut request);
    for count in 1..=2 {
        let mut batch = [Datagram {
            source: ([198, 18, 0, 2], 123).into(),
            received: clock::now(),
            truncated: false,
            to_many: false,
            request: &mut request[..size],
            response: &mut [0; DATAGRAM_SIZE_MAX],
            response_size: 0,
        }];
        // The engine sends after this.
        worker.respond(&mut batch, &[ReplyPath::default()]);
        assert_eq!(batch[0].response_size, size);
        let totals = Totals::of(&shared.workers);
        assert_eq!((totals.of_outcome(Outcome::Plain), totals.received), (count, count));
    }
}

#[test]
fn worker_tells_nobody_the_time_of_a_clock_that_nobody_looks_at() {
    let mut entropy = Entropy::from_seed(1);
    let shared = shared(KeySet::generate(0, &mut entropy));
    let (mut engine, peer) = MemoryEngine::new(PATIENCE, 1);
    let responder = Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(2));
    let mut worker = PacketWorker::new(&shared, 0, responder);
    let mut buffer = [0; DATAGRAM_SIZE_MAX];
    let (_, size) = Exchange::plain(&mut entropy, &mut buffer);
    let mut leap = || {
        peer.send(([198, 18, 0, 2], 123).into(), &buffer[..size]);
        engine.turn(&mut worker).unwrap();
        let (_, answer) = peer.receive(PATIENCE).unwrap();
        Header::parse(answer.first_chunk().unwrap()).leap
    };
    assert_eq!(leap(), Leap::None);
    let good = Snapshot::primary(-20, ReferenceId(*b"TEST"), clock::now());
    let long_ago = SystemClock.boot_ns().saturating_sub(11_000_000_000);
    shared.looked.store(Arc::new(Looked::new(good, long_ago)));
    assert_eq!(leap(), Leap::Unsynchronised);
}

/// A worker, and what it has done with memory; what its engine does, which makes a box for each datagram, is left out.
struct Counted<'a> {
    worker: PacketWorker<'a>,
    tally: Tally,
}

impl<'a> Counted<'a> {
    fn count<T>(&mut self, work: impl FnOnce(&mut PacketWorker<'a>) -> T) -> T {
        let before = allocations::of_this_thread();
        let told = work(&mut self.worker);
        let after = allocations::of_this_thread();
        self.tally.taken += after.taken - before.taken;
        self.tally.freed += after.freed - before.freed;
        told
    }
}

impl Handler for Counted<'_> {
    fn now(&mut self) -> NtpTime {
        self.count(Handler::now)
    }

    fn respond(&mut self, batch: &mut [Datagram<'_>], paths: &[ReplyPath]) {
        self.count(|worker| worker.respond(batch, paths));
    }

    fn early(&self) -> &[Early] {
        self.worker.early()
    }

    fn finish(&mut self, batch: &mut [Datagram<'_>]) {
        self.count(|worker| worker.finish(batch));
    }

    fn sent(&mut self, from: NtpTime, to: NtpTime) {
        self.count(|worker| worker.sent(from, to));
    }
}

#[test]
fn worker_touches_no_memory_from_its_first_batch_on_while_keys_and_clock_change() {
    let mut entropy = Entropy::from_seed(1);
    let keys = KeySet::generate(0, &mut entropy);
    let mut session = session(&keys, &mut entropy);
    let shared = shared(keys);
    let (mut engine, peer) = MemoryEngine::new(PATIENCE, engine::BATCH_SIZE);
    let responder = Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(2));
    let mut counted = Counted { worker: PacketWorker::new(&shared, 0, responder), tally: Tally::default() };
    let mut buffer = [0; DATAGRAM_SIZE_MAX];
    let (_, size) = Exchange::nts(&mut session, &mut entropy, &mut buffer).unwrap();
    let nts = buffer[..size].to_vec();
    let (_, size) = Exchange::plain(&mut entropy, &mut buffer);
    let plain = &buffer[..size];
    let (mut begun, mut retired_keys, mut retired_looks) = (None, Retired::default(), Retired::default());
    let in_force = Arc::clone(&shared.nts.as_ref().unwrap().keys.keys);
    for round in 0..40 {
        for _ in 0..engine::BATCH_SIZE / 4 {
            for octets in [&nts, plain, &nts[..size + 2], &plain[1..]] {
                peer.send(([198, 18, 0, 1], 123).into(), octets);
            }
        }
        assert_eq!(engine.turn(&mut counted).unwrap().received, engine::BATCH_SIZE);
        let begun = begun.get_or_insert(counted.tally);
        assert_eq!(counted.tally, *begun, "in round {round}");
        let later = in_force.load_full().expect("it has keys").rotate(round, 2, &mut entropy);
        retired_keys.put_away(in_force.swap(Some(Arc::new(later))));
        let good = Snapshot::primary(-20, ReferenceId(*b"TEST"), clock::now());
        retired_looks.replace(&shared.looked, Arc::new(Looked::new(good, SystemClock.boot_ns())));
    }
    let count = |outcome: Outcome| counted.worker.responder.outcomes().counters()[outcome as usize];
    assert!(count(Outcome::Nts) > 0 && count(Outcome::NakUnknownKey) > 0 && count(Outcome::Plain) > 0);
    // What is done on purpose is counted.
    let before = counted.tally;
    counted.count(|_| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(counted.tally, Tally { taken: before.taken + 1, freed: before.freed + 1 });
}
