//! Recorded runs to text, CSV and a self-contained HTML page with charts.
//!
//! A [`RunRecord`] holds what a run of the demo measured and on what, as raw values, a [`load::LoadRecord`] a load run,
//! a [`mac::MacRecord`] a bench of MACs, a [`study::antp::AntpRecord`] a study of ANTP; each is [`stored::Stored`], and
//! [`Record`] is any of them. Beside each is a function that makes its [`Report`]: sections, which [`render`] shows as
//! text and as a page. [`published`] holds what papers say, and [`study`] puts it beside what was measured here;
//! [`pool`] extrapolates. The crate is pure: it opens no socket, reads no clock and no file, so a run from years ago
//! renders to the same octets on any host.
//!
//! Strings in a record are whatever the file said. They become neither markup in the page nor control characters in
//! the text table; the CSV quotes them and keeps them as they are.
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod load;
pub mod mac;
pub mod pool;
pub mod published;
pub mod record;
pub mod render;
pub mod run;
pub mod stats;
pub mod stored;
pub mod study;
pub mod units;

pub use record::Record;
pub use render::{Composition, Joined, Report, Section};
pub use run::{AntpPhases, Exchange, Failure, Host, KeyExchange, RunRecord, SchemeRun};
