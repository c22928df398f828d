//! The command line is consistent; what README and manual say of it is what it takes, and all of it is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory, Parser};

use super::{Arguments, paths, query};

#[test]
fn arguments_are_consistent() {
    Arguments::command().debug_assert();
}

#[path = "../../tests/system/outputs/table.rs"]
mod outputs;

/// Arguments that only read a path. One that writes has the type `OutputPath`, and a row in the table of outputs.
const INPUTS: &[&str] = &[
    "--agent-ca",
    "--allow-list",
    "--ca",
    "--certificate-chain",
    "--config",
    "--coordinators-ca",
    "--file",
    "--keys",
    "--new",
    "--old",
    "--peers",
    "--pin",
    "--private-key",
    "--server-ca",
    "--state-directory",
    "--against",
    "RUN.json",
];

/// The arguments of all commands that have a path, by whether it is written.
fn paths_of(
    command: &Command,
    name: &str,
    inputs: &mut BTreeSet<String>,
    outputs: &mut BTreeSet<(String, String)>,
) {
    for argument in command.get_arguments() {
        if paths::is_output(argument) {
            // Schemes of a load have the same outputs.
            let name = if name.starts_with("load ") { "load" } else { name };
            outputs.insert((name.to_owned(), paths::label(argument)));
        } else if paths::is_input(argument) {
            inputs.insert(paths::label(argument));
        }
    }
    for below in command.get_subcommands() {
        paths_of(below, format!("{name} {}", below.get_name()).trim(), inputs, outputs);
    }
}

#[test]
fn every_output_of_the_command_line_is_in_the_table() {
    let (mut inputs, mut found) = (BTreeSet::new(), BTreeSet::new());
    paths_of(&Arguments::command(), "", &mut inputs, &mut found);
    let owned = |(command, label): &(&str, &str)| ((*command).to_owned(), (*label).to_owned());
    let table: BTreeSet<_> = outputs::FILES.iter().chain(&outputs::FOLDERS).map(owned).collect();
    assert_eq!(found, table);
    assert_eq!(inputs, INPUTS.iter().map(|label| (*label).to_owned()).collect());
}

#[test]
fn values_out_of_range_are_refused() {
    assert!(Arguments::try_parse_from(["authentick", "query", "host", "--count", "0"]).is_err());
}

/// Options of `query` that have an effect under every scheme.
const OF_EVERY_SCHEME: &[&str] = &[
    "server",
    "auth",
    "state_directory",
    "forget_antp",
    "count",
    "interval",
    "timeout",
    "permit",
    "allow_list",
    "json",
];

#[test]
fn query_option_without_effect_is_refused() {
    let command = Arguments::command();
    let command = command.find_subcommand("query").unwrap();
    let mut known: Vec<&str> = query::OF_SCHEMES.iter().flat_map(|(_, ids)| *ids).copied().collect();
    known.extend(OF_EVERY_SCHEME);
    let all: BTreeSet<_> = command.get_arguments().map(|argument| argument.get_id().as_str()).collect();
    assert_eq!(all, known.into_iter().collect());
    let check = |line: &str| {
        let matches = command.clone().try_get_matches_from(format!("query host {line}").split(' ')).unwrap();
        query::check_scheme(command, &matches).map_err(|error| error.to_string())
    };
    for line in ["--ke-port 1 --aead 15 --ca f", "--auth antp --server-name n --ca f", "--auth antp --pin f"]
    {
        assert_eq!(check(line), Ok(()));
    }
    for (line, message) in [
        ("--auth plain --ca f", "--ca is for --auth nts or antp, and has no effect with plain"),
        ("--auth plain --server-name n", "--server-name is for --auth nts or antp"),
        ("--auth plain --ke-port 4460", "--ke-port is for --auth nts"),
        ("--auth plain --aead 30", "--aead is for --auth nts"),
        ("--auth plain --pin f", "--pin is for --auth antp"),
        ("--auth plain --keys-format chrony", "--keys-format is for --auth mac"),
        ("--auth mac --keys f --key-id 1 --ca f", "--ca is for --auth nts or antp"),
        ("--auth antp --ke-port 1", "--ke-port is for --auth nts"),
        ("--allow-legacy", "--allow-legacy is for --auth mac"),
    ] {
        let refusal = check(line).unwrap_err();
        assert!(refusal.contains(message), "{line}: {refusal}");
    }
}

/// README first, then the pages of the manual.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manual = std::fs::read_dir(root.join("docs/manual")).unwrap().map(|entry| entry.unwrap().path());
    let pages = manual.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let read = |path: PathBuf| (path.clone(), std::fs::read_to_string(path).unwrap());
    std::iter::once(root.join("README.md")).chain(pages).map(read).collect()
}

/// The options of a command and of those below it.
fn options(command: &Command, found: &mut BTreeSet<String>) {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    found.extend(shown.filter_map(|argument| argument.get_long()).map(str::to_owned));
    command.get_subcommands().for_each(|below| options(below, found));
}

/// The words that begin with two hyphens.
fn options_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter_map(|word| word.strip_prefix("--")).filter(|word| !word.is_empty())
}

#[test]
fn every_option_is_in_the_manual() {
    let mut known = BTreeSet::new();
    options(&Arguments::command(), &mut known);
    let pages = pages();
    let told: BTreeSet<&str> = pages[1..].iter().flat_map(|(_, text)| options_in(text)).collect();
    let untold: Vec<&String> = known.iter().filter(|option| !told.contains(option.as_str())).collect();
    assert!(untold.is_empty(), "in no page of the manual: {untold:?}");
    assert!(known.len() > 60, "{known:?}");
}

/// What stands in blocks of code, by lines. A block with brackets or dots shows the form of a command, and is left out.
fn examples(text: &str) -> Vec<String> {
    let (mut blocks, mut block, mut is_fenced) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        is_fenced ^= is_fence;
        match line.strip_prefix("    ") {
            Some(code) if !is_fenced => block.push(code.to_owned()),
            _ if is_fenced && !is_fence => block.push(line.to_owned()),
            _ => blocks.push(std::mem::take(&mut block)),
        }
    }
    blocks.push(block);
    let is_form = |block: &[String]| block.iter().any(|line| line.contains('[') || line.contains("..."));
    blocks.retain(|block| !is_form(block));
    blocks.into_iter().map(|block| block.join("\n").replace("\\\n", " ")).collect()
}

#[test]
fn every_example_of_readme_and_manual_is_understood() {
    let mut count = 0;
    for (page, text) in pages() {
        let blocks = examples(&text);
        let lines = blocks.iter().flat_map(|block| block.lines()).map(|line| line.trim_start_matches("$ "));
        for line in lines.filter(|line| line.starts_with("authentick ")) {
            let words = line.split_whitespace().take_while(|word| !word.starts_with('#') && *word != "&");
            if let Err(error) = Arguments::try_parse_from(words) {
                panic!("{}: {line}: {error}", page.display());
            }
            count += 1;
        }
    }
    assert!(count > 25, "{count} examples");
}

#[test]
fn readme_names_every_command_and_no_other() {
    let (_, readme) = pages().swap_remove(0);
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `authentick "));
    let told: BTreeSet<&str> = rows.filter_map(|row| row.split([' ', '`']).next()).collect();
    let command = Arguments::command();
    // What is hidden is for packages.
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
    assert_eq!(told, shown.map(Command::get_name).collect());
}

#[test]
fn exit_codes_are_those_of_the_manual() {
    let codes = |text: &str, parts: fn(&str) -> Option<&str>| -> BTreeSet<u8> {
        text.lines().filter_map(|line| parts(line)?.trim().parse().ok()).collect()
    };
    let known = codes(include_str!("../exit.rs"), |line| line.split_once(" = ")?.1.strip_suffix(','));
    let manual = include_str!("../../../../docs/manual/README.md");
    assert_eq!(codes(manual, |line| line.strip_prefix('|')?.split('|').next()), known);
    assert!(known.len() > 5, "{known:?}");
}
