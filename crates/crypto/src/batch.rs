//! Jobs that run in groups: side by side where the processor has lanes for them, else one after another.

use authentick_lanes::{LaneJob, PathKind, Queue};

/// A job that a [`Batch`] takes.
pub trait Job: Sized {
    /// Where jobs wait for others like them.
    #[doc(hidden)]
    type Queue: JobQueue;

    /// Runs the job, or adds it to a queue of this path.
    #[doc(hidden)]
    fn push(self, path: <Self::Queue as JobQueue>::Path, queue: &mut Self::Queue);
}

/// Where jobs wait for others like them. It stays empty on a path without lanes.
#[doc(hidden)]
pub trait JobQueue {
    /// The kind of paths that the jobs can take.
    type Path: PathKind;

    fn new(path: Self::Path) -> Self;

    /// Runs what waits.
    fn flush(&mut self);
}

impl<J: LaneJob> JobQueue for Queue<J> {
    type Path = J::Path;

    #[inline(always)]
    fn new(path: J::Path) -> Self {
        Queue::new(path)
    }

    #[inline(always)]
    fn flush(&mut self) {
        Queue::flush(self);
    }
}

type PathOf<J> = <<J as Job>::Queue as JobQueue>::Path;

/// Jobs of one kind. They run in groups while they are added, and all of them have run when [`Batch::run`] returns; a
/// batch that is dropped before leaves some texts and tags as they were.
///
/// Jobs do not affect one another. Keys and sizes may differ; jobs whose sizes are equal run side by side.
pub struct Batch<J: Job> {
    path: PathOf<J>,
    queue: J::Queue,
}

impl<J: Job> Batch<J> {
    /// No jobs yet, on the path of this process.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        Batch::on(PathOf::<J>::chosen())
    }

    /// The same on a given path, for tests and benchmarks.
    ///
    /// # Panics
    /// Here or when jobs run, if the processor lacks what the path needs.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn on(path: PathOf<J>) -> Self {
        Batch { path, queue: J::Queue::new(path) }
    }

    /// Adds a job.
    ///
    /// # Panics
    /// If the job is to make a tag or a ciphertext, and a part of it has a size that its algorithm does not accept.
    /// What is to be verified then fails.
    // Inlined, so that the parts of a job need not go through memory.
    #[inline(always)]
    pub fn push(&mut self, job: J) {
        job.push(self.path, &mut self.queue);
    }

    /// Runs every job that was added and has not run.
    #[inline(always)]
    pub fn run(&mut self) {
        self.queue.flush();
    }
}

impl<J: Job> Default for Batch<J> {
    fn default() -> Self {
        Batch::new()
    }
}

/// Runs jobs as one batch.
///
/// # Panics
/// As [`Batch::push`].
#[inline]
pub fn run_batch<J: Job>(jobs: impl Iterator<Item = J>) {
    run_batch_on(PathOf::<J>::chosen(), jobs);
}

/// [`run_batch`] on a given path, for tests and benchmarks.
///
/// # Panics
/// As [`run_batch`], and if the processor lacks what the path needs.
#[doc(hidden)]
#[inline]
pub fn run_batch_on<J: Job>(path: PathOf<J>, jobs: impl Iterator<Item = J>) {
    let mut batch = Batch::on(path);
    jobs.for_each(|job| batch.push(job));
    batch.run();
}
