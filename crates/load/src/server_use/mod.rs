//! What a server's processes use, and what keeps them from more: processor time and memory, how busy their busiest
//! thread is, whether a quota or a signal stopped them, and what their hosts count of UDP. All of it is from `/proc`
//! and the control groups of this host. proc(5).
//!
//! A thread of this process looks at them while a step lasts: 50 times a second whether they are stopped, less often at
//! each of their threads. Both take some microseconds.

mod counters;
mod threads;

use std::fs;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use authentick_report::load::Traffic;

use self::counters::Counters;
use self::threads::{Running, Threads, Times};

/// How often it is looked whether a process is stopped: a stop of 200 ms is seen ten times.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// How often each thread is looked at, so that what one did that ends is known for the most part.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Looking at threads takes at most one in so many parts of the time, however many there are.
const LOOK_SHARE: u32 = 200;

/// The part of a step, one in so many, that shares leave out at its beginning: agents may begin a little later.
const BEGINNING: u32 = 10;

/// Processes of this host.
#[derive(Clone, Debug)]
pub struct Processes {
    pids: Vec<u32>,
    /// Of the server.
    port: u16,
    /// Clock ticks a second, the unit of `/proc/PID/stat`.
    ticks_per_second: u64,
    page_size: u64,
}

/// What processes have used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time of all their threads, in user and kernel mode.
    pub cpu: Duration,
    /// Resident memory, in octets.
    pub resident_size: u64,
}

/// What was seen of processes during a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Processor time of all threads.
    pub(crate) cpu: Duration,
    /// Resident memory at the end, in octets.
    pub(crate) resident_size: u64,
    /// Share of the time for which the busiest thread ran.
    pub(crate) running_share: Option<f64>,
    /// Share of the time for which it was ready to run and had no processor.
    pub(crate) waiting_share: Option<f64>,
    /// Share of the time for which a quota kept them from running.
    pub(crate) throttled_share: Option<f64>,
    /// Share of the time for which a signal had stopped one of them.
    pub(crate) stopped_share: Option<f64>,
    /// What their network namespaces counted, of all sockets; absent if that is not known.
    pub(crate) traffic: Option<Traffic>,
    /// Whether this process shares one of these namespaces.
    pub(crate) is_shared: bool,
    /// How long after the beginning counting began, if it did so among operations that do not count.
    pub(crate) begun_off: Option<Duration>,
}

impl Processes {
    /// The processes with these numbers, of a server that answers on UDP port `port`; one that is named twice counts
    /// once.
    ///
    /// # Errors
    /// A sentence, if there is none or it cannot be seen.
    pub fn new(pids: &[u32], port: u16) -> Result<Self, String> {
        let mut pids = pids.to_vec();
        pids.sort_unstable();
        pids.dedup();
        let processes = Processes {
            pids,
            port,
            ticks_per_second: authentick_net::clock::ticks_per_second(),
            page_size: authentick_net::clock::page_size(),
        };
        processes.usage().map(|_| processes)
    }

    /// What they have used so far, all together.
    ///
    /// # Errors
    /// A sentence, if one has ended.
    pub fn usage(&self) -> Result<Usage, String> {
        self.pids.iter().try_fold(Usage::default(), |sum, &pid| {
            let stat = stat(pid)?;
            Ok(Usage {
                cpu: sum.cpu.saturating_add(stat.cpu(self.ticks_per_second)),
                resident_size: sum.resident_size.saturating_add(stat.pages.saturating_mul(self.page_size)),
            })
        })
    }

    /// Watches them while operations begin, from `start` for `duration`. Counters are read now, or at `start` if what
    /// is before does not count, as after a warm-up.
    ///
    /// # Errors
    /// A sentence, if one has ended, or there can be no thread.
    pub(crate) fn watch(
        &self,
        start: Instant,
        duration: Duration,
        has_warm_up: bool,
    ) -> Result<Watching, String> {
        let now = self.baseline(None)?;
        let (end, ended) = channel();
        let watcher = Watcher { processes: self.clone(), start, duration, ended };
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watcher.run(has_warm_up))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Watching { processes: self.clone(), before: now, end, thread })
    }

    fn baseline(&self, off: Option<Duration>) -> Result<Baseline, String> {
        let Processes { pids, ticks_per_second, .. } = self;
        let running = Running::read(pids, *ticks_per_second);
        Ok(Baseline { usage: self.usage()?, running, counters: Counters::read(pids, self.port), off })
    }

    /// Whether one of them is stopped.
    fn is_stopped(&self) -> bool {
        self.pids.iter().any(|&pid| stat(pid).is_ok_and(|stat| stat.is_stopped))
    }
}

/// Where counting begins.
#[derive(Clone, Debug)]
struct Baseline {
    usage: Usage,
    /// Processor time by thread, which is finer than that of processes: these count in ticks.
    running: Running,
    counters: Option<Counters>,
    /// How long after it was to begin, if it did so among operations that do not count.
    off: Option<Duration>,
}

/// Processes that are watched. Dropped, it ends at the next look.
#[derive(Debug)]
pub(crate) struct Watching {
    processes: Processes,
    before: Baseline,
    end: Sender<()>,
    thread: JoinHandle<Watched>,
}

impl Watching {
    /// Ends with the step, and says what was seen.
    ///
    /// # Errors
    /// A sentence, if a process has ended meanwhile.
    pub(crate) fn end(self) -> Result<Seen, String> {
        // A watcher that has ended needs no telling.
        let _ = self.end.send(());
        let watched =
            self.thread.join().map_err(|_| "the thread that watches the server failed".to_owned())?;
        let before = watched.before.clone().unwrap_or(self.before);
        let after = self.processes.baseline(None)?;
        let traffic = before.counters.as_ref().zip(after.counters.as_ref());
        let span = watched.span.as_secs_f64();
        let share = |time: Duration| (span > 0.0).then(|| (time.as_secs_f64() / span).clamp(0.0, 1.0));
        let in_ticks = after.usage.cpu.saturating_sub(before.usage.cpu);
        Ok(Seen {
            cpu: before.running.until(&after.running).unwrap_or(in_ticks),
            resident_size: after.usage.resident_size,
            running_share: share(Duration::from_nanos(watched.busiest.running_ns)),
            waiting_share: watched.busiest.waiting_ns.map(Duration::from_nanos).and_then(share),
            throttled_share: watched.throttled.and_then(share),
            stopped_share: (watched.sample_count > 0)
                .then(|| f64::from(watched.stopped_count) / f64::from(watched.sample_count)),
            is_shared: after.counters.as_ref().is_some_and(|counters| counters.shared),
            traffic: traffic.map(|(before, after)| before.until(after)),
            begun_off: before.off,
        })
    }
}

/// What the watching thread saw.
#[derive(Debug, Default)]
struct Watched {
    /// Where counting begins, if that is not when watching did.
    before: Option<Baseline>,
    /// For how long threads, quotas and signals were watched.
    span: Duration,
    busiest: Times,
    throttled: Option<Duration>,
    sample_count: u32,
    stopped_count: u32,
}

struct Watcher {
    processes: Processes,
    start: Instant,
    duration: Duration,
    ended: Receiver<()>,
}

impl Watcher {
    fn run(self, has_warm_up: bool) -> Watched {
        let mut watched = Watched::default();
        if has_warm_up && self.is_on_until(self.start) {
            watched.before = self.processes.baseline(Some(self.start.elapsed())).ok();
        }
        if self.is_on_until(self.start + self.duration / BEGINNING) {
            self.look_on(&mut watched);
        }
        watched
    }

    fn look_on(&self, watched: &mut Watched) {
        let Processes { pids, ticks_per_second, .. } = &self.processes;
        let files = crate::cgroup::files(pids);
        let (begun, throttled) = (Instant::now(), crate::cgroup::times(&files));
        let mut threads = Threads::default();
        let mut next_look = begun;
        let (mut next, over) = (begun, self.start + self.duration);
        while next < over {
            let now = Instant::now();
            if now >= next_look {
                threads.look(pids, *ticks_per_second);
                next_look = now + LOOK_EVERY.max(now.elapsed() * LOOK_SHARE);
            }
            watched.sample_count += 1;
            watched.stopped_count += u32::from(self.processes.is_stopped());
            next = Instant::now() + SAMPLE_EVERY;
            if !self.is_on_until(next.min(over)) {
                break;
            }
        }
        threads.look(pids, *ticks_per_second);
        watched.span = begun.elapsed();
        watched.busiest = threads.busiest();
        let more = |(after, before): (Duration, &Duration)| after.saturating_sub(*before);
        watched.throttled = crate::cgroup::times(&files).into_iter().zip(&throttled).map(more).max();
    }

    /// Waits; `false` if watching is to end.
    fn is_on_until(&self, instant: Instant) -> bool {
        let left = instant.saturating_duration_since(Instant::now());
        matches!(self.ended.recv_timeout(left), Err(std::sync::mpsc::RecvTimeoutError::Timeout))
    }
}

/// Some fields of `/proc/PID/stat`, or of that of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    /// By a signal, or a debugger.
    is_stopped: bool,
    /// Nobody has waited for it yet.
    has_ended: bool,
    ticks: u64,
    pages: u64,
}

impl Stat {
    /// Fields 3 (state), 14 (utime), 15 (stime) and 24 (rss), counted from 1; the name in field 2 may hold spaces and
    /// parentheses.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let number = |number: usize| field(number)?.parse::<u64>().ok();
        Some(Stat {
            is_stopped: matches!(field(3)?, "T" | "t"),
            has_ended: matches!(field(3)?, "Z" | "X"),
            ticks: number(14)?.checked_add(number(15)?)?,
            pages: number(24)?,
        })
    }

    /// Processor time.
    fn cpu(&self, ticks_per_second: u64) -> Duration {
        let ns = u128::from(self.ticks) * 1_000_000_000 / u128::from(ticks_per_second.max(1));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

fn stat(pid: u32) -> Result<Stat, String> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).map_err(|error| format!("process {pid}: {path}: {error}"))?;
    match Stat::parse(&text) {
        Some(Stat { has_ended: true, .. }) => Err(format!("process {pid} has ended")),
        Some(stat) => Ok(stat),
        None => Err(format!("{path}: not as proc(5) says")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn name_with_parentheses_does_not_shift_the_fields() {
        let numbers: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        let text = format!("7 (a) b) c) T {}\n", numbers.join(" "));
        let found = Stat::parse(&text).unwrap();
        assert_eq!(found, Stat { is_stopped: true, has_ended: false, ticks: 29, pages: 24 });
        assert_eq!(found.cpu(100), Duration::from_millis(290));
        assert!(!Stat::parse(&text.replace(") T ", ") S ")).unwrap().is_stopped);
        assert_eq!(Stat::parse("7 (x) S 1 2"), None);
    }

    #[test]
    fn own_work_is_seen_and_no_process_is_an_error() {
        let own = std::process::id();
        let processes = Processes::new(&[own, own], 123).unwrap();
        let before = processes.usage().unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(60) {
            std::hint::black_box(0);
        }
        let after = processes.usage().unwrap();
        assert!(after.cpu > before.cpu && after.resident_size > 1 << 20);
        assert!(Processes::new(&[own, u32::MAX], 123).unwrap_err().contains("process 4294967295"));
    }

    /// A process that ends with this value.
    struct Shell(Child);

    impl Shell {
        fn start(script: &str) -> Self {
            let mut command = Command::new("sh");
            Shell(command.args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap())
        }

        fn signal(&self, name: &str) {
            let sent = Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap();
            assert!(sent.success());
        }

        /// Stops it, and waits until it has: a signal is delivered when the process is scheduled next.
        fn stop(&self) {
            self.signal("-STOP");
            let status = format!("/proc/{}/stat", self.0.id());
            while !fs::read_to_string(&status).unwrap().contains(") T ") {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn seen(shell: &Shell, during: impl FnOnce()) -> Seen {
        let processes = Processes::new(&[shell.0.id()], 123).unwrap();
        let begun = Instant::now() - Duration::from_secs(6);
        let watching = processes.watch(begun, Duration::from_secs(60), false).unwrap();
        during();
        watching.end().unwrap()
    }

    #[test]
    fn busy_idle_and_stopped_processes_are_told_apart() {
        let (busy, idle, stopped) =
            (Shell::start("while :; do :; done"), Shell::start("read x"), Shell::start("read x"));
        stopped.stop();
        let second = || std::thread::sleep(Duration::from_secs(1));
        let found: Vec<Seen> = std::thread::scope(|scope| {
            let threads = [&busy, &idle, &stopped].map(|shell| scope.spawn(move || seen(shell, second)));
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        // Who runs on a busy host is chance; whether a thread is ready to run is not.
        let ready = |seen: &Seen| seen.running_share.unwrap() + seen.waiting_share.unwrap();
        assert!(ready(&found[0]) > 0.9, "{:?}", found[0]);
        assert!(ready(&found[1]) < 0.1, "{:?}", found[1]);
        assert!(found[0].stopped_share == Some(0.0) && found[1].stopped_share == Some(0.0), "{found:?}");
        assert_eq!(found[2].stopped_share, Some(1.0));
        assert!(found.iter().all(|seen| seen.is_shared && seen.traffic.is_some()), "{found:?}");
    }

    #[test]
    fn processor_time_of_less_than_a_tick_is_seen() {
        if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
            eprintln!("skipped: the kernel counts in ticks alone");
            return;
        }
        let mut shell = Shell::start("read x; read y");
        let pids = [shell.0.id()];
        let ran = || Running::read(&pids, 100);
        // It has begun to wait.
        while !fs::read_to_string(format!("/proc/{}/stat", pids[0])).unwrap().contains(") S ") {
            std::thread::sleep(Duration::from_millis(1));
        }
        let watching =
            Processes::new(&pids, 123).unwrap().watch(Instant::now(), Duration::from_secs(60), false);
        let before = ran();
        shell.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        while ran() == before {
            std::thread::sleep(Duration::from_millis(1));
        }
        let cpu = watching.unwrap().end().unwrap().cpu;
        assert!(!cpu.is_zero() && cpu < Duration::from_millis(5), "{cpu:?}");
    }

    #[test]
    fn process_that_ends_is_an_error() {
        let shell = Shell::start("read x");
        let processes = Processes::new(&[shell.0.id()], 123).unwrap();
        let watching = processes.watch(Instant::now(), Duration::from_secs(60), true).unwrap();
        drop(shell);
        assert!(watching.end().unwrap_err().starts_with("process "));
    }
}
