//! Checks that take too long to run on each change: on a release build, once a night.

use std::path::Path;
use std::time::Instant;

use crate::process;

/// The steps, in order: a description, and the arguments of `cargo test`.
const STEPS: [(&str, &[&str]); 2] = [
    (
        "a million load runs, each replayed from its seed",
        &["--package", "authentick-sim", "--test", "load_runs", "--", "--ignored", "--nocapture"],
    ),
    (
        "what limited a load, ten times for each way to limit it",
        &[
            "--package",
            "authentick",
            "--test",
            "system",
            "--",
            "--ignored",
            "--nocapture",
            "ten_times_of_ten",
        ],
    ),
];

/// Runs all steps, and says how long each took.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    for (name, arguments) in STEPS {
        let begun = Instant::now();
        process::run(process::cargo(root).args(["test", "--release"]).args(arguments))?;
        println!("nightly: {name}: {} s", begun.elapsed().as_secs());
    }
    Ok(())
}
