//! One key exchange over a connection that nobody waits for.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use authentick_ke::client::{Ask, Dialogue, Established, KeError};
use authentick_net::poller::Interest;
use authentick_net::tcp;
use authentick_report::load::Cause;

/// For whom keys are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is the operation that the scheme measures. The client, if any, goes on with the keys.
    Operation {
        /// Its figures count.
        measured: bool,
        /// Which client goes on.
        client: Option<u32>,
    },
    /// A client needs keys in order to ask for time.
    Keys {
        /// Which one.
        client: u32,
    },
}

/// A key exchange in progress.
pub(crate) struct Connection {
    stream: TcpStream,
    state: State,
    pub(crate) purpose: Purpose,
    /// When it was to begin, when it began, and when it must have ended; monotonic.
    pub(crate) intended_ns: u64,
    pub(crate) begun_ns: u64,
    pub(crate) deadline_ns: u64,
    interest: Interest,
    pub(crate) local: Option<SocketAddr>,
}

enum State {
    Connecting(Box<Dialogue>),
    Talking(Box<Dialogue>),
    /// It has ended for us; the server closes first, so that the port is free again at once.
    Lingering,
}

/// What came of an event.
pub(crate) enum Progress {
    /// It goes on.
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
    pub(crate) fn begin(
        server: SocketAddr,
        source: Option<std::net::IpAddr>,
        ask: &Ask,
        purpose: Purpose,
        times_ns: [u64; 3],
    ) -> Result<Self, Cause> {
        let stream = tcp::begin(server, source).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => Cause::Refused,
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Cause::Unreachable,
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => Cause::LocalPort,
            _ if matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) => Cause::LocalPort,
            _ => Cause::Local,
        })?;
        let dialogue = Dialogue::new(ask).map_err(|_| Cause::Local)?;
        let [intended_ns, begun_ns, deadline_ns] = times_ns;
        Ok(Connection {
            local: stream.local_addr().ok(),
            stream,
            state: State::Connecting(Box::new(dialogue)),
            purpose,
            intended_ns,
            begun_ns,
            deadline_ns,
            interest: Interest::ReadWrite,
        })
    }

    /// What it is watched for at first.
    pub(crate) const INTEREST: Interest = Interest::ReadWrite;

    /// What it is to be watched for from now on, if that has changed.
    pub(crate) fn new_interest(&mut self) -> Option<Interest> {
        let wanted = match &self.state {
            State::Connecting(_) => Interest::ReadWrite,
            State::Talking(dialogue) if dialogue.wants_write() => Interest::ReadWrite,
            State::Talking(_) | State::Lingering => Interest::Read,
        };
        (wanted != std::mem::replace(&mut self.interest, wanted)).then_some(wanted)
    }

    /// Whether it has ended for us.
    pub(crate) fn is_lingering(&self) -> bool {
        matches!(self.state, State::Lingering)
    }

    /// Why it failed, if its time is up now.
    pub(crate) fn why_timed_out(&self) -> Cause {
        match self.state {
            State::Connecting(_) => Cause::ConnectionTimedOut,
            State::Talking(_) | State::Lingering => Cause::ResourceTemporarilyUnavailable,
        }
    }

    /// Goes on, as the socket is ready.
    pub(crate) fn advance(&mut self) -> Progress {
        if let State::Connecting(_) = self.state {
            match self.stream.take_error() {
                Ok(None) => {}
                Ok(Some(error)) | Err(error) => return Progress::Failed(io_cause(&error, true)),
            }
            if self.stream.peer_addr().is_err() {
                return Progress::Waiting;
            }
            // The address is only certain once the connection stands.
            self.local = self.stream.local_addr().ok();
            let State::Connecting(dialogue) = std::mem::replace(&mut self.state, State::Lingering) else {
                unreachable!("matched above");
            };
            self.state = State::Talking(dialogue);
        }
        match &mut self.state {
            State::Talking(dialogue) => match talk(dialogue, &mut self.stream) {
                Ok(None) => Progress::Waiting,
                Ok(Some(established)) => {
                    self.finish();
                    Progress::Established(Box::new(established))
                }
                Err(error) => {
                    let cause = cause(&error);
                    self.finish();
                    Progress::Failed(cause)
                }
            },
            State::Connecting(_) | State::Lingering => self.linger(),
        }
    }

    /// Sends the last word of TLS and waits for the server to close: close_notify, which chrony waits for, or an alert.
    /// Our half of the connection stays open, as who closes first keeps the port.
    fn finish(&mut self) {
        if let State::Talking(dialogue) = &mut self.state {
            while dialogue.wants_write() && dialogue.write(&mut self.stream).is_ok_and(|size| size > 0) {}
        }
        self.state = State::Lingering;
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

/// Too many open files, in this process and in the system. errno(3).
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

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
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Cause::Refused,
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Cause::Unreachable,
        io::ErrorKind::TimedOut if connecting => Cause::ConnectionTimedOut,
        io::ErrorKind::TimedOut => Cause::ResourceTemporarilyUnavailable,
        _ => Cause::Reset,
    }
}
