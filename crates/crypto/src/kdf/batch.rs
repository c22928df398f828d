//! HMAC-SHA256 of many texts at once.

use authentick_lanes::{
    HashPath, HmacKey, HmacTagQueue, HmacText, HmacVerifyQueue, LANE_TEXT_SIZE_MAX, hash_path,
};

use super::{HASH_SIZE, hmac_sha256, verify_hmac_sha256};

/// Octets of the longest key that HMAC takes as it is.
const KEY_SIZE_MAX: usize = 64;

/// One tag to compute.
pub struct HmacTag<'a> {
    /// The key, of any size.
    pub key: &'a [u8],
    /// What is authenticated: these, one behind the other.
    pub parts: &'a [&'a [u8]],
    /// The tag, out.
    pub tag: &'a mut [u8; HASH_SIZE],
}

/// One tag to verify.
pub struct HmacVerify<'a> {
    /// The key, of any size.
    pub key: &'a [u8],
    /// What was authenticated: these, one behind the other.
    pub parts: &'a [&'a [u8]],
    /// The tag that came with it.
    pub tag: &'a [u8; HASH_SIZE],
    /// Out: whether tag, text and key belong together.
    pub genuine: &'a mut bool,
}

/// Whether a job shares lanes with others. What does not is rare, and takes its turn alone.
#[inline(always)]
fn has_lanes(path: HashPath, key: &[u8], parts: &[&[u8]]) -> bool {
    let is_short = || key.len() <= KEY_SIZE_MAX && HmacText::Parts(parts).size() <= LANE_TEXT_SIZE_MAX;
    path != HashPath::Portable && is_short()
}

/// Tags of HMAC-SHA256 to compute. Jobs run in groups while they are added, and all of them have run when
/// [`HmacTagBatch::run`] returns; a batch that is dropped before leaves some tags as they were.
///
/// Jobs do not affect one another. Sizes of texts and keys may differ; those of equal size in blocks run side by side.
pub struct HmacTagBatch<'a> {
    path: HashPath,
    /// Stays empty where there are no lanes.
    queue: HmacTagQueue<'a>,
}

impl<'a> HmacTagBatch<'a> {
    /// No jobs yet, on the path of this process.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        HmacTagBatch::on(hash_path())
    }

    /// The same on a given path, for tests and benchmarks.
    ///
    /// # Panics
    /// When jobs run, if the processor lacks what the path needs.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn on(path: HashPath) -> Self {
        HmacTagBatch { path, queue: HmacTagQueue::new(path) }
    }

    /// Adds a job.
    #[inline(always)]
    pub fn push(&mut self, job: HmacTag<'a>) {
        let HmacTag { key, parts, tag } = job;
        match has_lanes(self.path, key, parts) {
            true => self.queue.push(HmacKey::Octets(key), HmacText::Parts(parts), tag),
            false => *tag = hmac_sha256(key, parts),
        }
    }

    /// Writes every tag that was added.
    #[inline(always)]
    pub fn run(&mut self) {
        self.queue.flush();
    }
}

impl Default for HmacTagBatch<'_> {
    fn default() -> Self {
        HmacTagBatch::new()
    }
}

/// Tags of HMAC-SHA256 to verify, otherwise as [`HmacTagBatch`].
pub struct HmacVerifyBatch<'a> {
    path: HashPath,
    /// Stays empty where there are no lanes.
    queue: HmacVerifyQueue<'a>,
}

impl<'a> HmacVerifyBatch<'a> {
    /// No jobs yet, on the path of this process.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        HmacVerifyBatch::on(hash_path())
    }

    /// The same on a given path, for tests and benchmarks.
    ///
    /// # Panics
    /// When jobs run, if the processor lacks what the path needs.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn on(path: HashPath) -> Self {
        HmacVerifyBatch { path, queue: HmacVerifyQueue::new(path) }
    }

    /// Adds a job.
    #[inline(always)]
    pub fn push(&mut self, job: HmacVerify<'a>) {
        let HmacVerify { key, parts, tag, genuine } = job;
        match has_lanes(self.path, key, parts) {
            true => self.queue.push(HmacKey::Octets(key), HmacText::Parts(parts), tag, genuine),
            false => *genuine = verify_hmac_sha256(key, parts, tag),
        }
    }

    /// Verifies every tag that was added, and sets its `genuine`.
    #[inline(always)]
    pub fn run(&mut self) {
        self.queue.flush();
    }
}

impl Default for HmacVerifyBatch<'_> {
    fn default() -> Self {
        HmacVerifyBatch::new()
    }
}
