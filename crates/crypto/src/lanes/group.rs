//! Jobs that wait for others of their shape, to fill the lanes together. No allocation.
//!
//! Jobs share a step only if their sizes are equal. What then differs between lanes are addresses alone: no lane waits,
//! nothing is masked, and what follows from a size is computed once for all. Servers see few shapes. Where every job
//! has another one, each runs alone, which costs no more than it would without lanes.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use super::{Path, SivKey};
use crate::aead::{Algorithm, KeyRef, Open, Seal, TAG_SIZE, Text};

/// Jobs that run in one call: as many as the widest path has lanes.
pub(super) const JOBS_MAX: usize = 16;

/// Shapes that are collected at once: two algorithms, with and without something.
const GROUP_COUNT: usize = 4;

/// What decides which instructions a job takes. All of it is public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
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
pub(super) struct Lane {
    /// As many octets as the algorithm's key has. Not read under a kept key.
    pub(super) key: *const u8,
    pub(super) nonce: *const u8,
    pub(super) associated: *const u8,
    /// Where the text is read; equal to `text`, or apart from it.
    pub(super) source: *const u8,
    /// Where the text is written.
    pub(super) text: *mut u8,
    /// The tag: written when sealing, else only read.
    pub(super) tag: *mut [u8; TAG_SIZE],
    /// Written when opening, else null.
    pub(super) genuine: *mut bool,
}

/// What is done to the jobs of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Seal,
    Open,
}

/// A kind of jobs and the path that they take: what groups need to know of them.
pub(super) trait Work: Copy {
    /// What decides which instructions a job takes.
    type Shape: Copy + PartialEq;
    /// Where the parts of one job lie.
    type Lane: Copy;
    /// The shape of a group that has had no job.
    const START: Self::Shape;

    /// Runs jobs.
    ///
    /// # Safety
    /// The lanes are of jobs of this shape, which are borrowed by the caller.
    unsafe fn run(self, shape: &Self::Shape, lanes: &[Self::Lane]);
}

impl Work for (Path, Verb) {
    type Shape = Shape;
    type Lane = Lane;
    const START: Shape =
        Shape { algorithm: Algorithm::SivCmac256, kept: ptr::null(), nonce: 0, associated: None, text: 0 };

    #[inline(always)]
    unsafe fn run(self, shape: &Shape, lanes: &[Lane]) {
        // SAFETY: as promised to this function.
        unsafe { super::entry::run(self.0, self.1, shape, lanes) };
    }
}

/// Jobs that wait for the same work, borrowed for `'a`.
pub(super) struct Groups<'a, W: Work> {
    work: W,
    shapes: [W::Shape; GROUP_COUNT],
    counts: [usize; GROUP_COUNT],
    /// Of each group the first so many are there. Apart from the rest, and in no collection: else all this room would
    /// be copied when it is made, which takes as long as half a job.
    lanes: [[MaybeUninit<W::Lane>; JOBS_MAX]; GROUP_COUNT],
    /// The group of the last job; the next one is most often like it.
    last: usize,
    borrowed: PhantomData<&'a mut [u8]>,
}

impl<W: Work> Groups<'_, W> {
    #[inline(always)]
    pub(super) fn new(work: W) -> Self {
        Groups {
            work,
            shapes: [W::START; GROUP_COUNT],
            counts: [0; GROUP_COUNT],
            lanes: [const { [const { MaybeUninit::uninit() }; JOBS_MAX] }; GROUP_COUNT],
            last: 0,
            borrowed: PhantomData,
        }
    }

    /// Adds a job, whose parts are borrowed as long as this value; runs its group when that is full.
    #[inline(always)]
    pub(super) fn push(&mut self, shape: W::Shape, lane: W::Lane) {
        if self.shapes[self.last] != shape {
            self.turn_to(shape);
        }
        let count = &mut self.counts[self.last];
        self.lanes[self.last][*count].write(lane);
        *count += 1;
        if *count == JOBS_MAX {
            self.run(self.last);
        }
    }

    /// Makes the group of `shape` the last one: one that has jobs, else an empty one, else the fullest, after it ran.
    #[inline(never)]
    fn turn_to(&mut self, shape: W::Shape) {
        let found = (0..GROUP_COUNT).find(|&index| self.counts[index] > 0 && self.shapes[index] == shape);
        let found = found.or_else(|| self.counts.iter().position(|&count| count == 0));
        self.last = found.unwrap_or_else(|| {
            let fullest = (0..GROUP_COUNT).max_by_key(|&index| self.counts[index]);
            let fullest = fullest.expect("there are groups");
            self.run(fullest);
            fullest
        });
        self.shapes[self.last] = shape;
    }

    /// Runs what waits.
    #[inline(always)]
    pub(super) fn flush(&mut self) {
        for index in 0..GROUP_COUNT {
            if self.counts[index] > 0 {
                self.run(index);
            }
        }
    }

    /// Runs and removes the jobs of a group, of which there is at least one.
    #[inline(never)]
    fn run(&mut self, index: usize) {
        // SAFETY: so many were written since there were none.
        let lanes = unsafe { self.lanes[index][..self.counts[index]].assume_init_ref() };
        // SAFETY: the lanes were made from jobs of this shape, which are borrowed as long as this value lives.
        unsafe { self.work.run(&self.shapes[index], lanes) };
        self.counts[index] = 0;
    }
}

/// What every job of an AEAD has.
type Parts<'a> = (KeyRef<'a>, &'a [u8], Option<&'a [u8]>, Text<'a>);

impl<'a> Groups<'a, (Path, Verb)> {
    /// Adds a job of key, nonce, associated data and text.
    #[inline(always)]
    fn push_parts(
        &mut self,
        (key, nonce, associated, mut text): Parts<'a>,
        tag: *mut [u8; TAG_SIZE],
        genuine: *mut bool,
    ) {
        let (algorithm, key, kept) = key.parts();
        let shape = Shape {
            algorithm,
            kept: kept.map_or(ptr::null(), ptr::from_ref),
            nonce: nonce.len(),
            associated: associated.map(<[u8]>::len),
            text: text.len(),
        };
        let lane = Lane {
            key: key.as_ptr(),
            nonce: nonce.as_ptr(),
            associated: associated.unwrap_or_default().as_ptr(),
            source: text.get_in().as_ptr(),
            text: text.get_out().as_mut_ptr(),
            tag,
            genuine,
        };
        self.push(shape, lane);
    }
}

/// Texts that wait to be sealed.
pub(crate) struct SealQueue<'a>(Groups<'a, (Path, Verb)>);

impl<'a> SealQueue<'a> {
    #[inline(always)]
    pub(crate) fn new(path: Path) -> Self {
        SealQueue(Groups::new((path, Verb::Seal)))
    }

    /// Adds a job, whose nonce has a size that its algorithm accepts; runs its group when that is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, job: Seal<'a>) {
        let Seal { key, nonce, associated, text, tag } = job;
        self.0.push_parts((key, nonce, associated, text), tag, ptr::null_mut());
    }

    /// Runs what waits.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        self.0.flush();
    }
}

/// Texts that wait to be opened.
pub(crate) struct OpenQueue<'a>(Groups<'a, (Path, Verb)>);

impl<'a> OpenQueue<'a> {
    #[inline(always)]
    pub(crate) fn new(path: Path) -> Self {
        OpenQueue(Groups::new((path, Verb::Open)))
    }

    /// As [`SealQueue::push`].
    #[inline(always)]
    pub(crate) fn push(&mut self, job: Open<'a>) {
        let Open { key, nonce, associated, text, tag, genuine } = job;
        self.0.push_parts((key, nonce, associated, text), ptr::from_ref(tag).cast_mut(), genuine);
    }

    /// Runs what waits.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        self.0.flush();
    }
}
