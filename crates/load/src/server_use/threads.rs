//! How long each thread of some processes ran, and how long it was ready to run and had no processor.
//!
//! The kernel counts both in nanoseconds, in `/proc/PID/task/TID/schedstat` (Documentation/scheduler/
//! sched-stats.rst). As measured here, the second includes the time for which a quota kept the thread from running: a
//! thread that spins with a quota of a fifth of a processor ran 20 % of the time and waited 80 %. Neither includes the
//! time for which a signal had stopped it. Where the kernel has no such file, `stat` tells the running time in ticks,
//! and nothing of waiting.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Times of a thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// On a processor, in nanoseconds.
    pub(super) running_ns: u64,
    /// Ready to run and without a processor, in nanoseconds; absent if the kernel does not tell.
    pub(super) waiting_ns: Option<u64>,
}

/// A thread of a process.
type Thread = (u32, u32);

/// What threads did since the first look at them. Threads that begin later are counted from their beginning; of those
/// that end, what they did until the last look.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    looked: bool,
    known: BTreeMap<Thread, Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    last: Times,
    since: Times,
}

impl Threads {
    /// Looks at all threads of these processes.
    pub(super) fn look(&mut self, pids: &[u32], ticks_per_second: u64) {
        let of = |&pid: &u32| tids(pid).into_iter().map(move |tid| (pid, tid));
        let threads = pids.iter().flat_map(of);
        let seen = threads.filter_map(|thread| Some((thread, times_of(thread, ticks_per_second)?)));
        self.see(seen.collect::<Vec<_>>());
    }

    fn see(&mut self, seen: impl IntoIterator<Item = (Thread, Times)>) {
        for (thread, times) in seen {
            let first = if self.looked { Times::default() } else { times };
            let known = self.known.entry(thread).or_insert(Known { last: first, since: Times::default() });
            // Times only grow: smaller ones are those of another thread that got the number.
            let last = if times.running_ns < known.last.running_ns { Times::default() } else { known.last };
            known.since.add(times, last);
            known.last = times;
        }
        self.looked = true;
    }

    /// What the busiest thread did: the one that was running or ready to run for longest.
    pub(super) fn busiest(&self) -> Times {
        let ready = |times: &Times| times.running_ns.saturating_add(times.waiting_ns.unwrap_or(0));
        self.known.values().map(|known| known.since).max_by_key(ready).unwrap_or_default()
    }
}

impl Times {
    fn add(&mut self, now: Times, before: Times) {
        let more = |now: u64, before: u64| now.saturating_sub(before);
        self.running_ns = self.running_ns.saturating_add(more(now.running_ns, before.running_ns));
        self.waiting_ns = now.waiting_ns.map(|now| {
            self.waiting_ns.unwrap_or(0).saturating_add(more(now, before.waiting_ns.unwrap_or(0)))
        });
    }
}

/// How long each thread of some processes ran since it began, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Running(BTreeMap<Thread, u64>);

impl Running {
    /// That of all threads that these processes have now.
    pub(super) fn read(pids: &[u32], ticks_per_second: u64) -> Self {
        let threads = pids.iter().flat_map(|&pid| tids(pid).into_iter().map(move |tid| (pid, tid)));
        let times = |thread| Some((thread, times_of(thread, ticks_per_second)?.running_ns));
        Running(threads.filter_map(times).collect())
    }

    /// How long they all ran until `later`; `None` if one has ended meanwhile, as nobody knows what it did.
    pub(super) fn until(&self, later: &Running) -> Option<Duration> {
        let is_there = |(thread, ns): (&Thread, &u64)| later.0.get(thread).is_some_and(|later| later >= ns);
        let sum = |running: &Running| running.0.values().fold(0_u64, |sum, ns| sum.saturating_add(*ns));
        let is_known = !self.0.is_empty() && self.0.iter().all(is_there);
        is_known.then(|| Duration::from_nanos(sum(later).saturating_sub(sum(self))))
    }
}

/// The threads that a process has; none if it has ended.
fn tids(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// `None` if it has ended.
fn times_of((pid, tid): Thread, ticks_per_second: u64) -> Option<Times> {
    let folder = format!("/proc/{pid}/task/{tid}");
    let counted = fs::read_to_string(format!("{folder}/schedstat")).ok();
    counted.and_then(|text| schedstat(&text)).or_else(|| {
        let text = fs::read_to_string(format!("{folder}/stat")).ok()?;
        let cpu = super::Stat::parse(&text)?.cpu(ticks_per_second);
        Some(Times { running_ns: cpu.as_nanos() as u64, waiting_ns: None })
    })
}

/// Time on the processor, time waiting for one, and how often it got one.
fn schedstat(text: &str) -> Option<Times> {
    let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().ok());
    Some(Times { running_ns: numbers.next()??, waiting_ns: Some(numbers.next()??) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(running_ns: u64, waiting_ns: u64) -> Times {
        Times { running_ns, waiting_ns: Some(waiting_ns) }
    }

    #[test]
    fn threads_count_from_the_first_look_or_from_their_beginning() {
        let mut threads = Threads::default();
        assert_eq!(threads.busiest(), Times::default());
        threads.see([((1, 1), times(1_000_000, 5)), ((1, 2), times(100, 50))]);
        assert_eq!(threads.busiest(), times(0, 0), "what was before does not count");
        threads.see([((1, 1), times(1_000_010, 5)), ((1, 3), times(40, 30))]);
        assert_eq!(threads.busiest(), times(40, 30), "it began after the first look");
        threads.see([((1, 1), times(1_000_020, 5))]);
        assert_eq!(threads.busiest(), times(40, 30), "it has ended, and did that");
        threads.see([((1, 3), times(35, 60))]);
        assert_eq!(threads.busiest(), times(75, 90), "another thread has its number");
    }

    #[test]
    fn what_all_threads_ran_is_known_unless_one_has_ended() {
        let running = |times: &[(u32, u64)]| Running(times.iter().map(|&(tid, ns)| ((1, tid), ns)).collect());
        let before = running(&[(1, 500), (2, 70)]);
        let ns = |later: &[(u32, u64)]| before.until(&running(later)).map(|time| time.as_nanos());
        assert_eq!(ns(&[(1, 501), (2, 70)]), Some(1));
        assert_eq!(ns(&[(1, 501), (2, 70), (3, 9)]), Some(10), "it began meanwhile");
        assert_eq!(ns(&[(1, 501)]), None, "one has ended");
        assert_eq!(ns(&[(1, 501), (2, 69)]), None, "another thread has its number");
        assert_eq!(Running::default().until(&before), None);
    }

    #[test]
    fn thread_that_waits_is_busier_than_one_that_runs_less() {
        let mut threads = Threads::default();
        threads.see([((1, 1), times(0, 0)), ((1, 2), times(0, 0))]);
        threads.see([((1, 1), times(60, 0)), ((1, 2), times(20, 80))]);
        assert_eq!(threads.busiest(), times(20, 80));
    }

    #[test]
    fn counters_of_the_scheduler_are_read() {
        assert_eq!(schedstat("629123 161190 2\n"), Some(times(629_123, 161_190)));
        assert_eq!(schedstat(""), None);
        let own = (std::process::id(), std::process::id());
        assert!(times_of(own, 100).is_some() && tids(own.0).contains(&own.1));
        assert!(tids(u32::MAX).is_empty());
    }
}
