//! The command line of authentick: flags are parsed here, and nowhere below.
#![forbid(unsafe_code)]

mod args;
mod cmd;
mod exit;
mod files;
mod host;
mod input;
mod interrupt;
mod journal;
mod output;
mod remedy;
mod server;
mod symmetric;
mod trust;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use crate::args::{BenchVerb, Command};
use crate::exit::{Exit, Failure};

fn main() -> ExitCode {
    let (arguments, paths) = match args::parse() {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help and version are not mistakes, and go to standard output.
            if !error.use_stderr() {
                output::note(error.print());
                return end(Ok(Exit::Done)).into();
            }
            let _ = error.print();
            output::failure_object(Exit::Usage, error.to_string().trim_end());
            return end(Ok(Exit::Usage)).into();
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
    if let Err(failure) = files::name(paths) {
        return end(Err(failure)).into();
    }
    if takes_interrupts(&arguments.command)
        && let Err(error) = interrupt::start()
    {
        return end(Err(error.into())).into();
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
    end(result).into()
}

/// Whether signals end the command as [`interrupt`] says.
fn takes_interrupts(command: &Command) -> bool {
    match command {
        // It has signals of its own, and forks before it has threads.
        Command::Serve(serve) => serve.check,
        // Its parent ends it, and the instructions are hidden from the only thread.
        Command::Bench(bench) => {
            let BenchVerb::Mac(arguments) = &bench.verb;
            !arguments.without_instructions
        }
        _ => true,
    }
}

/// Prints why a command failed, and what of its results was lost. The process has one end: who comes second, of the
/// command and a signal, waits here for the exit of the first.
fn end(result: Result<Exit, Failure>) -> Exit {
    static ENDED: Mutex<()> = Mutex::new(());
    std::mem::forget(ENDED.lock().unwrap_or_else(PoisonError::into_inner));
    let mut code = *result.as_ref().unwrap_or_else(|failure| &failure.exit);
    if let Err(failure) = &result {
        output::failure_object(failure.exit, &failure.message);
    }
    for failure in result.err().into_iter().chain(output::lost()) {
        output::error(&failure.message);
        if code == Exit::Done {
            code = failure.exit;
        }
    }
    journal::end();
    code
}
