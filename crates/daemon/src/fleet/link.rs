//! A thread that reads one server each second, and puts there what is missing.
//!
//! It does so for keys of all kinds that the fleet shares, with one request: however many kinds there are, a server is
//! read and written no more often.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use authentick_crypto::Entropy;
use authentick_fleet::seal::{SealKeys, Topic};
use authentick_fleet::{Acknowledgement, Asker, Node, SYMMETRIC_COUNT_MAX, memcached};
use authentick_net::clock::unix_seconds;

use super::desk::{Bell, Desk};
use super::found::Found;
use super::keys::{FleetKind, Shared};
use super::post::Post;
use super::server::{ServerError, Value};
use crate::allowance::{Allowance, Bucket};
use crate::containment::{Containment, ThreadKind};
use crate::supervisor::Command;
use crate::symmetric::keeper::SymmetricState;

/// What stays as it is while a server cannot be used.
const LEFT: fn() -> String = || "the keys in force stay".to_owned();

/// Reads at once, as there is something new to show: with the regular ones, at most 3,600 in an hour.
const EXTRA_READS: Allowance = Allowance { most: 50, an_hour: 100 };

/// Of the values that may be put into a server, so many are not for saying again what was said before.
const RESERVE: f64 = 20.0;

/// How often a node says of itself what it said before: of one kind of keys, and of each of two half as often.
const REFRESH: Duration = Duration::from_secs(15);

/// The thread's work.
#[derive(Debug)]
pub(crate) struct Link {
    /// What is said of keys of each kind that the fleet shares.
    pub(super) sides: Vec<Box<dyn Side>>,
    pub(super) bell: Arc<Bell>,
    pub(super) place: Place,
}

impl Link {
    /// Works until all is over.
    pub(crate) fn run(mut self, containment: &Containment) {
        containment.enter(ThreadKind::Fleet);
        let (mut extra, mut turn) = (Bucket::full(EXTRA_READS, Instant::now()), 0);
        loop {
            let began = Instant::now();
            self.round(began);
            let next = self.place.post.next_read(began);
            loop {
                let patience = next.saturating_duration_since(Instant::now());
                let Some(number) = self.bell.wait(turn, patience) else { return };
                let is_early = number != turn && Instant::now() < next;
                turn = number;
                if !is_early || extra.take(Instant::now(), 1.0) {
                    break;
                }
            }
        }
    }

    /// Reads the server once, whatever kinds of keys there are, and puts there what is missing of each.
    fn round(&mut self, now: Instant) {
        let names: Vec<Vec<memcached::Name>> = self.sides.iter().map(|side| side.names()).collect();
        let names_of_all = names.concat();
        if names_of_all.is_empty() {
            return;
        }
        let Some(values) = self.place.post.read(&names_of_all, LEFT) else { return };
        let mut values = values.into_iter();
        for (side, names) in self.sides.iter_mut().zip(&names).filter(|(_, names)| !names.is_empty()) {
            let found = values.by_ref().take(names.len()).collect();
            side.take_up(found, &mut self.place, now);
        }
    }
}

/// What is said of keys of one kind.
pub(super) trait Side: fmt::Debug + Send {
    /// What is to be read; nothing before the start.
    fn names(&self) -> Vec<memcached::Name>;
    /// Takes up what lies there, and puts there what is missing.
    fn take_up(&mut self, values: Vec<Option<Value>>, place: &mut Place, now: Instant);
}

/// A server, and what all kinds of keys need for a talk with it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) post: Post,
    pub(super) seals: Arc<ArcSwap<SealKeys>>,
    pub(super) entropy: Entropy,
    /// The symmetric keys, if there are any.
    pub(super) symmetric: Option<Arc<SymmetricState>>,
    /// To the supervisor, which hears what is new at once.
    pub(super) supervisor: Sender<Command>,
}

/// What this node said of itself last.
#[derive(Debug)]
struct SaidOfItself {
    acknowledgement: Acknowledgement,
    sealed: Vec<u8>,
    when: Instant,
}

/// What is said of keys of the kind `K`.
#[derive(Debug)]
pub(super) struct Talk<K> {
    asker: Asker,
    desk: Arc<Desk<K>>,
    /// How often this node says of itself what it said before.
    refresh: Duration,
    /// Whether it also says how often symmetric keys were used: of one kind of keys is enough.
    tells_symmetric: bool,
    said: Option<SaidOfItself>,
    /// What lay there last, as a hash.
    seen: Option<u64>,
    /// What was strange, as the log has it.
    strange: BTreeMap<String, &'static str>,
}

impl<K: FleetKind> Side for Talk<K> {
    fn names(&self) -> Vec<memcached::Name> {
        self.desk.shown().map_or_else(Vec::new, |_| self.asker.names())
    }

    fn take_up(&mut self, values: Vec<Option<Value>>, place: &mut Place, now: Instant) {
        let Some(node) = self.desk.shown() else { return };
        let nonce = node.acknowledgement().nonce;
        let seen = hash(&values);
        let is_new = self.seen.replace(seen) != Some(seen);
        let found = Found::of(&self.asker, nonce, &place.seals.load(), values);
        self.desk.heard.note(place.index, &found.acknowledgements, now);
        place.post.tell(found.strange.clone(), &mut self.strange, now, |name| {
            format!("what lies under {name} is ignored")
        });
        if let Err(error) = self.put(&node, &found, place, now) {
            place.post.fail(&error, LEFT);
        }
        if self.desk.put_down(place.index, found.said(&self.asker.me), is_new) {
            // If it is gone, this thread will be.
            let _ = place.supervisor.send(Command::News);
        }
    }
}

/// What tells values from others.
fn hash(values: &[Option<Value>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    values.iter().for_each(|value| value.as_ref().map(|value| &value.octets).hash(&mut hasher));
    hasher.finish()
}

impl<K: FleetKind> Talk<K> {
    /// The talk about the first or another one of so many kinds of keys, which share what may be written.
    pub(super) const fn new(asker: Asker, desk: Arc<Desk<K>>, is_first: bool, kinds: u32) -> Self {
        let refresh = Duration::from_secs(REFRESH.as_secs() * kinds as u64);
        Talk {
            asker,
            desk,
            refresh,
            tells_symmetric: is_first,
            said: None,
            seen: None,
            strange: BTreeMap::new(),
        }
    }

    /// Puts there what is missing.
    fn put(
        &mut self,
        node: &Node<Shared<K>>,
        found: &Found<K>,
        place: &mut Place,
        now: Instant,
    ) -> Result<(), ServerError> {
        for (topic, text) in found.missing(&self.asker, node) {
            self.put_text(topic, &text, found, place, now)?;
        }
        self.put_acknowledgement(node.acknowledgement(), found, place, now)
    }

    fn put_acknowledgement(
        &mut self,
        acknowledgement: Acknowledgement,
        found: &Found<K>,
        place: &mut Place,
        now: Instant,
    ) -> Result<(), ServerError> {
        let me = self.asker.me.clone();
        let lies = found.value(&self.asker.name(Topic::Node(&me))).map(|value| &value.octets);
        let is_there = self
            .said
            .as_ref()
            .is_some_and(|said| said.acknowledgement == acknowledgement && Some(&said.sealed) == lies);
        let is_recent = self.said.as_ref().is_some_and(|said| now.duration_since(said.when) < self.refresh);
        if is_there && (is_recent || place.post.writes_left(now) < RESERVE) {
            return Ok(());
        }
        let counts = self.desk.uses.counts(&acknowledgement.opens);
        let symmetric = place.symmetric.as_ref().filter(|_| self.tells_symmetric);
        let symmetric = symmetric.map_or_else(Vec::new, |symmetric| symmetric.uses(SYMMETRIC_COUNT_MAX));
        let time = unix_seconds();
        let text = Acknowledgement { time, counts, symmetric, ..acknowledgement.clone() }.emit();
        if let Some(sealed) = self.put_text(Topic::Node(&me), &text, found, place, now)? {
            self.said = Some(SaidOfItself { acknowledgement, sealed, when: now });
        }
        Ok(())
    }

    /// Puts a text into its place, unless somebody else has meanwhile; returns it sealed if it lies there now.
    fn put_text(
        &self,
        topic: Topic<'_>,
        text: &str,
        found: &Found<K>,
        place: &mut Place,
        now: Instant,
    ) -> Result<Option<Vec<u8>>, ServerError> {
        let Place { seals, entropy, post, .. } = place;
        let (name, sealed) =
            (self.asker.name(topic), seals.load().seal(topic, self.asker.kind, text, entropy));
        let token = found.value(&name).map(|value| value.token);
        Ok(post.put(&name, &sealed, token, now)?.then_some(sealed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::post::{PERIOD, WRITES};
    use super::*;

    #[test]
    fn in_no_hour_more_is_done_than_is_allowed() {
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
        let in_an_hour =
            |from: u64| taken.iter().filter(|second| (from..from + 3600).contains(*second)).count();
        let most = (0..2 * 3600).map(in_an_hour).max().expect("there are hours");
        assert!((355..=360).contains(&most), "{most}");
        let reads = 3_600_000 / PERIOD.as_millis() as u32 + EXTRA_READS.most + EXTRA_READS.an_hour;
        assert!(reads <= 3600, "{reads}");
        // What is said again leaves something for what is new, with keys of both kinds.
        let again = 2 * 3600 / (2 * REFRESH.as_secs());
        assert!(again + u64::from(WRITES.most) <= u64::from(WRITES.an_hour), "{again}");
    }
}
