//! `cargo xtask booted`: proofs of the package in a Debian 12 that is booted for each of them.
//!
//! - `limited`: commands that are ended when their time is up.
//! - `image`: the system that machines begin with, made once.
//! - `machine`: a system that runs, commands in it, and its end.
//! - `package`, `server`, `certificates`, `load`, `chrony`: what the proofs share.
//! - `restart`, `install`, `renewal`, `firewall`, `passing`, `judged`: the proofs.
//!
//! Only the image takes a network, to be made. What runs in a machine has a loopback interface and nothing else.

mod certificates;
mod chrony;
mod firewall;
mod image;
mod install;
mod judged;
mod limited;
mod listing;
mod load;
mod machine;
mod package;
mod passing;
mod renewal;
mod restart;
mod server;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;

pub(crate) use image::missing;
use image::{Image, Kind};
use machine::Machine;
use package::Package;

/// How long a proof may take in its machine.
const LIFE: Duration = Duration::from_secs(300);

/// What is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Proof {
    /// It starts in half a second, only with a good configuration, says how it does, is removed and leaves nothing
    Install,
    /// No request is lost in restarts and an upgrade, and in kills only what was being answered
    Restart,
    /// Certificates of two names are renewed by certbot, and are in force without a further command
    Renewal,
    /// Firewalld and ufw let time and key exchange in by the manual's commands
    Firewall,
    /// What passes ends no server: an address, an interface, a port, a disk that are there some seconds later
    Passing,
    /// Piuparts passes it, the other package is installed and erased, and lintian and rpmlint find no error in them
    Judged,
}

/// What a proof has found.
struct Report {
    proof: Proof,
}

impl Report {
    fn say(&self, text: &str) {
        println!("{}: {text}", name(self.proof));
    }

    /// A figure of what was tried, as `cargo xtask nightly` collects them.
    fn count(&self, name: &str, count: u64, unit: &str) {
        println!("assurance: {name} = {count} {unit}");
    }
}

fn name(proof: Proof) -> String {
    proof.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Runs proofs, all of them unless some are named, with the package in `file` or the one in `target/package`. `None`,
/// or why they cannot run on this machine.
pub(crate) fn run(root: &Path, file: Option<PathBuf>, proofs: &[Proof]) -> Result<Option<String>, String> {
    if let Some(reason) = missing() {
        return Ok(Some(reason));
    }
    let package = Package::find(root, file)?;
    let all = Proof::value_variants();
    // All run, so that one failure does not hide another.
    let mut problems = Vec::new();
    for proof in all.iter().copied().filter(|proof| proofs.is_empty() || proofs.contains(proof)) {
        let start = Instant::now();
        match prove(root, proof, &package) {
            Ok(()) => println!("{}: proved in {:.0?}", name(proof), start.elapsed()),
            Err(problem) => {
                eprintln!("{}: {problem}", name(proof));
                problems.push(name(proof));
            }
        }
    }
    match problems.as_slice() {
        [] => Ok(None),
        problems => Err(format!("not proved: {}", problems.join(", "))),
    }
}

fn prove(root: &Path, proof: Proof, package: &Package) -> Result<(), String> {
    let mut report = Report { proof };
    let prove = match proof {
        Proof::Install => install::prove,
        Proof::Restart => restart::prove,
        Proof::Renewal => renewal::prove,
        Proof::Firewall => firewall::prove,
        Proof::Passing => passing::prove,
        Proof::Judged => {
            let judging = Image::provide(root, Kind::Judging)?;
            let base = Image::provide(root, Kind::Bootable)?;
            return judged::prove(root, &judging, &base, package, &mut report);
        }
    };
    let image = Image::provide(root, Kind::Bootable)?;
    prove(&Machine::boot(&image, LIFE)?, package, &mut report)
}
