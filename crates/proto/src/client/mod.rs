//! The client's half: one exchange, and what an NTS client keeps between exchanges.

mod clock;
mod exchange;
mod kiss;
mod mac;
mod sample;
mod session;

pub use clock::Unsound;
pub(crate) use clock::check_clock;
pub use exchange::{Candidate, Check, Exchange, NoCookie, Response, Unsealed};
pub(crate) use kiss::meaning;
pub use mac::{MacCandidate, Untagged};
pub use sample::Sample;
pub use session::{CookieJar, NtsSession};

#[cfg(test)]
mod tests;
