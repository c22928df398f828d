//! AEAD algorithms of NTS, run over batches of independent jobs.
//!
//! The unit of work is a batch: [`SealBatch`] and [`OpenBatch`] take any number of jobs with different keys and
//! lengths, sort them by algorithm and run them side by side where the processor has AES instructions. On every other
//! processor they go through the RustCrypto crates, one at a time.

use std::fmt;

use aes::{Aes128, Aes192, Aes256};
use aes_gcm_siv::Aes128GcmSiv;
use aes_gcm_siv::aead::inout::InOutBuf;
use aes_gcm_siv::aead::{AeadInOut, KeyInit};
use aes_siv::siv::CmacSiv;
use subtle::ConstantTimeEq;

use crate::lanes::{self, Path};
use crate::wipe;

/// Octets of the tag of every algorithm here.
pub const TAG_SIZE: usize = 16;

const KEY_SIZE_MAX: usize = 64;

/// An AEAD algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// AES-SIV-CMAC-256, which is two AES-128 keys. RFC 5297.
    SivCmac256,
    /// AES-SIV-CMAC-384, two AES-192 keys. RFC 5297.
    SivCmac384,
    /// AES-SIV-CMAC-512, two AES-256 keys. RFC 5297.
    SivCmac512,
    /// AES-128-GCM-SIV. RFC 8452.
    Aes128GcmSiv,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 4] =
        [Algorithm::SivCmac256, Algorithm::SivCmac384, Algorithm::SivCmac512, Algorithm::Aes128GcmSiv];

    /// Octets of a key.
    #[must_use]
    pub const fn key_size(self) -> usize {
        match self {
            Algorithm::SivCmac256 => 32,
            Algorithm::SivCmac384 => 48,
            Algorithm::SivCmac512 => 64,
            Algorithm::Aes128GcmSiv => 16,
        }
    }

    /// Octets of the nonce to send: the only size GCM-SIV takes; SIV takes any from one octet up.
    #[must_use]
    pub const fn nonce_size(self) -> usize {
        match self {
            Algorithm::SivCmac256 | Algorithm::SivCmac384 | Algorithm::SivCmac512 => 16,
            Algorithm::Aes128GcmSiv => 12,
        }
    }

    /// Whether a nonce of `size` octets can be used.
    #[must_use]
    pub const fn accepts_nonce(self, size: usize) -> bool {
        match self {
            Algorithm::SivCmac256 | Algorithm::SivCmac384 | Algorithm::SivCmac512 => size >= 1,
            Algorithm::Aes128GcmSiv => size == 12,
        }
    }

    /// Parts sealed octets, as they stand on the wire, into text and tag: SIV puts its tag in front, GCM-SIV at the
    /// end. `None` if there are fewer octets than a tag has.
    #[must_use]
    pub const fn split_sealed(self, sealed: &mut [u8]) -> Option<(&mut [u8], &mut [u8; TAG_SIZE])> {
        match self {
            Algorithm::SivCmac256 | Algorithm::SivCmac384 | Algorithm::SivCmac512 => {
                match sealed.split_first_chunk_mut() {
                    Some((tag, text)) => Some((text, tag)),
                    None => None,
                }
            }
            Algorithm::Aes128GcmSiv => sealed.split_last_chunk_mut(),
        }
    }
}

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
    expanded: Option<lanes::SivKey>,
}

impl CachedKey {
    /// Expands `octets`.
    #[must_use]
    pub fn new(octets: &[u8; 32]) -> Self {
        let key = Key::new(Algorithm::SivCmac256, octets).expect("32 octets are a SIV-CMAC-256 key");
        CachedKey { expanded: lanes::SivKey::expand(&key), key }
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
    expanded: Option<&'a lanes::SivKey>,
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
    #[inline(always)]
    pub(crate) fn parts(self) -> (Algorithm, &'a [u8], Option<&'a lanes::SivKey>) {
        (self.algorithm, self.octets, self.expanded)
    }

    fn first<const N: usize>(self) -> &'a [u8; N] {
        self.octets.first_chunk().expect("a key has as many octets as its algorithm's keys")
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

/// A text in memory: where it is read, and where it is written, in the same place or apart. Any `&mut [u8]` is one.
pub type Text<'a> = InOutBuf<'a, 'a, u8>;

/// One text to encrypt.
pub struct Seal<'a> {
    /// The key.
    pub key: KeyRef<'a>,
    /// The nonce, of a size that [`Algorithm::accepts_nonce`]; never used twice with a key under GCM-SIV, if possible.
    pub nonce: &'a [u8],
    /// Associated data. For SIV, absent and empty differ: an absent one is no component of S2V. RFC 5297 section 2.4.
    pub associated: Option<&'a [u8]>,
    /// Plaintext in, ciphertext out.
    pub text: Text<'a>,
    /// The tag, out.
    pub tag: &'a mut [u8; TAG_SIZE],
}

/// One text to verify and decrypt.
pub struct Open<'a> {
    /// The key.
    pub key: KeyRef<'a>,
    /// The nonce; one of a size that the algorithm does not accept makes the job fail.
    pub nonce: &'a [u8],
    /// Associated data, as in [`Seal::associated`].
    pub associated: Option<&'a [u8]>,
    /// Ciphertext in; plaintext out, or zeros if the job failed.
    pub text: Text<'a>,
    /// The tag that came with the text.
    pub tag: &'a [u8; TAG_SIZE],
    /// Out: whether text, associated data, nonce and key belong together.
    pub genuine: &'a mut bool,
}

/// Texts to encrypt. They run in groups while they are added, and all of them have run when [`SealBatch::run`] returns;
/// a batch that is dropped before leaves some texts as they were.
///
/// Jobs do not affect one another.
pub struct SealBatch<'a> {
    path: Path,
    /// Stays empty where there are no lanes.
    queue: lanes::SealQueue<'a>,
}

impl<'a> SealBatch<'a> {
    /// No jobs yet, on the path of this process.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        SealBatch::on(lanes::path())
    }

    /// The same on a given path, for tests and benchmarks.
    ///
    /// # Panics
    /// When jobs run, if the processor lacks what the path needs.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn on(path: Path) -> Self {
        SealBatch { path, queue: lanes::SealQueue::new(path) }
    }

    /// Adds a job.
    ///
    /// # Panics
    /// If its nonce has a size that its algorithm does not accept.
    // Inlined, so that the parts of a job need not go through memory.
    #[inline(always)]
    pub fn push(&mut self, job: Seal<'a>) {
        let is_accepted = job.key.algorithm.accepts_nonce(job.nonce.len());
        assert!(is_accepted, "nonces are made to the algorithm's size");
        match self.path {
            Path::Portable => seal_one(job),
            Path::Vaes512 | Path::Vaes256 | Path::AesNi => self.queue.push(job),
        }
    }

    /// Encrypts every text that was added and writes its tag.
    #[inline(always)]
    pub fn run(&mut self) {
        self.queue.flush();
    }
}

impl Default for SealBatch<'_> {
    fn default() -> Self {
        SealBatch::new()
    }
}

/// Texts to verify and decrypt, otherwise as [`SealBatch`].
pub struct OpenBatch<'a> {
    path: Path,
    /// Stays empty where there are no lanes.
    queue: lanes::OpenQueue<'a>,
}

impl<'a> OpenBatch<'a> {
    /// No jobs yet, on the path of this process.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        OpenBatch::on(lanes::path())
    }

    /// The same on a given path, for tests and benchmarks.
    ///
    /// # Panics
    /// When jobs run, if the processor lacks what the path needs.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn on(path: Path) -> Self {
        OpenBatch { path, queue: lanes::OpenQueue::new(path) }
    }

    /// Adds a job.
    #[inline(always)]
    pub fn push(&mut self, job: Open<'a>) {
        if !job.key.algorithm.accepts_nonce(job.nonce.len()) {
            job.text.into_out().fill(0);
            *job.genuine = false;
            return;
        }
        match self.path {
            Path::Portable => open_one(job),
            Path::Vaes512 | Path::Vaes256 | Path::AesNi => self.queue.push(job),
        }
    }

    /// Verifies and decrypts every text that was added, and sets its `genuine`.
    #[inline(always)]
    pub fn run(&mut self) {
        self.queue.flush();
    }
}

impl Default for OpenBatch<'_> {
    fn default() -> Self {
        OpenBatch::new()
    }
}

/// Encrypts each job's text and writes its tag.
///
/// # Panics
/// As [`SealBatch::push`].
#[inline]
pub fn seal_batch<'a>(jobs: impl Iterator<Item = Seal<'a>>) {
    seal_batch_on(lanes::path(), jobs);
}

/// [`seal_batch`] on a given path, for tests and benchmarks.
///
/// # Panics
/// As [`seal_batch`], and if the processor lacks what the path needs.
#[doc(hidden)]
#[inline]
pub fn seal_batch_on<'a>(path: Path, jobs: impl Iterator<Item = Seal<'a>>) {
    let mut batch = SealBatch::on(path);
    jobs.for_each(|job| batch.push(job));
    batch.run();
}

/// Verifies and decrypts each job's text and sets its `genuine`.
#[inline]
pub fn open_batch<'a>(jobs: impl Iterator<Item = Open<'a>>) {
    open_batch_on(lanes::path(), jobs);
}

/// [`open_batch`] on a given path, for tests and benchmarks.
///
/// # Panics
/// If the processor lacks what the path needs.
#[doc(hidden)]
#[inline]
pub fn open_batch_on<'a>(path: Path, jobs: impl Iterator<Item = Open<'a>>) {
    let mut batch = OpenBatch::on(path);
    jobs.for_each(|job| batch.push(job));
    batch.run();
}

fn seal_one(job: Seal<'_>) {
    let key = job.key;
    let headers = job.associated.into_iter().chain([job.nonce]);
    let text = job.text;
    // None of these can fail: a packet is far shorter than any limit, and there are at most two headers.
    const INFALLIBLE: &str = "a packet is within every limit of the algorithm";
    let tag: [u8; TAG_SIZE] = match key.algorithm {
        Algorithm::SivCmac256 => CmacSiv::<Aes128>::new(key.first::<32>().into())
            .encrypt_inout_detached(headers, text)
            .expect(INFALLIBLE)
            .into(),
        Algorithm::SivCmac384 => CmacSiv::<Aes192>::new(key.first::<48>().into())
            .encrypt_inout_detached(headers, text)
            .expect(INFALLIBLE)
            .into(),
        Algorithm::SivCmac512 => CmacSiv::<Aes256>::new(key.first::<64>().into())
            .encrypt_inout_detached(headers, text)
            .expect(INFALLIBLE)
            .into(),
        Algorithm::Aes128GcmSiv => Aes128GcmSiv::new(key.first::<16>().into())
            .encrypt_inout_detached(
                job.nonce.try_into().expect("the size was checked"),
                job.associated.unwrap_or_default(),
                text,
            )
            .expect(INFALLIBLE)
            .into(),
    };
    *job.tag = tag;
}

fn open_one(mut job: Open<'_>) {
    let key = job.key;
    let headers = job.associated.into_iter().chain([job.nonce]);
    let text = job.text.reborrow();
    let tag = &(*job.tag).into();
    *job.genuine = match key.algorithm {
        Algorithm::SivCmac256 => {
            CmacSiv::<Aes128>::new(key.first::<32>().into()).decrypt_inout_detached(headers, text, tag)
        }
        Algorithm::SivCmac384 => {
            CmacSiv::<Aes192>::new(key.first::<48>().into()).decrypt_inout_detached(headers, text, tag)
        }
        Algorithm::SivCmac512 => {
            CmacSiv::<Aes256>::new(key.first::<64>().into()).decrypt_inout_detached(headers, text, tag)
        }
        Algorithm::Aes128GcmSiv => Aes128GcmSiv::new(key.first::<16>().into()).decrypt_inout_detached(
            job.nonce.try_into().expect("the size was checked"),
            job.associated.unwrap_or_default(),
            text,
            tag,
        ),
    }
    .is_ok();
    if !*job.genuine {
        job.text.into_out().fill(0);
    }
}

#[cfg(test)]
mod tests;
