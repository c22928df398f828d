//! Symmetric keys in files that chrony and ntpd read too.
//!
//! ```text
//! # authentick: key 30 made 2026-08-22T12:00:00Z replaced-by 31 retires 2026-09-21T12:00:00Z
//! 30 AES128 HEX:<32 hexadecimal digits>
//! # authentick: key 31 made 2026-08-22T12:00:00Z
//! 31 AES128 HEX:<32 hexadecimal digits>
//! ```
//!
//! A line is a key: its id, its type, the key. What these programs have no place for is in notes, which are comments to
//! them. [`text`] reads, [`edit`] changes, [`mod@file`] keeps, [`uses`] counts, [`shown`] shows; none of them prints a
//! secret, and no message repeats a word of the file that might be one.
//!
//! Deliberately absent: which key is used for what. The reader of the file decides that.

pub mod edit;
mod entry;
pub mod file;
pub(crate) mod keeper;
mod keys;
pub mod notes;
mod secret;
pub mod shown;
pub mod text;
pub mod types;
pub mod uses;

pub use file::{KeyFile, KeyFileError};
pub use keys::{Dialect, Foreign, Key, Keys, Mistake, Standing, Warning};
