//! What an operator does to keys by hand, whether a server runs or not.

use std::fmt;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_proto::generations::Role;
use serde::Serialize;

use super::{ATTEMPT_COUNT, Held, KeyKind, KeyStore, StoreError, Swap};
use crate::config::{NextKey, RotatingKeys};
use crate::lock::OF_A_COMMAND;
use crate::symmetric::notes;

/// Retired keys that stay if neither operator nor configuration says how many.
const KEEP: usize = 7;

/// The keys that are there.
///
/// # Errors
/// As [`KeyStore::load`], and if there are none.
pub fn load<K: KeyKind>(store: &dyn KeyStore<K>) -> Result<Held<K>, StoreError> {
    store.check()?;
    store.load()?.ok_or_else(|| StoreError::Nothing(store.place()))
}

/// Makes a first set of keys.
///
/// # Errors
/// As [`KeyStore::load_or_create`], and if there are keys.
pub fn generate<K: KeyKind>(
    store: &dyn KeyStore<K>,
    now: u64,
    entropy: &mut Entropy,
) -> Result<K, StoreError> {
    store.prepare(None)?;
    match store.load()? {
        Some(_) => Err(StoreError::Full(store.place())),
        None => Ok(store.load_or_create(now, entropy)?.keys),
    }
}

/// Puts what `make` makes of the keys in their place; once more, if somebody else has changed them meanwhile.
///
/// # Errors
/// Those of `make`, and as [`load`] and [`KeyStore::compare_and_swap`].
pub fn change<K: KeyKind, E: From<StoreError>>(
    store: &dyn KeyStore<K>,
    mut make: impl FnMut(&K) -> Result<K, E>,
) -> Result<K, E> {
    for _ in 0..ATTEMPT_COUNT {
        let old = load(store)?;
        let keys = make(&old.keys)?;
        if let Swap::Done(_) = store.compare_and_swap(Some(old.version), &keys, OF_A_COMMAND)? {
            return Ok(keys);
        }
    }
    Err(StoreError::Contended(store.place()).into())
}

/// Rotates once; `settings` is what the configuration says, if it was read, and `keep` what the operator does.
///
/// # Errors
/// As [`change`], and if the keys are derived: other hosts would not do so.
pub fn rotate<K: KeyKind>(
    store: &dyn KeyStore<K>,
    settings: Option<&RotatingKeys>,
    keep: Option<usize>,
    now: u64,
    entropy: &mut Entropy,
) -> Result<K, StoreError> {
    if is_derived(settings) == Some(true) {
        return Err(StoreError::WouldPart(store.place()));
    }
    let keep = keep.or(settings.map(|settings| settings.keep)).unwrap_or(KEEP);
    change(store, |keys| Ok(keys.rotated_once(now, keep, entropy)))
}

/// Draws the future key of keys that are derived, so that whoever has copied them has none that seals after the next
/// rotation; returns what is to be done then, too. `settings` is what the configuration says, if it was read.
///
/// # Errors
/// As [`change`], and if keys are not derived, or a rotation is due: other hosts have made it, and would go back.
pub fn refresh<K: KeyKind>(
    store: &dyn KeyStore<K>,
    settings: Option<&RotatingKeys>,
    now: u64,
    entropy: &mut Entropy,
) -> Result<(K, String), StoreError> {
    if is_derived(settings) == Some(false) {
        return Err(StoreError::NotDerived(store.place()));
    }
    let next = |keys: &K| Some(keys.rotated().saturating_add(settings?.rotate.as_secs()));
    let keys = change(store, |keys| match next(keys) {
        Some(next) if next <= now => Err(StoreError::Overdue(store.place())),
        Some(_) | None => Ok(keys.with_new_future(now, entropy)),
    })?;
    let until = next(&keys).map_or(String::new(), |next| format!(", at {}", notes::time(next)));
    let what = format!(
        "copy {} to all hosts that share it, and send each server SIGHUP, before the next rotation{until}: hosts \
         without it would part then",
        store.place()
    );
    Ok((keys, what))
}

/// Whether keys are derived, as far as that is known; a store with keys for each hour says itself what it refuses.
fn is_derived(settings: Option<&RotatingKeys>) -> Option<bool> {
    match settings?.next {
        NextKey::Random => Some(false),
        NextKey::Derived => Some(true),
        NextKey::Hourly => None,
    }
}

/// A key as an operator sees it: never its secret.
#[derive(Debug, Serialize)]
pub struct Shown {
    id: String,
    role: &'static str,
    created: String,
    age_s: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { id, role, created, age_s } = self;
        let age = humantime::format_duration(Duration::from_secs(*age_s));
        write!(f, "{id}  {role:<7}  made {created}  ({age} ago)")
    }
}

/// The keys of a set at `now`, in Unix seconds.
#[must_use]
pub fn shown<K: KeyKind>(keys: &K, now: u64) -> Vec<Shown> {
    let shown = keys.all().into_iter().map(|(role, id, created)| Shown {
        id: format!("{id:08x}"),
        role: match role {
            Role::Current => "current",
            Role::Future => "future",
            Role::Retired => "retired",
        },
        created: notes::time(created),
        age_s: now.saturating_sub(created),
    });
    shown.collect()
}
