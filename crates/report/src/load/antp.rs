//! What only records of ANTP have: how it was used, how long each phase took, and the client's own cryptography.
//!
//! The paper ("Authenticated Network Time Synchronization", section 4) finds a run of all three phases longer than the
//! sum of the phases, as the client encrypts and verifies between them. Here both sides of that are measured.

use serde::{Deserialize, Serialize};

use super::{Histogram, Percentiles};

/// How ANTP was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AntpParameters {
    /// The mechanism as the command line names it: `ecdh`, `rsa`, `rsa-oaep` or `x25519`.
    pub kem: String,
    /// Whether tags were requested in separate packets: latency is then that of the early packet, if it is genuine.
    pub separate_tag: bool,
    /// Whether the same request was sent again and again but for its transmit timestamp, which no client does.
    pub replay: bool,
    /// Octets of the server's certificate chain, as the protocol encodes it.
    pub chain_size: u32,
    /// Requests that a whole negotiation takes.
    pub round_count: u32,
}

/// Times of a step other than latency. All are of answered operations of measured clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AntpFigures {
    /// The client's own cryptography of an operation: encapsulation, tags, hashes, and in whole runs the certificates.
    pub client_crypto_us: Option<Percentiles>,
    /// The same of all operations together, in seconds of processor time of the sending threads.
    pub client_crypto_seconds: f64,
    /// How long the sending threads took part, added up, in seconds.
    pub thread_seconds: f64,
    /// Share of the sending threads' time that this was.
    pub client_crypto_share: Option<f64>,
    /// Phase 1 of whole runs, from the departure of m1 to the arrival of m2, all rounds added up.
    pub negotiation_us: Option<Percentiles>,
    /// Phase 2 of whole runs, from m3 to m4.
    pub key_exchange_us: Option<Percentiles>,
    /// Phase 3 of whole runs, from m5 to m6, or to the early packet.
    pub time_us: Option<Percentiles>,
    /// The three phases of a run added up.
    pub phases_us: Option<Percentiles>,
    /// Answers that were timed by an early packet; the tag came later, and was right.
    pub early: u64,
    /// The distributions behind the percentiles.
    #[serde(default)]
    pub histograms: AntpHistograms,
}

/// The distributions of these figures, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AntpHistograms {
    /// The client's own cryptography.
    pub client_crypto_ns: Histogram,
    /// Phase 1.
    pub negotiation_ns: Histogram,
    /// Phase 2.
    pub key_exchange_ns: Histogram,
    /// Phase 3.
    pub time_ns: Histogram,
    /// All three.
    pub phases_ns: Histogram,
}

impl AntpFigures {
    /// Adds the operations of another thread or host.
    pub fn merge(&mut self, other: &AntpFigures) {
        self.client_crypto_seconds += other.client_crypto_seconds;
        self.thread_seconds += other.thread_seconds;
        self.early = self.early.saturating_add(other.early);
        let AntpHistograms { client_crypto_ns, negotiation_ns, key_exchange_ns, time_ns, phases_ns } =
            &mut self.histograms;
        client_crypto_ns.merge(&other.histograms.client_crypto_ns);
        negotiation_ns.merge(&other.histograms.negotiation_ns);
        key_exchange_ns.merge(&other.histograms.key_exchange_ns);
        time_ns.merge(&other.histograms.time_ns);
        phases_ns.merge(&other.histograms.phases_ns);
        self.summarise();
    }

    /// Computes the percentiles from the histograms, and the share from the seconds.
    pub fn summarise(&mut self) {
        let percentiles = |histogram: &Histogram| histogram.percentiles(1000.0);
        self.client_crypto_us = percentiles(&self.histograms.client_crypto_ns);
        self.negotiation_us = percentiles(&self.histograms.negotiation_ns);
        self.key_exchange_us = percentiles(&self.histograms.key_exchange_ns);
        self.time_us = percentiles(&self.histograms.time_ns);
        self.phases_us = percentiles(&self.histograms.phases_ns);
        self.client_crypto_share =
            (self.thread_seconds > 0.0).then(|| (self.client_crypto_seconds / self.thread_seconds).min(1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(ns: i64) -> AntpFigures {
        let one = |ns: i64| Histogram::from(vec![(ns, 1)]);
        let mut figures = AntpFigures {
            client_crypto_seconds: ns as f64 / 1e9,
            early: 2,
            histograms: AntpHistograms {
                client_crypto_ns: one(ns),
                negotiation_ns: one(2 * ns),
                key_exchange_ns: one(3 * ns),
                time_ns: one(4 * ns),
                phases_ns: one(9 * ns),
            },
            ..AntpFigures::default()
        };
        figures.summarise();
        figures
    }

    #[test]
    fn merged_figures_are_those_of_all_operations() {
        let mut merged = figures(1_000_000);
        merged.merge(&figures(3_000_000));
        assert_eq!(merged.early, 4);
        assert!((merged.client_crypto_seconds - 0.004).abs() < 1e-12);
        let phases = [merged.client_crypto_us, merged.negotiation_us, merged.key_exchange_us, merged.time_us];
        let ends = phases.map(|times| times.map(|times| (times.min, times.max)));
        let expected = [(1e3, 3e3), (2e3, 6e3), (3e3, 9e3), (4e3, 12e3)].map(Some);
        assert_eq!(ends, expected);
        assert_eq!(merged.phases_us.map(|sum| (sum.min, sum.max)), Some((9e3, 27e3)));
    }

    #[test]
    fn share_is_of_the_time_of_all_threads_and_of_no_time_there_is_none() {
        let mut merged = figures(500_000_000);
        assert_eq!(merged.client_crypto_share, None);
        merged.thread_seconds = 2.0;
        merged.merge(&AntpFigures { thread_seconds: 2.0, ..AntpFigures::default() });
        assert_eq!(merged.client_crypto_share, Some(0.125));
    }
}
