//! Running other programs, with errors that say which one failed and what it printed.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
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
    if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", line(command))) }
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
