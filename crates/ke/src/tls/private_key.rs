//! A private key out of a PEM text, without a copy of it left behind. RFC 7468.
//!
//! The reader of rustls keeps the text's base64 and what it decodes to in memory that it gives back as it is. Here both
//! are wiped, and base64 is decoded without a branch or an index that depends on it.

use base64ct::{Base64, Encoding};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use zeroize::Zeroizing;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";

/// The first private key in a PEM text: PKCS#8, PKCS#1 or SEC 1. Certificates and whatever else stands before it are
/// skipped. It is wiped when it is dropped.
///
/// # Errors
/// What is wrong with the text, in words that repeat nothing of it: it has no key, an encrypted or a broken one.
pub fn private_key(pem: &[u8]) -> Result<Zeroizing<PrivateKeyDer<'static>>, String> {
    let mut lines = pem.split(|octet| matches!(octet, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    let label = lines.by_ref().find_map(|line| {
        let label = line.strip_prefix(BEGIN)?.strip_suffix(DASHES)?;
        label.ends_with(b"PRIVATE KEY").then_some(label)
    });
    let encrypted =
        || Err("no PEM private key: it is encrypted, and nobody is asked for its password".to_owned());
    let broken = |problem: &str| format!("no PEM private key: {problem}");
    let kind: fn(Vec<u8>) -> PrivateKeyDer<'static> = match label {
        None => return Err("no PEM private key".to_owned()),
        Some(b"PRIVATE KEY") => |der| PrivatePkcs8KeyDer::from(der).into(),
        Some(b"RSA PRIVATE KEY") => |der| PrivatePkcs1KeyDer::from(der).into(),
        Some(b"EC PRIVATE KEY") => |der| PrivateSec1KeyDer::from(der).into(),
        Some(b"ENCRYPTED PRIVATE KEY") => return encrypted(),
        Some(_) => return Err(broken("neither PKCS#8, PKCS#1 nor SEC 1")),
    };
    // Room for all, so that no copy is left behind by growth.
    let mut text = Zeroizing::new(Vec::with_capacity(pem.len()));
    loop {
        match lines.next() {
            None => return Err(broken("it ends before its last line")),
            Some(line) if line.starts_with(END) => break,
            // The way in which OpenSSL once encrypted: Proc-Type: 4,ENCRYPTED.
            Some(line) if line.contains(&b':') => return encrypted(),
            Some(line) => text.extend_from_slice(line),
        }
    }
    let mut der = Zeroizing::new(vec![0; text.len()]);
    let size = Base64::decode(&*text, &mut der).map_err(|_| broken("its base64 is wrong"))?.len();
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
            (format!("-----BEGIN PRIVATE KEY-----\n{secret}==\n"), "ends before its last line"),
        ] {
            let message = private_key(pem.as_bytes()).unwrap_err();
            assert!(message.contains(part) && !message.contains(secret), "{message}");
        }
    }
}
