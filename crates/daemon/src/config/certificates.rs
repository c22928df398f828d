//! `[[nts.certificate]]`: which certificates key exchange has, for which names, and who reads their files; and the
//! short form of one pair in `[nts]`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use authentick_crypto::kdf::sha256;

use super::{ConfigError, Resolver, raw};

/// Tables `[[nts.certificate]]`, at most.
pub const CERTIFICATE_COUNT_MAX: usize = 64;
/// Names of one table, at most.
pub const NAME_COUNT_MAX: usize = 256;

const TABLE: &str = "nts.certificate";
const SHORT_FORM: &str = "nts";
const NAMES: &str = "nts.certificate.names";
const HAND_OVER: &str = "nts.hand-over";
/// What files that are handed over end in.
const EXTENSION: &str = ".pem";
/// Octets of the digest in their names.
const TAG_SIZE: usize = 4;

/// A certificate chain and the key of its first certificate, in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificatePair {
    /// The table that names them, for messages: `nts.certificate`, or `nts` for the short form.
    pub table: &'static str,
    /// PEM file with the certificate chain.
    pub certificate_chain: PathBuf,
    /// PEM file with the private key.
    pub private_key: PathBuf,
    /// The names of the DNS for which it is chosen, in lower case, wildcards included; absent: those of the
    /// certificate.
    pub names: Option<Vec<String>>,
    /// The file with both from which the server reads them instead, if they are handed over.
    pub handed_over: Option<PathBuf>,
}

impl CertificatePair {
    /// Whether the server reads the same files for both.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let files = |pair: &Self| {
            (pair.certificate_chain.clone(), pair.private_key.clone(), pair.handed_over.clone())
        };
        files(self) == files(other)
    }

    /// The files that the server reads, each with the key that names it.
    pub(crate) fn files(&self) -> Vec<(String, &Path)> {
        match &self.handed_over {
            Some(file) => vec![(HAND_OVER.to_owned(), file)],
            None => self.sources().into(),
        }
    }

    /// The file with the certificate that the server reads.
    pub(crate) fn read_from(&self) -> &Path {
        self.handed_over.as_deref().unwrap_or(&self.certificate_chain)
    }

    /// The files that the configuration names: chain and key, each with the key that names it.
    pub(crate) fn sources(&self) -> [(String, &Path); 2] {
        let key = |name: &str| format!("{}.{name}", self.table);
        [(key("certificate-chain"), &self.certificate_chain), (key("private-key"), &self.private_key)]
    }
}

/// Whether a file of this name in the directory of `nts.hand-over` may be one that a hand-over makes.
pub(crate) fn is_handed_over(name: &str) -> bool {
    let tag = name.strip_suffix(EXTENSION).and_then(|stem| Some(stem.rsplit_once('-')?.1));
    let is_hex = |octet: u8| octet.is_ascii_digit() || (b'a'..=b'f').contains(&octet);
    tag.is_some_and(|tag| tag.len() == 2 * TAG_SIZE && tag.bytes().all(is_hex))
}

/// The name of the file in which a pair is handed over: the folder of its chain, for people, and a digest of both
/// paths, which no other pair has. It stays as long as these do.
fn handed_over_name(chain: &Path, key: &Path) -> String {
    let folder = chain.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let folder: String = folder.unwrap_or_default().chars().take(64).map(plain).collect();
    let start = if folder.is_empty() || folder.starts_with('.') { "certificate" } else { "" };
    let octets = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
    let (chain, key) = (octets(chain), octets(key));
    let digest = sha256(&[&(chain.len() as u64).to_be_bytes(), &chain, &key]);
    let mut name = format!("{start}{folder}-");
    for octet in &digest[..TAG_SIZE] {
        write!(name, "{octet:02x}").expect("writing to a string cannot fail");
    }
    name + EXTENSION
}

impl Resolver<'_> {
    /// The certificates of a host that exchanges keys, at least one, and the directory in which they are handed over.
    pub(super) fn certificates(
        &self,
        raw: &raw::Nts,
    ) -> Result<(Vec<CertificatePair>, Option<PathBuf>), ConfigError> {
        let hand_over = raw.hand_over.as_deref().map(|path| self.absolute(HAND_OVER, path)).transpose()?;
        let mut pairs: Vec<CertificatePair> = Vec::new();
        for pair in self.pairs(raw)? {
            if pairs.iter().any(|other| other.is_same(&pair)) {
                let path = pair.certificate_chain.display();
                let problem = "listed twice with one key";
                return Err(self.wrong(TABLE, path, problem, "keep one table, with the names of both"));
            }
            pairs.push(pair);
        }
        self.check_names(&pairs)?;
        for pair in &mut pairs {
            let file = handed_over_name(&pair.certificate_chain, &pair.private_key);
            pair.handed_over = hand_over.as_ref().map(|directory| directory.join(file));
        }
        Ok((pairs, hand_over))
    }

    fn pairs(&self, raw: &raw::Nts) -> Result<Vec<CertificatePair>, ConfigError> {
        let Some(tables) = &raw.certificate else {
            return Ok(vec![CertificatePair {
                table: SHORT_FORM,
                certificate_chain: self.needed("nts.certificate-chain", raw.certificate_chain.as_deref())?,
                private_key: self.needed("nts.private-key", raw.private_key.as_deref())?,
                names: None,
                handed_over: None,
            }]);
        };
        for (key, path) in
            [("nts.certificate-chain", &raw.certificate_chain), ("nts.private-key", &raw.private_key)]
        {
            if let Some(path) = path {
                let problem = "given beside tables [[nts.certificate]]";
                let remedy = "move chain and key into a table [[nts.certificate]], or remove the tables";
                return Err(self.wrong(key, path, problem, remedy));
            }
        }
        match tables.len() {
            0 => {
                let remedy = "write a table [[nts.certificate]] with certificate-chain and private-key";
                Err(self.wrong(TABLE, "[]", "no certificate, and keys are exchanged here", remedy))
            }
            1..=CERTIFICATE_COUNT_MAX => tables.iter().map(|table| self.pair(table)).collect(),
            count => {
                let problem = format!("more than {CERTIFICATE_COUNT_MAX} tables");
                Err(self.wrong(TABLE, count, problem, "have certificates with several names"))
            }
        }
    }

    fn pair(&self, raw: &raw::Certificate) -> Result<CertificatePair, ConfigError> {
        let path = |name: &str, text: &str| self.absolute(&format!("{TABLE}.{name}"), text);
        let names = raw.names.as_ref().map(|names| {
            if !(1..=NAME_COUNT_MAX).contains(&names.len()) {
                let problem = format!("from 1 to {NAME_COUNT_MAX} names are possible");
                let remedy = "leave names out to have those of the certificate";
                return Err(self.wrong(NAMES, names.len(), problem, remedy));
            }
            names.iter().map(|name| self.certificate_name(name)).collect()
        });
        Ok(CertificatePair {
            table: TABLE,
            certificate_chain: path("certificate-chain", &raw.certificate_chain)?,
            private_key: path("private-key", &raw.private_key)?,
            names: names.transpose()?,
            handed_over: None,
        })
    }

    /// A name of the DNS that a client may ask for.
    fn certificate_name(&self, text: &str) -> Result<String, ConfigError> {
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let rest = name.strip_prefix("*.").unwrap_or(&name);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let is_label = |label: &str| (1..=63).contains(&label.len()) && label.chars().all(plain);
        let is_address = rest.parse::<std::net::IpAddr>().is_ok();
        match name.len() <= 253 && rest.split('.').all(is_label) && !is_address {
            true => Ok(name),
            false => {
                let remedy = "write a host name in ASCII, or *. and one; clients name no addresses";
                Err(self.wrong(NAMES, text, "no name of the DNS", remedy))
            }
        }
    }

    /// Refuses a name that is listed twice.
    fn check_names(&self, pairs: &[CertificatePair]) -> Result<(), ConfigError> {
        let names: Vec<&String> = pairs.iter().flat_map(|pair| pair.names.iter().flatten()).collect();
        match names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
            Some((_, name)) => Err(self.wrong(NAMES, name, "listed twice", "keep it in one table")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_file_that_is_handed_over_is_stable_and_readable_and_no_other_pair_s() {
        let name = |chain: &str, key: &str| handed_over_name(Path::new(chain), Path::new(key));
        let certbot = name("/etc/letsencrypt/live/a.example/fullchain.pem", "/k");
        assert_eq!(certbot, "a.example-ee5e0ad7.pem");
        assert!(name("/c", "/k").starts_with("certificate-"));
        assert!(name("/run/..data/c", "/k").starts_with("certificate..data-"));
        assert!(name("/run/a b\n/c", "/k").starts_with("a_b_-"));
        // What ends one path does not begin the other.
        assert_ne!(name("/a/b", "/c"), name("/a/b/", "c"));
        for name in [&certbot, "-0a0a0a0a.pem"] {
            assert!(is_handed_over(name), "{name}");
        }
        for name in
            ["a.example.pem", "a-0000000.pem", "a-0000000G.pem", "a-00000000.key", "a-00000000.pem.new"]
        {
            assert!(!is_handed_over(name), "{name}");
        }
    }
}
