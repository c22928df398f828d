//! Who is to be loaded: its addresses, whether that is allowed, and a first exchange before any load.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use authentick_client::nts::KeyServer;
use authentick_client::{NTP_PORT, mac, nts, plain, resolve};
use authentick_crypto::Entropy;
use authentick_ke::client::Ask;
use authentick_ke::tls::{Roots, client_config};
use authentick_load::{Allow, Scheme};
use authentick_net::udp::ClientSocket;
use authentick_proto::symmetric::SymmetricKey;
use authentick_wire::ke::AeadId;

use super::antp::{Probed, probe as probe_antp};
use crate::args::{AntpLoad, Permit, Trust};
use crate::exit::{Exit, Failure};
use crate::server::{ServerArgument, aeads, server_name};
use crate::symmetric::KeyName;
use crate::trust;

/// What the user allows.
#[derive(Debug)]
pub(crate) struct Permission {
    allow: Allow,
    host: Option<String>,
}

impl Permission {
    /// A host whose name the user repeated, and a list of prefixes.
    pub(crate) fn new(arguments: &Permit) -> Result<Self, Failure> {
        let allow = match &arguments.allow_list {
            None => Allow::default(),
            Some(file) => {
                let problem = |text: String| {
                    Exit::Configuration.because(format!("--allow-list {}: {text}", file.display()))
                };
                let text =
                    fs::read_to_string(file).map_err(|error| problem(format!("cannot read: {error}")))?;
                Allow::from_list(&text)
                    .map_err(|error| problem(format!("{error}; write prefixes such as 192.0.2.0/24")))?
            }
        };
        Ok(Permission { allow, host: arguments.permit.clone() })
    }

    /// Refuses to load `address`, known as `host`, unless it is nobody else's or the user said so.
    fn check(&self, host: &str, address: IpAddr) -> Result<(), Failure> {
        if self.allow.contains(address) || self.host.as_deref() == Some(host) {
            return Ok(());
        }
        let message = match &self.host {
            Some(permitted) => format!(
                "--permit names {permitted:?}, and {host:?} ({address}) is another host; repeat its name if it is \
                 yours to load"
            ),
            None => format!(
                "{host} ({address}) is a public address; if it is yours to load, say so with --permit {host}, or put \
                 it on a list (--allow-list)"
            ),
        };
        Err(Exit::Usage.because(message))
    }
}

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) scheme: Scheme,
    /// `HOST[:PORT]`.
    pub(crate) text: &'a str,
    pub(crate) trust: Option<&'a Trust>,
    pub(crate) key: Option<KeyName<'a>>,
    pub(crate) antp: Option<&'a AntpLoad>,
    pub(crate) timeout: Duration,
}

/// A server that has answered.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) text: String,
    pub(crate) ntp: SocketAddr,
    pub(crate) ke: SocketAddr,
    pub(crate) server_name: String,
    pub(crate) authorities_pem: Option<String>,
    pub(crate) roots: Option<Roots>,
    pub(crate) aeads: Vec<AeadId>,
    /// The algorithm that the server chose.
    pub(crate) aead: Option<AeadId>,
    /// The key that clients share with it.
    pub(crate) key: Option<SymmetricKey>,
    /// What a first run of ANTP found out.
    pub(crate) antp: Option<Probed>,
    /// Keys are exported the other way.
    pub(crate) alternative_keys: bool,
    /// The address that this host asks from.
    pub(crate) local: Option<IpAddr>,
}

impl Target {
    /// Finds the server, and asks it once.
    pub(crate) fn find(wanted: &Wanted<'_>, permission: &Permission) -> Result<Self, Failure> {
        let server = ServerArgument::parse(wanted.text)?;
        let mut target = match (wanted.trust, wanted.antp) {
            (None, Some(antp)) => Self::under_antp(wanted, antp, &server, permission)?,
            (None, None) => {
                let ntp = resolve(&server.host, server.port.unwrap_or(NTP_PORT))?[0];
                permission.check(&server.host, ntp.ip())?;
                let key = wanted.key.map(|name| name.find(ntp.ip())).transpose()?;
                probe(key.as_ref(), ntp, wanted.timeout)?;
                Target {
                    text: wanted.text.to_owned(),
                    ntp,
                    ke: ntp,
                    server_name: server.host.clone(),
                    authorities_pem: None,
                    roots: None,
                    aeads: Vec::new(),
                    aead: None,
                    key,
                    antp: None,
                    alternative_keys: false,
                    local: None,
                }
            }
            (Some(trust), _) => Self::under_nts(wanted, trust, &server, permission)?,
        };
        let asked = if wanted.scheme == Scheme::Ke { target.ke } else { target.ntp };
        target.local = local_towards(asked);
        Ok(target)
    }

    fn under_antp(
        wanted: &Wanted<'_>,
        antp: &AntpLoad,
        server: &ServerArgument,
        permission: &Permission,
    ) -> Result<Self, Failure> {
        let ntp = resolve(&server.host, server.port.unwrap_or(NTP_PORT))?[0];
        permission.check(&server.host, ntp.ip())?;
        let name = antp.server_name.as_deref().unwrap_or(&server.host);
        let roots = trust::roots(antp.ca.as_deref())?;
        let authorities_pem = antp.ca.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let probed = probe_antp(ntp, antp.kem.suite(), &roots, name, wanted.timeout)?;
        Ok(Target {
            text: wanted.text.to_owned(),
            ntp,
            ke: ntp,
            server_name: name.to_owned(),
            authorities_pem,
            roots: Some(roots),
            aeads: Vec::new(),
            aead: None,
            key: None,
            antp: Some(probed),
            alternative_keys: false,
            local: None,
        })
    }

    fn under_nts(
        wanted: &Wanted<'_>,
        trust: &Trust,
        server: &ServerArgument,
        permission: &Permission,
    ) -> Result<Self, Failure> {
        let alone = wanted.scheme == Scheme::Ke;
        let ke_port = server.port.filter(|_| alone).unwrap_or(trust.ke_port);
        let addresses = resolve(&server.host, ke_port)?;
        permission.check(&server.host, addresses[0].ip())?;
        let name = trust.server_name.as_deref().unwrap_or(&server.host);
        let server_name = server_name(name)?;
        let roots = trust::roots(trust.ca.as_deref())?;
        let authorities_pem = trust.ca.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let aeads = aeads(&trust.aead);
        let key_server = KeyServer {
            host: server.host.clone(),
            port: ke_port,
            addresses: addresses[..1].to_vec(),
            ask: Ask { tls: client_config(roots.clone()), server_name, aeads: aeads.clone() },
            ntp_port: server.port.filter(|_| !alone),
        };
        let dialled = key_server.exchange_keys(trust.ke_timeout)?;
        let ntp = key_server.ntp_address(&dialled)?;
        let (ke, established) = (dialled.address, dialled.established);
        let ntp_host = established.ntp_server.unwrap_or_else(|| server.host.clone());
        let aead = established.aead;
        let mut alternative_keys = false;
        if !alone {
            // A key exchange may send clients anywhere; load goes only where it may.
            permission.check(&ntp_host, ntp.ip())?;
            let mut session = established.session;
            let asked =
                nts::ask_with_either_keys(ntp, &mut session, &mut Entropy::from_system()?, wanted.timeout);
            (_, alternative_keys) = asked.map_err(|unanswered| unanswered.of(ntp))?;
        }
        Ok(Target {
            text: wanted.text.to_owned(),
            ntp,
            ke,
            server_name: name.to_owned(),
            authorities_pem,
            roots: Some(roots),
            aeads,
            aead: Some(aead),
            key: None,
            antp: None,
            alternative_keys,
            local: None,
        })
    }

    /// Whether the server is this host.
    pub(crate) fn is_local(&self, asked: SocketAddr) -> bool {
        asked.ip().is_loopback() || self.local == Some(asked.ip())
    }
}

/// Asks once, under `key` if there is one: who does not answer a single request need not be loaded.
fn probe(key: Option<&SymmetricKey>, ntp: SocketAddr, timeout: Duration) -> Result<(), Failure> {
    let mut entropy = Entropy::from_system()?;
    let asked = match key {
        Some(key) => mac::ask(ntp, key, &mut entropy, timeout),
        None => plain::ask(ntp, &mut entropy, timeout),
    };
    asked.map(|_| ()).map_err(|unanswered| unanswered.of(ntp).into())
}

/// The address from which this host would send to `server`.
fn local_towards(server: SocketAddr) -> Option<IpAddr> {
    Some(ClientSocket::connect(server).ok()?.local().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_need_a_word_that_names_the_host() {
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let permission = |host: Option<&str>| {
            Permission::new(&Permit { permit: host.map(str::to_owned), allow_list: None }).unwrap()
        };
        let silent = permission(None);
        let failure = silent.check("time.example", address).unwrap_err();
        assert!(failure.exit == Exit::Usage && failure.message.contains("--permit time.example"));
        assert!(silent.check("lab", "10.0.0.1".parse().unwrap()).is_ok());
        let permission = permission(Some("time.example"));
        assert!(permission.check("time.example", address).is_ok());
        assert!(permission.check("other.example", address).is_err());
    }
}
