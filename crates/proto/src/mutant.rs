//! Decisions that can be left out, one by one, to see whether anybody would notice.
//!
//! Each [`Place`] is where a client or a server decides whether to go on. Without the feature `mutants`, [`holds`] is
//! its argument and nothing else. With it, a test can run code in which a place lets everything pass: the adversary of
//! the crate `game` has to win then, or the place stands in a table that says what else proves it.
//!
//! With the feature, tags and nonces can also be [narrowed], so that what a security bound says of them can be
//! measured: nobody lives to see a guess of 128 bits.
//!
//! [narrowed]: Narrow

#[cfg(feature = "mutants")]
use std::cell::Cell;

/// Lists the places, each with what it checks.
macro_rules! places {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Where something is decided.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Place {
            $($(#[$doc])* $name,)*
        }

        impl Place {
            /// All of them.
            pub const ALL: &[Place] = &[$(Place::$name,)*];
        }
    };
}

places! {
    /// Client of NTP: a response has the mode and version of one, and nothing behind it.
    Mode,
    /// Client of NTP: the origin is the transmit timestamp of the request.
    Origin,
    /// Client of NTP: the transmit timestamp is drawn.
    DrawnOrigin,
    /// Client of NTP: the request was not answered before.
    Duplicate,
    /// Client of NTS: the unique identifier is that of the request.
    Identifier,
    /// Client of NTS: there is an authenticator.
    Authenticator,
    /// Client of NTS: the tag is right.
    Tag,
    /// Client of NTP: stratum 0 is a kiss and no time.
    Kiss,
    /// Client of NTP: the server's clock is one to follow, by its own account.
    Clock,
    /// Client of NTP: receive and transmit timestamp are not zero.
    Timestamps,
    /// Client with a MAC: a response has the mode and version of one.
    MacMode,
    /// Client with a MAC: the origin is the transmit timestamp of the request.
    MacOrigin,
    /// Client with a MAC: the request was not answered before.
    MacDuplicate,
    /// Client with a MAC: the key is that of the request.
    MacKeyId,
    /// Client with a MAC: the tag is right.
    MacTag,
    /// Client of ANTP: a response has the mode and version of one.
    AntpMode,
    /// Client of ANTP: the origin is the token of the request.
    AntpOrigin,
    /// Client of ANTP: the token is drawn.
    Token,
    /// Client of ANTP: the nonce of m5 is drawn.
    Nonce,
    /// Client of ANTP: what has no tag is no answer.
    Untagged,
    /// Client of ANTP: the request was not answered before.
    AntpDuplicate,
    /// Client of ANTP, m2: the suite was offered, and the server has it.
    SuiteOffered,
    /// Client of ANTP, m2: there is no better suite that both have.
    Choice,
    /// Client of ANTP, m2: the chain of certificates has the hash that was announced.
    ChainHash,
    /// Client of ANTP, m4: the suite is the one that was agreed on.
    KeySuite,
    /// Client of ANTP, m4: tau1 is right.
    Confirmation,
    /// Client of ANTP, m6: the suite is that of the session.
    TimeSuite,
    /// Client of ANTP, m6: tau2 is right.
    TimeTag,
    /// Client of ANTP, m6: the early packet that counts is the one that the tag covers.
    EarlyMatch,
    /// Client of ANTP, m6: the server did not send before it received.
    Order,
    /// Client of ANTP, m6: the round trip is at most E.
    RoundTrip,
    /// Client of ANTP, m6: the whole exchange took no longer than allowed.
    Residence,
    /// Client of ANTP, m6: receive and transmit timestamp are not zero.
    AntpTimestamps,
    /// Server of NTS: the cookie is one of its own.
    Cookie,
    /// Server of NTS: the tag of the request is right.
    RequestTag,
    /// Server with MACs: the tag of the request is right.
    MacRequestTag,
    /// Server of ANTP: C1 or C2 is one of its own, and of its kind.
    StateTag,
    /// Server of ANTP: C1 is not older than a minute.
    PendingAge,
    /// Server of ANTP: C1 is for this suite.
    PendingSuite,
    /// Server of ANTP: C2 has not expired.
    Expiry,
    /// Server of ANTP: C2 is for this suite.
    EstablishedSuite,
    /// tau1 is over h1, what was negotiated.
    TranscriptOfNegotiation,
    /// tau1 and tau2 are over labels of their own.
    Label,
    /// tau2 is over the whole of m5.
    RequestUnderTag,
    /// C1 and C2 are sealed with what tells them apart.
    StateLabels,
    /// C1 and C2 are sealed under a nonce of their own each.
    StateNonce,
}

#[cfg(feature = "mutants")]
thread_local! {
    /// The places that let everything pass, as bits.
    static OUT: Cell<u64> = const { Cell::new(0) };
}

#[cfg(feature = "mutants")]
const _: () = assert!(Place::ALL.len() <= 64, "there is a bit for each place");

/// Whether what is checked at `place` holds; with the place left out, it does.
#[cfg(feature = "mutants")]
#[must_use]
pub fn holds(place: Place, condition: bool) -> bool {
    condition || is_out(place)
}

/// Whether what is checked at `place` holds: `condition`.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
#[must_use]
pub const fn holds(_: Place, condition: bool) -> bool {
    condition
}

/// Whether `place` is left out.
#[cfg(feature = "mutants")]
#[must_use]
pub fn is_out(place: Place) -> bool {
    OUT.get() & 1 << place as u64 != 0
}

/// Whether `place` is left out: never.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
#[must_use]
pub const fn is_out(_: Place) -> bool {
    false
}

/// Bits of tags that count, and bits of nonces that are drawn.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// Of a tag that a client verifies, the first so many; 64 at most.
    pub tag_bits: u32,
    /// Of all that a client draws to know its response by, together; 64 at most.
    pub nonce_bits: u32,
}

#[cfg(feature = "mutants")]
thread_local! {
    static NARROW: Cell<Option<Narrow>> = const { Cell::new(None) };
}

/// Runs `play` on this thread with tags and nonces of so many bits.
#[cfg(feature = "mutants")]
pub fn narrowed<R>(narrow: Narrow, play: impl FnOnce() -> R) -> R {
    let before = NARROW.replace(Some(narrow));
    let result = play();
    NARROW.set(before);
    result
}

/// Whether a tag is right: `genuine`, or, with narrow tags, also if its first bits are those of the tag that `expected`
/// computes.
#[cfg(all(feature = "mutants", feature = "client"))]
pub(crate) fn is_tag(genuine: bool, tag: &[u8], expected: impl FnOnce() -> Vec<u8>) -> bool {
    let first = |octets: &[u8]| octets.first_chunk().map(|first| u64::from_be_bytes(*first));
    match NARROW.get() {
        None => genuine,
        Some(Narrow { tag_bits, .. }) => {
            let shift = 64 - tag_bits;
            let of = |octets: &[u8]| first(octets).map(|bits| bits >> shift);
            genuine || of(tag).is_some_and(|bits| of(&expected()) == Some(bits))
        }
    }
}

/// Whether a tag is right: `genuine`.
#[cfg(all(not(feature = "mutants"), feature = "client"))]
#[inline(always)]
pub(crate) fn is_tag(genuine: bool, _: &[u8], _: impl FnOnce() -> Vec<u8>) -> bool {
    genuine
}

/// What was drawn, or as much of it as a narrow nonce has.
#[cfg(all(feature = "mutants", feature = "client"))]
pub(crate) fn drawn(bits: u64) -> u64 {
    NARROW.get().map_or(bits, |narrow| bits >> (64 - narrow.nonce_bits))
}

/// What was drawn.
#[cfg(all(not(feature = "mutants"), feature = "client"))]
#[inline(always)]
pub(crate) const fn drawn(bits: u64) -> u64 {
    bits
}

/// Octets that were drawn beside `number`, or, where `number` is narrow, what follows from it: so that nothing but the
/// narrow number is random.
#[cfg(all(feature = "mutants", feature = "client"))]
pub(crate) fn drawn_octets<const N: usize>(octets: [u8; N], number: u64) -> [u8; N] {
    match NARROW.get() {
        Some(Narrow { nonce_bits, .. }) if nonce_bits < u64::BITS => {
            let mut narrow = [0; N];
            narrow.iter_mut().zip(number.to_be_bytes()).for_each(|(octet, of_it)| *octet = of_it);
            narrow
        }
        _ => octets,
    }
}

/// Octets that were drawn.
#[cfg(all(not(feature = "mutants"), feature = "client"))]
#[inline(always)]
pub(crate) const fn drawn_octets<const N: usize>(octets: [u8; N], _: u64) -> [u8; N] {
    octets
}

/// Runs `play` on this thread with `places` left out.
#[cfg(feature = "mutants")]
pub fn without<R>(places: &[Place], play: impl FnOnce() -> R) -> R {
    /// Puts back what was left out before, also after a panic.
    struct Restore(u64);
    impl Drop for Restore {
        fn drop(&mut self) {
            OUT.set(self.0);
        }
    }
    let _restore = Restore(OUT.replace(places.iter().fold(0, |bits, place| bits | 1 << *place as u64)));
    play()
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use authentick_wire::header::ReferenceId;

    use super::*;
    use crate::antp::client::Check as AntpCheck;
    use crate::client::Check;

    /// Where a check of NTP's clients is made; `None` if nothing passes without it anyway. A new check needs a line.
    const fn place_of(check: &Check) -> Option<Place> {
        match check {
            Check::Mode | Check::UnaskedMac => Some(Place::Mode),
            Check::Origin => Some(Place::Origin),
            Check::Duplicate => Some(Place::Duplicate),
            Check::Identifier => Some(Place::Identifier),
            Check::Authenticator => Some(Place::Authenticator),
            Check::Tag => Some(Place::Tag),
            Check::KeyId(_) => Some(Place::MacKeyId),
            Check::Kiss(_) => Some(Place::Kiss),
            Check::Clock(_) => Some(Place::Clock),
            Check::Timestamps => Some(Place::Timestamps),
            // There is nothing to go on with: no packet, no tag, no fields.
            Check::Syntax(_) | Check::CryptoNak(_) | Check::Encrypted(_) => None,
        }
    }

    /// The same of ANTP's clients.
    const fn place_of_antp(check: &AntpCheck) -> Option<Place> {
        match check {
            AntpCheck::Mode => Some(Place::AntpMode),
            AntpCheck::Origin => Some(Place::AntpOrigin),
            AntpCheck::Duplicate => Some(Place::AntpDuplicate),
            AntpCheck::Untagged => Some(Place::Untagged),
            AntpCheck::Suite(_) => Some(Place::SuiteOffered),
            AntpCheck::Choice(_) => Some(Place::Choice),
            AntpCheck::Chain => Some(Place::ChainHash),
            AntpCheck::Tag => Some(Place::Confirmation),
            AntpCheck::Order => Some(Place::Order),
            AntpCheck::RoundTrip(_) => Some(Place::RoundTrip),
            AntpCheck::Residence(_) => Some(Place::Residence),
            AntpCheck::Timestamps => Some(Place::AntpTimestamps),
            // There is nothing to go on with: no packet, another message, no part of a chain, a refusal, no time.
            AntpCheck::Syntax(_)
            | AntpCheck::Kiss(_)
            | AntpCheck::Server(_)
            | AntpCheck::Phase
            | AntpCheck::Chunk
            | AntpCheck::Clock(_) => None,
        }
    }

    #[test]
    fn checks_have_their_places_and_without_the_feature_each_holds() {
        assert_eq!(place_of(&Check::Kiss(ReferenceId(*b"RATE"))), Some(Place::Kiss));
        assert_eq!(place_of_antp(&AntpCheck::Tag), Some(Place::Confirmation));
        for &place in Place::ALL {
            assert!(holds(place, true) && !holds(place, false) && !is_out(place), "{place:?}");
        }
    }
}
