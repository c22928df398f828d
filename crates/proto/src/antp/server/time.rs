//! m5 and m6, many at a time.

use arrayvec::ArrayVec;
use authentick_crypto::Entropy;
use authentick_wire::Writer;
use authentick_wire::antp::{
    C2_SIZE, EARLY_SIZE, Early, ErrorCode, Suite, TAG_SIZE, TimeRequest, TimeResponse,
};
use authentick_wire::datagram::Datagram;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::packet::Packet;
use authentick_wire::time::NtpTime;

use super::{Instant, Outcome, Reply, Request, classify, emit_header, overhead, refuse};
use crate::antp::state::{Established, key_id};
use crate::antp::state_key::StateKeys;
use crate::antp::{seconds, transcript};
use crate::limits::GROUP_SIZE;
use crate::server::snapshot::Snapshot;

/// Octets of an early packet.
const EARLY_PACKET_SIZE: usize = HEADER_SIZE + Early::FIELD_SIZE;

/// What became of one datagram of a group.
#[derive(Debug)]
pub struct TimeSlot {
    state: Option<Established>,
    fresh: Option<[u8; C2_SIZE]>,
    /// In separate-tag mode: r6.
    early: Option<[u8; EARLY_SIZE]>,
    suite: Suite,
    /// What to send: in separate-tag mode the follow-up, which lies in the response behind the early packet.
    pub reply: Reply,
}

impl TimeSlot {
    /// Octets of the early packet, at the start of the response; zero in inline mode.
    #[must_use]
    pub const fn early_size(&self) -> usize {
        if self.early.is_some() { EARLY_PACKET_SIZE } else { 0 }
    }
}

/// Time requests on their way through the stages, one slot for each datagram.
#[derive(Debug)]
pub struct TimeGroup {
    slots: ArrayVec<TimeSlot, GROUP_SIZE>,
}

impl TimeGroup {
    /// Opens the C2 of all `datagrams`, each of which [`classify`] found to be a time request, decides what each is to
    /// get, and seals fresh C2 where one is wanted and due: its key is not the current one. What it cannot have
    /// for lack of room in its request, it does without: the fresh C2 first, then the early packet.
    ///
    /// `snapshot` is for the headers of errors.
    ///
    /// # Panics
    /// If there are more than [`GROUP_SIZE`] datagrams.
    #[must_use]
    pub fn open(
        keys: &StateKeys,
        snapshot: &Snapshot,
        entropy: &mut Entropy,
        datagrams: &mut [Datagram<'_>],
    ) -> Self {
        assert!(datagrams.len() <= GROUP_SIZE, "a group is at most GROUP_SIZE");
        let requests: ArrayVec<Option<TimeRequest<'_>>, GROUP_SIZE> =
            datagrams.iter().map(|datagram| time_request(datagram.request)).collect();
        let sealed = requests.iter().zip(&*datagrams);
        let sealed = sealed
            .filter_map(|(request, datagram)| Some((request.as_ref()?.state, seconds(datagram.received))));
        let mut opened = Established::open_group(keys, sealed).into_iter();
        let slots = requests.iter().zip(&*datagrams).map(|(request, datagram)| {
            let Some(request) = request else { return TimeSlot::silent(Outcome::Malformed) };
            // A C2 of another suite is somebody's mistake, and of no use to anybody.
            let state = opened.next().flatten().filter(|state| state.suite == request.suite);
            let Some(state) = state else { return TimeSlot::silent(Outcome::Expired) };
            let is_due = request.wants_fresh && key_id(request.state) != keys.current().id();
            let room = datagram.request.len() + overhead(&datagram.source);
            let cost = |is_fresh, is_early| response_cost(is_fresh, is_early, overhead(&datagram.source));
            let is_early = request.wants_early && cost(false, true) <= room;
            let is_fresh = is_due && cost(true, is_early) <= room;
            TimeSlot {
                fresh: is_fresh.then(|| state.seal(keys, entropy)),
                early: is_early.then(|| entropy.array()),
                suite: request.suite,
                state: Some(state),
                reply: Reply::silence(Outcome::NoRoom),
            }
        });
        let mut group = TimeGroup { slots: slots.collect() };
        drop(requests);
        for (slot, datagram) in group.slots.iter_mut().zip(datagrams) {
            if slot.reply.outcome == Outcome::Expired
                && let Ok(packet) = Packet::parse(datagram.request)
            {
                let at = Instant { received: datagram.received, now: datagram.received, snapshot };
                slot.reply = refuse(&at, &packet, ErrorCode::EXPIRED, Outcome::Expired, datagram.response);
            }
        }
        group
    }

    /// Writes headers, with `now` as the time of departure, and everything else but the tags. `datagrams` are those of
    /// [`TimeGroup::open`].
    pub fn stamp(&mut self, now: NtpTime, snapshot: &Snapshot, datagrams: &mut [Datagram<'_>]) {
        for (slot, datagram) in self.slots.iter_mut().zip(datagrams) {
            if slot.state.is_none() {
                continue;
            }
            let Ok(packet) = Packet::parse(datagram.request) else { continue };
            let mut header = [0; HEADER_SIZE];
            emit_header(&packet.header(), datagram.received, now, snapshot, &mut header);
            let mut out = Writer::new(datagram.response);
            let suite = slot.suite;
            let response = TimeResponse { suite, fresh: slot.fresh.as_ref(), tag: &[0; TAG_SIZE] };
            let written = match &slot.early {
                None => out.put(&header).and_then(|()| response.emit(&mut out)),
                Some(random) => [false, true].into_iter().try_for_each(|is_follow_up| {
                    out.put(&header)?;
                    Early { suite, random }.emit(&mut out)?;
                    if is_follow_up { response.emit(&mut out) } else { Ok(()) }
                }),
            };
            let outcome = if slot.early.is_some() { Outcome::ServedEarly } else { Outcome::Served };
            slot.reply = match written {
                Ok(()) => Reply { size: out.offset() - slot.early_size(), outcome },
                Err(_) => Reply::silence(Outcome::NoRoom),
            };
        }
    }

    /// The early packets, which may leave at once: the number of the datagram and the octets.
    pub fn early<'d>(&self, datagrams: &'d [Datagram<'_>]) -> impl Iterator<Item = (usize, &'d [u8])> {
        let written = self.slots.iter().zip(datagrams).enumerate();
        written
            .filter(|(_, (slot, _))| slot.reply.outcome == Outcome::ServedEarly)
            .map(|(index, (_, datagram))| (index, &datagram.response[..EARLY_PACKET_SIZE]))
    }

    /// Computes the tags, which completes what is to be sent; returns the slots in the order of the datagrams.
    pub fn finish(self, datagrams: &mut [Datagram<'_>]) -> ArrayVec<TimeSlot, GROUP_SIZE> {
        for (slot, datagram) in self.slots.iter().zip(datagrams) {
            let Some(state) = slot.state.as_ref().filter(|_| slot.reply.size > 0) else { continue };
            let response = &mut datagram.response[slot.early_size()..][..slot.reply.size];
            if let Some((before, tag)) = response.split_last_chunk_mut::<TAG_SIZE>() {
                *tag = transcript::time(&state.key, datagram.request, before);
            }
        }
        self.slots
    }
}

impl TimeSlot {
    fn silent(outcome: Outcome) -> Self {
        TimeSlot { state: None, fresh: None, early: None, suite: Suite(0), reply: Reply::silence(outcome) }
    }
}

fn time_request(octets: &[u8]) -> Option<TimeRequest<'_>> {
    match classify(&Packet::parse(octets).ok()?) {
        Ok(Request::Time(request)) => Some(request),
        Ok(Request::Negotiation(..) | Request::KeyExchange(..)) | Err(_) => None,
    }
}

/// Octets on the way back with all headers of IP and UDP.
const fn response_cost(is_fresh: bool, is_early: bool, overhead: usize) -> usize {
    let response = HEADER_SIZE + TimeResponse::field_size(is_fresh) + overhead;
    if is_early { response + Early::FIELD_SIZE + EARLY_PACKET_SIZE + overhead } else { response }
}
