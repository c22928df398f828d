//! What `study` is told.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id, Subcommand, ValueEnum};

use super::Coordination;
use super::values::{name_of, number, step_seconds};

#[derive(Args, Debug)]
pub(crate) struct Study {
    #[command(subcommand)]
    pub(crate) verb: StudyVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudyVerb {
    /// Measure what a paper measured, and render it
    Run(Box<StudyRun>),
    /// Render what is in a study's folder, and nothing else
    Render {
        /// The folder of the study
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Papers whose experiments are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaperArgument {
    /// Spectracom, "NTP Server Capacity Testing": the request threshold, from one host and from several
    Threshold,
    /// draft-aanchal4-ntp-mac-00 and draft-ietf-ntp-mac: MACs for NTP, on this host
    Mac,
    /// "Authenticated Network Time Synchronization": the phases of ANTP under load, over a short and a long path
    Antp,
}

/// A paper and options that have a meaning for it: the parser takes no others.
#[derive(Debug)]
pub(crate) struct StudyRun(pub(crate) StudyOptions);

#[derive(Args, Debug)]
pub(crate) struct StudyOptions {
    /// The paper
    #[arg(value_name = "PAPER", value_enum)]
    pub(crate) paper: PaperArgument,
    /// Where plan, records and report go; the same command again goes on there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Take a minute or less instead of a quarter of an hour (threshold) or two minutes (mac); some minutes instead of
    /// hours (antp)
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) steps: StepOptions,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    #[command(flatten)]
    pub(crate) coordination: Coordination,
    #[command(flatten)]
    pub(crate) records: RecordOptions,
}

/// Options of the studies that load a server.
#[derive(Args, Debug)]
pub(crate) struct StepOptions {
    /// Seconds of each row or trial, instead of the paper's
    #[arg(long, value_name = "S", value_parser = step_seconds)]
    pub(crate) step_seconds: Option<Duration>,
}

/// Options of the study that may load a server of others.
#[derive(Args, Debug)]
pub(crate) struct ServerOptions {
    /// Multiply the paper's rates [default: 1 with --target, else so that this machine's limit lies among them]
    #[arg(long, value_name = "FACTOR", value_parser = scale)]
    pub(crate) scale: Option<f64>,
    /// Measure this server instead of one of our own on loopback [default port: 123]
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) target: Option<String>,
    /// Load this host although its address is public; must repeat --target's host
    #[arg(long, value_name = "HOST", requires = "target")]
    pub(crate) permit: Option<String>,
}

/// Options of the study that compares two configurations.
#[derive(Args, Debug)]
pub(crate) struct RecordOptions {
    /// A record of the server in its earlier configuration, for the paper's third result
    #[arg(long, value_name = "RUN.json", requires = "new")]
    pub(crate) old: Option<PathBuf>,
    /// A record of the server in its updated configuration
    #[arg(long, value_name = "RUN.json", requires = "old")]
    pub(crate) new: Option<PathBuf>,
}

impl PaperArgument {
    /// The groups of options that have no meaning for this paper. A group is called as the type that holds it, and has
    /// members only where that holds no other type.
    const fn foreign_groups(self) -> &'static [&'static str] {
        match self {
            PaperArgument::Threshold => &[],
            PaperArgument::Mac => &["StepOptions", "ServerOptions", "Coordination", "RecordOptions"],
            PaperArgument::Antp => &["ServerOptions", "Coordination", "RecordOptions"],
        }
    }
}

impl Args for StudyRun {
    fn augment_args(command: Command) -> Command {
        StudyOptions::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        StudyOptions::augment_args_for_update(command)
    }
}

impl FromArgMatches for StudyRun {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let options = StudyOptions::from_arg_matches(matches)?;
        // Conflicts between an option and the value of another argument are none that clap can be told of beforehand.
        let mut foreign = options.paper.foreign_groups().iter();
        match foreign.find_map(|group| matches.get_one::<Id>(group)) {
            Some(option) => Err(conflict(option, options.paper)),
            None => Ok(StudyRun(options)),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = StudyRun::from_arg_matches(matches)?;
        Ok(())
    }
}

/// An option that has no meaning for a paper.
fn conflict(option: &Id, paper: PaperArgument) -> Error {
    let option = format!("--{}", option.as_str().replace('_', "-"));
    let mut error = Error::new(ErrorKind::ArgumentConflict);
    error.insert(ContextKind::InvalidArg, ContextValue::String(option));
    error.insert(ContextKind::PriorArg, ContextValue::String(name_of(&paper)));
    error
}

fn scale(text: &str) -> Result<f64, String> {
    number(text, 0.001..=10_000.0, "no factor from 0.001 to 10000")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Arguments;

    fn parse(line: &str) -> Result<Arguments, Error> {
        Arguments::try_parse_from(["authentick", "study", "run"].into_iter().chain(line.split(' ')))
    }

    #[test]
    fn papers_take_their_own_options_wherever_these_stand() {
        let agents = "--agents a:1 --agent-ca x --certificate-chain x --private-key x";
        for line in [
            "mac --out x --quick",
            "--out x mac",
            "antp --out x --step-seconds 2",
            "--step-seconds 2 --out x antp",
            "threshold --out x --scale 2 --target a --permit a --old x --new y --step-seconds 2",
            &format!("threshold --out x --target a {agents}"),
        ] {
            if let Err(error) = parse(line) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn options_of_other_papers_are_refused_with_both_names() {
        let agents = "--agents a:1 --agent-ca x --certificate-chain x --private-key x";
        for (options, named) in [
            ("--scale 2", "--scale"),
            ("--target a", "--target"),
            ("--target a --permit a", "--target"),
            ("--old x --new y", "--old"),
            (agents, "--agents"),
        ] {
            for paper in ["mac", "antp"] {
                let error = parse(&format!("{paper} --out x {options}")).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ArgumentConflict);
                let message = error.to_string();
                assert!(message.contains(named) && message.contains(&format!("'{paper}'")), "{message}");
            }
        }
        let message = parse("mac --out x --step-seconds 1").unwrap_err().to_string();
        assert!(message.contains("'--step-seconds' cannot be used with 'mac'"), "{message}");
    }
}
