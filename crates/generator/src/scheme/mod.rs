//! What load is offered to a server. Each scheme is one file here, with one object for what is special about it.
//!
//! A scheme is added by its name in [`Scheme`], by an entry in the list `schemes`, and by its file.

mod antp;
mod ke;
mod mac;
mod mix;
mod nts;
mod plain;

use authentick_crypto::{OpenBatch, SealBatch};
use authentick_proto::antp::client as antp_client;
use authentick_proto::client::{
    Candidate, Check, Exchange, MacCandidate, NtsSession, Response, Unsealed, Unsound,
};
use authentick_report::load::{AntpFigures, Cause, Operation};
use authentick_wire::header::{Header, ReferenceId};
use authentick_wire::time::NtpTime;
use serde::{Deserialize, Serialize};

pub(crate) use self::antp::State;
use self::antp::{Conversation, Taken};
pub use self::antp::{Guide, Judge, UnknownSuite};
use crate::arrivals::Inspected;
use crate::client::Client;
use crate::core::{Missing, Settings};
use crate::flight::{Flight, Request};
use crate::outbox::Unfinished;
use crate::prepare::Provision;
use crate::workload::{Arrived, Call, Workload};
use crate::{Buffer, Clock};

/// The load that is offered to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// NTP without authentication.
    Plain,
    /// NTP under a symmetric key, which all clients share.
    Mac,
    /// NTS: transfers by clients that keep keys and cookies, and exchange keys when they have none.
    Nts,
    /// Key exchanges alone.
    Ke,
    /// Key exchanges, each followed by transfers.
    Mix {
        /// How many transfers follow a key exchange.
        transfers: u32,
        /// Whether they share one cookie, as in the NTS study.
        same_cookie: bool,
        /// How many follow one of the background; absent: as many. With none, its exchanges hold no client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        background_transfers: Option<u32>,
    },
    /// Phase 1 of ANTP: m1 and m2, until the certificate chain is complete.
    AntpNegotiate,
    /// Phase 2 of ANTP: m3 and m4, by clients that renew their C1 in time.
    AntpExchange,
    /// Phase 3 of ANTP: m5 and m6, by clients that have their sessions before the load.
    Antp,
    /// All three phases, one after the other, as of a client that knows nothing yet.
    AntpFull,
}

/// The properties of a scheme that do not depend on a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// Its own operation.
    pub principal: Operation,
    /// The accompanying operation.
    pub accompanying: Operation,
    /// Whether datagrams are measured, and key exchanges accompany them; `false`: the other way round.
    pub measures_transfers: bool,
    /// Whether there are key exchanges over TLS.
    pub exchanges_keys: bool,
    /// Whether it is one of ANTP's.
    pub is_antp: bool,
    /// What clients need before the load.
    pub provision: Option<Provision>,
    /// With so many requests in flight in one thread no operation begins.
    pub flight_count_max: usize,
}

/// Passes the list of schemes to the macro that is named first: each scheme with the object that implements it.
macro_rules! schemes {
    ($then:ident $(, $($rest:tt)*)?) => {
        $then! {
            [
                Plain: plain::Plain,
                Mac: mac::Mac,
                Nts: nts::Nts,
                Ke: ke::Ke,
                Mix: mix::Mix,
                AntpNegotiate: antp::AntpNegotiate,
                AntpExchange: antp::AntpExchange,
                Antp: antp::AntpTime,
                AntpFull: antp::AntpFull,
            ]
            $($($rest)*)?
        }
    };
}

/// Calls a method of the scheme's object.
macro_rules! dispatch {
    ([$($name:ident: $object:ty,)+] $speaker:expr, $scheme:ident => $call:expr) => {
        match $speaker {
            $($crate::scheme::Speaker::$name($scheme) => $call,)+
        }
    };
}

macro_rules! define {
    ([$($name:ident: $object:ty,)+]) => {
        /// The scheme's object.
        #[derive(Debug)]
        pub(crate) enum Speaker {
            $($name($object),)+
        }

        impl Speaker {
            /// The object for a load with these settings.
            ///
            /// # Errors
            /// What they lack.
            pub(crate) fn new(settings: &mut Settings) -> Result<Self, Missing> {
                Ok(match settings.scheme {
                    $(Scheme::$name { .. } => Speaker::$name(<$object>::new(settings)?),)+
                })
            }
        }

        impl Scheme {
            /// What is special about it.
            #[must_use]
            pub const fn nature(self) -> &'static Nature {
                match self {
                    $(Scheme::$name { .. } => &<$object as Protocol>::NATURE,)+
                }
            }
        }
    };
}

pub(crate) use {dispatch, schemes};

schemes!(define);

impl Scheme {
    /// Whether operations of the background are of clients: key exchanges whose keys nobody uses are not.
    #[must_use]
    pub const fn has_background_clients(self) -> bool {
        !matches!(self, Scheme::Ke | Scheme::Mix { background_transfers: Some(0), .. })
    }

    /// Whether the server proves with certificates who it is.
    #[must_use]
    pub const fn needs_roots(self) -> bool {
        self.nature().exchanges_keys || self.nature().is_antp
    }
}

/// Whether an operation has begun; if not, why: a cause that [`Cause::is_skip`] names.
pub(crate) type Begun = Result<(), Cause>;

/// What differs from scheme to scheme. The defaults are those of plain requests for time, or of requests under NTS
/// where there are key exchanges.
pub(crate) trait Protocol: Sized {
    /// What is special about it.
    const NATURE: Nature;

    /// The object for a load with these settings.
    fn new(settings: &mut Settings) -> Result<Self, Missing>;

    /// A step begins.
    fn start(&mut self) {}

    /// Whether a client has what operations need.
    fn is_prepared(&self, _: &Client, _now_ns: u64) -> bool {
        true
    }

    /// Begins to get what a client needs before the load; `false` if it needs nothing now.
    fn prepare(&mut self, _: &mut Call<'_, impl Clock>, _client: u32, _now_ns: u64) -> bool {
        false
    }

    /// Begins what a client was found to need when the last operation began; `false` if that is nothing.
    fn catch_up(&mut self, _: &mut Call<'_, impl Clock>) -> bool {
        false
    }

    /// Begins one of the scheme's own operations, of some client of a group.
    fn begin(&mut self, call: &mut Call<'_, impl Clock>, measured: bool, intended_ns: u64) -> Begun;

    /// Completes the requests in these buffers (seals or tags them), side by side.
    fn finish<'a>(&self, load: &Workload, buffers: impl Iterator<Item = &'a mut Buffer>) {
        if Self::NATURE.exchanges_keys {
            seal(load, buffers);
        }
    }

    /// Makes all checks that need no key on a datagram that came `at`, with the origin of the request.
    fn inspect(&self, asked: &mut Asked, octets: &[u8], at: NtpTime, clock: &impl Clock) -> Verdict {
        match asked {
            Asked::Ntp(exchange) => Verdict::inspected(exchange.inspect(octets), Found::Ntp),
            Asked::Antp(conversation) => conversation.take(octets, at, clock),
        }
    }

    /// Opens or verifies the datagrams that may be answers, side by side; returns how long each took, if it is counted.
    fn verify<'a>(
        &self,
        load: &Workload,
        candidates: impl Iterator<Item = (&'a mut [u8], &'a mut Inspected)>,
        _: &impl Clock,
    ) -> u64 {
        if Self::NATURE.exchanges_keys {
            open(load, candidates);
        }
        0
    }

    /// A request was answered in time.
    fn answered(&mut self, call: &mut Call<'_, impl Clock>, flight: Flight, answer: Answer, came: Arrived) {
        let Answer::Time(header) = answer else { return };
        call.load.time_came(&flight, &header, came, call.clock);
        self.datagram_ended(call, flight.request.client, flight.request.principal, came.now.ns);
    }

    /// A request showed that its client's keys or sealed state are useless.
    fn outdated(&mut self, _: &mut Call<'_, impl Clock>, _: Outdated, _now_ns: u64) {}

    /// A request has ended for its client, answered or not.
    fn datagram_ended(
        &mut self,
        call: &mut Call<'_, impl Clock>,
        client: u32,
        _principal: bool,
        _now_ns: u64,
    ) {
        call.load.operation_ended(client);
    }

    /// A key exchange has brought keys; its client, if it has one, has them already.
    fn established(&mut self, call: &mut Call<'_, impl Clock>, exchange: &crate::Exchange) {
        if exchange.principal {
            call.load.streams.operation_ended(exchange.measured);
        }
    }

    /// Times of the step beside its latency, of a thread that was at work for so many seconds.
    fn figures(&self, _seconds: f64) -> Option<AntpFigures> {
        None
    }
}

/// What was asked.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Time, by NTP with or without NTS or a MAC.
    Ntp(Exchange),
    /// Something of ANTP.
    Antp(Box<Conversation>),
}

impl Asked {
    /// The transmit timestamp of the request.
    pub(crate) fn transmit(&self) -> u64 {
        match self {
            Asked::Ntp(exchange) => exchange.transmit().to_bits(),
            Asked::Antp(conversation) => conversation.token().to_bits(),
        }
    }

    /// The rest of the checks, on a datagram that was verified, which took `crypto_ns` if that is counted. `session` is
    /// the one that the request was made with.
    pub(crate) fn conclude(
        &mut self,
        inspected: &Inspected,
        octets: &mut [u8],
        session: Option<&mut NtsSession>,
        crypto_ns: u64,
    ) -> Verdict {
        let genuine = inspected.genuine;
        match (self, &inspected.candidate) {
            (Asked::Ntp(exchange), Found::Ntp(candidate)) => {
                Verdict::concluded(exchange.conclude(candidate, genuine, octets, session))
            }
            (Asked::Ntp(exchange), Found::Mac(candidate)) => {
                Verdict::concluded(exchange.conclude_mac(candidate, genuine))
            }
            (Asked::Antp(conversation), Found::Antp(candidate)) => {
                conversation.conclude(candidate, genuine, crypto_ns)
            }
            (Asked::Antp(_), Found::Ntp(_) | Found::Mac(_)) | (Asked::Ntp(_), Found::Antp(_)) => {
                Verdict::Early
            }
        }
    }
}

/// What a datagram is, if it is genuine.
#[derive(Debug)]
pub(crate) enum Found {
    /// The answer to a request under NTS, or to a plain one.
    Ntp(Candidate),
    /// To a request with a MAC.
    Mac(MacCandidate),
    /// To a time request of ANTP.
    Antp(antp_client::Candidate),
}

/// The result of an answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Time.
    Time(Header),
    /// Something of ANTP.
    Antp(Taken),
}

/// The result of the checks on a datagram with the origin of a request in flight.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Undecided, until another datagram has come.
    Early,
    /// It may be the answer.
    Candidate(Found),
    /// It is the answer; the time when it came, if that differs from the datagram's.
    Answer(Answer, Option<NtpTime>),
    /// It failed a check.
    Refused {
        /// The class of the check.
        cause: Cause,
        /// The server says that the client's keys or sealed state are useless.
        is_outdated: bool,
    },
}

impl Verdict {
    fn inspected<T>(inspected: Result<T, Check>, found: fn(T) -> Found) -> Self {
        inspected.map_or_else(Verdict::refused, |candidate| Verdict::Candidate(found(candidate)))
    }

    fn concluded(concluded: Result<Response, Check>) -> Self {
        concluded
            .map_or_else(Verdict::refused, |response| Verdict::Answer(Answer::Time(response.header), None))
    }

    fn refused(check: Check) -> Self {
        let cause = cause(check);
        // A server that cannot open the cookies of this session opens none of them.
        Verdict::Refused { cause, is_outdated: cause == Cause::Ntsn }
    }
}

/// A request that showed that what it was made with is useless.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outdated {
    pub(crate) client: u32,
    /// The number of its client's keys.
    pub(crate) epoch: u32,
    /// When it left.
    pub(crate) sent_ns: u64,
}

/// The class of a failed check.
fn cause(check: Check) -> Cause {
    match check {
        Check::Kiss(ReferenceId::NTSN) => Cause::Ntsn,
        Check::Kiss(_) => Cause::Kiss,
        Check::CryptoNak(_) => Cause::CryptoNak,
        Check::Authenticator | Check::Tag | Check::Identifier | Check::KeyId(_) => Cause::BadTag,
        Check::Origin | Check::Duplicate => Cause::BadOrigin,
        Check::Clock(Unsound::Stratum(_)) => Cause::BadStratum,
        Check::Clock(Unsound::Leap) => Cause::BadLeap,
        _ => Cause::Malformed,
    }
}

/// A transfer of `client`; building its request began at `begun_ns`.
fn transfer(load: &Workload, exchange: Exchange, client: u32, times_ns: [u64; 2]) -> Request {
    let [intended_ns, begun_ns] = times_ns;
    let principal = load.settings.scheme.nature().measures_transfers;
    let epoch = load.roster[client].epoch();
    Request { asked: Asked::Ntp(exchange), client, epoch, principal, intended_ns, begun_ns }
}

/// Writes a request under NTS, with the oldest cookie once more if it is `replayed`.
fn push_sealed(call: &mut Call<'_, impl Clock>, index: u32, intended_ns: u64, replayed: bool) -> Begun {
    let begun_ns = call.clock.monotonic_ns();
    let load = &mut *call.load;
    let client = &mut load.roster[index];
    // Requests in flight will bring a cookie each.
    let expected_count = client.outstanding as usize;
    let session = client.session.as_mut().ok_or(Cause::NoCookie)?;
    let made = match replayed {
        true => Exchange::nts_replayed(session, &mut load.entropy, call.out),
        false => Exchange::nts_among(session, expected_count, &mut load.entropy, call.out),
    };
    let (exchange, unsealed): (Exchange, Unsealed) = made.map_err(|_| Cause::NoCookie)?;
    let request = transfer(load, exchange, index, [intended_ns, begun_ns]);
    load.push(request, unsealed.size(), Some(Unfinished::Sealed(unsealed)), false);
    Ok(())
}

/// Seals requests under NTS side by side.
fn seal<'a>(load: &Workload, buffers: impl Iterator<Item = &'a mut Buffer>) {
    let mut batch = SealBatch::new();
    for (pending, out) in load.outbox.pending.iter().zip(buffers) {
        // A session that was given up since is still known.
        if let (Some(Unfinished::Sealed(unsealed)), Some(request)) = (&pending.unfinished, &pending.request)
            && let Some(session) = load.roster[request.client].session_of(request.epoch)
        {
            batch.push(unsealed.job(session, out));
        }
    }
    batch.run();
}

/// Opens answers under NTS side by side.
fn open<'a>(load: &Workload, candidates: impl Iterator<Item = (&'a mut [u8], &'a mut Inspected)>) {
    let mut batch = OpenBatch::new();
    for (datagram, Inspected { client, epoch, candidate, genuine, .. }) in candidates {
        if let Found::Ntp(candidate) = candidate
            && let Some(session) = load.roster[*client].session_of(*epoch)
            && let Some(job) = candidate.job(datagram, session, genuine)
        {
            batch.push(job);
        }
    }
    batch.run();
}
