//! The three phases over UDP. A phase asks, waits, and asks again with a new token and new nonces, until an answer
//! passes every check or its time is up.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_net::clock;
use authentick_net::udp::ClientSocket;
use authentick_proto::antp::client::{
    Accepted, Bounds, Check, Event, KeyExchange, Negotiated, Negotiation, Offer, Progress, SeparateTag,
    Session, TimeExchange, Wanted, WrongKem,
};
use authentick_proto::client::Response;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::{NtpSpan, NtpTime};

use super::clock_steps::{Difference, Host};
use crate::exchange::{Heard, Unanswered};
use crate::measurement::Measurement;

/// How long the first request of a phase waits for its answer before there is another; the next one waits twice as
/// long. Within this, an answer within the default bound E is never too late.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// One phase as a course of requests: what it sends, and what a datagram means to it.
trait Course {
    type Outcome;

    /// Writes a request that has not been sent before; returns its size.
    fn request(&mut self, out: &mut [u8]) -> usize;

    /// `None`: the wait goes on.
    fn receive(&mut self, datagram: &[u8], arrived: NtpTime) -> Result<Option<Step<Self::Outcome>>, Check>;
}

/// What ends the wait for an answer.
enum Step<T> {
    /// The answer to this request; there is another to be sent at once.
    Next,
    /// The end of the phase.
    Done(T),
}

/// Goes through `phase` with the server at the other end of `socket`.
fn run<P: Course>(
    socket: &ClientSocket,
    phase: &mut P,
    timeout: Duration,
) -> Result<P::Outcome, Unanswered<Check>> {
    let mut buffer = [0; DATAGRAM_SIZE_MAX];
    let deadline = Instant::now() + timeout;
    let mut heard = Heard::nothing();
    let mut wait = FIRST_WAIT;
    loop {
        let size = phase.request(&mut buffer);
        socket.send(&buffer[..size])?;
        let until = deadline.min(Instant::now() + wait);
        let step = heard.listen(socket, &mut buffer, until, |datagram, at| phase.receive(datagram, at))?;
        wait = match step {
            Some(Step::Done(outcome)) => return Ok(outcome),
            Some(Step::Next) => FIRST_WAIT,
            None => wait * 2,
        };
        if Instant::now() >= deadline {
            return Err(heard.into());
        }
    }
}

/// A negotiation that reached its end.
#[derive(Debug)]
pub struct Agreed {
    /// The server's choice, C1 and its chain.
    pub negotiated: Negotiated,
    /// Answers that it took.
    pub round_count: u32,
    /// How long that was.
    pub took: Duration,
}

struct Negotiating<'a> {
    negotiation: Negotiation,
    round_count: u32,
    entropy: &'a mut Entropy,
}

impl Course for Negotiating<'_> {
    type Outcome = Negotiated;

    fn request(&mut self, out: &mut [u8]) -> usize {
        self.negotiation.request(self.entropy, out)
    }

    fn receive(&mut self, datagram: &[u8], _: NtpTime) -> Result<Option<Step<Negotiated>>, Check> {
        let progress = self.negotiation.receive(datagram)?;
        self.round_count += 1;
        Ok(Some(match progress {
            Progress::More => Step::Next,
            Progress::Done(negotiated) => Step::Done(negotiated),
        }))
    }
}

/// Phase 1: as many rounds as the chain takes.
///
/// # Errors
/// Why there is no answer.
pub fn negotiate(
    server: SocketAddr,
    offer: Offer,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<Agreed, Unanswered<Check>> {
    let start = Instant::now();
    let socket = ClientSocket::connect(server)?;
    let mut phase = Negotiating { negotiation: Negotiation::new(offer), round_count: 0, entropy };
    let negotiated = run(&socket, &mut phase, timeout)?;
    Ok(Agreed { negotiated, round_count: phase.round_count, took: start.elapsed() })
}

/// A key exchange that reached its end.
#[derive(Debug)]
pub struct Exchanged {
    /// The key, and C2.
    pub session: Session,
    /// This end's public-key work.
    pub encapsulation: Duration,
    /// The rest: from m3 to a confirmed m4.
    pub took: Duration,
}

struct Exchanging<'a> {
    negotiated: &'a Negotiated,
    key: &'a PublicKey,
    entropy: &'a mut Entropy,
    exchange: Option<KeyExchange>,
    encapsulation: Duration,
}

impl Course for Exchanging<'_> {
    type Outcome = Session;

    fn request(&mut self, out: &mut [u8]) -> usize {
        let start = Instant::now();
        let made = self.negotiated.exchange(self.key, self.entropy, out);
        let (exchange, size) = made.expect("the key's mechanism was compared with the suite");
        self.encapsulation += start.elapsed();
        self.exchange = Some(exchange);
        size
    }

    fn receive(&mut self, datagram: &[u8], _: NtpTime) -> Result<Option<Step<Session>>, Check> {
        let exchange = self.exchange.as_mut().expect("a request precedes what is received");
        exchange.receive(datagram).map(|session| Some(Step::Done(session)))
    }
}

/// Phase 2, under `key`, which the caller trusts.
///
/// # Errors
/// The outer one if the key is not one of the suite; the inner one says why there is no answer.
///
/// # Panics
/// Never: the key was compared with the suite.
pub fn exchange_keys(
    server: SocketAddr,
    negotiated: &Negotiated,
    key: &PublicKey,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<Result<Exchanged, Unanswered<Check>>, WrongKem> {
    let suite = negotiated.suite();
    if authentick_proto::antp::kem(suite) != Some(key.kem()) {
        return Err(WrongKem { suite, kem: key.kem() });
    }
    let mut phase = Exchanging { negotiated, key, entropy, exchange: None, encapsulation: Duration::ZERO };
    let start = Instant::now();
    let exchanged = ClientSocket::connect(server)
        .map_err(Unanswered::from)
        .and_then(|socket| run(&socket, &mut phase, timeout))
        .map(|session| Exchanged {
            session,
            encapsulation: phase.encapsulation,
            took: start.elapsed().saturating_sub(phase.encapsulation),
        });
    Ok(exchanged)
}

/// What is asked for in phase 3.
#[derive(Clone, Copy, Debug)]
pub struct TimeAsk {
    /// The tag may come in a packet of its own.
    pub is_separate: bool,
    /// A fresh C2 is welcome.
    pub is_fresh: bool,
    /// What is too late.
    pub bounds: Bounds,
}

struct Timing<'a> {
    session: &'a mut Session,
    wanted: Wanted,
    bounds: Bounds,
    entropy: &'a mut Entropy,
    exchange: Option<TimeExchange>,
    /// The clocks when the request was made.
    clocks: Difference,
}

impl Course for Timing<'_> {
    /// Also by how much the clock may have been set meanwhile; `None` if it was.
    type Outcome = (Accepted, Option<NtpSpan>);

    fn request(&mut self, out: &mut [u8]) -> usize {
        self.clocks = Difference::read(&mut Host);
        let (exchange, size) = self.session.ask(self.wanted, self.bounds, clock::now(), self.entropy, out);
        self.exchange = Some(exchange);
        size
    }

    fn receive(&mut self, datagram: &[u8], arrived: NtpTime) -> Result<Option<Step<Self::Outcome>>, Check> {
        let exchange = self.exchange.as_mut().expect("a request precedes what is received");
        Ok(match exchange.receive(datagram, arrived, self.session)? {
            Event::Early => None,
            Event::Accepted(accepted) => {
                Some(Step::Done((accepted, self.clocks.unnoticed(Difference::read(&mut Host)))))
            }
        })
    }
}

/// Time that passed every check.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// As of any scheme.
    pub measurement: Measurement,
    /// What the protocol says of it.
    pub accepted: Accepted,
    /// The most by which the offset is wrong: half the round trip, and what this host's clock may have been set by.
    pub error_max: NtpSpan,
}

/// Phase 3: one exchange of time under `session`.
///
/// # Errors
/// Why there is no answer.
pub fn ask_time(
    server: SocketAddr,
    session: &mut Session,
    ask: TimeAsk,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<Timed, Unanswered<Check>> {
    let socket = ClientSocket::connect(server)?;
    let start = Instant::now();
    let separate = match server.ip().to_canonical().is_ipv4() {
        true => SeparateTag::Ipv4,
        false => SeparateTag::Ipv6,
    };
    let wanted = Wanted { fresh: ask.is_fresh, separate: ask.is_separate.then_some(separate) };
    let clocks = Difference::read(&mut Host);
    let mut phase = Timing { session, wanted, bounds: ask.bounds, entropy, exchange: None, clocks };
    let (accepted, unnoticed) = run(&socket, &mut phase, timeout)?;
    let error_max = accepted.error_max() + unnoticed.ok_or(Unanswered::ClockSet)?;
    let sent = phase.exchange.as_ref().expect("a request precedes its answer").sent();
    let measurement = Measurement {
        response: Response { header: accepted.header, cookie_count: 0 },
        sample: accepted.sample,
        source: socket.local()?,
        transmit: accepted.header.origin,
        sent,
        arrived: sent + accepted.sample.round_trip,
        whole: start.elapsed(),
    };
    Ok(Timed { measurement, accepted, error_max })
}
