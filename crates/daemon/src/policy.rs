//! Who is given time, and how often, as the configuration says.

use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_proto::limits::LIMITER_BUCKET_COUNT;
use authentick_proto::server::Policy;
use authentick_proto::server::limit::{Limiter, Rate};

use crate::config::{Config, RotatingKeys};

/// The policy of a configuration, with nobody's requests counted yet.
pub(crate) fn of(config: &Config, entropy: &mut Entropy) -> Policy {
    with_limiter(config, limiter(config.rate, entropy))
}

/// The same after `before`. What clients have asked counts on, unless there is another rate limit.
pub(crate) fn after(before: &Policy, config: &Config, entropy: &mut Entropy) -> Policy {
    let limiter = match &before.limiter {
        Some(limiter) if Some(limiter.rate()) == config.rate => Some(Arc::clone(limiter)),
        _ => limiter(config.rate, entropy),
    };
    with_limiter(config, limiter)
}

fn limiter(rate: Option<Rate>, entropy: &mut Entropy) -> Option<Arc<Limiter>> {
    rate.map(|rate| Arc::new(Limiter::new(rate, LIMITER_BUCKET_COUNT, entropy)))
}

fn with_limiter(config: &Config, limiter: Option<Arc<Limiter>>) -> Policy {
    Policy {
        allow: config.allow.clone(),
        limiter,
        kiss: config.kiss,
        awaits_keys: config.cookie_keys().is_some_and(RotatingKeys::are_awaited),
        awaits_state_keys: config.state_keys().is_some_and(RotatingKeys::are_awaited),
    }
}
