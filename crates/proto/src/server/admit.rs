//! Policy: who may ask, and how often. Nothing here costs more than a table look-up.

use std::net::IpAddr;
use std::sync::Arc;

use super::limit::Limiter;
use super::outcome::Outcome;
use crate::limits::RATE_KISS_SHARE;
use crate::prefix::PrefixSet;
use authentick_wire::header::ReferenceId;

/// A request that policy lets through. Only [`Policy::admit`] makes one.
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
    /// The rate limit; none if absent. Shared by all workers.
    pub limiter: Option<Arc<Limiter>>,
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
            limiter: None,
            kiss: false,
            awaits_keys: false,
            awaits_state_keys: false,
        }
    }

    /// Decides on a request. `now_us` is asked for only if there is a rate limit; `refused_count` counts refusals, so
    /// that kisses can be a share of them.
    pub(super) fn admit(
        &self,
        source: IpAddr,
        now_us: impl FnOnce() -> u64,
        refused_count: &mut u64,
    ) -> Result<Admitted, Refused> {
        //= rfc5905#9.2-2
        if !self.allow.contains(source) {
            return Err(match self.kiss {
                true => Refused::Kiss(ReferenceId::DENY, Outcome::KissDeny),
                false => Refused::Silently(Outcome::Denied),
            });
        }
        match &self.limiter {
            Some(limiter) if !limiter.admit(source, now_us()) => {
                *refused_count += 1;
                Err(match self.kiss && refused_count.is_multiple_of(RATE_KISS_SHARE) {
                    true => Refused::Kiss(ReferenceId::RATE, Outcome::KissRate),
                    false => Refused::Silently(Outcome::RateLimited),
                })
            }
            _ => Ok(Admitted(())),
        }
    }
}
