//! The client's side: whom to trust, and the configuration around that.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use super::{Defect, certificates, started_provider};
use crate::ALPN;

/// A client's trust: certificates of authorities.
#[derive(Clone, Debug)]
pub struct Roots(pub(super) RootCertStore);

impl Roots {
    /// The authorities in a PEM text.
    ///
    /// # Errors
    /// If the text is not understood, or a certificate in it cannot be an authority's.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Defect> {
        Roots::from_certificates(certificates(pem)?)
    }

    /// Authorities with these certificates, of which none is passed over.
    ///
    /// # Errors
    /// If one of them cannot be an authority's.
    pub fn from_certificates(
        certificates: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Result<Self, Defect> {
        let mut roots = RootCertStore::empty();
        for (number, certificate) in (1..).zip(certificates) {
            roots.add(certificate).map_err(|error| {
                Defect::new(
                    format!("unusable authority: certificate {number}: {error}"),
                    "remove it from the file",
                )
            })?;
        }
        Ok(Roots(roots))
    }

    /// Authorities in DER, as the system keeps them; those that rustls cannot use are passed over.
    #[must_use]
    pub fn from_der(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        let mut roots = RootCertStore::empty();
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
//= rfc8915#3-2, rfc8915#3-3, rfc8915#3-4, rfc8915#8.5-1
#[must_use]
pub fn client_config(roots: Roots) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(started_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has suites for TLS 1.3")
        .with_root_certificates(roots.0)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    Arc::new(config)
}
