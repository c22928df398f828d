//! All subjects in turn, round after round, so that a machine that slows down slows all of them. Turns are timed by the
//! processor time that this thread uses, so that whoever else wants the processor takes nothing from a subject.

use std::time::Duration;

use authentick_net::clock::thread_cpu_ns;
use authentick_net::instructions::clear_upper_halves;
use authentick_report::mac::Timing;

use super::hundredth;
use super::subject::Subject;

/// A subject, and how many batches of it fill a turn.
struct Turn {
    subject: Subject,
    count: u64,
}

/// The processor time that `work` takes, which finds no traces of others in the vector registers.
fn timed(work: impl FnOnce()) -> Duration {
    clear_upper_halves();
    let start = thread_cpu_ns();
    work();
    Duration::from_nanos(thread_cpu_ns() - start)
}

/// The subjects of a process.
pub(super) struct Rounds {
    turns: Vec<Turn>,
    /// Who begins the next round: somebody else each time, so that nobody always follows the same one.
    first: usize,
}

impl Rounds {
    /// Finds out how much each does in `turn`; caches and branch predictors are warm afterwards.
    pub(super) fn new(subjects: Vec<Subject>, turn: Duration) -> Self {
        let turns = subjects.into_iter().map(|mut subject| {
            let mut count = 1;
            loop {
                let elapsed = timed(|| (subject.work)(count));
                // A first call may wait for whatever; a count is believed when it takes a good part of the turn.
                if elapsed * 4 >= turn {
                    let per_batch = elapsed.as_secs_f64() / count as f64;
                    let count = ((turn.as_secs_f64() / per_batch) as u64).max(1);
                    return Turn { subject, count };
                }
                count *= 2;
            }
        });
        Rounds { turns: turns.collect(), first: 0 }
    }

    /// One turn of each.
    pub(super) fn round(&mut self) {
        let count = self.turns.len();
        for index in 0..count {
            let Turn { subject: Subject { timing, work }, count } =
                &mut self.turns[(self.first + index) % count];
            let elapsed = timed(|| work(*count));
            let packets = *count * u64::from(timing.batch);
            // A record has times above zero.
            timing.ns.push(hundredth(elapsed.as_nanos() as f64 / packets as f64).max(0.01));
        }
        // A step that shares no divisor with most counts.
        self.first = (self.first + 7) % count.max(1);
    }

    /// What was measured.
    pub(super) fn timings(self) -> Vec<Timing> {
        self.turns.into_iter().map(|turn| turn.subject.timing).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use authentick_report::mac::{Algorithm, Implementation, KeyUse};

    use super::super::subject::work;
    use super::*;

    fn spinner(algorithm: Algorithm, batch: u32, log: &Rc<Cell<u64>>) -> Subject {
        let log = Rc::clone(log);
        let work = work(move |_| {
            log.set(log.get() + 1);
            // Waiting takes no processor time, and is no work.
            std::thread::sleep(Duration::from_micros(50));
            let start = thread_cpu_ns();
            while thread_cpu_ns() < start + 100_000 {}
        });
        let mut subject = Subject::single(algorithm, Implementation::Authentick, KeyUse::Kept, work);
        subject.timing.batch = batch;
        subject
    }

    #[test]
    fn time_is_divided_by_packets_and_every_round_counts() {
        let log = Rc::new(Cell::new(0));
        let subjects = vec![spinner(Algorithm::Md5, 1, &log), spinner(Algorithm::Sha1, 4, &log)];
        let mut rounds = Rounds::new(subjects, Duration::from_millis(2));
        let before = log.get();
        for _ in 0..3 {
            rounds.round();
        }
        assert!(log.get() >= before + 6, "each subject works in each round");
        let timings = rounds.timings();
        assert_eq!(timings.iter().map(|timing| timing.ns.len()).collect::<Vec<_>>(), [3, 3]);
        // The time of a batch is shared by its packets.
        for (timing, least) in timings.iter().zip([100_000.0, 25_000.0]) {
            assert!(timing.ns.iter().all(|&ns| ns >= least), "{timing:?}");
        }
    }
}
