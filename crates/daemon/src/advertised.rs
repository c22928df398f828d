//! Where clients are sent for time, as key exchange tells them: to the servers of `nts.advertise`, but for those whose
//! member of the fleet would refuse the cookies.
//!
//! A member is sent no clients if it has not said for a minute that it opens the key that seals here. While a rotation
//! spreads this does not change: the key that seals after it opens everywhere before it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use authentick_crypto::Algorithm;
use authentick_fleet::Name;
use authentick_ke::ntp_servers::{NtpServer, NtpServers};
use authentick_ke::session::Terms;

use crate::config::{KeyExchange, NTP_PORT, port_of_none};

/// The servers that clients can be sent to.
#[derive(Debug)]
pub(crate) struct Advertiser {
    servers: Vec<Server>,
    algorithms: Vec<Algorithm>,
    /// Of servers without one.
    own_port: u16,
    terms: ArcSwap<Terms>,
}

#[derive(Debug)]
struct Server {
    name: Option<String>,
    port: u16,
    weight: u32,
    member: Option<Name>,
    /// Whether its member, if it has one, opens what is sealed here.
    is_in: AtomicBool,
}

impl Server {
    /// What a client is told: no port if it is the one that clients expect.
    fn told(&self) -> (NtpServer, u32) {
        (
            NtpServer { name: self.name.clone(), port: Some(self.port).filter(|port| *port != NTP_PORT) },
            self.weight,
        )
    }

    fn is_in(&self) -> bool {
        self.is_in.load(Ordering::Relaxed)
    }

    /// The server for people.
    fn shown(&self) -> String {
        let (name, port) = (self.name.as_deref().unwrap_or("this host"), self.port);
        match &self.member {
            Some(member) => format!("{member} at {name}:{port}"),
            None => format!("{name}:{port}"),
        }
    }
}

impl Advertiser {
    /// The servers of a configuration, all of them in, on a host that serves time on `ntp_addresses`.
    pub(crate) fn new(exchange: &KeyExchange, ntp_addresses: &[SocketAddr]) -> Self {
        Advertiser::with_port(exchange, port_of_none(ntp_addresses.first().map(SocketAddr::port)))
    }

    /// The servers of another configuration on the same host, all of them in.
    pub(crate) fn followed_by(&self, exchange: &KeyExchange) -> Self {
        Advertiser::with_port(exchange, self.own_port)
    }

    fn with_port(exchange: &KeyExchange, own_port: u16) -> Self {
        let of = exchange.advertised.iter().map(|entry| Server {
            name: entry.server.clone(),
            port: entry.port.unwrap_or(own_port),
            weight: entry.weight,
            member: entry.member.clone(),
            is_in: AtomicBool::new(true),
        });
        let (servers, algorithms) = (of.collect::<Vec<_>>(), exchange.algorithms.clone());
        let terms = ArcSwap::from_pointee(terms(&servers, &algorithms));
        Advertiser { servers, algorithms, own_port, terms }
    }

    /// What is offered now.
    pub(crate) fn terms(&self) -> Arc<Terms> {
        self.terms.load_full()
    }

    /// Changes who is in, to the servers without a member and those whose member opens what is sealed here; says so if
    /// it is another list.
    pub(crate) fn choose(&self, opens: impl Fn(&Name) -> bool) {
        let mut is_changed = false;
        for server in &self.servers {
            let is_in = server.member.as_ref().is_none_or(&opens);
            is_changed |= server.is_in.swap(is_in, Ordering::Relaxed) != is_in;
        }
        if is_changed {
            self.terms.store(Arc::new(terms(&self.servers, &self.algorithms)));
            self.tell();
        }
    }

    fn tell(&self) {
        let names = |is_in: bool| {
            let servers = self.servers.iter().filter(|server| server.is_in() == is_in);
            servers.map(Server::shown).collect::<Vec<_>>().join(", ")
        };
        let out = names(false);
        match self.servers.iter().any(|server| server.is_in() && server.weight > 0) {
            _ if out.is_empty() => log::info!("new clients are sent to all servers of nts.advertise again"),
            true => log::warn!(
                "new clients are sent to {}, and not to {out}: no word for a minute that these open the key that seals \
                 here",
                names(true)
            ),
            false => log::warn!(
                "new clients are sent to all servers of nts.advertise, as the choice would be nobody: no word for a \
                 minute that {out} open the key that seals here"
            ),
        }
    }

    /// Each server with its port, and whether new clients are to go there.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&str, u16, bool)> {
        self.servers.iter().map(|server| {
            (server.name.as_deref().unwrap_or_default(), server.port, server.is_in() && server.weight > 0)
        })
    }
}

/// What is offered: those that are in, or all if nobody is.
fn terms(servers: &[Server], algorithms: &[Algorithm]) -> Terms {
    let some = NtpServers::new(servers.iter().filter(|server| server.is_in()).map(Server::told));
    let all = || NtpServers::new(servers.iter().map(Server::told));
    let ntp_servers = some.or_else(all).expect("the configuration names one with a weight");
    Terms { ntp_servers, algorithms: algorithms.to_vec() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use authentick_crypto::Entropy;

    use super::*;
    use crate::config::Config;

    #[test]
    fn clients_are_sent_to_members_that_open_their_cookies_or_to_all_if_none_does() {
        let text = "[server]\nlisten = []\n[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n\
            cookie-keys = { store = \"memcached\" }\nadvertise = [\n\
            { server = \"a\", member = \"a\", weight = 3 }, { server = \"b\", member = \"b\" },\n\
            { server = \"c\", member = \"c\", weight = 0 }]\n\
            [fleet]\nid = \"f\"\nnode = \"ke\"\nmembers = [\"ke\", \"a\", \"b\", \"c\"]\n\
            servers = [\"192.0.2.9:11211\"]\nseal-key = \"/s\"";
        let config = Config::parse(Path::new("test.toml"), text).unwrap();
        let advertiser = Advertiser::new(config.exchange().unwrap(), &[]);
        let mut entropy = Entropy::from_seed(1);
        for (opening, told, shown) in [
            ("abc", "ab", [true, true, false]),
            ("bc", "b", [false, true, false]),
            ("a", "a", [true, false, false]),
            ("c", "ab", [false; 3]),
            ("", "ab", [false; 3]),
            ("ab", "ab", [true, true, false]),
        ] {
            advertiser.choose(|member| opening.contains(member.as_str()));
            let terms = advertiser.terms();
            let names: BTreeSet<String> =
                (0..200).filter_map(|_| terms.ntp_servers.pick(&mut entropy).name.clone()).collect();
            assert_eq!(names.into_iter().collect::<String>(), told, "{opening}");
            assert_eq!(advertiser.shown().map(|(_, _, is_in)| is_in).collect::<Vec<_>>(), shown, "{opening}");
            assert!(advertiser.shown().all(|(_, port, _)| port == NTP_PORT));
        }
    }
}
