//! Authentication: the only place that turns an admitted request into one that may be given time.

use authentick_crypto::{Algorithm, Open};
use authentick_wire::header::ReferenceId;
use authentick_wire::nts::{Authenticator, count_encrypted_placeholders};

use super::admit::Admitted;
use super::outcome::Outcome;
use crate::auth::nts::nonce_is_long_enough;
use crate::cookie::SessionKeys;

/// A request whose sender is who it must be. Only this module makes one, so an unverified request cannot obtain time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Authenticated(());

/// A request whose proof does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    /// Without a word: the request breaks a rule.
    Silently(Outcome),
    /// With an NTSN kiss. RFC 8915 section 5.7.
    Nak(Outcome),
    /// With a crypto-NAK that carries a kiss code. RFC 5905 section 9.2.
    CryptoNak(ReferenceId, Outcome),
}

/// A request without any proof: policy let it through, which is all that plain NTP asks for.
pub(super) const fn plain(_: Admitted) -> Authenticated {
    Authenticated(())
}

/// A request of ANTP, which nothing vouches for: m1, m3 and m5 have no tag, as who asks need not be known.
///
/// It may be given time for the same reason as one of plain NTP: policy let it through. What its answer is worth is for
/// its client to judge. m6 proves itself with a tag under the key out of C2. The times of m2, m4 and errors have
/// nothing that proves them, and clients of ANTP never use them.
pub(super) const fn antp(_: Admitted) -> Authenticated {
    Authenticated(())
}

/// The job that verifies an NTS request in place; fails if its nonce breaks a rule of RFC 8915 section 5.6.
#[inline(always)]
pub(super) fn nts_job<'a>(
    request: &'a mut [u8],
    authenticator: &Authenticator,
    session: &'a SessionKeys,
    genuine: &'a mut bool,
) -> Result<Open<'a>, Rejected> {
    let broken = Rejected::Silently(Outcome::NtsMalformed);
    let algorithm = session.algorithm();
    if !algorithm.accepts_nonce(authenticator.nonce.size()) || !nonce_is_long_enough(algorithm, authenticator)
    {
        return Err(broken);
    }
    let (before, rest) = request.split_at_mut(authenticator.ciphertext.start());
    let before = &*before;
    let sealed = &mut rest[..authenticator.ciphertext.size()];
    let (text, tag) = algorithm.split_sealed(sealed).ok_or(broken)?;
    Ok(Open {
        key: session.c2s(),
        nonce: authenticator.nonce.of(before),
        associated: Some(&before[..authenticator.associated_size]),
        text: text.into(),
        tag,
        genuine,
    })
}

/// Judges a request with a MAC after its job has run.
pub(super) const fn mac(_: Admitted, genuine: bool) -> Result<Authenticated, Rejected> {
    match genuine {
        true => Ok(Authenticated(())),
        false => Err(Rejected::CryptoNak(ReferenceId::CRYP, Outcome::MacNakTag)),
    }
}

/// What a verified NTS request has earned.
pub(super) struct Earned {
    pub(super) proof: Authenticated,
    /// Placeholders inside the ciphertext.
    pub(super) encrypted_placeholder_count: usize,
}

/// Judges a request after its job has run.
#[inline(always)]
pub(super) fn nts(
    _: Admitted,
    genuine: bool,
    request: &mut [u8],
    authenticator: &Authenticator,
    algorithm: Algorithm,
    cookie_size: usize,
) -> Result<Earned, Rejected> {
    if !genuine {
        return Err(Rejected::Nak(Outcome::NakTag));
    }
    let sealed = &mut request[authenticator.ciphertext.start()..authenticator.ciphertext.end()];
    let broken = Rejected::Silently(Outcome::NtsMalformed);
    let (text, _) = algorithm.split_sealed(sealed).ok_or(broken)?;
    match count_encrypted_placeholders(text, cookie_size) {
        Ok(encrypted_placeholder_count) => {
            Ok(Earned { proof: Authenticated(()), encrypted_placeholder_count })
        }
        Err(_) => Err(broken),
    }
}
