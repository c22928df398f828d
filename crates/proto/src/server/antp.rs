//! ANTP on its way through the steps.
//!
//! m1 is answered in place. All C2 of a group are opened together, and tags are computed after the transmit stamp; in
//! separate-tag mode even they do not stand between the stamp and the way out, as [`super::Responder::finish`] computes
//! them after the engine has sent what it could. Of m3 only C1 is opened here, which is a look at 40 octets; public-key
//! work goes to [`KeyExchanges`], whoever that is: threads of their own in a server, a function call in a test.
//!
//! Nothing is kept of any client, and nothing is allocated. Interleaved mode is absent: T3 is covered by the tag of its
//! own response.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_crypto::gcm::GcmOpenBatch;
use authentick_crypto::kem::SessionKey;
use authentick_lockfree::Bucket;
use authentick_wire::antp::{C1_SIZE, C2_SIZE, ErrorCode, KeyRequest, Suite, TimeRequest};
use authentick_wire::datagram::{Datagram, Early};
use authentick_wire::header::Mode;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::packet::Packet;

use super::admit::Admitted;
use super::entitled::Entitled;
use super::limit::Limiter;
use super::outcome::Outcome;
use super::uses::Uses;
use super::{Clock, Rejected, Scheme, Slot, Standing};
use crate::antp::nonce::Nonces;
use crate::antp::seconds;
use crate::antp::server::{
    EARLY_PACKET_SIZE, Extras, KeyExchange, Offered, Request, Service, Unfit, classify, lay_out, overhead,
    refuse,
};
use crate::antp::state::{Established, EstablishedText, Pending, key_id};
use crate::antp::state_key::StateKeys;
use crate::antp::transcript::{self, TimeTag};
use crate::limits::{BATCH_SIZE, GROUP_SIZE};
use crate::mutant::{Place, holds};

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
    /// The same by network, so that one network does not use up what there is for all.
    pub network_exchanges: Option<Arc<Limiter>>,
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

/// What a request of ANTP asks for. Like all that a slot keeps, it outlives the borrow of the octets.
#[derive(Clone, Copy, Debug)]
enum Ask {
    /// m1, whose field begins at an octet of the packet.
    Negotiation(Offered, usize),
    /// m3, whose field begins at an octet of the packet.
    KeyExchange(Suite, usize),
    /// m5, which ends with its state.
    Time { suite: Suite, wanted: Extras },
    /// What only an error answers.
    Refused(ErrorCode, Outcome),
    /// m3 or m5 with state under a key that is on its way here.
    Ahead,
}

impl Ask {
    const fn time(asked: &TimeRequest<'_>) -> Self {
        let wanted = Extras { fresh: asked.wants_fresh, early: asked.wants_early };
        Ask::Time { suite: asked.suite, wanted }
    }
}

impl Default for Ask {
    fn default() -> Self {
        EXPIRED
    }
}

/// What ANTP keeps of a group, and of the batch.
pub(super) struct Antp {
    slots: Box<[AntpSlot]>,
    separate: Separate,
    /// Those of C1 and C2.
    nonces: Nonces,
    /// Of C2.
    pub(super) uses: Uses,
}

/// What a request of ANTP needs between the steps.
#[derive(Debug, Default)]
struct AntpSlot {
    ask: Ask,
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
struct Separate {
    early: Vec<Early>,
    /// For each early packet that has left, or is about to, the key of the tag that follows.
    keys: Vec<SessionKey>,
}

/// C2 of a time request, which ends with it.
fn state_of(request: &[u8]) -> &[u8; C2_SIZE] {
    request.last_chunk().expect("a time request ends with C2")
}

/// C1 of a key request, whose field begins at an octet of the packet.
fn pending_state_of(request: &[u8], field: usize) -> &[u8; C1_SIZE] {
    request[field + KeyRequest::STATE_START..].first_chunk().expect("a key request has C1")
}

/// The key that the same was sealed with.
fn pending_key_id(request: &[u8], field: usize) -> u32 {
    let (id, _) = pending_state_of(request, field).split_first_chunk().expect("C1 begins with it");
    u32::from_be_bytes(*id)
}

fn admits(limiter: Option<&Arc<Limiter>>, source: IpAddr, clock: &mut impl Clock) -> bool {
    limiter.is_none_or(|limiter| limiter.admit(source, clock.monotonic_us()))
}

/// Takes a token of each limiter, or of none.
fn all_admit(limiters: [Option<&Arc<Limiter>>; 2], source: IpAddr, clock: &mut impl Clock) -> bool {
    let now_us = clock.monotonic_us();
    let limiters = || limiters.iter().flatten();
    limiters().all(|limiter| limiter.has_room(source, now_us))
        && limiters().all(|limiter| limiter.admit(source, now_us))
}

fn has_room(bucket: Option<&Arc<Bucket>>, clock: &mut impl Clock) -> bool {
    bucket.is_none_or(|bucket| bucket.admit(clock.monotonic_us()))
}

const RATE: Ask = Ask::Refused(ErrorCode::RATE, Outcome::AntpRate);
const BUSY: Ask = Ask::Refused(ErrorCode::RATE, Outcome::AntpBusy);
const EXPIRED: Ask = Ask::Refused(ErrorCode::EXPIRED, Outcome::AntpExpired);

impl Antp {
    pub(super) fn new() -> Self {
        Antp {
            slots: (0..GROUP_SIZE).map(|_| AntpSlot::default()).collect(),
            separate: Separate {
                early: Vec::with_capacity(BATCH_SIZE),
                keys: Vec::with_capacity(BATCH_SIZE),
            },
            nonces: Nonces::new(),
            uses: Uses::new(),
        }
    }

    /// Begins nonces anew, under another prefix.
    pub(super) fn forget_nonces(&mut self) {
        self.nonces = Nonces::new();
    }

    /// Forgets the last batch.
    pub(super) fn begin(&mut self) {
        self.separate.early.clear();
        self.separate.keys.clear();
    }

    /// Takes a packet with a time request and nothing else, as nearly all of ANTP are; `false` if it is another.
    #[inline(always)]
    pub(super) fn claim_time(&mut self, index: usize, packet: &Packet<'_>) -> bool {
        let request = if packet.mode() == Mode::Client { TimeRequest::alone(packet.octets()) } else { None };
        let Some(request) = request else { return false };
        self.slots[index].ask = Ask::time(&request);
        true
    }

    /// Takes a packet with fields of ANTP's types; `false` if it is to be served as whatever else it is.
    pub(super) fn claim(&mut self, index: usize, packet: &Packet<'_>) -> Result<bool, Outcome> {
        let at = |field: &[u8]| packet.octets().len() - field.len();
        self.slots[index].ask = match classify(packet) {
            Ok(Request::Negotiation(asked, field)) => Ask::Negotiation(Offered::from(&asked), at(field)),
            Ok(Request::KeyExchange(asked, field)) => Ask::KeyExchange(asked.suite, at(field)),
            Ok(Request::Time(asked)) => Ask::time(&asked),
            Err(Unfit::NotAntp) => return Ok(false),
            Err(Unfit::Refused(code, outcome)) => Ask::Refused(code, outcome),
            Err(Unfit::Silent(outcome)) => return Err(outcome),
        };
        Ok(true)
    }

    /// Says nothing to any request, as there are no keys yet: who has some has answered it, or will.
    pub(super) fn await_keys(slots: &mut [Slot]) -> usize {
        for slot in slots.iter_mut().filter(|slot| slot.admitted(Scheme::Antp).is_some()) {
            slot.standing = Rejected::Silently(Outcome::AntpKeyAhead).into();
        }
        0
    }

    /// Opens the C2 and C1 of all requests, and turns those into refusals whose C1 does not open or whose prefix asks
    /// too often; with `awaits_keys`, those with state under the next keys get silence. Returns how many were opened.
    pub(super) fn open(
        &mut self,
        antp: &AntpMoment<'_>,
        awaits_keys: bool,
        clock: &mut impl Clock,
        slots: &[Slot],
        batch: &[Datagram<'_>],
    ) -> usize {
        let limits = antp.limits;
        // A client that is refused would negotiate for nothing; its next request is answered.
        let is_ahead = |id: u32| awaits_keys && antp.keys.is_ahead(id);
        let by_source = [limits.exchanges.as_ref(), limits.network_exchanges.as_ref()];
        let mut count = 0;
        for ((slot, own), datagram) in slots.iter().zip(&mut self.slots).zip(batch) {
            let Some(_) = slot.admitted(Scheme::Antp) else { continue };
            let source = datagram.source.ip();
            //= antp#servers-8
            let refusal = match own.ask {
                Ask::Negotiation(..) => {
                    (!admits(limits.negotiations.as_ref(), source, clock)).then_some(RATE)
                }
                Ask::Time { .. } => (!admits(limits.times.as_ref(), source, clock)).then_some(RATE),
                Ask::KeyExchange(suite, field) => {
                    count += 1;
                    own.pending = open_pending(antp, suite, field, datagram);
                    match own.pending.is_some() {
                        false if is_ahead(pending_key_id(datagram.request, field)) => Some(Ask::Ahead),
                        false => Some(EXPIRED),
                        // A prefix or a network that asks too often takes nothing from what there is for all.
                        true if !all_admit(by_source, source, clock) => Some(RATE),
                        true => (!has_room(limits.all_exchanges.as_ref(), clock)).then_some(BUSY),
                    }
                }
                Ask::Refused(..) | Ask::Ahead => None,
            };
            if let Some(refusal) = refusal {
                own.pending = None;
                own.ask = refusal;
            }
        }
        let mut jobs = GcmOpenBatch::new();
        for ((slot, own), datagram) in slots.iter().zip(&mut self.slots).zip(batch) {
            let (Standing::Admitted(_), Scheme::Antp, Ask::Time { .. }) =
                (slot.standing, slot.scheme, own.ask)
            else {
                continue;
            };
            count += 1;
            let state = state_of(datagram.request);
            match own.text.job(antp.keys, state) {
                Some(job) => jobs.push(job),
                None if is_ahead(key_id(state)) => own.ask = Ask::Ahead,
                None => {}
            }
        }
        jobs.run();
        count
    }

    /// Turns those requests into refusals whose C2 did not open, has expired, or is for another suite: such a C2 is
    /// somebody's mistake, and of no use to anybody.
    pub(super) fn verify(&mut self, slots: &[Slot], batch: &[Datagram<'_>]) {
        for ((slot, own), datagram) in slots.iter().zip(&mut self.slots).zip(batch) {
            let (Some(_), Ask::Time { suite, .. }) = (slot.admitted(Scheme::Antp), own.ask) else { continue };
            let established = own.text.take(seconds(datagram.received));
            //= antp#servers-5
            own.established =
                established.filter(|state| holds(Place::EstablishedSuite, state.suite == suite));
            if own.established.is_none() {
                own.ask = EXPIRED;
            }
        }
    }

    /// Writes all of the responses but headers and tags.
    pub(super) fn lay_out(
        &mut self,
        antp: &AntpMoment<'_>,
        entropy: &mut Entropy,
        slots: &mut [Slot],
        batch: &mut [Datagram<'_>],
    ) {
        let (nonces, uses) = (&mut self.nonces, &mut self.uses);
        let opens = |id| antp.keys.find(id).is_some();
        for ((slot, own), datagram) in slots.iter_mut().zip(&mut self.slots).zip(batch) {
            let Some(admitted) = slot.admitted(Scheme::Antp) else { continue };
            let out = &mut datagram.response[..datagram.request.len()];
            let laid_out = match own.ask {
                Ask::Negotiation(offered, field) => {
                    let (now, source) = (seconds(datagram.received), datagram.source.ip());
                    antp.service
                        .negotiate(
                            antp.keys,
                            (now, source),
                            (nonces, entropy),
                            (&offered, &datagram.request[field..]),
                            out,
                        )
                        .map(|size| (size, Outcome::AntpNegotiated))
                }
                // It gets its header like the others, and waits to be handed over.
                Ask::KeyExchange(..) => Ok((0, Outcome::AntpKeyExchange)),
                Ask::Time { suite, wanted } => {
                    let state = state_of(datagram.request);
                    let is_due = key_id(state) != antp.keys.current().id();
                    //= antp#servers-6
                    let wanted = Extras { fresh: wanted.fresh && is_due, ..wanted };
                    let extras = wanted.that_fit(out.len(), overhead(&datagram.source));
                    own.is_early = extras.early;
                    let fresh = own.established.as_ref().filter(|_| extras.fresh);
                    let fresh = fresh.map(|state| state.seal(antp.keys, nonces, entropy));
                    let early = extras.early.then(|| entropy.array());
                    let outcome = if extras.early { Outcome::AntpSeparateTag } else { Outcome::AntpTime };
                    lay_out(suite, fresh.as_ref(), early.as_ref(), out)
                        .map(|size| (size, outcome))
                        .inspect(|_| uses.count(state, opens))
                        .map_err(|_| Unfit::Silent(Outcome::NoRoom))
                }
                Ask::Refused(code, outcome) => Err(Unfit::Refused(code, outcome)),
                Ask::Ahead => Err(Unfit::Silent(Outcome::AntpKeyAhead)),
            };
            (slot.standing, datagram.response_size) = match laid_out {
                Ok((size, outcome)) => (Standing::Entitled(Entitled::antp(admitted), outcome), size),
                Err(unfit) => refusal(admitted, unfit, out),
            };
        }
    }

    /// Hands key exchanges over, computes all tags but those of separate-tag mode, and completes the early packets of
    /// that.
    pub(super) fn seal(
        &mut self,
        first: usize,
        antp: &AntpMoment<'_>,
        slots: &mut [Slot],
        batch: &mut [Datagram<'_>],
    ) {
        self.hand_over(first, antp, slots, batch);
        self.tag(first, slots, batch);
    }

    /// Hands key exchanges over, with the headers that were built for their answers.
    fn hand_over(
        &mut self,
        first: usize,
        antp: &AntpMoment<'_>,
        slots: &mut [Slot],
        batch: &mut [Datagram<'_>],
    ) {
        for (index, ((slot, own), datagram)) in slots.iter_mut().zip(&mut self.slots).zip(batch).enumerate() {
            let (Standing::Entitled(entitled, _), Some(pending), Ask::KeyExchange(_, field)) =
                (slot.standing, own.pending.take(), own.ask)
            else {
                continue;
            };
            let field = &datagram.request[field..];
            let Some(header) = datagram.response.first_chunk::<HEADER_SIZE>() else { continue };
            let issued = seconds(datagram.received);
            let exchange = KeyExchange::new(datagram.source, header, issued, pending, field);
            if antp.exchanges.offer(first + index, exchange) == Err(Full) {
                let size = refuse(ErrorCode::RATE, &mut datagram.response[..datagram.request.len()]);
                (slot.standing, datagram.response_size) = match size {
                    Ok(size) => (Standing::Entitled(entitled, Outcome::AntpQueueFull), size),
                    Err(_) => (Standing::Silent(Outcome::NoRoom), 0),
                };
            }
        }
    }

    /// Computes all tags but those of separate-tag mode, and completes the early packets of that.
    fn tag(&mut self, first: usize, slots: &[Slot], batch: &mut [Datagram<'_>]) {
        for (index, ((slot, own), datagram)) in slots.iter().zip(&mut self.slots).zip(&mut *batch).enumerate()
        {
            if !matches!(slot.standing, Standing::Entitled(..)) {
                own.established = None;
            } else if own.is_early
                && let Some(established) = own.established.take()
            {
                datagram.response.copy_within(..HEADER_SIZE, EARLY_PACKET_SIZE);
                self.separate.early.push(Early { index: first + index, size: EARLY_PACKET_SIZE });
                self.separate.keys.push(established.key.clone());
            }
        }
        let count = batch.len();
        transcript::tag_times(self.slots.iter().zip(batch).filter_map(|(own, datagram)| {
            let key = &own.established.as_ref()?.key;
            let response = &mut datagram.response[..datagram.response_size];
            Some(TimeTag { key, request: datagram.request, response })
        }));
        // Session keys are overwritten when they are dropped.
        //= antp#paper-3
        self.slots[..count].iter_mut().for_each(|own| own.established = None);
    }

    /// See [`super::Responder::is_blank`].
    pub(super) fn is_blank(&self) -> bool {
        let is_empty = |own: &AntpSlot| own.established.is_none() && own.pending.is_none();
        self.slots.iter().all(is_empty) && self.separate.keys.is_empty()
    }

    /// See [`super::Responder::early`].
    pub(super) fn early(&self) -> &[Early] {
        &self.separate.early
    }

    /// See [`super::Responder::finish`].
    //= antp#separate-1
    pub(super) fn finish(&mut self, batch: &mut [Datagram<'_>]) {
        // Nearly every batch: to prepare for tags that do not come would take a sixth of a lone plain request.
        if self.separate.early.is_empty() {
            return;
        }
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

/// The state out of C1, if it went to where the request comes from, is for its suite, and that is served.
//= antp#servers-4
fn open_pending(
    antp: &AntpMoment<'_>,
    suite: Suite,
    field: usize,
    datagram: &Datagram<'_>,
) -> Option<Pending> {
    let source = antp.service.source_prefix(datagram.source.ip());
    let state = pending_state_of(datagram.request, field);
    let pending = Pending::open(antp.keys, state, &source, seconds(datagram.received))?;
    let is_for_it = pending.suite == suite && antp.service.serves(suite);
    holds(Place::PendingSuite, is_for_it).then_some(pending)
}

/// The standing of a request that does not get what it asks for, and the size of its response without header.
fn refusal(admitted: Admitted, unfit: Unfit, out: &mut [u8]) -> (Standing, usize) {
    match unfit {
        Unfit::Refused(code, outcome) => match refuse(code, out) {
            Ok(size) => (Standing::Entitled(Entitled::antp(admitted), outcome), size),
            Err(_) => (Standing::Silent(Outcome::NoRoom), 0),
        },
        Unfit::Silent(outcome) => (Standing::Silent(outcome), 0),
        Unfit::NotAntp => (Standing::Silent(Outcome::AntpMalformed), 0),
    }
}
