//! Real peers as processes: chrony, NTPsec, ntpd-rs, facebook/time, none of which can touch this machine's clock, and
//! memcached.
//!
//! `find` says that the running test is skipped where a peer is missing. Everything else panics where a test would.

mod chrony;
mod facebook_time;
mod memcached;
mod ntpd_rs;
mod ntpsec;

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;

use authentick_rig::peers::{Identity, Place, Ports, Program, Search, Setup};
use authentick_rig::sandbox;

use crate::certificates::Lab;
use crate::process::{Process, free_port};
use crate::skip::skip;

pub use self::chrony::{Chrony, ChronyDaemon};
pub use self::facebook_time::FacebookTime;
pub use self::memcached::{Memcached, MemcachedServer, Memory};
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

/// A peer's program; says that the test is skipped if it is not in the folder: another version may be elsewhere.
fn program(peer: &str, inside: &str) -> Option<Program> {
    let path = format!("{}/{inside}", peer.replace('/', "-"));
    if !folder().join(&path).exists() {
        skip(&format!("{path} is missing; run cargo xtask peers"));
        return None;
    }
    Some(Search { folder: Some(&folder()), path: None }.program(peer, inside).unwrap())
}

/// A server with the lab's certificate.
fn setup<'a>(
    place: &Place,
    address: IpAddr,
    files: &'a [PathBuf; 2],
    lab: &'a Lab,
    ports: [u16; 2],
) -> Setup<'a> {
    let [chain, key] = files;
    Setup {
        place: place.clone(),
        address,
        ports: Ports { ntp: ports[0], ke: ports[1], spare: free_port() },
        folder: lab.path(),
        identity: Some(Identity { chain, key }),
        keys: &[],
    }
}

/// The lab's certificate and key.
fn files(lab: &Lab) -> [PathBuf; 2] {
    [lab.chain(), lab.key()]
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Starts a program that cannot set a clock.
fn start_sandboxed(mut command: Command) -> Process {
    sandbox::start(&mut command).unwrap_or_else(|error| panic!("{error}")).into()
}
