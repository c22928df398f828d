//! A key set with its place in the order of all that a fleet has had.
//!
//! ```text
//! authentick-fleet-document 1
//! fleet time.example.net
//! lineage 00112233445566778899aabbccddeeff
//! term 1
//! version 4
//! writer ntp-1
//! period 3
//! until 5f3a0c10 3
//! revoked 5f3a0c02
//! keys
//! authentick-cookie-keys 1
//! ...
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use authentick_crypto::kdf::{HASH_SIZE, sha256};
use authentick_proto::generations::Role;
use authentick_proto::limits::KEY_COUNT_MAX;
use zeroize::Zeroizing;

use crate::keys::Keys;
use crate::name::Name;
use crate::text::{Lines, TextError, digits, identifier, number, octets};

/// Identifiers that can be revoked in a fleet's life, as they are never forgotten. A node keeps no more of them, those
/// included that its document does not name.
pub const REVOKED_COUNT_MAX: usize = 4096;

/// SHA-256 of a document's text.
pub type Digest = [u8; HASH_SIZE];

/// Octets of a [`Lineage`].
pub const LINEAGE_SIZE: usize = 16;

/// What all documents have in common that descend from one first key set: the beginning of a hash of that set. Who had
/// the very same keys before they were a fleet's, to the last octet, has the same lineage.
pub type Lineage = [u8; LINEAGE_SIZE];

const MAGIC: &str = "authentick-fleet-document 1";

/// Where a document stands: later ones are higher.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order {
    /// Who writes changes with the term.
    pub term: u64,
    /// Counts on from writer to writer.
    pub version: u64,
    /// Who wrote it.
    pub writer: Name,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} of term {} by {}", self.version, self.term, self.writer)
    }
}

/// A key set of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Document<K> {
    /// Of whom.
    pub fleet: Name,
    /// From which first keys it descends.
    pub lineage: Lineage,
    /// Its place.
    pub order: Order,
    /// How many rotations were due so far. Those by hand do not count.
    pub period: u64,
    /// The period in which each retired key may have sealed last.
    pub until: BTreeMap<u32, u64>,
    /// Keys that must not open any more, wherever they come from.
    pub revoked: BTreeSet<u32>,
    /// The keys.
    pub keys: K,
}

impl<K: Keys> Document<K> {
    /// The first document of a fleet.
    #[must_use]
    pub fn first(fleet: Name, writer: Name, keys: K) -> Self {
        let order = Order { term: 1, version: 1, writer };
        let hash = sha256(&[b"authentick fleet lineage 1\0", keys.emit().as_bytes()]);
        let lineage = *hash.first_chunk().expect("a hash is longer");
        Document { fleet, lineage, order, period: 0, until: BTreeMap::new(), revoked: BTreeSet::new(), keys }
    }

    /// The text.
    #[must_use]
    pub fn emit(&self) -> Zeroizing<String> {
        let keys = self.keys.emit();
        // Grown once, so that no copy of a secret is left behind.
        let lines = 9 + self.until.len() + self.revoked.len();
        let mut text = Zeroizing::new(String::with_capacity(keys.len() + 96 * lines));
        let Order { term, version, writer } = &self.order;
        let (fleet, lineage, period) = (&self.fleet, digits(&self.lineage), self.period);
        let mut written = write!(
            text,
            "{MAGIC}\nfleet {fleet}\nlineage {lineage}\nterm {term}\nversion {version}\nwriter {writer}\n\
             period {period}\n"
        );
        for (id, period) in &self.until {
            written = written.and_then(|()| writeln!(text, "until {id:08x} {period}"));
        }
        for id in &self.revoked {
            written = written.and_then(|()| writeln!(text, "revoked {id:08x}"));
        }
        written.and_then(|()| write!(text, "keys\n{}", *keys)).expect("writing to a string cannot fail");
        text
    }

    /// The document that a text is.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let words = ["fleet", "lineage", "term", "version", "writer", "period", "until", "revoked"];
        let lines = Lines::parse(text, MAGIC, &words, Some("keys"))?;
        let keys = K::parse(lines.rest().ok_or(TextError::Missing("keys"))?).ok_or(TextError::Keys)?;
        let until = |value: &str| {
            let (id, period) = value.split_once(' ')?;
            Some((identifier(id)?, number(period)?))
        };
        Ok(Document {
            fleet: lines.one("fleet", Name::new)?,
            lineage: lines.one("lineage", octets)?,
            order: Order {
                term: lines.one("term", number)?,
                version: lines.one("version", number)?,
                writer: lines.one("writer", Name::new)?,
            },
            period: lines.one("period", number)?,
            until: lines.all("until", KEY_COUNT_MAX, until)?.into_iter().collect(),
            revoked: lines.all("revoked", REVOKED_COUNT_MAX, identifier)?.into_iter().collect(),
            keys,
        })
    }

    /// What tells this document from every other one.
    #[must_use]
    pub fn digest(&self) -> Digest {
        sha256(&[self.emit().as_bytes()])
    }

    /// Identifiers of the keys that have sealed within `keep` periods, and that no rotation has dropped: clients may
    /// hold what was sealed under them, and nobody may refuse them.
    #[must_use]
    pub fn promised(&self, keep: usize) -> Vec<u32> {
        let is_recent = |id: &u32| {
            let last = self.until.get(id).copied().unwrap_or_default();
            self.period.saturating_sub(last) < keep as u64
        };
        let is_promised = |(role, id): (Role, u32)| match role {
            Role::Current => true,
            Role::Future => false,
            Role::Retired => is_recent(&id),
        } && !self.revoked.contains(&id);
        self.keys.identifiers().into_iter().filter(|key| is_promised(*key)).map(|(_, id)| id).collect()
    }

    /// The identifier of the key that has this role; of the youngest, for retired ones.
    #[must_use]
    pub fn key(&self, role: Role) -> Option<u32> {
        self.keys.identifiers().into_iter().find(|(known, _)| *known == role).map(|(_, id)| id)
    }
}

/// A text that begins with these lines, and has what is dropped and a document behind them.
pub(crate) fn with_document<'d, K: Keys>(
    head: &str,
    dropped: impl IntoIterator<Item = &'d u32>,
    document: Option<&Document<K>>,
) -> Zeroizing<String> {
    let dropped: String = dropped.into_iter().map(|id| format!("dropped {id:08x}\n")).collect();
    let document = document.map(Document::emit);
    let size = document.as_ref().map_or(0, |text| text.len());
    // Grown once, so that no copy of a secret is left behind.
    let mut text = Zeroizing::new(String::with_capacity(head.len() + dropped.len() + size + 16));
    text.push_str(head);
    text.push_str(&dropped);
    if let Some(document) = document {
        text.push_str("document\n");
        text.push_str(&document);
    }
    text
}
