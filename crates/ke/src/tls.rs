//! TLS as NTS-KE wants it: version 1.3 alone, `ntske/1`, and certificates that fit their keys.

mod acceptance;
#[cfg(feature = "server")]
mod by_name;
#[cfg(feature = "server")]
mod identity;
#[cfg(feature = "server")]
mod one_pem;
#[cfg(feature = "client")]
mod path;
mod pem;
mod private_key;
#[cfg(feature = "client")]
mod roots;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

pub use self::acceptance::{KeyUse, chain_warnings, check_chain};
#[cfg(feature = "server")]
pub use self::by_name::ByName;
#[cfg(feature = "server")]
pub use self::identity::{Identity, IdentityError, server_config, server_config_by_name};
#[cfg(feature = "server")]
pub use self::one_pem::one_pem;
#[cfg(feature = "client")]
pub use self::path::{BadPath, Issuer, Link, PathVerifier};
pub use self::pem::{Defect, PemContents, Pinned, certificates, pinned, to_pem};
pub use self::private_key::private_key;
#[cfg(feature = "client")]
pub use self::roots::{Roots, client_config};

/// The provider, with its random source started: the library gathers entropy from the processor's jitter when it is
/// first asked, which takes 25 ms that nobody should have to wait for in a handshake.
fn started_provider() -> Arc<CryptoProvider> {
    let provider = provider();
    // If this fails, so will the first handshake, and say why.
    let _ = provider.secure_random.fill(&mut [0]);
    provider
}

/// Cipher suites and groups in the order of cost. The processor has instructions for SHA-256 and none for SHA-384,
/// which made up a fifth of a handshake that let the client choose.
//= rfc8915#3-1
pub(crate) fn provider() -> Arc<CryptoProvider> {
    use aws_lc_rs::{cipher_suite, kx_group};
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
        ],
        kx_groups: vec![kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1, kx_group::X25519MLKEM768],
        ..aws_lc_rs::default_provider()
    })
}

/// What a certificate says, in characters that do not steer a terminal: whoever has a certificate chose its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateInfo {
    /// Whom it names.
    pub subject: String,
    /// Who vouches for it.
    pub issuer: String,
    /// Names and addresses that it is good for.
    pub names: Vec<String>,
    /// Good from, in Unix seconds.
    pub not_before: i64,
    /// Good until, in Unix seconds.
    pub not_after: i64,
}

impl CertificateInfo {
    /// Reads a DER certificate; `None` if it is none.
    #[must_use]
    pub fn parse(der: &[u8]) -> Option<Self> {
        X509Certificate::from_der(der).ok().map(|(_, certificate)| CertificateInfo::of(&certificate))
    }

    fn of(certificate: &X509Certificate<'_>) -> Self {
        let alternatives = certificate.subject_alternative_name().ok().flatten();
        let names =
            alternatives.iter().flat_map(|names| &names.value.general_names).filter_map(|name| match name {
                GeneralName::DNSName(name) => Some(printable(name)),
                GeneralName::IPAddress(octets) => match **octets {
                    [a, b, c, d] => Some(std::net::Ipv4Addr::new(a, b, c, d).to_string()),
                    _ => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(*octets).ok()?).to_string()),
                },
                _ => None,
            });
        CertificateInfo {
            subject: printable(&certificate.subject().to_string()),
            issuer: printable(&certificate.issuer().to_string()),
            names: names.collect(),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
        }
    }

    /// The names of the DNS among those that it is good for, wildcards (`*.a.example`) included.
    pub fn dns_names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| name.parse::<std::net::IpAddr>().is_err())
    }

    /// What to call it in a message: its subject, or its first name where that is empty.
    #[must_use]
    pub fn title(&self) -> &str {
        match (self.subject.is_empty(), self.names.first()) {
            (true, Some(name)) => name,
            (false, _) | (true, None) => &self.subject,
        }
    }
}

fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// The SubjectPublicKeyInfo of a DER certificate, in DER; `None` if it is no certificate.
#[must_use]
pub fn public_key_info(der: &[u8]) -> Option<&[u8]> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(certificate.tbs_certificate.subject_pki.raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_certificate_do_not_steer_a_terminal() {
        use rcgen::{CertificateParams, DnType, KeyPair};
        // The title of the window, a line of its own, and the one octet form of ESC [ in a name.
        let name = "\u{1b}]0;mine\u{7}\u{1b}[2J\nauthenticated  yes\u{9b}8m";
        let mut params = CertificateParams::new(vec!["a\u{1b}[31m.test".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let info = CertificateInfo::parse(certificate.der()).unwrap();
        for text in info.names.iter().chain([&info.subject, &info.issuer]) {
            assert!(!text.contains(char::is_control), "{text:?}");
        }
        assert!(
            info.subject.contains("\u{fffd}]0;mine\u{fffd}") && info.subject.contains("authenticated  yes")
        );
        assert_eq!(info.names, ["a\u{fffd}[31m.test"]);
    }

    //= rfc8915#3-1
    #[test]
    fn no_suite_and_no_group_is_older_or_weaker_than_tls_1_3_wants() {
        use rustls::NamedGroup::{X25519, X25519MLKEM768, secp256r1, secp384r1};
        let provider = provider();
        assert!(provider.cipher_suites.iter().all(|suite| suite.tls13().is_some()));
        let groups: Vec<_> = provider.kx_groups.iter().map(|group| group.name()).collect();
        assert_eq!(groups, [X25519, secp256r1, secp384r1, X25519MLKEM768]);
    }
}
