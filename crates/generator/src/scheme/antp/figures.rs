//! Times of a step of ANTP beside its latency.

use authentick_report::load::{AntpFigures, AntpHistograms};

use super::conversation::{Conversation, Goal};
use crate::counts::Times;

/// What the phases took, and the client's own cryptography.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    crypto: Times,
    phases: [Times; 3],
    sum: Times,
    crypto_ns: u64,
    early: u64,
}

impl Figures {
    /// Counts an operation that was answered.
    pub(crate) fn answered(&mut self, conversation: &Conversation) {
        self.crypto.record(conversation.crypto_ns as i64);
        self.crypto_ns += conversation.crypto_ns;
        self.early += u64::from(conversation.is_early);
        if conversation.goal == Goal::Run {
            for (times, &ns) in self.phases.iter_mut().zip(&conversation.phases_ns) {
                times.record(ns as i64);
            }
            self.sum.record(conversation.phases_ns.iter().sum::<u64>() as i64);
        }
    }

    /// The same for a record, of a thread that was at work for so many seconds.
    pub(crate) fn stored(&self, thread_seconds: f64) -> AntpFigures {
        let [negotiation, key_exchange, time] = &self.phases;
        let mut figures = AntpFigures {
            client_crypto_seconds: self.crypto_ns as f64 / 1e9,
            thread_seconds,
            early: self.early,
            histograms: AntpHistograms {
                client_crypto_ns: self.crypto.stored(),
                negotiation_ns: negotiation.stored(),
                key_exchange_ns: key_exchange.stored(),
                time_ns: time.stored(),
                phases_ns: self.sum.stored(),
            },
            ..AntpFigures::default()
        };
        figures.summarise();
        figures
    }

    pub(crate) fn clear(&mut self) {
        let Figures { crypto, phases, sum, crypto_ns, early } = self;
        for times in phases.iter_mut().chain([crypto, sum]) {
            times.clear();
        }
        (*crypto_ns, *early) = (0, 0);
    }
}
