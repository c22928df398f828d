//! Experiments of papers, repeated: what was published beside what was measured here, compared by shape.

pub mod antp;
pub mod mac;
pub mod plan;
pub mod request_threshold;
