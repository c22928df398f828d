//! Asking a server: one exchange over a socket of its own, with every check, until one answer passes or time is up.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_net::udp::{ClientSocket, Hint, Received};
use authentick_proto::client::{Check, Exchange, NtsSession, Response, Sample};
use authentick_proto::symmetric::SymmetricKey;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

use crate::exit::{Exit, Failure};

/// An answer that passed every check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    pub(crate) response: Response,
    pub(crate) sample: Sample,
    /// This end's address, and the transmit timestamp of the request: a server's spans are found by these.
    pub(crate) source: SocketAddr,
    pub(crate) transmit: NtpTime,
    /// T1, by our clock.
    pub(crate) sent: NtpTime,
    /// T4, by our clock: the kernel's receive stamp.
    pub(crate) arrived: NtpTime,
    /// From before the request was made to after the answer was checked: d_CNTS = t10 - t5 of the NTS study.
    pub(crate) whole: Duration,
}

/// Why no answer passed; `C` is a scheme's checks.
#[derive(Debug)]
pub(crate) enum Unanswered<C = Check> {
    /// Nothing came; perhaps the network's word that nothing will.
    Silence { hint: Option<Hint> },
    /// Answers came, and each failed a check.
    Rejected(Vec<C>),
    /// The jar is empty.
    NoCookie,
    /// This host's clock was set while the answer was under way.
    ClockSet,
    /// This host could not send or receive.
    Io(io::Error),
}

impl Unanswered {
    /// Whether the server said that it cannot open our cookies.
    pub(crate) fn is_nts_nak(&self) -> bool {
        matches!(self, Unanswered::Rejected(checks) if checks.contains(&Check::Kiss(ReferenceId::NTSN)))
    }
}

impl<C: Display + PartialEq> Unanswered<C> {
    /// How a command ends that `server` did not answer.
    pub(crate) fn failure(&self, server: SocketAddr) -> Failure {
        Failure::new(self.exit(), format!("{server}: {self}"))
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Unanswered::Silence { .. } => Exit::Silence,
            Unanswered::Rejected(_) => Exit::Authentication,
            Unanswered::NoCookie | Unanswered::ClockSet => Exit::Internal,
            Unanswered::Io(error) => match error.kind() {
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Exit::Silence,
                io::ErrorKind::PermissionDenied => Exit::Permission,
                _ => Exit::Internal,
            },
        }
    }
}

impl<C> From<io::Error> for Unanswered<C> {
    fn from(error: io::Error) -> Self {
        Unanswered::Io(error)
    }
}

impl<C: Display + PartialEq> Display for Unanswered<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unanswered::Silence { hint: None } => f.write_str("no answer"),
            Unanswered::Silence { hint: Some(Hint::Unreachable) } => {
                f.write_str("no answer; the network says that it cannot be reached")
            }
            Unanswered::Silence { hint: Some(Hint::Refused) } => {
                f.write_str("no answer; the host says that the port is closed")
            }
            Unanswered::Rejected(checks) => {
                f.write_str("no answer passed every check")?;
                // Each check once, in the order of appearance.
                for (index, check) in checks.iter().enumerate() {
                    if !checks[..index].contains(check) {
                        write!(f, "; {check}")?;
                    }
                }
                Ok(())
            }
            Unanswered::NoCookie => f.write_str("no cookie left"),
            Unanswered::ClockSet => f.write_str("this host's clock was set during the exchange; ask again"),
            Unanswered::Io(error) => write!(f, "cannot send or receive: {error}"),
        }
    }
}

/// What a request is authenticated with.
#[derive(Debug)]
pub(crate) enum Credential<'a> {
    /// Nothing.
    None,
    /// The keys and cookies of a session.
    Nts(&'a mut NtsSession),
    /// A key that the server knows too.
    Mac(&'a SymmetricKey),
}

impl<'a> From<Option<&'a mut NtsSession>> for Credential<'a> {
    fn from(session: Option<&'a mut NtsSession>) -> Self {
        session.map_or(Credential::None, Credential::Nts)
    }
}

/// Asks `server` once, with `credential`. Answers that fail a check are passed over, as anyone can send
/// them; what they failed is told if none passes before `timeout`.
pub(crate) fn measure(
    server: SocketAddr,
    mut credential: Credential<'_>,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<Measurement, Unanswered> {
    let socket = ClientSocket::connect(server)?;
    let start = Instant::now();
    let mut buffer = [0; DATAGRAM_SIZE_MAX];
    let (mut exchange, size) = match &mut credential {
        Credential::None => Exchange::plain(entropy, &mut buffer),
        Credential::Nts(session) => {
            Exchange::nts(session, entropy, &mut buffer).map_err(|_| Unanswered::NoCookie)?
        }
        Credential::Mac(key) => Exchange::mac(key, entropy, &mut buffer),
    };
    let sent = socket.send(&buffer[..size])?;
    let deadline = Instant::now() + timeout;
    let (mut told, mut checks) = (None, Vec::new());
    loop {
        match socket.receive(&mut buffer, deadline)? {
            Received::Datagram { size, at } => {
                let datagram = &mut buffer[..size];
                let checked = match &mut credential {
                    Credential::None => exchange.receive(datagram, None),
                    Credential::Nts(session) => exchange.receive(datagram, Some(session)),
                    Credential::Mac(key) => exchange.receive_mac(datagram, key),
                };
                match checked {
                    Ok(response) => {
                        let sample = Sample::new(&response.header, sent, at);
                        return Ok(Measurement {
                            response,
                            sample,
                            source: socket.local()?,
                            transmit: exchange.transmit(),
                            sent,
                            arrived: at,
                            whole: start.elapsed(),
                        });
                    }
                    // A flood of forgeries must not fill the memory.
                    Err(check) if checks.len() < 64 => checks.push(check),
                    Err(_) => {}
                }
            }
            Received::Hint(hint) => told = Some(hint),
            Received::Silence if checks.is_empty() => return Err(Unanswered::Silence { hint: told }),
            Received::Silence => return Err(Unanswered::Rejected(checks)),
        }
    }
}

/// The same, once more under the other keys if a server is silent under those of `session` or cannot open its cookies:
/// it may have exported them the other way; chrony, "NTS AES-128-GCM-SIV compliant exporter". `session` stays with the
/// keys that were used last. The flag says that the answer came under the other ones.
pub(crate) fn measure_with_either_keys(
    server: SocketAddr,
    mut session: Option<&mut NtsSession>,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<(Measurement, bool), Unanswered> {
    let first = measure(server, session.as_deref_mut().into(), entropy, timeout);
    if let (Err(unanswered), Some(session)) = (&first, session)
        && (unanswered.is_nts_nak() || matches!(unanswered, Unanswered::Silence { .. }))
        && session.switch_keys()
    {
        return measure(server, Credential::Nts(session), entropy, timeout)
            .map(|measurement| (measurement, true));
    }
    first.map(|measurement| (measurement, false))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use authentick_crypto::{Algorithm, Key};
    use authentick_proto::cookie::SessionKeys;

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(50);

    /// Asks a server that answers the first request, if any, with these octets; how many requests came, why none was
    /// answered, and whether the session still has other keys.
    fn asked(answer: Option<&'static [u8]>) -> (usize, Unanswered, bool) {
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
        let unanswered =
            measure_with_either_keys(address, Some(&mut session), &mut entropy, TIMEOUT).unwrap_err();
        answering.join().unwrap();
        server.set_nonblocking(true).unwrap();
        let more = std::iter::from_fn(|| server.recv(&mut [0; 2048]).ok()).count();
        (1 + more, unanswered, session.switch_keys())
    }

    #[test]
    fn silent_server_is_asked_under_either_keys_and_one_that_talks_is_not() {
        let (count, unanswered, other_keys_left) = asked(None);
        assert!(matches!(unanswered, Unanswered::Silence { .. }), "{unanswered}");
        assert_eq!((count, other_keys_left), (2, false));
        let (count, unanswered, other_keys_left) = asked(Some(&[0; 48]));
        assert!(matches!(unanswered, Unanswered::Rejected(_)), "{unanswered}");
        assert_eq!((count, other_keys_left), (1, true));
    }

    #[test]
    fn each_reason_has_the_exit_code_of_whose_fault_it_is() {
        let io = |kind: io::ErrorKind| Unanswered::Io(kind.into());
        for (unanswered, exit) in [
            (Unanswered::Silence { hint: Some(Hint::Refused) }, Exit::Silence),
            (Unanswered::Rejected(vec![Check::Tag]), Exit::Authentication),
            (Unanswered::NoCookie, Exit::Internal),
            (Unanswered::ClockSet, Exit::Internal),
            (io(io::ErrorKind::NetworkUnreachable), Exit::Silence),
            (io(io::ErrorKind::HostUnreachable), Exit::Silence),
            (io(io::ErrorKind::PermissionDenied), Exit::Permission),
            (io(io::ErrorKind::AddrNotAvailable), Exit::Internal),
        ] {
            let failure = unanswered.failure("192.0.2.1:123".parse().unwrap());
            assert_eq!(failure.exit, exit, "{unanswered}");
            assert!(failure.message.starts_with("192.0.2.1:123: "), "{}", failure.message);
        }
    }
}
