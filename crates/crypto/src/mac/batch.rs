//! Packets whose MACs are computed or verified together.

use authentick_lanes::{self as lanes, HashPath, HmacKey, HmacText, LaneJob, Path, Queue};
use subtle::ConstantTimeEq;

use super::MacKey;
use crate::batch::{Batch, Job, JobQueue};
use crate::verdict;

#[cfg(doc)]
use super::{MAC_TAG_SIZE_MIN, MacAlgorithm};

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

/// Tags to compute.
pub type TagBatch<'a> = Batch<Tag<'a>>;

/// Tags to verify.
pub type VerifyBatch<'a> = Batch<Verify<'a>>;

impl<'a> Job for Tag<'a> {
    type Queue = MacQueue<'a, Self>;

    #[inline(always)]
    fn push(self, path: Path, queue: &mut MacQueue<'a, Self>) {
        let algorithm = self.key.algorithm;
        assert!(algorithm.accepts_nonce(self.nonce), "nonces are made to the algorithm's size");
        assert!(algorithm.accepts_tag(self.tag.len()), "tags are made to the algorithm's size, or truncated");
        queue.push(path, self);
    }
}

impl<'a> Job for Verify<'a> {
    type Queue = MacQueue<'a, Self>;

    #[inline(always)]
    fn push(self, path: Path, queue: &mut MacQueue<'a, Self>) {
        let algorithm = self.key.algorithm;
        if !algorithm.accepts_nonce(self.nonce) || !algorithm.accepts_tag(self.tag.len()) {
            *self.genuine = false;
            return;
        }
        queue.push(path, self);
    }
}

/// A job whose parts have the sizes that its algorithm asks for.
pub trait MacJob<'a>: Sized {
    /// The same for the lanes of AES.
    type Aes: LaneJob<Path = Path>;
    /// The same for the lanes of hashes.
    type Hash: LaneJob<Path = HashPath>;

    /// The key, and what is or was authenticated.
    fn parts(&self) -> (&'a MacKey, &'a [u8]);

    /// The job under its key as the lanes of AES have it.
    fn for_aes(self, key: &'a lanes::MacKey) -> Self::Aes;

    /// The job under its key as the lanes of hashes have it.
    fn for_hash(self, key: HmacKey<'a>) -> Self::Hash;

    /// Runs the job without lanes.
    fn run_alone(self);
}

impl<'a> MacJob<'a> for Tag<'a> {
    type Aes = lanes::MacTag<'a>;
    type Hash = lanes::HmacTag<'a>;

    #[inline(always)]
    fn parts(&self) -> (&'a MacKey, &'a [u8]) {
        (self.key, self.message)
    }

    #[inline(always)]
    fn for_aes(self, key: &'a lanes::MacKey) -> Self::Aes {
        let tag = self.tag.first_chunk_mut().expect("lanes have tags of sixteen octets");
        lanes::MacTag { key, nonce: self.nonce.unwrap_or_default(), message: self.message, tag }
    }

    #[inline(always)]
    fn for_hash(self, key: HmacKey<'a>) -> Self::Hash {
        lanes::HmacTag { key, text: HmacText::Whole(self.message), tag: self.tag }
    }

    #[inline(never)]
    fn run_alone(self) {
        let whole = self.key.compute(self.nonce, self.message);
        self.tag.copy_from_slice(&whole[..self.tag.len()]);
    }
}

impl<'a> MacJob<'a> for Verify<'a> {
    type Aes = lanes::MacVerify<'a>;
    type Hash = lanes::HmacVerify<'a>;

    #[inline(always)]
    fn parts(&self) -> (&'a MacKey, &'a [u8]) {
        (self.key, self.message)
    }

    #[inline(always)]
    fn for_aes(self, key: &'a lanes::MacKey) -> Self::Aes {
        let Verify { nonce, message, tag, genuine, .. } = self;
        let tag = tag.first_chunk().expect("lanes have tags of sixteen octets");
        lanes::MacVerify { key, nonce: nonce.unwrap_or_default(), message, tag, genuine }
    }

    #[inline(always)]
    fn for_hash(self, key: HmacKey<'a>) -> Self::Hash {
        let Verify { message, tag, genuine, .. } = self;
        lanes::HmacVerify { key, text: HmacText::Whole(message), tag, genuine }
    }

    #[inline(never)]
    fn run_alone(self) {
        let whole = self.key.compute(self.nonce, self.message);
        *self.genuine = is_equal(&whole[..self.tag.len()], self.tag);
    }
}

/// Jobs of MACs that wait for others like them.
pub struct MacQueue<'a, J: MacJob<'a>> {
    aes: Queue<J::Aes>,
    hash_path: HashPath,
    /// The first hash waits for a second: alone it is computed sooner by itself.
    first_hash: Option<J>,
    /// Made by the second, as its room would be copied with every batch.
    hashes: Option<Queue<J::Hash>>,
}

impl<'a, J: MacJob<'a>> MacQueue<'a, J> {
    #[inline(always)]
    fn push(&mut self, path: Path, job: J) {
        let (key, message) = job.parts();
        if let Some(key) = key.kept_on(path) {
            self.aes.push(job.for_aes(key));
        } else if key.hashed_on(self.hash_path, message.len()).is_some() {
            self.push_hash(job);
        } else {
            job.run_alone();
        }
    }

    fn push_hash(&mut self, job: J) {
        let jobs = match (&self.hashes, self.first_hash.take()) {
            (None, None) => return self.first_hash = Some(job),
            (_, first) => first.into_iter().chain([job]),
        };
        let hashes = self.hashes.get_or_insert_with(|| Queue::new(self.hash_path));
        for job in jobs {
            let (key, message) = job.parts();
            let key = key.hashed_on(self.hash_path, message.len());
            hashes.push(job.for_hash(key.expect("only keys that are hashed in lanes come here")));
        }
    }
}

impl<'a, J: MacJob<'a>> JobQueue for MacQueue<'a, J> {
    type Path = Path;

    #[inline(always)]
    fn new(path: Path) -> Self {
        assert!(path == lanes::path() || path.is_available(), "this processor has no {path}");
        MacQueue { aes: Queue::new(path), hash_path: HashPath::beside(path), first_hash: None, hashes: None }
    }

    #[inline(always)]
    fn flush(&mut self) {
        self.aes.flush();
        if let Some(job) = self.first_hash.take() {
            job.run_alone();
        }
        if let Some(hashes) = &mut self.hashes {
            hashes.flush();
        }
    }
}

/// Compares tags of one size in a time that does not depend on where they differ.
fn is_equal(computed: &[u8], claimed: &[u8]) -> bool {
    let difference = computed.iter().zip(claimed).fold(0, |sum, (a, b)| sum | (a ^ b));
    verdict::of(difference.ct_eq(&0))
}
