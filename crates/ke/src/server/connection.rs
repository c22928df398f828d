//! One connection: handshake, request, response, and the client's time to take it. Nothing here waits.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Instant;

use authentick_crypto::Entropy;
use authentick_wire::ke::{ErrorCode, message_size};
use authentick_wire::limits::KE_REQUEST_SIZE_MAX;
use mio::net::TcpStream;
use rustls::ServerConnection;

use super::{Environment, Outcome, Place, Span};
use crate::ALPN;
use crate::session::{self, Answer, Moment, RESPONSE_SIZE_MAX, Terms};

/// Octets that are read and thrown away while waiting for a client to close.
const LINGER_SIZE_MAX: usize = 16 * 1024;

/// A client's connection.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) tls: ServerConnection,
    pub(super) source: SocketAddr,
    /// Given back when the connection ends.
    pub(super) _place: Place,
    pub(super) accepted: Instant,
    pub(super) serial: u64,
    pub(super) request: Vec<u8>,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Handshake and request.
    Reading,
    /// The response is on its way; the connection will end with this outcome.
    Responding(Outcome),
    /// The response is out and our half closed; what the client still sends is thrown away, this much so far. Closing
    /// at once would reset the connection, and the client might lose the response.
    Lingering(Outcome, usize),
}

/// What a connection needs to answer.
pub(super) struct Service<'a, E> {
    pub(super) environment: &'a E,
    pub(super) terms: &'a Terms,
    pub(super) entropy: &'a mut Entropy,
}

impl Connection {
    /// Goes on as far as possible; returns the outcome once the connection is over.
    pub(super) fn advance<E: Environment>(&mut self, service: &mut Service<'_, E>) -> Option<Outcome> {
        if self.phase == Phase::Reading
            && let Some(outcome) = self.read(service)
        {
            return Some(outcome);
        }
        if let Some(outcome) = self.flush() {
            return Some(outcome);
        }
        if let Phase::Responding(outcome) = self.phase
            && !self.tls.wants_write()
        {
            if self.stream.shutdown(Shutdown::Write).is_err() {
                return Some(outcome);
            }
            self.phase = Phase::Lingering(outcome, 0);
        }
        if let Phase::Lingering(outcome, size) = self.phase {
            return self.linger(outcome, size);
        }
        None
    }

    fn read<E: Environment>(&mut self, service: &mut Service<'_, E>) -> Option<Outcome> {
        loop {
            match self.tls.read_tls(&mut self.stream) {
                Ok(0) => return Some(Outcome::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Some(Outcome::Closed),
            }
            let Ok(state) = self.tls.process_new_packets() else {
                // Tell the client why, as far as that goes without waiting.
                self.phase = Phase::Responding(Outcome::Tls);
                return None;
            };
            if !self.tls.is_handshaking() && self.tls.alpn_protocol() != Some(ALPN) {
                self.tls.send_close_notify();
                self.phase = Phase::Responding(Outcome::Alpn);
                return None;
            }
            if state.plaintext_bytes_to_read() > 0 && self.take_plaintext().is_err() {
                return Some(Outcome::Closed);
            }
            if let Some(size) = message_size(&self.request) {
                self.request.truncate(size);
                self.answer(service);
                return None;
            }
            if self.request.len() > KE_REQUEST_SIZE_MAX || state.peer_has_closed() {
                self.refuse();
                return None;
            }
        }
    }

    fn take_plaintext(&mut self) -> io::Result<()> {
        let mut buffer = [0; KE_REQUEST_SIZE_MAX];
        loop {
            match self.tls.reader().read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(size) => {
                    let room = (KE_REQUEST_SIZE_MAX + 1).saturating_sub(self.request.len());
                    self.request.extend_from_slice(&buffer[..size.min(room)]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn answer<E: Environment>(&mut self, service: &mut Service<'_, E>) {
        let watched = service.environment.is_watched(self.source.ip());
        let (mut request_parsed, mut cookies_sealed) = (None, None);
        let reached = |moment| {
            if watched {
                match moment {
                    Moment::RequestParsed => request_parsed = Some(Instant::now()),
                    Moment::CookiesSealed => cookies_sealed = Some(Instant::now()),
                }
            }
        };
        let mut out = [0; RESPONSE_SIZE_MAX];
        let tls = &self.tls;
        let export = |octets: &mut [u8], context: &[u8]| {
            tls.export_keying_material(octets, crate::EXPORTER_LABEL, Some(context)).map(|_| ())
        };
        let keys = service.environment.keys();
        let (answer, size) =
            session::answer(&self.request, &keys, service.terms, service.entropy, export, reached, &mut out);
        if let (Some(request_parsed), Some(cookies_sealed)) = (request_parsed, cookies_sealed) {
            let (source, accepted) = (self.source, self.accepted);
            service.environment.timed(Span { source, accepted, request_parsed, cookies_sealed });
        }
        self.respond(outcome_of(answer), &out[..size]);
    }

    fn refuse(&mut self) {
        let mut out = [0; RESPONSE_SIZE_MAX];
        let (answer, size) = session::refuse(ErrorCode::BAD_REQUEST, &mut out);
        self.respond(outcome_of(answer), &out[..size]);
    }

    fn respond(&mut self, outcome: Outcome, response: &[u8]) {
        // NTPsec before 1.2.5 wants the whole message in one read: one write makes one TLS record.
        let written = self.tls.writer().write_all(response);
        self.tls.send_close_notify();
        self.phase = Phase::Responding(if written.is_ok() { outcome } else { Outcome::Internal });
    }

    fn flush(&mut self) -> Option<Outcome> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Some(Outcome::Closed),
            }
        }
        None
    }

    fn linger(&mut self, outcome: Outcome, mut size: usize) -> Option<Outcome> {
        let mut buffer = [0; 1024];
        while size <= LINGER_SIZE_MAX {
            match self.stream.read(&mut buffer) {
                Ok(1..) => size += buffer.len(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.phase = Phase::Lingering(outcome, size);
                    return None;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        Some(outcome)
    }

    /// The deadline has passed: an answered client was slow to close, another one hears that its request did not come.
    pub(super) fn overdue(&mut self) -> Outcome {
        match self.phase {
            Phase::Lingering(outcome, _) => outcome,
            Phase::Responding(_) => Outcome::Timeout,
            Phase::Reading => {
                if !self.tls.is_handshaking() {
                    //= RFC 8915 section 4.1.3: Bad Request also when the request does not come in time.
                    self.refuse();
                    self.flush();
                }
                Outcome::Timeout
            }
        }
    }
}

const fn outcome_of(answer: Answer) -> Outcome {
    match answer {
        Answer::Cookies(_) => Outcome::Served,
        Answer::NothingInCommon => Outcome::NothingInCommon,
        Answer::Error(ErrorCode::UNRECOGNISED_CRITICAL) => Outcome::UnrecognisedCritical,
        Answer::Error(ErrorCode::BAD_REQUEST) => Outcome::BadRequest,
        Answer::Error(_) => Outcome::Internal,
    }
}
