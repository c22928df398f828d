//! Proof that a request comes from whom it should: what both sides of each scheme share.

pub mod nts;
