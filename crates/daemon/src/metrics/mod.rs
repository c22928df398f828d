//! What an operator can see: a counter per outcome, the state of clock, keys and certificate, and timed requests.

pub mod counters;
mod endpoint;
mod page;
pub mod spans;

pub(crate) use endpoint::{Endpoint, READER_COUNT_MAX, Scope};
