//! Requests by the cookie key or state key under which they came: how many clients lose something when that key goes.
//!
//! Only requests that were right count, with a cookie and a tag of their own, or with state that opened: what somebody
//! invents says nothing of clients.

use crate::limits::OPENING_KEY_COUNT_MAX;

/// Requests under one cookie key or state key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUses {
    /// The key.
    pub id: u32,
    /// How many were answered with time.
    pub requests: u64,
}

/// Requests under each key of one kind that opens.
#[derive(Debug, Default)]
pub(super) struct Uses {
    all: Vec<KeyUses>,
    /// Where the last one was counted: the next is likely to be of the same key.
    last: usize,
}

impl Uses {
    pub(super) fn new() -> Self {
        Uses { all: Vec::with_capacity(OPENING_KEY_COUNT_MAX), last: 0 }
    }

    /// Counts a request with `sealed`, a cookie or state, which begins with the identifier of the key that has opened
    /// it; `opens` says whether a key still does.
    #[inline(always)]
    pub(super) fn count(&mut self, sealed: &[u8], opens: impl Fn(u32) -> bool) {
        let Some(id) = sealed.first_chunk().map(|id| u32::from_be_bytes(*id)) else { return };
        if self.all.get(self.last).is_none_or(|uses| uses.id != id) {
            self.last = self.place(id, opens);
        }
        self.all[self.last].requests += 1;
    }

    /// The place of a key: its own, or that of one that opens no more, or another.
    #[inline(never)]
    fn place(&mut self, id: u32, opens: impl Fn(u32) -> bool) -> usize {
        let own = self.all.iter().position(|uses| uses.id == id);
        own.unwrap_or_else(|| {
            let place = self.all.iter().position(|uses| !opens(uses.id));
            let place = place.unwrap_or(self.all.len());
            let fresh = KeyUses { id, requests: 0 };
            match self.all.get_mut(place) {
                Some(uses) => *uses = fresh,
                None => self.all.push(fresh),
            }
            place
        })
    }

    pub(super) fn all(&self) -> &[KeyUses] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use authentick_crypto::Entropy;

    use super::*;
    use crate::keyset::KeySet;

    #[test]
    fn keys_that_open_no_more_make_room_and_others_keep_their_counts() {
        let (mut uses, mut entropy) = (Uses::new(), Entropy::from_seed(1));
        let mut keys = KeySet::generate(0, &mut entropy);
        let (capacity, mut expected) = (uses.all.capacity(), BTreeMap::new());
        for rotation in 1..=1000 {
            let ids: Vec<u32> = keys.keys().map(|(_, key)| key.id()).collect();
            for (index, id) in ids.iter().enumerate() {
                *expected.entry(*id).or_insert(0) += index as u64 + 1;
                (0..=index).for_each(|_| uses.count(&id.to_be_bytes(), |id| keys.find(id).is_some()));
            }
            for id in &ids {
                let of: Vec<_> = uses.all().iter().filter(|uses| uses.id == *id).collect();
                assert_eq!(of, [&KeyUses { id: *id, requests: expected[id] }], "{rotation}");
            }
            assert!(uses.all().len() <= ids.len() + 1 && uses.all.capacity() == capacity, "{rotation}");
            keys = keys.rotate(rotation, 2, &mut entropy);
        }
    }
}
