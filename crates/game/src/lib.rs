//! The adversary as programs: what breaks an authentication scheme, under which conditions, and what does not.
//!
//! A program is a pure function: a seed goes in, a result comes out. There is no socket, no clock and no file here, and
//! no randomness but the seed's, so that each result can be had again. The adversary sees what is on the net and what
//! its victims do, never a key. What it attacks is the code that serves and asks in earnest (`crypto`, `wire`), not a
//! copy made to be broken.
//!
//! - [`mac`]: message authentication codes, by the drafts that led to RFC 8573.
//! - [`algebra`]: roots of polynomials over the two fields in which GMAC and Poly1305 compute.
//! - [`verdict`]: what came of an attempt.
#![forbid(unsafe_code)]

pub mod algebra;
pub mod mac;
pub mod verdict;
