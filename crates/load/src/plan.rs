//! What a run is to do, as orders that a host carries out step by step, and what it reports.
//!
//! The same orders go to the generator in this process and, as JSON, to agents on other hosts.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use authentick_report::load::{AntpFigures, Histogram, HostPart, Tally};
use serde::{Deserialize, Serialize};

use crate::shared_key::SharedKey;

/// What is offered to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// NTP without authentication.
    Plain,
    /// NTP under a symmetric key, which all clients share.
    Mac,
    /// NTS: transfers by clients that keep keys and cookies, and exchange keys when they have none.
    Nts,
    /// Key exchanges alone.
    Ke,
    /// Key exchanges, each followed by transfers.
    Mix {
        /// How many transfers follow a key exchange.
        transfers: u32,
        /// Whether they share one cookie, as in the NTS study.
        same_cookie: bool,
    },
    /// Phase 1 of ANTP: m1 and m2, until the certificate chain is complete.
    AntpNegotiate,
    /// Phase 2 of ANTP: m3 and m4, by clients that renew their C1 in time.
    AntpExchange,
    /// Phase 3 of ANTP: m5 and m6, by clients that have their sessions before the load.
    Antp,
    /// All three phases, one after the other, as of a client that knows nothing yet.
    AntpFull,
}

impl Scheme {
    /// Whether what is measured goes in datagrams, and key exchanges accompany it; `false`: it is the other way round.
    pub(crate) fn measures_transfers(self) -> bool {
        match self {
            Scheme::Plain | Scheme::Mac | Scheme::Nts => true,
            Scheme::AntpNegotiate | Scheme::AntpExchange | Scheme::Antp | Scheme::AntpFull => true,
            Scheme::Ke | Scheme::Mix { .. } => false,
        }
    }

    /// Whether it is one of ANTP's.
    #[must_use]
    pub fn is_antp(self) -> bool {
        match self {
            Scheme::AntpNegotiate | Scheme::AntpExchange | Scheme::Antp | Scheme::AntpFull => true,
            Scheme::Plain | Scheme::Mac | Scheme::Nts | Scheme::Ke | Scheme::Mix { .. } => false,
        }
    }

    /// Whether the server proves with certificates who it is.
    #[must_use]
    pub fn needs_roots(self) -> bool {
        self.exchanges_keys() || self.is_antp()
    }

    /// Whether clients get keys or sealed state before the load.
    #[must_use]
    pub fn prepares_clients(self) -> bool {
        matches!(self, Scheme::Nts | Scheme::AntpExchange | Scheme::Antp)
    }

    /// Whether there are key exchanges over TLS.
    #[must_use]
    pub fn exchanges_keys(self) -> bool {
        match self {
            Scheme::Plain | Scheme::Mac => false,
            Scheme::AntpNegotiate | Scheme::AntpExchange | Scheme::Antp | Scheme::AntpFull => false,
            Scheme::Nts | Scheme::Ke | Scheme::Mix { .. } => true,
        }
    }
}

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

/// What a host is to do in every step of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What is offered.
    pub scheme: Scheme,
    /// The NTP server. For NTS, a key exchange may name another one.
    pub ntp: SocketAddr,
    /// The key exchange server; unused without key exchanges.
    pub ke: SocketAddr,
    /// The name that the server's certificate must have.
    pub server_name: String,
    /// Certificates of the authorities to trust; absent: those that the host trusts.
    pub authorities_pem: Option<String>,
    /// The symmetric key of [`Scheme::Mac`].
    #[serde(default)]
    pub shared_key: Option<SharedKey>,
    /// How ANTP is spoken, for its schemes.
    #[serde(default)]
    pub antp: Option<Antp>,
    /// AEAD algorithms to offer, the best first.
    pub aeads: Vec<u16>,
    /// Turn to the keys that are exported the other way: the server answers nothing under the first ones.
    pub alternative_keys: bool,
    /// Simulated clients on this host whose figures count.
    pub clients: u32,
    /// Further ones that make up the background.
    pub background_clients: u32,
    /// Source addresses to spread the clients over; empty: the host's choice. The host must own them.
    pub sources: Vec<std::net::IpAddr>,
    /// Threads that send.
    pub workers: u32,
    /// Whether each has a processor of its own, the last ones of the host; not if several generators share it.
    pub pinned: bool,
    /// When operations begin.
    pub arrivals: Arrivals,
    /// Seed of the arrivals.
    pub seed: u64,
    /// How long a request waits for its answer.
    pub timeout: Duration,
    /// How long a key exchange may take.
    pub ke_timeout: Duration,
    /// Send one cookie of each client again and again.
    pub replay_cookie: bool,
    /// Report the instants of single operations, so that they can be joined to the server's records.
    pub joinable: bool,
}

/// One step of a run, for one host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Operations a second that measured clients begin; absent for a closed loop.
    pub rate_rps: Option<f64>,
    /// The same for clients that are not measured; they start a little earlier. 0: none.
    pub background_rps: f64,
    /// How long operations begin. Waiting for the last answers comes after that.
    pub duration: Duration,
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
    /// How long operations began, in seconds: less than ordered if the step was stopped.
    pub seconds: f64,
    /// Why the generator did not do its part; absent if it did.
    pub why_invalid: Option<String>,
    /// How much later than intended requests left.
    pub lateness_ns: Histogram,
    /// Share of its time in which the busiest sending thread had something to do.
    pub busy_share: Option<f64>,
    /// Octets of the largest request as UDP payload; 0: TCP.
    pub request_size: u32,
    /// Single operations, if they were asked for.
    pub joinables: Vec<Joinable>,
    /// Phases and the client's own cryptography, for ANTP.
    #[serde(default)]
    pub antp: Option<AntpFigures>,
}

impl Part {
    /// Adds what another thread or host did in the same step, of the same operations.
    pub fn merge(&mut self, other: Part) {
        fn join(mine: &mut Option<Tally>, other: Option<Tally>) {
            match (mine, other) {
                (Some(mine), Some(other)) => mine.merge(&other),
                (mine @ None, other) => *mine = other,
                (Some(_), None) => {}
            }
        }
        self.tally.merge(&other.tally);
        join(&mut self.accompanying, other.accompanying);
        join(&mut self.background, other.background);
        self.seconds = self.seconds.max(other.seconds);
        self.why_invalid = match (self.why_invalid.take(), other.why_invalid) {
            (Some(mine), Some(other)) if mine != other => Some(format!("{mine}; {other}")),
            (mine, other) => mine.or(other),
        };
        self.lateness_ns.merge(&other.lateness_ns);
        self.busy_share = self.busy_share.into_iter().chain(other.busy_share).reduce(f64::max);
        self.request_size = self.request_size.max(other.request_size);
        self.joinables.extend(other.joinables);
        match (&mut self.antp, other.antp) {
            (Some(mine), Some(other)) => mine.merge(&other),
            (mine @ None, other) => *mine = other,
            (Some(_), None) => {}
        }
    }
}

/// What a step in progress lets others see, and how they end it. Clones are the same watch.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Progress>);

#[derive(Debug, Default)]
struct Progress {
    stop: AtomicBool,
    ready: AtomicU64,
    sent: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    late: Mutex<Option<Duration>>,
}

impl Watch {
    /// Makes the generator send nothing more, in this step and every later one.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Whether nothing more is to be sent.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// Counts clients that have their first keys.
    pub fn add_ready(&self, count: u64) {
        self.0.ready.fetch_add(count, Ordering::Relaxed);
    }

    /// Clients that have their first keys, background included; 0 if their scheme needs none before a step.
    #[must_use]
    pub fn ready_count(&self) -> u64 {
        self.0.ready.load(Ordering::Relaxed)
    }

    /// Counts operations of measured clients.
    pub fn add(&self, sent: u64, answered: u64, failed: u64) {
        self.0.sent.fetch_add(sent, Ordering::Relaxed);
        self.0.answered.fetch_add(answered, Ordering::Relaxed);
        self.0.failed.fetch_add(failed, Ordering::Relaxed);
    }

    /// Operations of measured clients so far, over all steps: sent, answered, and those that failed.
    #[must_use]
    pub fn counts(&self) -> [u64; 3] {
        [&self.0.sent, &self.0.answered, &self.0.failed].map(|count| count.load(Ordering::Relaxed))
    }

    /// Notes how much later than intended a sending thread began its first operation. Once per thread and step: it
    /// takes a lock.
    pub fn note_start(&self, late: Duration) {
        let mut noted = self.0.late.lock().unwrap_or_else(PoisonError::into_inner);
        *noted = Some(noted.map_or(late, |before| before.min(late)));
    }

    /// How much later than intended the first operation began, by the earliest of all notes; `None` if there is none.
    #[must_use]
    pub fn start_late(&self) -> Option<Duration> {
        *self.0.late.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who carries out the steps of a run: the generator of this process, or agents.
pub trait Crew: Send {
    /// Begins operations at `start` and reports once all of them have ended. `watch` sees the progress; if it is
    /// stopped, what was done until then is reported.
    ///
    /// # Errors
    /// A sentence on why the step cannot be relied on at all. A generator that merely fell behind reports that in its
    /// part.
    fn step(&mut self, order: &Order, start: Instant, watch: &Watch) -> Result<Part, String>;

    /// A row for each host of the last step; empty if there is one host only.
    fn hosts(&self) -> &[HostPart] {
        &[]
    }
}
