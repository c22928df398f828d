//! What takes too long for each change: checks on a release build, once a night.

use std::path::Path;
use std::time::Instant;

use crate::process;

/// What runs, in this order: what it is, and the arguments of `cargo test`.
const STEPS: [(&str, &[&str]); 1] = [(
    "a million load runs, each replayed from its seed",
    &["--package", "authentick-sim", "--test", "load_runs", "--", "--ignored", "--nocapture"],
)];

/// Runs all of it, and says how long each step took.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    for (name, arguments) in STEPS {
        let begun = Instant::now();
        process::run(process::cargo(root).args(["test", "--release"]).args(arguments))?;
        println!("nightly: {name}: {} s", begun.elapsed().as_secs());
    }
    Ok(())
}
