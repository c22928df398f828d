//! The node of the demo: it serves every scheme on loopback, with keys and certificates of its own making.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use authentick_crypto::Entropy;
use authentick_crypto::mac::MacAlgorithm;
use authentick_daemon::{Config, Running, node};
use authentick_net::report_file;
use authentick_rig::certificates::{Authority, write_private};
use authentick_wire::antp::Suite;
use rcgen::{CertificateParams, KeyPair, RsaKeySize};
use tempfile::TempDir;

use crate::exit::{Exit, Failure};

/// Whom the certificates name.
pub(super) const NAME: &str = "localhost";

/// The symmetric key that clients and node share.
pub(super) const KEY_ID: u32 = 1;
pub(super) const KEY_ALGORITHM: MacAlgorithm = MacAlgorithm::Cmac128;

/// The paper's two suites, as the configuration and the command line call them.
pub(super) const SUITES: [(&str, Suite); 2] = [("ecdh", Suite::P256), ("rsa", Suite::RSA_PKCS1)];

/// Everything comes from one address here, and from hundreds of clients at once.
const RATE_LIMIT: &str = "{ negotiations-per-second = 0, exchanges-per-second = 0, times-per-second = 0, \
                          all-exchanges-per-second = 0 }";

/// A node that runs, and the folder with its files, which goes when it is dropped.
pub(super) struct Node {
    folder: TempDir,
    running: Running,
}

impl Node {
    /// Starts a node on free ports.
    pub(super) fn start() -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let running = node::start(&configuration(folder.path())?)?;
        Ok(Node { folder, running })
    }

    pub(super) fn ntp(&self) -> SocketAddr {
        self.running.ntp_addresses()[0]
    }

    pub(super) fn key_exchange(&self) -> &[SocketAddr] {
        self.running.ke_addresses()
    }

    /// The authority that vouches for the node under every scheme, a PEM file.
    pub(super) fn authority(&self) -> PathBuf {
        authority(self.folder.path())
    }

    /// The file with the symmetric key, as chrony has it.
    pub(super) fn keys(&self) -> PathBuf {
        keys(self.folder.path())
    }

    /// Stops it; whether all of its threads were sound.
    pub(super) fn stop(self) -> bool {
        self.running.stop()
    }
}

fn authority(folder: &Path) -> PathBuf {
    folder.join("authority.pem")
}

fn keys(folder: &Path) -> PathBuf {
    folder.join("symmetric-keys")
}

/// Makes all keys and certificates in `folder`, and the configuration that names them.
fn configuration(folder: &Path) -> Result<Config, Failure> {
    let issuer = Authority::new("authentick demo").map_err(internal)?;
    report_file::write(&authority(folder), issuer.pem().as_bytes())?;
    let octets: [u8; 16] = Entropy::from_system()?.array();
    let digits: String = octets.iter().map(|octet| format!("{octet:02X}")).collect();
    write_private(&keys(folder), &format!("{KEY_ID} {KEY_ALGORITHM} HEX:{digits}\n"))?;
    let mut text = format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\nuser = \"root\"\n\
         reference = {{ stratum = 1, id = \"DEMO\" }}\nstate-directory = {:?}\n\
         [symmetric]\nkeys = {:?}\n\
         [nts]\nke-listen = [\"127.0.0.1:0\"]\n{}[antp]\nenable = true\nrate-limit = {RATE_LIMIT}\n",
        folder.join("state"),
        keys(folder),
        identity(folder, &issuer, "nts", KeyPair::generate())?,
    );
    for (name, suite) in SUITES {
        let key = match suite {
            Suite::RSA_PKCS1 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
            _ => KeyPair::generate(),
        };
        let identity = identity(folder, &issuer, name, key)?;
        write!(text, "[antp.{name}]\n{identity}").expect("writing to a string cannot fail");
    }
    // The folder's path may have a dollar sign, which is none of a variable.
    Ok(Config::parse(&folder.join("demo.toml"), &text.replace('$', "$$"))?)
}

/// Makes a certificate for `key`; returns the lines of the configuration that name both.
fn identity(
    folder: &Path,
    issuer: &Authority,
    name: &str,
    key: Result<KeyPair, rcgen::Error>,
) -> Result<String, Failure> {
    let (chain, key_file) =
        (folder.join(format!("{name}-chain.pem")), folder.join(format!("{name}-key.pem")));
    let params = CertificateParams::new(vec![NAME.to_owned()]).map_err(internal)?;
    let certificate = issuer.identify(&params, &key.map_err(internal)?, &key_file).map_err(internal)?;
    report_file::write(&chain, certificate.as_bytes())?;
    Ok(format!("certificate-chain = {chain:?}\nprivate-key = {key_file:?}\n"))
}

fn internal(error: impl std::fmt::Display) -> Failure {
    Exit::Internal.because(format!("cannot make a certificate: {error}"))
}
