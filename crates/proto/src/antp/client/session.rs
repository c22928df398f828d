//! Phase 2: the key exchange, and the session that it leaves.

use authentick_crypto::Entropy;
use authentick_crypto::kem::{Kem, PublicKey, SessionKey};
use authentick_wire::Writer;
use authentick_wire::antp::{C1_SIZE, C2_SIZE, HASH_SIZE, KeyRequest, KeyResponse, Message, Suite};
use authentick_wire::limits::FIELD_HEADER_SIZE;
use authentick_wire::time::NtpTime;
use thiserror::Error;

use super::{Check, inspect, put_again, put_header, token};
use crate::antp::{kem, transcript};
use crate::mutant::{Place, holds};

/// A public key of another mechanism than the suite's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the server chose {suite}, and its certificate has a key for {kem}")]
pub struct WrongKem {
    /// The suite.
    pub suite: Suite,
    /// The key's mechanism.
    pub kem: Kem,
}

/// A key exchange that waits for m4.
#[derive(Clone, Debug)]
pub struct KeyExchange {
    suite: Suite,
    token: NtpTime,
    h1: [u8; HASH_SIZE],
    field: Vec<u8>,
    key: SessionKey,
    answered: bool,
}

impl KeyExchange {
    pub(super) fn new(
        suite: Suite,
        state: &[u8; C1_SIZE],
        h1: [u8; HASH_SIZE],
        public: &PublicKey,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> Result<(Self, usize), WrongKem> {
        if kem(suite) != Some(public.kem()) {
            return Err(WrongKem { suite, kem: public.kem() });
        }
        let token = token(entropy);
        let (ciphertext, key) = public.encapsulate(entropy);
        let mut writer = Writer::new(out);
        put_header(&mut writer, token);
        let start = writer.offset();
        let request = KeyRequest { suite, state, ciphertext: &ciphertext };
        request.emit(&mut writer).expect("the buffer holds a key exchange request");
        let size = writer.offset();
        let field = out[start..size].to_vec();
        Ok((KeyExchange { suite, token, h1, field, key, answered: false }, size))
    }

    /// Writes the same m3 once more, under a fresh token: with the same C1 and ciphertext, for the same key. No client
    /// does that; it is a load that costs its generator no public-key work.
    ///
    /// # Panics
    /// If `out` is shorter than the request, at most 392 octets.
    pub fn again(&self, entropy: &mut Entropy, out: &mut [u8]) -> (Self, usize) {
        let token = token(entropy);
        let size = put_again(token, 0, &self.field, out);
        (KeyExchange { token, answered: false, ..self.clone() }, size)
    }

    /// The random number by which the request is found when its answer comes.
    #[must_use]
    pub const fn token(&self) -> NtpTime {
        self.token
    }

    /// Takes a datagram. The tag of m4 is where any change of m1 to m4 on their way shows.
    ///
    /// # Errors
    /// On a datagram that fails a check: the exchange keeps waiting.
    pub fn receive(&mut self, datagram: &[u8]) -> Result<Session, Check> {
        let (_, found) = inspect(datagram, self.token, self.answered)?;
        let response = match found.message {
            Message::KeyResponse(response) => response,
            Message::Error(error) => return Err(Check::Server(error.code)),
            _ => return Err(Check::Phase),
        };
        if !holds(Place::KeySuite, response.suite == self.suite) {
            return Err(Check::Suite(response.suite));
        }
        let head = &found.field(datagram)[FIELD_HEADER_SIZE..][..KeyResponse::HEAD_SIZE];
        let h2 = transcript::key_exchange(&self.h1, &self.field, head);
        //= antp#clients-4
        if !holds(Place::Confirmation, transcript::is_confirmed(&self.key, &h2, response.tag)) {
            return Err(Check::Tag);
        }
        self.answered = true;
        let lifetime_seconds = response.lifetime_seconds;
        let (suite, key, state) = (self.suite, self.key.clone(), *response.state);
        Ok(Session { suite, key, state, lifetime_seconds })
    }
}

/// What the client keeps of a key exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub(super) suite: Suite,
    pub(super) key: SessionKey,
    /// C2.
    pub(super) state: [u8; C2_SIZE],
    /// Seconds for which the first C2 opens, and all that follow: they keep its expiry.
    lifetime_seconds: u32,
}

impl Session {
    /// A session with known parts, from a file or a vector. It lasts `lifetime_seconds` from its key exchange on.
    #[must_use]
    pub const fn new(suite: Suite, key: SessionKey, state: [u8; C2_SIZE], lifetime_seconds: u32) -> Self {
        Session { suite, key, state, lifetime_seconds }
    }

    /// The suite.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The session key.
    #[must_use]
    pub const fn key(&self) -> &SessionKey {
        &self.key
    }

    /// For how many seconds from the key exchange on the server takes the key, by what m4 says under its tag.
    #[must_use]
    pub const fn lifetime_seconds(&self) -> u32 {
        self.lifetime_seconds
    }

    /// C2, the latest that the server gave.
    #[must_use]
    pub const fn state(&self) -> &[u8; C2_SIZE] {
        &self.state
    }
}
