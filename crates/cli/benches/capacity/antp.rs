//! Clients of ANTP: sessions and C1 from our own protocol's client, made before anything is measured.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_ke::tls::{KeyUse, PathVerifier, Roots, public_key_info};
use authentick_net::clock::{self, unix_seconds};
use authentick_proto::antp::client::{
    Bounds, KeyExchange, Negotiated, Negotiation, Offer, Progress, Session, TimeExchange, Wanted,
};
use authentick_proto::antp::kem;
use authentick_wire::antp::{Suite, SuiteList};
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpSpan;
use rustls::pki_types::{CertificateDer, ServerName};

use super::Error;
use super::load::Target;

/// Requests are sent again and again for as long as is measured, and it is no business of the load to doubt them.
const BOUNDS: Bounds = Bounds {
    round_trip_max: NtpSpan::from_nanos(3_600_000_000_000),
    residence_max: NtpSpan::from_nanos(3_600_000_000_000),
};
const PATIENCE: Duration = Duration::from_secs(2);
/// How often anything is asked for.
const TRY_COUNT: usize = 8;

/// One m5 of each client, each with a session key of its own.
///
/// # Errors
/// What the server answers instead of a session.
pub(crate) fn times(target: &Target, count: usize) -> Result<Vec<(Vec<u8>, TimeExchange, Session)>, Error> {
    let server = Server::negotiate(target, Suite::P256)?;
    let mut entropy = Entropy::from_system()?;
    let made = (0..count).map(|_| server.key_request(&mut entropy)).collect::<Result<_, _>>()?;
    let client = |session: Session| {
        let mut out = vec![0; DATAGRAM_SIZE_MAX];
        let (exchange, size) = session.ask(Wanted::default(), BOUNDS, clock::now(), &mut entropy, &mut out);
        out.truncate(size);
        (out, exchange, session)
    };
    Ok(server.sessions(made)?.into_iter().map(client).collect())
}

/// One m3 of each client, each with a ciphertext of its own under one C1.
///
/// # Errors
/// What the server answers instead of C1.
pub(crate) fn exchanges(
    target: &Target,
    suite: Suite,
    count: usize,
) -> Result<Vec<(Vec<u8>, KeyExchange)>, Error> {
    let server = Server::negotiate(target, suite)?;
    let mut entropy = Entropy::from_system()?;
    (0..count).map(|_| server.key_request(&mut entropy)).collect()
}

/// What a negotiation left of a server.
struct Server {
    socket: UdpSocket,
    negotiated: Negotiated,
    key: PublicKey,
}

impl Server {
    fn negotiate(target: &Target, suite: Suite) -> Result<Self, Error> {
        let any: SocketAddr =
            if target.ntp.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any)?;
        socket.connect(target.ntp)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut entropy = Entropy::from_system()?;
        let suites = SuiteList::new(&[suite]).expect("one suite makes a list");
        let mut negotiation = Negotiation::new(Offer { suites, ..Offer::p256() });
        let negotiated = loop {
            let (mut out, mut room) = ([0; DATAGRAM_SIZE_MAX], [0; DATAGRAM_SIZE_MAX]);
            let size = negotiation.request(&mut entropy, &mut out);
            match negotiation.receive(ask(&socket, &out[..size], &mut room)?)? {
                Progress::More => {}
                Progress::Done(negotiated) => break negotiated,
            }
        };
        let key = public_key(&negotiated, &target.ca)?;
        Ok(Server { socket, negotiated, key })
    }

    /// Sends all m3 together, as a public-key thread may have to wait for each of its turns on a busy machine, and
    /// once more what is not answered.
    fn sessions(&self, mut waiting: Vec<(Vec<u8>, KeyExchange)>) -> Result<Vec<Session>, Error> {
        let mut sessions = Vec::new();
        for _ in 0..TRY_COUNT {
            for (request, _) in &waiting {
                self.socket.send(request)?;
            }
            let mut room = [0; DATAGRAM_SIZE_MAX];
            while !waiting.is_empty()
                && let Ok(size) = self.socket.recv(&mut room)
            {
                let answer = &room[..size];
                let found = waiting.iter().position(|(_, exchange)| {
                    answer.get(24..32) == Some(&exchange.token().to_bits().to_be_bytes())
                });
                // What is found no more is a second answer.
                if let Some(index) = found {
                    sessions.push(waiting.swap_remove(index).1.receive(answer)?);
                }
            }
        }
        match waiting.len() {
            0 => Ok(sessions),
            count => Err(format!("{count} key exchanges were not answered").into()),
        }
    }

    fn key_request(&self, entropy: &mut Entropy) -> Result<(Vec<u8>, KeyExchange), Error> {
        let mut out = vec![0; DATAGRAM_SIZE_MAX];
        let (exchange, size) = self.negotiated.exchange(&self.key, entropy, &mut out)?;
        out.truncate(size);
        Ok((out, exchange))
    }
}

/// The public key of a chain, if it leads to the authority in `ca`.
fn public_key(negotiated: &Negotiated, ca: &Path) -> Result<PublicKey, Error> {
    let suite = negotiated.suite();
    let chain = negotiated.chain();
    let chain: Vec<CertificateDer<'_>> = chain.certificates().map(CertificateDer::from).collect();
    let roots = Roots::from_pem(&std::fs::read(ca)?)?;
    let path = PathVerifier::new(&roots, ServerName::try_from("ntp.test")?)?;
    path.verify(&chain, KeyUse::of(suite), unix_seconds())?;
    let spki = chain.first().and_then(|leaf| public_key_info(leaf)).ok_or("the leaf is broken")?;
    Ok(PublicKey::from_spki(kem(suite).ok_or("an unknown suite")?, spki)?)
}

/// Asks until there is an answer: what the load before has left in queues may push a datagram out.
fn ask<'a>(socket: &UdpSocket, request: &[u8], room: &'a mut [u8]) -> Result<&'a [u8], Error> {
    for _ in 0..TRY_COUNT {
        socket.send(request)?;
        if let Ok(size) = socket.recv(room) {
            return Ok(&room[..size]);
        }
    }
    Err(format!("no answer to {TRY_COUNT} requests").into())
}
