//! The keys that seal cookies. Each is drawn by itself: none follows from another. How they take turns is in
//! [`crate::generations`].

use authentick_crypto::{CachedKey, Entropy};

use crate::generations::{Generations, Numbered};
pub use crate::generations::{KeySetError, Role};

/// One cookie key.
#[derive(Debug)]
pub struct CookieKey {
    id: u32,
    created: u64,
    key: CachedKey,
}

impl CookieKey {
    /// A key with known octets: from a file or a vector. `created` is in Unix seconds.
    #[must_use]
    pub fn new(id: u32, created: u64, octets: &[u8; 32]) -> Self {
        CookieKey { id, created, key: CachedKey::new(octets) }
    }

    fn generate(id: u32, now: u64, entropy: &mut Entropy) -> Self {
        CookieKey::new(id, now, &entropy.array())
    }

    /// The identifier that stands in the clear in each cookie.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// When the key was made, in Unix seconds.
    #[must_use]
    pub const fn created(&self) -> u64 {
        self.created
    }

    /// The key itself.
    #[must_use]
    pub const fn key(&self) -> &CachedKey {
        &self.key
    }
}

impl Numbered for CookieKey {
    fn id(&self) -> u32 {
        self.id
    }
}

/// The generations of cookie keys.
pub type KeySet = Generations<CookieKey>;

impl KeySet {
    /// A first set with a current and a future key; `now` in Unix seconds.
    #[must_use]
    pub fn generate(now: u64, entropy: &mut Entropy) -> Self {
        let id = u32::from_be_bytes(entropy.array());
        let current = CookieKey::generate(id, now, entropy);
        Generations::first(current, CookieKey::generate(id.wrapping_add(1), now, entropy), now)
    }

    /// The set after one rotation: the future key seals, the current one is retired, at most `keep` retired ones stay.
    #[must_use]
    pub fn rotate(&self, now: u64, keep: usize, entropy: &mut Entropy) -> Self {
        self.advance(CookieKey::generate(self.next_id(), now, entropy), now, keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generations::Succession;
    use crate::limits::KEY_COUNT_MAX;

    fn roles(set: &KeySet) -> Vec<(Role, u32)> {
        set.keys().map(|(role, key)| (role, key.id())).collect()
    }

    #[test]
    fn what_follows_from_a_set_is_told_from_what_was_before_it() {
        let mut entropy = Entropy::from_seed(1);
        let mut sets = vec![KeySet::generate(1000, &mut entropy)];
        for index in 0..6 {
            sets.push(sets[index].rotate(2000 + index as u64, 2, &mut entropy));
        }
        let is_same = |a: &CookieKey, b: &CookieKey| a.key().expose() == b.key().expose();
        let succession = |a: &KeySet, b: &KeySet| a.succession(b, is_same);
        for (held, a) in sets.iter().enumerate() {
            for (given, b) in sets.iter().enumerate() {
                // Two retired keys, one that seals and one that will: so far apart there is a common one.
                let expected = match (held.abs_diff(given), given < held) {
                    (4.., _) => Succession::Unrelated,
                    (_, true) => Succession::Older,
                    (_, false) => Succession::Follows,
                };
                assert_eq!(succession(a, b), expected, "{held} {given}");
            }
        }
        // A retired key that is taken away does not make a set older.
        let retired = |set: &KeySet| set.keys().last().expect("it has keys").1.id();
        let without = sets[3].without(retired(&sets[3])).unwrap();
        assert_eq!(succession(&sets[3], &without), Succession::Follows);
        assert_eq!(succession(&sets[4], &without), Succession::Older);
        // One that comes back does, at once and after further rotations: it may have been taken away for a reason.
        assert_eq!(succession(&without, &sets[3]), Succession::Older);
        let mut entropy = Entropy::from_seed(2);
        let (on, back) =
            (without.rotate(3000, 5, &mut entropy), sets[3].rotate(3000, 5, &mut Entropy::from_seed(2)));
        assert_eq!(succession(&without, &on), Succession::Follows);
        assert_eq!(succession(&without, &back), Succession::Older);
        assert_eq!(succession(&on, &back), Succession::Older);
        // If only retired keys are common, the time of the rotation decides.
        let of = |set: &KeySet, rotated| {
            let fresh = |id| CookieKey::new(id, 0, &[id as u8; 32]);
            let key = set.keys().last().expect("it has keys").1;
            let old = CookieKey::new(key.id(), key.created(), key.key().expose());
            KeySet::from_keys(fresh(2), fresh(1), [old], rotated).unwrap()
        };
        assert_eq!(succession(&sets[3], &of(&sets[3], 2001)), Succession::Older);
        assert_eq!(succession(&sets[3], &of(&sets[3], 2002)), Succession::Follows);
        let id = sets[3].current().id();
        let other = KeySet::from_keys(CookieKey::new(7, 0, &[7; 32]), CookieKey::new(id, 0, &[8; 32]), [], 1)
            .unwrap();
        assert_eq!(succession(&sets[3], &other), Succession::Clashes(id));
    }

    //= rfc8915#6-3
    #[test]
    fn future_key_opens_before_it_seals() {
        let mut entropy = Entropy::from_seed(1);
        let first = KeySet::generate(1000, &mut entropy);
        let future = first.keys().find(|(role, _)| *role == Role::Future).unwrap().1.id();
        assert!(first.find(future).is_some());
        assert_ne!(first.current().id(), future);
        assert_eq!(first.rotate(2000, 7, &mut entropy).current().id(), future);
    }

    //= rfc8915#6-4
    #[test]
    fn retired_keys_stay_for_keep_rotations() {
        let mut entropy = Entropy::from_seed(1);
        let mut set = KeySet::generate(0, &mut entropy);
        let first = set.current().id();
        for rotation in 1..=3 {
            set = set.rotate(rotation, 2, &mut entropy);
            assert_eq!(set.find(first).is_some(), rotation <= 2, "{rotation}");
        }
        assert_eq!(set.keys().count(), 4);
    }

    //= rfc8915#8.2-1
    #[test]
    fn only_a_retired_key_can_be_dropped() {
        let mut entropy = Entropy::from_seed(1);
        let set = KeySet::generate(0, &mut entropy).rotate(1, 7, &mut entropy);
        let [(_, current), (_, future), (_, retired)] = roles(&set)[..] else { panic!() };
        assert_eq!(set.without(current).unwrap_err(), KeySetError::InUse(current));
        assert_eq!(set.without(future).unwrap_err(), KeySetError::InUse(future));
        assert_eq!(
            set.without(future.wrapping_add(9)).unwrap_err(),
            KeySetError::Unknown(future.wrapping_add(9))
        );
        assert!(set.without(retired).unwrap().find(retired).is_none());
    }

    //= rfc8915#6-2
    #[test]
    fn keys_with_one_identifier_make_no_set() {
        let key = |id| CookieKey::new(id, 0, &[1; 32]);
        assert_eq!(KeySet::from_keys(key(1), key(2), [key(1)], 0).unwrap_err(), KeySetError::DuplicateId(1));
        let many = (2..=KEY_COUNT_MAX as u32).map(key);
        assert_eq!(KeySet::from_keys(key(0), key(1), many, 0).unwrap_err(), KeySetError::TooMany);
    }
}
