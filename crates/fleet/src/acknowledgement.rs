//! What a node says of itself: which document it has and uses, and what that comes to.
//!
//! ```text
//! authentick-fleet-node 1
//! fleet time.example.net
//! node ntp-2
//! time 1763719200
//! document 1 4 ntp-1 <64 hexadecimal digits>
//! lineage <32 hexadecimal digits>
//! since 1763719100
//! claim 2 ntp-2 <32 hexadecimal digits>
//! nonce <32 hexadecimal digits>
//! doubled yes
//! seals 5f3a0c11
//! opens 5f3a0c12
//! dropped 5f3a0c02
//! requests 5f3a0c11 1234567 62520
//! symmetric 5 AES128 1234568 70368744177664
//! ```

use std::fmt::Write as _;

use authentick_proto::limits::KEY_COUNT_MAX;
use zeroize::Zeroizing;

use crate::claim::{Claim, Nonce};
use crate::document::{Digest, Document, Lineage, Order, REVOKED_COUNT_MAX, with_document};
use crate::keys::Keys;
use crate::name::Name;
use crate::text::{Lines, TextError, digits, identifier, number, octets};

const MAGIC: &str = "authentick-fleet-node 1";
const ANSWER_MAGIC: &str = "authentick-fleet-answer 1";

/// Lines of one word: more identifiers than a set and what stays open beside it have.
const IDENTIFIER_COUNT_MAX: usize = 2 * KEY_COUNT_MAX;

/// Symmetric keys that a node says something of, at most.
pub const SYMMETRIC_COUNT_MAX: usize = 1024;

/// Octets of the name of an algorithm, at most.
const ALGORITHM_SIZE_MAX: usize = 32;

/// Tags made under one symmetric key, as a node knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SymmetricUses {
    /// The key.
    pub id: u32,
    /// Its algorithm, by a name of letters, digits and hyphens.
    pub algorithm: String,
    /// How many.
    pub uses: u64,
    /// After how many, at all servers together, it is to be replaced; `None` if after no number.
    pub limit: Option<u64>,
}

impl SymmetricUses {
    fn of(value: &str) -> Option<Self> {
        let mut words = value.split(' ');
        let (id, algorithm) = (number(words.next()?)?, words.next()?.to_owned());
        let (uses, limit) = (number(words.next()?)?, words.next()?);
        let limit = if limit == "-" { None } else { Some(number(limit)?) };
        let is_name = (1..=ALGORITHM_SIZE_MAX).contains(&algorithm.len())
            && algorithm.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'-');
        (is_name && words.next().is_none()).then_some(SymmetricUses { id, algorithm, uses, limit })
    }

    fn value(&self) -> String {
        let SymmetricUses { id, algorithm, uses, limit } = self;
        let limit = limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
        format!("{id} {algorithm} {uses} {limit}")
    }
}

/// Requests under one key since its node started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Count {
    /// The key.
    pub id: u32,
    /// How many requests with a cookie or ANTP's state under it were given time.
    pub requests: u64,
    /// Of these, how many in the last minute.
    pub last_minute: u64,
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acknowledgement {
    /// Of which fleet.
    pub fleet: Name,
    /// Who.
    pub node: Name,
    /// When, in Unix seconds of its clock: for people, never for a rule.
    pub time: u64,
    /// The document that lies on its disk and is in force.
    pub document: Option<(Order, Digest)>,
    /// From which first keys that descends.
    pub lineage: Option<Lineage>,
    /// Since when it has the document, in Unix seconds of its clock: for people, too.
    pub since: Option<u64>,
    /// The claim that it keeps.
    pub claim: Option<Claim>,
    /// What a first document has to be sealed with for it, if it has none.
    pub nonce: Option<Nonce>,
    /// Whether it has found that another host uses its name.
    pub is_doubled: bool,
    /// The key that it seals with.
    pub seals: Option<u32>,
    /// The keys that it opens with.
    pub opens: Vec<u32>,
    /// What it does not open, though its document says nothing of that.
    pub dropped: Vec<u32>,
    /// Requests by key.
    pub counts: Vec<Count>,
    /// Uses of symmetric keys, which clients share with all nodes.
    pub symmetric: Vec<SymmetricUses>,
}

impl Acknowledgement {
    /// The text.
    #[must_use]
    pub fn emit(&self) -> String {
        let Acknowledgement { fleet, node, time, document, claim, nonce, seals, opens, dropped, .. } = self;
        let Acknowledgement { is_doubled, lineage, since, counts, symmetric, .. } = self;
        let mut text = format!("{MAGIC}\nfleet {fleet}\nnode {node}\ntime {time}\n");
        let mut line = |word: &str, value: String| {
            writeln!(text, "{word} {value}").expect("writing to a string cannot fail");
        };
        if let Some((Order { term, version, writer }, digest)) = document {
            line("document", format!("{term} {version} {writer} {}", digits(digest)));
        }
        if let Some(lineage) = lineage {
            line("lineage", digits(lineage));
        }
        if let Some(since) = since {
            line("since", since.to_string());
        }
        if let Some(claim) = claim {
            line("claim", claim.value());
        }
        if let Some(nonce) = nonce {
            line("nonce", digits(nonce));
        }
        if *is_doubled {
            line("doubled", "yes".to_owned());
        }
        seals.iter().for_each(|id| line("seals", format!("{id:08x}")));
        opens.iter().for_each(|id| line("opens", format!("{id:08x}")));
        dropped.iter().for_each(|id| line("dropped", format!("{id:08x}")));
        counts.iter().for_each(|count| {
            line("requests", format!("{:08x} {} {}", count.id, count.requests, count.last_minute));
        });
        symmetric.iter().for_each(|uses| line("symmetric", uses.value()));
        text
    }

    /// What the node `node` of `fleet` says of itself in a text.
    ///
    /// # Errors
    /// If it says nothing, or is of another node or fleet.
    pub fn parse(text: &str, fleet: &Name, node: &Name) -> Result<Self, TextError> {
        let head = ["fleet", "node", "time", "document", "claim", "nonce", "seals", "opens"];
        let words =
            [&head[..], &["lineage", "since", "doubled", "dropped", "requests", "symmetric"]].concat();
        let lines = Lines::parse(text, MAGIC, &words, None)?;
        lines.one("fleet", |name| (name == fleet.as_str()).then_some(()))?;
        lines.one("node", |name| (name == node.as_str()).then_some(()))?;
        let document = |value: &str| {
            let mut words = value.split(' ');
            let mut word = || words.next();
            let (term, version) = (number(word()?)?, number(word()?)?);
            let (writer, digest) = (Name::new(word()?)?, octets(word()?)?);
            words.next().is_none().then_some((Order { term, version, writer }, digest))
        };
        let count = |value: &str| {
            let (id, numbers) = value.split_once(' ')?;
            let (requests, last_minute) = numbers.split_once(' ')?;
            Some(Count {
                id: identifier(id)?,
                requests: number(requests)?,
                last_minute: number(last_minute)?,
            })
        };
        Ok(Acknowledgement {
            fleet: fleet.clone(),
            node: node.clone(),
            time: lines.one("time", number)?,
            document: lines.optional("document", document)?,
            lineage: lines.optional("lineage", octets)?,
            since: lines.optional("since", number)?,
            claim: lines.optional("claim", Claim::of)?,
            nonce: lines.optional("nonce", octets)?,
            is_doubled: lines.optional("doubled", |value| (value == "yes").then_some(()))?.is_some(),
            seals: lines.optional("seals", identifier)?,
            opens: lines.all("opens", IDENTIFIER_COUNT_MAX, identifier)?,
            dropped: lines.all("dropped", REVOKED_COUNT_MAX, identifier)?,
            counts: lines.all("requests", IDENTIFIER_COUNT_MAX, count)?,
            symmetric: lines.all("symmetric", SYMMETRIC_COUNT_MAX, SymmetricUses::of)?,
        })
    }
}

/// What a node that keeps a claim answers to its taker: the document that it had then, and has until the taker writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Answer<K> {
    /// Who.
    pub node: Name,
    /// To which claim.
    pub claim: Claim,
    /// What it has.
    pub document: Option<Document<K>>,
    /// What it does not open, though its document says nothing of that.
    pub dropped: Vec<u32>,
}

impl<K: Keys> Answer<K> {
    /// The text.
    #[must_use]
    pub fn emit(&self, fleet: &Name) -> Zeroizing<String> {
        let (node, claim) = (&self.node, self.claim.value());
        let head = format!("{ANSWER_MAGIC}\nfleet {fleet}\nnode {node}\nclaim {claim}\n");
        with_document(&head, &self.dropped, self.document.as_ref())
    }

    /// What the node `node` of `fleet` answers in a text.
    ///
    /// # Errors
    /// If it answers nothing, or is of another node or fleet.
    pub fn parse(text: &str, fleet: &Name, node: &Name) -> Result<Self, TextError> {
        let words = ["fleet", "node", "claim", "dropped"];
        let lines = Lines::parse(text, ANSWER_MAGIC, &words, Some("document"))?;
        lines.one("fleet", |name| (name == fleet.as_str()).then_some(()))?;
        lines.one("node", |name| (name == node.as_str()).then_some(()))?;
        Ok(Answer {
            node: node.clone(),
            claim: lines.one("claim", Claim::of)?,
            document: lines.rest().map(Document::parse).transpose()?,
            dropped: lines.all("dropped", REVOKED_COUNT_MAX, identifier)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Name {
        Name::new(name).unwrap()
    }

    #[test]
    fn uses_of_symmetric_keys_are_read_back_and_what_is_no_such_line_is_refused() {
        let head = "authentick-fleet-node 1\nfleet fleet\nnode a\ntime 1\n";
        let read =
            |lines: &str| Acknowledgement::parse(&format!("{head}{lines}"), &name("fleet"), &name("a"));
        let lines =
            "symmetric 4294967295 HMAC-MD5 18446744073709551615 281474976710656\nsymmetric 1 SHA1 0 -\n";
        let said = read(lines).unwrap();
        assert_eq!(said.emit(), format!("{head}{lines}"));
        let [first, second] = &said.symmetric[..] else { panic!("{said:?}") };
        assert_eq!((first.id, &*first.algorithm, first.uses), (u32::MAX, "HMAC-MD5", u64::MAX));
        assert_eq!((first.limit, second.limit), (Some(1 << 48), None));
        let long = format!("1 {} 2 -", "x".repeat(33));
        for bad in
            ["", "1", "1 SHA1", "1 SHA1 2", "1 SHA1 2 - -", "01 SHA1 2 -", "1  2 -", "1 a\u{1b}b 2 -", &long]
        {
            assert_eq!(read(&format!("symmetric {bad}\n")), Err(TextError::Value("symmetric")), "{bad:?}");
        }
        let many = |count: usize| read(&"symmetric 1 SHA1 0 -\n".repeat(count)).is_ok();
        assert!(many(SYMMETRIC_COUNT_MAX) && !many(SYMMETRIC_COUNT_MAX + 1));
    }
}
