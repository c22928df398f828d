//! The stored format of a load run, version 2: JSON with counts and histograms of every step. Version 1 is read too.
//!
//! Two sums hold in every [`Tally`], and [`LoadRecord::from_json`] refuses a record in which one does not:
//! scheduled = sent + skipped, and sent = answered + lost + invalid. It also refuses distributions that do not fit
//! these counts, shares outside 0 to 1, and a capacity whose ends are crossed (`check`). Times are in nanoseconds where
//! a name ends in `_ns`, in microseconds where it ends in `_us`. Fields that are not known are ignored, and causes that
//! are not known are read as [`Cause::Unknown`]: both may be added within a version.

mod antp;
pub mod ceiling;
mod check;
pub mod compare;
pub mod csv;
mod histogram;
mod interruption;
mod interval;
mod limit;
mod report;
mod scheme;
mod search;
pub mod span_rows;
mod stress;
mod tally;
pub mod text;
mod threshold;
mod version1;
mod words;

use serde::{Deserialize, Serialize};

pub use self::antp::{AntpFigures, AntpHistograms, AntpParameters};
pub use self::histogram::{Histogram, Percentiles, Point};
pub use self::interruption::Interruption;
pub use self::interval::Interval;
pub use self::limit::{Capacity, Drops, Evidence, Limit, Second, Stalls, Throughput, Traffic, Verdict};
pub use self::report::report;
pub use self::scheme::Scheme;
pub use self::search::{Excluded, Exclusion, Finding, Sample};
pub use self::stress::StressReport;
pub(crate) use self::tally::counts;
pub use self::tally::{Backlog, Cause, Histograms, Operation, Stray, Tally};
pub use self::threshold::{Threshold, ThresholdError};
pub(crate) use self::words::{shares_host, why};
use crate::run::{self, Host};
use crate::stored::stored;

/// What one load run offered to a server, and the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-load/2")]
pub struct LoadRecord {
    /// The command line that made the run.
    pub command: String,
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// When the run started, in Unix seconds.
    pub started_unix_s: u64,
    /// The machine of the generator; of the one that coordinates, if there are several.
    pub host: Host,
    /// A label for the network path between generator and server: `loopback`, `local`, or `network`.
    pub path: String,
    /// What was offered: the name of a [`Scheme`], or of one that is not known yet.
    pub scheme: String,
    /// The algorithm that authenticates, such as `AEAD_AES_SIV_CMAC_256`; `none` for plain NTP.
    pub authentication: String,
    /// The server, as it was named.
    pub target: String,
    /// What its user calls the server, in legends and comparisons; absent if nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_label: Option<String>,
    /// Its address and port, of the key exchange for `ke`.
    pub address: String,
    /// How packets were sent and received, such as `sockets`.
    pub engine: String,
    /// How the load was shaped.
    pub parameters: Parameters,
    /// Whether client and server read the same clock, so that the true offset is zero; `false`: it is unknown.
    pub shared_clock: bool,
    /// What was measured, in the order of measuring.
    pub steps: Vec<Step>,
    /// The interval in which the capacity lies; absent unless it was searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// How the search found it; null without a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// Why the run ended before its last step; absent if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interruption>,
    /// Whether it ended before its last step by its own rule, [`Parameters::stop_at_loss`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub collapsed: bool,
}

stored!(
    LoadRecord = "authentick-load/2", "a load record", compact, check::record,
    "authentick-load/1" => version1::convert
);

/// Whether a field says what its absence says too.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// How the load was shaped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// `constant`, `exponential` or `closed`.
    pub arrivals: String,
    /// Requests that each worker keeps in flight; null for an open loop.
    #[serde(default)]
    pub window: Option<u32>,
    /// How long each step offers load, in seconds.
    pub step_seconds: f64,
    /// How long it offers the same load before that, which counts nowhere; in seconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub warm_up_seconds: f64,
    /// The run ends after two steps in a row with a higher loss, a share of what was sent; absent: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_at_loss: Option<f64>,
    /// Simulated clients, each with a port, keys and cookies of its own.
    pub clients: u32,
    /// Prefix of the clients' addresses; null: the host's choice.
    #[serde(default)]
    pub sources: Option<String>,
    /// Addresses of the clients that are not measured; absent: as those of the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background_sources: Vec<String>,
    /// Threads that send, on each host.
    pub workers: u32,
    /// How long a request waits for its answer, in seconds.
    pub timeout_seconds: f64,
    /// How long a key exchange may take, in seconds.
    pub ke_timeout_seconds: f64,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Whether one cookie of each client was sent again and again, which no client does: cheaper to offer.
    #[serde(default)]
    pub replay_cookie: bool,
    /// Transfers for each key exchange; null unless the scheme mixes them.
    #[serde(default)]
    pub transfers_per_exchange: Option<u32>,
    /// Whether these transfers shared one cookie, as in the NTS study.
    #[serde(default)]
    pub same_cookie: bool,
    /// Transfers for each key exchange of the background; absent: as many as for the measured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_transfers: Option<u32>,
    /// Simulated clients of the background; absent: as many as are measured, or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_clients: Option<u32>,
    /// How ANTP was used; absent for other schemes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub antp: Option<AntpParameters>,
    /// Requests a second of clients that are not measured, beside the measured ones.
    #[serde(default)]
    pub background_rps: f64,
    /// Agents that took part; empty: this host alone.
    #[serde(default)]
    pub agents: Vec<String>,
}

/// One rate, offered for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Requests a second that were to be sent, by measured clients alone; key exchanges a second for `ke` and `mix`;
    /// null for a closed loop, which has no rate of its own.
    pub offered_rps: Option<f64>,
    /// How long they were sent, in seconds.
    pub seconds: f64,
    /// What became of the measured operations that the scheme is named for: key exchanges for `ke`, `mix` and
    /// `antp-exchange`, negotiations for `antp-negotiate`, whole runs for `antp-full`, transfers of time otherwise.
    #[serde(flatten)]
    pub tally: Tally,
    /// What became of the other kind: key exchanges that NTS clients needed, transfers that followed an exchange of
    /// `mix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accompanying: Option<Tally>,
    /// The operations of the background, in counts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Tally>,
    /// The other kind of operations of the background, in counts only: its key exchanges, or its transfers after them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_accompanying: Option<Tally>,
    /// Whether the generator did its part, so that the figures say something about the server.
    pub valid: bool,
    /// Whether what was answered and lost says something about the server although requests left late, so that
    /// latencies do not. Absent: as `valid` has it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub loss_valid: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_invalid: Option<String>,
    /// What of the step is missing, and why: whole sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What limited it; absent in records of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Verdict>,
    /// What is known of the generator's hosts; absent in records of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Counts and latencies of each second, warm-up excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Second>,
    /// Share of its time in which the busiest sending thread had something to do; null if it sent nothing.
    #[serde(default)]
    pub generator_busy_share: Option<f64>,
    /// How late requests were sent.
    pub lateness_us: Option<Percentiles>,
    /// Octets of the largest request as UDP payload; with it a reader can work out the wire's ceilings. 0: TCP.
    pub request_size: u32,
    /// Octets of the largest answer that passed every check as UDP payload, all datagrams of it together: more than a
    /// request has would let strangers amplify what they send. 0: TCP, no answer, or not known, as in older records.
    #[serde(default)]
    pub response_size: u32,
    /// What the server's processes used; null unless they were named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerUse>,
    /// Phases and the client's own cryptography; absent for schemes other than those of ANTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub antp: Option<AntpFigures>,
    /// The server's own times, joined to the client's; absent unless they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Spans>,
    /// A part for each host; empty if there was one only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostPart>,
}

/// What the server's processes used during a step: sums over all of them, and shares of their busiest thread, the one
/// that was ready to run for longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    /// Processor time in user and kernel mode, in seconds.
    pub cpu_seconds: f64,
    /// That time for each operation that it completed, background and accompanying ones included; null if none was.
    pub cpu_us_per_request: Option<f64>,
    /// Resident memory at the end, in octets.
    pub resident_size: u64,
    /// Share of the step in which its busiest thread ran, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread_share: Option<f64>,
    /// Share of the step in which that thread was ready to run and had no processor, as others had it or its quota was
    /// used up; null if the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_share: Option<f64>,
    /// Share of the step in which a quota kept the process from running, added up over processors, at most 1; null if
    /// the host does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_share: Option<f64>,
    /// Share of the step in which the process was stopped by a signal, by samples; null if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_share: Option<f64>,
    /// What its host counted of UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

/// Server and client times of the same exchanges: the measures of the NTS study, section III.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spans {
    /// Exchanges of which both sides are known.
    pub joined: u64,
    /// Exchanges of the client for which the server has no record.
    pub unmatched: u64,
    /// Exchanges that nobody tried to join: those above are a sample of all, as there were too many.
    #[serde(default, skip_serializing_if = "is_default")]
    pub left_out: u64,
    /// What one reading of the server's clock costs, which is subtracted from the server's times: once from each of its
    /// stages, never below zero. Absent: the server does not tell, and nothing is subtracted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ns: Option<u64>,
    /// The server timed one request for time in so many; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u32>,
    /// d_CKE = t4 - t1.
    pub d_cke_ns: Histogram,
    /// d_CNTS = t10 - t5.
    pub d_cnts_ns: Histogram,
    /// d_SKE = t3 - t2, from the accepted connection.
    pub d_ske_ns: Histogram,
    /// d_SNTP: from the datagram in user space to the header: parsing, building.
    pub d_sntp_ns: Histogram,
    /// d_SNTS: opening, verifying, sealing.
    pub d_snts_ns: Histogram,
    /// d_CNTP = d_CNTS - d_SNTS for each exchange, equation (6).
    pub d_cntp_ns: Histogram,
}

/// One host's share of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostPart {
    /// The agent's address.
    pub name: String,
    /// The version of authentick that it runs; absent if it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The model of its processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// How many processors it could use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_count: Option<u32>,
    /// How many processors its host had online.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online_cpu_count: Option<u32>,
    /// The quota of its control group in thousandths of a processor; absent: none, or it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota_millicpus: Option<u32>,
    /// Name and release of its kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Share of its time in which its busiest sending thread had something to do, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// What it should offer.
    pub offered_rps: Option<f64>,
    /// The results; histograms are merged into the step's and omitted here.
    #[serde(flatten)]
    pub tally: Tally,
    /// Whether this host did its part.
    pub valid: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_invalid: Option<String>,
    /// How much later than the common instant it began, in microseconds, by the coordinator's clock; may be negative.
    pub start_skew_us: f64,
    /// How far that may be off: half the round trip to the agent.
    pub start_skew_error_us: f64,
}

/// How a search found its result, which is the record's `capacity`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The share of requests that may go unanswered, such as 0.01.
    pub loss_max: f64,
    /// Valid trials at the highest rate that held, the lower end of the record's capacity.
    pub trial_count: u32,
    /// How many of them held.
    pub held_count: u32,
    /// An interval that holds the true loss at that rate with this confidence.
    pub confidence: f64,
    /// Its lower end, a share.
    pub loss_low: f64,
    /// Its upper end, a share.
    pub loss_high: f64,
    /// Samples of fresh trials by which both ends were decided, in the order of measuring; empty in records of
    /// version 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// Trials that say nothing about the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<Excluded>,
    /// The most trials that the search would have made; absent in records of version 1, and since searches have a
    /// budget of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial_count_max: Option<u32>,
    /// How long it could take, in seconds; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_seconds: Option<f64>,
    /// About so much was lost at every rate that was tried, a share above the tolerated one; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_loss: Option<f64>,
    /// The result in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

impl LoadRecord {
    /// What its figures count. A scheme that is not known here comes from a later version, and is of transfers.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.scheme.parse().map_or(Operation::Transfer, Scheme::operation)
    }

    /// The highest rate that a search found the server to carry, requests a second; `None` unless one found it.
    #[must_use]
    pub fn capacity_rps(&self) -> Option<f64> {
        self.capacity?.at_least
    }

    /// The highest rate that was offered and shown to hold, requests a second. What was answered a second is less where
    /// the generator stood still.
    #[must_use]
    pub fn held_rps(&self) -> Option<f64> {
        let samples = self.search.iter().flat_map(|search| &search.samples);
        let held = samples.filter(|sample| sample.finding == Finding::Holds).map(|sample| sample.rate_rps);
        held.reduce(f64::max).or(self.capacity_rps())
    }

    /// The server's name for a reader: its label, or what it was named when it was loaded.
    #[must_use]
    pub fn server(&self) -> &str {
        self.server_label.as_deref().unwrap_or(&self.target)
    }

    /// The scheme's name for a reader: `plain`, `nts (AEAD_AES_SIV_CMAC_256)`.
    #[must_use]
    pub fn label(&self) -> String {
        run::label(&self.scheme, &self.authentication)
    }

    /// The valid step that had the most answers a second; `None` if no step is valid.
    #[must_use]
    pub fn highest_answered(&self) -> Option<&Step> {
        let valid = self.steps.iter().filter(|step| step.valid);
        valid.max_by(|left, right| left.answered_rps().total_cmp(&right.answered_rps()))
    }
}

impl Search {
    /// Whether fresh samples decided, as in all records but those of version 1.
    pub(crate) const fn is_of_samples(&self) -> bool {
        self.trial_count_max.is_some() || self.budget_seconds.is_some()
    }
}

impl Step {
    /// Whether what was answered and lost says something about the server.
    #[must_use]
    pub const fn counts_losses(&self) -> bool {
        self.valid || self.loss_valid
    }

    /// Whether the two sums hold in every tally.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let others =
            [&self.accompanying, &self.background, &self.background_accompanying].into_iter().flatten();
        let hosts = self.hosts.iter().map(|part| &part.tally);
        std::iter::once(&self.tally).chain(others).chain(hosts).all(Tally::adds_up)
    }

    /// Answers a second that passed every check: of an open loop those to what was due in the measured time, whenever
    /// they came, so that they compare with what was offered; of a closed loop those that came within that time, as it
    /// is their coming that has the next operation begin.
    #[must_use]
    pub fn answered_rps(&self) -> f64 {
        self.answered_rps_of(&self.tally)
    }

    /// The same of one host's part of the step.
    #[must_use]
    pub fn answered_rps_of(&self, tally: &Tally) -> f64 {
        self.per_second(match self.offered_rps {
            Some(_) => tally.answered,
            None => tally.answered_within(),
        })
    }

    /// Requests a second that were sent.
    #[must_use]
    pub fn sent_rps(&self) -> f64 {
        self.per_second(self.tally.sent)
    }

    /// The rate that identifies the step: the offered one, or what a closed loop sent; requests a second.
    #[must_use]
    pub fn rate_rps(&self) -> f64 {
        self.offered_rps.unwrap_or_else(|| self.sent_rps())
    }

    /// `number` by the seconds of the step; 0 if it has none.
    #[must_use]
    pub fn per_second(&self, number: u64) -> f64 {
        if self.seconds > 0.0 { number as f64 / self.seconds } else { 0.0 }
    }
}

/// One of the measures of [`Spans`].
#[derive(Clone, Copy, Debug)]
pub struct Measure<'a> {
    /// The study's name for it.
    pub name: &'static str,
    /// What it measures, in a few words.
    pub meaning: &'static str,
    /// How long it took, in nanoseconds.
    pub times_ns: &'a Histogram,
}

impl Spans {
    /// The six measures, in the study's order.
    #[must_use]
    pub fn measures(&self) -> [Measure<'_>; 6] {
        let measure = |name, meaning, times_ns| Measure { name, meaning, times_ns };
        [
            measure("d_CKE", "client: key exchange", &self.d_cke_ns),
            measure("d_CNTS", "client: authenticated transfer of time", &self.d_cnts_ns),
            measure("d_SKE", "server: key exchange", &self.d_ske_ns),
            measure("d_SNTP", "server: parsing, building the header", &self.d_sntp_ns),
            measure("d_SNTS", "server: opening, verifying, sealing", &self.d_snts_ns),
            measure("d_CNTP", "client: d_CNTS - d_SNTS", &self.d_cntp_ns),
        ]
    }

    /// Those that tell something of a run of this scheme: plain NTP has neither key exchange nor authentication.
    pub(crate) fn shown(&self, scheme: &str) -> impl Iterator<Item = Measure<'_>> {
        let is_plain = scheme.parse() == Ok(Scheme::Plain);
        let names: &[&str] = if is_plain { &["d_CNTS", "d_SNTP"] } else { &[] };
        let shown =
            self.measures().into_iter().filter(move |measure| !is_plain || names.contains(&measure.name));
        shown.map(move |measure| match measure.name {
            "d_CNTS" if is_plain => {
                Measure { meaning: "client: transfer of time, nothing authenticated", ..measure }
            }
            _ => measure,
        })
    }
}

/// A selection of steps where there is no room for all: of those that pass `test`, one for each rate: the lowest and
/// the highest rate, and some evenly spaced in between.
fn selected(steps: &[Step], test: impl Fn(&Step) -> bool) -> Vec<&Step> {
    const COUNT: usize = 5;
    let mut steps: Vec<&Step> = steps.iter().filter(|step| test(step)).collect();
    steps.sort_by(|left, right| left.rate_rps().total_cmp(&right.rate_rps()));
    steps.dedup_by(|later, earlier| later.rate_rps() == earlier.rate_rps());
    if steps.len() <= COUNT {
        return steps;
    }
    (0..COUNT).map(|index| steps[(index * (steps.len() - 1) + COUNT / 2) / (COUNT - 1)]).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::stored::Error;

    /// [`record`] with this in place of every text that it always has, and of most that it may have.
    pub(crate) fn record_with(text: &str) -> LoadRecord {
        let mut record = record();
        for place in [
            &mut record.command,
            &mut record.version,
            &mut record.commit,
            &mut record.path,
            &mut record.scheme,
            &mut record.authentication,
            &mut record.target,
            record.server_label.get_or_insert_default(),
            &mut record.address,
            &mut record.engine,
            &mut record.host.cpu,
            &mut record.host.kernel,
            &mut record.parameters.arrivals,
            &mut record.parameters.agents[0],
            &mut record.steps[3].hosts[0].name,
        ] {
            text.clone_into(place);
        }
        record.parameters.sources = Some(text.to_owned());
        record.parameters.background_sources = vec![text.to_owned()];
        record.search.as_mut().unwrap().remark = Some(text.to_owned());
        record.steps[3].why_invalid = Some(text.to_owned());
        record.steps[3].limit.as_mut().unwrap().why = vec![text.to_owned(); 2];
        let part = &mut record.steps[0].hosts[0];
        (part.cpu, part.kernel, part.version) =
            (Some(text.to_owned()), Some(text.to_owned()), Some(text.to_owned()));
        record.steps[3].hosts[1].why_invalid = Some(text.to_owned());
        record
    }

    /// The hand-made record of the golden files: four steps, of which the third loses and the fourth is invalid.
    pub(crate) fn record() -> LoadRecord {
        LoadRecord::from_json(include_str!("../../tests/golden/load.json")).unwrap()
    }

    #[test]
    fn closed_loop_answered_what_came_in_time() {
        let mut step = record().steps.swap_remove(0);
        (step.seconds, step.tally.answered) = (2.0, 100);
        step.tally.backlog = Backlog { start: 2, middle: 9, end: 20 };
        let rates_rps =
            [Some(50.0), None].map(|offered_rps| Step { offered_rps, ..step.clone() }.answered_rps());
        assert_eq!(rates_rps, [50.0, 41.0]);
    }

    #[test]
    fn plain_time_has_no_spans_of_authentication() {
        let record = record();
        let spans = record.steps[0].spans.as_ref().unwrap();
        let names = |scheme: &str| spans.shown(scheme).map(|measure| measure.name).collect::<Vec<_>>();
        assert_eq!(names("plain"), ["d_CNTS", "d_SNTP"]);
        assert_eq!(names("nts").len(), 6);
        assert!(spans.shown("plain").all(|measure| !measure.meaning.contains(": authenticated")));
    }

    #[test]
    fn invalid_step_is_never_the_best() {
        let mut record = record();
        assert_eq!(record.highest_answered().unwrap().offered_rps, Some(4000.0));
        record.steps[2].valid = false;
        assert_eq!(record.highest_answered().unwrap().offered_rps, Some(2000.0));
        record.steps.iter_mut().for_each(|step| step.valid = false);
        assert!(record.highest_answered().is_none());
    }

    #[test]
    fn selection_spans_all_rates_in_order() {
        let step = record().steps[0].clone();
        let steps: Vec<Step> = [5, 1, 9, 3, 2, 7, 7, 4, 8, 6]
            .map(|rate| Step { offered_rps: Some(f64::from(rate)), ..step.clone() })
            .to_vec();
        let rates = |steps: Vec<&Step>| steps.iter().map(|step| step.rate_rps() as u32).collect::<Vec<_>>();
        assert_eq!(rates(selected(&steps, |_| true)), [1, 3, 5, 7, 9]);
        assert_eq!(rates(selected(&steps[..3], |step| step.rate_rps() < 9.0)), [1, 5]);
    }

    #[test]
    fn wrong_records_are_refused_with_the_reason() {
        let text = record().to_json();
        let error = LoadRecord::from_json(&text.replace("load/2", "load/3")).unwrap_err().to_string();
        assert!(error.contains("\"authentick-load/3\" is not known"), "{error}");
        assert!(error.contains("\"authentick-load/1\" and \"authentick-load/2\""), "{error}");
        let error = LoadRecord::from_json(&text.replace("\"lost\":1138", "\"lost\":1137")).unwrap_err();
        assert!(matches!(&error, Error::Unsound(problem) if problem.starts_with("step 3: ")), "{error}");
        let error = LoadRecord::from_json(&text.replace("\"engine\"", "\"motor\"")).unwrap_err().to_string();
        assert!(error.contains("missing field `engine`"), "{error}");
    }
}
