//! The keys that seal cookies. Each is drawn by itself, or follows from the one before. How they take turns is in
//! [`crate::generations`].
//!
//! Keys that follow are a ratchet: hosts that have the same set come to the same next key without talking, and nobody
//! comes from a key to the one before it. Whoever has a key has all that follow from it, until one is drawn.

use authentick_crypto::kdf::hkdf_sha256_salted;
use authentick_crypto::{CachedKey, Entropy, wipe};

use crate::generations::{Generations, Numbered};
pub use crate::generations::{KeySetError, Role};

/// Keeps what follows from a key here apart from whatever else may be derived from its octets.
const RATCHET: &[u8] = b"authentick cookie key\0";

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

    /// The key that follows from this one: HKDF-SHA256 of its octets, with its identifier as salt. `created` is in Unix
    /// seconds.
    //= rfc8915#6-8
    fn following(&self, created: u64) -> Self {
        let mut octets = hkdf_sha256_salted(&self.id.to_be_bytes(), self.key.expose(), &[RATCHET]);
        let key = CookieKey::new(self.id.wrapping_add(1), created, &octets);
        wipe(&mut octets);
        key
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

    /// The same without randomness: the next key follows from the future one. Whoever has the same set and rotates as
    /// often has the same keys. `now` is the time at which the rotation was due, and not the one at which it is made,
    /// so that the next one is due for all of them at once.
    #[must_use]
    pub fn derive(&self, now: u64, keep: usize) -> Self {
        self.advance(self.future().following(now), now, keep)
    }

    /// The set with another future key, whose identifier is the one after that of the key that it replaces.
    #[must_use]
    pub fn with_new_future(&self, now: u64, entropy: &mut Entropy) -> Self {
        self.with_future(CookieKey::generate(self.next_id(), now, entropy))
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

    #[test]
    fn set_opens_with_keys_beside_it_and_not_with_closed_ones_and_seals_as_before() {
        let mut entropy = Entropy::from_seed(1);
        let set = KeySet::generate(0, &mut entropy).rotate(1, 2, &mut entropy);
        let next = set.rotate(2, 2, &mut entropy);
        let ids = |set: &KeySet| roles(set).into_iter().map(|(_, id)| id).collect::<Vec<_>>();
        let [current, future, retired] = ids(&set)[..] else { panic!("it has three keys") };
        let made = future + 1;
        assert!(ids(&next).contains(&made) && set.find(made).is_none());
        let used = set.opening(Some(&next), [retired, current]);
        assert_eq!(roles(&used), roles(&set), "its own keys are the same");
        assert_eq!(used.current().id(), current);
        for (id, opens) in
            [(made, true), (future, true), (retired, false), (current, false), (made + 1, false)]
        {
            assert_eq!(used.find(id).is_some(), opens, "{id}");
        }
        assert_eq!(used.opening(None, []).find(made).map(CookieKey::id), None);
        assert!(used.opening(None, []).find(retired).is_some());
        // A key of ours is ours, though another one beside it has its number.
        let other = set.with_new_future(2, &mut entropy).with_new_future(2, &mut entropy);
        assert_eq!(ids(&other), [current, future + 2, retired]);
        let ours = *set.find(current).unwrap().key().expose();
        assert_eq!(*set.opening(Some(&other), []).find(current).unwrap().key().expose(), ours);
        // But the future one has sealed nothing, and what stands beside it may be in use elsewhere.
        let taken_over = set.with_future(CookieKey::generate(future, 3, &mut entropy));
        let theirs = *taken_over.find(future).unwrap().key().expose();
        assert_ne!(*set.find(future).unwrap().key().expose(), theirs);
        let used = set.opening(Some(&taken_over), []);
        assert_eq!(*used.find(future).unwrap().key().expose(), theirs);
        assert_eq!(used.opening_keys().filter(|key| key.id() == future).count(), 1);
        assert_eq!(used.rotate(4, 2, &mut entropy).current().key().expose(), set.future().key().expose());
    }

    /// What HMAC-SHA256 of Python's `hmac` and `hashlib` makes of it by RFC 5869, over the identifier's end.
    //= rfc8915#6-8
    #[test]
    fn key_follows_from_the_one_before_it_by_hkdf() {
        let octets: [u8; 32] = std::array::from_fn(|index| index as u8);
        let hex = |key: &CookieKey| -> String {
            key.key().expose().iter().map(|octet| format!("{octet:02x}")).collect()
        };
        let mut key = CookieKey::new(0xffff_fffe, 7, &octets);
        for (id, expected) in [
            (0xffff_ffff, "250299f63709eca82a27c73f058d8e08d1de5057b40a5141e82afda1b298c3fb"),
            (0, "87f4942c0ea0a6a1e0187838b59e5eb66d84519eea8ffd485c5270546287e56a"),
            (1, "0bba775823d2010ecd44fe01cd22c2f2c6f1c934fab8bb8121bbc5574dfa90a7"),
        ] {
            key = key.following(9);
            assert_eq!((key.id(), key.created(), hex(&key).as_str()), (id, 9, expected));
        }
    }

    //= rfc8915#6-8
    #[test]
    fn hosts_with_one_set_derive_the_same_keys_until_one_is_drawn() {
        let first =
            KeySet::generate(1000, &mut Entropy::from_seed(1)).rotate(1060, 3, &mut Entropy::from_seed(2));
        let secrets = |set: &KeySet| -> Vec<_> {
            set.keys().map(|(role, key)| (role, key.id(), key.created(), *key.key().expose())).collect()
        };
        // One keeps more than the other; what both have is the same, and so is what seals.
        let (mut here, mut there) = (first.clone(), first.clone());
        for step in 1..9 {
            let (before, future) = (secrets(&here), here.future().id());
            (here, there) = (here.derive(1060 + 60 * step, 3), there.derive(1060 + 60 * step, 1));
            let (ours, theirs) = (secrets(&here), secrets(&there));
            assert_eq!((ours.len(), &ours[..3]), (5.min(3 + step as usize), &theirs[..]));
            assert_eq!((here.current().id(), here.rotated()), (future, 1060 + 60 * step));
            // What came new differs from everything that was, and has the next number.
            assert!(before.iter().all(|(_, _, _, octets)| *octets != ours[1].3), "{step}");
            assert_eq!(here.future().id(), future.wrapping_add(1));
        }
        let drawn = here.with_new_future(2000, &mut Entropy::from_seed(3));
        let (of_drawn, of_here) = (secrets(&drawn.derive(2060, 3)), secrets(&here.derive(2060, 3)));
        assert!(of_drawn[..2].iter().all(|ours| of_here.iter().all(|theirs| ours.3 != theirs.3)));
        assert_eq!(of_drawn[2..], of_here[2..], "what has sealed still opens");
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
