//! The names of types in key files: chrony's, ntpd's and ours.

use authentick_crypto::mac::MacAlgorithm;

use super::keys::Dialect;

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// An algorithm, and the only program that calls it so, if there is but one.
    Known(MacAlgorithm, Option<Dialect>),
    /// Known elsewhere and not implemented here: its name.
    Foreign(&'static str),
}

/// Names in capitals, and who else than this project calls the type so.
const KNOWN: &[(&str, MacAlgorithm, Option<Dialect>)] = &[
    ("MD5", MacAlgorithm::Md5, None),
    ("SHA1", MacAlgorithm::Sha1, None),
    ("SHA256", MacAlgorithm::Sha256, None),
    ("SHA384", MacAlgorithm::Sha384, None),
    ("SHA512", MacAlgorithm::Sha512, None),
    ("AES128", MacAlgorithm::Cmac128, Some(Dialect::Chrony)),
    ("AES256", MacAlgorithm::Cmac256, Some(Dialect::Chrony)),
    ("M", MacAlgorithm::Md5, Some(Dialect::Ntp)),
    ("SHA-1", MacAlgorithm::Sha1, Some(Dialect::Ntp)),
    ("SHA-256", MacAlgorithm::Sha256, Some(Dialect::Ntp)),
    ("SHA2-256", MacAlgorithm::Sha256, Some(Dialect::Ntp)),
    ("SHA-384", MacAlgorithm::Sha384, Some(Dialect::Ntp)),
    ("SHA2-384", MacAlgorithm::Sha384, Some(Dialect::Ntp)),
    ("SHA-512", MacAlgorithm::Sha512, Some(Dialect::Ntp)),
    ("SHA2-512", MacAlgorithm::Sha512, Some(Dialect::Ntp)),
    ("AES", MacAlgorithm::Cmac128, Some(Dialect::Ntp)),
    ("AES-128", MacAlgorithm::Cmac128, Some(Dialect::Ntp)),
    ("AES128CMAC", MacAlgorithm::Cmac128, Some(Dialect::Ntp)),
    ("AES-256", MacAlgorithm::Cmac256, Some(Dialect::Ntp)),
    ("HMAC-MD5", MacAlgorithm::HmacMd5, None),
    ("HMAC-SHA224", MacAlgorithm::HmacSha224, None),
    ("GMAC128", MacAlgorithm::Gmac128, None),
    ("GMAC-SIV128", MacAlgorithm::GmacSiv128, None),
    ("POLY1305", MacAlgorithm::Poly1305, None),
];

/// Names in capitals that chrony or ntpd (with OpenSSL) know besides.
const FOREIGN: &[&str] = &[
    "AES-192",
    "AES192",
    "BLAKE2B512",
    "BLAKE2S256",
    "MD4",
    "MDC2",
    "RIPEMD160",
    "RMD160",
    "SHA-224",
    "SHA-512/224",
    "SHA-512/256",
    "SHA2-224",
    "SHA224",
    "SHA3-224",
    "SHA3-256",
    "SHA3-384",
    "SHA3-512",
    "SHA512-224",
    "SHA512-256",
    "SHAKE128",
    "SHAKE256",
    "SM3",
    "TIGER",
    "WHIRLPOOL",
];

impl Type {
    /// The type of this name. ntpd accepts lower-case letters too; chrony does not, so they show whose file it is.
    #[must_use]
    pub fn find(name: &[u8]) -> Option<Type> {
        let known = KNOWN.iter().find(|(known, ..)| known.as_bytes().eq_ignore_ascii_case(name));
        if let Some(&(known, algorithm, whose)) = known {
            let in_capitals = known.as_bytes() == name;
            let is_ours = is_ours(algorithm);
            return Some(Type::Known(
                algorithm,
                if in_capitals || is_ours { whose } else { Some(Dialect::Ntp) },
            ));
        }
        FOREIGN
            .iter()
            .find(|foreign| foreign.as_bytes().eq_ignore_ascii_case(name))
            .map(|&name| Type::Foreign(name))
    }

    /// The name under which the program of `dialect` knows an algorithm; ours for what it does not know.
    #[must_use]
    pub const fn name(algorithm: MacAlgorithm, dialect: Dialect) -> &'static str {
        match (dialect, algorithm) {
            // ntpd knows this one as AES128CMAC, NTPsec as AES-128 and so too.
            (Dialect::Ntp, MacAlgorithm::Cmac128) => "AES128CMAC",
            (Dialect::Ntp, MacAlgorithm::Cmac256) => "AES-256",
            _ => algorithm.name(),
        }
    }
}

/// Whether chrony and ntpd know no such type.
pub(super) const fn is_ours(algorithm: MacAlgorithm) -> bool {
    match algorithm {
        MacAlgorithm::HmacMd5
        | MacAlgorithm::HmacSha224
        | MacAlgorithm::Gmac128
        | MacAlgorithm::GmacSiv128
        | MacAlgorithm::Poly1305 => true,
        MacAlgorithm::Md5
        | MacAlgorithm::Sha1
        | MacAlgorithm::Sha256
        | MacAlgorithm::Sha384
        | MacAlgorithm::Sha512
        | MacAlgorithm::Cmac128
        | MacAlgorithm::Cmac256 => false,
    }
}

/// What to write instead of an unknown type.
pub const REMEDY: &str = "write one of MD5, SHA1, SHA256, SHA384, SHA512, AES128, AES256, HMAC-MD5, HMAC-SHA224, \
     GMAC128, GMAC-SIV128, POLY1305";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_is_found_under_the_names_that_are_written() {
        for algorithm in MacAlgorithm::ALL {
            for dialect in [Dialect::Chrony, Dialect::Ntp] {
                let name = Type::name(algorithm, dialect);
                let Some(Type::Known(found, whose)) = Type::find(name.as_bytes()) else { panic!("{name}") };
                assert_eq!(found, algorithm);
                assert!(whose.is_none_or(|whose| whose == dialect), "{name}");
            }
            assert!(REMEDY.contains(algorithm.name()), "{algorithm}");
        }
    }

    #[test]
    fn names_of_both_programs_are_told_apart() {
        use MacAlgorithm::{Cmac128, Cmac256, Md5, Sha1};
        for (name, algorithm, whose) in [
            ("MD5", Md5, None),
            ("M", Md5, Some(Dialect::Ntp)),
            ("md5", Md5, Some(Dialect::Ntp)),
            ("SHA-1", Sha1, Some(Dialect::Ntp)),
            ("AES", Cmac128, Some(Dialect::Ntp)),
            ("aes128cmac", Cmac128, Some(Dialect::Ntp)),
            ("AES128", Cmac128, Some(Dialect::Chrony)),
            ("AES256", Cmac256, Some(Dialect::Chrony)),
            ("AES-256", Cmac256, Some(Dialect::Ntp)),
        ] {
            assert_eq!(Type::find(name.as_bytes()), Some(Type::Known(algorithm, whose)), "{name}");
        }
        assert_eq!(Type::find(b"gmac128"), Some(Type::Known(MacAlgorithm::Gmac128, None)));
        assert_eq!(Type::find(b"tiger"), Some(Type::Foreign("TIGER")));
        // NTPsec treats any unknown name with an M as MD5; a typing error should not choose an algorithm.
        for unknown in ["", "MD", "MD55", "AES129", "HMAC"] {
            assert_eq!(Type::find(unknown.as_bytes()), None, "{unknown}");
        }
    }
}
