//! ANTP in a serving node: its identities, its state keys, and the threads that do its public-key work.

mod exchanges;
mod identity;
mod state;
mod worker;

pub(crate) use identity::{Loaded, digest, files, load};
pub(crate) use state::{AntpState, AntpView};
pub(crate) use worker::ExchangeWorker;
