//! The serving node: configuration, workers, key exchange, key files, metrics.
//!
//! One crate composes what the others provide. Files, locks and shared state are here and in none below.
#![forbid(unsafe_code)]

mod addresses;
mod advertised;
mod allowance;
mod antp;
mod background;
mod bind;
pub mod causes;
mod certificates;
pub mod clock;
pub mod config;
pub mod containment;
pub mod fleet;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod guarded;
pub mod hand_over;
mod health;
mod heartbeat;
mod identity;
mod key_uses;
pub mod keystore;
mod layout;
mod leap;
pub mod lock;
pub mod log_queue;
pub mod manager;
pub mod metrics;
pub mod names;
pub mod node;
mod policy;
mod preflight;
mod reference;
mod renewal;
mod retired;
mod rotation;
mod rotator;
pub mod send_buffer;
mod shared;
mod supervisor;
pub mod symmetric;
mod validity;
mod warnings;
mod watch;
mod worker;

pub use authentick_net::{custody, replace};
pub use config::{Config, ConfigError};
pub use node::{Running, StartError};
