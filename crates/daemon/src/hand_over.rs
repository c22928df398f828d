//! `certificates hand-over`: root copies certificates and keys that only root can read to where the server's group can.
//!
//! Each pair becomes one file, so that chain and key change together. The directory is root's alone, as is the way to
//! it: nobody else can put a link into it. A pair is read with root's rights only as far as the way to it is root's:
//! whoever else controls a directory on that way gets no file copied but its own. The server is not told; it compares
//! the files by itself.

use std::fmt;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use authentick_ke::tls::{CertificateInfo, Identity, one_pem};
use authentick_net::privilege;
use authentick_net::replace::{is_temporary, replace_for_group};
use zeroize::Zeroizing;

use crate::config::{CertificatePair, Config, ConfigError, KeyExchange, is_handed_over};
use crate::custody::{Custodian, custodian};
use crate::guarded::{self, PEM_SIZE_MAX, Secrecy};
use crate::identity::{self, Contents};
use crate::validity;

/// What was done for a table, or with a file of none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The file has another pair now.
    Written(PathBuf),
    /// The file had this pair already.
    Unchanged(PathBuf),
    /// The file was that of a table which is gone.
    Removed(PathBuf),
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, path) = match self {
            Done::Written(path) => ("written", path),
            Done::Unchanged(path) => ("unchanged", path),
            Done::Removed(path) => ("removed", path),
        };
        write!(f, "{word} {}", path.display())
    }
}

/// What a hand-over has done, and what not.
#[derive(Clone, Debug, Default)]
pub struct HandOver {
    /// In the order of the tables.
    pub done: Vec<Done>,
    /// Pairs that were not handed over, and files that were not removed. What was there before is there still.
    pub failed: Vec<ConfigError>,
}

/// Hands all pairs of a configuration over to a group; `None` if there is nothing to do, as no `nts.hand-over` is
/// named.
///
/// # Errors
/// If this process is not root's, there is no such group, or the directory is not root's alone.
pub fn hand_over(config: &Config, group: &str) -> Result<Option<HandOver>, ConfigError> {
    let Some((exchange, directory)) = config.exchange().and_then(|it| Some((it, it.hand_over.as_deref()?)))
    else {
        return Ok(None);
    };
    let wrong =
        |problem: String, remedy: &str| config.wrong("nts.hand-over", directory.display(), problem, remedy);
    if !privilege::is_root() {
        let user = privilege::acting_user();
        let problem = format!("cannot be handed to by {user}: the files are to be root's");
        return Err(wrong(problem, "run this as root").of_rights(true));
    }
    let group_id = match privilege::find_group(group) {
        Ok(Some(group)) => group,
        Ok(None) => {
            let remedy = "make it (groupadd --system NAME), or name that of the server's user with --group";
            return Err(wrong(format!("there is no group {group}"), remedy));
        }
        Err(error) => return Err(wrong(format!("group {group}: {error}"), "name another one with --group")),
    };
    prepare(directory, group_id).map_err(|(problem, remedy)| wrong(problem, remedy))?;
    let mut report = HandOver::default();
    for pair in &exchange.certificates {
        match hand_over_one(config, pair, group_id) {
            Ok(done) => report.done.push(done),
            Err(error) => report.failed.push(error),
        }
    }
    let removed = remove_strays(config, directory, exchange).map_err(|error| {
        wrong(format!("cannot remove files of tables that are gone: {error}"), "remove them by hand")
    });
    match removed {
        Ok(removed) => report.done.extend(removed.into_iter().map(Done::Removed)),
        Err(error) => report.failed.push(error),
    }
    Ok(Some(report))
}

/// What is wrong, and what to do.
type Wrong = (String, &'static str);

/// Makes the directory if it is missing, and checks that root alone decides what is in it.
fn prepare(directory: &Path, group: u32) -> Result<(), Wrong> {
    const REMEDY: &str = "name a directory of root's, in one of root's, to which nobody else may write, as \
                          /run/authentick";
    let failed = |error: io::Error| (error.to_string(), REMEDY);
    match custodian(directory).map_err(failed)? {
        Custodian::Root => {}
        Custodian::User { at, .. } => {
            return Err((format!("{} belongs to another user than root", at.display()), REMEDY));
        }
        Custodian::Many(at) => return Err((format!("others may write to {}", at.display()), REMEDY)),
    }
    if fs::symlink_metadata(directory).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        // Nobody enters before the group is right: the mode is that of root's own group until then.
        DirBuilder::new().mode(0o700).create(directory).map_err(failed)?;
        chown(directory, Some(0), Some(group)).map_err(failed)?;
        fs::set_permissions(directory, Permissions::from_mode(0o750)).map_err(failed)?;
    }
    let metadata = fs::metadata(directory).map_err(failed)?;
    match metadata.is_dir() {
        false => Err(("not a directory".to_owned(), REMEDY)),
        // Also where a sticky bit keeps others from removing what is not theirs.
        true if metadata.uid() != 0 || metadata.mode() & 0o022 != 0 => {
            Err((format!("mode {:o} lets others write to it", metadata.mode() & 0o7777), REMEDY))
        }
        true => Ok(()),
    }
}

fn hand_over_one(config: &Config, pair: &CertificatePair, group: u32) -> Result<Done, ConfigError> {
    let target = pair.handed_over.as_deref().expect("the configuration has a directory");
    let contents = Contents::read_sources_of(config, pair, owners(config, pair)?);
    let [chain, key] = contents.texts()?;
    let wrong = |error| identity::wrong(config, pair, &error);
    let identity = Identity::from_pem(chain, key).map_err(wrong)?;
    let fresh = &identity.certificate;
    let pem = one_pem(chain, key).map_err(wrong)?;
    let pem = Zeroizing::new([marker(config).as_bytes(), &pem].concat());
    let old = old(target, group);
    check_validity(config, pair, fresh, old.as_ref())?;
    validity::warn_of(&pair.certificate_chain, &identity);
    if old.is_some_and(|old| *old.pem == *pem) {
        return Ok(Done::Unchanged(target.to_owned()));
    }
    replace_for_group(target, &pem, (0, group)).map_err(|(path, error)| {
        let problem = format!("cannot write: {error}");
        let remedy = "make room, or let this process write there (ReadWritePaths= of systemd)";
        config
            .wrong("nts.hand-over", path.display(), problem, remedy)
            .of_rights(error.kind() == io::ErrorKind::PermissionDenied)
    })?;
    Ok(Done::Written(target.to_owned()))
}

/// What was handed over before.
struct Old {
    pem: Zeroizing<Vec<u8>>,
    certificate: CertificateInfo,
}

/// What was handed over before to this group, if a server could use it.
fn old(target: &Path, group: u32) -> Option<Old> {
    let metadata = fs::symlink_metadata(target).ok()?;
    let is_right = metadata.is_file()
        && (metadata.uid(), metadata.gid()) == (0, group)
        && metadata.mode() & 0o7777 == 0o640;
    let pem = guarded::read(target, Secrecy::GroupReads, PEM_SIZE_MAX).ok().filter(|_| is_right)?;
    let certificate = Identity::from_pem(&pem, &pem).ok()?.certificate;
    Some(Old { pem, certificate })
}

/// To whom the two files have to belong: to a user other than root who leads to them, as a link could be to any file;
/// to anybody, where the way is root's.
fn owners(config: &Config, pair: &CertificatePair) -> Result<[Option<u32>; 2], ConfigError> {
    let [chain, key] = pair.sources().map(|(_, path)| custodian(path));
    let [of_chain, of_key] = identity::sources(config, pair);
    let owner = |custodian, file: &identity::PemFile<'_>| match custodian {
        Ok(Custodian::User { uid, .. }) => Ok(Some(uid)),
        Ok(Custodian::Many(at)) => {
            let problem = format!("others may write to {}", at.display());
            Err(file.wrong(problem, "keep it in a directory to which its owner alone may write"))
        }
        // What cannot be looked at cannot be read either, which is told then.
        Ok(Custodian::Root) | Err(_) => Ok(None),
    };
    Ok([owner(chain, &of_chain)?, owner(key, &of_key)?])
}

/// Refuses a certificate that is over; and one that is not valid yet, unless there is no better: this host's clock may
/// be what is wrong, and the server needs some certificate to set it right for others.
fn check_validity(
    config: &Config,
    pair: &CertificatePair,
    fresh: &CertificateInfo,
    old: Option<&Old>,
) -> Result<(), ConfigError> {
    let Some(problem) = validity::problem(fresh) else { return Ok(()) };
    let is_better = old.is_some_and(|old| validity::problem(&old.certificate).is_none());
    if validity::is_over(fresh) || is_better {
        let [chain, _] = identity::sources(config, pair);
        return Err(chain.wrong(problem, "renew it, or set this host's clock if that is wrong"));
    }
    Ok(())
}

/// The first line of a file that is handed over for a configuration.
fn marker(config: &Config) -> String {
    format!("# handed over by authentick for {:?}\n", std::path::absolute(&config.file).unwrap_or_default())
}

/// Whether a file begins with the marker, or ends within it.
fn is_marked(path: &Path, marker: &str) -> io::Result<bool> {
    let mut start = Vec::with_capacity(marker.len());
    fs::File::open(path)?.take(marker.len() as u64).read_to_end(&mut start)?;
    Ok(!start.is_empty() && marker.as_bytes().starts_with(&start))
}

/// Removes files that were handed over for tables of this configuration which are gone, or not completely; returns
/// them. Files of other configurations, and those that something else put there, stay.
fn remove_strays(config: &Config, directory: &Path, exchange: &KeyExchange) -> io::Result<Vec<PathBuf>> {
    let marker = marker(config);
    let mut removed = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let is_named = |name: &str| is_handed_over(name) || is_temporary(name);
        let is_ours = entry.file_name().to_str().is_some_and(is_named) && entry.file_type()?.is_file();
        let is_kept =
            exchange.certificates.iter().any(|pair| pair.handed_over.as_deref() == Some(path.as_path()));
        if is_ours && !is_kept && is_marked(&path, &marker)? {
            fs::remove_file(&path)?;
            removed.push(path);
        }
    }
    removed.sort();
    Ok(removed)
}

/// Logs which pairs have been renewed and not handed over since, as far as this process can read them.
pub(crate) fn warn_of_old(config: &Config, exchange: &KeyExchange) {
    for pair in exchange.certificates.iter().filter(|pair| pair.handed_over.is_some()) {
        let [sources, handed_over] = [Contents::read_sources(config, pair), Contents::read(config, pair)]
            .map(|contents| {
                let [chain, key] = contents.texts().ok()?;
                one_pem(chain, key).ok()
            });
        if sources.is_some_and(|sources| handed_over.is_none_or(|handed_over| *handed_over != *sources)) {
            let (file, chain) = (pair.read_from().display(), pair.certificate_chain.display());
            log::warn!(
                "{file}: another pair than that of {chain}: the hand-over has not run since it was renewed; run as \
                 root: authentick certificates hand-over"
            );
        }
    }
}

#[cfg(test)]
mod tests;
