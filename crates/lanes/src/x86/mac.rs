//! Packets that wait for others of their shape, to compute or to verify their MACs together.

use std::ptr;

use super::entry::{choose, expand_mac};
use super::group::{LaneJob, Work};
use super::kept::KeptKey;
use super::tag::{Cmac, Gmac, GmacSiv};
use crate::{Mac, MacTag, MacVerify, Path, TAG_SIZE};

/// What decides which instructions a job takes. All of it is public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MacShape {
    pub(super) mac: Mac,
    /// Octets of the message.
    pub(super) size: usize,
}

/// Where the parts of one job lie.
#[derive(Clone, Copy)]
pub struct MacJob {
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
pub enum MacVerb {
    Tag,
    Verify,
}

/// CMAC, GMAC and GMAC-SIV.
pub enum Macs {}

impl Work for Macs {
    type Path = Path;
    type Verb = MacVerb;
    type Shape = MacShape;
    type Job = MacJob;
    const START: MacShape = MacShape { mac: Mac::Cmac128, size: 0 };

    #[inline(never)]
    unsafe fn run(path: Path, verb: MacVerb, shape: &MacShape, jobs: &[MacJob]) {
        let run = match shape.mac {
            Mac::Cmac128 => choose::<Cmac<4>>(path, jobs.len()),
            Mac::Cmac256 => choose::<Cmac<8>>(path, jobs.len()),
            Mac::Gmac128 => choose::<Gmac>(path, jobs.len()),
            Mac::GmacSiv128 => choose::<GmacSiv>(path, jobs.len()),
        };
        // SAFETY: as promised to this function; keys live as long as the jobs.
        unsafe { run(verb, shape, jobs) };
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
        Some(MacKey { mac, expanded: Box::new(expand_mac(mac, octets)?) })
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

// SAFETY: the job borrows its parts.
unsafe impl LaneJob for MacTag<'_> {
    type Path = Path;
    type Work = Macs;
    const VERB: MacVerb = MacVerb::Tag;

    #[inline(always)]
    fn sort(self) -> (MacShape, MacJob) {
        job(self.key, self.nonce, self.message, self.tag, ptr::null_mut())
    }
}

// SAFETY: the job borrows its parts.
unsafe impl LaneJob for MacVerify<'_> {
    type Path = Path;
    type Work = Macs;
    const VERB: MacVerb = MacVerb::Verify;

    #[inline(always)]
    fn sort(self) -> (MacShape, MacJob) {
        job(self.key, self.nonce, self.message, ptr::from_ref(self.tag).cast_mut(), self.genuine)
    }
}
