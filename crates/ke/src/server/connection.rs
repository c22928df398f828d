//! One connection: handshake, request, response, and the client's time to take it. Nothing here waits.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

use authentick_crypto::Entropy;
use authentick_proto::delays::{Step, pause};
use authentick_wire::ke::{ErrorCode, message_size};
use authentick_wire::limits::KE_REQUEST_SIZE_MAX;
use rustls::ServerConnection;
use rustls::server::{AcceptedAlert, Acceptor};

use super::eviction::{Id, Stage};
use super::{Environment, Instants, Outcome, Place};
use crate::ALPN;
use crate::session::{self, Answer, Milestone, RESPONSE_SIZE_MAX};

/// Octets that are read and thrown away while waiting for a client to close.
const LINGER_SIZE_MAX: usize = 16 * 1024;
/// Reads, of four kibioctets at most, before other connections have their turn. An exchange takes two or three.
const READ_COUNT_MAX: usize = 8;
/// Octets that a client may send until its request is whole. A request of 1,024 octets, each in a TLS record of its
/// own, has 24 KiB, and the largest first flight with a post-quantum key share 2 KiB. Less than what rustls buffers, so
/// that the connection ends with an outcome that says why.
const RECEIVED_SIZE_MAX: usize = 48 * 1024;
/// A fatal alert as it is sent before there are keys. RFC 8446 sections 5.1 and 6, RFC 7301 section 3.2.
const NO_APPLICATION_PROTOCOL: [u8; 7] = [21, 3, 3, 0, 2, 2, 120];

/// What carries a connection's octets, without waiting: a socket, or memory.
pub(super) trait Stream: Read + Write {
    /// Has what is written sent at once.
    fn send_at_once(&self) -> io::Result<()>;

    /// Has what has come acknowledged at once.
    fn acknowledge(&self);

    /// Ends our half.
    fn end_ours(&self) -> io::Result<()>;

    /// Has the other end told by a reset once this one is dropped.
    fn reset(&self);
}

/// A client's connection.
pub(super) struct Connection<S> {
    pub(super) stream: S,
    /// Collects the first message; what follows is for `tls`.
    acceptor: Acceptor,
    /// Once the client's first message was understood.
    tls: Option<ServerConnection>,
    pub(super) source: SocketAddr,
    /// Given back when the connection ends.
    pub(super) _place: Place,
    pub(super) accepted: Instant,
    pub(super) id: Id,
    /// When it ends at the latest.
    pub(super) deadline: Instant,
    request: Vec<u8>,
    /// Octets that were read so far.
    pub(super) received_size: usize,
    pub(super) phase: Phase,
    /// It had its share of reads and may have sent more.
    pub(super) has_more: bool,
    /// The worker knows, and will come to it again.
    pub(super) is_queued: bool,
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
    pub(super) entropy: &'a mut Entropy,
}

impl<S: Stream> Connection<S> {
    pub(super) fn new(
        stream: S,
        source: SocketAddr,
        place: Place,
        accepted: Instant,
        id: Id,
        deadline: Instant,
    ) -> Self {
        Connection {
            stream,
            acceptor: Acceptor::default(),
            tls: None,
            source,
            _place: place,
            accepted,
            id,
            deadline,
            request: Vec::new(),
            received_size: 0,
            phase: Phase::Reading,
            has_more: false,
            is_queued: false,
        }
    }

    /// How far the client has come.
    pub(super) fn stage(&self) -> Stage {
        if self.tls.is_some() || self.phase != Phase::Reading {
            Stage::Answered
        } else if self.received_size > 0 {
            Stage::Greeting
        } else {
            Stage::Silent
        }
    }

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
            && !self.tls.as_ref().is_some_and(|tls| tls.wants_write())
        {
            if self.stream.end_ours().is_err() {
                return Some(outcome);
            }
            self.phase = Phase::Lingering(outcome, 0);
        }
        if let Phase::Lingering(outcome, size) = self.phase {
            return self.linger(outcome, size);
        }
        None
    }

    /// Reads until the request is whole, nothing is there, or other connections should have their turn.
    fn read<E: Environment>(&mut self, service: &mut Service<'_, E>) -> Option<Outcome> {
        self.has_more = false;
        for _ in 0..READ_COUNT_MAX {
            let read = match &mut self.tls {
                None => self.acceptor.read_tls(&mut self.stream),
                Some(tls) => tls.read_tls(&mut self.stream),
            };
            match read {
                Ok(0) => return Some(Outcome::Closed),
                Ok(size) => self.received_size += size,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.tls.is_some() {
                        // The kernel would wait 40 ms for something of ours to send along, and a client that writes
                        // the end of the handshake and the request apart (NTPsec's) waits for the acknowledgement
                        // with the second. It forgets this whenever we send, so it is told each time that we wait.
                        // tcp(7), TCP_QUICKACK.
                        self.stream.acknowledge();
                    }
                    return None;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Some(Outcome::Closed),
            }
            if self.tls.is_none() {
                self.greet(service);
            }
            self.take_messages(service);
            if self.phase != Phase::Reading {
                return None;
            }
            if self.received_size > RECEIVED_SIZE_MAX {
                if self.tls.as_ref().is_none_or(|tls| tls.is_handshaking()) {
                    return Some(Outcome::Tls);
                }
                self.refuse(ErrorCode::BAD_REQUEST);
                return None;
            }
        }
        self.has_more = true;
        None
    }

    /// Looks whether the client's first message is whole, and begins the handshake if that can lead to a request.
    fn greet<E: Environment>(&mut self, service: &Service<'_, E>) {
        let accepted = match self.acceptor.accept() {
            Ok(None) => return,
            Ok(Some(accepted)) => accepted,
            Err((_, alert)) => return self.reject(alert),
        };
        let hello = accepted.client_hello();
        if !hello.alpn().is_some_and(|mut names| names.any(|name| name == ALPN)) {
            //= rfc8915#3-3
            // RFC 7301 section 3.2. The library would finish the handshake with a client that names no protocol.
            // Seven octets find room in a socket that nothing was sent on.
            let _ = self.stream.write(&NO_APPLICATION_PROTOCOL);
            self.phase = Phase::Responding(Outcome::Alpn);
            return;
        }
        pause(Step::ShakeHands);
        match accepted.into_connection(service.environment.tls()) {
            Ok(mut tls) => {
                tls.set_buffer_limit(Some(4 * RESPONSE_SIZE_MAX));
                self.tls = Some(tls);
            }
            Err((_, alert)) => self.reject(alert),
        }
    }

    /// Tells the client why its first message leads nowhere.
    fn reject(&mut self, mut alert: AcceptedAlert) {
        let _ = alert.write_all(&mut self.stream);
        self.phase = Phase::Responding(Outcome::Tls);
    }

    /// Goes on with what was read: the handshake, then the request.
    fn take_messages<E: Environment>(&mut self, service: &mut Service<'_, E>) {
        let Some(tls) = &mut self.tls else { return };
        let Ok(state) = tls.process_new_packets() else {
            // Tell the client why, as far as that goes without waiting.
            self.phase = Phase::Responding(Outcome::Tls);
            return;
        };
        if state.plaintext_bytes_to_read() > 0 && take_plaintext(tls, &mut self.request).is_err() {
            self.phase = Phase::Responding(Outcome::Closed);
            return;
        }
        if let Some(size) = message_size(&self.request) {
            self.request.truncate(size);
            self.answer(service);
        } else if self.request.len() > KE_REQUEST_SIZE_MAX || state.peer_has_closed() {
            self.refuse(ErrorCode::BAD_REQUEST);
        }
    }

    //= rfc8915#4-3
    fn answer<E: Environment>(&mut self, service: &mut Service<'_, E>) {
        let watched = service.environment.is_watched(self.source.ip());
        let mut instants = [None; Milestone::COUNT];
        let reached = |milestone: Milestone| {
            if watched {
                instants[milestone as usize] = Some(Instant::now());
            }
        };
        let mut out = [0; RESPONSE_SIZE_MAX];
        let Some(tls) = &self.tls else { return };
        let export = |octets: &mut [u8], context: &[u8]| {
            //= rfc8915#4.3-1
            tls.export_keying_material(octets, crate::EXPORTER_LABEL, Some(context)).map(|_| ())
        };
        let Some(keys) = service.environment.keys() else {
            return self.refuse(ErrorCode::INTERNAL);
        };
        let terms = service.environment.terms();
        let (answer, size) =
            session::answer(&self.request, &keys, &terms, service.entropy, export, reached, &mut out);
        if let [
            Some(request_parsed),
            Some(algorithm_chosen),
            Some(keys_exported),
            Some(cookies_sealed),
            Some(response_written),
        ] = instants
        {
            service.environment.timed(Instants {
                source: self.source,
                accepted: self.accepted,
                request_parsed,
                algorithm_chosen,
                keys_exported,
                cookies_sealed,
                response_written,
            });
        }
        self.respond(outcome_of(answer), &out[..size]);
    }

    fn refuse(&mut self, code: ErrorCode) {
        let mut out = [0; RESPONSE_SIZE_MAX];
        let (answer, size) = session::refuse(code, &mut out);
        self.respond(outcome_of(answer), &out[..size]);
    }

    //= rfc8915#4-4
    fn respond(&mut self, outcome: Outcome, response: &[u8]) {
        // NTPsec before 1.2.5 wants the whole message in one read: one write makes one TLS record.
        let Some(tls) = &mut self.tls else { return };
        let written = tls.writer().write_all(response);
        tls.send_close_notify();
        self.phase = Phase::Responding(if written.is_ok() { outcome } else { Outcome::Internal });
    }

    fn flush(&mut self) -> Option<Outcome> {
        let Some(tls) = &mut self.tls else { return None };
        while tls.wants_write() {
            match tls.write_tls(&mut self.stream) {
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
                Ok(read_size @ 1..) => {
                    self.received_size += read_size;
                    size += buffer.len();
                }
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
                if self.tls.as_ref().is_some_and(|tls| !tls.is_handshaking()) {
                    //= rfc8915#4.1.3-6
                    self.refuse(ErrorCode::BAD_REQUEST);
                    self.flush();
                }
                Outcome::Timeout
            }
        }
    }
}

//= rfc8915#4-8
fn take_plaintext(tls: &mut ServerConnection, request: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; KE_REQUEST_SIZE_MAX];
    loop {
        match tls.reader().read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(size) => {
                let room = (KE_REQUEST_SIZE_MAX + 1).saturating_sub(request.len());
                request.extend_from_slice(&buffer[..size.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
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
