//! How many threads a node has, and where they run.

use authentick_net::affinity;
use authentick_net::priority::Priority;

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
    /// Of key exchange threads on processors of packet workers.
    pub(crate) ke_priority: Priority,
}

impl Layout {
    /// Finds the processors, and chooses threads and priorities, which it logs.
    ///
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
        let wanted = config.exchange().map(|exchange| exchange.priority).unwrap_or_default();
        let (ke_priority, line) = background::exchange_priority(wanted);
        if worker_count != 0 && ke_worker_count != 0 {
            match line {
                _ if !own_cpus.is_empty() => {
                    log::info!(
                        "priorities: key exchange has processors without packet workers: {own_cpus:?}"
                    );
                }
                Ok(line) => log::info!("{line}"),
                Err(line) => log::warn!("{line}"),
            }
        }
        Ok(Layout { cpus, own_cpus, worker_count, ke_worker_count, ke_priority })
    }
}
