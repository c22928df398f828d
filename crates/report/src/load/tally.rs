//! The outcomes of the operations of a step: each is counted in exactly one place.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use strum::{EnumCount, VariantArray};

use super::histogram::{Histogram, Percentiles};

/// What is counted, by the name that it has in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Operation {
    /// One request for time and its answer.
    #[default]
    Transfer,
    /// One key exchange: from connecting to the cookies; of ANTP, m3 and m4, or all that a client needs before it can
    /// ask for time.
    KeyExchange,
    /// One negotiation of ANTP: m1 and m2, as often as the certificate chain takes.
    Negotiation,
    /// All three phases of ANTP, one after the other.
    Run,
}

impl Operation {
    /// Several of them, beside others.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Operation::Transfer => "transfers of time",
            Operation::KeyExchange => "key exchanges",
            Operation::Negotiation => "negotiations",
            Operation::Run => "runs of all phases",
        }
    }

    /// Several of them, if they are what was offered: requests for time need no other name.
    #[must_use]
    pub const fn offered(self) -> &'static str {
        match self {
            Operation::Transfer => "requests",
            other => other.plural(),
        }
    }
}

/// Why an operation failed, by the name that it has in a record. Each is due to the server or the path, except those
/// that [`Cause::is_local`] names.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    EnumCount,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Cause {
    /// No answer, not even within a second timeout after the first.
    Timeout,
    /// The answer came after the timeout.
    Late,
    /// The host says that nobody listens there.
    Refused,
    /// The connection was reset, or closed before there was an answer.
    Reset,
    /// No connection within the deadline of a key exchange: the study's "connection timed out".
    ConnectionTimedOut,
    /// A connection, and no cookie within the deadline of a key exchange: the study's "resource temporarily
    /// unavailable", as which a blocking client's read reports it.
    ResourceTemporarilyUnavailable,
    /// The server sent a TLS alert.
    TlsAlert,
    /// TLS failed otherwise: the certificate, the application protocol.
    Tls,
    /// The key exchange ended with an error, or without what is needed.
    KeRefused,
    /// The server cannot open the cookie.
    Ntsn,
    /// The server does not accept the symmetric key, or the tag under it.
    CryptoNak,
    /// The server cannot open the sealed state that the client sent (C1 or C2 of ANTP).
    StateExpired,
    /// The server says, unauthenticated, that there are too many ANTP requests.
    AntpRate,
    /// The server says, unauthenticated, that it has no such suite or version of ANTP.
    AntpRefused,
    /// A negotiation of ANTP had an unexpected result: another suite, another part of the chain, a chain that is not
    /// trusted.
    Negotiation,
    /// Another kiss-o'-death.
    Kiss,
    /// The tag is wrong, or missing.
    BadTag,
    /// It answers another request, or none.
    BadOrigin,
    /// The stratum is 0 or above 15.
    BadStratum,
    /// The leap indicator says that the server's clock is not synchronised.
    BadLeap,
    /// It is no NTP response otherwise: syntax, mode, timestamps, root distance.
    Malformed,
    /// The network cannot be reached, says this host or another.
    Unreachable,
    /// The generator was so late that it gave up the request.
    FellBehind,
    /// The generator had no cookie or sealed state, as the client's key exchange failed or had not ended.
    NoCookie,
    /// The generator's socket had no room.
    LocalBuffer,
    /// The generator had no port or descriptor left.
    LocalPort,
    /// The generator waited for as many answers as it has memory for.
    LocalMemory,
    /// The generator failed otherwise.
    Local,
    /// A reason that a later version has: not known here.
    #[serde(other)]
    Unknown,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Cause; Cause::COUNT] = *Cause::VARIANTS.first_chunk().expect("as many as there are");

    /// Whether an answer came that failed a check, rather than none.
    #[must_use]
    pub const fn is_invalid(self) -> bool {
        matches!(
            self,
            Cause::TlsAlert
                | Cause::Tls
                | Cause::KeRefused
                | Cause::Ntsn
                | Cause::CryptoNak
                | Cause::StateExpired
                | Cause::AntpRate
                | Cause::AntpRefused
                | Cause::Negotiation
                | Cause::Kiss
                | Cause::BadTag
                | Cause::BadOrigin
                | Cause::BadStratum
                | Cause::BadLeap
                | Cause::Malformed
        )
    }

    /// Whether nothing was sent, by the generator's fault or for want of a cookie or sealed state.
    #[must_use]
    pub const fn is_skip(self) -> bool {
        self.is_local() || matches!(self, Cause::NoCookie)
    }

    /// Whether it is the generator's fault, which makes a step say nothing about the server.
    #[must_use]
    pub const fn is_local(self) -> bool {
        matches!(
            self,
            Cause::FellBehind | Cause::LocalBuffer | Cause::LocalPort | Cause::LocalMemory | Cause::Local
        )
    }

    /// What it means, in half a sentence for a reader.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Cause::Timeout => "no answer within the timeout, nor within another one after it",
            Cause::Late => "the answer came after the timeout",
            Cause::Refused => "the host says that nobody listens there",
            Cause::Reset => "the connection was reset, or closed before there was an answer",
            Cause::ConnectionTimedOut => {
                "no connection within the deadline of a key exchange; the NTS study's \"connection timed out\""
            }
            Cause::ResourceTemporarilyUnavailable => {
                "a connection, but no cookie within the deadline; the NTS study's \"resource temporarily unavailable\""
            }
            Cause::TlsAlert => "the server ended the key exchange with a TLS alert",
            Cause::Tls => "TLS failed otherwise: the certificate, the application protocol",
            Cause::KeRefused => "the key exchange ended with an error, or without what is needed",
            Cause::Ntsn => "the server cannot open the cookie (NTS NAK)",
            Cause::CryptoNak => "the server does not accept the symmetric key or the tag (crypto-NAK)",
            Cause::StateExpired => "the server cannot open the sealed state, C1 or C2 of ANTP",
            Cause::AntpRate => "the server says that there are too many ANTP requests",
            Cause::AntpRefused => "the server says that it has no such suite or version of ANTP",
            Cause::Negotiation => {
                "a negotiation of ANTP brought another suite or certificate chain than it may"
            }
            Cause::Kiss => "a kiss-o'-death other than NTSN",
            Cause::BadTag => "the authentication tag of the answer is wrong, or missing",
            Cause::BadOrigin => "the answer's origin timestamp fits no request",
            Cause::BadStratum => "the answer's stratum is 0 or above 15",
            Cause::BadLeap => "the server says that its clock is not synchronised",
            Cause::Malformed => "what came is no NTP response",
            Cause::Unreachable => "the network cannot be reached",
            Cause::FellBehind => {
                "the generator was too late and gave the request up: its fault, not the server's"
            }
            Cause::NoCookie => {
                "the generator had no cookie or sealed state to send, for want of a key exchange"
            }
            Cause::LocalBuffer => "the generator's socket had no room: its fault, not the server's",
            Cause::LocalPort => "the generator had no port or descriptor left: its fault, not the server's",
            Cause::LocalMemory => {
                "the generator waited for as many answers as it has memory for: its fault, not the server's"
            }
            Cause::Local => "the generator failed otherwise: its fault, not the server's",
            Cause::Unknown => "a reason that this version of authentick does not know",
        }
    }
}

/// A datagram that came and was no answer to a request in flight, or a report of the network that names no request.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    EnumCount,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Stray {
    /// It answers a request that has ended: a second answer, or one after two timeouts.
    Duplicate,
    /// An NTP packet whose origin timestamp is of no request.
    BadOrigin,
    /// No NTP packet.
    Malformed,
    /// The network says that requests do not arrive, and not which.
    Obstacle,
    /// A kind that a later version has: not known here.
    #[serde(other)]
    Unknown,
}

/// The outcomes of the operations of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// What is counted.
    pub operation: Operation,
    /// Operations that were due.
    pub scheduled: u64,
    /// Operations that did not begin; `causes` says why.
    pub skipped: u64,
    /// Operations that began: scheduled - skipped.
    pub sent: u64,
    /// Those whose answer passed every check in time.
    pub answered: u64,
    /// Those without an answer in time.
    pub lost: u64,
    /// Those whose answers all failed a check.
    pub invalid: u64,
    /// How many were skipped, lost or invalid, by reason.
    #[serde(deserialize_with = "counts")]
    pub causes: BTreeMap<Cause, u64>,
    /// Surplus datagrams: duplicate answers, and answers to no known request.
    #[serde(default)]
    pub surplus: u64,
    /// Answered operations that were on their way at three instants: whether answers kept up.
    #[serde(default, skip_serializing_if = "Backlog::is_empty")]
    pub backlog: Backlog,
    /// What came and belongs to no operation, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "counts")]
    pub strays: BTreeMap<Stray, u64>,
    /// Responses with a negative delay (RFC 5905 section 8): the time that the server says it took exceeds that from
    /// the request to its response. Their offsets are in no distribution.
    #[serde(default)]
    pub negative_delays: u64,
    /// From the instant at which the operation was to begin to its answer: the kernel's receive stamp for a transfer,
    /// the last cookie for a key exchange; null if there was none.
    pub latency_us: Option<Percentiles>,
    /// The same from the instant at which the request really left: the server's own latency lies between both. Null
    /// for operations of several datagrams, and if there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_send_us: Option<Percentiles>,
    /// The server's clock minus the client's; null if there was none.
    pub offset_us: Option<Percentiles>,
    /// The distributions behind the percentiles.
    #[serde(default)]
    pub histograms: Histograms,
}

/// Operations that had begun and were not answered yet, but were in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    /// When counting began: they belong to the warm-up, and count nowhere else.
    #[serde(default)]
    pub start: u64,
    /// In the middle of the measured time.
    pub middle: u64,
    /// At its end.
    pub end: u64,
}

impl Backlog {
    /// By how many operations the backlog grew in the measured time, if it grew as in the second half of it; 0 if it
    /// did not, or if chance alone may have done it.
    ///
    /// Without overload as many are on their way in the middle as at the end, and operations that come and go on their
    /// own vary by the square root of their number (Poisson): three times that is no growth yet.
    #[must_use]
    pub fn growth(&self) -> u64 {
        let grown = self.end.saturating_sub(self.middle);
        let chance = 3.0 * (self.end as f64 + self.middle as f64).sqrt();
        if grown as f64 > chance { grown.saturating_mul(2) } else { 0 }
    }

    /// Whether nothing was on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The distributions of a tally.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histograms {
    /// Latency, in nanoseconds.
    pub latency_ns: Histogram,
    /// Latency from the send, in nanoseconds.
    #[serde(default)]
    pub from_send_ns: Histogram,
    /// Offset, in nanoseconds.
    pub offset_ns: Histogram,
}

impl Histograms {
    /// All of them [coarse](Histogram::coarse).
    #[must_use]
    pub fn coarse(&self) -> Self {
        let Histograms { latency_ns, from_send_ns, offset_ns } = self;
        Histograms {
            latency_ns: latency_ns.coarse(),
            from_send_ns: from_send_ns.coarse(),
            offset_ns: offset_ns.coarse(),
        }
    }
}

impl Stray {
    /// Every kind.
    pub const ALL: [Stray; Stray::COUNT] = *Stray::VARIANTS.first_chunk().expect("as many as there are");
}

/// Counts by kind. Several kinds that are not known here become one.
pub(crate) fn counts<'de, K: Deserialize<'de> + Ord, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<K, u64>, D::Error> {
    struct Counts<K>(PhantomData<K>);

    impl<'de, K: Deserialize<'de> + Ord> Visitor<'de> for Counts<K> {
        type Value = BTreeMap<K, u64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of counts by kind")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut counts = BTreeMap::new();
            while let Some((kind, count)) = map.next_entry::<K, u64>()? {
                let sum: &mut u64 = counts.entry(kind).or_default();
                *sum = sum.saturating_add(count);
            }
            Ok(counts)
        }
    }

    deserializer.deserialize_map(Counts(PhantomData))
}

impl Tally {
    /// Adds the operations of another host or thread; percentiles are those of all together.
    pub fn merge(&mut self, other: &Tally) {
        // A stored count may have any value; measured ones never come near the end of the range.
        let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
        add(&mut self.scheduled, other.scheduled);
        add(&mut self.skipped, other.skipped);
        add(&mut self.sent, other.sent);
        add(&mut self.answered, other.answered);
        add(&mut self.lost, other.lost);
        add(&mut self.invalid, other.invalid);
        add(&mut self.surplus, other.surplus);
        add(&mut self.negative_delays, other.negative_delays);
        add(&mut self.backlog.start, other.backlog.start);
        add(&mut self.backlog.middle, other.backlog.middle);
        add(&mut self.backlog.end, other.backlog.end);
        for (&cause, &count) in &other.causes {
            add(self.causes.entry(cause).or_default(), count);
        }
        self.histograms.latency_ns.merge(&other.histograms.latency_ns);
        for (&stray, &count) in &other.strays {
            add(self.strays.entry(stray).or_default(), count);
        }
        self.histograms.from_send_ns.merge(&other.histograms.from_send_ns);
        self.histograms.offset_ns.merge(&other.histograms.offset_ns);
        self.summarise();
    }

    /// Computes the percentiles from the histograms.
    pub fn summarise(&mut self) {
        self.latency_us = self.histograms.latency_ns.percentiles(1000.0);
        self.from_send_us = self.histograms.from_send_ns.percentiles(1000.0);
        self.offset_us = self.histograms.offset_ns.percentiles(1000.0);
    }

    /// The share of sent operations that were not answered: 0.01 is one percent; 0 if nothing was sent.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost.saturating_add(self.invalid) as f64 / self.sent as f64 }
    }

    /// Answers that came within the measured time, those to operations of the warm-up included.
    #[must_use]
    pub fn answered_within(&self) -> u64 {
        self.answered.saturating_sub(self.backlog.end).saturating_add(self.backlog.start)
    }

    /// How many of the answered operations wait longer and longer, and would be lost in the end: by so many the backlog
    /// grew.
    #[must_use]
    pub fn unsustained(&self) -> u64 {
        self.backlog.growth().min(self.answered)
    }

    /// How many failed for this reason.
    #[must_use]
    pub fn count_of(&self, cause: Cause) -> u64 {
        self.causes.get(&cause).copied().unwrap_or(0)
    }

    /// The same without distributions, for a part whose distributions are in the whole.
    #[must_use]
    pub fn without_histograms(&self) -> Tally {
        Tally { histograms: Histograms::default(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally() -> Tally {
        let mut tally = Tally {
            scheduled: 10,
            skipped: 1,
            sent: 9,
            answered: 6,
            lost: 2,
            invalid: 1,
            causes: [(Cause::FellBehind, 1), (Cause::Timeout, 1), (Cause::Late, 1), (Cause::BadTag, 1)]
                .into(),
            histograms: Histograms {
                latency_ns: vec![(1000, 4), (9000, 2)].into(),
                offset_ns: vec![(-50, 6)].into(),
                ..Histograms::default()
            },
            ..Tally::default()
        };
        tally.summarise();
        tally
    }

    #[test]
    fn backlog_grows_if_more_wait_at_the_end_than_chance_explains() {
        let growth = |middle, end| Backlog { start: 0, middle, end }.growth();
        assert_eq!((growth(0, 0), growth(500, 500), growth(900, 20)), (0, 0, 0));
        // Nine of a hundred may come and go: three times the root of nine is nine.
        assert_eq!((growth(0, 9), growth(0, 10)), (0, 20));
        assert_eq!((growth(10_000, 10_400), growth(10_000, 11_000)), (0, 2000));
        assert_eq!(growth(0, u64::MAX), u64::MAX);
        let overloaded =
            Tally { answered: 15, backlog: Backlog { start: 0, middle: 0, end: 10 }, ..Tally::default() };
        assert_eq!(overloaded.unsustained(), 15);
    }

    #[test]
    fn sums_hold_and_survive_merging() {
        let mut merged = tally();
        merged.merge(&tally());
        assert!(merged.adds_up());
        assert_eq!((merged.sent, merged.count_of(Cause::BadTag)), (18, 2));
        assert_eq!(merged.latency_us, tally().latency_us);
        assert!((merged.loss_ratio() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn wrong_sums_are_seen() {
        let wrong: [fn(&mut Tally); 5] = [
            |tally| tally.scheduled += 1,
            |tally| tally.answered += 1,
            |tally| tally.lost = u64::MAX,
            |tally| _ = tally.causes.remove(&Cause::BadTag),
            |tally| _ = tally.causes.insert(Cause::Kiss, 1),
        ];
        for change in wrong {
            let mut tally = tally();
            change(&mut tally);
            assert!(!tally.adds_up());
        }
    }

    #[test]
    fn cause_is_stored_under_its_name() {
        for cause in Cause::ALL {
            assert_eq!(serde_json::to_string(&cause).unwrap(), format!("{:?}", cause.to_string()));
            assert!(!(cause.is_skip() && cause.is_invalid()));
        }
    }
}
