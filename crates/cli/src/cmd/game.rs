//! `authentick game`: the adversary as programs, without a socket. What they do is in the crate `game`.

use std::fmt::Display;

use authentick_game::mac::limits::MESSAGES_LOG2;
use authentick_game::mac::{Program, Results};
use authentick_game::report::Whole;
use authentick_game::schedule::Searches;
use authentick_game::strategy::{Listing, Table};
use authentick_game::trace::{self, Trace};
use authentick_game::{protocol, strategy};
use serde::Serialize;

use crate::args::{Game, GameCommon, GameMac, GameReport, GameSearch, GameTable, GameTrace};
use crate::exit::{Exit, Failure};
use crate::{files, output};

pub(crate) fn run(game: &Game) -> Result<Exit, Failure> {
    match game {
        Game::List { json } => ended(*json, &Listing::new(), true),
        Game::Table(arguments) => table(arguments),
        Game::Trace(arguments) => trace(arguments),
        Game::Search(arguments) => search(arguments),
        Game::Report(arguments) => report(arguments),
        Game::Mac(arguments) => mac(arguments),
    }
}

/// Prints results, and fails if something went another way than it should.
fn ended(json: bool, results: &(impl Serialize + Display), good: bool) -> Result<Exit, Failure> {
    output::json_or_text(json, results, || results.to_string())?;
    let unexpected = "not everything went as the theory says: please report this, with the command";
    if good { Ok(Exit::Done) } else { Err(Exit::Internal.because(unexpected)) }
}

fn table(GameTable { strategies, common }: &GameTable) -> Result<Exit, Failure> {
    let GameCommon { protocols, seed, json } = common;
    let (strategies, protocols) = (strategy::among(strategies), protocol::among(protocols));
    let progress = output::progress(strategies.len() as u64, "playing");
    let table = Table::play(&strategies, &protocols, *seed, || progress.inc(1));
    progress.finish_and_clear();
    ended(*json, &table, table.as_expected)
}

fn trace(arguments: &GameTrace) -> Result<Exit, Failure> {
    let GameTrace { strategy, protocol, seed, svg, log } = arguments;
    let svg = files::output("--svg", svg.as_deref())?;
    let (trace, played) =
        Trace::named(strategy, protocol, *seed).map_err(|error| Exit::Usage.because(error.to_string()))?;
    match svg {
        Some(mut file) => file.write(&trace::svg(&trace))?,
        None if *log => output::result(&played.log.to_string()),
        None => output::result(&format!("{trace}\n{}", trace::text(&trace))),
    }
    Ok(Exit::Done)
}

fn search(GameSearch { common, depth, room, random }: &GameSearch) -> Result<Exit, Failure> {
    let GameCommon { protocols, seed, json } = common;
    let protocols = protocol::among(protocols);
    let progress = output::progress(protocols.len() as u64, "searching");
    let searches = Searches::new(*seed, usize::from(*depth), usize::from(*room), *random);
    let searches = searches.play(&protocols, || progress.inc(1));
    progress.finish_and_clear();
    ended(*json, &searches, searches.is_as_expected())
}

fn report(GameReport { html, seed, depth, random }: &GameReport) -> Result<Exit, Failure> {
    let page = files::output("--html", html.as_deref())?;
    let progress = output::progress(Whole::PARTS, "playing");
    let whole = Whole::play(*seed, usize::from(*depth), *random, &Program::ALL, || progress.inc(1));
    progress.finish_and_clear();
    let report = whole.report();
    page.into_iter().try_for_each(|mut file| file.write(&report.page()))?;
    ended(false, &report.text(), whole.is_as_expected())
}

fn mac(GameMac { program, seed, queries, json }: &GameMac) -> Result<Exit, Failure> {
    let programs = Program::among(program);
    if !queries.is_empty() && !programs.contains(&Program::Limits) {
        return Err(Exit::Usage
            .because("--queries is for the table of `game mac limits`: leave it out, or play that"));
    }
    let messages_log2 = if queries.is_empty() { &MESSAGES_LOG2[..] } else { queries };
    let progress = output::progress(programs.len() as u64, "playing");
    let results = Results::play(&programs, *seed, messages_log2, || progress.inc(1));
    progress.finish_and_clear();
    ended(*json, &results, results.as_expected)
}
