//! Jobs that wait for others of their shape, to fill the lanes together. No allocation.
//!
//! Jobs share a step only if their sizes are equal. What then differs between lanes are addresses alone: no lane waits,
//! nothing is masked, and what follows from a size is computed once for all. Servers see few shapes. Where every job
//! has another one, each runs alone, which costs no more than it would without lanes.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::PathKind;

/// Jobs that run in one call: as many as the widest path has lanes.
pub(super) const JOBS_MAX: usize = 16;

/// Shapes that are collected at once: two algorithms, with and without something.
const GROUP_COUNT: usize = 4;

/// A kind of jobs: what groups need to know of them.
pub trait Work {
    /// The kind of paths that they can take.
    type Path: PathKind;
    /// What is done to the jobs.
    type Verb: Copy;
    /// What decides which instructions a job takes. All of it is public.
    type Shape: Copy + PartialEq;
    /// Where the parts of one job lie.
    type Job: Copy;
    /// The shape of a group that has had no job.
    const START: Self::Shape;

    /// Runs jobs.
    ///
    /// # Safety
    /// The jobs are of this shape, and what they point to is borrowed by the caller.
    unsafe fn run(path: Self::Path, verb: Self::Verb, shape: &Self::Shape, jobs: &[Self::Job]);
}

/// A job that has lanes.
///
/// # Safety
/// What [`LaneJob::sort`] points to is borrowed as long as the job.
pub unsafe trait LaneJob: Sized {
    /// The kind of paths that it can take.
    type Path: PathKind;
    /// What it has in common with others.
    #[doc(hidden)]
    type Work: Work<Path = Self::Path>;
    /// What is done to it.
    #[doc(hidden)]
    const VERB: <Self::Work as Work>::Verb;

    /// Shape and places of the job.
    ///
    /// # Panics
    /// If a part has not the size that its algorithm asks for.
    #[doc(hidden)]
    fn sort(self) -> (<Self::Work as Work>::Shape, <Self::Work as Work>::Job);
}

/// Jobs of one kind that wait to be run together.
pub struct Queue<J: LaneJob> {
    groups: Groups<J::Work>,
    borrowed: PhantomData<J>,
}

impl<J: LaneJob> Queue<J> {
    /// No jobs yet.
    #[inline(always)]
    #[must_use]
    pub fn new(path: J::Path) -> Self {
        Queue { groups: Groups::new(path, J::VERB), borrowed: PhantomData }
    }

    /// Adds a job; runs its group when that is full.
    ///
    /// # Panics
    /// If a part of the job has not the size that its algorithm asks for; when a group runs, if the path has no lanes
    /// or the processor lacks what it needs.
    #[inline(always)]
    pub fn push(&mut self, job: J) {
        let (shape, job) = job.sort();
        self.groups.push(shape, job);
    }

    /// Runs what waits.
    ///
    /// # Panics
    /// As [`Queue::push`], when a group runs.
    #[inline(always)]
    pub fn flush(&mut self) {
        self.groups.flush();
    }
}

/// Jobs that wait for the same work. What they point to is borrowed as long as the queue that this is in.
struct Groups<W: Work> {
    /// The path, and what is done on it. One field, as with two of them all the room for jobs would be copied.
    task: (W::Path, W::Verb),
    shapes: [W::Shape; GROUP_COUNT],
    counts: [usize; GROUP_COUNT],
    /// Of each group the first so many are there. Apart from the rest, and in no collection: else all this room would
    /// be copied when it is made, which takes as long as half a job.
    jobs: [[MaybeUninit<W::Job>; JOBS_MAX]; GROUP_COUNT],
    /// The group of the last job; the next one is most often like it.
    last: usize,
}

impl<W: Work> Groups<W> {
    #[inline(always)]
    fn new(path: W::Path, verb: W::Verb) -> Self {
        Groups {
            task: (path, verb),
            shapes: [W::START; GROUP_COUNT],
            counts: [0; GROUP_COUNT],
            jobs: [const { [const { MaybeUninit::uninit() }; JOBS_MAX] }; GROUP_COUNT],
            last: 0,
        }
    }

    /// Adds a job; runs its group when that is full.
    #[inline(always)]
    fn push(&mut self, shape: W::Shape, job: W::Job) {
        if self.shapes[self.last] != shape {
            self.turn_to(shape);
        }
        let count = &mut self.counts[self.last];
        self.jobs[self.last][*count].write(job);
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
    fn flush(&mut self) {
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
        let jobs = unsafe { self.jobs[index][..self.counts[index]].assume_init_ref() };
        let (path, verb) = self.task;
        // SAFETY: the jobs have this shape, and what they point to is borrowed as long as the queue lives.
        unsafe { W::run(path, verb, &self.shapes[index], jobs) };
        self.counts[index] = 0;
    }
}
