//! `authentick certificates`: access for a server that is not root, and certificates for a lab.

mod lab;

use std::path::Path;

use authentick_daemon::{Config, hand_over};

use crate::args::Certificates;
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(command: &Certificates) -> Result<Exit, Failure> {
    match command {
        Certificates::HandOver { config, group } => hand_over(config, group),
        Certificates::Lab(arguments) => lab::run(arguments),
    }
}

fn hand_over(config: &Path, group: &str) -> Result<Exit, Failure> {
    let Some(report) = hand_over::hand_over(&Config::load(config)?, group)? else {
        output::result(&format!("{}: nothing to do, as it has no nts.hand-over\n", config.display()));
        return Ok(Exit::Done);
    };
    report.done.iter().for_each(|done| output::result(&format!("{done}\n")));
    let failures = report.failed.into_iter().map(Failure::from);
    Ok(failures.fold(Exit::Done, |_, failure| {
        output::error(&failure.message);
        failure.exit
    }))
}
