//! What the threads of a node share: values that are replaced as a whole, and counters.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwap;
use authentick_ke::server::{Admission, Environment, Instants, Outcome};
use authentick_ke::session::Terms;
use authentick_proto::keyset::KeySet;
use authentick_proto::server::Policy;
use authentick_proto::server::snapshot::Snapshot;

use crate::addresses::ServedAddresses;
use crate::advertised::Advertiser;
use crate::antp::AntpState;
use crate::certificates::InForce;
use crate::clock::HostClock;
use crate::fleet::FleetState;
use crate::heartbeat::{Heartbeat, Looked};
use crate::keystore::CfntsStore;
use crate::leap::LeapSeconds;
use crate::metrics::counters::{Counter, KeCounters, WorkerCounters};
use crate::metrics::spans::SpanRing;
use crate::rotator;
use crate::symmetric::keeper::SymmetricState;

/// The state of a node.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Arc<dyn HostClock>,
    /// Where clients come, and what of it is there.
    pub(crate) addresses: ServedAddresses,
    pub(crate) looked: Arc<ArcSwap<Looked>>,
    /// Who is given time, and how often.
    pub(crate) policy: Arc<ArcSwap<Policy>>,
    /// The thread that works on files.
    pub(crate) files: Heartbeat,
    /// What leap seconds are announced by, where an operator vouches for the clock.
    pub(crate) leaps: Option<Arc<ArcSwap<LeapSeconds>>>,
    pub(crate) nts: Option<NtsState>,
    pub(crate) symmetric: Option<Arc<SymmetricState>>,
    pub(crate) antp: Option<Arc<AntpState>>,
    pub(crate) fleet: Option<FleetState>,
    pub(crate) cfnts: Option<Arc<CfntsStore>>,
    pub(crate) workers: Vec<WorkerCounters>,
    pub(crate) spans: Option<Arc<SpanRing>>,
    pub(crate) started: Instant,
    /// Times that SIGHUP was obeyed.
    pub(crate) reloads: Counter,
}

/// The state of Network Time Security.
#[derive(Debug)]
pub(crate) struct NtsState {
    pub(crate) keys: Arc<rotator::InForce<KeySet>>,
    /// Absent where other hosts exchange keys.
    pub(crate) exchange: Option<ExchangeState>,
}

/// The state of the key exchange.
#[derive(Debug)]
pub(crate) struct ExchangeState {
    pub(crate) ke: KeCounters,
    tls: ArcSwap<rustls::ServerConfig>,
    certificates: ArcSwap<InForce>,
    pub(crate) advertiser: ArcSwap<Advertiser>,
    /// Who may connect, and how often; nobody, before the threads start.
    pub(crate) admission: OnceLock<Arc<Admission>>,
}

impl ExchangeState {
    pub(crate) fn new(certificates: InForce, advertiser: Advertiser) -> Self {
        ExchangeState {
            ke: KeCounters::default(),
            tls: ArcSwap::new(certificates.tls()),
            certificates: ArcSwap::from_pointee(certificates),
            advertiser: ArcSwap::from_pointee(advertiser),
            admission: OnceLock::new(),
        }
    }

    /// Puts other certificates in force for key exchanges from now on.
    pub(crate) fn set_certificates(&self, certificates: InForce) {
        self.tls.store(certificates.tls());
        self.certificates.store(Arc::new(certificates));
    }

    /// The certificates in force.
    pub(crate) fn certificates(&self) -> Arc<InForce> {
        self.certificates.load_full()
    }
}

impl Shared {
    /// What clients are told of the clock now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.looked.load().at(self.clock.boot_ns())
    }

    /// The state of the key exchange, where there is one.
    pub(crate) fn exchange_state(&self) -> Option<&ExchangeState> {
        self.nts.as_ref()?.exchange.as_ref()
    }

    /// Sends new clients to the servers whose members of the fleet open their cookies.
    pub(crate) fn choose_servers(&self) {
        let (Some(exchange), Some(fleet)) = (self.exchange_state(), &self.fleet) else { return };
        // Without keys, none are exchanged.
        let Some(key) = fleet.sealing_key() else { return };
        let now = Instant::now();
        exchange.advertiser.load().choose(|member| fleet.opens(member, key, now));
    }

    /// Has the threads that talk to memcached end.
    pub(crate) fn end_links(&self) {
        if let Some(fleet) = &self.fleet {
            fleet.bell.end();
        }
        if let Some(cfnts) = &self.cfnts {
            cfnts.end();
        }
    }

    fn nts(&self) -> &NtsState {
        self.nts.as_ref().expect("key exchange runs only where NTS is configured")
    }

    fn exchange(&self) -> &ExchangeState {
        self.nts().exchange.as_ref().expect("key exchange runs only where it is configured")
    }
}

impl Environment for Shared {
    fn keys(&self) -> Option<Arc<KeySet>> {
        self.nts().keys.keys.load_full()
    }

    fn tls(&self) -> Arc<rustls::ServerConfig> {
        self.exchange().tls.load_full()
    }

    fn terms(&self) -> Arc<Terms> {
        self.exchange().advertiser.load().terms()
    }

    fn accepted(&self) {
        self.exchange().ke.accepted.count();
    }

    fn accept_failed(&self) {
        self.exchange().ke.accept_failures.count();
    }

    fn ended(&self, outcome: Outcome) {
        self.exchange().ke.ended(outcome).count();
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
