//! Operations of one or several datagrams, and the result of each datagram.

use std::sync::Arc;

use authentick_proto::antp::client::{
    Accepted, Candidate, Check, Inspected, KeyExchange, Negotiation, Progress, Session, TimeExchange,
};
use authentick_proto::antp::transcript::TimeClaim;
use authentick_proto::client::Unsound;
use authentick_report::load::Cause;
use authentick_wire::antp::ErrorCode;
use authentick_wire::time::NtpTime;

use crate::Clock;
use crate::flight::Request;
use crate::limits::{FLIGHT_SIZE_MAX, SEALED_FLIGHT_SIZE_MAX};
use crate::scheme::{Answer, Asked, Found, Verdict};

/// The goal of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The whole certificate chain and C1; with replay, the first answer.
    Negotiation,
    /// m4.
    KeyExchange,
    /// m6.
    Time,
    /// All three phases.
    Run,
    /// A C1 for key exchanges that are measured.
    C1,
    /// A session for time requests that are measured.
    Session,
}

impl Goal {
    /// Whether it is the scheme's own operation, rather than one that such operations need.
    pub(crate) const fn is_principal(self) -> bool {
        match self {
            Goal::Negotiation | Goal::KeyExchange | Goal::Time | Goal::Run => true,
            Goal::C1 | Goal::Session => false,
        }
    }
}

/// The datagram that an operation waits for.
#[derive(Debug)]
pub(crate) enum Talk {
    Negotiation(Negotiation),
    KeyExchange(KeyExchange),
    Time(TimeExchange, Arc<Session>),
}

/// An operation under way, which may take several requests: the current one, and results of the earlier ones.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) goal: Goal,
    pub(crate) talk: Talk,
    /// Time of the client's own cryptography so far.
    pub(crate) crypto_ns: u64,
    /// Time of the network and the server in each phase so far.
    pub(crate) phases_ns: [u64; 3],
    /// It was timed by an early packet.
    pub(crate) is_early: bool,
}

const _: () = assert!(
    // 392 octets are the largest m3.
    FLIGHT_SIZE_MAX + size_of::<Conversation>() + 392 <= SEALED_FLIGHT_SIZE_MAX,
    "the limit of memory is stated by this size"
);

/// The result of an answer.
#[derive(Debug)]
pub(crate) enum Taken {
    /// A part of the chain, or the whole.
    Chain(Progress),
    /// m4.
    Keyed(Session),
    /// m6.
    Time(Accepted),
}

impl Conversation {
    pub(crate) const fn new(goal: Goal, talk: Talk) -> Self {
        Conversation { goal, talk, crypto_ns: 0, phases_ns: [0; 3], is_early: false }
    }

    /// An operation for a time request that is not written yet, reusing the memory of one that has ended.
    pub(crate) fn for_time(spare: Option<Box<Conversation>>, session: &Arc<Session>) -> Box<Conversation> {
        let talk = |exchange| Talk::Time(exchange, Arc::clone(session));
        let Some(mut spare) = spare else {
            return Box::new(Conversation::new(Goal::Time, talk(TimeExchange::idle())));
        };
        let exchange = match &mut spare.talk {
            Talk::Time(exchange, _) => std::mem::replace(exchange, TimeExchange::idle()),
            Talk::Negotiation(_) | Talk::KeyExchange(_) => TimeExchange::idle(),
        };
        *spare = Conversation::new(Goal::Time, talk(exchange));
        spare
    }

    /// The request that waits, of an operation that was to begin and whose making began then.
    pub(crate) fn request(self: Box<Self>, client: u32, [intended_ns, begun_ns]: [u64; 2]) -> Request {
        let principal = self.goal.is_principal();
        // Keys of ANTP are in the conversation.
        Request { asked: Asked::Antp(self), client, epoch: 0, principal, intended_ns, begun_ns }
    }

    /// The transmit timestamp of the request that waits.
    pub(crate) const fn token(&self) -> NtpTime {
        match &self.talk {
            Talk::Negotiation(negotiation) => negotiation.token(),
            Talk::KeyExchange(exchange) => exchange.token(),
            Talk::Time(exchange, _) => exchange.token(),
        }
    }

    /// The phase of that request, from 0.
    pub(crate) const fn phase(&self) -> usize {
        match &self.talk {
            Talk::Negotiation(_) => 0,
            Talk::KeyExchange(_) => 1,
            Talk::Time(..) => 2,
        }
    }

    /// Takes a datagram that came at `arrived`. The tag of m6 is not checked here: many are verified together.
    pub(crate) fn take(&mut self, datagram: &[u8], arrived: NtpTime, clock: &impl Clock) -> Verdict {
        let begun_ns = clock.monotonic_ns();
        let taken = match &mut self.talk {
            Talk::Negotiation(negotiation) => negotiation.receive(datagram).map(Taken::Chain),
            Talk::KeyExchange(exchange) => exchange.receive(datagram).map(Taken::Keyed),
            Talk::Time(exchange, session) => {
                return match exchange.inspect(datagram, arrived, session.suite()) {
                    Ok(Inspected::Early) => Verdict::Early,
                    Ok(Inspected::Candidate(candidate)) => Verdict::Candidate(Found::Antp(candidate)),
                    Err(check) => refused(&check),
                };
            }
        };
        self.crypto_ns += clock.monotonic_ns() - begun_ns;
        match taken {
            Ok(taken) => Verdict::Answer(Answer::Antp(taken), None),
            Err(check) => refused(&check),
        }
    }

    /// What must be verified of a datagram that became a candidate.
    pub(crate) fn claim<'a>(&'a self, datagram: &'a [u8], genuine: &'a mut bool) -> Option<TimeClaim<'a>> {
        match &self.talk {
            Talk::Time(exchange, session) => exchange.claim(datagram, session, genuine),
            Talk::Negotiation(_) | Talk::KeyExchange(_) => None,
        }
    }

    /// The rest of the checks on a candidate, which took `crypto_ns` to verify. The time in it came with the early
    /// packet if that was genuine.
    pub(crate) fn conclude(&mut self, candidate: &Candidate, genuine: bool, crypto_ns: u64) -> Verdict {
        let Talk::Time(exchange, _) = &mut self.talk else { return refused(&Check::Phase) };
        self.crypto_ns += crypto_ns;
        match exchange.conclude(candidate, genuine, None) {
            Ok(accepted) => {
                self.is_early = accepted.is_early;
                let came = exchange.sent() + accepted.sample.round_trip;
                Verdict::Answer(Answer::Antp(Taken::Time(accepted)), Some(came))
            }
            Err(check) => refused(&check),
        }
    }
}

fn refused(check: &Check) -> Verdict {
    Verdict::Refused { cause: cause(check), is_outdated: *check == Check::Server(ErrorCode::EXPIRED) }
}

/// The class of a failed check.
const fn cause(check: &Check) -> Cause {
    match check {
        Check::Server(ErrorCode::EXPIRED) => Cause::StateExpired,
        Check::Server(ErrorCode::RATE) => Cause::AntpRate,
        Check::Server(_) => Cause::AntpRefused,
        Check::Suite(_) | Check::Choice(_) | Check::Chunk | Check::Chain => Cause::Negotiation,
        Check::Kiss(_) => Cause::Kiss,
        Check::Tag | Check::Untagged => Cause::BadTag,
        Check::Origin | Check::Duplicate => Cause::BadOrigin,
        Check::Clock(Unsound::Stratum(_)) => Cause::BadStratum,
        Check::Clock(Unsound::Leap) => Cause::BadLeap,
        _ => Cause::Malformed,
    }
}
