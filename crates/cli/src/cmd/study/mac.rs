//! The drafts on MACs for NTP: one bench on this host, kept beside its plan, and rendered with the drafts' nine tables.

use std::path::Path;

use authentick_net::clock::unix_seconds;
use authentick_report::mac::{MacRecord, html, text};
use authentick_report::study::mac::{MacPlan, MacSettings, RECORD};
use authentick_report::study::plan::{FILE, Paper, StudyFormat};

use super::folder::{self, Known, begin, no_plan, plan_text, write};
use crate::args::StudyRun;
use crate::exit::{Exit, Failure};
use crate::host::{COMMIT, VERSION, command};
use crate::mac_bench::{self, Extent};

pub(super) fn run(arguments: &StudyRun) -> Result<Exit, Failure> {
    refuse_what_has_no_meaning(arguments)?;
    let path = &arguments.out;
    open(path, &plan(arguments))?;
    if record(path)?.is_none() {
        let extent = if arguments.quick { Extent::QUICK } else { Extent::FULL };
        write(path, RECORD, &mac_bench::run(extent)?.to_json())?;
    }
    render(path)?;
    Ok(Exit::Done)
}

/// Options of other studies. One that did nothing would be worse than none.
fn refuse_what_has_no_meaning(arguments: &StudyRun) -> Result<(), Failure> {
    let given = [
        ("--step-seconds", arguments.step_seconds.is_some()),
        ("--scale", arguments.scale.is_some()),
        ("--target", arguments.target.is_some()),
        ("--agents", !arguments.coordination.agents.is_empty()),
        ("--old and --new", arguments.old.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            let message =
                format!("{option}: of studies that load a server, which this one does not; leave it out");
            Err(Failure::new(Exit::Usage, message))
        }
        None => Ok(()),
    }
}

fn plan(arguments: &StudyRun) -> MacPlan {
    MacPlan {
        format: StudyFormat::V1,
        paper: Paper::Mac,
        command: command(),
        started_unix_s: unix_seconds(),
        settings: MacSettings {
            version: VERSION.to_owned(),
            commit: COMMIT.to_owned(),
            quick: arguments.quick,
            openssl: mac_bench::openssl_version(),
        },
    }
}

/// Makes sure that the folder holds this study, or begins it there.
fn open(path: &Path, plan: &MacPlan) -> Result<(), Failure> {
    let known = path.join(FILE).exists().then(|| read_plan(path)).transpose()?;
    let known = known.as_ref().map(|known| Known {
        is_the_same: known.settings == plan.settings,
        version: &known.settings.version,
        commit: &known.settings.commit,
        command: &known.command,
    });
    begin(path, RECORD, known, &plan.to_json())
}

fn read_plan(path: &Path) -> Result<MacPlan, Failure> {
    MacPlan::from_json(&plan_text(path)?).map_err(|error| no_plan(path, &error))
}

/// The record, if it has been measured.
fn record(path: &Path) -> Result<Option<MacRecord>, Failure> {
    folder::record(path, RECORD, Paper::Mac, MacRecord::from_json)
}

/// Writes text and page from what is in the folder, and prints the text.
pub(super) fn render(path: &Path) -> Result<(), Failure> {
    let plan = read_plan(path)?;
    let Some(record) = record(path)? else {
        return Err(folder::not_carried_out(path, RECORD, &plan.command));
    };
    let remarks = plan.remarks();
    folder::publish(path, &text::study(&record, &remarks), &html::study(&record, &remarks))
}
