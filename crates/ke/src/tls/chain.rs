//! Certificate chains that come by another way than TLS, judged as TLS judges them: ANTP negotiates in datagrams.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Roots, started_provider};

/// Whom a client trusts, and whom it wants to talk to.
#[derive(Clone, Debug)]
pub struct ChainJudge {
    verifier: Arc<WebPkiServerVerifier>,
    server_name: ServerName<'static>,
}

/// Why a chain is not trusted.
#[derive(Clone, Debug, PartialEq)]
pub enum Distrust {
    /// There is no certificate in it, or the first is none.
    NoCertificate,
    /// Path, dates, name or usage do not fit.
    Certificate(rustls::Error),
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distrust::NoCertificate => f.write_str("the chain has no certificate that can be read"),
            Distrust::Certificate(error) => write!(f, "the server's certificate: {error}"),
        }
    }
}

impl std::error::Error for Distrust {}

impl ChainJudge {
    /// Trusts `roots` to vouch for `server_name`.
    ///
    /// # Errors
    /// A sentence, if the name is none that a certificate can have, or there are no roots.
    pub fn new(roots: Roots, server_name: &str) -> Result<Self, String> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| format!("{server_name:?} is no name that a certificate can have"))?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots.0), started_provider())
            .build()
            .map_err(|error| format!("no certificate authorities are trusted: {error}"))?;
        Ok(ChainJudge { verifier, server_name: name })
    }

    /// The SubjectPublicKeyInfo of the first certificate, if the chain (DER, the server's own first) is good at
    /// `unix_seconds`.
    ///
    /// # Errors
    /// Why it is not to be trusted.
    pub fn judge<'a>(
        &self,
        chain: impl IntoIterator<Item = &'a [u8]>,
        unix_seconds: u64,
    ) -> Result<Vec<u8>, Distrust> {
        let mut chain = chain.into_iter().map(CertificateDer::from);
        let leaf = chain.next().ok_or(Distrust::NoCertificate)?;
        let others: Vec<_> = chain.collect();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(unix_seconds));
        self.verifier
            .verify_server_cert(&leaf, &others, &self.server_name, &[], now)
            .map_err(Distrust::Certificate)?;
        let (_, parsed) = X509Certificate::from_der(&leaf).map_err(|_| Distrust::NoCertificate)?;
        Ok(parsed.tbs_certificate.subject_pki.raw.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PublicKeyData};

    use super::*;

    /// Long before any certificate of today ends, and after they begin: rcgen's last from 1975 to 4096.
    const NOW: u64 = 1_700_000_000;

    struct Authority(CertifiedIssuer<'static, KeyPair>);

    impl Authority {
        fn new() -> Self {
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
        }

        fn roots(&self) -> Roots {
            Roots::from_pem(self.0.pem().as_bytes()).unwrap()
        }

        fn issue(&self, name: &str, key: &KeyPair) -> Vec<u8> {
            let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            params.signed_by(key, &self.0).unwrap().der().to_vec()
        }
    }

    #[test]
    fn good_chain_gives_the_key_of_its_first_certificate() {
        let (authority, key) = (Authority::new(), KeyPair::generate().unwrap());
        let judge = ChainJudge::new(authority.roots(), "time.test").unwrap();
        let leaf = authority.issue("time.test", &key);
        assert_eq!(judge.judge([&leaf[..]], NOW).unwrap(), key.subject_public_key_info());
    }

    #[test]
    fn other_names_authorities_and_times_are_not_trusted() {
        let (authority, key) = (Authority::new(), KeyPair::generate().unwrap());
        let leaf = authority.issue("time.test", &key);
        let judge = |roots, name| ChainJudge::new(roots, name).unwrap();
        let other_name = judge(authority.roots(), "other.test").judge([&leaf[..]], NOW);
        let stranger = judge(Authority::new().roots(), "time.test").judge([&leaf[..]], NOW);
        let early = judge(authority.roots(), "time.test").judge([&leaf[..]], 1);
        for refused in [other_name, stranger, early] {
            assert!(matches!(refused, Err(Distrust::Certificate(_))), "{refused:?}");
        }
        let nothing: [&[u8]; 0] = [];
        assert_eq!(judge(authority.roots(), "time.test").judge(nothing, NOW), Err(Distrust::NoCertificate));
        assert!(ChainJudge::new(authority.roots(), "no name").is_err());
        assert!(ChainJudge::new(Roots::from_der([]), "time.test").is_err());
    }
}
