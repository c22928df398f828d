//! The three phases over UDP. A phase asks, waits, and asks again with a new token and new nonces, until an answer
//! passes every check or its time is up.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_net::clock;
use authentick_net::udp::ClientSocket;
use authentick_proto::antp::client::{
    Bounds, Check, Event, Negotiated, Negotiation, Offer, Progress, SeparateTag, Session, Wanted,
};
use authentick_proto::client::Response;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

use super::clock_steps::Difference;
use crate::exchange::{Heard, Unanswered};
use crate::measurement::{Answer, Bound, Measurement};

/// How long the first request of a phase waits for its answer before the next one is sent, which waits twice as long.
/// An answer within the default bound E is never too late for this.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The result of a wait for an answer.
enum Step<T> {
    /// This request was answered; the next one is to be sent at once.
    Next,
    /// The end of the phase.
    Done(T),
}

/// Goes through a phase with the server at the other end of `socket`. `state` lasts for the whole phase.
///
/// `request` writes a new request, and returns what its answer is checked against, and its size. `receive` says what a
/// datagram means; after `None` the wait continues.
fn run<S, R, T>(
    socket: &ClientSocket,
    timeout: Duration,
    state: &mut S,
    mut request: impl FnMut(&mut S, &mut [u8]) -> (R, usize),
    mut receive: impl FnMut(&mut S, &mut R, &[u8], NtpTime) -> Result<Option<Step<T>>, Check>,
) -> Result<T, Unanswered<Check>> {
    let mut buffer = [0; DATAGRAM_SIZE_MAX];
    let deadline = Instant::now() + timeout;
    let mut heard = Heard::nothing();
    let mut wait = FIRST_WAIT;
    loop {
        let (mut sent, size) = request(state, &mut buffer);
        socket.send(&buffer[..size])?;
        let until = deadline.min(Instant::now() + wait);
        let step = heard
            .listen(socket, &mut buffer, until, |datagram, at| receive(state, &mut sent, datagram, at))?;
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

/// Phase 1: as many rounds as the chain takes, and how many those were.
pub(super) fn negotiate(
    server: SocketAddr,
    offer: Offer,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<(Negotiated, u32), Unanswered<Check>> {
    let socket = ClientSocket::connect(server)?;
    let mut round_count = 0;
    let negotiated = run(
        &socket,
        timeout,
        &mut Negotiation::new(offer),
        |negotiation, out| ((), negotiation.request(entropy, out)),
        |negotiation, (), datagram, _| {
            let progress = negotiation.receive(datagram)?;
            round_count += 1;
            Ok(Some(match progress {
                Progress::More => Step::Next,
                Progress::Done(negotiated) => Step::Done(negotiated),
            }))
        },
    )?;
    Ok((negotiated, round_count))
}

/// Phase 2, under `key`, which the caller trusts, and which is one of the suite. Also returns how long this end's
/// public-key work took.
pub(super) fn exchange_keys(
    server: SocketAddr,
    negotiated: &Negotiated,
    key: &PublicKey,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<(Session, Duration), Unanswered<Check>> {
    let socket = ClientSocket::connect(server)?;
    let mut encapsulation = Duration::ZERO;
    let session = run(
        &socket,
        timeout,
        &mut (),
        |(), out| {
            let start = Instant::now();
            let made = negotiated.exchange(key, entropy, out);
            encapsulation += start.elapsed();
            made.expect("the key was read as one of the suite")
        },
        |(), exchange, datagram, _| exchange.receive(datagram).map(|session| Some(Step::Done(session))),
    )?;
    Ok((session, encapsulation))
}

/// What to ask for in phase 3.
#[derive(Clone, Copy, Debug)]
pub struct TimeAsk {
    /// The tag may come in a packet of its own.
    pub is_separate: bool,
    /// A fresh C2 is welcome.
    pub is_fresh: bool,
    /// When an answer is too late.
    pub bounds: Bounds,
}

/// Phase 3: one exchange of time under `session`. The answer has a bound.
///
/// # Errors
/// Why there is no answer.
pub fn ask_time(
    server: SocketAddr,
    session: &mut Session,
    ask: TimeAsk,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<Answer, Unanswered<Check>> {
    let socket = ClientSocket::connect(server)?;
    let start = Instant::now();
    let separate = match server.ip().to_canonical().is_ipv4() {
        true => SeparateTag::Ipv4,
        false => SeparateTag::Ipv6,
    };
    let wanted = Wanted { fresh: ask.is_fresh, separate: ask.is_separate.then_some(separate) };
    let (accepted, sent, unnoticed) = run(
        &socket,
        timeout,
        session,
        |session, out| {
            let clocks = Difference::read_host();
            let (exchange, size) = session.ask(wanted, ask.bounds, clock::now(), entropy, out);
            ((exchange, clocks), size)
        },
        |session, (exchange, clocks), datagram, arrived| {
            Ok(match exchange.receive(datagram, arrived, session)? {
                Event::Early => None,
                Event::Accepted(accepted) => {
                    let unnoticed = clocks.unnoticed(Difference::read_host());
                    Some(Step::Done((accepted, exchange.sent(), unnoticed)))
                }
            })
        },
    )?;
    let measurement = Measurement {
        response: Response { header: accepted.header, cookie_count: 0 },
        sample: accepted.sample,
        source: socket.local()?,
        transmit: accepted.header.origin,
        sent,
        arrived: sent + accepted.sample.round_trip,
        whole: start.elapsed(),
    };
    let bound = Bound {
        error_max: accepted.error_max() + unnoticed.ok_or(Unanswered::ClockSet)?,
        round_trip_max: ask.bounds.round_trip_max,
        is_early: accepted.is_early,
    };
    Ok(Answer { measurement, bound: Some(bound) })
}
