//! What `study` is told.

use std::path::PathBuf;
use std::time::Duration;

use authentick_report::study::field::{Given, Name, Server, of_name};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id, Subcommand, ValueEnum};

use super::values::{OutputPath, name_of, number, step_seconds};
use super::{Coordination, Permit};
use PaperArgument::{All, Antp, Field, Nts, Threshold};

#[derive(Args, Debug)]
pub(crate) struct Study {
    #[command(subcommand)]
    pub(crate) verb: StudyVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudyVerb {
    /// Measure what a paper measured, and render it
    Run(Box<StudyRun>),
    /// Show what the studies measure, how long that takes, and what this host cannot do
    List,
    /// Render what is in a study's folder, and nothing else
    Render {
        /// The folder of the study
        #[arg(value_name = "DIR")]
        folder: OutputPath,
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
    /// "Experimental Analysis of the Performance and Scalability of NTS": one client, and beside more and more load
    Nts,
    /// What authentication costs, by scheme and server: our server and those of others, round after round
    Field,
    /// All of them, each in a folder of its own, and all their reports in one
    All,
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
    pub(crate) out: OutputPath,
    /// Take a minute or less instead of a quarter of an hour (threshold) or two minutes (mac); some minutes instead of
    /// hours (antp, nts) or of most of an hour (field)
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure for so long at most, interrupted runs of the same study included; what matters least is left out
    #[arg(long, value_name = "N", value_parser = minutes)]
    pub(crate) minutes: Option<Duration>,
    #[command(flatten)]
    pub(crate) steps: StepOptions,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    #[command(flatten)]
    pub(crate) permission: Permit,
    #[command(flatten)]
    pub(crate) coordination: Coordination,
    #[command(flatten)]
    pub(crate) records: RecordOptions,
    #[command(flatten)]
    pub(crate) peers: PeerOptions,
    #[command(flatten)]
    pub(crate) field: FieldOptions,
}

/// Options of the studies that load a server.
#[derive(Args, Debug)]
pub(crate) struct StepOptions {
    /// Seconds of each row, trial or step, instead of the paper's
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

/// Options of studies that start servers of others.
#[derive(Args, Debug)]
pub(crate) struct PeerOptions {
    /// Look for memcached and for servers of others in this folder, as cargo xtask peers fills it, and then on PATH
    #[arg(long, value_name = "DIR")]
    pub(crate) peers: Option<PathBuf>,
}

/// Options of the study that measures servers of others.
#[derive(Args, Clone, Debug)]
pub(crate) struct FieldOptions {
    /// Measure these: authentick, chrony, ntpd-rs, facebook-time [default: all; with --quick the first two]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) servers: Vec<Server>,
    /// Measure this server too, which somebody else runs, under NTS if the port of its key exchange is named; may be
    /// repeated
    #[arg(long, value_name = "NAME=HOST:PORT[:KEPORT]")]
    pub(crate) server: Vec<Given>,
    /// Trust the authorities in this PEM file for it, instead of the system's
    #[arg(long, value_name = "NAME=FILE", value_parser = of_name::<PathBuf>)]
    pub(crate) server_ca: Vec<(Name, PathBuf)>,
    /// The name that its certificate must have [default: the host that is named]
    #[arg(long, value_name = "NAME=HOST", value_parser = of_name::<String>)]
    pub(crate) server_name: Vec<(Name, String)>,
    /// A process of it on this host, whose processor time and memory to record; may be repeated
    #[arg(long, value_name = "NAME=PID", value_parser = of_name::<u32>)]
    pub(crate) server_pid: Vec<(Name, u32)>,
}

/// Groups of options, and the papers that they have a meaning for. A group is called as the type that holds it, and has
/// members only where that holds no other type.
const GROUPS: [(&str, &[PaperArgument]); 7] = [
    ("StepOptions", &[Threshold, Antp, Nts, Field]),
    ("ServerOptions", &[Threshold]),
    ("Coordination", &[Threshold]),
    ("RecordOptions", &[Threshold]),
    ("Permit", &[Threshold, Field, All]),
    ("PeerOptions", &[Nts, Field, All]),
    ("FieldOptions", &[Field, All]),
];

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
        let mut foreign = GROUPS.iter().filter(|(_, papers)| !papers.contains(&options.paper));
        match foreign.find_map(|(group, _)| matches.get_one::<Id>(group)) {
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

fn minutes(text: &str) -> Result<Duration, String> {
    number(text, 0.01..=100_000.0, "no minutes from 0.01 to 100000")
        .map(|minutes| Duration::from_secs_f64(minutes * 60.0))
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
            "mac --out x --quick --minutes 0.5",
            "--out x mac",
            "antp --out x --step-seconds 2",
            "all --out x --quick --minutes 3 --peers y",
            "nts --out x --peers y --step-seconds 2",
            "field --out x --quick --minutes 3 --step-seconds 1 --peers p --servers ntpd-rs,authentick",
            "field --out x --server c=h:1:2 --server d=[::1]:1 --server-ca c=f --server-name c=n --server-pid d=1",
            "all --out x --servers chrony,c --server c=h:1 --permit h --allow-list f",
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
            for paper in ["mac", "nts", "antp", "field", "all"] {
                let error = parse(&format!("{paper} --out x {options}")).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ArgumentConflict);
                let message = error.to_string();
                assert!(message.contains(named) && message.contains(&format!("'{paper}'")), "{message}");
            }
        }
        for paper in ["threshold", "mac", "antp"] {
            let message = parse(&format!("{paper} --out x --peers y")).unwrap_err().to_string();
            assert!(message.contains("'--peers'"), "{message}");
        }
        for line in [
            "antp --out x --peers p",
            "threshold --out x --servers chrony",
            "nts --out x --server c=h:1",
            "mac --out x --permit h",
        ] {
            assert_eq!(parse(line).unwrap_err().kind(), ErrorKind::ArgumentConflict, "{line}");
        }
        for (options, parts) in [
            ("--servers chrony,my_own", ["'my_own'", "is no name of a server"]),
            ("--server cake", ["'cake'", "write NAME=HOST:PORT"]),
            ("--server chrony=h:1", ["'chrony=h:1'", "give yours another name"]),
            ("--server c=h:0", ["'c=h:0'", "is no port"]),
            ("--server-pid c=x", ["'c=x'", "write NAME=VALUE"]),
        ] {
            let message = parse(&format!("field --out x {options}")).unwrap_err().to_string();
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
        let message = parse("mac --out x --step-seconds 1").unwrap_err().to_string();
        assert!(message.contains("'--step-seconds' cannot be used with 'mac'"), "{message}");
    }
}
