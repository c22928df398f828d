//! Texts that wait for others of their shape, to be sealed or opened together.

use std::ptr;

use super::group::{Groups, Work};
use super::siv::SivKey;
use crate::{Algorithm, KeyRef, Open, Path, Seal, TAG_SIZE, Text};

/// What decides which instructions a job takes. All of it is public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct AeadShape {
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
pub(super) struct AeadJob {
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
pub(super) enum AeadVerb {
    Seal,
    Open,
}

impl Work for (Path, AeadVerb) {
    type Shape = AeadShape;
    type Job = AeadJob;
    const START: AeadShape = AeadShape {
        algorithm: Algorithm::SivCmac256,
        kept: ptr::null(),
        nonce: 0,
        associated: None,
        text: 0,
    };

    #[inline(always)]
    unsafe fn run(self, shape: &AeadShape, jobs: &[AeadJob]) {
        // SAFETY: as promised to this function.
        unsafe { super::entry::run(self.0, self.1, shape, jobs) };
    }
}

/// What every job of an AEAD has.
type Parts<'a> = (KeyRef<'a>, &'a [u8], Option<&'a [u8]>, Text<'a>);

impl<'a> Groups<'a, (Path, AeadVerb)> {
    /// Adds a job of key, nonce, associated data and text.
    #[inline(always)]
    fn push_parts(
        &mut self,
        (key, nonce, associated, mut text): Parts<'a>,
        tag: *mut [u8; TAG_SIZE],
        genuine: *mut bool,
    ) {
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
        self.push(shape, AeadJob { key: key.as_ptr(), parts, tag, genuine });
    }
}

/// Texts that wait to be sealed.
pub struct SealQueue<'a>(Groups<'a, (Path, AeadVerb)>);

impl<'a> SealQueue<'a> {
    /// No jobs yet.
    #[inline(always)]
    #[must_use]
    pub fn new(path: Path) -> Self {
        SealQueue(Groups::new((path, AeadVerb::Seal)))
    }

    /// Adds a job; runs its group when that is full.
    ///
    /// # Panics
    /// If its nonce has a size that its algorithm does not accept; when a group runs, if the path has no lanes or the
    /// processor lacks what it needs.
    #[inline(always)]
    pub fn push(&mut self, job: Seal<'a>) {
        let Seal { key, nonce, associated, text, tag } = job;
        self.0.push_parts((key, nonce, associated, text), tag, ptr::null_mut());
    }

    /// Runs what waits.
    ///
    /// # Panics
    /// As [`SealQueue::push`], when a group runs.
    #[inline(always)]
    pub fn flush(&mut self) {
        self.0.flush();
    }
}

/// Texts that wait to be opened.
pub struct OpenQueue<'a>(Groups<'a, (Path, AeadVerb)>);

impl<'a> OpenQueue<'a> {
    /// No jobs yet.
    #[inline(always)]
    #[must_use]
    pub fn new(path: Path) -> Self {
        OpenQueue(Groups::new((path, AeadVerb::Open)))
    }

    /// As [`SealQueue::push`].
    ///
    /// # Panics
    /// As [`SealQueue::push`].
    #[inline(always)]
    pub fn push(&mut self, job: Open<'a>) {
        let Open { key, nonce, associated, text, tag, genuine } = job;
        self.0.push_parts((key, nonce, associated, text), ptr::from_ref(tag).cast_mut(), genuine);
    }

    /// Runs what waits.
    ///
    /// # Panics
    /// As [`SealQueue::push`], when a group runs.
    #[inline(always)]
    pub fn flush(&mut self) {
        self.0.flush();
    }
}
