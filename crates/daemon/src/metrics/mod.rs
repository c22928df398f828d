//! What an operator can see: a counter per outcome, the state of clock, keys and certificate, and timed requests.

pub mod counters;
mod exporter;
pub mod spans;

pub(crate) use exporter::{Exporter, READER_COUNT_MAX};
