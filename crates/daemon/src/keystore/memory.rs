//! Keys in memory, for servers that share them within one process: what a store on the network does, without one.
//!
//! The keys lie there as text, and each version has a number of its own, as with a compare-and-swap over the network.
//! They end with the process, so this is for tests and demonstrations.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zeroize::Zeroizing;

use super::error::StoreError;
use super::lines::parse;
use super::{Held, KeyKind, KeyStore, Swap, Version};

/// One kind of keys in memory.
pub struct MemoryStore<K> {
    contents: Mutex<Contents>,
    kind: PhantomData<fn() -> K>,
}

#[derive(Default)]
struct Contents {
    text: Option<Zeroizing<String>>,
    /// Counts what was done to the text.
    version: u64,
    /// The age of a key.
    age: Option<(u32, Duration)>,
}

impl<K> MemoryStore<K> {
    /// Forgets the keys, as a store does that runs out of memory or is restarted.
    pub fn forget(&self) {
        let mut contents = self.contents();
        contents.text = None;
        contents.version += 1;
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        // No step under the lock leaves it half done.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Default for MemoryStore<K> {
    fn default() -> Self {
        MemoryStore { contents: Mutex::default(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for MemoryStore<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("version", &self.contents().version).finish_non_exhaustive()
    }
}

impl<K: KeyKind> KeyStore<K> for MemoryStore<K> {
    fn place(&self) -> String {
        format!("{} in memory", K::NAME)
    }

    fn load(&self) -> Result<Option<Held<K>>, StoreError> {
        let contents = self.contents();
        let Some(text) = &contents.text else { return Ok(None) };
        let keys = parse(&self.place(), text.as_bytes())?;
        Ok(Some(Held { keys, version: Version(contents.version) }))
    }

    fn compare_and_swap(&self, expected: Option<Version>, keys: &K, _: Duration) -> Result<Swap, StoreError> {
        let mut contents = self.contents();
        if contents.text.as_ref().map(|_| Version(contents.version)) != expected {
            return Ok(Swap::Lost);
        }
        contents.text = Some(keys.emit());
        contents.version += 1;
        Ok(Swap::Done(Version(contents.version)))
    }

    fn is_followed(&self) -> bool {
        true
    }

    fn age(&self, id: u32) -> Result<Duration, StoreError> {
        let noted = self.contents().age.filter(|(of, _)| *of == id);
        Ok(noted.map_or(Duration::ZERO, |(_, age)| age))
    }

    fn set_age(&self, id: u32, age: Duration) -> Result<(), StoreError> {
        self.contents().age = Some((id, age));
        Ok(())
    }
}
