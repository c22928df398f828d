//! A thread that reads one server each second, and puts there what is missing.
//!
//! It does so for keys of all kinds that the fleet shares, with one request: however many kinds there are, a server is
//! read and written no more often.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use authentick_crypto::Entropy;
use authentick_fleet::seal::{self, SealKeys, Topic};
use authentick_fleet::{Acknowledgement, Asker, DoubleDetector, Node, Order, SYMMETRIC_COUNT_MAX, memcached};
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

/// Requests of which a reading may consist that is not a regular one.
const EXTRA_FETCH_COUNT_MAX: u32 = 20;

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
    pub(crate) fn run(self, containment: &Containment) {
        containment.enter(ThreadKind::Fleet);
        self.work(&mut Monotonic);
    }

    fn work(mut self, clock: &mut impl Clock) {
        let (mut extra, mut turn) = (Bucket::full(EXTRA_READS, clock.now()), 0);
        loop {
            let began = clock.now();
            self.round(began);
            let (next, fetches) = (self.place.post.next_read(began), self.place.post.fetches());
            loop {
                let Some(number) = clock.wait(&self.bell, turn, next) else { return };
                let is_early = number != turn && clock.now() < next;
                turn = number;
                let is_cheap = fetches <= EXTRA_FETCH_COUNT_MAX;
                if !is_early || is_cheap && extra.take(clock.now(), fetches.into()) {
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

/// The time that a link lives in.
trait Clock {
    fn now(&self) -> Instant;
    /// Waits for `until`, or until the bell has had another turn than `seen`; which turn it is then, `None` if all is
    /// over.
    fn wait(&mut self, bell: &Bell, seen: u64, until: Instant) -> Option<u64>;
}

/// The host's.
struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wait(&mut self, bell: &Bell, seen: u64, until: Instant) -> Option<u64> {
        bell.wait(seen, until.saturating_duration_since(Instant::now()))
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
    /// Finds out whether another host writes under the name of this node.
    double: DoubleDetector,
    started: Instant,
    /// What lay there last, as a hash.
    seen: Option<u64>,
    /// The document that lay there last.
    document: Option<Order>,
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
        self.note_document(&found, place, now);
        self.note_double(&found, place.index, now);
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
    pub(super) fn new(asker: Asker, desk: Arc<Desk<K>>, is_first: bool, kinds: u32) -> Self {
        let refresh = Duration::from_secs(REFRESH.as_secs() * kinds as u64);
        Talk {
            asker,
            desk,
            refresh,
            tells_symmetric: is_first,
            said: None,
            double: DoubleDetector::default(),
            started: Instant::now(),
            seen: None,
            document: None,
            strange: BTreeMap::new(),
        }
    }

    /// Notes which document lies there. An honest server never goes back: it was restored, or repeats what it had.
    fn note_document(&mut self, found: &Found<K>, place: &mut Place, now: Instant) {
        let Some(found) = found.document.as_ref().map(|document| &document.order) else { return };
        if let Some(before) = self.document.as_ref().filter(|before| found < before) {
            place.post.tell_older(now, before, found);
        }
        self.document = Some(found.clone());
    }

    /// Notes whether another host has written under the name of this node.
    fn note_double(&mut self, found: &Found<K>, server: usize, now: Instant) {
        let own = self.asker.name(Topic::Node(&self.asker.me));
        let number = found.value(&own).and_then(|value| seal::number(&value.octets));
        // One that was not sealed by a member counts for nothing.
        let time = found.acknowledgements.get(&self.asker.me).map(|said| said.time);
        let elapsed = now.saturating_duration_since(self.started);
        if let (Some(number), Some(time)) = (number, time) {
            self.double.observe(number, time, elapsed);
        }
        self.desk.note_double(server, self.double.is_doubled(elapsed));
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
        let own = self.asker.name(Topic::Node(&me));
        let lies = found.value(&own).map(|value| &value.octets).filter(|_| !found.is_aged(&own));
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
        let since = acknowledgement.document.as_ref().map(|_| self.desk.since.load(Ordering::Relaxed));
        let text = Acknowledgement { time, since, counts, symmetric, ..acknowledgement.clone() }.emit();
        // From the kernel: a clone of this machine continues the thread's generator.
        let mut entropy = Entropy::from_system().map_err(ServerError::Io)?;
        let sealed = place.seals.load().seal(Topic::Node(&me), self.asker.kind, &text, &mut entropy);
        self.double.begin_write(seal::number(&sealed).expect("a sealed text has a number"));
        let token = found.value(&own).map(|value| value.token);
        if place.post.put(&own, &sealed, token, now)? {
            self.double.end_write(time);
            self.said = Some(SaidOfItself { acknowledgement, sealed, when: now });
        }
        Ok(())
    }

    /// Puts a text into its place, unless another node has meanwhile.
    fn put_text(
        &self,
        topic: Topic<'_>,
        text: &str,
        found: &Found<K>,
        place: &mut Place,
        now: Instant,
    ) -> Result<(), ServerError> {
        let Place { seals, entropy, post, .. } = place;
        let (name, sealed) =
            (self.asker.name(topic), seals.load().seal(topic, self.asker.kind, text, entropy));
        let token = found.value(&name).map(|value| value.token);
        post.put(&name, &sealed, token, now)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
