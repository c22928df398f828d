//! The bench of MACs: how long our algorithms take for a packet, one at a time and in batches, beside OpenSSL's and
//! aws-lc's in the same process, with and without the instructions for AES and SHA.
//!
//! - `subject`: something that is timed.
//! - `ours`, `openssl` (with the cargo feature of that name), `aws_lc`: who computes the tags.
//! - `rounds`: all subjects in turn, round after round.
//! - `spread`: single tags, each timed for itself.
//! - `side`: one process: its subjects, and what it saw of the processor.
//! - `masked`: a second process of this program, from which the instructions are hidden.
//!
//! Before anything is timed, what others compute is compared with what we compute: only equal tags are equal work.

mod aws_lc;
mod masked;
#[cfg(feature = "openssl")]
mod openssl;
mod ours;
mod rounds;
mod side;
mod spread;
mod subject;

use std::time::Duration;

use authentick_net::clock::unix_seconds;
use authentick_net::ticks;
use authentick_report::mac::{Instructions, MacRecord, PACKET_SIZE};

use self::masked::Masked;
pub use self::masked::serve;
use self::side::{SideRun, Whose};
use crate::{Caller, Error};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Rounds.
    pub round_count: u32,
    /// How long each subject computes in a round.
    pub turn: Duration,
    /// Single tags of each subject that are timed in a round.
    pub single_count: u32,
}

impl Extent {
    /// About two minutes.
    pub const FULL: Extent = Extent { round_count: 31, turn: Duration::from_millis(20), single_count: 4000 };
    /// A few seconds.
    pub const QUICK: Extent = Extent { round_count: 7, turn: Duration::from_millis(3), single_count: 2000 };
}

/// Octets of a packet.
const SIZE: usize = PACKET_SIZE as usize;

/// Measures; the caller's console hears of each round. When it is to stop, it ends with the rounds that were made, at
/// least one.
///
/// # Errors
/// If somebody computes other tags than we do, or the second process cannot be had.
pub fn run(extent: Extent, caller: &Caller<'_>) -> Result<MacRecord, Error> {
    let started_unix_s = unix_seconds();
    let reference_hz = ticks::reference_hz();
    let mut process = SideRun::new(extent, Instructions::With, Vec::new(), Whose::All)?;
    let mut masked = Masked::start(&caller.program.path, extent)?;
    let mut round_count = 0;
    for done in 1..=extent.round_count {
        process.round();
        if let Some(masked) = &mut masked {
            masked.round()?;
        }
        caller.console.progress(done, extent.round_count);
        round_count = done;
        if caller.says_stop() {
            break;
        }
    }
    let mut sides = vec![process.finish(reference_hz)];
    sides.extend(masked.map(Masked::finish).transpose()?);
    Ok(MacRecord {
        version: caller.program.version.clone(),
        commit: caller.program.commit.clone(),
        command: caller.program.command.clone(),
        started_unix_s,
        host: caller.program.host.clone(),
        packet_size: PACKET_SIZE,
        round_count,
        turn_ms: extent.turn.as_secs_f64() * 1e3,
        reference_hz,
        openssl: openssl_version(),
        sides,
    })
}

/// OpenSSL's name for itself, if this program was built with it.
#[must_use]
pub fn openssl_version() -> Option<String> {
    #[cfg(feature = "openssl")]
    {
        Some(::openssl::version::version().to_owned())
    }
    #[cfg(not(feature = "openssl"))]
    None
}

/// A number of nanoseconds as a record has it: what is left out says nothing, and shorter numbers survive a file to the
/// last bit.
fn hundredth(ns: f64) -> f64 {
    (ns * 100.0).round() / 100.0
}
