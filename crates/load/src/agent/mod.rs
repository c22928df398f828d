//! Load from several hosts at once: agents that take orders, and a coordinator that gives them in lockstep.
//!
//! Modelled on the runs with several NtpStress hosts in Spectracom's paper on the capacity of NTP servers: a start
//! common to all, sums over all, a row for each. Both sides have certificates, and an agent sends load only to targets
//! on its own list, as it would be a weapon otherwise.
//!
//! - [`Agent`]: the side that sends; its operator sets [`Allow`] and [`Limits`].
//! - [`Coordinator`]: the side that gives orders; a [`Crew`](crate::Crew) like the generator of this process.
//! - `message`, `link`: what they tell each other, over TLS 1.3.
//! - `clock`: their clocks compared, and impossible readings refused.
//! - `share`: dividing a run, and combining its parts.
//!
//! Results are only summed over all hosts: losing one ends the run.

mod bounds;
mod clock;
mod coordinator;
mod dial;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod identity;
mod limits;
mod link;
mod message;
mod pending;
mod server;
mod share;
#[cfg(test)]
pub(crate) mod tests;
mod words;

pub use self::bounds::Limits;
pub use self::coordinator::Coordinator;
pub use self::error::{CrewError, Fault};
pub use self::identity::{Identity, IdentityError};
pub use self::message::About;
pub use self::server::Agent;
pub use self::share::split;
pub use crate::allow::Allow;
