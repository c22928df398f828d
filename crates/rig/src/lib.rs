//! What measurements and tests run on: hosts, paths between them, processes, certificates.
//!
//! The line exists so that a study, which is shipped, and the tests share one rig: nothing here panics or prints, looks
//! at arguments or environment, or knows how a command ends. An [`Error`] says by whose fault it is.
//!
//! - [`hosts`]: network namespaces joined by cables, in a star.
//! - [`link`](mod@link): what a link does to a packet; [`path`]: such links between two hosts.
//! - [`echo`]: what an exchange takes between hosts; [`rounds`]: the round trips of what passes a path.
//! - [`relay`]: stands between UDP clients and a server, with a delay or with somebody in the middle; needs no rights.
//! - [`quota`]: control groups, and a share of a processor for a process.
//! - [`process`]: processes that end with their value, and what they have written; [`processors`]: where they run.
//! - [`resolver`]: a resolver of one name, and processes that ask it.
//! - [`peers`]: time servers of others, and memcached, if they are here; [`sandbox`]: where they cannot set clocks.
//! - [`certificates`]: an authority, and what it signs.
//! - [`threads`]: threads that end with a value.
//! - [`pair`]: a host and a processor each for a server and for its load.
#![forbid(unsafe_code)]

pub mod certificates;
pub mod echo;
mod error;
pub mod hosts;
pub mod link;
pub mod pair;
pub mod path;
pub mod peers;
pub mod process;
pub mod processors;
pub mod quota;
pub mod relay;
pub mod resolver;
pub mod rounds;
pub mod sandbox;
pub mod threads;

pub use error::Error;
