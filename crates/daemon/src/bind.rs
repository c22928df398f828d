//! Opening the ports of a server, while it still has the privileges to do so.
//!
//! The default configuration listens on the wildcard addresses of both families, and must work on a host that has only
//! one of them. An address that is named explicitly must exist: if its family is missing, that is an error.

use std::io;
use std::net::{SocketAddr, TcpListener};

use authentick_ke::server as ke_server;
use authentick_net::udp::{self, ServerSocket};

use crate::config::{Config, ConfigError};

/// The ports of a server, divided among its threads.
pub(crate) struct Ports {
    /// For each packet worker, one socket for every address.
    pub(crate) ntp: Vec<Vec<ServerSocket>>,
    /// For each thread of key exchange, one listener for every address.
    pub(crate) ke: Vec<Vec<TcpListener>>,
    pub(crate) metrics: Option<TcpListener>,
}

impl Ports {
    /// Opens the ports that a configuration names.
    ///
    /// # Errors
    /// The first address that cannot be bound.
    pub(crate) fn open(
        config: &Config,
        worker_count: usize,
        ke_worker_count: usize,
    ) -> Result<Self, ConfigError> {
        let ke_addresses = config.exchange().map_or(&[][..], |exchange| &exchange.listen);
        let metrics = config.metrics.as_ref().map(|metrics| {
            let listen = metrics.listen;
            TcpListener::bind(listen).map_err(|error| failure(config, "metrics.listen", listen, &error))
        });
        Ok(Ports {
            ntp: per_worker(config, "server.listen", &config.listen, worker_count, udp::bind_group)?,
            ke: per_worker(config, "nts.ke-listen", ke_addresses, ke_worker_count, ke_server::bind_group)?,
            metrics: metrics.transpose()?,
        })
    }

    /// Where time is asked for.
    pub(crate) fn ntp_addresses(&self) -> Vec<SocketAddr> {
        self.ntp.first().into_iter().flatten().map(ServerSocket::local).collect()
    }

    /// Where keys are exchanged.
    pub(crate) fn ke_addresses(&self) -> Vec<SocketAddr> {
        self.ke.first().into_iter().flatten().filter_map(|listener| listener.local_addr().ok()).collect()
    }
}

fn failure(config: &Config, key: &str, address: SocketAddr, error: &io::Error) -> ConfigError {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("stop what uses port {} (ss -lnp shows it), or choose another port", address.port())
        }
        io::ErrorKind::PermissionDenied => {
            "start as root, or give the program CAP_NET_BIND_SERVICE, or choose a port above 1023".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "name an address of this host, or a wildcard address".to_owned(),
        _ => "choose another address".to_owned(),
    };
    let is_permission = error.kind() == io::ErrorKind::PermissionDenied;
    ConfigError::new(&config.file, key, address, error, remedy).of_rights(is_permission)
}

/// Calls `bind` to open one socket for each worker at every address of `key`.
fn per_worker<T>(
    config: &Config,
    key: &str,
    addresses: &[SocketAddr],
    worker_count: usize,
    bind: impl Fn(SocketAddr, usize) -> io::Result<Vec<T>>,
) -> Result<Vec<Vec<T>>, ConfigError> {
    let mut workers: Vec<Vec<T>> = (0..worker_count).map(|_| Vec::new()).collect();
    for address in usable(key, addresses) {
        let sockets = bind(address, worker_count).map_err(|error| failure(config, key, address, &error))?;
        for (worker, socket) in workers.iter_mut().zip(sockets) {
            worker.push(socket);
        }
    }
    Ok(workers)
}

/// The addresses of `key` without the wildcards of IPv6 if this kernel has no IPv6; says so. All of them if nothing
/// else would be left, so that binding names the mistake.
fn usable(key: &str, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let (left, skipped) = split(addresses, udp::has_ipv6());
    for address in skipped {
        log::warn!("{key}: {address} is left out: this kernel has no IPv6");
    }
    left
}

/// What is left, and what is left out.
fn split(addresses: &[SocketAddr], has_ipv6: bool) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
    let is_missing = |address: &SocketAddr| address.is_ipv6() && address.ip().is_unspecified() && !has_ipv6;
    let (skipped, left): (Vec<_>, Vec<_>) = addresses.iter().copied().partition(is_missing);
    if left.is_empty() { (skipped, left) } else { (left, skipped) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wildcards_are_left_out_and_never_all() {
        let addresses =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let default = addresses(&["0.0.0.0:123", "[::]:123"]);
        assert_eq!(split(&default, true), (default.clone(), vec![]));
        assert_eq!(split(&default, false), (addresses(&["0.0.0.0:123"]), addresses(&["[::]:123"])));
        let named = addresses(&["0.0.0.0:123", "[2001:db8::1]:123"]);
        assert_eq!(split(&named, false), (named.clone(), vec![]));
        let alone = addresses(&["[::]:123"]);
        assert_eq!(split(&alone, false), (alone.clone(), vec![]));
    }
}
