//! Keys that take turns: one in use, one that will be next, and those that were.
//!
//! A key is *future* for one rotation before it seals anything, so every server that shares the set accepts it by the
//! time the first text under it appears. A key is *retired* after its rotation: it still opens, and seals no more. How
//! the next key is made is for the kind of keys to say: [`crate::keyset`], [`crate::antp::state_key`].

use std::sync::Arc;

use thiserror::Error;

use crate::limits::{KEY_COUNT_MAX, KEYS_AHEAD_MAX};

/// A key that has a number.
pub trait Numbered {
    /// The identifier that stands in the clear beside what the key sealed.
    fn id(&self) -> u32;
}

/// The generations of keys of one kind at one moment. Immutable: a rotation makes a new set that shares the keys.
#[derive(Debug)]
pub struct Generations<K> {
    future: Arc<K>,
    current: Arc<K>,
    /// The youngest first.
    retired: Vec<Arc<K>>,
    rotated: u64,
    /// Keys that open as well, and are none of this set.
    beside: Vec<Arc<K>>,
    /// Identifiers that do not open.
    closed: Vec<u32>,
}

impl<K> Clone for Generations<K> {
    fn clone(&self) -> Self {
        Generations {
            future: Arc::clone(&self.future),
            current: Arc::clone(&self.current),
            retired: self.retired.clone(),
            rotated: self.rotated,
            beside: self.beside.clone(),
            closed: self.closed.clone(),
        }
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeySetError {
    /// Two keys have the same identifier.
    #[error("two keys have the identifier {0:08x}")]
    DuplicateId(u32),
    /// More keys than [`KEY_COUNT_MAX`].
    #[error("there are more than {KEY_COUNT_MAX} keys")]
    TooMany,
    /// The key to be retired is not a retired one, so texts are or will be sealed with it.
    #[error("key {0:08x} is not retired; rotate first")]
    InUse(u32),
    /// There is no such key.
    #[error("there is no key {0:08x}")]
    Unknown(u32),
}

/// What a set is to one that is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Succession {
    /// It is the same, or what became of it: what was sealed with the old one opens as far as it has the keys.
    Follows,
    /// It is what the one in force was before, or has a key that was dropped there.
    Older,
    /// They have no key in common.
    Unrelated,
    /// This identifier stands for another key.
    Clashes(u32),
}

impl<K: Numbered> Generations<K> {
    /// What `next` is to this set; `is_same`: whether two keys have the same octets.
    pub fn succession(&self, next: &Self, is_same: impl Fn(&K, &K) -> bool) -> Succession {
        let rank = |role| match role {
            Role::Retired => 0,
            Role::Current => 1,
            Role::Future => 2,
        };
        let mut common = Vec::new();
        let mut brings_back = false;
        for (role, key) in next.keys() {
            match self.keys().find(|(_, ours)| ours.id() == key.id()) {
                Some((_, ours)) if !is_same(ours, key) => return Succession::Clashes(key.id()),
                Some((held, _)) => common.push((rank(held), rank(role))),
                // The current and the future key come first, and the youngest retired one before the others: what
                // stands behind a key of this set is older than that, and is not held any more.
                None => brings_back |= role == Role::Retired && !common.is_empty(),
            }
        }
        if common.is_empty() {
            return Succession::Unrelated;
        }
        // A key never goes from retired to current, or from current to future.
        let goes_back = common.iter().any(|(held, given)| given > held);
        let goes_on = common.iter().any(|(held, given)| given < held);
        match goes_back || brings_back || !goes_on && next.rotated < self.rotated {
            true => Succession::Older,
            false => Succession::Follows,
        }
    }

    /// A first set, of keys with different identifiers; `now` in Unix seconds.
    pub(crate) fn first(current: K, future: K, now: u64) -> Self {
        debug_assert!(current.id() != future.id(), "the second key has the next number");
        Generations {
            future: Arc::new(future),
            current: Arc::new(current),
            retired: Vec::new(),
            rotated: now,
            beside: Vec::new(),
            closed: Vec::new(),
        }
    }

    /// A set of known keys, `retired` with the youngest first; `rotated` is when `current` began to seal, in Unix
    /// seconds.
    ///
    /// # Errors
    /// If two keys have one identifier, or there are too many.
    //= rfc8915#6-2
    pub fn from_keys(
        future: K,
        current: K,
        retired: impl IntoIterator<Item = K>,
        rotated: u64,
    ) -> Result<Self, KeySetError> {
        let set = Generations {
            future: Arc::new(future),
            current: Arc::new(current),
            retired: retired.into_iter().map(Arc::new).collect(),
            rotated,
            beside: Vec::new(),
            closed: Vec::new(),
        };
        let mut ids: Vec<u32> = set.keys().map(|(_, key)| key.id()).collect();
        if ids.len() > KEY_COUNT_MAX {
            return Err(KeySetError::TooMany);
        }
        ids.sort_unstable();
        match ids.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(KeySetError::DuplicateId(pair[0])),
            None => Ok(set),
        }
    }

    /// The set after one rotation: the future key seals, `next` is the future one, the current one is retired, at most
    /// `keep` retired ones stay.
    //= rfc8915#6-3, rfc8915#6-4
    pub(crate) fn advance(&self, next: K, now: u64, keep: usize) -> Self {
        let retired = std::iter::once(&self.current).chain(&self.retired);
        Generations {
            future: Arc::new(next),
            current: Arc::clone(&self.future),
            retired: retired.take(keep.min(KEY_COUNT_MAX - 2)).cloned().collect(),
            rotated: now,
            beside: self.beside.clone(),
            closed: self.closed.clone(),
        }
    }

    /// The set with `next` as its future key, which has sealed nothing yet.
    pub(crate) fn with_future(&self, next: K) -> Self {
        Generations { future: Arc::new(next), ..self.clone() }
    }

    /// The set as it is used while its keys are not all there is to say: the keys of `beside` open too, and those in
    /// `closed` do not, whatever their role. What seals stays the same. Of two keys with one identifier ours opens,
    /// unless it is the future one: that has sealed nothing, and the other may have.
    #[must_use]
    pub fn opening(&self, beside: Option<&Self>, closed: impl IntoIterator<Item = u32>) -> Self {
        let has_sealed = |id: u32| self.sealing().any(|ours| ours.id() == id);
        let beside = beside.into_iter().flat_map(Generations::shared);
        let beside = beside.filter(|key| !has_sealed(key.id())).cloned().collect();
        Generations { beside, closed: closed.into_iter().collect(), ..self.clone() }
    }

    /// Keys of the set that seal or have sealed.
    fn sealing(&self) -> impl Iterator<Item = &K> {
        std::iter::once(&*self.current).chain(self.retired.iter().map(|key| &**key))
    }

    fn shared(&self) -> impl Iterator<Item = &Arc<K>> {
        [&self.current, &self.future].into_iter().chain(&self.retired)
    }

    /// The key that seals after the next rotation.
    pub(crate) fn future(&self) -> &K {
        &self.future
    }

    /// The identifier of the key after the future one.
    pub(crate) fn next_id(&self) -> u32 {
        self.future.id().wrapping_add(1)
    }

    /// The set without the retired key `id`: what it sealed no longer opens.
    ///
    /// # Errors
    /// If there is no such key, or it is not retired.
    //= rfc8915#8.2-1
    pub fn without(&self, id: u32) -> Result<Self, KeySetError> {
        match self.keys().find(|(_, key)| key.id() == id) {
            None => Err(KeySetError::Unknown(id)),
            Some((Role::Future | Role::Current, _)) => Err(KeySetError::InUse(id)),
            Some((Role::Retired, _)) => {
                let mut set = self.clone();
                set.retired.retain(|key| key.id() != id);
                Ok(set)
            }
        }
    }

    /// Whether `id` is that of one of the next keys after these: who makes them may have it already.
    #[must_use]
    pub fn is_ahead(&self, id: u32) -> bool {
        (1..=KEYS_AHEAD_MAX).contains(&id.wrapping_sub(self.future.id()))
    }

    /// The key that seals.
    #[must_use]
    pub fn current(&self) -> &K {
        &self.current
    }

    /// The key with this identifier, whatever its role, if it opens.
    //= rfc8915#6-5
    #[inline]
    #[must_use]
    pub fn find(&self, id: u32) -> Option<&K> {
        // Where two have it, the first one opens: see `opening`.
        self.all().find(|key| key.id() == id).filter(|_| !self.closed.contains(&id))
    }

    /// All keys that open, whatever their role.
    pub fn opening_keys(&self) -> impl Iterator<Item = &K> {
        self.all().filter(|key| self.find(key.id()).is_some_and(|opens| std::ptr::eq(opens, *key)))
    }

    /// The keys of the set and those beside it; the future one last, as one beside it can have its identifier.
    #[inline]
    fn all(&self) -> impl Iterator<Item = &K> {
        self.sealing().chain(self.beside.iter().chain([&self.future]).map(|key| &**key))
    }

    /// All keys of the set: current, future, then the retired ones, the youngest first.
    pub fn keys(&self) -> impl Iterator<Item = (Role, &K)> {
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
