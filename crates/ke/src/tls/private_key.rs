//! A private key out of a PEM text, without a copy of it left behind. RFC 7468.
//!
//! The reader of rustls keeps the text's base64 and what it decodes to in memory that it gives back as it is. Here both
//! are wiped, and base64 is decoded without a branch or an index that depends on it.

use base64ct::{Base64, Encoding};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use zeroize::Zeroizing;

use super::Defect;
use super::pem::{Block, Blocks, nothing};

/// The first private key in a PEM text: PKCS#8, PKCS#1 or SEC 1. Blocks of other kinds before it are skipped.
///
/// It is wiped when it is dropped.
///
/// # Errors
/// If there is no key, an encrypted or a broken one. The message repeats nothing of the text.
pub fn private_key(pem: &[u8]) -> Result<Zeroizing<PrivateKeyDer<'static>>, Defect> {
    let mut other = None;
    for block in Blocks::of(pem) {
        let block = block.map_err(|broken| broken.of("broken PEM private key"))?;
        if block.label.ends_with(b"PRIVATE KEY") {
            return decode(&block);
        }
        other = other.or(Some(block));
    }
    Err(nothing("private key", pem, other.as_ref()))
}

fn decode(block: &Block<'_>) -> Result<Zeroizing<PrivateKeyDer<'static>>, Defect> {
    let unusable = |problem: &str, remedy: &str| {
        Defect::new(format!("no PEM private key: {}, {problem}", block.title()), remedy)
    };
    let encrypted = || Err(unusable("which is encrypted", "decrypt it: openssl pkey -in FILE -out NEW"));
    let kind: fn(Vec<u8>) -> PrivateKeyDer<'static> = match block.label {
        b"PRIVATE KEY" => |der| PrivatePkcs8KeyDer::from(der).into(),
        b"RSA PRIVATE KEY" => |der| PrivatePkcs1KeyDer::from(der).into(),
        b"EC PRIVATE KEY" => |der| PrivateSec1KeyDer::from(der).into(),
        b"ENCRYPTED PRIVATE KEY" => return encrypted(),
        b"OPENSSH PRIVATE KEY" => {
            let remedy = "convert a copy of it: ssh-keygen -p -N '' -m PKCS8 -f COPY";
            return Err(unusable("which is a key of OpenSSH's", remedy));
        }
        _ => {
            let remedy =
                "make a key of P-256: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256";
            return Err(unusable("neither PKCS#8, PKCS#1 nor SEC 1", remedy));
        }
    };
    // The way in which OpenSSL once encrypted: Proc-Type: 4,ENCRYPTED.
    if block.body.contains(&b':') {
        return encrypted();
    }
    // Room for all, so that no copy is left behind by growth.
    let mut text = Zeroizing::new(Vec::with_capacity(block.body.len()));
    text.extend(block.body.iter().filter(|octet| !octet.is_ascii_whitespace()));
    let mut der = Zeroizing::new(vec![0; text.len()]);
    let wrong = |_| unusable("whose base64 is wrong", "copy the file again, as a whole");
    let size = Base64::decode(&*text, &mut der).map_err(wrong)?.len();
    der.truncate(size);
    Ok(Zeroizing::new(kind(std::mem::take(&mut *der))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(label: &str, text: &str) -> String {
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    }

    #[test]
    fn first_key_of_each_kind_is_found_whatever_stands_before_it() {
        let before =
            "words\n".to_owned() + &block("CERTIFICATE", "AQID") + &block("EC PARAMETERS", "BgUrgQQA");
        for (label, is_it) in [
            ("PRIVATE KEY", (|key| matches!(key, PrivateKeyDer::Pkcs8(_))) as fn(&PrivateKeyDer<'_>) -> bool),
            ("RSA PRIVATE KEY", |key| matches!(key, PrivateKeyDer::Pkcs1(_))),
            ("EC PRIVATE KEY", |key| matches!(key, PrivateKeyDer::Sec1(_))),
        ] {
            let pem = before.clone() + &block(label, "AQ\nIDBA==\n") + &block("PRIVATE KEY", "////");
            for pem in [pem.clone(), pem.replace('\n', "\r\n"), pem.replace('\n', " \n ")] {
                let key = private_key(pem.as_bytes()).unwrap();
                assert_eq!((key.secret_der(), is_it(&key)), (&[1, 2, 3, 4][..], true), "{label}");
            }
        }
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_repeated() {
        let secret = "AQIDBA";
        for (pem, part) in [
            (String::new(), "no PEM private key"),
            (block("CERTIFICATE", secret), "no PEM private key"),
            (block("ENCRYPTED PRIVATE KEY", secret), "encrypted"),
            (block("RSA PRIVATE KEY", &format!("Proc-Type: 4,ENCRYPTED\n\n{secret}==")), "encrypted"),
            (block("DSA PRIVATE KEY", secret), "neither PKCS#8"),
            (block("PRIVATE KEY", secret), "base64"),
            (block("PRIVATE KEY", &format!("{secret}?=")), "base64"),
            (format!("-----BEGIN PRIVATE KEY-----\n{secret}==\n"), "has no end"),
        ] {
            let message = String::from(private_key(pem.as_bytes()).unwrap_err());
            assert!(message.contains(part) && !message.contains(secret), "{message}");
        }
    }
}
