//! A folder with a test authority's certificate and what it made for a server; and the configuration of ours.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use authentick_rig::certificates::Authority;
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use tempfile::TempDir;

/// A folder with an authority's certificate, and one that it made for a server.
#[derive(Debug)]
pub struct Lab {
    folder: TempDir,
    authority: Authority,
}

impl Lab {
    /// A lab whose server certificate is good for `ntp.test`, for the addresses of loopback and for those of the
    /// first hosts of [`crate::hosts`].
    ///
    /// # Panics
    /// If no folder can be made.
    #[must_use]
    pub fn new() -> Self {
        Lab::with_certificate(|_| {})
    }

    /// A lab whose server certificate is changed before it is signed.
    ///
    /// # Panics
    /// If no folder can be made.
    #[must_use]
    pub fn with_certificate(change: impl FnOnce(&mut CertificateParams)) -> Self {
        let authority = Authority::new("authentick test authority").unwrap();
        let lab = Lab { folder: tempfile::tempdir().unwrap(), authority };
        std::fs::write(lab.ca(), lab.authority.pem()).unwrap();
        lab.renew(change);
        lab
    }

    /// Replaces the server's certificate and key, which is of P-256.
    ///
    /// # Panics
    /// If the certificate cannot be made as changed.
    pub fn renew(&self, change: impl FnOnce(&mut CertificateParams)) {
        self.renew_for(&KeyPair::generate().unwrap(), change);
    }

    /// Replaces the server's certificate by one for this key.
    ///
    /// # Panics
    /// If the certificate cannot be made as changed.
    pub fn renew_for(&self, key: &KeyPair, change: impl FnOnce(&mut CertificateParams)) {
        let mut params = Lab::server_params();
        change(&mut params);
        let certificate = self.authority.identify(&params, key, &self.key()).unwrap();
        std::fs::write(self.chain(), certificate + &self.authority.pem()).unwrap();
    }

    /// What the server's certificate says, whatever its key.
    pub(crate) fn server_params() -> CertificateParams {
        let names = ["ntp.test", "localhost", "127.0.0.1", "::1", "198.18.0.1", "fd00:a7::1"];
        // Any host may serve.
        let clients = (2..=5).map(|octet| format!("198.18.0.{octet}"));
        let names: Vec<String> = names.map(str::to_owned).into_iter().chain(clients).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "ntp.test");
        params
    }

    pub(crate) const fn authority(&self) -> &CertifiedIssuer<'static, KeyPair> {
        self.authority.issuer()
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The authority's certificate.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.path().join("ca.pem")
    }

    /// The server's certificate and the authority's.
    #[must_use]
    pub fn chain(&self) -> PathBuf {
        self.path().join("chain.pem")
    }

    /// The server's private key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.path().join("key.pem")
    }

    /// The state directory in [`Lab::config`].
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// Writes a configuration on loopback; `server` and `nts` add lines to those tables. With the line `listen = []` in
    /// the one, or `ke-listen = []` in the other, that table has nothing else that needs a port.
    ///
    /// # Panics
    /// If the folder is gone.
    #[must_use]
    pub fn config(&self, server: &str, nts: &str) -> PathBuf {
        let mut text = String::from("[server]\n");
        let defaults = [
            ("reference", "{ stratum = 1, id = \"TEST\" }"),
            ("listen", "[\"127.0.0.1:0\"]"),
            ("user", "\"root\""),
            ("workers", "1"),
        ];
        let serves_time = !server.lines().any(|line| line == "listen = []");
        for (key, value) in defaults {
            let is_needed = serves_time || key != "workers";
            if is_needed && !server.contains(&format!("{key} =")) {
                writeln!(text, "{key} = {value}").unwrap();
            }
        }
        writeln!(text, "state-directory = {:?}\n{server}", self.state()).unwrap();
        writeln!(text, "[nts]").unwrap();
        if !nts.lines().any(|line| line == "ke-listen = []") {
            writeln!(text, "certificate-chain = {:?}\nprivate-key = {:?}", self.chain(), self.key()).unwrap();
        }
        if !nts.contains("ke-listen =") {
            writeln!(text, "ke-listen = [\"127.0.0.1:0\"]").unwrap();
        }
        writeln!(text, "{nts}\n[metrics]\nlisten = \"127.0.0.1:0\"\nspan-clients = [\"127.0.0.0/8\"]")
            .unwrap();
        let file = self.path().join("authentick.toml");
        std::fs::write(&file, text).unwrap();
        file
    }
}

/// Writes a secret, to a file of mode 0600 unless there is one with another mode already.
///
/// # Panics
/// If it cannot be written.
pub fn write_private(path: &Path, text: &str) {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

impl Default for Lab {
    fn default() -> Self {
        Lab::new()
    }
}
