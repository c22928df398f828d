//! The addresses of a host, as a client tries them.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_net::addresses::{self, Addresses};

use crate::error::{Error, Fault, Place, Why};
use crate::measurement::Learnt;

/// The port of NTP. RFC 5905 section 16.
pub const NTP_PORT: u16 = 123;

/// The addresses of `host` with this port, at least one, looked up within `timeout`.
///
/// # Errors
/// If the system finds none in time.
pub fn resolve(host: &str, port: u16, timeout: Duration) -> Result<Addresses, Error> {
    addresses::resolve(host, port, timeout)
        .map_err(|error| Error::new(Place::Host(host.to_owned()), Why::Unresolved(error)))
}

/// The result at the first of `addresses` that responds: while an attempt fails in silence, the next address has its
/// turn.
///
/// # Errors
/// That of the address that responded, if its response was not good; else those of all, in one.
pub fn first_response<T>(
    addresses: &Addresses,
    mut attempt: impl FnMut(SocketAddr) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut errors = Vec::new();
    for address in addresses.all() {
        match attempt(address) {
            Err(error) if error.fault() == Fault::Silent => errors.push(error),
            ended => return ended,
        }
    }
    Err(match errors.len() {
        1 => errors.remove(0),
        _ => Error::new(Place::Store, Why::NoneResponded(errors)),
    })
}

/// The addresses of a server, until one of them has responded: from then on that one.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    addresses: Addresses,
    chosen: Option<SocketAddr>,
}

impl From<Addresses> for Servers {
    fn from(addresses: Addresses) -> Self {
        Servers { addresses, chosen: None }
    }
}

impl Servers {
    /// The address that has responded, and is asked from now on.
    pub(crate) const fn chosen(&self) -> Option<SocketAddr> {
        self.chosen
    }

    /// Asks the address that was chosen, or looks for one as [`first_response`] does; `learnt` gets each that is tried.
    pub(crate) fn ask<T>(
        &mut self,
        learnt: &mut Learnt,
        mut attempt: impl FnMut(&mut Learnt, SocketAddr) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(server) = self.chosen {
            return attempt(learnt, server);
        }
        first_response(&self.addresses, |server| {
            learnt.address = Some(server);
            let ended = attempt(learnt, server)?;
            self.chosen = Some(server);
            Ok(ended)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unanswered;

    #[test]
    fn silent_address_is_followed_by_the_next() {
        let silence = |address| Unanswered::Silence { hint: None }.of(address);
        let addresses = || resolve("localhost", 1, Duration::from_secs(20)).unwrap();
        let mut asked = Vec::new();
        let error = first_response::<()>(&addresses(), |address| {
            asked.push(address);
            Err(silence(address))
        });
        let error = error.unwrap_err();
        assert_eq!((asked, error.fault()), (addresses().all().collect(), Fault::Silent));
        let refused = first_response::<()>(&addresses(), |address| Err(Unanswered::NoCookie.of(address)));
        assert_eq!(refused.unwrap_err().fault(), Fault::Host);
    }
}
