//! The servers of the study, and the load runs against them.
//!
//! Servers and generators share this machine: servers have its first processor alone, generators have its last.

use std::cell::OnceCell;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use authentick_net::privilege::is_root;
use authentick_net::report_file;
use authentick_report::load::{LoadRecord, Step};
use authentick_report::study::antp::{Path as Way, Phase, Settings as AntpSettings, Subject, Suite};
use authentick_rig::hosts::{Host, Hosts};
use authentick_rig::process::{Process, is_installed};
use authentick_rig::processors::{Processor, pinned};
use tempfile::TempDir;

use crate::identities::Identities;
use crate::program::{Launch, Listening, load_record, say};
use crate::{Caller, Error, Fault};

/// How long a background may take until it loads the server.
const BEGIN_MAX: Duration = Duration::from_secs(15);
/// Over so long it is looked whether it does.
const GLANCE: Duration = Duration::from_millis(100);
/// What threads for public keys are called.
const PUBLIC_KEY_THREADS: &str = "antp-";

/// What trials need.
pub struct Bench<'a> {
    pub(super) settings: AntpSettings,
    pub(super) caller: Caller<'a>,
    folder: TempDir,
    identities: Identities,
    server: Listening,
    /// The server behind 1 Gbit/s. It stands before the hosts, of which it is on one, and so ends first.
    linked: OnceCell<Listening>,
    /// Two hosts with a cable of 1 Gbit/s between them, or why there are none.
    gigabit: Result<Hosts, String>,
}

/// Where load goes.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) address: SocketAddr,
    /// The server's process.
    pub(super) pid: u32,
    /// Where the generator runs.
    pub(super) launch: Launch<'a>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(settings: &AntpSettings, caller: Caller<'a>) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let identities = Identities::new(folder.path()).map_err(Error::rig("cannot make certificates"))?;
        identities.add_antp().map_err(Error::rig("cannot make certificates for ANTP"))?;
        let config = configuration(&folder, &identities, "127.0.0.1")?;
        let (program, gigabit) = (caller.program, gigabit());
        let server = pinned(Processor::First, || program.serve(Launch::Here, &config))?;
        Ok(Bench {
            settings: settings.clone(),
            caller,
            folder,
            identities,
            server,
            linked: OnceCell::new(),
            gigabit,
        })
    }

    /// What is to be said of all trials.
    pub(super) fn remarks(&self) -> Vec<String> {
        vec![
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
        ]
    }

    /// Why there is no such path, if so.
    pub(super) fn why_not(&self, path: Way) -> Option<String> {
        match path {
            Way::Short | Way::Long => None,
            Way::Gigabit => {
                self.gigabit.as_ref().err().map(|why| format!("there is no link of 1 Gbit/s: {why}"))
            }
        }
    }

    /// Where measured clients ask that share this machine's loopback with the load.
    pub(super) fn server_address(&self) -> SocketAddr {
        self.server.address
    }

    /// Where the load of a path goes.
    pub(super) fn target(&self, path: Way) -> Result<Target<'_>, Error> {
        let (server, launch) = match (path, &self.gigabit) {
            (Way::Gigabit, Ok(hosts)) => (self.server_behind(hosts)?, Launch::On(hosts, Host::Client(0))),
            (Way::Short | Way::Long | Way::Gigabit, _) => (&self.server, Launch::Here),
        };
        Ok(Target { address: server.address, pid: server.id(), launch })
    }

    /// The server behind 1 Gbit/s, which is started when it is first wanted.
    fn server_behind(&self, hosts: &Hosts) -> Result<&Listening, Error> {
        if let Some(server) = self.linked.get() {
            return Ok(server);
        }
        let address = hosts.address(Host::Server).to_string();
        let config = configuration(&self.folder, &self.identities, &address)?;
        let (program, launch) = (self.caller.program, Launch::On(hosts, Host::Server));
        let server = pinned(Processor::First, || program.serve(launch, &config))?;
        Ok(self.linked.get_or_init(|| server))
    }

    /// The arguments of a run that asks `target` for this, all but its rate, time and record.
    pub(super) fn words(&self, subject: Subject, target: SocketAddr) -> Vec<String> {
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
        say(&mut words, "--ca", &self.identities.antp_authorities().display());
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
    pub(super) fn step(&self, launch: Launch<'_>, words: &[String]) -> Result<Option<Step>, Error> {
        let record = self.load(launch, words)?;
        Ok(record.and_then(|record| record.steps.into_iter().next()))
    }

    /// Carries out a run and reads its record; `None` if it was stopped.
    pub(super) fn load(&self, launch: Launch<'_>, words: &[String]) -> Result<Option<LoadRecord>, Error> {
        let file = self.folder.path().join("run.json");
        // One of the run before is not taken for this one's.
        let _ = fs::remove_file(&file);
        let mut words = words.to_vec();
        say(&mut words, "--record", &file.display());
        let status = self.caller.load(launch, &words)?;
        if self.caller.says_stop() {
            return Ok(None);
        }
        match load_record(&file) {
            Some(record) => Ok(Some(record)),
            None => Err(self.caller.program.nothing_came("a trial", status, &words)),
        }
    }

    /// Where a load in the background keeps its record.
    pub(super) fn background_record(&self) -> PathBuf {
        self.folder.path().join("background.json")
    }

    /// Waits until datagrams come in at the rate of a load; both its requests and their answers are counted.
    ///
    /// # Errors
    /// If they do not: the server is the first not to have had the processor, if the load does not say otherwise.
    pub(super) fn await_load(&self, load: &mut Process, rps: f64, words: &[String]) -> Result<(), Error> {
        let deadline = Instant::now() + BEGIN_MAX;
        while Instant::now() < deadline && !self.caller.says_stop() {
            let (start, before) = (Instant::now(), received_count());
            std::thread::sleep(GLANCE);
            let after = received_count();
            let found = after.zip(before).map(|(after, before)| after.saturating_sub(before) as f64);
            // Where nothing is counted, time must do.
            if found.is_none_or(|count| count >= rps * start.elapsed().as_secs_f64()) {
                return Ok(());
            }
            if let Some(status) = ended(load)? {
                return Err(self.caller.program.nothing_came(BACKGROUND, status, words));
            }
        }
        if self.caller.says_stop() {
            return Ok(());
        }
        let status = load.stop(BACKGROUND_END_MAX).map_err(Error::rig(BACKGROUND))?;
        let command = format!("authentick {}", words.join(" "));
        Err(Error::Run { what: BACKGROUND.to_owned(), fault: Fault::Server, status, command })
    }
}

/// A load run beside what is measured, in messages.
pub(super) const BACKGROUND: &str = "a load run in the background of this study";

/// How long it may take to end, as it waits for its last answers.
pub(super) const BACKGROUND_END_MAX: Duration = Duration::from_secs(10);

/// How it has ended, if by itself.
pub(super) fn ended(load: &mut Process) -> Result<Option<ExitStatus>, Error> {
    load.end().map_err(Error::rig(BACKGROUND))
}

/// Two hosts with a cable of 1 Gbit/s between them. It takes root, iproute2 and the kernel's tbf; where one is missing
/// the study goes without.
///
/// # Errors
/// Why there are none, in half a sentence.
pub(super) fn gigabit() -> Result<Hosts, String> {
    if !is_root() {
        return Err("only root may make network namespaces".to_owned());
    }
    if let Some(program) = ["ip", "tc"].into_iter().find(|program| !is_installed(program)) {
        return Err(format!("there is no program {program:?} on PATH; install iproute2"));
    }
    let hosts = Hosts::new(1).map_err(|error| error.to_string())?;
    hosts.limit_to_gigabit(0).map_err(|error| error.to_string())?;
    Ok(hosts)
}

/// A configuration for a server on this address, with nothing in the way of a load.
fn configuration(folder: &TempDir, identities: &Identities, address: &str) -> Result<PathBuf, Error> {
    let file = folder.path().join(format!("authentick-{address}.toml"));
    let suite = |name: &str| {
        let (chain, key) = (identities.chain(name), identities.key(name));
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
    report_file::write(&file, text.as_bytes())?;
    Ok(file)
}

/// Processor time of a process's threads for public keys, in seconds; `None` where the kernel does not tell.
pub(super) fn public_key_seconds(pid: u32) -> Option<f64> {
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
