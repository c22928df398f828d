//! ANTP as simulated clients speak it: what each of them keeps, and operations of one or several datagrams.
//!
//! A real client makes everything afresh: nonces, the ciphertext of m3. With replay, as the paper's load has it, only
//! the transmit timestamp of a request is new, by which its answer is found; the server has the same work with it, and
//! every tag can still be checked: tau1 does not cover the header of NTP, and tau2 is computed for each m5 anyway.

use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_ke::tls::{KeyUse, PathVerifier, Roots, public_key_info};
use authentick_net::clock::{monotonic_ns, unix_seconds};
use authentick_proto::antp::client::{
    Accepted, Bounds, Candidate, Check, HeldChain, Inspected, KeyExchange, Negotiated, Negotiation, Offer,
    Progress, SeparateTag, Session, TimeExchange, Wanted,
};
use authentick_proto::antp::kem;
use authentick_proto::antp::state::PENDING_SECONDS;
use authentick_proto::antp::transcript::TimeClaim;
use authentick_report::load::{AntpFigures, AntpHistograms, Cause};
use authentick_wire::antp::{ErrorCode, Suite, SuiteList};
use authentick_wire::limits::{ANTP_PAYLOAD_SIZE_DEFAULT, DATAGRAM_SIZE_MAX};
use authentick_wire::time::{NtpSpan, NtpTime};
use rustls::pki_types::{CertificateDer, ServerName};

use crate::counts::Times;
use crate::plan::Plan;

/// A C1 is replaced at this age.
pub(crate) const C1_RENEW_NS: u64 = 30_000_000_000;
/// A C1 of this age is not sent any more, as it might expire on its way.
const C1_USE_NS: u64 = 55_000_000_000;

const _: () = assert!(C1_RENEW_NS < C1_USE_NS, "there is time to get another one");
const _: () =
    assert!(C1_USE_NS < PENDING_SECONDS as u64 * 1_000_000_000, "the server still opens what is sent");

/// Whatever takes longer is late by the generator's own timeouts, which say so more exactly.
const BOUNDS: Bounds = Bounds {
    round_trip_max: NtpSpan::from_nanos(3_600_000_000_000),
    residence_max: NtpSpan::from_nanos(3_600_000_000_000),
};

/// What all clients of a run have in common.
#[derive(Debug)]
pub(crate) struct Guide {
    pub(crate) suite: Suite,
    pub(crate) replay: bool,
    wanted: Wanted,
    path: PathVerifier,
}

impl Guide {
    /// How `plan` wants ANTP spoken; `roots` are trusted if it names no authorities.
    ///
    /// # Errors
    /// A sentence on what is missing or unknown.
    pub(crate) fn new(plan: &Plan, roots: Option<Roots>) -> Result<Self, String> {
        let antp = plan.antp.ok_or("the plan does not say how ANTP is spoken")?;
        let suite = Suite(antp.suite);
        kem(suite).ok_or_else(|| format!("{suite} is not known here"))?;
        let roots = match &plan.authorities_pem {
            Some(pem) => Roots::from_pem(pem.as_bytes())?,
            None => roots.ok_or("no certificate authorities are trusted; name some")?,
        };
        let name = ServerName::try_from(plan.server_name.clone())
            .map_err(|_| format!("{:?} is no name that a certificate can have", plan.server_name))?;
        let separate = if plan.ntp.is_ipv4() { SeparateTag::Ipv4 } else { SeparateTag::Ipv6 };
        Ok(Guide {
            suite,
            replay: antp.replay,
            wanted: Wanted { fresh: false, separate: antp.separate_tag.then_some(separate) },
            path: PathVerifier::new(&roots, name).map_err(|bad| bad.to_string())?,
        })
    }

    /// What a negotiation offers: the suite alone, and the chain that is `held`.
    pub(crate) fn offer(&self, held: Option<HeldChain>) -> Offer {
        let suites = SuiteList::new(&[self.suite]).expect("one suite makes a list");
        Offer { suites, payload_size_max: ANTP_PAYLOAD_SIZE_DEFAULT, held }
    }

    /// The public key of a server whose chain is good now.
    ///
    /// # Errors
    /// Why it is not to be trusted.
    pub(crate) fn public_key(&self, negotiated: &Negotiated) -> Result<PublicKey, String> {
        let (suite, chain) = (negotiated.suite(), negotiated.chain());
        let chain: Vec<CertificateDer<'_>> = chain.certificates().map(CertificateDer::from).collect();
        self.path.verify(&chain, KeyUse::of(suite), unix_seconds()).map_err(|bad| bad.to_string())?;
        let spki = chain.first().and_then(|leaf| public_key_info(leaf)).ok_or("the leaf is broken")?;
        let kem = kem(suite).ok_or_else(|| format!("{suite} is not known here"))?;
        PublicKey::from_spki(kem, spki).map_err(|bad| bad.to_string())
    }

    /// m5, to be sent now, in the room of an exchange that is of no more use; its size.
    pub(crate) fn ask_in(
        &self,
        exchange: &mut TimeExchange,
        session: &Session,
        now: NtpTime,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> usize {
        session.ask_in(exchange, self.wanted, BOUNDS, now, entropy, out)
    }
}

/// A chain that was judged, and its key.
#[derive(Debug)]
pub(crate) struct Trusted {
    pub(crate) chain: HeldChain,
    pub(crate) key: Arc<PublicKey>,
}

/// What one client keeps.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// C1 and its transcript.
    pub(crate) negotiated: Option<Negotiated>,
    /// The session key and C2, which requests in flight share: what they are answered with may come after another.
    pub(crate) session: Option<Arc<Session>>,
    /// When the newest of these came.
    pub(crate) since_ns: u64,
    /// Requests that are sent again and again.
    pub(crate) static_negotiation: Option<Negotiation>,
    pub(crate) static_exchange: Option<KeyExchange>,
    pub(crate) static_time: Option<TimeExchange>,
}

impl State {
    /// Whether its C1 can be sent.
    pub(crate) fn has_c1(&self, now_ns: u64) -> bool {
        self.negotiated.is_some() && now_ns.saturating_sub(self.since_ns) < C1_USE_NS
    }

    /// Whether there is no C1 that will do for some time to come.
    pub(crate) fn wants_c1(&self, now_ns: u64) -> bool {
        self.negotiated.is_none() || now_ns.saturating_sub(self.since_ns) >= C1_RENEW_NS
    }

    /// A new C1 replaces what there was, and the static m3 made with it.
    pub(crate) fn negotiated(&mut self, negotiated: Negotiated, now_ns: u64) {
        self.negotiated = Some(negotiated);
        self.static_exchange = None;
        self.since_ns = now_ns;
    }

    /// Makes the m3 that is sent again and again with this C1, if that has not been done. That is its public-key work.
    ///
    /// # Errors
    /// If there is no C1, or `key` is of another mechanism.
    pub(crate) fn fix_exchange(&mut self, key: &PublicKey, entropy: &mut Entropy) -> Result<(), Cause> {
        if self.static_exchange.is_none() {
            let (made, _) = self.exchange(key, entropy, &mut [0; DATAGRAM_SIZE_MAX])?;
            self.static_exchange = Some(made);
        }
        Ok(())
    }

    /// Writes m3; its size. It is the static one under a new token, or one of its own if there is none.
    ///
    /// # Errors
    /// If there is no C1, or `key` is of another mechanism.
    ///
    /// # Panics
    /// If `out` is shorter than m3, at most 392 octets.
    pub(crate) fn exchange(
        &self,
        key: &PublicKey,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> Result<(KeyExchange, usize), Cause> {
        let negotiated = self.negotiated.as_ref().ok_or(Cause::NoCookie)?;
        match &self.static_exchange {
            Some(fixed) => Ok(fixed.again(entropy, out)),
            None => negotiated.exchange(key, entropy, out).map_err(|_| Cause::Local),
        }
    }

    /// A new session replaces what there was, and the static m5 made with it.
    pub(crate) fn keyed(&mut self, session: Session, now_ns: u64) {
        self.session = Some(Arc::new(session));
        self.static_time = None;
        self.since_ns = now_ns;
    }

    /// A request that was sent at `sent_ns` showed that its sealed state is good for nothing; `false` if there is a
    /// newer one.
    pub(crate) fn forget(&mut self, sent_ns: u64) -> bool {
        let current = sent_ns >= self.since_ns;
        if current {
            let static_negotiation = self.static_negotiation.take();
            *self = State { static_negotiation, since_ns: self.since_ns, ..State::default() };
        }
        current
    }
}

/// What an operation is to come to.
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
    /// Whether the scheme is named for it, rather than it being what such operations need.
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

/// An operation on its way.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) goal: Goal,
    pub(crate) talk: Talk,
    /// What the client's own cryptography took so far.
    pub(crate) crypto_ns: u64,
    /// How long the network and the server took in each phase so far.
    pub(crate) phases_ns: [u64; 3],
    /// Its time is that of an early packet.
    pub(crate) is_early: bool,
}

/// What a datagram brought.
#[derive(Debug)]
pub(crate) enum Taken {
    /// An early packet: nothing yet.
    Early,
    /// A part of the chain.
    Part,
    /// The whole chain.
    Negotiated(Negotiated),
    /// m4.
    Keyed(Session),
    /// What is m6 if its tag is right.
    Candidate(Candidate),
    /// m6.
    Time(Accepted),
}

impl Operation {
    pub(crate) const fn new(goal: Goal, talk: Talk) -> Self {
        Operation { goal, talk, crypto_ns: 0, phases_ns: [0; 3], is_early: false }
    }

    /// One for a time request that is yet to be written, in the room of one that has ended.
    pub(crate) fn for_time(spare: Option<Box<Operation>>, session: &Arc<Session>) -> Box<Operation> {
        let talk = |exchange| Talk::Time(exchange, Arc::clone(session));
        let Some(mut spare) = spare else {
            return Box::new(Operation::new(Goal::Time, talk(TimeExchange::idle())));
        };
        let exchange = match &mut spare.talk {
            Talk::Time(exchange, _) => std::mem::replace(exchange, TimeExchange::idle()),
            Talk::Negotiation(_) | Talk::KeyExchange(_) => TimeExchange::idle(),
        };
        *spare = Operation::new(Goal::Time, talk(exchange));
        spare
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

    /// Takes a datagram that came at `arrived`. The tag of m6 is not looked at: many are verified together.
    pub(crate) fn take(&mut self, datagram: &[u8], arrived: NtpTime) -> Result<Taken, Check> {
        let begun_ns = monotonic_ns();
        let taken = match &mut self.talk {
            Talk::Negotiation(negotiation) => negotiation.receive(datagram).map(|progress| match progress {
                Progress::More => Taken::Part,
                Progress::Done(negotiated) => Taken::Negotiated(negotiated),
            }),
            Talk::KeyExchange(exchange) => exchange.receive(datagram).map(Taken::Keyed),
            Talk::Time(exchange, session) => {
                return exchange.inspect(datagram, arrived, session.suite()).map(
                    |inspected| match inspected {
                        Inspected::Early => Taken::Early,
                        Inspected::Candidate(candidate) => Taken::Candidate(candidate),
                    },
                );
            }
        };
        self.crypto_ns += monotonic_ns() - begun_ns;
        taken
    }

    /// What is to be verified of a datagram out of which a candidate was made.
    pub(crate) fn claim<'a>(&'a self, datagram: &'a [u8], genuine: &'a mut bool) -> Option<TimeClaim<'a>> {
        match &self.talk {
            Talk::Time(exchange, session) => exchange.claim(datagram, session, genuine),
            Talk::Negotiation(_) | Talk::KeyExchange(_) => None,
        }
    }

    /// The rest of the checks on a candidate, which took `crypto_ns` to verify; also when the time in it came: with the
    /// early packet if that was genuine.
    pub(crate) fn conclude(
        &mut self,
        candidate: &Candidate,
        genuine: bool,
        crypto_ns: u64,
    ) -> Result<(Accepted, NtpTime), Check> {
        let Talk::Time(exchange, _) = &mut self.talk else { return Err(Check::Phase) };
        self.crypto_ns += crypto_ns;
        let accepted = exchange.conclude(candidate, genuine, None)?;
        self.is_early = accepted.is_early;
        Ok((accepted, exchange.sent() + accepted.sample.round_trip))
    }
}

/// The class of a failed check.
pub(crate) const fn cause(check: &Check) -> Cause {
    match check {
        Check::Server(ErrorCode::EXPIRED) => Cause::StateExpired,
        Check::Server(ErrorCode::RATE) => Cause::AntpRate,
        Check::Server(_) => Cause::AntpRefused,
        Check::Suite(_) | Check::Choice(_) | Check::Chunk | Check::Chain => Cause::Negotiation,
        Check::Kiss(_) => Cause::Kiss,
        Check::Tag | Check::Untagged => Cause::BadTag,
        Check::Origin | Check::Duplicate => Cause::BadOrigin,
        Check::Stratum(_) => Cause::BadStratum,
        Check::Leap => Cause::BadLeap,
        _ => Cause::Malformed,
    }
}

/// Times of a step beside its latency.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    crypto: Times,
    phases: [Times; 3],
    sum: Times,
    crypto_ns: u64,
    early: u64,
}

impl Figures {
    /// Counts an operation that was answered.
    pub(crate) fn answered(&mut self, operation: &Operation) {
        self.crypto.record(operation.crypto_ns as i64);
        self.crypto_ns += operation.crypto_ns;
        self.early += u64::from(operation.is_early);
        if operation.goal == Goal::Run {
            for (times, &ns) in self.phases.iter_mut().zip(&operation.phases_ns) {
                times.record(ns as i64);
            }
            self.sum.record(operation.phases_ns.iter().sum::<u64>() as i64);
        }
    }

    /// The same for a record, of a thread that was at work for so many seconds.
    pub(crate) fn stored(&self, thread_seconds: f64) -> AntpFigures {
        let [negotiation, key_exchange, time] = &self.phases;
        let mut figures = AntpFigures {
            client_crypto_seconds: self.crypto_ns as f64 / 1e9,
            thread_seconds,
            early: self.early,
            histograms: AntpHistograms {
                client_crypto_ns: self.crypto.stored(),
                negotiation_ns: negotiation.stored(),
                key_exchange_ns: key_exchange.stored(),
                time_ns: time.stored(),
                phases_ns: self.sum.stored(),
            },
            ..AntpFigures::default()
        };
        figures.summarise();
        figures
    }

    pub(crate) fn clear(&mut self) {
        let Figures { crypto, phases, sum, crypto_ns, early } = self;
        for times in phases.iter_mut().chain([crypto, sum]) {
            times.clear();
        }
        (*crypto_ns, *early) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
