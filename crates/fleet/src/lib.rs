//! A fleet: servers that share keys, and lose no client when these change.
//!
//! One node of a fleet writes *documents*, which are key sets with an order; all others take them from a store between
//! them, put them on their disks, use them, and *acknowledge* them. The store is trusted with delivery only: it may
//! lose, delay, repeat or invent. What nodes say is sealed under a key that they share, so what anybody else wrote is
//! told from it; what they said before is not, and the rules allow for it.
//!
//! - [`Node`]: the rules, as a state that hears what others said and says what to put on the disk.
//! - [`Document`], [`Claim`], [`Acknowledgement`], [`Answer`]: what is said, as texts.
//! - [`Kept`]: what a node has on its disk.
//! - [`Asker`], [`Found`]: how a node reads what lies in a store, and what it puts there.
//! - [`DoubleDetector`]: how a node finds out that another host uses its name.
//! - [`seal`]: how it is sealed, and under which names it lies in the store.
//! - [`memcached`]: the protocol of a store that everybody can run.
//! - [`Keys`]: what a key set has to offer, so that cookie keys and ANTP's state keys follow the same rules.
//!
//! Nothing here opens a socket or a file, reads a clock or draws at random by itself: the daemon drives it, and the
//! tests run the same code through every order of events that a small fleet can meet.
#![forbid(unsafe_code)]

mod acknowledgement;
mod claim;
mod document;
mod double;
mod found;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod kept;
mod keys;
pub mod memcached;
#[cfg(test)]
mod model;
mod name;
mod rules;
pub mod seal;
mod text;
#[cfg(any(test, feature = "fuzzing"))]
mod toy;

pub use acknowledgement::{Acknowledgement, Answer, Count, SYMMETRIC_COUNT_MAX, SymmetricUses};
pub use claim::{Claim, NONCE_SIZE, Nonce};
pub use document::{Digest, Document, LINEAGE_SIZE, Lineage, Order, REVOKED_COUNT_MAX};
pub use double::{DOUBLE_QUIET, DoubleDetector};
pub use found::{Asker, Found, Said};
pub use kept::Kept;
pub use keys::Keys;
pub use name::{Name, list};
pub use rules::{Clash, Heard, Leave, Node, Origin, Refusal, Rotation, Rule, Start, Use, Why};
pub use text::{TEXT_SIZE_MAX, TextError};
