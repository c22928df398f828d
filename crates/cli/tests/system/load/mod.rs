//! The capacity tester against servers whose behaviour is known to the count: what its record says is true.
//!
//! Rates are low and bounds are wide, as machines are shared; nothing here is about speed. Counts are exact, as the
//! servers count too. A load asks once before it begins: servers see one request, or one key exchange, more.
//!
//! - `conservation`: every operation is counted once, by both sides.
//! - `causes`, `exchanges`: each way to fail, of transfers and of key exchanges.
//! - `local`: what the generator's own host refuses; `families`: IPv6, and other servers than ours.
//! - `lifecycle`: NTS clients as a tap sees them; `renewal`: how they get new keys.
//! - `server_side`: what is known of the server; `input`: what is refused; `endings`: how a run ends, and what it
//!   leaves behind.
//!
//! Shapes of load, the search, and how a slow server shows depend on the generator's times: `timed`.

mod antp;
mod causes;
mod conservation;
mod endings;
mod exchanges;
mod families;
mod input;
mod lifecycle;
mod local;
mod renewal;
mod server_side;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;

use authentick_lab::corrupt::Middle;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::process::Process;
use authentick_lab::skip::Skip;
use authentick_report::load::{Cause, LoadRecord, Step, Tally};

use crate::lab::{Lab, Relay, Server, authentick, free_port, program, start, text, wait_for};

/// What every load here is told: the server shares the processors.
const ALWAYS: [&str; 2] = ["--json", "--unpinned"];

/// Runs `load` to its end, which is a good one.
#[track_caller]
pub(crate) fn load(arguments: &[impl AsRef<str>]) -> LoadRecord {
    load_ending(0, arguments)
}

/// Runs `load` to its end, which has this code, and reads its record.
#[track_caller]
fn load_ending(code: i32, arguments: &[impl AsRef<str>]) -> LoadRecord {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let output = authentick(["load"].iter().chain(&arguments).chain(&ALWAYS).copied());
    let record = record(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.status.code(), Some(as_valid(code, &record)), "{arguments:?}: {}", text(&output));
    record
}

/// How a load ends that would end with `code` if the machine let it send in time: where it was too busy for each step,
/// the run says nothing, and its code says that.
fn as_valid(code: i32, record: &LoadRecord) -> i32 {
    let is_valid = record.steps.is_empty() || record.steps.iter().any(Step::counts_losses);
    if code == 0 && !is_valid { 3 } else { code }
}

/// Runs `load` to its good end, before everything else that this machine has to do where the user may ask for that:
/// for figures that need a generator that keeps its times.
#[track_caller]
pub(crate) fn load_first(arguments: &[&str]) -> LoadRecord {
    let priority = ["chrt", "--fifo", "10"];
    let may = Command::new(priority[0]).args(&priority[1..]).arg("true").output();
    let mut command = match may {
        Ok(output) if output.status.success() => {
            let mut command = Command::new(priority[0]);
            command.args(&priority[1..]).arg(program().path());
            command
        }
        _ => Command::new(program().path()),
    };
    let output = command.arg("load").args(arguments).args(ALWAYS).output().unwrap();
    let record = record(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.status.code(), Some(as_valid(0, &record)), "{arguments:?}: {}", text(&output));
    record
}

/// The record in what a load has printed; reading it checks that its counts add up.
#[track_caller]
fn record(printed: &str) -> LoadRecord {
    let line = printed.lines().find(|line| line.starts_with('{'));
    let line = line.unwrap_or_else(|| panic!("no record in:\n{printed}"));
    LoadRecord::from_json(line).unwrap_or_else(|error| panic!("{error}:\n{line}"))
}

/// Starts `load`, for a test that does something meanwhile.
pub(crate) fn begin(arguments: &[impl AsRef<str>]) -> Process {
    let arguments = arguments.iter().map(AsRef::as_ref);
    Process::start(Command::new(program().path()).arg("load").args(arguments).args(ALWAYS))
}

/// The record of a load that was begun, once it has ended well.
#[track_caller]
fn finish(process: Process) -> LoadRecord {
    finish_ending(0, process)
}

/// The same for one that ends with this code.
#[track_caller]
pub(crate) fn finish_ending(code: i32, mut process: Process) -> LoadRecord {
    let ended = process.wait();
    let printed =
        wait_for("the record", || Some(process.log()).filter(|log| log.contains("authentick-load/")));
    let record = record(&printed);
    assert_eq!(ended, as_valid(code, &record), "{printed}");
    record
}

/// The only step of a record.
#[track_caller]
pub(crate) fn only(record: &LoadRecord) -> &Step {
    assert_eq!(record.steps.len(), 1);
    &record.steps[0]
}

/// Arguments of a load with this scheme against a key exchange on loopback, with `more` after them.
fn under_nts(scheme: &str, ke: SocketAddr, lab: &Lab, more: &[&str]) -> Vec<String> {
    let (port, ca) = (ke.port().to_string(), lab.ca());
    let all = [scheme, "127.0.0.1", "--ke-port", &port, "--ca", ca.to_str().unwrap()];
    all.iter().chain(more).map(ToString::to_string).collect()
}

/// Runs such a load to its good end.
#[track_caller]
pub(crate) fn load_nts(scheme: &str, ke: SocketAddr, lab: &Lab, more: &[&str]) -> LoadRecord {
    load(&under_nts(scheme, ke, lab, more))
}

/// Failures by cause, without what the generator did not send.
fn failures(tally: &Tally) -> BTreeMap<Cause, u64> {
    tally.causes.iter().map(|(&cause, &count)| (cause, count)).filter(|(cause, _)| !cause.is_skip()).collect()
}

/// A server's host and one other; `None` if this machine has no hosts, which is told as a skip.
fn hosts() -> Option<Hosts> {
    Hosts::new(1).inspect_err(Skip::tell).ok()
}

/// A server, and a client on another host that has only a cable to it. Fields are dropped in this order.
struct Apart {
    server: Server,
    lab: Lab,
    hosts: Hosts,
}

impl Apart {
    const NTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)), 1123);
    const KE_PORT: u16 = 14460;

    /// A server over IPv4; `None` if there are no hosts.
    fn new() -> Option<Self> {
        Some(Apart::on(hosts()?, "0.0.0.0"))
    }

    /// A server on the first of these hosts, on all its addresses of a family.
    fn on(hosts: Hosts, any: &str) -> Self {
        let lab = Lab::new();
        let [ntp, ke] = [Apart::NTP.port(), Apart::KE_PORT];
        let config =
            lab.config(&format!("listen = [\"{any}:{ntp}\"]"), &format!("ke-listen = [\"{any}:{ke}\"]"));
        let server = program().serve_on(&hosts, Host::Server, &config);
        Apart { server, lab, hosts }
    }

    /// `load` on the client, which is yet to be told whom to load.
    fn load(&self) -> Command {
        let mut command = self.hosts.on(Host::Client(0), program().path());
        command.arg("load");
        command
    }

    /// Datagrams that the server has received.
    fn received(&self) -> f64 {
        self.hosts.within(Host::Server, || self.server.metric("ntp_server_received_packets_total"))
    }
}

/// A server whose key exchange sends clients to a relay.
fn behind<M: Middle>(lab: &Lab, middle: M) -> (Server, Relay<M>) {
    let port = free_port();
    let server = start(&lab.config("", &format!("advertise = {{ port = {port} }}")));
    let relay = Relay::on_loopback(port, server.ntp, middle);
    (server, relay)
}
