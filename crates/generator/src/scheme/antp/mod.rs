//! ANTP as simulated clients speak it: what each of them keeps, and operations of one or several datagrams.
//!
//! A real client makes everything afresh: nonces, the ciphertext of m3. With replay, as the paper's load has it, only
//! the transmit timestamp of a request is new, by which its answer is found; the server has the same work with it, and
//! every tag can still be checked: tau1 does not cover the header of NTP, and tau2 is computed for each m5 anyway.
//!
//! An operation counts as sent when its first datagram leaves, and ends once: with its last answer, or when one of its
//! datagrams has waited too long. What clients need beside (a C1 for key exchanges, a session for time requests) is
//! counted apart.

mod conversation;
mod exchange;
mod figures;
mod full;
mod guide;
mod negotiate;
mod state;
mod steps;
mod time;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use authentick_proto::antp::transcript::verify_times;
use authentick_proto::client::NtsSession;
use authentick_report::load::{AntpFigures, Cause, Operation};
use authentick_wire::time::NtpTime;

use self::conversation::Goal;
pub(crate) use self::conversation::{Conversation, Taken};
use self::exchange::Exchange;
use self::full::Full;
pub use self::guide::{Guide, Judge, UnknownSuite};
use self::negotiate::Negotiate;
pub(crate) use self::state::State;
use self::steps::Speech;
use self::time::Time;
use super::{Answer, Asked, Found, Nature, Protocol, Verdict};
use crate::arrivals::Inspected;
use crate::client::Client;
use crate::core::{Missing, Settings};
use crate::flight::Flight;
use crate::limits::LATENESS_MAX_NS;
use crate::workload::{Arrived, Workload};
use crate::{Clock, Desk};

/// Phase 1.
pub(crate) type AntpNegotiate = Antp<Negotiate>;
/// Phase 2.
pub(crate) type AntpExchange = Antp<Exchange>;
/// Phase 3.
pub(crate) type AntpTime = Antp<Time>;
/// All three.
pub(crate) type AntpFull = Antp<Full>;

/// What a scheme of ANTP is named for.
pub(crate) trait Aim: fmt::Debug {
    /// What is special about the scheme.
    const NATURE: Nature;
    /// What clients go for before the load, and again when that is over.
    const PREPARATION: Option<Goal> = None;

    /// Whether a client has what the scheme's operations need.
    fn has(_: &State, _now_ns: u64) -> bool {
        true
    }

    /// Whether it should go for it: it has none, or one that ends soon.
    fn wants(_: &State, _now_ns: u64) -> bool {
        false
    }

    /// Writes the first request of an operation of a client that has what it needs.
    ///
    /// # Errors
    /// Why there is none.
    fn push<C: Clock>(
        speech: &mut Speech,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        client: u32,
        intended_ns: u64,
    ) -> Result<(), Cause>;
}

/// What the schemes of ANTP have in common; they measure other things.
const NATURE: Nature = Nature {
    principal: Operation::Transfer,
    accompanying: Operation::KeyExchange,
    lateness_max_ns: LATENESS_MAX_NS,
    measures_transfers: true,
    exchanges_keys: false,
    is_antp: true,
    provision: None,
};

/// A scheme of ANTP.
#[derive(Debug)]
pub(crate) struct Antp<A> {
    speech: Speech,
    /// The client that turned out to want its state when the last operation began.
    wanting: Option<u32>,
    aim: PhantomData<A>,
}

impl<A: Aim> Antp<A> {
    /// Begins to get C1, or a session, for a client that wants it and may; `true` if it did.
    fn renew<C: Clock>(
        &mut self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        index: u32,
        now_ns: u64,
    ) -> bool {
        let client = &mut load.roster[index];
        let (Some(goal), true) =
            (A::PREPARATION, A::wants(&client.antp, now_ns) && client.may_prepare(now_ns))
        else {
            return false;
        };
        client.exchanging = true;
        let measured = client.measured;
        load.results.ledger.of(measured, false).scheduled += 1;
        self.speech.push_negotiation(load, desk, index, goal, now_ns);
        true
    }
}

impl<A: Aim> Protocol for Antp<A> {
    const NATURE: Nature = A::NATURE;

    fn new(settings: &mut Settings) -> Result<Self, Missing> {
        let guide = settings.guide.as_ref().ok_or(Missing::Guide)?;
        Ok(Antp { speech: Speech::new(Arc::clone(guide)), wanting: None, aim: PhantomData })
    }

    fn start(&mut self) {
        self.wanting = None;
        self.speech.figures.clear();
    }

    fn is_prepared(&self, client: &Client, now_ns: u64) -> bool {
        A::has(&client.antp, now_ns)
    }

    fn prepare<C: Clock>(
        &mut self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        client: u32,
        now_ns: u64,
    ) -> bool {
        self.renew(load, desk, client, now_ns)
    }

    fn catch_up<C: Clock>(&mut self, load: &mut Workload, desk: &mut Desk<'_, C>) -> bool {
        let Some(index) = self.wanting.take() else { return false };
        let now_ns = desk.clock.monotonic_ns();
        self.renew(load, desk, index, now_ns)
    }

    fn begin<C: Clock>(
        &mut self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        measured: bool,
        intended_ns: u64,
    ) -> Result<(), Cause> {
        let now_ns = desk.clock.monotonic_ns();
        let wanting = &mut self.wanting;
        let found = load.roster.choose(measured, |client, index| {
            if A::wants(&client.antp, now_ns) && client.may_prepare(now_ns) {
                wanting.get_or_insert(index);
            }
            A::has(&client.antp, now_ns)
        });
        A::push(&mut self.speech, load, desk, found.ok_or(Cause::NoCookie)?, intended_ns)
    }

    fn inspect<C: Clock>(&mut self, asked: &mut Asked, octets: &[u8], at: NtpTime, clock: &C) -> Verdict {
        let Asked::Antp(conversation) = asked else { return Verdict::Early };
        conversation.take(octets, at, clock)
    }

    fn verify<'a, C: Clock>(
        &self,
        load: &Workload,
        datagrams: impl Iterator<Item = &'a mut [u8]>,
        inspected: &mut [Option<Inspected>],
        clock: &C,
    ) -> u64 {
        let begun_ns = clock.monotonic_ns();
        let mut claims = Vec::with_capacity(inspected.len());
        for (datagram, inspected) in datagrams.zip(inspected) {
            if let Some(Inspected { transmit, candidate: Found::Antp(_), genuine, .. }) = inspected
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

    fn conclude(
        &mut self,
        asked: &mut Asked,
        inspected: &Inspected,
        _octets: &mut [u8],
        _session: Option<&mut NtsSession>,
        crypto_ns: u64,
    ) -> Verdict {
        match (asked, &inspected.candidate) {
            (Asked::Antp(conversation), Found::Antp(candidate)) => {
                conversation.conclude(candidate, inspected.genuine, crypto_ns)
            }
            (Asked::Ntp(_) | Asked::Antp(_), Found::Ntp(_) | Found::Mac(_) | Found::Antp(_)) => {
                Verdict::Early
            }
        }
    }

    fn answered<C: Clock>(
        &mut self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        flight: Flight,
        answer: Answer,
        arrived: Arrived,
    ) {
        let Answer::Antp(taken) = answer else { return };
        let (client, principal) = (flight.request.client, flight.request.principal);
        if let Err(cause) = self.speech.go_on(load, desk, flight, taken, arrived) {
            let measured = load.roster[client].measured;
            load.results.ledger.of(measured, principal).fail(cause);
            self.datagram_ended(load, desk, client, principal, arrived.now_ns);
        }
    }

    fn outdated<C: Clock>(
        &mut self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        client: u32,
        sent_ns: u64,
        now_ns: u64,
    ) {
        if load.roster[client].antp.forget(sent_ns) {
            self.renew(load, desk, client, now_ns);
        }
    }

    fn datagram_ended<C: Clock>(
        &mut self,
        load: &mut Workload,
        _: &mut Desk<'_, C>,
        client: u32,
        principal: bool,
        now_ns: u64,
    ) {
        match principal {
            true => load.operation_ended(client),
            false => load.roster[client].not_established(now_ns),
        }
    }

    fn figures(&self, seconds: f64) -> Option<AntpFigures> {
        Some(self.speech.figures.stored(seconds))
    }
}

#[cfg(test)]
mod tests;
