//! What the writer may do: rotate, revoke, and welcome a node that has nothing yet.

use std::collections::{BTreeMap, BTreeSet};

use authentick_proto::generations::Role;
use authentick_proto::limits::KEY_COUNT_MAX;
use thiserror::Error;

use super::{Node, Rule};
use crate::acknowledgement::Acknowledgement;
use crate::claim::Nonce;
use crate::document::{Document, Order, REVOKED_COUNT_MAX};
use crate::kept::Kept;
use crate::keys::Keys;
use crate::name::{Name, list};

/// Why the writer does not write.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It has no document.
    #[error("this node has no keys yet")]
    Nothing,
    /// Somebody else writes.
    #[error("{0} writes the keys of this fleet, not this node")]
    NotWriter(Name),
    /// Somebody is taking over.
    #[error("{0} is taking over, with term {1}")]
    Claimed(Name, u64),
    /// Another host uses the name of this node.
    #[error("another host is also named {0}")]
    Doubled(Name),
    /// These members have not acknowledged the document that is in force.
    #[error("not acknowledged by {}", list(.0))]
    Waiting(BTreeSet<Name>),
    /// Keys that sealed within the periods to keep would have to go.
    #[error("a rotation would drop keys that sealed not long ago: there are as many as a key set can have")]
    Full,
    /// There is no such key in the document, or it is revoked already.
    #[error("there is no key {0:08x}")]
    Unknown(u32),
    /// As many are revoked as can be remembered.
    #[error("{REVOKED_COUNT_MAX} keys have been revoked, and no more can be")]
    TooManyRevoked,
}

/// Which rotation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// A period is over.
    Due,
    /// Somebody wants it now.
    ByHand,
    /// The same, and keys go that sealed within the periods to keep.
    ByHandDropping,
}

/// Whom a rotation does not wait for, and who will then refuse clients.
pub type Leave = BTreeSet<Name>;

impl<K: Keys> Node<K> {
    /// Who of the other members has not acknowledged the document that this node has.
    #[must_use]
    pub fn waiting(&self) -> BTreeSet<Name> {
        self.others().filter(|name| !self.acknowledged.contains(*name)).cloned().collect()
    }

    /// The document of this node, if it may write the next one.
    ///
    /// # Errors
    /// If it may not.
    pub fn writes(&self) -> Result<&Document<K>, Refusal> {
        let document = self.kept.document.as_ref().ok_or(Refusal::Nothing)?;
        if document.order.writer != self.me {
            return Err(Refusal::NotWriter(document.order.writer.clone()));
        }
        if self.is_stopped() {
            return Err(Refusal::Doubled(self.me.clone()));
        }
        match &self.kept.claim {
            Some(claim) if self.applies(Rule::ClaimStops) => {
                Err(Refusal::Claimed(claim.taker.clone(), claim.term))
            }
            Some(_) | None => Ok(document),
        }
    }

    /// What this node keeps after a rotation, with keys that sealed within `keep` periods; nobody in `leave` is waited
    /// for.
    ///
    /// # Errors
    /// If it may not rotate, now or at all.
    pub fn rotate(
        &self,
        rotation: Rotation,
        keep: usize,
        leave: &Leave,
        source: &mut K::Source,
    ) -> Result<Kept<K>, Refusal> {
        let document = self.writes()?;
        self.next(self.rotated(document, rotation, keep, leave, source)?)
    }

    /// The document after a rotation, in the place of the one before.
    fn rotated(
        &self,
        document: &Document<K>,
        rotation: Rotation,
        keep: usize,
        leave: &Leave,
        source: &mut K::Source,
    ) -> Result<Document<K>, Refusal> {
        let waiting: BTreeSet<Name> = self.waiting().difference(leave).cloned().collect();
        if !waiting.is_empty() && self.applies(Rule::AllMembers) {
            return Err(Refusal::Waiting(waiting));
        }
        let period = document.period.saturating_add(u64::from(rotation == Rotation::Due));
        let ids = document.keys.identifiers();
        let mut until = document.until.clone();
        // Others seal with it until they have taken the next document, which is in the period after this one.
        until.extend(document.key(Role::Current).map(|id| (id, document.period.saturating_add(1))));
        let is_recent = |id: u32| {
            let last = until.get(&id).copied().unwrap_or_default();
            period.saturating_sub(last) < keep as u64
        };
        let retired = ids.iter().filter(|(role, _)| *role != Role::Future);
        let recent = retired.take_while(|(_, id)| is_recent(*id)).count();
        let count = match rotation {
            Rotation::Due | Rotation::ByHand if self.applies(Rule::KeepPeriods) => recent,
            Rotation::Due | Rotation::ByHand | Rotation::ByHandDropping => recent.min(keep),
        };
        if count > KEY_COUNT_MAX - 2 {
            return Err(Refusal::Full);
        }
        let mut keys = document.keys.rotated(count, source);
        if !self.applies(Rule::FutureFirst) {
            keys = keys.rotated(count, source);
        }
        Ok(Document { period, until: still_there(&until, &keys), keys, ..document.clone() })
    }

    /// What this node keeps after `id` was revoked: no node that hears of it opens anything under that key. The current
    /// key is replaced by the future one, so that has to be acknowledged; the future one by a new one.
    ///
    /// # Errors
    /// If it may not write, there is no such key, too many are revoked, or it is the current one and members have not
    /// acknowledged.
    pub fn revoke(
        &self,
        id: u32,
        keep: usize,
        leave: &Leave,
        source: &mut K::Source,
    ) -> Result<Kept<K>, Refusal> {
        let document = self.writes()?;
        self.next(self.revoked(document, id, keep, leave, source)?)
    }

    /// What this node keeps after it has taken up what other members remember as revoked and its document does not: who
    /// wrote that had not heard of it. `None` if there is nothing to take up.
    ///
    /// # Errors
    /// As [`Node::revoke`].
    pub fn heal(
        &self,
        keep: usize,
        leave: &Leave,
        source: &mut K::Source,
    ) -> Result<Option<Kept<K>>, Refusal> {
        let document = self.writes()?;
        // What it remembers itself comes first: there is room for that in any case.
        let known = self.kept.dropped.iter().chain(&self.revoked_heard).copied();
        let Some(id) = known.into_iter().find(|id| !document.revoked.contains(id)) else { return Ok(None) };
        let mut next = match self.revoked(document, id, keep, leave, source) {
            Err(Refusal::Unknown(_)) => document.clone(),
            revoked => revoked?,
        };
        next.revoked.insert(id);
        self.next(next).map(Some)
    }

    /// The document after `id` was revoked, in the place of the one before.
    fn revoked(
        &self,
        document: &Document<K>,
        id: u32,
        keep: usize,
        leave: &Leave,
        source: &mut K::Source,
    ) -> Result<Document<K>, Refusal> {
        let found = document.keys.identifiers().into_iter().find(|(_, known)| *known == id);
        let (role, _) = found.ok_or(Refusal::Unknown(id))?;
        let mut next = match role {
            Role::Current => self.rotated(document, Rotation::ByHand, keep, leave, source)?,
            Role::Future | Role::Retired => document.clone(),
        };
        next.keys = match role {
            Role::Current | Role::Retired => next.keys.without(id),
            Role::Future => next.keys.with_new_future(source),
        };
        next.until.remove(&id);
        next.revoked.insert(id);
        Ok(next)
    }

    /// The document to be sealed for a node that says that it has nothing.
    #[must_use]
    pub fn welcome(&self, said: &Acknowledgement) -> Option<(Nonce, &Document<K>)> {
        let nonce = said.nonce.filter(|_| said.document.is_none())?;
        let is_member = self.members.contains(&said.node) && said.node != self.me;
        let document = match self.applies(Rule::WriterWelcomes) {
            true => self.writes().ok(),
            false => self.kept.document.as_ref(),
        };
        document.filter(|_| is_member).map(|document| (nonce, document))
    }

    /// What this node keeps when it goes on writing in its own term.
    fn next(&self, document: Document<K>) -> Result<Kept<K>, Refusal> {
        self.written(document.order.term, document).map_err(|_| Refusal::TooManyRevoked)
    }

    /// What this node keeps when it writes `document`, which still has the place of the one before it, in `term`. If
    /// more would be revoked than can be remembered, the error says how much.
    pub(super) fn written(&self, term: u64, mut document: Document<K>) -> Result<Kept<K>, usize> {
        let version = document.order.version.saturating_add(1);
        document.order = Order { term, version, writer: self.me.clone() };
        self.with(document, None)
    }
}

/// What is said of keys that are still there.
fn still_there<K: Keys>(until: &BTreeMap<u32, u64>, keys: &K) -> BTreeMap<u32, u64> {
    let ids: BTreeSet<u32> = keys.identifiers().into_iter().map(|(_, id)| id).collect();
    until.iter().filter(|(id, _)| ids.contains(id)).map(|(id, period)| (*id, *period)).collect()
}
