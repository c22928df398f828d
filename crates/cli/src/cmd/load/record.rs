//! The record of a load run: what is put into it, and where it is kept.

use std::path::Path;

use authentick_load::runner::Run;
use authentick_load::target::Target;
use authentick_load::{Plan, journal, record as load_record};
use authentick_report::load::csv::csv;
use authentick_report::load::{self, LoadRecord, Parameters};

use crate::args::LoadArguments;
use crate::exit::{Exit, Failure};
use crate::files;
use crate::host::{COMMIT, VERSION, command};

/// A record without steps.
pub(super) fn begin(arguments: &LoadArguments, plan: &Plan, run: &Run, target: &Target) -> LoadRecord {
    let record = load_record::begin(plan, run, target, &arguments.coordination.agents);
    LoadRecord {
        command: command(),
        version: VERSION.to_owned(),
        commit: COMMIT.to_owned(),
        host: authentick_load::machine(),
        path: arguments.path.clone().unwrap_or(record.path),
        target: arguments.target.clone(),
        server_label: arguments.label.clone(),
        parameters: Parameters {
            sources: arguments.sources.map(|prefix| prefix.to_string()),
            ..record.parameters
        },
        shared_clock: arguments.shared_clock || record.shared_clock,
        ..record
    }
}

/// Refuses files that could not be written afterwards, before any load.
pub(super) fn check_writable(arguments: &LoadArguments) -> Result<(), Failure> {
    let spans = arguments.spans.as_deref().map(|file| ("--spans", file));
    for (option, file) in named_files(arguments).chain(spans) {
        files::check_writable(file).map_err(|error| unwritable(option, file, &error))?;
    }
    Ok(())
}

/// Writes the files that were asked for; all of them, even if one fails.
pub(super) fn keep(arguments: &LoadArguments, record: &LoadRecord) -> Result<(), Failure> {
    let mut result = Ok(());
    for (option, file) in named_files(arguments) {
        let text = match option {
            "--record" => record.to_json(),
            "--csv" => csv(record),
            _ => load::report(&[record]).page(),
        };
        if let Err(error) = journal::keep(file, &text) {
            result = Err(unwritable(option, file, &error));
        }
    }
    result
}

fn named_files(arguments: &LoadArguments) -> impl Iterator<Item = (&'static str, &Path)> {
    let files = [("--record", &arguments.record), ("--csv", &arguments.csv), ("--html", &arguments.html)];
    files.into_iter().filter_map(|(option, file)| Some((option, file.as_deref()?)))
}

fn unwritable(option: &str, file: &Path, error: &std::io::Error) -> Failure {
    let exit = Exit::of_access(error);
    exit.because(format!("{option} {}: cannot write: {error}; name another file", file.display()))
}
