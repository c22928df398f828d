//! What limited a step, between real sockets: the server is a process of its own, so that what its host counts can be
//! told from what the generator does. Each host is a network namespace, in which nobody else sends.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::process::Process;
use authentick_lab::servers::{Fault, NtpServer, Policy};
use authentick_load::runner::{Run, Steps};
use authentick_load::{Arrivals, Generator, Plan, Processes, Watch, limit};
use authentick_report::load::{Cause, Limit, Step};
use authentick_rig::link::Link;
use authentick_rig::path::Path;

/// Names what the server drops, to the process that is the server.
const DROPS: &str = "AUTHENTICK_TEST_DROPS";

/// A server that answers all but every `drop_every`th request; 0: all.
fn start(hosts: &Hosts, host: Host, drop_every: u64) -> (Process, SocketAddr) {
    let mut command: Command = hosts.on(host, std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "server_of_other_tests", "--nocapture"]);
    let mut process = Process::start(command.env(DROPS, drop_every.to_string()));
    let port = process.wait_for_line("serving on port ").trim().parse().unwrap();
    (process, SocketAddr::new(hosts.address(host), port))
}

#[test]
#[ignore = "is the process of a server, which other tests start"]
fn server_of_other_tests() {
    let drop_every: u64 = std::env::var(DROPS).unwrap().parse().unwrap();
    let policy = match drop_every {
        0 => Policy::good(),
        count => Policy::good().every(count, Fault::Drop),
    };
    let server = NtpServer::start(UdpSocket::bind("0.0.0.0:0").unwrap(), policy);
    println!("\nserving on port {}", server.address().port());
    // The test kills it; an hour bounds what nobody killed.
    std::thread::sleep(Duration::from_secs(3600));
}

fn plan(target: SocketAddr) -> Plan {
    Plan { clients: 8, pinned: false, timeout: Duration::from_secs(1), ..Plan::plain(target) }
}

fn run(steps: Steps, target: SocketAddr, server: Option<&Process>) -> Run {
    Run {
        steps,
        duration: Duration::from_millis(500),
        warm_up: Duration::ZERO,
        background_rps: 0.0,
        stop_at_loss: None,
        server: server.map(|process| Processes::new(&[process.id()], target.port()).unwrap()),
        spans: None,
    }
}

/// A step of 400 requests to `target` from the client's host. A busy machine sends some of them late, for which the
/// verdict would be on the generator: that is left out, and the rest is judged again.
fn measured(hosts: &Hosts, target: SocketAddr, server: Option<&Process>) -> Step {
    hosts.within(Host::Client(0), || {
        let watch = Watch::default();
        let mut generator = Generator::prepare(&plan(target), None, &watch).unwrap();
        let outcome = run(Steps::Open(vec![800.0]), target, server).carry_out(&mut generator, &watch, |_| {});
        let mut step = outcome.steps[0].clone();
        assert!(step.valid || step.limit.as_ref().unwrap().by == Limit::Generator, "{:?}", step.limit);
        (step.valid, step.why_invalid, step.lateness_us, step.evidence) = (true, None, None, None);
        step.tally.causes.remove(&Cause::FellBehind);
        step.limit = Some(limit::judge(&step));
        step
    })
}

fn is_limited_by(step: &Step, by: Limit) {
    assert_eq!(
        step.limit.as_ref().unwrap().by,
        by,
        "{:?} {:?} {:?}",
        step.limit,
        step.server,
        step.tally.causes
    );
}

#[test]
fn server_that_leaves_requests_unanswered_is_told_from_the_path_if_its_process_is_named() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    // On the generator's own host, what the generator sends and reads is subtracted.
    for host in [Host::Server, Host::Client(0)] {
        let (server, target) = start(&hosts, host, 20);
        let step = measured(&hosts, target, Some(&server));
        is_limited_by(&step, Limit::Server);
        let counted = step.server.unwrap().traffic.unwrap();
        let near = |left: u64, right: u64| left.abs_diff(right) <= 10;
        assert!(
            near(counted.read, step.tally.sent) && near(counted.sent, counted.read * 19 / 20),
            "{counted:?}"
        );
        is_limited_by(&measured(&hosts, target, None), Limit::Unknown);
    }
}

#[test]
fn requests_that_leave_together_are_told_from_the_answers_of_a_server_on_this_host() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let (server, target) = start(&hosts, Host::Client(0), 0);
    let step = hosts.within(Host::Client(0), || {
        let (plan, watch) =
            (Plan { arrivals: Arrivals::Closed { window: 64 }, ..plan(target) }, Watch::default());
        let mut generator = Generator::prepare(&plan, None, &watch).unwrap();
        run(Steps::Closed, target, Some(&server)).carry_out(&mut generator, &watch, |_| {}).steps.remove(0)
    });
    let (counted, answered) = (step.server.unwrap().traffic.unwrap(), step.tally.answered);
    let near = |left: u64, right: u64| left.abs_diff(right) <= 10 + right / 1000;
    assert!(
        answered > 1000 && near(counted.read, answered) && near(counted.sent, answered),
        "{counted:?} {answered}"
    );
}

#[test]
fn path_that_loses_requests_is_told_from_the_server() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let (server, target) = start(&hosts, Host::Server, 0);
    is_limited_by(&measured(&hosts, target, Some(&server)), Limit::Nothing);
    let lossy = || Link::default().with_loss(200_000);
    for (there, back) in [(lossy(), Link::default()), (Link::default(), lossy())] {
        let path = match Path::new(&hosts, 0, there, back, 7) {
            Ok(path) => path,
            Err(error) => return authentick_lab::skip::skip(&error.to_string()),
        };
        let target = SocketAddr::new(path.server_address(), target.port());
        is_limited_by(&measured(&hosts, target, Some(&server)), Limit::Path);
        is_limited_by(&measured(&hosts, target, None), Limit::Unknown);
    }
}
