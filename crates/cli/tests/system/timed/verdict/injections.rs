//! What is done to a generator, a path or a server while a load goes on, and the loads.
//!
//! ```text
//! generator: client 0 ---- the hosts' middle, which forwards ---- client 1: server
//! ```

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::process::Process;
use authentick_lab::quota::Quota;
use authentick_lab::servers::{Fault, NtpServer, Policy};
use authentick_lab::skip::Skip;
use authentick_report::load::LoadRecord;

use crate::lab::{Lab, Server, program, text, wait_for};

const GENERATOR: Host = Host::Client(0);
const SERVER: Host = Host::Client(1);
/// The interface of the middle that leads to the server.
const TO_SERVER: &str = "c2";
/// How long a load lasts.
const STEP: Duration = Duration::from_secs(1);

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Injection {
    Nothing,
    /// The generator has a twentieth of a processor.
    GeneratorQuota,
    /// The generator is stopped for 400 ms.
    GeneratorStopped,
    /// The queue of the generator's interface drains at 1 Mbit/s.
    LocalQueue,
    /// Something that comes first has the generator's processor for half of the time.
    BusyHost,
    /// A token bucket on the way to the server passes 10 Mbit/s.
    Path10,
    /// The same with 20 Mbit/s.
    Path20,
    /// The server has a twentieth of a processor.
    ServerQuota,
    /// The server is stopped for 200 ms of each 600.
    ServerStopped,
    /// The server is stopped in the midst of the load, and stays so.
    ServerHangs,
    /// The server reads every request, and answers all but one in 200.
    OneInTwoHundred,
}

impl Injection {
    /// What is done, as the documentation has it.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Injection::Nothing => "nothing",
            Injection::GeneratorQuota => "the generator has a twentieth of a processor",
            Injection::GeneratorStopped => "the generator is stopped for 400 ms",
            Injection::LocalQueue => "the queue of the generator's interface drains at 1 Mbit/s",
            Injection::BusyHost => {
                "something that comes first has the generator's processor for half of the time"
            }
            Injection::Path10 => "a token bucket on the way to the server passes 10 Mbit/s",
            Injection::Path20 => "the same with 20 Mbit/s",
            Injection::ServerQuota => "the server has a twentieth of a processor",
            Injection::ServerStopped => "the server is stopped for 200 ms of each 600",
            Injection::ServerHangs => "the server is stopped in the midst of the load, and stays so",
            Injection::OneInTwoHundred => "the server reads every request, and answers all but one in 200",
        }
    }

    /// What is offered, requests a second, and under which scheme: what a generator can do on a slow machine too.
    const fn load(self) -> (&'static str, &'static str) {
        match self {
            Injection::Nothing
            | Injection::GeneratorStopped
            | Injection::BusyHost
            | Injection::ServerHangs => ("plain", "1000"),
            Injection::GeneratorQuota => ("plain", "20000"),
            // 114 octets of Ethernet each: 4.6 Mbit/s.
            Injection::LocalQueue => ("plain", "5000"),
            // 18 Mbit/s, and 260 octets or more each: 42 Mbit/s.
            Injection::Path10 => ("plain", "20000"),
            Injection::Path20 => ("nts", "20000"),
            // Four fifths of them or more, for which its sockets have no room.
            Injection::ServerQuota => ("nts", "20000"),
            Injection::ServerStopped | Injection::OneInTwoHundred => ("plain", "8000"),
        }
    }

    /// Time for an answer in seconds. What comes in the first half of a stop of the server is later than 0.1 s.
    const fn timeout(self) -> &'static str {
        match self {
            Injection::ServerStopped => "0.1",
            Injection::Nothing
            | Injection::GeneratorQuota
            | Injection::GeneratorStopped
            | Injection::LocalQueue
            | Injection::BusyHost
            | Injection::Path10
            | Injection::Path20
            | Injection::ServerQuota
            | Injection::ServerHangs
            | Injection::OneInTwoHundred => "0.5",
        }
    }
}

/// A load, and what the test saw of its generator.
pub(super) struct Measured {
    pub(super) record: LoadRecord,
    /// How much of the step others had the processor of a sending thread that was ready to run, from 0 to 1.
    pub(super) taken_share: f64,
}

/// Hosts for one case after the other.
pub(super) struct Bench {
    hosts: Hosts,
    lab: Lab,
}

/// What disturbs the way or the generator's host, until this is undone.
struct Disturbance<'a> {
    hosts: &'a Hosts,
    /// An interface with a token bucket, and its host.
    bucket: Option<(Host, &'static str)>,
    busy: Option<Child>,
}

/// One load: what is asked of whom.
struct Load<'a> {
    /// Whose load it is.
    offered: Injection,
    /// What is done.
    injection: Injection,
    ntp: SocketAddr,
    ke: Option<SocketAddr>,
    /// The server's process, if the load may know it.
    pid: Option<u32>,
    lab: &'a Lab,
}

impl Bench {
    /// # Errors
    /// A skip, with the reason, where namespaces or control groups cannot be made.
    pub(super) fn new() -> Result<Self, Skip> {
        // It is known now rather than in the midst of the table.
        Quota::new(0.5)?;
        Ok(Bench { hosts: Hosts::new(2)?, lab: Lab::new() })
    }

    /// Loads a server while this is done.
    pub(super) fn carry_out(&self, injection: Injection, is_known: bool) -> Measured {
        self.carry_out_load_of(injection, injection, is_known)
    }

    /// What its load measures if it is not done.
    pub(super) fn without(&self, injection: Injection) -> Measured {
        self.carry_out_load_of(injection, Injection::Nothing, false)
    }

    /// Carries out the load that belongs to one injection while another one is done.
    fn carry_out_load_of(&self, offered: Injection, injection: Injection, is_known: bool) -> Measured {
        let load = |ntp, ke, process: &Process| Load {
            offered,
            injection,
            ntp,
            ke,
            pid: is_known.then(|| process.id()),
            lab: &self.lab,
        };
        if injection == Injection::OneInTwoHundred {
            let (process, address) = self.lying_server();
            return self.measure(&load(address, None, &process), |_| ());
        }
        let Server { process, ntp, ke, .. } = &self.server();
        leave_last_processor(process);
        let _quota = (injection == Injection::ServerQuota).then(|| limited(process));
        self.measure(&load(*ntp, Some(*ke), process), |is_over| {
            if injection == Injection::ServerHangs {
                // It has answered the first question, and the step has begun.
                std::thread::sleep(Duration::from_millis(700));
                process.signal("-STOP");
            }
            // In any second there is one whole stop.
            while injection == Injection::ServerStopped && !is_over() {
                process.signal("-STOP");
                std::thread::sleep(Duration::from_millis(200));
                process.signal("-CONT");
                std::thread::sleep(Duration::from_millis(400));
            }
        })
    }

    fn server(&self) -> Server {
        let listen = format!("{}:0", self.hosts.address(SERVER));
        let config = self.lab.config(&format!("listen = [{listen:?}]"), &format!("ke-listen = [{listen:?}]"));
        program().serve_on(&self.hosts, SERVER, &config)
    }

    /// A server that drops answers, in a process of its own: this program, which runs that server alone.
    fn lying_server(&self) -> (Process, SocketAddr) {
        let address = SocketAddr::new(self.hosts.address(SERVER), 12_123);
        let mut command = self.hosts.on(SERVER, std::env::current_exe().unwrap());
        command.args(["--exact", &itself("server_that_drops_answers"), "--ignored", "--nocapture"]);
        let mut process = Process::start(command.env(ADDRESS, address.to_string()));
        process.wait_for_line("dropping answers");
        (process, address)
    }

    /// One step of load, with `meanwhile` beside it, which is told whether the load is over.
    fn measure(&self, load: &Load<'_>, meanwhile: impl FnOnce(&dyn Fn() -> bool)) -> Measured {
        let mut command = match load.injection {
            // The kernel puts nothing under a quota that comes before everything else.
            Injection::GeneratorQuota => self.hosts.on(GENERATOR, program().path()),
            _ => {
                // Before what else this machine has to do, but for what is injected.
                let mut command = self.hosts.on(GENERATOR, "chrt");
                command.args(["--fifo", "10"]).arg(program().path());
                command
            }
        };
        command.args(load.arguments());
        let _disturbance = Disturbance::begin(&self.hosts, load.injection);
        let mut process = Process::start(&mut command);
        let _quota = (load.injection == Injection::GeneratorQuota).then(|| limited(&process));
        if load.injection == Injection::GeneratorStopped {
            // It is in the midst of its step.
            std::thread::sleep(Duration::from_millis(500));
            process.signal("-STOP");
            std::thread::sleep(Duration::from_millis(400));
            process.signal("-CONT");
        }
        let taken_share = std::thread::scope(|scope| {
            let taken = scope.spawn(|| taken_share(process.id()));
            meanwhile(&|| taken.is_finished());
            taken.join().unwrap()
        });
        let code = process.wait();
        let log = wait_for("the record", || {
            let log = process.log();
            (code > 60 || log.lines().any(|line| line.ends_with('}'))).then_some(log)
        });
        let line = log.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{code}: {log}"));
        let record = LoadRecord::from_json(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        Measured { record, taken_share }
    }
}

/// The share of a step in which a sending thread of this process was ready to run and others had its
/// processor, as the kernel tells the test and not the generator. Returns when the thread is gone.
fn taken_share(process: u32) -> f64 {
    let sending = || -> Option<PathBuf> {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
        threads
            .map(|thread| thread.path())
            .find(|path| std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "load"))
    };
    let delay_ns = |path: &Path| -> Option<u64> {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    };
    let start = Instant::now();
    let (mut path, mut last) = (None, None);
    while start.elapsed() < Duration::from_secs(20) {
        // The list of threads may lack one while another one ends: it is looked for until it is found, and not again.
        path = path.or_else(sending);
        match (path.as_deref().and_then(delay_ns), last) {
            (Some(ns), _) => last = Some(ns),
            (None, Some(_)) => break,
            // It has not begun.
            (None, None) => {}
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    last.map_or(1.0, |ns| ns as f64 / (STEP.as_nanos() as f64))
}

/// Keeps a process away from the last processor, where the load is sent: what comes first there would have it starve
/// until the kernel gives it that processor for 50 ms, of which the load would know nothing good.
fn leave_last_processor(process: &Process) {
    let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
    if last > 0 {
        let output = Command::new("taskset")
            .args(["-a", "-p", "-c", &format!("0-{}", last - 1), &process.id().to_string()])
            .output()
            .unwrap();
        assert!(output.status.success(), "taskset: {}", text(&output));
    }
}

/// Puts a process under a quota of a twentieth of a processor.
fn limited(process: &Process) -> Quota {
    let quota = Quota::new(0.05).expect("there are control groups, as was found");
    quota.add(process.id());
    quota
}

impl Load<'_> {
    fn arguments(&self) -> Vec<String> {
        let (scheme, rate) = self.offered.load();
        let (ntp, timeout) = (self.ntp.to_string(), self.offered.timeout());
        let mut arguments = ["load", scheme, &ntp, "--rate", rate].map(str::to_owned).to_vec();
        let mut more = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        let clients = if scheme == "nts" { "1024" } else { "64" };
        let seconds = STEP.as_secs().to_string();
        more(&["--step-seconds", &seconds, "--timeout", timeout, "--clients", clients, "--json"]);
        if let Some(ke) = self.ke.filter(|_| scheme == "nts") {
            let (port, ca) = (ke.port().to_string(), self.lab.ca());
            more(&["--ke-port", &port, "--server-name", "ntp.test", "--ca", ca.to_str().unwrap()]);
        }
        if let Some(pid) = self.pid {
            more(&["--server-pid", &pid.to_string()]);
        }
        arguments
    }
}

impl<'a> Disturbance<'a> {
    fn begin(hosts: &'a Hosts, injection: Injection) -> Self {
        let bucket = match injection {
            Injection::LocalQueue => Some((GENERATOR, Hosts::client_interface(), "1mbit")),
            Injection::Path10 => Some((Host::Server, TO_SERVER, "10mbit")),
            Injection::Path20 => Some((Host::Server, TO_SERVER, "20mbit")),
            _ => None,
        };
        let bucket = bucket.map(|(host, interface, rate)| {
            let shape = ["tbf", "rate", rate, "burst", "32kb", "limit", "64kb", "overhead", "24"];
            tc(hosts.name(host), &[&["qdisc", "add", "dev", interface, "root"], &shape[..]].concat());
            (host, interface)
        });
        let busy = (injection == Injection::BusyHost).then(|| {
            let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
            let mut command = Command::new("taskset");
            command.args(["-c", &last.to_string(), "chrt", "--fifo", "20"]);
            command.arg(std::env::current_exe().unwrap()).env(BUSY, "1");
            command.args(["--exact", &itself("something_else_is_busy"), "--ignored"]);
            command.stdout(Stdio::null()).spawn().unwrap()
        });
        Disturbance { hosts, bucket, busy }
    }
}

impl Drop for Disturbance<'_> {
    fn drop(&mut self) {
        if let Some((host, interface)) = self.bucket {
            tc(self.hosts.name(host), &["qdisc", "del", "dev", interface, "root"]);
        }
        if let Some(busy) = &mut self.busy {
            let _ = busy.kill();
            let _ = busy.wait();
        }
    }
}

/// What a test of this file is called by the program that these tests are in.
fn itself(test: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{test}")
}

fn tc(host: &str, arguments: &[&str]) {
    let output = Command::new("tc").args(["-n", host]).args(arguments).output().unwrap();
    assert!(output.status.success() || std::thread::panicking(), "tc {arguments:?}: {}", text(&output));
}

/// Where the server below serves; set only for the process that is to run it.
const ADDRESS: &str = "AUTHENTICK_TEST_DROPS_ANSWERS";
/// Set only for the process that is to be busy.
const BUSY: &str = "AUTHENTICK_TEST_IS_BUSY";

#[test]
#[ignore = "is no test: a server that reads every request and drops one answer in 200, as a process of its own"]
fn server_that_drops_answers() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let socket = UdpSocket::bind(address).unwrap();
    let _server = NtpServer::start(socket, Policy::good().every(200, Fault::Drop));
    println!("dropping answers");
    // It is killed long before; if not, it ends by itself.
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
#[ignore = "is no test: has its processor for half of the time, as a process of its own"]
fn something_else_is_busy() {
    if std::env::var(BUSY).is_err() {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(8) {
        let turn = Instant::now();
        while turn.elapsed() < Duration::from_millis(10) {
            std::hint::black_box(0);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
