//! `authentick demo`: the whole of it on loopback, with nothing to set up.
//!
//! Starts a node with a certificate of its own making, asks it with every scheme in turn, and shows what
//! authentication added. Schemes alternate every few exchanges, so that what disturbs the host disturbs all alike.
//! Then it loads the node with each for a moment, in a closed loop, which finds what it holds without a search.

mod contest;
mod node;

use std::fs;
use std::path::Path;

use authentick_load::Watch;
use authentick_net::clock::unix_seconds;
use authentick_report::load::LoadRecord;
use authentick_report::load::text::Rows;
use authentick_report::{RunRecord, load, run};
use clap::Parser as _;

use self::contest::{compare, contestants};
use self::node::{KEY_ID, NAME, Node, SUITES};
use crate::args::{Arguments, Command, Demo};
use crate::exit::{Exit, Failure};
use crate::files;
use crate::host::{COMMIT, VERSION, host};
use crate::output;

pub(crate) fn run(arguments: &Demo) -> Result<Exit, Failure> {
    // First of all, as a folder that cannot be written would waste everything else.
    fs::create_dir_all(&arguments.out).map_err(|error| unwritable(&arguments.out, &error))?;
    // Asked before this thread is pinned, which hides the other processors.
    let host = host();
    let node = Node::start()?;
    let mut contestants = contestants(&node)?;
    let started_unix_s = unix_seconds();
    compare(&mut contestants, arguments.exchanges)?;
    let record = RunRecord {
        command: format!("authentick demo --exchanges {}", arguments.exchanges),
        version: VERSION.to_owned(),
        commit: COMMIT.to_owned(),
        started_unix_s,
        host,
        path: "loopback".to_owned(),
        schemes: contestants.into_iter().map(|contestant| contestant.run).collect(),
    };
    write(&arguments.out, &record)?;
    let loads = load(&node)?;
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
        return Err(Exit::Internal.because(format!("the load with {} was not answered", load.label())));
    }
    match record.schemes.iter().find(|run| run.failure_count() > 0) {
        Some(run) => Err(Exit::Internal.because(format!("some exchanges failed with {}", run.label()))),
        None if !sound => Err(Exit::Internal.because("a thread of the server failed")),
        None => Ok(Exit::Done),
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
fn load(node: &Node) -> Result<Vec<LoadRecord>, Failure> {
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
