//! `docs/assurance.md`: what is established by what, when it was last, and what it found. Made from the parts, their
//! records and the steps of CI, and from nothing else.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use super::figures::Figure;
use super::parts::{self, Part, Work};
use super::record::{self, Outcome, Record};
use crate::ci;

/// The page, in the checkout.
pub(crate) const PAGE: &str = "docs/assurance.md";

const INTRODUCTION: &str = "# Assurance\n\n\
    What is established about this program, by what, when last, and what that found. This page is made by\n\
    `cargo xtask assurance` from the list of parts and from what each left in [assurance](assurance/);\n\
    `cargo xtask tidy` fails if it says anything else.\n";

const NIGHTLY: &str = "\n## What takes too long for each change\n\n\
    `cargo xtask nightly` runs all parts that have not passed on the commit that is checked out. Times are those of\n\
    the machine in the record, which the commit links to. \u{201c}In\u{201d} names the commit that has the work of\n\
    the one that ran, where that was not kept.\n\n\
    | part | establishes | last ran | commit | took | found |\n|---|---|---|---|---|---|\n";

const CI: &str = "\n## What is established on each change\n\n\
    `.ci/run` runs these steps in this order, and `cargo xtask ci --only STEP` one of them.\n\n\
    | step | establishes |\n|---|---|\n";

/// Makes the page of the checkout at `root` from the records in `folder`.
pub(crate) fn make(root: &Path, folder: &Path) -> Result<String, String> {
    let parts = parts::all(root)?;
    let records = record::read_all(folder)?;
    let stray = records.iter().find(|record| parts.iter().all(|part| part.name != record.part));
    if let Some(Record { part, .. }) = stray {
        return Err(format!("{}/{part}.json is the record of a part that does not exist", record::FOLDER));
    }
    Ok(render(&parts, &records, &ci::establishes()))
}

/// Writes the page of the checkout at `root`.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    record::replace(&root.join(PAGE), &make(root, &root.join(record::FOLDER))?)
}

fn render(parts: &[Part], records: &[Record], steps: &[(String, String)]) -> String {
    let mut page = INTRODUCTION.to_owned() + NIGHTLY;
    for part in parts {
        let record = records.iter().find(|record| record.part == part.name);
        page.push_str(&row(part, record));
    }
    page.push_str(CI);
    for (name, establishes) in steps {
        let _ = writeln!(page, "| {}{name} | {} |", anchor(&format!("ci-{name}")), cell(establishes));
    }
    page
}

fn row(part: &Part, record: Option<&Record>) -> String {
    let mut establishes = cell(&part.establishes);
    if let Work::Fuzz(targets) = &part.work {
        let targets: Vec<String> =
            targets.iter().map(|target| format!("{}{target}", anchor(&format!("fuzz-{target}")))).collect();
        let _ = write!(establishes, " Targets: {}.", targets.join(", "));
    }
    let name = &part.name;
    let Some(record) = record else {
        return format!(
            "| {}{name} | {establishes} | never ran | | {} min expected | |\n",
            anchor(name),
            part.minutes
        );
    };
    let changes = if record.clean { "" } else { " with uncommitted changes" };
    let ran = short(&record.commit);
    let part_of = record.part_of.as_ref().map_or_else(String::new, |commit| format!(" in {}", short(commit)));
    format!(
        "| {}{name} | {establishes} | {} | [{ran}](assurance/{name}.json){part_of}{changes} | {}, {} | {} |\n",
        anchor(name),
        record.began.replace('T', " ").replace('Z', " UTC"),
        duration(record.seconds),
        processors(record.machine.processors),
        cell(&found(record)),
    )
}

/// The first digits of a commit.
fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// What a part found, and its figures.
fn found(record: &Record) -> String {
    let result = match record.result {
        Outcome::Passed => "nothing",
        Outcome::Found => "**found**",
        Outcome::Skipped => "skipped",
    };
    let mut said = result.to_owned();
    if !record.words.is_empty() {
        let _ = write!(said, ": {}", record.words.join("; "));
    }
    if !record.figures.is_empty() {
        let figures: Vec<String> = record.figures.iter().map(Figure::shown).collect();
        let _ = write!(said, "; tried: {}", figures.join(", "));
    }
    said
}

fn anchor(name: &str) -> String {
    format!("<a id=\"{name}\"></a>")
}

/// Text that stays in one cell of a table.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|").replace('<', "&lt;")
}

fn duration(seconds: u64) -> String {
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}

fn processors(count: usize) -> String {
    if count == 1 { "1 processor".to_owned() } else { format!("{count} processors") }
}

/// The anchors of a page.
pub(crate) fn anchors(page: &str) -> BTreeSet<&str> {
    page.split("<a id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    fn part(name: &str, work: Work) -> Part {
        Part { name: name.to_owned(), establishes: "It | is so.".to_owned(), minutes: 7, work }
    }

    fn steps() -> Work {
        Work::Steps { steps: &[], figures: &[], missing: |_| None }
    }

    #[test]
    fn rows_say_what_was_when_on_which_commit_and_what_it_found() {
        let mut passed = record("a", "0123456789abcdef", Outcome::Passed);
        passed.words = vec!["not run: b: no Go".to_owned()];
        assert_eq!(
            row(&part("a", steps()), Some(&passed)),
            "| <a id=\"a\"></a>a | It \\| is so. | 2026-11-22 01:02:03 UTC | [0123456789ab](assurance/a.json) | 61 s, \
             2 processors | nothing: not run: b: no Go; tried: seeds: 1,000,000 seeds |\n"
        );
        let mut found = record("a", "12", Outcome::Found);
        (found.clean, found.seconds, found.figures) = (false, 121, Vec::new());
        found.words = vec!["`x|y` failed:\n<b>".to_owned(), "more".to_owned()];
        assert_eq!(
            row(&part("a", steps()), Some(&found)),
            "| <a id=\"a\"></a>a | It \\| is so. | 2026-11-22 01:02:03 UTC | [12](assurance/a.json) with uncommitted \
             changes | 3 min, 2 processors | **found**: `x\\|y` failed: &lt;b>; more |\n"
        );
    }

    #[test]
    fn commit_that_was_not_kept_stands_beside_the_one_that_has_its_work() {
        let kept =
            Record { part_of: Some("fedcba98765432".to_owned()), ..record("a", "12", Outcome::Passed) };
        let row = row(&part("a", steps()), Some(&kept));
        assert!(row.contains("| [12](assurance/a.json) in fedcba987654 |"), "{row}");
    }

    #[test]
    fn part_that_never_ran_says_so() {
        let row = row(&part("a", steps()), None);
        assert_eq!(row, "| <a id=\"a\"></a>a | It \\| is so. | never ran | | 7 min expected | |\n");
    }

    #[test]
    fn each_part_target_and_step_has_its_anchor() {
        let fuzz = Work::Fuzz(vec!["ke".to_owned(), "nts".to_owned()]);
        let page = render(
            &[part("a", steps()), part("fuzz-1", fuzz)],
            &[record("a", "1", Outcome::Skipped)],
            &[("fmt".to_owned(), "Formatting".to_owned())],
        );
        let expected = ["a", "ci-fmt", "fuzz-1", "fuzz-ke", "fuzz-nts"];
        assert_eq!(anchors(&page), BTreeSet::from(expected));
        assert!(
            page.contains("| skipped; tried: ")
                && page.ends_with("| <a id=\"ci-fmt\"></a>fmt | Formatting |\n")
        );
    }

    #[test]
    fn record_of_a_part_that_does_not_exist_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(make(root, folder.path()).unwrap().contains("never ran"));
        record::write(folder.path(), &record("no-such-part", "1", Outcome::Passed)).unwrap();
        let problem = make(root, folder.path()).unwrap_err();
        assert_eq!(problem, "docs/assurance/no-such-part.json is the record of a part that does not exist");
    }
}
