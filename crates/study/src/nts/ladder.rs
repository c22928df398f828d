//! Ladders of loads: what a server serves, and what becomes of exchanges when more and more are asked of it.
//!
//! - here: a step. One load run offers it: the measured client beside the background, which begins first.
//! - `scale`: what the server of a ladder serves, and what follows for the rates of its steps.
//! - `record`: what a load run's record and rows say of a step.
//!
//! For each step a server and its store are started anew, and asked a few times before anything counts. The relay of
//! packets stays out of it: it would be a server of its own under such a load.

mod record;
mod scale;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_load::single::Rounds;
use authentick_report::load::span_rows::{self, SpanRow};
use authentick_report::load::{LoadRecord, Step};
use authentick_report::published::nts::LOAD_STEP_RPS;
use authentick_report::study::nts::{Ladder, Rung, ScaleRecord, Settings as NtsSettings, measured_of};

pub(super) use self::record::{rung_record, why_invalid};
use super::bench::{Bench, Loaded, NAME};
use crate::program::{load_record, say};
use crate::{Error, Fault};

/// How long the background is ahead of the measured client, in seconds: load's own lead.
const LEAD_SECONDS: f64 = 0.5;
/// What clients are more than would do if each was free when its time is up; and as many more at least.
const SPARE_CLIENTS: f64 = 1.1;
const SPARE_CLIENT_COUNT: f64 = 64.0;
/// Descriptors of a generator that are none of its clients' or of their connections'.
const OTHER_DESCRIPTORS: u64 = 256;
/// The measured client alone has this share of what its server serves.
const UNLOADED_SHARE: f64 = 1.0 / 40.0;
/// How long it is watched at least, in seconds.
const UNLOADED_SECONDS_MIN: f64 = 3.0;
/// The AEAD of the study: AEAD_AES_SIV_CMAC_256.
const AEAD: u16 = 15;

/// What became of a part of a ladder.
pub(super) enum Came<T> {
    /// It was measured.
    Measured(T),
    /// It was stopped.
    Stopped,
    /// It cannot be had here, and why: half a sentence.
    Impossible(String),
}

/// What a step offers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Offer {
    /// L, on the ladder's axis; `None`: the measured client alone, seldom.
    load_rps: Option<f64>,
    /// Key exchanges a second of the measured client, and of all others.
    measured_rps: f64,
    background_rps: f64,
}

/// What a step brought: its part of the load run's record, the server's and the client's times, and which memcached and
/// hosts it was measured with.
pub(super) struct Climbed {
    offer: Offer,
    step: Step,
    rows: Vec<SpanRow>,
    memcached: Option<String>,
    isolated: bool,
}

impl Offer {
    /// What the step `rung` of a ladder offers, whose server serves what `scale` says.
    pub(super) fn of(ladder: Ladder, rung: Rung, scale: &ScaleRecord, settings: &NtsSettings) -> Self {
        let load_rps = match (ladder, rung) {
            (_, Rung::Unloaded) => {
                let measured_rps = scale.capacity_rps * UNLOADED_SHARE;
                return Offer { load_rps: None, measured_rps, background_rps: 0.0 };
            }
            (Ladder::ToScale, Rung::Load(load)) => f64::from(load),
            (Ladder::WholeCore(_), Rung::Load(number)) => {
                scale.generator_rps * f64::from(number) / f64::from(settings.core_steps.max(1))
            }
        };
        // The next lower of the paper's loads says what the measured client has.
        let of_paper = (load_rps / f64::from(LOAD_STEP_RPS)).floor().max(1.0) as u32 * LOAD_STEP_RPS;
        let measured_rps = f64::from(measured_of(of_paper)).min(load_rps);
        Offer {
            load_rps: Some(load_rps),
            measured_rps: measured_rps * scale.factor,
            background_rps: (load_rps - measured_rps) * scale.factor,
        }
    }
}

/// Clients that are never too few for so many key exchanges a second, if each may hang until the deadline.
fn client_count(rps: f64, settings: &NtsSettings) -> f64 {
    let hanging = rps * settings.deadline_seconds.min(settings.step_seconds + LEAD_SECONDS);
    (hanging * SPARE_CLIENTS + SPARE_CLIENT_COUNT).ceil()
}

/// How many clients there is room for, each with a socket and a connection, among so many descriptors.
fn client_count_max(descriptors: Option<u64>) -> f64 {
    descriptors.map_or(f64::MAX, |count| count.saturating_sub(OTHER_DESCRIPTORS) as f64 / 2.0)
}

/// How many descriptors a load run may have: it takes as many as this process may ask for.
fn descriptors() -> Option<u64> {
    authentick_net::descriptors::raise_limit().ok().flatten()
}

impl Bench<'_> {
    /// One step of a ladder under such a quota.
    pub(super) fn climb(
        &self,
        ladder: Ladder,
        offer: Offer,
        quota_share: Option<f64>,
        settings: &NtsSettings,
    ) -> Result<Came<Climbed>, Error> {
        let loaded = match self.begin(ladder, quota_share)? {
            Ok(loaded) => loaded,
            Err(why) => return Ok(Came::Impossible(why)),
        };
        // The last of them counts, as somebody has to see that they are answered.
        let warm_ups = settings.warm_ups.saturating_sub(1);
        let rounds = Rounds { warm_ups, count: 1, interval: Duration::ZERO };
        if let Err(why) = loaded.ask(rounds, self.caller.stop)? {
            return Ok(Came::Impossible(format!("the server is not as it should be before the load: {why}")));
        }
        let rows = self.file("spans.csv");
        let words = self.mix(&loaded, offer, settings, &rows);
        let record = match self.load(&loaded, words)? {
            Came::Measured(record) => record,
            Came::Stopped => return Ok(Came::Stopped),
            Came::Impossible(why) => return Ok(Came::Impossible(why)),
        };
        let rows = span_rows::parse(&fs::read_to_string(&rows)?).map_err(Error::Bug)?;
        let Some(step) = record.steps.into_iter().next() else { return Ok(Came::Stopped) };
        let (memcached, isolated) = (self.memcached_of(ladder.store()), self.is_isolated());
        Ok(Came::Measured(Climbed { offer, step, rows, memcached, isolated }))
    }

    /// The arguments of a step's load run, all but its record.
    fn mix(&self, loaded: &Loaded<'_>, offer: Offer, settings: &NtsSettings, rows: &Path) -> Vec<String> {
        let Offer { measured_rps, background_rps, .. } = offer;
        let room = client_count_max(descriptors());
        let measured = client_count(measured_rps, settings).min(room / 2.0).max(1.0);
        let background = client_count(background_rps, settings).min(room - measured).max(1.0);
        let seconds = match offer.load_rps {
            Some(_) => settings.step_seconds,
            None => settings.step_seconds.max(UNLOADED_SECONDS_MIN),
        };
        let mut words = ["load".to_owned(), "mix".to_owned(), loaded.addresses.ntp.to_string()].to_vec();
        self.add_transfers(&mut words, loaded, settings);
        say(&mut words, "--rate", &measured_rps);
        say(&mut words, "--clients", &measured);
        if background_rps > 0.0 {
            say(&mut words, "--background", &background_rps);
            say(&mut words, "--background-clients", &background);
            say(&mut words, "--background-sources", &loaded.background);
        }
        say(&mut words, "--step-seconds", &seconds);
        say(&mut words, "--server-metrics", &loaded.addresses.metrics);
        say(&mut words, "--spans", &rows.display());
        self.add_trust(&mut words, loaded, settings);
        words
    }

    /// What follows a key exchange.
    fn add_transfers(&self, words: &mut Vec<String>, loaded: &Loaded<'_>, settings: &NtsSettings) {
        say(words, "--ke-port", &loaded.addresses.key_exchange.port());
        say(words, "--transfers-per-exchange", &settings.transfers);
        words.push("--same-cookie".to_owned());
    }

    /// What all load runs are told of their server.
    pub(super) fn add_trust(&self, words: &mut Vec<String>, loaded: &Loaded<'_>, settings: &NtsSettings) {
        say(words, "--ca", &self.identities.authority().display());
        say(words, "--server-name", &NAME);
        say(words, "--aead", &AEAD);
        say(words, "--ke-timeout", &settings.deadline_seconds);
        say(words, "--server-pid", &loaded.server.id());
    }

    /// Carries a load run out, and reads its record.
    pub(super) fn load(
        &self,
        loaded: &Loaded<'_>,
        mut words: Vec<String>,
    ) -> Result<Came<LoadRecord>, Error> {
        let file = self.file("run.json");
        // One of the run before is not taken for this one's.
        let _ = fs::remove_file(&file);
        say(&mut words, "--record", &file.display());
        let status = self.caller.load(loaded.launch(), &words)?;
        if self.caller.says_stop() {
            return Ok(Came::Stopped);
        }
        match load_record(&file) {
            Some(record) => Ok(Came::Measured(record)),
            None => match self.caller.program.nothing_came("a load run of the study", status, &words) {
                error if error.fault() == Fault::Server => Ok(Came::Impossible(error.to_string())),
                error => Err(error),
            },
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[cfg(test)]
mod tests;
