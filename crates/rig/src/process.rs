//! Processes that end with their value, and what they have written so far; programs that are run to their end.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use authentick_net::process::terminate;

use crate::Error;
use crate::threads::lock;

/// Lines of a process that are kept: the last ones.
const LINE_COUNT_MAX: usize = 100_000;
/// How often it is looked whether something has happened.
const TICK: Duration = Duration::from_millis(10);
/// How long a process has for its end once its input has ended.
const END_MAX: Duration = Duration::from_secs(3);

/// How long to read on once it has ended: others that it has started may hold its output open.
const REST_MAX: Duration = Duration::from_secs(1);

/// A process that ends with this value, and what it has written so far.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: Arc<Mutex<Log>>,
    /// Its input is its watcher's.
    is_watched: bool,
}

/// What was read of a process's output.
#[derive(Debug, Default)]
struct Log {
    lines: VecDeque<String>,
    /// Outputs that have not come to their end.
    open_count: usize,
}

impl Process {
    /// Starts `command` with its output captured. It is killed at the end.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> Result<Self, Error> {
        Process::with_input(command, Stdio::null())
    }

    /// The same for a program that does not mind its input: a watcher beside it kills it once this process has ended,
    /// killed perhaps, at whatever moment after this call began. The program has no input, and its number and its
    /// environment are those of `command`; of what else a command may say nothing is heeded.
    ///
    /// # Errors
    /// If there is no shell.
    pub fn start_watched(command: &Command) -> Result<Self, Error> {
        // The shell becomes the program, so the watcher knows its number before there is a program. The pipe ends with
        // this process; a line in it dismisses the watcher.
        const WATCH: &str = "exec 3<&0; { read -r line <&3 || kill -KILL $$; } >/dev/null 2>&1 & \
                             exec \"$@\" 3<&- </dev/null";
        let mut shell = Command::new("sh");
        shell.args(["-c", WATCH, "sh"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let mut process = Process::with_input(&mut shell, Stdio::piped())?;
        process.is_watched = true;
        Ok(process)
    }

    /// The same for a program that ends by itself once its input has ended, even if this process is killed. If it does
    /// not within a few seconds it is killed too.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_until_eof(command: &mut Command) -> Result<Self, Error> {
        Process::with_input(command, Stdio::piped())
    }

    fn with_input(command: &mut Command, input: Stdio) -> Result<Self, Error> {
        let program = command.get_program().display().to_string();
        let child = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.map_err(|error| Error::Command { program, problem: error.to_string() })?;
        let mut process = Process { child, log: Arc::default(), is_watched: false };
        let (stdout, stderr) = (process.child.stdout.take(), process.child.stderr.take());
        process.keep(stdout)?;
        process.keep(stderr)?;
        Ok(process)
    }

    /// Reads on for as long as the process writes, so that it never waits for room in the pipe.
    fn keep(&self, output: Option<impl Read + Send + 'static>) -> Result<(), Error> {
        let Some(output) = output else { return Ok(()) };
        let log = Arc::clone(&self.log);
        lock(&self.log).open_count += 1;
        let read = move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let lines = &mut lock(&log).lines;
                if lines.len() == LINE_COUNT_MAX {
                    lines.pop_front();
                }
                lines.push_back(line);
            }
            lock(&log).open_count -= 1;
        };
        let thread = std::thread::Builder::new().name("log".to_owned()).spawn(read);
        thread.map(drop).map_err(Error::system("a thread"))
    }

    /// The process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its number, and those of all processes that it has started, and they, and that still run.
    #[must_use]
    pub fn family(&self) -> Vec<u32> {
        let mut family = vec![self.id()];
        let mut next = 0;
        while let Some(&pid) = family.get(next) {
            family.extend(children(pid));
            next += 1;
        }
        family
    }

    /// The lines that it has written to standard output and standard error.
    #[must_use]
    pub fn log(&self) -> String {
        lock(&self.log).lines.make_contiguous().join("\n")
    }

    /// Waits until what an ended process has written is read.
    fn read_out(&self) {
        let deadline = Instant::now() + REST_MAX;
        while lock(&self.log).open_count > 0 && Instant::now() < deadline {
            std::thread::sleep(TICK / 10);
        }
    }

    /// Waits until a line contains `part`; returns what follows it.
    ///
    /// # Errors
    /// If the process ends before, or does not write it within `patience`.
    pub fn wait_for_line(&mut self, part: &str, patience: Duration) -> Result<String, Error> {
        let deadline = Instant::now() + patience;
        loop {
            let ended = self.end()?;
            if ended.is_some() {
                self.read_out();
            }
            let found =
                lock(&self.log).lines.iter().find_map(|line| Some(line.split_once(part)?.1.to_owned()));
            if let Some(rest) = found {
                return Ok(rest);
            }
            if let Some(status) = ended {
                return Err(Error::Ended { status, line: part.to_owned(), log: self.log() });
            }
            if Instant::now() >= deadline {
                return Err(Error::TooSlow { what: format!("{part:?}"), log: self.log() });
            }
            std::thread::sleep(TICK);
        }
    }

    /// How it has ended, if it has.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn end(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(Error::system("waiting for a process"))
    }

    /// Waits for the end; its log is then what it wrote.
    ///
    /// # Errors
    /// If it does not come within `patience`.
    pub fn wait(&mut self, patience: Duration) -> Result<ExitStatus, Error> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.end()? {
                self.read_out();
                return Ok(status);
            }
            if Instant::now() >= deadline {
                return Err(Error::TooSlow { what: "a process to end".to_owned(), log: self.log() });
            }
            std::thread::sleep(TICK);
        }
    }

    /// Asks the process to end in order, and waits for it.
    ///
    /// # Errors
    /// If it may not be signalled, or does not end within `patience`.
    pub fn stop(&mut self, patience: Duration) -> Result<ExitStatus, Error> {
        if self.end()?.is_none() {
            terminate(&self.child).map_err(Error::system("ending a process"))?;
        }
        self.wait(patience)
    }

    /// Kills the process; its log is what it wrote until then.
    pub fn kill(&mut self) {
        // One that has ended already is no matter.
        let _ = self.child.kill();
        self.dismiss();
        let _ = self.child.wait();
        self.read_out();
    }

    /// Ends the watcher. That is to be before the process is waited for: until then nobody else has its number.
    fn dismiss(&mut self) {
        if self.is_watched
            && let Some(mut input) = self.child.stdin.take()
        {
            // A watcher that has done its work reads no more.
            let _ = input.write_all(b"\n");
        }
    }

    /// Resident memory in octets, and processor time in seconds; zeros if the system does not tell. Commands made by
    /// [`Hosts::on`](crate::hosts::Hosts::on) and `taskset` replace themselves, so this is about the program itself.
    #[must_use]
    pub fn usage(&self) -> (u64, f64) {
        // proc(5): fields 14 and 15 of stat, in ticks of 10 ms; counted here after the name in parentheses.
        const TICKS: [usize; 2] = [11, 12];
        let pid = self.id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok())
            .unwrap_or(0);
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks: f64 = TICKS.iter().filter_map(|&index| fields.get(index)?.parse::<f64>().ok()).sum();
        (resident * 1024, ticks / 100.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_watched {
            self.kill();
            return;
        }
        if self.child.stdin.take().is_some() && self.wait(END_MAX).is_ok() {
            return;
        }
        self.kill();
    }
}

/// The numbers of a process's threads whose names begin so.
#[must_use]
pub fn threads(pid: u32, begin: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let is_it =
        |path: &Path| std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with(begin));
    entries
        .filter(|entry| is_it(&entry.path()))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Whether there is a process of this number.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Ends a process once this one has ended without doing so itself, killed perhaps; for programs that do not mind their
/// input. It looks away once this value goes, which is to be before the process is waited for: until then nobody else
/// has its number.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Guards against leaving `process` behind.
    ///
    /// # Errors
    /// If there is no shell.
    pub fn new(process: &Process) -> Result<Self, Error> {
        // The pipe ends with this process.
        const WATCH: &str = "read -r line; kill -KILL \"$0\"";
        let mut command = Command::new("sh");
        command.args(["-c", WATCH, &process.id().to_string()]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child
            .map(Guard)
            .map_err(|error| Error::Command { program: "sh".to_owned(), problem: error.to_string() })
    }

    /// Does what the end of this process does.
    pub fn close(mut self) {
        drop(self.0.stdin.take());
        // The guarded process is killed by now, or had ended.
        let _ = self.0.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // One that has ended already is no matter.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a program is where a [`Command`] of this name looks for it: on PATH.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs a command to its end with `input`.
///
/// # Errors
/// If it cannot be started or fails: with what it wrote to standard error.
pub fn run(command: &mut Command, input: &str) -> Result<(), Error> {
    let program = command.get_program().display().to_string();
    let mut ran = || -> io::Result<(io::Result<()>, Output)> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        // A program that does not read to the end says why not.
        let written = child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(input.as_bytes()));
        Ok((written, child.wait_with_output()?))
    };
    let problem = match ran() {
        Ok((Ok(()), output)) if output.status.success() => return Ok(()),
        Ok((Err(error), output)) if output.status.success() => error.to_string(),
        Ok((_, output)) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::Command { program, problem })
}

/// The children of all threads of a process; none if it has ended. proc(5), "/proc/PID/task/TID/children".
fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists =
        threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_follows_a_line_is_found_on_both_outputs() {
        let mut process = Process::start(&mut shell("echo one two; echo three four >&2; sleep 60")).unwrap();
        assert_eq!(process.wait_for_line("one ", PATIENCE).unwrap(), "two");
        assert_eq!(process.wait_for_line("three ", PATIENCE).unwrap(), "four");
        assert_eq!(process.end().unwrap(), None);
        let error = process.wait_for_line("five", Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains("waited too long for \"five\"") && error.contains("one two"), "{error}");
    }

    #[test]
    fn process_that_ends_early_tells_what_it_wrote() {
        let mut process = Process::start(&mut shell("echo why >&2; exit 3")).unwrap();
        let error = process.wait_for_line("ready", PATIENCE).unwrap_err();
        assert!(matches!(&error, Error::Ended { status, .. } if status.code() == Some(3)), "{error}");
    }

    #[test]
    fn log_of_an_ended_process_is_all_that_it_wrote() {
        for end in ["exit", "kill -9 $$"] {
            let mut process = Process::start(&mut shell(&format!("seq 50000; {end}"))).unwrap();
            process.wait(PATIENCE).unwrap();
            assert_eq!(process.log().lines().count(), 50_000, "{end}");
        }
    }

    #[test]
    fn process_that_heeds_its_input_ends_in_order() {
        let folder = std::env::temp_dir().join(format!("atk-rig-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, script) = (folder.join("ended"), "cat; echo done > \"$0\"");
        let process = Process::start_until_eof(shell(script).arg(&file)).unwrap();
        assert!(!file.exists());
        drop(process);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "done\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn watched_process_ends_with_whoever_started_it_whenever_that_is() {
        use std::os::unix::process::ExitStatusExt;
        for is_up in [false, true] {
            let mut process = Process::start_watched(&shell("echo up; exec sleep 60")).unwrap();
            if is_up {
                process.wait_for_line("up", PATIENCE).unwrap();
            }
            // What the end of this process does.
            drop(process.child.stdin.take());
            assert_eq!(process.wait(PATIENCE).unwrap().signal(), Some(9), "{is_up}");
        }
    }

    #[test]
    fn watched_process_has_no_input_and_takes_its_watcher_along() {
        let mut command = shell("cat; echo \"$NAME\"; exec sleep 60");
        let mut process = Process::start_watched(command.env("NAME", "of it")).unwrap();
        process.wait_for_line("of it", PATIENCE).unwrap();
        let family = process.family();
        assert_eq!(family.len(), 2, "{family:?}");
        drop(process);
        // Nobody may be there who waits for a watcher that has ended.
        let has_ended = |pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
        };
        let end = Instant::now() + PATIENCE;
        while !family.iter().all(has_ended) && Instant::now() < end {
            std::thread::sleep(TICK);
        }
        assert!(family.iter().all(has_ended), "{family:?}");
    }

    #[test]
    fn family_has_the_children_of_children() {
        let process = Process::start(&mut shell("sh -c 'sleep 60 & echo $!; wait' & echo $!; wait")).unwrap();
        // Both numbers, in either order.
        let said = || process.log().lines().filter_map(|line| line.trim().parse().ok()).collect::<Vec<u32>>();
        let end = Instant::now() + PATIENCE;
        while said().len() < 2 && Instant::now() < end {
            std::thread::sleep(TICK);
        }
        let mut started = said();
        started.push(process.id());
        started.sort_unstable();
        let mut family = process.family();
        family.sort_unstable();
        assert_eq!(family, started);
        // They outlive the first of them.
        let others: Vec<String> =
            family.iter().filter(|pid| **pid != process.id()).map(ToString::to_string).collect();
        run(Command::new("kill").args(others), "").unwrap();
    }

    #[test]
    fn stopped_process_has_ended_by_the_signal() {
        let mut process =
            Process::start(&mut shell("trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done")).unwrap();
        process.wait_for_line("up", PATIENCE).unwrap();
        assert_eq!(process.stop(PATIENCE).unwrap().code(), Some(7));
    }

    #[test]
    fn program_that_fails_says_why() {
        run(&mut Command::new("cat"), "input").unwrap();
        let error = run(&mut shell("echo no such thing >&2; exit 1"), "").unwrap_err().to_string();
        assert_eq!(error, "sh: no such thing");
        let error = run(&mut Command::new("/nowhere/program"), "").unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/program: "), "{error}");
        assert!(is_installed("sh") && !is_installed("no-such-program"));
        assert!(is_running(std::process::id()));
    }
}
