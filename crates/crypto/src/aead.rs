//! AEAD algorithms of NTS, run over batches of independent jobs.
//!
//! The unit of work is a batch: [`SealBatch`] and [`OpenBatch`] take any number of jobs with different keys and
//! lengths, sort them by algorithm and run them side by side where the processor has AES instructions. On every other
//! processor they go through the RustCrypto crates, one at a time.

use aes::{Aes128, Aes192, Aes256};
use aes_gcm_siv::Aes128GcmSiv;
use aes_gcm_siv::aead::{AeadInOut, KeyInit};
use aes_siv::siv::CmacSiv;
pub use authentick_lanes::{Algorithm, CachedKey, Key, KeyRef, Open, Seal, TAG_SIZE, Text};
use authentick_lanes::{OpenQueue, Path, SealQueue, path};

/// Texts to encrypt. They run in groups while they are added, and all of them have run when [`SealBatch::run`] returns;
/// a batch that is dropped before leaves some texts as they were.
///
/// Jobs do not affect one another.
pub struct SealBatch<'a> {
    path: Path,
    /// Stays empty where there are no lanes.
    queue: SealQueue<'a>,
}

impl<'a> SealBatch<'a> {
    /// No jobs yet, on the path of this process.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        SealBatch::on(path())
    }

    /// The same on a given path, for tests and benchmarks.
    ///
    /// # Panics
    /// When jobs run, if the processor lacks what the path needs.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn on(path: Path) -> Self {
        SealBatch { path, queue: SealQueue::new(path) }
    }

    /// Adds a job.
    ///
    /// # Panics
    /// If its nonce has a size that its algorithm does not accept.
    // Inlined, so that the parts of a job need not go through memory.
    #[inline(always)]
    pub fn push(&mut self, job: Seal<'a>) {
        let is_accepted = job.key.algorithm().accepts_nonce(job.nonce.len());
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
    queue: OpenQueue<'a>,
}

impl<'a> OpenBatch<'a> {
    /// No jobs yet, on the path of this process.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        OpenBatch::on(path())
    }

    /// The same on a given path, for tests and benchmarks.
    ///
    /// # Panics
    /// When jobs run, if the processor lacks what the path needs.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn on(path: Path) -> Self {
        OpenBatch { path, queue: OpenQueue::new(path) }
    }

    /// Adds a job.
    #[inline(always)]
    pub fn push(&mut self, job: Open<'a>) {
        if !job.key.algorithm().accepts_nonce(job.nonce.len()) {
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
    seal_batch_on(path(), jobs);
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
    open_batch_on(path(), jobs);
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

/// The octets of a key.
fn first<const N: usize>(key: KeyRef<'_>) -> &[u8; N] {
    key.expose().first_chunk().expect("a key has as many octets as its algorithm's keys")
}

fn seal_one(job: Seal<'_>) {
    let key = job.key;
    let headers = job.associated.into_iter().chain([job.nonce]);
    let text = job.text;
    // None of these can fail: a packet is far shorter than any limit, and there are at most two headers.
    const INFALLIBLE: &str = "a packet is within every limit of the algorithm";
    let tag: [u8; TAG_SIZE] = match key.algorithm() {
        Algorithm::SivCmac256 => CmacSiv::<Aes128>::new(first::<32>(key).into())
            .encrypt_inout_detached(headers, text)
            .expect(INFALLIBLE)
            .into(),
        Algorithm::SivCmac384 => CmacSiv::<Aes192>::new(first::<48>(key).into())
            .encrypt_inout_detached(headers, text)
            .expect(INFALLIBLE)
            .into(),
        Algorithm::SivCmac512 => CmacSiv::<Aes256>::new(first::<64>(key).into())
            .encrypt_inout_detached(headers, text)
            .expect(INFALLIBLE)
            .into(),
        Algorithm::Aes128GcmSiv => Aes128GcmSiv::new(first::<16>(key).into())
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
    *job.genuine = match key.algorithm() {
        Algorithm::SivCmac256 => {
            CmacSiv::<Aes128>::new(first::<32>(key).into()).decrypt_inout_detached(headers, text, tag)
        }
        Algorithm::SivCmac384 => {
            CmacSiv::<Aes192>::new(first::<48>(key).into()).decrypt_inout_detached(headers, text, tag)
        }
        Algorithm::SivCmac512 => {
            CmacSiv::<Aes256>::new(first::<64>(key).into()).decrypt_inout_detached(headers, text, tag)
        }
        Algorithm::Aes128GcmSiv => Aes128GcmSiv::new(first::<16>(key).into()).decrypt_inout_detached(
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
