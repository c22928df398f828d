//! Jobs that wait for others of their algorithm, to fill the lanes together. No allocation.

#[cfg(target_arch = "x86_64")]
use std::ptr;

use std::array;

use arrayvec::ArrayVec;

use super::Path;
#[cfg(target_arch = "x86_64")]
use super::entry::{self, Keys};
use crate::aead::{Algorithm, Open, Seal};

/// Jobs of one queue that run in one call. Four times the widest lanes: keys are wiped once for all of them.
const JOBS_MAX: usize = 64;

/// A queue for each algorithm, and one for keys that are kept expanded.
const QUEUE_COUNT: usize = Algorithm::ALL.len() + 1;

macro_rules! queues {
    ($name:ident, $job:ident, $verb:ident, $run:ident) => {
        /// Queues for a path with lanes.
        pub(crate) struct $name<'a> {
            path: Path,
            queues: [ArrayVec<$job<'a>, JOBS_MAX>; QUEUE_COUNT],
        }

        impl<'a> $name<'a> {
            #[inline]
            pub(crate) fn new(path: Path) -> Self {
                $name { path, queues: array::from_fn(|_| ArrayVec::new()) }
            }

            /// Adds a job, whose nonce has a size that its algorithm accepts; runs its queue when that is full.
            #[inline]
            pub(crate) fn push(&mut self, job: $job<'a>) {
                let queue = match job.key.expanded() {
                    Some(_) => QUEUE_COUNT - 1,
                    None => job.key.key().algorithm() as usize,
                };
                let queue = &mut self.queues[queue];
                queue.push(job);
                if queue.is_full() {
                    $run(self.path, queue);
                    queue.clear();
                }
            }

            /// Runs what waits.
            #[inline]
            pub(crate) fn flush(&mut self) {
                for queue in self.queues.iter_mut().filter(|queue| !queue.is_empty()) {
                    $run(self.path, queue);
                    queue.clear();
                }
            }
        }

        /// Runs the jobs of one queue: those under one kept key together, or all of them.
        #[cfg(target_arch = "x86_64")]
        fn $run(path: Path, jobs: &mut [$job<'_>]) {
            let key = |job: &$job<'_>| job.key.expanded().map_or(ptr::null(), ptr::from_ref);
            if jobs.iter().any(|job| key(job) != key(&jobs[0])) {
                jobs.sort_unstable_by_key(key);
            }
            for jobs in jobs.chunk_by_mut(|a, b| key(a) == key(b)) {
                let keys = match jobs[0].key.expanded() {
                    Some(key) => Keys::Kept(key),
                    None => Keys::Fresh(jobs[0].key.key().algorithm()),
                };
                entry::$verb(path, keys, jobs);
            }
        }

        #[cfg(not(target_arch = "x86_64"))]
        fn $run(path: Path, jobs: &mut [$job<'_>]) {
            unreachable!("{path} has no lanes for {} jobs", jobs.len());
        }
    };
}

queues!(SealQueues, Seal, seal, run_seal);
queues!(OpenQueues, Open, open, run_open);
