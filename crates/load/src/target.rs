//! A server that is to be loaded: who does not answer a single request need not be.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use authentick_client::antp::establish_by_clock;
use authentick_client::antp::phases::{TimeAsk, ask_time};
use authentick_client::nts::{self, KeyServer, under_either_keys};
use authentick_client::trust::Anchor;
use authentick_client::{Error, Learnt, Place, Unanswered, Why, first_response, mac, plain};
use authentick_crypto::Entropy;
use authentick_ke::tls::Roots;
use authentick_net::addresses::Addresses;
use authentick_proto::antp::client::Bounds;
use authentick_proto::client::NtsSession;
use authentick_proto::symmetric::SymmetricKey;
use authentick_report::load::AntpParameters;
use authentick_wire::antp::Suite;

use crate::plan::{Arrivals, Plan, Scheme};
use crate::shared_key::SharedKey;

/// The least time for an answer to the first request: a plan's may be short, as what comes later is to count as lost.
const FIRST_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// A server that has answered.
#[derive(Debug)]
pub struct Target {
    /// The server, as far as a plan names it; what is to be offered is [`Plan::plain`]'s still.
    pub plan: Plan,
    /// Whom clients trust, if the server proves with certificates who it is.
    pub roots: Option<Roots>,
    /// The algorithm that authenticates, as records name it.
    pub authentication: String,
    /// What a first run of ANTP found out.
    pub antp: Option<AntpParameters>,
}

impl Plan {
    /// One client that asks the server at `ntp` for time at equal distances, without authentication.
    #[must_use]
    pub fn plain(ntp: SocketAddr) -> Self {
        Plan {
            scheme: Scheme::Plain,
            ntp,
            ke: ntp,
            server_name: String::new(),
            authorities_pem: None,
            shared_key: None,
            antp: None,
            aeads: Vec::new(),
            alternative_keys: false,
            clients: 1,
            background_clients: 0,
            sources: Vec::new(),
            background_sources: Vec::new(),
            workers: 1,
            pinned: true,
            arrivals: Arrivals::Constant,
            seed: 0,
            timeout: Duration::from_secs(1),
            ke_timeout: Duration::from_secs(10),
            replay_cookie: false,
            joinable: false,
        }
    }
}

/// How long the first request waits for its answer.
fn first_timeout(plan: &Plan) -> Duration {
    plan.timeout.max(FIRST_TIMEOUT_MIN)
}

/// The address of a server that responds to a first request, with what came of it; if none responds well and that
/// `is_forced`, the last one that was tried, which is logged.
fn probe<T>(
    addresses: &Addresses,
    is_forced: bool,
    mut attempt: impl FnMut(SocketAddr) -> Result<T, Error>,
) -> Result<(SocketAddr, Option<T>), Error> {
    let mut tried = None;
    let probed = first_response(addresses, |server| {
        tried = Some(server);
        attempt(server).map(|ended| (server, Some(ended)))
    });
    match (probed, tried) {
        (Err(error), Some(server)) if is_forced => {
            log::warn!("{error}; {server} is loaded all the same");
            Ok((server, None))
        }
        (probed, _) => probed,
    }
}

fn failed(server: SocketAddr, why: impl Into<Why>) -> Error {
    Error { place: Place::Server(server), why: why.into() }
}

impl Target {
    fn new(plan: Plan, roots: Option<Roots>, authentication: &impl ToString) -> Self {
        Target { plan, roots, authentication: authentication.to_string(), antp: None }
    }

    /// Asks a server without authentication, at one address after the other: the first that responds is the
    /// address of the whole run. This and the others go on if it `is_forced`, though the
    /// first request had no good response: that is logged.
    ///
    /// # Errors
    /// Why there is no response.
    pub fn plain(
        plan: Plan,
        addresses: &Addresses,
        is_forced: bool,
        entropy: &mut Entropy,
    ) -> Result<Self, Error> {
        let timeout = first_timeout(&plan);
        let (ntp, _) = probe(addresses, is_forced, |server| {
            plain::ask(server, entropy, timeout).map_err(|why| failed(server, why))
        })?;
        Ok(Target::new(Plan { ntp, ke: ntp, ..plan }, None, &"none"))
    }

    /// Asks a server without authentication; any response will do, even one that fails every check: of a server that is
    /// not synchronised, for example.
    ///
    /// # Errors
    /// Why there is no response.
    pub fn reached(plan: Plan, addresses: &Addresses, entropy: &mut Entropy) -> Result<Self, Error> {
        let timeout = first_timeout(&plan);
        let (ntp, _) = probe(addresses, false, |server| match plain::ask(server, entropy, timeout) {
            Ok(_) | Err(Unanswered::Rejected(_)) => Ok(()),
            Err(why) => Err(failed(server, why)),
        })?;
        Ok(Target::new(Plan { ntp, ke: ntp, ..plan }, None, &"none"))
    }

    /// Asks it under a key that it shares.
    ///
    /// # Errors
    /// Why there is no response.
    pub fn with_key(
        plan: Plan,
        addresses: &Addresses,
        key: &SymmetricKey,
        is_forced: bool,
        entropy: &mut Entropy,
    ) -> Result<Self, Error> {
        let timeout = first_timeout(&plan);
        let (ntp, _) = probe(addresses, is_forced, |server| {
            mac::ask(server, key, entropy, timeout).map_err(|why| failed(server, why))
        })?;
        let plan = Plan { ntp, ke: ntp, shared_key: Some(SharedKey::from(key)), ..plan };
        Ok(Target::new(plan, None, &key.algorithm()))
    }

    /// Goes through all phases of ANTP.
    ///
    /// # Errors
    /// Why it has not proved who it is, or has not responded.
    pub fn under_antp(
        plan: Plan,
        addresses: &Addresses,
        suite: Suite,
        roots: Roots,
        anchor: &Anchor,
        is_forced: bool,
        entropy: &mut Entropy,
    ) -> Result<Self, Error> {
        let timeout = first_timeout(&plan);
        let learnt = &mut Learnt::default();
        let (ntp, mut established) = first_response(addresses, |server| {
            establish_by_clock(server, suite, anchor, entropy, timeout, learnt)
                .map(|established| (server, established))
                .map_err(|(_, why)| failed(server, why))
        })?;
        let ask = TimeAsk { is_separate: false, is_fresh: false, bounds: Bounds::WAN };
        probe(&ntp.into(), is_forced, |server| {
            ask_time(server, &mut established.session, ask, entropy, timeout)
                .map_err(|why| failed(server, why))
        })?;
        let antp = AntpParameters {
            chain_size: established.negotiated.chain().octets().len() as u32,
            round_count: established.round_count,
            ..AntpParameters::default()
        };
        let plan = Plan { ntp, ke: ntp, ..plan };
        Ok(Target { antp: Some(antp), ..Target::new(plan, Some(roots), &suite) })
    }

    /// Exchanges keys and, unless these are all that is wanted, asks the server that they are for. A key exchange may
    /// send clients anywhere; load goes only where `allow` lets it.
    ///
    /// # Errors
    /// `allow`'s, or why there are no keys or no response.
    pub fn under_nts<E: From<Error>>(
        plan: Plan,
        key_server: &KeyServer,
        roots: Roots,
        allow: impl Fn(&str, IpAddr) -> Result<(), E>,
        is_forced: bool,
        entropy: &mut Entropy,
    ) -> Result<Self, E> {
        let dialled = key_server.exchange_keys(plan.ke_timeout)?;
        let ke = dialled.address;
        let timeout = first_timeout(&plan);
        let (mut ntp, mut alternative_keys) = (ke, false);
        let addresses = (plan.scheme != Scheme::Ke).then(|| key_server.ntp_addresses(&dialled, timeout));
        let mut established = dialled.established;
        if let Some(addresses) = addresses.transpose()? {
            let host = established.ntp_server.as_deref().unwrap_or(&key_server.host);
            addresses.all().try_for_each(|address| allow(host, address.ip()))?;
            let session = &mut established.session;
            (ntp, alternative_keys) = probe_under_nts(&addresses, session, is_forced, entropy, timeout)?;
        }
        let aeads = key_server.ask.aeads.iter().map(|aead| aead.0).collect();
        let plan = Plan { ntp, ke, aeads, alternative_keys, ..plan };
        Ok(Target::new(plan, Some(roots), &established.aead))
    }
}

/// The address that responds under the keys of `session`, and whether it does so under the other ones.
fn probe_under_nts(
    addresses: &Addresses,
    session: &mut NtsSession,
    is_forced: bool,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<(SocketAddr, bool), Error> {
    let mut ask = |session: &mut NtsSession, addresses: &Addresses, is_forced: bool| {
        probe(addresses, is_forced, |server| {
            nts::ask(server, session, entropy, timeout).map_err(|why| failed(server, why))
        })
    };
    match under_either_keys(session, |session| ask(session, addresses, false)) {
        Err(_) if is_forced => ask(session, addresses, true).map(|(ntp, _)| (ntp, false)),
        asked => asked.map(|((ntp, _), alternative)| (ntp, alternative)),
    }
}
