//! Keys in a file that something else replaces: a copy over ssh, a template of a secrets manager, a secret that an
//! orchestrator mounts.
//!
//! Nothing is ever written here, and no key rotates here. A running server looks each second, and adopts what follows
//! from the keys in force ([`authentick_proto::generations::Succession`]). The path may lead through links, and the
//! group may read: so mounted secrets are.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::StoreError;
use super::file::{FILE_SIZE_MAX, read};
use super::lines::parse;
use super::{Held, KeyKind, KeyStore, Swap, Version};
use crate::guarded::Secrecy;

/// A file of one kind of keys that something else replaces.
#[derive(Debug)]
pub(crate) struct FollowedFile<K> {
    path: PathBuf,
    kind: PhantomData<fn() -> K>,
}

impl<K> FollowedFile<K> {
    pub(crate) fn new(path: &Path) -> Self {
        FollowedFile { path: path.to_owned(), kind: PhantomData }
    }
}

impl<K: KeyKind> KeyStore<K> for FollowedFile<K> {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    /// A file that is not there is an error, as nobody here can make it.
    fn load(&self) -> Result<Option<Held<K>>, StoreError> {
        let octets = read(&self.path, Secrecy::GroupReads, FILE_SIZE_MAX)?;
        let octets = octets.ok_or_else(|| StoreError::NotThere(self.path.clone()))?;
        let keys = parse(&self.place(), &octets)?;
        Ok(Some(Held { keys, version: Version::of(&octets) }))
    }

    fn compare_and_swap(&self, _: Option<Version>, _: &K, _: Duration) -> Result<Swap, StoreError> {
        Err(StoreError::MadeElsewhere(self.path.clone()))
    }

    fn is_followed(&self) -> bool {
        true
    }

    fn is_made_here(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use authentick_crypto::Entropy;
    use authentick_proto::keyset::KeySet;

    use super::super::News;
    use super::super::tests::ids;
    use super::*;

    fn write(path: &Path, keys: &KeySet, mode: u32) {
        let new = path.with_extension("new");
        fs::write(&new, keys.emit().as_bytes()).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
        fs::rename(&new, path).unwrap();
    }

    #[test]
    fn replaced_files_and_moved_links_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut entropy = Entropy::from_seed(1);
        let first = KeySet::generate(100, &mut entropy);
        let second = first.rotate(200, 3, &mut entropy);
        // As an orchestrator mounts a secret: a link to a file below a link to a folder, which is replaced.
        for (name, keys) in [("one", &first), ("two", &second)] {
            fs::create_dir(at(name)).unwrap();
            write(&at(name).join("keys"), keys, 0o440);
        }
        symlink("one", at("data")).unwrap();
        symlink("data/keys", at("keys")).unwrap();
        let store = FollowedFile::<KeySet>::new(&at("keys"));
        let held = store.load().unwrap().unwrap();
        assert_eq!(ids(&held.keys), ids(&first));
        assert!(matches!(store.watch(Some(held.version)), Ok(News::None)));
        symlink("two", at("next")).unwrap();
        fs::rename(at("next"), at("data")).unwrap();
        let Ok(News::Changed(held)) = store.watch(Some(held.version)) else { panic!() };
        assert_eq!(ids(&held.keys), ids(&second));
        fs::remove_file(at("keys")).unwrap();
        assert!(matches!(store.watch(Some(held.version)), Err(StoreError::NotThere(_))));
    }

    #[test]
    fn nothing_is_written_and_nobody_else_may_read_or_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let store = FollowedFile::<KeySet>::new(&path);
        let mut entropy = Entropy::from_seed(1);
        let error = store.load_or_create(100, &mut entropy).unwrap_err();
        assert!(matches!(&error, StoreError::NotThere(_)) && !path.exists(), "{error}");
        assert!(error.remedy().contains("put the file there"), "{}", error.remedy());
        let keys = KeySet::generate(100, &mut entropy);
        for (mode, is_read) in [(0o400, true), (0o440, true), (0o640, true), (0o644, false), (0o660, false)] {
            write(&path, &keys, mode);
            assert_eq!(store.load().is_ok(), is_read, "{mode:o}");
        }
        write(&path, &keys, 0o600);
        let held = store.load().unwrap().unwrap();
        let swap = store.compare_and_swap(Some(held.version), &keys, Duration::ZERO);
        assert!(matches!(swap, Err(StoreError::MadeElsewhere(_))));
        assert_eq!(ids(&store.load().unwrap().unwrap().keys), ids(&keys));
    }
}
