//! Records of parts: one JSON file each, in docs/assurance, which `docs/assurance.md` is made from.
//!
//! A record is replaced as a whole, and only when its part has ended: a part that was cut leaves the older one.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::figures::Figure;
use crate::process;

/// Where records are, in the checkout.
pub(crate) const FOLDER: &str = "docs/assurance";

/// What a run of a part left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) part: String,
    /// The commit that was checked out, in full.
    pub(crate) commit: String,
    /// The commit that the work of that one became part of, where that one is in no history that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part_of: Option<String>,
    /// Whether nothing was changed since that commit, at the start and at the end.
    pub(crate) clean: bool,
    /// In UTC, as RFC 3339 has it.
    pub(crate) began: String,
    pub(crate) seconds: u64,
    pub(crate) machine: Machine,
    pub(crate) result: Outcome,
    /// What was found, or why it was skipped; if it passed, what a reader should know, such as tests that this machine
    /// cannot run.
    pub(crate) words: Vec<String>,
    pub(crate) figures: Vec<Figure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Passed,
    Found,
    Skipped,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) processors: usize,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
}

impl Machine {
    /// This machine.
    pub(crate) fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let memory = read("/proc/meminfo");
        let kib = value(&memory, "MemTotal").and_then(|words| words.split(' ').next()?.parse::<u64>().ok());
        Machine {
            processor: value(&read("/proc/cpuinfo"), "model name").unwrap_or("unknown").to_owned(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kib.unwrap_or(0) / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

/// What `NAME : VALUE` says first, in a file of /proc.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (before, after) = line.split_once(':')?;
        (before.trim() == name).then(|| after.trim())
    })
}

/// The records in `folder`, by the names of their files. A file that is none is an error.
pub(crate) fn read_all(folder: &Path) -> Result<Vec<Record>, String> {
    let io = |error| format!("{}: {error}", folder.display());
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut records = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let complain = |problem: String| format!("{}: {problem}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| complain(error.to_string()))?;
        let record: Record = serde_json::from_str(&text).map_err(|error| complain(error.to_string()))?;
        if path.file_stem().is_none_or(|stem| stem != record.part.as_str()) {
            return Err(complain(format!("is the record of {}", record.part)));
        }
        records.push(record);
    }
    records.sort_by(|one, other| one.part.cmp(&other.part));
    Ok(records)
}

/// Replaces the record of this part.
pub(crate) fn write(folder: &Path, record: &Record) -> Result<(), String> {
    let mut text = serde_json::to_string_pretty(record).map_err(|error| error.to_string())?;
    text.push('\n');
    replace(&folder.join(format!("{}.json", record.part)), &text)
}

/// Replaces a file as a whole, so that nobody ever reads half of it.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), String> {
    let io = |error: std::io::Error| format!("{}: {error}", path.display());
    let folder = path.parent().ok_or_else(|| format!("{} is no file", path.display()))?;
    fs::create_dir_all(folder).map_err(io)?;
    let mut file =
        tempfile::Builder::new().prefix(".new").permissions(mode()).tempfile_in(folder).map_err(io)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(io)?;
    file.persist(path).map(drop).map_err(|error| io(error.error))
}

/// The permissions of a file in a checkout.
fn mode() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

/// This instant, in UTC.
pub(crate) fn now() -> Result<String, String> {
    let said = process::output(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]))?;
    Ok(said.trim().to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn record(part: &str, commit: &str, result: Outcome) -> Record {
        Record {
            part: part.to_owned(),
            commit: commit.to_owned(),
            part_of: None,
            clean: true,
            began: "2026-11-22T01:02:03Z".to_owned(),
            seconds: 61,
            machine: Machine {
                processor: "A processor".to_owned(),
                processors: 2,
                memory_mib: 4096,
                kernel: "6.1".to_owned(),
            },
            result,
            words: Vec::new(),
            figures: vec![Figure::count("seeds", 1_000_000, "seeds")],
        }
    }

    #[test]
    fn record_comes_back_as_it_was_written_and_replaces_the_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("assurance");
        assert_eq!(read_all(&place), Ok(Vec::new()));
        write(&place, &record("a", "1", Outcome::Found)).unwrap();
        write(&place, &record("b", "1", Outcome::Skipped)).unwrap();
        write(&place, &record("a", "2", Outcome::Passed)).unwrap();
        let expected = vec![record("a", "2", Outcome::Passed), record("b", "1", Outcome::Skipped)];
        assert_eq!(read_all(&place), Ok(expected));
        assert_eq!(fs::read_dir(&place).unwrap().count(), 2);
    }

    #[test]
    fn file_that_is_no_record_or_that_of_another_part_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "{}", "{\"part\": \"a\"}"] {
            fs::write(folder.path().join("a.json"), text).unwrap();
            assert!(read_all(folder.path()).unwrap_err().contains("a.json: "), "{text}");
        }
        write(folder.path(), &record("a", "1", Outcome::Passed)).unwrap();
        fs::rename(folder.path().join("a.json"), folder.path().join("b.json")).unwrap();
        assert!(read_all(folder.path()).unwrap_err().ends_with("b.json: is the record of a"));
    }

    #[test]
    fn time_is_utc_as_rfc_3339_has_it() {
        let now = now().unwrap();
        let shape: String = now.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "0000-00-00T00:00:00Z");
    }

    #[test]
    fn machine_is_read_from_proc() {
        let text = "processor\t: 0\nmodel name\t: A: B\nmodel name\t: C\n";
        assert_eq!(value(text, "model name"), Some("A: B"));
        assert_eq!(value(text, "model"), None);
        assert!(Machine::here().processors > 0);
    }
}
