//! What a packet worker does with memory and locks while it answers: from its first batch on it takes no memory, gives
//! none back, and waits for no lock. Every scheme, refusals, what is no request, and keys and a clock that change.
//!
//! Method: the allocator of this process counts for each thread. A node is given a clock that reads the worker's
//! counts whenever the worker reads the time, which is before and after each batch is sent. So all that the daemon's
//! loop does is counted, and exactly: no other thread's doing is. That a lock is waited for, the worker's system call
//! filter counts. Each instrument is seen to work: the clock takes memory, and meets a lock, when it is told to.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod node;
mod requests;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use authentick_daemon::containment::{self, ThreadKind};
use authentick_net::allocations::{Counting, Tally};
use authentick_proto::server::outcome::Outcome;

use node::{Limits, Node, Refusal};
use requests::{Case, Client};

#[global_allocator]
static COUNTING: Counting = Counting;

const PATIENCE: Duration = Duration::from_secs(20);
/// How long nodes wait for each other.
const GATE_PATIENCE: Duration = Duration::from_secs(120);
/// Nodes of one process that run side by side.
const NODE_COUNT: usize = 4;
/// Requests of each kind come in batches, so many times so many.
const ROUND_COUNT: u64 = 4;
const ROUND_SIZE: u64 = 16;
/// How long days take to pass: keys rotate once at each look at the clock, once a second.
const PASSING: Duration = Duration::from_millis(1100);

/// Waits until `is_so`.
fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    within(PATIENCE, what, is_so);
}

fn within(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + patience;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// System calls that workers were refused between their first batches and their ends, when all nodes of the process are
/// at work: what starts and what ends takes memory, and the allocator has locks.
#[derive(Default)]
struct AtWork {
    begun_count: AtomicUsize,
    done_count: AtomicUsize,
    before: OnceLock<u64>,
}

impl AtWork {
    /// This node has answered its first batch.
    fn begin(&self) {
        self.begun_count.fetch_add(1, Ordering::Relaxed);
        within(GATE_PATIENCE, "all nodes begin", || self.begun_count.load(Ordering::Relaxed) == NODE_COUNT);
        self.before.get_or_init(|| ThreadKind::Packet.refused_count());
    }

    /// This node has answered its last batch, and can be stopped when this returns.
    fn end(&self) {
        let count = ThreadKind::Packet.refused_count() - self.before.get().expect("it has begun");
        let calls: Vec<usize> = ThreadKind::Packet.refused_calls().collect();
        assert_eq!(count, 0, "a worker would have waited; system calls that were refused, ever: {calls:?}");
        self.done_count.fetch_add(1, Ordering::Relaxed);
        within(GATE_PATIENCE, "all nodes end", || self.done_count.load(Ordering::Relaxed) == NODE_COUNT);
    }
}

/// Sends the requests of a case, and checks what became of them.
fn send(node: &Node, case: &Case) {
    let before = node.totals();
    for _ in 0..ROUND_COUNT {
        // No more at once than a socket holds.
        node.send_all((0..ROUND_SIZE).map(|_| (&case.client, &case.request[..])));
    }
    let after = node.totals();
    let count = |end| after.of_outcome(end) - before.of_outcome(end);
    let counts: Vec<u64> = case.ends.iter().copied().map(count).collect();
    let all = counts.iter().sum::<u64>() + case.perhaps.map_or(0, count);
    assert_eq!(all, ROUND_COUNT * ROUND_SIZE, "{}: {counts:?} of {:?}", case.name, case.ends);
    assert!(counts.iter().all(|&count| count > 0), "{}: {counts:?} of {:?}", case.name, case.ends);
}

/// Sends all of them; fails if the worker has touched memory meanwhile.
fn without_touching_memory(node: &Node, cases: &[Case]) {
    let begun = node.tally();
    for case in cases {
        let before = node.tally();
        send(node, case);
        assert_eq!(node.tally(), before, "{} (before the last batch of it)", case.name);
    }
    // Requests of all kinds in each batch.
    for _ in 0..8 {
        for some in cases.chunks(usize::try_from(ROUND_SIZE).unwrap()) {
            node.send_all(some.iter().map(|case| (&case.client, &case.request[..])));
        }
    }
    node.send_all([(&cases[0].client, &cases[0].request[..])]);
    assert_eq!(node.tally(), begun, "all kinds together");
}

/// The counts change when the worker takes memory, so an assertion that they do not can fail.
fn counting_works(node: &Node, case: &Case) {
    let before = node.tally();
    node.clocks.take_memory(3);
    node.send_all([(&case.client, &case.request[..])]);
    let Tally { taken, freed } = before;
    assert_eq!(node.tally(), Tally { taken: taken + 3, freed: freed + 3 }, "on purpose");
}

/// Lets days pass, has files read again, and sends requests until each change has shown.
fn with_changes(node: &Node, cases: &[Case]) {
    let find = |name: &str| cases.iter().find(|case| case.name == name).unwrap();
    let asked = [find("AES128"), find("NTS 15, 0 placeholders"), find("ANTP m5")];
    let before = node.tally();
    // First no symmetric key is left, and cookies and states are too old. Then the symmetric keys are back.
    let too_old = [Outcome::MacNakUnknownKey, Outcome::NakUnknownKey, Outcome::AntpExpired];
    let rounds: [(_, &[Outcome]); 2] = [(&[][..], &too_old), (requests::ALGORITHMS, &[Outcome::Mac])];
    for (keys, expected) in rounds {
        node.write_keys(keys);
        node.reload();
        let counts = || -> Vec<u64> { expected.iter().map(|&end| node.totals().of_outcome(end)).collect() };
        let start = counts();
        let mut passed = Instant::now() - PASSING;
        eventually("keys change", || {
            if passed.elapsed() > PASSING {
                node.clocks.pass_days(8);
                passed = Instant::now();
            }
            node.send_all(asked.map(|case| (&case.client, &case.request[..])));
            counts().iter().zip(&start).all(|(count, start)| count > start)
        });
        assert_eq!(node.tally(), before, "changes that end in {expected:?}");
    }
    // The clock's state is looked at once a second.
    let looked = node.clocks.look_count();
    eventually("the clock is looked at", || {
        node.send_all([(&cases[0].client, &cases[0].request[..])]);
        node.clocks.look_count() > looked + 1
    });
    node.send_all([(&cases[0].client, &cases[0].request[..])]);
    assert_eq!(node.tally(), before, "changes of the clock's state");
}

/// A node with all schemes, and clients of all of them.
fn serves_all(at_work: &AtWork, refusal: Refusal, limits: Limits, has_spans: bool) {
    let node = Node::start(refusal, limits, has_spans);
    let mut cases = requests::plain();
    cases.extend(requests::mac());
    for aead in [15, 16, 17, 30] {
        cases.extend(requests::nts(&node, aead));
    }
    cases.extend(requests::antp(&node, limits));
    cases.push(requests::denied(refusal));
    // Of the first batch.
    node.send_all([(&cases[0].client, &cases[0].request[..])]);
    node.send_all([(&cases[0].client, &cases[0].request[..])]);
    at_work.begin();
    without_touching_memory(&node, &cases);
    let before = node.tally();
    requests::interleaved(&node, &Client::new());
    assert_eq!(node.tally(), before, "interleaved mode");
    with_changes(&node, &cases);
    at_work.end();
    counting_works(&node, &cases[0]);
    node.stop();
}

/// A node that lets no client ask more than a few times.
fn refuses_most(at_work: &AtWork, refusal: Refusal) {
    let node = Node::start(refusal, Limits::OfAllRequests, false);
    let client = Client::new();
    let plain = requests::plain().remove(0);
    let ends = match refusal {
        Refusal::Kiss => vec![Outcome::KissRate, Outcome::RateLimited],
        Refusal::Silence => vec![Outcome::RateLimited],
    };
    // With a right tag a request is charged to its key once; again, or with a wrong one, to its address.
    let mut cases = requests::mac();
    cases.truncate(1);
    cases.extend(requests::nts(&node, 15));
    cases.retain(|case| [&[Outcome::Mac][..], &[Outcome::Nts], &[Outcome::NakTag]].contains(&&case.ends[..]));
    assert!(cases.len() > 2, "both schemes and a wrong tag");
    for case in &mut cases {
        let end = std::mem::replace(&mut case.ends, ends.clone());
        case.perhaps = end.first().copied();
    }
    let request = plain.request.clone();
    for _ in 0..2 {
        node.send_all((0..ROUND_SIZE).map(|_| (&client, &request[..])));
    }
    at_work.begin();
    let name = "too many".to_owned();
    cases.push(Case { name, client, request, ends, perhaps: None });
    without_touching_memory(&node, &cases);
    at_work.end();
    counting_works(&node, &plain);
    node.stop();
}

#[test]
fn packet_workers_touch_no_memory_after_their_first_batch_and_wait_for_no_lock() {
    let at_work = AtWork::default();
    thread::scope(|scope| {
        scope.spawn(|| serves_all(&at_work, Refusal::Kiss, Limits::None, false));
        scope.spawn(|| serves_all(&at_work, Refusal::Silence, Limits::OfAntp, true));
        scope.spawn(|| refuses_most(&at_work, Refusal::Kiss));
        scope.spawn(|| refuses_most(&at_work, Refusal::Silence));
    });
    println!(
        "refused while nodes start and end: {:?}",
        ThreadKind::Packet.refused_calls().collect::<Vec<_>>()
    );
    if !containment::offer().filters {
        return authentick_lab::skip::skip("no system call filters here: locks were not looked for");
    }
    // A lock that another thread holds is seen.
    let node = Node::start(Refusal::Silence, Limits::None, false);
    let case = requests::plain().remove(0);
    node.send_all([(&case.client, &case.request[..])]);
    let before = ThreadKind::Packet.refused_count();
    node.clocks.meet_lock(|| {
        case.client.send(&node, &case.request);
        eventually("a worker meets a lock", || ThreadKind::Packet.refused_count() > before);
    });
    node.stop();
}
