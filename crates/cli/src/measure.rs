//! Asking a server: one exchange over a socket of its own, with every check, until one answer passes or time is up.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_net::udp::{ClientSocket, Received};
use authentick_proto::client::{Check, Exchange, NtsSession, Response, Sample};
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

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

/// Why no answer passed.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// Nothing came; perhaps a hint that nobody listens there.
    Silence { refused: bool },
    /// Answers came, and each failed a check.
    Rejected(Vec<Check>),
    /// The jar is empty.
    NoCookie,
    /// This host could not send or receive.
    Io(io::Error),
}

impl Unanswered {
    /// Whether the server said that it cannot open our cookies.
    pub(crate) fn is_nts_nak(&self) -> bool {
        matches!(self, Unanswered::Rejected(checks) if checks.contains(&Check::Kiss(ReferenceId::NTSN)))
    }
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Self {
        Unanswered::Io(error)
    }
}

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unanswered::Silence { refused: false } => f.write_str("no answer"),
            Unanswered::Silence { refused: true } => {
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
            Unanswered::Io(error) => write!(f, "cannot send or receive: {error}"),
        }
    }
}

/// Asks `server` once, under `session` if there is one. Answers that fail a check are passed over, as anyone can send
/// them; what they failed is told if none passes before `timeout`.
pub(crate) fn measure(
    server: SocketAddr,
    mut session: Option<&mut NtsSession>,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<Measurement, Unanswered> {
    let socket = ClientSocket::connect(server)?;
    let start = Instant::now();
    let mut buffer = [0; DATAGRAM_SIZE_MAX];
    let (mut exchange, size) = match &mut session {
        Some(session) => Exchange::nts(session, entropy, &mut buffer).map_err(|_| Unanswered::NoCookie)?,
        None => Exchange::plain(entropy, &mut buffer),
    };
    let sent = socket.send(&buffer[..size])?;
    let deadline = Instant::now() + timeout;
    let (mut refused, mut checks) = (false, Vec::new());
    loop {
        match socket.receive(&mut buffer, deadline)? {
            Received::Datagram { size, at } => {
                match exchange.receive(&mut buffer[..size], session.as_deref_mut()) {
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
            Received::Refused => refused = true,
            Received::Silence if checks.is_empty() => return Err(Unanswered::Silence { refused }),
            Received::Silence => return Err(Unanswered::Rejected(checks)),
        }
    }
}
