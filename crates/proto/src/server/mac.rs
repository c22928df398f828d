//! Symmetric-key MACs on their way through the steps: requests are verified together, and their responses are tagged
//! together, under the same key, after the transmit stamp.
//!
//! A MAC that does not hold, or whose key is unknown, is answered with a crypto-NAK (RFC 5905 section 9.2): a header,
//! and a key identifier of zero without a digest. RFC 5905 puts time into that header; ours is a kiss, which has none,
//! and says NKEY or CRYP. It has 52 octets, and the shortest request with a MAC has 68.
//!
//! NTPv3 and older are answered in kind, with a digest as long as the request's.

use authentick_crypto::mac::{Tag, Verify};
use authentick_crypto::{Entropy, run_batch};
use authentick_wire::datagram::Datagram;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::mac::{
    CRYPTO_NAK_SIZE, MacFields, accepts_digest, covered_size, emit_nonce, emit_trailer,
};
use authentick_wire::nts::Span;
use authentick_wire::packet::Packet;
use authentick_wire::{NoRoom, Writer};

use super::admit::Meter;
use super::build::echo_identifier;
use super::entitled::{Authenticated, Entitled, Rejected};
use super::limit::Client;
use super::outcome::Outcome;
use super::{Clock, Scheme, Slot, Standing};
use crate::limits::GROUP_SIZE;
use crate::mutant::{Place, holds};
use crate::symmetric::{Event, Nonce, SymmetricKey, SymmetricKeys};

/// What is kept of a group for MACs.
pub(super) struct Mac {
    slots: Box<[MacSlot]>,
    /// Which of the keys' counters are this responder's.
    pub(super) worker: usize,
}

/// What a request with a MAC needs between the steps.
#[derive(Debug, Default)]
struct MacSlot {
    /// Where the MAC of the request lies.
    fields: MacFields,
    /// Where its key stands in the set.
    position: usize,
    /// That of the request, then that of the response.
    nonce: Option<Nonce>,
    genuine: bool,
    /// Where the digest of the response goes.
    digest: Span,
}

impl Mac {
    pub(super) fn new() -> Self {
        Mac { slots: (0..GROUP_SIZE).map(|_| MacSlot::default()).collect(), worker: 0 }
    }

    /// Takes a packet with a MAC behind it.
    #[inline(always)]
    pub(super) fn claim(&mut self, index: usize, packet: &Packet<'_>) -> Result<Scheme, Outcome> {
        let Some(fields) = MacFields::locate(packet) else { return Ok(Scheme::Plain) };
        if fields.is_ms_sntp(packet) {
            return Err(Outcome::MsSntp);
        }
        self.slots[index].fields = fields;
        Ok(Scheme::Mac)
    }

    /// Finds the keys, and the nonces of the requests.
    pub(super) fn open(
        &mut self,
        keys: Option<&SymmetricKeys>,
        meter: &mut Meter<'_, impl Clock>,
        slots: &mut [Slot],
        batch: &[Datagram<'_>],
    ) {
        for ((slot, own), datagram) in slots.iter_mut().zip(&mut self.slots).zip(batch) {
            if let Some(permitted) = slot.permitted(Scheme::Mac)
                && let Err(rejected) = look_up(keys, own, datagram.request, self.worker)
            {
                slot.standing = meter.reject(permitted, datagram.source.ip(), rejected);
            }
        }
    }

    /// Verifies all requests whose key was found, and charges them to their clients.
    pub(super) fn verify(
        &mut self,
        keys: &SymmetricKeys,
        meter: &mut Meter<'_, impl Clock>,
        slots: &mut [Slot],
        batch: &[Datagram<'_>],
    ) {
        let jobs = slots.iter().zip(&mut self.slots).zip(batch);
        run_batch(jobs.filter_map(|((slot, own), datagram)| {
            slot.permitted(Scheme::Mac)?;
            let (key, fields) = (keys.at(own.position), &own.fields);
            let fits = accepts_digest(slot.echo.version, key.algorithm().tag_size(), fields.digest.size());
            let request = &*datagram.request;
            own.genuine = false;
            fits.then_some(Verify {
                key: key.key(),
                nonce: own.nonce.as_ref().map(Nonce::octets),
                message: &request[..fields.covered_size()],
                tag: fields.digest.of(request),
                genuine: &mut own.genuine,
            })
        }));
        for ((slot, own), datagram) in slots.iter_mut().zip(&self.slots).zip(batch) {
            let Some(permitted) = slot.permitted(Scheme::Mac) else { continue };
            let source = datagram.source.ip();
            let is_genuine = holds(Place::MacRequestTag, own.genuine);
            slot.standing = match Authenticated::verified(permitted, is_genuine) {
                Some(proof) => {
                    let tag = own.fields.digest.of(datagram.request);
                    let client = || Client::Mac { key_id: own.fields.key_id, tag };
                    match meter.admit_client(proof, source, client) {
                        Ok(admitted) => {
                            Standing::Entitled(Entitled::authenticated(proof, admitted), Outcome::Mac)
                        }
                        Err(refused) => refused.into(),
                    }
                }
                None => {
                    keys.at(own.position).count(self.worker, Event::WrongTag);
                    let rejected = Rejected::CryptoNak(ReferenceId::CRYP, Outcome::MacNakTag);
                    meter.reject(permitted, source, rejected)
                }
            };
        }
    }

    /// Lays out the responses, each with a fresh nonce; returns how many there are.
    pub(super) fn lay_out(
        &mut self,
        keys: &SymmetricKeys,
        entropy: &mut Entropy,
        slots: &mut [Slot],
        batch: &mut [Datagram<'_>],
    ) -> usize {
        let mut count = 0;
        for ((slot, own), datagram) in slots.iter_mut().zip(&mut self.slots).zip(batch) {
            if !slot.is_entitled(Scheme::Mac) {
                continue;
            }
            let key = keys.at(own.position);
            own.nonce = key.draw_nonce(entropy);
            let identifier = slot.identifier.map(|identifier| identifier.of(datagram.request));
            let response = &mut datagram.response[..datagram.request.len()];
            match lay_out(response, identifier, key, own.nonce.as_ref(), own.fields.digest.size()) {
                Ok(digest) => {
                    count += 1;
                    key.count(self.worker, Event::Answered);
                    own.digest = digest;
                    datagram.response_size = digest.end();
                }
                Err(NoRoom) => slot.standing = Standing::Silent(Outcome::NoRoom),
            }
        }
        count
    }

    /// Tags the responses.
    pub(super) fn seal(&self, keys: &SymmetricKeys, slots: &[Slot], batch: &mut [Datagram<'_>]) {
        let jobs = slots.iter().zip(&self.slots).zip(batch);
        run_batch(jobs.filter_map(|((slot, own), datagram)| {
            let true = slot.is_entitled(Scheme::Mac) else { return None };
            let (covered, rest) = datagram.response.split_at_mut(covered_size(own.digest));
            let digest_start = own.digest.start() - covered.len();
            Some(Tag {
                key: keys.at(own.position).key(),
                nonce: own.nonce.as_ref().map(Nonce::octets),
                message: covered,
                tag: &mut rest[digest_start..digest_start + own.digest.size()],
            })
        }));
    }
}

/// Finds the key of a request, and the nonce that it was tagged with.
//= rfc8573#3-5
#[inline(always)]
fn look_up(
    keys: Option<&SymmetricKeys>,
    own: &mut MacSlot,
    request: &[u8],
    worker: usize,
) -> Result<(), Rejected> {
    let unknown = Rejected::CryptoNak(ReferenceId::NKEY, Outcome::MacNakUnknownKey);
    let keys = keys.ok_or(unknown)?;
    own.position = keys.position(own.fields.key_id).ok_or(unknown)?;
    let key = keys.at(own.position);
    if keys.allowed().objection(key.algorithm()).is_some() {
        key.count(worker, Event::NotAllowed);
        return Err(Rejected::CryptoNak(ReferenceId::NKEY, Outcome::MacNakNotAllowed));
    }
    // Without the nonce that it needs, the tag of the request is none, and the job says so.
    own.nonce = own.fields.nonce_of(request).and_then(|body| key.nonce_of(body));
    Ok(())
}

/// Writes all of a response but its header and its digest; returns the place of the latter.
#[inline(always)]
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
    //= rfc5905#14-6
    emit_trailer(&mut out, key.id(), digest_size)
}

/// Writes what makes a kiss a crypto-NAK; returns the size of the whole.
//= rfc5905#9.2-6
pub(super) fn end_crypto_nak(response: &mut [u8]) -> usize {
    const SIZE: usize = HEADER_SIZE + CRYPTO_NAK_SIZE;
    response[HEADER_SIZE..SIZE].fill(0);
    SIZE
}
