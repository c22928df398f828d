//! The text of cookie keys.
//!
//! ```text
//! authentick-cookie-keys 1
//! rotated 1763719200
//! current 5f3a0c11 1763719200 <64 hexadecimal digits>
//! future 5f3a0c12 1763719200 <64 hexadecimal digits>
//! retired 5f3a0c10 1763632800 <64 hexadecimal digits>
//! ```

use std::fmt::Write as _;
use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_proto::generations::{KeySetError, Role, Succession};
use authentick_proto::keyset::{CookieKey, KeySet};
use zeroize::Zeroizing;

use super::error::StoreError;
use super::lines::{Lines, emit_key};
use super::{KeyKind, KeyStore, Stores};
use crate::config::{Config, RotatingKeys};

impl KeyKind for KeySet {
    const NAME: &'static str = "cookie-keys";
    const MAGIC: &'static str = "authentick-cookie-keys 1";
    const WORDS: &'static str = "cookie keys";
    const COMMAND: &'static str = "authentick keys";

    fn settings(config: &Config) -> Option<&RotatingKeys> {
        config.cookie_keys()
    }

    fn store(stores: &Stores) -> Arc<dyn KeyStore<Self>> {
        Arc::clone(&stores.cookie_keys)
    }

    fn generate(now: u64, entropy: &mut Entropy) -> Self {
        KeySet::generate(now, entropy)
    }

    fn current_id(&self) -> u32 {
        self.current().id()
    }

    fn rotated(&self) -> u64 {
        KeySet::rotated(self)
    }

    fn rotated_once(&self, now: u64, keep: usize, entropy: &mut Entropy) -> Self {
        self.rotate(now, keep, entropy)
    }

    fn derived_once(&self, now: u64, keep: usize) -> Self {
        self.derive(now, keep)
    }

    fn with_new_future(&self, now: u64, entropy: &mut Entropy) -> Self {
        KeySet::with_new_future(self, now, entropy)
    }

    fn without(&self, id: u32) -> Result<Self, KeySetError> {
        KeySet::without(self, id)
    }

    fn all(&self) -> Vec<(Role, u32, u64)> {
        self.keys().map(|(role, key)| (role, key.id(), key.created())).collect()
    }

    fn succession(&self, next: &Self) -> Succession {
        KeySet::succession(self, next, |ours, theirs| ours.key().expose() == theirs.key().expose())
    }

    fn emit(&self) -> Zeroizing<String> {
        // Grown once, so that no copy of a secret is left behind.
        let mut text = Zeroizing::new(String::with_capacity(64 + 128 * self.keys().count()));
        let written = writeln!(text, "{}\nrotated {}", Self::MAGIC, self.rotated()).and_then(|()| {
            self.keys().try_for_each(|(role, key)| {
                emit_key(&mut text, role, key.id(), key.created(), key.key().expose())
            })
        });
        written.expect("writing to a string cannot fail");
        text
    }

    fn parse(lines: Lines<'_>) -> Result<Self, StoreError> {
        lines.only(&["rotated"])?;
        let problem = "the key does not have 64 hexadecimal digits";
        let keys = |role| lines.keys(role, CookieKey::new, problem);
        let (future, current, retired) = (keys(Role::Future)?, keys(Role::Current)?, keys(Role::Retired)?);
        let future = lines.one(future, "the file ends without a future key")?;
        let current = lines.one(current, "the file ends without a current key")?;
        let rotated = lines.seconds("rotated", "the file ends without a time of rotation")?;
        KeySet::from_keys(future, current, retired, rotated).map_err(|error| lines.no_set(error))
    }
}
