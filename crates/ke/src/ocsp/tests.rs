//! Questions, and answers of a responder that is made here and can say anything.

use der::asn1::{BitString, GeneralizedTime};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PublicKeyData, SigningKey,
};
use rustls::pki_types::ServerName;
use x509_cert::Certificate;
use x509_ocsp::{BasicOcspResponse, OcspNoCheck};

use super::*;
use crate::tls::{PathVerifier, Roots};

/// 2030-01-01, within the dates of the certificates here.
const NOW: u64 = 1_893_456_000;
const DAY: u64 = 86_400;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn authority(name: &str) -> Authority {
    CertifiedIssuer::self_signed(authority_params(name), KeyPair::generate().unwrap()).unwrap()
}

/// A certificate that is good from 2029 to 2031, and its key.
fn certificate(by: &Authority, change: impl FnOnce(&mut CertificateParams)) -> (Vec<u8>, KeyPair) {
    let mut params = CertificateParams::new(vec!["ntp.test".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2029, 1, 1);
    params.not_after = rcgen::date_time_ymd(2031, 1, 1);
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, by).unwrap().der().to_vec(), key)
}

fn delegate(by: &Authority, change: impl FnOnce(&mut CertificateParams)) -> (Vec<u8>, KeyPair) {
    certificate(by, |params| {
        params.distinguished_name.push(rcgen::DnType::CommonName, "responder");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::OcspSigning];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        change(params);
    })
}

/// The way to the certificate of `ours`.
fn link(ours: &Authority, leaf: &[u8]) -> Link {
    let roots = Roots::from_pem(ours.pem().as_bytes()).unwrap();
    let path = PathVerifier::new(&roots, ServerName::try_from("ntp.test").unwrap()).unwrap();
    let links = path.links(&[CertificateDer::from(leaf.to_vec())], NOW).unwrap();
    assert_eq!(links.len(), 1);
    links.into_iter().next().unwrap()
}

fn time(unix_seconds: u64) -> OcspGeneralizedTime {
    OcspGeneralizedTime(GeneralizedTime::from_unix_duration(Duration::from_secs(unix_seconds)).unwrap())
}

fn nonce(octets: &[u8]) -> Extension {
    let value = OctetString::new(octets).unwrap().to_der().unwrap();
    Extension { extn_id: OCSP_NONCE, critical: false, extn_value: OctetString::new(value).unwrap() }
}

/// What a responder without faults says.
fn good_data(question: &Question, certificate: &[u8]) -> ResponseData {
    let name = Certificate::from_der(certificate).unwrap().tbs_certificate.subject;
    ResponseData {
        version: Version::V1,
        responder_id: ResponderId::ByName(name),
        produced_at: time(NOW),
        responses: vec![SingleResponse {
            cert_id: question.id.clone(),
            cert_status: CertStatus::good(),
            this_update: time(NOW - 60),
            next_update: Some(time(NOW + DAY)),
            single_extensions: None,
        }],
        response_extensions: Some(vec![nonce(&question.nonce)]),
    }
}

fn sign(data: ResponseData, key: &impl SigningKey, certificates: &[&[u8]]) -> Vec<u8> {
    let signature = key.sign(&data.to_der().unwrap()).unwrap();
    let ecdsa_sha256 = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
    sign_as(data, ecdsa_sha256, &signature, certificates)
}

fn sign_as(
    data: ResponseData,
    algorithm: ObjectIdentifier,
    signature: &[u8],
    certificates: &[&[u8]],
) -> Vec<u8> {
    let read = |octets: &&[u8]| Certificate::from_der(octets).unwrap();
    let basic = BasicOcspResponse {
        tbs_response_data: data,
        signature_algorithm: AlgorithmIdentifierOwned { oid: algorithm, parameters: None },
        signature: BitString::from_bytes(signature).unwrap(),
        certs: (!certificates.is_empty()).then(|| certificates.iter().map(read).collect()),
    };
    OcspResponse::successful(basic).unwrap().to_der().unwrap()
}

/// An authority, a certificate of its own, and a question about that.
struct Bench {
    ours: Authority,
    question: Question,
}

impl Bench {
    fn new() -> Self {
        let ours = authority("ours");
        let (leaf, _) = certificate(&ours, |_| {});
        let question = Question::new(&link(&ours, &leaf), &mut Entropy::from_seed(1)).unwrap();
        Bench { ours, question }
    }

    fn data(&self) -> ResponseData {
        good_data(&self.question, self.ours.der())
    }

    /// The authority's own response, changed before it is signed.
    fn response(&self, change: impl FnOnce(&mut ResponseData)) -> Vec<u8> {
        let mut data = self.data();
        change(&mut data);
        sign(data, self.ours.key(), &[])
    }

    /// The response of a delegate, changed before it is signed.
    fn delegated(&self, delegate: &(Vec<u8>, KeyPair), change: impl FnOnce(&mut ResponseData)) -> Vec<u8> {
        let mut data = good_data(&self.question, &delegate.0);
        change(&mut data);
        sign(data, &delegate.1, &[&delegate.0])
    }

    fn judge(&self, response: &[u8]) -> Result<Good, OcspCheck> {
        self.question.judge(response).map_err(|bad| bad.check)
    }

    fn changed(&self, change: impl FnOnce(&mut ResponseData)) -> Result<Good, OcspCheck> {
        self.judge(&self.response(change))
    }
}

const GOOD: Good =
    Good { produced_at: NOW, this_update: NOW - 60, next_update: Some(NOW + DAY), signer: Signer::Issuer };

fn by_key(key: &KeyPair) -> ResponderId {
    ResponderId::ByKey(OctetString::new(Sha1::digest(key.der_bytes()).as_slice()).unwrap())
}

#[test]
fn request_names_the_certificate_by_its_issuer_and_has_32_fresh_octets() {
    let bench = Bench::new();
    let request = OcspRequest::from_der(&bench.question.request()).unwrap();
    let id = &request.tbs_request.request_list[0].req_cert;
    let key = Certificate::from_der(bench.ours.der()).unwrap();
    let key = key.tbs_certificate.subject_public_key_info.subject_public_key;
    assert_eq!(id.issuer_key_hash.as_bytes(), Sha1::digest(key.raw_bytes()).as_slice());
    let nonce = request.nonce().unwrap();
    assert_eq!(nonce.0.as_bytes(), bench.question.nonce);
    assert_eq!(nonce.0.as_bytes().len(), 32);
    let link = link(&bench.ours, &certificate(&bench.ours, |_| {}).0);
    let mut entropy = Entropy::from_seed(1);
    let [first, second] = [(); 2].map(|()| Question::new(&link, &mut entropy).unwrap().nonce);
    assert_ne!(first, second);
}

#[test]
fn issuer_and_delegate_vouch_whether_named_or_known_by_their_keys() {
    let bench = Bench::new();
    assert_eq!(bench.changed(|_| {}), Ok(GOOD));
    assert_eq!(bench.changed(|data| data.responder_id = by_key(bench.ours.key())), Ok(GOOD));
    assert_eq!(
        bench.changed(|data| data.responses[0].next_update = None),
        Ok(Good { next_update: None, ..GOOD })
    );
    let delegate = delegate(&bench.ours, |_| {});
    let by_delegate = Ok(Good { signer: Signer::Delegate, ..GOOD });
    assert_eq!(bench.judge(&bench.delegated(&delegate, |_| {})), by_delegate);
    assert_eq!(
        bench.judge(&bench.delegated(&delegate, |data| data.responder_id = by_key(&delegate.1))),
        by_delegate
    );
}

#[test]
fn nonce_that_is_missing_another_or_double_is_refused() {
    let bench = Bench::new();
    let with = |extensions: Option<Vec<Extension>>| {
        bench.changed(|data| data.response_extensions = extensions).unwrap_err()
    };
    let own = bench.question.nonce;
    let (mut other, double) = (own, [nonce(&own), nonce(&own)].to_vec());
    other[31] ^= 1;
    for extensions in [
        None,
        Some(vec![]),
        Some(vec![nonce(&other)]),
        Some(vec![nonce(&own[..31])]),
        Some(vec![nonce(&[])]),
        Some(double),
        Some(vec![Extension { extn_value: OctetString::new(own).unwrap(), ..nonce(&own) }]),
    ] {
        assert_eq!(with(extensions.clone()), OcspCheck::Nonce, "{extensions:?}");
    }
    let bad = bench.question.judge(&bench.response(|data| data.response_extensions = None)).unwrap_err();
    assert!(bad.detail.contains("may be old") && bad.detail.contains("name one that does"), "{bad}");
    // An answer to the same question, asked before.
    let again = Question { nonce: [9; NONCE_SIZE], ..bench.question.clone() };
    assert_eq!(again.judge(&bench.response(|_| {})).unwrap_err().check, OcspCheck::Nonce);
}

#[test]
fn revoked_says_since_when_and_why_and_unknown_is_refused() {
    let bench = Bench::new();
    let info = |reason| RevokedInfo { revocation_time: time(NOW - DAY), revocation_reason: reason };
    let revoked = |reason| {
        let response =
            bench.response(|data| data.responses[0].cert_status = CertStatus::revoked(info(reason)));
        bench.question.judge(&response).unwrap_err().to_string()
    };
    assert_eq!(
        revoked(Some(CrlReason::KeyCompromise)),
        "ocsp: certificate revoked: since 2029-12-31T00:00:00Z: its key was compromised"
    );
    assert!(revoked(None).ends_with("no reason given"));
    let unknown = bench.changed(|data| data.responses[0].cert_status = CertStatus::unknown());
    assert_eq!(unknown, Err(OcspCheck::Unknown));
}

#[test]
fn answer_about_another_certificate_or_two_about_one_is_refused() {
    let bench = Bench::new();
    type Change = fn(&mut CertId);
    let changes: [Change; 4] = [
        |id| id.serial_number = SerialNumber::new(&[1, 2, 3]).unwrap(),
        |id| id.issuer_name_hash = OctetString::new([0; 20]).unwrap(),
        |id| id.issuer_key_hash = OctetString::new([0; 20]).unwrap(),
        |id| id.hash_algorithm.oid = OCSP_NONCE,
    ];
    for change in changes {
        let result = bench.changed(|data| change(&mut data.responses[0].cert_id));
        assert_eq!(result, Err(OcspCheck::Certificate));
    }
    let twice = bench.changed(|data| data.responses.push(data.responses[0].clone()));
    assert_eq!(twice, Err(OcspCheck::Certificate));
    assert_eq!(bench.changed(|data| data.responses.clear()), Err(OcspCheck::Certificate));
    let among_others = bench.changed(|data| {
        let mut other = data.responses[0].clone();
        changes[0](&mut other.cert_id);
        other.cert_status = CertStatus::unknown();
        data.responses.insert(0, other);
    });
    assert_eq!(among_others, Ok(GOOD));
}

#[test]
fn times_are_in_order() {
    let bench = Bench::new();
    let changed = |this: u64, next: u64| {
        bench.changed(|data| {
            data.responses[0].this_update = time(this);
            data.responses[0].next_update = Some(time(next));
        })
    };
    assert!(changed(NOW, NOW).is_ok());
    assert_eq!(changed(NOW + 1, NOW + DAY), Err(OcspCheck::Times));
    assert_eq!(changed(NOW - DAY, NOW - 1), Err(OcspCheck::Times));
}

#[test]
fn who_is_not_the_issuer_nor_its_delegate_then_does_not_count() {
    let (bench, stranger) = (Bench::new(), authority("ours"));
    let refused = |certificate: &(Vec<u8>, KeyPair)| {
        bench.judge(&bench.delegated(certificate, |_| {})).expect_err("it may not sign")
    };
    // Another authority of the same name, alone and with a delegate.
    assert_eq!(bench.judge(&sign(bench.data(), stranger.key(), &[])), Err(OcspCheck::Signature));
    assert_eq!(refused(&delegate(&stranger, |_| {})), OcspCheck::Signer);
    let dates = |from, until| {
        delegate(&bench.ours, |params| {
            (params.not_before, params.not_after) =
                (rcgen::date_time_ymd(from, 1, 1), rcgen::date_time_ymd(until, 1, 1));
        })
    };
    assert_eq!(refused(&dates(2020, 2029)), OcspCheck::Signer, "expired when it signed");
    assert_eq!(refused(&dates(2031, 2032)), OcspCheck::Signer, "not yet valid when it signed");
    let purposes = |purposes: &[ExtendedKeyUsagePurpose]| {
        delegate(&bench.ours, |params| params.extended_key_usages = purposes.to_vec())
    };
    assert_eq!(refused(&purposes(&[])), OcspCheck::Signer, "the server's certificate itself would do");
    assert_eq!(refused(&purposes(&[ExtendedKeyUsagePurpose::Any])), OcspCheck::Signer);
    assert_eq!(refused(&purposes(&[ExtendedKeyUsagePurpose::ServerAuth])), OcspCheck::Signer);
    let usage = delegate(&bench.ours, |params| params.key_usages = vec![KeyUsagePurpose::KeyAgreement]);
    assert_eq!(refused(&usage), OcspCheck::Signer);
    // A delegate of a delegate, or of an authority below: not signed by the issuer itself.
    let between =
        CertifiedIssuer::signed_by(authority_params("below"), KeyPair::generate().unwrap(), &bench.ours)
            .unwrap();
    let below = delegate(&between, |_| {});
    let response = sign(good_data(&bench.question, &below.0), &below.1, &[&below.0, between.der()]);
    assert_eq!(bench.judge(&response), Err(OcspCheck::Signer));
    // A delegate whose certificate was left out, and one whose key is not the one that signed.
    let (good, other) = (delegate(&bench.ours, |_| {}), KeyPair::generate().unwrap());
    assert_eq!(bench.judge(&sign(good_data(&bench.question, &good.0), &good.1, &[])), Err(OcspCheck::Signer));
    let response = sign(good_data(&bench.question, &good.0), &other, &[&good.0]);
    assert_eq!(bench.judge(&response), Err(OcspCheck::Signature));
}

#[test]
fn signature_of_an_algorithm_that_is_weak_or_not_of_the_key_is_refused() {
    let bench = Bench::new();
    let signature = bench.ours.key().sign(&bench.data().to_der().unwrap()).unwrap();
    // ecdsa-with-SHA1, sha1WithRSAEncryption, sha256WithRSAEncryption, Ed25519.
    for algorithm in ["1.2.840.10045.4.1", "1.2.840.113549.1.1.5", "1.2.840.113549.1.1.11", "1.3.101.112"] {
        let response = sign_as(bench.data(), ObjectIdentifier::new_unwrap(algorithm), &signature, &[]);
        let bad = bench.question.judge(&response).unwrap_err();
        assert!(bad.check == OcspCheck::Signature && bad.detail.contains("SHA-256"), "{algorithm}: {bad}");
    }
}

#[test]
fn critical_extension_that_is_unknown_is_refused() {
    let bench = Bench::new();
    let unknown = |critical| Extension {
        extn_id: OCSP_BASIC,
        critical,
        extn_value: OctetString::new(OcspNoCheck {}.to_der().unwrap()).unwrap(),
    };
    for (critical, expected) in [(false, Ok(GOOD)), (true, Err(OcspCheck::Format))] {
        let of_all = bench.changed(|data| data.response_extensions.as_mut().unwrap().push(unknown(critical)));
        let of_one =
            bench.changed(|data| data.responses[0].single_extensions = Some(vec![unknown(critical)]));
        assert_eq!((of_all, of_one), (expected, expected));
    }
}

#[test]
fn refusals_and_foreign_types_name_themselves() {
    let bench = Bench::new();
    for (response, part) in [
        (OcspResponse::malformed_request(), "does not understand"),
        (OcspResponse::internal_error(), "internal error"),
        (OcspResponse::try_later(), "busy"),
        (OcspResponse::sig_required(), "signed requests"),
        (OcspResponse::unauthorized(), "is it that of the certificate's issuer"),
    ] {
        let bad = bench.question.judge(&response.to_der().unwrap()).unwrap_err();
        assert!(bad.check == OcspCheck::Status && bad.detail.contains(part), "{bad}");
    }
    let good = OcspResponse::from_der(&bench.response(|_| {})).unwrap();
    let mut foreign = good.clone();
    foreign.response_bytes.as_mut().unwrap().response_type = OCSP_NONCE;
    let empty = OcspResponse { response_bytes: None, ..good };
    for response in [foreign, empty] {
        assert_eq!(bench.judge(&response.to_der().unwrap()), Err(OcspCheck::Format));
    }
    assert_eq!(bench.judge(&vec![0x30; RESPONSE_SIZE_MAX + 1]), Err(OcspCheck::Format));
}

/// Every bit, every prefix, and an octet more: of a response of the issuer, and of one with a delegate's certificate.
#[test]
fn damaged_response_is_never_believed() {
    let bench = Bench::new();
    let delegate = delegate(&bench.ours, |_| {});
    for response in [bench.response(|_| {}), bench.delegated(&delegate, |_| {})] {
        assert!(bench.judge(&response).is_ok());
        for bit in 0..response.len() * 8 {
            let mut damaged = response.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(bench.judge(&damaged).is_err(), "bit {bit} of {} octets", response.len());
        }
        for size in 0..response.len() {
            assert_eq!(bench.judge(&response[..size]), Err(OcspCheck::Format), "{size}");
        }
        assert_eq!(bench.judge(&[&response[..], &[0]].concat()), Err(OcspCheck::Format));
    }
}

#[test]
fn certificate_says_where_to_ask() {
    // SEQUENCE { SEQUENCE { access method, [6] URL }, .. }: caIssuers first, then two responders.
    let access = |method: u8, url: &str| {
        let mut octets = vec![0x06, 0x08, 0x2b, 6, 1, 5, 5, 7, 48, method, 0x86, url.len() as u8];
        octets.extend_from_slice(url.as_bytes());
        [&[0x30, octets.len() as u8], &octets[..]].concat()
    };
    let list = [access(2, "http://ca.test/"), access(1, "https://a.test/"), access(1, "http://b.test:81/x")];
    let list = list.concat();
    let value = [&[0x30, list.len() as u8], &list[..]].concat();
    let ours = authority("ours");
    let (with, _) = certificate(&ours, |params| {
        let access = rcgen::CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], value);
        params.custom_extensions.push(access);
    });
    assert_eq!(responders(&with), ["https://a.test/", "http://b.test:81/x"]);
    assert!(responders(&certificate(&ours, |_| {}).0).is_empty() && responders(b"none").is_empty());
}

#[test]
fn each_certificate_of_a_path_is_asked_about_under_the_one_above() {
    let root = authority("root");
    let below = |name: &str, by: &Authority| {
        CertifiedIssuer::signed_by(authority_params(name), KeyPair::generate().unwrap(), by).unwrap()
    };
    let first = below("first", &root);
    let second = below("second", &first);
    let (leaf, _) = certificate(&second, |_| {});
    let roots = Roots::from_pem(root.pem().as_bytes()).unwrap();
    let path = PathVerifier::new(&roots, ServerName::try_from("ntp.test").unwrap()).unwrap();
    // Out of order, and with one that is not needed.
    let chain = [&leaf[..], authority("stranger").der(), first.der(), second.der()]
        .map(|octets| CertificateDer::from(octets.to_vec()));
    let links = path.links(&chain, NOW).unwrap();
    let certificates: Vec<&[u8]> = links.iter().map(|link| &link.certificate[..]).collect();
    assert_eq!(certificates, [&leaf[..], second.der(), first.der()]);
    for (link, issuer) in links.iter().zip([&second, &first, &root]) {
        let (_, read) = X509Certificate::from_der(issuer.der()).unwrap();
        assert_eq!(link.issuer.name, read.subject().as_raw());
        assert_eq!(link.issuer.key_info, read.tbs_certificate.subject_pki.raw);
        let question = Question::new(link, &mut Entropy::from_seed(1)).unwrap();
        let response = sign(good_data(&question, issuer.der()), issuer.key(), &[]);
        assert_eq!(question.judge(&response), Ok(GOOD));
        assert_eq!(
            question.judge(&sign(good_data(&question, issuer.der()), root.key(), &[])).is_ok(),
            std::ptr::eq(issuer, &raw const root)
        );
    }
    assert!(path.links(&chain[..1], NOW).is_err() && path.links(&[], NOW).is_err());
}
