//! The keys and certificates of ANTP, and every way in which they do not match.

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_ke::tls::{
    CertificateInfo, Defect, KeyUse, certificates, chain_warnings, check_chain, private_key, public_key_info,
};
use authentick_net::clock::unix_seconds;
use authentick_proto::antp::kem;
use authentick_proto::antp::server::{BadIdentity, Identity, Service};
use authentick_wire::antp::Suite;
use rustls::pki_types::PrivateKeyDer;

use crate::config::{Antp, AntpSuite, CertificatePair, Config, ConfigError};
use crate::guarded::{self, PEM_SIZE_MAX, Secrecy};
use crate::identity::{self, PemFile};
use crate::renewal::Digest;
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
    let nts_keys = nts_public_keys(config);
    let (mut identities, mut infos) = (Vec::new(), Vec::new());
    let mut public_keys: Vec<(Vec<u8>, &AntpSuite)> = Vec::new();
    for suite in &antp.suites {
        let [chain, key] = files(config, suite);
        let (identity, info, public) = load_one(suite.suite, &chain, &key)?;
        if let Some((_, pair)) = nts_keys.iter().find(|(known, _)| *known == public) {
            let table = pair.table;
            let problem =
                format!("this is the key of {table}.private-key, and ANTP's key serves nothing else");
            return Err(key.wrong(problem, "make a key and a certificate for ANTP alone"));
        }
        if let Some((_, other)) = public_keys.iter().find(|(known, _)| *known == public) {
            let (key, other) = (&key.key, other.table);
            log::warn!("{key} and {other}.private-key are one key: what breaks one suite breaks the other");
        }
        public_keys.push((public, suite));
        identities.push(identity);
        infos.push((suite.suite, info));
    }
    let service = Service::new(identities, antp.settings)
        .map_err(|bad| config.wrong("antp", "", bad, "keep one table for each suite"))?;
    Ok(Loaded { service, certificates: infos })
}

/// The public keys of NTS that can be read, each with its pair: mistakes there are reported elsewhere.
fn nts_public_keys(config: &Config) -> Vec<(Vec<u8>, &CertificatePair)> {
    let pairs = config.exchange().map_or(&[][..], |exchange| &exchange.certificates);
    let public = |pair| {
        let chain = guarded::read(CertificatePair::read_from(pair), Secrecy::Public, PEM_SIZE_MAX).ok()?;
        Some((public_key_info(certificates(&chain).ok()?.first()?)?.to_vec(), pair))
    };
    pairs.iter().filter_map(public).collect()
}

/// The files of a suite: the certificate chain, and the private key.
pub(crate) fn files<'a>(config: &'a Config, suite: &'a AntpSuite) -> [PemFile<'a>; 2] {
    PemFile::pair(config, suite.table, &suite.certificate_chain, &suite.private_key)
}

/// The digest of the files of all suites.
pub(crate) fn digest(config: &Config, antp: &Antp) -> Digest {
    identity::digest(antp.suites.iter().map(|suite| files(config, suite)))
}

fn load_one(
    suite: Suite,
    chain_file: &PemFile<'_>,
    key_file: &PemFile<'_>,
) -> Result<(Identity, CertificateInfo, Vec<u8>), ConfigError> {
    let (chain, pem) = (chain_file.read(Secrecy::Public)?, key_file.read(Secrecy::GroupReads)?);

    let in_chain = |defect: Defect| chain_file.wrong(&defect, &defect.remedy);
    let chain = certificates(&chain).map_err(in_chain)?;
    check_chain(&chain).map_err(in_chain)?;
    let not_x509 =
        || chain_file.wrong("the first certificate is not X.509", "copy the file again, as a whole");
    let info = CertificateInfo::parse(&chain[0]).ok_or_else(not_x509)?;
    let public = public_key_info(&chain[0]).ok_or_else(not_x509)?;

    let private = private_key(&pem).map_err(|defect| key_file.wrong(&defect, &defect.remedy))?;
    let PrivateKeyDer::Pkcs8(pkcs8) = &*private else {
        let remedy = "convert it: openssl pkcs8 -topk8 -nocrypt -in OLD -out NEW";
        return Err(key_file.wrong("the private key is not in PKCS#8", remedy));
    };
    validity::warn_of_chain(chain_file.path, chain_warnings(&chain, KeyUse::of(suite), unix_seconds()));
    let certificates: Vec<Vec<u8>> = chain.iter().map(|certificate| certificate.to_vec()).collect();
    let identity =
        Identity::new(suite, pkcs8.secret_pkcs8_der(), &certificates).map_err(|bad| match bad {
            BadIdentity::Key(_) | BadIdentity::Suite(_) => {
                key_file.wrong(bad, "make a key of that kind, or name it in the table of its suite")
            }
            BadIdentity::Count(_) | BadIdentity::Size(_) | BadIdentity::Twice(_) => {
                chain_file.wrong(bad, "name a shorter chain")
            }
        })?;
    let kem = kem(suite).expect("the suites of the configuration have KEMs");
    let pairs = PublicKey::from_spki(kem, public)
        .is_ok_and(|public| identity.key().pairs_with(&public, &mut Entropy::from_seed(0)));
    if !pairs {
        let problem = "the private key does not belong to the first certificate of the chain";
        return Err(key_file.wrong(problem, "name the key that the certificate was made for"));
    }
    Ok((identity, info, public.to_vec()))
}
