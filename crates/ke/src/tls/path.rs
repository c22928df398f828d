//! The way from a server's certificate to an authority, for who got the certificates without TLS: as ANTP does.
//!
//! The checks are those of a TLS handshake, by the same library: signatures, name, dates, extended key usage; and the
//! usage of the key, which TLS 1.3 does not need, as there it only signs. Nothing here reads a clock: an instant is an
//! argument, so that who knows the time badly can choose one.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use der::asn1::AnyRef;
use der::{Encode, Tag};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use thiserror::Error;
use webpki::EndEntityCert;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{KeyUse, Roots, provider};
use crate::client::{CertificateCheck, describe};

/// A chain that is not to be trusted: which check it failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{check}: {detail}")]
pub struct BadPath {
    /// The check.
    pub check: CertificateCheck,
    /// What the library says of it.
    pub detail: String,
}

impl BadPath {
    pub(crate) fn new(check: CertificateCheck, detail: impl Into<String>) -> Self {
        BadPath { check, detail: detail.into() }
    }
}

/// Who signed a certificate: an authority, or who has a certificate of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// The name, in DER.
    pub name: Vec<u8>,
    /// The SubjectPublicKeyInfo, in DER.
    pub key_info: Vec<u8>,
}

/// A certificate on the way to an authority, and who signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// Whose signature it has.
    pub issuer: Issuer,
}

/// The way to a server of one name, from the authorities that a client trusts.
#[derive(Clone, Debug)]
pub struct PathVerifier {
    roots: Arc<RootCertStore>,
    verifier: Arc<WebPkiServerVerifier>,
    name: ServerName<'static>,
}

impl PathVerifier {
    /// Trusts `roots` to vouch for `name`.
    ///
    /// # Errors
    /// If there are no roots.
    pub fn new(roots: &Roots, name: ServerName<'static>) -> Result<Self, BadPath> {
        let roots = Arc::new(roots.0.clone());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider())
            .build()
            .map_err(|error| BadPath::new(CertificateCheck::Issuer, error.to_string()))?;
        Ok(PathVerifier { roots, verifier, name })
    }

    /// Checks the certificates of a server, the leaf first: the path to an authority, the name, the dates at
    /// `unix_seconds`, and what the key may be used for. A certificate that names no usage allows all.
    ///
    /// # Errors
    /// On the first check that fails.
    pub fn verify(
        &self,
        chain: &[CertificateDer<'_>],
        usage: KeyUse,
        unix_seconds: u64,
    ) -> Result<(), BadPath> {
        let (leaf, others) = split(chain)?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(unix_seconds));
        let verified = self.verifier.verify_server_cert(leaf, others, &self.name, &[], now);
        verified.map_err(|error| match &error {
            rustls::Error::InvalidCertificate(problem) => problem.into(),
            _ => BadPath::new(CertificateCheck::Other, describe(&error)),
        })?;
        check_usage(leaf, usage)
    }

    /// The way from the leaf to an authority at `unix_seconds`, the leaf first; what of `chain` is not on it is left
    /// out, and so is the authority. Neither name nor usage are checked: that is [`PathVerifier::verify`]'s.
    ///
    /// # Errors
    /// If there is no way.
    pub fn links(&self, chain: &[CertificateDer<'_>], unix_seconds: u64) -> Result<Vec<Link>, BadPath> {
        let bad = |error: webpki::Error| BadPath::new(CertificateCheck::Other, error.to_string());
        let (leaf, others) = split(chain)?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(unix_seconds));
        let leaf_read = EndEntityCert::try_from(leaf).map_err(bad)?;
        let algorithms = provider().signature_verification_algorithms.all;
        let usage = webpki::KeyUsage::server_auth();
        let path = leaf_read
            .verify_for_usage(algorithms, &self.roots.roots, others, now, usage, None, None)
            .map_err(bad)?;
        let between = || path.intermediate_certificates();
        let certificates =
            iter::once(leaf.clone().into_owned()).chain(between().map(|one| one.der().into_owned()));
        let anchor = path.anchor();
        let issuers = between()
            .map(|one| Issuer {
                name: sequence(one.subject()),
                key_info: one.subject_public_key_info().as_ref().to_vec(),
            })
            .chain(iter::once(Issuer {
                name: sequence(&anchor.subject),
                key_info: sequence(&anchor.subject_public_key_info),
            }));
        let links = certificates.zip(issuers);
        Ok(links.map(|(certificate, issuer)| Link { certificate, issuer }).collect())
    }
}

/// The leaf, and what came with it.
fn split<'a, 'c>(
    chain: &'a [CertificateDer<'c>],
) -> Result<(&'a CertificateDer<'c>, &'a [CertificateDer<'c>]), BadPath> {
    let empty = || BadPath::new(CertificateCheck::Other, "the chain is empty");
    chain.split_first().ok_or_else(empty)
}

/// The DER of a SEQUENCE with this content.
fn sequence(content: &[u8]) -> Vec<u8> {
    AnyRef::new(Tag::Sequence, content)
        .and_then(|value| value.to_der())
        .expect("a certificate, which holds it, was read, and so its length can be written")
}

/// Whether the certificate lets its key be used like this.
fn check_usage(leaf: &[u8], usage: KeyUse) -> Result<(), BadPath> {
    let broken = || BadPath::new(CertificateCheck::Other, "broken key usage");
    let (_, certificate) = X509Certificate::from_der(leaf).map_err(|_| broken())?;
    let Some(stated) = certificate.key_usage().map_err(|_| broken())? else { return Ok(()) };
    match usage.is_in(stated.value) {
        true => Ok(()),
        false => {
            let detail = format!("the certificate's key is not for {usage}");
            Err(BadPath::new(CertificateCheck::Usage, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa};
    use rcgen::{KeyPair, KeyUsagePurpose};

    use super::*;

    /// 2030-01-01, within the dates of the certificates here.
    const NOW: u64 = 1_893_456_000;
    const DAY: u64 = 86_400;

    struct Authority {
        issuer: CertifiedIssuer<'static, KeyPair>,
        roots: Roots,
    }

    fn authority(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let roots = Roots::from_pem(issuer.pem().as_bytes()).unwrap();
        Authority { issuer, roots }
    }

    impl Authority {
        fn leaf(&self, change: impl FnOnce(&mut CertificateParams)) -> Vec<CertificateDer<'static>> {
            let mut params = CertificateParams::new(vec!["ntp.test".to_owned()]).unwrap();
            params.not_before = rcgen::date_time_ymd(2029, 1, 1);
            params.not_after = rcgen::date_time_ymd(2031, 1, 1);
            change(&mut params);
            let key = KeyPair::generate().unwrap();
            vec![params.signed_by(&key, &self.issuer).unwrap().der().clone()]
        }

        fn check(
            &self,
            chain: &[CertificateDer<'_>],
            usage: KeyUse,
            at: u64,
        ) -> Result<(), CertificateCheck> {
            let name = ServerName::try_from("ntp.test").unwrap();
            let path = PathVerifier::new(&self.roots, name).unwrap();
            path.verify(chain, usage, at).map_err(|bad| bad.check)
        }
    }

    #[test]
    fn each_check_is_named() {
        let (ours, strangers) = (authority("ours"), authority("theirs"));
        let chain = ours.leaf(|_| {});
        let agreement = KeyUse::Agreement;
        assert_eq!(ours.check(&chain, agreement, NOW), Ok(()));
        assert_eq!(ours.check(&chain, agreement, NOW - 400 * DAY), Err(CertificateCheck::NotYetValid));
        assert_eq!(ours.check(&chain, agreement, NOW + 400 * DAY), Err(CertificateCheck::Expired));
        assert_eq!(ours.check(&strangers.leaf(|_| {}), agreement, NOW), Err(CertificateCheck::Issuer));
        let other = ours.leaf(|params| {
            *params = CertificateParams::new(vec!["other.test".to_owned()]).unwrap();
        });
        assert_eq!(ours.check(&other, agreement, NOW), Err(CertificateCheck::Name));
        let client =
            ours.leaf(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
        assert_eq!(ours.check(&client, agreement, NOW), Err(CertificateCheck::Usage));
        let another = ours.leaf(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
        assert_eq!(ours.check(&another, agreement, NOW), Err(CertificateCheck::Usage));
        assert_eq!(ours.check(&[], agreement, NOW), Err(CertificateCheck::Other));
        assert_eq!(
            ours.check(&[CertificateDer::from(vec![1])], agreement, NOW),
            Err(CertificateCheck::Other)
        );
        let nobody = PathVerifier::new(&Roots::from_der([]), ServerName::try_from("ntp.test").unwrap());
        assert_eq!(nobody.unwrap_err().check, CertificateCheck::Issuer);
    }

    #[test]
    fn usage_of_the_key_is_that_of_the_mechanism_where_it_is_stated() {
        let ours = authority("ours");
        let signs = ours.leaf(|params| params.key_usages = vec![KeyUsagePurpose::DigitalSignature]);
        let agrees = ours.leaf(|params| params.key_usages = vec![KeyUsagePurpose::KeyAgreement]);
        let deciphers = ours.leaf(|params| params.key_usages = vec![KeyUsagePurpose::KeyEncipherment]);
        let usage = Err(CertificateCheck::Usage);
        for (chain, agreement, encipherment) in
            [(&signs, usage, usage), (&agrees, Ok(()), usage), (&deciphers, usage, Ok(()))]
        {
            assert_eq!(ours.check(chain, KeyUse::Agreement, NOW), agreement);
            assert_eq!(ours.check(chain, KeyUse::Encipherment, NOW), encipherment);
        }
    }
}
