//! How many threads a node has, and where they run.

use authentick_net::affinity;

use crate::background;
use crate::config::{Config, KeyExchange};
use crate::node::StartError;

/// How many threads there are of each kind, and on which processors.
pub(crate) struct Layout {
    pub(crate) cpus: Vec<usize>,
    /// The processors without packet workers.
    pub(crate) own_cpus: Vec<usize>,
    pub(crate) worker_count: usize,
    pub(crate) ke_worker_count: usize,
}

impl Layout {
    /// # Errors
    /// If the kernel does not say which processors there are.
    pub(crate) fn of(config: &Config) -> Result<Self, StartError> {
        let cpus = affinity::allowed()
            .map_err(|error| StartError::System("find this process's processors", error))?;
        let worker_count = match config.workers {
            _ if config.listen.is_empty() => 0,
            0 => cpus.len(),
            count => count,
        };
        let ke_worker_count = match config.exchange() {
            None => 0,
            Some(KeyExchange { workers: 0, .. }) => background::thread_count(&cpus, worker_count),
            Some(exchange) => exchange.workers,
        };
        let own_cpus = background::own_cpus(&cpus, worker_count).to_vec();
        Ok(Layout { cpus, own_cpus, worker_count, ke_worker_count })
    }
}
