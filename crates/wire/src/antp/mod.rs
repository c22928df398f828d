//! ANTP/1, our profile of ANTP: its extension fields, the messages in them, and their sizes.
//!
//! "Authenticated Network Time Synchronization" (USENIX Security 2016) gives no wire format. The one here is ours; the
//! specification is `docs/antp.md`, where each field has its diagram. What is absent: keys, hashes, and whether a
//! certificate is to be trusted.
//!
//! ```text
//! the value of every ANTP field begins with eight octets:
//!  0  magic "ANTP"
//!  4  version 1 | flags | suite u16
//! ```
//!
//! A packet carries at most one message, in its last field. Padding and a certificate chunk stand before it.

mod chain;
mod message;
mod negotiation;
mod session;

pub use chain::{Chain, chain_size, emit_chain};
pub use message::{Antp, Message, emit_chunk, emit_padding};
pub use negotiation::{
    Chunk, NegotiationRequest, NegotiationResponse, SuiteList, chunk_size_max, negotiation_response_size,
};
pub use session::{Early, ErrorMessage, KeyRequest, KeyResponse, TimeRequest, TimeResponse};

use core::fmt;

use crate::extension::FieldType;
use crate::{Malformed, NoRoom, Reader, Reason, Writer};

/// What every value begins with; a field without it is not ours.
pub const MAGIC: [u8; 4] = *b"ANTP";
/// The version of the profile.
pub const VERSION: u8 = 1;

/// Octets of magic, version, flags and suite.
pub const PREFIX_SIZE: usize = 8;
/// Octets of a nonce of m1 or m5.
pub const NONCE_SIZE: usize = 32;
/// Octets of a hash.
pub const HASH_SIZE: usize = 32;
/// Octets of a confirmation or response tag, tau1 and tau2.
pub const TAG_SIZE: usize = 32;
/// Octets of C1, the server's sealed state between negotiation and key exchange.
pub const C1_SIZE: usize = 72;
/// Octets of C2, the server's sealed state that holds the session key.
pub const C2_SIZE: usize = 60;
/// Random octets of an early response.
pub const EARLY_SIZE: usize = 16;

/// m1: what the client offers.
pub const NEG_REQ: FieldType = FieldType(0xFA01);
/// m2: what the server chooses.
pub const NEG_RSP: FieldType = FieldType(0xFA02);
/// m3: an encapsulated secret.
pub const KEX_REQ: FieldType = FieldType(0xFA03);
/// m4: the sealed session key, confirmed.
pub const KEX_RSP: FieldType = FieldType(0xFA04);
/// m5: a request for time.
pub const TS_REQ: FieldType = FieldType(0xFA05);
/// m6: the tag of a response.
pub const TS_RSP: FieldType = FieldType(0xFA06);
/// The random octets that stand in for the tag in separate-tag mode.
pub const TS_EARLY: FieldType = FieldType(0xFA07);
/// A part of the certificate chain.
pub const CERT: FieldType = FieldType(0xFA08);
/// An error, which nothing authenticates.
pub const ERR: FieldType = FieldType(0xFA09);
/// Zeros, so that a request is as large as the response it wants.
pub const PAD: FieldType = FieldType(0xFA0F);

/// A key encapsulation mechanism with its hash and MAC. Unknown values survive a round trip.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Suite(pub u16);

impl Suite {
    /// RSA-2048 key transport with PKCS#1 v1.5. The ANTP paper, section 4.1.
    pub const RSA_PKCS1: Suite = Suite(0x0001);
    /// Static-ephemeral ECDH on P-256, as ECIES-KEM. The ANTP paper, section 4.1.
    pub const P256: Suite = Suite(0x0002);
    /// RSA-2048 key transport with OAEP and SHA-256; ours.
    pub const RSA_OAEP: Suite = Suite(0x0101);
    /// X25519 in place of P-256; ours.
    pub const X25519: Suite = Suite(0x0102);

    /// Every suite of the profile, in the order of their bits in [`Suites`].
    pub const ALL: [Suite; 4] = [Suite::RSA_PKCS1, Suite::P256, Suite::RSA_OAEP, Suite::X25519];

    /// Octets of the KEM's ciphertext; `None` for a suite that is not known here.
    #[must_use]
    pub const fn ciphertext_size(self) -> Option<usize> {
        match self {
            Suite::RSA_PKCS1 | Suite::RSA_OAEP => Some(256),
            Suite::P256 => Some(65),
            Suite::X25519 => Some(32),
            Suite(_) => None,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Suite::RSA_PKCS1 => "RSA-2048 PKCS#1 v1.5",
            Suite::P256 => "P-256 ECIES-KEM",
            Suite::RSA_OAEP => "RSA-2048 OAEP-SHA256",
            Suite::X25519 => "X25519",
            Suite(other) => return write!(f, "suite 0x{other:04x}"),
        })
    }
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A set of suites: bit n stands for [`Suite::ALL`]`[n]`. Bits without a suite survive a round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suites(pub u32);

impl Suites {
    /// The set with `suite` in it, if it has a bit.
    #[must_use]
    pub fn with(self, suite: Suite) -> Self {
        Suites(self.0 | Suites::bit(suite))
    }

    /// Whether `suite` is in the set.
    #[must_use]
    pub fn contains(self, suite: Suite) -> bool {
        self.0 & Suites::bit(suite) != 0
    }

    fn bit(suite: Suite) -> u32 {
        Suite::ALL.iter().position(|&known| known == suite).map_or(0, |index| 1 << index)
    }
}

/// What an error message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u16);

impl ErrorCode {
    /// The request has a version of ANTP that the server does not know.
    pub const VERSION: ErrorCode = ErrorCode(1);
    /// The server has none of the suites that were offered.
    pub const NO_SUITE: ErrorCode = ErrorCode(2);
    /// C1 or C2 does not open any more.
    pub const EXPIRED: ErrorCode = ErrorCode(3);
    /// The client asks too often.
    pub const RATE: ErrorCode = ErrorCode(4);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            ErrorCode::VERSION => "unknown version",
            ErrorCode::NO_SUITE => "no common suite",
            ErrorCode::EXPIRED => "state expired",
            ErrorCode::RATE => "rate",
            ErrorCode(other) => return write!(f, "error {other}"),
        })
    }
}

/// Flags and suite of a field. The meaning of both depends on the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Prefix {
    flags: u8,
    suite: Suite,
}

impl Prefix {
    const fn of(suite: Suite) -> Self {
        Prefix { flags: 0, suite }
    }

    /// Reads the prefix after the magic has been found.
    fn parse(reader: &mut Reader<'_>, field_offset: usize) -> Result<Self, Malformed> {
        reader.take(MAGIC.len())?;
        let [version, flags] = *reader.array()?;
        if version != VERSION {
            return Err(Malformed::new(Reason::AntpVersion, field_offset));
        }
        Ok(Prefix { flags, suite: Suite(reader.u16()?) })
    }

    fn emit(self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        out.put(&MAGIC)?;
        out.put(&[VERSION, self.flags])?;
        out.u16(self.suite.0)
    }
}

#[cfg(test)]
mod tests;
