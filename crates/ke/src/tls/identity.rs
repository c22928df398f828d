//! The server's side: a certificate chain, the key that fits it, and the configuration around them.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error;

use super::acceptance::ORDER;
use super::{
    ByName, CertificateInfo, Defect, KeyUse, certificates, chain_warnings, check_chain, private_key,
    public_key_info, started_provider,
};
use crate::ALPN;

/// A server's certificate chain and the private key that belongs to it.
#[derive(Clone, Debug)]
pub struct Identity {
    certified: Arc<CertifiedKey>,
    /// What the certificate says of itself.
    pub certificate: CertificateInfo,
}

/// Why a certificate chain and a private key make no identity.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The chain is not understood, or no client accepts it.
    #[error("{0}")]
    Chain(Defect),
    /// The key is not understood, or cannot be used.
    #[error("{0}")]
    Key(Defect),
    /// The key is not the one of a certificate of the chain.
    #[error("the private key does not belong to the first certificate of the chain")]
    Mismatch,
}

impl IdentityError {
    /// An instruction to the user.
    #[must_use]
    pub fn remedy(&self) -> &str {
        match self {
            IdentityError::Chain(defect) | IdentityError::Key(defect) => &defect.remedy,
            IdentityError::Mismatch => "name the key that the certificate was made for",
        }
    }
}

impl Identity {
    /// An identity from a PEM certificate chain, the server's own certificate first, and a PEM private key.
    ///
    /// # Errors
    /// If one of them is not understood, they do not fit together, or no client would accept the certificate.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain: Vec<CertificateDer<'static>> = certificates(chain).map_err(IdentityError::Chain)?;
        let key = private_key(key).map_err(IdentityError::Key)?;
        check_chain(&chain).map_err(IdentityError::Chain)?;
        let not_x509 =
            || Defect::new("the first certificate is not X.509", "copy the file again, as a whole");
        let certificate =
            CertificateInfo::parse(&chain[0]).ok_or_else(|| IdentityError::Chain(not_x509()))?;
        // From a reference: the provider's own way takes the octets, and does not wipe them.
        let key = any_supported_type(&key).map_err(|error| IdentityError::Key(unusable(&key, &error)))?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => return Err(mismatch(&certified)),
            Err(error) => {
                let problem = format!("unusable certificate: {error}");
                return Err(IdentityError::Chain(Defect::new(problem, "have it made again")));
            }
        }
        Ok(Identity { certified: Arc::new(certified), certificate })
    }

    /// What some clients refuse about the chain, at an instant in Unix seconds.
    #[must_use]
    pub fn warnings(&self, unix_seconds: u64) -> Vec<Defect> {
        chain_warnings(&self.certified.cert, KeyUse::Signature, unix_seconds)
    }
}

/// Why the library does not take a key.
fn unusable(key: &PrivateKeyDer<'_>, error: &rustls::Error) -> Defect {
    /// The field of a curve, in parameters that are written out. RFC 3279 section 2.3.5.
    const PRIME_FIELD: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x01\x01";
    let is_explicit = key.secret_der().windows(PRIME_FIELD.len()).any(|window| window == PRIME_FIELD);
    match is_explicit {
        true => Defect::new(
            "the EC key has explicit curve parameters",
            "write it with its curve's name: openssl ec -param_enc named_curve -in FILE -out NEW",
        ),
        false => Defect::new(
            format!("unusable private key: {error}"),
            "make a key of P-256, or of RSA with 2048 bits or more, and a certificate for it",
        ),
    }
}

/// Which certificate of the chain is the key's, if not the first.
fn mismatch(certified: &CertifiedKey) -> IdentityError {
    let public = certified.key.public_key();
    let is_its =
        |der: &CertificateDer<'_>| public_key_info(der).is_some_and(|info| public.as_deref() == Some(info));
    match certified.cert.iter().position(is_its) {
        None => IdentityError::Mismatch,
        Some(index) => {
            let first = CertificateInfo::parse(&certified.cert[0])
                .map_or_else(String::new, |info| info.title().to_owned());
            let problem = format!(
                "the file begins with the certificate of {first}, and the private key belongs to its certificate {}",
                index + 1
            );
            IdentityError::Chain(Defect::new(problem, ORDER))
        }
    }
}

/// A server's TLS configuration with one certificate, whatever name a client asks for.
#[must_use]
pub fn server_config(identity: &Identity) -> Arc<ServerConfig> {
    server_config_by_name(ByName::new(Arc::new(identity.clone())))
}

/// A server's TLS configuration with certificates by the names that clients ask for: no tickets (they cost 19 us, and
/// NTS clients seldom come back), our own order of cipher suites.
//= rfc8915#3-2, rfc8915#3-3
#[must_use]
pub fn server_config_by_name(identities: ByName<Arc<Identity>>) -> Arc<ServerConfig> {
    #[derive(Debug)]
    struct Chooser(ByName<Arc<Identity>>);

    impl ResolvesServerCert for Chooser {
        fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(Arc::clone(&self.0.choose(client.server_name()).certified))
        }
    }

    let mut config = ServerConfig::builder_with_provider(started_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has suites for TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Chooser(identities)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.ignore_client_order = true;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Arc::new(config)
}
