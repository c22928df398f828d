//! Keys that are only numbers.

use authentick_proto::generations::Role;
use zeroize::Zeroizing;

use crate::keys::Keys;

/// A key: its identifier, and what stands for its octets.
pub(crate) type Key = (u32, u8);

/// A key set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Toy {
    pub(crate) current: Key,
    pub(crate) future: Key,
    /// The youngest first.
    pub(crate) retired: Vec<Key>,
}

impl Toy {
    /// The first set, with the next two keys that were never there.
    pub(crate) const fn first() -> Self {
        Toy { current: (1, 1), future: (2, 2), retired: Vec::new() }
    }

    /// The first set of somebody who knows nothing of that: there is no key in both.
    #[cfg(test)]
    pub(crate) const fn another_first() -> Self {
        Toy { current: (101, 101), future: (102, 102), retired: Vec::new() }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Key> {
        [self.current, self.future].into_iter().chain(self.retired.iter().copied())
    }
}

impl Keys for Toy {
    /// The key that was made last.
    type Source = u8;

    fn identifiers(&self) -> Vec<(Role, u32)> {
        let retired = self.retired.iter().map(|(id, _)| (Role::Retired, *id));
        [(Role::Current, self.current.0), (Role::Future, self.future.0)].into_iter().chain(retired).collect()
    }

    fn clashes(&self, other: &Self) -> Vec<u32> {
        let differs = |(id, octets): &Key| other.all().any(|(known, other)| known == *id && other != *octets);
        self.all().filter(differs).map(|(id, _)| id).collect()
    }

    fn rotated(&self, keep: usize, source: &mut u8) -> Self {
        *source += 1;
        let retired = [self.current].into_iter().chain(self.retired.iter().copied()).take(keep).collect();
        Toy { current: self.future, future: (self.future.0 + 1, *source), retired }
    }

    fn with_new_future(&self, source: &mut u8) -> Self {
        *source += 1;
        Toy { future: (self.future.0 + 1, *source), ..self.clone() }
    }

    fn without(&self, id: u32) -> Self {
        let mut set = self.clone();
        set.retired.retain(|(known, _)| *known != id);
        set
    }

    fn emit(&self) -> Zeroizing<String> {
        let keys: Vec<String> = self.all().map(|(id, octets)| format!("{id}:{octets}")).collect();
        Zeroizing::new(keys.join(" "))
    }

    fn parse(text: &str) -> Option<Self> {
        let key = |word: &str| {
            let (id, octets) = word.split_once(':')?;
            Some((id.parse().ok()?, octets.parse().ok()?))
        };
        let keys: Option<Vec<Key>> = text.split(' ').map(key).collect();
        match &keys?[..] {
            [current, future, retired @ ..] => {
                Some(Toy { current: *current, future: *future, retired: retired.to_vec() })
            }
            _ => None,
        }
    }
}
