//! How often a link asks and writes, over hours of a clock of the test's own. What is said there is tested elsewhere.

use std::sync::mpsc::{Receiver, channel};

use authentick_fleet::seal::SEAL_KEY_SIZE;
use authentick_fleet::{Document, Kept, Name, Start};
use authentick_lab::caches::{Behaviour, CacheServer};
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;
use zeroize::Zeroizing;

use super::super::post::{PERIOD, PostCounters, WRITES};
use super::*;
use crate::keystore::KeyKind;

const HOUR: Duration = Duration::from_secs(3600);

/// Time that passes while somebody waits; the bell rings five times in each of its seconds.
struct Hours<'c> {
    cache: &'c CacheServer,
    now: Instant,
    end: Instant,
    turn: u64,
    /// Requests for values and those to store one, as the server has counted them up to an instant.
    counts: Vec<(Instant, u64, u64)>,
}

impl Clock for Hours<'_> {
    fn now(&self) -> Instant {
        self.now
    }

    fn wait(&mut self, _: &Bell, seen: u64, until: Instant) -> Option<u64> {
        assert_eq!(seen, self.turn, "it has heard all");
        let counts = self.cache.counts();
        self.counts.push((self.now, counts.fetches, counts.writes));
        let next = self.now + Duration::from_millis(200);
        if next < until {
            self.turn += 1;
        }
        self.now = next.min(until);
        (self.now < self.end).then_some(self.turn)
    }
}

impl Hours<'_> {
    /// The most of both in any hour.
    fn most(&self) -> (u64, u64) {
        let (mut most, mut first) = ((0, 0), 0);
        for (index, (when, fetches, writes)) in self.counts.iter().enumerate() {
            while *when - self.counts[first].0 >= HOUR {
                first += 1;
            }
            let before =
                if first == 0 { (0, 0) } else { (self.counts[first - 1].1, self.counts[first - 1].2) };
            assert!(index >= first);
            most = (most.0.max(fetches - before.0), most.1.max(writes - before.1));
        }
        most
    }
}

/// A link of the node `a` to a server, for keys of both kinds, and what keeps it alive.
fn link(cache: &CacheServer, member_count: usize) -> (Link, Receiver<Command>) {
    let name = |name: &str| Name::new(name).unwrap();
    let members = (1..member_count).map(|index| name(&format!("m{index}")));
    let members: Vec<Name> = std::iter::once(name("a")).chain(members).collect();
    let (bell, mut entropy) = (Arc::<Bell>::default(), Entropy::from_seed(1));
    fn side<K: FleetKind>(
        bell: &Arc<Bell>,
        members: &[Name],
        is_first: bool,
        entropy: &mut Entropy,
    ) -> Box<dyn Side> {
        let (fleet, me) = (Name::new("fleet").unwrap(), members[0].clone());
        let document = Document::first(fleet.clone(), me.clone(), Shared(K::generate(0, entropy)));
        let kept = Kept { document: Some(document), ..Kept::default() };
        let node = Node::new(fleet.clone(), me.clone(), members.to_vec(), Start::Welcomed, kept, [1; 16]);
        let desk = Arc::new(Desk::<K>::new(Arc::clone(bell)));
        desk.show(&node);
        Box::new(Talk::new(Asker { fleet, me, members: members.to_vec(), kind: K::NAME }, desk, is_first, 2))
    }
    let sides = vec![
        side::<KeySet>(&bell, &members, true, &mut entropy),
        side::<StateKeys>(&bell, &members, false, &mut entropy),
    ];
    let seals = SealKeys::new(name("fleet"), &[Zeroizing::new([7; SEAL_KEY_SIZE])]).unwrap();
    let counters = Arc::new(PostCounters::new(cache.address().into()));
    let post = Post::new(Arc::clone(&counters), counters.server.clone().into(), &mut entropy, Instant::now());
    let (supervisor, inbox) = channel();
    let seals = Arc::new(ArcSwap::from_pointee(seals));
    let place = Place { index: 0, post, seals, symmetric: None, entropy, supervisor };
    (Link { sides, bell, place }, inbox)
}

/// What a link did in so much time, at most in an hour.
fn most(cache: &CacheServer, member_count: usize, time: Duration) -> (u64, u64) {
    let (link, _inbox) = link(cache, member_count);
    let now = Instant::now();
    let mut hours = Hours { cache, now, end: now + time, turn: 0, counts: Vec::new() };
    link.work(&mut hours);
    hours.most()
}

#[test]
fn in_no_hour_a_server_is_asked_or_written_more_often_than_is_allowed() {
    // One that keeps what it is given, and one that forgets everything, so that it is put there again each time.
    for (behaviour, writes) in [(Behaviour::Honest, 100..=300), (Behaviour::Forget, 340..=360)] {
        let cache = CacheServer::on_loopback(behaviour);
        let most = most(&cache, 3, 2 * HOUR);
        eprintln!("{behaviour:?}: {most:?}");
        assert!((3500..=3600).contains(&most.0) && writes.contains(&most.1), "{behaviour:?}: {most:?}");
    }
}

#[test]
fn server_that_has_more_than_fits_into_a_response_is_asked_no_more_often_for_that() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    // Of each member as much as it can say of itself and of symmetric keys.
    for index in 1..64 {
        cache.put(&format!("authentick/fleet/{}/node/m{index}", KeySet::NAME), &[b'x'; 48 << 10]);
    }
    let most = most(&cache, 64, HOUR / 6);
    // Six hundred seconds, with what may be done early.
    let regular = 600_000 / PERIOD.as_millis() as u64;
    let early = u64::from(EXTRA_READS.most + EXTRA_READS.an_hour / 6);
    eprintln!("{most:?}");
    assert!((regular - 10..=regular + early + 20).contains(&most.0), "{most:?}");
}

#[test]
fn what_is_allowed_adds_up() {
    let start = Instant::now();
    let mut bucket = Bucket::full(WRITES, start);
    let mut taken = Vec::new();
    for second in 0..3 * 3600 {
        let now = start + Duration::from_secs(second);
        // As often as possible, after a quiet hour.
        while second > 3600 && bucket.take(now, 1.0) {
            taken.push(second);
        }
    }
    let in_an_hour = |from: u64| taken.iter().filter(|second| (from..from + 3600).contains(*second)).count();
    let most = (0..2 * 3600).map(in_an_hour).max().expect("there are hours");
    assert!((355..=360).contains(&most), "{most}");
    let early = EXTRA_READS.most + EXTRA_READS.an_hour + EXTRA_FETCH_COUNT_MAX;
    let reads = 3_600_000 / PERIOD.as_millis() as u32 + early;
    assert!(reads <= 3600, "{reads}");
    // What is said again leaves something for what is new, with keys of both kinds.
    let again = 2 * 3600 / (2 * REFRESH.as_secs());
    assert!(again + u64::from(WRITES.most) <= u64::from(WRITES.an_hour), "{again}");
}
