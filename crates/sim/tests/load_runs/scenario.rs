//! What a seed decides of a run.

use std::sync::Arc;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_generator::schedule::Share;
use authentick_generator::{Antp, Arrivals, Guide, Judge, Order, Scheme, Settings};
use authentick_proto::antp::client::Negotiated;
use authentick_proto::antp::server::Settings as ServiceSettings;
use authentick_proto::symmetric::{Allowed, SymmetricKey, SymmetricKeys};
use authentick_sim::Server;
use authentick_sim::antp::{published_key, published_service};
use authentick_wire::antp::Suite;

pub(crate) const TIMEOUT_NS: u64 = 20_000_000;
pub(crate) const KE_TIMEOUT_NS: u64 = 60_000_000;
const SUITE: Suite = Suite::P256;

/// A run, before it begins.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) scheme: Scheme,
    pub(crate) arrivals: Arrivals,
    pub(crate) measured_count: usize,
    pub(crate) background_count: usize,
    pub(crate) orders: Vec<Order>,
    pub(crate) replays: bool,
    /// Whether all goes well until clients are ready.
    pub(crate) is_kind_at_first: bool,
    /// Of a million: requests that the host does not send, key exchanges that fail, wakes that are very late.
    pub(crate) local_ppm: u64,
    pub(crate) failed_exchange_ppm: u64,
    pub(crate) stall_ppm: u64,
    /// When in a step the server is away, from its start on.
    pub(crate) away_ns: std::ops::Range<u64>,
    /// When it comes back without the keys of its cookies.
    pub(crate) loses_keys: bool,
}

impl Scenario {
    pub(crate) fn new(entropy: &mut Entropy) -> Self {
        let mut one_in = |count: u64| entropy.u64().is_multiple_of(count);
        let (replays, same_cookie) = (one_in(4), one_in(2));
        let (is_kind_at_first, loses_keys) = (!one_in(4), one_in(2));
        let local_ppm = if one_in(4) { 50_000 } else { 0 };
        let failed_exchange_ppm = if one_in(2) { 300_000 } else { 0 };
        let stall_ppm = if one_in(4) { 30_000 } else { 0 };
        let is_away = one_in(3);
        let has_background = one_in(3);
        let mut below = |limit: u64| entropy.u64() % limit;
        let scheme = match below(12) {
            0 | 1 => Scheme::Plain,
            2 | 3 => Scheme::Mac,
            4 | 5 => Scheme::Nts,
            6 => Scheme::Ke,
            7 => Scheme::Mix {
                transfers: 1 + below(5) as u32,
                same_cookie,
                background_transfers: replays.then_some(0),
            },
            8 => Scheme::AntpNegotiate,
            9 => Scheme::AntpExchange,
            10 => Scheme::Antp,
            _ => Scheme::AntpFull,
        };
        let arrivals = match below(3) {
            0 => Arrivals::Constant,
            1 => Arrivals::Exponential,
            _ => Arrivals::Closed { window: 1 + below(6) as u32 },
        };
        let is_closed = matches!(arrivals, Arrivals::Closed { .. });
        let away_from_ns = below(80_000_000);
        let away_ns = away_from_ns..away_from_ns + if is_away { 40_000_000 } else { 0 };
        let warm_up = Duration::from_millis(if below(3) == 0 { 25 } else { 0 });
        let order = |rate_rps: f64| Order {
            rate_rps: (!is_closed).then_some(rate_rps),
            background_rps: if has_background { 30.0 } else { 0.0 },
            duration: Duration::from_millis(if is_closed { 60 } else { 100 }),
            warm_up,
            ..Order::default()
        };
        Scenario {
            scheme,
            arrivals,
            measured_count: 1 + below(4) as usize,
            background_count: if has_background { 1 + below(2) as usize } else { 0 },
            orders: (0..1 + below(2)).map(|_| order(50.0 + below(400) as f64)).collect(),
            replays,
            is_kind_at_first,
            local_ppm,
            failed_exchange_ppm,
            stall_ppm,
            away_ns,
            loses_keys,
        }
    }

    /// What the generator is told.
    pub(crate) fn settings(&self, seed: u64) -> Settings {
        let antp = Antp { suite: SUITE.0, separate_tag: seed.is_multiple_of(2), replay: self.replays };
        let guide = || Arc::new(Guide::new(antp, true, Box::new(Published)).expect("the suite is known"));
        Settings {
            scheme: self.scheme,
            arrivals: self.arrivals,
            seed,
            share: Share { index: 0, count: 1 },
            measured_count: if self.scheme == Scheme::Ke { 0 } else { self.measured_count },
            timeout: Duration::from_nanos(TIMEOUT_NS),
            ke_timeout: Duration::from_nanos(KE_TIMEOUT_NS),
            key: (self.scheme == Scheme::Mac).then(key),
            guide: self.scheme.nature().is_antp.then(guide),
            alternative_keys: false,
            replay_cookie: self.replays,
            joinable: seed.is_multiple_of(3),
        }
    }

    /// The server for it.
    pub(crate) fn server(&self, seed: u64) -> Server {
        let mut server = Server::new(seed);
        server.symmetric = SymmetricKeys::new([key()], Allowed::ALL, 1).ok();
        match self.scheme.nature().is_antp {
            true => server.with_antp(published_service(&[SUITE], ServiceSettings::default())),
            false => server,
        }
    }
}

fn key() -> SymmetricKey {
    SymmetricKey::new(7, MacKey::new(MacAlgorithm::Cmac128, &[1; 16]).expect("the size is right"))
}

/// Trusts the published identity.
#[derive(Debug)]
struct Published;

impl Judge for Published {
    fn public_key(&self, _: &Negotiated) -> Option<PublicKey> {
        Some(published_key(SUITE))
    }
}
