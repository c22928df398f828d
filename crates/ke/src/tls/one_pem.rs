//! A certificate chain and its private key as one PEM text, with nothing else that may have stood in their files. RFC
//! 7468.

use rustls::pki_types::PrivateKeyDer;
use zeroize::Zeroizing;

use super::pem::{LINE_SIZE, push};
use super::{Defect, IdentityError, certificates, private_key};

/// The chain in its order, then the key, which [`super::Identity::from_pem`] reads again from the one text. It is wiped
/// when it is dropped, and no copy of the key is left behind.
///
/// # Errors
/// If one of the two has none. Whether they fit together is not asked.
pub fn one_pem(chain: &[u8], key: &[u8]) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    let (chain, key) = (certificates(chain).map_err(IdentityError::Chain)?, private_key(key));
    let key = key.map_err(IdentityError::Key)?;
    let label = match &*key {
        PrivateKeyDer::Pkcs8(_) => "PRIVATE KEY",
        PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
        PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
        _ => {
            let defect =
                Defect::new("a private key of an unknown kind", "convert it: openssl pkey -in FILE -out NEW");
            return Err(IdentityError::Key(defect));
        }
    };
    let blocks = || {
        let chain = chain.iter().map(|certificate| ("CERTIFICATE", &**certificate));
        chain.chain([(label, key.secret_der())])
    };
    // Room for all, so that no copy is left behind by growth.
    let size = blocks().map(|(label, der)| block_size(label, der)).sum();
    let mut pem = Zeroizing::new(Vec::with_capacity(size));
    blocks().for_each(|(label, der)| push(&mut pem, label, der));
    debug_assert_eq!(pem.len(), size);
    Ok(pem)
}

/// The octets of a block, with its two lines of dashes.
fn block_size(label: &str, der: &[u8]) -> usize {
    let text_size = der.len().div_ceil(3) * 4;
    "-----BEGIN -----\n-----END -----\n".len() + 2 * label.len() + text_size + text_size.div_ceil(LINE_SIZE)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;
    use crate::tls::Identity;

    #[test]
    fn chain_and_key_are_alone_in_one_text_and_read_again() {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["ntp.test".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let other = KeyPair::generate().unwrap().serialize_pem();
        // A file with words and a key in it that is not the one of the other file.
        let chain = format!("words\n{}{other}{}", certificate.pem(), certificate.pem());
        let pem = one_pem(chain.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
        let text = std::str::from_utf8(&pem).unwrap();
        assert!(!text.contains("words") && text.matches("PRIVATE KEY").count() == 2, "{text}");
        assert_eq!(text.matches("BEGIN CERTIFICATE").count(), 2);
        assert!(text.lines().all(|line| line.len() <= 64));
        let identity = Identity::from_pem(&pem, &pem).unwrap();
        assert_eq!(identity.certificate.names, ["ntp.test"]);
        assert_eq!(*one_pem(&pem, &pem).unwrap(), *pem, "it is written alike");
        assert!(matches!(one_pem(b"", &pem), Err(IdentityError::Chain(_))));
        assert!(matches!(one_pem(&pem, certificate.pem().as_bytes()), Err(IdentityError::Key(_))));
    }
}
