//! The command line of authentick: flags are parsed here, and nowhere below.
#![forbid(unsafe_code)]

mod args;
mod cmd;
mod exit;
mod files;
mod host;
mod input;
mod journal;
mod output;
mod remedy;
mod server;
mod symmetric;
mod trust;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Command};
use crate::exit::{Exit, Failure};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are not mistakes, and go to standard output.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let printed = error.print();
            if !error.use_stderr() {
                output::note(printed);
            }
            return end(Ok(exit));
        }
    };
    // The demo's node would warn that nobody vouches for this host's clock, which is no matter there.
    match &arguments.command {
        Command::Demo(_) | Command::Study(_) => journal::start(log::LevelFilter::Error),
        Command::Serve(serve) => {
            if !serve.check {
                journal::queue();
            }
            journal::start_for_months(serve.log_format);
        }
        _ => journal::start(log::LevelFilter::Info),
    }
    let result = match arguments.command {
        Command::Demo(demo) => cmd::demo::run(&demo),
        Command::Serve(serve) => cmd::serve::run(&serve),
        Command::Query(query) => cmd::query::run(&query),
        Command::Load(load) => cmd::load::run(&load),
        Command::Stress(stress) => cmd::stress::run(&stress),
        Command::Keys(keys) => cmd::keys::run(&keys),
        Command::Certificates(certificates) => cmd::certificates::run(&certificates),
        Command::Doctor(doctor) => cmd::doctor::run(&doctor),
        Command::Report(report) => cmd::report::run(&report),
        Command::Bench(bench) => cmd::bench::run(&bench),
        Command::Study(study) => cmd::study::run(&study),
        Command::Plan(plan) => cmd::plan::run(&plan),
        Command::Game(game) => cmd::game::run(&game),
        Command::Manual { directory } => cmd::manual::run(&directory),
    };
    end(result)
}

/// Prints why a command failed, and what of its results was lost.
fn end(result: Result<Exit, Failure>) -> ExitCode {
    let mut code = *result.as_ref().unwrap_or_else(|failure| &failure.exit);
    for failure in result.err().into_iter().chain(output::lost()) {
        output::error(&failure.message);
        if code == Exit::Done {
            code = failure.exit;
        }
    }
    journal::end();
    code.into()
}
