//! Both halves of a TLS 1.3 handshake in memory, with the settings of our server and of our client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use authentick_ke::tls::{Identity, Roots, client_config, server_config};
use authentick_report::study::nts::Operation;
use rustls::pki_types::ServerName;
use rustls::server::Acceptor;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use super::{Block, Subject};
use crate::Error;
use crate::identities::Identities;
use crate::nts::bench::NAME;

/// What both ends know before they meet.
pub(super) struct Ends {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Ends {
    pub(super) fn new(identities: &Identities) -> Result<Self, Error> {
        let bug = |what: String| Error::Bug(format!("cannot shake hands alone: {what}"));
        let [chain, key] = [identities.chain("server"), identities.key("server")].map(std::fs::read);
        let identity = Identity::from_pem(&chain?, &key?).map_err(|error| bug(error.to_string()))?;
        let roots = Roots::from_pem(&std::fs::read(identities.authority())?);
        let roots = roots.map_err(|defect| bug(defect.into()))?;
        let name = ServerName::try_from(NAME).map_err(|error| bug(error.to_string()))?;
        Ok(Ends { server: server_config(&identity), client: client_config(roots), name })
    }

    /// Both halves, and both together.
    pub(super) fn subject(&self) -> Subject<'_> {
        let operations = vec![Operation::HandshakeServer, Operation::HandshakeClient, Operation::Handshake];
        let work = |_: u32| self.shake().map_err(|error| format!("a handshake alone fails: {error}"));
        Subject { operations, per: 1, block: Some(1), work: Box::new(work) }
    }

    /// A handshake: what the server took, the client, and both with what lies between.
    fn shake(&self) -> Result<Block, rustls::Error> {
        let (mut of_server, mut of_client) = (Duration::ZERO, Duration::ZERO);
        let [mut to_server, mut to_client] = [const { Vec::new() }; 2];
        let begin = Instant::now();
        let mut client = ClientConnection::new(Arc::clone(&self.client), self.name.clone())?;
        send(&mut client, &mut to_server);
        of_client += begin.elapsed();
        let start = Instant::now();
        let mut server = self.greet(&to_server)?;
        send(&mut server, &mut to_client);
        of_server += start.elapsed();
        to_server.clear();
        let start = Instant::now();
        receive(&mut client, &to_client)?;
        send(&mut client, &mut to_server);
        of_client += start.elapsed();
        let start = Instant::now();
        receive(&mut server, &to_server)?;
        of_server += start.elapsed();
        let all = begin.elapsed();
        match client.is_handshaking() || server.is_handshaking() {
            true => Err(rustls::Error::HandshakeNotComplete),
            false => Ok([of_server, of_client, all]),
        }
    }

    /// The server's connection, from the client's first message on, as key exchange makes it.
    fn greet(&self, octets: &[u8]) -> Result<ServerConnection, rustls::Error> {
        let mut acceptor = Acceptor::default();
        let mut left = octets;
        while !left.is_empty() {
            // Memory cannot fail; what cannot be read leaves the message unfinished.
            if acceptor.read_tls(&mut left).is_err() {
                break;
            }
        }
        let accepted = acceptor.accept().map_err(|(error, _)| error)?;
        let accepted = accepted.ok_or(rustls::Error::HandshakeNotComplete)?;
        if !accepted
            .client_hello()
            .alpn()
            .is_some_and(|mut names| names.any(|name| name == authentick_ke::ALPN))
        {
            return Err(rustls::Error::NoApplicationProtocol);
        }
        accepted.into_connection(Arc::clone(&self.server)).map_err(|(error, _)| error)
    }
}

/// What a connection has to say.
fn send<S: rustls::SideData>(
    connection: &mut impl std::ops::DerefMut<Target = rustls::ConnectionCommon<S>>,
    octets: &mut Vec<u8>,
) {
    // Memory takes all of it.
    while connection.wants_write() && connection.write_tls(octets).is_ok() {}
}

/// What a connection is told.
fn receive<S: rustls::SideData>(
    connection: &mut impl std::ops::DerefMut<Target = rustls::ConnectionCommon<S>>,
    mut octets: &[u8],
) -> Result<(), rustls::Error> {
    while !octets.is_empty() {
        if connection.read_tls(&mut octets).is_err() {
            return Err(rustls::Error::HandshakeNotComplete);
        }
        connection.process_new_packets()?;
    }
    Ok(())
}
