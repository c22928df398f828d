//! ANTP before a load: one run of all its phases, which shows that the server answers and is who it should be.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_ke::tls::Roots;
use authentick_proto::antp::client::{Bounds, Offer};
use authentick_wire::antp::{Suite, SuiteList};

use crate::antp::phases::{TimeAsk, ask_time, exchange_keys, negotiate};
use crate::antp::trust::{Anchor, Dates, Times, judge};
use crate::exit::{Exit, Failure};

/// What the first run found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probed {
    /// Octets of the certificate chain, as the protocol encodes it.
    pub(crate) chain_size: usize,
    /// Requests that the negotiation took.
    pub(crate) round_count: u32,
}

/// Goes through all phases with `server` once; each of them has `timeout`.
pub(super) fn probe(
    server: SocketAddr,
    suite: Suite,
    roots: &Roots,
    server_name: &str,
    timeout: Duration,
) -> Result<Probed, Failure> {
    let mut entropy = Entropy::from_system()?;
    let anchor = Anchor::authorities(roots, server_name)?;
    let distrusted = |why: String| Failure::new(Exit::Authentication, format!("{server}: {why}"));
    let offer = Offer { suites: SuiteList::new(&[suite]).expect("one suite makes a list"), ..Offer::p256() };
    let agreed =
        negotiate(server, offer, &mut entropy, timeout).map_err(|problem| problem.failure(server))?;
    let (negotiated, chain) = (&agreed.negotiated, agreed.negotiated.chain());
    let believed = judge(&anchor, &Dates::At(Times::exactly_now()), &chain, suite).map_err(distrusted)?;
    let mut session = exchange_keys(server, negotiated, &believed.key, &mut entropy, timeout)
        .map_err(|wrong| distrusted(wrong.to_string()))?
        .map_err(|problem| problem.failure(server))?
        .session;
    let ask = TimeAsk { is_separate: false, is_fresh: false, bounds: Bounds::WAN };
    ask_time(server, &mut session, ask, &mut entropy, timeout).map_err(|problem| problem.failure(server))?;
    Ok(Probed { chain_size: chain.octets().len(), round_count: agreed.round_count })
}
