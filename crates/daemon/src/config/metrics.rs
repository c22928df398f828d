//! `[metrics]`: the endpoint, and whose requests are timed.

use std::net::SocketAddr;

use authentick_proto::prefix::PrefixSet;

use super::{ConfigError, Resolver, raw};

/// Settings of the metrics endpoint.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whose requests are timed stage by stage.
    pub span_clients: PrefixSet,
}

impl Resolver<'_> {
    pub(super) fn metrics(&self, raw: &raw::Metrics) -> Result<Metrics, ConfigError> {
        Ok(Metrics {
            listen: self.address("metrics.listen", &raw.listen)?,
            span_clients: self.prefixes("metrics.span-clients", &raw.span_clients)?,
        })
    }
}
