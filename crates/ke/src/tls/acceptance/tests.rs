//! Chains as operators make them, and what is said about each.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use super::*;

/// 2030-01-01, within the dates of the certificates here.
const NOW: u64 = 1_893_456_000;

type Issued = CertifiedIssuer<'static, KeyPair>;

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn authority(name: &str, issuer: Option<&Issued>, change: impl FnOnce(&mut CertificateParams)) -> Issued {
    let mut params = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    match issuer {
        Some(issuer) => CertifiedIssuer::signed_by(params, key, issuer).unwrap(),
        None => CertifiedIssuer::self_signed(params, key).unwrap(),
    }
}

fn der(issued: &Issued) -> CertificateDer<'static> {
    issued.der().clone()
}

fn leaf(issuer: &Issued, change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
    let mut params = CertificateParams::new(vec!["ntp.test".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "leaf");
    change(&mut params);
    params.signed_by(&KeyPair::generate().unwrap(), issuer).unwrap().der().clone()
}

fn self_signed(change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
    let mut params = CertificateParams::new(vec!["ntp.test".to_owned()]).unwrap();
    change(&mut params);
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
}

#[test]
fn chain_that_clients_accept_has_no_warning() {
    let root = authority("root", None, |_| {});
    let inner = authority("inner", Some(&root), |_| {});
    let by_inner = leaf(&inner, |_| {});
    let web = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth].to_vec();
    for chain in [
        vec![by_inner.clone(), der(&inner), der(&root)],
        vec![by_inner, der(&inner)],
        vec![leaf(&root, |_| {}), der(&root)],
        vec![leaf(&root, |params| params.extended_key_usages = web), der(&root)],
        vec![leaf(&root, |params| params.key_usages = vec![KeyUsagePurpose::DigitalSignature]), der(&root)],
        vec![self_signed(|_| {})],
        // The leaf's own dates are its caller's to judge.
        vec![leaf(&root, |params| params.not_after = date_time_ymd(2020, 1, 1)), der(&root)],
    ] {
        assert_eq!(check_chain(&chain), Ok(()));
        assert_eq!(chain_warnings(&chain, KeyUse::Signature, NOW), []);
    }
}

#[test]
fn each_defect_of_a_chain_is_named_with_a_remedy() {
    let root = authority("root", None, |_| {});
    let inner = authority("inner", Some(&root), |_| {});
    let old = authority("old", Some(&root), |params| params.not_after = date_time_ymd(2029, 1, 1));
    let [by_root, by_inner] = [leaf(&root, |_| {}), leaf(&inner, |_| {})];
    let nameless = |params: &mut CertificateParams| params.subject_alt_names.clear();
    let is_ca = |params: &mut CertificateParams| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let is_client = |params: &mut CertificateParams| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    };
    let encrypts =
        |params: &mut CertificateParams| params.key_usages = vec![KeyUsagePurpose::KeyEncipherment];
    for (part, remedy, chain) in [
        ("subjectAltName", "DNS:NAME", vec![leaf(&root, nameless), der(&root)]),
        ("CA:TRUE", "CA:FALSE", vec![self_signed(is_ca)]),
        ("serverAuth", "extendedKeyUsage=", vec![leaf(&root, is_client), der(&root)]),
        ("digitalSignature", "keyUsage=", vec![leaf(&root, encrypts), der(&root)]),
        (
            "before 1970",
            "made again",
            vec![leaf(&root, |params| params.not_before = date_time_ymd(1969, 1, 1)), der(&root)],
        ),
        ("lacks the certificate of CN=inner, which issued certificate 1", "append", vec![by_inner.clone()]),
        (
            "lacks the certificate of CN=inner, which issued certificate 1",
            "append",
            vec![by_inner.clone(), der(&root)],
        ),
        (
            "certificate 2 of the file (CN=root) did not issue",
            "own certificate first",
            vec![by_inner.clone(), der(&root), der(&inner)],
        ),
        ("lacks the certificate of CN=root", "append", vec![by_root, der(&inner), der(&inner)]),
        ("refuse the chain", "made again", vec![leaf(&old, |_| {}), der(&old), der(&root)]),
    ] {
        assert_eq!(check_chain(&chain), Ok(()), "{part}");
        let warnings = chain_warnings(&chain, KeyUse::Signature, NOW);
        let [warning] = &warnings[..] else { panic!("{part}: {warnings:?}") };
        assert!(warning.problem.contains(part) && warning.remedy.contains(remedy), "{part}: {warning:?}");
    }
}

#[test]
fn chain_that_every_client_refuses_is_an_error() {
    let root = authority("root", None, |_| {});
    let defect = check_chain(&[leaf(&root, |_| {}), vec![1].into()]).unwrap_err();
    assert!(defect.problem.contains("certificate 2 of the file is not X.509"), "{defect:?}");
}
