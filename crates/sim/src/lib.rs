//! A world in virtual time: clocks that are wrong, links that lose, and the protocol core between them.
//!
//! One seed decides everything, so a history repeats itself: who runs one says its seed. Nothing here sleeps, reads a
//! clock or opens a socket. It ships, as the game plays in it and load runs replay in it; the tests of `proto`
//! use the same.
//!
//! - [`Clock`]: true time seen through offset and drift.
//! - [`Link`]: delay, jitter, loss, duplication, damage.
//! - [`Server`]: the responder and all that it takes as arguments, for every scheme. It needs no world around it.
//! - [`World`]: a server, any number of clients under any [`Scheme`], and the datagrams on their way.
//! - [`antp`]: the identities that all servers of this world have, and clients that stand beside a server.
#![forbid(unsafe_code)]

pub mod antp;
mod client;
mod clock;
mod link;
mod server;
mod world;

pub use client::Scheme;
pub use clock::{Clock, TrueTime};
pub use link::Link;
pub use server::{Answer, AntpServer, Arrival, Server};
pub use world::{Asked, Event, Totals, World};
