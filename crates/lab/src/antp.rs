//! Identities for ANTP, which need keys of their own, and the configuration of ours with them.

use std::path::PathBuf;

use der::asn1::{BitString, ObjectIdentifier};
use der::{Decode, Encode};
use pem::{EncodeConfig, LineEnding, Pem, encode_config};
use rcgen::{CertificateParams, KeyPair, PublicKeyData, RsaKeySize, SignatureAlgorithm, SigningKey};
use x509_cert::Certificate;

use crate::certificates::{Lab, write_private};

/// Suites as configuration and command line call them.
pub const SUITES: [&str; 4] = ["ecdh", "rsa", "rsa-oaep", "x25519"];

/// RFC 8410 section 3.
const ID_X25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.110");

impl Lab {
    /// The certificate of a suite and the authority's.
    #[must_use]
    pub fn antp_chain(&self, suite: &str) -> PathBuf {
        self.path().join(format!("antp-{suite}-chain.pem"))
    }

    /// The private key of a suite.
    #[must_use]
    pub fn antp_key(&self, suite: &str) -> PathBuf {
        self.path().join(format!("antp-{suite}-key.pem"))
    }

    /// Makes the identity of a suite; the certificate is changed before it is signed.
    ///
    /// # Panics
    /// If the certificate cannot be made as changed, or there is no such suite.
    pub fn antp_identity(&self, suite: &str, change: impl FnOnce(&mut CertificateParams)) {
        let mut params = Lab::server_params();
        change(&mut params);
        let key_file = self.antp_key(suite);
        let signed = |key: &KeyPair| {
            write_private(&key_file, &key.serialize_pem());
            params.signed_by(key, self.authority()).unwrap().pem()
        };
        let leaf = match suite {
            "ecdh" => signed(&KeyPair::generate().unwrap()),
            "rsa" | "rsa-oaep" => {
                signed(&KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap())
            }
            "x25519" => {
                write_private(&key_file, &pem("PRIVATE KEY", &vector("x25519.private")));
                let stand_in = params.signed_by(&X25519, self.authority()).unwrap();
                self.signed_for_x25519(stand_in.der())
            }
            _ => panic!("there is no suite {suite}"),
        };
        std::fs::write(self.antp_chain(suite), leaf + &self.authority().pem()).unwrap();
    }

    /// [`Lab::config`] with ANTP under these suites, whose identities exist; `server` and `antp` add lines to those
    /// tables.
    ///
    /// # Panics
    /// If the folder is gone.
    #[must_use]
    pub fn antp_config(&self, suites: &[&str], server: &str, antp: &str) -> PathBuf {
        let file = self.config(server, "");
        let mut text = std::fs::read_to_string(&file).unwrap();
        text += &format!("\n[antp]\nenable = true\n{antp}\n");
        for suite in suites {
            let (chain, key) = (self.antp_chain(suite), self.antp_key(suite));
            text += &format!("[antp.{suite}]\ncertificate-chain = {chain:?}\nprivate-key = {key:?}\n");
        }
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Puts the X25519 key into a certificate that was made with an Ed25519 key of the same octets, and signs it anew:
    /// the library that makes certificates knows no key that cannot sign.
    fn signed_for_x25519(&self, certificate: &[u8]) -> String {
        let mut certificate = Certificate::from_der(certificate).unwrap();
        certificate.tbs_certificate.subject_public_key_info.algorithm.oid = ID_X25519;
        let signature = self.authority().key().sign(&certificate.tbs_certificate.to_der().unwrap()).unwrap();
        certificate.signature = BitString::from_bytes(&signature).unwrap();
        pem("CERTIFICATE", &certificate.to_der().unwrap())
    }
}

/// The key of the published vectors, as if it were one of Ed25519.
struct X25519;

impl PublicKeyData for X25519 {
    fn der_bytes(&self) -> &[u8] {
        static KEY: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| vector("x25519.public"));
        &KEY[KEY.len() - 32..]
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

/// A value of the published vectors.
fn vector(name: &str) -> Vec<u8> {
    let file = include_str!("../../../docs/antp-vectors.txt");
    let value = file.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = ")).unwrap();
    let octet = |digits: &[u8]| u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap();
    value.as_bytes().chunks(2).map(octet).collect()
}

/// The textual form of a key or certificate. RFC 7468.
fn pem(label: &str, der: &[u8]) -> String {
    encode_config(&Pem::new(label, der), EncodeConfig::new().set_line_ending(LineEnding::LF))
}
