//! The paths on a command line: which are read, and which are written.

#[cfg(test)]
use std::any::TypeId;
use std::path::PathBuf;

use authentick_report::study::field::Name;
use clap::{Arg, ArgMatches, Command, CommandFactory, Error, FromArgMatches};

use super::{Arguments, OutputPath, query};

/// A path on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    /// The option or argument, as its user knows it.
    pub(crate) option: String,
    pub(crate) path: PathBuf,
    /// Whether the command writes there.
    pub(crate) is_output: bool,
}

/// Parses the command line of this process, and finds the paths on it.
///
/// # Errors
/// If it is not understood, or asks for help or for the version.
pub(crate) fn parse() -> Result<(Arguments, Vec<NamedPath>), Error> {
    let matches = Arguments::command().try_get_matches()?;
    if let Some((name @ "query", matches)) = matches.subcommand()
        && let Some(command) = Arguments::command().find_subcommand(name)
    {
        query::check_scheme(command, matches)?;
    }
    let arguments =
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut Arguments::command()))?;
    let mut found = Vec::new();
    find(&Arguments::command(), &matches, &mut found);
    Ok((arguments, found))
}

fn find(command: &Command, matches: &ArgMatches, found: &mut Vec<NamedPath>) {
    for argument in command.get_arguments() {
        let (id, option) = (argument.get_id().as_str(), label(argument));
        // Of each type of value, as clap returns none of another type than the argument's.
        let inputs = matches.try_get_many::<PathBuf>(id).ok().flatten().into_iter().flatten().cloned();
        let of_servers = matches.try_get_many::<(Name, PathBuf)>(id).ok().flatten().into_iter().flatten();
        let inputs = inputs.chain(of_servers.map(|(_, path)| path.clone()));
        found.extend(inputs.map(|path| NamedPath { option: option.clone(), path, is_output: false }));
        let outputs = matches.try_get_many::<OutputPath>(id).ok().flatten().into_iter().flatten();
        let named = |path: &OutputPath| NamedPath {
            option: option.clone(),
            path: path.to_path_buf(),
            is_output: true,
        };
        found.extend(outputs.map(named));
    }
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        find(command, matches, found);
    }
}

/// An argument as its user knows it: `--html`, or `RUN.json`.
pub(super) fn label(argument: &Arg) -> String {
    let name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => name.unwrap_or_else(|| argument.get_id().to_string()),
    }
}

/// Whether the value of an argument is an output.
#[cfg(test)]
pub(super) fn is_output(argument: &Arg) -> bool {
    argument.get_value_parser().type_id() == TypeId::of::<OutputPath>()
}

/// Whether the value of an argument is a path that is read.
#[cfg(test)]
pub(super) fn is_input(argument: &Arg) -> bool {
    let of = argument.get_value_parser().type_id();
    of == TypeId::of::<PathBuf>() || of == TypeId::of::<(Name, PathBuf)>()
}
