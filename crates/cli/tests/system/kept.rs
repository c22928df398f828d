//! Runs of all studies that are kept in `bench/runs`: from their records alone they render to the page that lies beside
//! them, and other code computes its numbers again. The pages on papers say what came of them there.
//!
//! When a report has changed, `AUTHENTICK_UPDATE_GOLDEN=1 cargo test -p authentick --test system kept::` writes the
//! pages anew; look at them before committing.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::lab::{render, text};
use crate::recompute;

const RUNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/runs");

const PAGES_OF_PAPERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/papers");

/// What is kept of a report: each study's own page can be rendered from its folder.
const PAGES: [&str; 2] = ["report.html", "report.md"];

/// The most that a run may take, in octets: every clone of the repository has it.
const OCTETS_MAX: u64 = 8_000_000;

/// Where each paper is told of, and the study that repeats it.
const PAPERS: [(&str, &str); 4] =
    [("antp", "antp"), ("mac", "ntp_mac"), ("nts", "nts_scalability"), ("threshold", "request_threshold")];

/// What is in a folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The folders of the studies in that of a run.
fn studies(run: &Path) -> Vec<PathBuf> {
    entries(run).into_iter().filter(|folder| folder.join("study.json").is_file()).collect()
}

/// Copies the records of studies, and no report.
fn copy_records(studies: &[PathBuf], to: &Path) {
    for study in studies {
        let copy = to.join(study.file_name().unwrap());
        fs::create_dir(&copy).unwrap();
        for file in entries(study).iter().filter(|file| file.extension().is_some_and(|kind| kind == "json")) {
            fs::copy(file, copy.join(file.file_name().unwrap())).unwrap();
        }
    }
}

/// The page on each paper says how many of its tables and figures came out as in the paper, as the report does.
fn papers_are_told_of(reports: &Path) {
    for (study, paper) in PAPERS {
        let report = fs::read_to_string(reports.join(study).join("report.md")).unwrap();
        let is_tally = |line: &&str| line.starts_with("Of the ") && line.contains(" of the paper, ");
        let sentence = report.lines().find(is_tally).expect("the report has a tally").trim_end_matches('.');
        let page = fs::read_to_string(Path::new(PAGES_OF_PAPERS).join(format!("{paper}.md"))).unwrap();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&page).contains(&words(sentence)), "docs/papers/{paper}.md is to say: {sentence}");
    }
}

#[test]
fn kept_studies_render_to_the_page_beside_them_and_are_computed_again() {
    let runs: Vec<PathBuf> =
        entries(Path::new(RUNS)).into_iter().filter(|run| !studies(run).is_empty()).collect();
    assert!(!runs.is_empty(), "no run of studies is kept in {RUNS}");
    for run in runs {
        let (studies, copies) = (studies(&run), tempfile::tempdir().unwrap());
        copy_records(&studies, copies.path());
        let output = render(copies.path());
        assert!(output.status.success(), "{}", text(&output));
        for page in PAGES {
            let (kept, rendered) = (run.join(page), copies.path().join(page));
            if env::var_os("AUTHENTICK_UPDATE_GOLDEN").is_some_and(|value| value == "1") {
                fs::copy(rendered, kept).unwrap();
            } else {
                // Not shown: such a page is long.
                let is_same = fs::read(&kept).unwrap() == fs::read(rendered).unwrap();
                assert!(is_same, "{} is not what its records render to", kept.display());
            }
        }
        recompute::agrees(copies.path());
        papers_are_told_of(copies.path());
        let files = studies.iter().flat_map(|study| entries(study)).chain(entries(&run));
        let octets: u64 =
            files.filter(|file| file.is_file()).map(|file| fs::metadata(file).unwrap().len()).sum();
        assert!(octets <= OCTETS_MAX, "{} takes {octets} octets", run.display());
    }
}
