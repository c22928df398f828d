//! The client's half: one exchange, and what an NTS client keeps between exchanges.

mod exchange;
mod mac;
mod sample;
mod session;

pub use exchange::{Candidate, Check, Exchange, NoCookie, Response, Unsealed};
pub use mac::{MacCandidate, Untagged};
pub use sample::Sample;
pub use session::{CookieJar, NtsSession};

#[cfg(test)]
mod tests;
