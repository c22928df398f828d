//! Requests of ANTP on their way through the stages.
//!
//! m1 is answered in place. All C2 of a group are opened together, and tags are computed after the transmit stamp; in
//! separate-tag mode even they do not stand between the stamp and the way out, as [`Responder::finish`] computes them
//! after the engine has sent what it could. Of m3 only C1 is opened here, which is a look at 40 octets; the public-key
//! work goes to [`KeyExchanges`], whoever that is: threads of their own in a server, a function call in a test.
//!
//! Nothing is kept of any client, and nothing is allocated. Interleaved mode is absent: T3 is covered by the tag of its
//! own response.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use authentick_crypto::gcm::GcmOpenBatch;
use authentick_crypto::kem::SessionKey;
use authentick_wire::antp::{C2_SIZE, ErrorCode, Suite, TimeRequest};
use authentick_wire::datagram::{Datagram, Early};
use authentick_wire::header::Mode;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::packet::Packet;

use super::admit::Admitted;
use super::bucket::Bucket;
use super::limit::Limiter;
use super::outcome::Outcome;
use super::{Clock, Responder, State, verify};
use crate::antp::seconds;
use crate::antp::server::{
    EARLY_PACKET_SIZE, KeyExchange, Plan, Request, Service, Unfit, classify, lay_out, overhead, refuse,
};
use crate::antp::state::{Established, EstablishedText, Pending, key_id};
use crate::antp::state_key::StateKeys;
use crate::antp::transcript::{self, TimeTag};
use crate::limits::{BATCH_SIZE, GROUP_SIZE};

/// What ANTP needs of the moment.
#[derive(Clone, Copy)]
pub struct AntpMoment<'a> {
    /// Private keys, certificates and settings.
    pub service: &'a Service,
    /// The keys that seal C1 and C2.
    pub keys: &'a StateKeys,
    /// How often each prefix may ask for each phase, beside the [`super::Policy`], which is asked first.
    pub limits: &'a AntpLimits,
    /// Where key exchanges go.
    pub exchanges: &'a dyn KeyExchanges,
}

impl fmt::Debug for AntpMoment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AntpMoment").field("service", self.service).field("keys", self.keys).finish()
    }
}

/// Rate limits of the phases, by prefix, each with token buckets of its own; none where absent.
#[derive(Clone, Debug, Default)]
pub struct AntpLimits {
    /// m1.
    pub negotiations: Option<Arc<Limiter>>,
    /// m3 whose C1 opens.
    pub exchanges: Option<Arc<Limiter>>,
    /// The same of all prefixes together.
    pub all_exchanges: Option<Arc<Bucket>>,
    /// m5.
    pub times: Option<Arc<Limiter>>,
}

/// Does public-key work elsewhere.
pub trait KeyExchanges {
    /// Takes over the key exchange that datagram `index` of the batch asks for, or refuses it at once: this neither
    /// waits nor allocates.
    ///
    /// # Errors
    /// If there is no room.
    fn offer(&self, index: usize, exchange: KeyExchange) -> Result<(), Full>;
}

/// There is no room for another key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// What a request of ANTP asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask {
    Negotiation,
    KeyExchange,
    Time {
        suite: Suite,
        wanted: Plan,
    },
    /// What only an error answers.
    Refused(ErrorCode, Outcome),
}

impl Ask {
    fn time(asked: &TimeRequest<'_>) -> Self {
        let wanted = Plan { fresh: asked.wants_fresh, early: asked.wants_early };
        Ask::Time { suite: asked.suite, wanted }
    }
}

/// What a request of ANTP needs between stages, beside its slot.
#[derive(Debug, Default)]
pub(super) struct AntpSlot {
    /// Where C2 is opened.
    text: EstablishedText,
    /// Out of C2.
    established: Option<Established>,
    /// Out of C1.
    pending: Option<Pending>,
    is_early: bool,
}

/// Responses of a batch whose tags come by themselves.
#[derive(Debug)]
pub(super) struct Separate {
    early: Vec<Early>,
    /// For each early packet that has left, or is about to, the key of the tag that follows.
    keys: Vec<SessionKey>,
}

impl Separate {
    pub(super) fn new() -> Self {
        Separate { early: Vec::with_capacity(BATCH_SIZE), keys: Vec::with_capacity(BATCH_SIZE) }
    }

    pub(super) fn clear(&mut self) {
        self.early.clear();
        self.keys.clear();
    }
}

/// [`ask`] for a packet with a time request and nothing else, as nearly all of ANTP are; `None` if it is another.
#[inline(always)]
pub(super) fn ask_time(packet: &Packet<'_>) -> Option<Ask> {
    let request = (packet.mode() == Mode::Client).then(|| TimeRequest::alone(packet.octets()))??;
    Some(Ask::time(&request))
}

/// Looks at a packet with fields of ANTP's types; `None` if it is served as whatever else it is.
pub(super) fn ask(packet: &Packet<'_>) -> Result<Option<Ask>, Outcome> {
    match classify(packet) {
        Ok(Request::Negotiation(..)) => Ok(Some(Ask::Negotiation)),
        Ok(Request::KeyExchange(..)) => Ok(Some(Ask::KeyExchange)),
        Ok(Request::Time(asked)) => Ok(Some(Ask::time(&asked))),
        Err(Unfit::NotAntp) => Ok(None),
        Err(Unfit::Refused(code, outcome)) => Ok(Some(Ask::Refused(code, outcome))),
        Err(Unfit::Silent(outcome)) => Err(outcome),
    }
}

/// C2 of a time request, which ends with it.
fn state_of(request: &[u8]) -> &[u8; C2_SIZE] {
    request.last_chunk().expect("a time request ends with C2")
}

fn admits(limiter: Option<&Arc<Limiter>>, source: IpAddr, clock: &mut impl Clock) -> bool {
    limiter.is_none_or(|limiter| limiter.admit(source, clock.monotonic_us()))
}

fn has_room(bucket: Option<&Arc<Bucket>>, clock: &mut impl Clock) -> bool {
    bucket.is_none_or(|bucket| bucket.admit(clock.monotonic_us()))
}

const RATE: Ask = Ask::Refused(ErrorCode::RATE, Outcome::AntpRate);
const BUSY: Ask = Ask::Refused(ErrorCode::RATE, Outcome::AntpBusy);
const EXPIRED: Ask = Ask::Refused(ErrorCode::EXPIRED, Outcome::AntpExpired);

impl Responder {
    /// Opens the C2 and C1 of all requests, and turns those into refusals whose state does not open or whose prefix
    /// asks too often; returns how many were opened.
    pub(super) fn open_states(
        &mut self,
        antp: &AntpMoment<'_>,
        clock: &mut impl Clock,
        batch: &[Datagram<'_>],
    ) -> usize {
        let limits = antp.limits;
        let mut count = 0;
        for ((slot, place), datagram) in self.slots.iter_mut().zip(&mut self.antp).zip(batch) {
            let (State::Antp(_), Some(ask)) = (slot.state, slot.antp) else { continue };
            let source = datagram.source.ip();
            //= antp#servers-8
            let refusal = match ask {
                Ask::Negotiation => (!admits(limits.negotiations.as_ref(), source, clock)).then_some(RATE),
                Ask::Time { .. } => (!admits(limits.times.as_ref(), source, clock)).then_some(RATE),
                Ask::KeyExchange => {
                    count += 1;
                    place.pending = open_pending(antp, datagram);
                    match place.pending.is_some() {
                        false => Some(EXPIRED),
                        // A prefix that asks too often takes nothing from what there is for all.
                        true if !admits(limits.exchanges.as_ref(), source, clock) => Some(RATE),
                        true => (!has_room(limits.all_exchanges.as_ref(), clock)).then_some(BUSY),
                    }
                }
                Ask::Refused(..) => None,
            };
            if let Some(refusal) = refusal {
                place.pending = None;
                slot.antp = Some(refusal);
            }
        }
        let mut jobs = GcmOpenBatch::new();
        for ((slot, place), datagram) in self.slots.iter().zip(&mut self.antp).zip(batch) {
            let (State::Antp(_), Some(Ask::Time { .. })) = (slot.state, slot.antp) else { continue };
            if let Some(job) = place.text.job(antp.keys, state_of(datagram.request)) {
                jobs.push(job);
            }
        }
        jobs.run();
        for ((slot, place), datagram) in self.slots.iter_mut().zip(&mut self.antp).zip(batch) {
            let (State::Antp(_), Some(Ask::Time { suite, .. })) = (slot.state, slot.antp) else { continue };
            count += 1;
            // A C2 of another suite is somebody's mistake, and of no use to anybody.
            let established = place.text.take(seconds(datagram.received));
            //= antp#servers-5
            place.established = established.filter(|state| state.suite == suite);
            if place.established.is_none() {
                slot.antp = Some(EXPIRED);
            }
        }
        count
    }

    /// Writes all of the responses but headers and tags.
    pub(super) fn lay_out_antp(&mut self, antp: &AntpMoment<'_>, batch: &mut [Datagram<'_>]) {
        for ((slot, place), datagram) in self.slots.iter_mut().zip(&mut self.antp).zip(batch) {
            let (State::Antp(admitted), Some(ask)) = (slot.state, slot.antp) else { continue };
            let out = &mut datagram.response[..datagram.request.len()];
            let laid_out = match ask {
                Ask::Negotiation => match classify_again(datagram.request) {
                    Some(Request::Negotiation(asked, field)) => {
                        let now = seconds(datagram.received);
                        antp.service
                            .negotiate(
                                antp.keys,
                                (now, datagram.source.ip()),
                                (&mut self.nonces, &mut self.entropy),
                                (&asked, field),
                                out,
                            )
                            .map(|size| (size, Outcome::AntpNegotiated))
                    }
                    Some(Request::KeyExchange(..) | Request::Time(_)) | None => {
                        Err(Unfit::Silent(Outcome::AntpMalformed))
                    }
                },
                // It gets its header like the others, and waits for `hand_over`.
                Ask::KeyExchange => Ok((0, Outcome::AntpKeyExchange)),
                Ask::Time { suite, wanted } => {
                    let is_due = key_id(state_of(datagram.request)) != antp.keys.current().id();
                    //= antp#servers-6
                    let wanted = Plan { fresh: wanted.fresh && is_due, ..wanted };
                    let plan = Plan::new(wanted, out.len(), overhead(&datagram.source));
                    place.is_early = plan.early;
                    let (nonces, entropy) = (&mut self.nonces, &mut self.entropy);
                    let fresh = place.established.as_ref().filter(|_| plan.fresh);
                    let fresh = fresh.map(|state| state.seal(antp.keys, nonces, entropy));
                    let early = plan.early.then(|| entropy.array());
                    let outcome = if plan.early { Outcome::AntpSeparateTag } else { Outcome::AntpTime };
                    lay_out(suite, fresh.as_ref(), early.as_ref(), out)
                        .map(|size| (size, outcome))
                        .map_err(|_| Unfit::Silent(Outcome::NoRoom))
                }
                Ask::Refused(code, outcome) => Err(Unfit::Refused(code, outcome)),
            };
            (slot.state, datagram.response_size) = match laid_out {
                Ok((size, outcome)) => (State::Authenticated(verify::antp(admitted), outcome), size),
                Err(unfit) => refusal(admitted, unfit, out),
            };
        }
    }

    /// Hands key exchanges over, with the headers that were built for their answers.
    pub(super) fn hand_over(&mut self, first: usize, antp: &AntpMoment<'_>, batch: &mut [Datagram<'_>]) {
        for (index, ((slot, place), datagram)) in
            self.slots.iter_mut().zip(&mut self.antp).zip(batch).enumerate()
        {
            let (State::Authenticated(proof, _), Some(pending)) = (slot.state, place.pending.take()) else {
                continue;
            };
            let Some(Request::KeyExchange(_, field)) = classify_again(datagram.request) else { continue };
            let Some(header) = datagram.response.first_chunk::<HEADER_SIZE>() else { continue };
            let issued = seconds(datagram.received);
            let exchange = KeyExchange::new(datagram.source, header, issued, pending, field);
            if antp.exchanges.offer(first + index, exchange) == Err(Full) {
                let size = refuse(ErrorCode::RATE, &mut datagram.response[..datagram.request.len()]);
                (slot.state, datagram.response_size) = match size {
                    Ok(size) => (State::Authenticated(proof, Outcome::AntpQueueFull), size),
                    Err(_) => (State::Silent(Outcome::NoRoom), 0),
                };
            }
        }
    }

    /// Computes all tags but those of separate-tag mode, and completes the early packets of that.
    pub(super) fn tag_antp(&mut self, first: usize, batch: &mut [Datagram<'_>]) {
        let slots = self.slots.iter().zip(&mut self.antp).zip(&mut *batch);
        for (index, ((slot, place), datagram)) in slots.enumerate() {
            if !matches!(slot.state, State::Authenticated(..)) {
                place.established = None;
            } else if place.is_early
                && let Some(established) = place.established.take()
            {
                datagram.response.copy_within(..HEADER_SIZE, EARLY_PACKET_SIZE);
                self.separate.early.push(Early { index: first + index, size: EARLY_PACKET_SIZE });
                self.separate.keys.push(established.key.clone());
            }
        }
        let count = batch.len();
        transcript::tag_times(self.antp.iter().zip(batch).filter_map(|(place, datagram)| {
            let key = &place.established.as_ref()?.key;
            let response = &mut datagram.response[..datagram.response_size];
            Some(TimeTag { key, request: datagram.request, response })
        }));
        // Session keys are overwritten when they are dropped.
        //= antp#paper-3
        self.antp[..count].iter_mut().for_each(|place| place.established = None);
    }

    /// Whether nothing is kept of any client whose request was answered: so it is whenever no batch is under way.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        let is_empty = |place: &AntpSlot| place.established.is_none() && place.pending.is_none();
        self.antp.iter().all(is_empty) && self.separate.keys.is_empty()
    }

    /// Packets of the last batch that leave before the responses behind which they lie: those of ANTP's separate-tag
    /// mode.
    #[must_use]
    pub fn early(&self) -> &[Early] {
        &self.separate.early
    }

    /// Computes the tags that [`Responder::begin`] left out, one for each of [`Responder::early`].
    //= antp#separate-1
    pub fn finish(&mut self, batch: &mut [Datagram<'_>]) {
        let mut keys = self.separate.early.iter().zip(&self.separate.keys).peekable();
        for (number, group) in batch.chunks_mut(GROUP_SIZE).enumerate() {
            let first = number * GROUP_SIZE;
            // Early packets stand in the order of their datagrams.
            transcript::tag_times(group.iter_mut().enumerate().filter_map(|(index, datagram)| {
                let (early, key) = keys.next_if(|(early, _)| early.index == first + index)?;
                let response = &mut datagram.response[early.size..][..datagram.response_size];
                Some(TimeTag { key, request: datagram.request, response })
            }));
        }
        self.separate.keys.clear();
    }
}

/// What [`ask`] has seen already.
fn classify_again(request: &[u8]) -> Option<Request<'_>> {
    classify(&Packet::parse(request).ok()?).ok()
}

/// The state out of C1, if it went to where the request comes from, is for its suite, and that is served.
//= antp#servers-4
fn open_pending(antp: &AntpMoment<'_>, datagram: &Datagram<'_>) -> Option<Pending> {
    let Some(Request::KeyExchange(asked, _)) = classify_again(datagram.request) else { return None };
    let source = antp.service.source_prefix(datagram.source.ip());
    let pending = Pending::open(antp.keys, asked.state, &source, seconds(datagram.received))?;
    (pending.suite == asked.suite && antp.service.serves(asked.suite)).then_some(pending)
}

/// The state of a request that does not get what it asks for, and the size of its response without header.
fn refusal(admitted: Admitted, unfit: Unfit, out: &mut [u8]) -> (State, usize) {
    match unfit {
        Unfit::Refused(code, outcome) => match refuse(code, out) {
            Ok(size) => (State::Authenticated(verify::antp(admitted), outcome), size),
            Err(_) => (State::Silent(Outcome::NoRoom), 0),
        },
        Unfit::Silent(outcome) => (State::Silent(outcome), 0),
        Unfit::NotAntp => (State::Silent(Outcome::AntpMalformed), 0),
    }
}
