//! The rules by which a fleet changes its keys and loses no client.
//!
//! A [`Node`] hears what others said, in any order, late, twice or never. It says what it would have on its disk; who
//! drives it writes that, says whether that worked, and then shows others what it is asked to. Nothing that is said
//! takes effect before it is on the disk.
//!
//! What has to hold, whatever the store does: what one node seals with opens on all others that serve, and a key that
//! was revoked opens nowhere where that was heard. [`Rule`] names each rule; without any of them, the model in the
//! tests finds a course of events that loses a client.

mod takeover;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::{BTreeMap, BTreeSet};

use authentick_proto::generations::Role;

use crate::acknowledgement::{Acknowledgement, Answer};
use crate::claim::{Claim, Nonce};
use crate::document::{Digest, Document, REVOKED_COUNT_MAX};
use crate::kept::Kept;
use crate::keys::Keys;
use crate::name::Name;

pub use self::takeover::Why;
pub use self::writer::{Leave, Refusal, Rotation};

/// A rule that keeps clients from being lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A document that is not higher than the one on the disk changes nothing.
    HigherOnly,
    /// A node acknowledges what lies on its disk, and nothing else.
    DiskFirst,
    /// The writer shows a document to others after it lies on its disk.
    DiskBeforeStore,
    /// An acknowledgement counts if it names the very document, by digest.
    EqualDigest,
    /// Who writes waits until every member has acknowledged.
    AllMembers,
    /// A key opens everywhere before it seals anywhere: what seals next is in the document before.
    FutureFirst,
    /// Keys that sealed within as many periods as are kept stay.
    KeepPeriods,
    /// A node without a document takes only one that was sealed for it, after it had started.
    Welcome,
    /// Only the writer welcomes: it alone waits for the newcomer's acknowledgement from then on.
    WriterWelcomes,
    /// A claim that a node has seen is on its disk.
    ClaimKept,
    /// Who keeps a claim takes nothing of a lower term.
    ClaimBars,
    /// Who keeps a claim of somebody else writes nothing.
    ClaimStops,
    /// A claim has a term above all that its taker knows of; a node keeps one only if it is above what it keeps.
    NewTerm,
    /// The taker waits for the answers of all members.
    AllAnswers,
    /// An answer counts if it is one to this very claim.
    SameClaim,
    /// The taker goes on from the highest of all documents.
    HighestOfAll,
    /// A node remembers what was revoked, also if a higher document does not.
    Remembered,
    /// The writer takes up what others remember as revoked.
    Heal,
    /// A document that descends from other first keys than the one on the disk does not replace it, however high.
    OneLineage,
    /// Who finds the store empty or behind puts the highest document back.
    PutBack,
    /// A node whose name another host uses too writes nothing.
    DoubleStops,
    /// An acknowledgement under a name that two hosts use does not count.
    DoubleUnheard,
}

/// What a node without a document starts with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// A document that the writer has sealed for it since it started: none that the store repeats.
    #[default]
    Welcomed,
    /// Any document that the store has. A store that repeats an old one makes it refuse clients.
    Stored,
}

/// How a document came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// From the place where all read.
    Store,
    /// Sealed for this node and its nonce.
    Welcome,
}

/// What hearing something comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard<K> {
    /// Nothing new.
    Nothing,
    /// This is to be on the disk: see [`Node::kept`] and [`Node::not_kept`].
    Keep(Box<Kept<K>>),
    /// It is refused, and an operator should know.
    Refused(Clash),
}

/// What no rule resolves: two documents, or two keys, of one name, or more than can be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Clash {
    /// A document of another fleet.
    #[error("it is of another fleet")]
    Fleet,
    /// Its keys and ours have nothing in common: clients of the one would be lost to the other.
    #[error("its keys descend from other first keys than ours")]
    Lineage,
    /// Another document of the same term, version and writer.
    #[error("it has the same term, version and writer as ours, and is another one")]
    Document,
    /// This identifier stands for another key, which has sealed here.
    #[error("key {0:08x} is another one than ours")]
    Key(u32),
    /// With what is revoked here already, so many identifiers would be.
    #[error("{0} keys would be revoked here in all, and no more than {REVOKED_COUNT_MAX} can be remembered")]
    TooManyRevoked(usize),
}

/// What opens and seals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use<'k, K> {
    /// The key set in force.
    pub keys: &'k K,
    /// Identifiers in it that do not open. The current key can be among them, while the writer has not heard of that:
    /// it seals all the same, as the one after it may not be known everywhere.
    pub revoked: BTreeSet<u32>,
    /// A set whose keys open too, and never seal: the disk has refused it.
    pub beside: Option<&'k K>,
}

/// A node of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node<K> {
    fleet: Name,
    me: Name,
    /// All, this one included.
    members: BTreeSet<Name>,
    start: Start,
    /// What lies on the disk.
    kept: Kept<K>,
    /// Of its document.
    digest: Option<Digest>,
    /// The highest document that the disk refused.
    beside: Option<Box<Document<K>>>,
    /// Drawn at the start of a node that has nothing.
    nonce: Option<Nonce>,
    /// Who has the document that this node has.
    acknowledged: BTreeSet<Name>,
    /// What was answered to its own claim.
    answers: BTreeMap<Name, Answer<K>>,
    /// The highest term that anybody has spoken of, 0 if none.
    term_heard: u64,
    /// What members do not open, though the document of this node says nothing of that: at most [`REVOKED_COUNT_MAX`].
    revoked_heard: BTreeSet<u32>,
    /// Whether another host uses the name of this node.
    is_doubled: bool,
    /// The rule that does not apply.
    #[cfg(test)]
    pub(crate) without: Option<Rule>,
}

impl<K: Keys> Node<K> {
    /// The node `me` among `members` as it starts, with what it finds on its disk; `nonce` is drawn for this start.
    #[must_use]
    pub fn new(
        fleet: Name,
        me: Name,
        members: impl IntoIterator<Item = Name>,
        start: Start,
        kept: Kept<K>,
        nonce: Nonce,
    ) -> Self {
        let mut members: BTreeSet<Name> = members.into_iter().collect();
        members.insert(me.clone());
        Node {
            fleet,
            me,
            members,
            start,
            nonce: kept.document.is_none().then_some(nonce),
            digest: kept.document.as_ref().map(Document::digest),
            kept,
            beside: None,
            acknowledged: BTreeSet::new(),
            answers: BTreeMap::new(),
            term_heard: 0,
            revoked_heard: BTreeSet::new(),
            is_doubled: false,
            #[cfg(test)]
            without: None,
        }
    }

    /// Whether a rule applies: all do, but for the one that the model has taken away.
    #[cfg(test)]
    pub(crate) fn applies(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// Whether a rule applies: all do.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "the model of the tests takes rules from nodes")]
    const fn applies(&self, _: Rule) -> bool {
        true
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.me
    }

    /// Sets whether another host uses the name of this node. While one does, the node writes no document and claims
    /// no term; it takes documents and serves as before.
    pub const fn set_doubled(&mut self, is_doubled: bool) {
        self.is_doubled = is_doubled;
    }

    /// Whether another host uses the name of this node.
    #[must_use]
    pub const fn is_doubled(&self) -> bool {
        self.is_doubled
    }

    /// Whether this node is to write nothing, as another host uses its name.
    fn is_stopped(&self) -> bool {
        self.is_doubled && self.applies(Rule::DoubleStops)
    }

    /// What lies on its disk.
    #[must_use]
    pub const fn on_disk(&self) -> &Kept<K> {
        &self.kept
    }

    /// The other members.
    pub fn others(&self) -> impl Iterator<Item = &Name> {
        self.members.iter().filter(|name| **name != self.me)
    }

    /// Somebody showed a document.
    #[must_use]
    pub fn hear_document(&mut self, document: &Document<K>, origin: Origin) -> Heard<K> {
        if document.fleet != self.fleet {
            return Heard::Refused(Clash::Fleet);
        }
        self.term_heard = self.term_heard.max(document.order.term);
        let barred = self.kept.claim.as_ref().is_some_and(|claim| document.order.term < claim.term);
        if barred && self.applies(Rule::ClaimBars) {
            return Heard::Nothing;
        }
        let Some(ours) = &self.kept.document else {
            let is_fresh = origin == Origin::Welcome || self.start == Start::Stored;
            return if is_fresh || !self.applies(Rule::Welcome) {
                self.take(document)
            } else {
                Heard::Nothing
            };
        };
        if document.lineage != ours.lineage && self.applies(Rule::OneLineage) {
            return Heard::Refused(Clash::Lineage);
        }
        if document.order == ours.order {
            let is_same = Some(document.digest()) == self.digest;
            return if is_same { Heard::Nothing } else { Heard::Refused(Clash::Document) };
        }
        if document.order < ours.order && self.applies(Rule::HigherOnly) {
            return Heard::Nothing;
        }
        // A future key has sealed nothing: who took over without its writer may have made another one.
        let future = ours.key(Role::Future);
        match ours.keys.clashes(&document.keys).into_iter().find(|id| future != Some(*id)) {
            Some(id) => Heard::Refused(Clash::Key(id)),
            None => self.take(document),
        }
    }

    fn take(&self, document: &Document<K>) -> Heard<K> {
        let claim = self.kept.claim.clone().filter(|claim| claim.term > document.order.term);
        match self.with(document.clone(), claim) {
            Ok(kept) => Heard::Keep(Box::new(kept)),
            Err(count) => Heard::Refused(Clash::TooManyRevoked(count)),
        }
    }

    /// What this node keeps with another document: what was revoked stays so. If that is more than can be remembered,
    /// the error says how much.
    fn with(&self, document: Document<K>, claim: Option<Claim>) -> Result<Kept<K>, usize> {
        let known = if self.applies(Rule::Remembered) { self.kept.revoked() } else { BTreeSet::new() };
        let dropped: BTreeSet<u32> = known.difference(&document.revoked).copied().collect();
        let count = document.revoked.len() + dropped.len();
        if count > REVOKED_COUNT_MAX {
            return Err(count);
        }
        Ok(Kept { document: Some(document), claim, dropped })
    }

    /// Somebody claimed a term.
    #[must_use]
    pub fn hear_claim(&mut self, claim: &Claim) -> Heard<K> {
        self.term_heard = self.term_heard.max(claim.term);
        let is_new = claim.term > self.kept.term();
        let is_another = self.kept.claim.as_ref() != Some(claim);
        if !is_new && (self.applies(Rule::NewTerm) || !is_another) {
            return Heard::Nothing;
        }
        Heard::Keep(Box::new(Kept { claim: Some(claim.clone()), ..self.kept.clone() }))
    }

    /// A member said what it has. What a stranger says counts for nothing.
    pub fn hear_acknowledgement(&mut self, said: &Acknowledgement) {
        if !self.members.contains(&said.node) {
            return;
        }
        let named = said.document.iter().map(|(order, _)| order.term);
        let terms = named.chain(said.claim.iter().map(|claim| claim.term));
        self.term_heard = terms.fold(self.term_heard, u64::max);
        if let (Some(ours), true) = (&self.kept.document, self.applies(Rule::Heal)) {
            for id in said.dropped.iter().filter(|id| !ours.revoked.contains(id)) {
                if self.revoked_heard.len() < REVOKED_COUNT_MAX {
                    self.revoked_heard.insert(*id);
                }
            }
        }
        // The other host of that name may not have it.
        if said.is_doubled && self.applies(Rule::DoubleUnheard) {
            self.acknowledged.remove(&said.node);
            return;
        }
        let (Some(ours), Some((order, digest))) = (&self.kept.document, &said.document) else { return };
        let is_ours = if self.applies(Rule::EqualDigest) {
            Some(*digest) == self.digest
        } else {
            order.version <= ours.order.version
        };
        if is_ours {
            self.acknowledged.insert(said.node.clone());
        }
    }

    /// Whether the keys of who says this descend from other first keys than ours.
    #[must_use]
    pub fn is_stranger(&self, said: &Acknowledgement) -> bool {
        let ours = self.kept.document.as_ref().map(|document| document.lineage);
        ours.zip(said.lineage).is_some_and(|(ours, theirs)| ours != theirs)
    }

    /// What it was last asked to keep lies on its disk.
    pub fn kept(&mut self, kept: Kept<K>) {
        let digest = kept.document.as_ref().map(Document::digest);
        if self.digest != digest {
            self.acknowledged.clear();
            self.beside = None;
            self.digest = digest;
        }
        let revoked = kept.revoked();
        self.revoked_heard.retain(|id| !revoked.contains(id));
        if self.kept.claim != kept.claim {
            self.answers.clear();
        }
        if kept.document.is_some() {
            self.nonce = None;
        }
        self.kept = kept;
    }

    /// The disk has refused what it was asked to keep: new keys open all the same, as others may seal with them.
    pub fn not_kept(&mut self, refused: Kept<K>) {
        let is_another = |document: &Document<K>| Some(document.digest()) != self.digest;
        let Some(document) = refused.document.filter(is_another) else { return };
        // What it refused before may be higher: a store repeats old ones.
        let is_higher = self.beside.as_ref().is_none_or(|beside| beside.order < document.order);
        // A node that has nothing does not serve from memory alone: it would not know its keys after a restart.
        if self.kept.document.is_some() && is_higher {
            self.beside = Some(Box::new(document));
        }
    }

    /// What opens and seals here; `None` as long as it has nothing.
    #[must_use]
    pub fn in_force(&self) -> Option<Use<'_, K>> {
        let document = self.kept.document.as_ref()?;
        let mut revoked = self.kept.revoked();
        revoked.extend(self.beside.iter().flat_map(|beside| &beside.revoked));
        Some(Use { keys: &document.keys, revoked, beside: self.beside.as_ref().map(|beside| &beside.keys) })
    }

    /// The digest of what opens beside the document, if anything: its keys can have the identifiers of ours.
    #[must_use]
    pub fn beside(&self) -> Option<Digest> {
        self.beside.as_ref().map(|beside| beside.digest())
    }

    /// What it says of itself, to be shown once its document is in force; whoever drives it adds times and counts.
    #[must_use]
    pub fn acknowledgement(&self) -> Acknowledgement {
        let on_disk = || Some((self.kept.order()?.clone(), self.digest?));
        let document = match &self.beside {
            Some(beside) if !self.applies(Rule::DiskFirst) => Some((beside.order.clone(), beside.digest())),
            Some(_) | None => on_disk(),
        };
        let used = self.in_force();
        let opens = used.iter().flat_map(|used| {
            let beside = used.beside.map_or_else(Vec::new, Keys::identifiers);
            let all = used.keys.identifiers().into_iter().chain(beside).map(|(_, id)| id);
            all.filter(|id| !used.revoked.contains(id)).collect::<BTreeSet<u32>>()
        });
        Acknowledgement {
            fleet: self.fleet.clone(),
            node: self.me.clone(),
            time: 0,
            document,
            lineage: self.kept.document.as_ref().map(|document| document.lineage),
            since: None,
            claim: self.kept.claim.clone(),
            nonce: self.nonce,
            is_doubled: self.is_doubled,
            seals: self.kept.document.as_ref().and_then(|document| document.key(Role::Current)),
            opens: opens.collect(),
            dropped: self.kept.dropped.iter().copied().collect(),
            counts: Vec::new(),
            symmetric: Vec::new(),
        }
    }

    /// What to put where all read, if what is there is lower than what this node has: `None` stands for nothing.
    #[must_use]
    pub fn put_back(&self, found: Option<&Document<K>>) -> Option<&Document<K>> {
        let ours = self.kept.document.as_ref().filter(|_| !self.is_stopped())?;
        let is_behind = found.is_none_or(|found| found.fleet != self.fleet || found.order < ours.order);
        (is_behind && self.applies(Rule::PutBack)).then_some(ours)
    }

    /// The claim to put where all read, if what is there is lower.
    #[must_use]
    pub fn put_claim_back(&self, found: Option<&Claim>) -> Option<&Claim> {
        let ours = self.kept.claim.as_ref().filter(|_| !self.is_stopped())?;
        found.is_none_or(|found| found.term < ours.term).then_some(ours)
    }
}
