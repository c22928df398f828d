//! `authentick study run field`: what authentication costs, with tiny trials, and what may happen to its folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use authentick_crypto::mac::MacAlgorithm;
use authentick_lab::peers::folder as peers_folder;
use authentick_lab::process::Process;
use authentick_lab::skip::skip;
use authentick_report::study::field::{Cell, FieldRecord, Latency, Plan, Scheme, Server, Trial};
use authentick_report::study::{Outcome, Task};
use authentick_rig::peers::{self, Kind, Peer, Search};

use super::wait_for_task;
use crate::lab::{alone, authentick, refused, render, renders_alone, text};
use crate::recompute;

/// What a study of the smallest size is run with.
const TINY: [&str; 7] = ["study", "run", "field", "--quick", "--step-seconds", "0.2", "--out"];

fn arguments<'a>(folder: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = TINY.to_vec();
    arguments.push(folder.to_str().unwrap());
    arguments.extend(more);
    arguments
}

fn run(folder: &Path, more: &[&str]) -> Output {
    authentick(arguments(folder, more))
}

fn plan(folder: &Path) -> Plan {
    Plan::from_json(&fs::read_to_string(folder.join("study.json")).unwrap()).unwrap()
}

/// The records of all tasks in one.
fn record(folder: &Path) -> FieldRecord {
    let plan = plan(folder);
    let measured = plan.tasks.iter().filter(|task| task.sha256().is_some());
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    let records: Vec<FieldRecord> =
        measured.map(|task| FieldRecord::from_json(&read(&task.file)).unwrap()).collect();
    FieldRecord::merged(&plan, records)
}

/// What is said of every version of a server is what the programs that are here say of themselves.
#[test]
fn what_servers_are_said_to_lack_they_lack() {
    let folder = peers_folder();
    let search = Search { folder: Some(&folder), path: None };
    let kinds = [
        (Server::Chrony, Kind::Chrony),
        (Server::NtpdRs, Kind::NtpdRs),
        (Server::FacebookTime, Kind::FacebookTime),
    ];
    let schemes = [
        (Scheme::Plain, peers::Scheme::Plain),
        (Scheme::Cmac128, peers::Scheme::Mac(MacAlgorithm::Cmac128)),
        (Scheme::HmacMd5, peers::Scheme::Mac(MacAlgorithm::HmacMd5)),
        (Scheme::Gmac128, peers::Scheme::Mac(MacAlgorithm::Gmac128)),
        (Scheme::Antp, peers::Scheme::Antp),
        (Scheme::Nts15, peers::Scheme::Nts(15)),
        (Scheme::Nts30, peers::Scheme::Nts(30)),
    ];
    for (server, kind) in kinds {
        let peer = match Peer::find(kind, &search) {
            Ok(peer) => peer,
            Err(error) => {
                skip(&error.to_string());
                continue;
            }
        };
        for (scheme, asked) in schemes.into_iter().filter(|(scheme, _)| server.lacks(*scheme).is_some()) {
            assert!(peer.serves(asked).is_err(), "{} {scheme:?}", peer.title());
        }
    }
}

/// Our server and those of others that are here, each under a scheme that it has and one beside it. Rates say nothing
/// here, as other tests share the machine; that they were taken does.
#[test]
fn servers_are_measured_in_turn_beside_their_own_plain_rate() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let (out, others) = (folder.path().join("deep/er"), peers_folder());
    let more = ["--peers", others.to_str().unwrap(), "--servers", "chrony,authentick"];
    let output = run(&out, &more);
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    let (plan, found) = (plan(&out), record(&out));
    // Ours has four schemes and chrony three, in three rounds; each exchanges keys in all of them, and latency is taken
    // in one, at two levels.
    assert_eq!(plan.tasks.len(), 3 * (4 + 3 + 2) + 2 * (4 + 3));
    for scheme in Scheme::MAIN {
        let cell = Cell { server: Server::Authentick, scheme };
        let trials: Vec<_> = found.trials.iter().filter(|trial| trial.cell == cell).collect();
        assert_eq!(trials.len(), 3, "{scheme:?}\n{printed}");
        for trial in trials {
            assert!(trial.answered_rps > 0.0 && trial.core_rps().is_some_and(|rps| rps > 0.0), "{trial:?}");
            assert!(trial.memory_octets.is_some_and(|octets| octets > 1 << 20), "{trial:?}");
            assert_eq!(trial.request_size > 48, scheme != Scheme::Plain, "{trial:?}");
            assert!((48..=trial.request_size).contains(&trial.response_size), "{trial:?}");
        }
    }
    let ours = |trial: &&Trial| trial.cell.server == Server::Authentick;
    let exchanges: Vec<&Trial> = found.exchanges.iter().filter(ours).collect();
    // In so short a trial nothing may end on a busy machine, or so little that the kernel counts no time for it.
    assert!(exchanges.iter().all(|trial| trial.answered_rps > 0.0), "{exchanges:?}\n{printed}");
    assert!(exchanges.iter().any(|trial| trial.cpu_us.is_some()), "{exchanges:?}\n{printed}");
    let of = |trial: &&Latency| trial.cell.server == Server::Authentick;
    for trial in found.latencies.iter().filter(of) {
        assert!(
            trial.offered_rps > 0.0 && trial.latency_us.is_some_and(|points| points.p50 > 0.0),
            "{trial:?}"
        );
        assert!(trial.offset_error_us.is_some(), "{trial:?}");
    }
    assert_eq!(found.latencies.iter().filter(of).count(), 2 * 4, "{printed}");
    for part in [
        "This is a short study (--quick)",
        "Nobody can amplify with authentick",
        "chrony has no ANTP, as nobody but us: ANTP.",
        "AES-128-CMAC",
    ] {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    // What is not here, or may not run, is not measured for that reason, and says what to do.
    let search = Search { folder: Some(&others), path: None };
    let tasks = plan.tasks.iter().filter(|task| task.id.starts_with("capacity-chrony-"));
    let ends: Vec<_> = tasks.map(|task| task.end.as_ref().unwrap()).collect();
    match Peer::find(Kind::Chrony, &search).is_ok() {
        true => {
            assert!(ends.iter().any(|end| end.outcome == Outcome::Measured), "{printed}");
            assert!(found.titles[&Server::Chrony].starts_with("chrony"), "{:?}", found.titles);
        }
        false => assert!(ends.iter().all(|end| end.why.is_some()), "{ends:?}"),
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("authentick under NTS, AEAD 15: ") && !page.contains("<script"));

    let moved = folder.path().join("moved");
    renders_alone(&out, &moved);
    recompute::agrees(&moved);
    recompute::edits_are_found(
        &moved,
        "run-capacity-authentick-plain-1.json",
        ["<td>48</td>", "<td>58</td>"],
        ["\"request_size\": 48", "\"request_size\": 58"],
    );
    report_renders_a_trial_too(&moved);
    damage_is_named(&moved, &more);
}

/// `report` takes the record of a trial as it takes others.
fn report_renders_a_trial_too(folder: &Path) {
    let file = folder.join("run-capacity-authentick-plain-1.json");
    let output = authentick(["report", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("What authentication costs"), "{}", text(&output));
    let output = authentick(["report", file.to_str().unwrap(), "--against", file.to_str().unwrap()]);
    refused(&output, 78, &["run-capacity-authentick-plain-1.json", "a study of what authentication costs"]);
}

/// Whatever is wrong in a folder is told with the file and the remedy.
fn damage_is_named(folder: &Path, more: &[&str]) {
    let other = run(folder, &["--servers", "authentick"]);
    refused(
        &other,
        78,
        &["study.json", "under other settings", "--servers chrony,authentick", "its run-*.json"],
    );
    let file = folder.join("run-capacity-authentick-nts15-2.json");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, whole.replacen("\"round\": 2", "\"round\": 1", 1)).unwrap();
    refused(&render(folder), 78, &["run-capacity-authentick-nts15-2.json", "it is not what was measured"]);
    fs::write(&file, whole).unwrap();
    assert!(render(folder).status.success());
    fs::remove_file(folder.join("study.json")).unwrap();
    refused(&run(folder, more), 78, &["in the way", "another folder"]);
}

/// A peer that is nowhere costs its own trials, and nothing else; the same command measures them later.
#[test]
fn server_that_is_missing_is_told_with_the_remedy_and_stays_open() {
    let _turn = alone();
    let (folder, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let more = ["--peers", empty.path().to_str().unwrap(), "--servers", "facebook-time", "--minutes", "1"];
    let output = Command::new(env!("CARGO_BIN_EXE_authentick"))
        .args(arguments(folder.path(), &more))
        .env("PATH", empty.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let plan = plan(folder.path());
    let why = |task: &Task| task.end.clone().unwrap().why.unwrap();
    assert!(plan.tasks.iter().all(|task| task.is_open() && why(task).contains("install facebook/time")));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("Nothing was measured yet"), "{printed}");
}

/// The processes of this name that a process has started, and they.
fn descendants(pid: u32, name: &str) -> Vec<u32> {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let children: Vec<u32> = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|task| {
            let list = read(format!("{}/children", task.path().display()));
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect();
    let own = children.iter().copied().filter(|pid| read(format!("/proc/{pid}/comm")).trim() == name);
    own.chain(children.iter().flat_map(|pid| descendants(*pid, name))).collect()
}

/// A server that dies is said to have, in the report too; the trial that it died in does not count, and the next one
/// has it again.
#[test]
fn server_that_dies_is_told_and_started_again() {
    let _turn = alone();
    let (folder, others) = (tempfile::tempdir().unwrap(), peers_folder());
    let search = Search { folder: Some(&others), path: None };
    if let Err(error) = Peer::find(Kind::Chrony, &search) {
        return skip(&error.to_string());
    }
    let more = ["--peers", others.to_str().unwrap(), "--servers", "chrony"];
    let mut process =
        Process::start(Command::new(env!("CARGO_BIN_EXE_authentick")).args(arguments(folder.path(), &more)));
    let records = || fs::read_dir(folder.path()).unwrap().flatten();
    let count = || records().filter(|file| file.file_name().to_string_lossy().starts_with("run-")).count();
    let daemon = wait_for_task("a trial", || {
        // Without rights it does not start.
        if process.log().contains("not measured") {
            return Some(None);
        }
        (count() > 0).then(|| descendants(process.id(), "chronyd").first().copied())
    });
    let Some(daemon) = daemon else { return skip(&process.log()) };
    assert!(Command::new("kill").args(["-KILL", &daemon.to_string()]).status().unwrap().success());
    let before = count();
    wait_for_task("two trials more", || (count() >= before + 2).then_some(()));
    process.signal("-TERM");
    assert_eq!(process.wait(), 0, "{}", process.log());
    let report = fs::read_to_string(folder.path().join("report.txt")).unwrap();
    let whole = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains("it ended by itself (signal: 9"), "{report}");
    assert!(whole.contains("it was started again."), "{report}");
    let plan = plan(folder.path());
    let why = |task: &Task| task.end.as_ref().and_then(|end| end.why.clone()).unwrap_or_default();
    for task in plan.tasks.iter().filter(|task| why(task).contains("ended by itself")) {
        assert_ne!(task.end.as_ref().unwrap().outcome, Outcome::Measured, "{task:?}");
    }
}

#[test]
fn interrupted_study_keeps_its_trials_and_leaves_no_server() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let words = arguments(folder.path(), &["--servers", "authentick"]);
    let program = env!("CARGO_BIN_EXE_authentick");
    let mut process = Process::start(Command::new(program).args(&words));
    let first = folder.path().join("run-capacity-authentick-plain-1.json");
    wait_for_task("a trial", || first.exists().then_some(()));
    process.signal("-TERM");
    assert_eq!(process.wait(), 0, "{}", process.log());
    assert!(process.log().contains("the same command goes on"), "{}", process.log());
    let kept = fs::read_to_string(&first).unwrap();
    let open = plan(folder.path()).tasks.iter().filter(|task| task.is_open()).count();
    assert!(open > 0);
    let output = authentick(words);
    assert!(output.status.success(), "{}", text(&output));
    assert!(plan(folder.path()).tasks.iter().all(|task| !task.is_open()), "{}", text(&output));
    assert_eq!(fs::read_to_string(&first).unwrap(), kept);
}
