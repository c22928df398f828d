//! Octets to typed views and back: the NTP header, RFC 7822 extension fields, NTS fields, NTS-KE records, ANTP
//! messages.
//!
//! This crate has no dependencies, allocates nothing, holds no `unsafe`, and knows neither sockets, clocks nor
//! cryptography. A view borrows the octets it was parsed from.
//!
//! # Contract
//! - Parsing never panics, whatever the octets, and reports where and why it gave up ([`Malformed`]).
//! - Once a view is built, none of its accessors panics.
//! - Emitting never panics on a buffer of the documented size and returns [`NoRoom`] on a smaller one.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod antp;
mod cursor;
pub mod datagram;
mod error;
pub mod extension;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod header;
pub mod ke;
pub mod limits;
pub mod mac;
pub mod nts;
pub mod packet;
pub mod time;

pub use cursor::{Reader, Writer};
pub use error::{Malformed, NoRoom, Reason};
