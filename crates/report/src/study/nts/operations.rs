//! The record of operations that were measured alone, and what follows from it.
//!
//! - here: the record.
//! - `shown`: tables and sentences.
//!
//! An operation is timed in blocks of so many that the clock costs little; the blocks' times, divided, are the values.
//! Operations take their turns in rounds, so that what the machine does meanwhile meets all of them.

mod shown;

use serde::{Deserialize, Serialize};
use strum::{EnumCount, VariantArray};

pub(super) use self::shown::{Alone, section};
use super::Measure;
use crate::run::Host;
use crate::stats::bootstrap::Estimate;

/// What is measured alone. Stored under its name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumCount, VariantArray, strum::Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Operation {
    /// The server's half of a TLS 1.3 handshake: from the client's first octets to its Finished verified.
    HandshakeServer,
    /// The client's half: from an empty connection to its Finished, the certificates verified.
    HandshakeClient,
    /// Both halves, with the copies between them.
    Handshake,
    /// Sealing a cookie.
    SealCookie,
    /// Sealing the eight cookies of a key exchange at once; the time is of all eight.
    SealEightCookies,
    /// Finding a cookie's key and opening it.
    OpenCookie,
    /// The same in a group of requests; the time is of one.
    OpenCookieInGroup,
    /// Verifying a request under AEAD_AES_SIV_CMAC_256.
    VerifySivCmac,
    /// The same in a group; the time is of one.
    VerifySivCmacInGroup,
    /// Signing a response with a fresh cookie in it under AEAD_AES_SIV_CMAC_256: sealing the cookie's field, with what
    /// stands before it as associated data.
    SignSivCmac,
    /// The same in a group; the time is of one.
    SignSivCmacInGroup,
    /// Verifying a request under AEAD_AES_128_GCM_SIV.
    VerifyGcmSiv,
    /// The same in a group; the time is of one.
    VerifyGcmSivInGroup,
    /// Signing a response under AEAD_AES_128_GCM_SIV.
    SignGcmSiv,
    /// The same in a group; the time is of one.
    SignGcmSivInGroup,
    /// Opening a small file, reading and closing it. It lies in the page cache; nothing of it is parsed.
    ReadFile,
    /// A get of the document of keys from memcached over loopback, on a connection that is open.
    MemcachedGet,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; Operation::COUNT] =
        *Operation::VARIANTS.first_chunk().expect("as many as there are");

    /// It in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::HandshakeServer => "TLS handshake, server\u{2019}s half",
            Operation::HandshakeClient => "TLS handshake, client\u{2019}s half",
            Operation::Handshake => "TLS handshake, both",
            Operation::SealCookie => "seal a cookie",
            Operation::SealEightCookies => "seal eight cookies",
            Operation::OpenCookie => "open a cookie",
            Operation::OpenCookieInGroup => "open a cookie, in a group",
            Operation::VerifySivCmac => "verify a request, AEAD 15",
            Operation::VerifySivCmacInGroup => "verify a request, AEAD 15, in a group",
            Operation::SignSivCmac => "sign a response, AEAD 15",
            Operation::SignSivCmacInGroup => "sign a response, AEAD 15, in a group",
            Operation::VerifyGcmSiv => "verify a request, AEAD 30",
            Operation::VerifyGcmSivInGroup => "verify a request, AEAD 30, in a group",
            Operation::SignGcmSiv => "sign a response, AEAD 30",
            Operation::SignGcmSivInGroup => "sign a response, AEAD 30, in a group",
            Operation::ReadFile => "read a small file",
            Operation::MemcachedGet => "a get from memcached",
        }
    }

    /// Which task measures it.
    #[must_use]
    pub const fn of(self) -> super::plan::Operations {
        match self {
            Operation::MemcachedGet => super::plan::Operations::Memcached,
            Operation::HandshakeServer
            | Operation::HandshakeClient
            | Operation::Handshake
            | Operation::SealCookie
            | Operation::SealEightCookies
            | Operation::OpenCookie
            | Operation::OpenCookieInGroup
            | Operation::VerifySivCmac
            | Operation::VerifySivCmacInGroup
            | Operation::SignSivCmac
            | Operation::SignSivCmacInGroup
            | Operation::VerifyGcmSiv
            | Operation::VerifyGcmSivInGroup
            | Operation::SignGcmSiv
            | Operation::SignGcmSivInGroup
            | Operation::ReadFile => super::plan::Operations::Computed,
        }
    }
}

/// What one operation takes, in nanoseconds: figures of the blocks' values, to hundredths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationTimes {
    /// Which one.
    pub operation: Operation,
    /// How many stand in a block; more than one where the clock would cost too much beside one.
    pub block: u32,
    /// How many blocks were timed, over all rounds.
    pub count: u64,
    /// The value that at most one in twenty is below. Percentiles are by nearest rank.
    pub p5_ns: f64,
    /// The median.
    pub p50_ns: f64,
    /// The arithmetic mean.
    pub mean_ns: f64,
    /// The value that at most one in twenty exceeds.
    pub p95_ns: f64,
    /// The median of each round, in the order of rounds.
    pub rounds_ns: Vec<f64>,
}

impl OperationTimes {
    /// The median of the rounds' medians, with its interval.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        Estimate::of(self.rounds_ns.iter().copied())
    }

    fn check(&self) -> Result<(), String> {
        let OperationTimes { block, count, p5_ns, p50_ns, mean_ns, p95_ns, rounds_ns, .. } = self;
        let all = [*p5_ns, *p50_ns, *p95_ns, *mean_ns];
        if all.iter().chain(rounds_ns).any(|ns| !(0.0..NS_MAX).contains(ns)) {
            return Err("a time cannot be".to_owned());
        }
        if *block == 0 || rounds_ns.is_empty() || *count < rounds_ns.len() as u64 {
            return Err("it has no block, no round, or more rounds than blocks".to_owned());
        }
        let [low, high] = ends(rounds_ns);
        // The median of all lies between medians of parts.
        match p5_ns <= p50_ns && p50_ns <= p95_ns && low <= *p50_ns && *p50_ns <= high {
            true => Ok(()),
            false => Err("its figures contradict each other".to_owned()),
        }
    }
}

/// The smallest and the largest of some values.
fn ends(values: &[f64]) -> [f64; 2] {
    values.iter().fold([f64::INFINITY, 0.0], |[low, high], &value| [value.min(low), value.max(high)])
}

/// No operation alone takes an hour.
const NS_MAX: f64 = 3.6e12;

/// Operations that were measured alone, on one thread, which has the processor that servers have in other tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-nts-operations/1")]
pub struct OperationsRecord {
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The command line that began the study.
    pub command: String,
    /// When the study was begun, in Unix seconds.
    pub started_unix_s: u64,
    /// The machine.
    pub host: Host,
    /// The name of the task that it is of.
    pub task: String,
    /// With which instructions AEADs are computed: `VAES-512`, `VAES-256`, `AES-NI`, or `portable`.
    pub path: String,
    /// How many requests make a group.
    pub group: u32,
    /// Which memcached was asked; null: none was.
    pub memcached: Option<String>,
    /// Octets of the file that was read, or of the document that memcached gave; null if there was neither.
    pub size: Option<u64>,
    /// What the clock shows of an empty block, in nanoseconds. It is subtracted from the time of each block.
    pub clock_ns: f64,
    /// What was measured.
    pub operations: Vec<OperationTimes>,
}

impl OperationsRecord {
    fn check(&self) -> Result<(), String> {
        let Some(Measure::Operations(of)) = Measure::of(&self.task) else {
            return Err(format!("task: {:?} is none that measures operations", self.task));
        };
        if self.operations.is_empty() || !(0.0..NS_MAX).contains(&self.clock_ns) || self.group == 0 {
            return Err("there is no operation, or clock_ns or group cannot be".to_owned());
        }
        for (index, times) in self.operations.iter().enumerate() {
            let operation = times.operation;
            times.check().map_err(|why| format!("operations, {operation}: {why}"))?;
            let is_again = self.operations[..index].iter().any(|other| other.operation == operation);
            if operation.of() != of || is_again {
                return Err(format!("operations, {operation}: it is not of this task, or there twice"));
            }
        }
        Ok(())
    }
}

crate::stored::stored!(
    OperationsRecord = "authentick-nts-operations/1",
    "a record of study run nts, operations alone",
    compact,
    OperationsRecord::check
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::nts::tests::operations;

    #[test]
    fn record_survives_its_file() {
        for task in ["operations", "operations-memcached"] {
            let record = operations(task);
            assert_eq!(OperationsRecord::from_json(&record.to_json()).unwrap(), record);
        }
        assert!(operations("operations").to_json().contains("\"operation\":\"open-cookie-in-group\""));
    }

    #[test]
    fn interval_is_of_the_medians_of_rounds() {
        let times = &operations("operations").operations[0];
        let estimate = times.estimate().unwrap();
        assert_eq!(estimate.median, times.p50_ns);
        let [low, high] = estimate.interval.unwrap();
        assert!(low < times.p50_ns && times.p50_ns < high, "{estimate:?}");
    }

    #[test]
    fn wrong_records_are_refused_with_the_reason() {
        type Change = fn(&mut OperationsRecord);
        let changes: [(Change, &str); 10] = [
            (|record| record.task = "operations-memcached".to_owned(), "not of this task"),
            (|record| record.task = "unloaded".to_owned(), "none that measures operations"),
            (|record| record.operations.clear(), "no operation"),
            (|record| record.group = 0, "group cannot be"),
            (|record| record.clock_ns = -1.0, "clock_ns"),
            (|record| record.operations[1].operation = Operation::HandshakeServer, "there twice"),
            (|record| record.operations[0].p5_ns = 1e9, "handshake-server: its figures contradict"),
            (|record| record.operations[0].rounds_ns.clear(), "no round"),
            (|record| record.operations[0].rounds_ns = vec![1.0], "contradict"),
            (|record| record.operations[0].mean_ns = NS_MAX, "a time cannot be"),
        ];
        for (change, part) in changes {
            let mut record = operations("operations");
            change(&mut record);
            let error = OperationsRecord::from_json(&record.to_json()).unwrap_err().to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
