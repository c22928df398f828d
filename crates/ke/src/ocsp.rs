//! OCSP with a nonce: what a certificate authority says now of a certificate of its own, for who does not know when
//! "now" is. RFC 6960, and RFC 8954 for the nonce.
//!
//! A [`Question`] has a random nonce. The signed answer that repeats it is younger than the question, so the instant at
//! which it was made, as the responder tells it, is the present: a client without a clock can judge dates by it. Hence
//! the nonce is no option here, and neither are answers that were made in advance.
//!
//! A request asks about one certificate. The answer is signed by the issuer's key, or by one whose certificate the
//! issuer itself signed for this purpose; that certificate's dates are judged by the answer's own instant. Signatures
//! are those that TLS takes here: SHA-256 or better, RSA from 2048 bits.
//!
//! What is absent: sockets, clocks, HTTP (octets go in and out), and whether a delegate's certificate was itself
//! revoked: authorities make those short-lived instead, and mark them so (RFC 6960 section 4.2.2.2.1).

use std::time::Duration;

use authentick_crypto::Entropy;
use der::asn1::{AnyRef, BitStringRef, Null, ObjectIdentifier, OctetString};
use der::{Decode, Encode, Sequence, Tag, Tagged};
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use sha1::{Digest, Sha1};
use thiserror::Error;
use webpki::EndEntityCert;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::CrlReason;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_ocsp::{
    CertId, CertStatus, OcspGeneralizedTime, OcspRequest, OcspResponse, OcspResponseStatus, Request,
    ResponderId, ResponseData, RevokedInfo, SingleResponse, TbsRequest, Version,
};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::tls::{Issuer, Link, provider};

/// Octets of a nonce. RFC 9654 section 2.1 wants 32 of clients.
pub const NONCE_SIZE: usize = 32;

/// No response is longer; those with a delegate's certificate have two thousand octets.
pub const RESPONSE_SIZE_MAX: usize = 64 << 10;

/// Certificates of delegates that are looked at in one response.
const DELEGATE_COUNT_MAX: usize = 8;

const SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
const OCSP_BASIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");
const OCSP_NONCE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.2");
/// The access method of a responder in a certificate, as text.
const OCSP_ACCESS: &str = "1.3.6.1.5.5.7.48.1";
/// id-kp-OCSPSigning, 1.3.6.1.5.5.7.3.9, without tag and length.
const OCSP_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x09];

/// Which check of a responder's answer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OcspCheck {
    /// It is an OCSP response, of a type that is known here.
    #[error("ocsp response")]
    Format,
    /// The responder answers the question. Nothing vouches for a "no".
    #[error("ocsp status")]
    Status,
    /// Who signed it may.
    #[error("ocsp signer")]
    Signer,
    /// The signature is the signer's.
    #[error("ocsp signature")]
    Signature,
    /// It repeats the nonce of the question.
    #[error("ocsp nonce")]
    Nonce,
    /// It is about the certificate that was asked about.
    #[error("ocsp certificate")]
    Certificate,
    /// Its times are in order.
    #[error("ocsp times")]
    Times,
    /// The certificate was not revoked.
    #[error("ocsp: certificate revoked")]
    Revoked,
    /// The responder knows the certificate.
    #[error("ocsp: certificate unknown")]
    Unknown,
}

/// An answer that counts for nothing: which check it failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{check}: {detail}")]
pub struct BadAnswer {
    /// The check.
    pub check: OcspCheck,
    /// What is wrong, and what to do where something can be done.
    pub detail: String,
}

fn bad(check: OcspCheck, detail: impl Into<String>) -> BadAnswer {
    BadAnswer { check, detail: detail.into() }
}

/// Whose key signed an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// The issuer's own.
    Issuer,
    /// One to which the issuer gave a certificate for OCSP.
    Delegate,
}

/// A certificate is good: what the responder vouches for. Times are in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Good {
    /// When the answer was signed, by the responder's clock: after the question was made, and before the answer came.
    pub produced_at: u64,
    /// When what it says was last known to be so.
    pub this_update: u64,
    /// Until when there will be newer knowledge, if the responder says so.
    pub next_update: Option<u64>,
    /// Who signed it.
    pub signer: Signer,
}

/// A question about one certificate, to be asked once.
#[derive(Clone, Debug)]
pub struct Question {
    id: CertId,
    issuer: Issuer,
    nonce: [u8; NONCE_SIZE],
}

impl Question {
    /// Asks about the certificate of `link`, with a nonce out of `entropy`.
    ///
    /// # Errors
    /// If the certificate cannot be named in a question: it is broken, or its number is negative or too long.
    pub fn new(link: &Link, entropy: &mut Entropy) -> Result<Self, BadAnswer> {
        let id = certificate_id(link)
            .ok_or_else(|| bad(OcspCheck::Certificate, "its serial number or its issuer cannot be read"))?;
        Ok(Question { id, issuer: link.issuer.clone(), nonce: entropy.array() })
    }

    /// A question about certificate 1 of `issuer`, with a nonce that everybody knows: for fuzzing.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn fixed(issuer: Issuer, nonce: [u8; NONCE_SIZE]) -> Self {
        let id = certificate_id_of(&issuer, &[1]).expect("name and key are readable");
        Question { id, issuer, nonce }
    }

    /// The request, in DER.
    #[must_use]
    pub fn request(&self) -> Vec<u8> {
        let octets = |octets: &[u8]| OctetString::new(octets).expect("it is short");
        let nonce = octets(&self.nonce).to_der().expect("it is short");
        let extension = Extension { extn_id: OCSP_NONCE, critical: false, extn_value: octets(&nonce) };
        let request = OcspRequest {
            tbs_request: TbsRequest {
                version: Version::V1,
                requestor_name: None,
                request_list: vec![Request { req_cert: self.id.clone(), single_request_extensions: None }],
                request_extensions: Some(vec![extension]),
            },
            optional_signature: None,
        };
        request.to_der().expect("hashes, a number and a nonce have lengths that can be written")
    }

    /// Judges the octets of a response.
    ///
    /// # Errors
    /// On the first check that fails; what the response says is not looked at before its signature and its nonce.
    pub fn judge(&self, response: &[u8]) -> Result<Good, BadAnswer> {
        let malformed = |what: &str, error: der::Error| bad(OcspCheck::Format, format!("{what}: {error}"));
        if response.len() > RESPONSE_SIZE_MAX {
            return Err(bad(OcspCheck::Format, format!("longer than {RESPONSE_SIZE_MAX} octets")));
        }
        let response =
            OcspResponse::from_der(response).map_err(|error| malformed("no OCSP response", error))?;
        if response.response_status != OcspResponseStatus::Successful {
            return Err(bad(OcspCheck::Status, refusal(response.response_status)));
        }
        let Some(basic) = response.response_bytes.filter(|octets| octets.response_type == OCSP_BASIC) else {
            return Err(bad(OcspCheck::Format, "not of the basic type"));
        };
        let signed = Signed::from_der(basic.response.as_bytes())
            .map_err(|error| malformed("no basic response", error))?;
        let octets = signed.data.to_der().map_err(|error| malformed("no response data", error))?;
        let data = ResponseData::from_der(&octets).map_err(|error| malformed("no response data", error))?;
        let (key_info, signer) = self.signer(&signed, &data)?;
        verify(&key_info, signed.algorithm, &octets, signed.signature)?;
        self.check_nonce(&data)?;
        let answer = self.answer(&data)?;
        check_extensions(&data, answer)?;
        let good = times(&data, answer, signer)?;
        match &answer.cert_status {
            CertStatus::Good(Null) => Ok(good),
            CertStatus::Revoked(info) => Err(bad(OcspCheck::Revoked, revoked(info))),
            CertStatus::Unknown(Null) => {
                let detail = "the responder does not know it; is it that of the certificate's issuer?";
                Err(bad(OcspCheck::Unknown, detail))
            }
        }
    }

    /// The key that is to have signed, as SubjectPublicKeyInfo, and whose it is.
    fn signer(&self, signed: &Signed<'_>, data: &ResponseData) -> Result<(Vec<u8>, Signer), BadAnswer> {
        if is_named(&data.responder_id, &self.issuer.name, &self.issuer.key_info) {
            return Ok((self.issuer.key_info.clone(), Signer::Issuer));
        }
        let mut problem = bad(OcspCheck::Signer, "it names a signer whose certificate is not in it");
        for certificate in signed.certificates.iter().flatten().take(DELEGATE_COUNT_MAX) {
            let Ok(octets) = certificate.to_der() else { continue };
            let Ok((_, read)) = X509Certificate::from_der(&octets) else { continue };
            let key_info = read.tbs_certificate.subject_pki.raw;
            if !is_named(&data.responder_id, read.subject().as_raw(), key_info) {
                continue;
            }
            match check_delegate(&octets, &read, &self.issuer, seconds(data.produced_at)) {
                Ok(()) => return Ok((key_info.to_vec(), Signer::Delegate)),
                Err(detail) => problem = bad(OcspCheck::Signer, detail),
            }
        }
        Err(problem)
    }

    fn check_nonce(&self, data: &ResponseData) -> Result<(), BadAnswer> {
        let mut nonces = data
            .response_extensions
            .iter()
            .flatten()
            .filter(|extension| extension.extn_id == OCSP_NONCE)
            .map(|extension| OctetString::from_der(extension.extn_value.as_bytes()));
        match (nonces.next(), nonces.next()) {
            (None, _) => Err(bad(
                OcspCheck::Nonce,
                "the response has none, and may be old; the responder must sign on demand (RFC 8954), so name one that \
                 does, or set the time by hand",
            )),
            (Some(Ok(nonce)), None) if nonce.as_bytes() == self.nonce => Ok(()),
            (Some(_), _) => {
                Err(bad(OcspCheck::Nonce, "it is not that of the question: the response may be old"))
            }
        }
    }

    /// The part of the response that is about the certificate.
    fn answer<'a>(&self, data: &'a ResponseData) -> Result<&'a SingleResponse, BadAnswer> {
        let is_asked = |answer: &&SingleResponse| {
            let id = &answer.cert_id;
            id.hash_algorithm.oid == self.id.hash_algorithm.oid
                && id.issuer_name_hash == self.id.issuer_name_hash
                && id.issuer_key_hash == self.id.issuer_key_hash
                && id.serial_number == self.id.serial_number
        };
        let mut answers = data.responses.iter().filter(is_asked);
        match (answers.next(), answers.next()) {
            (Some(answer), None) => Ok(answer),
            (None, _) => Err(bad(OcspCheck::Certificate, "the response is about another certificate")),
            (Some(_), Some(_)) => Err(bad(OcspCheck::Certificate, "the response speaks of it twice")),
        }
    }
}

/// Where a certificate says that its issuer's responders are, in its order. RFC 5280 section 4.2.2.1.
#[must_use]
pub fn responders(certificate: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return Vec::new() };
    let access = certificate.extensions().iter().filter_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityInfoAccess(access) => Some(&access.accessdescs),
        _ => None,
    });
    let urls = access.flatten().filter_map(|access| match &access.access_location {
        GeneralName::URI(url) if access.access_method.to_id_string() == OCSP_ACCESS => {
            Some((*url).to_owned())
        }
        _ => None,
    });
    urls.collect()
}

/// A basic response: what is signed, and by whom. The octets that the signature covers stay as they came.
#[derive(Sequence)]
struct Signed<'a> {
    data: AnyRef<'a>,
    algorithm: AnyRef<'a>,
    signature: BitStringRef<'a>,
    #[asn1(context_specific = "0", optional = "true", tag_mode = "EXPLICIT")]
    certificates: Option<Vec<AnyRef<'a>>>,
}

/// Names a certificate by hashes of its issuer, and its number. SHA-1, as that is what every responder knows: who makes
/// another issuer with these hashes gains nothing, as the answer must be signed by ours.
fn certificate_id(link: &Link) -> Option<CertId> {
    let (_, certificate) = X509Certificate::from_der(&link.certificate).ok()?;
    certificate_id_of(&link.issuer, certificate.raw_serial())
}

/// The same by the octets of its number.
fn certificate_id_of(issuer: &Issuer, serial: &[u8]) -> Option<CertId> {
    let number = AnyRef::new(Tag::Integer, serial).ok()?.to_der().ok()?;
    let hash = |octets: &[u8]| OctetString::new(Sha1::digest(octets).as_slice()).ok();
    Some(CertId {
        hash_algorithm: AlgorithmIdentifierOwned { oid: SHA1, parameters: Some(Null.into()) },
        issuer_name_hash: hash(&issuer.name)?,
        issuer_key_hash: hash(key_parts(&issuer.key_info)?.1)?,
        serial_number: SerialNumber::from_der(&number).ok()?,
    })
}

/// A SubjectPublicKeyInfo: algorithm, without its tag and length, and the octets of the key.
fn key_parts(key_info: &[u8]) -> Option<(&[u8], &[u8])> {
    #[derive(Sequence)]
    struct KeyInfo<'a> {
        algorithm: AnyRef<'a>,
        key: BitStringRef<'a>,
    }
    let info = KeyInfo::from_der(key_info).ok()?;
    Some((content(info.algorithm)?, info.key.as_bytes()?))
}

/// What a SEQUENCE holds; `None` if it is none.
fn content(value: AnyRef<'_>) -> Option<&[u8]> {
    (value.tag() == Tag::Sequence).then(|| value.value())
}

/// Whether a responder's identifier means who has this name and this key.
fn is_named(id: &ResponderId, name: &[u8], key_info: &[u8]) -> bool {
    match id {
        ResponderId::ByName(responder) => responder.to_der().is_ok_and(|responder| responder == name),
        ResponderId::ByKey(hash) => {
            key_parts(key_info).is_some_and(|(_, key)| Sha1::digest(key).as_slice() == hash.as_bytes())
        }
    }
}

/// Whether `issuer` let the holder of this certificate speak for it at `unix_seconds`. RFC 6960 section 4.2.2.2.
fn check_delegate(
    octets: &[u8],
    read: &X509Certificate<'_>,
    issuer: &Issuer,
    unix_seconds: u64,
) -> Result<(), String> {
    let refused = |error: webpki::Error| format!("the delegate's certificate, when it signed: {error}");
    let inner = |octets| AnyRef::from_der(octets).ok().and_then(content);
    let (Some(name), Some(key_info)) = (inner(&issuer.name), inner(&issuer.key_info)) else {
        return Err("the issuer cannot be read".to_owned());
    };
    let anchors = [TrustAnchor {
        subject: name.into(),
        subject_public_key_info: key_info.into(),
        name_constraints: None,
    }];
    let certificate = CertificateDer::from(octets);
    let now = UnixTime::since_unix_epoch(Duration::from_secs(unix_seconds));
    let usage = webpki::KeyUsage::required(OCSP_SIGNING);
    let algorithms = provider().signature_verification_algorithms.all;
    EndEntityCert::try_from(&certificate)
        .map_err(refused)?
        .verify_for_usage(algorithms, &anchors, &[], now, usage, None, None)
        .map_err(refused)?;
    match read.key_usage() {
        Ok(None) => Ok(()),
        Ok(Some(usage)) if usage.value.digital_signature() => Ok(()),
        Ok(Some(_)) | Err(_) => Err("the delegate's key is not for signatures".to_owned()),
    }
}

/// Verifies a signature under the key in `key_info`, by the algorithms that TLS takes here.
fn verify(
    key_info: &[u8],
    algorithm: AnyRef<'_>,
    octets: &[u8],
    signature: BitStringRef<'_>,
) -> Result<(), BadAnswer> {
    let (key_algorithm, key) =
        key_parts(key_info).ok_or_else(|| bad(OcspCheck::Signature, "the signer's key cannot be read"))?;
    let (algorithm, signature) = (content(algorithm), signature.as_bytes().unwrap_or_default());
    let algorithms = provider().signature_verification_algorithms.all;
    let mut fitting = algorithms
        .iter()
        .filter(|known| {
            Some(known.signature_alg_id().as_ref()) == algorithm
                && known.public_key_alg_id().as_ref() == key_algorithm
        })
        .peekable();
    if fitting.peek().is_none() {
        let detail = "its algorithm is not accepted, or not of the key: SHA-256 or better is needed";
        return Err(bad(OcspCheck::Signature, detail));
    }
    match fitting.any(|known| known.verify_signature(key, octets, signature).is_ok()) {
        true => Ok(()),
        false => Err(bad(OcspCheck::Signature, "it is not the signer's")),
    }
}

/// What is critical must be understood, and of that there is the nonce alone.
fn check_extensions(data: &ResponseData, answer: &SingleResponse) -> Result<(), BadAnswer> {
    let mut all = data.response_extensions.iter().chain(&answer.single_extensions).flatten();
    match all.find(|extension| extension.critical && extension.extn_id != OCSP_NONCE) {
        None => Ok(()),
        Some(unknown) => {
            let detail = format!("the critical extension {} is not known here", unknown.extn_id);
            Err(bad(OcspCheck::Format, detail))
        }
    }
}

/// What is known was known when the answer was signed, and was not out of date then.
fn times(data: &ResponseData, answer: &SingleResponse, signer: Signer) -> Result<Good, BadAnswer> {
    let good = Good {
        produced_at: seconds(data.produced_at),
        this_update: seconds(answer.this_update),
        next_update: answer.next_update.map(seconds),
        signer,
    };
    if good.this_update > good.produced_at {
        return Err(bad(OcspCheck::Times, "thisUpdate is after producedAt"));
    }
    if good.next_update.is_some_and(|next| next < good.produced_at) {
        let detail = "nextUpdate is before producedAt: what the responder knows is stale";
        return Err(bad(OcspCheck::Times, detail));
    }
    Ok(good)
}

fn seconds(time: OcspGeneralizedTime) -> u64 {
    time.0.to_unix_duration().as_secs()
}

/// What a responder says that does not answer. RFC 6960 section 4.2.1.
fn refusal(status: OcspResponseStatus) -> &'static str {
    match status {
        OcspResponseStatus::Successful => "successful",
        OcspResponseStatus::MalformedRequest => "the responder does not understand the request",
        OcspResponseStatus::InternalError => "the responder has an internal error; ask again later",
        OcspResponseStatus::TryLater => "the responder is busy; ask again later",
        OcspResponseStatus::SigRequired => "the responder wants signed requests, which are not made here",
        OcspResponseStatus::Unauthorized => {
            "the responder does not answer for this certificate; is it that of the certificate's issuer?"
        }
    }
}

/// Since when and why.
fn revoked(info: &RevokedInfo) -> String {
    let since = info.revocation_time.0.to_date_time();
    let reason = match info.revocation_reason {
        None | Some(CrlReason::Unspecified) => "no reason given",
        Some(CrlReason::KeyCompromise) => "its key was compromised",
        Some(CrlReason::CaCompromise) => "the authority was compromised",
        Some(CrlReason::AffiliationChanged) => "its holder's affiliation changed",
        Some(CrlReason::Superseded) => "it was replaced",
        Some(CrlReason::CessationOfOperation) => "its holder has ceased operation",
        Some(CrlReason::CertificateHold) => "it is on hold",
        Some(CrlReason::RemoveFromCRL) => "it was removed from the list",
        Some(CrlReason::PrivilegeWithdrawn) => "its privilege was withdrawn",
        Some(CrlReason::AaCompromise) => "the attribute authority was compromised",
    };
    format!("since {since}: {reason}")
}

#[cfg(test)]
mod tests;
