//! Addresses that are served, and which of them an interface of this host has. A socket is bound before its address is
//! there, so a typing error is not refused by the kernel: the log, the metrics and `/readyz` name it instead.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use authentick_net::udp;

use crate::config::{Config, ListenAddress, listen};
use crate::warnings::Warning;

/// The keys of a configuration whose addresses are looked for.
const KEYS: [&str; 2] = ["server.listen", "nts.ke-listen"];

/// The addresses of a server.
#[derive(Debug)]
pub(crate) struct ServedAddresses(Vec<ServedAddress>);

/// An address, and whether this host has it.
#[derive(Debug)]
pub(crate) struct ServedAddress {
    /// Which key it is of.
    pub(crate) key: &'static str,
    pub(crate) address: SocketAddr,
    is_there: AtomicBool,
}

impl ServedAddress {
    /// Whether an interface has it, as of the last look.
    pub(crate) fn is_there(&self) -> bool {
        self.address.ip().is_unspecified() || self.is_there.load(Ordering::Relaxed)
    }
}

impl ServedAddresses {
    /// Where sockets for time and for key exchange are bound; looks for each, and logs what is missing.
    pub(crate) fn new(ntp: &[SocketAddr], ke: &[SocketAddr]) -> Self {
        let of = |key, addresses: &[SocketAddr]| {
            let served = |&address| ServedAddress { key, address, is_there: AtomicBool::new(true) };
            addresses.iter().map(served).collect::<Vec<_>>()
        };
        let all = ServedAddresses(of(KEYS[0], ntp).into_iter().chain(of(KEYS[1], ke)).collect());
        all.look();
        all
    }

    /// Looks for each again, and logs what has changed.
    pub(crate) fn look(&self) {
        for ServedAddress { key, address, is_there } in &self.0 {
            let now = address.ip().is_unspecified() || udp::is_local(*address);
            if is_there.swap(now, Ordering::Relaxed) != now {
                match now {
                    true => log::info!("{key}: an interface has {address} now, and it is served"),
                    false => log::warn!("{key}: {}", missing(address)),
                }
            }
        }
    }

    /// Each of them.
    pub(crate) fn all(&self) -> &[ServedAddress] {
        &self.0
    }

    /// Where time is served.
    pub(crate) fn of_time(&self) -> Vec<SocketAddr> {
        self.0.iter().filter(|served| served.key == KEYS[0]).map(|served| served.address).collect()
    }

    /// Those that no interface has.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &ServedAddress> {
        self.0.iter().filter(|served| !served.is_there())
    }

    /// Why no client reaches the server: no address of the key that it lives by is there.
    pub(crate) fn obstacle(&self) -> Option<String> {
        let key = self.0.first()?.key;
        let of_key = || self.0.iter().filter(|served| served.key == key);
        let none_there = of_key().all(|served| !served.is_there());
        none_there.then(|| {
            let addresses: Vec<String> = of_key().map(|served| served.address.to_string()).collect();
            format!("{key}: no interface has an address of it ({})", addresses.join(", "))
        })
    }
}

fn missing(address: impl std::fmt::Display) -> String {
    format!("no interface has {address} now: it is served once one has it")
}

/// The addresses of a configuration, by key.
fn named(config: &Config) -> [(&'static str, &[ListenAddress]); 2] {
    let ke = config.exchange().map_or(&[][..], |exchange| &exchange.listen);
    [(KEYS[0], &config.listen), (KEYS[1], ke)]
}

/// The warnings of the addresses of a configuration, on any host.
pub(crate) fn warnings(config: &Config) -> Vec<Warning> {
    named(config).into_iter().flat_map(|(key, addresses)| listen::warnings(key, addresses)).collect()
}

/// Remarks on addresses that no interface has now. A server that starts has them from [`ServedAddresses::new`].
pub(crate) fn remarks_on_missing(config: &Config) -> Vec<String> {
    let is_there =
        |address: &ListenAddress| address.is_wildcard() || address.resolve().is_ok_and(udp::is_local);
    let missing_of = |(key, addresses): (&'static str, &[ListenAddress])| {
        let missing_ones = addresses.iter().filter(|address| !is_there(address));
        missing_ones.map(|address| format!("{key}: {}", missing(address))).collect::<Vec<_>>()
    };
    named(config).into_iter().flat_map(missing_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(ntp: &[&str], ke: &[&str]) -> ServedAddresses {
        let addresses =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        ServedAddresses::new(&addresses(ntp), &addresses(ke))
    }

    #[test]
    fn obstacle_is_that_no_address_of_listen_is_there() {
        const ABSENT: &str = "198.18.255.254:123";
        assert_eq!(served(&["0.0.0.0:123"], &[]).obstacle(), None);
        assert_eq!(served(&[ABSENT, "127.0.0.1:123"], &[]).obstacle(), None);
        assert_eq!(served(&["127.0.0.1:123"], &[ABSENT]).obstacle(), None, "time is served");
        let obstacle = served(&[ABSENT], &["127.0.0.1:4460"]).obstacle().unwrap();
        assert!(obstacle.contains("server.listen") && obstacle.contains(ABSENT), "{obstacle}");
        let obstacle = served(&[], &[ABSENT]).obstacle().unwrap();
        assert!(obstacle.contains("nts.ke-listen"), "{obstacle}");
    }

    #[test]
    fn address_that_goes_is_missing_at_the_next_look() {
        let served = served(&["127.0.0.1:123", "198.18.255.254:123"], &[]);
        assert_eq!(served.missing().count(), 1);
        served.0[1].is_there.store(true, Ordering::Relaxed);
        assert_eq!(served.missing().count(), 0);
        served.look();
        assert_eq!(served.missing().count(), 1);
    }
}
