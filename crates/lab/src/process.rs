//! Processes that end with their test, and what they have written so far; waiting with a limit; free ports.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a thing may take that takes milliseconds on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Asks again and again until there is an answer.
///
/// # Panics
/// If there is none within [`PATIENCE`].
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A port that is free for UDP and TCP on loopback right now.
///
/// # Panics
/// If loopback cannot be bound at all.
#[must_use]
pub fn free_port() -> u16 {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Standard output and standard error of a run, for messages.
#[must_use]
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A process that ends with its test, and what it has written so far. Its methods panic where a test would.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts `command` with its output captured.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let log = Arc::new(Mutex::new(Vec::new()));
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for output in outputs {
            let log = Arc::clone(&log);
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    log.lock().unwrap().push(line);
                }
            });
        }
        Process { child, log }
    }

    /// The process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The lines that it has written to standard output and standard error.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Waits until a line contains `part`; returns what follows it.
    pub fn wait_for_line(&mut self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found =
                self.log.lock().unwrap().iter().find_map(|line| Some(line.split_once(part)?.1.to_owned()));
            if let Some(rest) = found {
                return rest;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended ({}) before {part:?}:\n{}", ended.unwrap(), self.log());
            assert!(Instant::now() < deadline, "no {part:?} in:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal, such as `-KILL`.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end; returns the exit code, -1 for an end by signal.
    pub fn wait(&mut self) -> i32 {
        wait_for("a process to end", || self.child.try_wait().unwrap()).code().unwrap_or(-1)
    }

    /// Resident memory in octets, and processor time in seconds; zeros if the system does not tell. Commands made by
    /// [`crate::hosts::Hosts::on`] and `taskset` replace themselves, so this is about the program itself.
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

/// Every server of ours that a test starts runs under its filters, so each test is one of their lists too.
impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() {
            let log = self.log();
            assert!(!log.contains("was refused system call"), "a filter lacks a call:\n{log}");
        }
    }
}
