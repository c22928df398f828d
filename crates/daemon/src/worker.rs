//! A packet worker: it connects an engine with the responder, and runs the engine in a loop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::cache::Cache;
use arc_swap::{ArcSwap, ArcSwapOption};
use authentick_net::engine::{self, Engine, Handler, ReplyPath};
use authentick_proto::keyset::KeySet;
use authentick_proto::limits::BATCH_SIZE;
use authentick_proto::server::{Moment, Policy, Responder};
use authentick_proto::symmetric::SymmetricKeys;
use authentick_wire::datagram::{Datagram, Early};
use authentick_wire::time::NtpTime;

use crate::antp::AntpView;
use crate::clock::{HostClock, ResponderClock};
use crate::heartbeat::Looked;
use crate::metrics::counters::WorkerCounters;
use crate::metrics::spans::Recorder;
use crate::shared::Shared;

/// How long a worker waits for datagrams before it checks whether it should stop.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);
/// A busy worker asks the kernel for its drop counter once in so many turns.
const DROPS_EVERY: u64 = 1024;

const _: () = assert!(engine::BATCH_SIZE <= BATCH_SIZE, "the responder takes every batch of the engine");

/// The cookie keys in force, if there are any yet.
type CachedKeys = Cache<Arc<ArcSwapOption<KeySet>>, Option<Arc<KeySet>>>;

/// Connects an engine with the responder: holds the clock, and pointers to everything that can change.
pub(crate) struct PacketWorker<'a> {
    responder: Responder,
    clock: Arc<dyn HostClock>,
    policy: Cache<Arc<ArcSwap<Policy>>, Arc<Policy>>,
    looked: Cache<Arc<ArcSwap<Looked>>, Arc<Looked>>,
    keys: Option<CachedKeys>,
    symmetric: Option<Cache<Arc<ArcSwap<SymmetricKeys>>, Arc<SymmetricKeys>>>,
    antp: Option<AntpView>,
    recorder: Option<Recorder>,
    counters: &'a WorkerCounters,
    /// When it last looked at the clock that nobody sets.
    boot_ns: u64,
}

impl<'a> PacketWorker<'a> {
    /// The worker with this number.
    pub(crate) fn new(shared: &'a Shared, index: usize, responder: Responder) -> Self {
        PacketWorker {
            responder,
            clock: Arc::clone(&shared.clock),
            policy: Cache::new(Arc::clone(&shared.policy)),
            looked: Cache::new(Arc::clone(&shared.looked)),
            keys: shared.nts.as_ref().map(|nts| Cache::new(Arc::clone(&nts.keys.keys))),
            symmetric: shared.symmetric.as_ref().map(|symmetric| Cache::new(Arc::clone(&symmetric.keys))),
            antp: shared.antp.as_ref().map(|state| AntpView::new(state, index)),
            recorder: shared.spans.as_ref().map(|spans| Recorder::new(Arc::clone(spans), index)),
            counters: &shared.workers[index],
            boot_ns: shared.clock.boot_ns(),
        }
    }

    /// Answers what `engine` brings until told to stop, and shows what happened in its counters.
    ///
    /// # Errors
    /// If the engine fails for good.
    pub(crate) fn run(mut self, engine: &mut impl Engine, stop: &AtomicBool) -> io::Result<()> {
        let mut turn_count: u64 = 0;
        while !stop.load(Ordering::Relaxed) {
            let turn = engine.turn(&mut self)?;
            self.counters.publish_failures(&turn);
            turn_count += 1;
            if turn.received == 0 {
                self.boot_ns = self.clock.boot_ns();
            }
            self.counters.publish_beat(self.boot_ns);
            if turn.received == 0 || turn.send_buffer_full > 0 || turn_count.is_multiple_of(DROPS_EVERY) {
                self.counters.publish_memory(&turn, engine.memory());
            }
        }
        Ok(())
    }
}

impl Handler for PacketWorker<'_> {
    fn now(&mut self) -> NtpTime {
        self.clock.now()
    }

    fn respond(&mut self, batch: &mut [Datagram<'_>], paths: &[ReplyPath]) {
        self.responder.follow(self.policy.load());
        let antp = self.antp.as_mut().and_then(AntpView::look);
        let inbox = antp.as_ref().map(|antp| antp.inbox(paths));
        self.boot_ns = self.clock.boot_ns();
        let moment = Moment {
            snapshot: self.looked.load().at(self.boot_ns),
            keys: self.keys.as_mut().and_then(|keys| keys.load().as_deref()),
            symmetric: self.symmetric.as_mut().map(|keys| &**keys.load()),
            antp: antp.as_ref().zip(inbox.as_ref()).map(|(antp, inbox)| antp.moment(inbox)),
        };
        let clock = &mut ResponderClock(&*self.clock);
        match &mut self.recorder {
            None => self.responder.begin(moment, clock, &mut (), batch),
            Some(recorder) => self.responder.begin(moment, clock, recorder, batch),
        }
        // Before anything leaves: who has an answer finds it counted.
        let key_uses = [self.responder.key_uses(), self.responder.state_key_uses()];
        self.counters.publish_batch(batch.len(), self.responder.outcomes(), key_uses);
    }

    fn early(&self) -> &[Early] {
        self.responder.early()
    }

    fn finish(&mut self, batch: &mut [Datagram<'_>]) {
        self.responder.finish(batch);
    }

    fn sent(&mut self, from: NtpTime, to: NtpTime) {
        self.responder.sent(from, to);
    }
}

#[cfg(test)]
mod tests;
