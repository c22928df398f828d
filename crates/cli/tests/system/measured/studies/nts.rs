//! `authentick study run nts`: what fits into some seconds of its short form, and without rights.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use authentick_lab::peers::folder;
use authentick_lab::process::Process;
use authentick_lab::skip::skip;
use authentick_net::privilege::is_root;
use authentick_report::study::nts::{
    Cell, Cookies, Operation, OperationsRecord, Pattern, Plan, RatesRecord, RungRecord, ScaleRecord,
    SessionsRecord, UnloadedRecord, Workers,
};
use authentick_report::study::{Outcome, Task};

use super::wait_for_task;
use crate::lab::{alone, authentick, refused, render, renders_alone, text, wait_for};
use crate::operator::become_nobody;
use crate::recompute;

fn plan(out: &Path) -> Plan {
    Plan::from_json(&fs::read_to_string(out.join("study.json")).unwrap()).unwrap()
}

/// The records of cells of a folder that count. Times say nothing here, as other tests share the machine.
fn records(out: &Path) -> Vec<UnloadedRecord> {
    let plan = plan(out);
    let ended = |outcome| move |end: &authentick_report::study::End| end.outcome == outcome;
    let cells = plan.tasks.iter().filter(|task| Cell::of(&task.id).is_some());
    let measured = cells.filter(|task| task.end.as_ref().is_some_and(ended(Outcome::Measured)));
    measured
        .map(|task| UnloadedRecord::from_json(&fs::read_to_string(out.join(&task.file)).unwrap()).unwrap())
        .collect()
}

/// Each exchange was timed at both ends, and nearly all were answered.
#[track_caller]
fn is_whole(plan: &Plan, record: &UnloadedRecord) {
    let UnloadedRecord { task, exchanges, transfers, plain, failed, .. } = record;
    let answered = exchanges.len() + transfers.len() + plain.len();
    let (rounds, _) = plan.settings.rounds_of(Cell::of(task).unwrap());
    assert_eq!(answered + *failed as usize, rounds as usize * 3, "{task}");
    assert!(*failed * 100 <= rounds * 3, "{task}: {failed}");
    assert!(exchanges.iter().all(|row| row.1.is_some() && row.0[2..5].iter().all(|ns| *ns > 0)), "{task}");
    assert!(transfers.iter().all(|row| row.d_snts().is_some_and(|ns| ns > 0)), "{task}");
    // Nothing is sealed for a plain request.
    assert!(plain.iter().all(|row| row.d_snts() == Some(0) && row.d_sntp().is_some()), "{task}");
}

fn run(out: &Path) -> Output {
    let peers = folder();
    let (out, peers) = (out.to_str().unwrap(), peers.to_str().unwrap());
    authentick(["study", "run", "nts", "--quick", "--minutes", "0.15", "--peers", peers, "--out", out])
}

/// A memcached that has started and does not listen yet is nobody's: it ends with the study all the same.
#[test]
fn study_that_is_killed_while_memcached_starts_leaves_none() {
    let _turn = alone();
    let scratch = tempfile::tempdir().unwrap();
    let (peers, told) = (scratch.path().join("peers"), scratch.path().join("pid"));
    let program = peers.join("memcached/usr/bin/memcached");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo memcached 1.6.18 && exit\necho $$ > {0}.new\nmv {0}.new {0}\n\
         exec sleep 60\n",
        told.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let (out, peers) = (scratch.path().join("study"), peers.to_str().unwrap());
    let words = ["study", "run", "nts", "--quick", "--peers", peers, "--out", out.to_str().unwrap()];
    let mut process = Process::start(Command::new(env!("CARGO_BIN_EXE_authentick")).args(words));
    let pid = wait_for("memcached", || fs::read_to_string(&told).ok());
    process.signal("-KILL");
    process.wait();
    let stat = format!("/proc/{}/stat", pid.trim());
    // Nobody may be there who waits for what has ended.
    let has_ended = || {
        let stat = fs::read_to_string(&stat).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z')).then_some(())
    };
    wait_for("the end of memcached", has_ended);
}

#[test]
fn papers_experiment_is_measured_and_stands_beside_what_was_published() {
    let _turn = alone();
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("deep/er");
    let output = run(&out);
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    let records = records(&out);
    assert!(!records.is_empty(), "{printed}");
    records.iter().for_each(|record| is_whole(&plan(&out), record));
    for record in records.iter().filter(|record| record.task == "unloaded") {
        let relayed = record.relayed.as_ref().unwrap();
        assert_eq!(relayed.exchange_round_trips, Some([3, 3]));
        assert_eq!(relayed.transfer_round_trips, Some([1, 1]));
        assert!(record.isolated && record.memcached.is_some());
        assert!(record.transfers.iter().chain(&record.plain).all(|row| row.0[0] > 0));
    }
    for part in ["Table II, theirs and ours, medians:", "18.1 us", "(--minutes)", "not measured in this run"]
    {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    let moved = scratch.path().join("moved");
    renders_alone(&out, &moved);
    recompute::agrees(&moved);
    // What a reading of the clock costs stands in the report for the first cell, and in its record.
    recompute::edits_are_found(
        &moved,
        &format!("run-{}.json", records[0].task),
        ["clock costs ", "clock costs 9"],
        ["\"clock_ns\":", "\"clock_ns\":9"],
    );
    let file = moved.join(format!("run-{}.json", records[0].task));
    fs::write(&file, fs::read_to_string(&file).unwrap().replacen("\"clock_ns\":", "\"clock_ns\":1", 1))
        .unwrap();
    refused(&render(&moved), 78, &[&format!("run-{}.json", records[0].task)]);
}

/// Carries out the study of `out` as nobody, in the order that `more` makes, until these tasks have ended.
fn until_ended(scratch: &Path, out: &Path, more: &[&str], ids: &[&str]) {
    let mut setpriv = Command::new("setpriv");
    let command = become_nobody(&mut setpriv, scratch);
    let study = ["study", "run", "nts", "--quick", "--peers", "/nowhere", "--step-seconds", "0.3", "--out"];
    let mut process = Process::start(command.args(study).arg(out).args(more));
    for id in ids {
        let is_over = |task: &Task| task.id == *id && task.end.is_some();
        wait_for_task(id, || {
            let plan = Plan::from_json(&fs::read_to_string(out.join("study.json")).ok()?).ok()?;
            plan.tasks.iter().any(is_over).then_some(())
        });
    }
    process.signal("-TERM");
    assert_eq!(process.wait(), 0, "{}", process.log());
}

/// The text of a task's record.
fn record(out: &Path, id: &str) -> String {
    fs::read_to_string(out.join(format!("run-{id}.json"))).unwrap()
}

#[test]
fn without_rights_what_needs_none_is_measured_and_the_others_say_why_not() {
    if !is_root() {
        return skip("needs root, to become somebody else");
    }
    let _turn = alone();
    let scratch = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(scratch.path(), Some(65534), Some(65534)).unwrap();
    let out = scratch.path().join("study");
    let whole_core = ["unloaded-file-0", "scale-core-file", "ladder-core-file-unloaded"];
    until_ended(scratch.path(), &out, &[], &whole_core);
    let records = records(&out);
    let near = records.iter().find(|record| record.task == "unloaded-file-0").unwrap();
    is_whole(&plan(&out), near);
    assert!(!near.isolated && near.relayed.is_none());
    for task in plan(&out).tasks.iter().filter(|task| task.id.ends_with("us") || task.id.ends_with("ms")) {
        let end = task.end.as_ref().unwrap();
        assert_eq!(end.outcome, Outcome::Infeasible, "{}", task.id);
        assert!(end.why.as_ref().unwrap().contains("only root may make network namespaces"), "{end:?}");
    }
    for task in plan(&out).tasks.iter().filter(|task| task.id.contains("quota")) {
        let end = task.end.as_ref().unwrap();
        assert_eq!(end.outcome, Outcome::Infeasible, "{}", task.id);
        assert!(end.why.as_ref().unwrap().contains("there is no ladder to scale"), "{end:?}");
    }
    let core = ScaleRecord::from_json(&record(&out, "scale-core-file")).unwrap();
    assert!(!core.isolated && core.capacity_rps > 0.0 && core.quota_share.is_none(), "{core:?}");
    // One step at least, be it one that the generator spoiled: others use the machine too.
    let alone = RungRecord::from_json(&record(&out, "ladder-core-file-unloaded")).unwrap();
    assert!(alone.exchanges.answered > 0);
    // With little time a point of each table comes before the other steps.
    let points =
        ["operations", "transfers-alone-one", "sessions-300-one", "rates-1-worker", "rates-2-workers"];
    until_ended(scratch.path(), &out, &["--minutes", "9"], &points);
    operations_and_what_is_beyond_the_paper_are_there(&out);
    recompute::agrees(&out);
}

/// Operations alone without memcached, sessions, and rates that the generator may have spoiled.
#[track_caller]
fn operations_and_what_is_beyond_the_paper_are_there(out: &Path) {
    let operations = OperationsRecord::from_json(&record(out, "operations")).unwrap();
    assert_eq!((operations.operations.len(), operations.size), (Operation::ALL.len() - 1, Some(192)));
    let tasks = plan(out).tasks;
    let memcached = tasks.iter().find(|task| task.id == "operations-memcached").unwrap();
    let end = memcached.end.as_ref().unwrap();
    assert_eq!(end.outcome, Outcome::Infeasible);
    assert!(end.why.as_ref().unwrap().contains("memcached"), "{end:?}");
    for count in [3, 300] {
        for cookies in Cookies::ALL {
            let sessions = record(out, &Pattern::Sessions(count, cookies).id());
            let sessions = SessionsRecord::from_json(&sessions).unwrap();
            assert!(sessions.exchanges.answered > 0, "{sessions:?}");
            let each = sessions.transfers.answered as f64 / sessions.exchanges.answered as f64;
            assert!(each > f64::from(count) * 0.9, "{sessions:?}");
            assert!(sessions.server_cpu_seconds.is_some_and(|seconds| seconds > 0.0), "{sessions:?}");
        }
    }
    for id in ["exchanges-alone", "transfers-alone-fresh", "transfers-alone-one"] {
        let alone = SessionsRecord::from_json(&record(out, id)).unwrap();
        assert!(alone.answered_within > 0 && alone.cost_ns().is_some(), "{alone:?}");
    }
    for (id, workers) in [("rates-1-worker", Workers::One), ("rates-2-workers", Workers::Two)] {
        let rates = RatesRecord::from_json(&record(out, id)).unwrap();
        assert_eq!(rates.workers(), Some(workers));
        assert!(rates.closed_rps > 0.0 && rates.steps.len() > 1, "{rates:?}");
        assert!(rates.steps.iter().all(|step| step.transfers.answered > 0), "{rates:?}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for part in ["Operations alone", "Beyond the paper", "end of the paper\u{2019}s axis"] {
        assert!(page.contains(part), "{part}");
    }
}
