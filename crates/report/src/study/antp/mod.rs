//! The ANTP paper's measurements repeated: the stored record, version 1, with the results of each trial.
//!
//! - [`Plan`]: what the study is to measure, as its folder keeps it.
//! - `figures`: means over trials.
//! - `compare`: the ratios that the paper quotes, with their spread, or why there is none.
//! - `extrapolation`: the clients that one server can serve.
//! - `findings`: conclusions, in sentences.
//! - `tables`: Table 1's shape, the runs of all three phases, and the published ratios beside ours.
//! - `verdicts`: what became here of each result of the paper.
//! - [`report()`]: all of it.
//!
//! Each task of a study has a record with what it measured, so that an interrupted study can be resumed;
//! [`AntpRecord::merged`] makes one of them. A record keeps figures of each trial and no distributions.

mod compare;
mod extrapolation;
mod figures;
mod findings;
mod plan;
mod report;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod verdicts;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::plan::{Found, Measure, Plan, Settings};
pub use self::report::{report, report_on, sections};
use crate::load::{Histogram, Step};
use crate::run::Host;
use crate::stored::stored;

/// What is asked of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Time without authentication: what the paper compares with.
    Plain,
    /// m1 and m2.
    Negotiation,
    /// m3 and m4.
    Exchange,
    /// m5 and m6, with the tag in the answer.
    Time,
    /// The same with the tag in a packet that follows.
    SeparateTag,
    /// All three by one client, which does its own cryptography.
    Complete,
}

impl Phase {
    /// The name, as tables have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Plain => "plain NTP",
            Phase::Negotiation => "negotiation",
            Phase::Exchange => "key exchange",
            Phase::Time => "time synchronisation",
            Phase::SeparateTag => "the same, separate tag",
            Phase::Complete => "all three phases",
        }
    }
}

/// One of the paper's two suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suite {
    /// Static-ephemeral ECDH on P-256.
    Ecdh,
    /// RSA-2048 key transport.
    Rsa,
}

impl Suite {
    /// Both.
    pub const ALL: [Suite; 2] = [Suite::Ecdh, Suite::Rsa];

    /// The name, as tables have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Ecdh => "ECDH",
            Suite::Rsa => "RSA",
        }
    }
}

/// What lies between clients and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// The host's own, without delay.
    Short,
    /// One with a delay both ways.
    Long,
    /// A link of 1 Gbit/s without delay, as the paper's.
    Gigabit,
}

/// How much of the capacity is offered while latency is taken, as in
/// [`LOADS`](crate::published::antp::LOADS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// 50 % of it.
    Half,
    /// 90 % of it.
    Most,
}

impl Level {
    /// Both.
    pub const ALL: [Level; 2] = [Level::Half, Level::Most];

    /// The share of the capacity.
    #[must_use]
    pub const fn share(self) -> f64 {
        match self {
            Level::Half => crate::published::antp::LOADS[0],
            Level::Most => crate::published::antp::LOADS[1],
        }
    }
}

/// A row of Table 1: a phase, with its suite if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    /// The phase.
    pub phase: Phase,
    /// The suite; null where the phase is the same under all.
    pub suite: Option<Suite>,
}

impl Subject {
    /// Plain NTP.
    pub const PLAIN: Subject = Subject { phase: Phase::Plain, suite: None };
    /// Time synchronisation, which is the same under all suites.
    pub const TIME: Subject = Subject { phase: Phase::Time, suite: None };
    /// The same with the tag in a packet of its own.
    pub const SEPARATE_TAG: Subject = Subject { phase: Phase::SeparateTag, suite: None };

    /// What has a throughput, in the order of the table.
    pub const ALL: [Subject; 7] = [
        Subject::PLAIN,
        Subject::new(Phase::Negotiation, Suite::Ecdh),
        Subject::new(Phase::Negotiation, Suite::Rsa),
        Subject::new(Phase::Exchange, Suite::Ecdh),
        Subject::new(Phase::Exchange, Suite::Rsa),
        Subject::TIME,
        Subject::SEPARATE_TAG,
    ];

    /// A phase under a suite.
    #[must_use]
    pub const fn new(phase: Phase, suite: Suite) -> Self {
        Subject { phase, suite: Some(suite) }
    }

    /// What loads the server while this one's latency is taken: the same phase, and for complete runs time
    /// synchronisation.
    #[must_use]
    pub const fn background(self) -> Self {
        match self.phase {
            Phase::Complete => Subject::TIME,
            Phase::Plain | Phase::Negotiation | Phase::Exchange | Phase::Time | Phase::SeparateTag => self,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.suite {
            Some(suite) => write!(f, "{}, {}", self.phase.name(), suite.name()),
            None => f.write_str(self.phase.name()),
        }
    }
}

/// How much of a phase the server could do, as a search found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// What was asked.
    pub subject: Subject,
    /// Over which path: the short one, or one of 1 Gbit/s.
    pub path: Path,
    /// What trials offer, a second: the highest rate at which at most a hundredth was lost, or a lower one that keeps
    /// the server about as busy as the paper's was; null if none was found.
    pub rps: Option<f64>,
    /// What the search had found, if the rate was tuned after it.
    #[serde(default)]
    pub searched_rps: Option<f64>,
    /// Requests in flight, if a closed loop stands in for a search that failed for the generator's sake: `rps` is what
    /// it had answered, and trials are closed loops too.
    #[serde(default)]
    pub window: Option<u32>,
    /// Octets of the largest request as UDP payload.
    pub request_size: u32,
    /// A remark: why none was found, or that the generator and not the server was the limit.
    pub remark: Option<String>,
}

/// One trial of throughput, at the capacity that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What was asked.
    pub subject: Subject,
    /// Over which path.
    pub path: Path,
    /// Requests a second that were offered.
    pub offered_rps: f64,
    /// Answers a second that passed every check.
    pub answered_rps: f64,
    /// The share of requests without such an answer.
    pub loss_ratio: f64,
    /// The share of one processor that the server's process used; null if unknown.
    pub server_share: Option<f64>,
    /// The same of its threads for public keys alone; null if unknown.
    #[serde(default)]
    pub public_key_share: Option<f64>,
    /// Why the trial says nothing about the server; null if it does.
    pub why_invalid: Option<String>,
}

/// How long something took, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The arithmetic mean.
    pub mean_us: f64,
}

impl Times {
    /// Of values in nanoseconds; `None` if there are none.
    #[must_use]
    pub fn of_histogram(histogram: &Histogram) -> Option<Self> {
        let at = |share| histogram.quantile(share).map(|ns| ns as f64 / 1e3);
        Some(Times { p50_us: at(0.5)?, p99_us: at(0.99)?, mean_us: histogram.mean()? / 1e3 })
    }

    fn is_sound(&self) -> bool {
        let Times { p50_us, p99_us, mean_us } = *self;
        p50_us >= 0.0 && p50_us <= p99_us && p99_us.is_finite() && mean_us >= 0.0 && mean_us.is_finite()
    }
}

/// The parts of complete runs: what each took, between its first departure and its last arrival.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Phase 1.
    pub negotiation: Times,
    /// Phase 2.
    pub exchange: Times,
    /// Phase 3.
    pub time: Times,
    /// The three of a run added up.
    pub phases: Times,
    /// The client's own cryptography, certificates included.
    pub client_crypto: Times,
}

impl Parts {
    /// Of the complete runs of a step; `None` if it has none.
    #[must_use]
    pub fn of(step: &Step) -> Option<Self> {
        let of = &step.antp.as_ref()?.histograms;
        Some(Parts {
            negotiation: Times::of_histogram(&of.negotiation_ns)?,
            exchange: Times::of_histogram(&of.key_exchange_ns)?,
            time: Times::of_histogram(&of.time_ns)?,
            phases: Times::of_histogram(&of.phases_ns)?,
            client_crypto: Times::of_histogram(&of.client_crypto_ns)?,
        })
    }
}

/// One trial of latency: measured clients, beside others that load the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// What the measured clients asked.
    pub subject: Subject,
    /// What the others asked.
    pub background: Subject,
    /// How much of the background's capacity was offered.
    pub level: Level,
    /// Over which path the measured clients asked. The others always take the short one.
    pub path: Path,
    /// What the background had answered, a second.
    pub background_rps: f64,
    /// Operations of measured clients that were answered.
    pub answered: u64,
    /// Those that were not.
    pub failed: u64,
    /// How long the answered ones took; null if there were none.
    pub times: Option<Times>,
    /// The parts of complete runs; null for single phases.
    #[serde(default)]
    pub parts: Option<Parts>,
    /// Why the trial says nothing about the server; null if it does.
    pub why_invalid: Option<String>,
}

/// What the key encapsulation of a suite takes on this host, on one thread and without a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Primitive {
    /// The suite.
    pub suite: Suite,
    /// The operation of the crypto library that a server needs for a key exchange, in microseconds: P-256 agreement, or
    /// decryption with RSA-2048.
    pub library_us: f64,
    /// Our decapsulation, which contains it.
    pub decapsulation_us: f64,
    /// The client's encapsulation.
    pub encapsulation_us: f64,
}

stored!(AntpRecord = "authentick-antp-study/1", "a record of study run antp", pretty, AntpRecord::check);

/// What one task of a study has measured, or all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-antp-study/1")]
pub struct AntpRecord {
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The command line that began it.
    pub command: String,
    /// When it began, in Unix seconds.
    pub started_unix_s: u64,
    /// What it runs on.
    pub host: Host,
    /// How it is measured.
    pub settings: Settings,
    /// General remarks, in sentences: where server and generators run, what could not be measured.
    pub remarks: Vec<String>,
    /// What key encapsulation takes; empty until it is measured.
    pub primitives: Vec<Primitive>,
    /// What was found by searching.
    pub capacities: Vec<Capacity>,
    /// Trials of throughput.
    pub trials: Vec<Trial>,
    /// Trials of latency.
    pub latencies: Vec<Latency>,
}

impl AntpRecord {
    /// A record of this study without anything in it.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        AntpRecord {
            version: plan.version.clone(),
            commit: plan.commit.clone(),
            command: plan.command.clone(),
            started_unix_s: plan.started_unix_s,
            host: plan.machine.clone(),
            settings: plan.settings.clone(),
            remarks: Vec::new(),
            primitives: Vec::new(),
            capacities: Vec::new(),
            trials: Vec::new(),
            latencies: Vec::new(),
        }
    }

    /// All that the tasks of this study have measured, and what is to be said of it.
    #[must_use]
    pub fn merged(plan: &Plan, records: impl IntoIterator<Item = AntpRecord>) -> Self {
        let mut all = AntpRecord::of(plan);
        all.remarks.extend(plan.found.remarks.iter().cloned());
        all.remarks.extend(plan.gaps().into_iter().chain(plan.stolen()));
        for record in records {
            all.primitives.extend(record.primitives);
            all.capacities.extend(record.capacities);
            all.trials.extend(record.trials);
            all.latencies.extend(record.latencies);
        }
        all
    }

    /// What was found of a subject's capacity, if it was searched for.
    #[must_use]
    pub fn capacity(&self, subject: Subject, path: Path) -> Option<&Capacity> {
        self.capacities.iter().find(|capacity| (capacity.subject, capacity.path) == (subject, path))
    }

    /// The trials of a subject's throughput.
    pub fn trials(&self, subject: Subject, path: Path) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(move |trial| (trial.subject, trial.path) == (subject, path))
    }

    /// The trials of a subject's latency under a load of `background`.
    pub fn latencies(
        &self,
        subject: Subject,
        background: Subject,
        level: Level,
        path: Path,
    ) -> impl Iterator<Item = &Latency> {
        let wanted = (subject, background, level, path);
        let of = |latency: &Latency| (latency.subject, latency.background, latency.level, latency.path);
        self.latencies.iter().filter(move |latency| of(latency) == wanted)
    }

    fn check(&self) -> Result<(), String> {
        let positive = |number: f64| number > 0.0 && number.is_finite();
        let share = |number: f64| (0.0..=1.0).contains(&number);
        let rate = |number: f64| number >= 0.0 && number.is_finite();
        for Primitive { suite, library_us, decapsulation_us, encapsulation_us } in &self.primitives {
            if ![library_us, decapsulation_us, encapsulation_us].into_iter().all(|us| positive(*us)) {
                return Err(format!("primitives, {}: a time is not above zero", suite.name()));
            }
        }
        for capacity in &self.capacities {
            let Capacity { subject, path, rps, searched_rps, .. } = capacity;
            if !rps.iter().chain(searched_rps).all(|&rps| positive(rps)) {
                return Err(format!("capacities, {subject}: not above zero"));
            }
            if self.capacity(*subject, *path) != Some(capacity) {
                return Err(format!("capacities, {subject}: it is there twice"));
            }
        }
        for trial in &self.trials {
            let used = trial.server_share.iter().chain(&trial.public_key_share).all(|&share| rate(share));
            let rates = rate(trial.offered_rps) && rate(trial.answered_rps);
            if !rates || !share(trial.loss_ratio) || !used {
                return Err(format!("trials, {}: a rate or a share cannot be", trial.subject));
            }
        }
        for Latency { subject, times, parts, background_rps, .. } in &self.latencies {
            let parts = parts.iter().flat_map(|parts| {
                [parts.negotiation, parts.exchange, parts.time, parts.phases, parts.client_crypto]
            });
            if !parts.chain(*times).all(|times| times.is_sound()) || !rate(*background_rps) {
                return Err(format!("latencies, {subject}: times or a rate cannot be"));
            }
        }
        Ok(())
    }
}

impl Trial {
    /// What a step of a load run says of a subject's throughput.
    #[must_use]
    pub fn of(subject: Subject, path: Path, step: &Step) -> Self {
        let share = |seconds: f64| (step.seconds > 0.0).then(|| seconds / step.seconds);
        Trial {
            subject,
            path,
            offered_rps: step.rate_rps(),
            answered_rps: step.answered_rps(),
            loss_ratio: step.tally.loss_ratio(),
            server_share: step.server.and_then(|used| share(used.cpu_seconds)),
            public_key_share: None,
            why_invalid: why_invalid(step),
        }
    }
}

/// Why a step says nothing about the server, if so.
#[must_use]
pub fn why_invalid(step: &Step) -> Option<String> {
    (!step.valid).then(|| crate::load::why(step.why_invalid.as_ref()).to_owned())
}
