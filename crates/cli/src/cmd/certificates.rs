//! `authentick certificates`: what root does for the certificates of a server that is not root.

use authentick_daemon::Config;
use authentick_daemon::hand_over::{self, Done};

use crate::args::{Certificates, HandOver};
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(arguments: &Certificates) -> Result<Exit, Failure> {
    match arguments {
        Certificates::HandOver(arguments) => hand_over(arguments),
    }
}

fn hand_over(arguments: &HandOver) -> Result<Exit, Failure> {
    let config = Config::load(&arguments.config)?;
    let Some(report) = hand_over::hand_over(&config, &arguments.group)? else {
        let file = arguments.config.display();
        output::result(&format!("{file}: nothing to do, as it has no nts.hand-over\n"));
        return Ok(Exit::Done);
    };
    for done in &report.done {
        let (word, path) = match done {
            Done::Written(path) => ("written", path),
            Done::Unchanged(path) => ("unchanged", path),
            Done::Removed(path) => ("removed", path),
        };
        output::result(&format!("{word} {}\n", path.display()));
    }
    let exits = report.failed.into_iter().map(|error| {
        let failure = Failure::from(error);
        output::error(&failure.message);
        failure.exit
    });
    // The last one's code, as a script can tell of no more than one.
    Ok(exits.last().unwrap_or(Exit::Done))
}
