//! The batch responder: datagrams in, responses out, one counted outcome each.
//!
//! A batch goes through the stages in groups, so that authentication can work on many packets side by side:
//!
//! ```text
//! parse -> admit -> open cookies -> verify -> lay out and seal fresh cookies -> build headers -> seal
//! ```
//!
//! Requests with a MAC skip what is about cookies: `mac` verifies them after those of NTS, lays their responses out,
//! and tags them at the end.
//!
//! Requests of ANTP skip it too: [`antp`] opens their state beside the cookies, and tags them at the end.
//!
//! Transmit timestamps are read after everything that can be done before them (RFC 8915 section 5.7 advises so): only
//! the last AEAD pass stands between the stamp and the engine's flush.
//!
//! The pipeline is carried by types. Policy makes `Admitted`, verification turns that into `Authenticated`, and only
//! with the latter can a header with time be built; kisses have no field for time.

mod admit;
pub mod antp;
pub mod bucket;
pub mod interleave;
pub mod limit;
mod mac;
pub mod outcome;
pub mod probe;
mod respond;
pub mod snapshot;
mod verify;

use std::net::IpAddr;
use std::sync::Arc;

use authentick_crypto::{Entropy, OpenBatch, Seal, SealBatch};
use authentick_wire::Reason;
use authentick_wire::datagram::Datagram;
use authentick_wire::header::{Header, Mode, ReferenceId};
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::mac::MacFields;
use authentick_wire::nts::{Authenticator, NtsFields, Span};
use authentick_wire::packet::{Packet, Trailer};
use authentick_wire::time::{NtpSpan, NtpTime};

pub use self::admit::Policy;
use self::admit::{Admitted, Refused};
use self::antp::{AntpMoment, AntpSlot, Ask, Separate};
use self::interleave::Interleave;
use self::mac::MacSlot;
use self::outcome::{Outcome, Outcomes};
use self::probe::{Probe, Stage};
use self::respond::{CookiePlaces, Echo, SealedPart};
use self::snapshot::Snapshot;
use self::verify::{Authenticated, Rejected};
use crate::antp::nonce::Nonces;
use crate::cookie::{self, SessionKeys};
use crate::delays::{Step, pause};
use crate::keyset::KeySet;
use crate::limits::{BATCH_SIZE, GROUP_SIZE};
use crate::symmetric::SymmetricKeys;

/// Where the responder's time comes from. A fixed instant is a clock that stands still.
pub trait Clock {
    /// The time of day.
    fn now(&mut self) -> NtpTime;
    /// Microseconds on a clock that is never set; only differences matter.
    fn monotonic_us(&mut self) -> u64;
}

impl Clock for NtpTime {
    fn now(&mut self) -> NtpTime {
        *self
    }

    fn monotonic_us(&mut self) -> u64 {
        u64::try_from(self.since(NtpTime::ZERO).as_nanos() / 1000).unwrap_or(0)
    }
}

/// What the responder needs to know of the moment: read once per batch.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The state of the server's clock.
    pub snapshot: Snapshot,
    /// The cookie keys; absent where NTS is not served: NTS requests are then answered with NTSN.
    pub keys: Option<&'a KeySet>,
    /// The symmetric keys; absent where none are served: requests with a MAC then name an unknown key.
    pub symmetric: Option<&'a SymmetricKeys>,
    /// ANTP; absent where it is not served: its fields are then ignored, as any unknown ones.
    pub antp: Option<AntpMoment<'a>>,
}

/// Answers batches of datagrams. Each worker owns one; nothing is allocated after it was made.
pub struct Responder {
    policy: Arc<Policy>,
    interleave: Option<Arc<Interleave>>,
    entropy: Entropy,
    /// Those of C1 and C2.
    nonces: Nonces,
    slots: Box<[Slot]>,
    /// Answers of the last batch whose departure is to be remembered.
    departures: Vec<Departure>,
    /// Datagrams of the last batch.
    batch_size: usize,
    outcomes: Outcomes,
    refused_count: u64,
    last_receive: NtpTime,
    /// For each slot, what only requests with a MAC need.
    macs: Box<[MacSlot]>,
    /// For each slot, what only requests of ANTP need.
    antp: Box<[AntpSlot]>,
    separate: Separate,
    /// Which of the symmetric keys' counters are this responder's.
    worker: usize,
}

/// The state of one datagram between stages. It keeps places, not references, so it outlives each stage's borrows.
struct Slot {
    state: State,
    echo: Echo,
    /// The origin timestamp of the request: in interleaved mode, our receive timestamp of the exchange before.
    request_origin: NtpTime,
    /// The receive timestamp of the request.
    request_receive: NtpTime,
    identifier: Option<Span>,
    nts: Option<NtsRequest>,
    /// The MAC of the request, and where that of its response goes.
    mac: Option<MacFields>,
    tag: Option<Span>,
    /// What a request of ANTP asks for.
    antp: Option<Ask>,
    genuine: bool,
    /// The keys out of the cookie, from when it opened to the end of the batch.
    session: SessionKeys,
    part: Option<SealedPart>,
}

/// An answer to a client that asks in interleaved mode.
struct Departure {
    /// Its place in the batch.
    index: usize,
    client: IpAddr,
    receive: NtpTime,
}

#[derive(Clone, Copy)]
enum State {
    /// The end of the way; nothing is sent.
    Silent(Outcome),
    /// A refusal is sent; it needs no time and no proof.
    Kiss(ReferenceId, Outcome),
    /// The same with the four octets behind it that say: not with that key.
    CryptoNak(ReferenceId, Outcome),
    /// Well formed.
    Parsed,
    /// Let through by policy; an NTS request, to be verified.
    Admitted(Admitted),
    /// Let through by policy; a request with a MAC, to be verified.
    Keyed(Admitted),
    /// Let through by policy; a request of ANTP.
    Antp(Admitted),
    /// May be given time.
    Authenticated(Authenticated, Outcome),
}

/// Where the parts of a well-formed NTS request lie.
#[derive(Clone, Copy)]
struct NtsRequest {
    cookie: Span,
    authenticator: Authenticator,
    placeholder_count: usize,
}

impl Default for Slot {
    fn default() -> Self {
        Slot {
            state: State::Silent(Outcome::Malformed),
            echo: Echo { version: 0, mode: Mode::Server, poll: 0, origin: NtpTime::ZERO },
            request_origin: NtpTime::ZERO,
            request_receive: NtpTime::ZERO,
            identifier: None,
            nts: None,
            mac: None,
            tag: None,
            antp: None,
            genuine: false,
            session: SessionKeys::unset(),
            part: None,
        }
    }
}

impl Responder {
    /// A responder under `policy`. Without `interleave`, every answer is in basic mode.
    #[must_use]
    pub fn new(policy: Arc<Policy>, interleave: Option<Arc<Interleave>>, entropy: Entropy) -> Self {
        Responder {
            policy,
            interleave,
            entropy,
            nonces: Nonces::new(),
            slots: (0..GROUP_SIZE).map(|_| Slot::default()).collect(),
            departures: Vec::with_capacity(BATCH_SIZE),
            batch_size: 0,
            outcomes: Outcomes::default(),
            refused_count: 0,
            last_receive: NtpTime::ZERO,
            macs: (0..GROUP_SIZE).map(|_| MacSlot::default()).collect(),
            antp: (0..GROUP_SIZE).map(|_| AntpSlot::default()).collect(),
            separate: Separate::new(),
            worker: 0,
        }
    }

    /// The same as the worker with a number: what it does with symmetric keys is counted there. Two responders that run
    /// at the same time have different numbers.
    #[must_use]
    pub fn with_worker(self, worker: usize) -> Self {
        Responder { worker, ..self }
    }

    /// What became of all datagrams so far.
    #[must_use]
    pub const fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Draws what follows from another source, so that a simulation can compare two histories.
    pub fn set_entropy(&mut self, entropy: Entropy) {
        (self.entropy, self.nonces) = (entropy, Nonces::new());
    }

    /// Puts another policy in force from the next batch on.
    pub fn set_policy(&mut self, policy: Arc<Policy>) {
        self.policy = policy;
    }

    /// Writes a response for each datagram that deserves one, never larger than its request, and counts an outcome for
    /// every datagram. At most [`BATCH_SIZE`] datagrams, which go through the stages in groups: the first-level cache
    /// holds a group and what is known about it, and `probe` sees each group as a batch.
    ///
    /// What [`Responder::early`] names are packets of their own.
    ///
    /// # Panics
    /// If the batch is larger, or a response buffer smaller than its request.
    pub fn respond(
        &mut self,
        moment: Moment<'_>,
        clock: &mut impl Clock,
        probe: &mut impl Probe,
        batch: &mut [Datagram<'_>],
    ) {
        self.begin(moment, clock, probe, batch);
        self.finish(batch);
    }

    /// As [`Responder::respond`], but without the tags of responses whose early packets, [`Responder::early`], can
    /// leave before [`Responder::finish`] computes them.
    ///
    /// # Panics
    /// As [`Responder::respond`].
    pub fn begin(
        &mut self,
        moment: Moment<'_>,
        clock: &mut impl Clock,
        probe: &mut impl Probe,
        batch: &mut [Datagram<'_>],
    ) {
        assert!(batch.len() <= BATCH_SIZE, "an engine's batch is no larger than BATCH_SIZE");
        self.separate.clear();
        self.departures.clear();
        self.batch_size = batch.len();
        for (number, group) in batch.chunks_mut(GROUP_SIZE).enumerate() {
            self.respond_to_group(number * GROUP_SIZE, moment, clock, probe, group);
        }
    }

    /// Answers at most [`GROUP_SIZE`] datagrams, of which the first has the place `first` in its batch.
    fn respond_to_group(
        &mut self,
        first: usize,
        moment: Moment<'_>,
        clock: &mut impl Clock,
        probe: &mut impl Probe,
        batch: &mut [Datagram<'_>],
    ) {
        probe.start(batch);
        self.parse(moment.antp.is_some(), batch);
        probe.end_of(Stage::Parse, batch.len());
        let (nts_count, mac_count, antp_count) = self.admit(clock, batch);
        // Who sends no request of ANTP does not pay for it.
        let antp = moment.antp.filter(|_| antp_count > 0);
        probe.end_of(Stage::Admit, batch.len());
        if nts_count > 0 {
            self.open_cookies(moment.keys, batch);
        }
        let antp_count = antp.map_or(0, |antp| self.open_states(&antp, clock, batch));
        probe.end_of(Stage::Open, nts_count + antp_count);
        let nts_count = if nts_count > 0 { self.verify(batch) } else { 0 };
        let mac_count = if mac_count > 0 { self.verify_macs(moment.symmetric, batch) } else { 0 };
        probe.end_of(Stage::Verify, nts_count + mac_count);
        if let (Some(keys), 1..) = (moment.keys, nts_count) {
            self.seal_fresh_cookies(keys, batch);
        }
        if let Some(antp) = &antp {
            self.lay_out_antp(antp, batch);
        }
        probe.end_of(Stage::Fresh, nts_count + antp_count);
        let built_count = self.build(first, &moment.snapshot, clock, batch);
        probe.end_of(Stage::Build, built_count);
        if nts_count > 0 {
            self.seal(batch);
        }
        if let (Some(keys), 1..) = (moment.symmetric, mac_count) {
            self.tag(keys, batch);
        }
        if let Some(antp) = &antp {
            self.hand_over(first, antp, batch);
            self.tag_antp(first, batch);
        }
        probe.end_of(Stage::Seal, nts_count + mac_count + antp_count);
        self.settle(batch.len());
        probe.finish(batch);
    }

    /// Tells that the engine began to send the last batch's responses at `from` and was done at `to`, so that clients
    /// in interleaved mode can learn it. Responses are taken to have left at even intervals: an estimate, better than
    /// the stamp in the response and no stamp of the kernel's.
    pub fn sent(&mut self, from: NtpTime, to: NtpTime) {
        let Some(interleave) = &self.interleave else { return };
        let step = to.since(from).to_bits().max(0) / (self.batch_size.max(1) as i64);
        for departure in &self.departures {
            let left = from + NtpSpan::from_bits(step * (departure.index as i64 + 1));
            interleave.remember(departure.client, departure.receive, Interleave::transmit_stamp(left));
        }
    }

    fn parse(&mut self, serves_antp: bool, batch: &[Datagram<'_>]) {
        for (slot, datagram) in self.slots.iter_mut().zip(batch) {
            slot.state = match parse_one(slot, serves_antp, datagram) {
                Ok(()) => State::Parsed,
                Err(outcome) => State::Silent(outcome),
            };
        }
    }

    /// Applies the policy; returns how many NTS requests, how many with a MAC and how many of ANTP it let through.
    fn admit(&mut self, clock: &mut impl Clock, batch: &[Datagram<'_>]) -> (usize, usize, usize) {
        let (mut nts_count, mut mac_count, mut antp_count) = (0, 0, 0);
        for (slot, datagram) in self.slots.iter_mut().zip(batch) {
            let State::Parsed = slot.state else { continue };
            let decision =
                self.policy.admit(datagram.source.ip(), || clock.monotonic_us(), &mut self.refused_count);
            slot.state = match decision {
                Ok(admitted) if slot.nts.is_some() => {
                    nts_count += 1;
                    State::Admitted(admitted)
                }
                Ok(admitted) if slot.mac.is_some() => {
                    mac_count += 1;
                    State::Keyed(admitted)
                }
                Ok(admitted) if slot.antp.is_some() => {
                    antp_count += 1;
                    State::Antp(admitted)
                }
                Ok(admitted) => State::Authenticated(verify::plain(admitted), Outcome::Plain),
                Err(Refused::Silently(outcome)) => State::Silent(outcome),
                Err(Refused::Kiss(code, outcome)) => State::Kiss(code, outcome),
            };
        }
        (nts_count, mac_count, antp_count)
    }

    /// Opens the cookies of all NTS requests.
    fn open_cookies(&mut self, keys: Option<&KeySet>, batch: &[Datagram<'_>]) {
        pause(Step::OpenCookies);
        let mut jobs = OpenBatch::new();
        for (slot, datagram) in self.slots.iter_mut().zip(batch) {
            let (State::Admitted(_), Some(nts)) = (slot.state, slot.nts) else { continue };
            slot.genuine = false;
            let cookie = nts.cookie.of(datagram.request);
            let job =
                keys.and_then(|keys| cookie::open_job(keys, cookie, &mut slot.session, &mut slot.genuine));
            match job {
                Some(job) => jobs.push(job),
                None => slot.state = nak(Outcome::NakUnknownKey),
            }
        }
        jobs.run();
        for slot in &mut self.slots[..batch.len()] {
            if let (State::Admitted(_), false) = (slot.state, slot.genuine) {
                slot.state = nak(Outcome::NakCookie);
            }
        }
    }

    /// Verifies all NTS requests whose cookies opened; returns how many may be answered.
    fn verify(&mut self, batch: &mut [Datagram<'_>]) -> usize {
        let mut jobs = OpenBatch::new();
        for (slot, datagram) in self.slots.iter_mut().zip(&mut *batch) {
            let (State::Admitted(_), Some(nts)) = (slot.state, &slot.nts) else { continue };
            match verify::nts_job(datagram.request, &nts.authenticator, &slot.session, &mut slot.genuine) {
                Ok(job) => jobs.push(job),
                Err(rejected) => slot.state = rejected.into(),
            }
        }
        jobs.run();
        let mut count = 0;
        for (slot, datagram) in self.slots.iter_mut().zip(batch) {
            let (State::Admitted(admitted), Some(nts)) = (slot.state, &mut slot.nts) else { continue };
            let earned = verify::nts(
                admitted,
                slot.genuine,
                datagram.request,
                &nts.authenticator,
                slot.session.algorithm(),
                nts.cookie.size(),
            );
            slot.state = match earned {
                Ok(earned) => {
                    nts.placeholder_count += earned.encrypted_placeholder_count;
                    count += 1;
                    State::Authenticated(earned.proof, Outcome::Nts)
                }
                Err(rejected) => rejected.into(),
            };
        }
        count
    }

    /// Lays out the responses to verified NTS requests, and seals a fresh cookie into each place for one.
    fn seal_fresh_cookies(&mut self, keys: &KeySet, batch: &mut [Datagram<'_>]) {
        pause(Step::SealCookies);
        let (key, entropy) = (keys.current(), &mut self.entropy);
        let mut jobs = SealBatch::new();
        for (slot, datagram) in self.slots.iter_mut().zip(batch) {
            let (State::Authenticated(..), Some(nts), Some(identifier)) =
                (slot.state, &slot.nts, slot.identifier)
            else {
                continue;
            };
            let algorithm = slot.session.algorithm();
            //= RFC 8915 section 5.7: one cookie for the one spent, and one for each placeholder.
            slot.part = respond::lay_out_nts(
                datagram.response,
                datagram.request.len(),
                identifier.of(datagram.request),
                algorithm,
                1 + nts.placeholder_count,
                entropy,
            );
            let Some(part) = &slot.part else {
                slot.state = State::Silent(Outcome::NoRoom);
                continue;
            };
            datagram.response_size = part.sealed.end();
            for place in CookiePlaces::new(datagram.response, part, algorithm) {
                jobs.push(cookie::seal_job(key, &slot.session, entropy, place));
            }
        }
        jobs.run();
    }

    /// Writes all headers; returns how many carry time.
    fn build(
        &mut self,
        first: usize,
        snapshot: &Snapshot,
        clock: &mut impl Clock,
        batch: &mut [Datagram<'_>],
    ) -> usize {
        pause(Step::BuildHeaders);
        let now = clock.now();
        let root_dispersion = snapshot.root_dispersion_at(now);
        let mut count = 0;
        for (index, (slot, datagram)) in self.slots.iter_mut().zip(batch).enumerate() {
            let (request, response) = (&*datagram.request, &mut *datagram.response);
            let is_laid_out = match slot.state {
                State::Kiss(..) => false,
                State::Authenticated(..) => slot.part.is_some() || slot.tag.is_some() || slot.antp.is_some(),
                // There is nothing to lay out, or a crypto-NAK, which ends in its own way.
                State::Silent(_)
                | State::CryptoNak(..)
                | State::Parsed
                | State::Admitted(_)
                | State::Keyed(_)
                | State::Antp(_) => true,
            };
            if !is_laid_out {
                let identifier = slot.identifier.map(|identifier| identifier.of(request));
                datagram.response_size = respond::echo_identifier(&mut response[..request.len()], identifier);
            }
            let Some(header) = response.first_chunk_mut::<HEADER_SIZE>() else { continue };
            match slot.state {
                State::Silent(_) | State::Parsed | State::Admitted(_) | State::Keyed(_) | State::Antp(_) => {}
                State::Kiss(code, _) => respond::build_kiss(header, &slot.echo, code),
                State::CryptoNak(code, _) => {
                    respond::build_kiss(header, &slot.echo, code);
                    datagram.response_size = mac::end_crypto_nak(response);
                }
                State::Authenticated(proof, _) if slot.antp.is_some() => {
                    count += 1;
                    let stamps = respond::Stamps { receive: datagram.received, transmit: now };
                    respond::build_header(proof, header, &slot.echo, stamps, snapshot, root_dispersion);
                }
                State::Authenticated(proof, _) => {
                    count += 1;
                    // RFC 9769 section 2: no two receive timestamps of a client are equal.
                    let mut receive = Interleave::receive_stamp(datagram.received);
                    if receive == self.last_receive {
                        receive = receive + NtpSpan::from_bits(2);
                    }
                    self.last_receive = receive;
                    let mut stamps = respond::basic_stamps(receive, now);
                    let mut echo = slot.echo;
                    if let Some(interleave) = &self.interleave
                        && Interleave::asks(slot.request_origin)
                    {
                        let client = datagram.source.ip();
                        self.departures.push(Departure { index: first + index, client, receive });
                        if slot.request_receive != echo.origin
                            && let Some(transmit) = interleave.take(client, slot.request_origin)
                        {
                            echo.origin = slot.request_receive;
                            stamps.transmit = transmit;
                        }
                    }
                    respond::build_header(proof, header, &echo, stamps, snapshot, root_dispersion);
                }
            }
        }
        count
    }

    fn seal(&mut self, batch: &mut [Datagram<'_>]) {
        let mut jobs = SealBatch::new();
        for (slot, datagram) in self.slots.iter().zip(batch) {
            let (State::Authenticated(..), Some(part)) = (slot.state, &slot.part) else { continue };
            let session = &slot.session;
            let (before, rest) = datagram.response.split_at_mut(part.sealed.start());
            let before = &*before;
            let (text, tag) = session
                .algorithm()
                .split_sealed(&mut rest[..part.sealed.size()])
                .expect("the sealed part was laid out with a tag");
            jobs.push(Seal {
                key: session.s2c(),
                nonce: part.nonce.of(before),
                associated: Some(&before[..part.associated_size]),
                text: text.into(),
                tag,
            });
        }
        jobs.run();
    }

    fn settle(&mut self, count: usize) {
        for slot in &mut self.slots[..count] {
            let outcome = match slot.state {
                State::Silent(outcome)
                | State::Kiss(_, outcome)
                | State::CryptoNak(_, outcome)
                | State::Authenticated(_, outcome) => outcome,
                State::Parsed | State::Admitted(_) | State::Keyed(_) | State::Antp(_) => {
                    debug_assert!(false, "a datagram left the stages undecided");
                    Outcome::Malformed
                }
            };
            self.outcomes.count(outcome);
            if slot.nts.is_some() {
                slot.session.wipe();
            }
        }
    }
}

impl From<Rejected> for State {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::Silently(outcome) => State::Silent(outcome),
            Rejected::Nak(outcome) => nak(outcome),
            Rejected::CryptoNak(code, outcome) => State::CryptoNak(code, outcome),
        }
    }
}

const fn nak(outcome: Outcome) -> State {
    State::Kiss(ReferenceId::NTSN, outcome)
}

#[inline(always)]
fn parse_one(slot: &mut Slot, serves_antp: bool, datagram: &Datagram<'_>) -> Result<(), Outcome> {
    slot.nts = None;
    slot.antp = None;
    slot.part = None;
    slot.mac = None;
    slot.tag = None;
    if datagram.truncated {
        return Err(Outcome::Malformed);
    }
    let packet = match Packet::parse(datagram.request) {
        Ok(packet) => packet,
        Err(malformed) if malformed.reason == Reason::Version => return Err(Outcome::Version),
        // Such a MAC is never right, and its sender has no other way to learn that it is too long.
        Err(_) => Packet::with_overlong_mac(datagram.request).ok_or(Outcome::Malformed)?,
    };
    let mode = match packet.mode() {
        Mode::Client => Mode::Server,
        Mode::SymmetricActive => Mode::SymmetricPassive,
        // Answering an answer would let two servers talk for ever.
        Mode::Reserved
        | Mode::SymmetricPassive
        | Mode::Server
        | Mode::Broadcast
        | Mode::Control
        | Mode::Private => return Err(Outcome::NotARequest),
    };
    match packet.trailer() {
        Trailer::None => {}
        Trailer::CryptoNak => return Err(Outcome::NotARequest),
        Trailer::Mac { .. } => slot.mac = MacFields::locate(&packet),
    }
    if slot.mac.is_some_and(|mac| mac.is_ms_sntp(&packet)) {
        return Err(Outcome::MsSntp);
    }
    let header: Header = packet.header();
    slot.echo = Echo { version: header.version, mode, poll: header.poll, origin: header.transmit };
    slot.request_origin = header.origin;
    slot.request_receive = header.receive;
    slot.identifier = None;
    if serves_antp && let Some(ask) = antp::ask_time(&packet) {
        slot.antp = Some(ask);
        return Ok(());
    }
    if packet.has_fields() {
        let fields = NtsFields::locate(&packet).map_err(|_| Outcome::NtsMalformed)?;
        slot.identifier = fields.identifier;
        if fields.is_nts() {
            //= RFC 7822 section 3: fields that need MACs of different algorithms are not combined.
            if slot.mac.is_some() {
                return Err(Outcome::NtsMalformed);
            }
            //= RFC 8915 section 5.7: a request has one identifier, one cookie and one authenticator, in mode 3.
            let (Some(_), Some(cookie), Some(authenticator), Mode::Server) =
                (fields.identifier, fields.cookie, fields.authenticator, mode)
            else {
                return Err(Outcome::NtsMalformed);
            };
            slot.nts =
                Some(NtsRequest { cookie, authenticator, placeholder_count: fields.placeholder_count });
        }
        if fields.has_antp && serves_antp {
            slot.antp = antp::ask(&packet)?;
            //= RFC 7822 section 3: fields that need MACs of different algorithms are not combined.
            if slot.antp.is_some() && slot.nts.is_some() {
                return Err(Outcome::AntpMalformed);
            }
        }
    }
    Ok(())
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder").field("policy", &self.policy).field("outcomes", &self.outcomes).finish()
    }
}

#[cfg(test)]
mod tests;
