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
use authentick_wire::header::ReferenceId;

pub use error::{Error, Fault, Place, Why};
pub use exchange::{Failed, Unanswered};
pub use host_port::{HostPort, NoHostPort};
pub use measurement::{Answer, Bound, Learnt, Measurement, PhaseTimes, Voucher};
pub use remark::Remark;
pub use resolve::{NTP_PORT, first_response, resolve};

/// A client of one server under one scheme.
pub trait Client: Send {
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

/// The least time between two requests to a server on a network of others, and to any that has sent RATE.
pub const INTERVAL_MIN: Duration = Duration::from_secs(1);
/// The most by which kisses of RATE stretch an interval.
const SLOWDOWN_MAX: u32 = 64;

/// Asks `count` times, `interval` apart or as far apart as the server seems to want, and passes each result to `each`.
/// A kiss with RATE doubles the interval; one with DENY or RSTR ends the series, and is returned. RFC 5905 section 7.4.
pub fn spaced(
    client: &mut dyn Client,
    count: u32,
    interval: impl Fn(&Learnt) -> Duration,
    entropy: &mut Entropy,
    mut each: impl FnMut(&mut Learnt, Result<Answer, Error>),
) -> Option<ReferenceId> {
    let mut slowdown = 1;
    for index in 0..count {
        if index > 0 {
            let asked = interval(client.learnt());
            let least = if slowdown > 1 { asked.max(INTERVAL_MIN) } else { asked };
            std::thread::sleep(least * client.slowdown().max(slowdown));
        }
        let result = client.ask(entropy);
        let kiss = result.as_ref().err().and_then(Error::kiss);
        each(client.learnt(), result);
        match kiss {
            Some(ReferenceId::DENY | ReferenceId::RSTR) => return kiss,
            Some(ReferenceId::RATE) => slowdown = (slowdown * 2).min(SLOWDOWN_MAX),
            Some(_) | None => {}
        }
    }
    None
}
