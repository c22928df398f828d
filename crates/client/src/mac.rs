//! NTP with a MAC under a key that both sides know. RFC 5905 section 7.3, RFC 8573.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_proto::client::Exchange;
use authentick_proto::symmetric::SymmetricKey;

use crate::exchange::{Asking, Unanswered};
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
    server: SocketAddr,
    key: SymmetricKey,
    timeout: Duration,
    learnt: Learnt,
}

impl Mac {
    /// A client of `server`, which has `key` too, that waits for each answer for `timeout`.
    #[must_use]
    pub fn new(server: SocketAddr, key: SymmetricKey, timeout: Duration) -> Self {
        let voucher = Voucher::Mac { algorithm: key.algorithm(), key_id: key.id() };
        let learnt = Learnt { address: Some(server), voucher: Some(voucher), ..Learnt::default() };
        Mac { server, key, timeout, learnt }
    }
}

impl Client for Mac {
    fn ask(&mut self, entropy: &mut Entropy) -> Result<Answer, Error> {
        let measured = ask(self.server, &self.key, entropy, self.timeout);
        measured.map(Answer::from).map_err(|unanswered| unanswered.of(self.server))
    }

    fn learnt(&mut self) -> &mut Learnt {
        &mut self.learnt
    }
}
