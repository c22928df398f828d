//! Recorded runs to text, CSV and a self-contained HTML page with charts.
//!
//! A [`RunRecord`] holds what a run of the demo measured and on what, as raw values. [`summary`] draws figures from it;
//! [`table::text`], [`table::csv`] and [`html::page`] render them. A [`load::LoadRecord`] holds a load run, and
//! [`load::text`], [`load::csv`], [`load::html`] and [`load::compare`] render it; a [`mac::MacRecord`] holds a bench of
//! MACs, with renderers beside it. [`published`] holds what papers say, and [`study`] puts it beside what was measured
//! here; [`plan`] extrapolates. The crate is pure: it opens no socket, reads no clock and no file, so a run from years
//! ago renders to the same octets on any host.
//!
//! Strings in a record are whatever the file said. They become neither markup in the page nor control characters in
//! the text table; the CSV quotes them and keeps them as they are.
#![forbid(unsafe_code)]

mod chart;
mod columns;
mod dots;
pub mod html;
pub mod load;
pub mod mac;
mod page;
pub mod plan;
mod plot;
pub mod published;
pub mod run;
mod sections;
pub mod stats;
pub mod stored;
pub mod study;
pub mod summary;
pub mod table;
pub mod units;

pub use run::{AntpPhases, Exchange, Failure, Format, Host, KeyExchange, RunError, RunRecord, SchemeRun};
pub use summary::{Added, SchemeSummary, Times, summarise};
