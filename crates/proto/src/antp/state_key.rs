//! The keys under which an ANTP server seals its state. How they take turns is in [`crate::generations`].
//!
//! Unlike cookie keys they follow from each other, forward only: each rotation hashes the seed of the newest key into
//! the next, so that hosts that share a set rotate alike, and a leak shows no key that is already gone. It shows all
//! that are to come, until fresh randomness is mixed in.

use std::fmt;

use authentick_crypto::gcm::{GCM_KEY_SIZE, GcmKey};
use authentick_crypto::kdf::{hkdf_sha256, hkdf_sha256_salted};
use authentick_crypto::{Entropy, wipe};

use crate::generations::{Generations, KeySetError, Numbered, Role, Succession};
use crate::mutant::{Place, is_out};

/// Octets of a seed.
pub const SEED_SIZE: usize = 32;

const RATCHET: &[u8] = b"ANTP1 ratchet\0";
const STATE: &[u8] = b"ANTP1 state\0";

/// Octets that are authenticated with whatever a key seals.
pub(super) const ASSOCIATED_SIZE: usize = 9 + size_of::<u32>();

/// What a key seals. The labels keep one from ever opening as the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Between negotiation and key exchange.
    C1,
    /// After the key exchange.
    C2,
}

impl Kind {
    /// The first octet of its text.
    pub(super) const fn octet(self) -> u8 {
        match self {
            Kind::C1 => 1,
            Kind::C2 => 2,
        }
    }

    /// A label, and the identifier of the key.
    fn associated(self, id: u32) -> [u8; ASSOCIATED_SIZE] {
        let mut out = [0; ASSOCIATED_SIZE];
        let (label, key_id) = out.split_at_mut(9);
        label.copy_from_slice(match self {
            _ if is_out(Place::StateLabels) => b"ANTP1 C1\0",
            Kind::C1 => b"ANTP1 C1\0",
            Kind::C2 => b"ANTP1 C2\0",
        });
        key_id.copy_from_slice(&id.to_be_bytes());
        out
    }
}

/// One state key.
pub struct StateKey {
    id: u32,
    created: u64,
    octets: [u8; GCM_KEY_SIZE],
    key: GcmKey,
    /// By [`Kind`], in its order.
    associated: [[u8; ASSOCIATED_SIZE]; 2],
}

impl StateKey {
    /// A key with known octets: from a file or a vector. `created` is in Unix seconds.
    #[must_use]
    pub fn new(id: u32, created: u64, octets: &[u8; GCM_KEY_SIZE]) -> Self {
        let associated = [Kind::C1, Kind::C2].map(|kind| kind.associated(id));
        StateKey { id, created, octets: *octets, key: GcmKey::new(octets), associated }
    }

    /// The key that follows from a seed.
    fn of(id: u32, created: u64, seed: &Seed) -> Self {
        StateKey::new(id, created, &hkdf_sha256(&seed.0, &[STATE]))
    }

    /// The identifier that stands in the clear in C1 and C2.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// When the key was made, in Unix seconds.
    #[must_use]
    pub const fn created(&self) -> u64 {
        self.created
    }

    /// The key itself.
    #[must_use]
    pub const fn key(&self) -> &GcmKey {
        &self.key
    }

    /// What is authenticated with a text of this kind.
    pub(super) const fn associated(&self, kind: Kind) -> &[u8; ASSOCIATED_SIZE] {
        &self.associated[kind as usize]
    }

    /// The secret octets.
    #[must_use]
    pub const fn expose(&self) -> &[u8; GCM_KEY_SIZE] {
        &self.octets
    }
}

impl Drop for StateKey {
    fn drop(&mut self) {
        wipe(&mut self.octets);
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateKey({:08x})", self.id)
    }
}

/// What the future key follows from, and every key after it.
#[derive(Clone)]
pub struct Seed([u8; SEED_SIZE]);

impl Seed {
    /// A seed with known octets.
    #[must_use]
    pub const fn new(octets: [u8; SEED_SIZE]) -> Self {
        Seed(octets)
    }

    /// The secret octets.
    #[must_use]
    pub const fn expose(&self) -> &[u8; SEED_SIZE] {
        &self.0
    }

    //= antp#computations-4
    fn next(&self, fresh: Option<&mut Entropy>) -> Self {
        Seed(match fresh {
            None => hkdf_sha256(&self.0, &[RATCHET]),
            Some(entropy) => hkdf_sha256_salted(&entropy.array::<SEED_SIZE>(), &self.0, &[RATCHET]),
        })
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed")
    }
}

impl Numbered for StateKey {
    fn id(&self) -> u32 {
        self.id
    }
}

/// The generations of state keys at one moment. Immutable: a rotation makes a new set that shares the keys.
#[derive(Clone, Debug)]
pub struct StateKeys {
    /// The seed of the future key. Older keys are kept without theirs.
    seed: Seed,
    keys: Generations<StateKey>,
    /// When randomness was last mixed in, in Unix seconds.
    refreshed: u64,
}

impl StateKeys {
    /// A first set with a current and a future key; `now` in Unix seconds.
    #[must_use]
    pub fn generate(now: u64, entropy: &mut Entropy) -> Self {
        let id = u32::from_be_bytes(entropy.array());
        let first = Seed(entropy.array());
        let seed = first.next(None);
        let future = StateKey::of(id.wrapping_add(1), now, &seed);
        StateKeys {
            keys: Generations::first(StateKey::of(id, now, &first), future, now),
            seed,
            refreshed: now,
        }
    }

    /// A set of known keys: `seed` is that of the future key, which follows `current` in number and is as old as
    /// `rotated`; `retired` has the youngest first; `refreshed` is when randomness was last mixed in.
    ///
    /// # Errors
    /// If two keys have one identifier, or there are too many.
    pub fn from_keys(
        seed: Seed,
        current: StateKey,
        retired: impl IntoIterator<Item = StateKey>,
        rotated: u64,
        refreshed: u64,
    ) -> Result<Self, KeySetError> {
        let future = StateKey::of(current.id.wrapping_add(1), rotated, &seed);
        Ok(StateKeys { keys: Generations::from_keys(future, current, retired, rotated)?, seed, refreshed })
    }

    /// The set after one rotation: the future key seals, the current one is retired, at most `keep` retired ones stay.
    /// With `fresh`, randomness goes into the next key, and hosts that share the set must be given it.
    //= antp#computations-4
    #[must_use]
    pub fn rotate(&self, now: u64, keep: usize, fresh: Option<&mut Entropy>) -> Self {
        let refreshed = if fresh.is_some() { now } else { self.refreshed };
        let seed = self.seed.next(fresh);
        let next = StateKey::of(self.keys.next_id(), now, &seed);
        StateKeys { keys: self.keys.advance(next, now, keep), seed, refreshed }
    }

    /// The set with another future key, into which randomness goes, and whose identifier is the one after that of the
    /// key that it replaces.
    #[must_use]
    pub fn with_new_future(&self, now: u64, entropy: &mut Entropy) -> Self {
        let seed = self.seed.next(Some(entropy));
        let next = StateKey::of(self.keys.next_id(), now, &seed);
        StateKeys { keys: self.keys.with_future(next), seed, refreshed: now }
    }

    /// The set with this identifier for its future key, for one that was read where it is not the next number.
    ///
    /// # Errors
    /// If another key has it.
    pub fn with_future_id(&self, id: u32) -> Result<Self, KeySetError> {
        if self.keys().any(|(role, key)| role != Role::Future && key.id() == id) {
            return Err(KeySetError::DuplicateId(id));
        }
        let future = StateKey::of(id, self.rotated(), &self.seed);
        Ok(StateKeys { keys: self.keys.with_future(future), ..self.clone() })
    }

    /// The set without the retired key `id`: what it sealed no longer opens.
    ///
    /// # Errors
    /// If there is no such key, or it is not retired.
    pub fn without(&self, id: u32) -> Result<Self, KeySetError> {
        Ok(StateKeys { keys: self.keys.without(id)?, ..self.clone() })
    }

    /// The set as it is used: the keys of `beside` open too, and those in `closed` do not. See
    /// [`Generations::opening`].
    #[must_use]
    pub fn opening(&self, beside: Option<&Self>, closed: impl IntoIterator<Item = u32>) -> Self {
        StateKeys { keys: self.keys.opening(beside.map(|beside| &beside.keys), closed), ..self.clone() }
    }

    /// Whether `id` is that of one of the next keys after these: who makes them may have it already.
    #[must_use]
    pub fn is_ahead(&self, id: u32) -> bool {
        self.keys.is_ahead(id)
    }

    /// The key that seals.
    #[must_use]
    pub fn current(&self) -> &StateKey {
        self.keys.current()
    }

    /// The seed of the future key, for a file.
    #[must_use]
    pub const fn seed(&self) -> &Seed {
        &self.seed
    }

    /// The key with this identifier, whatever its role.
    #[inline]
    #[must_use]
    pub fn find(&self, id: u32) -> Option<&StateKey> {
        self.keys.find(id)
    }

    /// All keys: current, future, then the retired ones, the youngest first.
    pub fn keys(&self) -> impl Iterator<Item = (Role, &StateKey)> {
        self.keys.keys()
    }

    /// What `next` is to this set.
    #[must_use]
    pub fn succession(&self, next: &Self) -> Succession {
        self.keys.succession(&next.keys, |ours, theirs| ours.expose() == theirs.expose())
    }

    /// When randomness was last mixed in, in Unix seconds.
    #[must_use]
    pub const fn refreshed(&self) -> u64 {
        self.refreshed
    }

    /// When the current key began to seal, in Unix seconds.
    #[must_use]
    pub const fn rotated(&self) -> u64 {
        self.keys.rotated()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::KEY_COUNT_MAX;

    fn ids(set: &StateKeys) -> Vec<(Role, u32)> {
        set.keys().map(|(role, key)| (role, key.id())).collect()
    }

    //= antp#computations-4
    #[test]
    fn future_key_opens_before_it_seals_and_retired_ones_stay_for_keep_rotations() {
        let mut set = StateKeys::generate(0, &mut Entropy::from_seed(1));
        let first = set.current().id();
        for rotation in 1..=4 {
            let future = ids(&set)[1].1;
            assert!(set.find(future).is_some());
            set = set.rotate(rotation, 2, None);
            assert_eq!(set.current().id(), future);
            assert_eq!(set.find(first).is_some(), rotation <= 2, "{rotation}");
        }
        assert_eq!(set.keys().count(), 4);
    }

    //= antp#computations-4
    #[test]
    fn hosts_that_share_a_set_rotate_alike_until_randomness_is_mixed_in() {
        let set = StateKeys::generate(0, &mut Entropy::from_seed(1));
        let (here, there) = (set.rotate(1, 2, None), set.rotate(9, 2, None));
        assert_eq!(here.rotate(2, 2, None).current().expose(), there.rotate(2, 2, None).current().expose());
        let fresh = |seed| set.rotate(1, 2, Some(&mut Entropy::from_seed(seed)));
        let next = |set: &StateKeys| *set.rotate(2, 2, None).current().expose();
        assert_ne!(next(&fresh(1)), next(&here));
        assert_ne!(next(&fresh(1)), next(&fresh(2)));
        assert_eq!(fresh(1).current().expose(), here.current().expose(), "what others have already is kept");
    }

    #[test]
    fn set_from_a_file_goes_on_as_the_one_that_was_written() {
        let set = StateKeys::generate(5, &mut Entropy::from_seed(1)).rotate(6, 3, None);
        let copy = |key: &StateKey| StateKey::new(key.id(), key.created(), key.expose());
        let retired: Vec<StateKey> =
            set.keys().filter(|(role, _)| *role == Role::Retired).map(|(_, key)| copy(key)).collect();
        let read = StateKeys::from_keys(
            set.seed().clone(),
            copy(set.current()),
            retired,
            set.rotated(),
            set.refreshed(),
        )
        .unwrap();
        assert_eq!(ids(&read), ids(&set));
        let (a, b) = (read.rotate(7, 3, None), set.rotate(7, 3, None));
        assert!(a.keys().zip(b.keys()).all(|((_, a), (_, b))| a.expose() == b.expose()));
    }

    #[test]
    fn new_future_key_follows_from_nothing_that_was_there_and_is_read_back_by_its_number() {
        let set = StateKeys::generate(0, &mut Entropy::from_seed(1)).rotate(1, 2, None);
        let [current, future, retired] = ids(&set)[..] else { panic!("it has three keys") };
        let drawn = [7, 8].map(|seed| set.with_new_future(5, &mut Entropy::from_seed(seed)));
        for next in &drawn {
            assert_eq!(ids(next), [current, (Role::Future, future.1 + 1), retired]);
            assert_eq!((next.refreshed(), next.rotated()), (5, 1));
        }
        let octets = |set: &StateKeys, id| *set.find(id).expect("it has it").expose();
        assert_ne!(octets(&drawn[0], future.1 + 1), octets(&drawn[1], future.1 + 1));
        assert_ne!(octets(&drawn[0], future.1 + 1), octets(&set.rotate(2, 2, None), future.1 + 1));
        let copy = |id| StateKey::new(id, 0, &octets(&set, id));
        let read =
            StateKeys::from_keys(drawn[0].seed().clone(), copy(current.1), [copy(retired.1)], 1, 5).unwrap();
        assert_eq!(read.with_future_id(retired.1).unwrap_err(), KeySetError::DuplicateId(retired.1));
        let read = read.with_future_id(future.1 + 1).unwrap();
        assert_eq!(octets(&read, future.1 + 1), octets(&drawn[0], future.1 + 1));
        assert!(read.find(future.1).is_none());
        // What opens beside it and what does not changes nothing of what it is.
        let used = set.opening(Some(&drawn[0]), [retired.1]);
        assert!(used.find(future.1 + 1).is_some() && used.find(retired.1).is_none());
        assert_eq!(ids(&used), ids(&set));
        assert!(set.without(retired.1).unwrap().find(retired.1).is_none());
        assert_eq!(set.without(current.1).unwrap_err(), KeySetError::InUse(current.1));
    }

    #[test]
    fn keys_with_one_identifier_and_too_many_keys_make_no_set() {
        let key = |id| StateKey::new(id, 0, &[1; 16]);
        let set = |current, retired: Vec<StateKey>| {
            StateKeys::from_keys(Seed::new([1; 32]), key(current), retired, 0, 0).is_ok()
        };
        assert!(set(1, vec![key(0)]));
        assert!(!set(1, vec![key(1)]));
        assert!(!set(1, vec![key(2)]), "the future key has the next number");
        assert!(set(1, (3..KEY_COUNT_MAX as u32 + 1).map(key).collect()));
        assert!(!set(1, (3..KEY_COUNT_MAX as u32 + 2).map(key).collect()));
    }
}
