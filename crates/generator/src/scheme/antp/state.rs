//! What one client keeps for ANTP: a C1, a session, and requests that it sends again and again.

use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_proto::antp::client::{KeyExchange, Negotiated, Negotiation, Session, TimeExchange};
use authentick_proto::antp::state::PENDING_SECONDS;
use authentick_report::load::Cause;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;

/// A C1 is replaced at this age.
pub(super) const C1_RENEW_NS: u64 = 30_000_000_000;
/// A C1 of this age is not sent any more, as it might expire on its way.
pub(super) const C1_USE_NS: u64 = 55_000_000_000;

const _: () = assert!(C1_RENEW_NS < C1_USE_NS, "there is time to get another one");
const _: () =
    assert!(C1_USE_NS < PENDING_SECONDS as u64 * 1_000_000_000, "the server still opens what is sent");

/// What one client keeps.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// C1 and its transcript.
    pub(crate) negotiated: Option<Negotiated>,
    /// The session key and C2, shared with requests in flight: their answers may come after the session was replaced.
    pub(crate) session: Option<Arc<Session>>,
    /// When the newest of these came.
    pub(crate) since_ns: u64,
    /// Requests that are sent again and again.
    pub(crate) static_negotiation: Option<Negotiation>,
    pub(crate) static_exchange: Option<KeyExchange>,
    pub(crate) static_time: Option<TimeExchange>,
}

impl State {
    /// Whether its C1 can be sent.
    pub(crate) fn has_c1(&self, now_ns: u64) -> bool {
        self.negotiated.is_some() && now_ns.saturating_sub(self.since_ns) < C1_USE_NS
    }

    /// Whether there is no C1 that stays valid for some time.
    pub(crate) fn wants_c1(&self, now_ns: u64) -> bool {
        self.negotiated.is_none() || now_ns.saturating_sub(self.since_ns) >= C1_RENEW_NS
    }

    /// Replaces C1, and drops the static m3 that was made with the old one.
    pub(crate) fn negotiated(&mut self, negotiated: Negotiated, now_ns: u64) {
        self.negotiated = Some(negotiated);
        self.static_exchange = None;
        self.since_ns = now_ns;
    }

    /// Makes the m3 that is sent again and again with this C1, if that has not been done. That is its public-key work.
    ///
    /// # Errors
    /// If there is no C1, or `key` is of another mechanism.
    pub(crate) fn fix_exchange(&mut self, key: &PublicKey, entropy: &mut Entropy) -> Result<(), Cause> {
        if self.static_exchange.is_none() {
            let (made, _) = self.exchange(key, entropy, &mut [0; DATAGRAM_SIZE_MAX])?;
            self.static_exchange = Some(made);
        }
        Ok(())
    }

    /// Writes m3 and returns its size: the static one with a new token, or a new one if there is none.
    ///
    /// # Errors
    /// If there is no C1, or `key` is of another mechanism.
    ///
    /// # Panics
    /// If `out` is shorter than m3, at most 392 octets.
    pub(crate) fn exchange(
        &self,
        key: &PublicKey,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> Result<(KeyExchange, usize), Cause> {
        let negotiated = self.negotiated.as_ref().ok_or(Cause::NoCookie)?;
        match &self.static_exchange {
            Some(fixed) => Ok(fixed.again(entropy, out)),
            None => negotiated.exchange(key, entropy, out).map_err(|_| Cause::Local),
        }
    }

    /// Replaces the session, and drops the static m5 that was made with the old one.
    pub(crate) fn keyed(&mut self, session: Session, now_ns: u64) {
        self.session = Some(Arc::new(session));
        self.static_time = None;
        self.since_ns = now_ns;
    }

    /// A request that was sent at `sent_ns` showed that its sealed state is useless; `false` if there is a newer one.
    pub(crate) fn forget(&mut self, sent_ns: u64) -> bool {
        let current = sent_ns >= self.since_ns;
        if current {
            let static_negotiation = self.static_negotiation.take();
            *self = State { static_negotiation, since_ns: self.since_ns, ..State::default() };
        }
        current
    }
}
