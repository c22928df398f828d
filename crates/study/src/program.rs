//! Further processes of the program: servers and agents that end with their value, and load runs that are waited for.
//!
//! Each is in a process group of its own, so that Ctrl-C reaches only the study, which tells the run to stop. Servers
//! and agents hold the end of a pipe: they end even if the study is killed.

use std::fmt::Display;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use authentick_net::process::terminate;
use authentick_report::Host;
use authentick_report::load::{Interruption, LoadRecord};
use authentick_rig::hosts::{self, Hosts};
use authentick_rig::process::{Process, is_installed, threads};
use authentick_rig::quota::Quota;

use crate::{Caller, Error, Fault};

/// How long a process may take until it says where it listens.
const START_MAX: Duration = Duration::from_secs(20);
/// How often it is looked whether a run has ended.
const TICK: Duration = Duration::from_millis(20);

/// The program that carries a study out, as whoever calls knows it.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// Its version.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The command line that it was started with.
    pub command: String,
    /// The machine that it runs on.
    pub host: Host,
    /// By whose fault a run of it failed that ended so.
    pub fault_of: fn(ExitStatus) -> Fault,
}

/// Where and how a process is started.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Launch<'a> {
    /// On this host.
    Here,
    /// On this host, so much nicer than others.
    Nice(&'a str),
    /// On one of these hosts.
    On(&'a Hosts, hosts::Host),
}

/// A server or an agent, which ends with this value.
#[derive(Debug)]
pub(crate) struct Listening {
    process: Process,
    /// It outlives the process under it.
    quota: Option<Quota>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Listening {
    /// Starts a process that heeds its input; the line of its log that contains `sign` ends in its address.
    pub(crate) fn start(mut command: Command, sign: &str) -> Result<Self, Error> {
        let not_started = "a process of this study did not start";
        let mut process =
            Process::start_until_eof(command.env("RUST_LOG", "info")).map_err(Error::rig(not_started))?;
        let address = process.wait_for_line(sign, START_MAX).map_err(Error::rig(not_started))?;
        match address.trim().parse() {
            Ok(address) => Ok(Listening { process, quota: None, address }),
            Err(_) => Err(Error::Bug(format!("a process of this study says {sign:?} and no address"))),
        }
    }

    /// Where else it listens: the line of its log that contains `sign` begins there with an address.
    pub(crate) fn also(&mut self, sign: &str) -> Result<SocketAddr, Error> {
        let found = self.process.wait_for_line(sign, START_MAX);
        let rest = found.map_err(Error::rig("a process of this study did not start"))?;
        let address = rest.trim().split('/').next().and_then(|address| address.parse().ok());
        address.ok_or_else(|| Error::Bug(format!("a process of this study says {sign:?} and no address")))
    }

    /// Leaves it so much of a processor, where there are quotas.
    pub(crate) fn limit(&mut self, share: f64, what: &'static str) -> Result<(), Error> {
        self.quota = Quota::new(share).ok();
        self.quota.as_ref().map_or(Ok(()), |quota| quota.add(self.id())).map_err(Error::rig(what))
    }

    /// Puts its threads whose names begin so under this quota; all of it where a quota takes no single threads.
    pub(crate) fn limit_by(&mut self, quota: Quota, begin: &str) -> Result<(), authentick_rig::Error> {
        match quota.takes_threads() {
            true => threads(self.id(), begin).into_iter().try_for_each(|thread| quota.add_thread(thread))?,
            false => quota.add(self.id())?,
        }
        self.quota = Some(quota);
        Ok(())
    }

    /// Whether it still runs; if not, how it ended.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        match self.process.end() {
            Ok(Some(status)) => Err(format!("it ended by itself ({status})")),
            Ok(None) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Program {
    /// A command that starts the program again.
    pub(crate) fn command(&self, launch: Launch<'_>) -> Command {
        let mut command = match launch {
            Launch::Here => Command::new(&self.path),
            Launch::Nice(niceness) => {
                let mut command = Command::new("nice");
                command.args(["-n", niceness]).arg(&self.path);
                command
            }
            Launch::On(hosts, host) => hosts.on(host, &self.path),
        };
        command.process_group(0);
        command
    }

    /// A server with this configuration.
    pub(crate) fn serve(&self, launch: Launch<'_>, config: &Path) -> Result<Listening, Error> {
        let mut command = self.command(launch);
        command.args(["serve", "--until-eof", "--config"]).arg(config);
        Listening::start(command, "serving time on ")
    }

    /// A load run beside others, where there is `nice` at a lower priority than what is measured.
    pub(crate) fn background(&self, words: &[String]) -> Result<Process, Error> {
        let launch = if is_installed("nice") { Launch::Nice("5") } else { Launch::Here };
        let mut command = self.command(launch);
        Process::start(command.args(words)).map_err(Error::rig("a load run in the background"))
    }

    /// A run of the program ended so, and left no record.
    pub(crate) fn nothing_came(&self, what: &str, status: ExitStatus, words: &[String]) -> Error {
        let command = format!("authentick {}", words.join(" "));
        Error::Run { what: what.to_owned(), fault: (self.fault_of)(status), status, command }
    }
}

impl Caller<'_> {
    /// Runs the program to its end with these arguments, and shows nothing. As an error, what it said last.
    pub(crate) fn ask(&self, words: &[String]) -> Result<Result<(), String>, Error> {
        let output = self.program.command(Launch::Here).args(words).stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(Ok(()));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.map(|line| line.strip_prefix("authentick: ").unwrap_or(line).to_owned());
        Ok(Err(last.unwrap_or_else(|| format!("it ended without a word ({})", output.status))))
    }

    /// Carries out a load run with these arguments; its bar and its errors are shown. Ends it in order if the study is
    /// to stop.
    pub(crate) fn load(&self, launch: Launch<'_>, words: &[String]) -> Result<ExitStatus, Error> {
        let mut command = self.program.command(launch);
        let mut child = command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let mut told = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if self.says_stop() && !told {
                told = true;
                terminate(&child)?;
            }
            std::thread::sleep(TICK);
        }
    }
}

/// Adds an option with its value.
pub(crate) fn say(words: &mut Vec<String>, option: &str, value: &dyn Display) {
    words.extend([option.to_owned(), value.to_string()]);
}

/// What a load run has written to a file: a record with a step, or nothing of use.
pub(crate) fn load_record(file: &Path) -> Option<LoadRecord> {
    whole(&fs::read_to_string(file).ok()?)
}

/// A record of a load run that has ended and has a step.
pub(crate) fn whole(text: &str) -> Option<LoadRecord> {
    let is_whole = |record: &LoadRecord| {
        !record.steps.is_empty() && record.interrupted != Some(Interruption::Unfinished)
    };
    LoadRecord::from_json(text).ok().filter(is_whole)
}
