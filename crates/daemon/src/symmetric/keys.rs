//! The contents of a key file: keys, with what is known about them, and what is wrong with a file that cannot be read.

use std::net::IpAddr;

use authentick_crypto::mac::MacAlgorithm;
use authentick_proto::prefix::PrefixSet;
use authentick_proto::symmetric::SymmetricKey;
use thiserror::Error;

use super::notes::Note;

/// The program whose format of keys it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// chrony.keys.
    Chrony,
    /// ntp.keys.
    Ntp,
}

/// What is wrong with a file, and where. Holds nothing of what stands there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}; {remedy}", self.located())]
pub struct Mistake {
    /// The line, from 1; 0 if the file as a whole is meant.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl Mistake {
    /// The problem, after its line if it has one.
    pub(super) fn located(&self) -> String {
        match self.line {
            0 => self.problem.clone(),
            line => format!("line {line}: {}", self.problem),
        }
    }
}

/// How a key stands at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In use.
    Current,
    /// Replaced by another key; still accepted.
    Replaced,
    /// Not accepted any more; its line should go.
    Expired,
}

impl Standing {
    /// Its name in lists.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Standing::Current => "current",
            Standing::Replaced => "replaced",
            Standing::Expired => "expired",
        }
    }
}

/// A key of the file.
#[derive(Debug)]
pub struct Key {
    /// The key, with its id.
    pub key: SymmetricKey,
    /// Which servers are trusted with the key, if ntpd's list says so. It says nothing of clients.
    pub servers: Option<PrefixSet>,
    /// Where it stands, from 1.
    pub line: usize,
    /// What the notes say of it.
    pub note: Note,
}

impl Key {
    /// Its id, never 0.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.key.id()
    }

    /// Its algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> MacAlgorithm {
        self.key.algorithm()
    }

    /// How it stands at `now`, in Unix seconds.
    #[must_use]
    pub const fn standing(&self, now: u64) -> Standing {
        match (self.note.retires, self.note.replaced_by) {
            (Some(end), _) if end <= now => Standing::Expired,
            (None, None) => Standing::Current,
            _ => Standing::Replaced,
        }
    }

    /// Whether a server at `address` may prove itself with this key.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.contains(address))
    }
}

/// A key of a type that is not implemented here. Its id is taken, and a request under it is one under an unknown key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Its id, never 0.
    pub id: u32,
    /// The name of its type.
    pub name: &'static str,
    /// Where it stands, from 1.
    pub line: usize,
}

/// What is unwise or ambiguous about a key that is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: key {id} {problem}")]
pub struct Warning {
    /// Where it stands, from 1.
    pub line: usize,
    /// Its id.
    pub id: u32,
    /// What of it, after "key ID".
    pub problem: String,
}

/// What a file holds.
#[derive(Debug, Default)]
pub struct Keys {
    /// The keys, as they stand in the file. No two have one id.
    pub keys: Vec<Key>,
    /// Keys that cannot be used here. None of their ids is among `keys`.
    pub foreign: Vec<Foreign>,
    /// Ids whose keys are gone.
    pub retired: Vec<Note>,
    /// Whose file it is, if something in it shows that.
    pub dialect: Option<Dialect>,
    /// What is allowed and unwise, or read in one of two ways.
    pub warnings: Vec<Warning>,
}

impl Keys {
    /// The key with this id.
    #[must_use]
    pub fn find(&self, id: u32) -> Option<&Key> {
        self.keys.iter().find(|key| key.id() == id)
    }

    /// The keys that are accepted at `now`, in Unix seconds.
    pub fn accepted(&self, now: u64) -> impl Iterator<Item = &Key> {
        self.keys.iter().filter(move |key| key.standing(now) != Standing::Expired)
    }

    /// The same, for a set of them.
    pub fn into_accepted(self, now: u64) -> impl Iterator<Item = SymmetricKey> {
        self.keys.into_iter().filter(move |key| key.standing(now) != Standing::Expired).map(|key| key.key)
    }

    /// The key with this id whose type is not implemented here.
    #[must_use]
    pub fn find_foreign(&self, id: u32) -> Option<&Foreign> {
        self.foreign.iter().find(|key| key.id == id)
    }

    /// Takes out the key with this id.
    #[must_use]
    pub fn take(&mut self, id: u32) -> Option<Key> {
        let index = self.keys.iter().position(|key| key.id() == id)?;
        Some(self.keys.swap_remove(index))
    }
}
