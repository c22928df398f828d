//! Policy: who may ask, and how often. Nothing here costs more than a table look-up.

use std::net::IpAddr;
use std::sync::Arc;

use super::entitled::{Authenticated, Rejected};
use super::limit::{Client, ClientLimits};
use super::outcome::Outcome;
use super::{Clock, Standing};
use crate::limits::RATE_KISS_SHARE;
use crate::prefix::PrefixSet;
use authentick_wire::header::ReferenceId;

/// A request from an address that may ask. Only [`Policy::permit`] makes one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permitted(());

/// A request within the rate limits. Only [`Meter`] makes one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted(());

/// A request that policy turns away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Without a word.
    Silently(Outcome),
    /// With a kiss, which carries no time.
    Kiss(ReferenceId, Outcome),
}

/// Who may ask, how often, and what the others hear.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Addresses that may ask.
    pub allow: PrefixSet,
    /// The rate limits; none if absent. Shared by all workers.
    pub limits: Option<Arc<ClientLimits>>,
    /// Whether refused clients get a kiss (DENY, and RATE now and then) instead of silence.
    pub kiss: bool,
    /// Whether cookie keys are made elsewhere and reach this server late, perhaps: a cookie under one of the next keys,
    /// or any while there are none, then gets silence instead of NTSN.
    pub awaits_keys: bool,
    /// The same of ANTP's state keys: state under one of the next keys, and every request of ANTP while there are no
    /// keys, then gets silence.
    pub awaits_state_keys: bool,
}

impl Policy {
    /// Lets everyone through.
    #[must_use]
    pub fn open() -> Self {
        Policy {
            allow: PrefixSet::everything(),
            limits: None,
            kiss: false,
            awaits_keys: false,
            awaits_state_keys: false,
        }
    }

    /// Whether `source` may ask at all.
    //= rfc5905#9.2-2
    pub(super) fn permit(&self, source: IpAddr) -> Result<Permitted, Refused> {
        match (self.allow.contains(source), self.kiss) {
            (true, _) => Ok(Permitted(())),
            (false, true) => Err(Refused::Kiss(ReferenceId::DENY, Outcome::KissDeny)),
            (false, false) => Err(Refused::Silently(Outcome::Denied)),
        }
    }
}

/// Charges requests by the policy's rate limits.
pub(super) struct Meter<'a, C> {
    pub(super) policy: &'a Policy,
    /// Read only if there is a limit.
    pub(super) clock: &'a mut C,
    /// Refusals, of which a share gets kisses.
    pub(super) refused_count: &'a mut u64,
}

impl<C: Clock> Meter<'_, C> {
    /// Charges a request that proves nothing to its source.
    #[inline]
    pub(super) fn admit(&mut self, _: Permitted, source: IpAddr) -> Result<Admitted, Refused> {
        self.charge(|limits, now_us| limits.admit(source, now_us))
    }

    /// Charges a request to its client; `client` is asked for only if there is a limit.
    #[inline]
    pub(super) fn admit_client<'c>(
        &mut self,
        _: Authenticated,
        source: IpAddr,
        client: impl FnOnce() -> Client<'c>,
    ) -> Result<Admitted, Refused> {
        self.charge(|limits, now_us| limits.admit_client(client(), source, now_us))
    }

    /// What becomes of a request whose proof does not hold: anyone can send it, so a response to it is charged to its
    /// source.
    pub(super) fn reject(&mut self, permitted: Permitted, source: IpAddr, rejected: Rejected) -> Standing {
        match rejected {
            Rejected::Silently(_) => rejected.into(),
            Rejected::Nak(_) | Rejected::CryptoNak(..) => match self.admit(permitted, source) {
                Ok(_) => rejected.into(),
                Err(refused) => refused.into(),
            },
        }
    }

    #[inline]
    fn charge(&mut self, admits: impl FnOnce(&ClientLimits, u64) -> bool) -> Result<Admitted, Refused> {
        match &self.policy.limits {
            Some(limits) if !admits(limits, self.clock.monotonic_us()) => {
                *self.refused_count += 1;
                Err(match self.policy.kiss && self.refused_count.is_multiple_of(RATE_KISS_SHARE) {
                    true => Refused::Kiss(ReferenceId::RATE, Outcome::KissRate),
                    false => Refused::Silently(Outcome::RateLimited),
                })
            }
            _ => Ok(Admitted(())),
        }
    }
}
