//! Running other programs, with errors that say which one failed and what it printed.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
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
    ended(command, status)
}

fn ended(command: &Command, status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", line(command))) }
}

/// A command that runs while others do.
pub(crate) struct Beside {
    command: Command,
    child: Child,
    /// What it has printed so far.
    said: PathBuf,
}

impl Beside {
    /// Starts `command`, whose output goes to the file `said`.
    pub(crate) fn begin(mut command: Command, said: PathBuf) -> Result<Self, String> {
        let io = |error| format!("{}: {error}", said.display());
        let file = File::create(&said).map_err(io)?;
        command.stdin(Stdio::null()).stdout(file.try_clone().map_err(io)?).stderr(file);
        let child = command.spawn().map_err(|error| not_started(&command, &error))?;
        println!("meanwhile `{}` prints to {}", line(&command), said.display());
        Ok(Beside { command, child, said })
    }

    /// Waits for its end, and shows what it has printed.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        let line = line(&self.command);
        let status = self.child.wait().map_err(|error| format!("`{line}`: {error}"))?;
        let said = fs::read(&self.said).map_err(|error| format!("{}: {error}", self.said.display()))?;
        println!("`{line}`, meanwhile:\n{}", String::from_utf8_lossy(&said));
        ended(&self.command, status)
    }
}

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
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Beside::begin(command, said.clone()).and_then(Beside::finish)
        };
        assert_eq!(ended("echo one; echo two >&2"), Ok(()));
        assert_eq!(fs::read_to_string(&said).unwrap(), "one\ntwo\n");
        let problem = ended("exit 3").unwrap_err();
        assert!(problem.contains("exit 3` failed: exit status: 3"), "{problem}");
        assert!(Beside::begin(Command::new("no-such-program"), said.clone()).is_err());
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
