//! The server's side: a certificate chain, the key that fits it, and the configuration around them.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error;

use super::{ByName, CertificateInfo, certificates, private_key, started_provider};
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
    /// The chain's file holds something that is no PEM certificate.
    #[error("{0}")]
    Chain(String),
    /// The key's file holds no PEM private key.
    #[error("{0}")]
    Key(String),
    /// The key is not the one of the chain's first certificate.
    #[error("the private key does not belong to the first certificate of the chain")]
    Mismatch,
}

impl Identity {
    /// An identity from a PEM certificate chain, the server's own certificate first, and a PEM private key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain: Vec<CertificateDer<'static>> = certificates(chain).map_err(IdentityError::Chain)?;
        let key = private_key(key).map_err(IdentityError::Key)?;
        let certificate = CertificateInfo::parse(&chain[0])
            .ok_or_else(|| IdentityError::Chain("the first certificate is not X.509".to_owned()))?;
        // From a reference: the provider's own way takes the octets, and does not wipe them.
        let key = any_supported_type(&key)
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
