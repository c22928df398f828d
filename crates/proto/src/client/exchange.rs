//! One request and the checks on what comes back.
//!
//! The checks run in an order in which nothing that a forger controls has an effect before the check that stops him:
//! syntax, mode, origin, then authentication, and only then what the response says. A response that is not genuine
//! changes nothing, and the exchange keeps waiting for one that passes; one that is, a kiss too, brings its cookies.
//! RFC 5905 section 8, RFC 8915 section 5.7.

use authentick_crypto::{Entropy, Open, Seal, TAG_SIZE, run_batch};
use authentick_wire::Writer;
use authentick_wire::extension::{self, FieldType, Fields};
use authentick_wire::header::{Header, Mode, ReferenceId};
use authentick_wire::limits::{COOKIE_COUNT, FIELD_HEADER_SIZE, HEADER_SIZE, IDENTIFIER_SIZE_MIN};
use authentick_wire::nts::{
    Authenticator, NtsFields, Span, authenticator_size, cookie_field_size, emit_authenticator,
};
use authentick_wire::packet::{Packet, Trailer};
use authentick_wire::time::NtpTime;
use thiserror::Error;

use super::clock::{Unsound, check_clock};
use super::kiss::meaning;
use super::session::NtsSession;
use crate::limits::REQUEST_SIZE_MAX;
use crate::mutant::{Place, drawn, drawn_octets, holds, is_out, is_tag};

/// A request that waits for its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Random, so that only who saw the request can answer it; the time of departure stays with the caller.
    pub(super) transmit: NtpTime,
    pub(super) identifier: Option<[u8; IDENTIFIER_SIZE_MIN]>,
    /// Whether the request has a MAC.
    pub(super) keyed: bool,
    pub(super) answered: bool,
}

/// An NTS request that is written but for its tag: many of them are sealed together.
#[derive(Clone, Copy, Debug)]
pub struct Unsealed {
    associated_size: usize,
    nonce: Span,
    sealed: Span,
}

impl Unsealed {
    /// Octets of the request.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.sealed.end()
    }

    /// The job that seals the request in `out`, where it was written, under the keys it was made with.
    ///
    /// # Panics
    /// If `out` is shorter than the request.
    //= rfc8915#5.6-2, rfc8915#5.6-4
    #[inline]
    #[must_use]
    pub fn job<'a>(&self, session: &'a NtsSession, out: &'a mut [u8]) -> Seal<'a> {
        let (before, rest) = out.split_at_mut(self.sealed.start());
        let before = &*before;
        let (text, tag) = session
            .algorithm()
            .split_sealed(&mut rest[..self.sealed.size()])
            .expect("the sealed part has room for a tag");
        Seal {
            key: session.keys().c2s(),
            nonce: self.nonce.of(before),
            associated: Some(&before[..self.associated_size]),
            text: text.into(),
            tag,
        }
    }
}

/// A datagram that is the answer to a request, if it is genuine: it has passed every check that needs no key. Many of
/// them are opened together.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    header: Header,
    kiss: Option<Check>,
    authenticator: Option<Authenticator>,
}

impl Candidate {
    /// The job that verifies and decrypts `datagram`, out of which the candidate was made; `None` if there is nothing
    /// to verify, or what is sealed is too short for a tag.
    //= rfc8915#5.6-3, rfc8915#5.6-4
    #[inline]
    #[must_use]
    pub fn job<'a>(
        &self,
        datagram: &'a mut [u8],
        session: &'a NtsSession,
        genuine: &'a mut bool,
    ) -> Option<Open<'a>> {
        let authenticator = self.authenticator?;
        let (before, rest) = datagram.split_at_mut(authenticator.ciphertext.start());
        let before = &*before;
        let sealed = &mut rest[..authenticator.ciphertext.size()];
        let (text, tag) = session.algorithm().split_sealed(sealed)?;
        Some(Open {
            key: session.keys().s2c(),
            nonce: authenticator.nonce.of(before),
            associated: Some(&before[..authenticator.associated_size]),
            text: text.into(),
            tag,
            genuine,
        })
    }

    /// The tag of `datagram`, out of which the candidate was made; nothing if there is none.
    fn tag_of<'a>(&self, datagram: &'a [u8]) -> &'a [u8] {
        self.authenticator
            .map_or(&[], |authenticator| &datagram[authenticator.ciphertext.start()..][..TAG_SIZE])
    }

    /// The tag of `datagram` if nothing in it were encrypted; nothing if something is.
    fn tag_without_text(&self, datagram: &[u8], session: &NtsSession) -> Vec<u8> {
        let Some(authenticator) = self.authenticator.filter(|it| it.ciphertext.size() == TAG_SIZE) else {
            return Vec::new();
        };
        let (nonce, mut tag) = (authenticator.nonce.of(datagram), vec![0; TAG_SIZE]);
        let (text, sealed) = session.algorithm().split_sealed(&mut tag).expect("there is room for a tag");
        let associated = Some(&datagram[..authenticator.associated_size]);
        let key = session.keys().s2c();
        run_batch(std::iter::once(Seal { key, nonce, associated, text: text.into(), tag: sealed }));
        tag
    }
}

/// There is no cookie left: a new key exchange is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no cookie left; a new key exchange is needed")]
pub struct NoCookie;

/// A response that passed every check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// What the server said.
    pub header: Header,
    /// Cookies that came with it and went into the jar.
    pub cookie_count: usize,
}

/// The check that a datagram failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Check {
    /// It is no NTP packet.
    #[error("syntax: {0}")]
    Syntax(authentick_wire::Malformed),
    /// It is not a server's response, or in a version that a response to this request cannot have.
    #[error("mode: not a server's response in the version that was asked")]
    Mode,
    /// It carries a MAC or a crypto-NAK, and the request had no MAC.
    #[error("MAC: the response carries one, and the request asked for none")]
    UnaskedMac,
    /// Its origin is not our transmit timestamp: it answers another request, or none.
    #[error("origin: answers another request than ours")]
    Origin,
    /// The exchange has its response already.
    #[error("duplicate: the request was answered already")]
    Duplicate,
    /// It lacks the unique identifier of the request.
    #[error("unique identifier: missing or not that of the request")]
    Identifier,
    /// It is not authenticated, though the request was.
    #[error("authenticator: missing")]
    Authenticator,
    /// Its tag is wrong.
    #[error("tag: wrong authentication tag")]
    Tag,
    /// It is tagged with another key than the request.
    #[error("key id: tagged with key {0}, which is not that of the request")]
    KeyId(u32),
    /// It is a crypto-NAK: the server does not accept the key. The kiss code, where there is one, says why. RFC 5905
    /// section 9.2.
    #[error("crypto-NAK{}", reason(*.0))]
    CryptoNak(Option<ReferenceId>),
    /// What was encrypted is not made of extension fields.
    #[error("encrypted fields: {0}")]
    Encrypted(authentick_wire::Malformed),
    /// It is a kiss-o'-death with this code. RFC 5905 section 7.4.
    #[error("kiss code {0:?}: {meaning}", meaning = meaning(*.0))]
    Kiss(ReferenceId),
    /// Its receive or transmit timestamp is zero.
    #[error("timestamps: receive or transmit time is zero")]
    Timestamps,
    /// By its own account the server's clock is not to be followed.
    #[error(transparent)]
    Clock(#[from] Unsound),
}

/// What a crypto-NAK says, as the end of a sentence.
fn reason(code: Option<ReferenceId>) -> String {
    match code {
        None => ": the server does not accept the key or the tag".to_owned(),
        Some(code) => format!(", kiss code {code:?}: {}", meaning(code)),
    }
}

impl Exchange {
    /// Writes a plain request to `out`, which needs 48 octets; returns the exchange and the request's size.
    ///
    /// # Panics
    /// If `out` has fewer than 48 octets.
    pub fn plain(entropy: &mut Entropy, out: &mut [u8]) -> (Self, usize) {
        let exchange = Exchange::with_time(random_time(entropy));
        let header = out.first_chunk_mut().expect("a request needs 48 octets of room");
        Header::minimal_request(exchange.transmit).emit(header);
        (exchange, HEADER_SIZE)
    }

    pub(super) const fn with_time(transmit: NtpTime) -> Self {
        Exchange { transmit, identifier: None, keyed: false, answered: false }
    }

    /// Writes an NTS request to `out`, with a cookie out of the jar and placeholders so that the jar becomes full
    /// again, as far as a datagram carries them; returns the exchange and the request's size.
    ///
    /// # Panics
    /// If `out` has fewer than [`REQUEST_SIZE_MAX`] octets.
    pub fn nts(
        session: &mut NtsSession,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> Result<(Self, usize), NoCookie> {
        let (exchange, unsealed) = Self::nts_among(session, 0, entropy, out)?;
        run_batch(std::iter::once(unsealed.job(session, out)));
        Ok((exchange, unsealed.size()))
    }

    /// The same while other requests of the session are in flight, which will bring `expected_count` cookies: so many
    /// fewer are asked for. The request is yet to be sealed.
    ///
    /// # Panics
    /// If `out` has fewer than [`REQUEST_SIZE_MAX`] octets.
    pub fn nts_among(
        session: &mut NtsSession,
        expected_count: usize,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> Result<(Self, Unsealed), NoCookie> {
        //= rfc8915#5.7-4, rfc8915#5.7-5
        let cookie = session.jar.take().ok_or(NoCookie)?;
        //= rfc8915#5.7-8
        let wanted = (COOKIE_COUNT - 1).saturating_sub(session.jar.count() + expected_count);
        Ok(Self::authenticated(session, &cookie, wanted, entropy, out))
    }

    /// The same with the oldest cookie of the jar, which stays there, and without placeholders. No client does this:
    /// RFC 8915 section 5.7 has a cookie used once. It is how load generators save themselves the key exchanges.
    ///
    /// # Panics
    /// If `out` has fewer than [`REQUEST_SIZE_MAX`] octets.
    pub fn nts_replayed(
        session: &NtsSession,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> Result<(Self, Unsealed), NoCookie> {
        let cookie = session.jar.oldest().ok_or(NoCookie)?;
        Ok(Self::authenticated(session, cookie, 0, entropy, out))
    }

    /// Writes a request with `cookie` and as many placeholders as are `wanted` and fit.
    fn authenticated(
        session: &NtsSession,
        cookie: &[u8],
        wanted: usize,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> (Self, Unsealed) {
        const ROOM: &str = "REQUEST_SIZE_MAX octets hold a request";
        //= rfc8915#5.3-1, rfc8915#5.7-2
        let (identifier, transmit) = (entropy.array(), random_time(entropy));
        let identifier = Some(drawn_octets(identifier, transmit.to_bits()));
        let exchange = Exchange { identifier, ..Exchange::with_time(transmit) };
        let algorithm = session.algorithm();
        let mut nonce = [0; 16];
        //= rfc8915#5.6-7, rfc8915#5.6-6
        let nonce = &mut nonce[..algorithm.nonce_size()];
        entropy.fill(nonce);

        let field = cookie_field_size(cookie.len());
        let fixed = HEADER_SIZE
            + FIELD_HEADER_SIZE
            + IDENTIFIER_SIZE_MIN
            + field
            + authenticator_size(nonce.len(), TAG_SIZE);
        //= rfc8915#5.7-10
        let placeholder_count = wanted.min((REQUEST_SIZE_MAX - fixed) / field);

        let mut writer = Writer::new(&mut out[..REQUEST_SIZE_MAX]);
        Header::minimal_request(exchange.transmit).put(&mut writer).expect(ROOM);
        let identifier = exchange.identifier.as_ref().expect("just made");
        //= rfc8915#5.7-2
        extension::emit(&mut writer, FieldType::UNIQUE_IDENTIFIER, identifier).expect(ROOM);
        //= rfc8915#5.4-1, rfc8915#5.7-3
        extension::emit(&mut writer, FieldType::NTS_COOKIE, cookie).expect(ROOM);
        //= rfc8915#5.5-2, rfc8915#5.7-7
        for _ in 0..placeholder_count {
            extension::emit_header(&mut writer, FieldType::NTS_COOKIE_PLACEHOLDER, cookie.len()).expect(ROOM);
            //= rfc8915#5.5-4, rfc8915#5.5-3
            writer.zeros(cookie.len()).expect(ROOM);
        }
        let associated_size = writer.offset();
        let (nonce, sealed) = emit_authenticator(&mut writer, nonce, TAG_SIZE, 0).expect(ROOM);
        (exchange, Unsealed { associated_size, nonce, sealed })
    }

    /// The transmit timestamp of the request, by which a server's records of it can be found.
    #[must_use]
    pub const fn transmit(&self) -> NtpTime {
        self.transmit
    }

    /// Checks a datagram that came from the server's address. `session` is the one that the request was made with, if
    /// it was made with one: without it no answer passes. New cookies go into its jar. Decrypts in place. At most one
    /// datagram passes.
    pub fn receive(
        &mut self,
        datagram: &mut [u8],
        session: Option<&mut NtsSession>,
    ) -> Result<Response, Check> {
        let candidate = self.inspect(datagram)?;
        let mut genuine = false;
        if let Some(session) = &session {
            run_batch(candidate.job(datagram, session, &mut genuine).into_iter());
            let (datagram, tag) = (&*datagram, candidate.tag_of(datagram));
            genuine = is_tag(genuine, tag, || candidate.tag_without_text(datagram, session));
        }
        self.conclude(&candidate, genuine, datagram, session)
    }

    /// Whether a response may have this version. RFC 5905 asks for the mode alone, and servers exist that respond in
    /// version 3 to version 4; what authenticates a response is defined for version 4. Version 5 has another header.
    const fn accepts_version(&self, version: u8) -> bool {
        version == 4 || matches!(version, 1..=3) && self.identifier.is_none() && !self.keyed
    }

    /// The checks of [`Exchange::receive`] that need no key.
    pub fn inspect(&self, datagram: &[u8]) -> Result<Candidate, Check> {
        let packet = Packet::parse(datagram).map_err(Check::Syntax)?;
        let header = packet.header();
        let is_unasked = header.mode == Mode::Server && packet.trailer() != Trailer::None;
        if !holds(Place::Mode, !is_unasked) {
            return Err(Check::UnaskedMac);
        }
        //= rfc5905#9.2-9
        let is_response = header.mode == Mode::Server && self.accepts_version(header.version);
        if !holds(Place::Mode, is_response) {
            return Err(Check::Mode);
        }
        //= rfc5905#8-1
        if !holds(Place::Origin, header.origin == self.transmit) {
            return Err(Check::Origin);
        }
        if !holds(Place::Duplicate, !self.answered) {
            return Err(Check::Duplicate);
        }
        let kiss = (header.stratum == 0).then_some(Check::Kiss(header.reference_id));
        let mut authenticator = None;
        if let Some(identifier) = &self.identifier {
            let fields = NtsFields::locate(&packet).map_err(Check::Syntax)?;
            //= rfc8915#5.7-18, rfc8915#5.7-22
            let is_ours = fields.identifier.map(|span| span.of(datagram)) == Some(&identifier[..]);
            if !holds(Place::Identifier, is_ours) {
                return Err(Check::Identifier);
            }
            // Of all unauthenticated responses only a kiss with our identifier means anything: who sent it has at
            // least seen the request. RFC 8915 section 5.7.
            //= rfc8915#5.7-19
            authenticator = fields.authenticator;
            if !holds(Place::Authenticator, authenticator.is_some()) {
                return Err(kiss.unwrap_or(Check::Authenticator));
            }
        }
        Ok(Candidate { header, kiss, authenticator })
    }

    /// The rest of the checks, after the candidate's job has run on `datagram` and said whether it is `genuine`.
    pub fn conclude(
        &mut self,
        candidate: &Candidate,
        genuine: bool,
        datagram: &mut [u8],
        session: Option<&mut NtsSession>,
    ) -> Result<Response, Check> {
        let Candidate { header, kiss, authenticator } = candidate;
        if !holds(Place::Duplicate, !self.answered) {
            return Err(Check::Duplicate);
        }
        let cookie_count = match (authenticator, session) {
            //= rfc8915#5.7-18, rfc9769#2-11
            (Some(_), Some(_)) if !holds(Place::Tag, genuine) => return Err(Check::Tag),
            (Some(authenticator), Some(session)) => take_cookies(datagram, authenticator, session)?,
            // Nobody can vouch for the answer.
            (None, _) if self.keyed => return Err(kiss.unwrap_or(Check::Authenticator)),
            (Some(_), None) => return Err(kiss.unwrap_or(Check::Authenticator)),
            (None, _) => 0,
        };
        check_content(header)?;
        //= rfc5905#8-2
        self.answered = true;
        Ok(Response { header: *header, cookie_count })
    }
}

/// What a response says, once it is known from whom it comes.
//= rfc5905#7.4-1, rfc5905#7.4-5, rfc5905#7.4-4
pub(super) fn check_content(header: &Header) -> Result<(), Check> {
    if !holds(Place::Kiss, header.stratum != 0) {
        return Err(Check::Kiss(header.reference_id));
    }
    // A clock that was never set has no time to tell, and says so.
    check_clock(header).or_else(|unsound| if is_out(Place::Clock) { Ok(()) } else { Err(unsound) })?;
    //= rfc5905#6-5
    if !holds(Place::Timestamps, !header.receive.is_zero() && !header.transmit.is_zero()) {
        return Err(Check::Timestamps);
    }
    Ok(())
}

/// Puts the cookies of a decrypted response into the jar; returns how many.
//= rfc8915#5.6-5, rfc8915#5.7-17
fn take_cookies(
    datagram: &mut [u8],
    authenticator: &Authenticator,
    session: &mut NtsSession,
) -> Result<usize, Check> {
    let sealed = &mut datagram[authenticator.ciphertext.start()..authenticator.ciphertext.end()];
    let (text, _) = session.algorithm().split_sealed(sealed).ok_or(Check::Tag)?;
    let mut count = 0;
    for field in Fields::new(text, 0, FIELD_HEADER_SIZE) {
        let field = field.map_err(Check::Encrypted)?;
        if field.kind == FieldType::NTS_COOKIE && session.jar.add(field.body) {
            count += 1;
        }
    }
    Ok(count)
}

pub(super) fn random_time(entropy: &mut Entropy) -> NtpTime {
    if is_out(Place::DrawnOrigin) {
        return NtpTime::from_bits(1);
    }
    // Zero would mean "unknown", and a server could not tell it from a missing timestamp.
    NtpTime::from_bits(drawn(entropy.u64()).max(1))
}
