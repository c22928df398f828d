//! Every path of the lanes that this processor has, against published vectors and against RustCrypto.
//!
//! With `AUTHENTICK_PATHS` set to names of paths, parted by commas, only these are tested: valgrind knows no AVX-512.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod case;
mod differential;
mod forgery;
mod hash;
mod mac;
mod wycheproof;

use authentick_crypto::Path;

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
    for path in Path::ALL.into_iter().filter(|path| !path.is_available()) {
        println!("not tested, as this processor lacks it: {path}");
    }
}

#[test]
fn paths_print_as_they_are_chosen() {
    let names = Path::ALL.map(|path| path.to_string());
    assert_eq!(names, ["VAES-512", "VAES-256", "AES-NI", "portable"]);
}
