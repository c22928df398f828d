//! What the world knows and no participant does: which key has sealed when, and what therefore has to open.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::rc::Rc;

use authentick_fleet::{Name, Order};

use super::keys::KeyName;

/// Events that are told if a run fails.
const EVENT_COUNT: usize = 150;

/// What happened last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Rc<RefCell<VecDeque<String>>>);

impl Log {
    pub(crate) fn say(&self, now: u64, what: fmt::Arguments<'_>) {
        let mut events = self.0.borrow_mut();
        if events.len() == EVENT_COUNT {
            events.pop_front();
        }
        events.push_back(format!("{now:5} {what}"));
    }

    /// The last events, one a line.
    pub(crate) fn told(&self) -> String {
        self.0.borrow().iter().map(|event| format!("{event}\n")).collect()
    }
}

/// What a run is like.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) members: Vec<Name>,
    /// Seconds from one rotation to the next.
    pub(crate) period: u64,
    /// Periods for which keys open after they have sealed.
    pub(crate) keep: usize,
    /// Seconds after which a rotation does not wait for a member any more.
    pub(crate) patience: Option<u64>,
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) answers: u64,
    pub(crate) key_exchanges: u64,
    /// NTSN for a cookie whose key was revoked.
    pub(crate) revoked: u64,
    /// NTSN for a cookie that was older than is promised.
    pub(crate) expired: u64,
    /// NTSN or silence for a cookie of a writer that a take-over was told is gone, or under a key that only a lost disk
    /// had.
    pub(crate) deposed: u64,
    /// NTSN of a member that patience has left behind, or for whom a take-over did not wait.
    pub(crate) left_behind: u64,
    /// Silence of a member that was left behind: the key is ahead of its own.
    pub(crate) ahead: u64,
    /// Silence of a node that has no keys yet.
    pub(crate) without_keys: u64,
    pub(crate) due: u64,
    pub(crate) by_hand: u64,
    pub(crate) take_overs: u64,
    pub(crate) revocations: u64,
    pub(crate) seal_rotations: u64,
    pub(crate) crashes: u64,
    pub(crate) lost_disks: u64,
    /// Keys that had sealed, and that only a lost disk had, or a host that was said to be gone.
    pub(crate) lost_keys: u64,
    pub(crate) clashes: u64,
}

impl Counts {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Counts {
            requests: self.requests + other.requests,
            answers: self.answers + other.answers,
            key_exchanges: self.key_exchanges + other.key_exchanges,
            revoked: self.revoked + other.revoked,
            expired: self.expired + other.expired,
            deposed: self.deposed + other.deposed,
            left_behind: self.left_behind + other.left_behind,
            ahead: self.ahead + other.ahead,
            without_keys: self.without_keys + other.without_keys,
            due: self.due + other.due,
            by_hand: self.by_hand + other.by_hand,
            take_overs: self.take_overs + other.take_overs,
            revocations: self.revocations + other.revocations,
            seal_rotations: self.seal_rotations + other.seal_rotations,
            crashes: self.crashes + other.crashes,
            lost_disks: self.lost_disks + other.lost_disks,
            lost_keys: self.lost_keys + other.lost_keys,
            clashes: self.clashes + other.clashes,
        }
    }
}

/// What is so.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// In which period each key has sealed last, anywhere but at those that were left behind.
    pub(crate) sealed: BTreeMap<KeyName, u64>,
    /// When each key first sealed, at those that were left behind too.
    pub(crate) since: BTreeMap<KeyName, u64>,
    /// Identifiers that somebody revoked, or tried to.
    pub(crate) revoked: BTreeSet<u32>,
    /// Who was left behind, until it has this document or a later one: the latest that did not wait for it.
    pub(crate) left_behind: BTreeMap<usize, Order>,
    /// Documents of writers that were left behind. Whoever has one, and has not heard of the later term, is left behind
    /// with its writer.
    pub(crate) astray: BTreeSet<Order>,
    /// An operator has just said that somebody is gone.
    pub(crate) says_gone: bool,
    /// Who made which document when, of those that were due.
    pub(crate) rotations: Vec<(u64, usize, Order)>,
    pub(crate) counts: Counts,
}

impl Truth {
    /// Notes that a document did not wait for somebody. A term that its writer told to nobody yet still comes.
    pub(crate) fn leaves_behind(&mut self, index: usize, order: &Order) {
        let last = self.left_behind.entry(index).or_insert_with(|| order.clone());
        *last = order.max(last).clone();
    }

    /// Notes that a writer has made a document.
    pub(crate) fn writes(&mut self, index: usize, order: Option<&Order>) {
        let is_left = |order: &&Order| self.left_behind.get(&index).is_some_and(|later| later > *order);
        if let Some(order) = order.filter(is_left) {
            self.astray.insert(order.clone());
        }
    }
}

/// Where and when something is done.
pub(crate) struct Scene<'w> {
    /// Seconds since the run began.
    pub(crate) now: u64,
    pub(crate) settings: &'w Settings,
    pub(crate) truth: &'w mut Truth,
    pub(crate) log: &'w Log,
}

impl Scene<'_> {
    pub(crate) fn say(&self, what: fmt::Arguments<'_>) {
        self.log.say(self.now, what);
    }
}
