//! Requests with a symmetric-key MAC: they are verified together, and their responses are tagged together, under the
//! same key, after the transmit stamp.
//!
//! A MAC that does not hold, or whose key is unknown, is answered with a crypto-NAK (RFC 5905 section 9.2): a header,
//! and a key identifier of zero without a digest. RFC 5905 puts time into that header; ours is a kiss, which has none,
//! and says NKEY or CRYP. It has 52 octets, and the shortest request with a MAC has 68.
//!
//! NTPv3 and older are answered in kind, with a digest as long as the request's.

use authentick_crypto::mac::{Tag, Verify, tag_batch, verify_batch};
use authentick_wire::datagram::Datagram;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::mac::{
    CRYPTO_NAK_SIZE, MacFields, accepts_digest, covered_size, emit_nonce, emit_trailer,
};
use authentick_wire::nts::Span;
use authentick_wire::{NoRoom, Writer};

use super::outcome::Outcome;
use super::respond::echo_identifier;
use super::verify::{self, Rejected};
use super::{Responder, State};
use crate::symmetric::{Event, Nonce, SymmetricKey, SymmetricKeys};

/// What a request with a MAC needs between stages, beside its slot.
#[derive(Debug, Default)]
pub(super) struct MacSlot {
    /// Where its key stands in the set.
    position: usize,
    /// That of the request, then that of the response.
    nonce: Option<Nonce>,
    genuine: bool,
}

impl Responder {
    /// Verifies all requests with a MAC and lays the responses of the genuine ones out; returns how many there are.
    pub(super) fn verify_macs(&mut self, keys: Option<&SymmetricKeys>, batch: &mut [Datagram<'_>]) -> usize {
        for ((slot, mac), datagram) in self.slots.iter_mut().zip(&mut self.macs).zip(&*batch) {
            let (State::Keyed(_), Some(fields)) = (slot.state, &slot.mac) else { continue };
            if let Err(rejected) = look_up(keys, mac, fields, datagram.request, self.worker) {
                slot.state = rejected.into();
            }
        }
        let Some(keys) = keys else { return 0 };
        let jobs = self.slots.iter().zip(&mut self.macs).zip(&*batch);
        verify_batch(jobs.filter_map(|((slot, mac), datagram)| {
            let (State::Keyed(_), Some(fields)) = (slot.state, &slot.mac) else { return None };
            let key = keys.at(mac.position);
            let fits = accepts_digest(slot.echo.version, key.algorithm().tag_size(), fields.digest.size());
            let request = &*datagram.request;
            mac.genuine = false;
            fits.then_some(Verify {
                key: key.key(),
                nonce: mac.nonce.as_ref().map(Nonce::octets),
                message: &request[..fields.covered_size()],
                tag: fields.digest.of(request),
                genuine: &mut mac.genuine,
            })
        }));
        let mut count = 0;
        for ((slot, mac), datagram) in self.slots.iter_mut().zip(&mut self.macs).zip(batch) {
            let (State::Keyed(admitted), Some(fields)) = (slot.state, &slot.mac) else { continue };
            let key = keys.at(mac.position);
            let proof = match verify::mac(admitted, mac.genuine) {
                Ok(proof) => proof,
                Err(rejected) => {
                    key.count(self.worker, Event::WrongTag);
                    slot.state = rejected.into();
                    continue;
                }
            };
            mac.nonce = key.draw_nonce(&mut self.entropy);
            let identifier = slot.identifier.map(|identifier| identifier.of(datagram.request));
            let response = &mut datagram.response[..datagram.request.len()];
            match lay_out(response, identifier, key, mac.nonce.as_ref(), fields.digest.size()) {
                Ok(tag) => {
                    count += 1;
                    key.count(self.worker, Event::Answered);
                    slot.tag = Some(tag);
                    slot.state = State::Authenticated(proof, Outcome::Mac);
                    datagram.response_size = tag.end();
                }
                Err(NoRoom) => slot.state = State::Silent(Outcome::NoRoom),
            }
        }
        count
    }

    /// Tags all responses that were laid out for it.
    pub(super) fn tag(&mut self, keys: &SymmetricKeys, batch: &mut [Datagram<'_>]) {
        let jobs = self.slots.iter().zip(&self.macs).zip(batch);
        tag_batch(jobs.filter_map(|((slot, mac), datagram)| {
            let (State::Authenticated(..), Some(tag)) = (slot.state, slot.tag) else { return None };
            let (covered, rest) = datagram.response.split_at_mut(covered_size(tag));
            let digest_start = tag.start() - covered.len();
            Some(Tag {
                key: keys.at(mac.position).key(),
                nonce: mac.nonce.as_ref().map(Nonce::octets),
                message: covered,
                tag: &mut rest[digest_start..digest_start + tag.size()],
            })
        }));
    }
}

/// Finds the key of a request, and the nonce that it was tagged with.
fn look_up(
    keys: Option<&SymmetricKeys>,
    mac: &mut MacSlot,
    fields: &MacFields,
    request: &[u8],
    worker: usize,
) -> Result<(), Rejected> {
    let unknown = Rejected::CryptoNak(ReferenceId::NKEY, Outcome::MacNakUnknownKey);
    let keys = keys.ok_or(unknown)?;
    mac.position = keys.position(fields.key_id).ok_or(unknown)?;
    let key = keys.at(mac.position);
    if keys.allowed().objection(key.algorithm()).is_some() {
        key.count(worker, Event::NotAllowed);
        return Err(Rejected::CryptoNak(ReferenceId::NKEY, Outcome::MacNakNotAllowed));
    }
    // Without the nonce that it needs, the tag of the request is none, and the job says so.
    mac.nonce = fields.nonce_of(request).and_then(|body| key.nonce_of(body));
    Ok(())
}

/// Writes all of a response but its header and its digest; returns the place of the latter.
fn lay_out(
    response: &mut [u8],
    identifier: Option<&[u8]>,
    key: &SymmetricKey,
    nonce: Option<&Nonce>,
    digest_size: usize,
) -> Result<Span, NoRoom> {
    let fields_start = echo_identifier(response, identifier);
    let mut out = Writer::new(response);
    out.reserve(fields_start)?;
    if let Some(nonce) = nonce {
        emit_nonce(&mut out, &key.body_of(nonce))?;
    }
    emit_trailer(&mut out, key.id(), digest_size)
}

/// Writes what makes a kiss a crypto-NAK; returns the size of the whole.
pub(super) fn end_crypto_nak(response: &mut [u8]) -> usize {
    const SIZE: usize = HEADER_SIZE + CRYPTO_NAK_SIZE;
    response[HEADER_SIZE..SIZE].fill(0);
    SIZE
}
