//! Every path of the lanes that this processor has, against published vectors and against RustCrypto.
//!
//! With `AUTHENTICK_PATHS` set to names of paths, parted by commas, only these are tested: valgrind knows no AVX-512.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod case;
mod cmac;
mod complaints;
mod differential;
mod forgery;
mod hash;
#[path = "../../benches/timing/judge.rs"]
mod judge;
mod mac;
mod secrecy;
mod timing;
mod wycheproof;

use std::io::Write as _;

use authentick_crypto::{HashPath, Path};

/// The paths to test, of which there is at least one.
fn paths() -> Vec<Path> {
    let chosen = std::env::var("AUTHENTICK_PATHS").ok();
    let is_chosen = |path: &Path| {
        chosen.as_ref().is_none_or(|names| names.split(',').any(|name| name == path.to_string()))
    };
    let paths: Vec<Path> =
        Path::ALL.into_iter().filter(|path| path.is_available()).filter(is_chosen).collect();
    assert!(!paths.is_empty(), "AUTHENTICK_PATHS names no path that this processor has");
    paths
}

#[test]
fn chosen_path_is_the_first_that_is_available() {
    let first = Path::ALL.into_iter().find(|path| path.is_available()).unwrap();
    assert_eq!(authentick_crypto::path(), first);
}

/// A test of a path that the processor lacks is none: whoever reads the list of skips learns of it.
#[test]
fn paths_that_are_not_tested_are_told() {
    let blocks = Path::ALL.into_iter().filter(|path| !path.is_available()).map(|path| path.to_string());
    let hashes = HashPath::ALL.into_iter().filter(|path| !path.is_available()).map(|path| path.to_string());
    for path in blocks.chain(hashes) {
        skip(&format!("this processor lacks {path}"));
    }
}

/// Says that something is not tested, as `authentick_lab::skip` does: `lab` stands on this crate.
fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Past the capture of test output.
    let _ = writeln!(std::io::stderr(), "skipped {name}: {reason}");
    if let Some(list) = std::env::var_os("AUTHENTICK_SKIPS") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(list);
        let _ = file.and_then(|mut file| writeln!(file, "{name}: {reason}"));
    }
}

#[test]
fn paths_print_as_they_are_chosen() {
    let names = Path::ALL.map(|path| path.to_string());
    assert_eq!(names, ["VAES-512", "VAES-256", "AES-NI", "portable"]);
}
