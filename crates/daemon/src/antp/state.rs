//! The state of ANTP that threads share, and what a packet worker sees of it.

use std::sync::Arc;

use arc_swap::cache::Cache;
use arc_swap::{ArcSwap, ArcSwapOption};
use authentick_crypto::Entropy;
use authentick_lockfree::{Allowance, Bucket};
use authentick_net::engine::ReplyPath;
use authentick_proto::antp::server::Service;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::limits::LIMITER_BUCKET_COUNT;
use authentick_proto::server::antp::{AntpLimits, AntpMoment};
use authentick_proto::server::limit::{Limiter, Rate};

use super::exchanges::{Exchanges, Inbox};
use super::identity::Loaded;
use crate::config::Antp;
use crate::renewal::Reloads;
use crate::retired::Retired;
use crate::rotator::InForce;

/// The state of ANTP that threads share.
#[derive(Debug)]
pub(crate) struct AntpState {
    pub(crate) loaded: Arc<ArcSwap<Loaded>>,
    pub(crate) keys: Arc<InForce<StateKeys>>,
    pub(crate) exchanges: Exchanges,
    /// Of the certificates.
    pub(crate) reloads: Reloads,
    limits: Arc<ArcSwap<AntpLimits>>,
}

impl AntpState {
    pub(crate) fn new(
        antp: &Antp,
        loaded: Loaded,
        keys: Arc<InForce<StateKeys>>,
        entropy: &mut Entropy,
    ) -> Self {
        AntpState {
            loaded: Arc::new(ArcSwap::from_pointee(loaded)),
            keys,
            exchanges: Exchanges::new(antp.queue, antp.workers),
            reloads: Reloads::default(),
            limits: Arc::new(ArcSwap::from_pointee(limits(antp, entropy))),
        }
    }

    /// Has other limits count from now on.
    pub(crate) fn limit(&self, antp: &Antp, retired: &mut Retired<AntpLimits>, entropy: &mut Entropy) {
        retired.replace(&self.limits, Arc::new(limits(antp, entropy)));
    }
}

fn limits(antp: &Antp, entropy: &mut Entropy) -> AntpLimits {
    let mut limiter =
        |rate: Option<Rate>| rate.map(|rate| Arc::new(Limiter::new(rate, LIMITER_BUCKET_COUNT, entropy)));
    AntpLimits {
        negotiations: limiter(antp.negotiation_rate),
        exchanges: limiter(antp.exchange_rate),
        network_exchanges: limiter(antp.network_exchange_rate),
        all_exchanges: antp
            .all_exchange_rate
            .map(|rate| Arc::new(Bucket::new(Allowance::new(rate.interval_us, rate.burst)))),
        times: limiter(antp.time_rate),
    }
}

/// A packet worker's view of the state: it reads a pointer once per batch.
pub(crate) struct AntpView {
    state: Arc<AntpState>,
    loaded: Cache<Arc<ArcSwap<Loaded>>, Arc<Loaded>>,
    limits: Cache<Arc<ArcSwap<AntpLimits>>, Arc<AntpLimits>>,
    keys: Cache<Arc<ArcSwapOption<StateKeys>>, Option<Arc<StateKeys>>>,
    worker: usize,
}

impl AntpView {
    /// The view of the packet worker with a number.
    pub(crate) fn new(state: &Arc<AntpState>, worker: usize) -> Self {
        AntpView {
            state: Arc::clone(state),
            loaded: Cache::new(Arc::clone(&state.loaded)),
            limits: Cache::new(Arc::clone(&state.limits)),
            keys: Cache::new(Arc::clone(&state.keys.keys)),
            worker,
        }
    }

    /// What is in force now; `None` while there are no keys.
    pub(crate) fn look(&mut self) -> Option<Look<'_>> {
        let AntpView { state, loaded, limits, keys, worker } = self;
        let keys = keys.load().as_deref()?;
        let (service, limits) = (&loaded.load().service, &**limits.load());
        Some(Look { state, service, limits, keys, worker: *worker })
    }
}

/// The state at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    state: &'a AntpState,
    service: &'a Service,
    limits: &'a AntpLimits,
    keys: &'a StateKeys,
    worker: usize,
}

impl<'a> Look<'a> {
    /// Where key exchanges of a batch with these paths back go.
    pub(crate) fn inbox(&self, paths: &'a [ReplyPath]) -> Inbox<'a> {
        Inbox { exchanges: &self.state.exchanges, worker: self.worker, paths }
    }

    /// What the responder needs.
    pub(crate) fn moment(&self, exchanges: &'a Inbox<'a>) -> AntpMoment<'a> {
        AntpMoment { service: self.service, keys: self.keys, limits: self.limits, exchanges }
    }
}
