//! The body of the fuzz target of this crate; `fuzz/` calls it with new octets, the tests with the kept corpus.

pub use crate::agent::fuzzing::agent_message;
