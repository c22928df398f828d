//! `bench/recompute`, a program of other code: it computes each number that a report on NTS or on the field prints from
//! the records again. It is run over folders that other tests have measured.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use authentick_lab::skip::skip;

use crate::lab::{render, text};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/recompute");

/// Whether there is what the program is written in; says that this is skipped if not.
fn has_python() -> bool {
    let is_there = Command::new("python3").arg("--version").output().is_ok_and(|out| out.status.success());
    if !is_there {
        skip("there is no python3, which computes the numbers of reports again");
    }
    is_there
}

fn recompute(folder: &Path) -> Output {
    Command::new("python3").arg(SCRIPT).arg(folder).output().unwrap()
}

/// It ended with this code and said all of this, without the traces of a program that failed itself.
#[track_caller]
fn says(folder: &Path, code: i32, parts: &[&str]) {
    let output = recompute(folder);
    let said = text(&output) + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    assert!(!said.contains("Traceback"), "{said}");
}

/// Every number of both reports is what the records yield, or a name.
#[track_caller]
pub(crate) fn agrees(folder: &Path) {
    if has_python() {
        says(folder, 0, &["report.html: ", "report.txt: ", ", all agree", "numbers agree, 0 problems"]);
    }
}

/// One text in place of another, once, in a file of a folder; what was there.
#[track_caller]
fn edit(folder: &Path, file: &str, [from, to]: [&str; 2]) -> String {
    let whole = fs::read_to_string(folder.join(file)).unwrap();
    assert!(whole.contains(from), "{from:?} is not in {file}");
    fs::write(folder.join(file), whole.replacen(from, to, 1)).unwrap();
    whole
}

/// A number that was edited in a report, or in a record, is found: each is one text in place of another, and both are
/// of one figure. `file`: the record. Leaves the folder as it was.
#[track_caller]
pub(crate) fn edits_are_found(folder: &Path, file: &str, of_report: [&str; 2], of_record: [&str; 2]) {
    if !has_python() {
        return;
    }
    let restore = |file: &str, whole: &str| fs::write(folder.join(file), whole).unwrap();
    let page = edit(folder, "report.html", of_report);
    says(folder, 1, &["report.html:", "is printed, and the records have", "1 problem"]);
    restore("report.html", &page);
    let more = page.replacen("</h1>", "</h1>\n<p>In all, 4711 were asked.</p>", 1);
    restore("report.html", &more);
    says(folder, 1, &["report.html:", "4711 is accounted for by nothing", "1 problem"]);
    let unknown = page.replacen("</body>", "<h2>Of the moon</h2>\n<p>It has 3 craters.</p>\n</body>", 1);
    restore("report.html", &unknown);
    says(folder, 1, &["section \"Of the moon\" is unknown", "bench/recompute/"]);
    fs::remove_file(folder.join("report.html")).unwrap();
    says(folder, 2, &["report.html: there is no report", "study render"]);
    restore("report.html", &page);

    let before = digest(&folder.join(file));
    let record = edit(folder, file, of_record);
    says(folder, 2, &[file, "it is not what was measured"]);
    // Whoever edits the digest, too, does not get past the report.
    let plan = edit(folder, "study.json", [&before, &digest(&folder.join(file))]);
    says(folder, 1, &["report.html:", "report.txt:", "the records have"]);
    // The report on the edited record is another one, and agrees with it.
    assert!(render(folder).status.success());
    says(folder, 0, &["0 problems"]);
    restore("study.json", &plan);
    restore(file, &record[..record.len() / 2]);
    says(folder, 2, &[file, "cut off"]);
    restore(file, &record);
    assert!(render(folder).status.success());
    says(folder, 0, &["0 problems"]);
    says(&folder.join("nowhere"), 2, &["nowhere: it is no folder"]);
}

/// The SHA-256 of a file, by another program than ours.
fn digest(file: &Path) -> String {
    let program =
        "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest(), end='')";
    let output = Command::new("python3").args(["-c", program]).arg(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
