//! The developers' commands. `cargo xtask ci` is exactly what continuous integration runs.
//!
//! Nothing here is shipped, and nothing here installs anything on the system.
#![forbid(unsafe_code)]

mod booted;
mod ci;
mod fuzz;
mod memcheck;
mod nightly;
mod package;
mod peers;
mod portable;
mod process;
mod sanitize;
mod spec;
mod supply;
mod test;
mod tidy;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// The developers' commands of authentick.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Check the house rules; print each violation as `file:line: problem`
    Tidy,
    /// Check that each requirement has its code and its test, and print how many each section has
    Spec {
        /// Print ten rows drawn by this seed, with the places of their code and tests
        #[arg(long, value_name = "SEED")]
        draw: Option<u64>,
    },
    /// Provide the real components that the tests run against, under target/peers (or $AUTHENTICK_PEERS)
    Peers {
        /// Fail if one is missing that this machine could have
        #[arg(long)]
        require: bool,
    },
    /// Provide the peers, run every test, and list what was skipped
    Test {
        /// Fail if a test was skipped, except for a peer that this machine cannot have
        #[arg(long)]
        require_peers: bool,
        /// Arguments for one `cargo test`, such as `-p authentick-ke` or a test's name
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run all that must pass before a change is taken
    Ci {
        /// Run one step alone
        #[arg(long, value_name = "STEP")]
        only: Option<ci::Step>,
    },
    /// Prove the package in a Debian 12 that is booted for it; needs root's rights
    Booted {
        /// The package; the newest in target/package unless it is named
        #[arg(long, value_name = "FILE")]
        package: Option<PathBuf>,
        /// What is proved; all of it unless named
        #[arg(value_name = "PROOF")]
        proofs: Vec<booted::Proof>,
    },
    /// Run fuzz targets, one per processor at a time, and keep the inputs that reach new code
    Fuzz {
        /// How long each target runs
        seconds: u32,
        /// Targets; all of them unless named
        targets: Vec<String>,
    },
    /// Run tests in a build that looks at each access to memory
    Sanitize {
        /// What looks
        which: sanitize::Sanitizer,
        /// Beginnings or other parts of names of tests, for AddressSanitizer; all tests unless named
        tests: Vec<String>,
    },
    /// Run what takes too long for each change: all parts that have not passed on this commit, or those named
    Nightly {
        /// Show the parts, what each is expected to take, and its last record
        #[arg(long, conflicts_with_all = ["again", "trial"])]
        list: bool,
        /// Run parts that have passed on this commit too
        #[arg(long)]
        again: bool,
        /// See whether parts work: fuzz for so many seconds each, take any tree, and leave record and page under target
        #[arg(long, value_name = "SECONDS")]
        trial: Option<u32>,
        /// Parts; all of them unless named
        #[arg(value_name = "PART")]
        parts: Vec<String>,
    },
    /// Make docs/assurance.md from the records of parts
    Assurance,
    /// Print the figures of a package and what changed in it since it was last looked at, or count all again
    Review {
        /// Packages that are locked; all of the list unless named
        #[arg(value_name = "CRATE")]
        names: Vec<String>,
    },
    /// Make a .deb and a .rpm, in target/package
    Package {
        /// Pack this program, instead of a release that is built for it
        #[arg(long, value_name = "PATH")]
        binary: Option<PathBuf>,
        /// One of them alone
        #[arg(long, value_name = "KIND")]
        only: Vec<package::Kind>,
    },
    /// Write what the released binary is made of, as CycloneDX, to target/sbom
    Sbom {
        /// What the binary is built for
        #[arg(long, value_name = "TRIPLE", default_value = supply::TARGET)]
        target: String,
    },
}

fn main() -> ExitCode {
    let task = Task::parse();
    let result = workspace_root().and_then(|root| match task {
        Task::Tidy => tidy::run(&root),
        Task::Spec { draw } => spec::run(&root, draw),
        Task::Peers { require } => peers::provide(&root, require).map(drop),
        Task::Test { require_peers, arguments } => test::run(&root, require_peers, &arguments),
        Task::Ci { only } => ci::run(&root, only),
        Task::Booted { package, proofs } => booted::run(&root, package, &proofs).map(|skipped| {
            skipped.into_iter().for_each(|reason| println!("skipped: {reason}"));
        }),
        Task::Fuzz { seconds, targets } => fuzz::run(&root, seconds, &targets, true),
        Task::Sanitize { which, tests } => sanitize::run(&root, which, &tests),
        Task::Nightly { list: true, parts, .. } => nightly::list(&root, &parts),
        Task::Nightly { list: false, again, trial, parts } => nightly::run(&root, &parts, again, trial),
        Task::Assurance => nightly::page::write(&root),
        Task::Review { names } if names.is_empty() => supply::review::recount(&root),
        Task::Review { names } => supply::review::run(&root, &names),
        Task::Package { binary, only } => package::run(&root, binary.as_deref(), &only).map(drop),
        Task::Sbom { target } => supply::sbom::run(&root, &target).map(|path| println!("{}", path.display())),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the checkout that cargo was called in.
fn workspace_root() -> Result<PathBuf, String> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .ok_or("cargo has not started this program: run `cargo xtask` in the checkout")?;
    Path::new(&package)
        .parent()
        .map(Path::to_owned)
        .ok_or_else(|| "the package xtask lies in no workspace".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Task::command().debug_assert();
    }

    #[test]
    fn arguments_after_the_options_go_to_cargo_test() {
        let line = ["xtask", "test", "--require-peers", "-p", "authentick-ke", "--", "--nocapture"];
        let Task::Test { require_peers: true, arguments } = Task::parse_from(line) else {
            panic!("these are arguments of `test`");
        };
        assert_eq!(arguments, ["-p", "authentick-ke", "--", "--nocapture"]);
    }
}
