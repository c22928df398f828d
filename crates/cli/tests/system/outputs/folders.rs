//! Folders for results: each state of a file, under names that commands choose themselves.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{STATES, State, has_rights, in_mounts};
use crate::lab::text;

/// A command that writes to the folder `o`: what is run before, and a word in each of its files.
pub(super) struct Writer {
    /// Its row in the table.
    pub(super) row: (&'static str, &'static str),
    before: &'static str,
    command: &'static str,
    files: &'static [(&'static str, &'static str)],
}

const STUDY: &str = "$A study run --out o --quick mac > /dev/null 2>&1;";
const STUDY_FILES: &[(&str, &str)] = &[("report.txt", "MAC"), ("report.md", "MAC"), ("report.html", "<html")];

pub(super) const WRITERS: [Writer; 5] = [
    Writer {
        row: ("demo", "--out"),
        before: "",
        command: "demo --exchanges 200 --out o",
        files: &[
            ("run.json", "format"),
            ("report.html", "<html"),
            ("load.html", "<html"),
            ("load-plain.json", "format"),
            ("load-nts.json", "format"),
        ],
    },
    Writer {
        row: ("manual", "DIRECTORY"),
        before: "",
        command: "manual o",
        files: &[
            ("man1/authentick.1", "authentick"),
            ("man1/authentick-serve.1", "serve"),
            ("man1/authentick-query.1", "query"),
            ("man5/authentick.toml.5", "listen"),
            ("completions/_authentick", "serve"),
        ],
    },
    Writer {
        row: ("study run", "--out"),
        before: STUDY,
        command: "study run --out o --quick mac",
        files: STUDY_FILES,
    },
    Writer { row: ("study render", "DIR"), before: STUDY, command: "study render o", files: STUDY_FILES },
    // These are secrets: see below.
    Writer { row: ("certificates lab", "--out"), before: "", command: "", files: &[] },
];

fn tried(writer: &Writer, states: &[State]) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let (mut prepare, mut check) = (String::new(), String::new());
    for ((file, word), state) in writer.files.iter().zip(states) {
        let path = format!("{}/o/{file}", folder.path().display());
        prepare += &format!("p={path}; mkdir -p $(dirname $p); rm -f $p; {}\n", state.prepare);
        let name = state.name;
        check += &format!("p={path}; w='{word}'; {} || {{ echo LOST $p {name}; exit 9; }}\n", state.check);
    }
    let script =
        format!("{}\n{prepare}$A {} > out 2> err; rc=$?\n{check}[ $rc = 0 ]", writer.before, writer.command);
    let output = in_mounts(folder.path(), &script);
    let err = fs::read_to_string(folder.path().join("err")).unwrap_or_default();
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{}: {}{err}", writer.command, text(&output))),
    }
}

#[test]
fn output_folder_with_every_kind_of_file_is_written() {
    if !has_rights() {
        return;
    }
    let mut failures = Vec::new();
    for writer in WRITERS.iter().filter(|writer| !writer.files.is_empty()) {
        let runs = STATES.chunks(writer.files.len()).map(|states| tried(writer, states));
        failures.extend(runs.filter_map(Result::err));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn lab_certificates_replace_links_and_follow_none() {
    if !has_rights() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "mkdir o; echo kept > victim; ln -s ../victim o/a.test.pem; ln -s ../victim o/a.test-key.pem; \
        $A certificates lab a.test --out o > out 2> err || exit 9; [ $(cat victim) = kept ] || exit 8; \
        test ! -L o/a.test.pem -a ! -L o/a.test-key.pem && grep -q 'PRIVATE KEY' o/a.test-key.pem";
    let output = in_mounts(folder.path(), script);
    let err = fs::read_to_string(folder.path().join("err")).unwrap_or_default();
    assert!(output.status.success(), "{:?} {err}", output.status);
}
