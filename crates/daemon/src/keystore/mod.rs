//! Where the keys of cookies and of ANTP's state outlive the process, and where several servers can share them.
//!
//! Rotation, a node and the command line know a place only as a [`KeyStore`]; [`Stores`] decides which one it is. Keys
//! are read with their version, and replaced only if the caller names the version that is there. So two servers that
//! rotate at once cannot overwrite each other's keys, whether the store is a file under a lock or on the network.
//!
//! **Invariant:** a key set is in the store before anything is sealed with it.

mod age;
mod cookie;
pub(crate) mod directory;
mod error;
mod file;
mod follow;
mod lines;
mod memory;
mod state;

use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_net::privilege::User;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::generations::Succession;
use authentick_proto::keyset::KeySet;
use zeroize::Zeroizing;

use self::file::FileStore;
use crate::config::{Config, StoreKind};
use crate::lock;

pub use self::error::StoreError;
pub(crate) use self::follow::FollowedFile;
pub use self::lines::Lines;
pub use self::memory::MemoryStore;

/// How many lost compare-and-swaps in a row end an operation: [`StoreError::Contended`].
pub const ATTEMPT_COUNT: usize = 8;

/// A kind of rotating keys, and how a set of them is written.
pub trait KeyKind: fmt::Debug + Send + Sync + Sized + 'static {
    /// What a store calls such keys.
    const NAME: &'static str;
    /// The first line.
    const MAGIC: &'static str;

    /// A first set; `now` in Unix seconds.
    fn generate(now: u64, entropy: &mut Entropy) -> Self;
    /// The identifier of the key that seals.
    fn current_id(&self) -> u32;
    /// When the current key began to seal, in Unix seconds by the wall clock at that time.
    fn rotated(&self) -> u64;
    /// The set after one rotation, with at most `keep` retired keys.
    #[must_use]
    fn rotated_once(&self, now: u64, keep: usize, entropy: &mut Entropy) -> Self;
    /// The text.
    fn emit(&self) -> Zeroizing<String>;
    /// What `next` is to this set.
    fn succession(&self, next: &Self) -> Succession;
    /// The set that `lines` describe, which are those of a text after the first.
    ///
    /// # Errors
    /// What is wrong with which line.
    fn parse(lines: Lines<'_>) -> Result<Self, StoreError>;
}

/// Identifies one of the sets of keys that a place has held. Versions can be compared within one process, no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u64);

impl Version {
    /// The version of a text, from its contents.
    fn of(octets: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(octets);
        Version(hasher.finish())
    }
}

/// Keys as a store has them.
#[derive(Debug)]
pub struct Held<K> {
    /// The keys.
    pub keys: K,
    /// Which they are.
    pub version: Version,
}

/// How a compare-and-swap ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The keys are in the store, as this version.
    Done(Version),
    /// Somebody else had replaced the expected keys, or removed them. Nothing was changed.
    Lost,
}

/// What has become of keys that were read or written before.
#[derive(Debug)]
pub enum News<K> {
    /// They are still there.
    None,
    /// Somebody else has put these in their place.
    Changed(Held<K>),
    /// There are none any more.
    Gone,
}

/// Who has rotated, and the set after it.
#[derive(Debug)]
pub enum Rotated<K> {
    /// This process did.
    Here(Held<K>),
    /// Somebody else had done so before.
    ByOthers(Held<K>),
}

/// How to rotate.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// How often, at least once; at most until every old key is gone.
    pub count: u64,
    /// The time, in Unix seconds.
    pub now: u64,
    /// How many retired keys stay.
    pub keep: usize,
}

/// Where one kind of keys is kept.
pub trait KeyStore<K: KeyKind>: fmt::Debug + Send + Sync {
    /// The place, as messages name it.
    fn place(&self) -> String;

    /// The keys; `None` if there are none.
    ///
    /// # Errors
    /// If they cannot be read, are open to others, or are no keys of the kind.
    fn load(&self) -> Result<Option<Held<K>>, StoreError>;

    /// Replaces the keys of the version `expected` by `keys`; `None` expects that there are none. When it returns
    /// [`Swap::Done`], they are as safe as the store can make them: on the disk, for a file. If another process is
    /// working on the keys, waits for it for as long as `patience`.
    ///
    /// # Errors
    /// If the keys cannot be written whole; the old ones are then still in place.
    fn compare_and_swap(
        &self,
        expected: Option<Version>,
        keys: &K,
        patience: Duration,
    ) -> Result<Swap, StoreError>;

    /// What has become of the keys of the version `known`.
    ///
    /// # Errors
    /// As [`KeyStore::load`].
    fn watch(&self, known: Version) -> Result<News<K>, StoreError> {
        Ok(match self.load()? {
            None => News::Gone,
            Some(held) if held.version == known => News::None,
            Some(held) => News::Changed(held),
        })
    }

    /// Whether a running server polls the keys each second and adopts changes. If not, it reads them when it is told
    /// to.
    fn is_followed(&self) -> bool;

    /// Whether whoever uses the store makes its keys and rotates them. If not, something else does, and the store is
    /// only read.
    fn is_made_here(&self) -> bool {
        true
    }

    /// For how long the key `id` has sealed, as was last noted; zero if nothing is known of it. Nothing depends on it
    /// but when the key rotates.
    ///
    /// # Errors
    /// If what was noted cannot be read, or says nothing of the kind.
    fn age(&self, id: u32) -> Result<Duration, StoreError>;

    /// Notes for how long the key `id` has sealed.
    ///
    /// # Errors
    /// If that cannot be written; the old note is then still in place.
    fn set_age(&self, id: u32, age: Duration) -> Result<(), StoreError>;

    /// The file in which the keys are, if they are in one: root acts on it as whoever decides where that path leads.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Creates the container of the keys, if it is missing: a directory of mode 0700, for `owner` if one is given.
    /// Where `owner` could put something in the way, root leaves it to `owner` to create it.
    ///
    /// # Errors
    /// If it cannot be made, or is open to others.
    fn prepare(&self, _owner: Option<&User>) -> Result<(), StoreError> {
        Ok(())
    }

    /// Checks the container of the keys, if it exists.
    ///
    /// # Errors
    /// If it is open to others, or something else.
    fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The keys in the store; fresh ones, written to it first, if there are none.
    ///
    /// # Errors
    /// As [`KeyStore::load`] and [`KeyStore::compare_and_swap`].
    fn load_or_create(&self, now: u64, entropy: &mut Entropy) -> Result<Held<K>, StoreError> {
        for _ in 0..ATTEMPT_COUNT {
            if let Some(held) = self.load()? {
                return Ok(held);
            }
            let keys = K::generate(now, entropy);
            if let Swap::Done(version) = self.compare_and_swap(None, &keys, lock::AT_START)? {
                return Ok(Held { keys, version });
            }
        }
        Err(StoreError::Contended(self.place()))
    }

    /// Rotates what the store holds, unless somebody else has done so since `in_force` was read: then those keys are
    /// returned as they are. Where there are none any more, `in_force` rotates.
    ///
    /// # Errors
    /// As [`KeyStore::load`] and [`KeyStore::compare_and_swap`]; the old keys then stay in force.
    fn rotate(
        &self,
        in_force: &K,
        rotation: Rotation,
        entropy: &mut Entropy,
    ) -> Result<Rotated<K>, StoreError> {
        let Rotation { count, now, keep } = rotation;
        for _ in 0..ATTEMPT_COUNT {
            let (mut keys, expected) = match self.load()? {
                Some(held) if held.keys.current_id() != in_force.current_id() => {
                    return Ok(Rotated::ByOthers(held));
                }
                Some(held) => (held.keys.rotated_once(now, keep, entropy), Some(held.version)),
                None => {
                    log::warn!("{} was gone; the keys in force are written to it again", self.place());
                    (in_force.rotated_once(now, keep, entropy), None)
                }
            };
            for _ in 1..count.min(keep as u64 + 2) {
                keys = keys.rotated_once(now, keep, entropy);
            }
            let swap = self.compare_and_swap(expected, &keys, lock::OF_A_RUNNING_SERVER)?;
            if let Swap::Done(version) = swap {
                return Ok(Rotated::Here(Held { keys, version }));
            }
        }
        Err(StoreError::Contended(self.place()))
    }

    /// Writes the keys `in_force` again if there are none any more; their version, if so.
    ///
    /// # Errors
    /// As [`KeyStore::compare_and_swap`].
    fn restore_if_gone(&self, in_force: &K) -> Result<Option<Version>, StoreError> {
        match self.compare_and_swap(None, in_force, lock::OF_A_RUNNING_SERVER)? {
            Swap::Done(version) => {
                log::warn!("{} was gone; the keys in force are written to it again", self.place());
                Ok(Some(version))
            }
            Swap::Lost => Ok(None),
        }
    }
}

/// Where a server keeps its rotating keys.
#[derive(Clone, Debug)]
pub struct Stores {
    /// Those of cookies.
    pub cookie_keys: Arc<dyn KeyStore<KeySet>>,
    /// Those of ANTP's state.
    pub state_keys: Arc<dyn KeyStore<StateKeys>>,
}

impl Stores {
    /// Those that a configuration names.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        // State keys stay on the host; those of cookies are where the configuration has them.
        let stores = Stores::in_directory(&config.state_directory);
        match config.nts.as_ref().map(|nts| &nts.store) {
            None | Some(StoreKind::File) => stores,
            Some(StoreKind::Follow(path)) => {
                Stores { cookie_keys: Arc::new(FollowedFile::<KeySet>::new(path)), ..stores }
            }
        }
    }

    /// Files in a state directory, which need not exist yet.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Stores {
            cookie_keys: Arc::new(FileStore::<KeySet>::new(directory)),
            state_keys: Arc::new(FileStore::<StateKeys>::new(directory)),
        }
    }
}

#[cfg(test)]
mod tests;
