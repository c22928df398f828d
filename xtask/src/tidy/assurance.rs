//! The page of what is established: it is what its records say, and links to its rows lead to rows that exist.

use std::collections::BTreeSet;
use std::path::Path;

use super::Finding;
use super::tree::Tree;
use crate::nightly::{page, record};

/// Where a link names the page and a row of it.
const LINK: &str = "assurance.md#";

/// Compares the page with the parts and records of the checkout at `root`, and the links in `tree` with its rows.
pub(crate) fn check(root: &Path, tree: &Tree) -> Result<Vec<Finding>, String> {
    Ok(compare(&page::make(root, &root.join(record::FOLDER))?, tree))
}

fn compare(expected: &str, tree: &Tree) -> Vec<Finding> {
    let stored = tree.files.iter().find(|file| file.path == page::PAGE).map_or("", |file| &file.text);
    let mut findings = Vec::new();
    if stored != expected {
        let mut lines = stored.lines().zip(expected.lines());
        let same = lines.by_ref().take_while(|(stored, expected)| stored == expected).count();
        let problem = "this is not what the records say: `cargo xtask assurance` makes it";
        findings.push(Finding::violation(page::PAGE, same + 1, problem));
    }
    let rows = page::anchors(expected);
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (index, line) in file.text.lines().enumerate() {
            let stray = links(line).into_iter().filter(|row| !rows.contains(row));
            findings.extend(
                stray.map(|row| file.violation(index + 1, format!("{} has no row `{row}`", page::PAGE))),
            );
        }
    }
    findings
}

/// The rows that a line links to.
fn links(line: &str) -> BTreeSet<&str> {
    let ends = |character: char| !(character.is_ascii_alphanumeric() || "-_".contains(character));
    line.split(LINK).skip(1).map(|rest| rest.split(ends).next().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: &str = "# A\n\n| <a id=\"load-runs\"></a>load-runs |\n| <a id=\"fuzz-ke_request\"></a>x |\n";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        compare(MADE, &Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn page_that_its_records_do_not_make_is_found_at_the_first_line_that_differs() {
        assert_eq!(found(&[(page::PAGE, MADE)]), [""; 0]);
        let problem = "this is not what the records say: `cargo xtask assurance` makes it";
        let older = MADE.replace("fuzz", "fuse");
        assert_eq!(found(&[(page::PAGE, &older)]), [format!("{}:4: {problem}", page::PAGE)]);
        assert_eq!(
            found(&[(page::PAGE, &format!("{MADE}More.\n"))]),
            [format!("{}:5: {problem}", page::PAGE)]
        );
        assert_eq!(found(&[]), [format!("{}:1: {problem}", page::PAGE)]);
    }

    #[test]
    fn link_to_a_row_that_does_not_exist_is_found() {
        let good =
            "[x](docs/assurance.md#load-runs), [y](docs/assurance.md#fuzz-ke_request); docs/assurance.md\n";
        let bad = "x\n[x](assurance.md#load-runs) and [y](assurance.md#load).\n[z](assurance.md#)\n";
        let files = [(page::PAGE, MADE), ("README.md", good), ("docs/a.md", bad), ("a.rs", bad)];
        let problem = |line, row| format!("docs/a.md:{line}: {} has no row `{row}`", page::PAGE);
        assert_eq!(found(&files), [problem(2, "load"), problem(3, "")]);
    }
}
