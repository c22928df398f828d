//! Processes that end with their test, and what they have written so far; waiting with a limit; free ports.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Deref;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use authentick_rig::process;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// How long a thing may take that takes milliseconds on an idle machine. Only a test that fails waits so long, and one
/// processor in ten is what a machine that others use may have left.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until there is an answer.
///
/// # Panics
/// If there is none within [`PATIENCE`].
pub fn wait_for<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    wait_within(PATIENCE, what, ask)
}

/// The same for what may take longer.
///
/// # Panics
/// If there is no answer within `patience`.
pub fn wait_within<T>(patience: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ports of which the kernel gives none to sockets that name none: its own begin at 32768. ip(7), ip_local_port_range.
const NAMED_PORTS: core::ops::Range<u32> = 10_240..32_768;

/// A port that is free for UDP and TCP on loopback. It stays free: neither the kernel nor this function gives it to
/// anybody else, until all ports had their turn.
///
/// # Panics
/// If all are taken.
#[must_use]
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Processes that run at once begin at different places.
    let first = std::process::id().wrapping_mul(2_654_435_761) >> 8;
    for _ in NAMED_PORTS {
        let place = first.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = NAMED_PORTS.start + place % (NAMED_PORTS.end - NAMED_PORTS.start);
        let port = u16::try_from(port).expect("it is a port");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free on loopback");
}

/// A TCP port of loopback that refuses connections for as long as the socket lives: it is bound, so nobody else can
/// listen there, and does not listen itself.
///
/// # Panics
/// If loopback cannot be bound at all.
#[must_use]
pub fn closed_port() -> TcpListener {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    TcpListener::from(socket)
}

/// Standard output and standard error of a run, for messages.
#[must_use]
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The rig's process, which ends with its test. Its methods panic where a test would.
#[derive(Debug)]
pub struct Process(process::Process);

impl Process {
    /// Starts `command` with its output captured.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        Process(process::Process::start(command).unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Waits until a line contains `part`; returns what follows it.
    pub fn wait_for_line(&mut self, part: &str) -> String {
        self.0.wait_for_line(part, PATIENCE).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Sends a signal, such as `-KILL`.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end; returns the exit code, -1 for an end by signal.
    pub fn wait(&mut self) -> i32 {
        self.0.wait(PATIENCE).unwrap_or_else(|error| panic!("{error}")).code().unwrap_or(-1)
    }
}

impl From<process::Process> for Process {
    fn from(process: process::Process) -> Self {
        Process(process)
    }
}

impl Deref for Process {
    type Target = process::Process;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Every server of ours that a test starts runs under its filters, so each test is one of their lists too.
impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill();
        if !std::thread::panicking() {
            let log = self.log();
            assert!(!log.contains("was refused system call"), "a filter lacks a call:\n{log}");
        }
    }
}
