//! TLS as NTS-KE wants it: version 1.3 alone, `ntske/1`, and certificates that fit their keys.

#[cfg(feature = "server")]
mod by_name;
#[cfg(feature = "server")]
mod identity;
#[cfg(feature = "server")]
mod one_pem;
#[cfg(feature = "client")]
mod path;
mod private_key;
#[cfg(feature = "client")]
mod roots;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

#[cfg(feature = "server")]
pub use self::by_name::ByName;
#[cfg(feature = "server")]
pub use self::identity::{Identity, IdentityError, server_config, server_config_by_name};
#[cfg(feature = "server")]
pub use self::one_pem::one_pem;
#[cfg(feature = "client")]
pub use self::path::{BadPath, Issuer, KeyUse, Link, PathVerifier};
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

/// The certificates in a PEM text, at least one, in its order. Keys and whatever else stands between them are skipped.
///
/// # Errors
/// What is wrong with the text, in words that do not say where it came from: it has no certificate, or a broken one.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&only_certificates(pem)).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err("no PEM certificate".to_owned()),
        Ok(chain) => Ok(chain),
        Err(error) => Err(format!("broken PEM certificate: {error}")),
    }
}

/// The blocks of a PEM text that are certificates. The library's reader decodes a private key too that it comes upon,
/// and gives the memory back as it is.
fn only_certificates(pem: &[u8]) -> Vec<u8> {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    const END: &[u8] = b"-----END CERTIFICATE-----";
    let (mut text, mut is_inside) = (Vec::new(), false);
    for line in pem.split_inclusive(|octet| matches!(octet, b'\n' | b'\r')) {
        let words = line.trim_ascii();
        if words.starts_with(b"-----BEGIN ") {
            is_inside = words == BEGIN;
        }
        if is_inside {
            text.extend_from_slice(line);
        }
        is_inside = is_inside && words != END;
    }
    text
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
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
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
        Some(CertificateInfo {
            subject: printable(&certificate.subject().to_string()),
            issuer: printable(&certificate.issuer().to_string()),
            names: names.collect(),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
        })
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

    #[test]
    fn certificates_are_read_in_order_and_the_want_of_any_is_an_error() {
        let block =
            |kind: &str, text: &str| format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n");
        let pem =
            block("CERTIFICATE", "AQID") + &block("PRIVATE KEY", "BwcH") + &block("CERTIFICATE", "BAUG");
        let found = certificates(pem.as_bytes()).unwrap();
        assert_eq!(
            found.iter().map(|certificate| &**certificate).collect::<Vec<_>>(),
            [[1, 2, 3], [4, 5, 6]]
        );
        for text in ["", "AQID", &block("PRIVATE KEY", "BwcH")] {
            assert_eq!(certificates(text.as_bytes()).unwrap_err(), "no PEM certificate", "{text}");
        }
        let error = certificates((pem + &block("CERTIFICATE", "?")).as_bytes()).unwrap_err();
        assert!(error.starts_with("broken PEM certificate: "), "{error}");
        // Nothing of a key gets to who reads certificates, also where it stands in one that has no end.
        let half = "-----BEGIN CERTIFICATE-----\r\nAQID\r\n";
        let text =
            format!("words\r\n{half}{}{half}-----END CERTIFICATE-----\r\n", block("PRIVATE KEY", "BwcH"));
        let only = String::from_utf8(only_certificates(text.as_bytes())).unwrap();
        assert_eq!(only, format!("{half}{half}-----END CERTIFICATE-----\r"));
        assert!(certificates(&text.as_bytes()[..text.len() - 30]).is_err());
        let lines = (block("CERTIFICATE", "AQID") + &block("CERTIFICATE", "BAUG")).replace('\n', "\r\n");
        assert_eq!(certificates(lines.as_bytes()).unwrap().len(), 2);
    }
}
