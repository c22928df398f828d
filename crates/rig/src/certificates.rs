//! An authority, and what it signs.

use std::io;
use std::path::Path;

use authentick_net::replace::replace;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::Error;

/// An authority that signs itself.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// An authority of this name, with a key of P-256.
    ///
    /// # Errors
    /// If the library has no randomness.
    pub fn new(name: &str) -> Result<Self, Error> {
        Authority::with_key(name, KeyPair::generate()?)
    }

    /// The same with this key.
    ///
    /// # Errors
    /// If the key does not sign.
    pub fn with_key(name: &str, key: KeyPair) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Ok(Authority(CertifiedIssuer::self_signed(params, key)?))
    }

    /// What signs, and its certificate.
    #[must_use]
    pub const fn issuer(&self) -> &CertifiedIssuer<'static, KeyPair> {
        &self.0
    }

    /// Its certificate, PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Signs a certificate for the holder of `key`; returns it in PEM, and writes the key where nobody else reads it.
    ///
    /// # Errors
    /// If there can be no such certificate, or the file cannot be written.
    pub fn identify(
        &self,
        params: &CertificateParams,
        key: &KeyPair,
        key_file: &Path,
    ) -> Result<String, Error> {
        let certificate = params.signed_by(key, &self.0)?;
        write_private(key_file, &key.serialize_pem())
            .map_err(Error::system(key_file.display().to_string()))?;
        Ok(certificate.pem())
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// Writes a secret to a new file of mode 0600, which takes the place of what had its name: a link is not followed.
///
/// # Errors
/// The system's.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    replace(path, text.as_bytes(), None).map_err(|(_, error)| error)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn link_is_replaced_and_what_it_leads_to_is_kept() {
        let folder = std::env::temp_dir().join(format!("authentick-rig-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (victim, key) = (folder.join("victim"), folder.join("key"));
        fs::write(&victim, "kept").unwrap();
        std::os::unix::fs::symlink(&victim, &key).unwrap();
        write_private(&key, "secret").unwrap();
        let kept = fs::read_to_string(&victim).unwrap();
        let (is_file, secret) =
            (fs::symlink_metadata(&key).unwrap().is_file(), fs::read_to_string(&key).unwrap());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((&*kept, is_file, &*secret), ("kept", true, "secret"));
    }
}
