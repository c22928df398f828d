//! `authentick certificates`: what root does for the certificates of a server that is not root.

use authentick_daemon::{Config, hand_over};

use crate::args::Certificates;
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(Certificates::HandOver { config, group }: &Certificates) -> Result<Exit, Failure> {
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
