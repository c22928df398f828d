//! Protocol clients over real sockets: [`plain`] NTP, a [`mac`] under a symmetric key, [`nts`], and [`antp`] with its
//! chain cache, its list of servers that must speak it, OCSP and tentative trust.
//!
//! Each scheme has functions for one exchange, and a [`Client`] that keeps keys and cookies from one exchange to the
//! next. `proto` and `ke` do all checks; this crate waits on sockets, retries, and says in an [`Error`] where it failed
//! and by whose fault.
//!
//! Deliberately absent: exit codes, arguments, the environment, and anything that is printed. Programs and tests that
//! ask a server share this crate, and each decides what a failure means to its user. If a client checks something less
//! strictly than usual, it reports a [`Remark`].
#![forbid(unsafe_code)]

pub mod antp;
mod error;
mod exchange;
mod host_port;
pub mod mac;
mod measurement;
pub mod nts;
pub mod plain;
mod remark;
mod resolve;
pub mod trust;

use std::time::Duration;

use authentick_crypto::Entropy;

pub use error::{Error, Fault, Place, Why};
pub use exchange::{Failed, Unanswered};
pub use host_port::{HostPort, NoHostPort};
pub use measurement::{Answer, Bound, Learnt, Measurement, PhaseTimes, Voucher};
pub use remark::Remark;
pub use resolve::{NTP_PORT, first_response, resolve};

/// A client of one server under one scheme.
pub trait Client {
    /// Asks for time once. Whatever must precede that, such as a key exchange, is done first if it is due.
    ///
    /// # Errors
    /// Where it failed, and by whose fault. The client can be asked again.
    fn ask(&mut self, entropy: &mut Entropy) -> Result<Answer, Error>;

    /// What it has learnt so far, whether the last exchange succeeded or not.
    fn learnt(&mut self) -> &mut Learnt;

    /// How many times longer than usual the server seems to want it to wait between exchanges.
    fn slowdown(&self) -> u32 {
        1
    }
}

/// Asks `count` times, `interval` apart or as far apart as the server seems to want, and passes each result to `each`.
pub fn spaced(
    client: &mut dyn Client,
    count: u32,
    interval: Duration,
    entropy: &mut Entropy,
    mut each: impl FnMut(&mut Learnt, Result<Answer, Error>),
) {
    for index in 0..count {
        if index > 0 {
            std::thread::sleep(interval * client.slowdown());
        }
        let result = client.ask(entropy);
        each(client.learnt(), result);
    }
}
