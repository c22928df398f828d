//! Jobs that wait for others of their algorithm, to fill the lanes together. No allocation.

use arrayvec::ArrayVec;

use super::Path;
use crate::aead::{Algorithm, Open, Seal};

/// Jobs of one algorithm that run in one call. Four times the widest lanes: keys are wiped once for all of them.
const JOBS_MAX: usize = 64;

macro_rules! queues {
    ($name:ident, $job:ident, $verb:ident) => {
        /// One queue per algorithm.
        pub(crate) struct $name<'a> {
            path: Path,
            jobs: [ArrayVec<$job<'a>, JOBS_MAX>; Algorithm::ALL.len()],
        }

        impl<'a> $name<'a> {
            /// Queues for a path with lanes.
            #[inline]
            pub(crate) fn new(path: Path) -> Self {
                $name { path, jobs: [const { ArrayVec::new_const() }; Algorithm::ALL.len()] }
            }

            /// Adds a job, whose nonce has a size that its algorithm accepts; runs its queue when it is full.
            #[inline]
            pub(crate) fn push(&mut self, job: $job<'a>) {
                let algorithm = job.key.key().algorithm();
                let jobs = &mut self.jobs[algorithm as usize];
                jobs.push(job);
                if jobs.is_full() {
                    run(self.path, algorithm, jobs);
                }
            }

            /// Runs what waits.
            #[inline]
            pub(crate) fn flush(&mut self) {
                for (jobs, algorithm) in self.jobs.iter_mut().zip(Algorithm::ALL) {
                    if !jobs.is_empty() {
                        run(self.path, algorithm, jobs);
                    }
                }
            }
        }
    };
}

mod sealing {
    use super::*;
    queues!(SealQueues, Seal, seal);

    fn run(path: Path, algorithm: Algorithm, jobs: &mut ArrayVec<Seal<'_>, JOBS_MAX>) {
        #[cfg(target_arch = "x86_64")]
        super::super::entry::seal(path, algorithm, jobs);
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("{path} has lanes, {algorithm:?} with {} jobs was given to them", jobs.len());
        jobs.clear();
    }
}

mod opening {
    use super::*;
    queues!(OpenQueues, Open, open);

    fn run(path: Path, algorithm: Algorithm, jobs: &mut ArrayVec<Open<'_>, JOBS_MAX>) {
        #[cfg(target_arch = "x86_64")]
        super::super::entry::open(path, algorithm, jobs);
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("{path} has lanes, {algorithm:?} with {} jobs was given to them", jobs.len());
        jobs.clear();
    }
}

pub(crate) use opening::OpenQueues;
pub(crate) use sealing::SealQueues;
