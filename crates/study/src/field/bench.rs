//! The servers of the study, and the load runs against them.
//!
//! Each server has this machine's first processor, generators have its last. Servers start when they are first wanted,
//! and stay: those that are not asked do nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;

use authentick_crypto::mac::MacAlgorithm;
use authentick_net::report_file;
use authentick_report::load::Step;
use authentick_report::study::field::{
    Cell, Latency, Level, Scheme, Server, Settings as FieldSettings, Trial,
};
use authentick_rig::certificates::write_private;
use authentick_rig::peers::{self, Identity, Key, Kind, Peer, Place, Ports, Setup};
use authentick_rig::process::Process;
use authentick_rig::processors::{Processor, pinned};
use tempfile::TempDir;

use super::choice::{Choice, Stranger};
use super::{asked, kind};
use crate::identities::Identities;
use crate::places::Places;
use crate::program::{Launch, Listening, load_record, say};
use crate::tried::{Tried, until_valid};
use crate::{Caller, Error, Fault};

/// How often a trial is repeated until the generator has kept up.
const ATTEMPT_COUNT_MAX: u32 = 3;
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// How long one request to a server that somebody else runs, and each part of its key exchange, may take.
const QUERY_SECONDS: u32 = 3;
/// The name that certificates have.
const NAME: &str = "localhost";

/// What trials need.
pub struct Bench<'a> {
    settings: FieldSettings,
    choice: &'a Choice,
    places: &'a Places,
    caller: Caller<'a>,
    folder: TempDir,
    identities: Identities,
    keys: Vec<Key>,
    /// Servers that were wanted so far, or why there is none.
    servers: BTreeMap<Server, Result<Running, String>>,
    /// Cells of servers that somebody else runs that gave a good answer to one request.
    served: BTreeSet<Cell>,
    /// What is to be said of servers that ended by themselves.
    restarts: Vec<String>,
}

/// A server that runs.
enum Running {
    Ours {
        process: Listening,
        ke: SocketAddr,
        title: String,
    },
    Others {
        server: peers::Server,
        peer: Peer,
    },
    /// Somebody else sees to that.
    Given(Stranger),
}

impl Running {
    fn title(&self) -> String {
        match self {
            Running::Ours { title, .. } => title.clone(),
            Running::Others { peer, .. } => peer.title(),
            Running::Given(stranger) => stranger.title(),
        }
    }

    /// Whether it has a scheme; if not, why.
    fn serves(&self, scheme: Scheme) -> Result<(), String> {
        match self {
            Running::Ours { .. } | Running::Given(_) => Ok(()),
            Running::Others { peer, .. } => peer.serves(asked(scheme)),
        }
    }

    /// Whether it still runs.
    fn check(&mut self) -> Result<(), String> {
        match self {
            Running::Ours { process, title, .. } => process.check().map_err(|why| format!("{title}: {why}")),
            Running::Given(_) => Ok(()),
            Running::Others { server, .. } => server.check().map_err(|error| error.to_string()),
        }
    }

    /// Where it serves time, as a command line has it.
    fn ntp(&self) -> String {
        match self {
            Running::Ours { process, .. } => process.address.to_string(),
            Running::Others { server, .. } => server.ntp().to_string(),
            Running::Given(stranger) => stranger.ntp(),
        }
    }

    /// Where it exchanges keys, in the same way.
    fn ke(&self) -> Option<String> {
        match self {
            Running::Ours { ke, .. } => Some(ke.to_string()),
            Running::Others { server, .. } => server.ke().map(|ke| ke.to_string()),
            Running::Given(stranger) => stranger.ke(),
        }
    }

    /// The port of that; 0 if there is none.
    fn ke_port(&self) -> u16 {
        match self {
            Running::Ours { ke, .. } => ke.port(),
            Running::Others { server, .. } => server.ke().map_or(0, |ke| ke.port()),
            Running::Given(stranger) => stranger.given.ke_port.unwrap_or(0),
        }
    }

    /// That it may be loaded, and whose processor time a run is to tell: chrony exchanges keys in a process of its own.
    fn say_loaded(&self, words: &mut Vec<String>) {
        let pids = match self {
            Running::Ours { process, .. } => vec![process.id()],
            Running::Others { server, .. } => {
                server.processes().iter().flat_map(Process::family).collect::<Vec<_>>()
            }
            Running::Given(stranger) => return stranger.say_loaded(words),
        };
        pids.iter().for_each(|pid| say(words, "--server-pid", pid));
    }
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        settings: &FieldSettings,
        choice: &'a Choice,
        places: &'a Places,
        caller: Caller<'a>,
    ) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let identities = Identities::new(folder.path()).map_err(Error::rig("cannot make certificates"))?;
        identities.add_antp().map_err(Error::rig("cannot make certificates for ANTP"))?;
        let keys = keys();
        let bench = Bench {
            settings: settings.clone(),
            choice,
            places,
            caller,
            folder,
            identities,
            keys,
            servers: BTreeMap::new(),
            served: BTreeSet::new(),
            restarts: Vec::new(),
        };
        write_private(&bench.key_file(), &bench.keys.iter().map(Key::line).collect::<String>())?;
        Ok(bench)
    }

    /// What is to be said of all trials.
    pub(super) fn remarks() -> Vec<String> {
        vec![
            "Servers and generator share one machine and its loopback. Each server runs on the first processor alone: \
             authentick serve with one worker, and one thread each for key exchanges and public keys; chrony with -x; \
             ntpd-rs without sources; facebook/time\u{2019}s responder with two workers, as its own default is more \
             than there are processors. None of them steers a clock. No server limits rates."
                .to_owned(),
        ]
    }

    /// Has the server of a cell run, and returns its title; as an inner error, why it does not, or lacks the scheme.
    pub(super) fn ready(&mut self, cell: Cell) -> Result<Result<String, String>, Error> {
        let choice = self.choice;
        if let Some(stranger) = choice.stranger(cell.server) {
            return self.ready_elsewhere(stranger, cell);
        }
        if let Some(why) = self.ended(cell.server) {
            let sentence = format!("{why}; it was started again.");
            self.caller.console.warn(&sentence);
            self.restarts.push(sentence);
            self.servers.remove(&cell.server);
        }
        if !self.servers.contains_key(&cell.server) {
            let started = self.start(cell.server).map_err(|error| error.to_string());
            self.servers.insert(cell.server, started);
        }
        let running = self.servers[&cell.server].as_ref().map_err(Clone::clone);
        Ok(running.and_then(|running| running.serves(cell.scheme).map(|()| running.title())))
    }

    /// The same of a server that somebody else runs. Under each scheme it is asked once, until that goes well.
    fn ready_elsewhere(&mut self, stranger: &Stranger, cell: Cell) -> Result<Result<String, String>, Error> {
        if !self.served.contains(&cell) {
            if let Err(why) = self.caller.ask(&self.query(stranger, cell.scheme))? {
                let (title, scheme) = (stranger.title(), cell.scheme.name());
                return Ok(Err(format!("{title} gave no good answer to one request ({scheme}): {why}")));
            }
            self.served.insert(cell);
        }
        self.servers.entry(cell.server).or_insert_with(|| Ok(Running::Given(stranger.clone())));
        Ok(Ok(stranger.title()))
    }

    /// The arguments that ask such a server once.
    fn query(&self, stranger: &Stranger, scheme: Scheme) -> Vec<String> {
        let mut words = vec!["query".to_owned(), stranger.ntp()];
        say(&mut words, "--timeout", &QUERY_SECONDS);
        match asked(scheme) {
            peers::Scheme::Nts(aead) => {
                say(&mut words, "--ke-port", &stranger.given.ke_port.unwrap_or(0));
                say(&mut words, "--aead", &aead);
                stranger.say_trusted(&mut words);
            }
            // Under other schemes no such server is asked.
            peers::Scheme::Plain | peers::Scheme::Mac(_) | peers::Scheme::Antp => {
                say(&mut words, "--auth", &"plain");
            }
        }
        words
    }

    /// That a server of this study has ended by itself, if it has: a sentence without its end.
    pub(super) fn ended(&mut self, server: Server) -> Option<String> {
        match self.servers.get_mut(&server) {
            Some(Ok(running)) => running.check().err(),
            Some(Err(_)) | None => None,
        }
    }

    /// Asks the server of a cell once before it is measured again, if somebody else runs it.
    pub(super) fn doubt(&mut self, cell: Cell) {
        self.served.remove(&cell);
    }

    /// What is to be said of servers that were started again since this was asked last.
    pub(super) fn restarts(&mut self) -> Vec<String> {
        std::mem::take(&mut self.restarts)
    }

    fn start(&self, server: Server) -> Result<Running, Error> {
        match kind(server) {
            None if server != Server::Authentick => {
                Err(Error::Bug(format!("nobody says where {} is", server.name())))
            }
            None => self.start_ours(),
            Some(kind) => self.start_others(kind).map_err(Error::rig("a server of others")),
        }
    }

    fn start_ours(&self) -> Result<Running, Error> {
        let ke = SocketAddr::new(ADDRESS, free_tcp()?);
        let config = self.configuration(ke)?;
        let program = self.caller.program;
        let process = pinned(Processor::First, || program.serve(Launch::Here, &config))?;
        Ok(Running::Ours { process, ke, title: format!("{} {}", Server::Authentick.name(), program.version) })
    }

    fn start_others(&self, kind: Kind) -> Result<Running, authentick_rig::Error> {
        let peer = Peer::find(kind, &self.places.search())?;
        let port = |found: Result<u16, std::io::Error>| {
            found.map_err(|error| authentick_rig::Error::System { what: "a free port".to_owned(), error })
        };
        let ports = Ports { ntp: port(free_udp())?, ke: port(free_tcp())?, spare: port(free_tcp())? };
        let (chain, key) = (self.identities.chain("server"), self.identities.key("server"));
        let setup = Setup {
            place: Place::here(),
            address: ADDRESS,
            ports,
            folder: self.folder.path(),
            identity: Some(Identity { chain: &chain, key: &key }),
            keys: &self.keys,
        };
        let server = pinned(Processor::First, || peer.start(&setup))?;
        Ok(Running::Others { server, peer })
    }

    /// A configuration with every scheme, and with nothing in the way of a load.
    fn configuration(&self, ke: SocketAddr) -> Result<PathBuf, Error> {
        let file = self.folder.path().join("authentick.toml");
        let identity = |name: &str| {
            let (chain, key) = (self.identities.chain(name), self.identities.key(name));
            format!("certificate-chain = {chain:?}\nprivate-key = {key:?}\n")
        };
        let text = format!(
            "[server]\nlisten = [\"{ADDRESS}:0\"]\nworkers = 1\nuser = \"root\"\n\
             reference = {{ stratum = 1, id = \"TEST\" }}\nstate-directory = {:?}\n\
             [nts]\nke-listen = [\"{ke}\"]\nke-workers = 1\n{}\
             [nts.ke-limits]\nper-prefix = 512\nper-prefix-rate = 0\nper-network-rate = 0\n\
             [symmetric]\nkeys = {:?}\nallow-legacy = true\nallow-experimental = true\n\
             [antp]\nenable = true\nworkers = 1\n\
             rate-limit = {{ negotiations-per-second = 0, exchanges-per-second = 0, times-per-second = 0, \
             all-exchanges-per-second = 0 }}\n[antp.ecdh]\n{}",
            self.folder.path().join("state"),
            identity("server"),
            self.key_file(),
            identity("antp-ecdh"),
        );
        report_file::write(&file, text.as_bytes())?;
        Ok(file)
    }

    fn key_file(&self) -> PathBuf {
        self.folder.path().join("keys")
    }

    /// One trial of what a cell answers, whose server is ready.
    pub(super) fn capacity(&self, cell: Cell, round: u32) -> Result<Tried<Trial>, Error> {
        let running = self.running(cell.server)?;
        let mut words = self.words(running, cell.scheme);
        self.say_closed(&mut words, self.settings.window);
        self.until_valid(
            running,
            &words,
            |came| Trial::of(cell, round, &came.step),
            |trial| trial.why_invalid.as_deref(),
        )
    }

    /// One trial of the key exchanges of a server that is ready.
    pub(super) fn exchanges(&self, cell: Cell, round: u32) -> Result<Tried<Trial>, Error> {
        let running = self.running(cell.server)?;
        let Some(ke) = running.ke() else {
            return Err(Error::Bug(format!("{} exchanges no keys", cell.server.name())));
        };
        let mut words = vec!["load".to_owned(), "ke".to_owned(), ke];
        self.say_trusted(&mut words, running, cell.scheme);
        running.say_loaded(&mut words);
        self.say_closed(&mut words, self.settings.exchange_window);
        self.until_valid(
            running,
            &words,
            |came| Trial::of(cell, round, &came.step),
            |trial| trial.why_invalid.as_deref(),
        )
    }

    /// One trial of latency of a cell whose server is ready, at so many requests a second.
    pub(super) fn latency(
        &self,
        cell: Cell,
        level: Level,
        round: u32,
        rps: f64,
    ) -> Result<Tried<Latency>, Error> {
        let running = self.running(cell.server)?;
        let mut words = self.words(running, cell.scheme);
        say(&mut words, "--rate", &rps);
        say(&mut words, "--arrivals", &"exponential");
        self.say_load(&mut words, self.settings.window, self.settings.latency_seconds);
        self.until_valid(
            running,
            &words,
            |came| Latency::of((cell, level, round), rps, &came.step, came.shares_clock),
            |trial| trial.why_invalid.as_deref(),
        )
    }

    fn running(&self, server: Server) -> Result<&Running, Error> {
        match self.servers.get(&server) {
            Some(Ok(running)) => Ok(running),
            Some(Err(_)) | None => Err(Error::Bug(format!("{} does not run", server.name()))),
        }
    }

    /// Repeats what says nothing about the server.
    fn until_valid<T>(
        &self,
        running: &Running,
        words: &[String],
        trial: impl Fn(&Came) -> T,
        why_invalid: impl Fn(&T) -> Option<&str>,
    ) -> Result<Tried<T>, Error> {
        let is_elsewhere = matches!(running, Running::Given(_));
        let measure = || {
            Ok(match self.step(words) {
                Ok(Some(came)) if came.step.tally.answered == 0 => {
                    Tried::Silent("no answer in the whole trial passed every check".to_owned())
                }
                Ok(Some(came)) => Tried::Done(trial(&came)),
                Ok(None) => Tried::Stopped,
                Err(error) if error.fault() == Fault::Server => Tried::Silent(error.to_string()),
                // Where such a server sends its clients is not in the hands of this study.
                Err(error @ Error::Run { .. }) if is_elsewhere => Tried::Silent(error.to_string()),
                Err(error) => return Err(error),
            })
        };
        until_valid(&self.caller, ATTEMPT_COUNT_MAX, measure, why_invalid)
    }

    /// The arguments of a run of requests for time: whom it asks, and under what.
    fn words(&self, running: &Running, scheme: Scheme) -> Vec<String> {
        let mut words = vec!["load".to_owned()];
        let target = running.ntp();
        match asked(scheme) {
            peers::Scheme::Plain => words.extend(["plain".to_owned(), target]),
            peers::Scheme::Mac(algorithm) => {
                words.extend(["mac".to_owned(), target]);
                let key = self.keys.iter().find(|key| key.algorithm == algorithm);
                say(&mut words, "--keys", &self.key_file().display());
                say(&mut words, "--key-id", &key.map_or(1, |key| key.id));
                words.extend(["--allow-legacy", "--allow-experimental"].map(str::to_owned));
            }
            peers::Scheme::Nts(_) => {
                words.extend(["nts".to_owned(), target]);
                say(&mut words, "--ke-port", &running.ke_port());
                self.say_trusted(&mut words, running, scheme);
            }
            peers::Scheme::Antp => {
                words.extend(["antp".to_owned(), target]);
                say(&mut words, "--ca", &self.identities.antp_authorities().display());
                say(&mut words, "--server-name", &NAME);
                if scheme == Scheme::AntpSeparateTag {
                    words.push("--separate-tag".to_owned());
                }
            }
        }
        running.say_loaded(&mut words);
        words
    }

    /// Whom clients of NTS trust, and which AEAD they ask for.
    fn say_trusted(&self, words: &mut Vec<String>, running: &Running, scheme: Scheme) {
        match running {
            Running::Ours { .. } | Running::Others { .. } => {
                say(words, "--ca", &self.identities.authority().display());
                say(words, "--server-name", &NAME);
            }
            Running::Given(stranger) => stranger.say_trusted(words),
        }
        if let peers::Scheme::Nts(aead) = asked(scheme) {
            say(words, "--aead", &aead);
        }
    }

    fn say_closed(&self, words: &mut Vec<String>, window: u32) {
        say(words, "--closed", &window);
        self.say_load(words, window, self.settings.trial_seconds);
    }

    fn say_load(&self, words: &mut Vec<String>, clients: u32, seconds: f64) {
        say(words, "--clients", &clients);
        say(words, "--step-seconds", &seconds);
        say(words, "--warm-up", &self.settings.warm_up_seconds);
    }

    /// The only step of a run; `None` if it was stopped.
    fn step(&self, words: &[String]) -> Result<Option<Came>, Error> {
        let file = self.folder.path().join("run.json");
        // One of the run before is not taken for this one's.
        let _ = fs::remove_file(&file);
        let mut words = words.to_vec();
        say(&mut words, "--record", &file.display());
        let status = self.caller.load(Launch::Here, &words)?;
        if self.caller.says_stop() {
            return Ok(None);
        }
        match load_record(&file) {
            Some(record) => {
                let shares_clock = record.shared_clock;
                Ok(record.steps.into_iter().next().map(|step| Came { step, shares_clock }))
            }
            None => Err(self.caller.program.nothing_came("a trial", status, &words)),
        }
    }
}

/// What a run brought.
struct Came {
    step: Step,
    /// Whether client and server read one clock.
    shares_clock: bool,
}

/// A key of every type, under the number of its place. They guard nothing but this machine's loopback.
fn keys() -> Vec<Key> {
    let key = |(algorithm, id): (MacAlgorithm, u32)| {
        let sizes = algorithm.key_sizes();
        let size = if sizes.contains(&16) { 16 } else { *sizes.start() };
        Key { id, algorithm, octets: (0..size).map(|octet| octet as u8 ^ id as u8).collect() }
    };
    MacAlgorithm::ALL.into_iter().zip(1..).map(key).collect()
}

/// Ports that nobody has at the moment.
fn free_udp() -> std::io::Result<u16> {
    Ok(UdpSocket::bind((ADDRESS, 0))?.local_addr()?.port())
}

fn free_tcp() -> std::io::Result<u16> {
    Ok(TcpListener::bind((ADDRESS, 0))?.local_addr()?.port())
}
