//! Opening the ports of a server, while it still has the privileges to do so.
//!
//! The default configuration listens on the wildcard addresses of both families, and must work on a host that has only
//! one of them. An address need not be there yet, as sockets are bound ahead of it; a port that is taken and an
//! interface that is missing are tried again for `server.bind-patience`. Each attempt opens all sockets or none, so no
//! request waits in one that is not read. Sockets that the service manager has kept come before new ones, and stay
//! open through failed attempts. Metrics wait on their own: time is served without them.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use authentick_ke::server as ke_server;
use authentick_net::passing::may_pass;
use authentick_net::tcp::PendingListener;
use authentick_net::udp::{self, SendBuffer, ServerSocket};

use crate::config::{Config, ConfigError, ListenAddress};
use crate::manager::{Manager, Place};

/// How long after a failed attempt the next one is made.
const PAUSE: Duration = Duration::from_millis(250);

/// The ports of a server, divided among its threads.
pub(crate) struct Ports {
    /// For each packet worker, one socket for every address.
    pub(crate) ntp: Vec<Vec<ServerSocket>>,
    /// For each thread of key exchange, one listener for every address.
    pub(crate) ke: Vec<Vec<TcpListener>>,
    /// Listens already unless its port is taken.
    pub(crate) metrics: Option<PendingListener>,
    /// The same.
    pub(crate) health: Option<PendingListener>,
}

impl Ports {
    /// Opens the ports that a configuration names, as soon as that is possible.
    ///
    /// # Errors
    /// The first address that cannot be bound: at once, if time does not mend that, and else after the patience of the
    /// configuration.
    pub(crate) fn open(
        config: &Config,
        worker_count: usize,
        ke_worker_count: usize,
        manager: &mut Manager,
    ) -> Result<Self, ConfigError> {
        let ke_addresses = config.exchange().map_or(&[][..], |exchange| &exchange.listen);
        let ntp_addresses = usable("server.listen", &config.listen);
        let ke_addresses = usable("nts.ke-listen", ke_addresses);
        let metrics = config.metrics.as_ref().map(|metrics| &metrics.listen);
        let metrics = metrics.and_then(|listen| http_port(config, "metrics.listen", listen));
        let health = config.health.as_ref().and_then(|listen| http_port(config, "health.listen", listen));
        let attempt = |manager: &Manager| {
            let opening = Opening { config, manager };
            Ok((
                opening.all::<ServerSocket>("server.listen", &ntp_addresses, worker_count)?,
                opening.all::<TcpListener>("nts.ke-listen", &ke_addresses, ke_worker_count)?,
            ))
        };
        let (ntp, ke) = patiently(config.bind_patience, manager, attempt)?;
        let mut places = Vec::new();
        let mut taking = Taking { config, manager, places: &mut places };
        let ports = Ports {
            ntp: taking.per_worker("server.listen", ntp, worker_count)?,
            ke: taking.per_worker("nts.ke-listen", ke, ke_worker_count)?,
            metrics,
            health,
        };
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

/// Repeats `attempt` until it succeeds, or fails in a way that does not pass, or `patience` is over; logs the first
/// failure that may pass, and how long it has lasted.
fn patiently<T>(
    patience: Duration,
    manager: &Manager,
    attempt: impl Fn(&Manager) -> Result<T, ConfigError>,
) -> Result<T, ConfigError> {
    let begun = Instant::now();
    let mut is_told = false;
    loop {
        let error = match attempt(manager) {
            Ok(done) => {
                if is_told {
                    log::info!("all ports are bound, after {:.1} s", begun.elapsed().as_secs_f64());
                }
                return Ok(done);
            }
            Err(error) => error,
        };
        if !error.is_passing || begun.elapsed() >= patience {
            return Err(error);
        }
        if !is_told {
            is_told = true;
            log::warn!("{error}; trying again for {} s (server.bind-patience)", patience.as_secs_f64());
            manager.status(&format!("waiting for {} = {:?}: {}", error.key, error.value, error.problem));
        }
        manager.starts_later(4 * PAUSE);
        thread::sleep(PAUSE.min(patience.saturating_sub(begun.elapsed())));
    }
}

fn failure(config: &Config, key: &str, address: &ListenAddress, error: &io::Error) -> ConfigError {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("stop what uses port {} (ss -lnp shows it), or choose another port", address.port())
        }
        io::ErrorKind::PermissionDenied => {
            "start as root, or give the program CAP_NET_BIND_SERVICE, or choose a port above 1023".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "name an address of this host, or a wildcard address".to_owned(),
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            "raise the limit on open files (LimitNOFILE= of systemd, ulimit -n)".to_owned()
        }
        _ if may_pass(error) => "see that its interface is up".to_owned(),
        _ => "choose another address".to_owned(),
    };
    let is_permission = error.kind() == io::ErrorKind::PermissionDenied;
    config.wrong(key, address, error, remedy).of_rights(is_permission).of_passing(may_pass(error))
}

/// The listener of an HTTP endpoint; `None` if it can be had after a restart at best. Whatever fails is logged, and no
/// more.
fn http_port(config: &Config, key: &str, listen: &ListenAddress) -> Option<PendingListener> {
    let told = |error: io::Error, hope: &str| {
        log::error!("nothing is served on {key}, {hope}: {}", failure(config, key, listen, &error));
    };
    let port = listen.resolve().and_then(PendingListener::new);
    let mut port = port.map_err(|error| told(error, "until a restart")).ok()?;
    if let Err(error) = port.listen() {
        told(error, "until its port can be bound, which is tried again and again");
    }
    Some(port)
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

/// What was opened at one address.
struct Opened<T> {
    address: ListenAddress,
    place: Place,
    /// New ones; those that are missing to the count of workers were kept.
    fresh: Vec<T>,
}

/// One attempt to open everything. What it has opened is closed again if it fails; what was kept is not touched.
struct Opening<'a> {
    config: &'a Config,
    manager: &'a Manager,
}

impl Opening<'_> {
    /// What is missing to one socket for each worker at every address of `key`.
    fn all<T: Door>(
        &self,
        key: &str,
        addresses: &[ListenAddress],
        worker_count: usize,
    ) -> Result<Vec<Opened<T>>, ConfigError> {
        let open = |address: &ListenAddress| {
            self.open(address, worker_count).map_err(|error| failure(self.config, key, address, &error))
        };
        addresses.iter().map(open).collect()
    }

    fn open<T: Door>(&self, address: &ListenAddress, count: usize) -> io::Result<Opened<T>> {
        let local = address.resolve()?;
        let place = Place { is_listener: T::IS_LISTENER, address: local };
        let kept = self.manager.kept_at(place, count);
        let missing = count - kept.count;
        let fresh = if kept.count == 0 {
            let sockets = T::bind(local, count)?;
            if !self.manager.keeps() || count > 1 {
                sockets
            } else {
                // The next run may have more workers.
                drop(sockets);
                T::join(local, count)?
            }
        } else {
            if missing > 0 && !kept.all_share {
                let problem = "the service manager holds a socket that shares this address with no other worker's \
                               (ReusePort=yes lets it)";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
            T::join(local, missing)?
        };
        Ok(Opened { address: address.clone(), place, fresh })
    }
}

/// Takes what was kept, once everything else is open.
struct Taking<'a> {
    config: &'a Config,
    manager: &'a mut Manager,
    /// What is served.
    places: &'a mut Vec<Place>,
}

impl Taking<'_> {
    /// One socket for each worker at every address of `key`: those that were kept, and new ones. They are kept again.
    fn per_worker<T: Door>(
        &mut self,
        key: &str,
        opened: Vec<Opened<T>>,
        worker_count: usize,
    ) -> Result<Vec<Vec<T>>, ConfigError> {
        let mut workers: Vec<Vec<T>> = (0..worker_count).map(|_| Vec::new()).collect();
        for Opened { address, place, fresh } in opened {
            let kept = self.manager.take(place, worker_count);
            let adopted: io::Result<Vec<T>> =
                kept.into_iter().map(|inherited| T::adopt(inherited.socket)).collect();
            let mut sockets = adopted.map_err(|error| failure(self.config, key, &address, &error))?;
            sockets.extend(fresh);
            // A port that the kernel chooses is another one in the next run.
            if address.port() != 0 {
                self.manager.keep(place, &sockets.iter().map(AsFd::as_fd).collect::<Vec<_>>());
                self.places.push(place);
            }
            for (worker, socket) in workers.iter_mut().zip(sockets) {
                worker.push(socket);
            }
        }
        Ok(workers)
    }
}

/// The addresses of `key` that need sockets: without those that a wildcard covers, and without the wildcards of IPv6 if
/// this kernel has no IPv6; says so. All of them if nothing else would be left, so that binding names the mistake.
fn usable(key: &str, addresses: &[ListenAddress]) -> Vec<ListenAddress> {
    let (left, skipped) = split(addresses, udp::has_ipv6());
    for address in skipped {
        log::warn!("{key}: {address} is left out: this kernel has no IPv6");
    }
    let is_covered = |address: &ListenAddress| left.iter().any(|other| other.covers(address));
    left.iter().filter(|address| !is_covered(address)).cloned().collect()
}

/// What is left, and what is left out.
fn split(addresses: &[ListenAddress], has_ipv6: bool) -> (Vec<ListenAddress>, Vec<ListenAddress>) {
    let is_missing = |address: &ListenAddress| address.ip().is_ipv6() && address.is_wildcard() && !has_ipv6;
    let (skipped, left): (Vec<_>, Vec<_>) = addresses.iter().cloned().partition(is_missing);
    if left.is_empty() { (skipped, left) } else { (left, skipped) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<ListenAddress> {
        texts.iter().map(|text| text.parse::<SocketAddr>().unwrap().into()).collect()
    }

    #[test]
    fn only_wildcards_are_left_out_and_never_all() {
        let default = addresses(&["0.0.0.0:123", "[::]:123"]);
        assert_eq!(split(&default, true), (default.clone(), vec![]));
        assert_eq!(split(&default, false), (addresses(&["0.0.0.0:123"]), addresses(&["[::]:123"])));
        let named = addresses(&["0.0.0.0:123", "[2001:db8::1]:123"]);
        assert_eq!(split(&named, false), (named.clone(), vec![]));
        let alone = addresses(&["[::]:123"]);
        assert_eq!(split(&alone, false), (alone.clone(), vec![]));
    }

    #[test]
    fn address_that_a_wildcard_covers_needs_no_socket() {
        let both = addresses(&["127.0.0.1:123", "0.0.0.0:123", "127.0.0.1:124"]);
        assert_eq!(usable("server.listen", &both), addresses(&["0.0.0.0:123", "127.0.0.1:124"]));
    }

    #[test]
    fn passing_failure_is_tried_again_and_a_mistake_is_not() {
        let wrong = ConfigError::new("test.toml".as_ref(), "server.listen", "", "taken", "wait");
        for (is_passing, patience, failures, is_done) in [
            (true, Duration::from_secs(60), 2, true),
            (true, Duration::ZERO, 1, false),
            (false, Duration::from_secs(60), 1, false),
        ] {
            let attempts = std::cell::Cell::new(0);
            let attempt = |_: &Manager| {
                attempts.set(attempts.get() + 1);
                let error = wrong.clone().of_passing(is_passing);
                if attempts.get() <= failures { Err(error) } else { Ok(()) }
            };
            let result = patiently(patience, &Manager::none(), attempt);
            assert_eq!((result.is_ok(), attempts.get()), (is_done, failures + i32::from(is_done)));
        }
    }
}
