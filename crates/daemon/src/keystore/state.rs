//! The text of ANTP's state keys.
//!
//! ```text
//! authentick-antp-state-keys 1
//! rotated 1763719200
//! refreshed 1763632800
//! seed <64 hexadecimal digits>
//! current 5f3a0c11 1763719200 <32 hexadecimal digits>
//! retired 5f3a0c10 1763632800 <32 hexadecimal digits>
//! ```
//!
//! The future key is absent: it follows from the seed, and has the number after that of the current one. Where that
//! number was passed over, a line `future 5f3a0c13` says which it has. Each rotation overwrites the seed by the next
//! one, so the file shows no key that it does not hold any more; once a month randomness goes into it, so a copy of the
//! file is good for a month and the keys that follow.

use std::fmt::Write as _;
use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_proto::antp::state_key::{Seed, StateKey, StateKeys};
use authentick_proto::generations::{KeySetError, Role, Succession};
use zeroize::Zeroizing;

use super::error::StoreError;
use super::lines::{Lines, emit_key, emit_octets, octets};
use super::{KeyKind, KeyStore, Stores};
use crate::config::{Config, RotatingKeys};

/// Seconds after which a rotation mixes randomness in: a month.
const REFRESH_SECONDS: u64 = 30 * 86_400;

impl KeyKind for StateKeys {
    const NAME: &'static str = "antp-state-keys";
    const MAGIC: &'static str = "authentick-antp-state-keys 1";
    const WORDS: &'static str = "ANTP's state keys";
    const COMMAND: &'static str = "authentick keys --antp";

    fn settings(config: &Config) -> Option<&RotatingKeys> {
        config.state_keys()
    }

    fn store(stores: &Stores) -> Arc<dyn KeyStore<Self>> {
        Arc::clone(&stores.state_keys)
    }

    fn generate(now: u64, entropy: &mut Entropy) -> Self {
        StateKeys::generate(now, entropy)
    }

    fn current_id(&self) -> u32 {
        self.current().id()
    }

    fn rotated(&self) -> u64 {
        StateKeys::rotated(self)
    }

    fn rotated_once(&self, now: u64, keep: usize, entropy: &mut Entropy) -> Self {
        // A last time that lies in the future is that of a clock that ran ahead.
        let is_due = now.checked_sub(self.refreshed()).is_none_or(|age| age >= REFRESH_SECONDS);
        self.rotate(now, keep, is_due.then_some(entropy))
    }

    fn derived_once(&self, now: u64, keep: usize) -> Self {
        self.rotate(now, keep, None)
    }

    fn with_new_future(&self, now: u64, entropy: &mut Entropy) -> Self {
        StateKeys::with_new_future(self, now, entropy)
    }

    fn without(&self, id: u32) -> Result<Self, KeySetError> {
        StateKeys::without(self, id)
    }

    fn all(&self) -> Vec<(Role, u32, u64)> {
        self.keys().map(|(role, key)| (role, key.id(), key.created())).collect()
    }

    fn succession(&self, next: &Self) -> Succession {
        StateKeys::succession(self, next)
    }

    fn emit(&self) -> Zeroizing<String> {
        // Grown once, so that no copy of a secret is left behind.
        let mut text = Zeroizing::new(String::with_capacity(256 + 128 * self.keys().count()));
        let times = (self.rotated(), self.refreshed());
        let next_id = self.current().id().wrapping_add(1);
        let written = writeln!(text, "{}\nrotated {}\nrefreshed {}", Self::MAGIC, times.0, times.1)
            .and_then(|()| write!(text, "seed "))
            .and_then(|()| emit_octets(&mut text, self.seed().expose()))
            .and_then(|()| {
                let mut passed =
                    self.keys().filter(|(role, key)| *role == Role::Future && key.id() != next_id);
                passed.try_for_each(|(_, key)| writeln!(text, "future {:08x}", key.id()))
            })
            .and_then(|()| {
                let mut kept = self.keys().filter(|(role, _)| *role != Role::Future);
                kept.try_for_each(|(role, key)| {
                    emit_key(&mut text, role, key.id(), key.created(), key.expose())
                })
            });
        written.expect("writing to a string cannot fail");
        text
    }

    fn parse(lines: Lines<'_>) -> Result<Self, StoreError> {
        lines.only(&["rotated", "refreshed", "seed", "future"])?;
        let problem = "the key does not have 32 hexadecimal digits";
        let keys = |role| lines.keys(role, StateKey::new, problem);
        let (current, retired) = (keys(Role::Current)?, keys(Role::Retired)?);
        let current = lines.one(current, "the file ends without a current key")?;
        let rotated = lines.seconds("rotated", "the file ends without a time of rotation")?;
        let refreshed = lines.seconds("refreshed", "the file ends without a time of refreshment")?;
        let seed = lines.value(
            "seed",
            |text| octets(text).map(|octets| Seed::new(*octets)),
            "the seed does not have 64 hexadecimal digits",
            "the file ends without a seed",
        )?;
        let set = StateKeys::from_keys(seed, current, retired, rotated, refreshed);
        let future = lines.identifier("future")?;
        let set = set.and_then(|set| future.map_or(Ok(set.clone()), |id| set.with_future_id(id)));
        set.map_err(|error| lines.no_set(error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::StateDirectory;
    use std::os::unix::fs::MetadataExt;

    use super::super::file::FileStore;
    use super::super::{Rotated, Rotation};
    use super::*;

    type StateKeyFile = FileStore<StateKeys>;

    const DAY: u64 = 86_400;

    fn file() -> (tempfile::TempDir, StateKeyFile) {
        let directory = tempfile::tempdir().unwrap();
        let file = StateKeyFile::new(&StateDirectory::of(&directory.path().join("state")));
        file.prepare(None).unwrap();
        (directory, file)
    }

    fn rotate(file: &StateKeyFile, keys: &StateKeys, now: u64, keep: usize) -> StateKeys {
        match file
            .rotate(keys, Rotation { count: 1, now, keep, derived: None }, &mut Entropy::from_seed(9))
            .unwrap()
        {
            Rotated::Here(held) => held.keys,
            Rotated::ByOthers(_) | Rotated::Later(_) => panic!("it has rotated"),
        }
    }

    fn secrets(keys: &StateKeys) -> Vec<(Role, u32, [u8; 16])> {
        keys.keys().map(|(role, key)| (role, key.id(), *key.expose())).collect()
    }

    #[test]
    fn keys_outlive_the_process_with_all_that_follows_from_them() {
        let (_directory, file) = file();
        let mut entropy = Entropy::from_seed(1);
        let first = file.load_or_create(0, &mut entropy).unwrap().keys;
        let first = rotate(&file, &first, DAY, 7);
        let again = file.load_or_create(DAY, &mut entropy).unwrap().keys;
        assert_eq!(secrets(&first), secrets(&again));
        assert_eq!(again.keys().count(), 3);
        let next = |keys: &StateKeys| secrets(&keys.rotate(2 * DAY, 7, None));
        assert_eq!(next(&first), next(&again));
        assert_eq!(std::fs::metadata(file.path().unwrap()).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn old_keys_are_erased_from_the_file_and_the_seed_with_them() {
        let (_directory, file) = file();
        let mut entropy = Entropy::from_seed(1);
        let first = file.load_or_create(0, &mut entropy).unwrap().keys;
        let hex = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
        let (key, seed) = (hex(first.current().expose()), hex(first.seed().expose()));
        let mut keys = first;
        for day in 1..=3 {
            keys = rotate(&file, &keys, day * DAY, 2);
            let text = std::fs::read_to_string(file.path().unwrap()).unwrap();
            assert_eq!(text.contains(&key), day <= 2, "day {day}");
            assert!(!text.contains(&seed), "day {day}");
        }
    }

    #[test]
    fn randomness_is_mixed_in_once_a_month() {
        let (mut one, mut other) = (Entropy::from_seed(1), Entropy::from_seed(2));
        let mut here = StateKeys::generate(0, &mut Entropy::from_seed(3));
        let mut there = here.clone();
        for day in 1..=31 {
            (here, there) =
                (here.rotated_once(day * DAY, 7, &mut one), there.rotated_once(day * DAY, 7, &mut other));
            assert_eq!(here.seed().expose() == there.seed().expose(), day < 30, "day {day}");
            assert_eq!(here.refreshed(), if day < 30 { 0 } else { 30 * DAY });
        }
    }

    #[test]
    fn future_key_whose_number_was_passed_over_is_read_back_and_the_next_file_is_as_ever() {
        let mut entropy = Entropy::from_seed(1);
        let set = StateKeys::generate(0, &mut entropy).rotate(DAY, 7, None);
        assert!(!set.emit().contains("future"));
        let drawn = set.with_new_future(DAY, &mut entropy).with_new_future(DAY, &mut entropy);
        let read = |text: &str| super::super::lines::parse::<StateKeys>("", text.as_bytes());
        let again = read(&drawn.emit()).unwrap();
        assert_eq!((secrets(&again), &*again.emit()), (secrets(&drawn), &*drawn.emit()));
        assert_eq!(drawn.current().id().wrapping_add(3), secrets(&drawn)[1].1);
        assert!(!again.rotate(2 * DAY, 7, None).emit().contains("future"));
        let retired = format!("future {:08x}", secrets(&set)[2].1);
        let passed = format!("future {:08x}", secrets(&drawn)[1].1);
        let error = read(&drawn.emit().replace(&passed, &retired)).unwrap_err().to_string();
        assert!(error.contains("two keys have the identifier"), "{error}");
        let error = read(&drawn.emit().replace(&passed, "future x")).unwrap_err().to_string();
        assert!(error.contains("line 5: no key identifier"), "{error}");
    }

    #[test]
    fn broken_files_are_named_by_line() {
        let (_directory, file) = file();
        let good = file.load_or_create(0, &mut Entropy::from_seed(1)).unwrap().keys.emit();
        let broken = |text: &str| {
            std::fs::write(file.path().unwrap(), text).unwrap();
            file.load().unwrap_err().to_string()
        };
        assert!(broken("authentick-cookie-keys 1\n").contains("line 1"));
        assert!(broken(&good.replace("refreshed 0", "refreshed x")).contains("line 3: no number"));
        assert!(broken(&good.replace("seed ", "seed f")).contains("line 4: the seed"));
        assert!(broken(&good.replace("current", "future")).contains("without a current key"));
        assert!(broken(&good[..good.len() - 3]).contains("32 hexadecimal digits"));
        assert!(broken(&good.replace("seed", "sead")).contains("line 4"));
    }
}
