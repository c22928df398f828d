//! A server that is to be loaded: who does not answer a single request need not be.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use authentick_client::antp::establish_by_clock;
use authentick_client::antp::phases::{TimeAsk, ask_time};
use authentick_client::nts::{KeyServer, ask_with_either_keys};
use authentick_client::trust::Anchor;
use authentick_client::{Error, Learnt, Place, Unanswered, Why, mac, plain};
use authentick_crypto::Entropy;
use authentick_ke::tls::Roots;
use authentick_proto::antp::client::Bounds;
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

/// What came of the first request for time; `None` if it had no good answer and that is no matter.
fn first<T>(
    asked: Result<T, impl Into<Why>>,
    server: SocketAddr,
    is_forced: bool,
) -> Result<Option<T>, Error> {
    match asked.map_err(|why| Error { place: Place::Server(server), why: why.into() }) {
        Err(error) if is_forced => {
            log::warn!("{error}; it is loaded all the same");
            Ok(None)
        }
        asked => asked.map(Some),
    }
}

impl Target {
    fn new(plan: Plan, roots: Option<Roots>, authentication: &impl ToString) -> Self {
        Target { plan, roots, authentication: authentication.to_string(), antp: None }
    }

    /// Asks the server of `plan` without authentication. This and the others go on if `is_forced`, though the first
    /// request had no good answer: that is logged.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn plain(plan: Plan, is_forced: bool, entropy: &mut Entropy) -> Result<Self, Error> {
        let asked = plain::ask(plan.ntp, entropy, first_timeout(&plan));
        first(asked, plan.ntp, is_forced)?;
        Ok(Target::new(plan, None, &"none"))
    }

    /// Asks the server of `plan` without authentication; any answer will do, even one that fails every check: of a
    /// server that is not synchronised, for example.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn reached(plan: Plan, entropy: &mut Entropy) -> Result<Self, Error> {
        match plain::ask(plan.ntp, entropy, first_timeout(&plan)) {
            Ok(_) | Err(Unanswered::Rejected(_)) => Ok(Target::new(plan, None, &"none")),
            Err(unanswered) => Err(unanswered.of(plan.ntp)),
        }
    }

    /// Asks it under a key that it shares.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn with_key(
        plan: Plan,
        key: &SymmetricKey,
        is_forced: bool,
        entropy: &mut Entropy,
    ) -> Result<Self, Error> {
        let asked = mac::ask(plan.ntp, key, entropy, first_timeout(&plan));
        first(asked, plan.ntp, is_forced)?;
        let plan = Plan { shared_key: Some(SharedKey::from(key)), ..plan };
        Ok(Target::new(plan, None, &key.algorithm()))
    }

    /// Goes through all phases of ANTP.
    ///
    /// # Errors
    /// Why it has not proved who it is, or has not answered.
    pub fn under_antp(
        plan: Plan,
        suite: Suite,
        roots: Roots,
        anchor: &Anchor,
        is_forced: bool,
        entropy: &mut Entropy,
    ) -> Result<Self, Error> {
        let (server, timeout) = (plan.ntp, first_timeout(&plan));
        let failed = |why: Why| Error { place: Place::Server(server), why };
        let learnt = &mut Learnt::default();
        let mut established = establish_by_clock(server, suite, anchor, entropy, timeout, learnt)
            .map_err(|(_, why)| failed(why))?;
        let ask = TimeAsk { is_separate: false, is_fresh: false, bounds: Bounds::WAN };
        first(ask_time(server, &mut established.session, ask, entropy, timeout), server, is_forced)?;
        let antp = AntpParameters {
            chain_size: established.negotiated.chain().octets().len() as u32,
            round_count: established.round_count,
            ..AntpParameters::default()
        };
        Ok(Target { antp: Some(antp), ..Target::new(plan, Some(roots), &suite) })
    }

    /// Exchanges keys and, unless these are all that is wanted, asks the server that they are for. A key exchange may
    /// send clients anywhere; load goes only where `allow` lets it.
    ///
    /// # Errors
    /// `allow`'s, or why there are no keys or no answer.
    pub fn under_nts<E: From<Error>>(
        plan: Plan,
        key_server: &KeyServer,
        roots: Roots,
        allow: impl Fn(&str, IpAddr) -> Result<(), E>,
        is_forced: bool,
        entropy: &mut Entropy,
    ) -> Result<Self, E> {
        let dialled = key_server.exchange_keys(plan.ke_timeout)?;
        let ntp = key_server.ntp_address(&dialled)?;
        let mut established = dialled.established;
        let mut alternative_keys = false;
        if plan.scheme != Scheme::Ke {
            allow(established.ntp_server.as_deref().unwrap_or(&key_server.host), ntp.ip())?;
            let asked = ask_with_either_keys(ntp, &mut established.session, entropy, first_timeout(&plan));
            alternative_keys = first(asked, ntp, is_forced)?.is_some_and(|(_, alternative)| alternative);
        }
        let aeads = key_server.ask.aeads.iter().map(|aead| aead.0).collect();
        let plan = Plan { ntp, ke: dialled.address, aeads, alternative_keys, ..plan };
        Ok(Target::new(plan, Some(roots), &established.aead))
    }
}
