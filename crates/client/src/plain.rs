//! NTP without authentication. RFC 5905.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_net::addresses::Addresses;
use authentick_proto::client::Exchange;

use crate::exchange::{Asking, Unanswered};
use crate::resolve::Servers;
use crate::{Answer, Client, Error, Learnt, Measurement};

/// Asks `server` once. Answers that fail a check are ignored, as anyone can send them; if none passes before `timeout`,
/// the error says which checks failed.
///
/// # Errors
/// Why there is no answer.
pub fn ask(server: SocketAddr, entropy: &mut Entropy, timeout: Duration) -> Result<Measurement, Unanswered> {
    let mut asking = Asking::begin(server)?;
    let (exchange, size) = Exchange::plain(entropy, &mut asking.buffer);
    asking.conclude(exchange, size, timeout, |exchange, datagram| exchange.receive(datagram, None))
}

/// A client without authentication.
#[derive(Debug)]
pub struct Plain {
    servers: Servers,
    timeout: Duration,
    learnt: Learnt,
}

impl Plain {
    /// A client of the server at one of `addresses` that waits for each answer for `timeout`.
    #[must_use]
    pub fn new(addresses: impl Into<Addresses>, timeout: Duration) -> Self {
        Plain { servers: addresses.into().into(), timeout, learnt: Learnt::default() }
    }
}

impl Client for Plain {
    fn ask(&mut self, entropy: &mut Entropy) -> Result<Answer, Error> {
        self.servers.ask(&mut self.learnt, |_, server| {
            let measured = ask(server, entropy, self.timeout);
            measured.map(Answer::from).map_err(|unanswered| unanswered.of(server))
        })
    }

    fn learnt(&mut self) -> &mut Learnt {
        &mut self.learnt
    }
}
