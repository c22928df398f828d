//! Further processes of this program: servers and agents that end with it, and load runs that are waited for.
//!
//! Each is in a process group of its own, so that Ctrl-C reaches only the study, which tells the run to stop. Servers
//! and agents hold the end of a pipe: they end even if the study is killed.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use authentick_net::process::terminate;

use crate::exit::{Exit, Failure};

/// How long a process may take until it says where it listens.
const START_MAX: Duration = Duration::from_secs(20);
/// How long one may take to end before it is killed.
const END_MAX: Duration = Duration::from_secs(3);
/// The same of a load run, which waits for its last answers.
const BACKGROUND_END_MAX: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(20);

/// A server or an agent, which ends with this value.
#[derive(Debug)]
pub(super) struct Helper {
    child: Child,
    pub(super) address: SocketAddr,
}

/// A command that starts this program again; `before` is a program that starts it, with arguments, or empty.
pub(super) fn this_program(before: &[String]) -> Result<Command, Failure> {
    let this = std::env::current_exe()?;
    let mut command = match before {
        [] => Command::new(this),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(this);
            command
        }
    };
    command.process_group(0);
    Ok(command)
}

impl Helper {
    /// A server with this configuration.
    pub(super) fn server(config: &Path) -> Result<Self, Failure> {
        Helper::server_under(&[], config)
    }

    /// The same, started by a program with its arguments, such as one that puts it elsewhere.
    pub(super) fn server_under(before: &[String], config: &Path) -> Result<Self, Failure> {
        let mut command = this_program(before)?;
        command.args(["serve", "--until-eof", "--config"]).arg(config);
        Helper::start(command, "serving time on ")
    }

    /// Starts a process; the line of its log that contains `sign` ends in its address.
    pub(super) fn start(mut command: Command, sign: &str) -> Result<Self, Failure> {
        command.env("RUST_LOG", "info").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let internal = |problem: String| Failure::new(Exit::Internal, problem);
        let mut child = command.spawn().map_err(|error| {
            internal(format!("cannot start {}: {error}", command.get_program().display()))
        })?;
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        // Reads on after nobody listens, so that the process never waits for room in the pipe.
        std::thread::Builder::new().name("helper".to_owned()).spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        })?;
        let found = await_address(&lines, sign);
        let mut helper = Helper { child, address: SocketAddr::from(([0, 0, 0, 0], 0)) };
        helper.address = found
            .map_err(|log| internal(format!("a process of this study did not start: {}", log.join("; "))))?;
        Ok(helper)
    }

    /// Its number.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + END_MAX;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(TICK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What follows `sign` in a line; else all lines.
fn await_address(lines: &Receiver<String>, sign: &str) -> Result<SocketAddr, Vec<String>> {
    let deadline = Instant::now() + START_MAX;
    let mut log = Vec::new();
    while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        if let Some(address) = line.split_once(sign).and_then(|(_, rest)| rest.trim().parse().ok()) {
            return Ok(address);
        }
        log.push(line);
    }
    Err(log)
}

/// A load run beside others, which is stopped when its time has come.
#[derive(Debug)]
pub(super) struct Background(Child);

impl Background {
    /// Starts a load run with these arguments, where there is `nice` at a lower priority than what is measured.
    pub(super) fn start(arguments: &[String]) -> Result<Self, Failure> {
        let nice = ["nice", "-n", "5"].map(str::to_owned);
        let before = if is_there("nice") { &nice[..] } else { &[] };
        let mut command = this_program(before)?;
        let child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Background(child.spawn()?))
    }

    /// Whether it has not ended by itself.
    pub(super) fn is_running(&mut self) -> Result<bool, Failure> {
        Ok(self.0.try_wait()?.is_none())
    }

    /// Lets it end in order, so that it keeps its record.
    pub(super) fn stop(mut self) -> Result<ExitStatus, Failure> {
        if self.is_running()? {
            terminate(&self.0)?;
        }
        let deadline = Instant::now() + BACKGROUND_END_MAX;
        while Instant::now() < deadline {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(TICK);
        }
        Err(Failure::new(Exit::Internal, "a load run in the background of this study did not stop"))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Whether a program is where programs are.
pub(super) fn is_there(program: &str) -> bool {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter().any(|folder| Path::new(folder).join(program).exists())
}

/// Carries out a load run with these arguments; its bar and its errors are shown. `stop` makes it end early, in order.
pub(super) fn load(arguments: &[String], stop: &AtomicBool) -> Result<ExitStatus, Failure> {
    let mut command = this_program(&[])?;
    let mut child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) && !told {
            told = true;
            terminate(&child)?;
        }
        std::thread::sleep(TICK);
    }
}

/// A load run ended without a record.
pub(super) fn nothing_came(what: &str, status: ExitStatus, words: &[String]) -> Failure {
    let exit = match status.code() {
        Some(1) => Exit::Silence,
        Some(2) => Exit::Authentication,
        Some(64) => Exit::Usage,
        Some(69) => Exit::Unavailable,
        Some(77) => Exit::Permission,
        Some(78) => Exit::Configuration,
        _ => Exit::Internal,
    };
    let message = format!(
        "{what}: the run brought nothing ({status}): authentick {}; what was measured before it is kept, and the same \
         command goes on",
        words.join(" ")
    );
    Failure::new(exit, message)
}
