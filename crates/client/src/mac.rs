//! NTP with a MAC under a key that both sides know. RFC 5905 section 7.3, RFC 8573.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_net::addresses::Addresses;
use authentick_proto::client::Exchange;
use authentick_proto::symmetric::SymmetricKey;

use crate::exchange::{Asking, Unanswered};
use crate::resolve::Servers;
use crate::{Answer, Client, Error, Learnt, Measurement, Voucher};

/// Asks `server` once, under `key`; otherwise as [`crate::plain::ask`].
///
/// # Errors
/// Why there is no answer.
pub fn ask(
    server: SocketAddr,
    key: &SymmetricKey,
    entropy: &mut Entropy,
    timeout: Duration,
) -> Result<Measurement, Unanswered> {
    let mut asking = Asking::begin(server)?;
    let (exchange, size) = Exchange::mac(key, entropy, &mut asking.buffer);
    asking.conclude(exchange, size, timeout, |exchange, datagram| exchange.receive_mac(datagram, key))
}

/// A client with a key.
#[derive(Debug)]
pub struct Mac {
    servers: Servers,
    key: SymmetricKey,
    timeout: Duration,
    learnt: Learnt,
}

impl Mac {
    /// A client of the server at one of `addresses`, which has `key` too, that waits for each answer for `timeout`.
    #[must_use]
    pub fn new(addresses: impl Into<Addresses>, key: SymmetricKey, timeout: Duration) -> Self {
        let voucher = Voucher::Mac { algorithm: key.algorithm(), key_id: key.id() };
        let learnt = Learnt { voucher: Some(voucher), ..Learnt::default() };
        Mac { servers: addresses.into().into(), key, timeout, learnt }
    }
}

impl Client for Mac {
    fn ask(&mut self, entropy: &mut Entropy) -> Result<Answer, Error> {
        self.servers.ask(&mut self.learnt, |_, server| {
            let measured = ask(server, &self.key, entropy, self.timeout);
            measured.map(Answer::from).map_err(|unanswered| unanswered.of(server))
        })
    }

    fn learnt(&mut self) -> &mut Learnt {
        &mut self.learnt
    }
}
