//! `authentick demo`: the whole of it on loopback, with nothing to set up.
//!
//! Starts a node with a certificate of its own making, asks it with every scheme in turn, and shows what
//! authentication added. Schemes alternate every few exchanges, so that what disturbs the host disturbs all alike.
//! Then it loads the node with each for a moment, in a closed loop, which finds what it holds without a search.

mod antp;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_client::antp::phases::ask_time;
use authentick_client::{Measurement, mac, nts, plain};
use authentick_crypto::Entropy;
use authentick_crypto::mac::MacAlgorithm;
use authentick_daemon::{Config, Running, node};
use authentick_ke::client::{Ask, Timing, dial};
use authentick_ke::tls::{Roots, client_config};
use authentick_load::Watch;
use authentick_net::affinity;
use authentick_net::clock::unix_seconds;
use authentick_net::replace::replace;
use authentick_proto::client::NtsSession;
use authentick_proto::symmetric::{Allowed, SymmetricKey};
use authentick_report::load::LoadRecord;
use authentick_report::load::text::Rows;
use authentick_report::{Exchange, Failure as Cause, Format, KeyExchange, RunRecord, SchemeRun, load, run};
use authentick_wire::ke::AeadId;
use authentick_wire::time::NtpTime;
use clap::Parser as _;
use indicatif::ProgressBar;
use rustls::pki_types::ServerName;

use crate::args::{Arguments, Command, Demo, KeysFormat};
use crate::exit::{Exit, Failure};
use crate::files;
use crate::host::{COMMIT, VERSION, host};
use crate::output;
use crate::symmetric::KeyName;

/// Where client and server run: on two processors if there are two, so that neither waits for the other's.
fn pin_client() {
    if let Ok([_, .., last]) = affinity::allowed().as_deref()
        && let Err(error) = affinity::pin(*last)
    {
        log::debug!("the client is not pinned to a processor: {error}");
    }
}

/// Exchanges of a scheme's turn that count, and before them those that do not.
const TURN: u32 = 25;
const WARM_UP: u32 = 5;
/// From one exchange to the next: a client that asks in a rush would measure queues.
const PAUSE: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_secs(1);
const KE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &Demo) -> Result<Exit, Failure> {
    // First of all, as a folder that cannot be written would waste everything else.
    fs::create_dir_all(&arguments.out).map_err(|error| unwritable(&arguments.out, &error))?;
    // Asked before this thread is pinned, which hides the other processors.
    let host = host();
    let folder = tempfile::tempdir()?;
    let node = start(folder.path())?;
    let mut contestants = contestants(folder.path(), &node)?;
    let started_unix_s = unix_seconds();
    compare(&mut contestants, &node, arguments.exchanges)?;
    let record = RunRecord {
        format: Format::V1,
        command: format!("authentick demo --exchanges {}", arguments.exchanges),
        version: VERSION.to_owned(),
        commit: COMMIT.to_owned(),
        started_unix_s,
        host,
        path: "loopback".to_owned(),
        schemes: contestants.into_iter().map(|contestant| contestant.run).collect(),
    };
    write(&arguments.out, &record)?;
    let loads = load(folder.path(), &node)?;
    let sound = node.stop();
    write_loads(&arguments.out, &loads)?;
    match arguments.json {
        true => output::result(&record.to_json()),
        false => output::result(&format!(
            "{}\n{}\nreports: {} and {}\nrecords: {}\n",
            run::report(&record).text(),
            loads_table(&loads),
            arguments.out.join("report.html").display(),
            arguments.out.join("load.html").display(),
            arguments.out.join("run.json").display(),
        )),
    }
    if let Some(load) = loads.iter().find(|load| load.steps.iter().any(|step| step.tally.answered == 0)) {
        return Err(Failure::new(Exit::Internal, format!("the load with {} was not answered", load.label())));
    }
    match record.schemes.iter().find(|run| run.failure_count() > 0) {
        Some(run) => Err(Failure::new(Exit::Internal, format!("some exchanges failed with {}", run.label()))),
        None if !sound => Err(Failure::new(Exit::Internal, "a thread of the server failed")),
        None => Ok(Exit::Done),
    }
}

/// One scheme, and what it has measured so far.
struct Contestant {
    means: Means,
    run: SchemeRun,
}

/// What a contestant's requests are authenticated with.
enum Means {
    Nothing,
    Key(SymmetricKey),
    Session(Box<NtsSession>),
    Antp(Box<antp::Asked>),
}

impl Means {
    /// Asks once; or why no answer passed.
    fn measure(&mut self, server: SocketAddr, entropy: &mut Entropy) -> Result<Measurement, String> {
        let asked = match self {
            Means::Nothing => plain::ask(server, entropy, TIMEOUT),
            Means::Key(key) => mac::ask(server, key, entropy, TIMEOUT),
            Means::Session(session) => nts::ask(server, session, entropy, TIMEOUT),
            Means::Antp(asked) => {
                let timed = ask_time(server, &mut asked.session, asked.ask, entropy, TIMEOUT);
                return timed.map(|timed| timed.measurement).map_err(|unanswered| unanswered.to_string());
            }
        };
        asked.map_err(|unanswered| unanswered.to_string())
    }
}

/// The symmetric key of the demo.
const KEY_ID: u32 = 1;
const KEY_ALGORITHM: MacAlgorithm = MacAlgorithm::Cmac128;

/// Where it is kept: a file as chrony has it.
fn key_file(folder: &Path) -> PathBuf {
    folder.join("symmetric-keys")
}

/// Makes the key that clients and node share.
fn write_key(folder: &Path) -> Result<(), Failure> {
    let octets: [u8; 16] = Entropy::from_system()?.array();
    let digits: String = octets.iter().map(|octet| format!("{octet:02X}")).collect();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(key_file(folder))?;
    writeln!(file, "{KEY_ID} {KEY_ALGORITHM} HEX:{digits}")?;
    Ok(())
}

/// Starts a node on free ports, with keys of both kinds and certificate in `folder`.
fn start(folder: &Path) -> Result<Running, Failure> {
    let internal =
        |error: rcgen::Error| Failure::new(Exit::Internal, format!("cannot make a certificate: {error}"));
    let key = rcgen::KeyPair::generate().map_err(internal)?;
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).map_err(internal)?;
    let certificate = params.self_signed(&key).map_err(internal)?;
    let (chain, key_file) = (folder.join("chain.pem"), folder.join("key.pem"));
    fs::write(&chain, certificate.pem())?;
    replace(&key_file, key.serialize_pem().as_bytes(), None).map_err(|(_, error)| error)?;
    write_key(folder)?;
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\nuser = \"root\"\n\
         reference = {{ stratum = 1, id = \"DEMO\" }}\n\
         state-directory = {:?}\n[nts]\nke-listen = [\"127.0.0.1:0\"]\ncertificate-chain = {chain:?}\n\
         private-key = {key_file:?}\n\
         [symmetric]\nkeys = {:?}\n{}",
        folder.join("state"),
        self::key_file(folder),
        antp::configuration(folder)?,
    );
    Ok(node::start(&Config::parse(&folder.join("demo.toml"), &text)?)?)
}

/// Plain NTP, a MAC under a symmetric key, NTS with the algorithm that every server has and with the one of the
/// shortest cookies, and ANTP with the paper's suites.
fn contestants(folder: &Path, node: &Running) -> Result<Vec<Contestant>, Failure> {
    let without_exchange = |scheme: &str, authentication: &str| SchemeRun {
        scheme: scheme.to_owned(),
        authentication: authentication.to_owned(),
        key_exchange: None,
        antp_phases: None,
        exchanges: Vec::new(),
        failures: Vec::new(),
    };
    let file = key_file(folder);
    let name = KeyName { file: &file, id: KEY_ID, format: KeysFormat::Auto, allowed: Allowed::default() };
    let key = name.find(node.ntp_addresses()[0].ip())?;
    let mut contestants = vec![
        Contestant { means: Means::Nothing, run: without_exchange("plain", "none") },
        Contestant { means: Means::Key(key), run: without_exchange("mac", KEY_ALGORITHM.name()) },
    ];
    let authority = fs::read(folder.join("chain.pem"))?;
    let roots = Roots::from_pem(&authority).map_err(|problem| Failure::new(Exit::Internal, problem))?;
    let tls = client_config(roots);
    for aead in [AeadId::SIV_CMAC_256, AeadId::AES_128_GCM_SIV] {
        let server_name = ServerName::try_from("localhost").expect("a host name");
        let ask = Ask { tls: tls.clone(), server_name, aeads: vec![aead] };
        let dialled = dial(&ask, node.ke_addresses(), KE_TIMEOUT)
            .map_err(|error| Failure::new(Exit::Internal, format!("key exchange with {aead}: {error}")))?;
        contestants.push(Contestant {
            means: Means::Session(Box::new(dialled.established.session)),
            run: SchemeRun {
                scheme: "nts".to_owned(),
                authentication: aead.to_string(),
                key_exchange: Some(key_exchange(&dialled.timing)),
                antp_phases: None,
                exchanges: Vec::new(),
                failures: Vec::new(),
            },
        });
    }
    for asked in antp::sessions(folder, node.ntp_addresses()[0])? {
        let run = SchemeRun { antp_phases: asked.phases, ..without_exchange("antp", &asked.name) };
        contestants.push(Contestant { means: Means::Antp(Box::new(asked)), run });
    }
    Ok(contestants)
}

/// Asks with each scheme in turns of some exchanges. The first ones of a turn do not count: they bring the scheme's
/// own code and data back into the caches, which the others have used meanwhile, at either end. Exchanges that took
/// turns one by one measured that instead, at ten times what the cryptography takes.
fn compare(contestants: &mut [Contestant], node: &Running, count: u32) -> Result<(), Failure> {
    let mut entropy = Entropy::from_system()?;
    let server = node.ntp_addresses()[0];
    pin_client();
    let progress: ProgressBar = output::progress(u64::from(count), "exchanges");
    let mut left = count;
    for round in 0.. {
        let size = TURN.min(left);
        for place in order(round, contestants.len()) {
            let Contestant { means, run } = &mut contestants[place];
            for number in 0..WARM_UP + size {
                std::thread::sleep(PAUSE);
                let result = means.measure(server, &mut entropy);
                match result {
                    _ if number < WARM_UP => {}
                    Ok(measurement) => run.exchanges.push(exchange(&measurement)),
                    Err(cause) => count_failure(&mut run.failures, cause),
                }
            }
        }
        progress.inc(u64::from(size));
        left -= size;
        if left == 0 {
            break;
        }
    }
    progress.finish_and_clear();
    Ok(())
}

/// Whose turn it is in a round: each begins some round, and every other one goes backwards, so that nobody always comes
/// after the same one.
fn order(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| {
        let place = (round / 2 + turn) % count;
        if round.is_multiple_of(2) { place } else { count - 1 - place }
    })
}

fn count_failure(failures: &mut Vec<Cause>, cause: String) {
    match failures.iter_mut().find(|failure| failure.cause == cause) {
        Some(failure) => failure.count += 1,
        None => failures.push(Cause { cause, count: 1 }),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn key_exchange(timing: &Timing) -> KeyExchange {
    KeyExchange {
        connect_ns: nanos(timing.connect),
        handshake_ns: nanos(timing.handshake),
        exchange_ns: nanos(timing.exchange),
    }
}

fn exchange(measurement: &Measurement) -> Exchange {
    let pivot = i64::try_from(unix_seconds()).unwrap_or(0);
    let unix_ns = |time: NtpTime| {
        let (seconds, nanos) = time.to_unix(pivot);
        seconds * 1_000_000_000 + i64::from(nanos)
    };
    let header = &measurement.response.header;
    Exchange {
        sent_ns: unix_ns(measurement.sent),
        server_receive_ns: unix_ns(header.receive),
        server_transmit_ns: unix_ns(header.transmit),
        arrived_ns: unix_ns(measurement.arrived),
        offset_ns: measurement.sample.offset.as_nanos(),
        delay_ns: measurement.sample.delay.as_nanos(),
        whole_ns: nanos(measurement.whole),
    }
}

fn write(out: &Path, record: &RunRecord) -> Result<(), Failure> {
    for (name, text) in [("run.json", record.to_json()), ("report.html", run::report(record).page())] {
        let file = out.join(name);
        fs::write(&file, text).map_err(|error| unwritable(&file, &error))?;
    }
    Ok(())
}

/// How long each scheme is offered as load, and how many requests are in flight.
const LOAD_SECONDS: &str = "1.5";
const LOAD_WINDOW: &str = "64";

/// Loads the node with each scheme.
fn load(folder: &Path, node: &Running) -> Result<Vec<LoadRecord>, Failure> {
    let target = node.ntp_addresses()[0].to_string();
    let ke_port = node.ke_addresses()[0].port().to_string();
    let authority = folder.join("chain.pem");
    let authority = authority.to_string_lossy();
    let shape = ["--closed", LOAD_WINDOW, "--step-seconds", LOAD_SECONDS, "--json"];
    let trust = ["--ke-port", &ke_port, "--ca", &authority, "--server-name", "localhost"];
    let (key_file, key_id) = (key_file(folder), KEY_ID.to_string());
    let key_file = key_file.to_string_lossy();
    let key = ["--keys", &key_file, "--key-id", &key_id];
    let (kem, chain) = antp::loaded(folder);
    let chain = chain.to_string_lossy();
    let antp = ["--kem", kem, "--ca", &chain, "--server-name", "localhost"];
    let loads = [("plain", &[][..]), ("mac", &key[..]), ("nts", &trust[..]), ("antp", &antp[..])];
    let progress = output::progress(loads.len() as u64, "loads");
    let mut records = Vec::new();
    for (scheme, further) in loads {
        let words = [&["authentick", "load", scheme, &target], &shape[..], further].concat();
        // The same words as a user would write, so that the demo runs what users run.
        let parsed = Arguments::try_parse_from(words)
            .map_err(|error| Failure::new(Exit::Internal, format!("the demo's own command line: {error}")))?;
        let Command::Load(load) = parsed.command else { continue };
        records.push(super::load::measure(&load, &Watch::default())?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(records)
}

fn loads_table(loads: &[LoadRecord]) -> String {
    let title = format!(
        "Loaded for {LOAD_SECONDS} s each in a closed loop with {LOAD_WINDOW} requests in flight, one thread sending:"
    );
    let width = loads.iter().map(|load| load.label().len()).max().unwrap_or(0);
    let mut lines = vec![title];
    for load in loads {
        let rows = Rows::new(&load.address);
        if lines.len() == 1 {
            lines.push(format!("{:width$}  {}", "scheme", rows.header().trim_end()));
        }
        for step in &load.steps {
            lines.push(format!("{:width$}  {}", load.label(), rows.row(step).trim_end()));
        }
    }
    lines.join("\n") + "\n"
}

/// Keeps the records of the loads, and a page that sets them side by side.
fn write_loads(out: &Path, loads: &[LoadRecord]) -> Result<(), Failure> {
    let page = load::report(&loads.iter().collect::<Vec<_>>()).page();
    let records = loads.iter().map(|load| (format!("load-{}.json", load.scheme), load.to_json()));
    for (name, text) in records.chain([("load.html".to_owned(), page)]) {
        let file = out.join(name);
        fs::write(&file, text).map_err(|error| unwritable(&file, &error))?;
    }
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    files::unwritable(path, error, "name another folder with --out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_has_a_turn_in_each_round_and_no_fixed_neighbour() {
        const COUNT: usize = 7;
        let rounds: Vec<Vec<usize>> = (0..2 * COUNT).map(|round| order(round, COUNT).collect()).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..COUNT).collect::<Vec<_>>());
        }
        for scheme in 0..COUNT {
            let firsts = rounds.iter().filter(|round| round[0] == scheme).count();
            assert_eq!(firsts, 2, "{scheme}");
            let before: std::collections::BTreeSet<usize> = rounds
                .iter()
                .filter_map(|round| Some(round[round.iter().position(|&one| one == scheme)?.checked_sub(1)?]))
                .collect();
            assert!(before.len() >= 2, "{scheme} always comes after {before:?}");
        }
    }
}
