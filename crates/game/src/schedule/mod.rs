//! An adversary that is told no strategy: every schedule up to a depth, or random ones.
//!
//! What it can do is a [`Move`]: let a client ask, put any message that it has seen before the server or a client, as
//! it is or with one [`Change`], and let E or a little more pass. [`search`] makes every sequence of moves up to a
//! number, so that "no attack in so many moves" is a fact with a count of worlds behind it.

mod board;
mod change;
mod exhaustive;
mod random;

pub use self::board::{Board, Effect, Move, Start};
pub use self::change::{Change, Known};
pub use self::exhaustive::{Attack, Limits, Search, Searches, search};
pub use self::random::{Wander, wander};

#[cfg(test)]
mod tests;
