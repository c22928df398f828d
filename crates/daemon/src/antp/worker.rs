//! Threads that do the public-key work of key exchanges, and send the answers.

use std::io;
use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_net::engine::ReplySender;
use authentick_net::priority::Priority;
use authentick_proto::antp::nonce::Nonces;
use authentick_proto::antp::server::{ExchangeOutcome, KEY_RESPONSE_SIZE};

use super::exchanges::Waiting;
use super::state::AntpState;
use crate::background;
use crate::containment::{Containment, ThreadKind};

/// One thread for public-key work.
pub(crate) struct ExchangeWorker {
    pub(crate) number: usize,
    pub(crate) state: Arc<AntpState>,
    /// For each packet worker, what sends answers of its engine.
    pub(crate) replies: Arc<Vec<Box<dyn ReplySender>>>,
    pub(crate) entropy: Entropy,
    /// Processors without a packet worker; the thread may use all processors if there are none.
    pub(crate) cpus: Vec<usize>,
    /// Its priority on processors of packet workers.
    pub(crate) priority: Priority,
    pub(crate) containment: Containment,
}

impl ExchangeWorker {
    /// Works until [`Exchanges::stop`](super::exchanges::Exchanges::stop).
    pub(crate) fn run(mut self) {
        background::step_back(&format!("public-key thread {}", self.number), &self.cpus, self.priority);
        let state = Arc::clone(&self.state);
        let exchanges = &state.exchanges;
        exchanges.enlist(self.number);
        let mut nonces = Nonces::new();
        self.containment.enter(ThreadKind::PublicKey);
        while let Some(waiting) = exchanges.next(self.number) {
            if self.answer(&waiting, &mut nonces).is_err() {
                exchanges.send_failures.count();
            }
        }
    }

    fn answer(
        &mut self,
        Waiting { exchange, worker, path }: &Waiting,
        nonces: &mut Nonces,
    ) -> io::Result<()> {
        let mut out = [0; KEY_RESPONSE_SIZE];
        let (loaded, keys) = (self.state.loaded.load(), self.state.keys.keys.load());
        // Without keys no exchange is taken in.
        let Some(keys) = &*keys else { return Ok(()) };
        let outcome = loaded.service.exchange(keys, (nonces, &mut self.entropy), exchange, &mut out);
        self.state.exchanges.count(outcome, exchange.suite());
        match outcome {
            ExchangeOutcome::Done => self.replies[*worker].send(&out, exchange.source(), path),
            ExchangeOutcome::BadCiphertext | ExchangeOutcome::NoSuite => Ok(()),
        }
    }
}
