//! How another node becomes the writer: it claims a term, hears what all members have, and goes on from the highest.

use std::collections::BTreeSet;

use authentick_proto::generations::Role;
use thiserror::Error;

use super::{Node, Rule};
use crate::acknowledgement::Answer;
use crate::claim::{Claim, Nonce};
use crate::document::REVOKED_COUNT_MAX;
use crate::kept::Kept;
use crate::keys::Keys;
use crate::name::{Name, list};

/// Why a node does not take over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Why {
    /// It has claimed nothing.
    #[error("this node has not claimed a term")]
    NotClaimed,
    /// Somebody else has claimed a higher term.
    #[error("{0} is taking over, with term {1}")]
    Claimed(Name, u64),
    /// Another host uses the name of this node.
    #[error("another host is also named {0}")]
    Doubled(Name),
    /// These members have not answered.
    #[error("no answer from {}", list(.0))]
    Waiting(BTreeSet<Name>),
    /// The keys of these members descend from other first keys than those of this node, or than each other's.
    #[error("two fleets of one name: the keys of {} descend from others", list(.0))]
    Strangers(BTreeSet<Name>),
    /// Nobody has a document.
    #[error("no member has keys")]
    Nothing,
    /// With what all remember as revoked, so many identifiers would be.
    #[error("{0} keys would be revoked in all, and no more than {REVOKED_COUNT_MAX} can be remembered")]
    TooManyRevoked(usize),
}

impl<K: Keys> Node<K> {
    /// What this node keeps when it begins to take over: a claim above every term that it has heard of.
    #[must_use]
    pub fn claim(&self, nonce: Nonce) -> Kept<K> {
        let known = self.kept.term().max(self.term_heard);
        let term = if self.applies(Rule::NewTerm) { known.saturating_add(1) } else { known };
        Kept { claim: Some(Claim { term, taker: self.me.clone(), nonce }), ..self.kept.clone() }
    }

    /// What this node answers to the claim that it keeps, if that is somebody else's.
    #[must_use]
    pub fn answer(&self) -> Option<Answer<K>> {
        let claim = self.kept.claim.as_ref().filter(|claim| claim.taker != self.me)?;
        Some(Answer {
            node: self.me.clone(),
            claim: claim.clone(),
            document: self.kept.document.clone(),
            dropped: self.kept.dropped.iter().copied().collect(),
        })
    }

    /// A member answered. What a stranger answers counts for nothing.
    pub fn hear_answer(&mut self, answer: &Answer<K>) {
        if !self.members.contains(&answer.node) {
            return;
        }
        self.term_heard = self.term_heard.max(answer.claim.term);
        let Some(ours) = self.kept.claim.as_ref().filter(|claim| claim.taker == self.me) else { return };
        let is_ours = match self.applies(Rule::SameClaim) {
            true => answer.claim == *ours,
            false => answer.claim.taker == self.me,
        };
        let is_of_us = answer.document.as_ref().is_none_or(|document| document.fleet == self.fleet);
        if is_ours && is_of_us {
            self.answers.insert(answer.node.clone(), answer.clone());
        }
    }

    /// What this node keeps when it has taken over; nobody in `without` is waited for. What these have counts all the
    /// same, if their keys descend from the same first ones as ours.
    ///
    /// # Errors
    /// If it cannot yet, or not at all.
    pub fn take_over(&self, without: &BTreeSet<Name>) -> Result<Kept<K>, Why> {
        let claim = self.kept.claim.as_ref().ok_or(Why::NotClaimed)?;
        if claim.taker != self.me {
            return Err(Why::Claimed(claim.taker.clone(), claim.term));
        }
        if self.is_stopped() {
            return Err(Why::Doubled(self.me.clone()));
        }
        let is_awaited = |name: &Name| !self.answers.contains_key(name) && !without.contains(name);
        let waiting: BTreeSet<Name> = self.others().filter(|name| is_awaited(name)).cloned().collect();
        if !waiting.is_empty() && self.applies(Rule::AllAnswers) {
            return Err(Why::Waiting(waiting));
        }
        let ours = self.kept.document.as_ref();
        let answers = self.of_one_lineage(without)?;
        let answered = answers.iter().filter_map(|answer| answer.document.as_ref());
        let base = match self.applies(Rule::HighestOfAll) {
            true => answered.clone().chain(ours).max_by_key(|document| &document.order),
            false => ours.or_else(|| answered.clone().next()),
        };
        let base = base.ok_or(Why::Nothing)?;
        let mut revoked = self.kept.revoked();
        revoked.extend(answered.flat_map(|document| &document.revoked));
        revoked.extend(answers.iter().flat_map(|answer| &answer.dropped));
        // The current key stays until all have this document, and the future one until it is known who has it: see
        // `heal`.
        let in_use = [Role::Current, Role::Future].map(|role| base.key(role));
        revoked.retain(|id| !in_use.contains(&Some(*id)));
        let mut next = base.clone();
        for (_, id) in base.keys.identifiers().iter().filter(|(role, _)| *role == Role::Retired) {
            if revoked.contains(id) {
                next.keys = next.keys.without(*id);
                next.until.remove(id);
            }
        }
        next.revoked = revoked;
        self.written(claim.term, next).map_err(Why::TooManyRevoked)
    }

    /// Answers of members that have no document, or one of the same lineage as this node, or else as the first member
    /// that is not left out.
    fn of_one_lineage(&self, without: &BTreeSet<Name>) -> Result<Vec<&Answer<K>>, Why> {
        let all: Vec<&Answer<K>> = self.answers.values().collect();
        if !self.applies(Rule::OneLineage) {
            return Ok(all);
        }
        let lineage = |answer: &Answer<K>| answer.document.as_ref().map(|document| document.lineage);
        let is_gone = |answer: &Answer<K>| without.contains(&answer.node);
        let ours = self.kept.document.as_ref().map(|document| document.lineage);
        let of_others =
            || all.iter().filter(|answer| !is_gone(answer)).chain(&all).find_map(|answer| lineage(answer));
        let one = ours.or_else(of_others);
        let is_strange = |answer: &Answer<K>| lineage(answer).is_some_and(|other| Some(other) != one);
        let strangers = all.iter().filter(|answer| is_strange(answer) && !is_gone(answer));
        let strangers: BTreeSet<Name> = strangers.map(|answer| answer.node.clone()).collect();
        if !strangers.is_empty() {
            return Err(Why::Strangers(strangers));
        }
        Ok(all.into_iter().filter(|answer| !is_strange(answer)).collect())
    }
}
