//! Real peers as processes: chrony, NTPsec, ntpd-rs, facebook/time. None of them can touch this machine's clock.
//!
//! `find` says that the running test is skipped where a peer is missing. Everything else panics where a test would.

mod chrony;
mod facebook_time;
mod ntpd_rs;
mod ntpsec;
mod sandbox;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::hosts::{Host, Hosts};
use crate::skip::skip;

pub use self::chrony::{Chrony, ChronyDaemon};
pub use self::facebook_time::FacebookTime;
pub use self::ntpd_rs::{NtpdRs, NtpdRsClient};
pub use self::ntpsec::NtpSec;

/// The folder that `cargo xtask peers` fills.
#[must_use]
pub fn folder() -> PathBuf {
    match std::env::var_os("AUTHENTICK_PEERS") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
    }
}

/// Where a peer that was unpacked from packages has its libraries.
#[must_use]
pub fn libraries(peer: &Path) -> PathBuf {
    peer.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH))
}

/// chrony's daemon among the peers, and the folder of its libraries, for a bench; `None` if it is not there.
#[must_use]
pub fn chronyd() -> Option<(PathBuf, PathBuf)> {
    let peer = folder().join("chrony");
    let program = peer.join("usr/sbin/chronyd");
    program.exists().then(|| (program, libraries(&peer)))
}

/// A peer's program; says that the test is skipped if it is not there.
fn program(path: &str) -> Option<PathBuf> {
    let program = folder().join(path);
    if !program.exists() {
        skip(&format!("{path} is missing; run cargo xtask peers"));
        return None;
    }
    Some(program)
}

/// Where a peer runs: the name of a network namespace, or this one.
#[derive(Clone, Debug, Default)]
struct Place(Option<String>);

impl Place {
    fn on(hosts: &Hosts, host: Host) -> Self {
        Place(Some(hosts.name(host).to_owned()))
    }

    fn command(&self, program: &Path) -> Command {
        match &self.0 {
            None => Command::new(program),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(program);
                command
            }
        }
    }
}
