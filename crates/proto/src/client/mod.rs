//! The client's half: one exchange, and what an NTS client keeps between exchanges.

mod exchange;
mod mac;
mod sample;
mod session;

pub use exchange::{Check, Exchange, NoCookie, Response};
pub use mac::{Untagged, tag_requests};
pub use sample::Sample;
pub use session::{CookieJar, NtsSession};

#[cfg(test)]
mod tests;
