//! ANTP as simulated clients speak it: what each of them keeps, and operations of one or several datagrams.
//!
//! A real client generates everything anew: nonces, the ciphertext of m3. With replay, as in the paper's load, only the
//! transmit timestamp of a request is new, by which its answer is matched. The server has the same work, and every tag
//! can still be checked: tau1 does not cover the NTP header, and tau2 is computed for each m5 anyway.
//!
//! An operation counts as sent when its first datagram leaves, and ends once: with its last answer, or when one of its
//! datagrams has waited too long. What clients need for that (a C1 for key exchanges, a session for time requests) is
//! counted separately.

mod conversation;
mod exchange;
mod figures;
mod guide;
mod state;
mod steps;
mod time;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use authentick_proto::antp::transcript::verify_times;
use authentick_report::load::{AntpFigures, Cause, Operation};

use self::conversation::Goal;
pub(crate) use self::conversation::{Conversation, Taken};
use self::exchange::Exchange;
pub use self::guide::{Guide, Judge, UnknownSuite};
pub(crate) use self::state::State;
use self::steps::Speech;
use self::time::Time;
use super::plain::Plain;
use super::{Answer, Asked, Begun, Found, Nature, Outdated, Protocol};
use crate::Clock;
use crate::arrivals::Inspected;
use crate::client::Client;
use crate::core::{Missing, Settings};
use crate::flight::{Flight, Request};
use crate::limits::{BATCH_SIZE, CHAIN_FLIGHT_COUNT_MAX, SEALED_FLIGHT_COUNT_MAX};
use crate::workload::{Arrived, Call, Workload};

/// Phase 1.
pub(crate) type AntpNegotiate = Antp<Negotiate>;
/// Phase 2.
pub(crate) type AntpExchange = Antp<Exchange>;
/// Phase 3.
pub(crate) type AntpTime = Antp<Time>;
/// All three.
pub(crate) type AntpFull = Antp<Full>;

/// The own operation of an ANTP scheme.
pub(crate) trait Aim: fmt::Debug {
    /// What is special about the scheme.
    const NATURE: Nature;
    /// The goal of its operations.
    const GOAL: Goal;
    /// What clients get before the load, and again when it expires.
    const PREPARATION: Option<Goal> = None;

    /// Whether a client has what the scheme's operations need.
    fn has(_: &State, _now_ns: u64) -> bool {
        true
    }

    /// Whether it should get new state: it has none, or its state expires soon.
    fn wants(state: &State, now_ns: u64) -> bool {
        !Self::has(state, now_ns)
    }

    /// Writes the first request of an operation of a client that has what it needs.
    fn push(speech: &mut Speech, call: &mut Call<'_, impl Clock>, client: u32, intended_ns: u64) -> Begun {
        speech.push_negotiation(call, client, Self::GOAL, intended_ns);
        Ok(())
    }
}

/// What the schemes of ANTP have in common; they measure other things.
const NATURE: Nature = Nature { is_antp: true, flight_count_max: SEALED_FLIGHT_COUNT_MAX, ..Plain::NATURE };

/// Phase 1: m1 and m2, until the certificate chain is complete.
#[derive(Debug)]
pub(crate) struct Negotiate;

impl Aim for Negotiate {
    const NATURE: Nature =
        Nature { principal: Operation::Negotiation, flight_count_max: CHAIN_FLIGHT_COUNT_MAX, ..NATURE };
    const GOAL: Goal = Goal::Negotiation;
}

/// Whole runs of the protocol, as by a client that knows nothing yet. Each costs the sending thread public-key work.
#[derive(Debug)]
pub(crate) struct Full;

impl Aim for Full {
    const NATURE: Nature =
        Nature { principal: Operation::Run, flight_count_max: CHAIN_FLIGHT_COUNT_MAX, ..NATURE };
    const GOAL: Goal = Goal::Run;
}

/// A scheme of ANTP.
#[derive(Debug)]
pub(crate) struct Antp<A> {
    speech: Speech,
    /// The client that was found to need state when the last operation began.
    wanting: Option<u32>,
    aim: PhantomData<A>,
}

impl<A: Aim> Protocol for Antp<A> {
    const NATURE: Nature = A::NATURE;

    fn new(settings: &mut Settings) -> Result<Self, Missing> {
        let guide = settings.guide.as_ref().ok_or(Missing::Guide)?;
        let guide = Arc::clone(guide);
        let speech = Speech { guide, trusted: None, spares: Vec::new(), figures: Box::default() };
        Ok(Antp { speech, wanting: None, aim: PhantomData })
    }

    fn start(&mut self) {
        self.wanting = None;
        self.speech.figures.clear();
    }

    fn is_prepared(&self, client: &Client, now_ns: u64) -> bool {
        A::has(&client.antp, now_ns)
    }

    /// C1, or a session, for a client that wants it and may.
    fn prepare(&mut self, call: &mut Call<'_, impl Clock>, index: u32, now_ns: u64) -> bool {
        let client = &mut call.load.roster[index];
        let (Some(goal), true) =
            (A::PREPARATION, A::wants(&client.antp, now_ns) && client.may_prepare(now_ns))
        else {
            return false;
        };
        client.exchanging = true;
        call.load.counts_of(index, false, now_ns).scheduled += 1;
        self.speech.push_negotiation(call, index, goal, now_ns);
        true
    }

    fn catch_up(&mut self, call: &mut Call<'_, impl Clock>) -> bool {
        let Some(index) = self.wanting.take() else { return false };
        let now_ns = call.clock.monotonic_ns();
        self.prepare(call, index, now_ns)
    }

    fn begin(&mut self, call: &mut Call<'_, impl Clock>, measured: bool, intended_ns: u64) -> Begun {
        let now_ns = call.clock.monotonic_ns();
        let wanting = &mut self.wanting;
        let found = call.load.roster.choose(measured, |client, index| {
            if A::wants(&client.antp, now_ns) && client.may_prepare(now_ns) {
                wanting.get_or_insert(index);
            }
            A::has(&client.antp, now_ns)
        });
        A::push(&mut self.speech, call, found.ok_or(Cause::NoCookie)?, intended_ns)
    }

    fn verify<'a>(
        &self,
        load: &Workload,
        candidates: impl Iterator<Item = (&'a mut [u8], &'a mut Inspected)>,
        clock: &impl Clock,
    ) -> u64 {
        let begun_ns = clock.monotonic_ns();
        let mut claims = Vec::with_capacity(BATCH_SIZE);
        for (datagram, Inspected { transmit, candidate, genuine, .. }) in candidates {
            if let Found::Antp(_) = candidate
                && let Some(flight) = load.flights.get(*transmit)
                && let Asked::Antp(conversation) = &flight.request.asked
                && let Some(claim) = conversation.claim(datagram, genuine)
            {
                claims.push(claim);
            }
        }
        verify_times(&mut claims);
        (clock.monotonic_ns() - begun_ns) / claims.len().max(1) as u64
    }

    fn answered(&mut self, call: &mut Call<'_, impl Clock>, flight: Flight, answer: Answer, came: Arrived) {
        let Answer::Antp(taken) = answer else { return };
        let Request { client, principal, intended_ns, .. } = flight.request;
        if let Err(cause) = self.speech.go_on(call, flight, taken, came) {
            call.load.counts_of(client, principal, intended_ns).fail(cause);
            self.datagram_ended(call, client, principal, came.now.ns);
        }
    }

    fn outdated(&mut self, call: &mut Call<'_, impl Clock>, request: Outdated, now_ns: u64) {
        if call.load.roster[request.client].antp.forget(request.sent_ns) {
            self.prepare(call, request.client, now_ns);
        }
    }

    fn datagram_ended(&mut self, call: &mut Call<'_, impl Clock>, client: u32, principal: bool, now_ns: u64) {
        match principal {
            true => call.load.operation_ended(client),
            false => call.load.roster[client].not_established(now_ns),
        }
    }

    fn figures(&self, seconds: f64) -> Option<AntpFigures> {
        Some(self.speech.figures.stored(seconds))
    }
}

#[cfg(test)]
mod tests;
