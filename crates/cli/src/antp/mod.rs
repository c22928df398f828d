//! A client of ANTP around the protocol's own state machines: sockets, trust in certificates, and what is kept on disk.
//!
//! - [`phases`]: negotiation, key exchange and time over UDP, each asked for again until its time is up.
//! - [`trust`]: when a certificate chain is believed, and what is said where that is less than usual.
//! - [`ocsp`]: the time by the authorities, who say whether a chain is good now.
//! - [`tentative`]: the time by several servers, for who has none to judge certificates by.
//! - [`store`]: the chain of each server, which servers have spoken ANTP, and the last time that one vouched for.
//!
//! What is absent: plain answers. Nothing here leads from a request of ANTP to an answer without its tag.

pub(crate) mod ocsp;
pub(crate) mod phases;
mod steps;
pub(crate) mod store;
pub(crate) mod tentative;
pub(crate) mod trust;
