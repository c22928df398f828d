//! Who an agent or a coordinator is, and whom it trusts: TLS 1.3 with certificates on both sides, nothing else.

use std::fmt;
use std::sync::Arc;

use authentick_ke::tls::{certificates, check_chain, private_key};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, InconsistentKeys, RootCertStore, ServerConfig};

use super::limits::ALPN;

/// A certificate chain with its key, and the authority of the other side's certificates.
pub struct Identity {
    certified: Arc<CertifiedKey>,
    authorities: Arc<RootCertStore>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificates", &self.certified.cert.len()).finish_non_exhaustive()
    }
}

/// Why texts make no identity. Each variant holds what is wrong with one of the files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The own certificate chain.
    #[error("certificate chain: {0}")]
    Chain(String),
    /// The own private key.
    #[error("private key: {0}")]
    Key(String),
    /// The certificates of the authority.
    #[error("authority of the other side: {0}")]
    Authorities(String),
}

impl Identity {
    /// An identity from three PEM texts: the certificate chain, the own certificate first; its private key; and the
    /// authorities, one of which must vouch for the other side.
    ///
    /// # Errors
    /// If a text is no PEM of its kind, or the key does not belong to the chain.
    pub fn from_pem(chain: &[u8], key: &[u8], authorities: &[u8]) -> Result<Self, IdentityError> {
        let chain = certificates(chain).map_err(|defect| IdentityError::Chain(defect.into()))?;
        check_chain(&chain).map_err(|defect| IdentityError::Chain(defect.into()))?;
        let key = private_key(key).map_err(|defect| IdentityError::Key(defect.into()))?;
        let key = any_supported_type(&key)
            .map_err(|error| IdentityError::Key(format!("unusable private key: {error}")))?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                let message = "does not belong to the first certificate of the chain";
                return Err(IdentityError::Key(message.to_owned()));
            }
            Err(error @ rustls::Error::InvalidCertificate(_)) => {
                return Err(IdentityError::Chain(error.to_string()));
            }
            Err(error) => return Err(IdentityError::Key(error.to_string())),
        }
        let mut roots = RootCertStore::empty();
        let authorities =
            certificates(authorities).map_err(|defect| IdentityError::Authorities(defect.into()))?;
        for certificate in authorities {
            roots
                .add(certificate)
                .map_err(|error| IdentityError::Authorities(format!("unusable certificate: {error}")))?;
        }
        let identity = Identity { certified: Arc::new(certified), authorities: Arc::new(roots) };
        // A mismatch is reported at once, not at the first connection.
        identity.server_config()?;
        Ok(identity)
    }

    /// The agent's side: whoever connects must have a certificate of the authority.
    pub(crate) fn server_config(&self) -> Result<Arc<ServerConfig>, IdentityError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&self.authorities), Arc::clone(&provider))
                .build()
                .map_err(|error| IdentityError::Authorities(error.to_string()))?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("the provider has suites for TLS 1.3")
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&self.certified))));
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Arc::new(config))
    }

    /// The coordinator's side: an agent must have a certificate of the authority, for the name it is called by.
    pub(crate) fn client_config(&self) -> Arc<ClientConfig> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("the provider has suites for TLS 1.3")
            .with_root_certificates(Arc::clone(&self.authorities))
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&self.certified))));
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        Arc::new(config)
    }
}
