//! `authentick study run antp`: Table 1's shape on loopback with tiny trials, and what may happen to its folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use authentick_lab::process::Process;
use authentick_lab::skip::skip;
use authentick_report::study::antp::{AntpRecord, Level, Path as Way, Phase, Plan, Subject, Suite};

use super::wait_for_task;
use crate::lab::{alone, authentick, refused, render, renders_alone, text};

/// What a study of the smallest size is run with.
const TINY: [&str; 5] = ["antp", "--quick", "--step-seconds", "0.2", "--out"];

fn arguments(folder: &Path) -> Vec<&str> {
    let mut arguments = vec!["study", "run"];
    arguments.extend(TINY);
    arguments.push(folder.to_str().unwrap());
    arguments
}

fn run(folder: &Path) -> Output {
    authentick(arguments(folder))
}

fn plan(folder: &Path) -> Plan {
    Plan::from_json(&fs::read_to_string(folder.join("study.json")).unwrap()).unwrap()
}

/// The records of all tasks in one.
fn record(folder: &Path) -> AntpRecord {
    let plan = plan(folder);
    let measured = plan.tasks.iter().filter(|task| task.sha256().is_some());
    let records: Vec<AntpRecord> = measured
        .map(|task| AntpRecord::from_json(&fs::read_to_string(folder.join(&task.file)).unwrap()).unwrap())
        .collect();
    AntpRecord::merged(&plan, records)
}

/// What a server without a processor did not answer stays open, and is tried again by the same command. A machine that
/// is busy with other things may leave so many open for good; where it leaves more, nothing can be said here.
const OPEN_COUNT_MAX: usize = 6;

/// The same command is given once more if it takes no longer than this, three times as long as on an idle machine.
const RUN_MAX: Duration = Duration::from_secs(180);

#[test]
fn cells_of_table_1_are_measured_and_stand_beside_what_was_published() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("deep/er");
    let start = Instant::now();
    let mut output = run(&out);
    if String::from_utf8_lossy(&output.stdout).contains("nothing comes of it") && start.elapsed() < RUN_MAX {
        assert!(output.status.success(), "{}", text(&output));
        output = run(&out);
    }
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    for part in [
        "This is a short study (--quick)",
        "Throughput and latency of each phase:",
        "One client's run of all phases:",
        "175,644",
        "unknown to us",
        "7.54",
        "8.62",
        "+27 %",
    ] {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    let open_count = count_open(&record(&out));
    assert_eq!(printed.contains("not measured yet"), open_count > 0, "{printed}");
    if open_count > OPEN_COUNT_MAX {
        return skip(&format!("study run antp: this machine is too busy: {open_count} cells are open"));
    }

    // The same command has nothing left to measure but those.
    let measured = record(&out);
    if open_count == 0 {
        let again = run(&out);
        assert!(again.status.success(), "{}", text(&again));
        assert_eq!(record(&out), measured);
    }

    let moved = folder.path().join("moved");
    renders_alone(&out, &moved);
    report_renders_a_trial_too(&moved);
    damage_is_named(&moved);
}

/// Counts cells that are open, and looks at the others. Rates and times say nothing here, as other tests share the
/// machine; that they were taken does.
fn count_open(record: &AntpRecord) -> usize {
    let mut open_count = 0;
    assert_eq!(record.primitives.len(), 2);
    for subject in Subject::ALL {
        let Some(capacity) = record.capacity(subject, Way::Short) else {
            open_count += 1 + Level::ALL.len() * 2;
            continue;
        };
        assert!(capacity.rps.is_some_and(|rps| rps > 0.0), "{capacity:?}");
        let trials: Vec<_> = record.trials(subject, Way::Short).collect();
        if trials.len() < 2 {
            open_count += 1;
            continue;
        }
        assert!(trials.iter().any(|trial| trial.answered_rps > 0.0), "{trials:?}");
        assert!(trials.iter().all(|trial| trial.server_share.is_some()), "{trials:?}");
    }
    // The server's thread for public keys is found by its name.
    let mut exchanges = record.trials(Subject::new(Phase::Exchange, Suite::Rsa), Way::Short).peekable();
    assert!(
        exchanges.peek().is_none()
            || exchanges.any(|trial| trial.public_key_share.is_some_and(|used| used > 0.0))
    );
    let complete = Suite::ALL.map(|suite| Subject::new(Phase::Complete, suite));
    for subject in Subject::ALL.into_iter().chain(complete) {
        for level in Level::ALL {
            for way in [Way::Short, Way::Long] {
                let trials: Vec<_> = record.latencies(subject, subject.background(), level, way).collect();
                let &[trial] = &trials[..] else {
                    assert!(trials.is_empty(), "{subject} {level:?} {way:?}: {trials:?}");
                    open_count += 1;
                    continue;
                };
                let Some(times) = trial.times else {
                    assert_eq!(trial.answered, 0, "{trial:?}");
                    open_count += 1;
                    continue;
                };
                let round_trips = if subject.phase == Phase::Complete { 3.0 } else { 1.0 };
                if way == Way::Long {
                    assert!(times.p50_us >= 70_000.0 * round_trips, "{trial:?}");
                }
                if let Some(parts) = trial.parts {
                    let sum = parts.negotiation.mean_us + parts.exchange.mean_us + parts.time.mean_us;
                    assert!((sum / parts.phases.mean_us - 1.0).abs() < 0.01, "{parts:?}");
                    assert!(parts.client_crypto.p50_us > 0.0, "{parts:?}");
                    assert!(times.mean_us > parts.phases.mean_us, "{trial:?}");
                }
                assert_eq!(trial.parts.is_some(), subject.phase == Phase::Complete);
            }
        }
    }
    // Behind the link, or with the reason.
    let linked = Suite::ALL.map(|suite| Subject::new(Phase::Negotiation, suite));
    let said = record.remarks.iter().any(|remark| remark.contains("there is no link of 1 Gbit/s: "));
    for subject in linked {
        let is_absent = record.capacity(subject, Way::Gigabit).is_none();
        assert!(is_absent || !said, "{:?}", record.remarks);
        open_count += usize::from(is_absent && !said);
    }
    open_count
}

/// `report` takes the record of a trial as it takes others.
fn report_renders_a_trial_too(folder: &Path) {
    let file = folder.join("run-primitives.json");
    let output = authentick(["report", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("Processor time of a key exchange"), "{}", text(&output));
    let output = authentick(["report", file.to_str().unwrap(), "--against", file.to_str().unwrap()]);
    refused(&output, 78, &["run-primitives.json", "a study of ANTP"]);
}

/// Whatever is wrong in a folder is told with the file and the remedy.
fn damage_is_named(folder: &Path) {
    let longer = authentick(["study", "run", "antp", "--out", folder.to_str().unwrap()]);
    refused(&longer, 78, &["study.json", "under other settings", "--step-seconds 0.2", "its run-*.json"]);
    let other = authentick(["study", "run", "mac", "--quick", "--out", folder.to_str().unwrap()]);
    refused(&other, 78, &["study.json", "a study of \"antp\"", "another folder"]);
    let file = folder.join("run-primitives.json");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    refused(
        &render(folder),
        78,
        &["run-primitives.json", "it is not what was measured", "study run antp --quick"],
    );
    fs::write(&file, whole).unwrap();
    fs::remove_file(folder.join("study.json")).unwrap();
    refused(&run(folder), 78, &["run-primitives.json", "in the way", "another folder"]);
}

#[test]
fn interrupted_study_keeps_its_trials_and_goes_on() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_authentick");
    let mut process = Process::start(Command::new(program).args(arguments(folder.path())));
    let is_there = |id: &str| folder.path().join(format!("run-{id}.json")).exists();
    wait_for_task("a capacity", || is_there("search-plain-short").then_some(()));
    process.signal("-TERM");
    assert_eq!(process.wait(), 0, "{}", process.log());
    assert!(process.log().contains("the same command goes on"), "{}", process.log());
    let kept = record(folder.path());
    assert!(!kept.capacities.is_empty() && kept.latencies.is_empty(), "{kept:?}");
    let output = render(folder.path());
    assert!(String::from_utf8_lossy(&output.stdout).contains("cells of Table 1 are not measured yet"));
    // It goes on where it was: what was there stays.
    let mut process = Process::start(Command::new(program).args(arguments(folder.path())));
    wait_for_task("a trial", || is_there("throughput-plain-short").then_some(()));
    process.signal("-TERM");
    assert_eq!(process.wait(), 0, "{}", process.log());
    let later = record(folder.path());
    assert_eq!(later.capacities[..kept.capacities.len()], kept.capacities);
    assert_eq!(later.trials[..kept.trials.len()], kept.trials);
    assert_eq!(later.primitives, kept.primitives);
}

#[test]
fn options_of_another_study_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (more, option) in [
        (&["--scale", "2"][..], "--scale"),
        (&["--target", "127.0.0.1"], "--target"),
        (&["--old", "x", "--new", "y"], "--old"),
    ] {
        let output = authentick(arguments(folder.path()).into_iter().chain(more.iter().copied()));
        refused(&output, 64, &[option, "cannot be used with 'antp'"]);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was begun");
}
