//! What `game` is told.

use authentick_game::mac::Program;
use authentick_game::mac::limits::power_of_two;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand};

use super::OutputPath;

#[derive(Debug, Subcommand)]
pub(crate) enum Game {
    /// Lists strategies of an adversary, protocols, and what is expected
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Plays strategies against protocols, and prints a table of verdicts
    #[command(visible_alias = "play")]
    Table(GameTable),
    /// Shows one game step by step, as a sequence diagram
    Trace(GameTrace),
    /// Tries every schedule up to a number of moves
    Search(GameSearch),
    /// Plays everything, and makes one report of it
    Report(GameReport),
    /// Message authentication codes: what the drafts on MACs for NTP argue, as programs
    Mac(GameMac),
}

#[derive(Args, Debug)]
pub(crate) struct GameTable {
    /// What the adversary does. Everything, if it is not there
    #[arg(value_name = "STRATEGY", value_parser = strategies())]
    pub(crate) strategies: Vec<String>,
    #[command(flatten)]
    pub(crate) common: GameCommon,
}

/// What tables and searches have in common.
#[derive(Args, Debug)]
pub(crate) struct GameCommon {
    /// What to play against; several with commas. All, if it is not there
    #[arg(long = "protocol", value_name = "P", value_delimiter = ',', value_parser = protocols())]
    pub(crate) protocols: Vec<String>,
    /// What decides keys and all that is drawn: the same number has the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GameTrace {
    /// What the adversary does
    #[arg(value_parser = strategies())]
    pub(crate) strategy: String,
    /// What to play against
    #[arg(long, value_name = "P", value_parser = protocols())]
    pub(crate) protocol: String,
    /// What decides keys and all that is drawn: the same number has the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the diagram to this file, as SVG
    #[arg(long, value_name = "FILE", conflicts_with = "log")]
    pub(crate) svg: Option<OutputPath>,
    /// Print all queries and replies, a line of JSON for each
    #[arg(long)]
    pub(crate) log: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GameSearch {
    #[command(flatten)]
    pub(crate) common: GameCommon,
    /// Moves in a row, at most; each one more takes some ten times as long
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) depth: u8,
    /// Messages that the adversary looks at, at most
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(2..=32))]
    pub(crate) room: u8,
    /// Random schedules against each protocol, in place of all of them
    #[arg(long, value_name = "N", conflicts_with_all = ["depth", "room"])]
    pub(crate) random: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct GameReport {
    /// Also write a page, with games as sequence diagrams, to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<OutputPath>,
    /// What decides keys and all that is drawn: the same number has the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Moves in a row of an adversary that tries everything, at most; each one more takes some ten times as long
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) depth: u8,
    /// Random schedules against each protocol
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) random: u64,
}

#[derive(Args, Debug)]
pub(crate) struct GameMac {
    /// What to play
    #[arg(value_parser = programs(), default_value = "all")]
    pub(crate) program: String,
    /// What decides keys, nonces and messages: the same number has the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// `limits`: numbers of messages to have in the table, such as 1000000 or 2^40; several with commas
    #[arg(long, value_name = "Q", value_delimiter = ',', value_parser = power_of_two)]
    pub(crate) queries: Vec<f64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn protocols() -> PossibleValuesParser {
    authentick_game::protocol::all().iter().map(|protocol| protocol.name()).collect::<Vec<_>>().into()
}

fn strategies() -> PossibleValuesParser {
    authentick_game::strategy::all().iter().map(|strategy| strategy.id).collect::<Vec<_>>().into()
}

fn programs() -> PossibleValuesParser {
    let programs = Program::ALL.iter().map(|program| (program.name(), program.says()));
    let programs = programs.chain([("all", "All of them")]);
    programs.map(|(name, says)| PossibleValue::new(name).help(says)).collect::<Vec<_>>().into()
}
