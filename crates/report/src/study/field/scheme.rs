//! Servers, schemes, and which server lacks which scheme.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Name;

/// A program that serves time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Server {
    /// Ours.
    Authentick,
    /// chrony.
    Chrony,
    /// ntpd-rs.
    NtpdRs,
    /// facebook/time.
    FacebookTime,
    /// One that somebody else runs, whose address the settings have.
    Given(Name),
}

impl FromStr for Server {
    type Err = String;

    fn from_str(key: &str) -> Result<Self, String> {
        match Server::BUILT_IN.into_iter().find(|server| server.key() == key) {
            Some(server) => Ok(server),
            None => key.parse().map(Server::Given),
        }
    }
}

impl TryFrom<String> for Server {
    type Error = String;

    fn try_from(key: String) -> Result<Self, String> {
        key.parse()
    }
}

impl From<Server> for String {
    fn from(server: Server) -> Self {
        server.key().to_owned()
    }
}

impl Server {
    /// Those that a study starts itself.
    pub const BUILT_IN: [Server; 4] =
        [Server::Authentick, Server::Chrony, Server::NtpdRs, Server::FacebookTime];

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Server::Given(name) => name.as_str(),
            Server::Authentick => "authentick",
            Server::Chrony => "chrony",
            Server::NtpdRs => "ntpd-rs",
            Server::FacebookTime => "facebook/time",
        }
    }

    /// Its name on the command line, in names of tasks and in records.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Server::Authentick => "authentick",
            Server::Chrony => "chrony",
            Server::NtpdRs => "ntpd-rs",
            Server::FacebookTime => "facebook-time",
            Server::Given(name) => name.as_str(),
        }
    }

    /// For what its clients exchange keys; of a server that somebody else runs, if it has that.
    #[must_use]
    pub const fn exchanges_for(self) -> Scheme {
        match self {
            Server::Authentick | Server::Chrony | Server::NtpdRs | Server::Given(_) => Scheme::Nts15,
            Server::FacebookTime => Scheme::Nts30,
        }
    }

    /// Why there is nothing to measure of a scheme, whichever version it is: the rest of a sentence that its name
    /// begins; `None` if it may have it.
    #[must_use]
    pub const fn lacks(self, scheme: Scheme) -> Option<&'static str> {
        match (self, scheme.family()) {
            (Server::Authentick, _)
            | (_, Family::Plain)
            | (Server::Chrony | Server::Given(_), Family::Nts15 | Family::Nts30)
            | (Server::NtpdRs, Family::Nts15)
            | (Server::FacebookTime, Family::Nts30) => None,
            (Server::Given(_), Family::Antp) => Some("is not asked for ANTP, which nobody but us speaks"),
            (_, Family::Antp) => Some("has no ANTP, as nobody but us"),
            (Server::Given(_), Family::Mac) => {
                Some("is not asked under a MAC, as it shares no keys with this study")
            }
            (Server::Chrony, Family::Mac) => {
                if is_key_type_of_chrony(scheme) {
                    None
                } else {
                    Some("takes no keys of this type")
                }
            }
            (Server::NtpdRs, Family::Mac) => Some("has no symmetric keys"),
            (Server::NtpdRs, Family::Nts30) => Some("has no AEAD 30, but 15 and 17"),
            (Server::FacebookTime, Family::Mac) => Some("reads MACs and does not verify them"),
            (Server::FacebookTime, Family::Nts15) => {
                Some("agrees to AEAD 15, but answers only requests whose nonce is empty")
            }
        }
    }
}

/// Whether a MAC is among those that chrony's key file has types for.
const fn is_key_type_of_chrony(scheme: Scheme) -> bool {
    matches!(
        scheme,
        Scheme::Md5
            | Scheme::Sha1
            | Scheme::Sha256
            | Scheme::Sha384
            | Scheme::Sha512
            | Scheme::Cmac128
            | Scheme::Cmac256
    )
}

/// What servers have all of, or nothing, as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Plain,
    /// Any MAC with a symmetric key.
    Mac,
    Antp,
    Nts15,
    Nts30,
}

/// How a request for time and its answer are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Not at all.
    Plain,
    /// MD5 of key and packet.
    Md5,
    /// SHA-1 of key and packet.
    Sha1,
    /// SHA-256 of key and packet.
    Sha256,
    /// SHA-384 of key and packet.
    Sha384,
    /// SHA-512 of key and packet.
    Sha512,
    /// HMAC-MD5.
    HmacMd5,
    /// HMAC-SHA-224, truncated.
    HmacSha224,
    /// AES-128-CMAC.
    Cmac128,
    /// AES-256-CMAC.
    Cmac256,
    /// AES-128-GMAC.
    Gmac128,
    /// AES-128-GCM-SIV of an empty text.
    GmacSiv128,
    /// Poly1305 under one-time keys.
    Poly1305,
    /// ANTP, phase 3, with the tag in the answer.
    Antp,
    /// The same with the tag in a packet that follows.
    AntpSeparateTag,
    /// NTS with AES-SIV-CMAC-256.
    Nts15,
    /// NTS with AES-128-GCM-SIV.
    Nts30,
}

impl Scheme {
    /// All of them, in the order of tables.
    pub const ALL: [Scheme; 17] = [
        Scheme::Plain,
        Scheme::Md5,
        Scheme::Sha1,
        Scheme::Sha256,
        Scheme::Sha384,
        Scheme::Sha512,
        Scheme::HmacMd5,
        Scheme::HmacSha224,
        Scheme::Cmac128,
        Scheme::Cmac256,
        Scheme::Gmac128,
        Scheme::GmacSiv128,
        Scheme::Poly1305,
        Scheme::Antp,
        Scheme::AntpSeparateTag,
        Scheme::Nts15,
        Scheme::Nts30,
    ];

    /// Those of the short form, and those that the first sentences are about.
    pub const MAIN: [Scheme; 4] = [Scheme::Plain, Scheme::Cmac128, Scheme::Antp, Scheme::Nts15];

    pub(super) const fn family(self) -> Family {
        match self {
            Scheme::Plain => Family::Plain,
            Scheme::Md5
            | Scheme::Sha1
            | Scheme::Sha256
            | Scheme::Sha384
            | Scheme::Sha512
            | Scheme::HmacMd5
            | Scheme::HmacSha224
            | Scheme::Cmac128
            | Scheme::Cmac256
            | Scheme::Gmac128
            | Scheme::GmacSiv128
            | Scheme::Poly1305 => Family::Mac,
            Scheme::Antp | Scheme::AntpSeparateTag => Family::Antp,
            Scheme::Nts15 => Family::Nts15,
            Scheme::Nts30 => Family::Nts30,
        }
    }

    /// The name, as tables have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Plain => "plain NTP",
            Scheme::Md5 => "MD5 digest",
            Scheme::Sha1 => "SHA-1 digest",
            Scheme::Sha256 => "SHA-256 digest",
            Scheme::Sha384 => "SHA-384 digest",
            Scheme::Sha512 => "SHA-512 digest",
            Scheme::HmacMd5 => "HMAC-MD5",
            Scheme::HmacSha224 => "HMAC-SHA-224",
            Scheme::Cmac128 => "AES-128-CMAC",
            Scheme::Cmac256 => "AES-256-CMAC",
            Scheme::Gmac128 => "AES-128-GMAC",
            Scheme::GmacSiv128 => "GMAC-SIV",
            Scheme::Poly1305 => "Poly1305",
            Scheme::Antp => "ANTP",
            Scheme::AntpSeparateTag => "ANTP, separate tag",
            Scheme::Nts15 => "NTS, AEAD 15",
            Scheme::Nts30 => "NTS, AEAD 30",
        }
    }

    /// Its name in names of tasks and in records.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Scheme::Plain => "plain",
            Scheme::Md5 => "md5",
            Scheme::Sha1 => "sha1",
            Scheme::Sha256 => "sha256",
            Scheme::Sha384 => "sha384",
            Scheme::Sha512 => "sha512",
            Scheme::HmacMd5 => "hmac-md5",
            Scheme::HmacSha224 => "hmac-sha224",
            Scheme::Cmac128 => "cmac128",
            Scheme::Cmac256 => "cmac256",
            Scheme::Gmac128 => "gmac128",
            Scheme::GmacSiv128 => "gmac-siv128",
            Scheme::Poly1305 => "poly1305",
            Scheme::Antp => "antp",
            Scheme::AntpSeparateTag => "antp-separate-tag",
            Scheme::Nts15 => "nts15",
            Scheme::Nts30 => "nts30",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_the_names_of_tasks() {
        let given = Server::Given("cfnts".parse().unwrap());
        for server in Server::BUILT_IN.into_iter().chain([given]) {
            assert_eq!(serde_json::to_value(server).unwrap(), server.key());
            assert_eq!(server.key().parse(), Ok(server));
        }
        for scheme in Scheme::ALL {
            assert_eq!(serde_json::to_value(scheme).unwrap(), scheme.key());
        }
    }

    #[test]
    fn every_server_has_plain_time_and_something_else_and_only_ours_has_all() {
        for server in Server::BUILT_IN {
            let has = |scheme: &Scheme| server.lacks(*scheme).is_none();
            let count = Scheme::ALL.iter().filter(|scheme| has(scheme)).count();
            assert!(has(&Scheme::Plain) && count >= 2, "{server:?}");
            assert_eq!(count == Scheme::ALL.len(), server == Server::Authentick, "{server:?}");
            assert!(has(&server.exchanges_for()), "{server:?}");
        }
    }
}
