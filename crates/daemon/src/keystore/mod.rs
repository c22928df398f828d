//! Where cookie keys outlive the process.

mod file;

pub use file::{KeyFile, KeyFileError};
