//! What the rules ask of a key set.

use std::fmt;

use authentick_proto::generations::Role;
use zeroize::Zeroizing;

/// A set of keys that take turns: see [`authentick_proto::generations`].
pub trait Keys: Clone + fmt::Debug {
    /// What new keys are made of: a time and random octets.
    type Source;

    /// Each key's role and identifier: the current one, the future one, then the retired ones, the youngest first.
    fn identifiers(&self) -> Vec<(Role, u32)>;

    /// All identifiers under which `other` has another key than this set.
    fn clashes(&self, other: &Self) -> Vec<u32>;

    /// The set after one rotation, with at most `keep` retired keys.
    #[must_use]
    fn rotated(&self, keep: usize, source: &mut Self::Source) -> Self;

    /// The set with a new future key, whose identifier is the next after that of the one it replaces.
    #[must_use]
    fn with_new_future(&self, source: &mut Self::Source) -> Self;

    /// The set without the retired key `id`; the same set if there is none.
    #[must_use]
    fn without(&self, id: u32) -> Self;

    /// The text that [`Keys::parse`] reads; equal sets have equal texts.
    fn emit(&self) -> Zeroizing<String>;

    /// The set that a text describes; `None` if it does not.
    fn parse(text: &str) -> Option<Self>;
}
