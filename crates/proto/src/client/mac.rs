//! Exchanges under a symmetric key: the request has a MAC, and so must its response, under the same key.
//!
//! A crypto-NAK (RFC 5905 section 9.2) has no proof of where it comes from but the origin, which everyone on the path
//! can read. It is reported and changes nothing: the exchange waits for a response that passes.

use authentick_crypto::mac::{Tag, Verify};
use authentick_crypto::{Entropy, run_batch};
use authentick_wire::Writer;
use authentick_wire::header::{Header, Mode};
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::mac::{
    DIGEST_SIZE_MAX, KEY_ID_SIZE, MacFields, NONCE_FIELD_SIZE, covered_size, digest_size, emit_nonce,
    emit_trailer,
};
use authentick_wire::nts::Span;
use authentick_wire::packet::{Packet, Trailer};

use super::exchange::{Check, Exchange, Response, check_content, random_time};
#[cfg(test)]
use authentick_wire::time::NtpTime;

use crate::limits::REQUEST_SIZE_MAX;
use crate::mutant::{Place, holds, is_tag};
use crate::symmetric::{Nonce, SymmetricKey};

/// The longest request with a MAC.
const MAC_REQUEST_SIZE_MAX: usize = HEADER_SIZE + NONCE_FIELD_SIZE + KEY_ID_SIZE + DIGEST_SIZE_MAX;

const _: () =
    assert!(MAC_REQUEST_SIZE_MAX <= REQUEST_SIZE_MAX, "a buffer for requests takes those with a MAC");

/// What a request still lacks: its tag.
#[derive(Clone, Copy, Debug)]
pub struct Untagged {
    nonce: Option<Nonce>,
    digest: Span,
}

impl Untagged {
    /// Octets of the request, its tag included.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.digest.end()
    }

    /// The job that tags the request in `out`, where it was written, under the key it was made with.
    ///
    /// # Panics
    /// If `out` is shorter than the request.
    #[inline]
    #[must_use]
    pub fn job<'a>(&'a self, key: &'a SymmetricKey, out: &'a mut [u8]) -> Tag<'a> {
        let (covered, rest) = out.split_at_mut(covered_size(self.digest));
        Tag {
            key: key.key(),
            nonce: self.nonce.as_ref().map(Nonce::octets),
            message: covered,
            tag: &mut rest[KEY_ID_SIZE..KEY_ID_SIZE + self.digest.size()],
        }
    }
}

/// A datagram that is the answer to a request with a MAC, if it is genuine: it has passed every check before that of
/// the tag. Many of them are verified together.
#[derive(Clone, Copy, Debug)]
pub struct MacCandidate {
    header: Header,
    fields: MacFields,
    nonce: Option<Nonce>,
}

impl MacCandidate {
    /// The job that verifies `datagram`, out of which the candidate was made; `None` if the key has no
    /// digest of that size.
    #[inline]
    #[must_use]
    pub fn job<'a>(
        &'a self,
        datagram: &'a [u8],
        key: &'a SymmetricKey,
        genuine: &'a mut bool,
    ) -> Option<Verify<'a>> {
        let fits = self.fields.digest.size() == digest_size(key.algorithm().tag_size());
        fits.then_some(Verify {
            key: key.key(),
            nonce: self.nonce.as_ref().map(Nonce::octets),
            message: &datagram[..self.fields.covered_size()],
            tag: self.fields.digest.of(datagram),
            genuine,
        })
    }
}

impl MacCandidate {
    /// The tag that `datagram` should have.
    fn tag(&self, datagram: &[u8], key: &SymmetricKey) -> Vec<u8> {
        let mut tag = vec![0; digest_size(key.algorithm().tag_size())];
        let message = &datagram[..self.fields.covered_size()];
        let nonce = self.nonce.as_ref().map(Nonce::octets);
        run_batch(std::iter::once(Tag { key: key.key(), nonce, message, tag: &mut tag }));
        tag
    }
}

impl Exchange {
    /// Writes a request with a MAC under `key` to `out`; returns the exchange and the request's size.
    ///
    /// # Panics
    /// If `out` has fewer than [`REQUEST_SIZE_MAX`] octets.
    pub fn mac(key: &SymmetricKey, entropy: &mut Entropy, out: &mut [u8]) -> (Self, usize) {
        let (exchange, untagged) = Exchange::mac_untagged(key, entropy, out);
        run_batch(std::iter::once(untagged.job(key, out)));
        (exchange, untagged.size())
    }

    /// The same without the tag, so that many requests can be tagged together.
    ///
    /// # Panics
    /// If `out` has fewer than [`REQUEST_SIZE_MAX`] octets.
    //= rfc7822#3-3
    pub fn mac_untagged(key: &SymmetricKey, entropy: &mut Entropy, out: &mut [u8]) -> (Self, Untagged) {
        const ROOM: &str = "REQUEST_SIZE_MAX octets hold a request";
        let exchange = Exchange { keyed: true, ..Exchange::with_time(random_time(entropy)) };
        let mut writer = Writer::new(&mut out[..REQUEST_SIZE_MAX]);
        Header::minimal_request(exchange.transmit).put(&mut writer).expect(ROOM);
        let nonce = key.draw_nonce(entropy);
        if let Some(nonce) = &nonce {
            emit_nonce(&mut writer, &key.body_of(nonce)).expect(ROOM);
        }
        let digest_size = digest_size(key.algorithm().tag_size());
        let digest = emit_trailer(&mut writer, key.id(), digest_size).expect(ROOM);
        (exchange, Untagged { nonce, digest })
    }

    /// An exchange whose request was made elsewhere, for packets of other implementations.
    #[cfg(test)]
    pub(crate) const fn mac_waiting_for(origin: NtpTime) -> Self {
        Exchange { keyed: true, ..Exchange::with_time(origin) }
    }

    /// Checks a datagram that came from the server's address in answer to a request with a MAC. `key` is the one that
    /// the request was made with. At most one datagram passes.
    pub fn receive_mac(&mut self, datagram: &[u8], key: &SymmetricKey) -> Result<Response, Check> {
        let candidate = self.inspect_mac(datagram, key)?;
        let mut genuine = false;
        run_batch(candidate.job(datagram, key, &mut genuine).into_iter());
        let genuine = is_tag(genuine, candidate.fields.digest.of(datagram), || candidate.tag(datagram, key));
        self.conclude_mac(&candidate, genuine)
    }

    /// The checks of [`Exchange::receive_mac`] that come before that of the tag, so that the tags of many datagrams can
    /// be verified together.
    pub fn inspect_mac(&self, datagram: &[u8], key: &SymmetricKey) -> Result<MacCandidate, Check> {
        let packet = Packet::parse(datagram).map_err(Check::Syntax)?;
        let header = packet.header();
        if !holds(Place::MacMode, header.mode == Mode::Server && header.version == 4) {
            return Err(Check::Mode);
        }
        if !holds(Place::MacOrigin, header.origin == self.transmit) {
            return Err(Check::Origin);
        }
        if !holds(Place::MacDuplicate, !self.answered) {
            return Err(Check::Duplicate);
        }
        let kiss = (header.stratum == 0).then_some(header.reference_id);
        let (true, Some(fields)) = (self.keyed, MacFields::locate(&packet)) else {
            // Nobody vouches for it. A refusal may still be told of: it has no effect.
            return Err(match packet.trailer() {
                Trailer::CryptoNak => Check::CryptoNak(kiss),
                Trailer::None | Trailer::Mac { .. } => kiss.map_or(Check::Authenticator, Check::Kiss),
            });
        };
        //= rfc8573#3-5
        if !holds(Place::MacKeyId, fields.key_id == key.id()) {
            return Err(Check::KeyId(fields.key_id));
        }
        let nonce = fields.nonce_of(datagram).and_then(|body| key.nonce_of(body));
        Ok(MacCandidate { header, fields, nonce })
    }

    /// The rest of the checks, after the candidate's job has said whether the datagram is `genuine`; without a job it
    /// is not.
    //= rfc5905#9.2-10, rfc8573#3-5
    pub fn conclude_mac(&mut self, candidate: &MacCandidate, genuine: bool) -> Result<Response, Check> {
        if !holds(Place::MacDuplicate, !self.answered) {
            return Err(Check::Duplicate);
        }
        if !holds(Place::MacTag, genuine) {
            return Err(Check::Tag);
        }
        check_content(&candidate.header)?;
        self.answered = true;
        Ok(Response { header: candidate.header, cookie_count: 0 })
    }
}
