//! The adversary as programs: what breaks an authentication scheme, under which conditions, and what does not.
//!
//! A program is a pure function: a seed goes in, a result comes out. There is no socket, no clock and no file here, and
//! no randomness but the seed's, so that each result can be had again. The adversary sees what is on the net and what
//! its victims do, never a key. What it attacks is the code that serves and asks in earnest (`crypto`, `wire`), not a
//! copy made to be broken.
//!
//! - [`model`]: parties, sessions and clocks, and the queries with which an adversary drives them.
//! - [`protocol`]: what is played: plain NTP, MACs, NTS and ANTP, in the code of client and server.
//! - [`strategy`]: what adversaries do, each a few lines, and what is to come of it.
//! - [`referee`]: who has won.
//! - [`schedule`]: adversaries without a plan, one of which tries everything up to a depth.
//! - [`trace`]: a game in words and as a sequence diagram.
//! - [`report`]: all of it on one page.
//! - [`mac`]: message authentication codes, by the drafts that led to RFC 8573.
//! - [`algebra`]: roots of polynomials over the two fields in which GMAC and Poly1305 compute.
//! - [`verdict`]: what came of an attempt.
#![forbid(unsafe_code)]

pub mod algebra;
pub mod mac;
pub mod model;
pub mod protocol;
pub mod referee;
pub mod report;
pub mod schedule;
pub mod strategy;
pub mod trace;
pub mod verdict;
