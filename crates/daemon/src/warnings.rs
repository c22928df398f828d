//! Settings that are valid and that clients or operators would take for a fault: one list, for `serve --check`, for the
//! start and for a reload.
//!
//! What changes while a server runs has a watcher of its own, which the start and `--check` both ask: the clock
//! (`reference`), the list of leap seconds (`leap`), certificates (`validity`).

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use authentick_crypto::Algorithm;
use authentick_proto::prefix::{Prefix, PrefixSet};

use crate::addresses;
use crate::config::prefixes::family;
use crate::config::{Advertised, Config, KeyExchange, ListenAddress, Reference, port_of_none};
use crate::reference;

/// A setting with an effect that is hardly meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The key, with its tables; empty if the value is a file as a whole.
    pub(crate) key: String,
    /// Its value; empty if the message is about the key alone.
    pub(crate) value: String,
    /// What clients or operators see.
    pub(crate) consequence: String,
    /// What to do.
    pub(crate) remedy: String,
}

impl Warning {
    pub(crate) fn new(
        key: &str,
        value: impl fmt::Display,
        consequence: impl fmt::Display,
        remedy: impl fmt::Display,
    ) -> Self {
        Warning {
            key: key.to_owned(),
            value: value.to_string(),
            consequence: consequence.to_string(),
            remedy: remedy.to_string(),
        }
    }

    /// The warning with the file and line that its key is in.
    fn describe(&self, config: &Config) -> String {
        match self.key.is_empty() {
            true => self.to_string(),
            false => config.wrong(&self.key, &self.value, &self.consequence, &self.remedy).to_string(),
        }
    }
}

/// Key, value, consequence and remedy; without the place.
impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Warning { key, value, consequence, remedy } = self;
        match (key.is_empty(), value.is_empty()) {
            (true, _) => write!(f, "{value}: {consequence}; {remedy}"),
            (false, true) => write!(f, "{key}: {consequence}; {remedy}"),
            (false, false) => write!(f, "{key} = {value:?}: {consequence}; {remedy}"),
        }
    }
}

/// Logs each of them with its place.
pub(crate) fn log(config: &Config, warnings: &[Warning]) {
    warnings.iter().for_each(|warning| log::warn!("{}", warning.describe(config)));
}

/// The warnings of a configuration, whose upstream has these addresses.
pub(crate) fn of(config: &Config, upstream: &[SocketAddr]) -> Vec<Warning> {
    let mut all = Vec::new();
    skipped(config, &mut all);
    clock(config, upstream, &mut all);
    all.extend(addresses::warnings(config));
    access(config, &mut all);
    rates(config, &mut all);
    if let Some(exchange) = config.exchange() {
        algorithms(exchange, &mut all);
        reachability(config, exchange, &mut all);
    }
    metrics(config, &mut all);
    all
}

fn skipped(config: &Config, all: &mut Vec<Warning>) {
    for path in &config.skipped {
        let remedy = format!("rename it to {}, or remove it", renamed(path));
        let consequence = "this file is not read: its name does not end in .toml";
        all.push(Warning::new("", path.display(), consequence, remedy));
    }
}

/// The name with which a file of `conf.d` is read: `b.toml` for `b.tml` and `b.toml.bak`, unless there is such a file.
fn renamed(path: &Path) -> String {
    const EXTENSION_SIZE_MAX: usize = 5;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.rsplit_once('.').filter(|(stem, extension)| {
        let is_extension = extension.bytes().all(|octet| octet.is_ascii_alphabetic());
        !stem.is_empty() && is_extension && extension.len() <= EXTENSION_SIZE_MAX
    });
    let added = |name: &str| format!("{}.toml", name.strip_suffix(".toml").unwrap_or(name));
    let replaced = stem.map(|(stem, _)| added(stem)).filter(|name| !path.with_file_name(name).exists());
    replaced.unwrap_or_else(|| format!("{name}.toml"))
}

fn clock(config: &Config, upstream: &[SocketAddr], all: &mut Vec<Warning>) {
    if let Reference::Upstream(server) = &config.reference {
        all.extend(reference::elsewhere(server, upstream));
    }
    if let (Reference::Asserted { stratum, id } | Reference::Kernel { stratum, id }, Some(name)) =
        (&config.reference, &config.reference_name)
        && *stratum > 1
    {
        let [a, b, c, d] = id.0;
        all.push(Warning::new(
            "server.reference.id",
            name,
            format!("at stratum {stratum} clients read it as the address {a}.{b}.{c}.{d}"),
            "write the IPv4 address of the source; letters are for stratum 1",
        ));
    }
}

/// Lists of clients that match nothing, or not what they are for.
fn access(config: &Config, all: &mut Vec<Warning>) {
    const ALLOW: &str = "server.allow";
    const DENY: &str = "server.deny";
    let set = |prefix: &Prefix| PrefixSet::new(vec![*prefix]);
    let are_apart = |one: &PrefixSet, other: &PrefixSet| one.without(other) == *one;
    let (allowed, denied) = (PrefixSet::new(config.allowed.clone()), PrefixSet::new(config.denied.clone()));
    let is_void = |set: &PrefixSet| *set == PrefixSet::default();
    if config.allowed.is_empty() {
        let remedy = "list prefixes of clients, or remove the key: by default, all may ask";
        all.push(Warning::new(ALLOW, "[]", "all requests are refused", remedy));
    } else if is_void(&config.allow) {
        let remedy = "deny fewer addresses";
        all.push(Warning::new(DENY, "", "all requests are refused: it covers server.allow", remedy));
    } else {
        for prefix in config.allowed.iter().filter(|prefix| is_void(&set(prefix).without(&denied))) {
            all.push(Warning::new(ALLOW, prefix, "without effect: server.deny covers it", "remove it"));
        }
        let exchange = config.exchange().map_or(&[][..], |exchange| &exchange.listen);
        let has = |is_v4: bool| {
            let reachable =
                config.listen.iter().chain(exchange).any(|address| address.ip().is_ipv4() == is_v4);
            reachable && config.allow.has_family(is_v4)
        };
        if !has(true) && !has(false) {
            let consequence = "all requests are refused: no address of that family is listened on";
            let remedy = "allow clients of the family that server.listen has, or listen on the other one";
            all.push(Warning::new(ALLOW, "", consequence, remedy));
        }
    }
    for (key, prefixes) in [(ALLOW, &config.allowed), (DENY, &config.denied)] {
        for prefix in prefixes.iter().filter(|prefix| is_never_a_source(prefix)) {
            let consequence = "without effect: no request comes from such an address";
            all.push(Warning::new(key, prefix, consequence, "list addresses of clients"));
        }
    }
    for prefix in config.denied.iter().filter(|prefix| are_apart(&set(prefix), &allowed)) {
        let consequence = "without effect: server.allow does not cover it";
        all.push(Warning::new(DENY, prefix, consequence, "remove it, or correct the prefix"));
    }
    if config.kiss {
        all.push(Warning::new(
            "server.refusal",
            "kiss",
            "the NTP pool's monitors count a kiss as a fault of the server",
            "remove it if this server is in the pool",
        ));
    }
}

/// Whether all addresses of a prefix are multicast addresses, or mean "this network".
fn is_never_a_source(prefix: &Prefix) -> bool {
    match prefix.address() {
        IpAddr::V4(address) => {
            address.octets()[0] == 0 && prefix.length() >= 8 || address.is_multicast() && prefix.length() >= 4
        }
        IpAddr::V6(address) => address.is_multicast() && prefix.length() >= 8,
    }
}

fn rates(config: &Config, all: &mut Vec<Warning>) {
    for (key, burst) in &config.idle_bursts {
        let rate = match *key {
            "server.rate-limit.burst" => "server.rate-limit.requests-per-second".to_owned(),
            key => key.replace("-burst", "-rate"),
        };
        let consequence = format!("without effect: {rate} sets no limit");
        all.push(Warning::new(key, burst, consequence, format!("set {rate}, or remove it")));
    }
}

fn algorithms(exchange: &KeyExchange, all: &mut Vec<Warning>) {
    if !exchange.algorithms.contains(&Algorithm::SivCmac256) {
        let consequence =
            "it lacks 15, which RFC 8915 section 5.1 demands of every server: some clients have no other";
        all.push(Warning::new("nts.aeads", "", consequence, "add 15"));
    }
}

/// Clients that exchange keys here, and are sent to where no time is served.
fn reachability(config: &Config, exchange: &KeyExchange, all: &mut Vec<Warning>) {
    for entry in exchange.advertised.iter().filter(|entry| entry.weight > 0) {
        let port = entry.port.unwrap_or_else(|| port_of_none(config.listen.first().map(ListenAddress::port)));
        match entry.server.as_deref().map(str::parse::<IpAddr>) {
            None => all.extend(exchange.listen.iter().filter_map(|from| gap(config, from, port))),
            Some(Ok(literal)) => advertised_literal(config, exchange, entry, literal, port, all),
            Some(Err(_)) => {}
        }
    }
}

/// Why clients that exchange keys at `from`, and are sent to the same address at `port`, get no time there.
fn gap(config: &Config, from: &ListenAddress, port: u16) -> Option<Warning> {
    const KEY: &str = "nts.ke-listen";
    let family = family(from.ip());
    let is_of_family = |listen: &&ListenAddress| listen.ip().is_ipv4() == from.ip().is_ipv4();
    let mut of_family = config.listen.iter().filter(is_of_family).peekable();
    if of_family.peek().is_none() {
        return Some(Warning::new(
            KEY,
            from,
            format!("clients over {family} get cookies and no time: server.listen has no {family} address"),
            format!("add an {family} address to server.listen, or remove this one"),
        ));
    }
    let at_port: Vec<&ListenAddress> = of_family.filter(|listen| listen.port() == port).collect();
    if at_port.is_empty() {
        return Some(Warning::new(
            KEY,
            from,
            format!("clients over {family} are sent to port {port}, where no time is served over {family}"),
            "use one port for both families in server.listen",
        ));
    }
    let is_served = |listen: &&ListenAddress| listen.is_wildcard() || listen.ip() == from.ip();
    (!at_port.iter().any(is_served)).then(|| {
        let addresses: Vec<String> = at_port.iter().map(ToString::to_string).collect();
        let reached = if from.is_wildcard() { "another address of this host" } else { "it" };
        Warning::new(
            KEY,
            from,
            format!(
                "clients that exchange keys at {reached} get no time there: server.listen has only {}",
                addresses.join(", ")
            ),
            "exchange keys at the addresses of server.listen, or name the server in nts.advertise",
        )
    })
}

/// Why some clients get no time from a server that is advertised by its address.
fn advertised_literal(
    config: &Config,
    exchange: &KeyExchange,
    entry: &Advertised,
    literal: IpAddr,
    port: u16,
    all: &mut Vec<Warning>,
) {
    let mut warn = |consequence: String, remedy: &str| {
        all.push(Warning::new(
            "nts.advertise.server",
            entry.server.as_deref().unwrap_or_default(),
            consequence,
            remedy,
        ));
    };
    if literal.is_unspecified() || literal.is_multicast() {
        return warn(
            "clients cannot send requests to this address".to_owned(),
            "name an address of the server",
        );
    }
    let is_loopback = |address: &ListenAddress| address.ip().is_loopback();
    if literal.is_loopback() && !exchange.listen.iter().all(is_loopback) {
        warn(
            "clients on other hosts are sent to themselves".to_owned(),
            "name an address that clients reach",
        );
    }
    if let Some(other) = exchange.listen.iter().find(|from| from.ip().is_ipv4() != literal.is_ipv4()) {
        warn(
            format!(
                "clients over {} are sent to an {} address: those without {1} get no time",
                family(other.ip()),
                family(literal)
            ),
            "advertise a name that has addresses of both families",
        );
    }
    let is_here = config.listen.iter().any(|listen| listen.ip() == literal);
    let is_served = |listen: &ListenAddress| {
        let is_reached =
            listen.ip() == literal || listen.is_wildcard() && listen.ip().is_ipv4() == literal.is_ipv4();
        is_reached && (listen.port() == port || listen.port() == 0)
    };
    if is_here && !config.listen.iter().any(is_served) {
        warn(
            format!("server.listen does not have this address with port {port}"),
            "advertise the port of server.listen",
        );
    }
}

fn metrics(config: &Config, all: &mut Vec<Warning>) {
    let Some(metrics) = config.metrics.as_ref().filter(|metrics| metrics.listen.is_wildcard()) else {
        return;
    };
    let port = metrics.listen.port();
    all.push(Warning::new(
        "metrics.listen",
        &metrics.listen,
        "every host that reaches this one can read the metrics, without a password",
        format!(
            "write \"127.0.0.1:{port}\" or an address of the monitoring network, or have a firewall on port {port}"
        ),
    ));
}
