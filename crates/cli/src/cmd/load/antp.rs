//! ANTP before a load: one run of all its phases, which shows that the server answers and is who it should be.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_client::antp::establish_by_clock;
use authentick_client::antp::phases::{TimeAsk, ask_time};
use authentick_client::{Error, Learnt, Place, Why};
use authentick_crypto::Entropy;
use authentick_ke::tls::Roots;
use authentick_proto::antp::client::Bounds;
use authentick_wire::antp::Suite;

use crate::exit::Failure;
use crate::trust;

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
    let anchor = trust::authorities(roots, server_name)?;
    let failed = |why: Why| Error { place: Place::Server(server), why };
    let learnt = &mut Learnt::default();
    let mut established = establish_by_clock(server, suite, &anchor, &mut entropy, timeout, learnt)
        .map_err(|(_, why)| failed(why))?;
    let ask = TimeAsk { is_separate: false, is_fresh: false, bounds: Bounds::WAN };
    ask_time(server, &mut established.session, ask, &mut entropy, timeout)
        .map_err(|unanswered| failed(unanswered.into()))?;
    let chain_size = established.negotiated.chain().octets().len();
    Ok(Probed { chain_size, round_count: established.round_count })
}
