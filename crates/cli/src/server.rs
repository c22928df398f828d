//! A server as the command line names it, and what it is asked for.

use std::net::{IpAddr, SocketAddr};

use authentick_wire::ke::AeadId;
use rustls::pki_types::ServerName;

use crate::exit::{Exit, Failure};

/// What is offered unless the user says otherwise: short cookies first, then what every server has.
const DEFAULT_AEADS: [AeadId; 2] = [AeadId::AES_128_GCM_SIV, AeadId::SIV_CMAC_256];

/// The algorithms to offer: those that were `chosen`, if there are any.
pub(crate) fn aeads(chosen: &[AeadId]) -> Vec<AeadId> {
    match chosen {
        [] => DEFAULT_AEADS.to_vec(),
        chosen => chosen.to_vec(),
    }
}

/// `HOST[:PORT]`; an IPv6 address with a port stands in brackets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerArgument {
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
}

impl ServerArgument {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || {
            let message = format!("{text:?} is no server; write HOST, HOST:PORT, or [ADDRESS]:PORT for IPv6");
            Exit::Usage.because(message)
        };
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(ServerArgument { host: address.ip().to_string(), port: Some(address.port()) });
        }
        if text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return Ok(ServerArgument { host: text.trim_matches(['[', ']']).to_owned(), port: None });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let plain = |c: char| c.is_alphanumeric() || "-._".contains(c);
        if host.is_empty() || !host.chars().all(plain) || port == Some(0) {
            return Err(wrong());
        }
        Ok(ServerArgument { host: host.to_owned(), port })
    }
}

/// The name that a server's certificate must have.
pub(crate) fn server_name(name: &str) -> Result<ServerName<'static>, Failure> {
    ServerName::try_from(name.to_owned())
        .map_err(|_| Exit::Usage.because(format!("--server-name {name:?} is no host name or address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_written_in_all_usual_ways() {
        for (text, host, port) in [
            ("time.example", "time.example", None),
            ("time.example:4123", "time.example", Some(4123)),
            ("192.0.2.1", "192.0.2.1", None),
            ("192.0.2.1:123", "192.0.2.1", Some(123)),
            ("2001:db8::1", "2001:db8::1", None),
            ("[2001:db8::1]", "2001:db8::1", None),
            ("[2001:db8::1]:123", "2001:db8::1", Some(123)),
        ] {
            let expected = ServerArgument { host: host.to_owned(), port };
            assert_eq!(ServerArgument::parse(text).unwrap(), expected, "{text}");
        }
        for text in ["", ":123", "host:", "host:port", "host:70000", "host:0", "a b", "http://host"] {
            assert_eq!(ServerArgument::parse(text).unwrap_err().exit, Exit::Usage, "{text}");
        }
    }
}
