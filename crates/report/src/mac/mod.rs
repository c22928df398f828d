//! The stored format of a bench of MACs, version 1, and what is derived from it.
//!
//! - `figures`: medians with their extremes, and ratios taken within a round.
//! - [`security`]: what an algorithm withstands, by the four factors of draft-aanchal4-ntp-mac-00.
//! - [`recommend`]: which algorithm for which host, computed from both.
//! - `verdicts`: what became here of each table of the drafts.
//! - `tables`: ours, and the nine tables of the two drafts with ours beside them; [`report()`] has all of them.
//!
//! A record keeps the nanoseconds of each round, so that medians can be verified.

mod figures;
pub mod recommend;
pub mod security;
mod tables;
mod verdicts;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{EnumCount, VariantArray};

pub use self::tables::report;
pub(crate) use self::tables::{Order, opening, sections};
pub(crate) use self::verdicts::tally;
use crate::run::Host;
use crate::stored::stored;

/// Octets of the packets that are measured: an NTP header.
pub const PACKET_SIZE: u32 = 48;

/// A MAC algorithm, by the name that key files give it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, EnumCount, VariantArray,
)]
pub enum Algorithm {
    /// MD5(key || packet), RFC 5905.
    #[serde(rename = "MD5")]
    Md5,
    /// SHA-1(key || packet).
    #[serde(rename = "SHA1")]
    Sha1,
    /// SHA-256(key || packet), truncated to 20 octets on the wire.
    #[serde(rename = "SHA256")]
    Sha256,
    /// SHA-384(key || packet), truncated likewise.
    #[serde(rename = "SHA384")]
    Sha384,
    /// SHA-512(key || packet), truncated likewise.
    #[serde(rename = "SHA512")]
    Sha512,
    /// HMAC-MD5.
    #[serde(rename = "HMAC-MD5")]
    HmacMd5,
    /// HMAC-SHA-224, truncated to 16 octets.
    #[serde(rename = "HMAC-SHA224")]
    HmacSha224,
    /// AES-128-CMAC, RFC 8573.
    #[serde(rename = "AES128")]
    Cmac128,
    /// AES-256-CMAC.
    #[serde(rename = "AES256")]
    Cmac256,
    /// AES-128-GMAC.
    #[serde(rename = "GMAC128")]
    Gmac128,
    /// AES-128-GCM-SIV of an empty text.
    #[serde(rename = "GMAC-SIV128")]
    GmacSiv128,
    /// Poly1305 under one-time keys of ChaCha20.
    #[serde(rename = "POLY1305")]
    Poly1305,
}

impl Algorithm {
    /// Every algorithm, in the order of the drafts' tables; those that are not in them stand beside their kin.
    pub const ALL: [Algorithm; Algorithm::COUNT] =
        *Algorithm::VARIANTS.first_chunk().expect("as many as there are");

    /// The name, as tables have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "legacy MD5",
            Algorithm::Sha1 => "legacy SHA-1",
            Algorithm::Sha256 => "legacy SHA-256",
            Algorithm::Sha384 => "legacy SHA-384",
            Algorithm::Sha512 => "legacy SHA-512",
            Algorithm::HmacMd5 => "HMAC-MD5",
            Algorithm::HmacSha224 => "HMAC-SHA224/128",
            Algorithm::Cmac128 => "CMAC(AES-128)",
            Algorithm::Cmac256 => "CMAC(AES-256)",
            Algorithm::Gmac128 => "GMAC(AES-128)",
            Algorithm::GmacSiv128 => "GMAC-SIV(AES-128)",
            Algorithm::Poly1305 => "Poly1305(ChaCha20)",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whose code was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Implementation {
    /// Ours.
    Authentick,
    /// OpenSSL's.
    OpenSsl,
    /// aws-lc's, which has GCM-SIV where OpenSSL 3.0 has none.
    AwsLc,
}

impl Implementation {
    /// The name, as tables have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Implementation::Authentick => "authentick",
            Implementation::OpenSsl => "OpenSSL",
            Implementation::AwsLc => "aws-lc",
        }
    }
}

/// Whether the time of a MAC includes setting its key up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyUse {
    /// No: the key is kept expanded, as that of an association is.
    Kept,
    /// Yes: the key is expanded for each packet.
    SetUp,
}

/// Whether instructions for AES, carry-less multiplication and SHA were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instructions {
    /// As the processor has them.
    With,
    /// Hidden from the process.
    Without,
}

/// What was timed: one line of rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// What was computed.
    pub algorithm: Algorithm,
    /// By whose code.
    pub implementation: Implementation,
    /// Whether with the key's set-up.
    pub key: KeyUse,
    /// Packets that were handed over together.
    pub batch: u32,
    /// Nanoseconds of a MAC, by round.
    pub ns: Vec<f64>,
}

/// How the times of single MACs scatter, each timed individually.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// What was computed.
    pub algorithm: Algorithm,
    /// By whose code.
    pub implementation: Implementation,
    /// How many were timed.
    pub count: u64,
    /// The median, in nanoseconds.
    pub p50_ns: f64,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: f64,
    /// The standard deviation of all, in nanoseconds. What interrupts the process is in it.
    pub deviation_ns: f64,
    /// The same of all that do not exceed the 99th percentile.
    pub quiet_deviation_ns: f64,
}

/// A process with or without the instructions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Which one.
    pub instructions: Instructions,
    /// The instructions that the process saw, of those that matter here.
    pub seen: Vec<String>,
    /// The path that our code took.
    pub path: String,
    /// What must be known of these figures, in sentences; such as what could not be measured.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// What was timed.
    pub timings: Vec<Timing>,
    /// How single times scatter.
    pub spreads: Vec<Spread>,
}

stored!(MacRecord = "authentick-mac-bench/1", "a record of bench mac", pretty, MacRecord::check);

/// A bench of MACs on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-mac-bench/1")]
pub struct MacRecord {
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The command line.
    pub command: String,
    /// When it began, in Unix seconds.
    pub started_unix_s: u64,
    /// What it ran on.
    pub host: Host,
    /// Octets of a packet.
    pub packet_size: u32,
    /// Rounds; everything that is compared has a turn in each.
    pub round_count: u32,
    /// Milliseconds of a turn.
    pub turn_ms: f64,
    /// Reference cycles a second: ticks of the time-stamp counter. Null where there is none.
    pub reference_hz: Option<f64>,
    /// The version of OpenSSL; null if this program was built without it.
    pub openssl: Option<String>,
    /// The processes.
    pub sides: Vec<Side>,
}

/// Whether a time or a frequency is possible.
fn sound(number: f64) -> bool {
    number > 0.0 && number.is_finite()
}

impl MacRecord {
    /// The process with or without the instructions, if it was measured.
    #[must_use]
    pub fn side(&self, instructions: Instructions) -> Option<&Side> {
        self.sides.iter().find(|side| side.instructions == instructions)
    }

    /// The processes, with the instructions first.
    fn in_order(&self) -> impl Iterator<Item = &Side> + Clone {
        [Instructions::With, Instructions::Without].into_iter().filter_map(|which| self.side(which))
    }

    fn check(&self) -> Result<(), String> {
        if self.packet_size != PACKET_SIZE {
            return Err(format!("packet_size: {} is not {PACKET_SIZE}", self.packet_size));
        }
        if !self.reference_hz.is_none_or(sound) {
            return Err("reference_hz: not above zero".to_owned());
        }
        let mut sides = BTreeSet::new();
        for side in &self.sides {
            let place = format!("sides, instructions {:?}", side.instructions);
            if !sides.insert(side.instructions) {
                return Err(format!("{place}: it is there twice"));
            }
            side.check(self.round_count as usize).map_err(|problem| format!("{place}: {problem}"))?;
        }
        Ok(())
    }
}

impl Side {
    fn check(&self, round_count: usize) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for timing in &self.timings {
            let Timing { algorithm, implementation, key, batch, ns } = timing;
            let name = format!("{algorithm} of {}, batch {batch}, key {key:?}", implementation.name());
            if !seen.insert((algorithm, implementation, key, batch)) {
                return Err(format!("{name}: it is there twice"));
            }
            if *batch == 0 || ns.is_empty() || ns.len() != round_count || !ns.iter().all(|&ns| sound(ns)) {
                return Err(format!("{name}: it needs a time above zero for each of {round_count} rounds"));
            }
        }
        for spread in &self.spreads {
            let in_order =
                spread.p50_ns >= 0.0 && spread.p50_ns <= spread.p99_ns && spread.p99_ns.is_finite();
            let deviations = [spread.deviation_ns, spread.quiet_deviation_ns];
            if !in_order || !deviations.iter().all(|&ns| ns >= 0.0 && ns.is_finite()) {
                return Err(format!("spread of {}: percentiles or deviations cannot be", spread.algorithm));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
