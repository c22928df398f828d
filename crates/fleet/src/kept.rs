//! What a node has on its disk, in one file, so that none of it is ever there without the rest.
//!
//! ```text
//! authentick-fleet 1
//! claim 2 ntp-2 00112233445566778899aabbccddeeff
//! dropped 5f3a0c02
//! document
//! authentick-fleet-document 1
//! ...
//! ```

use std::collections::BTreeSet;

use zeroize::Zeroizing;

use crate::claim::Claim;
use crate::document::{Document, Order, REVOKED_COUNT_MAX, with_document};
use crate::keys::Keys;
use crate::text::{Lines, TextError, identifier};

const MAGIC: &str = "authentick-fleet 1";

/// What a node keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kept<K> {
    /// The highest document that it has taken.
    pub document: Option<Document<K>>,
    /// The claim of a term that is above the document's.
    pub claim: Option<Claim>,
    /// Identifiers that an earlier document had revoked and this one does not: who wrote it had not heard of that.
    pub dropped: BTreeSet<u32>,
}

impl<K> Default for Kept<K> {
    fn default() -> Self {
        Kept { document: None, claim: None, dropped: BTreeSet::new() }
    }
}

impl<K> Kept<K> {
    /// The place of the document.
    #[must_use]
    pub fn order(&self) -> Option<&Order> {
        self.document.as_ref().map(|document| &document.order)
    }

    /// The highest term that it knows of, 0 if none.
    #[must_use]
    pub fn term(&self) -> u64 {
        let claimed = self.claim.as_ref().map_or(0, |claim| claim.term);
        claimed.max(self.order().map_or(0, |order| order.term))
    }

    /// Identifiers that must not open here: at most [`REVOKED_COUNT_MAX`].
    #[must_use]
    pub fn revoked(&self) -> BTreeSet<u32> {
        let document = self.document.iter().flat_map(|document| &document.revoked);
        self.dropped.iter().chain(document).copied().collect()
    }
}

impl<K: Keys> Kept<K> {
    /// The text.
    #[must_use]
    pub fn emit(&self) -> Zeroizing<String> {
        let claim =
            self.claim.as_ref().map_or_else(String::new, |claim| format!("claim {}\n", claim.value()));
        with_document(&format!("{MAGIC}\n{claim}"), &self.dropped, self.document.as_ref())
    }

    /// What a text keeps.
    ///
    /// # Errors
    /// If it is none of ours.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let lines = Lines::parse(text, MAGIC, &["claim", "dropped"], Some("document"))?;
        let kept = Kept {
            document: lines.rest().map(Document::parse).transpose()?,
            claim: lines.optional("claim", Claim::of)?,
            dropped: lines.all("dropped", REVOKED_COUNT_MAX, identifier)?.into_iter().collect(),
        };
        if kept.revoked().len() > REVOKED_COUNT_MAX { Err(TextError::TooMany("dropped")) } else { Ok(kept) }
    }
}
