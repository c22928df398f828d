//! `authentick study run mac`: the drafts' nine tables beside ours, and what may happen to its folder.

use std::fs;
use std::path::Path;
use std::process::Output;

use authentick_report::mac::MacRecord;

use crate::lab::{alone, authentick, refused, render, renders_alone, text};

fn run(folder: &Path, more: &[&str]) -> Output {
    let arguments = ["study", "run", "mac", "--quick", "--out", folder.to_str().unwrap()];
    authentick(arguments.into_iter().chain(more.iter().copied()))
}

#[test]
fn nine_tables_are_kept_beside_ours_and_render_from_the_folder_alone() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("deep/er");
    let output = run(&out, &[]);
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    // Each has a verdict, and stands there itself.
    assert_eq!(printed.matches(" of 9: draft-").count(), 2 * 9, "{printed}");
    for part in
        ["CMAC(AES-128) / legacy MD5 here: ", "Published: 2.43 Xeon with AES-NI", "This is a short run"]
    {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    let measured = fs::read_to_string(out.join("run-mac.json")).unwrap();
    MacRecord::from_json(&measured).unwrap();

    // The same command has nothing left to measure.
    let again = run(&out, &[]);
    assert!(again.status.success(), "{}", text(&again));
    assert_eq!(fs::read_to_string(out.join("run-mac.json")).unwrap(), measured);

    let moved = folder.path().join("moved");
    let report = renders_alone(&out, &moved);
    assert!(printed.starts_with(&report));

    damage_is_named(&moved, &measured);
}

/// Whatever is wrong in a folder is told with the file and the remedy.
fn damage_is_named(folder: &Path, measured: &str) {
    let longer = authentick(["study", "run", "mac", "--out", folder.to_str().unwrap()]);
    refused(&longer, 78, &["study.json", "under other settings", "--quick", "run-mac.json"]);
    let threshold = authentick(["study", "run", "threshold", "--quick", "--out", folder.to_str().unwrap()]);
    refused(&threshold, 78, &["study.json", "a study of \"mac\"", "another folder"]);
    let record = folder.join("run-mac.json");
    for damaged in [&measured[..measured.len() / 2], &measured.replacen("48", "64", 1)] {
        fs::write(&record, damaged).unwrap();
        let parts = ["run-mac.json", "it is not what was measured", "study run mac --quick"];
        refused(&render(folder), 78, &parts);
    }
    fs::remove_file(&record).unwrap();
    refused(&render(folder), 78, &["run-mac.json", "it is missing", "study run mac --quick"]);
    fs::write(&record, measured).unwrap();
    assert!(render(folder).status.success());
    fs::remove_file(folder.join("study.json")).unwrap();
    refused(&run(folder, &[]), 78, &["run-mac.json", "in the way", "another folder"]);
}

#[test]
fn options_of_the_other_study_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (more, option) in [
        (&["--step-seconds", "1"][..], "--step-seconds"),
        (&["--scale", "2"], "--scale"),
        (&["--target", "127.0.0.1"], "--target"),
        (&["--old", "x", "--new", "y"], "--old"),
    ] {
        refused(&run(folder.path(), more), 64, &[option, "cannot be used with 'mac'"]);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was begun");
}
