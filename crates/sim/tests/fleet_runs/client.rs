//! A client that wanders: it exchanges keys with one node, and asks any other with any of its cookies.

use std::net::SocketAddr;

use authentick_crypto::kdf::hkdf_sha256;
use authentick_crypto::{Algorithm, Entropy, Key};
use authentick_ke::session::{self, RESPONSE_SIZE_MAX, Terms};
use authentick_proto::client::{Check, Exchange, NtsSession};
use authentick_proto::cookie::SessionKeys;
use authentick_proto::keyset::KeySet;
use authentick_proto::server::outcome::Outcome;
use authentick_wire::Writer;
use authentick_wire::header::ReferenceId;
use authentick_wire::ke::{AeadId, PROTOCOL_NTPV4, Request, Response};
use authentick_wire::limits::{COOKIE_COUNT, DATAGRAM_SIZE_MAX};

use super::host::Host;
use super::keys::{KeyName, name_of};

const ALGORITHM: Algorithm = Algorithm::SivCmac256;
const AEAD: AeadId = AeadId::SIV_CMAC_256;

/// A cookie, and which key has sealed it.
#[derive(Clone, Debug)]
struct Cookie {
    octets: Vec<u8>,
    key: KeyName,
}

/// A client; see the module's documentation.
#[derive(Debug)]
pub(crate) struct Client {
    keys: Option<SessionKeys>,
    cookies: Vec<Cookie>,
    pub(crate) asleep_until: u64,
    address: SocketAddr,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// Time and cookies, or the response was lost.
    Answer,
    /// NTSN, for a cookie under this key.
    Kiss(KeyName),
    /// Silence, as the key is ahead of the server's, or it has none.
    Silence(KeyName),
}

impl Client {
    pub(crate) fn new(index: usize) -> Self {
        let address = SocketAddr::from(([198, 18, 1, index as u8], 40_000));
        Client { keys: None, cookies: Vec::new(), asleep_until: 0, address }
    }

    /// Whether it needs keys before it can ask.
    pub(crate) const fn is_stranded(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Exchanges keys with a server that has these.
    pub(crate) fn exchange_keys(&mut self, keys: &KeySet, entropy: &mut Entropy) {
        let mut request = [0; 256];
        let mut writer = Writer::new(&mut request);
        Request::emit(&mut writer, &[AEAD]).expect("there is room");
        let size = writer.offset();
        // Stands for the secret of a TLS connection.
        let secret: [u8; 32] = entropy.array();
        let export = |octets: &mut [u8], context: &[u8]| {
            octets.copy_from_slice(&hkdf_sha256::<32>(&secret, &[context])[..octets.len()]);
        };
        let mut out = [0; RESPONSE_SIZE_MAX];
        let exported = |octets: &mut [u8], context: &[u8]| {
            export(octets, context);
            Ok(())
        };
        let (_, size) =
            session::answer(&request[..size], keys, &Terms::default(), entropy, exported, |_| {}, &mut out);
        let Ok(Response::Agreed(agreement)) = Response::parse(&out[..size], &[AEAD]) else {
            panic!("a key exchange failed")
        };
        let key = |direction: u8| {
            let mut octets = vec![0; ALGORITHM.key_size()];
            let [high, low] = AEAD.0.to_be_bytes();
            let [protocol_high, protocol_low] = PROTOCOL_NTPV4.to_be_bytes();
            export(&mut octets, &[protocol_high, protocol_low, high, low, direction]);
            Key::new(ALGORITHM, &octets).expect("the size is the algorithm's")
        };
        self.keys = SessionKeys::new(&key(0), &key(1));
        let key = name_of(keys.current());
        self.cookies = agreement.cookies().map(|cookie| Cookie { octets: cookie.to_vec(), key }).collect();
        assert_eq!(self.cookies.len(), COOKIE_COUNT, "a key exchange gives eight cookies");
    }

    /// Asks a host that runs, with any of the cookies.
    ///
    /// # Panics
    /// If it is answered by something else than time, NTSN or silence, or with time that does not pass every check.
    pub(crate) fn ask(&mut self, host: &mut Host, now: u64, entropy: &mut Entropy) -> Came {
        let keys = self.keys.clone().expect("who has cookies has keys");
        let index = entropy.u64() as usize % self.cookies.len();
        let Cookie { octets, key } = self.cookies.swap_remove(index);
        let mut session = NtsSession::new(keys, None);
        assert!(session.jar.add(&octets), "an empty jar has room");
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        let (mut exchange, unsealed) =
            Exchange::nts_among(&mut session, self.cookies.len(), entropy, &mut buffer)
                .expect("there is a cookie");
        authentick_crypto::run_batch(std::iter::once(unsealed.job(&session, &mut buffer)));
        let request = buffer[..unsealed.size()].to_vec();
        let sealing = host.keys().map(|keys| name_of(keys.current()));
        let answer = host.answer(self.address, request, now).expect("it runs");
        let is_lost = entropy.u64().is_multiple_of(20);
        match answer.outcome {
            Outcome::NtsKeyAhead => {
                assert!(answer.datagrams.is_empty(), "silence is no answer");
                Came::Silence(key)
            }
            Outcome::NakUnknownKey | Outcome::NakCookie => {
                let mut datagram = answer.datagrams[0].clone();
                let kiss = exchange.receive(&mut datagram, Some(&mut session));
                assert_eq!(kiss.err(), Some(Check::Kiss(ReferenceId::NTSN)));
                Came::Kiss(key)
            }
            Outcome::Nts if is_lost => Came::Answer,
            Outcome::Nts => {
                let mut datagram = answer.datagrams[0].clone();
                let response = exchange.receive(&mut datagram, Some(&mut session));
                assert!(response.is_ok(), "{response:?}");
                let key = sealing.expect("who answers has keys");
                while let Some(octets) = session.jar.take() {
                    self.cookies.push(Cookie { octets, key });
                }
                Came::Answer
            }
            other => panic!("{other:?} is no outcome of these requests"),
        }
    }

    /// Its cookies are worth nothing.
    pub(crate) fn forget(&mut self) {
        self.cookies.clear();
    }
}
