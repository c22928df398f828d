//! A fleet of four and its clients, second by second: first with faults, then without.

use std::collections::BTreeSet;

use authentick_crypto::Entropy;
use authentick_fleet::{Asker, Document, Kept, Name};
use authentick_proto::keyset::KeySet;

use super::client::{Came, Client};
use super::host::{Host, KIND, STORE_COUNT};
use super::keys::{Cookies, KeyName, name_of};
use super::operator::{Command, SealRotation, Wish};
use super::store::Store;
use super::truth::{Counts, Log, Scene, Settings, Truth};

pub(crate) const NODE_COUNT: usize = 4;
const CLIENT_COUNT: usize = 6;

/// Seconds with faults.
pub(crate) const FAULTY: u64 = 400;

/// Seconds without faults after which all nodes have one document.
const SETTLING: u64 = 60;

/// Seconds without a writer after which an operator has another node take over.
const WITHOUT_WRITER: u64 = 8;

/// Rotations that take place after that.
const ROTATIONS_AFTER: u64 = 2;

/// A world; see the module's documentation.
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) hosts: Vec<Host>,
    pub(crate) stores: Vec<Store>,
    pub(crate) clients: Vec<Client>,
    pub(crate) truth: Truth,
    pub(crate) log: Log,
    pub(crate) commands: Vec<Command>,
    pub(crate) seal: Option<SealRotation>,
    /// The seal key that seals when none is being changed.
    pub(crate) seal_number: u8,
    pub(crate) now: u64,
    pub(crate) entropy: Entropy,
    /// Of the clocks that show the time of day.
    pub(crate) clocks: Entropy,
    /// Whether these are all right, whatever is drawn.
    pub(crate) are_clocks_right: bool,
    /// One in so many faults of the worst runs takes place.
    pub(crate) calm: u64,
    /// Since when nobody could write.
    without_writer: u64,
}

/// What is done in a second, in any order.
#[derive(Clone, Copy, Debug)]
enum Action {
    Read(usize, usize),
    Write(usize, usize),
    Look(usize),
    Ask(usize),
    Command,
    Seal,
}

impl World {
    /// All nodes with the first document.
    pub(crate) fn new(seed: u64, are_clocks_right: bool, log: Log) -> Self {
        let mut entropy = Entropy::from_seed(seed);
        let name = |text: &str| Name::new(text).expect("it is a name");
        let (fleet, members) =
            (name("time.example.net"), ["ntp-1", "ntp-2", "ntp-3", "ntp-4"].map(name).to_vec());
        let keep = 1 + entropy.u64() % 3;
        let settings = Settings {
            members: members.clone(),
            period: 20 + entropy.u64() % 20,
            keep: keep as usize,
            patience: entropy.u64().is_multiple_of(4).then_some(30),
        };
        let calm = [1, 3, 8][(entropy.u64() % 3) as usize];
        let keys = KeySet::generate(1_700_000_000, &mut entropy);
        let first = Document::first(fleet.clone(), members[0].clone(), Cookies(keys));
        let kept = Kept { document: Some(first), ..Kept::default() };
        let mut world = World {
            hosts: Vec::new(),
            stores: (0..STORE_COUNT).map(|_| Store::new(entropy.u64())).collect(),
            clients: (0..CLIENT_COUNT).map(Client::new).collect(),
            truth: Truth::default(),
            log,
            commands: Vec::new(),
            seal: None,
            seal_number: 0,
            now: 0,
            clocks: Entropy::from_seed(!seed),
            are_clocks_right,
            calm,
            without_writer: 0,
            settings,
            entropy,
        };
        for index in 0..NODE_COUNT {
            let asker = Asker {
                fleet: fleet.clone(),
                me: members[index].clone(),
                members: members.clone(),
                kind: KIND,
            };
            let mut host = Host::new(index, asker, Entropy::from_seed(world.entropy.u64()));
            host.gain_ppm = (world.entropy.u64() % 401) as i64 - 200;
            world.hosts.push(host);
            world.spread_clock(index);
            let (host, scene) = world.at(index);
            host.disk.write(None, &kept, &scene).expect("nothing crashes yet");
            world.start(index);
        }
        world
    }

    /// A host, and where it is.
    fn at(&mut self, index: usize) -> (&mut Host, Scene<'_>) {
        let World { hosts, settings, truth, log, now, .. } = self;
        (&mut hosts[index], Scene { now: *now, settings, truth, log })
    }

    pub(crate) fn draw(&mut self, below: u64) -> u64 {
        self.entropy.u64() % below
    }

    pub(crate) fn start(&mut self, index: usize) {
        let (host, mut scene) = self.at(index);
        host.start(&mut scene);
        self.note(index);
    }

    /// Lives through the faults, and through what comes after them.
    pub(crate) fn carry_out(&mut self) {
        while self.now < FAULTY {
            self.befall();
            self.pass();
        }
        self.end_faults();
        let end = self.now + SETTLING;
        while !self.is_settled() {
            if self.now >= end {
                for host in &self.hosts {
                    let kept = host.process.as_ref().map(|process| process.node.on_disk());
                    let claim = kept.and_then(|kept| kept.claim.as_ref());
                    let order = kept.and_then(|kept| kept.order());
                    self.log.say(self.now, format_args!("{}: {order:?}, {claim:?}", host.name()));
                }
                self.log.say(self.now, format_args!("{:?}", self.commands));
                panic!("after {SETTLING} s without faults nodes have different documents");
            }
            self.pass();
        }
        let (after, due) = (self.now, self.truth.counts.due);
        self.log.say(after, format_args!("all have one document"));
        let before = self.truth.counts;
        while self.truth.counts.due < due + ROTATIONS_AFTER {
            let most = (ROTATIONS_AFTER + 1) * (self.settings.period + 5);
            assert!(self.now < after + most, "without faults no key rotates");
            self.pass();
        }
        let unheard = |counts: Counts| (counts.ahead, counts.without_keys, counts.left_behind);
        assert_eq!(unheard(self.truth.counts), unheard(before), "a fleet without faults is silent");
    }

    /// A second passes.
    fn pass(&mut self) {
        self.now += 1;
        for number in 0..STORE_COUNT {
            self.stores[number].pass(self.now);
        }
        for index in 0..NODE_COUNT {
            if self.hosts[index].process.is_none() && self.now >= self.hosts[index].down_until {
                self.start(index);
            }
        }
        self.oversee();
        for action in self.actions() {
            self.act(action);
        }
        self.check();
    }

    fn actions(&mut self) -> Vec<Action> {
        let mut actions = vec![Action::Command, Action::Seal];
        for host in 0..NODE_COUNT {
            // Now and then somebody is slow.
            for store in 0..STORE_COUNT {
                if self.draw(10) > 0 {
                    actions.push(Action::Read(host, store));
                }
                actions.push(Action::Write(host, store));
            }
            if self.draw(10) > 0 {
                actions.push(Action::Look(host));
            }
        }
        for client in 0..CLIENT_COUNT {
            if self.clients[client].asleep_until <= self.now && self.draw(2) == 0 {
                actions.push(Action::Ask(client));
            }
        }
        for index in (1..actions.len()).rev() {
            let other = self.draw(index as u64 + 1) as usize;
            actions.swap(index, other);
        }
        actions
    }

    fn act(&mut self, action: Action) {
        let now = self.now;
        match action {
            Action::Read(host, store) => self.hosts[host].link_reads(store, &mut self.stores[store], now),
            Action::Write(host, store) => self.hosts[host].link_writes(store, &mut self.stores[store], now),
            Action::Look(index) => {
                let (host, mut scene) = self.at(index);
                if host.look(&mut scene).is_err() {
                    self.crash(index, "while it wrote");
                }
                self.note(index);
            }
            Action::Ask(client) => self.ask(client),
            Action::Command => {
                self.command();
                if std::mem::take(&mut self.truth.says_gone) {
                    self.forget_gone();
                }
            }
            Action::Seal => {
                let index = self.draw(NODE_COUNT as u64) as usize;
                let Some(seal) = &mut self.seal else { return };
                if seal.go_on(&mut self.hosts, index) {
                    (self.seal_number, self.seal) = (seal.old.wrapping_add(1), None);
                    self.truth.counts.seal_rotations += 1;
                    self.log.say(now, format_args!("the seal key is another one"));
                }
            }
        }
    }

    /// All commands try.
    fn command(&mut self) {
        for mut command in std::mem::take(&mut self.commands) {
            if self.hosts[command.host].process.is_none() {
                self.commands.push(command);
                continue;
            }
            let World { hosts, stores, settings, truth, log, now, .. } = self;
            let mut scene = Scene { now: *now, settings, truth, log };
            if !command.try_once(hosts, stores, &mut scene) {
                self.commands.push(command);
            }
        }
    }

    /// An operator sees to it that somebody can write.
    fn oversee(&mut self) {
        let writes = |host: &Host| {
            host.process.as_ref().is_some_and(|process| process.node.writes().is_ok()) && host.is_writer
        };
        if self.hosts.iter().any(writes) {
            self.without_writer = self.now;
        }
        let takes_over = |command: &Command| matches!(command.wish, Wish::TakeOver);
        // With faults around, hosts come back by themselves.
        let patience = if self.now < FAULTY { 5 * WITHOUT_WRITER } else { WITHOUT_WRITER };
        if self.now - self.without_writer < patience || self.commands.iter().any(takes_over) {
            return;
        }
        let serving = self.hosts.iter().filter(|host| host.keys().is_some());
        let Some(highest) = serving.max_by_key(|host| host.order()) else { return };
        self.log.say(self.now, format_args!("nobody writes: {} is to take over", highest.name()));
        self.commands.push(Command::new(highest.index, Wish::TakeOver, self.now));
    }

    fn ask(&mut self, client: usize) {
        let up: Vec<usize> = (0..NODE_COUNT).filter(|index| self.hosts[*index].process.is_some()).collect();
        if up.is_empty() {
            return;
        }
        let index = up[self.draw(up.len() as u64) as usize];
        let World { hosts, clients, entropy, truth, .. } = self;
        let (host, number) = (&mut hosts[index], client);
        let client = &mut clients[number];
        if client.is_stranded() {
            if let Some(keys) = host.keys() {
                client.exchange_keys(keys, entropy);
                truth.counts.key_exchanges += 1;
            }
            return;
        }
        truth.counts.requests += 1;
        match client.ask(host, self.now, entropy) {
            Came::Answer => truth.counts.answers += 1,
            Came::Kiss(key) => {
                client.forget();
                self.kissed(index, key);
            }
            Came::Silence(key) => self.unanswered(index, key),
        }
        if self.draw(60) == 0 {
            let longest = self.settings.period * (self.settings.keep as u64 + 1);
            self.clients[number].asleep_until = self.now + self.draw(longest);
        }
    }

    /// A client got NTSN from a host.
    fn kissed(&mut self, index: usize, key: KeyName) {
        let name = self.hosts[index].name().clone();
        let (id, _) = key;
        let is_left = self.is_left(index);
        let is_deposed = !self.truth.sealed.contains_key(&key);
        let counts = &mut self.truth.counts;
        if self.truth.revoked.contains(&id) {
            counts.revoked += 1;
        } else if is_left {
            counts.left_behind += 1;
        } else if is_deposed {
            counts.deposed += 1;
        } else if !self.is_promised(index, key) {
            self.truth.counts.expired += 1;
        } else {
            panic!("NTSN of {name} for a cookie under key {id:08x}");
        }
    }

    /// A client got no answer of a host that runs.
    fn unanswered(&mut self, index: usize, key: KeyName) {
        let (host, id) = (&self.hosts[index], key.0);
        if host.keys().is_none() {
            self.truth.counts.without_keys += 1;
            return;
        }
        if !self.truth.sealed.contains_key(&key) {
            self.truth.counts.deposed += 1;
            return;
        }
        assert!(
            self.is_left(index) || self.truth.revoked.contains(&id),
            "{} says nothing to a cookie under key {id:08x}",
            host.name()
        );
        self.truth.counts.ahead += 1;
    }

    /// Whether a host was left behind, and may know less than others seal with. Where patience never ends, a writer
    /// that a take-over did not wait for is waited for by the next rotation.
    fn is_left(&self, index: usize) -> bool {
        let is_astray = || self.hosts[index].order().is_some_and(|order| self.truth.astray.contains(order));
        self.settings.patience.is_some() && (self.truth.left_behind.contains_key(&index) || is_astray())
    }

    /// Whether a key has sealed within as many periods as are kept, as a host counts them that serves.
    fn is_promised(&self, index: usize, key: KeyName) -> bool {
        let (period, last) = (self.hosts[index].period(), self.truth.sealed.get(&key));
        let (Some(period), Some(last)) = (period, last) else { return false };
        period.saturating_sub(*last) < self.settings.keep as u64
    }

    /// Notes what a host seals with, since when, and whether it has caught up. Nobody promises anything for what a host
    /// seals with that was left behind: a writer that a take-over was told is gone, and that is not, goes on with keys
    /// of its own once patience is over.
    fn note(&mut self, index: usize) {
        let is_left = self.is_left(index);
        let host = &self.hosts[index];
        if let (Some(keys), Some(period)) = (host.keys(), host.period()) {
            let key = name_of(keys.current());
            self.truth.since.entry(key).or_insert(self.now);
            if !is_left {
                let last = self.truth.sealed.entry(key).or_default();
                *last = period.max(*last);
            }
        }
        if self.truth.left_behind.get(&index).is_some_and(|order| host.order() >= Some(order)) {
            self.truth.left_behind.remove(&index);
        }
    }

    /// What always holds.
    fn check(&self) {
        let is_serving = |host: &&Host| host.keys().is_some() && !self.is_left(host.index);
        let serving: Vec<&Host> = self.hosts.iter().filter(is_serving).collect();
        for host in &serving {
            let key = host.keys().map(|keys| name_of(keys.current())).expect("it serves");
            let refuses = |other: &&&Host| !self.truth.revoked.contains(&key.0) && !other.opens(key);
            if let Some(other) = serving.iter().find(refuses) {
                panic!("{} seals with key {:08x}, which {} does not open", host.name(), key.0, other.name());
            }
            for key in self.truth.sealed.keys().filter(|(id, _)| !self.truth.revoked.contains(id)) {
                let opens = host.opens(*key) || !self.is_promised(host.index, *key);
                assert!(
                    opens,
                    "at {}, in period {:?}, {} has dropped key {:08x}, which sealed in period {}",
                    self.now,
                    host.period(),
                    host.name(),
                    key.0,
                    self.truth.sealed[key]
                );
            }
        }
        for host in &self.hosts {
            let is_shut = |key: &KeyName| !self.truth.revoked.contains(&key.0) && !host.opens(*key);
            let shut = host.refused().into_iter().find(is_shut);
            assert!(shut.is_none(), "{} has heard of key {shut:x?}, and does not open it", host.name());
            let open = |id: &&u32| host.keys().is_some_and(|keys| keys.find(**id).is_some());
            let back = host.given_up.iter().find(open);
            assert!(
                back.is_none(),
                "{} opens key {:08x} again, which was revoked",
                host.name(),
                back.unwrap_or(&0)
            );
        }
    }

    /// Whether all have one document, and what anybody has given up opens nowhere.
    fn is_settled(&self) -> bool {
        let first = &self.hosts[0];
        let document =
            |host: &Host| host.process.as_ref().and_then(|process| process.node.acknowledgement().document);
        let is_one =
            document(first).is_some() && self.hosts.iter().all(|host| document(host) == document(first));
        let given_up: BTreeSet<u32> =
            self.hosts.iter().flat_map(|host| host.given_up.iter().copied()).collect();
        let is_open =
            |id: &u32| self.hosts.iter().any(|host| host.keys().is_some_and(|keys| keys.find(*id).is_some()));
        is_one && self.seal.is_none() && !given_up.iter().any(is_open)
    }

    pub(crate) fn crash(&mut self, index: usize, why: &str) {
        let longest = if self.draw(4) == 0 { 5 * self.settings.period } else { 8 };
        let downtime = 1 + self.draw(longest);
        let host = &mut self.hosts[index];
        (host.process, host.down_until) = (None, self.now + downtime);
        self.log.say(self.now, format_args!("{} crashes {why}, for {downtime} s", host.name()));
        self.truth.counts.crashes += 1;
    }
}
