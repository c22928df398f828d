//! How many requests a second does one core answer, beside chrony and beside a bare echo?
//!
//! Goal: ratios. Server and generator have a core each; our server, Debian's chrony and an echo that only moves
//! datagrams are loaded in turn, round after round, in one run, and ratios are taken within a round. Requests are real:
//! each NTS request has a client, a key and a cookie of its own, and answers are checked, a sample of them down to the
//! tag. Key exchanges of ANTP have a table of their own, beside the public-key operation alone. Non-goals: absolute
//! figures (the machine may be shared), latency, key exchange of NTS.
//!
//! `cargo bench -p authentick --bench capacity` takes five minutes; as root it makes two network namespaces, otherwise
//! it uses loopback and says so; `-- --rounds 3` makes it shorter. `cargo xtask peers` brings chrony. Among the tests
//! it runs once, for a few milliseconds. `-- --pairs 200` compares cookie keys of a fleet with those of a file alone,
//! in many short measurements, as the difference is far below what a machine's moods make of longer ones, and
//! `-- --span-pairs 200` a server that times one request in 64 with one that times none.

mod antp;
mod chrony;
mod exchanges;
mod fleet;
mod floor;
mod load;
mod pairs;
mod report;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_lab::certificates::Lab;
use authentick_lab::peers;
use authentick_lab::process::Process;
use authentick_rig::pair::Pair;

use self::exchanges::{Exchanges, kem_alone};
use self::load::{Kind, Measured};
use self::pairs::Rounds;
use self::report::report;

type Error = Box<dyn std::error::Error>;

/// What is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Echo,
    EchoWildcard,
    Ours,
    OursWildcard,
    /// Ours, with the generator among the clients whose requests are timed.
    OursTimed,
    /// The same, of which one request in 64 is timed.
    OursSampled,
    /// Ours, with cookie keys that a fleet shares.
    OursFleet,
    /// Ours, as another process.
    OursAgain,
    /// Ours, with smaller batches.
    OursBatch1,
    OursBatch4,
    OursBatch16,
    Chrony,
}

/// Our servers, the plain one first.
const OURS: [Subject; 6] = [
    Subject::Ours,
    Subject::OursWildcard,
    Subject::OursTimed,
    Subject::OursBatch1,
    Subject::OursBatch4,
    Subject::OursBatch16,
];

/// Our servers by the size of their batches.
const BATCHES: [(usize, Subject); 4] =
    [(1, Subject::OursBatch1), (4, Subject::OursBatch4), (16, Subject::OursBatch16), (64, Subject::Ours)];

/// The suites of ANTP that our servers have.
const ANTP_SUITES: [&str; 2] = ["ecdh", "rsa"];

impl Subject {
    const fn name(self) -> &'static str {
        match self {
            Subject::Echo => "echo",
            Subject::EchoWildcard => "echo, wildcard",
            Subject::Ours => "authentick",
            Subject::OursWildcard => "authentick, wildcard",
            Subject::OursTimed => "authentick, spans on",
            Subject::OursSampled => "authentick, spans of 1 in 64",
            Subject::OursFleet => "authentick, fleet",
            Subject::OursAgain => "authentick, again",
            Subject::OursBatch1 => "authentick, batch 1",
            Subject::OursBatch4 => "authentick, batch 4",
            Subject::OursBatch16 => "authentick, batch 16",
            Subject::Chrony => "chrony",
        }
    }

    /// Its ports for NTP and for key exchange.
    const fn ports(self) -> (u16, u16) {
        (10_123 + self as u16, 14_460 + self as u16)
    }
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--echo", address] => Ok(floor::echo(address.parse()?)?),
        ["--load", kind, ntp, ke_port, ca, milliseconds] => {
            load::measure([kind, ntp, ke_port, ca, milliseconds])
        }
        ["--kem", suite, milliseconds, chain, private_key] => {
            let duration = Duration::from_millis(milliseconds.parse()?);
            kem_alone(suite, duration, Path::new(chain), Path::new(private_key))
        }
        ["--pairs", count, "--bench"] => pairs::compare_fleet(Rounds::full(count.parse()?)),
        ["--span-pairs", count, "--bench"] => pairs::compare_spans(Rounds::full(count.parse()?)),
        ["--rounds", count, "--bench"] => bench(Size { round_count: count.parse()?, ..Size::FULL }),
        _ if words.contains(&"--bench") => bench(Size::FULL),
        _ => {
            bench(Size::SMOKE)?;
            pairs::compare_fleet(Rounds::SMOKE)?;
            pairs::compare_spans(Rounds::SMOKE)
        }
    }
}

/// How long to measure.
#[derive(Clone, Copy)]
struct Size {
    round_count: usize,
    milliseconds: u64,
    isolated: bool,
}

impl Size {
    const FULL: Size = Size { round_count: 7, milliseconds: 1000, isolated: true };
    const SMOKE: Size = Size { round_count: 1, milliseconds: 30, isolated: false };
}

/// One row of the result: a server under one kind of load.
struct Row {
    subject: Subject,
    kind: Kind,
    rates: Vec<f64>,
    invalid: u64,
}

impl Row {
    const fn new(subject: Subject, kind: Kind) -> Self {
        Row { subject, kind, rates: Vec::new(), invalid: 0 }
    }

    fn add(&mut self, measured: &Measured) {
        self.rates.push(measured.rate());
        self.invalid += measured.invalid;
    }

    /// # Errors
    /// If the server gave no answers, or bad ones.
    fn judge(&self) -> Result<(), Error> {
        match self.invalid == 0 && self.rates.iter().all(|&rate| rate > 0.0) {
            true => Ok(()),
            false => Err(format!(
                "{} under {}: {} bad answers, rates {:?}",
                self.subject.name(),
                self.kind.label(),
                self.invalid,
                self.rates
            )
            .into()),
        }
    }
}

fn bench(size: Size) -> Result<(), Error> {
    let files = Lab::new();
    for suite in ANTP_SUITES {
        files.antp_identity(suite, |_| {});
    }
    let (pair, why_not) = Pair::new(size.isolated);
    if let Some(reason) = why_not {
        println!("on loopback, as namespaces cannot be made: {reason}");
    }
    let address = pair.server_address();
    let this = std::env::current_exe()?;
    chrony::write_keys(&files.path().join("keys"), &load::key_file())?;
    let mut servers = Vec::new();
    for subject in [Subject::Echo, Subject::EchoWildcard] {
        let address = SocketAddr::new(listen(subject, address), subject.ports().0);
        servers.push(Process::start(pair.on_server(&this).args(["--echo", &address.to_string()])));
    }
    let ours = servers.len();
    for subject in OURS {
        let config = authentick(&files, subject, listen(subject, address), "")?;
        let program = Path::new(env!("CARGO_BIN_EXE_authentick"));
        servers.push(Process::start(pair.on_server(program).arg("serve").arg("--config").arg(config)));
    }
    let chrony = match peers::chronyd() {
        Some((program, libraries)) => {
            let (ntp, ke) = Subject::Chrony.ports();
            let config = chrony::config(files.path(), ntp, ke)?;
            let mut command = pair.on_server(&program);
            command.args(["-x", "-d", "-f"]).arg(config).env("LD_LIBRARY_PATH", libraries);
            servers.push(Process::start(&mut command));
            true
        }
        None => {
            println!("without chrony: run `cargo xtask peers` first");
            false
        }
    };
    let fleet = match fleet::start(&pair, &files, listen(Subject::OursFleet, address))? {
        Some(processes) => {
            servers.extend(processes);
            true
        }
        None => {
            println!("without memcached: run `cargo xtask peers` first");
            false
        }
    };
    std::thread::sleep(Duration::from_millis(1500));

    let (mut rows, mut exchanges) = (rows(chrony, fleet), Exchanges::new());
    for round in 0..size.round_count {
        for row in &mut rows {
            let measured = load(&pair, &this, row, &files.ca(), size.milliseconds)?;
            row.add(&measured);
        }
        exchanges.round(&pair, &this, &files, &servers[ours], size.milliseconds)?;
        if size.isolated {
            eprintln!("round {} of {}", round + 1, size.round_count);
        }
    }
    print!("{}{}", report(&rows, &pair, &servers[ours]), exchanges.report());
    rows.iter().try_for_each(Row::judge)?;
    exchanges.judge()
}

fn rows(chrony: bool, fleet: bool) -> Vec<Row> {
    let rows = [
        (Subject::Echo, Kind::EchoPlain),
        (Subject::Ours, Kind::Plain),
        (Subject::EchoWildcard, Kind::EchoPlain),
        (Subject::OursWildcard, Kind::Plain),
        (Subject::OursTimed, Kind::Plain),
        (Subject::Chrony, Kind::Plain),
        (Subject::Echo, Kind::EchoMac),
        (Subject::Ours, Kind::Cmac),
        (Subject::Chrony, Kind::Cmac),
        (Subject::Echo, Kind::EchoNts),
        (Subject::Ours, Kind::Nts15),
        (Subject::Ours, Kind::Nts30),
        (Subject::OursFleet, Kind::Nts15),
        (Subject::OursTimed, Kind::Nts15),
        (Subject::Chrony, Kind::Nts15),
        (Subject::Echo, Kind::EchoAntp),
        (Subject::Ours, Kind::Antp),
    ];
    let smaller = BATCHES.into_iter().filter(|(_, subject)| *subject != Subject::Ours);
    let kinds = [Kind::Plain, Kind::Nts15, Kind::Nts30, Kind::Antp];
    let smaller = smaller.flat_map(|(_, subject)| kinds.map(|kind| (subject, kind)));
    let is_there = |subject| match subject {
        Subject::Chrony => chrony,
        Subject::OursFleet => fleet,
        Subject::Echo
        | Subject::EchoWildcard
        | Subject::Ours
        | Subject::OursWildcard
        | Subject::OursTimed
        | Subject::OursSampled
        | Subject::OursAgain
        | Subject::OursBatch1
        | Subject::OursBatch4
        | Subject::OursBatch16 => true,
    };
    let there = rows.into_iter().chain(smaller).filter(|&(subject, _)| is_there(subject));
    there.map(|(subject, kind)| Row::new(subject, kind)).collect()
}

fn load(pair: &Pair, this: &Path, row: &Row, ca: &Path, milliseconds: u64) -> Result<Measured, Error> {
    let (ntp, ke) = row.subject.ports();
    let target = SocketAddr::new(pair.server_address(), ntp).to_string();
    let (kind, ke_port, milliseconds) = (row.kind.to_string(), ke.to_string(), milliseconds.to_string());
    let output = pair
        .on_client(this)
        .args(["--load", &kind, &target, &ke_port])
        .arg(ca)
        .arg(&milliseconds)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.parse().map_err(|_| {
        format!("{:?} under {kind}: {text}{}", row.subject, String::from_utf8_lossy(&output.stderr)).into()
    })
}

/// The address that a server listens on.
fn listen(subject: Subject, address: IpAddr) -> IpAddr {
    match subject {
        Subject::EchoWildcard | Subject::OursWildcard => Ipv4Addr::UNSPECIFIED.into(),
        Subject::Echo
        | Subject::Ours
        | Subject::OursTimed
        | Subject::OursSampled
        | Subject::OursFleet
        | Subject::OursAgain
        | Subject::OursBatch1
        | Subject::OursBatch4
        | Subject::OursBatch16
        | Subject::Chrony => address,
    }
}

/// Writes the configuration of one of our servers.
fn authentick(files: &Lab, subject: Subject, listen: IpAddr, nts: &str) -> Result<PathBuf, Error> {
    let config = files.path().join(format!("{subject:?}.toml"));
    let (folder, (ntp, ke)) = (files.path().display(), subject.ports());
    let suites: String = ANTP_SUITES
        .iter()
        .map(|suite| {
            let (chain, key) = (files.antp_chain(suite), files.antp_key(suite));
            format!("[antp.{suite}]\ncertificate-chain = {chain:?}\nprivate-key = {key:?}\n")
        })
        .collect();
    let every = match subject {
        Subject::OursTimed => Some(1),
        Subject::OursSampled => Some(64),
        _ => None,
    };
    let metrics = every.map_or(String::new(), |every| {
        let clients = "span-clients = [\"0.0.0.0/0\"]";
        format!("[metrics]\nlisten = \"127.0.0.1:0\"\n{clients}\nspan-every = {every}\n")
    });
    let batch = BATCHES.iter().find(|(_, known)| *known == subject).map_or(64, |(batch, _)| *batch);
    std::fs::write(
        &config,
        format!(
            "[server]\nlisten = [\"{listen}:{ntp}\"]\nworkers = 1\nbatch-size = {batch}\nuser = \"root\"\n\
             reference = {{ stratum = 1, id = \"GPS\" }}\nstate-directory = \"{folder}/state-{subject:?}\"\n\
             [nts]\nke-listen = [\"{listen}:{ke}\"]\nke-workers = 1\n\
             certificate-chain = \"{folder}/chain.pem\"\nprivate-key = \"{folder}/key.pem\"\n\
             ke-limits = {{ per-prefix-rate = 0, per-network-rate = 0 }}\n{nts}\
             [symmetric]\nkeys = \"{folder}/keys\"\n[antp]\nenable = true\nworkers = 1\n\
             rate-limit = {{ negotiations-per-second = 0, exchanges-per-second = 0, times-per-second = 0, \
             all-exchanges-per-second = 0 }}\n{suites}{metrics}"
        ),
    )?;
    Ok(config)
}
