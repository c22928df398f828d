//! `authentick study run nts`: what fits into some seconds of its short form, and without rights.

use std::fs;
use std::path::Path;
use std::process::Output;

use authentick_lab::peers::folder;
use authentick_lab::skip::skip;
use authentick_net::privilege::is_root;
use authentick_report::study::Outcome;
use authentick_report::study::nts::{Cell, Plan, RungRecord, ScaleRecord, UnloadedRecord};

use crate::lab::{alone, authentick, refused, render, renders_alone, text};
use crate::operator::as_nobody;
use crate::study_recompute;

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
    for part in ["Table II, theirs and ours, medians:", "18.1 us", "(--minutes)", "by this version"] {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    let moved = scratch.path().join("moved");
    renders_alone(&out, &moved);
    study_recompute::agrees(&moved);
    // What a reading of the clock costs stands in the report for the first cell, and in its record.
    study_recompute::edits_are_found(
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

#[test]
fn without_rights_the_near_cell_and_a_whole_core_are_measured_and_the_others_say_why_not() {
    if !is_root() {
        return skip("needs root, to become somebody else");
    }
    let _turn = alone();
    let scratch = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(scratch.path(), Some(65534), Some(65534)).unwrap();
    let out = scratch.path().join("study");
    let arguments = ["study", "run", "nts", "--quick", "--peers", "/nowhere", "--out", out.to_str().unwrap()];
    let short = ["--step-seconds", "0.3", "--minutes", "0.5"];
    let output = as_nobody(scratch.path(), &[&arguments[..], &short].concat());
    assert!(output.status.success(), "{}", text(&output));
    let records = records(&out);
    let near = records.iter().find(|record| record.task == "unloaded-file-0").unwrap();
    is_whole(&plan(&out), near);
    assert!(!near.isolated && near.relayed.is_none());
    for task in plan(&out).tasks.iter().filter(|task| task.id.ends_with("us") || task.id.ends_with("ms")) {
        let end = task.end.as_ref().unwrap();
        assert_eq!(end.outcome, Outcome::Infeasible, "{}", task.id);
        assert!(end.why.as_ref().unwrap().contains("only root may make network namespaces"), "{end:?}");
    }
    let plan = plan(&out);
    for task in plan.tasks.iter().filter(|task| task.id.contains("quota")) {
        let end = task.end.as_ref().unwrap();
        assert_eq!(end.outcome, Outcome::Infeasible, "{}", task.id);
        assert!(end.why.as_ref().unwrap().contains("there is no ladder to scale"), "{end:?}");
    }
    study_recompute::agrees(&out);
    let core = fs::read_to_string(out.join("run-scale-core-file.json")).unwrap();
    let core = ScaleRecord::from_json(&core).unwrap();
    assert!(!core.isolated && core.capacity_rps > 0.0 && core.quota_share.is_none(), "{core:?}");
    // One step at least, be it one that the generator spoiled: others use the machine too.
    let alone = fs::read_to_string(out.join("run-ladder-core-file-unloaded.json")).unwrap();
    assert!(RungRecord::from_json(&alone).unwrap().exchanges.answered > 0);
}
