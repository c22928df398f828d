//! Commands that are ended when their time is up.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::process;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// What a command has done.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Said {
    /// What it printed, as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// A command that runs. It is killed if it is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    line: String,
    child: Child,
    end: Instant,
    stdout: File,
    stderr: File,
}

impl Running {
    /// Starts a command, which may take so long. Its input is empty unless the command has one.
    pub(crate) fn start(command: &mut Command, stdin: Stdio, limit: Duration) -> Result<Self, String> {
        let line = process::line(command);
        let io = |error| format!("`{line}`: {error}");
        // Files, as a pipe stays open for as long as anything lives that the command started.
        let (stdout, stderr) = (tempfile::tempfile().map_err(io)?, tempfile::tempfile().map_err(io)?);
        command.stdin(stdin).stdout(stdout.try_clone().map_err(io)?).stderr(stderr.try_clone().map_err(io)?);
        let child = command.spawn().map_err(|error| format!("`{line}` did not start: {error}"))?;
        Ok(Running { line, child, end: Instant::now() + limit, stdout, stderr })
    }

    pub(crate) fn is_running(&mut self) -> Result<bool, String> {
        let status = self.child.try_wait().map_err(|error| format!("`{}`: {error}", self.line))?;
        Ok(status.is_none())
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// If its time is up: it is killed then.
    pub(crate) fn finish(mut self) -> Result<Said, String> {
        loop {
            let status = self.child.try_wait().map_err(|error| format!("`{}`: {error}", self.line))?;
            if let Some(status) = status {
                let stdout =
                    contents(&mut self.stdout).map_err(|error| format!("`{}`: {error}", self.line))?;
                let stderr =
                    contents(&mut self.stderr).map_err(|error| format!("`{}`: {error}", self.line))?;
                return Ok(Said { status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() });
            }
            if Instant::now() >= self.end {
                return Err(format!("`{}` had not ended when its time was up", self.line));
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What has ended is not killed: its status is known by then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn contents(file: &mut File) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(0))?;
    let mut octets = Vec::new();
    file.read_to_end(&mut octets)?;
    Ok(octets)
}

/// `sh -euc SCRIPT` among mounts and processes of its own, to which the caller adds arguments. The kernel ends all that
/// it starts when it ends, and it ends when this program does.
pub(crate) fn caged(script: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--mount-proc"]);
    command.args(["--kill-child=KILL", "sh", "-euc", script, "sh"]);
    command
}

/// Runs a command and returns what it printed; on failure the error has its last words.
pub(crate) fn output(command: &mut Command, limit: Duration) -> Result<String, String> {
    let line = process::line(command);
    let said = Running::start(command, Stdio::null(), limit)?.finish()?;
    succeeded(&line, &said)?;
    Ok(said.text())
}

/// An error with the last words of a command that has failed.
pub(crate) fn succeeded(line: &str, said: &Said) -> Result<(), String> {
    if said.status.success() {
        return Ok(());
    }
    let (text, mut last) = (said.text(), Vec::new());
    let lines = said.stderr.lines().rev().chain(text.lines().rev());
    last.extend(lines.filter(|line| !line.trim().is_empty()).take(3));
    last.reverse();
    Err(format!("`{line}` failed: {}: {}", said.status, last.join("; ")))
}

/// Looks again and again until something is there.
///
/// # Errors
/// If it is not there in time: `what` and what was the matter when it was looked for last.
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let end = Instant::now() + limit;
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(problem) if Instant::now() >= end => {
                return Err(format!("{what}: not within {} s: {problem}", limit.as_secs()));
            }
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_that_takes_too_long_is_ended() {
        let start = Instant::now();
        let problem = output(Command::new("sleep").arg("60"), Duration::from_millis(50)).unwrap_err();
        assert_eq!(problem, "`sleep 60` had not ended when its time was up");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn failure_has_the_last_words_of_both_outputs() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo a; echo b >&2; echo c >&2; exit 3"]);
        let problem = output(&mut command, MINUTE).unwrap_err();
        assert!(problem.ends_with("failed: exit status: 3: a; b; c"), "{problem}");
        assert_eq!(output(Command::new("sh").args(["-c", "echo a; echo b >&2"]), MINUTE).unwrap(), "a\n");
    }

    #[test]
    fn what_is_looked_for_is_found_or_its_absence_is_told() {
        let mut turns = 0;
        let found = until("it", MINUTE, || {
            turns += 1;
            if turns == 2 { Ok(turns) } else { Err("not yet".to_owned()) }
        });
        assert_eq!(found, Ok(2));
        let absent: Result<(), String> = until("it", Duration::ZERO, || Err("not yet".to_owned()));
        assert_eq!(absent, Err("it: not within 0 s: not yet".to_owned()));
    }
}
