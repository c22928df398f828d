//! The serving node: configuration, workers, key exchange, key files, metrics.
//!
//! One crate composes what the others provide. Files, locks and shared state are here and in none below.
#![forbid(unsafe_code)]

mod antp;
mod background;
pub mod clock;
pub mod config;
pub mod containment;
pub mod custody;
mod families;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod guarded;
pub mod keystore;
pub mod lock;
pub mod metrics;
mod preflight;
mod reference;
mod rotation;
pub mod serve;
mod shared;
mod state_directory;
mod supervisor;
pub mod symmetric;
mod turns;
mod validity;
mod watch;

pub use authentick_net::replace;
pub use config::{Config, ConfigError};
pub use serve::{Running, StartError};
