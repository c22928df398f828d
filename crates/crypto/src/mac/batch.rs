//! Packets whose MACs are computed or verified together.

use authentick_lanes::{self as lanes, HashPath, HmacText, Path};
use subtle::ConstantTimeEq;

use super::MacKey;

#[cfg(doc)]
use super::{MAC_TAG_SIZE_MIN, MacAlgorithm};

const HASHED: &str = "only keys that are hashed in lanes come here";

/// One tag to compute.
#[derive(Debug)]
pub struct Tag<'a> {
    /// The key.
    pub key: &'a MacKey,
    /// Exactly [`MacAlgorithm::nonce_size`] octets, or `None` for an algorithm that takes no nonce.
    pub nonce: Option<&'a [u8]>,
    /// What is authenticated.
    pub message: &'a [u8],
    /// The tag, out. If it is shorter than [`MacAlgorithm::tag_size`], these are the tag's first octets.
    pub tag: &'a mut [u8],
}

/// One tag to verify.
#[derive(Debug)]
pub struct Verify<'a> {
    /// The key.
    pub key: &'a MacKey,
    /// As in [`Tag::nonce`]; another size makes the job fail.
    pub nonce: Option<&'a [u8]>,
    /// What was authenticated.
    pub message: &'a [u8],
    /// The tag, or its first octets, that came with the message; one of less than [`MAC_TAG_SIZE_MIN`] or more than
    /// [`MacAlgorithm::tag_size`] makes the job fail.
    pub tag: &'a [u8],
    /// Out: whether tag, message, nonce and key belong together.
    pub genuine: &'a mut bool,
}

/// Tags to compute. Jobs run in groups while they are added, and all of them have run when [`TagBatch::run`] returns; a
/// batch that is dropped before leaves some tags as they were.
///
/// Jobs do not affect one another.
pub struct TagBatch<'a> {
    path: Path,
    // These stay empty where there are no lanes.
    queue: lanes::TagQueue<'a>,
    hash_path: HashPath,
    /// The first hash waits for a second: alone it is computed sooner by itself.
    first_hash: Option<Tag<'a>>,
    /// Made by the second, as its room would be copied with every batch.
    hashes: Option<lanes::HmacTagQueue<'a>>,
}

impl<'a> TagBatch<'a> {
    /// No jobs yet, on the path of this process.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        TagBatch::on(lanes::path())
    }

    #[inline(always)]
    fn on(path: Path) -> Self {
        let hash_path = HashPath::beside(path);
        TagBatch { path, queue: lanes::TagQueue::new(path), hash_path, first_hash: None, hashes: None }
    }

    /// Adds a job.
    ///
    /// # Panics
    /// If its nonce is not what its algorithm takes, or its tag has less than [`MAC_TAG_SIZE_MIN`] or more than
    /// [`MacAlgorithm::tag_size`] octets.
    #[inline(always)]
    pub fn push(&mut self, mut job: Tag<'a>) {
        let algorithm = job.key.algorithm;
        assert!(algorithm.accepts_nonce(job.nonce), "nonces are made to the algorithm's size");
        assert!(algorithm.accepts_tag(job.tag.len()), "tags are made to the algorithm's size, or truncated");
        if let Some(key) = job.key.kept_on(self.path) {
            let tag = job.tag.first_chunk_mut().expect("lanes have tags of sixteen octets");
            self.queue.push(key, job.nonce.unwrap_or_default(), job.message, tag);
        } else if job.key.hashed_on(self.hash_path, job.message.len()).is_some() {
            self.push_hash(job);
        } else {
            tag_one(&mut job);
        }
    }

    fn push_hash(&mut self, job: Tag<'a>) {
        let jobs = match (&self.hashes, self.first_hash.take()) {
            (None, None) => return self.first_hash = Some(job),
            (_, first) => first.into_iter().chain([job]),
        };
        let hashes = self.hashes.get_or_insert_with(|| lanes::HmacTagQueue::new(self.hash_path));
        for job in jobs {
            let key = job.key.hashed_on(self.hash_path, job.message.len());
            hashes.push(key.expect(HASHED), HmacText::Whole(job.message), job.tag);
        }
    }

    /// Writes every tag that was added.
    #[inline(always)]
    pub fn run(&mut self) {
        self.queue.flush();
        if let Some(mut job) = self.first_hash.take() {
            tag_one(&mut job);
        }
        if let Some(hashes) = &mut self.hashes {
            hashes.flush();
        }
    }
}

impl Default for TagBatch<'_> {
    fn default() -> Self {
        TagBatch::new()
    }
}

/// Tags to verify, otherwise as [`TagBatch`].
pub struct VerifyBatch<'a> {
    path: Path,
    // These stay empty where there are no lanes.
    queue: lanes::VerifyQueue<'a>,
    hash_path: HashPath,
    /// The first hash waits for a second: alone it is computed sooner by itself.
    first_hash: Option<Verify<'a>>,
    /// Made by the second, as its room would be copied with every batch.
    hashes: Option<lanes::HmacVerifyQueue<'a>>,
}

impl<'a> VerifyBatch<'a> {
    /// No jobs yet, on the path of this process.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        VerifyBatch::on(lanes::path())
    }

    #[inline(always)]
    fn on(path: Path) -> Self {
        let hash_path = HashPath::beside(path);
        VerifyBatch { path, queue: lanes::VerifyQueue::new(path), hash_path, first_hash: None, hashes: None }
    }

    /// Adds a job.
    #[inline(always)]
    pub fn push(&mut self, mut job: Verify<'a>) {
        let algorithm = job.key.algorithm;
        if !algorithm.accepts_nonce(job.nonce) || !algorithm.accepts_tag(job.tag.len()) {
            *job.genuine = false;
            return;
        }
        if let Some(key) = job.key.kept_on(self.path) {
            let tag = job.tag.first_chunk().expect("lanes have tags of sixteen octets");
            self.queue.push(key, job.nonce.unwrap_or_default(), job.message, tag, job.genuine);
        } else if job.key.hashed_on(self.hash_path, job.message.len()).is_some() {
            self.push_hash(job);
        } else {
            verify_one(&mut job);
        }
    }

    fn push_hash(&mut self, job: Verify<'a>) {
        let jobs = match (&self.hashes, self.first_hash.take()) {
            (None, None) => return self.first_hash = Some(job),
            (_, first) => first.into_iter().chain([job]),
        };
        let hashes = self.hashes.get_or_insert_with(|| lanes::HmacVerifyQueue::new(self.hash_path));
        for job in jobs {
            let key = job.key.hashed_on(self.hash_path, job.message.len());
            hashes.push(key.expect(HASHED), HmacText::Whole(job.message), job.tag, job.genuine);
        }
    }

    /// Verifies every tag that was added, and sets its `genuine`.
    #[inline(always)]
    pub fn run(&mut self) {
        self.queue.flush();
        if let Some(mut job) = self.first_hash.take() {
            verify_one(&mut job);
        }
        if let Some(hashes) = &mut self.hashes {
            hashes.flush();
        }
    }
}

impl Default for VerifyBatch<'_> {
    fn default() -> Self {
        VerifyBatch::new()
    }
}

/// Writes each job's tag.
///
/// # Panics
/// As [`TagBatch::push`].
#[inline]
pub fn tag_batch<'a>(jobs: impl Iterator<Item = Tag<'a>>) {
    tag_batch_on(lanes::path(), jobs);
}

/// [`tag_batch`] on a given path, for tests and benchmarks.
///
/// # Panics
/// As [`tag_batch`], and if the processor lacks what the path needs.
#[doc(hidden)]
#[inline]
pub fn tag_batch_on<'a>(path: Path, jobs: impl Iterator<Item = Tag<'a>>) {
    assert!(path == lanes::path() || path.is_available(), "this processor has no {path}");
    let mut batch = TagBatch::on(path);
    jobs.for_each(|job| batch.push(job));
    batch.run();
}

/// Verifies each job's tag and sets its `genuine`.
#[inline]
pub fn verify_batch<'a>(jobs: impl Iterator<Item = Verify<'a>>) {
    verify_batch_on(lanes::path(), jobs);
}

/// [`verify_batch`] on a given path, for tests and benchmarks.
///
/// # Panics
/// If the processor lacks what the path needs.
#[doc(hidden)]
#[inline]
pub fn verify_batch_on<'a>(path: Path, jobs: impl Iterator<Item = Verify<'a>>) {
    assert!(path == lanes::path() || path.is_available(), "this processor has no {path}");
    let mut batch = VerifyBatch::on(path);
    jobs.for_each(|job| batch.push(job));
    batch.run();
}

#[inline(never)]
fn tag_one(job: &mut Tag<'_>) {
    let whole = job.key.compute(job.nonce, job.message);
    job.tag.copy_from_slice(&whole[..job.tag.len()]);
}

#[inline(never)]
fn verify_one(job: &mut Verify<'_>) {
    *job.genuine = is_equal(&job.key.compute(job.nonce, job.message)[..job.tag.len()], job.tag);
}

/// Compares tags of one size in a time that does not depend on where they differ.
fn is_equal(computed: &[u8], claimed: &[u8]) -> bool {
    let difference = computed.iter().zip(claimed).fold(0, |sum, (a, b)| sum | (a ^ b));
    difference.ct_eq(&0).into()
}
