//! Phase 3: one request for time, and the bounds within which its answer is believed.
//!
//! The offset that follows from four timestamps is wrong by half the difference of the two ways, and each way takes at
//! least no time: so by at most half the round trip R. R is bounded by E, hence the error by E/2. What this rests on is
//! that the server cannot have known the nonce before T1, and that the client cannot have a valid tag before T3. In
//! separate-tag mode the tag comes later than the time, so T4 counts from the early packet only if it holds the random
//! octets that the tag covers: who delivers a guess of it too early is found out.
//!
//! Many answers are verified together: each is inspected by its exchange, all tags are verified at once, and each
//! exchange concludes. [`TimeExchange::receive`] does so for one.

use authentick_crypto::Entropy;
use authentick_wire::Writer;
use authentick_wire::antp::{
    C2_SIZE, Early, Message, NONCE_SIZE, Suite, TAG_SIZE, TimeRequest, TimeResponse, emit_padding,
};
use authentick_wire::header::Header;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::{NtpSpan, NtpTime};

use super::{Check, Session, inspect, put_header, token};
use crate::antp::transcript::{self, TimeClaim, verify_times};
use crate::client::{Sample, check_clock};
use crate::mutant::{Place, drawn_octets, holds, is_out, is_tag};

const EARLY_PACKET_SIZE: usize = HEADER_SIZE + Early::FIELD_SIZE;

/// Early packets that are kept until the tag shows which of them is genuine.
const EARLY_COUNT_MAX: usize = 4;

/// How long an exchange may take to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// E: the longest round trip without the server's own time. Time is wrong by at most half of it.
    pub round_trip_max: NtpSpan,
    /// The longest time from request to response, the server's own included.
    pub residence_max: NtpSpan,
}

impl Bounds {
    /// Across the Internet: E is one second.
    pub const WAN: Bounds =
        Bounds { round_trip_max: NtpSpan::SECOND, residence_max: NtpSpan::from_nanos(2_000_000_000) };
    /// Within a site: E is 50 ms.
    pub const LAN: Bounds = Bounds {
        round_trip_max: NtpSpan::from_nanos(50_000_000),
        residence_max: NtpSpan::from_nanos(100_000_000),
    };

    /// E lowered to `multiple` times the shortest round trip seen, and never above what it is here.
    #[must_use]
    pub fn lowered(self, shortest: NtpSpan, multiple: i64) -> Self {
        let span = NtpSpan::from_bits(shortest.to_bits().max(0).saturating_mul(multiple.max(1)));
        Bounds { round_trip_max: self.round_trip_max.min(span), ..self }
    }
}

/// How large the headers of IP and UDP are, as two responses must not be larger than one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeparateTag {
    /// 28 octets.
    Ipv4,
    /// 48 octets.
    Ipv6,
}

impl SeparateTag {
    const fn overhead(self) -> usize {
        match self {
            SeparateTag::Ipv4 => 20 + 8,
            SeparateTag::Ipv6 => 40 + 8,
        }
    }
}

/// What a request asks for beside time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// A fresh C2, if the key that sealed ours is on its way out.
    pub fresh: bool,
    /// The tag in a packet of its own.
    pub separate: Option<SeparateTag>,
}

/// What a datagram brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An early packet, which means nothing until its tag comes.
    Early,
    /// Time.
    Accepted(Accepted),
}

/// What a datagram may bring.
#[derive(Clone, Copy, Debug)]
pub enum Inspected {
    /// An early packet, which means nothing until its tag comes.
    Early,
    /// Time, if its tag is right.
    Candidate(Candidate),
}

/// A datagram that is the answer to a request, if it is genuine: it has passed every check that needs no key.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    header: Header,
    /// T4.
    arrived: NtpTime,
    is_early: bool,
    /// A fresh C2 that was asked for.
    fresh: Option<[u8; C2_SIZE]>,
}

/// Time that passed every check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// What the server said.
    pub header: Header,
    /// Offset and delays. The clock is to be set by the offset, from whatever it shows then: time goes on since T4.
    pub sample: Sample,
    /// Whether T4 is the arrival of an early packet.
    pub is_early: bool,
    /// Whether a fresh C2 came and is kept.
    pub is_fresh: bool,
}

impl Accepted {
    /// The most by which the offset is wrong: half the round trip.
    #[must_use]
    pub const fn error_max(&self) -> NtpSpan {
        NtpSpan::from_bits((self.sample.delay.to_bits() + 1) / 2)
    }
}

/// A time request that waits for its answer.
#[derive(Clone, Debug)]
pub struct TimeExchange {
    token: NtpTime,
    request: Vec<u8>,
    wanted: Wanted,
    sent: NtpTime,
    bounds: Bounds,
    answered: bool,
    /// Early packets and their arrivals, the first one first.
    early: Vec<([u8; EARLY_PACKET_SIZE], NtpTime)>,
}

impl Session {
    /// Writes m5 to `out` and returns its size. `now` is read just before, on a clock that is not set until the answer
    /// is here; arrivals are read on the same.
    ///
    /// # Panics
    /// If `out` is shorter than the request, at most 304 octets.
    pub fn ask(
        &self,
        wanted: Wanted,
        bounds: Bounds,
        now: NtpTime,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> (TimeExchange, usize) {
        let mut exchange = TimeExchange::idle();
        let size = self.ask_in(&mut exchange, wanted, bounds, now, entropy, out);
        (exchange, size)
    }

    /// The same in the room of an exchange that is of no more use; returns the size alone.
    ///
    /// # Panics
    /// If `out` is shorter than the request, at most 304 octets.
    pub fn ask_in(
        &self,
        exchange: &mut TimeExchange,
        wanted: Wanted,
        bounds: Bounds,
        now: NtpTime,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> usize {
        let token = token(entropy);
        let nonce = if is_out(Place::Nonce) { [0; NONCE_SIZE] } else { entropy.array() };
        let nonce = drawn_octets(nonce, token.to_bits());
        let request = TimeRequest {
            suite: self.suite,
            wants_fresh: wanted.fresh,
            wants_early: wanted.separate.is_some(),
            nonce: &nonce,
            state: &self.state,
        };
        const ROOM: &str = "the buffer holds a time request";
        let mut writer = Writer::new(out);
        put_header(&mut writer, token);
        emit_padding(&mut writer, padding_size(wanted)).expect(ROOM);
        request.emit(&mut writer).expect(ROOM);
        let size = writer.offset();
        exchange.begin(token, &out[..size], wanted, bounds, now);
        size
    }
}

/// A client that falls back to plain NTP, as no client of this profile does. See [`Place::Untagged`].
fn untagged(datagram: &[u8], arrived: NtpTime) -> Inspected {
    let header = Header::parse(datagram.first_chunk().expect("a response has a header"));
    Inspected::Candidate(Candidate { header, arrived, is_early: false, fresh: None })
}

/// What two responses take more than one request.
fn padding_size(wanted: Wanted) -> usize {
    let Some(separate) = wanted.separate else { return 0 };
    let follow_up = EARLY_PACKET_SIZE + TimeResponse::field_size(wanted.fresh);
    EARLY_PACKET_SIZE + follow_up + separate.overhead() - HEADER_SIZE - TimeRequest::FIELD_SIZE
}

impl TimeExchange {
    /// One that waits for no answer: room for one that does.
    #[must_use]
    pub const fn idle() -> Self {
        TimeExchange {
            token: NtpTime::ZERO,
            request: Vec::new(),
            wanted: Wanted { fresh: false, separate: None },
            sent: NtpTime::ZERO,
            bounds: Bounds::LAN,
            answered: true,
            early: Vec::new(),
        }
    }

    fn begin(&mut self, token: NtpTime, request: &[u8], wanted: Wanted, bounds: Bounds, sent: NtpTime) {
        self.request.clear();
        self.request.extend_from_slice(request);
        self.early.clear();
        (self.token, self.wanted, self.bounds, self.sent, self.answered) =
            (token, wanted, bounds, sent, false);
    }

    /// Writes the same m5 once more, under a fresh token and with the same nonce; it is sent at `now`. Its answer has a
    /// tag of its own, as the token is under it. No client does that; it is a load.
    ///
    /// # Panics
    /// If `out` is shorter than the request, at most 304 octets.
    pub fn again(&self, now: NtpTime, entropy: &mut Entropy, out: &mut [u8]) -> (Self, usize) {
        let mut again = TimeExchange::idle();
        let size = self.again_in(&mut again, now, entropy, out);
        (again, size)
    }

    /// The same in the room of an exchange that is of no more use; returns the size alone.
    ///
    /// # Panics
    /// If `out` is shorter than the request, at most 304 octets.
    pub fn again_in(
        &self,
        again: &mut TimeExchange,
        now: NtpTime,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> usize {
        let (token, size) = (token(entropy), self.request.len());
        let out = &mut out[..size];
        out.copy_from_slice(&self.request);
        put_header(&mut Writer::new(out), token);
        again.begin(token, out, self.wanted, self.bounds, now);
        size
    }

    /// The random number by which the request is found when its answer comes.
    #[must_use]
    pub const fn token(&self) -> NtpTime {
        self.token
    }

    /// When the request was sent.
    #[must_use]
    pub const fn sent(&self) -> NtpTime {
        self.sent
    }

    /// Takes a datagram that came at `arrived`. `session` is the one that asked; a fresh C2 goes into it.
    ///
    /// # Errors
    /// On a datagram that fails a check. As long as its tag is not right the exchange keeps waiting; what is tagged and
    /// fails has used it up.
    pub fn receive(
        &mut self,
        datagram: &[u8],
        arrived: NtpTime,
        session: &mut Session,
    ) -> Result<Event, Check> {
        let candidate = match self.inspect(datagram, arrived, session.suite)? {
            Inspected::Early => return Ok(Event::Early),
            Inspected::Candidate(candidate) => candidate,
        };
        let mut genuine = false;
        if let Some(claim) = self.claim(datagram, session, &mut genuine) {
            verify_times(&mut [claim]);
        }
        if let Some((head, tag)) = datagram.split_last_chunk::<TAG_SIZE>() {
            genuine = is_tag(genuine, tag, || transcript::time(&session.key, &self.request, head).to_vec());
        }
        self.conclude(&candidate, genuine, Some(session)).map(Event::Accepted)
    }

    /// The checks of [`TimeExchange::receive`] that need no key; keeps early packets. `suite` is that of the session
    /// that asked.
    ///
    /// # Errors
    /// On a datagram that fails a check: the exchange keeps waiting.
    pub fn inspect(&mut self, datagram: &[u8], arrived: NtpTime, suite: Suite) -> Result<Inspected, Check> {
        let (header, found) = match inspect(datagram, self.token, self.answered) {
            Err(Check::Untagged) if is_out(Place::Untagged) => return Ok(untagged(datagram, arrived)),
            inspected => inspected?,
        };
        let (early, response) = match found.message {
            Message::TimeResponse { early, response } => (early, response),
            Message::Early(early) => return self.keep(&early, datagram, arrived, suite),
            Message::Error(error) => return Err(Check::Server(error.code)),
            _ => return Err(Check::Phase),
        };
        //= antp#clients-5
        if !holds(Place::TimeSuite, response.suite == suite) {
            return Err(Check::Suite(response.suite));
        }
        let repeated = early.and_then(|_| datagram.first_chunk::<EARLY_PACKET_SIZE>());
        //= antp#separate-2
        let is_it = |kept: &[u8; EARLY_PACKET_SIZE], it| holds(Place::EarlyMatch, kept == it);
        let first = repeated.and_then(|it| self.early.iter().find(|(kept, _)| is_it(kept, it)));
        Ok(Inspected::Candidate(Candidate {
            header,
            arrived: first.map_or(arrived, |(_, early)| *early),
            is_early: first.is_some(),
            fresh: response.fresh.copied().filter(|_| self.wanted.fresh),
        }))
    }

    /// What is to be verified of `datagram`, out of which a candidate was made; `session` is the one that asked. `None`
    /// if it is too short for a tag, which no candidate is.
    #[must_use]
    pub fn claim<'a>(
        &'a self,
        datagram: &'a [u8],
        session: &'a Session,
        genuine: &'a mut bool,
    ) -> Option<TimeClaim<'a>> {
        let (response_head, tag) = datagram.split_last_chunk::<TAG_SIZE>()?;
        Some(TimeClaim { key: &session.key, request: &self.request, response_head, tag, genuine })
    }

    /// The rest of the checks, after the claim on the candidate's datagram was verified and found `genuine` or not. A
    /// fresh C2 goes into `session`, which is the one that asked; without it, it is dropped.
    ///
    /// # Errors
    /// On a check that fails. As long as no tag is right the exchange keeps waiting; what is tagged and fails has used
    /// it up.
    //= antp#clients-5
    pub fn conclude(
        &mut self,
        candidate: &Candidate,
        genuine: bool,
        session: Option<&mut Session>,
    ) -> Result<Accepted, Check> {
        if !holds(Place::AntpDuplicate, !self.answered) {
            return Err(Check::Duplicate);
        }
        if !holds(Place::TimeTag, genuine) {
            return Err(Check::Tag);
        }
        // No other response to this request is genuine.
        self.answered = true;
        let Candidate { header, arrived, is_early, fresh } = candidate;
        let mut is_fresh = false;
        if let (Some(session), Some(fresh)) = (session, fresh) {
            session.state = *fresh;
            is_fresh = true;
        }
        let sample = Sample::new(header, self.sent, *arrived);
        let accepted = Accepted { header: *header, sample, is_early: *is_early, is_fresh };
        self.judge(&accepted).map(|()| accepted)
    }

    /// Keeps an early packet until the tag comes. What is not of this exchange is not kept, and neither is a flood.
    fn keep(
        &mut self,
        early: &Early<'_>,
        datagram: &[u8],
        arrived: NtpTime,
        suite: Suite,
    ) -> Result<Inspected, Check> {
        if self.wanted.separate.is_none() {
            return Err(Check::Phase);
        }
        if early.suite != suite {
            return Err(Check::Suite(early.suite));
        }
        match datagram.try_into() {
            Ok(packet) if self.early.len() < EARLY_COUNT_MAX => {
                self.early.push((packet, arrived));
                Ok(Inspected::Early)
            }
            // There is something else before the early field, which no server of this profile sends; or a flood.
            Ok(_) | Err(_) => Err(Check::Duplicate),
        }
    }

    fn judge(&self, accepted: &Accepted) -> Result<(), Check> {
        let Accepted { header, sample, .. } = accepted;
        if !holds(Place::AntpTimestamps, !header.receive.is_zero() && !header.transmit.is_zero()) {
            return Err(Check::Timestamps);
        }
        if !holds(Place::Order, header.transmit.since(header.receive) >= NtpSpan::ZERO) {
            return Err(Check::Order);
        }
        //= antp#clients-6
        let is_within = (NtpSpan::ZERO..=self.bounds.round_trip_max).contains(&sample.delay);
        if !holds(Place::RoundTrip, is_within) {
            return Err(Check::RoundTrip(sample.delay));
        }
        if !holds(Place::Residence, sample.round_trip <= self.bounds.residence_max) {
            return Err(Check::Residence(sample.round_trip));
        }
        Ok(check_clock(header)?)
    }
}
