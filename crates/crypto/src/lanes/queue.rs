//! Jobs that wait for others of their algorithm, to fill the lanes together. No allocation.

use std::array;
use std::ptr;

use arrayvec::ArrayVec;

use super::Path;
#[cfg(target_arch = "x86_64")]
use super::entry::{self, Keys};
use crate::aead::{Algorithm, Open, Seal};

/// Jobs of one queue that run in one call. Four times the widest lanes: keys are wiped once for all of them.
const JOBS_MAX: usize = 64;

/// A queue for each algorithm, and one for keys that are kept expanded.
const QUEUE_COUNT: usize = Algorithm::ALL.len() + 1;

/// Jobs of one algorithm, all under kept keys or none.
struct Queue<J> {
    jobs: ArrayVec<J, JOBS_MAX>,
    /// Whether the jobs are under more than one kept key.
    is_mixed: bool,
}

macro_rules! queues {
    ($name:ident, $job:ident, $verb:ident, $run:ident) => {
        /// Queues for a path with lanes.
        pub(crate) struct $name<'a> {
            path: Path,
            queues: [Queue<$job<'a>>; QUEUE_COUNT],
        }

        impl<'a> $name<'a> {
            #[inline]
            pub(crate) fn new(path: Path) -> Self {
                $name { path, queues: array::from_fn(|_| Queue { jobs: ArrayVec::new(), is_mixed: false }) }
            }

            /// Adds a job, whose nonce has a size that its algorithm accepts; runs its queue when that is full.
            #[inline]
            pub(crate) fn push(&mut self, job: $job<'a>) {
                let queue = match job.key.expanded() {
                    Some(key) => {
                        let queue = &mut self.queues[QUEUE_COUNT - 1];
                        let last = queue.jobs.last().and_then(|job| job.key.expanded());
                        queue.is_mixed |= last.is_some_and(|last| !ptr::eq(last, key));
                        queue
                    }
                    None => &mut self.queues[job.key.key().algorithm() as usize],
                };
                queue.jobs.push(job);
                if queue.jobs.is_full() {
                    $run(self.path, queue);
                }
            }

            /// Runs what waits.
            #[inline]
            pub(crate) fn flush(&mut self) {
                for queue in self.queues.iter_mut().filter(|queue| !queue.jobs.is_empty()) {
                    $run(self.path, queue);
                }
            }
        }

        /// Runs and removes the jobs of a queue: those under one kept key together, or all of them.
        #[cfg(target_arch = "x86_64")]
        fn $run(path: Path, queue: &mut Queue<$job<'_>>) {
            let key = |job: &$job<'_>| job.key.expanded().map_or(ptr::null(), ptr::from_ref);
            let run = |jobs: &mut [$job<'_>]| {
                let keys = match jobs[0].key.expanded() {
                    Some(key) => Keys::Kept(key),
                    None => Keys::Fresh(jobs[0].key.key().algorithm()),
                };
                entry::$verb(path, keys, jobs);
            };
            if queue.is_mixed {
                queue.jobs.sort_unstable_by_key(key);
                queue.jobs.chunk_by_mut(|a, b| key(a) == key(b)).for_each(run);
            } else {
                run(&mut queue.jobs);
            }
            queue.jobs.clear();
            queue.is_mixed = false;
        }

        #[cfg(not(target_arch = "x86_64"))]
        fn $run(path: Path, queue: &mut Queue<$job<'_>>) {
            unreachable!("{path} has no lanes for {} jobs, mixed: {}", queue.jobs.len(), queue.is_mixed);
        }
    };
}

queues!(SealQueues, Seal, seal, run_seal);
queues!(OpenQueues, Open, open, run_open);
