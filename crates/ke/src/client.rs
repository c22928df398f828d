//! The client: a dialogue without sockets, and a dialler around it.

#[cfg(any(all(test, feature = "client", feature = "server"), feature = "fuzzing"))]
pub(crate) mod fuzzing;

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use authentick_net::addresses::{NO_ROUTE, is_refused_route, race};
use authentick_proto::auth::nts::algorithm;
use authentick_proto::client::NtsSession;
use authentick_wire::ke::{AeadId, ErrorCode, Request, Response, message_size};
use authentick_wire::limits::KE_RESPONSE_SIZE_MAX;
use authentick_wire::{Malformed, Writer};
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, ClientConnection, OtherError};
use thiserror::Error;

use crate::tls::{BadPath, CertificateInfo};
use crate::{ALPN, EXPORTER_LABEL, export_keys, quirky_context};

/// What is asked of a server.
#[derive(Clone, Debug)]
pub struct Ask {
    /// TLS settings: whom to trust.
    pub tls: Arc<ClientConfig>,
    /// The name that the server's certificate must have.
    pub server_name: ServerName<'static>,
    /// Algorithms to offer, the best first.
    pub aeads: Vec<AeadId>,
}

/// What a key exchange brought.
#[derive(Debug)]
pub struct Established {
    /// Keys and cookies.
    pub session: NtsSession,
    /// The algorithm of the server's choice.
    pub aead: AeadId,
    /// Where the server says that the NTP server is.
    pub ntp_server: Option<String>,
    /// On which port; absent: 123.
    pub ntp_port: Option<u16>,
    /// The certificate that vouched for it, if it could be read.
    pub certificate: Option<CertificateInfo>,
}

/// Which check a certificate failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CertificateCheck {
    /// It is for another name.
    #[error("certificate name")]
    Name,
    /// Its time is over.
    #[error("certificate validity: expired")]
    Expired,
    /// Its time has not come.
    #[error("certificate validity: not yet valid")]
    NotYetValid,
    /// No authority that is trusted here vouches for it.
    #[error("certificate issuer: not trusted")]
    Issuer,
    /// It, or its key, is for something else.
    #[error("certificate usage")]
    Usage,
    /// It was revoked, or it breaks another rule.
    #[error("certificate")]
    Other,
}

impl From<&CertificateError> for BadPath {
    fn from(problem: &CertificateError) -> Self {
        let check = match problem {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                CertificateCheck::Name
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => CertificateCheck::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                CertificateCheck::NotYetValid
            }
            CertificateError::UnknownIssuer => CertificateCheck::Issuer,
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                CertificateCheck::Usage
            }
            CertificateError::Other(OtherError(inner)) if is_authority_as_server(&**inner) => {
                let detail = "the server has a certificate of an authority, as `openssl req -x509` makes them; it \
                              needs one with basicConstraints CA:FALSE";
                return BadPath::new(CertificateCheck::Usage, detail);
            }
            _ => CertificateCheck::Other,
        };
        BadPath::new(check, describe_certificate(problem))
    }
}

/// A problem of TLS in words, without the names of the library's types.
#[must_use]
pub fn describe(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(problem) => {
            format!("invalid peer certificate: {}", describe_certificate(problem))
        }
        _ => error.to_string(),
    }
}

/// A problem of a certificate in words: the library's `Display` prints some by their types.
fn describe_certificate(problem: &CertificateError) -> String {
    match problem {
        CertificateError::UnknownIssuer => "no trusted authority has issued it".to_owned(),
        CertificateError::BadEncoding => "it is not a valid X.509 certificate".to_owned(),
        CertificateError::BadSignature => "its signature does not match its issuer's key".to_owned(),
        CertificateError::Revoked => "it was revoked".to_owned(),
        CertificateError::UnhandledCriticalExtension => "it has an unknown critical extension".to_owned(),
        CertificateError::InvalidPurpose => "it is not for TLS servers".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            // The library has each name in its type's brackets: DnsName("ntp.test"), IpAddress(192.0.2.1).
            let bare = |name: &String| {
                let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
                inner.trim_matches('"').to_owned()
            };
            let names: Vec<String> = presented.iter().map(bare).collect();
            let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            format!("it is for {names}, and not for {}", expected.to_str())
        }
        CertificateError::Other(OtherError(inner)) => inner.to_string(),
        _ => problem.to_string(),
    }
}

fn is_authority_as_server(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Why a key exchange failed.
#[derive(Debug, Error)]
pub enum KeError {
    /// No address of the server could be reached.
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    /// This host has no route to it, of whatever type the route that says so is.
    #[error("{NO_ROUTE}")]
    NoRoute,
    /// The time was up during this phase.
    #[error("timed out during {0}")]
    Timeout(Phase),
    /// The connection broke.
    #[error("connection broke: {0}")]
    Io(io::Error),
    /// The server closed in this phase, before it had answered.
    #[error("the server closed the connection during {0} without a word")]
    Closed(Phase),
    /// The server's certificate failed a check.
    #[error("{0}: {1}")]
    Certificate(CertificateCheck, String),
    /// TLS failed otherwise.
    #[error("TLS: {}", describe(.0))]
    Tls(rustls::Error),
    /// The server does not speak `ntske/1`; whether it said so itself, by an alert.
    #[error("application protocol: the server does not speak ntske/1")]
    Alpn {
        /// It was the server that ended the connection.
        alert: bool,
    },
    /// The response breaks the syntax.
    #[error("key exchange response: {0}")]
    Response(Malformed),
    /// The response is longer than any may be.
    #[error("key exchange response: longer than {KE_RESPONSE_SIZE_MAX} octets")]
    TooLong,
    /// The server sent an Error record.
    #[error("the server refused: {0}")]
    Refused(ErrorCode),
    /// The server sent a Warning record.
    #[error("the server sent warning {0}, which is not defined")]
    Warning(u16),
    /// The server has no NTPv4 under NTS.
    #[error("the server does not serve NTPv4 under NTS")]
    NoProtocol,
    /// The server has none of the algorithms that were offered.
    #[error("the server has none of the AEAD algorithms that were offered")]
    NoAead,
    /// None of the cookies can be carried in an NTP packet.
    #[error("key exchange response: no cookie of a usable size")]
    NoCookie,
}

/// A part of a key exchange that can take time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// TCP.
    Connect,
    /// TLS.
    Handshake,
    /// Request and response.
    Exchange,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Connect => "connecting",
            Phase::Handshake => "the TLS handshake",
            Phase::Exchange => "the key exchange",
        })
    }
}

impl KeError {
    /// Whether the server answered, and its proof did not hold: as opposed to silence, and to a refusal.
    #[must_use]
    pub const fn is_authentication(&self) -> bool {
        match self {
            KeError::Certificate(..)
            | KeError::Tls(_)
            | KeError::Alpn { .. }
            | KeError::Response(_)
            | KeError::TooLong
            | KeError::Warning(_)
            | KeError::NoCookie => true,
            KeError::Connect(_)
            | KeError::NoRoute
            | KeError::Timeout(_)
            | KeError::Io(_)
            | KeError::Closed(_)
            | KeError::Refused(_)
            | KeError::NoProtocol
            | KeError::NoAead => false,
        }
    }

    /// Whether the server answered that it will not serve.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        matches!(self, KeError::Refused(_) | KeError::NoProtocol | KeError::NoAead)
    }
}

impl From<rustls::Error> for KeError {
    fn from(error: rustls::Error) -> Self {
        match &error {
            rustls::Error::InvalidCertificate(problem) => {
                let BadPath { check, detail } = problem.into();
                KeError::Certificate(check, detail)
            }
            rustls::Error::NoApplicationProtocol => KeError::Alpn { alert: false },
            rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol) => {
                KeError::Alpn { alert: true }
            }
            _ => KeError::Tls(error),
        }
    }
}

/// A key exchange as octets: what is to be sent, and what came.
pub struct Dialogue {
    tls: ClientConnection,
    aeads: Vec<AeadId>,
    response: Vec<u8>,
    asked: bool,
}

impl Dialogue {
    /// A dialogue whose first octets are ready to be sent.
    ///
    /// # Errors
    /// If TLS cannot start under the given configuration.
    pub fn new(ask: &Ask) -> Result<Self, KeError> {
        let tls = ClientConnection::new(Arc::clone(&ask.tls), ask.server_name.clone())?;
        Ok(Dialogue { tls, aeads: ask.aeads.clone(), response: Vec::new(), asked: false })
    }

    /// Whether the TLS handshake is still going on.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether there is something to send.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }

    /// Sends what is to be sent, or part of it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&mut self, out: &mut impl Write) -> io::Result<usize> {
        self.tls.write_tls(out)
    }

    /// Reads once from `input` and goes on; returns what was established once the response is complete. Then, and after
    /// most errors, there is a last word to be sent: close_notify, or an alert.
    ///
    /// # Errors
    /// [`KeError::Io`] holds the errors of `input`, `WouldBlock` among them; every other error is final.
    pub fn read(&mut self, input: &mut impl Read) -> Result<Option<Established>, KeError> {
        let end = self.tls.read_tls(input).map_err(KeError::Io)? == 0;
        let state = self.tls.process_new_packets()?;
        if !self.tls.is_handshaking() && !self.asked {
            //= rfc8915#3-3
            if self.tls.alpn_protocol() != Some(ALPN) {
                return Err(KeError::Alpn { alert: false });
            }
            self.ask();
        }
        let mut buffer = [0; 4096];
        while self.response.len() <= KE_RESPONSE_SIZE_MAX {
            match self.tls.reader().read(&mut buffer) {
                Ok(size @ 1..) => self.response.extend_from_slice(&buffer[..size]),
                // A peer that closes without close_notify is tolerated: the message says where it ends.
                Ok(0) | Err(_) => break,
            }
        }
        let size = message_size(&self.response);
        if size.is_some() || self.response.len() > KE_RESPONSE_SIZE_MAX {
            //= rfc8915#4-4
            // Ours waits for the response: NTPsec closes with a close_notify unread that came with the request, which
            // resets the connection before its answer has left, and cfnts takes it for a failure.
            self.tls.send_close_notify();
        }
        if let Some(size) = size {
            self.response.truncate(size);
            return self.conclude().map(Some);
        }
        if self.response.len() > KE_RESPONSE_SIZE_MAX {
            return Err(KeError::TooLong);
        }
        let phase = if self.asked { Phase::Exchange } else { Phase::Handshake };
        if end || state.peer_has_closed() { Err(KeError::Closed(phase)) } else { Ok(None) }
    }

    //= rfc8915#4-2
    fn ask(&mut self) {
        let mut request = [0; 64];
        let mut out = Writer::new(&mut request);
        // At most a handful of algorithms exist, so neither the buffer nor TLS can be too small for this.
        const ROOM: &str = "a request is a few dozen octets";
        Request::emit(&mut out, &self.aeads).expect(ROOM);
        let size = out.offset();
        self.tls.writer().write_all(&request[..size]).expect(ROOM);
        self.asked = true;
    }

    fn conclude(&mut self) -> Result<Established, KeError> {
        let agreement = match Response::parse(&self.response, &self.aeads).map_err(KeError::Response)? {
            Response::Agreed(agreement) => agreement,
            //= rfc8915#4.1.3-3
            Response::Error(code) => return Err(KeError::Refused(code)),
            //= rfc8915#4.1.4-2
            Response::Warning(code) => return Err(KeError::Warning(code)),
            Response::NoProtocol => return Err(KeError::NoProtocol),
            Response::NoAead => return Err(KeError::NoAead),
        };
        let algorithm = algorithm(agreement.aead).ok_or(KeError::NoAead)?;
        let export = |octets: &mut [u8], context: &[u8]| {
            //= rfc8915#4.3-1
            self.tls.export_keying_material(octets, EXPORTER_LABEL, Some(context)).map(|_| ())
        };
        let context = quirky_context(algorithm, agreement.compliant_128gcm);
        let keys = export_keys(algorithm, context, export)?;
        let alternative = match context == agreement.aead {
            true => None,
            // The server did not say how it exports: if nothing works under one way, the other is tried.
            false => Some(export_keys(algorithm, agreement.aead, export)?),
        };
        let mut session = NtsSession::new(keys, alternative);
        agreement.cookies().for_each(|cookie| {
            session.jar.add(cookie);
        });
        if session.jar.count() == 0 {
            return Err(KeError::NoCookie);
        }
        let certificate =
            self.tls.peer_certificates().and_then(|chain| CertificateInfo::parse(chain.first()?));
        Ok(Established {
            session,
            aead: agreement.aead,
            ntp_server: agreement.server.map(str::to_owned),
            ntp_port: agreement.port,
            certificate,
        })
    }
}

/// How long the phases of a key exchange took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// TCP connection.
    pub connect: Duration,
    /// TLS handshake.
    pub handshake: Duration,
    /// Request and response.
    pub exchange: Duration,
}

/// A finished key exchange.
#[derive(Debug)]
pub struct Dialled {
    /// What it brought.
    pub established: Established,
    /// The address that answered.
    pub address: SocketAddr,
    /// The address of this end.
    pub local: SocketAddr,
    /// How long it took.
    pub timing: Timing,
}

/// Connects to whichever of `addresses` is the first to accept ([`race`]) and exchanges keys; gives up after `timeout`.
///
/// # Errors
/// What went wrong; for several addresses, with the last one.
pub fn dial(ask: &Ask, addresses: &[SocketAddr], timeout: Duration) -> Result<Dialled, KeError> {
    let start = Instant::now();
    let deadline = start + timeout;
    let (mut stream, address) = race(addresses, deadline).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => KeError::Timeout(Phase::Connect),
        _ if is_refused_route(&error) => KeError::NoRoute,
        _ => KeError::Connect(error),
    })?;
    let local = stream.local_addr().map_err(KeError::Connect)?;
    stream.set_nodelay(true).map_err(KeError::Io)?;
    let connected = Instant::now();
    let mut dialogue = Dialogue::new(ask)?;
    let mut shaken = None;
    let established = loop {
        let phase = if dialogue.is_handshaking() { Phase::Handshake } else { Phase::Exchange };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(KeError::Timeout(phase));
        }
        stream.set_write_timeout(Some(left)).map_err(KeError::Io)?;
        stream.set_read_timeout(Some(left)).map_err(KeError::Io)?;
        let timed_out = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => KeError::Timeout(phase),
            _ => KeError::Io(error),
        };
        while dialogue.wants_write() {
            dialogue.write(&mut stream).map_err(timed_out)?;
        }
        let result = dialogue.read(&mut stream);
        if !dialogue.is_handshaking() {
            shaken.get_or_insert_with(Instant::now);
        }
        match result {
            Ok(None) => {}
            Ok(Some(established)) => break established,
            Err(KeError::Io(error)) => return Err(timed_out(error)),
            Err(error) => {
                take_leave(&mut dialogue, stream);
                return Err(error);
            }
        }
    };
    let shaken = shaken.unwrap_or(connected);
    let timing =
        Timing { connect: connected - start, handshake: shaken - connected, exchange: shaken.elapsed() };
    take_leave(&mut dialogue, stream);
    Ok(Dialled { established, address, local, timing })
}

/// Sends the last word and closes, without waiting. What has come by then is thrown away first: a connection that is
/// closed with something unread is reset, and the last word may be lost. tcp(7), RFC 2525 section 2.17.
fn take_leave(dialogue: &mut Dialogue, mut stream: TcpStream) {
    // Whether the server still listens is its affair.
    if stream.set_nonblocking(true).is_err() {
        return;
    }
    while dialogue.wants_write() && dialogue.write(&mut stream).is_ok_and(|size| size > 0) {}
    let _ = io::copy(&mut stream.take(KE_RESPONSE_SIZE_MAX as u64), &mut io::sink());
}
