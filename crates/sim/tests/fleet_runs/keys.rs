//! Real cookie keys as the rules see them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use authentick_crypto::Entropy;
use authentick_fleet::Keys;
use authentick_proto::generations::Role;
use authentick_proto::keyset::{CookieKey, KeySet};
use zeroize::Zeroizing;

/// Which key it is: its identifier, and some of its octets, as two keys may have one identifier.
pub(crate) type KeyName = (u32, [u8; 8]);

/// What tells a key from every other one.
pub(crate) fn name_of(key: &CookieKey) -> KeyName {
    let octets = key.key().expose();
    (key.id(), *octets.first_chunk().expect("a key has more octets"))
}

/// A key set in a document.
#[derive(Clone, Debug)]
pub(crate) struct Cookies(pub(crate) KeySet);

impl Cookies {
    pub(crate) fn names(&self) -> BTreeSet<KeyName> {
        self.0.keys().map(|(_, key)| name_of(key)).collect()
    }
}

/// What new keys are made of.
#[derive(Debug)]
pub(crate) struct Source {
    /// The time by the host's clock, in Unix seconds.
    pub(crate) now: u64,
    pub(crate) entropy: Entropy,
}

impl Keys for Cookies {
    type Source = Source;

    fn identifiers(&self) -> Vec<(Role, u32)> {
        self.0.keys().map(|(role, key)| (role, key.id())).collect()
    }

    fn clashes(&self, other: &Self) -> Vec<u32> {
        let is_another = |key: &CookieKey| {
            other.0.keys().any(|(_, known)| known.id() == key.id() && name_of(known) != name_of(key))
        };
        self.0.keys().map(|(_, key)| key).filter(|key| is_another(key)).map(CookieKey::id).collect()
    }

    fn rotated(&self, keep: usize, source: &mut Source) -> Self {
        Cookies(self.0.rotate(source.now, keep, &mut source.entropy))
    }

    fn with_new_future(&self, source: &mut Source) -> Self {
        Cookies(self.0.with_new_future(source.now, &mut source.entropy))
    }

    fn without(&self, id: u32) -> Self {
        Cookies(self.0.without(id).unwrap_or_else(|_| self.0.clone()))
    }

    fn emit(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(format!("rotated {}\n", self.0.rotated()));
        for (role, key) in self.0.keys() {
            let written = write!(text, "{role:?} {:08x} {} ", key.id(), key.created());
            let octets = key.key().expose().iter();
            let written =
                written.and_then(|()| octets.copied().try_for_each(|octet| write!(text, "{octet:02x}")));
            written.and_then(|()| writeln!(text)).expect("writing to a string cannot fail");
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let rotated = lines.next()?.strip_prefix("rotated ")?.parse().ok()?;
        let (mut current, mut future, mut retired) = (None, None, Vec::new());
        for line in lines {
            let [role, id, created, octets] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
            let octet = |index: usize| u8::from_str_radix(octets.get(2 * index..2 * index + 2)?, 16).ok();
            let octets: Option<Vec<u8>> = (0..32).map(octet).collect();
            let octets: [u8; 32] = octets?.try_into().ok()?;
            let key = CookieKey::new(u32::from_str_radix(id, 16).ok()?, created.parse().ok()?, &octets);
            match role {
                "Current" => current = Some(key),
                "Future" => future = Some(key),
                "Retired" => retired.push(key),
                _ => return None,
            }
        }
        KeySet::from_keys(future?, current?, retired, rotated).ok().map(Cookies)
    }
}

#[test]
fn text_is_read_back_as_the_same_set() {
    let mut entropy = Entropy::from_seed(1);
    let set =
        Cookies(KeySet::generate(7, &mut entropy).rotate(8, 3, &mut entropy).rotate(9, 3, &mut entropy));
    let again = Cookies::parse(&set.emit()).expect("it is a set");
    assert_eq!((&*again.emit(), again.identifiers()), (&*set.emit(), set.identifiers()));
}
