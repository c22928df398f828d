//! The command line as it is written, a file for each command. What it means is decided in `cmd`.

mod antp;
mod bench;
mod certificates;
mod demo;
mod doctor;
mod game;
mod keys;
mod load;
mod paths;
mod permit;
mod plan;
mod query;
mod report;
mod serve;
mod shared_key;
mod stress;
mod study;
mod trust;
mod values;

use clap::{Parser, Subcommand};

pub(crate) use self::antp::{AntpLoad, AntpQuery};
pub(crate) use self::bench::{Bench, BenchMac, BenchVerb};
pub(crate) use self::certificates::{Certificates, LabCertificate};
pub(crate) use self::demo::Demo;
pub(crate) use self::doctor::Doctor;
pub(crate) use self::game::{Game, GameCommon, GameMac, GameReport, GameSearch, GameTable, GameTrace};
pub(crate) use self::keys::{
    Drill, FleetVerb, Keys, KeysVerb, OwnVerb, SealKeys, SealVerb, SymmetricKeys, SymmetricVerb,
};
pub(crate) use self::load::{
    Agent, ArrivalsArgument, Coordination, Load, LoadArguments, LoadScheme, NtsLoad,
};
pub(crate) use self::paths::{NamedPath, parse};
pub(crate) use self::permit::Permit;
pub(crate) use self::plan::{Plan, PlanAntp, PlanVerb};
pub(crate) use self::query::{Authentication, Query};
pub(crate) use self::report::Report;
#[cfg(test)]
pub(crate) use self::serve::SIGNALS_HELP;
pub(crate) use self::serve::{LogFormat, Serve};
pub(crate) use self::shared_key::{AllowedTypes, KeysFormat, SharedKeyArguments};
pub(crate) use self::stress::Stress;
pub(crate) use self::study::{PaperArgument, Study, StudyOptions, StudyVerb};
pub(crate) use self::trust::{NtsClient, Trust};
pub(crate) use self::values::{OutputPath, name_of};

/// Authenticated network time, and the instrument that measures what it costs.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve, query and measure authenticated time on this host's loopback; nothing to set up
    Demo(Demo),
    /// Serve time
    Serve(Serve),
    /// Ask a server for the time, and say who vouches for it
    Query(Query),
    /// Load a server and say what it holds
    Load(Load),
    /// Ask a server for the time at a set rate, with NtpStress's arguments and report
    Stress(Stress),
    /// Make, list, rotate and retire cookie keys; and symmetric keys: `keys symmetric`
    Keys(Keys),
    /// Hand certificates and keys of root's over to the server
    #[command(subcommand)]
    Certificates(Certificates),
    /// Say what this host offers: instructions, clock, stamps, limits
    Doctor(Doctor),
    /// Render stored runs, and compare load runs
    Report(Report),
    /// Measure what cryptography costs here, beside what was published
    Bench(Bench),
    /// Repeat a paper's experiments, and render them beside what was published
    Study(Study),
    /// Extrapolate: how many clients one server holds
    Plan(Plan),
    /// Play the adversary: which attacks on an authentication scheme succeed, and under which conditions
    #[command(subcommand)]
    Game(Game),
    /// Write man pages and shell completions
    Manual {
        /// A directory, which is made if it is missing
        directory: OutputPath,
    },
}

#[cfg(test)]
mod tests;
