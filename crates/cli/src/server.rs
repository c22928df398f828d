//! A server as the command line names it, and what it is asked for.

use authentick_client::HostPort;
use authentick_ke::client::Ask;
use authentick_ke::tls::{Roots, client_config};
use rustls::pki_types::ServerName;

use crate::args::NtsClient;
use crate::exit::{Exit, Failure};

/// What is asked of the key exchange of `host`, whom `roots` are to vouch for.
pub(crate) fn ask(client: &NtsClient, roots: Roots, host: &str) -> Result<Ask, Failure> {
    let server_name = server_name(client.trust.name(host))?;
    Ok(Ask { tls: client_config(roots), server_name, aeads: client.aead.clone() })
}

/// The name that a server's certificate must have.
pub(crate) fn server_name(name: &str) -> Result<ServerName<'static>, Failure> {
    ServerName::try_from(HostPort::without_zone(name).to_owned()).map_err(|_| {
        Exit::Usage.because(format!(
            "invalid certificate name {name:?}: expected a host name or an address; give one with --server-name"
        ))
    })
}
