//! `authentick study run nts`, its ladders of loads: a few short steps, what shows past a server's limit, and what is
//! left when a step is interrupted.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use authentick_lab::exchanges::{Behaviour, KeServer};
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::folder as peers_folder;
use authentick_lab::process::Process;
use authentick_lab::quota::Quota;
use authentick_lab::skip::skip;
use authentick_net::privilege::is_root;
use authentick_report::load::{Cause, LoadRecord, Step};
use authentick_report::study::Task;
use authentick_report::study::nts::{Ladder, Measure, Outcomes, Plan, Rung, RungRecord, ScaleRecord};

use super::wait_for_task;
use crate::lab::{Lab, alone, authentick, has_measured, program, serve, text, wait_for};
use crate::recompute;

fn plan(out: &Path) -> Plan {
    Plan::from_json(&fs::read_to_string(out.join("study.json")).unwrap()).unwrap()
}

/// The arguments of a study of short steps, the most important first.
fn arguments<'a>(out: &'a Path, peers: &'a Path) -> [&'a str; 12] {
    let (out, peers) = (out.to_str().unwrap(), peers.to_str().unwrap());
    [
        "study",
        "run",
        "nts",
        "--out",
        out,
        "--peers",
        peers,
        "--quick",
        "--step-seconds",
        "1",
        "--minutes",
        "5",
    ]
}

/// The records of the steps to scale, from the least load up. What the generator spoiled has a record too, as it may
/// where others use the machine.
fn rungs(out: &Path) -> Vec<RungRecord> {
    let of = |task: &&Task| matches!(Measure::of(&task.id), Some(Measure::Rung(Ladder::ToScale, _)));
    let plan = plan(out);
    let tasks = plan.tasks.iter().filter(of).filter(|task| task.sha256().is_some());
    tasks
        .map(|task| RungRecord::from_json(&fs::read_to_string(out.join(&task.file)).unwrap()).unwrap())
        .collect()
}

/// Whether this machine has what the ladder to scale needs.
fn has_ladder() -> bool {
    if !is_root() {
        skip("needs root, for quotas and hosts");
        return false;
    }
    match Quota::new(1.0).map(drop).and_then(|()| Hosts::new(1)) {
        Ok(_) => true,
        Err(why) => {
            why.tell();
            false
        }
    }
}

/// A load run's only step.
#[track_caller]
fn step(output: &std::process::Output) -> Step {
    assert!(has_measured(output), "{}", text(output));
    let record = LoadRecord::from_json(&String::from_utf8_lossy(&output.stdout)).unwrap();
    assert_eq!(record.steps.len(), 1);
    record.steps.into_iter().next().unwrap()
}

/// Where an accept queue is full, connections wait for the next SYN: a second, three, seven.
#[test]
fn full_accept_queue_shows_as_overflows_repeated_syns_and_a_tail_of_seconds() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let _turn = alone();
    let lab = Lab::new();
    // A queue is as long as its host allows when it is made.
    hosts.set(Host::Server, "core/somaxconn", "128");
    let limits = "ke-limits = { connections = 4096, per-prefix = 4096, timeout = \"20 s\", per-prefix-rate = 0, \
                  per-network-rate = 0 }";
    let server = program().serve_on(
        &hosts,
        Host::Server,
        &lab.config("", &format!("ke-listen = [\"0.0.0.0:4460\"]\n{limits}")),
    );
    let address = format!("{}:4460", hosts.address(Host::Server));
    let (pid, ca) = (server.process.id().to_string(), lab.ca());
    let mut load = hosts.on(Host::Client(0), program().path());
    load.args(["load", "ke", &address, "--server-name", "ntp.test", "--rate", "300", "--step-seconds", "2"]);
    load.args(["--ke-timeout", "15", "--json", "--server-pid", &pid, "--ca"]).arg(ca);
    let served = || {
        let count = || server.metric("nts_ke_connections_total{outcome=\"served\"}");
        hosts.within(Host::Server, count)
    };
    let output = std::thread::scope(|scope| {
        let run = scope.spawn(|| load.output().unwrap());
        wait_for("the load", || (served() > 20.0).then_some(()));
        server.process.signal("-STOP");
        std::thread::sleep(Duration::from_millis(1500));
        server.process.signal("-CONT");
        run.join().unwrap()
    });
    let step = step(&output);
    let traffic = step.server.unwrap().traffic.unwrap();
    assert!(traffic.accept_overflows.is_some_and(|count| count > 0), "{traffic:?}");
    assert!(traffic.accept_drops >= traffic.accept_overflows, "{traffic:?}");
    let evidence = step.evidence.unwrap();
    assert!(evidence.syn_repeats.is_some_and(|count| count > 0), "{evidence:?}");
    assert!(step.tally.latency_us.unwrap().max >= 1e6, "{:?}", step.tally.latency_us);
}

#[test]
fn injected_errors_are_in_the_classes_of_the_study() {
    for (behaviour, cause) in [
        (Behaviour::Mute, Cause::ResourceTemporarilyUnavailable),
        (Behaviour::Reset, Cause::Reset),
        (Behaviour::Alert(40), Cause::TlsAlert),
    ] {
        let lab = Lab::new();
        let real = serve(&lab);
        // The load's own question, and three more.
        let server = KeServer::start_after(4, real.ke, behaviour, &lab);
        let (target, port, ca) = (real.ntp.to_string(), server.address().port().to_string(), lab.ca());
        let mix = [
            "load",
            "mix",
            &target,
            "--ke-port",
            &port,
            "--ke-timeout",
            "1",
            "--rate",
            "20",
            "--same-cookie",
        ];
        let more = ["--step-seconds", "0.5", "--json", "--ca", ca.to_str().unwrap()];
        let step = step(&authentick(mix.into_iter().chain(more)));
        let exchanges = Outcomes::from(&step.tally);
        assert_eq!(exchanges.answered + exchanges.of(cause), exchanges.sent, "{behaviour:?}: {exchanges:?}");
        assert!(exchanges.of(cause) > 0, "{behaviour:?}: {exchanges:?}");
    }
}

/// Network namespaces and control groups that a process has made.
fn left(pid: u32) -> Vec<String> {
    let begin = format!("atk-{pid}-");
    let groups = ["/run/netns", "/sys/fs/cgroup", "/sys/fs/cgroup/cpu"];
    let names = groups.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(&begin))
        .collect()
}

/// Whether a process of this number runs a server or a store of a study: their folder is in its command line.
fn mentions(folder: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|words| String::from_utf8_lossy(&words).contains(folder))
}

/// A study that is killed leaves nothing that the next one does not take away; one that is stopped leaves nothing. What
/// it has measured by then is whole.
#[test]
fn slow_server_shows_its_knee_and_interrupted_steps_leave_no_host_no_group_and_no_process() {
    if !has_ladder() {
        return;
    }
    let _turn = alone();
    let (scratch, peers) = (tempfile::tempdir().unwrap(), peers_folder());
    let (out, temporary) = (scratch.path().join("study"), scratch.path().join("tmp"));
    fs::create_dir(&temporary).unwrap();
    let begin = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_authentick"));
        Process::start(command.args(arguments(&out, &peers)).env("TMPDIR", &temporary))
    };
    let wait_for_end = |id: &str| {
        let is_over = |task: &Task| task.id == id && task.end.is_some();
        wait_for_task(id, || {
            let plan = fs::read_to_string(out.join("study.json")).ok()?;
            Plan::from_json(&plan).ok()?.tasks.iter().any(is_over).then_some(())
        });
    };
    let mut killed = begin();
    ["unloaded", "unloaded-file-0", "scale-quota"].into_iter().for_each(wait_for_end);
    killed.signal("-KILL");
    assert_eq!(killed.wait(), -1);
    // Its server and its store, and at the end of its step the load.
    wait_for("the end of all processes", || (!mentions(temporary.to_str().unwrap())).then_some(()));
    let mut stopped = begin();
    ["unloaded", "2000", "4000"].into_iter().for_each(|step| wait_for_end(&format!("ladder-quota-{step}")));
    stopped.signal("-TERM");
    assert_eq!(stopped.wait(), 0, "{}", stopped.log());
    assert!(stopped.log().contains("the same command goes on"), "{}", stopped.log());
    assert!(!mentions(temporary.to_str().unwrap()));
    for pid in [killed.id(), stopped.id()] {
        assert_eq!(left(pid), [""; 0]);
    }
    assert!(plan(&out).tasks.iter().any(Task::is_open));
    knee_is_seen(&out);
    recompute::agrees(&out);
}

/// What a key exchange takes without load at most, in nanoseconds, on a machine that does nothing else.
const UNLOADED_NS_MAX: u64 = 3_000_000;

/// Past what the server serves, exchanges wait.
#[track_caller]
fn knee_is_seen(out: &Path) {
    let scale = fs::read_to_string(out.join("run-scale-quota.json")).unwrap();
    let scale = ScaleRecord::from_json(&scale).unwrap();
    assert!(scale.isolated && scale.memcached.is_some() && scale.quota_share.is_some(), "{scale:?}");
    // The highest load is within the generator's limit.
    assert!(scale.capacity_rps * 4.0 <= scale.generator_rps * 1.001, "{scale:?}");
    let rungs = rungs(out);
    assert!(rungs.len() >= 3, "{rungs:?}");
    assert_eq!(rungs[0].place(), Some((Ladder::ToScale, Rung::Unloaded)));
    for rung in &rungs {
        assert!(rung.accept_overflows.is_some() && rung.syn_repeats.is_some(), "{rung:?}");
        assert!(rung.server_share.is_some_and(|share| share > 0.0), "{rung:?}");
        let [d_cke, d_ske] = [&rung.times.d_cke, &rung.times.d_ske].map(|times| times.as_ref().unwrap());
        assert_eq!(d_cke.count, rung.exchanges.answered);
        // The background stands elsewhere: no exchange of it is timed, and none of the measured client is missing.
        assert_eq!((d_ske.count, rung.unmatched), (d_cke.count, 0), "{}", rung.task);
    }
    let median = |rung: &RungRecord| rung.times.d_cke.as_ref().unwrap().p50_ns;
    let (alone, past) = (&rungs[0], &rungs[rungs.len() - 1]);
    assert!(past.load_rps.unwrap() >= 4000.0 && past.background.is_some(), "{past:?}");
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains("Figure 7"));
    let [unloaded_ns, past_ns] = [median(alone), median(past)];
    if unloaded_ns > UNLOADED_NS_MAX && past_ns <= 2 * unloaded_ns {
        // Other work, before which key exchange gives way, takes as long as the queue.
        let why = format!("d_CKE is {unloaded_ns} ns without load and {past_ns} ns past the knee");
        return skip(&format!("study run nts: this machine is too busy: {why}"));
    }
    assert!(past_ns > 2 * unloaded_ns, "{unloaded_ns} {past_ns}");
}
