//! Mistakes that operators make, and what `serve --check` says of each: fault, place and remedy.
//!
//! `mistakes/*.txt` have one mistake in each section: a title, the files, and what is printed. With
//! `AUTHENTICK_UPDATE=1` the printed part is written again; the difference is then for a reader to judge.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::lab::{authentick, text};

const TITLE: &str = "### ";
const FILE: &str = "--- ";
const PRINTED: &str = "=== ";
/// What stands for the folder of the configuration.
const FOLDER: &str = "/etc/authentick";

/// A section of the file.
struct Mistake<'t> {
    title: &'t str,
    /// Names and texts.
    files: Vec<(&'t str, String)>,
    /// The code and the lines that were printed.
    printed: String,
}

fn parse(golden: &str) -> Vec<Mistake<'_>> {
    let mut all: Vec<Mistake<'_>> = Vec::new();
    for line in golden.lines() {
        if let Some(title) = line.strip_prefix(TITLE) {
            all.push(Mistake { title, files: Vec::new(), printed: String::new() });
            continue;
        }
        let mistake = all.last_mut().expect("a title comes first");
        if let Some(name) = line.strip_prefix(FILE) {
            mistake.files.push((name, String::new()));
        } else if line.starts_with(PRINTED) || !mistake.printed.is_empty() {
            mistake.printed += line;
            mistake.printed.push('\n');
        } else {
            let (_, text) = mistake.files.last_mut().expect("a name comes before the text");
            *text += line;
            text.push('\n');
        }
    }
    all
}

/// What `--check` prints of these files: the code, and the lines that are about the configuration. Those about the
/// clock of this machine are left out.
fn check(files: &[(&str, String)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().to_str().unwrap();
    for (name, text) in files {
        let path: PathBuf = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace(FOLDER, here)).unwrap();
    }
    let config = folder.path().join("authentick.toml");
    let output = authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
    let mut printed = format!("{PRINTED}{}\n", output.status.code().unwrap());
    for line in text(&output).lines().filter(|line| line.contains(here) && !line.ends_with(": good")) {
        // Without the time.
        let line = line.strip_prefix('[').and_then(|line| Some(line.split_once(' ')?.1)).unwrap_or(line);
        writeln!(printed, "{}", line.replace(here, FOLDER)).unwrap();
    }
    printed
}

/// Checks the mistakes of one file; how many there are.
fn look(path: &Path) -> usize {
    let golden = std::fs::read_to_string(path).unwrap();
    let (mut now, all) = (String::new(), parse(&golden));
    for Mistake { title, files, printed } in &all {
        let found = check(files);
        writeln!(now, "{TITLE}{title}").unwrap();
        for (name, text) in files {
            write!(now, "{FILE}{name}\n{text}").unwrap();
        }
        now += &found;
        let lines: Vec<&str> = found.lines().skip(1).collect();
        assert!(!lines.is_empty(), "{title}: nothing is said");
        for line in lines {
            assert!(line.contains(FOLDER) && line.contains("; "), "{title}: no place or no remedy: {line}");
        }
        if std::env::var_os("AUTHENTICK_UPDATE").is_none() {
            assert_eq!(&found, printed, "{title}");
        }
    }
    if std::env::var_os("AUTHENTICK_UPDATE").is_some() {
        std::fs::write(path, now).unwrap();
    }
    all.len()
}

#[test]
fn mistakes_of_operators_have_fault_place_and_remedy() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/mistakes");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let count: usize = paths.map(|path| look(&path)).sum();
    assert!(count >= 50, "{count}");
}
