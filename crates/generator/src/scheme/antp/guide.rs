//! What all ANTP clients of a load have in common.

use std::fmt;
use std::sync::Arc;

use authentick_crypto::kem::PublicKey;
use authentick_proto::antp::client::{Bounds, HeldChain, Negotiated, Offer, SeparateTag, Wanted};
use authentick_proto::antp::kem;
use authentick_wire::antp::{Suite, SuiteList};
use authentick_wire::limits::ANTP_PAYLOAD_SIZE_DEFAULT;
use authentick_wire::time::NtpSpan;

use crate::plan::Antp;

/// No bound of its own: the generator's timeouts detect late answers more exactly.
pub(super) const BOUNDS: Bounds = Bounds {
    round_trip_max: NtpSpan::from_nanos(3_600_000_000_000),
    residence_max: NtpSpan::from_nanos(3_600_000_000_000),
};

/// Judges certificate chains, by roots and a clock that the core does not know.
pub trait Judge: fmt::Debug + Send + Sync {
    /// The public key of a server whose chain is good now; `None` if it is not to be trusted.
    fn public_key(&self, negotiated: &Negotiated) -> Option<PublicKey>;
}

/// The suite is not known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not known here")]
pub struct UnknownSuite(pub Suite);

/// How clients speak ANTP.
#[derive(Debug)]
pub struct Guide {
    suite: Suite,
    pub(super) replay: bool,
    /// What is asked for beside the time.
    pub(super) wanted: Wanted,
    pub(super) judge: Box<dyn Judge>,
}

impl Guide {
    /// How `antp` wants it spoken, over IPv4 or IPv6, with servers that `judge` trusts.
    ///
    /// # Errors
    /// If the suite is not known here.
    pub fn new(antp: Antp, is_ipv4: bool, judge: Box<dyn Judge>) -> Result<Self, UnknownSuite> {
        let suite = Suite(antp.suite);
        kem(suite).ok_or(UnknownSuite(suite))?;
        let separate = if is_ipv4 { SeparateTag::Ipv4 } else { SeparateTag::Ipv6 };
        let wanted = Wanted { fresh: false, separate: antp.separate_tag.then_some(separate) };
        Ok(Guide { suite, replay: antp.replay, wanted, judge })
    }

    /// What a negotiation offers: the suite alone, and the chain that is `held`.
    pub(super) fn offer(&self, held: Option<HeldChain>) -> Offer {
        let suites = SuiteList::new(&[self.suite]).expect("one suite makes a list");
        Offer { suites, payload_size_max: ANTP_PAYLOAD_SIZE_DEFAULT, held }
    }
}

/// A chain that was judged, and its key.
#[derive(Debug)]
pub(super) struct Trusted {
    pub(super) chain: HeldChain,
    pub(super) key: Arc<PublicKey>,
}
