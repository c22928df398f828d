//! Who is given time, and how often, as the configuration says.

use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_proto::limits::LIMITER_BUCKET_COUNT;
use authentick_proto::server::Policy;
use authentick_proto::server::limit::{ClientLimits, Rate};

use crate::config::{Config, RotatingKeys};

/// The policy of a configuration, with nobody's requests counted yet.
pub(crate) fn of(config: &Config, entropy: &mut Entropy) -> Policy {
    with_limits(config, limits(config.rate, entropy))
}

/// The same after `before`. What clients have asked counts on, unless there is another rate limit.
pub(crate) fn after(before: &Policy, config: &Config, entropy: &mut Entropy) -> Policy {
    let limits = match &before.limits {
        Some(limits) if Some(limits.rate()) == config.rate => Some(Arc::clone(limits)),
        _ => limits(config.rate, entropy),
    };
    with_limits(config, limits)
}

fn limits(rate: Option<Rate>, entropy: &mut Entropy) -> Option<Arc<ClientLimits>> {
    rate.map(|rate| Arc::new(ClientLimits::new(rate, LIMITER_BUCKET_COUNT, entropy)))
}

fn with_limits(config: &Config, limits: Option<Arc<ClientLimits>>) -> Policy {
    Policy {
        allow: config.allow.clone(),
        limits,
        kiss: config.kiss,
        awaits_keys: config.cookie_keys().is_some_and(RotatingKeys::are_awaited),
        awaits_state_keys: config.state_keys().is_some_and(RotatingKeys::are_awaited),
    }
}
