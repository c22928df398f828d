//! `[metrics]`: the endpoint, and whose requests are timed.

use authentick_proto::prefix::PrefixSet;

use super::{ConfigError, ListenAddress, Resolver, raw};

/// Settings of the metrics endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Where it listens.
    pub listen: ListenAddress,
    /// Whose requests are timed stage by stage.
    pub span_clients: PrefixSet,
    /// One request for time in so many of them is; 1: all.
    pub span_every: u32,
}

/// The most that [`Metrics::span_every`] can be.
const SPAN_EVERY_MAX: i64 = 1_000_000;

impl Resolver<'_> {
    pub(super) fn metrics(&self, raw: &raw::Metrics) -> Result<Metrics, ConfigError> {
        Ok(Metrics {
            listen: self.address("metrics.listen", &raw.listen)?,
            span_clients: PrefixSet::new(self.prefixes("metrics.span-clients", &raw.span_clients)?),
            span_every: self.number("metrics.span-every", raw.span_every.unwrap_or(1), 1..=SPAN_EVERY_MAX)?,
        })
    }
}
