//! A host: its disk, its two clocks, and the process on it that is a node of the fleet.
//!
//! What the process does in between the rules, the disk, the stores and the responder is the daemon's, without threads:
//! a *link* for each store reads and writes it, a *look* each second hears what was read, keeps it and rotates. What
//! they have in common is what was read last, and the node as it is in force.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;

use authentick_crypto::Entropy;
use authentick_fleet::seal::{SEAL_KEY_SIZE, SealKeys, Topic};
use authentick_fleet::{
    Acknowledgement, Asker, Digest, Found, Heard, Kept, Leave, Name, Node, Nonce, Order, Rotation, Said,
    Start,
};
use authentick_proto::keyset::KeySet;
use authentick_proto::server::Policy;
use authentick_sim::{Answer, Arrival, Clock, Server, TrueTime};
use authentick_wire::time::NtpTime;
use zeroize::Zeroizing;

use super::keys::{Cookies, KeyName, Source, name_of};
use super::store::{Put, Store, Token, Value};
use super::truth::Scene;

/// What a store calls the keys.
pub(crate) const KIND: &str = "cookie-keys";

/// After so many seconds a node says again what it has said.
const REFRESH: u64 = 15;

/// After so many seconds the disk is tried again for a rotation that it refused.
const RETRY: u64 = 30;

/// How often the age of the key that seals is written.
const AGE_INTERVAL: u64 = 10;

/// The number of stores.
pub(crate) const STORE_COUNT: usize = 2;

const SECOND: u64 = 1_000_000_000;

/// The second of Unix at which worlds begin.
const EPOCH: i64 = 1_700_000_000;

/// A process ends at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crashed;

/// When a process ends that is writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CrashAt {
    /// Before what it writes is safe.
    Before,
    /// After that, and before it knows.
    After,
}

/// What became of something that was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Done,
    /// Somebody else has written meanwhile.
    Lost,
    Refused,
}

/// A file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    pub(crate) text: Option<Rc<str>>,
    order: Option<Order>,
    pub(crate) refuses_until: u64,
    pub(crate) crash: Option<CrashAt>,
}

impl Disk {
    pub(crate) fn read(&self) -> Kept<Cookies> {
        self.text.as_ref().map_or_else(Kept::default, |text| Kept::parse(text).expect("disks are true"))
    }

    /// The keys of the document.
    pub(crate) fn keys(&self) -> BTreeSet<KeyName> {
        self.read().document.map_or_else(BTreeSet::new, |document| document.keys.names())
    }

    /// Writes what is to be kept, if what lies there is what is `expected`.
    pub(crate) fn write(
        &mut self,
        expected: Option<&Rc<str>>,
        kept: &Kept<Cookies>,
        scene: &Scene<'_>,
    ) -> Result<Written, Crashed> {
        if expected != self.text.as_ref() {
            return Ok(Written::Lost);
        }
        if scene.now < self.refuses_until {
            return Ok(Written::Refused);
        }
        let crash = self.crash.take();
        if crash != Some(CrashAt::Before) {
            assert!(
                kept.order() >= self.order.as_ref(),
                "the document on a disk falls to {:?}",
                kept.order()
            );
            self.order = kept.order().cloned();
            self.text = Some((**kept.emit()).into());
        }
        crash.map_or(Ok(Written::Done), |_| Err(Crashed))
    }
}

/// What this node said of itself last, in one store.
struct SaidOfItself {
    acknowledgement: Acknowledgement,
    sealed: Rc<[u8]>,
    when: u64,
}

/// What was read in a store, and the node that is to answer.
type Read = (Rc<Node<Cookies>>, Found<Cookies, Value>);

/// The talk with one store.
#[derive(Default)]
struct Link {
    said: Option<SaidOfItself>,
    /// What was read, and not answered yet.
    found: Option<Read>,
}

/// For how long a key has sealed, by the clock that is never set.
#[derive(Clone, Copy, Debug)]
struct Age {
    id: Option<u32>,
    carried: u64,
    since: u64,
    written: u64,
    not_before: u64,
}

/// What of the fleet a running server has in force.
type InForce = (Option<(Order, Digest)>, Option<Digest>, Vec<u32>);

/// A running server.
pub(crate) struct Process {
    pub(crate) node: Node<Cookies>,
    /// Of the file.
    text: Option<Rc<str>>,
    source: Source,
    /// Since when the document has been in force, by the clock that is never set.
    since: u64,
    server: Server,
    in_force: Option<InForce>,
    shown: Rc<Node<Cookies>>,
    read: [Vec<Said<Cookies>>; STORE_COUNT],
    links: [Link; STORE_COUNT],
    age: Age,
    /// The highest that the disk has refused since it last took something.
    refused: Option<Kept<Cookies>>,
    /// Why a rotation that is due has not taken place, as was said last.
    later: Option<String>,
}

/// A host; see the module's documentation.
pub(crate) struct Host {
    pub(crate) index: usize,
    pub(crate) asker: Asker,
    pub(crate) disk: Disk,
    /// The clock that shows the time of day.
    pub(crate) wall: Clock,
    /// How much the clock gains that is never set, in millionths.
    pub(crate) gain_ppm: i64,
    /// Whether its configuration has it write.
    pub(crate) is_writer: bool,
    seals: Rc<SealKeys>,
    /// Until when it does not reach which store.
    pub(crate) cut_until: [u64; STORE_COUNT],
    pub(crate) down_until: u64,
    pub(crate) process: Option<Process>,
    /// Of which key, as the file beside the keys has it.
    age: Option<(u32, u64)>,
    /// What it had given up because it was revoked.
    pub(crate) given_up: BTreeSet<u32>,
    pub(crate) entropy: Entropy,
}

impl Host {
    pub(crate) fn new(index: usize, asker: Asker, entropy: Entropy) -> Self {
        let seals = Rc::new(seal_keys(&asker.fleet, &[0]));
        Host {
            index,
            asker,
            disk: Disk::default(),
            wall: Clock::default(),
            gain_ppm: 0,
            is_writer: index == 0,
            seals,
            cut_until: [0; STORE_COUNT],
            down_until: 0,
            process: None,
            age: None,
            given_up: BTreeSet::new(),
            entropy,
        }
    }

    /// Its seal keys from now on, by number; the first seals.
    pub(crate) fn seal_with(&mut self, numbers: &[u8]) {
        self.seals = Rc::new(seal_keys(&self.asker.fleet, numbers));
    }

    /// What its clock shows.
    pub(crate) fn time(&self, now: u64) -> NtpTime {
        self.wall.at(TrueTime(now * SECOND))
    }

    fn unix_seconds(&self, now: u64) -> u64 {
        let ahead = self.time(now).since(NtpTime::from_unix(EPOCH, 0)).as_nanos().div_euclid(SECOND as i64);
        EPOCH.saturating_add(ahead).unsigned_abs()
    }

    /// Milliseconds by the clock that is never set.
    fn boot_ms(&self, now: u64) -> u64 {
        (now as i64 * (1_000_000 + self.gain_ppm) / 1000).unsigned_abs()
    }

    pub(crate) fn reaches(&self, store: usize, now: u64) -> bool {
        now >= self.cut_until[store]
    }

    /// What lies in a store for this host, if both agree to talk.
    pub(crate) fn read(
        &self,
        number: usize,
        store: &mut Store,
        nonce: Option<Nonce>,
        now: u64,
    ) -> Option<Found<Cookies, Value>> {
        let names = self.asker.names();
        let names = names.iter().map(authentick_fleet::memcached::Name::as_str);
        let values = self.reaches(number, now).then(|| store.get(names))??;
        Some(Found::of(&self.asker, nonce, &self.seals, values))
    }

    /// Puts a text into a store; returns it sealed if it lies there now, as far as is known.
    pub(crate) fn put(
        &mut self,
        (number, store): (usize, &mut Store),
        topic: Topic<'_>,
        text: &str,
        found: &Found<Cookies, Value>,
        now: u64,
    ) -> Option<Rc<[u8]>> {
        let sealed: Rc<[u8]> = self.seals.seal(topic, KIND, text, &mut self.entropy).into();
        let name = self.asker.name(topic);
        let token: Option<Token> = found.value(&name).map(|value| value.token);
        let put = self.reaches(number, now).then(|| store.put(name.as_str(), &sealed, token, now))?;
        (put == Put::Stored).then_some(sealed)
    }

    /// The process starts.
    pub(crate) fn start(&mut self, scene: &mut Scene<'_>) {
        let (kept, text) = (self.disk.read(), self.disk.text.clone());
        let Asker { fleet, me, members, .. } = self.asker.clone();
        let node = Node::new(fleet, me, members, Start::Welcomed, kept, self.entropy.array());
        let id = node.in_force().map(|used| used.keys.0.current().id());
        let carried = self.age.filter(|(of, _)| Some(*of) == id).map_or(0, |(_, age)| age);
        let since = self.boot_ms(scene.now);
        let policy = Policy { awaits_keys: true, ..Policy::open() };
        let mut server = Server::new(self.entropy.u64()).interleaved(policy);
        server.cookie_keys = None;
        let source =
            Source { now: self.unix_seconds(scene.now), entropy: Entropy::from_seed(self.entropy.u64()) };
        let mut process = Process {
            shown: Rc::new(node.clone()),
            node,
            text,
            source,
            since,
            server,
            in_force: None,
            read: Default::default(),
            links: Default::default(),
            later: None,
            refused: None,
            age: Age { id, carried, since, written: since, not_before: since },
        };
        process.adopt();
        scene.say(format_args!("{} starts with {:?}", self.asker.me, process.node.on_disk().order()));
        self.process = Some(process);
    }

    /// A link reads its store.
    pub(crate) fn link_reads(&mut self, number: usize, store: &mut Store, now: u64) {
        let Some(shown) = self.process.as_ref().map(|process| Rc::clone(&process.shown)) else { return };
        let nonce = shown.acknowledgement().nonce;
        let Some(found) = self.read(number, store, nonce, now) else { return };
        let said = found.clone().said(&self.asker.me);
        let Some(process) = &mut self.process else { return };
        process.read[number] = said;
        process.links[number].found = Some((shown, found));
    }

    /// A link puts into its store what was missing when it was read.
    pub(crate) fn link_writes(&mut self, number: usize, store: &mut Store, now: u64) {
        let Some(process) = &mut self.process else { return };
        let Some((shown, found)) = process.links[number].found.take() else { return };
        let asker = self.asker.clone();
        for (topic, text) in found.missing(&asker, &shown) {
            self.put((number, store), topic, &text, &found, now);
        }
        let (acknowledgement, topic) = (shown.acknowledgement(), Topic::Node(&asker.me));
        let lies = found.value(&asker.name(topic)).map(|value| &value.octets);
        let said = self.process.as_ref().and_then(|process| process.links[number].said.as_ref());
        let is_there = said.is_some_and(|said| {
            said.acknowledgement == acknowledgement && Some(&said.sealed) == lies && now - said.when < REFRESH
        });
        if is_there {
            return;
        }
        let text = Acknowledgement { time: self.unix_seconds(now), ..acknowledgement.clone() }.emit();
        let sealed = self.put((number, store), topic, &text, &found, now);
        if let (Some(sealed), Some(process)) = (sealed, &mut self.process) {
            process.links[number].said = Some(SaidOfItself { acknowledgement, sealed, when: now });
        }
    }

    /// The supervisor looks: it takes up what a command has written, hears what was read, and rotates if that is due.
    pub(crate) fn look(&mut self, scene: &mut Scene<'_>) -> Result<(), Crashed> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        let boot = self.boot_ms(scene.now);
        process.source.now = self.unix_seconds(scene.now);
        let Host { disk, is_writer, asker, .. } = self;
        process.read_again(disk, boot, scene)?;
        for said in process.read.each_mut().map(std::mem::take).into_iter().flatten() {
            match said.tell(&mut process.node) {
                Heard::Nothing => {}
                Heard::Keep(kept) => process.keep(disk, *kept, boot, scene)?,
                Heard::Refused(clash) => {
                    scene.say(format_args!("{} refuses {said}: {clash}", asker.me));
                    scene.truth.counts.clashes += 1;
                }
            }
        }
        if *is_writer {
            let (keep, leave) = (scene.settings.keep, process.leave(boot, scene));
            if let Ok(Some(kept)) = process.node.heal(keep, &leave, &mut process.source) {
                scene.say(format_args!("{} heals", asker.me));
                process.note_left(&leave, &kept, scene);
                process.keep(disk, kept, boot, scene)?;
            }
        }
        process.adopt();
        if *is_writer && process.node.writes().is_ok() && process.is_due(boot, scene) {
            process.rotate(disk, self.index, boot, scene)?;
        }
        if boot.saturating_sub(process.age.written) >= AGE_INTERVAL * 1000 {
            process.age.written = boot;
            self.age = process.age.id.map(|id| (id, process.age.of(boot)));
        }
        self.given_up.extend(process.node.on_disk().revoked());
        self.process = Some(process);
        Ok(())
    }

    /// The keys in force.
    pub(crate) fn keys(&self) -> Option<&KeySet> {
        self.process.as_ref()?.server.cookie_keys.as_ref()
    }

    /// Whether it opens what is sealed with this key.
    pub(crate) fn opens(&self, key: KeyName) -> bool {
        self.keys().and_then(|keys| keys.find(key.0)).is_some_and(|known| name_of(known) == key)
    }

    /// Keys that it has heard of and could not keep, as the disk refused.
    pub(crate) fn refused(&self) -> BTreeSet<KeyName> {
        let refused = self.process.as_ref().and_then(|process| process.refused.as_ref());
        let document = refused.and_then(|kept| kept.document.as_ref());
        document.map_or_else(BTreeSet::new, |document| document.keys.names())
    }

    /// The period of the document that is in force.
    pub(crate) fn period(&self) -> Option<u64> {
        Some(self.process.as_ref()?.shown.on_disk().document.as_ref()?.period)
    }

    /// What the server says to a datagram; `None` if none runs.
    pub(crate) fn answer(&mut self, source: SocketAddr, octets: Vec<u8>, now: u64) -> Option<Answer> {
        let received = self.time(now);
        Some(self.process.as_mut()?.server.answer(Arrival { source, received, octets }, received))
    }

    /// The place of what lies on its disk.
    pub(crate) fn order(&self) -> Option<&Order> {
        self.disk.order.as_ref()
    }

    pub(crate) fn name(&self) -> &Name {
        &self.asker.me
    }
}

impl Age {
    fn of(&self, boot: u64) -> u64 {
        self.carried + boot.saturating_sub(self.since)
    }
}

impl Process {
    /// Takes up what a command has put on the disk.
    fn read_again(&mut self, disk: &mut Disk, boot: u64, scene: &Scene<'_>) -> Result<(), Crashed> {
        if disk.text == self.text {
            return Ok(());
        }
        let kept = disk.read();
        if disk.text.is_some() && kept.order() >= self.node.on_disk().order() {
            self.text = disk.text.clone();
            self.take(kept, boot);
        } else if disk.write(disk.text.clone().as_ref(), self.node.on_disk(), scene)? == Written::Done {
            self.text = disk.text.clone();
        }
        Ok(())
    }

    /// Writes what is to be kept. What the disk refuses is heard again.
    fn keep(
        &mut self,
        disk: &mut Disk,
        kept: Kept<Cookies>,
        boot: u64,
        scene: &Scene<'_>,
    ) -> Result<(), Crashed> {
        match disk.write(self.text.as_ref(), &kept, scene)? {
            Written::Done => {
                self.text = disk.text.clone();
                self.take(kept, boot);
            }
            Written::Lost => {}
            Written::Refused => {
                let known = self.refused.as_ref().unwrap_or(self.node.on_disk());
                if known.order() < kept.order() && self.node.on_disk().document.is_some() {
                    self.refused = Some(kept.clone());
                }
                self.node.not_kept(kept);
            }
        }
        Ok(())
    }

    /// What lies on the disk now.
    fn take(&mut self, kept: Kept<Cookies>, boot: u64) {
        if kept.order() != self.node.on_disk().order() {
            self.since = boot;
            self.refused = None;
        }
        self.node.kept(kept);
    }

    /// Puts in force what the node has, and then shows it.
    fn adopt(&mut self) {
        let said = self.node.acknowledgement();
        let version = self.node.in_force().map(|_| (said.document, self.node.beside(), said.opens));
        if version != self.in_force {
            let keys = self.node.in_force().map(|used| {
                used.keys.0.opening(used.beside.map(|beside| &beside.0), used.revoked.iter().copied())
            });
            (self.server.cookie_keys, self.in_force) = (keys, version);
        }
        self.shown = Rc::new(self.node.clone());
    }

    /// Whom a rotation does not wait for any more.
    fn leave(&self, boot: u64, scene: &Scene<'_>) -> Leave {
        let is_over = |patience: u64| boot.saturating_sub(self.since) >= patience * 1000;
        if scene.settings.patience.is_some_and(is_over) { self.node.waiting() } else { Leave::new() }
    }

    /// Whether the key that seals has done so for a period.
    fn is_due(&mut self, boot: u64, scene: &Scene<'_>) -> bool {
        let id = self.server.cookie_keys.as_ref().map(|keys| keys.current().id());
        if id != self.age.id {
            self.begin_anew(id, boot);
        }
        id.is_some() && self.age.of(boot) >= scene.settings.period * 1000 && boot >= self.age.not_before
    }

    fn begin_anew(&mut self, id: Option<u32>, boot: u64) {
        self.age = Age { id, carried: 0, since: boot, written: boot, not_before: boot };
    }

    fn rotate(
        &mut self,
        disk: &mut Disk,
        index: usize,
        boot: u64,
        scene: &mut Scene<'_>,
    ) -> Result<(), Crashed> {
        let leave = self.leave(boot, scene);
        let rotated = self.node.rotate(Rotation::Due, scene.settings.keep, &leave, &mut self.source);
        let kept = match rotated {
            Ok(kept) => kept,
            Err(refusal) => {
                let later = refusal.to_string();
                if self.later.as_ref() != Some(&later) {
                    scene.say(format_args!("{} would rotate: {later}", self.node.name()));
                    self.later = Some(later);
                }
                return Ok(());
            }
        };
        let written = disk.write(self.text.as_ref(), &kept, scene);
        // A host that crashes may have written.
        if disk.order.as_ref() == kept.order() {
            self.note_left(&leave, &kept, scene);
            scene.truth.writes(index, kept.order());
        }
        match written? {
            Written::Lost => {}
            Written::Refused => self.age.not_before = boot + RETRY * 1000,
            Written::Done => {
                self.text = disk.text.clone();
                let order = kept.order().expect("a rotation makes a document").clone();
                scene.say(format_args!("{} rotates: {order}", self.node.name()));
                scene.truth.counts.due += 1;
                scene.truth.rotations.push((scene.now, index, order));
                let retired = self.server.cookie_keys.as_ref().map(|keys| name_of(keys.current()));
                let since = retired.and_then(|key| scene.truth.since.get(&key)).copied().unwrap_or_default();
                // A clock gains less than a thousandth.
                let sealed_for = scene.now - since;
                assert!(
                    sealed_for * 1000 >= scene.settings.period * 999,
                    "a rotation was due after {sealed_for} s at {}",
                    self.node.name()
                );
                self.take(kept, boot);
                self.adopt();
                let id = self.server.cookie_keys.as_ref().map(|keys| keys.current().id());
                self.begin_anew(id, boot);
            }
        }
        Ok(())
    }

    /// Notes who is left behind by a document that was written.
    fn note_left(&self, leave: &Leave, kept: &Kept<Cookies>, scene: &mut Scene<'_>) {
        for name in leave.intersection(&self.node.waiting()) {
            let index = scene.settings.members.iter().position(|member| member == name);
            if let (Some(index), Some(order)) = (index, kept.order()) {
                scene.say(format_args!("{name} is left behind by {order}"));
                scene.truth.leaves_behind(index, order);
            }
        }
    }
}

/// The seal keys with these numbers.
fn seal_keys(fleet: &Name, numbers: &[u8]) -> SealKeys {
    let keys: Vec<_> = numbers.iter().map(|number| Zeroizing::new([*number; SEAL_KEY_SIZE])).collect();
    SealKeys::new(fleet.clone(), &keys).expect("there is one")
}
