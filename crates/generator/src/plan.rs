//! What is ordered of one step, and what is reported of it.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_report::load::{AntpFigures, Evidence, Histogram, Second, Tally};
use serde::{Deserialize, Serialize};

use crate::limits::BACKGROUND_LEAD;
use crate::{nanos, series};

/// When operations begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At equal distances.
    Constant,
    /// At exponentially distributed distances, as of many independent clients.
    Exponential,
    /// As soon as another one has ended, so many at once in each worker.
    Closed {
        /// Operations in flight.
        window: u32,
    },
}

/// How ANTP is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Antp {
    /// The suite, by its number in the protocol.
    pub suite: u16,
    /// Ask for tags in packets of their own.
    pub separate_tag: bool,
    /// Send the same request again and again, but for its transmit timestamp.
    pub replay: bool,
}

/// One step of a run, for one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Operations a second that measured clients begin; absent for a closed loop.
    pub rate_rps: Option<f64>,
    /// The same for clients that are not measured; they start a little earlier. 0: none.
    pub background_rps: f64,
    /// How long operations begin that count. Waiting for the last answers comes after that.
    pub duration: Duration,
    /// How long operations begin before those that count, at the same rates.
    #[serde(default)]
    pub warm_up: Duration,
    /// Which step of its run this is. Arrivals depend on it, so that no trial of a search repeats another's.
    #[serde(default)]
    pub number: u64,
    /// Operations that each worker keeps in flight, in place of the plan's arrivals: a closed loop; absent: as the plan
    /// has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// Whether arrivals that fell due while a sending thread stood still are left out, neither sent nor counted: sent
    /// together after that, they would be a burst of the generator's making.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cuts_stalls: bool,
}

impl Order {
    /// When operations of this step begin, in a run of this plan.
    #[must_use]
    pub const fn arrivals(&self, planned: Arrivals) -> Arrivals {
        match self.window {
            Some(window) => Arrivals::Closed { window },
            None => planned,
        }
    }

    /// The seed of this step's arrivals in a run of this seed.
    #[must_use]
    pub const fn seed(&self, run_seed: u64) -> u64 {
        // Odd, so that no two steps of a run have one seed.
        run_seed ^ self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// How much earlier than measured clients the background begins.
    #[must_use]
    pub fn lead(&self) -> Duration {
        if self.background_rps > 0.0 { BACKGROUND_LEAD } else { Duration::ZERO }
    }

    /// From when on operations count, if the first one begins at `start_ns`.
    #[must_use]
    pub fn from_ns(&self, start_ns: u64) -> u64 {
        start_ns.saturating_add(nanos(self.warm_up))
    }

    /// When nothing more begins, if the first operation does at `start_ns`.
    #[must_use]
    pub fn end_ns(&self, start_ns: u64) -> u64 {
        self.from_ns(start_ns).saturating_add(nanos(self.duration))
    }
}

/// The instants of one operation of a measured client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Joinable {
    /// The client's address and port as the server sees them.
    pub source: SocketAddr,
    /// The transmit timestamp of a request for time; absent for a key exchange.
    pub transmit: Option<u64>,
    /// From before the request was made to the checked answer, t10 - t5; or from connecting to the cookies, t4 - t1.
    pub whole_ns: u64,
}

/// What a host reports of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The measured operations that the scheme is named for.
    pub tally: Tally,
    /// The measured operations of the other kind.
    pub accompanying: Option<Tally>,
    /// Operations of the background, in counts.
    pub background: Option<Tally>,
    /// Operations of the other kind that the background needed or that followed its own, in counts.
    #[serde(default)]
    pub background_accompanying: Option<Tally>,
    /// How long operations began, in seconds: less than ordered if the step was stopped.
    pub seconds: f64,
    /// Why the generator did not do its part, for another reason than lateness; absent if it did.
    pub why_invalid: Option<String>,
    /// How late requests left, if that was too late for their latencies to say anything about the server.
    #[serde(default)]
    pub why_late: Option<String>,
    /// How much later than intended requests left.
    pub lateness_ns: Histogram,
    /// Share of its time in which the busiest sending thread had something to do.
    pub busy_share: Option<f64>,
    /// What is known of the host.
    #[serde(default)]
    pub evidence: Evidence,
    /// Counts and latencies of each second.
    #[serde(default)]
    pub series: Vec<Second>,
    /// Latencies of these seconds, of the first thousand at most, to within 3 percent: with them the percentiles of
    /// several hosts are those of all answers together.
    #[serde(default)]
    pub series_ns: Vec<Histogram>,
    /// Octets of the largest request as UDP payload; 0: TCP.
    pub request_size: u32,
    /// Octets of the largest answer that passed every check in time, as UDP payload and all datagrams of it together.
    /// 0: TCP, or there was none.
    #[serde(default)]
    pub response_size: u32,
    /// Requests that left in one message with another, which their host counts as one datagram; those of a warm-up not
    /// included.
    #[serde(default)]
    pub joined: u64,
    /// Single operations, if they were asked for.
    pub joinables: Vec<Joinable>,
    /// Single operations that are not among them, as there were too many.
    #[serde(default)]
    pub joinables_left_out: u64,
    /// Phases and the client's own cryptography, for ANTP.
    #[serde(default)]
    pub antp: Option<AntpFigures>,
}

impl Part {
    /// Why its figures do not all say something about the server: the gravest reason; `None` if they do.
    #[must_use]
    pub fn why(&self) -> Option<&String> {
        self.why_invalid.as_ref().or(self.why_late.as_ref())
    }

    /// Adds what another thread or host did in the same step, of the same operations.
    pub fn merge(&mut self, other: Part) {
        fn join<T>(mine: &mut Option<T>, other: Option<T>, merge: fn(&mut T, &T)) {
            match (mine, other) {
                (Some(mine), Some(other)) => merge(mine, &other),
                (mine @ None, other) => *mine = other,
                (Some(_), None) => {}
            }
        }
        self.tally.merge(&other.tally);
        join(&mut self.accompanying, other.accompanying, Tally::merge);
        join(&mut self.background, other.background, Tally::merge);
        join(&mut self.background_accompanying, other.background_accompanying, Tally::merge);
        join(&mut self.antp, other.antp, AntpFigures::merge);
        self.seconds = self.seconds.max(other.seconds);
        let both = |mine: &mut Option<String>, other: Option<String>| {
            *mine = match (mine.take(), other) {
                (Some(mine), Some(other)) if mine != other => Some(format!("{mine}; {other}")),
                (mine, other) => mine.or(other),
            };
        };
        both(&mut self.why_invalid, other.why_invalid);
        both(&mut self.why_late, other.why_late);
        self.lateness_ns.merge(&other.lateness_ns);
        self.busy_share = self.busy_share.into_iter().chain(other.busy_share).reduce(f64::max);
        self.evidence.merge(&other.evidence);
        series::merge((&mut self.series, &mut self.series_ns), (other.series, other.series_ns));
        self.request_size = self.request_size.max(other.request_size);
        self.response_size = self.response_size.max(other.response_size);
        self.joined = self.joined.saturating_add(other.joined);
        self.joinables.extend(other.joinables);
        self.joinables_left_out = self.joinables_left_out.saturating_add(other.joinables_left_out);
    }
}
