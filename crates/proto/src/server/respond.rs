//! Writing responses: headers with time for the authenticated, kisses without for the rest.

use authentick_crypto::{Algorithm, Entropy, TAG_SIZE};
use authentick_wire::Writer;
use authentick_wire::extension::{self, FieldType};
use authentick_wire::header::{Header, Leap, Mode, ReferenceId};
use authentick_wire::limits::{COOKIE_COUNT, FIELD_HEADER_SIZE, HEADER_SIZE};
use authentick_wire::nts::{Span, authenticator_size, cookie_field_size, emit_authenticator};
use authentick_wire::time::{NtpShort, NtpTime};

use super::interleave::Interleave;
use super::snapshot::Snapshot;
use super::verify::Authenticated;
use crate::cookie;

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
pub(super) struct Stamps {
    pub(super) receive: NtpTime,
    pub(super) transmit: NtpTime,
}

/// Where the sealed part of an NTS response lies, and what it was sealed with.
#[derive(Clone, Copy, Debug)]
pub(super) struct SealedPart {
    pub(super) associated_size: usize,
    pub(super) nonce: Span,
    pub(super) sealed: Span,
}

/// Writes the fields of an NTS response behind a header that is yet to come: the identifier, and an authenticator with
/// room for as many cookies as fit into `size_max` octets, at most `cookie_count`. `None` if not even one fits.
#[inline(always)]
pub(super) fn lay_out_nts(
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
pub(super) struct CookiePlaces<'a> {
    cookie_size: usize,
    /// Fields that are yet to come.
    rest: &'a mut [u8],
}

impl<'a> CookiePlaces<'a> {
    #[inline(always)]
    pub(super) fn new(response: &'a mut [u8], part: &SealedPart, algorithm: Algorithm) -> Self {
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

/// Copies a unique identifier behind the header of a plain response or a kiss; returns the response's size, which is
/// the header's alone where there is no identifier or no room for it.
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
pub(super) fn build_header(
    _: Authenticated,
    response: &mut [u8; HEADER_SIZE],
    echo: &Echo,
    stamps: Stamps,
    snapshot: &Snapshot,
    root_dispersion: NtpShort,
) {
    Header {
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
    }
    .emit(response);
}

/// Writes the header of a kiss. It tells no time: its timestamps repeat the client's own, as zeros would keep chrony
/// from heeding it.
pub(super) fn build_kiss(response: &mut [u8; HEADER_SIZE], echo: &Echo, code: ReferenceId) {
    Header {
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
        receive: echo.origin,
        transmit: echo.origin,
    }
    .emit(response);
}

/// The timestamps of a response in basic mode. RFC 9769 section 2: they are never equal.
pub(super) const fn basic_stamps(receive: NtpTime, now: NtpTime) -> Stamps {
    Stamps { receive, transmit: Interleave::transmit_stamp(now) }
}
