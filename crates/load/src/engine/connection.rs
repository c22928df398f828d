//! One key exchange over a non-blocking connection.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use authentick_generator::Exchange;
use authentick_ke::client::{Ask, Dialogue, Established, KeError};
use authentick_net::poller::Interest;
use authentick_net::tcp;
use authentick_report::load::Cause;
use rustix::io::Errno;

/// A key exchange in progress.
pub(super) struct Connection {
    stream: TcpStream,
    stage: Stage,
    pub(super) exchange: Exchange,
    /// When it began, and when it must have ended; monotonic.
    pub(super) begun_ns: u64,
    pub(super) deadline_ns: u64,
    interest: Interest,
    pub(super) local: Option<SocketAddr>,
}

enum Stage {
    Connecting(Box<Dialogue>),
    Talking(Box<Dialogue>),
    /// It has ended for us; we let the server close first, so that the port is free again at once.
    Lingering,
}

/// The result of an event.
pub(super) enum Progress {
    /// It continues.
    Waiting,
    /// Keys and cookies are there.
    Established(Box<Established>),
    /// It has failed.
    Failed(Cause),
    /// The server has closed a connection that had ended.
    Closed,
}

impl Connection {
    /// Begins a key exchange.
    ///
    /// # Errors
    /// Why it cannot begin: a cause that [`Cause::is_skip`] names if nothing was sent, or one of the network.
    pub(super) fn begin(
        server: SocketAddr,
        source: Option<std::net::IpAddr>,
        ask: &Ask,
        exchange: Exchange,
        [begun_ns, deadline_ns]: [u64; 2],
    ) -> Result<Self, Cause> {
        let stream = tcp::begin(server, source).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE | Errno::MFILE | Errno::NFILE) => Cause::LocalPort,
            _ => network_cause(&error).unwrap_or(Cause::Local),
        })?;
        let dialogue = Dialogue::new(ask).map_err(|_| Cause::Local)?;
        Ok(Connection {
            local: stream.local_addr().ok(),
            stream,
            stage: Stage::Connecting(Box::new(dialogue)),
            exchange,
            begun_ns,
            deadline_ns,
            interest: Interest::ReadWrite,
        })
    }

    /// The events to watch for at first.
    pub(super) const INTEREST: Interest = Interest::ReadWrite;

    /// The events to watch for from now on, if they have changed.
    pub(super) fn new_interest(&mut self) -> Option<Interest> {
        let wanted = match &self.stage {
            Stage::Connecting(_) => Interest::ReadWrite,
            Stage::Talking(dialogue) if dialogue.wants_write() => Interest::ReadWrite,
            Stage::Talking(_) | Stage::Lingering => Interest::Read,
        };
        (wanted != std::mem::replace(&mut self.interest, wanted)).then_some(wanted)
    }

    /// Whether it has ended for us.
    pub(super) fn is_lingering(&self) -> bool {
        matches!(self.stage, Stage::Lingering)
    }

    /// Why it failed, if its time is up now.
    pub(super) fn why_timed_out(&self) -> Cause {
        match self.stage {
            Stage::Connecting(_) => Cause::ConnectionTimedOut,
            Stage::Talking(_) | Stage::Lingering => Cause::ResourceTemporarilyUnavailable,
        }
    }

    /// Continues, as the socket is ready.
    pub(super) fn advance(&mut self) -> Progress {
        if let Stage::Connecting(_) = self.stage {
            match self.stream.take_error() {
                Ok(None) => {}
                Ok(Some(error)) | Err(error) => return Progress::Failed(io_cause(&error, true)),
            }
            if self.stream.peer_addr().is_err() {
                return Progress::Waiting;
            }
            // The address is only known once the connection is established.
            self.local = self.stream.local_addr().ok();
            let Stage::Connecting(dialogue) = std::mem::replace(&mut self.stage, Stage::Lingering) else {
                unreachable!("matched above");
            };
            self.stage = Stage::Talking(dialogue);
        }
        let Stage::Talking(dialogue) = &mut self.stage else { return self.linger() };
        let progress = match talk(dialogue, &mut self.stream) {
            Ok(None) => return Progress::Waiting,
            Ok(Some(established)) => Progress::Established(Box::new(established)),
            Err(error) => Progress::Failed(cause(&error)),
        };
        self.finish();
        progress
    }

    /// Sends the last TLS message (close_notify, for which chrony waits, or an alert) and waits for the server to
    /// close. Our half of the connection stays open, as the side that closes first keeps the port.
    fn finish(&mut self) {
        if let Stage::Talking(dialogue) = &mut self.stage {
            while dialogue.wants_write() && dialogue.write(&mut self.stream).is_ok_and(|size| size > 0) {}
        }
        self.stage = Stage::Lingering;
    }

    fn linger(&mut self) -> Progress {
        let mut rest = [0; 1024];
        loop {
            match io::Read::read(&mut self.stream, &mut rest) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Progress::Waiting,
                Ok(0) | Err(_) => return Progress::Closed,
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Writes and reads as much as there is.
fn talk(dialogue: &mut Dialogue, stream: &mut TcpStream) -> Result<Option<Established>, KeError> {
    loop {
        while dialogue.wants_write() {
            match dialogue.write(stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(KeError::Io(error)),
            }
        }
        match dialogue.read(stream) {
            Ok(None) => {}
            Err(KeError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                if !dialogue.wants_write() {
                    return Ok(None);
                }
            }
            end => return end,
        }
    }
}

/// The class of a failed key exchange.
fn cause(error: &KeError) -> Cause {
    match error {
        KeError::Connect(error) => io_cause(error, true),
        KeError::Io(error) => io_cause(error, false),
        KeError::NoRoute => Cause::Unreachable,
        KeError::Timeout(_) => Cause::ResourceTemporarilyUnavailable,
        KeError::Closed(_) => Cause::Reset,
        KeError::Tls(rustls::Error::AlertReceived(_)) | KeError::Alpn { alert: true } => Cause::TlsAlert,
        KeError::Certificate(..) | KeError::Tls(_) | KeError::Alpn { .. } => Cause::Tls,
        KeError::Response(_)
        | KeError::TooLong
        | KeError::Refused(_)
        | KeError::Warning(_)
        | KeError::NoProtocol
        | KeError::NoAead
        | KeError::NoCookie => Cause::KeRefused,
    }
}

fn io_cause(error: &io::Error, connecting: bool) -> Cause {
    network_cause(error).unwrap_or(match error.kind() {
        io::ErrorKind::TimedOut if connecting => Cause::ConnectionTimedOut,
        io::ErrorKind::TimedOut => Cause::ResourceTemporarilyUnavailable,
        _ => Cause::Reset,
    })
}

/// What the network says of the server, if that is what the error is.
fn network_cause(error: &io::Error) -> Option<Cause> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Some(Cause::Refused),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Some(Cause::Unreachable),
        _ => None,
    }
}
