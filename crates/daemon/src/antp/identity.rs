//! The keys and certificates of ANTP, and every way in which they do not match.

use std::path::Path;

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_ke::tls::{CertificateInfo, certificates, public_key_info};
use authentick_proto::antp::kem;
use authentick_proto::antp::server::{BadIdentity, Identity, Service};
use authentick_wire::antp::Suite;
use rustls::pki_types::PrivateKeyDer;

use crate::config::{Antp, AntpSuite, Config, ConfigError};
use crate::guarded::{self, PEM_SIZE_MAX, Secrecy};
use crate::identity::read_file;
use crate::validity;

/// What was read from files.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) service: Service,
    /// For each suite that is served, what its certificate says.
    pub(crate) certificates: Vec<(Suite, CertificateInfo)>,
}

impl Loaded {
    /// Why this must not replace the identities in use: a suite's certificate is not valid now, and the one in use is.
    pub(crate) fn objection(&self, in_force: &Loaded) -> Option<String> {
        self.certificates.iter().find_map(|(suite, fresh)| {
            let (_, old) = in_force.certificates.iter().find(|(other, _)| other == suite)?;
            validity::objection(old, fresh)
        })
    }
}

/// Reads the identities of all suites.
///
/// # Errors
/// The first mistake: a file that cannot be read, a key of the wrong kind, a certificate for another key, a chain that
/// is too long, or the key of NTS.
pub(crate) fn load(config: &Config, antp: &Antp) -> Result<Loaded, ConfigError> {
    let nts_key = nts_public_key(config);
    let (mut identities, mut infos) = (Vec::new(), Vec::new());
    let mut public_keys: Vec<(Vec<u8>, &AntpSuite)> = Vec::new();
    for suite in &antp.suites {
        let (identity, info, public) = load_one(config, suite)?;
        let key = format!("{}.private-key", suite.table);
        if nts_key.as_ref() == Some(&public) {
            let problem = "this is the key of nts.private-key, and ANTP's key serves nothing else";
            let remedy = "make a key and a certificate for ANTP alone";
            return Err(ConfigError::new(&config.file, &key, suite.private_key.display(), problem, remedy));
        }
        if let Some((_, other)) = public_keys.iter().find(|(known, _)| *known == public) {
            log::warn!(
                "{key} and {}.private-key are one key: what breaks one suite breaks the other",
                other.table
            );
        }
        public_keys.push((public, suite));
        identities.push(identity);
        infos.push((suite.suite, info));
    }
    let service = Service::new(identities, antp.settings)
        .map_err(|bad| ConfigError::new(&config.file, "antp", "", bad, "keep one table for each suite"))?;
    Ok(Loaded { service, certificates: infos })
}

/// The public key of NTS, if it can be read: mistakes there are reported elsewhere.
fn nts_public_key(config: &Config) -> Option<Vec<u8>> {
    let chain = guarded::read(&config.nts.as_ref()?.certificate_chain, Secrecy::Public, PEM_SIZE_MAX).ok()?;
    public_key_info(certificates(&chain).ok()?.first()?).map(<[u8]>::to_vec)
}

fn load_one(config: &Config, suite: &AntpSuite) -> Result<(Identity, CertificateInfo, Vec<u8>), ConfigError> {
    let [chain_key, private_key] =
        ["certificate-chain", "private-key"].map(|name| format!("{}.{name}", suite.table));
    let wrong = |key: &str, path: &Path, problem: &dyn std::fmt::Display, remedy: &str| {
        ConfigError::new(&config.file, key, path.display(), problem, remedy)
    };
    let (chain_path, key_path) = (&suite.certificate_chain, &suite.private_key);
    let chain = read_file(config, &chain_key, chain_path, Secrecy::Public)?;
    let pem = read_file(config, &private_key, key_path, Secrecy::GroupReads)?;

    let remedy = "name a PEM file with ANTP's certificate first";
    let bad_chain = |problem: &dyn std::fmt::Display| wrong(&chain_key, chain_path, problem, remedy);
    let chain = certificates(&chain).map_err(|problem| bad_chain(&problem))?;
    let not_x509 = || bad_chain(&"the first certificate is not X.509");
    let info = CertificateInfo::parse(&chain[0]).ok_or_else(not_x509)?;
    let public = public_key_info(&chain[0]).ok_or_else(not_x509)?;

    let private = authentick_ke::tls::private_key(&pem).map_err(|problem| {
        wrong(&private_key, key_path, &problem, "name a PEM file with the private key, not encrypted")
    })?;
    let PrivateKeyDer::Pkcs8(pkcs8) = &*private else {
        let remedy = "convert it: openssl pkcs8 -topk8 -nocrypt -in OLD -out NEW";
        return Err(wrong(&private_key, key_path, &"the private key is not in PKCS#8", remedy));
    };
    let certificates: Vec<Vec<u8>> = chain.iter().map(|certificate| certificate.to_vec()).collect();
    let identity =
        Identity::new(suite.suite, pkcs8.secret_pkcs8_der(), &certificates).map_err(|bad| match bad {
            BadIdentity::Key(_) | BadIdentity::Suite(_) => wrong(
                &private_key,
                key_path,
                &bad,
                "make a key of that kind, or name it in the table of its suite",
            ),
            BadIdentity::Count(_) | BadIdentity::Size(_) | BadIdentity::Twice(_) => {
                wrong(&chain_key, chain_path, &bad, "name a shorter chain")
            }
        })?;
    let kem = kem(suite.suite).expect("the suites of the configuration have KEMs");
    let for_another = "the private key does not belong to the first certificate of the chain";
    let pairs = PublicKey::from_spki(kem, public)
        .is_ok_and(|public| identity.key().pairs_with(&public, &mut Entropy::from_seed(0)));
    if !pairs {
        let remedy = "name the key that the certificate was made for";
        return Err(wrong(&private_key, key_path, &for_another, remedy));
    }
    Ok((identity, info, public.to_vec()))
}
