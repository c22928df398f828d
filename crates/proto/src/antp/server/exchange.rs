//! m3 and m4: public-key work, apart from the packet that asks for it.

use std::net::SocketAddr;

use authentick_crypto::Entropy;
use authentick_wire::Writer;
use authentick_wire::antp::{C1_SIZE, KeyRequest, KeyResponse, Suite, TAG_SIZE};
use authentick_wire::limits::{FIELD_HEADER_SIZE, HEADER_SIZE};

use super::{LIFETIME_SECONDS_MAX, Service};
use crate::antp::nonce::Nonces;
use crate::antp::state::{Established, Pending};
use crate::antp::state_key::StateKeys;
use crate::antp::transcript;
use crate::outcomes;

/// Octets of m4.
pub const KEY_RESPONSE_SIZE: usize = HEADER_SIZE + KeyResponse::FIELD_SIZE;
/// Octets of the longest field of m3: that of RSA.
const FIELD_SIZE_MAX: usize = KeyRequest::field_size(256);
/// Octets of the field before the ciphertext.
const CIPHERTEXT_START: usize = KeyRequest::STATE_START + C1_SIZE + 4;

const _: () = assert!(
    KEY_RESPONSE_SIZE <= HEADER_SIZE + KeyRequest::field_size(32),
    "m4 is no larger than the shortest m3, that of X25519"
);

outcomes! {
    /// What became of a key exchange that the responder has let through.
    pub enum ExchangeOutcome {
        /// m4 was made. Whether the client has the key only the client knows.
        Done = "done",
        /// Silence: the ciphertext is none, for example a point that is not on the curve.
        BadCiphertext = "bad_ciphertext",
        /// Silence: the suite is not served any more.
        NoSuite = "no_suite",
    }
}

/// An m3 whose C1 has opened, on its way to a thread that has time for it.
#[derive(Clone, Debug)]
pub struct KeyExchange {
    source: SocketAddr,
    /// That of m4.
    header: [u8; HEADER_SIZE],
    /// In NTP seconds.
    issued: u32,
    pending: Pending,
    field_size: u16,
    field: [u8; FIELD_SIZE_MAX],
}

impl KeyExchange {
    /// The exchange that `field`, the whole field of an m3, asks for. `header` is that of m4, which nothing vouches
    /// for; `issued` is when the m3 arrived, in NTP seconds.
    ///
    /// # Panics
    /// If the field is longer than that of any suite that has a KEM.
    #[must_use]
    pub fn new(
        source: SocketAddr,
        header: &[u8; HEADER_SIZE],
        issued: u32,
        pending: Pending,
        field: &[u8],
    ) -> Self {
        let mut kept = [0; FIELD_SIZE_MAX];
        kept[..field.len()].copy_from_slice(field);
        KeyExchange { source, header: *header, issued, pending, field_size: field.len() as u16, field: kept }
    }

    /// Who asked, and where m4 goes.
    #[must_use]
    pub const fn source(&self) -> SocketAddr {
        self.source
    }

    /// The suite.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.pending.suite
    }

    fn field(&self) -> &[u8] {
        &self.field[..usize::from(self.field_size)]
    }

    fn ciphertext(&self) -> Option<&[u8]> {
        self.field().get(CIPHERTEXT_START..)?.get(..self.suite().ciphertext_size()?)
    }
}

impl Service {
    /// Does the public-key work of a key exchange and writes m4. It is to be sent for [`ExchangeOutcome::Done`].
    pub fn exchange(
        &self,
        keys: &StateKeys,
        (nonces, entropy): (&mut Nonces, &mut Entropy),
        exchange: &KeyExchange,
        out: &mut [u8; KEY_RESPONSE_SIZE],
    ) -> ExchangeOutcome {
        let Some(identity) = self.identity(exchange.suite()) else { return ExchangeOutcome::NoSuite };
        let Some(key) = exchange.ciphertext().and_then(|ciphertext| identity.key.decapsulate(ciphertext))
        else {
            return ExchangeOutcome::BadCiphertext;
        };
        let (suite, issued) = (exchange.suite(), exchange.issued);
        let lifetime_seconds = self.settings.lifetime_seconds.min(LIFETIME_SECONDS_MAX);
        let expires = issued.wrapping_add(lifetime_seconds);
        let established = Established { suite, issued, expires, key };
        let state = established.seal(keys, nonces, entropy);
        let mut writer = Writer::new(out);
        let response = KeyResponse { suite, state: &state, lifetime_seconds, tag: &[0; TAG_SIZE] };
        let written = writer.put(&exchange.header).and_then(|()| response.emit(&mut writer));
        written.expect("an m4 has the size of an m4");
        let (before, tag) = out.split_last_chunk_mut::<TAG_SIZE>().expect("an m4 ends with its tag");
        let head = &before[HEADER_SIZE + FIELD_HEADER_SIZE..];
        let h2 = transcript::key_exchange(&exchange.pending.transcript, exchange.field(), head);
        *tag = transcript::confirmation(&established.key, &h2);
        ExchangeOutcome::Done
    }
}
