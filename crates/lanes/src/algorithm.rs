//! Which algorithms have lanes, and the sizes that they ask for.

/// Octets of the tag of every AEAD and every [`Mac`] here.
pub const TAG_SIZE: usize = 16;

/// Octets of the nonce of a [`Mac`] that takes one.
pub const MAC_NONCE_SIZE: usize = 12;

/// An AEAD algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// AES-SIV-CMAC-256, which is two AES-128 keys. RFC 5297.
    SivCmac256,
    /// AES-SIV-CMAC-384, two AES-192 keys. RFC 5297.
    SivCmac384,
    /// AES-SIV-CMAC-512, two AES-256 keys. RFC 5297.
    SivCmac512,
    /// AES-128-GCM-SIV. RFC 8452.
    Aes128GcmSiv,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 4] =
        [Algorithm::SivCmac256, Algorithm::SivCmac384, Algorithm::SivCmac512, Algorithm::Aes128GcmSiv];

    /// Octets of a key.
    #[must_use]
    pub const fn key_size(self) -> usize {
        match self {
            Algorithm::SivCmac256 => 32,
            Algorithm::SivCmac384 => 48,
            Algorithm::SivCmac512 => 64,
            Algorithm::Aes128GcmSiv => 16,
        }
    }

    /// Octets of the nonce to send: the only size GCM-SIV takes; SIV takes any from one octet up.
    #[must_use]
    pub const fn nonce_size(self) -> usize {
        match self {
            Algorithm::SivCmac256 | Algorithm::SivCmac384 | Algorithm::SivCmac512 => 16,
            Algorithm::Aes128GcmSiv => 12,
        }
    }

    /// Whether a nonce of `size` octets can be used.
    #[must_use]
    pub const fn accepts_nonce(self, size: usize) -> bool {
        match self {
            Algorithm::SivCmac256 | Algorithm::SivCmac384 | Algorithm::SivCmac512 => size >= 1,
            Algorithm::Aes128GcmSiv => size == 12,
        }
    }

    /// Parts sealed octets, as they stand on the wire, into text and tag: SIV puts its tag in front, GCM-SIV at the
    /// end. `None` if there are fewer octets than a tag has.
    #[must_use]
    pub const fn split_sealed(self, sealed: &mut [u8]) -> Option<(&mut [u8], &mut [u8; TAG_SIZE])> {
        match self {
            Algorithm::SivCmac256 | Algorithm::SivCmac384 | Algorithm::SivCmac512 => {
                match sealed.split_first_chunk_mut() {
                    Some((tag, text)) => Some((text, tag)),
                    None => None,
                }
            }
            Algorithm::Aes128GcmSiv => sealed.split_last_chunk_mut(),
        }
    }
}

/// A MAC. Its tag has sixteen octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mac {
    /// AES-128-CMAC. RFC 4493.
    Cmac128,
    /// AES-256-CMAC. NIST SP 800-38B.
    Cmac256,
    /// GMAC under AES-128. NIST SP 800-38D.
    Gmac128,
    /// AES-128-GCM-SIV of an empty text. RFC 8452.
    GmacSiv128,
}

impl Mac {
    /// Octets of the nonce: none if the algorithm takes no nonce.
    #[inline(always)]
    #[must_use]
    pub const fn nonce_size(self) -> usize {
        match self {
            Mac::Cmac128 | Mac::Cmac256 => 0,
            Mac::Gmac128 | Mac::GmacSiv128 => MAC_NONCE_SIZE,
        }
    }
}

/// Which digest an HMAC is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HmacDigest {
    /// With a tag of 16 octets, as in packets.
    Sha224,
    /// With a tag of 32 octets.
    Sha256,
}
