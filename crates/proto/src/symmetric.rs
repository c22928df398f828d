//! Keys that a server and its clients share beforehand: a key has an identifier, an algorithm and secret octets, and
//! both sides know all three. RFC 5905 section 7.3, RFC 8573.
//!
//! A set is immutable once built: who changes keys builds a [successor](SymmetricKeys::successor) and swaps pointers.
//! Looking a key up allocates nothing and costs one or two cache lines.
//!
//! A key counts what was done with it. Each worker has counters of its own for each key, on cache lines of their own,
//! so no packet waits for another core's cache; who reads adds them up. They are atomics that one thread writes with
//! plain stores. The alternative, counters in the responder that the worker shows after each turn, would have it
//! allocate when a set is replaced.
//!
//! Deliberately absent: files, and what a key is called in them.
#![cfg_attr(
    not(any(feature = "client", feature = "server")),
    expect(dead_code, reason = "nonces are drawn and read by client and server alone")
)]

use std::fmt;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use authentick_crypto::Entropy;
use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_wire::mac::NONCE_BODY_SIZE;
use thiserror::Error;

use crate::limits::SYMMETRIC_KEY_COUNT_MAX;

/// Octets of the salt that stands before a nonce of eight octets. RFC 4106 section 4, "Message Authentication Codes for
/// the Network Time Protocol" (draft-ietf-ntp-mac, 2016) section 6.1.
pub const SALT_SIZE: usize = 4;

/// A key that both sides know, and what was done with it.
pub struct SymmetricKey {
    id: u32,
    key: MacKey,
    salt: Option<[u8; SALT_SIZE]>,
    counters: Arc<[Counters]>,
}

/// A salt for a key whose algorithm takes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a key of {algorithm} has no salt; only one of {} may have one", MacAlgorithm::Gmac128)]
pub struct NoSalt {
    /// The algorithm.
    pub algorithm: MacAlgorithm,
}

impl SymmetricKey {
    /// A key under its identifier. If its algorithm takes a nonce, all twelve octets of it are random and on the wire.
    #[must_use]
    pub fn new(id: u32, key: MacKey) -> Self {
        SymmetricKey { id, key, salt: None, counters: Arc::new([]) }
    }

    /// The same with a salt: nonces are these four octets, which never are on the wire, and eight random ones, which
    /// are. For GMAC alone.
    ///
    /// # Errors
    /// If the key is for another algorithm.
    pub fn with_salt(self, salt: [u8; SALT_SIZE]) -> Result<Self, NoSalt> {
        match self.algorithm() {
            MacAlgorithm::Gmac128 => Ok(SymmetricKey { salt: Some(salt), ..self }),
            algorithm => Err(NoSalt { algorithm }),
        }
    }

    /// The identifier, which stands in the clear in each packet.
    #[inline]
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The algorithm.
    #[inline]
    #[must_use]
    pub const fn algorithm(&self) -> MacAlgorithm {
        self.key.algorithm()
    }

    /// The key itself.
    #[inline]
    #[must_use]
    pub const fn key(&self) -> &MacKey {
        &self.key
    }

    /// The salt, where nonces have one.
    #[must_use]
    pub const fn salt(&self) -> Option<[u8; SALT_SIZE]> {
        self.salt
    }

    /// What was done with the key, by all workers and in all sets that have held it.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters.iter().map(Counters::read).fold(Counts::default(), Add::add)
    }

    /// Whether both are the same key: identifier, algorithm, octets and salt.
    fn is_same(&self, other: &SymmetricKey) -> bool {
        let parts = |key: &SymmetricKey| (key.id, key.algorithm(), key.salt);
        // Operators compare their own files here: no one else can time it.
        parts(self) == parts(other) && self.key.expose() == other.key.expose()
    }

    /// A fresh nonce, or `None` if the algorithm takes none.
    #[inline]
    pub(crate) fn draw_nonce(&self, entropy: &mut Entropy) -> Option<Nonce> {
        self.algorithm().nonce_size()?;
        let mut octets: [u8; NONCE_BODY_SIZE] = [0; NONCE_BODY_SIZE];
        match self.salt {
            None => entropy.fill(&mut octets),
            Some(salt) => {
                octets[..SALT_SIZE].copy_from_slice(&salt);
                entropy.fill(&mut octets[SALT_SIZE..]);
            }
        }
        Some(Nonce(octets))
    }

    /// The nonce that a field's body stands for; `None` if the algorithm takes none, or the body is none of this key's.
    #[inline]
    pub(crate) fn nonce_of(&self, body: &[u8; NONCE_BODY_SIZE]) -> Option<Nonce> {
        self.algorithm().nonce_size()?;
        let Some(salt) = self.salt else { return Some(Nonce(*body)) };
        let (random, padding) = body.split_at(NONCE_BODY_SIZE - SALT_SIZE);
        let mut octets = [0; NONCE_BODY_SIZE];
        octets[..SALT_SIZE].copy_from_slice(&salt);
        octets[SALT_SIZE..].copy_from_slice(random);
        (padding == [0; SALT_SIZE]).then_some(Nonce(octets))
    }

    /// The body of the field that carries `nonce`.
    #[inline]
    pub(crate) fn body_of(&self, nonce: &Nonce) -> [u8; NONCE_BODY_SIZE] {
        let mut body = nonce.0;
        if self.salt.is_some() {
            body.copy_within(SALT_SIZE.., 0);
            body[NONCE_BODY_SIZE - SALT_SIZE..].fill(0);
        }
        body
    }

    /// Counts one event of `worker`.
    #[cfg(any(feature = "server", test))]
    #[inline]
    pub(crate) fn count(&self, worker: usize, event: Event) {
        if let Some(counters) = self.counters.get(worker) {
            counters.count(event);
        }
    }
}

impl From<(u32, MacKey)> for SymmetricKey {
    fn from((id, key): (u32, MacKey)) -> Self {
        SymmetricKey::new(id, key)
    }
}

impl fmt::Debug for SymmetricKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymmetricKey({}, {})", self.id, self.algorithm())
    }
}

/// The twelve octets that an algorithm takes, salt included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nonce([u8; NONCE_BODY_SIZE]);

impl Nonce {
    #[inline]
    pub(crate) const fn octets(&self) -> &[u8] {
        &self.0
    }
}

/// What is done with a key.
#[cfg(any(feature = "server", test))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A tag was right, and the answer got one.
    Answered,
    /// A tag was wrong.
    WrongTag,
    /// The algorithm is not allowed.
    NotAllowed,
}

/// One worker's counters of one key.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Counters {
    answered: AtomicU64,
    wrong_tags: AtomicU64,
    not_allowed: AtomicU64,
}

impl Counters {
    #[cfg(any(feature = "server", test))]
    #[inline]
    fn count(&self, event: Event) {
        let counter = match event {
            Event::Answered => &self.answered,
            Event::WrongTag => &self.wrong_tags,
            Event::NotAllowed => &self.not_allowed,
        };
        // A single writer needs no atomic addition.
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn read(&self) -> Counts {
        Counts {
            answered: self.answered.load(Ordering::Relaxed),
            wrong_tags: self.wrong_tags.load(Ordering::Relaxed),
            not_allowed: self.not_allowed.load(Ordering::Relaxed),
        }
    }
}

/// What was done with a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests whose tag was right: each was answered with a tag under the key, and with a nonce of ours if the
    /// algorithm takes one. Senders used the key as often.
    pub answered: u64,
    /// Requests that named the key and whose tag was wrong: a key that differs between the sides, damage, or forgery.
    pub wrong_tags: u64,
    /// Requests that named the key while its algorithm is not [allowed](Allowed).
    pub not_allowed: u64,
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            answered: self.answered + other.answered,
            wrong_tags: self.wrong_tags + other.wrong_tags,
            not_allowed: self.not_allowed + other.not_allowed,
        }
    }
}

/// Why an algorithm is off unless it is [allowed](Allowed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Caution {
    /// A digest of key and packet, one behind the other, which is no MAC.
    KeyedDigest,
    /// It fails if a nonce repeats, and servers without state draw their nonces at random.
    Nonce,
}

impl Caution {
    /// What speaks against `algorithm`, if anything does.
    #[must_use]
    pub const fn of(algorithm: MacAlgorithm) -> Option<Caution> {
        match algorithm {
            MacAlgorithm::Md5
            | MacAlgorithm::Sha1
            | MacAlgorithm::Sha256
            | MacAlgorithm::Sha384
            | MacAlgorithm::Sha512 => Some(Caution::KeyedDigest),
            MacAlgorithm::Gmac128 | MacAlgorithm::GmacSiv128 | MacAlgorithm::Poly1305 => Some(Caution::Nonce),
            MacAlgorithm::HmacMd5
            | MacAlgorithm::HmacSha224
            | MacAlgorithm::Cmac128
            | MacAlgorithm::Cmac256 => None,
        }
    }
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Caution::KeyedDigest => {
                "a digest of key and packet is not a MAC: without the key, a packet and its tag can be extended; RFC \
                 8573 replaces it with AES-CMAC"
            }
            Caution::Nonce => {
                "it needs a nonce in an extension field of our own, which no other server knows; nonces are random, \
                 and one that repeats gives GMAC's key away, or Poly1305's tags under that nonce"
            }
        })
    }
}

/// Which algorithms may be used beside those that nothing speaks against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Those of [`Caution::KeyedDigest`].
    pub keyed_digests: bool,
    /// Those of [`Caution::Nonce`].
    pub nonces: bool,
}

impl Allowed {
    /// Everything: for clients, whose user names the key, and for tests.
    pub const ALL: Allowed = Allowed { keyed_digests: true, nonces: true };

    /// What keeps `algorithm` from being used, if anything does.
    //= rfc8573#2-1
    #[inline]
    #[must_use]
    pub const fn objection(self, algorithm: MacAlgorithm) -> Option<Caution> {
        match Caution::of(algorithm) {
            Some(Caution::KeyedDigest) if self.keyed_digests => None,
            Some(Caution::Nonce) if self.nonces => None,
            caution => caution,
        }
    }
}

/// Keys that do not make a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SymmetricKeysError {
    /// Two keys have the same identifier.
    #[error("two keys have the id {0}")]
    DuplicateId(u32),
    /// A key has the identifier zero, which stands for none. RFC 5905 section 7.3.
    #[error("a key has the id 0, which stands for no key")]
    ZeroId,
    /// More keys than [`SYMMETRIC_KEY_COUNT_MAX`].
    #[error("there are more than {SYMMETRIC_KEY_COUNT_MAX} keys")]
    TooMany,
}

/// The keys that a server knows at one moment.
pub struct SymmetricKeys {
    keys: Box<[SymmetricKey]>,
    /// An open hash table of positions in `keys`, at least half empty; a power of two.
    table: Box<[Place]>,
    allowed: Allowed,
    worker_count: usize,
}

/// A place in the table. The identifier stands here so that a look-up that finds nothing reads no key; zero if empty.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    id: u32,
    position: u32,
}

impl SymmetricKeys {
    /// A set of `keys`, of which the responders with the numbers 0 to `worker_count - 1` count the uses. Those of
    /// higher numbers count nothing; zero is right for a client.
    ///
    /// # Errors
    /// If two keys share an identifier, one has the identifier zero, or there are too many.
    pub fn new<K: Into<SymmetricKey>>(
        keys: impl IntoIterator<Item = K>,
        allowed: Allowed,
        worker_count: usize,
    ) -> Result<Self, SymmetricKeysError> {
        let mut keys: Box<[SymmetricKey]> =
            keys.into_iter().map(Into::into).take(SYMMETRIC_KEY_COUNT_MAX + 1).collect();
        if keys.len() > SYMMETRIC_KEY_COUNT_MAX {
            return Err(SymmetricKeysError::TooMany);
        }
        let mut table = vec![Place::default(); (2 * keys.len()).next_power_of_two()].into_boxed_slice();
        for (position, key) in keys.iter_mut().enumerate() {
            if key.id == 0 {
                return Err(SymmetricKeysError::ZeroId);
            }
            let index = search(&table, key.id);
            if table[index].id == key.id {
                return Err(SymmetricKeysError::DuplicateId(key.id));
            }
            table[index] = Place { id: key.id, position: position as u32 };
            key.counters = (0..worker_count).map(|_| Counters::default()).collect();
        }
        Ok(SymmetricKeys { keys, table, allowed, worker_count })
    }

    /// The set that replaces this one. A key that is in both, the same in all its parts, keeps its counts.
    ///
    /// # Errors
    /// As [`SymmetricKeys::new`].
    pub fn successor<K: Into<SymmetricKey>>(
        &self,
        keys: impl IntoIterator<Item = K>,
        allowed: Allowed,
    ) -> Result<Self, SymmetricKeysError> {
        let mut next = SymmetricKeys::new(keys, allowed, self.worker_count)?;
        for key in &mut next.keys {
            if let Some(old) = self.find(key.id).filter(|old| old.is_same(key)) {
                key.counters = Arc::clone(&old.counters);
            }
        }
        Ok(next)
    }

    /// The key with this identifier.
    #[inline]
    #[must_use]
    pub fn find(&self, id: u32) -> Option<&SymmetricKey> {
        self.position(id).map(|position| self.at(position))
    }

    /// Where the key with this identifier stands.
    #[inline]
    pub(crate) fn position(&self, id: u32) -> Option<usize> {
        let place = self.table[search(&self.table, id)];
        // An empty place has the identifier zero, which no key has.
        (id != 0 && place.id == id).then_some(place.position as usize)
    }

    /// The key at a position that [`SymmetricKeys::position`] gave.
    #[inline]
    pub(crate) fn at(&self, position: usize) -> &SymmetricKey {
        &self.keys[position]
    }

    /// All keys, in the order in which they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &SymmetricKey> {
        self.keys.iter()
    }

    /// Which algorithms may be used.
    #[must_use]
    pub const fn allowed(&self) -> Allowed {
        self.allowed
    }

    /// The keys that may not be used, and why: what a server warns of when it starts.
    pub fn objections(&self) -> impl Iterator<Item = (&SymmetricKey, Caution)> {
        self.keys.iter().filter_map(|key| Some((key, self.allowed.objection(key.algorithm())?)))
    }
}

impl fmt::Debug for SymmetricKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.keys).finish()
    }
}

/// The place of `id` in the table, or the empty one where it would go.
#[inline]
fn search(table: &[Place], id: u32) -> usize {
    let mask = table.len() - 1;
    let mut index = home(id) & mask;
    while table[index].id != id && table[index].id != 0 {
        index = (index + 1) & mask;
    }
    index
}

/// Where the search for `id` begins, before it is cut to the size of the table.
#[inline]
const fn home(id: u32) -> usize {
    // 2^32 / golden ratio: identifiers in a row, as operators give them, fall far from each other.
    (id.wrapping_mul(0x9E37_79B9) >> 7) as usize
}

#[cfg(test)]
mod tests;
