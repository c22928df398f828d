//! Packets that wait for others of their shape, to compute or to verify their MACs together.

use std::ptr;

use super::entry;
use super::group::{Groups, Work};
use super::kept::KeptKey;
use crate::{Mac, Path, TAG_SIZE};

/// What decides which instructions a job takes. All of it is public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct MacShape {
    pub(super) mac: Mac,
    /// Octets of the message.
    pub(super) size: usize,
}

/// Where the parts of one job lie.
#[derive(Clone, Copy)]
pub(super) struct MacJob {
    pub(super) key: *const KeptKey,
    /// As many octets as the algorithm's nonces have. Not read if it takes none.
    pub(super) nonce: *const u8,
    pub(super) message: *const u8,
    /// The tag: only read when verifying.
    pub(super) tag: *mut [u8; TAG_SIZE],
    /// Written when verifying, else null.
    pub(super) genuine: *mut bool,
}

/// What is done to the jobs of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MacVerb {
    Tag,
    Verify,
}

impl Work for (Path, MacVerb) {
    type Shape = MacShape;
    type Job = MacJob;
    const START: MacShape = MacShape { mac: Mac::Cmac128, size: 0 };

    #[inline(always)]
    unsafe fn run(self, shape: &MacShape, jobs: &[MacJob]) {
        // SAFETY: as promised to this function.
        unsafe { entry::mac::run(self.0, self.1, shape, jobs) };
    }
}

/// A key of a MAC that has lanes.
pub struct MacKey {
    mac: Mac,
    expanded: Box<KeptKey>,
}

impl MacKey {
    /// Expands a key; `None` if the processor has no lanes.
    ///
    /// # Panics
    /// If it has not the size that the algorithm's keys have.
    #[must_use]
    pub fn expand(mac: Mac, octets: &[u8]) -> Option<Self> {
        Some(MacKey { mac, expanded: Box::new(entry::mac::expand(mac, octets)?) })
    }

    #[inline(always)]
    pub(super) fn kept(&self) -> *const KeptKey {
        &raw const *self.expanded
    }
}

/// Shape and places of a job. The nonce is empty if the algorithm takes none.
#[inline(always)]
fn job(
    key: &MacKey,
    nonce: &[u8],
    message: &[u8],
    tag: *mut [u8; TAG_SIZE],
    genuine: *mut bool,
) -> (MacShape, MacJob) {
    assert!(nonce.len() == key.mac.nonce_size(), "nonces are made to the algorithm's size");
    let shape = MacShape { mac: key.mac, size: message.len() };
    (shape, MacJob { key: key.kept(), nonce: nonce.as_ptr(), message: message.as_ptr(), tag, genuine })
}

/// Tags that wait to be computed.
pub struct TagQueue<'a>(Groups<'a, (Path, MacVerb)>);

impl<'a> TagQueue<'a> {
    /// No jobs yet.
    #[inline(always)]
    #[must_use]
    pub fn new(path: Path) -> Self {
        TagQueue(Groups::new((path, MacVerb::Tag)))
    }

    /// Adds a job, whose nonce is empty if its algorithm takes none; runs its group when that is full.
    ///
    /// # Panics
    /// If the nonce has another size than the algorithm's; when a group runs, if the path has no lanes or the processor
    /// lacks what it needs.
    #[inline(always)]
    pub fn push(&mut self, key: &'a MacKey, nonce: &'a [u8], message: &'a [u8], tag: &'a mut [u8; TAG_SIZE]) {
        let (shape, job) = job(key, nonce, message, tag, ptr::null_mut());
        self.0.push(shape, job);
    }

    /// Runs what waits.
    ///
    /// # Panics
    /// As [`TagQueue::push`], when a group runs.
    #[inline(always)]
    pub fn flush(&mut self) {
        self.0.flush();
    }
}

/// Tags that wait to be verified.
pub struct VerifyQueue<'a>(Groups<'a, (Path, MacVerb)>);

impl<'a> VerifyQueue<'a> {
    /// No jobs yet.
    #[inline(always)]
    #[must_use]
    pub fn new(path: Path) -> Self {
        VerifyQueue(Groups::new((path, MacVerb::Verify)))
    }

    /// As [`TagQueue::push`].
    ///
    /// # Panics
    /// As [`TagQueue::push`].
    #[inline(always)]
    pub fn push(
        &mut self,
        key: &'a MacKey,
        nonce: &'a [u8],
        message: &'a [u8],
        tag: &'a [u8; TAG_SIZE],
        genuine: &'a mut bool,
    ) {
        let (shape, job) = job(key, nonce, message, ptr::from_ref(tag).cast_mut(), genuine);
        self.0.push(shape, job);
    }

    /// Runs what waits.
    ///
    /// # Panics
    /// As [`TagQueue::push`], when a group runs.
    #[inline(always)]
    pub fn flush(&mut self) {
        self.0.flush();
    }
}
