//! What a cache holds, what it was ever given, and what it answers, as it behaves.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::Behaviour;
use super::commands::{Condition, Write};

/// Octets of names and values that a cache is given before it refuses more, all that it ever was given counted.
const GIVEN_SIZE_MAX: usize = 256 << 20;

const STORED: &str = "STORED";
const OUT_OF_MEMORY: &str = "SERVER_ERROR out of memory storing object";

/// A value under a name.
#[derive(Clone, Debug)]
struct Entry {
    flags: u32,
    value: Vec<u8>,
    unique: u64,
}

/// All about one name.
#[derive(Debug, Default)]
struct Name {
    now: Option<Entry>,
    /// The first that was ever stored.
    first: Option<Entry>,
    /// All that clients ever sent, the oldest first.
    given: Vec<Vec<u8>>,
    /// How often a bit of it was flipped.
    flip_count: usize,
}

/// What a cache holds.
#[derive(Debug, Default)]
pub(super) struct Contents {
    names: BTreeMap<String, Name>,
    /// The number of the last value that was stored.
    unique: u64,
    given_size: usize,
}

impl Contents {
    pub(super) fn names(&self) -> Vec<String> {
        let stored = self.names.iter().filter(|(_, name)| name.now.is_some());
        stored.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn value(&self, name: &str) -> Option<Vec<u8>> {
        Some(self.names.get(name)?.now.as_ref()?.value.clone())
    }

    pub(super) fn history(&self, name: &str) -> Vec<Vec<u8>> {
        self.names.get(name).map_or_else(Vec::new, |name| name.given.clone())
    }

    pub(super) fn forget(&mut self) {
        self.names.values_mut().for_each(|name| name.now = None);
    }

    pub(super) fn put(&mut self, name: &str, flags: u32, value: Vec<u8>) {
        self.unique += 1;
        let entry = Entry { flags, value, unique: self.unique };
        let name = self.names.entry(name.to_owned()).or_default();
        name.first.get_or_insert_with(|| entry.clone());
        name.now = Some(entry);
    }

    /// The answer to a fetch.
    pub(super) fn fetch(&mut self, names: &[String], with_unique: bool, behaviour: Behaviour) -> Vec<u8> {
        let mut answer = Vec::new();
        for name in names {
            let Some((entry, size)) = self.find(name, behaviour) else { continue };
            let unique = if with_unique { format!(" {}", entry.unique) } else { String::new() };
            answer.extend(format!("VALUE {name} {} {size}{unique}\r\n", entry.flags).into_bytes());
            answer.extend(entry.value);
            answer.extend(b"\r\n");
        }
        answer.extend(b"END\r\n");
        answer
    }

    /// What is told to be under a name, and the size that is told of it.
    fn find(&mut self, asked: &str, behaviour: Behaviour) -> Option<(Entry, u64)> {
        let name = self.names.get_mut(asked);
        let entry = match behaviour {
            Behaviour::Honest
            | Behaviour::Endless
            | Behaviour::Drip(_)
            | Behaviour::Silent
            | Behaviour::Unanswered
            | Behaviour::Refuse
            | Behaviour::Full => name?.now.clone()?,
            Behaviour::Replay => name?.first.clone()?,
            Behaviour::Swap => self.other(asked)?.clone(),
            Behaviour::Flip => {
                let name = name?;
                let mut entry = name.now.clone()?;
                if !entry.value.is_empty() {
                    let size = entry.value.len();
                    entry.value[name.flip_count % size] ^= 1 << (name.flip_count / size % 8);
                    name.flip_count += 1;
                }
                entry
            }
            Behaviour::Length(size) => {
                let entry = name.and_then(|name| name.now.clone());
                return Some((entry.unwrap_or(Entry { flags: 0, value: Vec::new(), unique: 1 }), size));
            }
            Behaviour::Forget => return None,
        };
        let size = entry.value.len() as u64;
        Some((entry, size))
    }

    /// What is under the name that follows in the order of octets, the first following the last.
    fn other(&self, asked: &str) -> Option<&Entry> {
        let after = self.names.range::<str, _>((Bound::Excluded(asked), Bound::Unbounded));
        let before = self.names.range::<str, _>((Bound::Unbounded, Bound::Excluded(asked)));
        after.chain(before).find_map(|(_, name)| name.now.as_ref())
    }

    /// The answer to a write; `None` if it is neither carried out nor answered.
    pub(super) fn write(&mut self, write: Write, behaviour: Behaviour) -> Option<&'static str> {
        self.given_size += write.name.len() + write.value.len();
        if self.given_size > GIVEN_SIZE_MAX {
            return Some(OUT_OF_MEMORY);
        }
        let name = self.names.entry(write.name.clone()).or_default();
        name.given.push(write.value.clone());
        let is_new = name.first.is_none();
        let now = name.now.as_ref().map(|entry| entry.unique);
        match behaviour {
            Behaviour::Silent | Behaviour::Endless | Behaviour::Refuse => return None,
            Behaviour::Full => return Some(OUT_OF_MEMORY),
            Behaviour::Replay if is_new => {}
            Behaviour::Replay => return Some(STORED),
            Behaviour::Forget => {
                let is_cas = matches!(write.condition, Condition::Unchanged(_));
                return Some(if is_cas { "NOT_FOUND" } else { STORED });
            }
            Behaviour::Honest
            | Behaviour::Swap
            | Behaviour::Flip
            | Behaviour::Length(_)
            | Behaviour::Drip(_)
            | Behaviour::Unanswered => match (write.condition, now) {
                (Condition::Absent, Some(_)) => return Some("NOT_STORED"),
                (Condition::Unchanged(_), None) => return Some("NOT_FOUND"),
                (Condition::Unchanged(unique), Some(now)) if unique != now => return Some("EXISTS"),
                (Condition::Always | Condition::Absent | Condition::Unchanged(_), _) => {}
            },
        }
        self.put(&write.name, write.flags, write.value);
        Some(STORED)
    }
}
