//! The records of a ladder of loads: what its server serves, and what each step brought.
//!
//! Rates are those of this machine; only [`RungRecord::load_rps`] is on the paper's axis. Client and server times are
//! of the measured client alone. The server's times are without what the readings of its clock cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Ladder, Measure, Rung, Times};
use crate::load::{Cause, Tally, counts};
use crate::published::nts::CAPACITY_RPS;
use crate::run::Host;

/// What the server of a ladder serves, and what follows for the rates of the ladder's steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-nts-scale/1")]
pub struct ScaleRecord {
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
    /// Whether client and server are hosts of their own, by namespaces; false: they share this machine's loopback.
    pub isolated: bool,
    /// Which memcached holds the keys; null: a file does.
    pub memcached: Option<String>,
    /// Key exchanges a second that the server serves with a whole core; null if the generator cannot offer as many.
    pub whole_core_rps: Option<f64>,
    /// Key exchanges a second that the generator can offer and follow to their ends.
    pub generator_rps: f64,
    /// How many descriptors a process may have open, which bounds exchanges on their way; null: nobody knows.
    pub descriptors: Option<u64>,
    /// The share of a core that the server of the ladder has, from 0 to 1; null: a whole core.
    pub quota_share: Option<f64>,
    /// Key exchanges a second that it serves with that: S.
    pub capacity_rps: f64,
    /// Key exchanges a second here for each of the paper's axis: S/2,000 to scale, 1 on a whole core.
    pub factor: f64,
}

/// What became of operations of a step: scheduled = answered + the sum of `causes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// Operations that were due.
    pub scheduled: u64,
    /// Operations that began.
    pub sent: u64,
    /// Those that ended well, in time.
    pub answered: u64,
    /// How many did not, by class.
    #[serde(deserialize_with = "counts")]
    pub causes: BTreeMap<Cause, u64>,
}

/// The measures of a step, by the equations and as the study's program took them; null where there is no value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RungTimes {
    /// d_CKE, of exchanges that ended well: from before the connection to cookies parsed.
    pub d_cke: Option<Times>,
    /// d_CNTS, of transfers that ended well: from before the request is built to the answer authenticated.
    pub d_cnts: Option<Times>,
    /// d_SKE by the equations: from accept to sealed cookies.
    pub d_ske: Option<Times>,
    /// d_SKE as their program took it: from the parsed request to the response with all cookies.
    pub d_ske_of_program: Option<Times>,
    /// d_SNTP: parsing, and building the header.
    pub d_sntp: Option<Times>,
    /// d_SNTS by the equations: opening, verifying, sealing.
    pub d_snts: Option<Times>,
    /// d_SNTS as their program took it: also the fresh cookie, but without the file that it read.
    pub d_snts_of_program: Option<Times>,
}

/// A step of a ladder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-nts-rung/1")]
pub struct RungRecord {
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
    /// L, key exchanges a second on the ladder's axis: the paper's to scale, this machine's on a whole core. Null: the
    /// measured client alone, seldom.
    pub load_rps: Option<f64>,
    /// Key exchanges a second here for each of the ladder's axis; 1 on a whole core.
    pub factor: f64,
    /// Key exchanges a second that the measured client was to begin.
    pub measured_rps: f64,
    /// The same of all other clients.
    pub background_rps: f64,
    /// How long they did, in seconds.
    pub seconds: f64,
    /// Whether client and server are hosts of their own, by namespaces; false: they share this machine's loopback.
    pub isolated: bool,
    /// Which memcached holds the keys; null: a file does.
    pub memcached: Option<String>,
    /// The share of a core that the server has, from 0 to 1; null: a whole core.
    pub quota_share: Option<f64>,
    /// Key exchanges of the measured client.
    pub exchanges: Outcomes,
    /// Its transfers.
    pub transfers: Outcomes,
    /// Key exchanges of the background; null if there was none.
    pub background: Option<Outcomes>,
    /// Connections that found the server's accept queue full (ListenOverflows); null: nobody knows.
    pub accept_overflows: Option<u64>,
    /// Connections that the server's kernel dropped before they were accepted, those among them (ListenDrops).
    pub accept_drops: Option<u64>,
    /// SYNs that clients sent again (TCPSynRetrans).
    pub syn_repeats: Option<u64>,
    /// Share of the step for which the server's busiest thread ran, from 0 to 1: of a core, and not of its quota. Null:
    /// nobody knows.
    pub server_share: Option<f64>,
    /// Share of the step in which its quota kept the server from running.
    pub throttled_share: Option<f64>,
    /// Share of its time in which the busiest sending thread of the generator had something to do.
    pub generator_busy_share: Option<f64>,
    /// How late exchanges began: the 99th percentile, in microseconds.
    pub lateness_p99_us: Option<f64>,
    /// What one reading of the server's clock costs, in nanoseconds; it is subtracted from the server's times.
    pub clock_ns: Option<u64>,
    /// Exchanges and transfers of the measured client whose both ends are known.
    pub joined: u64,
    /// Those of which the server has no record.
    pub unmatched: u64,
    /// Why the step says nothing about the server, in half a sentence; null if it does.
    pub why_invalid: Option<String>,
    /// Times of the measured client.
    pub times: RungTimes,
}

impl From<&Tally> for Outcomes {
    fn from(tally: &Tally) -> Self {
        let Tally { scheduled, sent, answered, ref causes, .. } = *tally;
        Outcomes { scheduled, sent, answered, causes: causes.clone() }
    }
}

impl Outcomes {
    /// How many did not end well.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.causes.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// How many ended so.
    #[must_use]
    pub fn of(&self, cause: Cause) -> u64 {
        self.causes.get(&cause).copied().unwrap_or(0)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let Outcomes { scheduled, sent, answered, .. } = *self;
        let is_sound = answered.checked_add(self.failed()) == Some(scheduled);
        match is_sound && answered <= sent && sent <= scheduled {
            true => Ok(()),
            false => Err("its counts do not add up".to_owned()),
        }
    }
}

impl RungTimes {
    /// All of them, by the names that they have in a record.
    pub(super) const fn named(&self) -> [(&'static str, Option<&Times>); 7] {
        let RungTimes { d_cke, d_cnts, d_ske, d_ske_of_program, d_sntp, d_snts, d_snts_of_program } = self;
        [
            ("d_cke", d_cke.as_ref()),
            ("d_cnts", d_cnts.as_ref()),
            ("d_ske", d_ske.as_ref()),
            ("d_ske_of_program", d_ske_of_program.as_ref()),
            ("d_sntp", d_sntp.as_ref()),
            ("d_snts", d_snts.as_ref()),
            ("d_snts_of_program", d_snts_of_program.as_ref()),
        ]
    }

    /// Nobody has more values than operations that ended well.
    fn check(&self, exchanges: u64, transfers: u64) -> Result<(), String> {
        for (name, times) in self.named() {
            let Some(times) = times else { continue };
            times.check().map_err(|why| format!("times.{name}: {why}"))?;
            let is_of_exchanges = name.starts_with("d_cke") || name.starts_with("d_ske");
            let most = if is_of_exchanges { exchanges } else { transfers };
            if times.count > most {
                return Err(format!("times.{name}: {} values, and {most} ended well", times.count));
            }
        }
        let is_ordered = |part: &Option<Times>, whole: &Option<Times>| match (part, whole) {
            (Some(part), Some(whole)) => part.count != whole.count || part.p50_ns <= whole.p50_ns,
            (_, None) | (None, _) => true,
        };
        match is_ordered(&self.d_snts, &self.d_snts_of_program) {
            true => Ok(()),
            false => Err("times: d_SNTS with a fresh cookie is shorter than without".to_owned()),
        }
    }
}

/// Numbers that are shares lie between 0 and 1, others are at least zero.
pub(super) fn bounded(shares: &[(&str, Option<f64>)], others: &[(&str, Option<f64>)]) -> Result<(), String> {
    let wrong = |&&(_, value): &&(&str, Option<f64>), most: f64| {
        value.is_some_and(|value| !(0.0..=most).contains(&value))
    };
    let share = shares.iter().find(|named| wrong(named, 1.0));
    match share.or_else(|| others.iter().find(|named| wrong(named, f64::MAX))) {
        Some((name, _)) => Err(format!("{name}: it cannot be")),
        None => Ok(()),
    }
}

/// How far a stored quotient may be from one that is computed again.
const CLOSE: f64 = 1e-6;

fn is_close(left: f64, right: f64) -> bool {
    (left - right).abs() <= right.abs() * CLOSE
}

impl ScaleRecord {
    fn check(&self) -> Result<(), String> {
        let ScaleRecord { quota_share, capacity_rps, factor, .. } = *self;
        let Some(Measure::Scale(ladder)) = Measure::of(&self.task) else {
            return Err(format!("task: {:?} is none that finds out a scale", self.task));
        };
        let rates = [
            ("whole_core_rps", self.whole_core_rps),
            ("generator_rps", Some(self.generator_rps)),
            ("capacity_rps", Some(capacity_rps)),
        ];
        bounded(&[("quota_share", quota_share)], &rates)?;
        let expected = match ladder {
            Ladder::ToScale => capacity_rps / f64::from(CAPACITY_RPS),
            Ladder::WholeCore(_) => 1.0,
        };
        match quota_share.is_some() == (ladder == Ladder::ToScale)
            && capacity_rps > 0.0
            && is_close(factor, expected)
        {
            true => Ok(()),
            false => Err("quota_share, capacity_rps and factor do not fit each other".to_owned()),
        }
    }
}

impl RungRecord {
    /// The ladder and the step that it is of; `None` of a record that nobody checked.
    #[must_use]
    pub fn place(&self) -> Option<(Ladder, Rung)> {
        match Measure::of(&self.task)? {
            Measure::Rung(ladder, rung) => Some((ladder, rung)),
            Measure::Cell(_)
            | Measure::Operations(_)
            | Measure::Scale(_)
            | Measure::Sessions(_)
            | Measure::Rates(_) => None,
        }
    }

    fn check(&self) -> Result<(), String> {
        let Some((ladder, rung)) = self.place() else {
            return Err(format!("task: {:?} is none of a ladder", self.task));
        };
        let is_of_task = match (ladder, rung, self.load_rps) {
            (_, Rung::Unloaded, load) => load.is_none(),
            (Ladder::ToScale, Rung::Load(load), Some(stored)) => is_close(stored, f64::from(load)),
            (Ladder::WholeCore(_), Rung::Load(_), Some(stored)) => stored > 0.0,
            (_, Rung::Load(_), None) => false,
        };
        if !is_of_task || (ladder == Ladder::ToScale) != self.quota_share.is_some() {
            return Err("task, load_rps and quota_share do not fit each other".to_owned());
        }
        bounded(
            &[
                ("quota_share", self.quota_share),
                ("throttled_share", self.throttled_share),
                ("generator_busy_share", self.generator_busy_share),
            ],
            &[
                ("load_rps", self.load_rps),
                ("factor", Some(self.factor)),
                ("measured_rps", Some(self.measured_rps)),
                ("background_rps", Some(self.background_rps)),
                ("seconds", Some(self.seconds)),
                ("server_share", self.server_share),
                ("lateness_p99_us", self.lateness_p99_us),
            ],
        )?;
        let named = |name: &'static str| move |why: String| format!("{name}: {why}");
        self.exchanges.check().map_err(named("exchanges"))?;
        self.transfers.check().map_err(named("transfers"))?;
        self.background.as_ref().map_or(Ok(()), Outcomes::check).map_err(named("background"))?;
        let (exchanges, transfers) = (self.exchanges.answered, self.transfers.answered);
        self.times.check(exchanges, transfers)?;
        match exchanges.checked_add(transfers).is_some_and(|most| self.joined <= most) {
            true => Ok(()),
            false => Err("joined: there are not as many exchanges and transfers".to_owned()),
        }
    }
}

crate::stored::stored!(
    ScaleRecord = "authentick-nts-scale/1",
    "a record of study run nts, what a server serves",
    compact,
    ScaleRecord::check
);

crate::stored::stored!(
    RungRecord = "authentick-nts-rung/1",
    "a record of study run nts, a step of a ladder",
    compact,
    RungRecord::check
);

#[cfg(test)]
mod tests;
