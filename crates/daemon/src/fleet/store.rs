//! The key store of a fleet's node: what lies on its disk, and the rules that say what may lie there next.
//!
//! Its file is the store as everything else sees it. Who reads and writes servers is a thread each ([`super::link`]);
//! here is heard what they read, at each look.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_fleet::{
    Clash, DOUBLE_QUIET, Document, Heard, Kept, Leave, Name, Node, Order, Refusal, Rotation as Way, list,
};
use authentick_net::clock::unix_seconds;
use log::Level;

use super::desk::{Bell, Desk};
use super::disk::{Disk, OnDisk};
use super::found::Said;
use super::heard::FRESH;
use super::keys::{FleetKind, Shared, Source};
use super::status::a_second;
use crate::config::Fleet;
use crate::keystore::file::FileStore;
use crate::keystore::{
    Held, KeyStore, News, Rotated, Rotation, SecretFile, StateDirectory, StoreError, Swap, Version,
};
use crate::lock::{AT_START, OF_A_RUNNING_SERVER};

/// How an operator finds the hosts that write into a store.
const CLIENTS_OF_MEMCACHED: &str = "on memcached's host, `ss -tn sport = :11211` lists its clients";

/// The store of one kind of keys.
pub struct FleetStore<K> {
    fleet: Fleet,
    /// How many periods long keys that have sealed still open.
    keep: usize,
    disk: Disk<K>,
    /// The store of a server that was no node of a fleet yet.
    alone: FileStore<K>,
    desk: Arc<Desk<K>>,
    /// Of a running server.
    state: Mutex<Option<State<K>>>,
}

/// What a running server knows.
struct State<K> {
    node: Node<Shared<K>>,
    /// Of the file.
    version: Option<Version>,
    source: Source,
    /// Since when the document has been in force.
    since: Instant,
    /// Members whose keys descend from other first keys.
    strangers: BTreeSet<Name>,
    /// When silent members were logged last.
    silence_logged: Option<Instant>,
    /// What the log has: why the disk refused, what was refused, who writes instead.
    troubles: Troubles,
}

/// Messages that were logged, so that each is logged once while it is true.
#[derive(Default)]
struct Troubles(BTreeMap<&'static str, String>);

impl Troubles {
    /// Logs `text` about `subject`, unless it was the last thing said about that; whether it was logged.
    fn say(&mut self, level: Level, subject: &'static str, text: String) -> bool {
        let is_new = self.0.get(subject) != Some(&text);
        if is_new {
            log::log!(level, "{text}");
            self.0.insert(subject, text);
        }
        is_new
    }

    /// Whether something had been said about `subject`, which is over.
    fn over(&mut self, subject: &'static str) -> bool {
        self.0.remove(subject).is_some()
    }
}

impl<K> fmt::Debug for FleetStore<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store of {} in {}", self.fleet.node, self.fleet.id)
    }
}

impl<K: FleetKind> FleetStore<K> {
    /// The store of the node that a configuration names, in a state directory.
    #[must_use]
    pub(crate) fn new(fleet: Fleet, keep: usize, directory: &StateDirectory, bell: &Arc<Bell>) -> Self {
        let disk = Disk::new(directory);
        FleetStore {
            alone: FileStore::new(directory),
            disk,
            keep,
            fleet,
            desk: Arc::new(Desk::new(Arc::clone(bell))),
            state: Mutex::new(None),
        }
    }

    /// What the threads that talk to servers need.
    pub(crate) fn desk(&self) -> Arc<Desk<K>> {
        Arc::clone(&self.desk)
    }

    /// The node with what is on its disk, as of its start.
    fn node(&self, kept: Kept<Shared<K>>, entropy: &mut Entropy) -> Node<Shared<K>> {
        let Fleet { id, node, members, start, .. } = &self.fleet;
        Node::new(id.clone(), node.clone(), members.iter().cloned(), *start, kept, entropy.array())
    }

    fn state(&self) -> MutexGuard<'_, Option<State<K>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up what a command has put on the disk.
    fn read_again(&self, state: &mut State<K>) -> Result<(), StoreError> {
        let Some(OnDisk { kept, version }) = self.disk.read_changed(state.version)? else { return Ok(()) };
        if version.is_some() && kept.order() >= state.node.on_disk().order() {
            state.version = version;
            self.take(state, kept);
            return Ok(());
        }
        let place = self.place();
        let text =
            format!("{place} was removed, or an older one put there; this node's own is written to it again");
        state.troubles.say(Level::Warn, "replaced", text);
        let ours = state.node.on_disk().clone();
        if let Swap::Done(written) = self.disk.write(version, &ours, OF_A_RUNNING_SERVER)? {
            state.version = Some(written);
            state.troubles.over("replaced");
        }
        Ok(())
    }

    /// What lies on the disk now.
    fn take(&self, state: &mut State<K>, kept: Kept<Shared<K>>) {
        if kept.order() != state.node.on_disk().order() {
            self.desk.since.store(unix_seconds(), Ordering::Relaxed);
        }
        state.take(kept);
    }

    fn hear(&self, state: &mut State<K>, said: &Said<K>) {
        if let Said::Acknowledgement(said) = said {
            match state.node.is_stranger(said) {
                true => state.strangers.insert(said.node.clone()),
                false => state.strangers.remove(&said.node),
            };
        }
        match said.tell(&mut state.node) {
            Heard::Nothing => {}
            Heard::Keep(kept) => self.keep(state, *kept),
            Heard::Refused(clash) => {
                let remedy = match clash {
                    Clash::Lineage => self.keep_one(),
                    Clash::Fleet => {
                        "give each fleet a seal key and a fleet.id of its own, or name its own memcached"
                            .to_owned()
                    }
                    Clash::Document | Clash::Key(_) | Clash::TooManyRevoked(_) => {
                        format!(
                            "stop the host that also writes the keys of this fleet ({CLIENTS_OF_MEMCACHED})"
                        )
                    }
                };
                let text = format!("a document of {} was refused: {clash}; {remedy}", self.fleet.id);
                if state.troubles.say(Level::Error, "clash", text) {
                    self.desk.clashes.count();
                }
            }
        }
    }

    /// Writes what is to be kept. What the disk refuses is heard again with the next look, and tried again.
    fn keep(&self, state: &mut State<K>, kept: Kept<Shared<K>>) {
        match self.disk.write(state.version, &kept, OF_A_RUNNING_SERVER) {
            Ok(Swap::Done(version)) => {
                state.version = Some(version);
                self.take(state, kept);
                if state.troubles.over("unwritten") {
                    log::info!("{} is written again", self.place());
                }
            }
            // A command was faster: its work is read again first.
            Ok(Swap::Lost) => {}
            Err(error) => {
                let text =
                    format!("{error}; {}; new keys open from memory until it is written", error.remedy());
                if state.troubles.say(Level::Error, "unwritten", text) {
                    self.desk.unwritten.count();
                }
                state.node.not_kept(kept);
            }
        }
    }

    /// What to do about keys that descend from different first ones.
    fn keep_one(&self) -> String {
        format!(
            "keep the keys of one node: on each one that has others, stop the server, remove {}, and start it; if all \
             have the same, what is left in memcached of an earlier fleet goes when that is restarted",
            self.disk.path().display()
        )
    }

    /// Says who has keys that descend from other first ones than ours.
    fn check_strangers(&self, state: &mut State<K>) {
        self.desk.strangers.store(state.strangers.len(), Ordering::Relaxed);
        if state.strangers.is_empty() {
            state.troubles.over("strangers");
            return;
        }
        let (me, what, remedy) = (&self.fleet.node, K::WORDS, self.keep_one());
        let text = format!(
            "the {what} of {} descend from other first keys than those of {me}, and neither opens what the other \
             seals: `{} generate` was run on two nodes; {remedy}",
            list(&state.strangers),
            K::COMMAND
        );
        state.troubles.say(Level::Error, "strangers", text);
    }

    /// Notes and logs whether another host uses the name of this node.
    fn check_double(&self, state: &mut State<K>) {
        let (is_doubled, me, what) = (self.desk.is_doubled(), &self.fleet.node, K::WORDS);
        state.node.set_doubled(is_doubled);
        if is_doubled {
            let text = format!(
                "fleet.node = \"{me}\": another host of {} has this name too; the {what} in force stay, and none are \
                 rotated or taken over until it has been silent for {} min: stop that host, or give it a name of its \
                 own ({CLIENTS_OF_MEMCACHED})",
                self.fleet.id,
                DOUBLE_QUIET.as_secs() / 60
            );
            state.troubles.say(Level::Error, "double", text);
        } else if state.troubles.over("double") {
            log::info!("fleet.node = \"{me}\": no other host of {} has this name any more", self.fleet.id);
        }
    }

    /// Logs members that are not heard of: the writer, as no other node rotates the keys, and those for whose
    /// acknowledgement a rotation waits.
    fn check_silence(&self, state: &mut State<K>, now: Instant) {
        let silent = self.desk.silent_members(&state.node, now);
        if silent.is_empty() {
            if state.troubles.over("silence") {
                log::info!("all members of {} are heard of again", self.fleet.id);
            }
            return;
        }
        let writer = state.node.on_disk().order().map(|order| &order.writer);
        let remedy = match writer.filter(|writer| silent.contains(writer)) {
            Some(writer) => format!(
                "{writer} writes the {}, which are not rotated meanwhile: start it, see what keeps it or this node \
                 from the servers, or run `{} take-over` here",
                K::WORDS,
                K::COMMAND
            ),
            None => format!(
                "the next rotation of the {} waits for them: start them, see what keeps them from the servers, or \
                 take them out of fleet.members",
                K::WORDS
            ),
        };
        let text = format!(
            "{} of {} silent for {} s or more; no client is refused; {remedy}",
            list(&silent),
            self.fleet.id,
            FRESH.as_secs()
        );
        // Members that come and go are logged once a minute.
        if state.silence_logged.is_none_or(|logged| now.saturating_duration_since(logged) >= FRESH)
            && state.troubles.say(Level::Warn, "silence", text)
        {
            state.silence_logged = Some(now);
        }
    }

    /// Says who writes, if it is not who should.
    fn check_writer(&self, state: &mut State<K>) {
        let (fleet, me, what) = (&self.fleet.id, &self.fleet.node, K::WORDS);
        let text = match (state.node.writes(), self.fleet.is_writer) {
            (Ok(_), true) | (Err(Refusal::NotWriter(_)), false) => None,
            (Ok(_), false) => Some(format!(
                "{me} writes the {what} of {fleet}, and fleet.writer in its configuration does not name it: nobody \
                 rotates them"
            )),
            (Err(Refusal::Nothing), false) => None,
            (Err(Refusal::Nothing), true) => Some(format!(
                "{me} is to write the {what} of {fleet}, and has none: run `{} generate` for the first ones of this \
                 fleet",
                K::COMMAND
            )),
            (Err(refusal), true) => Some(format!(
                "{refusal}, though fleet.writer in its configuration names it: one node writes; change it here, or run \
                 `{} take-over`",
                K::COMMAND
            )),
            (Err(refusal), false) => Some(refusal.to_string()),
        };
        match text {
            None => {
                state.troubles.over("writer");
            }
            Some(text) => {
                state.troubles.say(Level::Warn, "writer", text);
            }
        }
    }

    /// Whom a rotation does not wait for any more.
    fn leave(&self, state: &State<K>) -> Leave {
        match self.fleet.patience {
            Some(patience) if state.since.elapsed() >= patience => state.node.waiting(),
            Some(_) | None => Leave::new(),
        }
    }

    /// Members that a rotation leaves behind, with the requests a second that they can refuse: what they answered, if
    /// they count that.
    fn left_behind(&self, leave: &Leave) -> String {
        let one = |name: &Name| {
            let Some(last_minute) = self.desk.heard.last_minute(name) else { return name.to_string() };
            let a_second = a_second(last_minute);
            format!("{name} (which answered {a_second:.1} requests a second when it was heard last)")
        };
        leave.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

impl<K: FleetKind> State<K> {
    /// What lies on the disk now.
    fn take(&mut self, kept: Kept<Shared<K>>) {
        let before = self.node.on_disk();
        if kept.order() != before.order() {
            self.since = Instant::now();
        }
        if let Some(claim) = kept.claim.as_ref().filter(|claim| before.claim.as_ref() != Some(claim)) {
            log::warn!("{} is taking over as the writer, with term {}", claim.taker, claim.term);
        }
        self.node.kept(kept);
    }

    /// What is in force.
    fn held(&self) -> Option<Held<K>> {
        let used = self.node.in_force()?;
        let keys = used.keys.0.opening(used.beside.map(|keys| &keys.0), &used.revoked);
        Some(Held { keys, version: self.version_in_force()? })
    }

    /// The version of what is in force.
    fn version_in_force(&self) -> Option<Version> {
        self.node.in_force()?;
        let said = self.node.acknowledgement();
        // Digests stand for keys. What was revoked closes some of them.
        Some(Version::of(format!("{:?} {:?} {:?}", said.document, self.node.beside(), said.opens).as_bytes()))
    }
}

impl<K: FleetKind> KeyStore<K> for FleetStore<K> {
    fn place(&self) -> String {
        self.disk.path().display().to_string()
    }

    fn origin(&self) -> String {
        let state = self.state();
        let order = state.as_ref().and_then(|state| state.node.on_disk().order());
        order.map_or_else(String::new, |Order { term, version, writer }| {
            format!("from {writer} (term {term}, version {version})")
        })
    }

    fn load(&self) -> Result<Option<Held<K>>, StoreError> {
        if let Some(state) = &*self.state() {
            return Ok(state.held());
        }
        let OnDisk { kept, version } = self.disk.read()?;
        let keys = kept.document.map(|document| document.keys.0);
        Ok(keys.zip(version).map(|(keys, version)| Held { keys, version }))
    }

    /// Makes the first document of a fleet. Later ones are made by the rules alone.
    fn compare_and_swap(
        &self,
        expected: Option<Version>,
        keys: &K,
        patience: Duration,
    ) -> Result<Swap, StoreError> {
        let Fleet { id, node, is_writer, .. } = &self.fleet;
        if expected.is_some() || !is_writer {
            return Err(StoreError::OfFleet(id.to_string()));
        }
        let OnDisk { kept, version } = self.disk.read()?;
        if kept.document.is_some() {
            return Ok(Swap::Lost);
        }
        let document = Document::first(id.clone(), node.clone(), Shared(keys.clone()));
        self.disk.write(version, &Kept { document: Some(document), ..kept }, patience)
    }

    fn is_followed(&self) -> bool {
        true
    }

    fn rotates_here(&self) -> bool {
        self.fleet.is_writer && self.state().as_ref().is_some_and(|state| state.node.writes().is_ok())
    }

    fn begin(&self, now: u64, _: &mut Entropy) -> Result<Option<Held<K>>, StoreError> {
        let OnDisk { kept, version } = self.disk.read()?;
        let mut entropy =
            Entropy::from_system().map_err(|error| StoreError::Io(self.disk.path().to_owned(), error))?;
        let node = self.node(kept, &mut entropy);
        let source = Source { now, entropy };
        let (since, strangers) = (Instant::now(), BTreeSet::new());
        self.desk.since.store(self.disk.written().unwrap_or(now), Ordering::Relaxed);
        let (silence_logged, troubles) = (None, Troubles::default());
        let state = State { node, version, source, since, strangers, silence_logged, troubles };
        let held = state.held();
        *self.state() = Some(state);
        Ok(held)
    }

    fn adopted(&self) {
        if let Some(state) = &*self.state() {
            self.desk.show(&state.node);
        }
    }

    fn watch(&self, known: Option<Version>) -> Result<News<K>, StoreError> {
        let mut state = self.state();
        let Some(state) = state.as_mut() else { return Ok(News::None) };
        self.read_again(state)?;
        for said in self.desk.take() {
            self.hear(state, &said);
        }
        state.source.now = unix_seconds();
        self.check_double(state);
        if self.fleet.is_writer
            && let Ok(Some(kept)) = state.node.heal(self.keep, &self.leave(state), &mut state.source)
        {
            self.keep(state, kept);
        }
        self.check_writer(state);
        self.check_silence(state, Instant::now());
        self.check_strangers(state);
        let changed = if state.version_in_force() == known { None } else { state.held() };
        match changed {
            Some(held) => Ok(News::Changed(held)),
            None => {
                self.desk.show_changes(&state.node);
                Ok(News::None)
            }
        }
    }

    fn rotate(
        &self,
        _: &K,
        Rotation { now, keep, .. }: Rotation,
        _: &mut Entropy,
    ) -> Result<Rotated<K>, StoreError> {
        let mut state = self.state();
        let Some(state) = state.as_mut() else { return Ok(Rotated::Later("it has not started".to_owned())) };
        state.source.now = now;
        let leave = self.leave(state);
        let kept = match state.node.rotate(Way::Due, keep, &leave, &mut state.source) {
            Ok(kept) => kept,
            Err(refusal) => return Ok(Rotated::Later(refusal.to_string())),
        };
        match self.disk.write(state.version, &kept, OF_A_RUNNING_SERVER)? {
            Swap::Lost => Ok(Rotated::Later("a command is changing them".to_owned())),
            Swap::Done(version) => {
                if !leave.is_empty() {
                    log::warn!(
                        "patience is over: {} did not acknowledge the keys, and will refuse clients of the others",
                        self.left_behind(&leave)
                    );
                }
                state.version = Some(version);
                self.take(state, kept);
                Ok(state.held().map_or_else(|| Rotated::Later("they are gone".to_owned()), Rotated::Here))
            }
        }
    }

    fn file(&self) -> Option<&SecretFile> {
        Some(self.disk.file())
    }

    /// The first keys of the fleet: those that this server had before, if it had any, so that its clients stay.
    fn load_or_create(&self, now: u64, entropy: &mut Entropy) -> Result<Held<K>, StoreError> {
        if let Some(held) = self.load()? {
            return Ok(held);
        }
        let keys = match self.alone.load()? {
            Some(held) => held.keys,
            None => K::generate(now, entropy),
        };
        match self.compare_and_swap(None, &keys, AT_START)? {
            Swap::Done(version) => Ok(Held { keys, version }),
            Swap::Lost => Err(StoreError::Contended(self.place())),
        }
    }
}
