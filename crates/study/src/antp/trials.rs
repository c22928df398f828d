//! What one measurement takes: a capacity, a trial of throughput, a trial of latency.
//!
//! Throughput is that of static packets, as the paper's; what is measured of latency are requests of further clients,
//! in the same process as the load where they ask the same over the same path, and in one of their own otherwise.

use std::time::Duration;

use authentick_report::load::Step;
use authentick_report::study::antp::{
    Capacity, Latency, Level, Parts, Path as Way, Phase, Subject, Times, Trial, why_invalid,
};
use authentick_rig::relay::{Nobody, Relay};

use super::bench::{BACKGROUND, BACKGROUND_END_MAX, Bench, Target, ended, public_key_seconds};
use super::tune;
use crate::program::{Launch, load_record, say};
use crate::tried::{Tried, until_valid};
use crate::{Error, Fault};

/// How often a trial is repeated until the generator has kept up.
const ATTEMPT_COUNT_MAX: u32 = 3;
const QUICK_ATTEMPT_COUNT_MAX: u32 = 2;
/// How often a run is repeated that the server did not answer, and how long it is left alone before.
const SILENCE_COUNT_MAX: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Clients that load the server, each with a port of its own.
const LOAD_CLIENTS: u32 = 256;
/// Requests in flight in the closed loop that comes before a search.
const WINDOW: u32 = 64;
/// From this share of what that had answered on a search goes up, but from no lower rate than the next.
const SEARCH_FROM_SHARE: f64 = 0.4;
const SEARCH_FROM_MIN_RPS: f64 = 10.0;
/// A search that ends below this share of it for the generator's sake has failed.
const CLOSED_SHARE_MIN: f64 = 0.5;
/// Clients whose latency is taken.
const MEASURED_CLIENTS: u32 = 16;
/// A background that had less than this share of its rate answered was another load than was meant.
const BACKGROUND_SHARE_MIN: f64 = 0.8;
/// How much longer than what it stands beside a background is to last, in seconds; it is stopped before.
const BACKGROUND_SPARE_SECONDS: f64 = 60.0;

impl Bench<'_> {
    /// Looks for a capacity. A closed loop finds out where to look.
    pub(super) fn search(&self, subject: Subject, path: Way) -> Result<Tried<Capacity>, Error> {
        self.answered(&mut || self.search_once(subject, path))
    }

    fn search_once(&self, subject: Subject, path: Way) -> Result<Option<Capacity>, Error> {
        let target = self.target(path)?;
        let mut words = self.words(subject, target.address);
        say(&mut words, "--step-seconds", &self.settings.search_seconds);
        say(&mut words, "--clients", &LOAD_CLIENTS);
        say(&mut words, "--server-pid", &target.pid);
        let (plain, mut closed) = (words.clone(), words.clone());
        say(&mut closed, "--closed", &WINDOW);
        let Some(step) = self.step(target.launch, &closed)? else { return Ok(None) };
        let closed_rps = step.answered_rps();
        let request_size = step.request_size;
        if self.settings.quick && closed_rps > 0.0 {
            let remark = format!("a closed loop of {WINDOW} requests in place of a search (--quick)");
            let (rps, window, remark) = (Some(closed_rps), Some(WINDOW), Some(remark));
            return Ok(Some(Capacity {
                subject,
                path,
                rps,
                window,
                request_size,
                remark,
                searched_rps: None,
            }));
        }
        words.push("--search".to_owned());
        say(&mut words, "--search-from", &(closed_rps * SEARCH_FROM_SHARE).max(SEARCH_FROM_MIN_RPS).round());
        let Some(record) = self.load(target.launch, &words)? else { return Ok(None) };
        let capacity = record.capacity.unwrap_or_default();
        let found = capacity.at_least;
        // What is to be known of a search is why it has no interval.
        let is_open = capacity.at_least.is_none() || capacity.below.is_none();
        let mut remark = record.search.filter(|_| is_open).and_then(|search| search.remark);
        // A search that the generator ended far below says nothing about the server.
        let failed = closed_rps > 0.0 && found.is_none_or(|rps| rps < closed_rps * CLOSED_SHARE_MIN);
        let (mut rps, mut window) = (found, None);
        if let Some(why) = remark.take_if(|_| failed) {
            (rps, window) = (Some(closed_rps), Some(WINDOW));
            remark = Some(format!(
                "a search found no more than {:.0}/s ({}); a closed loop of {WINDOW} requests stands in for it",
                found.unwrap_or(0.0),
                why.trim_end_matches('.')
            ));
        }
        let mut capacity = Capacity { subject, path, rps, window, request_size, remark, searched_rps: None };
        if window.is_none() && !self.tune(&mut capacity, target.launch, &plain)? {
            return Ok(None);
        }
        Ok(Some(capacity))
    }

    /// Lowers the rate that a search found to where the server is as busy as the paper's; `false` if it was stopped.
    fn tune(&self, capacity: &mut Capacity, launch: Launch<'_>, words: &[String]) -> Result<bool, Error> {
        let (mut tried, mut next) = (Vec::new(), capacity.rps);
        while let Some(rps) = next {
            let mut words = words.to_vec();
            say(&mut words, "--rate", &rps);
            let Some(step) = self.step(launch, &words)? else { return Ok(false) };
            let trial = Trial::of(capacity.subject, capacity.path, &step);
            // What the generator spoils tells nothing about a rate, and the one that was found stays.
            let Some(server_share) = trial.server_share.filter(|_| trial.why_invalid.is_none()) else {
                break;
            };
            tried.push(tune::Tried { rps, server_share, loss_ratio: trial.loss_ratio });
            next = tune::next_rps(&tried);
        }
        if let Some(best) = tune::best(&tried) {
            self.caller.console.note(&format!(
                "{}: {:.0}/s keep the server {:.0} % busy",
                capacity.subject,
                best.rps,
                best.server_share * 100.0
            ));
            capacity.searched_rps = capacity.rps.replace(best.rps);
        }
        Ok(true)
    }

    /// One trial of throughput.
    pub(super) fn throughput(&self, capacity: &Capacity, rps: f64) -> Result<Tried<Trial>, Error> {
        let (subject, path) = (capacity.subject, capacity.path);
        let Target { address, pid, launch } = self.target(path)?;
        let mut words = self.words(subject, address);
        match &capacity.window {
            Some(window) => say(&mut words, "--closed", window),
            None => say(&mut words, "--rate", &rps),
        }
        say(&mut words, "--step-seconds", &self.settings.trial_seconds);
        say(&mut words, "--clients", &LOAD_CLIENTS);
        say(&mut words, "--server-pid", &pid);
        self.until_valid(
            || {
                let before = public_key_seconds(pid);
                let Some(step) = self.step(launch, &words)? else { return Ok(None) };
                let mut trial = Trial::of(subject, path, &step);
                let used = public_key_seconds(pid).zip(before).map(|(after, before)| after - before);
                trial.public_key_share = used
                    .filter(|_| subject.phase == Phase::Exchange)
                    .map(|used| used.max(0.0) / step.seconds);
                Ok(Some(trial))
            },
            |trial| trial.why_invalid.as_deref(),
        )
    }

    /// One trial of latency, beside a load of `background_rps`.
    pub(super) fn latency(
        &self,
        subject: Subject,
        level: Level,
        path: Way,
        background_rps: f64,
    ) -> Result<Tried<Latency>, Error> {
        let background = subject.background();
        self.until_valid(
            || {
                let found = if background == subject && path == Way::Short {
                    self.beside_own(subject, background_rps)?
                } else {
                    self.beside_others(subject, background, path, background_rps)?
                };
                let Some((step, answered_rps)) = found else { return Ok(None) };
                let too_little = (answered_rps < background_rps * BACKGROUND_SHARE_MIN).then(|| {
                    format!("the background had {answered_rps:.0}/s answered instead of {background_rps:.0}")
                });
                Ok(Some(Latency {
                    subject,
                    background,
                    level,
                    path,
                    background_rps: answered_rps,
                    answered: step.tally.answered,
                    failed: step.tally.sent - step.tally.answered,
                    times: Times::of_histogram(&step.tally.histograms.latency_ns),
                    parts: (subject.phase == Phase::Complete).then(|| Parts::of(&step)).flatten(),
                    why_invalid: why_invalid(&step).or(too_little),
                }))
            },
            |latency| latency.why_invalid.as_deref(),
        )
    }

    /// Measured clients and load in one process.
    fn beside_own(&self, subject: Subject, rps: f64) -> Result<Option<(Step, f64)>, Error> {
        let mut words = self.words(subject, self.server_address());
        self.say_measured(&mut words);
        say(&mut words, "--background", &rps);
        let step = self.step(Launch::Here, &words)?;
        // The background begins before the step, so it is not divided by the step's time.
        Ok(step.map(|step| {
            let share = step.background.as_ref().filter(|tally| tally.scheduled > 0);
            let share = share.map_or(0.0, |tally| tally.answered as f64 / tally.scheduled as f64);
            (step, rps * share)
        }))
    }

    /// Measured clients in a process of their own, which may take another path than the load.
    fn beside_others(
        &self,
        subject: Subject,
        background: Subject,
        path: Way,
        rps: f64,
    ) -> Result<Option<(Step, f64)>, Error> {
        let (server, record) = (self.server_address(), self.background_record());
        let seconds = (self.settings.latency_seconds + BACKGROUND_SPARE_SECONDS).min(3600.0);
        let mut background_words = self.words(background, server);
        say(&mut background_words, "--rate", &rps);
        say(&mut background_words, "--step-seconds", &seconds);
        say(&mut background_words, "--clients", &LOAD_CLIENTS);
        say(&mut background_words, "--record", &record.display());
        let mut load = self.caller.program.background(&background_words)?;
        self.await_load(&mut load, rps, &background_words)?;
        // A trial has a path of its own, as a path has places for so many clients and does not know who has left.
        let one_way = Duration::from_secs_f64(self.settings.long_path_ms / 2e3);
        let relay = match path {
            Way::Short | Way::Gigabit => None,
            Way::Long => Some(Relay::on_loopback(0, server, one_way, Nobody)?),
        };
        let mut words = self.words(subject, relay.as_ref().map_or(server, Relay::address));
        self.say_measured(&mut words);
        let step = self.step(Launch::Here, &words)?;
        let lasted = ended(&mut load)?.is_none();
        let status = load.stop(BACKGROUND_END_MAX).map_err(Error::rig(BACKGROUND))?;
        let Some(step) = step else { return Ok(None) };
        let beside = load_record(&record).filter(|_| lasted);
        match beside.as_ref().and_then(|record| record.steps.first()) {
            Some(beside) => Ok(Some((step, beside.answered_rps()))),
            None if self.caller.says_stop() => Ok(None),
            None => Err(self.caller.program.nothing_came(BACKGROUND, status, &background_words)),
        }
    }

    fn say_measured(&self, words: &mut Vec<String>) {
        say(words, "--rate", &self.settings.measured_rps);
        say(words, "--step-seconds", &self.settings.latency_seconds);
        say(words, "--clients", &MEASURED_CLIENTS);
    }

    /// Repeats what says nothing about the server.
    fn until_valid<T>(
        &self,
        mut measure: impl FnMut() -> Result<Option<T>, Error>,
        why_invalid: impl Fn(&T) -> Option<&str>,
    ) -> Result<Tried<T>, Error> {
        let attempt_count = if self.settings.quick { QUICK_ATTEMPT_COUNT_MAX } else { ATTEMPT_COUNT_MAX };
        until_valid(&self.caller, attempt_count, || self.answered(&mut measure), why_invalid)
    }

    /// Repeats what the server did not answer, as one may not that has been overloaded. What it does not answer at all
    /// stays open.
    fn answered<T>(&self, measure: &mut impl FnMut() -> Result<Option<T>, Error>) -> Result<Tried<T>, Error> {
        let mut why = String::new();
        for _ in 0..SILENCE_COUNT_MAX {
            match measure() {
                Err(error) if error.fault() == Fault::Server => {
                    why = error.to_string();
                    self.caller.console.note(&format!("again, as nothing came of it: {why}"));
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
                Ok(Some(found)) => return Ok(Tried::Done(found)),
                Ok(None) => return Ok(Tried::Stopped),
            }
        }
        Ok(Tried::Silent(why))
    }
}
