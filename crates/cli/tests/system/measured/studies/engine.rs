//! `authentick study`: the request threshold on loopback with tiny steps, and what may happen to its folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use authentick_lab::process::Process;
use authentick_report::load::{Limit, LoadRecord};

use super::wait_for_task;
use crate::lab::{Lab, alone, refused, render, renders_alone, serve, text, wait_for};
use crate::recompute;

fn study(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_authentick")).arg("study").args(arguments).output().unwrap()
}

fn run_arguments(folder: &Path) -> Vec<&str> {
    vec!["run", "threshold", "--quick", "--step-seconds", "0.3", "--out", folder.to_str().unwrap()]
}

fn record(folder: &Path, name: &str) -> LoadRecord {
    LoadRecord::from_json(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

/// The records of a folder by name, with what they hold. A record is written under another name first, which may be
/// gone by the time that it is read.
fn records(folder: &Path) -> BTreeMap<String, String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with("run-") && name.ends_with(".json"))
        .filter_map(|name| Some((name.clone(), fs::read_to_string(folder.join(name)).ok()?)))
        .collect()
}

/// Processes whose parent is `pid`.
fn children(pid: u32) -> Vec<PathBuf> {
    let parent = |stat: &str| stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok();
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    processes
        .filter(|path| fs::read_to_string(path.join("stat")).is_ok_and(|stat| parent(&stat) == Some(pid)))
        .collect()
}

/// Whether a process runs: one that has ended may wait for its parent to notice.
fn runs(process: &Path) -> bool {
    fs::read_to_string(process.join("stat"))
        .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z')))
}

#[test]
fn both_tables_and_the_third_result_stand_beside_the_published_ones() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("deep/er");
    let output = study(&run_arguments(&out));
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    let table = |from: &str, to: &str| {
        let (_, rest) = printed.split_once(from).unwrap_or_else(|| panic!("{from}\n{printed}"));
        rest.split_once(to).unwrap_or_else(|| panic!("{to}\n{printed}")).0.to_owned()
    };
    // Rates below and above the limit, in the note's relations to each other.
    let one_host: Vec<LoadRecord> =
        (1..=6).map(|row| record(&out, &format!("run-table-1-{row}.json"))).collect();
    let rates: Vec<f64> = one_host.iter().map(|record| record.steps[0].offered_rps.unwrap()).collect();
    let close = |ratio: f64, to: f64| assert!((ratio / to - 1.0).abs() < 1e-9, "{ratio} {to}: {rates:?}");
    rates.iter().zip([1.0, 3.0, 4.0, 5.0, 6.0, 10.0]).for_each(|(rate, to)| close(rate / rates[0], to));
    let flood = record(&out, "run-scale.json").steps[0].answered_rps();
    assert!(rates[0] < flood && flood < rates[5], "{rates:?} {flood}");
    let rows = table("Table 1, one host:\n", "\n\n");
    let rows: Vec<&str> = rows.lines().skip(1).collect();
    assert_eq!(rows.len(), 6, "{rows:#?}");
    for (row, published) in rows.iter().zip(["1,000", "2,371", "3,548", "4,321", "4,377", "4,484"]) {
        let limit = ["its own limit", "the server or the path", "nothing: what was"];
        assert!(row.contains(published) && limit.iter().any(|part| row.contains(part)), "{row}");
        assert_eq!(
            row.matches('%').count(),
            2 + row.matches("% had no").count() + row.matches("1 % of").count()
        );
    }
    // Three hosts, whose rows add up.
    let rows = table("Table 2, several hosts, ours:\n", "Our hosts are processes of one machine");
    assert_eq!(rows.lines().count(), 6, "{rows}");
    let several: Vec<LoadRecord> =
        (1..=5).map(|row| record(&out, &format!("run-table-2-{row}.json"))).collect();
    for record in &several {
        let step = &record.steps[0];
        let answered: u64 = step.hosts.iter().map(|part| part.tally.answered).sum();
        assert_eq!((step.hosts.len(), answered), (3, step.tally.answered));
        assert_eq!(record.parameters.agents, several[0].parameters.agents);
    }
    let third = printed.lines().find(|line| line.starts_with("Ours: ")).unwrap();
    let is_servers = |name: &str| {
        let verdict = record(&out, name).steps[0].limit.clone().unwrap();
        record(&out, name).steps[0].valid && verdict.by == Limit::Server
    };
    // A ratio is of servers at their limits; where something else was the limit, that is said instead.
    match is_servers("run-old.json") && is_servers("run-new.json") {
        true => assert!(third.contains("requests a second, a ratio of "), "{third}"),
        false => assert!(third.contains("There is no ratio: no capacity in "), "{third}"),
    }
    assert!(printed.contains("a ratio of 0.76") && printed.contains("metrics.span-clients"), "{printed}");
    assert!(printed.contains("Processor time of the server for a request"), "{printed}");
    let new = record(&out, "run-new.json").steps[0].server.unwrap();
    assert!(new.cpu_us_per_request.is_some_and(|us| us > 0.0), "{new:?}");

    let moved = folder.path().join("moved");
    let report = renders_alone(&out, &moved);
    assert!(printed.starts_with(&report));

    goes_on(&moved);
    damage_is_named(&moved);
}

/// The same command measures what is missing, and nothing else; another command is refused.
fn goes_on(folder: &Path) {
    let before = records(folder);
    fs::remove_file(folder.join("run-table-2-5.json")).unwrap();
    refused(
        &render(folder),
        78,
        &["run-table-2-5.json", "it is missing, though study.json says", "--step-seconds 0.3"],
    );
    let output = study(&run_arguments(folder));
    assert!(output.status.success(), "{}", text(&output));
    let after = records(folder);
    let changed: Vec<&String> = after.keys().filter(|name| after[*name] != before[*name]).collect();
    assert_eq!((changed, after.len()), (vec![&"run-table-2-5.json".to_owned()], before.len()));
    let several = record(folder, "run-table-2-5.json");
    assert_eq!(several.parameters.agents, record(folder, "run-table-2-1.json").parameters.agents);

    let other =
        study(&["run", "threshold", "--quick", "--step-seconds", "0.2", "--out", folder.to_str().unwrap()]);
    refused(&other, 78, &["study.json", "under other settings", "--step-seconds 0.3", "run-*.json"]);
    assert_eq!(records(folder), after);
}

/// Whatever is wrong in a folder is told with the file and the remedy; nothing is rendered.
fn damage_is_named(folder: &Path) {
    for (name, parts) in [
        (
            "run-table-1-3.json",
            &["run-table-1-3.json", "it is not what was measured", "measure it again"][..],
        ),
        ("study.json", &["study.json", "not a study's plan", "in another folder"]),
    ] {
        let file = folder.join(name);
        let whole = fs::read_to_string(&file).unwrap();
        fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        let output = render(folder);
        refused(&output, 78, parts);
        assert!(output.stdout.is_empty());
        fs::write(&file, &whole).unwrap();
    }
    let file = folder.join("run-table-1-3.json");
    let whole = fs::read_to_string(&file).unwrap();
    let tampered = whole.replacen("\"answered\":", "\"answered\":1", 1);
    fs::write(&file, tampered).unwrap();
    refused(&render(folder), 78, &["run-table-1-3.json", "it is not what was measured", "SHA-256"]);
    fs::copy(folder.join("run-table-1-4.json"), &file).unwrap();
    refused(&study(&run_arguments(folder)), 78, &["run-table-1-3.json", "it is not what was measured"]);
    fs::write(&file, whole).unwrap();
    assert!(render(folder).status.success());
    fs::remove_file(folder.join("study.json")).unwrap();
    refused(&render(folder), 78, &["study.json", "--out"]);
    refused(&study(&run_arguments(folder)), 78, &["in the way", "another folder"]);
}

#[test]
fn interrupted_study_keeps_its_rows_and_leaves_no_process() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let started = |count: usize| {
        let process = Process::start(
            Command::new(env!("CARGO_BIN_EXE_authentick")).arg("study").args(run_arguments(folder.path())),
        );
        wait_for_task("rows", || (records(folder.path()).len() >= count).then_some(()));
        (children(process.id()), process)
    };
    // Table 1 has begun.
    let (helpers, mut process) = started(3);
    assert!(!helpers.is_empty());
    process.signal("-TERM");
    assert_eq!(process.wait(), 0, "{}", process.log());
    assert!(process.log().contains("the same command goes on"), "{}", process.log());
    wait_for("helpers to end", || helpers.iter().all(|helper| !runs(helper)).then_some(()));
    let kept = records(folder.path());
    assert!(kept.len() >= 3 && kept.len() < 14, "{:?}", kept.keys());
    // Table 2 has begun, with agents.
    let (helpers, mut process) = started(9);
    assert!(helpers.len() >= 4, "{helpers:?}");
    process.signal("-KILL");
    process.wait();
    wait_for("helpers to end", || helpers.iter().all(|helper| !runs(helper)).then_some(()));
    let output = study(&run_arguments(folder.path()));
    assert!(output.status.success(), "{}", text(&output));
    let whole = records(folder.path());
    assert_eq!(whole.len(), 14);
    for (name, text) in &kept {
        let interrupted = LoadRecord::from_json(text).unwrap().interrupted.is_some();
        assert!(interrupted || whole[name] == *text, "{name} was measured again");
    }
}

#[test]
fn server_of_others_is_measured_at_the_notes_rates() {
    let _turn = alone();
    let (folder, lab) = (tempfile::tempdir().unwrap(), Lab::new());
    let server = serve(&lab);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden/load.json");
    let (target, golden) = (server.ntp.to_string(), golden.to_str().unwrap());
    let mut arguments = run_arguments(folder.path());
    arguments.extend(["--target", &target, "--old", golden, "--new", golden]);
    let output = study(&arguments);
    assert!(output.status.success(), "{}", text(&output));
    let printed = text(&output);
    assert!(printed.contains("Several hosts were not measured: no --agents were named."), "{printed}");
    let ours =
        "Ours: Capacity: from 2,800 to 2,900 against from 2,800 to 2,900 requests a second, a ratio of 1.00";
    assert!(printed.contains(ours), "{printed}");
    assert!(!printed.contains("Our rates are"), "{printed}");
    let rate = |row| record(folder.path(), &format!("run-table-1-{row}.json")).steps[0].offered_rps.unwrap();
    assert_eq!([1, 2, 6].map(rate), [1000.0, 3000.0, 10_000.0]);
    // Each row's requests came to the server, and one more that showed that it answers.
    let sent: u64 = (1..=6)
        .map(|row| record(folder.path(), &format!("run-table-1-{row}.json")).steps[0].tally.sent)
        .sum();
    wait_for("all requests to be counted", || (server.outcome("plain") == (sent + 6) as f64).then_some(()));
}

/// What there is no time for is named, and more time measures it. A folder that is in use is refused meanwhile.
#[test]
fn ceiling_leaves_rows_out_by_name_and_more_time_measures_them() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let within = |minutes: &'static str| {
        let mut arguments = run_arguments(folder.path());
        arguments.extend(["--minutes", minutes]);
        Command::new(env!("CARGO_BIN_EXE_authentick")).arg("study").args(arguments).output().unwrap()
    };
    let refusal = within("0.01");
    refused(&refusal, 64, &["--minutes: there is no time to measure anything in 1 s", "14 tasks"]);
    let plan = || -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(folder.path().join("study.json")).unwrap()).unwrap()
    };
    let outcomes = |outcome: &str| -> Vec<String> {
        let tasks = plan()["tasks"].as_array().unwrap().clone();
        let ended = tasks.into_iter().filter(|task| task["end"]["outcome"] == outcome);
        ended.map(|task| task["id"].as_str().unwrap().to_owned()).collect()
    };
    // Some seconds of the ten or so that all would take: first what tables must have.
    let output = within("0.07");
    assert!(output.status.success(), "{}", text(&output));
    let (measured, cut) = (outcomes("measured"), outcomes("cut"));
    assert!(
        measured.contains(&"scale".to_owned()) && measured.contains(&"table-1-1".to_owned()),
        "{measured:?}"
    );
    assert!(cut.contains(&"table-2-4".to_owned()), "{cut:?}");
    assert_eq!(measured.len() + outcomes("invalid").len() + cut.len(), 14);
    let printed = text(&output);
    for part in ["no time for ", "table-2-4", "left out for want of time", "not measured"] {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    // The folder belongs to whoever measures into it.
    let mut process = Process::start(
        Command::new(env!("CARGO_BIN_EXE_authentick")).arg("study").args(run_arguments(folder.path())),
    );
    wait_for_task("another row", || (records(folder.path()).len() > measured.len()).then_some(()));
    refused(&within("1"), 78, &["another process measures into this folder", "--out"]);
    assert!(render(folder.path()).status.success(), "it may be rendered");
    assert_eq!(process.wait(), 0, "{}", process.log());
    assert_eq!(outcomes("measured").len() + outcomes("invalid").len(), 14);
}

#[test]
fn studies_are_listed_with_their_times_and_what_this_host_cannot_do() {
    let output = study(&["list"]);
    assert!(output.status.success(), "{}", text(&output));
    let printed = text(&output);
    for part in ["mac: ", "threshold: Spectracom", "antp: ", "--quick    about ", "table-2: 5 tasks"] {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
}

#[test]
fn orders_that_cannot_be_carried_out_are_refused() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let with = |more: &[&str]| {
        let mut arguments = run_arguments(folder.path());
        arguments.extend(more);
        study(&arguments)
    };
    let agents =
        ["--agents", "127.0.0.1:1", "--agent-ca", "x", "--certificate-chain", "x", "--private-key", "x"];
    refused(&with(&agents), 64, &["--agents needs --target"]);
    refused(&with(&["--permit", "a"]), 64, &["--permit and --allow-list need --target"]);
    refused(&with(&["--old", "x"]), 64, &["--new"]);
    refused(&with(&["--scale", "0"]), 64, &["--scale", "factor"]);
    refused(&with(&["--minutes", "0"]), 64, &["--minutes", "no minutes from"]);
    refused(&with(&["--old", "/nowhere.json", "--new", "/nowhere.json"]), 78, &["/nowhere.json"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was begun");
    // Nobody listens there.
    refused(&with(&["--target", "127.0.0.1:9"]), 1, &["table-1-1", "the same command goes on"]);
    let public = study(&["run", "threshold", "--out", "/dev/null/x"]);
    refused(&public, 78, &["/dev/null/x"]);
}

const STUDIES: [&str; 5] = ["mac", "threshold", "nts", "field", "antp"];

/// A study that had no time at all is in the report with what it lacks, and the same command with more goes on.
#[test]
fn all_studies_without_time_say_so_and_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("all");
    let output = study(&["run", "all", "--quick", "--minutes", "0.01", "--out", out.to_str().unwrap()]);
    refused(&output, 64, &["--minutes", "no time to measure anything"]);
    for name in STUDIES {
        let plan = fs::read_to_string(out.join(name).join("study.json")).unwrap();
        assert!(plan.contains("\"cut\"") && !plan.contains("\"measured\""), "{name}: {plan}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert_eq!(page.matches("<section id=").count(), STUDIES.len());
    let moved = folder.path().join("moved");
    renders_alone(&out, &moved);
    recompute::agrees(&moved);
}

/// Each study has its folder, and all of them one report, which renders from the folders alone.
#[test]
fn all_studies_share_a_ceiling_and_a_report() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("all");
    let arguments = ["run", "all", "--quick", "--minutes", "0.5", "--out", out.to_str().unwrap()];
    let output = study(&arguments);
    assert!(output.status.success(), "{}", text(&output));
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    // What all of it is about stands before the studies.
    assert!(page.find("What was measured</h2>").unwrap() < page.find("<nav").unwrap());
    for name in STUDIES {
        assert!(out.join(name).join("study.json").exists() && out.join(name).join("report.html").exists());
        assert!(
            page.contains(&format!("<a href=\"#{name}\">"))
                && page.contains(&format!("<section id=\"{name}\""))
        );
    }
    let printed = text(&output);
    for part in ["no time for ", "left out for want of time", "Table 1, one host:", "175,644"] {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    let moved = folder.path().join("moved");
    renders_alone(&out, &moved);
    recompute::agrees(&moved);
    let other = study(&["run", "all", "--out", moved.to_str().unwrap()]);
    refused(&other, 78, &["mac/study.json", "under other settings"]);
}
