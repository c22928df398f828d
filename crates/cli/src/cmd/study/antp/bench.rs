//! The server of the study, and what one trial takes: load runs against it, whose records become figures.
//!
//! Server and generators share this machine: the server has its first processor alone, generators have its last.
//! Throughput is that of static packets, as the paper's; what is measured of latency are requests of further clients,
//! in the same process as the load where they ask the same over the same path, and in one of their own otherwise.

use std::fmt::Display;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use authentick_report::load::{LoadRecord, Step};
use authentick_report::study::antp::{
    AntpSettings, Capacity, Latency, Level, Parts, Path, Phase, Subject, Suite, Times, Trial, why_invalid,
};
use tempfile::TempDir;

use super::link::Link;
use super::relay::{CLIENT_COUNT_MAX, Relay};
use crate::cmd::study::helper::{self, Background, Helper};
use crate::cmd::study::hosts::{Papers, on_first_processor};
use crate::exit::{Exit, Failure};
use crate::output;

/// How often a trial is repeated until the generator has kept up.
const ATTEMPT_COUNT_MAX: u32 = 3;
const QUICK_ATTEMPT_COUNT_MAX: u32 = 2;
/// How often a run is repeated that the server did not answer, and how long it is left alone before.
const SILENCE_COUNT_MAX: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Clients that load the server, each with a port of its own.
const LOAD_CLIENTS: u32 = 256;
/// Requests in flight in the closed loop that comes before a search.
const WINDOW: u32 = 64;
/// From this share of what that had answered on a search goes up, but from no lower rate than the next.
const SEARCH_FROM_SHARE: f64 = 0.4;
const SEARCH_FROM_MIN_RPS: f64 = 10.0;
/// A search that ends below this share of it for the generator's sake has failed.
const CLOSED_SHARE_MIN: f64 = 0.5;
/// Clients whose latency is taken.
const MEASURED_CLIENTS: u32 = 16;
/// How long a background may take until it loads the server.
const BEGIN_MAX: Duration = Duration::from_secs(15);
/// Over so long it is looked whether it does.
const GLANCE: Duration = Duration::from_millis(100);
/// A background that had less than this share of its rate answered was another load than was meant.
const BACKGROUND_SHARE_MIN: f64 = 0.8;
/// How much longer than what it stands beside a background is to last, in seconds; it is stopped before.
const BACKGROUND_SPARE_SECONDS: f64 = 60.0;
/// What threads for public keys are called.
const PUBLIC_KEY_THREADS: &str = "antp-";

/// What trials need.
pub(super) struct Bench<'a> {
    settings: &'a AntpSettings,
    stop: &'a AtomicBool,
    folder: TempDir,
    papers: Papers,
    server: Helper,
    /// The server behind the link. It stands before the link, whose namespace it is in, and so ends first.
    linked: Option<Helper>,
    link: Result<Link, String>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(settings: &'a AntpSettings, stop: &'a AtomicBool) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let papers = Papers::new(folder.path())?;
        papers.add_antp()?;
        let config = configuration(&folder, &papers, "127.0.0.1")?;
        let server = on_first_processor(|| Helper::server(&config))?;
        Ok(Bench { settings, stop, folder, papers, server, linked: None, link: Link::new() })
    }

    /// What is to be said of all trials.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![
            "Server and generators share one machine and its loopback: authentick serve with one worker and one \
             thread for public keys on the first processor, generators on the last. The paper's had machines of their \
             own."
                .to_owned(),
            "Load is of static packets but for the token that an answer is known by, as the paper's was; complete \
             runs are of real clients."
                .to_owned(),
            format!(
                "The long path is a relay on this machine, which delays each direction by {} ms; only the measured \
                 clients take it.",
                self.settings.long_path_ms / 2.0
            ),
        ];
        if let Err(why) = &self.link {
            remarks.push(format!("Negotiation was not measured behind 1 Gbit/s: {why}."));
        }
        remarks
    }

    /// Whether there is a path of 1 Gbit/s.
    pub(super) fn has_link(&self) -> bool {
        self.link.is_ok()
    }

    /// Looks for a capacity; `None` if it was stopped. A closed loop finds out where to look.
    pub(super) fn search(&mut self, subject: Subject, path: Path) -> Result<Option<Capacity>, Failure> {
        self.answered(&mut |bench: &mut Self| bench.search_once(subject, path))
    }

    fn search_once(&mut self, subject: Subject, path: Path) -> Result<Option<Capacity>, Failure> {
        let (target, pid) = self.target(path)?;
        let mut words = self.words(subject, target);
        say(&mut words, "--step-seconds", &self.settings.search_seconds);
        say(&mut words, "--clients", &LOAD_CLIENTS);
        say(&mut words, "--server-pid", &pid);
        let mut closed = words.clone();
        say(&mut closed, "--closed", &WINDOW);
        let Some(step) = self.step(&closed)? else { return Ok(None) };
        let closed_rps = step.answered_rps();
        let request_size = step.request_size;
        if self.settings.quick && closed_rps > 0.0 {
            let remark = format!("a closed loop of {WINDOW} requests in place of a search (--quick)");
            let (rps, window, remark) = (Some(closed_rps), Some(WINDOW), Some(remark));
            return Ok(Some(Capacity { subject, path, rps, window, request_size, remark }));
        }
        words.push("--search".to_owned());
        say(&mut words, "--search-from", &(closed_rps * SEARCH_FROM_SHARE).max(SEARCH_FROM_MIN_RPS).round());
        let Some(record) = self.load(&words)? else { return Ok(None) };
        let found = record.capacity_rps;
        let mut remark = record.search.and_then(|search| search.remark);
        // A search that the generator ended far below says nothing about the server.
        let failed = closed_rps > 0.0 && found.is_none_or(|rps| rps < closed_rps * CLOSED_SHARE_MIN);
        if let Some(why) = remark.take_if(|_| failed) {
            remark = Some(format!(
                "a search found no more than {:.0}/s ({}); a closed loop of {WINDOW} requests stands in for it",
                found.unwrap_or(0.0),
                why.trim_end_matches('.')
            ));
            let window = Some(WINDOW);
            return Ok(Some(Capacity { subject, path, rps: Some(closed_rps), window, request_size, remark }));
        }
        Ok(Some(Capacity {
            subject,
            path,
            rps: found,
            window: None,
            request_size: step.request_size,
            remark,
        }))
    }

    /// One trial of throughput; `None` if it was stopped.
    pub(super) fn throughput(&mut self, capacity: &Capacity, rps: f64) -> Result<Option<Trial>, Failure> {
        let (subject, path) = (capacity.subject, capacity.path);
        let (target, pid) = self.target(path)?;
        let mut words = self.words(subject, target);
        match &capacity.window {
            Some(window) => say(&mut words, "--closed", window),
            None => say(&mut words, "--rate", &rps),
        }
        say(&mut words, "--step-seconds", &self.settings.trial_seconds);
        say(&mut words, "--clients", &LOAD_CLIENTS);
        say(&mut words, "--server-pid", &pid);
        self.until_valid(
            |bench| {
                let before = public_key_seconds(pid);
                let Some(step) = bench.step(&words)? else { return Ok(None) };
                let mut trial = Trial::of(subject, path, &step);
                let used = public_key_seconds(pid).zip(before).map(|(after, before)| after - before);
                trial.public_key_share = used
                    .filter(|_| subject.phase == Phase::Exchange)
                    .map(|used| used.max(0.0) / step.seconds);
                Ok(Some(trial))
            },
            |trial| trial.why_invalid.as_deref(),
        )
    }

    /// One trial of latency, beside a load of `background_rps`; `None` if it was stopped.
    pub(super) fn latency(
        &mut self,
        subject: Subject,
        level: Level,
        path: Path,
        background_rps: f64,
    ) -> Result<Option<Latency>, Failure> {
        let background = subject.background();
        self.until_valid(
            |bench| {
                let found = if background == subject && path == Path::Short {
                    bench.beside_own(subject, background_rps)?
                } else {
                    bench.beside_others(subject, background, path, background_rps)?
                };
                let Some((step, answered_rps)) = found else { return Ok(None) };
                let too_little = (answered_rps < background_rps * BACKGROUND_SHARE_MIN).then(|| {
                    format!("the background had {answered_rps:.0}/s answered instead of {background_rps:.0}")
                });
                Ok(Some(Latency {
                    subject,
                    background,
                    level,
                    path,
                    background_rps: answered_rps,
                    answered: step.tally.answered,
                    failed: step.tally.sent - step.tally.answered,
                    times: Times::of_histogram(&step.tally.histograms.latency_ns),
                    parts: (subject.phase == Phase::Complete).then(|| Parts::of(&step)).flatten(),
                    why_invalid: why_invalid(&step).or(too_little),
                }))
            },
            |latency| latency.why_invalid.as_deref(),
        )
    }

    /// Measured clients and load in one process.
    fn beside_own(&self, subject: Subject, rps: f64) -> Result<Option<(Step, f64)>, Failure> {
        let mut words = self.words(subject, self.server.address);
        self.say_measured(&mut words);
        say(&mut words, "--background", &rps);
        let step = self.step(&words)?;
        // The background begins before the step, so it is not divided by the step's time.
        Ok(step.map(|step| {
            let share = step.background.as_ref().filter(|tally| tally.scheduled > 0);
            let share = share.map_or(0.0, |tally| tally.answered as f64 / tally.scheduled as f64);
            (step, rps * share)
        }))
    }

    /// Measured clients in a process of their own, which may take another path than the load.
    fn beside_others(
        &self,
        subject: Subject,
        background: Subject,
        path: Path,
        rps: f64,
    ) -> Result<Option<(Step, f64)>, Failure> {
        let record = self.folder.path().join("background.json");
        let mut words = self.words(background, self.server.address);
        say(&mut words, "--rate", &rps);
        say(
            &mut words,
            "--step-seconds",
            &(self.settings.trial_seconds + BACKGROUND_SPARE_SECONDS).min(3600.0),
        );
        say(&mut words, "--clients", &LOAD_CLIENTS);
        say(&mut words, "--record", &record.display());
        let mut load = Background::start(&words)?;
        self.await_load(&mut load, rps, &words)?;
        // A trial has a path of its own, as a path has places for so many clients and does not know who has left.
        let one_way = Duration::from_secs_f64(self.settings.long_path_ms / 2e3);
        let relay = match path {
            Path::Short | Path::Gigabit => None,
            Path::Long => Some(Relay::start(self.server.address, one_way)?),
        };
        let target = relay.as_ref().map_or(self.server.address, |relay| relay.address);
        let mut words = self.words(subject, target);
        self.say_measured(&mut words);
        let step = self.step(&words)?;
        let lasted = load.is_running()?;
        let status = load.stop()?;
        let Some(step) = step else { return Ok(None) };
        let text = fs::read_to_string(&record).ok();
        let beside = text.and_then(|text| LoadRecord::from_json(&text).ok()).filter(|_| lasted);
        match beside.as_ref().and_then(|record| record.steps.first()) {
            Some(beside) => Ok(Some((step, beside.answered_rps()))),
            None if self.stop.load(Ordering::Relaxed) => Ok(None),
            None => {
                Err(Failure::new(Exit::Internal, format!("a load run in the background failed ({status})")))
            }
        }
    }

    /// Waits until datagrams come in at the rate of a load; both its requests and their answers are counted.
    fn await_load(&self, load: &mut Background, rps: f64, words: &[String]) -> Result<(), Failure> {
        let deadline = Instant::now() + BEGIN_MAX;
        while Instant::now() < deadline && !self.stop.load(Ordering::Relaxed) {
            let (start, before) = (Instant::now(), received_count());
            std::thread::sleep(GLANCE);
            let after = received_count();
            let found = after.zip(before).map(|(after, before)| after.saturating_sub(before) as f64);
            // Where nothing is counted, time must do.
            if found.is_none_or(|count| count >= rps * start.elapsed().as_secs_f64()) {
                return Ok(());
            }
            if !load.is_running()? {
                break;
            }
        }
        if self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let message = format!("the load of this study did not begin: authentick {}", words.join(" "));
        Err(Failure::new(Exit::Internal, message))
    }

    fn say_measured(&self, words: &mut Vec<String>) {
        say(words, "--rate", &self.settings.measured_rps);
        say(words, "--step-seconds", &self.settings.trial_seconds);
        say(words, "--clients", &MEASURED_CLIENTS);
    }

    /// Repeats what says nothing about the server.
    fn until_valid<T>(
        &mut self,
        mut measure: impl FnMut(&mut Self) -> Result<Option<T>, Failure>,
        why_invalid: impl Fn(&T) -> Option<&str>,
    ) -> Result<Option<T>, Failure> {
        let attempt_count = if self.settings.quick { QUICK_ATTEMPT_COUNT_MAX } else { ATTEMPT_COUNT_MAX };
        let mut attempt = 1;
        loop {
            let Some(found) = self.answered(&mut measure)? else { return Ok(None) };
            match why_invalid(&found) {
                Some(why) if attempt < attempt_count => {
                    output::aside(&format!("again, as it does not count: {why}"));
                }
                Some(_) | None => return Ok(Some(found)),
            }
            attempt += 1;
        }
    }

    /// Repeats what the server did not answer, as one may not that has been overloaded. What it does not answer at all
    /// stays open: `None`.
    fn answered<T>(
        &mut self,
        measure: &mut impl FnMut(&mut Self) -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, Failure> {
        for _ in 0..SILENCE_COUNT_MAX {
            match measure(self) {
                Err(failure)
                    if matches!(failure.exit, Exit::Silence | Exit::Authentication | Exit::Unavailable) =>
                {
                    output::aside(&format!("again, as nothing came of it: {}", failure.message));
                    std::thread::sleep(PAUSE);
                }
                found => return found,
            }
        }
        output::error("left open, as nothing comes of it; the same command tries it again");
        Ok(None)
    }

    /// Where the load of a path goes, and the server's process.
    fn target(&mut self, path: Path) -> Result<(SocketAddr, u32), Failure> {
        let (Path::Gigabit, Ok(link)) = (path, &self.link) else {
            return Ok((self.server.address, self.server.id()));
        };
        let server = match self.linked.take() {
            Some(server) => server,
            None => {
                let config = configuration(&self.folder, &self.papers, &link.address)?;
                on_first_processor(|| Helper::server_under(&link.before(), &config))?
            }
        };
        let found = (server.address, server.id());
        self.linked = Some(server);
        Ok(found)
    }

    /// The arguments of a run that asks `target` for this, all but its rate, time and record.
    fn words(&self, subject: Subject, target: SocketAddr) -> Vec<String> {
        let scheme = match subject.phase {
            Phase::Plain => "plain",
            Phase::Negotiation => "antp-negotiate",
            Phase::Exchange => "antp-exchange",
            Phase::Time | Phase::SeparateTag => "antp",
            Phase::Complete => "antp-full",
        };
        let mut words = ["load", scheme, &target.to_string()].map(str::to_owned).to_vec();
        if subject.phase == Phase::Plain {
            return words;
        }
        say(&mut words, "--ca", &self.papers.antp_authorities().display());
        say(&mut words, "--server-name", &"localhost");
        let kem = match subject.suite {
            Some(Suite::Rsa) => "rsa",
            Some(Suite::Ecdh) | None => "ecdh",
        };
        say(&mut words, "--kem", &kem);
        match subject.phase {
            Phase::SeparateTag => words.extend(["--separate-tag", "--replay"].map(str::to_owned)),
            Phase::Negotiation | Phase::Exchange | Phase::Time => words.push("--replay".to_owned()),
            Phase::Plain | Phase::Complete => {}
        }
        words
    }

    /// The only step of a run; `None` if it was stopped.
    fn step(&self, words: &[String]) -> Result<Option<Step>, Failure> {
        let record = self.load(words)?;
        Ok(record.and_then(|record| record.steps.into_iter().next()))
    }

    /// Carries out a run and reads its record; `None` if it was stopped.
    fn load(&self, words: &[String]) -> Result<Option<LoadRecord>, Failure> {
        let file = self.folder.path().join("run.json");
        // One of the run before is not taken for this one's.
        let _ = fs::remove_file(&file);
        let mut words = words.to_vec();
        say(&mut words, "--record", &file.display());
        let status = helper::load(&words, self.stop)?;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let text = fs::read_to_string(&file).ok();
        match text
            .and_then(|text| LoadRecord::from_json(&text).ok())
            .filter(|record| !record.steps.is_empty())
        {
            Some(record) => Ok(Some(record)),
            None => Err(helper::nothing_came("a trial", status, &words)),
        }
    }
}

fn say(words: &mut Vec<String>, option: &str, value: &dyn Display) {
    words.extend([option.to_owned(), value.to_string()]);
}

/// A configuration for a server on this address, with nothing in the way of a load.
fn configuration(folder: &TempDir, papers: &Papers, address: &str) -> Result<PathBuf, Failure> {
    let file = folder.path().join(format!("authentick-{address}.toml"));
    let suite = |name: &str| {
        let (chain, key) = (papers.chain(name), papers.key(name));
        format!("certificate-chain = {chain:?}\nprivate-key = {key:?}\n")
    };
    let text = format!(
        "[server]\nlisten = [\"{address}:0\"]\nworkers = 1\nuser = \"root\"\n\
         reference = {{ stratum = 1, id = \"TEST\" }}\nstate-directory = {:?}\n\
         [antp]\nenable = true\nworkers = 1\n\
         rate-limit = {{ negotiations-per-second = 0, exchanges-per-second = 0, times-per-second = 0, \
         all-exchanges-per-second = 0 }}\n\
         [antp.ecdh]\n{}[antp.rsa]\n{}",
        folder.path().join(format!("state-{address}")),
        suite("antp-ecdh"),
        suite("antp-rsa"),
    );
    fs::write(&file, text)?;
    Ok(file)
}

/// Processor time of a process's threads for public keys, in seconds; `None` where the kernel does not tell.
fn public_key_seconds(pid: u32) -> Option<f64> {
    let mut found = None;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let read = |file: &str| fs::read_to_string(thread.path().join(file)).ok();
        if read("comm").is_some_and(|name| name.starts_with(PUBLIC_KEY_THREADS)) {
            // Nanoseconds on a processor, nanoseconds of waiting, turns.
            let ns: f64 = read("schedstat")?.split_whitespace().next()?.parse().ok()?;
            found = Some(found.unwrap_or(0.0) + ns / 1e9);
        }
    }
    found
}

/// Datagrams of UDP that this host has received.
fn received_count() -> Option<u64> {
    let text = fs::read_to_string("/proc/net/snmp").ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let index = lines.next()?.split_whitespace().position(|name| name == "InDatagrams")?;
    lines.next()?.split_whitespace().nth(index)?.parse().ok()
}

const _: () =
    assert!(MEASURED_CLIENTS as usize + 16 <= CLIENT_COUNT_MAX, "they and the first run have places there");

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn received_datagrams_are_counted() {
        let before = received_count().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[0; 48], socket.local_addr().unwrap()).unwrap();
        socket.recv(&mut [0; 64]).unwrap();
        assert!(received_count().unwrap() > before);
    }

    #[test]
    fn threads_for_public_keys_are_told_by_their_name() {
        let pid = std::process::id();
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name(format!("{PUBLIC_KEY_THREADS}0"));
        let thread = thread.spawn(move || {
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(20) {
                std::hint::black_box(());
            }
            let _ = told.recv();
        });
        let found = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(10));
            public_key_seconds(pid)
        });
        assert!(found.take(1000).flatten().any(|seconds| seconds > 0.0));
        drop(tell);
        thread.unwrap().join().unwrap();
    }
}
