//! The step of all schemes together: headers with time for the entitled, kisses without for the rest.

use std::net::IpAddr;
use std::sync::Arc;

use authentick_wire::Writer;
use authentick_wire::datagram::Datagram;
use authentick_wire::extension::{self, FieldType};
use authentick_wire::header::{Header, Leap, Mode, ReferenceId};
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::{NtpShort, NtpSpan, NtpTime};

use super::entitled::{Entitled, KissStamp};
use super::interleave::Interleave;
use super::outcome::Outcome;
use super::snapshot::Snapshot;
use super::{Clock, Scheme, Slot, Standing, mac};
use crate::delays::{Step, pause};
use crate::limits::BATCH_SIZE;

/// What a response must repeat of its request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Echo {
    pub(super) version: u8,
    /// Passive to a symmetric peer, else server.
    pub(super) mode: Mode,
    pub(super) poll: i8,
    pub(super) origin: NtpTime,
}

/// The timestamps of a response.
#[derive(Clone, Copy, Debug)]
struct Stamps {
    receive: NtpTime,
    transmit: NtpTime,
}

const ROOM: &str = "a response has the room of its request, which has a header";

/// Finds the timestamps of responses outside ANTP, in basic and in interleaved mode. RFC 9769 section 2.
pub(super) struct Stamper {
    interleave: Option<Arc<Interleave>>,
    /// Answers of the last batch whose departure is to be remembered.
    departures: Vec<Departure>,
    /// Datagrams of the last batch.
    batch_size: usize,
    last_receive: NtpTime,
}

/// An answer to a client that asks in interleaved mode.
struct Departure {
    /// Its place in the batch.
    index: usize,
    client: IpAddr,
    receive: NtpTime,
}

impl Stamper {
    pub(super) fn new(interleave: Option<Arc<Interleave>>) -> Self {
        let departures = Vec::with_capacity(BATCH_SIZE);
        Stamper { interleave, departures, batch_size: 0, last_receive: NtpTime::ZERO }
    }

    /// Forgets the last batch; the next one has `batch_size` datagrams.
    pub(super) fn begin(&mut self, batch_size: usize) {
        self.departures.clear();
        self.batch_size = batch_size;
    }

    /// The timestamps of the response to datagram `index` of its batch, which leaves at `now`, and what it repeats.
    #[inline(always)]
    fn stamp(&mut self, index: usize, slot: &Slot, datagram: &Datagram<'_>, now: NtpTime) -> (Echo, Stamps) {
        // No two receive timestamps of a client are equal, nor are they ever equal to a transmit timestamp.
        let mut receive = Interleave::receive_stamp(datagram.received);
        //= rfc9769#2-4
        if receive == self.last_receive {
            receive = receive + NtpSpan::from_bits(2);
        }
        self.last_receive = receive;
        let mut stamps = Stamps { receive, transmit: Interleave::transmit_stamp(now) };
        let mut echo = slot.echo;
        if let Some(interleave) = &self.interleave
            //= rfc9769#2-9, rfc9769#3-2
            && Interleave::asks(slot.request_origin)
        {
            let client = datagram.source.ip();
            self.departures.push(Departure { index, client, receive });
            if slot.request_receive != echo.origin
                //= rfc9769#2-5, rfc9769#2-6
                && let Some(transmit) = interleave.take(client, slot.request_origin)
            {
                //= rfc9769#2-13
                echo.origin = slot.request_receive;
                stamps.transmit = transmit;
            }
        }
        (echo, stamps)
    }

    /// See [`super::Responder::sent`].
    pub(super) fn sent(&self, from: NtpTime, to: NtpTime) {
        let Some(interleave) = &self.interleave else { return };
        let step = to.since(from).to_bits().max(0) / (self.batch_size.max(1) as i64);
        for departure in &self.departures {
            let left = from + NtpSpan::from_bits(step * (departure.index as i64 + 1));
            interleave.remember(departure.client, departure.receive, Interleave::transmit_stamp(left));
        }
    }
}

/// Writes the headers of a group whose first datagram has the place `first` in its batch; returns how many carry time.
/// What no scheme has laid out is a header, and the identifier of the request behind it.
pub(super) fn build(
    slots: &mut [Slot],
    stamper: &mut Stamper,
    first: usize,
    snapshot: &Snapshot,
    clock: &mut impl Clock,
    batch: &mut [Datagram<'_>],
) -> usize {
    pause(Step::BuildHeaders);
    //= rfc5905#14-3
    let now = clock.now();
    let root_dispersion = snapshot.root_dispersion_at(now);
    let mut count = 0;
    for (index, (slot, datagram)) in slots.iter_mut().zip(batch).enumerate() {
        let (entitled, echo, stamps) = match (slot.standing, slot.scheme) {
            (Standing::Silent(_) | Standing::Claimed | Standing::Permitted(_) | Standing::Admitted(_), _) => {
                continue;
            }
            (Standing::Kiss(code, _), _) => {
                refuse(slot, datagram, code, KissStamp::of_policy(slot.echo.origin, snapshot, now));
                continue;
            }
            (Standing::NtsNak(_), _) => {
                refuse(slot, datagram, ReferenceId::NTSN, KissStamp::repeated(slot.echo.origin));
                continue;
            }
            (Standing::CryptoNak(code, _), _) => {
                refuse(slot, datagram, code, KissStamp::repeated(slot.echo.origin));
                continue;
            }
            (Standing::Entitled(entitled, _), Scheme::Antp) => {
                (entitled, slot.echo, Stamps { receive: datagram.received, transmit: now })
            }
            (Standing::Entitled(entitled, _), scheme) => {
                if scheme == Scheme::Plain {
                    echo_request_identifier(slot, datagram);
                }
                let (echo, stamps) = stamper.stamp(first + index, slot, datagram, now);
                (entitled, echo, stamps)
            }
        };
        count += 1;
        build_header(entitled, datagram.response, &echo, stamps, snapshot, root_dispersion);
    }
    count
}

/// Writes a kiss; nothing if there is no timestamp for it.
fn refuse(slot: &mut Slot, datagram: &mut Datagram<'_>, code: ReferenceId, stamp: Option<KissStamp>) {
    let Some(stamp) = stamp else {
        slot.standing = Standing::Silent(Outcome::KissUnstamped);
        return;
    };
    if let Standing::CryptoNak(..) = slot.standing {
        datagram.response_size = mac::end_crypto_nak(datagram.response);
    } else {
        echo_request_identifier(slot, datagram);
    }
    build_kiss(stamp, datagram.response, &slot.echo, code);
}

/// The response to a request that gets no more than a header.
fn echo_request_identifier(slot: &Slot, datagram: &mut Datagram<'_>) {
    let identifier = slot.identifier.map(|identifier| identifier.of(datagram.request));
    let response = &mut datagram.response[..datagram.request.len()];
    datagram.response_size = echo_identifier(response, identifier);
}

/// Copies a unique identifier behind the header of a plain response or a kiss; returns the response's size, which is
/// the header's alone where there is no identifier or no room for it.
//= rfc8915#5.3-3, rfc8915#5.7-21
#[inline]
pub(super) fn echo_identifier(response: &mut [u8], identifier: Option<&[u8]>) -> usize {
    let mut out = Writer::new(response);
    let echoed = identifier.and_then(|identifier| {
        out.reserve(HEADER_SIZE).ok()?;
        extension::emit(&mut out, FieldType::UNIQUE_IDENTIFIER, identifier).ok()?;
        Some(out.offset())
    });
    echoed.unwrap_or(HEADER_SIZE)
}

/// Writes the header of a response that gives time; `root_dispersion` is the snapshot's at this time.
//= rfc5905#14-4, rfc5905#7.3-6, rfc5905#7.3-5
fn build_header(
    _: Entitled,
    response: &mut [u8],
    echo: &Echo,
    stamps: Stamps,
    snapshot: &Snapshot,
    root_dispersion: NtpShort,
) {
    let header = Header {
        leap: snapshot.leap,
        version: echo.version,
        mode: echo.mode,
        stratum: snapshot.stratum,
        poll: echo.poll,
        precision: snapshot.precision,
        root_delay: snapshot.root_delay,
        root_dispersion,
        reference_id: snapshot.reference_id,
        reference: snapshot.reference,
        origin: echo.origin,
        receive: stamps.receive,
        transmit: stamps.transmit,
    };
    header.emit(response.first_chunk_mut().expect(ROOM));
}

/// Writes the header of a kiss. Its timestamps are all the same one, the client's own if it has any: zeros would keep
/// chrony from heeding it.
//= rfc5905#7.4-6, rfc5905#7.3-2
fn build_kiss(stamp: KissStamp, response: &mut [u8], echo: &Echo, code: ReferenceId) {
    let header = Header {
        leap: Leap::Unsynchronised,
        version: echo.version,
        mode: echo.mode,
        stratum: 0,
        poll: echo.poll,
        precision: 0,
        root_delay: NtpShort::ZERO,
        root_dispersion: NtpShort::ZERO,
        reference_id: code,
        reference: NtpTime::ZERO,
        origin: echo.origin,
        receive: stamp.time(),
        transmit: stamp.time(),
    };
    header.emit(response.first_chunk_mut().expect(ROOM));
}
