//! TLS as NTS-KE wants it: version 1.3 alone, `ntske/1`, and certificates that fit their keys.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::ALPN;

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
fn provider() -> Arc<CryptoProvider> {
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

/// A server's certificate chain and the private key that belongs to it.
#[derive(Clone, Debug)]
pub struct Identity {
    certified: Arc<CertifiedKey>,
    /// What the certificate says of itself.
    pub certificate: CertificateInfo,
}

/// Why a certificate chain and a private key make no identity.
#[derive(Debug)]
pub enum IdentityError {
    /// The chain's file holds something that is no PEM certificate.
    Chain(String),
    /// The key's file holds no PEM private key.
    Key(String),
    /// The key is not the one of the chain's first certificate.
    Mismatch,
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::Chain(text) | IdentityError::Key(text) => f.write_str(text),
            IdentityError::Mismatch => {
                f.write_str("the private key does not belong to the first certificate of the chain")
            }
        }
    }
}

impl std::error::Error for IdentityError {}

impl Identity {
    /// An identity from a PEM certificate chain, the server's own certificate first, and a PEM private key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain: Vec<CertificateDer<'static>> = certificates(chain).map_err(IdentityError::Chain)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| IdentityError::Key(format!("no PEM private key: {error}")))?;
        let certificate = CertificateInfo::parse(&chain[0])
            .ok_or_else(|| IdentityError::Chain("the first certificate is not X.509".to_owned()))?;
        let key = provider()
            .key_provider
            .load_private_key(key)
            .map_err(|error| IdentityError::Key(format!("unusable private key: {error}")))?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => return Err(IdentityError::Mismatch),
            Err(error) => return Err(IdentityError::Chain(format!("unusable certificate: {error}"))),
        }
        Ok(Identity { certified: Arc::new(certified), certificate })
    }
}

/// The certificates in a PEM text, at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err("no PEM certificate".to_owned()),
        Ok(chain) => Ok(chain),
        Err(error) => Err(format!("broken PEM certificate: {error}")),
    }
}

/// What a certificate says.
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
                GeneralName::DNSName(name) => Some((*name).to_owned()),
                GeneralName::IPAddress(octets) => match **octets {
                    [a, b, c, d] => Some(std::net::Ipv4Addr::new(a, b, c, d).to_string()),
                    _ => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(*octets).ok()?).to_string()),
                },
                _ => None,
            });
        Some(CertificateInfo {
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            names: names.collect(),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
        })
    }
}

/// A server's TLS configuration: no tickets (they cost 19 us, and NTS clients seldom come back), our own order of
/// cipher suites.
#[cfg(feature = "server")]
#[must_use]
pub fn server_config(identity: &Identity) -> Arc<rustls::ServerConfig> {
    use rustls::server::{NoServerSessionStorage, ResolvesServerCert};

    #[derive(Debug)]
    struct Always(Arc<CertifiedKey>);

    impl ResolvesServerCert for Always {
        fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(Arc::clone(&self.0))
        }
    }

    let mut config = rustls::ServerConfig::builder_with_provider(started_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has suites for TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::clone(&identity.certified))));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.ignore_client_order = true;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Arc::new(config)
}

/// A client's trust: certificates of authorities.
#[cfg(feature = "client")]
#[derive(Clone, Debug)]
pub struct Roots(rustls::RootCertStore);

#[cfg(feature = "client")]
impl Roots {
    /// The authorities in a PEM text.
    ///
    /// # Errors
    /// A sentence on what is wrong with the text.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in certificates(pem)? {
            roots.add(certificate).map_err(|error| format!("unusable authority: {error}"))?;
        }
        Ok(Roots(roots))
    }

    /// Authorities in DER, as the system keeps them; those that rustls cannot use are passed over.
    #[must_use]
    pub fn from_der(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(certificates);
        Roots(roots)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// A client's TLS configuration, without resumption: each key exchange stands alone.
#[cfg(feature = "client")]
#[must_use]
pub fn client_config(roots: Roots) -> Arc<rustls::ClientConfig> {
    let mut config = rustls::ClientConfig::builder_with_provider(started_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has suites for TLS 1.3")
        .with_root_certificates(roots.0)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Arc::new(config)
}
