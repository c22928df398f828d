//! Tests under valgrind's memcheck, with secrets declared uninitialised: it complains of each branch and each address
//! that depends on one (`authentick_lanes::secrecy`).
//!
//! It knows no VAES and no AVX-512: for these the bench `timing` has to do.

use std::path::Path;
use std::process::Command;

use crate::{process, test};

/// The program that runs the tests. Complaints are all counted, however many there are.
const RUNNER: &str = "valgrind -q --error-limit=no --error-exitcode=9";

/// Tests that pass if memcheck complains of what they name. They are marked as ignored, and listed here so that none is
/// lost.
const COMPLAINTS: [&str; 7] = [
    "complaints::branch_and_address_of_a_secret_are_complained_of",
    "complaints::openings_that_compare_one_octet_after_another_or_look_at_the_text_are_told",
    "complaints::portable_openings_branch_on_nothing_but_whether_the_tag_is_right",
    "complaints::texts_that_were_opened_and_tags_that_were_computed_are_secret_still",
    "kem::tests::no_branch_depends_on_whether_a_padding_is_right",
    "kem::tests::padding_that_is_judged_octet_by_octet_is_told",
    "server_that_branches_on_a_session_key_is_complained_of",
];

/// Runs the tests of the crypto crate, on the paths that valgrind supports, and the responder with secret keys; then
/// those that count what memcheck complains of, or the others prove nothing. Returns why nothing was run, if so.
pub(crate) fn run(root: &Path) -> Result<Option<String>, String> {
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        return Ok(Some("memcheck follows secrets on x86-64 Linux only".to_owned()));
    }
    if !process::is_on_path("valgrind") {
        return Ok(Some("valgrind is not installed".to_owned()));
    }
    for mut command in commands(root) {
        process::run(command.arg("--quiet"))?;
    }
    let mut text = String::new();
    for mut command in commands(root) {
        let output =
            process::collect(command.args("--no-fail-fast -- --ignored --test-threads=1".split(' ')))?;
        text.push_str(&String::from_utf8_lossy(&output.stdout));
        if output.status.success() {
            return Err(format!("`{}` has passed, though memcheck had to complain", process::line(&command)));
        }
    }
    match COMPLAINTS.iter().find(|name| !has_passed(&text, name)) {
        Some(name) => Err(format!("`{name}` has not passed under memcheck:\n{text}")),
        None => Ok(None),
    }
}

/// What is run: the crypto crate's tests, and those of secrecy of other crates.
fn commands(root: &Path) -> [Command; 2] {
    let mut of_servers = process::cargo(root);
    // From the workspace, so that nothing is built anew.
    of_servers.args("test --workspace --test secrecy".split(' '));
    [test::of_crypto(root), of_servers].map(|mut command| {
        command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", RUNNER);
        command.env("AUTHENTICK_PATHS", "AES-NI,portable").env("PROPTEST_CASES", "16");
        command
    })
}

/// Whether a test of this name has passed, by what `cargo test` printed.
fn has_passed(text: &str, name: &str) -> bool {
    text.lines()
        .any(|line| line.strip_prefix("test ").and_then(|line| line.strip_prefix(name)) == Some(" ... ok"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_has_passed_if_it_is_said_to_be_ok() {
        let text = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n";
        assert!(has_passed(text, "a::b"));
        assert!(!has_passed(text, "a::c") && !has_passed(text, "a") && !has_passed("", "a::b"));
    }
}
