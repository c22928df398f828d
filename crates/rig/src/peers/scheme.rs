//! Ways of authentication that a server may have.

use std::fmt;

use authentick_crypto::mac::MacAlgorithm;

/// How time is authenticated, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// Not at all. RFC 5905.
    Plain,
    /// With a key that both sides know. RFC 8573.
    Mac(MacAlgorithm),
    /// NTS with the AEAD of this number. RFC 8915, registry "AEAD Algorithms".
    Nts(u16),
    /// ANTP.
    Antp,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scheme::Plain => f.write_str("plain NTP"),
            Scheme::Mac(algorithm) => write!(f, "MACs of type {}", algorithm.name()),
            Scheme::Nts(aead) => write!(f, "NTS with AEAD {aead}"),
            Scheme::Antp => f.write_str("ANTP"),
        }
    }
}

/// A symmetric key that both sides know.
#[derive(Clone)]
pub struct Key {
    /// Its number, from 1.
    pub id: u32,
    /// What it is for.
    pub algorithm: MacAlgorithm,
    /// The key itself.
    pub octets: Vec<u8>,
}

impl Key {
    /// A line of a key file as chrony reads it, and as we do.
    #[must_use]
    pub fn line(&self) -> String {
        let digits: String = self.octets.iter().map(|octet| format!("{octet:02X}")).collect();
        format!("{} {} HEX:{digits}\n", self.id, self.algorithm.name())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("id", &self.id)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_a_line_and_is_not_shown() {
        let key = Key { id: 7, algorithm: MacAlgorithm::Cmac128, octets: vec![0, 1, 0xAB, 0xFF] };
        assert_eq!(key.line(), "7 AES128 HEX:0001ABFF\n");
        assert!(!format!("{key:?}").contains("171"), "{key:?}");
    }
}
