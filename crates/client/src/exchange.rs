//! Waiting for an answer: each datagram is checked, until one passes or time is up. An exchange without a handshake is
//! one request and its answer.

use std::fmt::{Debug, Display};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use authentick_net::addresses::{NO_ROUTE, is_refused_route};
use authentick_net::udp::{ClientSocket, Hint, Received};
use authentick_proto::antp::client as antp;
use authentick_proto::client::{Check, Exchange, Response, Sample};
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;
use thiserror::Error as Describe;

use crate::error::{Error, Fault, Place};
use crate::measurement::Measurement;

/// How many failed checks are reported; a flood of forgeries must not fill the memory.
const CHECK_COUNT_MAX: usize = 64;

/// A check that a datagram failed.
pub trait Failed: Debug + Display + PartialEq {
    /// Whether the datagram is malformed, as opposed to well-formed and wrong.
    fn is_malformed(&self) -> bool;
}

impl Failed for Check {
    fn is_malformed(&self) -> bool {
        matches!(self, Check::Syntax(_) | Check::Encrypted(_))
    }
}

impl Failed for antp::Check {
    fn is_malformed(&self) -> bool {
        matches!(self, antp::Check::Syntax(_))
    }
}

/// Why no answer passed; `C` is a scheme's checks.
#[derive(Debug, Describe)]
pub enum Unanswered<C: Failed = Check> {
    /// No answer came; perhaps an ICMP message said that none will.
    #[error("no answer{}", words_of(*.hint))]
    Silence {
        /// What the message said.
        hint: Option<Hint>,
    },
    /// Answers came, and each failed a check.
    #[error("no answer passed every check{}", each_once(.0))]
    Rejected(Vec<C>),
    /// There is no cookie left.
    #[error("no cookie left")]
    NoCookie,
    /// This host's clock was set while the answer was under way.
    #[error("this host's clock was set during the exchange; ask again")]
    ClockSet,
    /// This host has no route to the server, of whatever type the route that says so is.
    #[error("{NO_ROUTE}")]
    NoRoute,
    /// This host could not send or receive.
    #[error("cannot send or receive: {0}")]
    Io(#[source] io::Error),
}

impl<C: Failed> From<io::Error> for Unanswered<C> {
    fn from(error: io::Error) -> Self {
        if is_refused_route(&error) { Unanswered::NoRoute } else { Unanswered::Io(error) }
    }
}

const fn words_of(hint: Option<Hint>) -> &'static str {
    match hint {
        None => "",
        Some(Hint::Unreachable) => "; the network says that it cannot be reached",
        Some(Hint::Refused) => "; the host says that the port is closed",
    }
}

/// Each check once, in the order of appearance.
fn each_once<C: Failed>(checks: &[C]) -> String {
    let is_first = |(index, check): &(usize, &C)| !checks[..*index].contains(check);
    checks.iter().enumerate().filter(is_first).map(|(_, check)| format!("; {check}")).collect()
}

impl<C: Failed> Unanswered<C> {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Unanswered::Silence { .. } | Unanswered::NoRoute => Fault::Silent,
            Unanswered::Rejected(checks) if checks.iter().all(C::is_malformed) => Fault::Malformed,
            Unanswered::Rejected(_) => Fault::Rejected,
            Unanswered::NoCookie | Unanswered::ClockSet => Fault::Host,
            Unanswered::Io(error) => match error.kind() {
                io::ErrorKind::PermissionDenied => Fault::Rights,
                _ => Fault::Host,
            },
        }
    }
}

impl Unanswered {
    /// The error of a client that asked `server`.
    #[must_use]
    pub fn of(self, server: SocketAddr) -> Error {
        Error::new(Place::Server(server), self)
    }
}

/// What came instead of a valid answer.
#[derive(Debug)]
pub(crate) struct Heard<C> {
    hint: Option<Hint>,
    checks: Vec<C>,
}

impl<C> Heard<C> {
    pub(crate) const fn nothing() -> Self {
        Heard { hint: None, checks: Vec::new() }
    }

    /// Waits until `until` for a datagram of which `take` makes something.
    pub(crate) fn listen<T>(
        &mut self,
        socket: &ClientSocket,
        buffer: &mut [u8],
        until: Instant,
        mut take: impl FnMut(&mut [u8], NtpTime) -> Result<Option<T>, C>,
    ) -> io::Result<Option<T>> {
        loop {
            match socket.receive(buffer, until)? {
                Received::Datagram { size, at } => match take(&mut buffer[..size], at) {
                    Ok(Some(taken)) => return Ok(Some(taken)),
                    Ok(None) => {}
                    Err(check) if self.checks.len() < CHECK_COUNT_MAX => self.checks.push(check),
                    Err(_) => {}
                },
                Received::Hint(hint) => self.hint = Some(hint),
                Received::Silence => return Ok(None),
            }
        }
    }
}

impl<C: Failed> From<Heard<C>> for Unanswered<C> {
    fn from(heard: Heard<C>) -> Self {
        match heard.checks.is_empty() {
            true => Unanswered::Silence { hint: heard.hint },
            false => Unanswered::Rejected(heard.checks),
        }
    }
}

/// One request and its answer, over a socket of its own.
pub(crate) struct Asking {
    socket: ClientSocket,
    start: Instant,
    /// Where the request is written.
    pub(crate) buffer: [u8; DATAGRAM_SIZE_MAX],
}

impl Asking {
    pub(crate) fn begin(server: SocketAddr) -> io::Result<Self> {
        let socket = ClientSocket::connect(server)?;
        Ok(Asking { socket, start: Instant::now(), buffer: [0; DATAGRAM_SIZE_MAX] })
    }

    /// Sends the first `size` octets of the buffer, which are the request of `exchange`, and waits for its answer.
    pub(crate) fn conclude(
        mut self,
        mut exchange: Exchange,
        size: usize,
        timeout: Duration,
        mut check: impl FnMut(&mut Exchange, &mut [u8]) -> Result<Response, Check>,
    ) -> Result<Measurement, Unanswered> {
        let sent = self.socket.send(&self.buffer[..size])?;
        let mut heard = Heard::nothing();
        let until = Instant::now() + timeout;
        let answered = heard.listen(&self.socket, &mut self.buffer, until, |datagram, arrived| {
            check(&mut exchange, datagram).map(|response| Some((response, arrived)))
        })?;
        let Some((response, arrived)) = answered else { return Err(heard.into()) };
        Ok(Measurement {
            response,
            sample: Sample::new(&response.header, sent, arrived),
            source: self.socket.local()?,
            transmit: exchange.transmit(),
            sent,
            arrived,
            whole: self.start.elapsed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use authentick_crypto::{Algorithm, Entropy, Key};
    use authentick_proto::client::NtsSession;
    use authentick_proto::cookie::SessionKeys;

    use super::*;
    use crate::nts;

    const TIMEOUT: Duration = Duration::from_millis(50);

    /// Asks a server that answers the first request, if any, with these octets; how many requests came, why none was
    /// answered, and whether the session still has other keys.
    fn asked(answer: Option<&'static [u8]>) -> (usize, Error, bool) {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let other_end = server.try_clone().unwrap();
        let answering = std::thread::spawn(move || {
            let (_, from) = other_end.recv_from(&mut [0; 2048]).unwrap();
            answer.map(|answer| other_end.send_to(answer, from).unwrap());
        });
        let key = |octet| Key::new(Algorithm::SivCmac256, &[octet; 32]).unwrap();
        let keys = |octet| SessionKeys::new(&key(octet), &key(octet + 1)).unwrap();
        let mut session = NtsSession::new(keys(1), Some(keys(3)));
        assert!(session.jar.add(&[5; 100]) && session.jar.add(&[6; 100]));
        let mut entropy = Entropy::from_system().unwrap();
        let error = nts::under_either_keys(&mut session, |session| {
            nts::ask(address, session, &mut entropy, TIMEOUT).map_err(|unanswered| unanswered.of(address))
        });
        answering.join().unwrap();
        server.set_nonblocking(true).unwrap();
        let more = std::iter::from_fn(|| server.recv(&mut [0; 2048]).ok()).count();
        (1 + more, error.unwrap_err(), session.switch_keys())
    }

    #[test]
    fn silent_server_is_asked_under_either_keys_and_one_that_talks_is_not() {
        let (count, error, other_keys_left) = asked(None);
        assert_eq!(error.fault(), Fault::Silent, "{error}");
        assert_eq!((count, other_keys_left), (2, false));
        let (count, error, other_keys_left) = asked(Some(&[0; 48]));
        assert_eq!(error.fault(), Fault::Malformed, "{error}");
        assert_eq!((count, other_keys_left), (1, true));
    }

    #[test]
    fn each_reason_is_the_fault_of_somebody() {
        let io = |code: i32| Unanswered::from(io::Error::from_raw_os_error(code));
        let syntax = Check::Syntax(authentick_wire::packet::Packet::parse(&[]).unwrap_err());
        for (unanswered, fault) in [
            (Unanswered::Silence { hint: Some(Hint::Refused) }, Fault::Silent),
            (Unanswered::Rejected(vec![Check::Tag]), Fault::Rejected),
            (Unanswered::Rejected(vec![syntax, Check::Tag]), Fault::Rejected),
            (Unanswered::Rejected(vec![syntax]), Fault::Malformed),
            (Unanswered::NoCookie, Fault::Host),
            (Unanswered::ClockSet, Fault::Host),
            // EPERM, EIO, ENETUNREACH, EHOSTUNREACH, and what routes of type prohibit and blackhole give.
            (io(1), Fault::Rights),
            (io(5), Fault::Host),
            (io(101), Fault::Silent),
            (io(113), Fault::Silent),
            (io(13), Fault::Silent),
            (io(22), Fault::Silent),
        ] {
            assert_eq!(unanswered.fault(), fault, "{unanswered}");
            let error = unanswered.of("192.0.2.1:123".parse().unwrap());
            assert!(error.fault() == fault && error.to_string().starts_with("192.0.2.1:123: "), "{error}");
        }
    }
}
