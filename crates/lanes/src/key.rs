//! Keys of AEADs: octets, or expanded for the lanes.

use std::fmt;

use subtle::ConstantTimeEq;

use crate::{Algorithm, SivKey, wipe};

const KEY_SIZE_MAX: usize = 64;

/// A key and its algorithm. Expanded anew for each use, as a session key is used once per packet.
#[derive(Clone)]
pub struct Key {
    algorithm: Algorithm,
    octets: [u8; KEY_SIZE_MAX],
}

impl Key {
    /// A key of exactly [`Algorithm::key_size`] octets, else `None`.
    #[must_use]
    pub fn new(algorithm: Algorithm, octets: &[u8]) -> Option<Self> {
        let mut key = Key { algorithm, octets: [0; KEY_SIZE_MAX] };
        if octets.len() != algorithm.key_size() {
            return None;
        }
        key.octets[..octets.len()].copy_from_slice(octets);
        Some(key)
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The secret octets.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.octets[..self.algorithm.key_size()]
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        wipe(&mut self.octets);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.algorithm == other.algorithm && bool::from(self.octets.ct_eq(&other.octets))
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.algorithm)
    }
}

/// An AES-SIV-CMAC-256 key that is used for many jobs and therefore kept expanded.
pub struct CachedKey {
    key: Key,
    expanded: Option<SivKey>,
}

impl CachedKey {
    /// Expands `octets`.
    #[must_use]
    pub fn new(octets: &[u8; 32]) -> Self {
        let key = Key::new(Algorithm::SivCmac256, octets).expect("32 octets are a SIV-CMAC-256 key");
        CachedKey { expanded: SivKey::expand(&key), key }
    }

    /// The secret octets.
    #[must_use]
    pub fn expose(&self) -> &[u8; 32] {
        self.key.octets.first_chunk().expect("no key is longer than KEY_SIZE_MAX")
    }
}

impl fmt::Debug for CachedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.key, f)
    }
}

/// The key of a job: octets to be expanded for it, from a [`Key`] or from where they lie, or a [`CachedKey`].
#[derive(Clone, Copy)]
pub struct KeyRef<'a> {
    algorithm: Algorithm,
    /// As many as the algorithm's keys have.
    octets: &'a [u8],
    expanded: Option<&'a SivKey>,
}

impl<'a> KeyRef<'a> {
    /// A key of exactly [`Algorithm::key_size`] octets, else `None`.
    #[inline]
    #[must_use]
    pub const fn new(algorithm: Algorithm, octets: &'a [u8]) -> Option<Self> {
        if octets.len() == algorithm.key_size() {
            Some(KeyRef { algorithm, octets, expanded: None })
        } else {
            None
        }
    }

    /// Algorithm, octets, and the expanded key if there is one.
    #[cfg_attr(
        any(not(target_arch = "x86_64"), authentick_lanes = "none"),
        expect(dead_code, reason = "where there are no lanes, nothing takes a key apart for them")
    )]
    #[inline(always)]
    pub(crate) fn parts(self) -> (Algorithm, &'a [u8], Option<&'a SivKey>) {
        (self.algorithm, self.octets, self.expanded)
    }

    /// The algorithm.
    #[inline(always)]
    #[must_use]
    pub const fn algorithm(self) -> Algorithm {
        self.algorithm
    }

    /// The secret octets.
    #[must_use]
    pub const fn expose(self) -> &'a [u8] {
        self.octets
    }
}

impl<'a> From<&'a Key> for KeyRef<'a> {
    #[inline]
    fn from(key: &'a Key) -> Self {
        KeyRef { algorithm: key.algorithm, octets: key.expose(), expanded: None }
    }
}

impl<'a> From<&'a CachedKey> for KeyRef<'a> {
    #[inline]
    fn from(cached: &'a CachedKey) -> Self {
        KeyRef { expanded: cached.expanded.as_ref(), ..KeyRef::from(&cached.key) }
    }
}

impl fmt::Debug for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRef({:?})", self.algorithm)
    }
}
