//! Opening the ports of a server, while it still has the privileges to do so.
//!
//! The default configuration listens on the wildcard addresses of both families, and must work on a host that has only
//! one of them. An address that is named explicitly must exist: if its family is missing, that is an error. Sockets
//! that the service manager has kept come before new ones.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};

use authentick_ke::server as ke_server;
use authentick_net::udp::{self, SendBuffer, ServerSocket};

use crate::config::{Config, ConfigError};
use crate::manager::{Manager, Place};

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
        manager: &mut Manager,
    ) -> Result<Self, ConfigError> {
        let ke_addresses = config.exchange().map_or(&[][..], |exchange| &exchange.listen);
        let metrics = config.metrics.as_ref().map(|metrics| {
            let listen = metrics.listen;
            TcpListener::bind(listen).map_err(|error| failure(config, "metrics.listen", listen, &error))
        });
        let mut opening = Opening { config, manager, places: Vec::new() };
        let ports = Ports {
            ntp: opening.per_worker("server.listen", &config.listen, worker_count)?,
            ke: opening.per_worker("nts.ke-listen", ke_addresses, ke_worker_count)?,
            metrics: metrics.transpose()?,
        };
        let Opening { manager, places, .. } = opening;
        manager.close_the_rest(&places);
        Ok(ports)
    }

    /// Where time is asked for.
    pub(crate) fn ntp_addresses(&self) -> Vec<SocketAddr> {
        self.ntp.first().into_iter().flatten().map(ServerSocket::local).collect()
    }

    /// The smallest send buffer of those that time is served from.
    pub(crate) fn send_buffer(&self) -> Option<SendBuffer> {
        let sizes = self.ntp.iter().flatten().filter_map(|socket| Some(socket.memory().ok()?.send_buffer));
        sizes.min().map(|size| SendBuffer { size })
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
    config.wrong(key, address, error, remedy).of_rights(is_permission)
}

/// What takes clients: a socket for datagrams, or a listener.
trait Door: AsFd + Sized {
    const IS_LISTENER: bool;

    /// A socket of this kind that was bound before.
    ///
    /// # Errors
    /// The kernel's.
    fn adopt(socket: OwnedFd) -> io::Result<Self>;

    /// Binds so many to an address that nobody has.
    ///
    /// # Errors
    /// The kernel's.
    fn bind(address: SocketAddr, count: usize) -> io::Result<Vec<Self>>;

    /// Binds so many to an address that others of this server have, or may have later.
    ///
    /// # Errors
    /// The kernel's.
    fn join(address: SocketAddr, count: usize) -> io::Result<Vec<Self>>;
}

impl Door for ServerSocket {
    const IS_LISTENER: bool = false;

    fn adopt(socket: OwnedFd) -> io::Result<Self> {
        ServerSocket::adopt(socket)
    }

    fn bind(address: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        udp::bind_group(address, count)
    }

    fn join(address: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        udp::join_group(address, count)
    }
}

impl Door for TcpListener {
    const IS_LISTENER: bool = true;

    fn adopt(socket: OwnedFd) -> io::Result<Self> {
        let listener = TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    fn bind(address: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        ke_server::bind_group(address, count)
    }

    fn join(address: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        ke_server::join_group(address, count)
    }
}

struct Opening<'a> {
    config: &'a Config,
    manager: &'a mut Manager,
    /// What was opened.
    places: Vec<Place>,
}

impl Opening<'_> {
    /// One socket for each worker at every address of `key`.
    fn per_worker<T: Door>(
        &mut self,
        key: &str,
        addresses: &[SocketAddr],
        worker_count: usize,
    ) -> Result<Vec<Vec<T>>, ConfigError> {
        let mut workers: Vec<Vec<T>> = (0..worker_count).map(|_| Vec::new()).collect();
        for address in usable(key, addresses) {
            let sockets = self
                .open(address, worker_count)
                .map_err(|error| failure(self.config, key, address, &error))?;
            for (worker, socket) in workers.iter_mut().zip(sockets) {
                worker.push(socket);
            }
        }
        Ok(workers)
    }

    /// Sockets at an address: those that were kept, and as many new ones as are missing. They are kept again.
    fn open<T: Door>(&mut self, address: SocketAddr, count: usize) -> io::Result<Vec<T>> {
        let place = Place { is_listener: T::IS_LISTENER, address };
        let kept = self.manager.take(place, count);
        let missing = count - kept.len();
        let sockets = if kept.is_empty() {
            let sockets = T::bind(address, count)?;
            if !self.manager.keeps() || count > 1 {
                sockets
            } else {
                // The next run may have more workers.
                drop(sockets);
                T::join(address, count)?
            }
        } else {
            if missing > 0 && kept.iter().any(|socket| !socket.shares) {
                let problem = "the service manager holds a socket that shares this address with no other worker's \
                               (ReusePort=yes lets it)";
                return Err(io::Error::new(io::ErrorKind::AddrInUse, problem));
            }
            let adopted: io::Result<Vec<T>> =
                kept.into_iter().map(|inherited| T::adopt(inherited.socket)).collect();
            let mut sockets = adopted?;
            sockets.extend(T::join(address, missing)?);
            sockets
        };
        // A port that the kernel chooses is another one in the next run.
        if address.port() != 0 {
            self.manager.keep(place, &sockets.iter().map(AsFd::as_fd).collect::<Vec<_>>());
            self.places.push(place);
        }
        Ok(sockets)
    }
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
