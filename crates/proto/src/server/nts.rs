//! NTS on its way through the steps. RFC 8915 section 5.
//!
//! Cookies, requests, fresh cookies and responses are four batches of one AEAD each, so that the widest lanes are full.
//! The keys out of a cookie lie in its slot until the group is answered, and are overwritten then.

use authentick_crypto::{Algorithm, Entropy, Open, OpenBatch, Seal, SealBatch, TAG_SIZE};
use authentick_wire::Writer;
use authentick_wire::datagram::Datagram;
use authentick_wire::extension::{self, FieldType};
use authentick_wire::header::Mode;
use authentick_wire::limits::{COOKIE_COUNT, FIELD_HEADER_SIZE, HEADER_SIZE};
use authentick_wire::nts::{
    Authenticator, NtsFields, Span, authenticator_size, cookie_field_size, count_encrypted_placeholders,
    emit_authenticator,
};

use super::admit::Meter;
use super::entitled::{Authenticated, Entitled, Rejected};
use super::limit::Client;
use super::outcome::Outcome;
use super::uses::Uses;
use super::{Clock, Scheme, Slot, Standing};
use crate::auth::nts::nonce_is_long_enough;
use crate::cookie::{self, SessionKeys};
use crate::delays::{Step, pause};
use crate::keyset::KeySet;
use crate::limits::GROUP_SIZE;
use crate::mutant::{Place, holds};

/// What NTS keeps of a group.
pub(super) struct Nts {
    slots: Box<[NtsSlot]>,
    pub(super) uses: Uses,
}

/// What NTS keeps of a request between the steps.
struct NtsSlot {
    cookie: Span,
    authenticator: Authenticator,
    placeholder_count: usize,
    /// Whether the last tag that was looked at is right: the cookie's, then the request's.
    genuine: bool,
    /// The keys out of the cookie, from when it opened to the end of the group.
    session: SessionKeys,
    /// What is to be sealed of the response.
    part: SealedPart,
}

impl Default for NtsSlot {
    fn default() -> Self {
        NtsSlot {
            cookie: Span::default(),
            authenticator: Authenticator::default(),
            placeholder_count: 0,
            genuine: false,
            session: SessionKeys::unset(),
            part: SealedPart::default(),
        }
    }
}

impl Nts {
    pub(super) fn new() -> Self {
        Nts { slots: (0..GROUP_SIZE).map(|_| NtsSlot::default()).collect(), uses: Uses::new() }
    }

    /// Takes a packet with fields of NTS, which is to be answered in `mode`.
    #[inline(always)]
    pub(super) fn claim(&mut self, index: usize, fields: &NtsFields, mode: Mode) -> Result<Scheme, Outcome> {
        //= rfc8915#5.4-2, rfc8915#5.5-1, rfc8915#5.6-9, rfc8915#5.7-1
        let (Some(_), Some(cookie), Some(authenticator), Mode::Server) =
            (fields.identifier, fields.cookie, fields.authenticator, mode)
        else {
            return Err(Outcome::NtsMalformed);
        };
        let own = &mut self.slots[index];
        own.cookie = cookie;
        own.authenticator = authenticator;
        own.placeholder_count = fields.placeholder_count;
        Ok(Scheme::Nts)
    }

    /// Opens the cookies; if the policy awaits keys, those under the next ones get silence, and all if there are none.
    pub(super) fn open(
        &mut self,
        keys: Option<&KeySet>,
        meter: &mut Meter<'_, impl Clock>,
        slots: &mut [Slot],
        batch: &[Datagram<'_>],
    ) {
        pause(Step::OpenCookies);
        let mut jobs = OpenBatch::new();
        for ((slot, own), datagram) in slots.iter_mut().zip(&mut self.slots).zip(batch) {
            let Some(permitted) = slot.permitted(Scheme::Nts) else { continue };
            //= rfc5905#8-6
            own.genuine = false;
            let cookie = own.cookie.of(datagram.request);
            let job =
                keys.and_then(|keys| cookie::open_job(keys, cookie, &mut own.session, &mut own.genuine));
            match job {
                Some(job) => jobs.push(job),
                // A client that is sent away would exchange keys for nothing; its next request is answered.
                None if meter.policy.awaits_keys
                    && keys.is_none_or(|keys| cookie::is_ahead(keys, cookie)) =>
                {
                    slot.standing = Rejected::Silently(Outcome::NtsKeyAhead).into();
                }
                None => {
                    let rejected = Rejected::Nak(Outcome::NakUnknownKey);
                    slot.standing = meter.reject(permitted, datagram.source.ip(), rejected);
                }
            }
        }
        jobs.run();
        for ((slot, own), datagram) in slots.iter_mut().zip(&self.slots).zip(batch) {
            let is_genuine = holds(Place::Cookie, own.genuine);
            if let (Some(permitted), false) = (slot.permitted(Scheme::Nts), is_genuine) {
                let rejected = Rejected::Nak(Outcome::NakCookie);
                slot.standing = meter.reject(permitted, datagram.source.ip(), rejected);
            }
        }
    }

    /// Verifies the requests whose cookies `keys` have opened, and charges them to their clients; returns how many may
    /// be answered.
    //= rfc8915#5.7-12
    pub(super) fn verify(
        &mut self,
        keys: &KeySet,
        meter: &mut Meter<'_, impl Clock>,
        slots: &mut [Slot],
        batch: &mut [Datagram<'_>],
    ) -> usize {
        pause(Step::VerifyRequests);
        let mut jobs = OpenBatch::new();
        for ((slot, own), datagram) in slots.iter_mut().zip(&mut self.slots).zip(&mut *batch) {
            let Some(_) = slot.permitted(Scheme::Nts) else { continue };
            match own.job(datagram.request) {
                Some(job) => jobs.push(job),
                None => slot.standing = Rejected::Silently(Outcome::NtsMalformed).into(),
            }
        }
        jobs.run();
        let mut count = 0;
        for ((slot, own), datagram) in slots.iter_mut().zip(&mut self.slots).zip(batch) {
            let Some(permitted) = slot.permitted(Scheme::Nts) else { continue };
            let source = datagram.source.ip();
            let is_genuine = holds(Place::RequestTag, own.genuine);
            let proof = Authenticated::verified(permitted, is_genuine).ok_or(Rejected::Nak(Outcome::NakTag));
            let proof = proof.and_then(|proof| own.count_placeholders(datagram.request).map(|()| proof));
            let admitted = match proof {
                Ok(proof) => meter
                    .admit_client(proof, source, || own.client(datagram.request))
                    .map(|admitted| Entitled::authenticated(proof, admitted)),
                Err(rejected) => {
                    slot.standing = meter.reject(permitted, source, rejected);
                    continue;
                }
            };
            slot.standing = match admitted {
                Ok(entitled) => {
                    count += 1;
                    self.uses.count(own.cookie.of(datagram.request), |id| keys.find(id).is_some());
                    Standing::Entitled(entitled, Outcome::Nts)
                }
                Err(refused) => refused.into(),
            };
        }
        count
    }

    /// Lays out the responses, and seals a fresh cookie into each place for one.
    pub(super) fn lay_out(
        &mut self,
        keys: &KeySet,
        entropy: &mut Entropy,
        slots: &mut [Slot],
        batch: &mut [Datagram<'_>],
    ) {
        pause(Step::SealFreshCookies);
        let key = keys.current();
        let mut jobs = SealBatch::new();
        for ((slot, own), datagram) in slots.iter_mut().zip(&mut self.slots).zip(batch) {
            let (true, Some(identifier)) = (slot.is_entitled(Scheme::Nts), slot.identifier) else { continue };
            let algorithm = own.session.algorithm();
            // One cookie for the one spent, and one for each placeholder.
            let part = lay_out(
                datagram.response,
                datagram.request.len(),
                identifier.of(datagram.request),
                algorithm,
                //= rfc8915#5.7-14, rfc8915#5.7-15
                1 + own.placeholder_count,
                entropy,
            );
            let Some(part) = part else {
                slot.standing = Standing::Silent(Outcome::NoRoom);
                continue;
            };
            own.part = part;
            datagram.response_size = part.sealed.end();
            for place in CookiePlaces::new(datagram.response, &part, algorithm) {
                jobs.push(cookie::seal_job(key, &own.session, entropy, place));
            }
        }
        jobs.run();
    }

    /// Seals the responses.
    //= rfc8915#5.6-3, rfc8915#5.6-4
    pub(super) fn seal(&self, slots: &[Slot], batch: &mut [Datagram<'_>]) {
        pause(Step::SealResponses);
        let mut jobs = SealBatch::new();
        for ((slot, own), datagram) in slots.iter().zip(&self.slots).zip(batch) {
            if !slot.is_entitled(Scheme::Nts) {
                continue;
            }
            let (session, part) = (&own.session, &own.part);
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

    /// Overwrites the keys of the group.
    pub(super) fn wipe(&mut self, slots: &[Slot]) {
        for (slot, own) in slots.iter().zip(&mut self.slots) {
            if slot.scheme == Scheme::Nts {
                own.session.wipe();
            }
        }
    }
}

impl NtsSlot {
    /// The job that verifies the request in place; `None` if its nonce breaks a rule of RFC 8915 section 5.6.
    //= rfc8915#5.6-2, rfc8915#5.6-4, rfc8915#5.6-6, rfc8915#5.6-8, rfc8915#5.7-2, rfc8915#5.7-3
    //= rfc8915#5.7-7
    #[inline(always)]
    fn job<'a>(&'a mut self, request: &'a mut [u8]) -> Option<Open<'a>> {
        let NtsSlot { authenticator, session, genuine, .. } = self;
        let algorithm = session.algorithm();
        if !algorithm.accepts_nonce(authenticator.nonce.size())
            || !nonce_is_long_enough(algorithm, authenticator)
        {
            return None;
        }
        let (before, rest) = request.split_at_mut(authenticator.ciphertext.start());
        let before = &*before;
        let sealed = &mut rest[..authenticator.ciphertext.size()];
        let (text, tag) = algorithm.split_sealed(sealed)?;
        Some(Open {
            key: session.c2s(),
            nonce: authenticator.nonce.of(before),
            associated: Some(&before[..authenticator.associated_size]),
            text: text.into(),
            tag,
            genuine,
        })
    }

    /// Whose key the request has, and its tag, which verification leaves as it came.
    fn client<'a>(&'a self, request: &'a mut [u8]) -> Client<'a> {
        let algorithm = self.session.algorithm();
        let sealed = &mut request[self.authenticator.ciphertext.start()..self.authenticator.ciphertext.end()];
        let tag = algorithm.split_sealed(sealed).map_or(&[][..], |(_, tag)| tag);
        Client::Nts { key: &self.session.expose()[..algorithm.key_size()], tag }
    }

    /// Adds the placeholders inside the ciphertext, which is text by now, to those before it.
    //= rfc8915#5.6-5
    #[inline(always)]
    fn count_placeholders(&mut self, request: &mut [u8]) -> Result<(), Rejected> {
        let broken = Rejected::Silently(Outcome::NtsMalformed);
        let sealed = &mut request[self.authenticator.ciphertext.start()..self.authenticator.ciphertext.end()];
        let (text, _) = self.session.algorithm().split_sealed(sealed).ok_or(broken)?;
        self.placeholder_count +=
            count_encrypted_placeholders(text, self.cookie.size()).map_err(|_| broken)?;
        Ok(())
    }
}

/// Where the sealed part of an NTS response lies, and what it was sealed with.
#[derive(Clone, Copy, Debug, Default)]
struct SealedPart {
    associated_size: usize,
    nonce: Span,
    sealed: Span,
}

/// Writes the fields of an NTS response behind a header that is yet to come: the identifier, and an authenticator with
/// room for as many cookies as fit into `size_max` octets, at most `cookie_count`. `None` if not even one fits.
//= rfc8915#5.7-13, rfc8915#8.4-1
#[inline(always)]
fn lay_out(
    response: &mut [u8],
    size_max: usize,
    identifier: &[u8],
    algorithm: Algorithm,
    cookie_count: usize,
    entropy: &mut Entropy,
) -> Option<SealedPart> {
    let mut nonce = [0; 16];
    let nonce = &mut nonce[..algorithm.nonce_size()];
    entropy.fill(nonce);
    let cookie_field = cookie_field_size(cookie::size(algorithm));
    let fixed =
        HEADER_SIZE + FIELD_HEADER_SIZE + identifier.len() + authenticator_size(nonce.len(), TAG_SIZE);
    let cookie_count = cookie_count.min(COOKIE_COUNT).min(size_max.checked_sub(fixed)? / cookie_field);
    if cookie_count == 0 {
        return None;
    }
    let mut out = Writer::new(response.get_mut(..size_max)?);
    out.reserve(HEADER_SIZE).ok()?;
    extension::emit(&mut out, FieldType::UNIQUE_IDENTIFIER, identifier).ok()?;
    let associated_size = out.offset();
    let (nonce, sealed) =
        emit_authenticator(&mut out, nonce, TAG_SIZE + cookie_count * cookie_field, 0).ok()?;
    Some(SealedPart { associated_size, nonce, sealed })
}

/// The places in a laid-out response that fresh cookies go to. Writes the header of each cookie's field.
struct CookiePlaces<'a> {
    cookie_size: usize,
    /// Fields that are yet to come.
    rest: &'a mut [u8],
}

impl<'a> CookiePlaces<'a> {
    #[inline(always)]
    fn new(response: &'a mut [u8], part: &SealedPart, algorithm: Algorithm) -> Self {
        let (rest, _) = algorithm
            .split_sealed(&mut response[part.sealed.start()..part.sealed.end()])
            .expect("the sealed part was laid out with a tag");
        CookiePlaces { cookie_size: cookie::size(algorithm), rest }
    }
}

impl<'a> Iterator for CookiePlaces<'a> {
    /// Octets of a cookie's size.
    type Item = &'a mut [u8];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let size = cookie_field_size(self.cookie_size);
        let (field, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(size)?;
        self.rest = rest;
        let mut out = Writer::new(&mut *field);
        extension::emit_header(&mut out, FieldType::NTS_COOKIE, self.cookie_size)
            .expect("a field has room for its header");
        Some(&mut field[FIELD_HEADER_SIZE..FIELD_HEADER_SIZE + self.cookie_size])
    }
}
