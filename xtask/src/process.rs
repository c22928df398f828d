//! Running other programs, with errors that say which one failed and what it printed.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;
use std::{env, fs, io};

/// `cargo` in the folder `directory`.
pub(crate) fn cargo(directory: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(directory);
    command
}

/// Runs `command` on this terminal.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    ended(&line(command), status)
}

fn ended(line: &str, status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed: {status}")) }
}

/// A command that runs while others do.
pub(crate) struct Begun {
    line: String,
    child: Child,
    /// What it has printed so far.
    said: PathBuf,
}

/// A command that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// As one would type it.
    pub(crate) line: String,
    pub(crate) status: ExitStatus,
    /// What it printed on both outputs.
    pub(crate) said: String,
}

impl Ended {
    pub(crate) fn result(&self) -> Result<(), String> {
        ended(&self.line, self.status)
    }
}

impl Begun {
    /// Starts `command`, whose output goes to the file `said`: a pipe would stay open for as long as anything lives
    /// that it started.
    pub(crate) fn new(command: &mut Command, said: PathBuf) -> Result<Self, String> {
        let io = |error| format!("{}: {error}", said.display());
        let file = File::create(&said).map_err(io)?;
        command.stdin(Stdio::null()).stdout(file.try_clone().map_err(io)?).stderr(file);
        let child = command.spawn().map_err(|error| not_started(command, &error))?;
        Ok(Begun { line: line(command), child, said })
    }

    /// Shows on this terminal what it has printed and prints, until it ends.
    pub(crate) fn finish(mut self) -> Result<Ended, String> {
        let io = |error| format!("`{}` and {}: {error}", self.line, self.said.display());
        let mut said = File::open(&self.said).map_err(io)?;
        let (mut text, mut shown_size) = (Vec::new(), 0);
        loop {
            let status = self.child.try_wait().map_err(io)?;
            said.read_to_end(&mut text).map_err(io)?;
            // Whole lines, until its end.
            let lines_size = text.iter().rposition(|octet| *octet == b'\n').map_or(0, |last| last + 1);
            let size = if status.is_some() { text.len() } else { lines_size };
            print!("{}", String::from_utf8_lossy(&text[shown_size..size]));
            shown_size = size;
            if let Some(status) = status {
                let said = String::from_utf8_lossy(&text).into_owned();
                return Ok(Ended { line: self.line, status, said });
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// How often what a command prints is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Runs `command` and returns what it printed; on failure the error ends with its last line on standard error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = collect(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let complaint = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(format!("`{}` failed: {}: {}", line(command), output.status, complaint.trim()))
}

/// Runs `command` and returns its status and output.
pub(crate) fn collect(command: &mut Command) -> Result<Output, String> {
    command.stdin(Stdio::null()).output().map_err(|error| not_started(command, &error))
}

/// Whether a program of this name would be found.
pub(crate) fn is_on_path(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Whether this process has root's user identifier.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// `command` as one would type it, without its environment.
pub(crate) fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn not_started(command: &Command, error: &io::Error) -> String {
    format!("`{}` did not start: {error}", line(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_is_told_in_the_program_s_last_words() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo last >&2; exit 3"]);
        let problem = output(&mut command).unwrap_err();
        assert!(problem.contains("exit status: 3: last"), "{problem}");
        assert!(run(Command::new("sh").args(["-c", "exit 1"])).is_err());
    }

    #[test]
    fn what_ran_beside_ends_as_its_command_does() {
        let folder = tempfile::tempdir().unwrap();
        let said = folder.path().join("said");
        let ended = |script: &str| {
            let begun = Begun::new(Command::new("sh").args(["-c", script]), said.clone());
            begun.and_then(Begun::finish).unwrap()
        };
        // What outlives it is not waited for.
        let good = ended("sleep 60 & echo one; echo two >&2; echo $!");
        assert_eq!(good.result(), Ok(()));
        let pid = good.said.strip_prefix("one\ntwo\n").unwrap().trim();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        let problem = ended("exit 3").result().unwrap_err();
        assert!(problem.contains("exit 3` failed: exit status: 3"), "{problem}");
        assert!(Begun::new(&mut Command::new("no-such-program"), said.clone()).is_err());
    }

    #[test]
    fn program_that_does_not_exist_is_named() {
        let problem = output(&mut Command::new("no-such-program")).unwrap_err();
        assert!(problem.starts_with("`no-such-program` did not start"), "{problem}");
        assert!(!is_on_path("no-such-program") && is_on_path("sh"));
    }

    #[test]
    fn output_is_what_was_printed() {
        assert_eq!(output(Command::new("sh").args(["-c", "echo yes; echo no >&2"])).unwrap(), "yes\n");
    }
}
