//! The record of a load run: what is put into it, and where it is kept.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use authentick_load::record::{named, parameters};
use authentick_load::runner::Run;
use authentick_load::target::Target;
use authentick_load::{Plan, Scheme};
use authentick_net::clock::unix_seconds;
use authentick_net::udp::ClientSocket;
use authentick_report::load::csv::csv;
use authentick_report::load::{self, LoadRecord, Parameters};

use crate::args::LoadArguments;
use crate::exit::{Exit, Failure};
use crate::files;
use crate::host::{COMMIT, VERSION, command, host};

/// A record without steps.
pub(super) fn begin(arguments: &LoadArguments, plan: &Plan, run: &Run, target: &Target) -> LoadRecord {
    let address = if plan.scheme == Scheme::Ke { plan.ke } else { plan.ntp };
    let is_local = is_local(address);
    let path = match &arguments.path {
        Some(label) => label,
        None if address.ip().is_loopback() => "loopback",
        None if is_local => "local",
        None => "network",
    };
    LoadRecord {
        command: command(),
        version: VERSION.to_owned(),
        commit: COMMIT.to_owned(),
        started_unix_s: unix_seconds(),
        host: host(),
        path: path.to_owned(),
        scheme: named(plan.scheme).to_string(),
        authentication: target.authentication.clone(),
        target: arguments.target.clone(),
        server_label: None,
        address: address.to_string(),
        engine: "sockets".to_owned(),
        parameters: Parameters {
            sources: arguments.sources.map(|prefix| prefix.to_string()),
            agents: arguments.coordination.agents.clone(),
            ..parameters(plan, run, target)
        },
        shared_clock: arguments.shared_clock || is_local,
        steps: Vec::new(),
        capacity: None,
        search: None,
        interrupted: None,
    }
}

/// Whether `server` is this host: its address is the one from which this host would send to it.
fn is_local(server: SocketAddr) -> bool {
    let local = ClientSocket::connect(server).and_then(|socket| socket.local());
    server.ip().is_loopback() || local.is_ok_and(|local| local.ip() == server.ip())
}

/// Refuses files that could not be written afterwards, before any load.
pub(super) fn check_writable(arguments: &LoadArguments) -> Result<(), Failure> {
    for (option, file) in named_files(arguments) {
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
        if let Err(error) = fs::write(file, text) {
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
