//! `authentick manual DIRECTORY`: man pages and completions, from the definition of the command line itself, so that no
//! package has others. The configuration's page is the manual's file with all of its keys.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use authentick_net::report_file;
use clap::{Command, CommandFactory};
use clap_complete::{Generator as _, Shell};
use clap_mangen::Man;

use crate::args::Arguments;
use crate::exit::{Exit, Failure};
use crate::output;

/// The manual's first page, which has the exit codes in a table.
const FIRST_PAGE: &str = include_str!("../../../../docs/manual/README.md");
/// Every key of the configuration, and what it means.
const CONFIGURATION: &str = include_str!("../../../../docs/manual/authentick.toml");

pub(crate) fn run(directory: &Path) -> Result<Exit, Failure> {
    let count = write(directory).map_err(|error| {
        Exit::of_access(&error)
            .because(format!("{}: {error}; name a directory to write to", directory.display()))
    })?;
    output::result(&format!("{}: {count} files\n", directory.display()));
    Ok(Exit::Done)
}

/// Writes pages to `man1` and `man5`, and completions to `completions`; returns how many files there are.
fn write(directory: &Path) -> io::Result<usize> {
    let [first, fifth, completions] = ["man1", "man5", "completions"].map(|name| directory.join(name));
    [&first, &fifth, &completions].into_iter().try_for_each(fs::create_dir_all)?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    let mut count = pages(&command, &first)?;
    report_file::write(&fifth.join("authentick.toml.5"), configuration().as_bytes())?;
    count += 1;
    // Completing options that are hidden helps nobody.
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let (mut text, name) = (Vec::new(), shell.file_name("authentick"));
        let mut command = Arguments::command().disable_help_subcommand(true);
        clap_complete::generate(shell, &mut command, "authentick", &mut text);
        report_file::write(&completions.join(name), &text)?;
        count += 1;
    }
    Ok(count)
}

/// Writes the page of a command, and of those below it.
fn pages(command: &Command, directory: &Path) -> io::Result<usize> {
    let mut count = 1;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        count += pages(below, directory)?;
    }
    // No date: the same program makes the same pages.
    let man = Man::new(command.clone()).date("").source(version()).manual("authentick");
    let mut page = Vec::new();
    man.render(&mut page)?;
    page.write_all(b".SH EXIT STATUS\n")?;
    for (code, meaning) in exit_codes() {
        writeln!(page, ".TP\n\\fB{code}\\fR\n{}", plain(meaning))?;
    }
    page.write_all(b".SH SEE ALSO\nauthentick(1), authentick.toml(5)\n")?;
    report_file::write(&directory.join(man.get_filename()), &page)?;
    Ok(count)
}

fn version() -> String {
    format!("authentick {}", env!("CARGO_PKG_VERSION"))
}

/// Exit codes and their meanings, of the table.
fn exit_codes() -> impl Iterator<Item = (u8, &'static str)> {
    let rows =
        FIRST_PAGE.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|')?.split_once('|'));
    rows.filter_map(|(code, meaning)| Some((code.trim().parse().ok()?, meaning.trim())))
}

/// The page of the configuration.
fn configuration() -> String {
    let mut page = format!(
        ".TH authentick.toml 5 \"\" \"{}\" authentick\n.SH NAME\nauthentick.toml \\- the configuration of the time \
         server authentick\n.SH DESCRIPTION\n",
        version()
    );
    page += "The server reads /etc/authentick/authentick.toml, and then the files of conf.d beside it whose names end \
             in .toml, in the order of their names. An unknown key is a mistake; \
             .B authentick serve \\-\\-check\n\
             finds it. Every key stands here with its default or an example:\n.PP\n.nf\n";
    for line in CONFIGURATION.lines() {
        page += &plain(line);
        page.push('\n');
    }
    page += ".fi\n.SH SEE ALSO\nauthentick-serve(1)\n";
    page
}

/// Text in which nothing is a request of roff.
fn plain(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('`', "");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn made() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let count = write(folder.path()).unwrap();
        assert!(count > 20, "{count}");
        folder
    }

    fn options(command: &Command) -> BTreeSet<String> {
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
        shown
            .filter_map(|argument| argument.get_long())
            .map(|long| format!("\\-\\-{}", plain(long)))
            .collect()
    }

    fn check(command: &Command, folder: &Path) {
        let name = Man::new(command.clone()).get_filename();
        let page = fs::read_to_string(folder.join("man1").join(&name))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for option in options(command) {
            assert!(page.contains(&option), "{name}: {option}");
        }
        assert!(
            page.contains(".SH EXIT STATUS\n.TP\n\\fB0\\fR\ndone\n") && page.contains("\\fB78\\fR"),
            "{name}"
        );
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            check(below, folder);
        }
    }

    #[test]
    fn each_command_has_a_page_with_its_options_and_the_configuration_one_with_its_keys() {
        let folder = made();
        let mut command = Arguments::command().disable_help_subcommand(true);
        command.build();
        check(&command, folder.path());
        let page = fs::read_to_string(folder.path().join("man5/authentick.toml.5")).unwrap();
        for line in CONFIGURATION.lines().filter(|line| !line.is_empty()) {
            assert!(page.contains(&plain(line)), "{line}");
        }
        for name in ["authentick.bash", "_authentick", "authentick.fish"] {
            let text = fs::read_to_string(folder.path().join("completions").join(name)).unwrap();
            assert!(text.contains("hand-over") && text.contains("log-format"), "{name}");
        }
    }

    #[test]
    fn pages_are_the_same_each_time_and_groff_has_nothing_to_say_of_them() {
        let (one, other) = (made(), made());
        let mut all = Vec::new();
        for section in ["man1", "man5"] {
            for page in fs::read_dir(one.path().join(section)).unwrap().flatten() {
                let again = other.path().join(section).join(page.file_name());
                assert_eq!(fs::read(page.path()).unwrap(), fs::read(again).unwrap());
                all.push(page.path());
            }
        }
        let mut groff = std::process::Command::new("groff");
        groff.args(["-man", "-Tutf8", "-z", "-ww"]).args(all);
        match groff.output() {
            Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stderr), ""),
            Err(error) => authentick_lab::skip::skip(&format!("groff: {error}; install groff-base")),
        }
    }
}
