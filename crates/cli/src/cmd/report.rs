//! `authentick report`: stored runs to text, to a page, and against an older run.

use std::path::Path;

use authentick_report::load::LoadRecord;
use authentick_report::load::compare::against;
use authentick_report::{Record, record, stored};

use crate::args::Report;
use crate::exit::{Exit, Failure};
use crate::files::{self, unreadable, wrong};
use crate::output;

pub(crate) fn run(arguments: &Report) -> Result<Exit, Failure> {
    let page_file = files::output("--html", arguments.html.as_deref())?;
    let mut loads = Vec::new();
    let mut others = Vec::new();
    let mut out = String::new();
    for path in &arguments.runs {
        if !out.is_empty() {
            out.push('\n');
        }
        let record = read(path)?;
        out += &record.report().text();
        match record.into_load() {
            Ok(record) => loads.push((path, record)),
            Err(other) => others.push((path, other)),
        }
    }
    let old = arguments.against.as_deref().map(|path| load(path, "--against")).transpose()?;
    if let (Some(_), Some((path, other))) = (&old, others.first()) {
        let problem = format!("--against compares load runs, and this is {}", other.what());
        return Err(wrong(path, &problem, "name a load record"));
    }
    // Without an older run the others are compared with the first.
    let (base, compared) = match (&old, loads.split_first()) {
        (Some(old), _) => (Some(old), &loads[..]),
        (None, Some(((_, first), others))) => (Some(first), others),
        (None, None) => (None, &loads[..]),
    };
    let (gate, mut failed) = (arguments.gate(), Vec::new());
    if let Some(base) = base {
        for (path, record) in compared {
            let comparison = against(record, base);
            out += &format!("\n{}:\n{}", path.display(), comparison.text());
            let Some(gate) = &gate else { continue };
            if let Some(differences) = comparison.refused(gate) {
                return Err(Exit::Usage.because(format!(
                    "{}: the gate does not compare unlike runs: {differences}; measure both alike, or add \
                     --allow-unlike",
                    path.display()
                )));
            }
            let name = |failure| format!("{}: {}: {failure}", path.display(), record.server());
            failed.extend(comparison.failures(gate).into_iter().map(name));
        }
    }
    if let Some(mut file) = page_file {
        let records: Vec<&LoadRecord> =
            old.iter().chain(loads.iter().map(|(_, load)| load)).map(|load| &**load).collect();
        let others: Vec<&Record> = others.iter().map(|(_, other)| other).collect();
        let page = record::page(&records, &others).map_err(|message| Exit::Usage.because(message))?;
        file.write(&page)?;
        out += &format!("\nreport: {}\n", file.file.name().display());
    }
    output::result(&out);
    match failed.is_empty() {
        true => Ok(Exit::Done),
        false => Err(Exit::GATE_FAILED.because(format!("the gate failed: {}", failed.join("; ")))),
    }
}

/// A load record that an option names.
fn load(path: &Path, option: &str) -> Result<Box<LoadRecord>, Failure> {
    read(path)?.into_load().map_err(|record| {
        let problem = format!("this is {}, and only load runs are compared", record.what());
        wrong(path, &problem, &format!("name a load record with {option}"))
    })
}

/// Reads a record of any kind.
fn read(path: &Path) -> Result<Record, Failure> {
    let text = files::read_named(path).and_then(|octets| {
        String::from_utf8(octets).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
    });
    let text = text.map_err(|error| {
        unreadable(path, &error, "a record is JSON in UTF-8; name one", "name a file that exists")
    })?;
    Record::from_json(&text).map_err(|error| {
        let remedy = match error {
            stored::Error::Format { .. } => "render it with the version that wrote it, or a later one",
            _ => {
                "name a record that authentick wrote: of load with --record FILE, the demo's run.json, what bench mac \
                 --json printed, or what study run antp or nts measured"
            }
        };
        wrong(path, &error.to_string(), remedy)
    })
}
