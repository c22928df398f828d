//! Acceptance of a server's certificates by clients: what every client refuses, and what some refuse.
//!
//! Clients differ: chrony, by GnuTLS, takes a leaf that is marked as an authority's or for clients, or that has no
//! subjectAltName, and rustls does not; chrony refuses a leaf that may not sign, and rustls does not look. What all of
//! them refuse is an error; what some refuse is a warning. Dates of the leaf are not judged here: a server's own clock
//! may be what is wrong. RFC 5280 section 4, RFC 9525, RFC 8446 section 4.4.2.

use std::fmt;
use std::time::Duration;

use authentick_wire::antp::Suite;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::asn1_rs::Tag;
use x509_parser::oid_registry::OID_KEY_TYPE_EC_PUBLIC_KEY;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};
use x509_parser::public_key::PublicKey;

use super::{CertificateInfo, Defect, provider};

/// What a certificate's key is to be used for. RFC 5280 section 4.2.1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// To sign, as TLS 1.3 does: digitalSignature.
    Signature,
    /// To agree on a secret: keyAgreement.
    Agreement,
    /// To have a secret encrypted to it: keyEncipherment.
    Encipherment,
}

impl KeyUse {
    /// What a suite of ANTP does with it.
    #[must_use]
    pub const fn of(suite: Suite) -> Self {
        match suite {
            Suite::RSA_PKCS1 | Suite::RSA_OAEP => KeyUse::Encipherment,
            _ => KeyUse::Agreement,
        }
    }

    /// Whether a certificate that states these usages allows it.
    pub(super) fn is_in(self, stated: &x509_parser::extensions::KeyUsage) -> bool {
        match self {
            KeyUse::Signature => stated.digital_signature(),
            KeyUse::Agreement => stated.key_agreement(),
            KeyUse::Encipherment => stated.key_encipherment(),
        }
    }
}

impl fmt::Display for KeyUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyUse::Signature => "digitalSignature",
            KeyUse::Agreement => "keyAgreement",
            KeyUse::Encipherment => "keyEncipherment",
        })
    }
}

/// Bits of the smallest RSA key that TLS libraries take.
const RSA_BITS_MIN: usize = 2048;

/// Instructions that several defects share.
const MAKE_AGAIN: &str =
    "have it made again, as the manual's page certificates.md says (\"Certificates of one's own\")";
pub(super) const ORDER: &str =
    "write the server's own certificate first, then the one that issued it, and so on";

/// Checks a chain, its holder's own certificate first, for what every peer refuses, whatever the certificate is for.
///
/// # Errors
/// The first such defect.
pub fn check_chain(chain: &[CertificateDer<'_>]) -> Result<(), Defect> {
    for (number, der) in (1..).zip(chain) {
        if X509Certificate::from_der(der).is_err() {
            let problem = format!("certificate {number} of the file is not X.509");
            return Err(Defect::new(problem, "copy the file again, as a whole"));
        }
    }
    let Some(leaf) = chain.first().and_then(|der| parse(der)) else { return Ok(()) };
    if leaf.version() != X509Version::V3 {
        let version = leaf.version().0 + 1;
        return Err(Defect::new(
            format!(
                "the certificate has X.509 version {version}, and clients need version 3, which has names"
            ),
            MAKE_AGAIN,
        ));
    }
    let key = leaf.public_key();
    if key.algorithm.algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY
        && key.algorithm.parameters.as_ref().is_none_or(|parameters| parameters.tag() != Tag::Oid)
    {
        return Err(Defect::new(
            "the certificate's EC key has explicit curve parameters, which no client takes",
            "make key and certificate with a named curve (openssl ecparam -param_enc named_curve)",
        ));
    }
    if let Ok(PublicKey::RSA(rsa)) = key.parsed() {
        // The modulus may have an octet for its sign.
        let bits = rsa.modulus.iter().skip_while(|octet| **octet == 0).count() * 8;
        if bits < RSA_BITS_MIN {
            let problem =
                format!("the certificate's RSA key has {bits} bits, and clients want {RSA_BITS_MIN}");
            return Err(Defect::new(
                problem,
                "make a key of P-256, or of RSA with 2048 bits, and a certificate for it",
            ));
        }
    }
    Ok(())
}

/// What some clients refuse about a chain, the server's own certificate first, at an instant in Unix seconds.
#[must_use]
pub fn chain_warnings(chain: &[CertificateDer<'_>], usage: KeyUse, unix_seconds: u64) -> Vec<Defect> {
    let parsed: Vec<_> = chain.iter().filter_map(|der| parse(der)).collect();
    let Some(leaf) = parsed.first() else { return Vec::new() };
    let mut warnings = about_leaf(leaf, usage);
    warnings.extend(about_order(&parsed));
    if warnings.is_empty() {
        warnings.extend(about_path(chain, &parsed, unix_seconds));
    }
    warnings
}

fn parse<'a>(der: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    X509Certificate::from_der(der).ok().map(|(_, certificate)| certificate)
}

fn about_leaf(leaf: &X509Certificate<'_>, usage: KeyUse) -> Vec<Defect> {
    let mut warnings = Vec::new();
    let mut warn = |problem: &str, remedy: &str| warnings.push(Defect::new(problem, remedy));
    if leaf.is_ca() {
        let remedy = "have one made with basicConstraints=CA:FALSE (openssl req -x509 makes CA:TRUE unless it gets \
                      -addext basicConstraints=critical,CA:FALSE)";
        warn(
            "the server's certificate is marked as an authority's (CA:TRUE), which many clients refuse",
            remedy,
        );
    }
    let names = leaf.subject_alternative_name().ok().flatten();
    if names.is_none_or(|names| names.value.general_names.is_empty()) {
        let remedy =
            "have one made with subjectAltName=DNS:NAME, and IP:ADDRESS where clients connect to an address";
        warn(
            "the certificate has no subjectAltName, so most clients find no name in it and refuse it",
            remedy,
        );
    }
    if leaf.key_usage().is_ok_and(|stated| stated.is_some_and(|stated| !usage.is_in(stated.value))) {
        let problem = format!("the certificate's key usage does not include {usage}, which its clients need");
        let remedy = format!("have one made with keyUsage={usage}, or without that extension");
        warn(&problem, &remedy);
    }
    if let Ok(Some(stated)) = leaf.extended_key_usage()
        && !stated.value.server_auth
    {
        let problem =
            "the certificate's extended key usage does not include serverAuth, so most clients refuse it";
        warn(problem, "have one made with extendedKeyUsage=serverAuth, or without that extension");
    }
    if leaf.validity().not_before.timestamp() < 0 {
        warn("the certificate is valid from before 1970, which some clients cannot read", MAKE_AGAIN);
    }
    warnings
}

/// A certificate as messages call it.
fn title(certificate: &X509Certificate<'_>) -> String {
    CertificateInfo::of(certificate).title().to_owned()
}

/// Each certificate should be followed by the one that issued it, up to an authority that clients know.
fn about_order(chain: &[X509Certificate<'_>]) -> Option<Defect> {
    let issued = |issuer: &X509Certificate<'_>, subject: &X509Certificate<'_>| {
        issuer.subject().as_raw() == subject.issuer().as_raw()
    };
    let missing = |subject: &X509Certificate<'_>, number: usize| {
        let issuer = CertificateInfo::of(subject).issuer;
        let problem = format!(
            "the file lacks the certificate of {issuer}, which issued certificate {number} ({}): only clients that \
             have it accept the server",
            title(subject)
        );
        let remedy = format!(
            "append the certificates of its issuers (certbot: fullchain.pem); nothing is missing if all clients name \
             {issuer} itself as an authority (--ca, ntstrustedcerts)"
        );
        Defect::new(problem, &remedy)
    };
    let leaf = chain.first()?;
    if chain.len() == 1 {
        return (!issued(leaf, leaf)).then(|| missing(leaf, 1));
    }
    let (index, pair) = (1..).zip(chain.windows(2)).find(|(_, pair)| !issued(&pair[1], &pair[0]))?;
    if chain.iter().any(|other| issued(other, &pair[0])) {
        let problem = format!(
            "certificate {} of the file ({}) did not issue the one before it",
            index + 1,
            title(&pair[1])
        );
        return Some(Defect::new(problem, ORDER));
    }
    Some(missing(&pair[0], index))
}

/// The checks of rustls, by which the last certificate of the file is trusted.
fn about_path(
    chain: &[CertificateDer<'_>],
    parsed: &[X509Certificate<'_>],
    unix_seconds: u64,
) -> Option<Defect> {
    let ([leaf, ..], Some(last)) = (chain, chain.last()) else { return None };
    // The leaf's own dates are told of elsewhere.
    let validity = parsed.first()?.validity();
    let bound = |time: i64| u64::try_from(time).unwrap_or(0);
    let (from, until) = (bound(validity.not_before.timestamp()), bound(validity.not_after.timestamp()));
    let at = UnixTime::since_unix_epoch(Duration::from_secs(unix_seconds.min(until).max(from)));
    let path = || {
        let anchors = [anchor_from_trusted_cert(last)?];
        let others = &chain[1..];
        let algorithms = provider().signature_verification_algorithms.all;
        let usage = KeyUsage::server_auth();
        let leaf = EndEntityCert::try_from(leaf)?;
        leaf.verify_for_usage(algorithms, &anchors, others, at, usage, None, None).map(drop)
    };
    let error: webpki::Error = path().err()?;
    let problem = format!("clients that check as this program does refuse the chain: {error}");
    Some(Defect::new(problem, MAKE_AGAIN))
}

#[cfg(test)]
mod tests;
