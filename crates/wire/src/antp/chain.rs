//! The encoding of a certificate chain: what chunks are cut from, and what its hash is over.
//!
//! ```text
//! for each certificate, the leaf first and the root left out:
//!  0  size u16 | DER
//! ```

use crate::limits::{ANTP_CERTIFICATE_COUNT_MAX, ANTP_CHAIN_SIZE_MAX};
use crate::{Malformed, NoRoom, Reader, Reason, Writer};

/// A chain whose lengths add up; the certificates in it are not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain<'a>(&'a [u8]);

impl<'a> Chain<'a> {
    /// Checks the lengths. A chain has one to eight certificates, none of them empty, and at most 8192 octets.
    //= antp#messages-3
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        if octets.len() > ANTP_CHAIN_SIZE_MAX {
            return Err(Malformed::new(Reason::TooLong, ANTP_CHAIN_SIZE_MAX));
        }
        let mut reader = Reader::new(octets);
        for _ in 0..ANTP_CERTIFICATE_COUNT_MAX {
            let offset = reader.offset();
            match usize::from(reader.u16()?) {
                0 => return Err(Malformed::new(Reason::Value, offset)),
                size => reader.take(size)?,
            };
            if reader.left() == 0 {
                return Ok(Chain(octets));
            }
        }
        Err(Malformed::new(Reason::TooLong, reader.offset()))
    }

    /// The certificates, the leaf first, each in DER.
    pub fn certificates(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.0);
        // `parse` walked the same octets, so the chain ends where its octets end.
        core::iter::from_fn(move || {
            let size = reader.u16().ok()?;
            reader.take(usize::from(size)).ok()
        })
    }

    /// The whole encoding.
    #[must_use]
    pub const fn octets(&self) -> &'a [u8] {
        self.0
    }
}

/// Octets of the encoding of `certificates`.
#[must_use]
pub fn chain_size<C: AsRef<[u8]>>(certificates: &[C]) -> usize {
    certificates.iter().map(|certificate| 2 + certificate.as_ref().len()).sum()
}

/// Writes the encoding of `certificates`, the leaf first.
pub fn emit_chain<C: AsRef<[u8]>>(out: &mut Writer<'_>, certificates: &[C]) -> Result<(), NoRoom> {
    certificates.iter().map(AsRef::as_ref).try_for_each(|certificate| {
        out.u16(u16::try_from(certificate.len()).map_err(|_| NoRoom)?)?;
        out.put(certificate)
    })
}
