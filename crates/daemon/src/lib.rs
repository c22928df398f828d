//! The serving node: configuration, workers, key exchange, key files, metrics.
//!
//! One crate composes what the others provide. Files, locks and shared state are here and in none below.
#![forbid(unsafe_code)]

mod antp;
pub mod config;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod keystore;
pub mod metrics;
mod reference;
mod replace;
pub mod serve;
mod shared;
mod supervisor;
pub mod symmetric;

pub use config::{Config, ConfigError};
pub use serve::{Running, StartError};
