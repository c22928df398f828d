//! `authentick game`: the adversary as programs, without a socket. What they do is in the crate `game`.

use authentick_game::mac::limits::MESSAGES_LOG2;
use authentick_game::mac::{Played, Program};
use serde::Serialize;

use crate::args::{Game, GameMac, GameProgram, GameScheme};
use crate::exit::{Exit, Failure};
use crate::output;

/// What was played, as JSON shows it.
#[derive(Debug, Serialize)]
struct Results {
    /// What decided keys, nonces and messages.
    seed: u64,
    /// Whether every attack succeeded or failed as the theory says.
    as_expected: bool,
    /// By program.
    programs: Vec<Played>,
}

pub(crate) fn run(game: &Game) -> Result<Exit, Failure> {
    match &game.scheme {
        GameScheme::Mac(arguments) => mac(arguments),
    }
}

fn mac(arguments: &GameMac) -> Result<Exit, Failure> {
    let programs = programs(arguments.program);
    if !arguments.queries.is_empty() && !programs.contains(&Program::Limits) {
        return Err(Exit::Usage
            .because("--queries is for the table of `game mac limits`: leave it out, or play that"));
    }
    let messages_log2 = match &arguments.queries[..] {
        [] => &MESSAGES_LOG2,
        queries => queries,
    };
    let progress = output::progress(programs.len() as u64, "playing");
    let played = programs.iter().map(|program| {
        let played = program.run(arguments.seed, messages_log2);
        progress.inc(1);
        played
    });
    let played: Vec<Played> = played.collect();
    progress.finish_and_clear();
    let as_expected = played.iter().all(Played::is_as_expected);
    let results = Results { seed: arguments.seed, as_expected, programs: played };
    let text = || results.programs.iter().map(Played::to_string).collect::<Vec<_>>().join("\n\n");
    output::json_or_text(arguments.json, &results, text)?;
    match as_expected {
        true => Ok(Exit::Done),
        false => Err(Exit::Internal.because(format!(
            "not everything went as the theory says (seed {}): please report this",
            arguments.seed
        ))),
    }
}

fn programs(argument: GameProgram) -> Vec<Program> {
    match argument {
        GameProgram::LengthExtension => vec![Program::LengthExtension],
        GameProgram::GmacNonce => vec![Program::GmacNonce],
        GameProgram::Poly1305Nonce => vec![Program::Poly1305Nonce],
        GameProgram::Others => vec![Program::Others],
        GameProgram::Refresh => vec![Program::Refresh],
        GameProgram::Salt => vec![Program::Salt],
        GameProgram::Limits => vec![Program::Limits],
        GameProgram::All => Program::ALL.to_vec(),
    }
}
