//! Network Time Security. RFC 8915: TLS as an ideal channel, AEAD and cookies in earnest.

use authentick_crypto::{Algorithm, Entropy, Key, Seal, TAG_SIZE, run_batch};
use authentick_proto::client::{Check, Exchange, NtsSession, Sample};
use authentick_proto::cookie::{SessionKeys, open_job};
use authentick_proto::limits::REQUEST_SIZE_MAX;
use authentick_sim::Server;
use authentick_wire::Writer;
use authentick_wire::extension::{self, FieldType};
use authentick_wire::header::Header;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::nts::{NtsFields, emit_authenticator};
use authentick_wire::packet::Packet;
use authentick_wire::time::{NtpSpan, NtpTime};

use super::{Client, Family, Heard, Protocol, Secret, drawn, end_of, within};
use crate::model::Party;

const ALGORITHM: Algorithm = Algorithm::SivCmac256;

/// NTS.
#[derive(Clone, Copy, Debug)]
pub struct Nts {
    /// The longest round trip that clients believe.
    pub bound: Option<NtpSpan>,
}

/// The cookie in a request.
fn cookie_of(request: &[u8]) -> Option<&[u8]> {
    let fields = NtsFields::locate(&Packet::parse(request).ok()?).ok()?;
    Some(fields.cookie?.of(request))
}

impl Protocol for Nts {
    fn name(&self) -> &'static str {
        if self.bound.is_some() { "nts-e" } else { "nts" }
    }

    fn says(&self) -> &'static str {
        "Network Time Security with AEAD_AES_SIV_CMAC_256; the key exchange is ideal"
    }

    fn family(&self) -> Family {
        Family::Nts
    }

    fn bound(&self) -> Option<NtpSpan> {
        self.bound
    }

    fn looks_at_dates(&self) -> bool {
        true
    }

    fn server(&self, party: Party, seed: u64) -> Server {
        Server::new(drawn(seed, &format!("server {}", party.0)).u64())
    }

    fn client(&self, _: Party, server: &mut Server, _: u64) -> Box<dyn Client> {
        Box::new(NtsClient { bound: self.bound, session: server.exchange_keys(ALGORITHM), waiting: None })
    }

    fn covered<'m>(&self, message: &'m [u8]) -> &'m [u8] {
        &message[..end_of(message, |field| field.kind == FieldType::NTS_AUTHENTICATOR)]
    }

    fn forge(&self, secret: Option<&Secret>, request: &[u8], header: &Header) -> Option<Vec<u8>> {
        const ROOM: &str = "a datagram has room for a response";
        let fields = NtsFields::locate(&Packet::parse(request).ok()?).ok()?;
        let identifier = fields.identifier?.of(request);
        let own = own_keys();
        let keys = match secret {
            Some(Secret::Nts(keys)) => keys,
            _ => &own,
        };
        let mut message = vec![0; DATAGRAM_SIZE_MAX];
        let mut writer = Writer::new(&mut message);
        header.put(&mut writer).expect(ROOM);
        extension::emit(&mut writer, FieldType::UNIQUE_IDENTIFIER, identifier).expect(ROOM);
        let start = writer.offset();
        let nonce = [7; 16];
        let (_, sealed) = emit_authenticator(&mut writer, &nonce, TAG_SIZE, 0).expect(ROOM);
        let size = writer.offset();
        message.truncate(size);
        let (before, rest) = message.split_at_mut(sealed.start());
        let (text, tag) = ALGORITHM.split_sealed(&mut rest[..sealed.size()])?;
        let associated = Some(&before[..start]);
        let job = Seal { key: keys.s2c(), nonce: &nonce, associated, text: text.into(), tag };
        run_batch(std::iter::once(job));
        Some(message)
    }

    /// Nothing: TLS 1.3 has forward secrecy. With the certificate's key the adversary can exchange keys in the server's
    /// name, from then on.
    fn corrupt(&self, _: &Server, _: &[Vec<u8>]) -> Option<Secret> {
        None
    }

    fn state_key_ids(&self, server: &Server) -> Vec<u32> {
        server.cookie_keys.as_ref().map_or(vec![], |keys| keys.keys().map(|(_, key)| key.id()).collect())
    }

    fn state_key_of(&self, request: &[u8]) -> Option<u32> {
        cookie_of(request)?.first_chunk().map(|id| u32::from_be_bytes(*id))
    }

    fn open_state(&self, server: &Server, request: &[u8]) -> Option<Secret> {
        let (mut keys, mut genuine) = (own_keys(), false);
        let sealing = server.cookie_keys.as_ref()?;
        run_batch(open_job(sealing, cookie_of(request)?, &mut keys, &mut genuine).into_iter());
        genuine.then_some(Secret::Nts(keys))
    }

    fn rotate(&self, server: &mut Server, now: u64) {
        server.rotate_cookie_keys(now, 1);
    }

    fn lose_state(&self, server: &mut Server, now: u64) {
        server.lose_cookie_keys(now);
    }
}

/// Keys that an adversary without any makes up.
fn own_keys() -> SessionKeys {
    let key = || Key::new(ALGORITHM, &vec![0; ALGORITHM.key_size()]).expect("the size is the algorithm's");
    SessionKeys::new(&key(), &key()).expect("both are of one algorithm")
}

#[derive(Clone, Debug)]
struct NtsClient {
    bound: Option<NtpSpan>,
    session: NtsSession,
    waiting: Option<(Exchange, NtpTime)>,
}

impl Client for NtsClient {
    fn ask(&mut self, now: NtpTime, _: u64, entropy: &mut Entropy) -> Option<Vec<u8>> {
        let mut request = vec![0; REQUEST_SIZE_MAX];
        let (exchange, size) = Exchange::nts(&mut self.session, entropy, &mut request).ok()?;
        request.truncate(size);
        self.waiting = Some((exchange, now));
        Some(request)
    }

    fn receive(&mut self, message: &[u8], now: NtpTime, _: u64) -> Heard {
        let Some((exchange, sent)) = &mut self.waiting else {
            return Heard::Rejected("nothing was asked".to_owned());
        };
        match exchange.receive(&mut message.to_vec(), Some(&mut self.session)) {
            Ok(response) => within(self.bound, Sample::new(&response.header, *sent, now)),
            // What is genuine brings its cookies, whatever else it says.
            Err(check @ (Check::Kiss(_) | Check::Clock(_) | Check::Timestamps | Check::Encrypted(_))) => {
                Heard::Spent(check.to_string())
            }
            Err(check) => Heard::Rejected(check.to_string()),
        }
    }

    fn secret(&mut self) -> Option<Secret> {
        Some(Secret::Nts(self.session.keys().clone()))
    }

    fn fork(&self) -> Box<dyn Client> {
        Box::new(self.clone())
    }
}
