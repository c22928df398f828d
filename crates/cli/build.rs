//! Tells the program which commit it was built from and how old that is, where there is a git checkout to ask.

use std::process::Command;

fn main() {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=AUTHENTICK_COMMIT={commit}");
    // The age is that of the commit, so that one commit makes one program; who builds from an archive can state it.
    // 0: not known.
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let stated = std::env::var("SOURCE_DATE_EPOCH").ok();
    let seconds = stated.or_else(|| git(&["log", "-1", "--format=%ct"]));
    let seconds = seconds.and_then(|seconds| seconds.trim().parse::<u64>().ok()).unwrap_or(0);
    println!("cargo:rustc-env=AUTHENTICK_BUILD_SECONDS={seconds}");
    // The log of HEAD grows with every commit and checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
