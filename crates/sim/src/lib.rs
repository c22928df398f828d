//! A world in virtual time: clocks that are wrong, links that lose, and the protocol core between them.
//!
//! For tests only; nothing shipped depends on it. One seed decides everything, so a failure repeats itself: every
//! test prints its seed. Nothing here sleeps, reads a clock or opens a socket.
//!
//! - [`Clock`]: true time seen through offset, drift and noise.
//! - [`Link`]: delay, jitter, loss, duplication, damage.
//! - [`World`]: one server, any number of clients, and the datagrams on their way.
#![forbid(unsafe_code)]

mod clock;
mod link;
mod world;

pub use clock::{Clock, TrueTime};
pub use link::Link;
pub use world::{Asked, Event, Totals, World};
