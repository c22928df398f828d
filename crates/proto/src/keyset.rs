//! The keys that seal cookies: one in use, one that will be next, and those that were.
//!
//! A key is *future* for one rotation before it seals anything, so every server that shares the set accepts it by the
//! time the first cookie under it appears. A key is *retired* after its rotation: it still opens, and seals no more.

use std::sync::Arc;

use authentick_crypto::{CachedKey, Entropy};

use crate::limits::KEY_COUNT_MAX;

/// One cookie key.
#[derive(Debug)]
pub struct CookieKey {
    id: u32,
    created: u64,
    key: CachedKey,
}

impl CookieKey {
    /// A key with known octets: from a file or a vector. `created` is in Unix seconds.
    #[must_use]
    pub fn new(id: u32, created: u64, octets: &[u8; 32]) -> Self {
        CookieKey { id, created, key: CachedKey::new(octets) }
    }

    fn generate(id: u32, now: u64, entropy: &mut Entropy) -> Self {
        CookieKey::new(id, now, &entropy.array())
    }

    /// The identifier that stands in the clear in each cookie.
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
    pub const fn key(&self) -> &CachedKey {
        &self.key
    }
}

/// The generations of cookie keys at one moment. Immutable: a rotation makes a new set that shares the keys.
#[derive(Clone, Debug)]
pub struct KeySet {
    future: Arc<CookieKey>,
    current: Arc<CookieKey>,
    /// The youngest first.
    retired: Vec<Arc<CookieKey>>,
    rotated: u64,
}

/// What a key is to its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opens; will seal after the next rotation.
    Future,
    /// Opens and seals.
    Current,
    /// Opens.
    Retired,
}

/// Keys that do not make a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySetError {
    /// Two keys have the same identifier.
    DuplicateId(u32),
    /// More keys than [`KEY_COUNT_MAX`].
    TooMany,
    /// The key to be retired is not a retired one, so cookies are or will be sealed with it.
    InUse(u32),
    /// There is no such key.
    Unknown(u32),
}

impl KeySet {
    /// A first set with a current and a future key; `now` in Unix seconds.
    #[must_use]
    pub fn generate(now: u64, entropy: &mut Entropy) -> Self {
        let id = u32::from_be_bytes(entropy.array());
        KeySet {
            current: Arc::new(CookieKey::generate(id, now, entropy)),
            future: Arc::new(CookieKey::generate(id.wrapping_add(1), now, entropy)),
            retired: Vec::new(),
            rotated: now,
        }
    }

    /// A set of known keys, `retired` with the youngest first; `rotated` is when `current` began to seal.
    pub fn from_keys(
        future: CookieKey,
        current: CookieKey,
        retired: impl IntoIterator<Item = CookieKey>,
        rotated: u64,
    ) -> Result<Self, KeySetError> {
        let set = KeySet {
            future: Arc::new(future),
            current: Arc::new(current),
            retired: retired.into_iter().map(Arc::new).collect(),
            rotated,
        };
        let mut ids: Vec<u32> = set.keys().map(|(_, key)| key.id).collect();
        if ids.len() > KEY_COUNT_MAX {
            return Err(KeySetError::TooMany);
        }
        ids.sort_unstable();
        match ids.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(KeySetError::DuplicateId(pair[0])),
            None => Ok(set),
        }
    }

    /// The set after one rotation: the future key seals, the current one is retired, at most `keep` retired ones stay.
    #[must_use]
    pub fn rotate(&self, now: u64, keep: usize, entropy: &mut Entropy) -> Self {
        let retired = std::iter::once(&self.current).chain(&self.retired);
        KeySet {
            future: Arc::new(CookieKey::generate(self.future.id.wrapping_add(1), now, entropy)),
            current: Arc::clone(&self.future),
            retired: retired.take(keep.min(KEY_COUNT_MAX - 2)).cloned().collect(),
            rotated: now,
        }
    }

    /// How many rotations are due at `now` for one every `period_seconds`: keys age while a server is down too. A last
    /// rotation that lies more than a period in the future (a clock that ran ahead) is due at once.
    #[must_use]
    pub fn rotations_due(&self, now: u64, period_seconds: u64) -> u64 {
        let period_seconds = period_seconds.max(1);
        match now.checked_sub(self.rotated) {
            Some(age) => age / period_seconds,
            None => u64::from(self.rotated - now > period_seconds),
        }
    }

    /// The set without the retired key `id`: cookies under it no longer open.
    pub fn without(&self, id: u32) -> Result<Self, KeySetError> {
        match self.keys().find(|(_, key)| key.id == id) {
            None => Err(KeySetError::Unknown(id)),
            Some((Role::Future | Role::Current, _)) => Err(KeySetError::InUse(id)),
            Some((Role::Retired, _)) => {
                let mut set = self.clone();
                set.retired.retain(|key| key.id != id);
                Ok(set)
            }
        }
    }

    /// The key that seals.
    #[must_use]
    pub fn current(&self) -> &CookieKey {
        &self.current
    }

    /// The key with this identifier, whatever its role.
    #[inline]
    #[must_use]
    pub fn find(&self, id: u32) -> Option<&CookieKey> {
        self.keys().map(|(_, key)| key).find(|key| key.id == id)
    }

    /// All keys: current, future, then the retired ones, the youngest first.
    pub fn keys(&self) -> impl Iterator<Item = (Role, &CookieKey)> {
        [(Role::Current, &*self.current), (Role::Future, &*self.future)]
            .into_iter()
            .chain(self.retired.iter().map(|key| (Role::Retired, &**key)))
    }

    /// When the current key began to seal, in Unix seconds.
    #[must_use]
    pub const fn rotated(&self) -> u64 {
        self.rotated
    }
}

impl std::fmt::Display for KeySetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeySetError::DuplicateId(id) => write!(f, "two keys have the identifier {id:08x}"),
            KeySetError::TooMany => write!(f, "there are more than {KEY_COUNT_MAX} keys"),
            KeySetError::InUse(id) => write!(f, "key {id:08x} is not retired; rotate first"),
            KeySetError::Unknown(id) => write!(f, "there is no key {id:08x}"),
        }
    }
}

impl std::error::Error for KeySetError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(set: &KeySet) -> Vec<(Role, u32)> {
        set.keys().map(|(role, key)| (role, key.id())).collect()
    }

    #[test]
    fn future_key_opens_before_it_seals() {
        let mut entropy = Entropy::from_seed(1);
        let first = KeySet::generate(1000, &mut entropy);
        let future = first.keys().find(|(role, _)| *role == Role::Future).unwrap().1.id();
        assert!(first.find(future).is_some());
        assert_ne!(first.current().id(), future);
        assert_eq!(first.rotate(2000, 7, &mut entropy).current().id(), future);
    }

    #[test]
    fn retired_keys_stay_for_keep_rotations() {
        let mut entropy = Entropy::from_seed(1);
        let mut set = KeySet::generate(0, &mut entropy);
        let first = set.current().id();
        for rotation in 1..=3 {
            set = set.rotate(rotation, 2, &mut entropy);
            assert_eq!(set.find(first).is_some(), rotation <= 2, "{rotation}");
        }
        assert_eq!(set.keys().count(), 4);
    }

    #[test]
    fn rotations_follow_the_clock_even_through_downtime_and_jumps() {
        let set = KeySet::generate(100_000, &mut Entropy::from_seed(1));
        assert_eq!(set.rotations_due(100_000 + 86_399, 86_400), 0);
        assert_eq!(set.rotations_due(100_000 + 86_400, 86_400), 1);
        assert_eq!(set.rotations_due(100_000 + 9 * 86_400 + 5, 86_400), 9);
        assert_eq!(set.rotations_due(90_000, 86_400), 0, "the clock was set back a little");
        assert_eq!(set.rotations_due(0, 86_400), 1, "the clock had run ahead by more than a period");
    }

    #[test]
    fn only_a_retired_key_can_be_dropped() {
        let mut entropy = Entropy::from_seed(1);
        let set = KeySet::generate(0, &mut entropy).rotate(1, 7, &mut entropy);
        let [(_, current), (_, future), (_, retired)] = roles(&set)[..] else { panic!() };
        assert_eq!(set.without(current).unwrap_err(), KeySetError::InUse(current));
        assert_eq!(set.without(future).unwrap_err(), KeySetError::InUse(future));
        assert_eq!(
            set.without(future.wrapping_add(9)).unwrap_err(),
            KeySetError::Unknown(future.wrapping_add(9))
        );
        assert!(set.without(retired).unwrap().find(retired).is_none());
    }

    #[test]
    fn keys_with_one_identifier_make_no_set() {
        let key = |id| CookieKey::new(id, 0, &[1; 32]);
        assert_eq!(KeySet::from_keys(key(1), key(2), [key(1)], 0).unwrap_err(), KeySetError::DuplicateId(1));
        let many = (2..=KEY_COUNT_MAX as u32).map(key);
        assert_eq!(KeySet::from_keys(key(0), key(1), many, 0).unwrap_err(), KeySetError::TooMany);
    }
}
