//! Texts that wait for others of their shape, to be sealed or opened together.

use std::ptr;

use super::entry::choose;
use super::gcm_siv::GcmSiv;
use super::group::{LaneJob, Work};
use super::siv::{Siv, SivKey, SivUnder};
use crate::{Algorithm, KeyRef, Open, Path, Seal, TAG_SIZE, Text};

/// What decides which instructions a job takes. All of it is public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AeadShape {
    pub(super) algorithm: Algorithm,
    /// The kept key that all jobs are under; null if each has its own, to be expanded.
    pub(super) kept: *const SivKey,
    /// Octets of the nonce.
    pub(super) nonce: usize,
    /// Octets of the associated data; `None` is not the same as none.
    pub(super) associated: Option<usize>,
    /// Octets of the text.
    pub(super) text: usize,
}

/// Where the parts of one job lie.
#[derive(Clone, Copy)]
pub struct AeadJob {
    /// As many octets as the algorithm's key has. Not read under a kept key.
    pub(super) key: *const u8,
    /// By their numbers, as the same code reads a text where it comes from or where it goes to.
    pub(super) parts: [*const u8; 4],
    /// The tag: written when sealing, else only read.
    pub(super) tag: *mut [u8; TAG_SIZE],
    /// Written when opening, else null.
    pub(super) genuine: *mut bool,
}

/// The number of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Associated,
    Nonce,
    /// Where the text is read; equal to `Text`, or apart from it.
    Source,
    /// Where the text is written.
    Text,
}

impl AeadJob {
    #[inline(always)]
    pub(super) const fn part(&self, part: Part) -> *const u8 {
        self.parts[part as usize]
    }

    #[inline(always)]
    pub(super) const fn text(&self) -> *mut u8 {
        self.part(Part::Text).cast_mut()
    }
}

/// What is done to the jobs of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AeadVerb {
    Seal,
    Open,
}

/// AEADs.
pub enum Aead {}

impl Work for Aead {
    type Path = Path;
    type Verb = AeadVerb;
    type Shape = AeadShape;
    type Job = AeadJob;
    const START: AeadShape = AeadShape {
        algorithm: Algorithm::SivCmac256,
        kept: ptr::null(),
        nonce: 0,
        associated: None,
        text: 0,
    };

    #[inline(never)]
    unsafe fn run(path: Path, verb: AeadVerb, shape: &AeadShape, jobs: &[AeadJob]) {
        let run = match (shape.kept.is_null(), shape.algorithm) {
            (false, _) => choose::<SivUnder>(path, jobs.len()),
            (true, Algorithm::SivCmac256) => choose::<Siv<4>>(path, jobs.len()),
            (true, Algorithm::SivCmac384) => choose::<Siv<6>>(path, jobs.len()),
            (true, Algorithm::SivCmac512) => choose::<Siv<8>>(path, jobs.len()),
            (true, Algorithm::Aes128GcmSiv) => choose::<GcmSiv>(path, jobs.len()),
        };
        // SAFETY: as promised to this function; a kept key lives as long as the jobs.
        unsafe { run(verb, shape, jobs) };
    }
}

/// Shape and places of a job of key, nonce, associated data and text.
#[inline(always)]
fn job(
    (key, nonce, associated, mut text): (KeyRef<'_>, &[u8], Option<&[u8]>, Text<'_>),
    tag: *mut [u8; TAG_SIZE],
    genuine: *mut bool,
) -> (AeadShape, AeadJob) {
    let (algorithm, key, kept) = key.parts();
    assert!(algorithm.accepts_nonce(nonce.len()), "nonces are made to the algorithm's size");
    let shape = AeadShape {
        algorithm,
        kept: kept.map_or(ptr::null(), ptr::from_ref),
        nonce: nonce.len(),
        associated: associated.map(<[u8]>::len),
        text: text.len(),
    };
    let (source, text) = (text.get_in().as_ptr(), text.get_out().as_mut_ptr());
    let associated = associated.unwrap_or_default().as_ptr();
    let parts = [associated, nonce.as_ptr(), source, text.cast_const()];
    (shape, AeadJob { key: key.as_ptr(), parts, tag, genuine })
}

// SAFETY: the job borrows its parts.
unsafe impl LaneJob for Seal<'_> {
    type Path = Path;
    type Work = Aead;
    const VERB: AeadVerb = AeadVerb::Seal;

    #[inline(always)]
    fn sort(self) -> (AeadShape, AeadJob) {
        let Seal { key, nonce, associated, text, tag } = self;
        job((key, nonce, associated, text), tag, ptr::null_mut())
    }
}

// SAFETY: the job borrows its parts.
unsafe impl LaneJob for Open<'_> {
    type Path = Path;
    type Work = Aead;
    const VERB: AeadVerb = AeadVerb::Open;

    #[inline(always)]
    fn sort(self) -> (AeadShape, AeadJob) {
        let Open { key, nonce, associated, text, tag, genuine } = self;
        job((key, nonce, associated, text), ptr::from_ref(tag).cast_mut(), genuine)
    }
}
