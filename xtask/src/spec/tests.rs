//! Each kind of fault in a small tree that has it alone.

use super::*;

const TABLE: &str = "# A\n\n## Section 1: a\n\nHas: 3 MUST, 1 SHOULD\nLeft out: 1 MUST: concerns IANA\n\n\
                     | id | level | words | binds | requirement |\n|---|---|---|---|---|\n\
                     | rfc1#1-1 | MUST | 2 | server | be good |\n| rfc1#1-2 | SHOULD NOT | 1 | client | be bad |\n";
const CODE: &str = "//= rfc1#1-1, rfc1#1-2\nfn a() {}\n\
                    #[cfg(test)]\nmod tests {\n    //= rfc1#1-1\n    #[test]\n    fn b() {}\n}\n";
const TEST: &str = "//= rfc1#1-2\n#[test]\nfn c() {}\n";
const GAPS_TEXT: &str = "# Gaps\n\n| id | says | here | why |\n|---|---|---|---|\n";

fn findings(table: &str, code: &str, test: &str, gaps: &str) -> Vec<String> {
    let tree = Tree::of(&[
        ("docs/requirements/rfc1.md", table),
        ("docs/requirements/README.md", "| rfc9#1-1 |\n"),
        ("crates/a/src/lib.rs", code),
        ("crates/a/tests/c.rs", test),
        (GAPS, &format!("{GAPS_TEXT}{gaps}")),
    ]);
    let mut findings = Vec::new();
    let spec = read(&tree, &mut findings);
    findings.extend(spec.check());
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn tree_whose_rows_all_have_code_and_test_passes() {
    assert_eq!(findings(TABLE, CODE, TEST, ""), [""; 0]);
}

#[test]
fn id_that_no_row_has_is_found() {
    let code = format!("{CODE}//= rfc1#1-3\nfn d() {{}}\n");
    assert_eq!(findings(TABLE, &code, TEST, ""), ["crates/a/src/lib.rs:9: no row has the id rfc1#1-3"]);
    let gap = "| rfc1#9-1 | a | b | c |\n";
    assert_eq!(findings(TABLE, CODE, TEST, gap), [format!("{GAPS}:5: no row has the id rfc1#9-1")]);
}

#[test]
fn row_without_code_is_found() {
    let code = CODE.replace(", rfc1#1-2", "");
    let found = findings(TABLE, &code, TEST, "");
    assert_eq!(found, ["docs/requirements/rfc1.md:11: no code cites rfc1#1-2"]);
}

#[test]
fn row_without_test_is_found() {
    let found = findings(TABLE, CODE, "", "");
    assert_eq!(found, ["docs/requirements/rfc1.md:11: no test cites rfc1#1-2"]);
    let code = CODE.replace("    //= rfc1#1-1\n", "");
    let found = findings(TABLE, &code, TEST, "");
    assert_eq!(found, ["docs/requirements/rfc1.md:10: no test cites rfc1#1-1"]);
}

#[test]
fn gap_excuses_a_row_and_goes_when_the_row_is_met() {
    let gap = "| rfc1#1-2 | a | b | c |\n";
    assert_eq!(findings(TABLE, CODE, "", gap), [""; 0]);
    assert_eq!(findings(TABLE, &CODE.replace(", rfc1#1-2", ""), "", gap), [""; 0]);
    let found = findings(TABLE, CODE, TEST, gap);
    assert_eq!(found, [format!("{GAPS}:5: rfc1#1-2 has code and test: it is no gap")]);
    let twice = format!("{gap}{gap}");
    assert_eq!(findings(TABLE, CODE, "", &twice), [format!("{GAPS}:6: rfc1#1-2 has two rows")]);
}

#[test]
fn words_that_nothing_stands_for_are_found() {
    for (from, to) in
        [("Has: 3", "Has: 4"), ("| MUST | 2", "| MUST | 3"), ("Left out: 1 MUST", "Left out: 2 MUST")]
    {
        let found = findings(&TABLE.replace(from, to), CODE, TEST, "");
        assert_eq!(found.len(), 1, "{to}: {found:?}");
        assert!(found[0].starts_with("docs/requirements/rfc1.md:3: section 1 has "), "{found:?}");
    }
    let found = findings(&TABLE.replace(", 1 SHOULD\n", ", 0 SHOULD\n"), CODE, TEST, "");
    assert_eq!(
        found,
        ["docs/requirements/rfc1.md:3: section 1 has 0 SHOULD, but rows for 1 and leaves out 0"]
    );
}

#[test]
fn malformed_lines_are_found() {
    for (from, to, problem) in [
        ("## Section 1: a", "## Section one", "11: a row above the first section"),
        ("concerns IANA", "", "6: what is left out has no reason"),
        ("1 MUST: con", "1 MAY: con", "6: `1 MAY` is no count of words"),
        ("rfc1#1-2 |", "rfc1#2-2 |", "11: rfc1#2-2 is no id of this section"),
        ("rfc1#1-2 |", "rfc1#1-1 |", "11: rfc1#1-1 does not come after the row before"),
        ("rfc1#1-2 |", "rfc1 |", "11: `rfc1` is no id"),
        ("SHOULD NOT", "MAY", "11: `MAY` is no level"),
        ("SHOULD NOT", "states", "11: rfc1#1-2 has no word in capitals, so it stands for none"),
        ("| client ", "", "11: a row has five cells: id, level, words, binds, requirement"),
    ] {
        let table = TABLE.replace(from, to).replace("Left out: 1 MUST: \n", "Left out: 1 MUST\n");
        let expected = format!("docs/requirements/rfc1.md:{problem}");
        let found = findings(&table, CODE, TEST, "");
        assert!(found.contains(&expected), "{expected}: {found:?}");
    }
    let twice = format!("{TABLE}\n## Section 1: again\n");
    let found = findings(&twice, CODE, TEST, "");
    assert_eq!(found, ["docs/requirements/rfc1.md:13: section 1 has two headings"]);
}

#[test]
fn comment_that_cites_nothing_is_found() {
    let found = findings(TABLE, &format!("{CODE}//= RFC 1 section 1: be good\nfn d() {{}}\n"), TEST, "");
    assert_eq!(found, ["crates/a/src/lib.rs:9: `RFC 1 section 1: be good` is no id"]);
    let found = findings(TABLE, &format!("{CODE}//= rfc1#1-1\n"), TEST, "");
    assert_eq!(found, ["crates/a/src/lib.rs:9: the citation stands above no code"]);
    let found = findings(TABLE, &format!("{CODE}//= rfc1#1-1\n\nfn d() {{}}\n"), TEST, "");
    assert_eq!(found, ["crates/a/src/lib.rs:9: a blank line parts the citation from the code"]);
    assert_eq!(findings(TABLE, &format!("{CODE}const A: &str = \"//= b\";\n"), TEST, ""), [""; 0]);
}

#[test]
fn tests_are_told_from_code_by_path_and_by_module() {
    let tree = Tree::of(&[
        ("crates/a/src/lib.rs", "#[cfg(test)]\nmod long;\nmod short;\n//= a#1-1\nfn b() {}\n"),
        ("crates/a/src/long.rs", "//= a#1-1\nfn b() {}\n"),
        ("crates/a/src/short.rs", "//= a#1-1\nfn b() {}\n#[cfg(test)]\nmod inner;\n"),
        ("crates/a/src/short/inner.rs", "//= a#1-1\nfn b() {}\n"),
        ("crates/a/src/short/tests.rs", "//= a#1-1\nfn b() {}\n"),
        ("crates/a/tests/d/main.rs", "//= a#1-1\nfn b() {}\n"),
    ]);
    let cited = citations::read(&tree, &mut Vec::new());
    let tests: Vec<bool> = cited["a#1-1"].iter().map(|place| place.is_test).collect();
    assert_eq!(tests, [false, true, false, true, true, true]);
}

#[test]
fn coverage_has_a_line_for_each_section_and_what_it_leaves_out() {
    let tree = Tree::of(&[("docs/requirements/rfc1.md", TABLE), (GAPS, "| rfc1#1-2 | a | b | c |\n")]);
    assert_eq!(
        read(&tree, &mut Vec::new()).coverage(),
        "rfc1#1: MUST 3, rows for 2; SHOULD 1, rows for 1; 2 rows, 1 of them gaps\n  \
         left out: 1 MUST: concerns IANA\n\
         MUST 3, rows for 2; SHOULD 1, rows for 1; 2 rows, 1 of them gaps\n"
    );
}

#[test]
fn seed_draws_rows_that_are_met_with_their_places() {
    let tree = Tree::of(&[
        ("docs/requirements/rfc1.md", TABLE),
        ("crates/a/src/lib.rs", CODE),
        ("crates/a/tests/c.rs", "//= rfc1#1-9\nfn c() {}\n"),
    ]);
    let spec = read(&tree, &mut Vec::new());
    let expected = "rfc1#1-1: be good\n  code crates/a/src/lib.rs:1\n  test crates/a/src/lib.rs:5\n";
    assert_eq!((draw::text(&spec, 1), draw::text(&spec, 2)), (expected.to_owned(), expected.to_owned()));
}
