//! `cargo xtask sanitize`: tests in builds that look at each access to memory.
//!
//! - AddressSanitizer: the system tests with the program that they start, and the tests of the crates with `unsafe`.
//!   aws-lc, which is C, is instrumented too; std is not, and assembly cannot be.
//! - ThreadSanitizer: the tests of crates with threads. It needs std instrumented, and so its source.
//! - Miri: what it can interpret of the crates with `unsafe`: neither system calls nor C.
//!
//! All need unstable flags: a stable compiler accepts them in bootstrap mode, else a nightly one does. What a machine
//! lacks is told, and then nothing runs.

mod reports;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::MetadataCommand;
use clap::ValueEnum;

use self::reports::Reports;
use crate::{peers, process, test};

/// What looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sanitizer {
    /// Memory that is freed, or out of bounds
    Address,
    /// Races
    Thread,
    /// Undefined behaviour, in an interpreter
    Miri,
}

/// A compiler that takes unstable flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compiler {
    /// The installed one, in bootstrap mode.
    Bootstrap,
    Nightly,
}

/// In each such build, as the code may have to know: a server does not contain itself, see `daemon::config`.
const CFG: &str = "--cfg authentick_sanitizer";

/// Named, so that macros and build scripts have no sanitizer.
const TARGET: &str = "host-tuple";

/// The error that AddressSanitizer has to report of a test that makes it, by the name of the test: in Rust, in C, and
/// of memory that nobody can free any more.
const CONTROLS: [(&str, &str); 3] = [
    ("sanitizer::memory_is_read_after_it_was_freed", "heap-use-after-free"),
    ("kem::rsa::sanitizer::aws_lc_writes_behind_the_end_of_a_block", "heap-buffer-overflow"),
    ("sanitizer::memory_is_never_freed", "detected memory leaks"),
];

/// System tests that cannot hold in such a build, by the beginning of the name, and why.
const UNFIT: [(&str, &str); 7] = [
    ("containment::", "servers do not contain themselves in this build"),
    // What is not contained can read the names of other processes, and says them.
    ("hostile_files::held::lock_of_a_stopped_process", "servers do not contain themselves in this build"),
    ("load::antp::our_own_server_holds_every_phase", "it measures speed"),
    ("timed::", "it measures speed"),
    ("measured::studies::", "it measures speed"),
    ("measured::bench::", "it measures speed"),
    ("demo::", "it measures speed"),
];

/// Runs what there is for `which`, or of AddressSanitizer's tests those named; says so if this machine cannot.
pub(crate) fn run(root: &Path, which: Sanitizer, tests: &[String]) -> Result<(), String> {
    if let Some(missing) = missing(root, which) {
        println!("skipped: {missing}");
        return Ok(());
    }
    match which {
        Sanitizer::Address => address(root, tests),
        Sanitizer::Thread => thread(root),
        Sanitizer::Miri => miri(root),
    }
}

/// What this machine lacks for it.
pub(crate) fn missing(root: &Path, which: Sanitizer) -> Option<String> {
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        return Some("sanitizers are used on x86-64 Linux only".to_owned());
    }
    let flag = match which {
        Sanitizer::Address => "-Zsanitizer=address",
        Sanitizer::Thread => "-Zsanitizer=thread",
        Sanitizer::Miri => return missing_for_miri(root),
    };
    let Some(compiler) = Compiler::that_takes(root, flag) else {
        return Some(format!("no compiler here takes {flag}, neither in bootstrap mode nor a nightly one"));
    };
    match which {
        Sanitizer::Thread if !compiler.has_source(root) => {
            Some("the component rust-src is not installed, without which std is not instrumented".to_owned())
        }
        Sanitizer::Address | Sanitizer::Thread | Sanitizer::Miri => None,
    }
}

fn missing_for_miri(root: &Path) -> Option<String> {
    if process::output(process::cargo(root).args(["+nightly", "miri", "--version"])).is_err() {
        return Some("no nightly toolchain with the component miri is installed".to_owned());
    }
    (!Compiler::Nightly.has_source(root))
        .then(|| "the component rust-src of the nightly toolchain is not installed".to_owned())
}

impl Compiler {
    /// The first that takes an unstable flag.
    fn that_takes(root: &Path, flag: &str) -> Option<Self> {
        [Compiler::Bootstrap, Compiler::Nightly].into_iter().find(|compiler| {
            process::output(compiler.on(root, "rustc").args([flag, "--print", "cfg"])).is_ok()
        })
    }

    /// A program of its toolchain, in the root.
    fn on(self, root: &Path, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(root);
        match self {
            Compiler::Bootstrap => command.env("RUSTC_BOOTSTRAP", "1"),
            Compiler::Nightly => command.arg("+nightly"),
        };
        command
    }

    fn has_source(self, root: &Path) -> bool {
        let sysroot = process::output(self.on(root, "rustc").args(["--print", "sysroot"]));
        sysroot.is_ok_and(|path| Path::new(path.trim()).join("lib/rustlib/src/rust/library").is_dir())
    }

    /// `cargo test` with these flags of the compiler, in a folder of its own: bootstrap mode changes what build scripts
    /// do, and would have other builds begin anew.
    fn test(self, root: &Path, flags: &str) -> Result<Command, String> {
        let mut command = self.on(root, "cargo");
        command.args(["test", "--no-fail-fast", "--target", TARGET]);
        command.env("CARGO_TARGET_DIR", folder(root)?).env("RUSTFLAGS", format!("{flags} {CFG}"));
        command.env(peers::FOLDER, peers::folder(root)?);
        Ok(command)
    }
}

/// Where these builds are.
fn folder(root: &Path) -> Result<PathBuf, String> {
    let metadata = MetadataCommand::new().current_dir(root).no_deps().exec();
    Ok(metadata.map_err(|error| error.to_string())?.target_directory.join("sanitize").into())
}

/// The tests that run under AddressSanitizer. One selection for tests and controls, so that there is one build.
const TESTS: &str = "--package authentick --package authentick-net --package authentick-crypto --lib --test system \
    --test paths";

fn address(root: &Path, names: &[String]) -> Result<(), String> {
    let flag = "-Zsanitizer=address";
    let compiler = Compiler::that_takes(root, flag).ok_or("the compiler has gone")?;
    let reports = Reports::in_folder(&folder(root)?.join("reports"))?;
    let tests = || -> Result<Command, String> {
        let mut command = compiler.test(root, &format!("{flag} -Cforce-frame-pointers=yes"))?;
        // Of C; assembly has no such checks.
        command.env("CFLAGS", "-fsanitize=address -fno-omit-frame-pointer");
        command.env("ASAN_OPTIONS", reports.options()).args(TESTS.split_whitespace()).arg("--");
        Ok(command)
    };
    for (control, error) in CONTROLS {
        let ended = watched(tests()?.args(["--ignored", "--exact", control]))?;
        let report = reports.take()?.concat();
        if ended.is_success || !report.contains(error) {
            return Err(format!("AddressSanitizer has not reported {error} in {control}: it sees nothing"));
        }
        println!("control: {error}, reported of {control}");
    }
    peers::provide(root, false)?;
    let mut command = tests()?;
    for (name, reason) in UNFIT {
        println!("left out, as {reason}: {name}");
        command.arg(format!("--skip={name}"));
    }
    let ended = watched(command.args(names))?;
    println!("assurance: address-sanitizer-tests = {} tests", ended.passed_count);
    let found = reports.take()?;
    found.iter().for_each(|report| println!("{report}"));
    match (found.len(), ended.is_success) {
        (0, true) if ended.passed_count > 0 => Ok(()),
        (0, true) => Err("no test ran".to_owned()),
        (0, false) => Err("tests fail under AddressSanitizer, which has reported nothing".to_owned()),
        (count, _) => Err(format!("AddressSanitizer has reported {count} errors")),
    }
}

/// Those of crates whose threads share memory. Servers of the tests run in the process of the test.
fn thread(root: &Path) -> Result<(), String> {
    let flag = "-Zsanitizer=thread";
    let compiler = Compiler::that_takes(root, flag).ok_or("the compiler has gone")?;
    let mut command = compiler.test(root, flag)?;
    command.args("-Zbuild-std --package authentick-proto --package authentick-daemon --lib".split(' '));
    command.env("TSAN_OPTIONS", "halt_on_error=1");
    let ended = watched(&mut command)?;
    println!("assurance: thread-sanitizer-tests = {} tests", ended.passed_count);
    if ended.is_success { Ok(()) } else { Err("tests fail under ThreadSanitizer".to_owned()) }
}

/// The kernels of the lanes on the instructions that Miri knows, and what of `net` only lays out memory.
fn miri(root: &Path) -> Result<(), String> {
    let mut count = 0;
    for words in ["--package authentick-crypto --test paths", "--package authentick-net --lib control::"] {
        let mut command = process::cargo(root);
        command.args(["+nightly", "miri", "test"]).args(words.split(' '));
        command.env("CARGO_TARGET_DIR", folder(root)?).env("AUTHENTICK_PATHS", "AES-NI,portable");
        // What time it is, no test of these asks; proptest reads its corpus from files.
        command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", "4");
        let ended = watched(&mut command)?;
        if !ended.is_success {
            return Err(format!("Miri complains of {words}"));
        }
        count += ended.passed_count;
    }
    println!("assurance: miri-tests = {count} tests");
    Ok(())
}

/// How a run of tests ended.
struct Ended {
    is_success: bool,
    passed_count: u64,
}

/// Runs tests on this terminal, and counts those that passed.
fn watched(command: &mut Command) -> Result<Ended, String> {
    let name = process::line(command);
    let failed = |error| format!("`{name}`: {error}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut passed_count = 0;
    for line in BufReader::new(child.stdout.take().expect("the output is piped")).split(b'\n') {
        let line = line.map_err(failed)?;
        let line = String::from_utf8_lossy(&line);
        passed_count += test::passed_count(&line);
        println!("{line}");
    }
    Ok(Ended { is_success: child.wait().map_err(failed)?.success(), passed_count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_a_command_that_fails_are_counted() {
        let ended = watched(Command::new("sh").args(["-c", "echo 'test result: ok. 3 passed; 0'; exit 1"]));
        assert!(ended.is_ok_and(|ended| !ended.is_success && ended.passed_count == 3));
    }

    #[test]
    fn build_is_apart_from_others_and_has_a_named_target() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let command = Compiler::Bootstrap.test(root, "-Zsanitizer=address").unwrap();
        assert_eq!(process::line(&command), "cargo test --no-fail-fast --target host-tuple");
        let environment: Vec<_> = command.get_envs().map(|(name, _)| name.to_string_lossy()).collect();
        for name in ["CARGO_TARGET_DIR", "RUSTC_BOOTSTRAP", "RUSTFLAGS"] {
            assert!(environment.iter().any(|known| known == name), "{name}");
        }
        assert!(folder(root).unwrap().ends_with("sanitize"));
    }

    /// Names that fit nothing would exclude nothing, and say that they do.
    #[test]
    fn tests_that_are_left_out_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for (name, _) in UNFIT {
            let place =
                root.join("crates/cli/tests/system").join(name.trim_end_matches("::").replace("::", "/"));
            let is_module = place.is_dir() || place.with_extension("rs").is_file();
            let (module, function) = (place.parent().unwrap(), place.file_name().unwrap().to_string_lossy());
            let has_function = [module.join("mod.rs"), module.with_extension("rs")].iter().any(|file| {
                std::fs::read_to_string(file).is_ok_and(|text| text.contains(&format!("fn {function}")))
            });
            assert!(is_module || has_function, "{name}");
        }
    }
}
