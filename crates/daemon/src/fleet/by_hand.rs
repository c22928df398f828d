//! What an operator does to a fleet on one node's command line, whether its server runs or not.
//!
//! A command reads the node's disk and all servers anew each second, as the node's own server does, and asks the same
//! rules. What it changes it writes to the disk; a running server takes that up with its next look, and tells others.
//! Only a claim is put into the servers from here, as nobody may be running who would.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_fleet::seal::{SealKeys, Topic};
use authentick_fleet::{
    Acknowledgement, Asker, Heard, Kept, Leave, Name, Node, Refusal, Rotation, SymmetricUses, Why,
};
use authentick_net::clock::unix_seconds;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;
use thiserror::Error;

use super::disk::{Disk, OnDisk};
use super::found::{Found, asker};
use super::keys::{FleetKind, Shared, Source};
use super::server::{Put, Server};
use super::status::{Clients, MemberStatus, Present, ServerStatus, Status, Statuses, a_second, sum};
use crate::config::{Config, ConfigError, Fleet, RotatingKeys};
use crate::keystore::{StoreError, Swap, Version};
use crate::lock::OF_A_COMMAND;
use crate::names::ServerAddresses;
use crate::preflight;

/// What to do about members that did not answer.
const AWAY: &str = "start these nodes, or see what keeps them from the servers, and run this again";

/// How often a command looks.
const LOOK: Duration = Duration::from_secs(1);

/// Why a command to a fleet did not do what it should.
#[derive(Debug, Error)]
pub enum HandError {
    /// The configuration, or a file that it names.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Servers or members did not answer: which, and what to do.
    #[error("{0}; {1}")]
    Silence(String, &'static str),
    /// The rules do not allow it: why, and what to do.
    #[error("{0}; {1}")]
    Refused(String, String),
}

/// The hands of an operator on a node: one for each kind of keys that its fleet shares.
#[derive(Debug)]
pub struct Hands {
    cookie_keys: Option<Hand<KeySet>>,
    state_keys: Option<Hand<StateKeys>>,
}

impl Hands {
    /// The hands on the node that a configuration names; with `is_state_alone`, the one on ANTP's state keys.
    ///
    /// # Errors
    /// As [`Hand::new`].
    pub fn new(config: &Config, is_state_alone: bool) -> Result<Self, HandError> {
        fn hand<K: FleetKind>(config: &Config, is_wanted: bool) -> Result<Option<Hand<K>>, HandError> {
            let is_there = K::settings(config).is_some_and(RotatingKeys::are_shared);
            if is_wanted || is_there { Hand::new(config).map(Some) } else { Ok(None) }
        }
        let state_keys = hand(config, is_state_alone)?;
        // Where there is no fleet at all, this says so.
        let cookie_keys = if is_state_alone { None } else { hand(config, state_keys.is_none())? };
        Ok(Hands { cookie_keys, state_keys })
    }

    /// The file that the node keeps, or one of them: they are in one directory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        let path = self.cookie_keys.as_ref().map(Hand::path);
        path.or_else(|| self.state_keys.as_ref().map(Hand::path))
    }

    /// How servers and members are, for keys of each kind.
    ///
    /// # Errors
    /// As [`Hand::status`].
    pub fn status(&mut self) -> Result<Statuses, HandError> {
        let cookie_keys = self.cookie_keys.as_mut().map(Hand::status).transpose()?;
        let state_keys = self.state_keys.as_mut().map(Hand::status).transpose()?;
        let (of_cookies, of_state) = (cookie_keys.unzip(), state_keys.unzip());
        let symmetric = of_cookies.1.into_iter().chain(of_state.1).flatten();
        Ok(Statuses::new(of_cookies.0, of_state.0, symmetric))
    }
}

/// What to do about two hosts with one name.
const KEEP_ONE_HOST: &str =
    "stop that host or give it a name of its own, and run this again ten minutes later";

/// The hand of an operator on keys of one kind.
#[derive(Debug)]
pub struct Hand<K> {
    fleet: Fleet,
    keep: usize,
    disk: Disk<K>,
    asker: Asker,
    seals: SealKeys,
    servers: Vec<Server>,
    source: Source,
}

/// What was seen in one look.
struct Seen<K> {
    /// The node with what is on its disk, and all that others say.
    node: Node<Shared<K>>,
    version: Option<Version>,
    /// What this node has not taken yet of what others say; its server does.
    behind: Option<String>,
    /// Of each server, what lies there, or why that is not known.
    servers: Vec<Result<Found<K>, String>>,
}

impl<K: FleetKind> Hand<K> {
    /// The hand on the node that a configuration names.
    ///
    /// # Errors
    /// If there is no fleet, it does not share such keys, or its seal keys cannot be read.
    pub fn new(config: &Config) -> Result<Self, HandError> {
        let remedy =
            "name the configuration of a node of a fleet with --config; other servers need none of this";
        let no_fleet = || config.wrong("fleet", "", "there is no fleet", remedy);
        let fleet = config.fleet.clone().ok_or_else(no_fleet)?;
        let unshared = || {
            let problem = format!("it does not share {}", K::WORDS);
            let remedy = "change them where they are kept; ANTP's state keys are named by --antp";
            config.wrong("fleet", "", problem, remedy)
        };
        let settings = K::settings(config).filter(|keys| keys.are_shared()).ok_or_else(unshared)?;
        let seals = preflight::load_seal(config)?.ok_or_else(no_fleet)?;
        let disk = Disk::new(&config.state);
        let entropy =
            || Entropy::from_system().map_err(|error| StoreError::Io(disk.path().to_owned(), error));
        let servers = fleet.servers.iter().map(|server| {
            // Without an address, its reading fails and says so.
            let addresses = ServerAddresses::look_up(server).unwrap_or_else(|_| server.clone().into());
            Ok(Server::new(addresses, entropy()?))
        });
        Ok(Hand {
            servers: servers.collect::<Result<_, StoreError>>()?,
            source: Source { now: unix_seconds(), entropy: entropy()? },
            asker: asker::<K>(&fleet),
            keep: settings.keep,
            seals,
            disk,
            fleet,
        })
    }

    /// The file that the node keeps.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// Looks whether this node may make the first keys of its fleet: not if there were some before.
    ///
    /// # Errors
    /// If a server has a document, or a member's word that it has one. Where no server can be read, nothing says so.
    pub fn check_first(&mut self) -> Result<(), HandError> {
        let seen = self.look()?;
        if let Err(error) = can_read(&seen) {
            log::warn!("whether {} has keys already is not known: {error}", self.fleet.id);
            return Ok(());
        }
        if seen.node.on_disk().document.is_some() {
            // The store refuses it.
            return Ok(());
        }
        let orders = seen.servers.iter().flatten().flat_map(|found| {
            let said = found.acknowledgements.values().filter_map(|said| said.document.as_ref());
            said.map(|(order, _)| order).chain(found.document.as_ref().map(|document| &document.order))
        });
        let Some(highest) = orders.max() else { return Ok(()) };
        let problem = format!("{} has {} already, {highest}", self.fleet.id, K::WORDS);
        let remedy = format!(
            "start this node's server, which is given them; if the node that wrote them is gone for good, run `{} \
             take-over`; for a new beginning, stop all servers and restart memcached first",
            K::COMMAND
        );
        Err(HandError::Refused(problem, remedy))
    }

    fn look(&mut self) -> Result<Seen<K>, StoreError> {
        self.source.now = unix_seconds();
        self.disk.file().check()?;
        let OnDisk { kept, version } = self.disk.read()?;
        let Fleet { id, node: me, members, start, .. } = &self.fleet;
        let nonce = self.source.entropy.array();
        let mut node = Node::new(id.clone(), me.clone(), members.iter().cloned(), *start, kept, nonce);
        let (names, asker, seals) = (self.asker.names(), &self.asker, &self.seals);
        let read = |server: &mut Server| match server.get(&names) {
            Ok(values) => Ok(Found::of(asker, None, seals, values)),
            Err(error) => Err(format!("{}: {error}", server.endpoint())),
        };
        // Each may take as long as its deadlines, so they are asked at once.
        let servers: Vec<Result<Found<K>, String>> = thread::scope(|scope| {
            let asked: Vec<_> =
                self.servers.iter_mut().map(|server| scope.spawn(move || read(server))).collect();
            asked.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        let is_doubled =
            |found: &Found<K>| found.acknowledgements.get(me).is_some_and(|said| said.is_doubled);
        node.set_doubled(servers.iter().flatten().any(is_doubled));
        let mut behind = None;
        for said in servers.iter().flatten().flat_map(|found| found.clone().said(me)) {
            if let Heard::Keep(_) = said.tell(&mut node) {
                behind = Some(format!("this node has not taken {said} yet, and its server does that"));
            }
        }
        Ok(Seen { node, version, behind, servers })
    }

    /// Looks until `make` has something to keep, and writes that; `make` says instead for what to wait.
    fn change(
        &mut self,
        patience: Duration,
        mut make: impl FnMut(&Seen<K>, &mut Source) -> Result<Result<Kept<Shared<K>>, String>, HandError>,
    ) -> Result<Kept<Shared<K>>, HandError> {
        let (end, mut told) = (Instant::now() + patience, None);
        loop {
            let seen = self.look()?;
            can_read(&seen)?;
            match make(&seen, &mut self.source)? {
                Ok(kept) => {
                    // If the server was faster, its work is looked at first.
                    if let Swap::Done(_) = self.disk.write(seen.version, &kept, OF_A_COMMAND)? {
                        return Ok(kept);
                    }
                }
                Err(why) if Instant::now() >= end => return Err(HandError::Silence(why, AWAY)),
                Err(why) => {
                    if told.as_ref() != Some(&why) {
                        log::info!("{why}; waiting");
                        told = Some(why);
                    }
                    thread::sleep(LOOK);
                }
            }
        }
    }

    /// Rotates once, although it is not due, as soon as all members have acknowledged the present document; with
    /// `is_dropping`, as many keys stay as are kept, however short they have sealed.
    ///
    /// # Errors
    /// If this node does not write, or somebody has not acknowledged within `patience`.
    pub fn rotate(&mut self, is_dropping: bool, patience: Duration) -> Result<K, HandError> {
        let way = if is_dropping { Rotation::ByHandDropping } else { Rotation::ByHand };
        let keep = self.keep;
        let kept = self.change(patience, |seen, source| {
            if let Some(why) = &seen.behind {
                return Ok(Err(why.clone()));
            }
            let remedy = "--drop drops the oldest, and costs their clients a key exchange";
            later::<K, _>(seen.node.rotate(way, keep, &Leave::new(), source), remedy)
        });
        kept.map(keys)
    }

    /// Revokes a key: no node that hears of it opens anything under it. Says first how many requests a second that
    /// refuses, where members count them.
    ///
    /// # Errors
    /// If this node does not write, there is no such key, or, where the current one is to go, somebody has not
    /// acknowledged within `patience`.
    pub fn revoke(&mut self, id: u32, patience: Duration) -> Result<K, HandError> {
        let (keep, mut is_told) = (self.keep, false);
        let kept = self.change(patience, |seen, source| {
            if let Some(why) = &seen.behind {
                return Ok(Err(why.clone()));
            }
            let is_first = !std::mem::replace(&mut is_told, true);
            if let Some(last_minute) = seen.last_minute(id).filter(|_| is_first) {
                log::info!(
                    "{:.1} requests a second come under {id:08x}, and will be refused",
                    a_second(last_minute)
                );
            }
            let remedy = format!("see `{} list`", K::COMMAND);
            later::<K, _>(seen.node.revoke(id, keep, &Leave::new(), source), &remedy)
        });
        kept.map(keys)
    }

    /// Makes this node the writer, from the highest document of all members but those in `without`.
    ///
    /// # Errors
    /// If a member has not answered within `patience`, another one takes over, or nobody has keys. The claim stays: the
    /// same command goes on where this one ended.
    pub fn take_over(&mut self, without: &[String], patience: Duration) -> Result<K, HandError> {
        let gone: BTreeSet<Name> = without.iter().map(|name| self.member(name)).collect::<Result<_, _>>()?;
        let me = self.fleet.node.clone();
        let nonce = self.source.entropy.array();
        self.change(patience, |seen, _| {
            let node = &seen.node;
            if node.is_doubled() {
                let problem = Why::Doubled(me.clone()).to_string();
                return Err(HandError::Refused(problem, KEEP_ONE_HOST.to_owned()));
            }
            let own = node.on_disk().claim.as_ref().filter(|claim| claim.taker == me);
            // One that goes on is kept as it is: members have answered it. But whoever keeps another one of its term
            // never will, and takes only a claim of a higher one.
            let is_contested = |claim| seen.servers.iter().flatten().any(|found| found.contests(claim));
            let own = own.filter(|claim| !is_contested(claim));
            Ok(Ok(own.map_or_else(|| node.claim(nonce), |_| node.on_disk().clone())))
        })?;
        let end = Instant::now() + patience;
        self.tell_claim()?;
        let left = end.saturating_duration_since(Instant::now());
        let kept = self.change(left, |seen, _| match seen.node.take_over(&gone) {
            Ok(kept) => Ok(Ok(kept)),
            Err(error @ Why::Waiting(_)) => Ok(Err(error.to_string())),
            Err(error @ Why::NotClaimed) => Ok(Err(error.to_string())),
            Err(error @ Why::Claimed(..)) => Err(HandError::Refused(
                error.to_string(),
                "let that end, or run this again to take over from it".to_owned(),
            )),
            Err(error @ Why::Doubled(_)) => Err(HandError::Refused(error.to_string(), KEEP_ONE_HOST.to_owned())),
            Err(error @ Why::Nothing) => Err(HandError::Refused(
                error.to_string(),
                format!("run `{} generate` on the node that is to write", K::COMMAND),
            )),
            Err(error @ Why::Strangers(_)) => {
                let remedy = "keep the keys of one node: remove those of the others and restart their servers, or run \
                              this with --without for each of them";
                Err(HandError::Refused(error.to_string(), remedy.to_owned()))
            }
            Err(error @ Why::TooManyRevoked(_)) => {
                let remedy = "give the fleet another id, and new keys".to_owned();
                Err(HandError::Refused(error.to_string(), remedy))
            }
        });
        kept.map(keys)
    }

    /// Puts the node's claim into each server where none as high lies.
    fn tell_claim(&mut self) -> Result<(), HandError> {
        let seen = self.look()?;
        let name = self.asker.name(Topic::Claim);
        for (server, found) in self.servers.iter_mut().zip(&seen.servers) {
            let Ok(found) = found else { continue };
            let Some(claim) = seen.node.put_claim_back(found.claim.as_ref()) else { continue };
            let text = claim.emit(&self.fleet.id);
            let sealed = self.seals.seal(Topic::Claim, self.asker.kind, &text, &mut self.source.entropy);
            let token = found.value(&name).map(|value| value.token);
            match server.put(&name, &sealed, token) {
                // Where somebody was faster, the node's server puts it, or the next run.
                Ok(Put::Stored | Put::Lost) => {}
                Ok(Put::Refused(why)) => {
                    log::warn!("memcached {} does not take {name}: {why}", server.endpoint());
                }
                Err(error) => log::warn!("memcached {}: {error}", server.endpoint()),
            }
        }
        Ok(())
    }

    fn member(&self, name: &str) -> Result<Name, HandError> {
        let known = self.fleet.members.iter().find(|member| member.as_str() == name);
        let stranger = || format!("{name} is not among fleet.members");
        let remedy = || "name a member that is gone for good".to_owned();
        known.cloned().ok_or_else(|| HandError::Refused(stranger(), remedy()))
    }

    /// How servers and members are, and what members say of symmetric keys.
    ///
    /// # Errors
    /// If the disk or no server can be read.
    pub fn status(&mut self) -> Result<(Status, Vec<SymmetricUses>), HandError> {
        let seen = self.look()?;
        can_read(&seen)?;
        let documents = seen.servers.iter().flatten().filter_map(|found| found.document.as_ref());
        let highest = documents.max_by_key(|document| &document.order);
        let newest = seen.newest();
        let place = highest.map(|document| (document.order.clone(), document.digest()));
        let servers = self.fleet.servers.iter().zip(&seen.servers);
        let now = self.source.now;
        // Who has the present document had it first when it was made, as far as anybody says.
        let have = newest.values().filter(|said| said.document.is_some() && said.document == place);
        let present = Present { since: have.filter_map(|said| said.since).min(), place };
        let members = self.fleet.members.iter();
        let members =
            members.map(|name| MemberStatus::of(name, newest.get(name).copied(), &present, now)).collect();
        let dropped = newest.values().flat_map(|said| &said.dropped).copied().collect::<BTreeSet<u32>>();
        let promised = highest.map_or_else(Vec::new, |document| document.promised(self.keep));
        let status = Status::new(
            K::WORDS,
            highest.map(|document| document.order.to_string()),
            servers.map(|(server, found)| ServerStatus::of(server, found)).collect(),
            members,
            &Clients::Promised(promised.into_iter().filter(|id| !dropped.contains(id)).collect()),
        );
        Ok((status, newest.values().flat_map(|said| said.symmetric.clone()).collect()))
    }
}

impl<K> Seen<K> {
    /// What each member said last.
    fn newest(&self) -> BTreeMap<&Name, &Acknowledgement> {
        let mut newest: BTreeMap<&Name, &Acknowledgement> = BTreeMap::new();
        for (name, said) in self.servers.iter().flatten().flat_map(|found| &found.acknowledgements) {
            if newest.get(name).is_none_or(|known| known.time < said.time) {
                newest.insert(name, said);
            }
        }
        newest
    }

    /// Requests under a key in the last minute, to all members that count them; `None` if none does.
    fn last_minute(&self, id: u32) -> Option<u64> {
        let newest = self.newest();
        let counts = newest.values().flat_map(|said| &said.counts);
        sum(counts.filter(|count| count.id == id).map(|count| count.last_minute))
    }
}

/// The keys of what was written, which has some.
fn keys<K>(kept: Kept<Shared<K>>) -> K {
    kept.document.expect("a rotation, a revocation and a take-over make a document").keys.0
}

/// Whether a server could be read.
fn can_read<K>(seen: &Seen<K>) -> Result<(), HandError> {
    let problems: Vec<&str> =
        seen.servers.iter().filter_map(|found| found.as_ref().err().map(String::as_str)).collect();
    if problems.len() < seen.servers.len() {
        return Ok(());
    }
    let what = format!("none of the servers can be read: {}", problems.join(", "));
    Err(HandError::Silence(what, "see that memcached runs there"))
}

/// What is to be kept, or whom to wait for.
fn later<K: FleetKind, T>(made: Result<T, Refusal>, full: &str) -> Result<Result<T, String>, HandError> {
    let command = K::COMMAND;
    let remedy = match &made {
        Ok(_) | Err(Refusal::Waiting(_)) => String::new(),
        Err(Refusal::Nothing) => format!("run `{command} generate` on the node that is to write"),
        Err(Refusal::NotWriter(_)) => format!("run this there, or `{command} take-over` here first"),
        Err(Refusal::Doubled(_)) => KEEP_ONE_HOST.to_owned(),
        Err(Refusal::Claimed(..)) => format!("run `{command} take-over` there again, or here"),
        Err(Refusal::Full | Refusal::Unknown(_)) => full.to_owned(),
        Err(Refusal::TooManyRevoked) => "give the fleet another id, and new keys".to_owned(),
    };
    match made {
        Ok(made) => Ok(Ok(made)),
        Err(refusal @ Refusal::Waiting(_)) => Ok(Err(refusal.to_string())),
        Err(refusal) => Err(HandError::Refused(refusal.to_string(), remedy)),
    }
}
