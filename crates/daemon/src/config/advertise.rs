//! `nts.advertise`: the servers that clients are sent to for time.

use authentick_fleet::Name;

use super::fleet::Fleet;
use super::nts::Nts;
use super::{ConfigError, ListenAddress, Resolver, raw};

/// Servers that clients are sent to, at most.
pub const ADVERTISED_COUNT_MAX: usize = 64;
/// The largest weight of one of them.
const WEIGHT_MAX: i64 = 1000;

/// What clients assume if they are told of no port.
pub(crate) const NTP_PORT: u16 = 123;

const KEY: &str = "nts.advertise";
const SERVER: &str = "nts.advertise.server";
const WEIGHT: &str = "nts.advertise.weight";
const MEMBER: &str = "nts.advertise.member";

/// A server that clients are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// Its name or address; absent: this host.
    pub server: Option<String>,
    /// Its port; absent: the first one of `server.listen`, or 123 where no time is served.
    pub port: Option<u16>,
    /// Its share of new clients; 0: none.
    pub weight: u32,
    /// Which member of the fleet it is; absent: it is not asked how that one is.
    pub member: Option<Name>,
}

/// The port that clients are told of a server without one, from a host whose first port for time is `first`.
pub(crate) fn port_of_none(first: Option<u16>) -> u16 {
    first.unwrap_or(NTP_PORT)
}

impl Resolver<'_> {
    /// The servers that clients are sent to from a host that serves time on `listen`.
    pub(super) fn advertised(
        &self,
        raw: Option<raw::Advertise>,
        listen: &[ListenAddress],
    ) -> Result<Vec<Advertised>, ConfigError> {
        let raw = raw.map_or_else(|| vec![raw::Advertised::default()], |raw| raw.0);
        if raw.is_empty() {
            let remedy = "name a server, or leave it out if this host serves time";
            return Err(self.wrong(KEY, "[]", "no server", remedy));
        }
        if raw.len() > ADVERTISED_COUNT_MAX {
            let remedy = format!("list at most {ADVERTISED_COUNT_MAX}");
            return Err(self.wrong(KEY, raw.len(), "too many servers", &remedy));
        }
        let mut all = Vec::new();
        for entry in raw {
            let entry = self.advertised_one(entry, !listen.is_empty())?;
            let port = |entry: &Advertised| {
                entry.port.unwrap_or_else(|| port_of_none(listen.first().map(ListenAddress::port)))
            };
            let is_same = |other: &Advertised| (&other.server, port(other)) == (&entry.server, port(&entry));
            if all.iter().any(is_same) {
                let name = entry.server.as_deref().unwrap_or("this host");
                let remedy = "list each server once, and give it a weight";
                return Err(self.wrong(KEY, name, "listed twice", remedy));
            }
            all.push(entry);
        }
        if all.iter().all(|entry| entry.weight == 0) {
            let remedy = "give one server a weight of 1 or more";
            return Err(self.wrong(WEIGHT, 0, "no server takes new clients", remedy));
        }
        Ok(all)
    }

    fn advertised_one(&self, raw: raw::Advertised, serves_time: bool) -> Result<Advertised, ConfigError> {
        if raw.server.is_none() && !serves_time {
            let problem = "missing, and no time is served here, as server.listen is empty";
            let remedy = "name a server that answers under the same cookie keys: advertise = { server = \
                          \"ntp-1.example.net\" }";
            return Err(self.wrong(SERVER, "", problem, remedy));
        }
        let port = raw.port.map(|port| self.number("nts.advertise.port", port, 1..=65535)).transpose()?;
        Ok(Advertised {
            server: raw.server.map(|name| self.server_name(name)).transpose()?,
            port,
            weight: self.number(WEIGHT, raw.weight.unwrap_or(1), 0..=WEIGHT_MAX)?,
            member: raw.member.map(|name| self.name(MEMBER, &name)).transpose()?,
        })
    }

    /// Refuses a member that the fleet does not have.
    pub(super) fn check_members(&self, nts: &Nts, fleet: Option<&Fleet>) -> Result<(), ConfigError> {
        let advertised = nts.exchange.iter().flat_map(|exchange| &exchange.advertised);
        for member in advertised.filter_map(|entry| entry.member.as_ref()) {
            match fleet {
                Some(_) if !nts.keys.are_shared() => {
                    let remedy = "remove it, or write cookie-keys = { store = \"memcached\" }";
                    let problem = "without effect, as the fleet does not share cookie keys";
                    return Err(self.wrong(MEMBER, member, problem, remedy));
                }
                None => {
                    let remedy = "remove it, or add a table [fleet]";
                    return Err(self.wrong(MEMBER, member, "without effect, as there is no fleet", remedy));
                }
                Some(fleet) if !fleet.members.contains(member) => {
                    let remedy = "write the name that the server has there";
                    return Err(self.wrong(MEMBER, member, "not among fleet.members", remedy));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn server_name(&self, name: String) -> Result<String, ConfigError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        match !name.is_empty() && name.len() <= 255 && name.chars().all(plain) {
            true => Ok(name),
            false => {
                let remedy = "write a host name in ASCII, or an IP address without brackets";
                Err(self.wrong(SERVER, name, "no host name or address", remedy))
            }
        }
    }
}
