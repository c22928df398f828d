//! What the threads of a node share: values that are replaced as a whole, and counters.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use authentick_ke::server::{Environment, Instants, Outcome};
use authentick_ke::tls::{CertificateInfo, Identity, server_config};
use authentick_proto::keyset::KeySet;
use authentick_proto::server::snapshot::Snapshot;

use crate::antp::AntpState;
use crate::clock::HostClock;
use crate::heartbeat::{Heartbeat, Looked};
use crate::metrics::counters::{KeCounters, WorkerCounters};
use crate::metrics::spans::SpanRing;
use crate::rotator::InForce;
use crate::symmetric::keeper::SymmetricState;

/// The state of a node.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Arc<dyn HostClock>,
    pub(crate) looked: Arc<ArcSwap<Looked>>,
    /// The thread that works on files.
    pub(crate) files: Heartbeat,
    pub(crate) nts: Option<NtsState>,
    pub(crate) symmetric: Option<Arc<SymmetricState>>,
    pub(crate) antp: Option<Arc<AntpState>>,
    pub(crate) workers: Vec<WorkerCounters>,
    pub(crate) spans: Option<Arc<SpanRing>>,
    pub(crate) started: Instant,
}

/// The state of Network Time Security.
#[derive(Debug)]
pub(crate) struct NtsState {
    pub(crate) keys: Arc<InForce<KeySet>>,
    pub(crate) ke: KeCounters,
    tls: ArcSwap<rustls::ServerConfig>,
    certificate: ArcSwap<CertificateInfo>,
}

impl NtsState {
    pub(crate) fn new(keys: Arc<InForce<KeySet>>, identity: &Identity) -> Self {
        NtsState {
            keys,
            ke: KeCounters::default(),
            tls: ArcSwap::new(server_config(identity)),
            certificate: ArcSwap::from_pointee(identity.certificate.clone()),
        }
    }

    /// Puts another certificate in force for key exchanges from now on.
    pub(crate) fn set_identity(&self, identity: &Identity) {
        self.tls.store(server_config(identity));
        self.certificate.store(Arc::new(identity.certificate.clone()));
    }

    /// What the certificate in force says.
    pub(crate) fn certificate(&self) -> Arc<CertificateInfo> {
        self.certificate.load_full()
    }
}

impl Shared {
    /// What clients are told of the clock now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.looked.load().at(self.clock.boot_ns())
    }

    fn nts(&self) -> &NtsState {
        self.nts.as_ref().expect("key exchange runs only where NTS is configured")
    }
}

impl Environment for Shared {
    fn keys(&self) -> Arc<KeySet> {
        self.nts().keys.keys.load_full()
    }

    fn tls(&self) -> Arc<rustls::ServerConfig> {
        self.nts().tls.load_full()
    }

    fn accepted(&self) {
        self.nts().ke.accepted.count();
    }

    fn accept_failed(&self) {
        self.nts().ke.accept_failures.count();
    }

    fn ended(&self, outcome: Outcome) {
        self.nts().ke.ended(outcome).count();
    }

    fn is_watched(&self, source: IpAddr) -> bool {
        self.spans.as_ref().is_some_and(|spans| spans.clients().contains(source))
    }

    fn timed(&self, instants: Instants) {
        if let Some(spans) = &self.spans {
            spans.push_ke(instants);
        }
    }
}
