//! Order in which connections of a full server give way to newcomers.
//!
//! First those that have sent no octet, then those whose ClientHello is incomplete, then those that have had a response
//! of ours and were silent for a second, then all others. Within a class the newest connection of the network (an IPv4
//! /24 or IPv6 /48) that holds most places gives way. Where each network of the class holds a single place, the wider
//! networks (/16 and /40) are compared: an attacker with a /32 of IPv6 still competes with its own connections.
//!
//! An honest client sends its ClientHello with the last packet of the TCP handshake, so it is in the last class
//! at once, however long its path is.
//!
//! Instants are arguments. Each change costs a logarithm of the number of connections, at any attack rate.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Silence after which a connection that has had a response of ours gives way before others.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Progress of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// No octet has come.
    Silent,
    /// Octets have come, and no whole ClientHello.
    Greeting,
    /// We have written something: our flight of the handshake, or an alert.
    Answered,
}

/// A connection: its serial number, by which newer ones are greater, and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id {
    pub(super) serial: u64,
    pub(super) key: usize,
}

/// The class of a connection, the one that gives way first in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Silent,
    Greeting,
    Stalled,
    Active,
}

const CLASSES: [Class; 4] = [Class::Silent, Class::Greeting, Class::Stalled, Class::Active];

/// All connections of a worker, in the order in which they give way.
#[derive(Debug, Default)]
pub(super) struct EvictionOrder {
    held: HashMap<Id, Held>,
    networks: Ranking,
    wide_networks: Ranking,
    /// When active connections become stalled unless they send something.
    stalls: BTreeSet<(Instant, Id)>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    source: IpAddr,
    class: Class,
    /// Its entry in `stalls`, if it is active.
    stalls_at: Option<Instant>,
}

impl EvictionOrder {
    /// Adds a connection that has sent nothing.
    pub(super) fn add(&mut self, id: Id, source: IpAddr) {
        self.held.insert(id, Held { source, class: Class::Silent, stalls_at: None });
        self.rank(id, source, None, Some(Class::Silent));
    }

    /// Notes that a client sent octets now, or that we did, and where it is by that.
    pub(super) fn advance(&mut self, id: Id, stage: Stage, now: Instant) {
        let class = match stage {
            Stage::Silent => Class::Silent,
            Stage::Greeting => Class::Greeting,
            Stage::Answered => Class::Active,
        };
        let stalls_at = (class == Class::Active).then(|| now + SILENCE_MAX);
        self.change(id, class, stalls_at);
    }

    /// Forgets a connection that has ended.
    pub(super) fn remove(&mut self, id: Id) {
        let Some(held) = self.held.remove(&id) else { return };
        if let Some(instant) = held.stalls_at {
            self.stalls.remove(&(instant, id));
        }
        self.rank(id, held.source, Some(held.class), None);
    }

    /// The connection that gives way next; `None` if there is none.
    pub(super) fn next(&mut self, now: Instant) -> Option<Id> {
        while let Some(&(instant, id)) = self.stalls.first()
            && instant <= now
        {
            self.change(id, Class::Stalled, None);
        }
        CLASSES.into_iter().find_map(|class| {
            let (count, id) = self.networks.last(class)?;
            if count > 1 { Some(id) } else { self.wide_networks.last(class).map(|(_, id)| id) }
        })
    }

    fn change(&mut self, id: Id, class: Class, stalls_at: Option<Instant>) {
        let Some(held) = self.held.get_mut(&id) else { return };
        let (source, before) = (held.source, held.class);
        if let Some(instant) = std::mem::replace(&mut held.stalls_at, stalls_at) {
            self.stalls.remove(&(instant, id));
        }
        held.class = class;
        self.stalls.extend(stalls_at.map(|instant| (instant, id)));
        if class != before {
            self.rank(id, source, Some(before), Some(class));
        }
    }

    fn rank(&mut self, id: Id, source: IpAddr, from: Option<Class>, to: Option<Class>) {
        self.networks.change(masked(source, 24, 48), id, from, to);
        self.wide_networks.change(masked(source, 16, 40), id, from, to);
    }
}

/// Networks with the connections that each holds, ranked by their number.
#[derive(Debug, Default)]
struct Ranking {
    networks: HashMap<IpAddr, Places>,
    /// By class, for each network that has connections in it: how many places the network holds, and its newest
    /// connection of this class.
    ranks: [BTreeSet<(usize, Id)>; CLASSES.len()],
}

/// Connections of a network, by class.
#[derive(Debug, Default)]
struct Places([BTreeSet<Id>; CLASSES.len()]);

impl Places {
    /// For each class that the network has connections in: how many places it holds in all, and the newest.
    fn ranks(&self) -> [Option<(usize, Id)>; CLASSES.len()] {
        let count = self.0.iter().map(BTreeSet::len).sum();
        self.0.each_ref().map(|members| members.last().map(|&id| (count, id)))
    }
}

impl Ranking {
    /// Moves a connection between classes, into the first one, or out.
    fn change(&mut self, address: IpAddr, id: Id, from: Option<Class>, to: Option<Class>) {
        let network = self.networks.entry(address).or_default();
        let before = network.ranks();
        if let Some(class) = from {
            network.0[class as usize].remove(&id);
        }
        if let Some(class) = to {
            network.0[class as usize].insert(id);
        }
        let after = network.ranks();
        for ((ranks, before), after) in self.ranks.iter_mut().zip(before).zip(after) {
            if before != after {
                before.iter().for_each(|rank| _ = ranks.remove(rank));
                ranks.extend(after);
            }
        }
        if after.iter().all(Option::is_none) {
            self.networks.remove(&address);
        }
    }

    /// The most places that a network with connections of this class holds, and its newest one.
    fn last(&self, class: Class) -> Option<(usize, Id)> {
        self.ranks[class as usize].last().copied()
    }
}

/// The network of an address, by the length of its prefix in IPv4 and in IPv6.
fn masked(address: IpAddr, length_v4: u32, length_v6: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & u32::MAX << (32 - length_v4)).into()),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & u128::MAX << (128 - length_v6)).into()),
    }
}

#[cfg(all(test, feature = "client"))]
mod tests;
