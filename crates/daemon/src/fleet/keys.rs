//! Keys of a kind as the rules of a fleet see them.

use std::collections::BTreeSet;

use authentick_crypto::Entropy;
use authentick_fleet::Keys;
use authentick_proto::antp::state_key::{StateKey, StateKeys};
use authentick_proto::generations::Role;
use authentick_proto::keyset::{CookieKey, KeySet};
use zeroize::Zeroizing;

use crate::keystore::KeyKind;
use crate::keystore::lines;

/// A kind of keys that a fleet can share.
pub trait FleetKind: KeyKind + Clone {
    /// Identifiers under which `other` has another key than this set.
    fn clashes(&self, other: &Self) -> Vec<u32>;
    /// The set after one rotation, with at most `keep` retired keys, whose future key does not follow from those that
    /// are there: all members are given it.
    #[must_use]
    fn drawn_once(&self, now: u64, keep: usize, entropy: &mut Entropy) -> Self;
    /// The set as it is used: the keys of `beside` open too, and those in `closed` do not.
    #[must_use]
    fn opening(&self, beside: Option<&Self>, closed: &BTreeSet<u32>) -> Self;
}

impl FleetKind for KeySet {
    fn clashes(&self, other: &Self) -> Vec<u32> {
        let of_other = |id| other.keys().map(|(_, key)| key).find(|key| key.id() == id);
        let is_another = |key: &CookieKey| {
            of_other(key.id()).is_some_and(|other| other.key().expose() != key.key().expose())
        };
        self.keys().map(|(_, key)| key).filter(|key| is_another(key)).map(CookieKey::id).collect()
    }

    fn drawn_once(&self, now: u64, keep: usize, entropy: &mut Entropy) -> Self {
        self.rotate(now, keep, entropy)
    }

    fn opening(&self, beside: Option<&Self>, closed: &BTreeSet<u32>) -> Self {
        KeySet::opening(self, beside, closed.iter().copied())
    }
}

impl FleetKind for StateKeys {
    fn clashes(&self, other: &Self) -> Vec<u32> {
        let is_another =
            |key: &StateKey| other.find(key.id()).is_some_and(|other| other.expose() != key.expose());
        self.keys().map(|(_, key)| key).filter(|key| is_another(key)).map(StateKey::id).collect()
    }

    fn drawn_once(&self, now: u64, keep: usize, entropy: &mut Entropy) -> Self {
        self.rotate(now, keep, Some(entropy))
    }

    fn opening(&self, beside: Option<&Self>, closed: &BTreeSet<u32>) -> Self {
        StateKeys::opening(self, beside, closed.iter().copied())
    }
}

/// A set of keys in a document.
#[derive(Clone, Debug)]
pub(crate) struct Shared<K>(pub K);

/// What new keys are made of.
#[derive(Debug)]
pub(crate) struct Source {
    /// The time, in Unix seconds.
    pub now: u64,
    /// What they are drawn from.
    pub entropy: Entropy,
}

impl<K: FleetKind> Keys for Shared<K> {
    type Source = Source;

    fn identifiers(&self) -> Vec<(Role, u32)> {
        self.0.all().into_iter().map(|(role, id, _)| (role, id)).collect()
    }

    fn clashes(&self, other: &Self) -> Vec<u32> {
        self.0.clashes(&other.0)
    }

    fn rotated(&self, keep: usize, source: &mut Source) -> Self {
        Shared(self.0.drawn_once(source.now, keep, &mut source.entropy))
    }

    fn with_new_future(&self, source: &mut Source) -> Self {
        Shared(self.0.with_new_future(source.now, &mut source.entropy))
    }

    fn without(&self, id: u32) -> Self {
        Shared(self.0.without(id).unwrap_or_else(|_| self.0.clone()))
    }

    fn emit(&self) -> Zeroizing<String> {
        self.0.emit()
    }

    fn parse(text: &str) -> Option<Self> {
        lines::parse("", text.as_bytes()).ok().map(Shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_number_that_differ_are_found_whatever_their_roles() {
        let mut entropy = Entropy::from_seed(1);
        let set = KeySet::generate(0, &mut entropy);
        let next = set.rotate(1, 7, &mut entropy);
        let another = set.rotate(1, 7, &mut entropy);
        let (Shared(made), id) = (Shared(next.clone()), next.all()[1].1);
        assert_eq!((set.clashes(&next), made.clashes(&another)), (vec![], vec![id]));
        let (other, third) = (next.rotate(2, 7, &mut entropy), another.rotate(2, 7, &mut entropy));
        assert_eq!(other.clashes(&third), [id, id + 1]);
    }

    #[test]
    fn state_keys_that_members_are_given_do_not_follow_from_a_stolen_set() {
        let mut source = Source { now: 1, entropy: Entropy::from_seed(1) };
        let set = Shared(StateKeys::generate(0, &mut source.entropy));
        let (given, thief) = (set.rotated(7, &mut source), set.0.rotate(1, 7, None));
        let future = given.0.all()[1].1;
        assert_eq!(given.0.clashes(&thief), [future]);
        assert!(set.0.clashes(&given.0).is_empty());
        let (given, thief) = (given.rotated(7, &mut source), thief.rotate(2, 7, None));
        assert_eq!(given.0.clashes(&thief), [future, future + 1]);
        let again = given.with_new_future(&mut source);
        assert_eq!(again.0.all()[1].1, future + 2);
        let read = <Shared<StateKeys> as Keys>::parse(&again.emit()).expect("it is a set");
        assert_eq!((&*read.emit(), read.identifiers()), (&*again.emit(), again.identifiers()));
        assert!(<Shared<KeySet> as Keys>::parse(&again.emit()).is_none(), "the other kind");
        let retired = given.0.all()[2].1;
        let opening = FleetKind::opening(&set.0, Some(&given.0), &BTreeSet::from([retired]));
        assert!(opening.find(future).is_some() && opening.find(retired).is_none());
    }

    #[test]
    fn text_is_read_back_as_the_same_set() {
        let mut entropy = Entropy::from_seed(1);
        let set = Shared(KeySet::generate(0, &mut entropy).rotate(1, 7, &mut entropy));
        let again = <Shared<KeySet> as Keys>::parse(&set.emit()).expect("it is a set");
        assert_eq!((&*again.emit(), again.identifiers()), (&*set.emit(), set.identifiers()));
        assert!(<Shared<KeySet> as Keys>::parse("authentick-cookie-keys 1\n").is_none());
    }
}
