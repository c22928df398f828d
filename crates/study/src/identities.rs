//! A folder with certificates and keys for the server, the agents and the coordinator of a study, all of one authority.

use std::path::{Path, PathBuf};

use authentick_net::report_file;
use authentick_rig::Error;
use authentick_rig::certificates::Authority;
use rcgen::{
    CertificateParams, ExtendedKeyUsagePurpose, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize,
};

/// Who proves what to whom.
#[derive(Debug)]
pub(crate) struct Identities {
    folder: PathBuf,
}

impl Identities {
    /// Makes them.
    pub(crate) fn new(folder: &Path) -> Result<Self, Error> {
        let identities = Identities { folder: folder.to_owned() };
        let authority = Authority::new("authority of a study")?;
        write(&identities.authority(), &authority.pem())?;
        for (name, usage) in [
            ("server", ExtendedKeyUsagePurpose::ServerAuth),
            ("agent", ExtendedKeyUsagePurpose::ServerAuth),
            ("coordinator", ExtendedKeyUsagePurpose::ClientAuth),
        ] {
            let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
            params.extended_key_usages = vec![usage];
            let certificate = authority.identify(&params, &KeyPair::generate()?, &identities.key(name))?;
            write(&identities.chain(name), &(certificate + &authority.pem()))?;
        }
        Ok(identities)
    }

    /// Adds what a server of ANTP proves itself by: for each suite of the paper a certificate under an authority with a
    /// key of the same kind, so that messages differ in size as the paper's do. Named `antp-ecdh` and `antp-rsa`.
    pub(crate) fn add_antp(&self) -> Result<(), Error> {
        let ecdh = || KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256);
        let rsa = || KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048);
        let mut authorities = String::new();
        for (name, keys) in [("antp-ecdh", [ecdh()?, ecdh()?]), ("antp-rsa", [rsa()?, rsa()?])] {
            let [issuing, own] = keys;
            let authority = Authority::with_key(&format!("authority of {name}"), issuing)?;
            let mut params = CertificateParams::new(["localhost".to_owned()])?;
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            write(&self.chain(name), &authority.identify(&params, &own, &self.key(name))?)?;
            authorities += &authority.pem();
        }
        write(&self.antp_authorities(), &authorities)
    }

    pub(crate) fn antp_authorities(&self) -> PathBuf {
        self.folder.join("antp-authorities.pem")
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }

    pub(crate) fn chain(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.pem"))
    }

    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.key"))
    }
}

fn write(file: &Path, text: &str) -> Result<(), Error> {
    report_file::write(file, text.as_bytes())
        .map_err(|error| Error::System { what: file.display().to_string(), error })
}
