//! Where the keys of cookies and of ANTP's state outlive the process, and where several servers can share them.
//!
//! Rotation, a node and the command line know a place only as a [`KeyStore`]; [`Stores`] decides which one it is. Keys
//! are read with their version, and replaced only if the caller names the version that is there. So two servers that
//! rotate at once cannot overwrite each other's keys, whether the store is a file under a lock or on the network.
//!
//! **Invariant:** a key set is in the store before anything is sealed with it. One exception, of `crate::rotator`:
//! the first keys of a server that shares them with no other, while its disk does not take them.

pub(crate) mod age;
pub mod by_hand;
mod cfnts;
mod cookie;
mod directory;
mod error;
pub(crate) mod file;
mod follow;
pub(crate) mod lines;
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
use authentick_proto::generations::{KeySetError, Role, Succession};
use authentick_proto::keyset::KeySet;
use zeroize::Zeroizing;

use self::age::AgeFile;
use self::file::{FileStore, refused};
use crate::clock::SystemClock;
use crate::config::{Config, ConfigError, RotatingKeys, StoreKind};
use crate::fleet::{FleetKind, FleetStore, FleetStores};
use crate::lock;

pub use self::cfnts::CfntsStore;
pub(crate) use self::cfnts::{Counters as CfntsCounters, Master};
pub use self::directory::StateDirectory;
pub use self::error::StoreError;
pub use self::file::SecretFile;
pub(crate) use self::follow::FollowedFile;
pub use self::lines::Lines;
pub(crate) use self::lines::{emit_octets, octets};
pub use self::memory::MemoryStore;

/// How many lost compare-and-swaps in a row end an operation: [`StoreError::Contended`].
pub const ATTEMPT_COUNT: usize = 8;

/// A kind of rotating keys, and how a set of them is written.
pub trait KeyKind: fmt::Debug + Send + Sync + Sized + 'static {
    /// What a store calls such keys.
    const NAME: &'static str;
    /// The first line.
    const MAGIC: &'static str;
    /// What people call them.
    const WORDS: &'static str;
    /// The command that works on them.
    const COMMAND: &'static str;

    /// What a configuration says of them; `None` if it needs none.
    fn settings(config: &Config) -> Option<&RotatingKeys>;
    /// Where they are kept.
    fn store(stores: &Stores) -> Arc<dyn KeyStore<Self>>;

    /// A first set; `now` in Unix seconds.
    fn generate(now: u64, entropy: &mut Entropy) -> Self;
    /// The identifier of the key that seals.
    fn current_id(&self) -> u32;
    /// When the current key began to seal, in Unix seconds by the wall clock at that time.
    fn rotated(&self) -> u64;
    /// The set after one rotation, with at most `keep` retired keys.
    #[must_use]
    fn rotated_once(&self, now: u64, keep: usize, entropy: &mut Entropy) -> Self;
    /// The same without randomness, by whoever has this set; `now` is when the rotation was due.
    #[must_use]
    fn derived_once(&self, now: u64, keep: usize) -> Self;
    /// The set with another future key, which is drawn and has the number after that of the one it replaces.
    #[must_use]
    fn with_new_future(&self, now: u64, entropy: &mut Entropy) -> Self;
    /// The set without the retired key `id`.
    ///
    /// # Errors
    /// If there is no such key, or it is not retired.
    fn without(&self, id: u32) -> Result<Self, KeySetError>;
    /// Each key's role, identifier, and when it was made in Unix seconds: current, future, then the retired ones, the
    /// youngest first.
    fn all(&self) -> Vec<(Role, u32, u64)>;
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
    pub(crate) fn of(octets: &[u8]) -> Self {
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
    /// Nobody yet, for this reason: it is to be tried again at once and again.
    Later(String),
}

/// How to rotate.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// How often, at least once; keys that are drawn at most until every old one is gone.
    pub count: u64,
    /// The time, in Unix seconds.
    pub now: u64,
    /// How many retired keys stay.
    pub keep: usize,
    /// If the next key is derived from those that are there: seconds from each rotation to the next, by which they are
    /// dated.
    pub derived: Option<u64>,
}

impl Rotation {
    /// What becomes of `keys`.
    fn of<K: KeyKind>(self, keys: &K, entropy: &mut Entropy) -> K {
        let Rotation { count, now, keep, derived } = self;
        let mut once = |keys: &K| match derived {
            None => keys.rotated_once(now, keep, entropy),
            Some(period) => keys.derived_once(keys.rotated().saturating_add(period), keep),
        };
        let count_max = derived.map_or(keep as u64 + 2, |_| u64::MAX);
        let first = once(keys);
        (1..count.min(count_max)).fold(first, |keys, _| once(&keys))
    }
}

/// Where one kind of keys is kept.
pub trait KeyStore<K: KeyKind>: fmt::Debug + Send + Sync {
    /// The place, as messages name it.
    fn place(&self) -> String;

    /// Where the keys came from, as the log has it after "received".
    fn origin(&self) -> String {
        format!("from {}", self.place())
    }

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

    /// What has become of the keys of the version `known`; `None` stands for none.
    ///
    /// # Errors
    /// As [`KeyStore::load`].
    fn watch(&self, known: Option<Version>) -> Result<News<K>, StoreError> {
        Ok(match self.load()? {
            None if known.is_none() => News::None,
            None => News::Gone,
            Some(held) if Some(held.version) == known => News::None,
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

    /// Whether a rotation, when one is due, is for this process to make.
    fn rotates_here(&self) -> bool {
        self.is_made_here()
    }

    /// The keys that a server starts with; `None` if it has to serve without until some come.
    ///
    /// # Errors
    /// As [`KeyStore::load_or_create`].
    fn begin(&self, now: u64, entropy: &mut Entropy) -> Result<Option<Held<K>>, StoreError> {
        self.load_or_create(now, entropy).map(Some)
    }

    /// Told when the keys that were last loaded, seen or made are in force.
    fn adopted(&self) {}

    /// The file in which this host keeps them, if it does. What follows is about that file.
    fn file(&self) -> Option<&SecretFile> {
        None
    }

    /// For how long the key `id` has sealed, as was last noted; zero if nothing is known of it. Nothing depends on it
    /// but when the key rotates.
    ///
    /// # Errors
    /// If what was noted cannot be read, or says nothing of the kind.
    fn age(&self, id: u32) -> Result<Duration, StoreError> {
        let Some(file) = self.file() else { return Ok(Duration::ZERO) };
        AgeFile::of(file.path()).read(id).map_err(refused)
    }

    /// Notes for how long the key `id` has sealed.
    ///
    /// # Errors
    /// If that cannot be written; the old note is then still in place.
    fn set_age(&self, id: u32, age: Duration) -> Result<(), StoreError> {
        let Some(file) = self.file() else { return Ok(()) };
        AgeFile::of(file.path()).write(id, age).map_err(refused)
    }

    /// The file's path: root acts on it as whoever decides where that path leads.
    fn path(&self) -> Option<&Path> {
        self.file().map(SecretFile::path)
    }

    /// Creates the container of the keys, if it is missing: a directory of mode 0700, for `owner` if one is given.
    /// Where `owner` could put something in the way, root leaves it to `owner` to create it.
    ///
    /// # Errors
    /// If it cannot be made, or is open to others.
    fn prepare(&self, owner: Option<&User>) -> Result<(), StoreError> {
        self.file().map_or(Ok(()), |file| file.prepare(owner))
    }

    /// Checks the container of the keys, if it exists.
    ///
    /// # Errors
    /// If it is open to others, or something else.
    fn check(&self) -> Result<(), StoreError> {
        self.file().map_or(Ok(()), SecretFile::check)
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
        for _ in 0..ATTEMPT_COUNT {
            let (keys, expected) = match self.load()? {
                Some(held) if held.keys.current_id() != in_force.current_id() => {
                    return Ok(Rotated::ByOthers(held));
                }
                Some(held) => (rotation.of(&held.keys, entropy), Some(held.version)),
                None => {
                    log::warn!("{} was gone; the keys in force are written to it again", self.place());
                    (rotation.of(in_force, entropy), None)
                }
            };
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
    /// Those of these that a fleet shares, once more.
    pub fleet: FleetStores,
    /// The store of cookie keys once more, if they are in CFNTS's layout.
    pub cfnts: Option<Arc<CfntsStore>>,
}

impl Stores {
    /// Those that a configuration names.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let fleet = FleetStores::of(config);
        let cfnts = config
            .cfnts()
            .map(|cfnts| Arc::new(CfntsStore::new(cfnts.clone(), &config.state, Arc::new(SystemClock))));
        let in_hours = cfnts.as_ref().map(|store| Arc::clone(store) as Arc<dyn KeyStore<KeySet>>);
        Stores {
            cookie_keys: in_hours.unwrap_or_else(|| store(config, fleet.cookie_keys.as_ref())),
            state_keys: store(config, fleet.state_keys.as_ref()),
            fleet,
            cfnts,
        }
    }

    /// Files in `directory`, if one is named; else where the configuration in the file `config` has them, and that
    /// configuration.
    ///
    /// # Errors
    /// If the configuration cannot be read, or has a mistake.
    pub fn find(directory: Option<&Path>, config: &Path) -> Result<(Self, Option<Config>), ConfigError> {
        if let Some(directory) = directory {
            return Ok((Stores::in_directory(directory), None));
        }
        let config = Config::load(config)?;
        Ok((Stores::of(&config), Some(config)))
    }

    /// Gives the store in CFNTS's layout its master key, as root could read it.
    pub(crate) fn know(&self, master: Option<Master>) {
        if let (Some(store), Some(master)) = (&self.cfnts, master) {
            store.know(master);
        }
    }

    /// Files in a state directory, which need not exist yet.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        let directory = StateDirectory::of(directory);
        Stores {
            cookie_keys: Arc::new(FileStore::<KeySet>::new(&directory)),
            state_keys: Arc::new(FileStore::<StateKeys>::new(&directory)),
            fleet: FleetStores::default(),
            cfnts: None,
        }
    }
}

/// Where a configuration has the keys of one kind; `shared` is the store of the fleet, if it shares them.
fn store<K: FleetKind>(config: &Config, shared: Option<&Arc<FleetStore<K>>>) -> Arc<dyn KeyStore<K>> {
    let file = || Arc::new(FileStore::<K>::new(&config.state)) as Arc<_>;
    match K::settings(config).map(|keys| &keys.store) {
        // Of CFNTS's layout are cookie keys alone, whose store is made before.
        None | Some(StoreKind::File | StoreKind::Cfnts(_)) => file(),
        Some(StoreKind::Fleet) => shared.map_or_else(file, |store| Arc::clone(store) as Arc<_>),
        Some(StoreKind::Follow(path)) => Arc::new(FollowedFile::<K>::new(path)),
    }
}

#[cfg(test)]
mod tests;
