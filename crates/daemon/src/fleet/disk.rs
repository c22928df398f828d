//! The file that holds what a node of a fleet keeps: see [`authentick_fleet::Kept`].

use std::marker::PhantomData;
use std::path::Path;
use std::time::Duration;

use authentick_fleet::Kept;

use super::keys::{FleetKind, Shared};
use crate::guarded::without_mark;
use crate::keystore::{SecretFile, StateDirectory, StoreError, Swap, Version};

/// Octets of the file: a document of the largest size, and as much again for what stands beside it.
const FILE_SIZE_MAX: u64 = 512 << 10;

/// The name of the file of one kind of keys, which are called `keys`.
pub(crate) fn name(keys: &str) -> String {
    format!("fleet-{keys}")
}

/// The file of one kind of keys.
#[derive(Debug)]
pub(super) struct Disk<K> {
    file: SecretFile,
    kind: PhantomData<fn() -> K>,
}

/// What is in the file; the version is `None` if there is no file.
pub(super) struct OnDisk<K> {
    pub(super) kept: Kept<Shared<K>>,
    pub(super) version: Option<Version>,
}

impl<K: FleetKind> Disk<K> {
    pub(super) fn new(directory: &StateDirectory) -> Self {
        Disk { file: SecretFile::new(directory, &name(K::NAME), FILE_SIZE_MAX), kind: PhantomData }
    }

    pub(super) const fn file(&self) -> &SecretFile {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// When the file was written last, in Unix seconds; `None` if that is not known.
    pub(super) fn written(&self) -> Option<u64> {
        let modified = std::fs::metadata(self.path()).and_then(|metadata| metadata.modified()).ok()?;
        modified.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
    }

    pub(super) fn read(&self) -> Result<OnDisk<K>, StoreError> {
        let octets = self.file.read()?;
        self.understand(octets.as_deref().map(Vec::as_slice))
    }

    /// The same for a file that has changed; `None` if its version is `known`.
    pub(super) fn read_changed(&self, known: Option<Version>) -> Result<Option<OnDisk<K>>, StoreError> {
        let octets = self.file.read()?;
        let octets = octets.as_deref().map(Vec::as_slice);
        if octets.map(Version::of) == known {
            return Ok(None);
        }
        self.understand(octets).map(Some)
    }

    fn understand(&self, octets: Option<&[u8]>) -> Result<OnDisk<K>, StoreError> {
        let Some(octets) = octets else { return Ok(OnDisk { kept: Kept::default(), version: None }) };
        let wrong = |problem: String| StoreError::Kept(self.path().to_owned(), problem);
        let text =
            std::str::from_utf8(without_mark(octets)).map_err(|_| wrong("it is not text".to_owned()))?;
        let kept = Kept::parse(text).map_err(|error| wrong(error.to_string()))?;
        Ok(OnDisk { kept, version: Some(Version::of(octets)) })
    }

    pub(super) fn write(
        &self,
        expected: Option<Version>,
        kept: &Kept<Shared<K>>,
        patience: Duration,
    ) -> Result<Swap, StoreError> {
        self.file.compare_and_swap(expected, &kept.emit(), patience)
    }
}
