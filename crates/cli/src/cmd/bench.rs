//! `authentick bench`: what cryptography costs on this machine.
//!
//! `bench mac` prints the tables of the drafts on MACs for NTP, with ours beside; `study::ntp_mac::bench` measures
//! them.

use std::io;

use authentick_report::mac::report;
use authentick_study::Caller;
use authentick_study::ntp_mac::bench::{self, Extent};

use super::study::{Terminal, program};
use crate::args::{Bench, BenchMac, BenchVerb};
use crate::exit::{Exit, Failure};
use crate::files;
use crate::{interrupt, output};

pub(crate) fn run(order: &Bench) -> Result<Exit, Failure> {
    match &order.verb {
        BenchVerb::Mac(arguments) => mac(arguments),
    }
}

fn mac(arguments: &BenchMac) -> Result<Exit, Failure> {
    let extent = extent(arguments);
    if arguments.without_instructions {
        bench::serve(extent, io::stdin().lock(), io::stdout().lock())?;
        return Ok(Exit::Done);
    }
    let page = files::output("--html", arguments.html.as_deref())?;
    let (program, console, stop) = (program()?, Terminal::default(), interrupt::flag());
    let record = bench::run(extent, &Caller { program: &program, console: &console, stop: &stop })?;
    if record.round_count < extent.round_count {
        output::error(&format!("stopped after {} of {} rounds", record.round_count, extent.round_count));
    }
    page.into_iter().try_for_each(|mut file| file.write(&report(&record).page()))?;
    output::result(&match arguments.json {
        true => record.to_json(),
        false => report(&record).text(),
    });
    if let Some(file) = arguments.html.as_ref().filter(|_| !arguments.json) {
        output::result(&format!("\nreport: {}\n", file.display()));
    }
    Ok(Exit::Done)
}

fn extent(arguments: &BenchMac) -> Extent {
    let base = if arguments.quick { Extent::QUICK } else { Extent::FULL };
    Extent {
        round_count: arguments.rounds.unwrap_or(base.round_count),
        turn: arguments.turn_ms.unwrap_or(base.turn),
        single_count: arguments.singles.unwrap_or(base.single_count),
    }
}
