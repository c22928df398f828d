//! `authentick demo`: the whole of it on loopback, with nothing to set up.
//!
//! Starts a node with a certificate of its own making, asks it with every scheme in turn, and shows what
//! authentication added. Schemes alternate every few exchanges, so that what disturbs the host disturbs all alike.
//! Then it loads the node with each for a moment, in a closed loop, which finds what it holds without a search.

mod node;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use authentick_crypto::Entropy;
use authentick_ke::tls::Roots;
use authentick_load::Watch;
use authentick_load::contest::{Contestant, Server, compare};
use authentick_net::clock::unix_seconds;
use authentick_net::report_file;
use authentick_proto::symmetric::Allowed;
use authentick_report::load::LoadRecord;
use authentick_report::load::text::Rows;
use authentick_report::{RunRecord, load, run};
use clap::Parser as _;

use self::node::{KEY_ID, NAME, Node, SUITES};
use crate::args::{Arguments, Command, Demo, KeysFormat};
use crate::exit::{Exit, Failure};
use crate::files;
use crate::host::{COMMIT, VERSION};
use crate::server::server_name;
use crate::symmetric::KeyName;
use crate::{interrupt, output};

pub(crate) fn run(arguments: &Demo) -> Result<Exit, Failure> {
    // First of all, as a folder that cannot be written would waste everything else.
    fs::create_dir_all(&arguments.out).map_err(|error| unwritable(&arguments.out, &error))?;
    // Asked before this thread is pinned, which hides the other processors.
    let host = authentick_load::machine();
    let stop = interrupt::flag();
    let node = Node::start()?;
    let mut entropy = Entropy::from_system()?;
    let mut contestants = contestants(&node, &mut entropy)?;
    let started_unix_s = unix_seconds();
    let progress = output::progress(u64::from(arguments.exchanges), "exchanges");
    compare(&mut contestants, arguments.exchanges, &mut entropy, |count| {
        progress.inc(u64::from(count));
        !stop.load(Ordering::Relaxed)
    });
    let made = progress.position();
    progress.finish_and_clear();
    let record = RunRecord {
        command: format!("authentick demo --exchanges {}", arguments.exchanges),
        version: VERSION.to_owned(),
        commit: COMMIT.to_owned(),
        started_unix_s,
        host,
        path: "loopback".to_owned(),
        schemes: contestants.into_iter().map(|contestant| contestant.run).collect(),
    };
    let out = &arguments.out;
    write(out, [("run.json", record.to_json()), ("report.html", run::report(&record).page())])?;
    let loads = load_each(&node, &stop)?;
    let sound = node.stop();
    write(out, loads.iter().map(|load| (format!("load-{}.json", load.scheme), load.to_json())))?;
    if !loads.is_empty() {
        write(out, [("load.html", load::report(&loads.iter().collect::<Vec<_>>()).page())])?;
    }
    if stop.load(Ordering::Relaxed) {
        let (of, loads) = (arguments.exchanges, loads.len());
        output::error(&format!("stopped after {made} of {of} exchanges with each scheme, and {loads} loads"));
    }
    match arguments.json {
        true => output::result(&record.to_json()),
        false => output::result(&format!(
            "{}\n{}reports: {}{}\nrecords: {}\n",
            run::report(&record).text(),
            loads_table(&loads),
            out.join("report.html").display(),
            if loads.is_empty() {
                String::new()
            } else {
                format!(" and {}", out.join("load.html").display())
            },
            out.join("run.json").display(),
        )),
    }
    if let Some(load) = loads.iter().find(|load| load.steps.iter().any(|step| step.tally.answered == 0)) {
        return Err(Exit::Internal.because(format!("the load with {} was not answered", load.label())));
    }
    match record.schemes.iter().find(|run| run.failure_count() > 0) {
        Some(run) => Err(Exit::Internal.because(format!("some exchanges failed with {}", run.label()))),
        None if !sound => Err(Exit::Internal.because("a thread of the server failed")),
        None => Ok(Exit::Done),
    }
}

/// Clients of the node, one for each scheme, with the keys that they need.
fn contestants(node: &Node, entropy: &mut Entropy) -> Result<Vec<Contestant>, Failure> {
    let (ntp, file) = (node.ntp(), node.keys());
    let name = KeyName { file: &file, id: KEY_ID, format: KeysFormat::Auto, allowed: Allowed::default() };
    let (key, _) = name.find(&ntp.into())?;
    let internal = |problem: String| Exit::Internal.because(problem);
    let roots = Roots::from_pem(&fs::read(node.authority())?);
    let roots = roots.map_err(|defect| internal(defect.into()))?;
    let server = Server {
        ntp,
        key_exchange: node.key_exchange(),
        name: server_name(NAME)?,
        roots: &roots,
        suites: &SUITES.map(|(_, suite)| suite),
    };
    server.contestants(key, entropy).map_err(internal)
}

/// How long each scheme is offered as load, and how many requests are in flight.
const LOAD_SECONDS: &str = "1.5";
const LOAD_WINDOW: &str = "64";

/// Loads the node with each scheme, until `stop`.
fn load_each(node: &Node, stop: &AtomicBool) -> Result<Vec<LoadRecord>, Failure> {
    let target = node.ntp().to_string();
    let ke_port = node.key_exchange()[0].port().to_string();
    let (authority, key_file, key_id) = (node.authority(), node.keys(), KEY_ID.to_string());
    let (authority, key_file) = (authority.to_string_lossy(), key_file.to_string_lossy());
    let shape = ["--closed", LOAD_WINDOW, "--step-seconds", LOAD_SECONDS, "--json"];
    let trust = ["--ca", &authority, "--server-name", NAME];
    let nts = [&["--ke-port", &ke_port][..], &trust].concat();
    let key = ["--keys", &key_file, "--key-id", &key_id];
    // One suite stands for all: time requests are the same under each.
    let antp = [&["--kem", SUITES[0].0][..], &trust].concat();
    let loads = [("plain", &[][..]), ("mac", &key[..]), ("nts", &nts[..]), ("antp", &antp[..])];
    let progress = output::progress(loads.len() as u64, "loads");
    let mut records = Vec::new();
    for (scheme, further) in loads {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let words = [&["authentick", "load", scheme, &target], &shape[..], further].concat();
        // The same words as a user would write, so that the demo runs what users run.
        let parsed = Arguments::try_parse_from(words)
            .map_err(|error| Exit::Internal.because(format!("the demo's own command line: {error}")))?;
        let Command::Load(load) = parsed.command else { continue };
        records.push(super::load::measure(&load, &Watch::default())?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(records)
}

fn loads_table(loads: &[LoadRecord]) -> String {
    if loads.is_empty() {
        return String::new();
    }
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
    lines.join("\n") + "\n\n"
}

/// Writes texts to files of these names.
fn write<N: AsRef<Path>>(out: &Path, files: impl IntoIterator<Item = (N, String)>) -> Result<(), Failure> {
    for (name, text) in files {
        let file = out.join(name);
        report_file::write(&file, text.as_bytes()).map_err(|error| unwritable(&file, &error))?;
    }
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    files::unwritable(path, error, "name another folder with --out")
}
