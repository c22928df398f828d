//! NTP under NTS: a key exchange over TLS, then a cookie for each request. RFC 8915.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_ke::client::{Ask, Dialled, dial};
use authentick_net::addresses::Addresses;
use authentick_proto::client::{Check, Exchange, NtsSession};
use authentick_wire::header::ReferenceId;

use crate::error::Fault;
use crate::exchange::{Asking, Unanswered};
use crate::resolve::Servers;
use crate::{Answer, Client, Error, Learnt, Measurement, NTP_PORT, Place, Voucher, Why, resolve};

/// Asks `server` once, with a cookie of `session`; otherwise as [`crate::plain::ask`].
///
/// # Errors
/// Why there is no answer.
pub fn ask(
    server: SocketAddr,
    session: &mut NtsSession,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<Measurement, Unanswered> {
    let mut asking = Asking::begin(server)?;
    let made = Exchange::nts(session, entropy, &mut asking.buffer);
    let (exchange, size) = made.map_err(|_| Unanswered::NoCookie)?;
    asking.conclude(exchange, size, timeout, |exchange, datagram| exchange.receive(datagram, Some(session)))
}

/// Asks as `attempt` does with the keys of `session`, and again under the other keys if the server is silent under
/// these or cannot open its cookies: it may have exported keys the other way (chrony, "NTS AES-128-GCM-SIV compliant
/// exporter"). `session` keeps the keys that were used last. The flag says that the response came under the other keys.
///
/// # Errors
/// Why there is no response under the keys that were tried last.
pub fn under_either_keys<T>(
    session: &mut NtsSession,
    mut attempt: impl FnMut(&mut NtsSession) -> Result<T, Error>,
) -> Result<(T, bool), Error> {
    match attempt(session) {
        Err(error) if (is_nak(&error) || error.fault() == Fault::Silent) && session.switch_keys() => {
            attempt(session).map(|ended| (ended, true))
        }
        first => first.map(|ended| (ended, false)),
    }
}

/// Whether the server said that it cannot open our cookies.
fn is_nak(error: &Error) -> bool {
    let kiss = Check::Kiss(ReferenceId::NTSN);
    matches!(&error.why, Why::Unanswered(Unanswered::Rejected(checks)) if checks.contains(&kiss))
}

/// Which server exchanges keys, and how it is asked.
#[derive(Clone, Debug)]
pub struct KeyServer {
    /// The name that the user gave.
    pub host: String,
    /// The port of the key exchange.
    pub port: u16,
    /// Its addresses, with that port.
    pub addresses: Addresses,
    /// Whom to trust, and what to offer.
    pub ask: Ask,
    /// The port of NTP if the server names none; absent: 123.
    pub ntp_port: Option<u16>,
}

impl KeyServer {
    /// Exchanges keys with the address that is the first to accept.
    ///
    /// # Errors
    /// What went wrong.
    pub fn exchange_keys(&self, timeout: Duration) -> Result<Dialled, Error> {
        let addresses: Vec<SocketAddr> = self.addresses.all().collect();
        dial(&self.ask, &addresses, timeout).map_err(|error| {
            let place = Place::KeyExchange { host: self.host.clone(), port: self.port };
            Error::new(place, Why::KeyExchange { error, offered: self.ask.aeads.clone() })
        })
    }

    /// The NTP server for these keys: the one that the key exchange named, with the addresses of the key exchange's
    /// family first, or the host that it ran on.
    ///
    /// # Errors
    /// If no address of the name is found within `timeout`.
    //= rfc8915#4.1.7-3, rfc8915#4.1.8-1
    pub fn ntp_addresses(&self, dialled: &Dialled, timeout: Duration) -> Result<Addresses, Error> {
        let established = &dialled.established;
        let port = established.ntp_port.or(self.ntp_port).unwrap_or(NTP_PORT);
        match &established.ntp_server {
            Some(name) => Ok(resolve(name, port, timeout)?.like(dialled.address)),
            None => {
                // With its zone.
                let mut address = dialled.address;
                address.set_port(port);
                Ok(address.into())
            }
        }
    }
}

/// A client that exchanges keys when it has no cookie left.
#[derive(Debug)]
pub struct Nts {
    key_server: KeyServer,
    timeout: Duration,
    /// With the addresses of the NTP server.
    session: Option<(Servers, NtsSession)>,
    learnt: Learnt,
}

impl Nts {
    /// A client that waits for the key exchange, and for each answer, for `timeout`.
    #[must_use]
    pub fn new(key_server: KeyServer, timeout: Duration) -> Self {
        Nts { key_server, timeout, session: None, learnt: Learnt::default() }
    }

    fn exchange_keys(&mut self) -> Result<(Servers, NtsSession), Error> {
        let dialled = self.key_server.exchange_keys(self.timeout)?;
        let (established, timing) = (&dialled.established, dialled.timing);
        let times = &mut self.learnt.times;
        times.connect = Some(timing.connect);
        times.tls_handshake = Some(timing.handshake);
        times.key_exchange = Some(timing.exchange);
        self.learnt.voucher = Some(Voucher::Nts {
            aead: established.aead,
            cookie_count: established.session.jar.count(),
            certificate: established.certificate.clone(),
            key_exchange_address: dialled.address,
            key_exchange_source: dialled.local,
        });
        let ntp = self.key_server.ntp_addresses(&dialled, self.timeout)?;
        Ok((ntp.into(), dialled.established.session))
    }
}

impl Client for Nts {
    fn ask(&mut self, entropy: &mut Entropy) -> Result<Answer, Error> {
        let (mut ntp, mut session) = match self.session.take() {
            //= rfc8915#5.7-6
            Some(kept) if kept.1.jar.count() > 0 => kept,
            //= rfc8915#8.7-1
            Some(_) | None => self.exchange_keys()?,
        };
        let asked = under_either_keys(&mut session, |session| {
            ntp.ask(&mut self.learnt, |_, server| {
                ask(server, session, entropy, self.timeout).map_err(|unanswered| unanswered.of(server))
            })
        });
        // Cookies that the server cannot open are useless: the next exchange starts with new keys.
        if !asked.as_ref().is_err_and(is_nak) {
            self.session = Some((ntp, session));
        }
        asked.map(|(measurement, _)| measurement.into())
    }

    fn learnt(&mut self) -> &mut Learnt {
        &mut self.learnt
    }
}

#[cfg(test)]
mod tests {
    use authentick_crypto::{Algorithm, Key};
    use authentick_ke::client::{Established, Timing};
    use authentick_ke::tls::{Roots, client_config};
    use authentick_proto::cookie::SessionKeys;
    use authentick_wire::ke::AeadId;

    use super::*;

    /// What a key exchange brings that says this of the NTP server.
    fn dialled(server: Option<&str>, port: Option<u16>) -> Dialled {
        let key = Key::new(Algorithm::SivCmac256, &[1; 32]).unwrap();
        let session = NtsSession::new(SessionKeys::new(&key, &key).unwrap(), None);
        let established = Established {
            session,
            aead: AeadId::SIV_CMAC_256,
            ntp_server: server.map(str::to_owned),
            ntp_port: port,
            certificate: None,
        };
        let address = "198.18.0.7:4460".parse().unwrap();
        Dialled { established, address, local: address, timing: Timing::default() }
    }

    //= rfc8915#4.1.7-3, rfc8915#4.1.8-1
    #[test]
    fn without_a_word_of_the_server_time_is_asked_where_the_keys_came_from_at_port_123() {
        let tls = client_config(Roots::from_der([]));
        let ask = Ask { tls, server_name: "ntp.test".try_into().unwrap(), aeads: vec![] };
        let (host, nowhere) = ("ntp.test".to_owned(), dialled(None, None).address);
        let server = KeyServer { host, port: 4460, addresses: nowhere.into(), ask, ntp_port: None };
        for (name, port, expected) in [
            (None, None, "198.18.0.7:123"),
            (None, Some(4123), "198.18.0.7:4123"),
            (Some("198.18.0.9"), None, "198.18.0.9:123"),
            (Some("2001:db8::9"), Some(4123), "[2001:db8::9]:4123"),
        ] {
            let found = server.ntp_addresses(&dialled(name, port), Duration::ZERO).unwrap();
            assert_eq!(found, expected.parse::<SocketAddr>().unwrap().into());
        }
    }
}
