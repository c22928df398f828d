//! Why octets were refused: one enum of reasons, and the offset at which parsing gave up.

use core::fmt;

/// Octets that do not follow their syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// What rule was broken.
    pub reason: Reason,
    /// Octets from the start of the datagram or message to the place.
    pub offset: usize,
}

impl Malformed {
    /// `reason` at `offset` octets from the start.
    #[must_use]
    pub const fn new(reason: Reason, offset: usize) -> Self {
        Malformed { reason, offset }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at octet {}", self.reason, self.offset)
    }
}

impl core::error::Error for Malformed {}

/// The rule that octets broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Fewer octets than the fixed part needs.
    Truncated,
    /// More octets than any valid message has.
    TooLong,
    /// A length that is not a multiple of four octets. RFC 7822 section 3.
    Unaligned,
    /// An NTP version other than 1 to 4.
    Version,
    /// An extension field shorter than 16 octets, or longer than what is left. RFC 7822 section 3.
    FieldLength,
    /// Octets left over that are neither an extension field nor a message authentication code.
    Trailer,
    /// A field or record that may appear once appears again.
    Duplicate,
    /// A field or record that must be there is not.
    Missing,
    /// Inner lengths of a field or record that contradict its outer length.
    InnerLength,
    /// A unique identifier of fewer than 32 octets. RFC 8915 section 5.3.
    ShortIdentifier,
    /// A nonce too short for its AEAD without the padding that RFC 8915 section 5.6 demands.
    ShortNonce,
    /// A record type that is critical and not known here. RFC 8915 section 4.1.3.
    UnknownCritical,
    /// A record whose critical bit must be set and is not.
    NotCritical,
    /// A record that only the other side may send.
    WrongDirection,
    /// A value outside its range.
    Value,
    /// A version of ANTP other than 1.
    AntpVersion,
    /// A field that its packet may not carry, or not at this place.
    Misplaced,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Truncated => "message ends too early",
            Reason::TooLong => "message is too long",
            Reason::Unaligned => "length is not a multiple of four octets",
            Reason::Version => "unsupported NTP version",
            Reason::FieldLength => "extension field length is out of range",
            Reason::Trailer => "left-over octets are neither extension field nor MAC",
            Reason::Duplicate => "field or record appears twice",
            Reason::Missing => "required field or record is missing",
            Reason::InnerLength => "inner length contradicts outer length",
            Reason::ShortIdentifier => "unique identifier is shorter than 32 octets",
            Reason::ShortNonce => "nonce is too short and not padded",
            Reason::UnknownCritical => "unknown critical record",
            Reason::NotCritical => "record must be critical",
            Reason::WrongDirection => "record may not be sent by this side",
            Reason::Value => "value is out of range",
            Reason::AntpVersion => "unsupported ANTP version",
            Reason::Misplaced => "field may not stand here",
        })
    }
}

/// The output buffer is too small for what was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("output buffer is too small")
    }
}

impl core::error::Error for NoRoom {}
