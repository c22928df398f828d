//! ANTP before a load: one run of all its phases, which shows that the server answers and is who it should be.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_ke::tls::{ChainJudge, Roots};
use authentick_net::clock::{self, unix_seconds};
use authentick_net::udp::{ClientSocket, Received};
use authentick_proto::antp::client::{Bounds, Check, Event, Negotiation, Offer, Progress, Wanted};
use authentick_proto::antp::kem;
use authentick_wire::antp::{Suite, SuiteList};
use authentick_wire::limits::{ANTP_PAYLOAD_SIZE_DEFAULT, DATAGRAM_SIZE_MAX};
use authentick_wire::time::NtpTime;

use crate::exit::{Exit, Failure};

/// What the first run found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probed {
    /// Octets of the certificate chain, as the protocol encodes it.
    pub(crate) chain_size: usize,
    /// Requests that the negotiation took.
    pub(crate) round_count: usize,
}

/// Goes through all phases with `server` once; each request waits for `timeout`.
pub(super) fn probe(
    server: SocketAddr,
    suite: Suite,
    roots: Roots,
    server_name: &str,
    timeout: Duration,
) -> Result<Probed, Failure> {
    let judge = ChainJudge::new(roots, server_name)
        .map_err(|problem| Failure::new(Exit::Usage, format!("--server-name: {problem}")))?;
    let mut talk = Talk {
        server,
        socket: ClientSocket::connect(server)?,
        entropy: Entropy::from_system()?,
        buffer: [0; DATAGRAM_SIZE_MAX],
        timeout,
    };
    let distrusted = |why: String| Failure::new(Exit::Authentication, format!("{server}: {why}"));
    let suites = SuiteList::new(&[suite]).expect("one suite makes a list");
    let mut negotiation =
        Negotiation::new(Offer { suites, payload_size_max: ANTP_PAYLOAD_SIZE_DEFAULT, held: None });
    let negotiated = loop {
        let size = negotiation.request(&mut talk.entropy, &mut talk.buffer);
        match talk.ask(size, |datagram, _| negotiation.receive(datagram).map(Some))? {
            Progress::More => {}
            Progress::Done(negotiated) => break negotiated,
        }
    };
    let chain = negotiated.chain();
    let spki = judge
        .judge(chain.certificates(), unix_seconds())
        .map_err(|distrust| distrusted(distrust.to_string()))?;
    let kem = kem(suite).expect("the command line names suites that are known");
    let key = PublicKey::from_spki(kem, &spki)
        .map_err(|bad| distrusted(format!("its certificate does not fit {suite}: {bad}")))?;
    let (mut exchange, size) = negotiated
        .exchange(&key, &mut talk.entropy, &mut talk.buffer)
        .map_err(|wrong| distrusted(wrong.to_string()))?;
    let mut session = talk.ask(size, |datagram, _| exchange.receive(datagram).map(Some))?;
    let wanted = Wanted { fresh: false, separate: None };
    let (mut time, size) =
        session.ask(wanted, Bounds::WAN, clock::now(), &mut talk.entropy, &mut talk.buffer);
    talk.ask(size, |datagram, at| match time.receive(datagram, at, &mut session)? {
        Event::Early => Ok(None),
        Event::Accepted(accepted) => Ok(Some(accepted)),
    })?;
    Ok(Probed { chain_size: chain.octets().len(), round_count: negotiation.round_count() })
}

struct Talk {
    server: SocketAddr,
    socket: ClientSocket,
    entropy: Entropy,
    buffer: [u8; DATAGRAM_SIZE_MAX],
    timeout: Duration,
}

impl Talk {
    /// Sends so many octets of the buffer, and waits for a datagram that `take` makes something of. What fails a check
    /// is passed over, as anyone can send it.
    fn ask<T>(
        &mut self,
        size: usize,
        mut take: impl FnMut(&[u8], NtpTime) -> Result<Option<T>, Check>,
    ) -> Result<T, Failure> {
        let failure = |exit, what: &dyn std::fmt::Display| {
            Err(Failure::new(exit, format!("{}: ANTP: {what}", self.server)))
        };
        self.socket.send(&self.buffer[..size])?;
        let deadline = Instant::now() + self.timeout;
        let (mut failed, mut refused) = (None, false);
        loop {
            match (self.socket.receive(&mut self.buffer, deadline)?, &failed) {
                (Received::Datagram { size, at }, _) => match take(&self.buffer[..size], at) {
                    Ok(Some(taken)) => return Ok(taken),
                    Ok(None) => {}
                    Err(check) => failed = failed.or(Some(check)),
                },
                (Received::Refused, _) => refused = true,
                (Received::Silence, None) if refused => {
                    return failure(Exit::Silence, &"no answer; the host says that the port is closed");
                }
                (Received::Silence, None) => return failure(Exit::Silence, &"no answer"),
                (Received::Silence, Some(check)) => {
                    return failure(
                        Exit::Authentication,
                        &format_args!("no answer passed every check; {check}"),
                    );
                }
            }
        }
    }
}
