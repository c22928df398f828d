//! NTP with a symmetric-key MAC: AES-CMAC, RFC 8573.

use std::sync::Arc;

use authentick_crypto::mac::{MacAlgorithm, MacKey, Tag};
use authentick_crypto::{Entropy, run_batch};
use authentick_proto::client::{Exchange, Sample};
use authentick_proto::limits::REQUEST_SIZE_MAX;
use authentick_proto::symmetric::{Allowed, SymmetricKey, SymmetricKeys};
use authentick_sim::Server;
use authentick_wire::Writer;
use authentick_wire::header::Header;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::mac::{KEY_ID_SIZE, MacFields, digest_size, emit_trailer};
use authentick_wire::packet::Packet;
use authentick_wire::time::{NtpSpan, NtpTime};

use super::{Client, Family, Heard, Protocol, Secret, drawn, octets_of, within};
use crate::model::{OTHER_CLIENT, Party, VICTIM};

const ALGORITHM: MacAlgorithm = MacAlgorithm::Cmac128;
const KEY_SIZE: usize = 16;

/// Who has which key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Each client of a server has a key of its own.
    Pair,
    /// All clients of a server have one key.
    Group,
}

/// NTP with a MAC.
#[derive(Clone, Copy, Debug)]
pub struct Mac {
    /// Who has which key.
    pub keys: Keys,
    /// The longest round trip that clients believe.
    pub bound: Option<NtpSpan>,
}

impl Mac {
    /// The identifier of a client's key.
    const fn id_of(self, client: Party) -> u32 {
        match self.keys {
            Keys::Pair => client.0 as u32,
            Keys::Group => VICTIM.0 as u32,
        }
    }

    /// The octets of a key at a server, which draws them all from its seed.
    fn octets(server_seed: u64, id: u32) -> Vec<u8> {
        drawn(server_seed, &format!("key {id}")).array::<KEY_SIZE>().to_vec()
    }

    fn key(id: u32, octets: &[u8]) -> SymmetricKey {
        let key = MacKey::new(ALGORITHM, octets).expect("the size is the algorithm's");
        SymmetricKey::new(id, key)
    }
}

/// What all keys of a server follow from. The server that a client means has the first number.
fn server_seed(party: Party, seed: u64) -> u64 {
    drawn(seed, &format!("server {}", party.0)).u64()
}

impl Protocol for Mac {
    fn name(&self) -> &'static str {
        match (self.keys, self.bound.is_some()) {
            (Keys::Pair, false) => "mac",
            (Keys::Pair, true) => "mac-e",
            (Keys::Group, false) => "mac-group",
            (Keys::Group, true) => "mac-group-e",
        }
    }

    fn says(&self) -> &'static str {
        match self.keys {
            Keys::Pair => "NTP with AES-CMAC, a key for each client",
            Keys::Group => "NTP with AES-CMAC, one key for all clients",
        }
    }

    fn family(&self) -> Family {
        match self.keys {
            Keys::Pair => Family::PairKey,
            Keys::Group => Family::GroupKey,
        }
    }

    fn bound(&self) -> Option<NtpSpan> {
        self.bound
    }

    fn server(&self, party: Party, seed: u64) -> Server {
        let seed = server_seed(party, seed);
        let mut server = Server::new(seed);
        let mut ids = vec![self.id_of(VICTIM), self.id_of(OTHER_CLIENT)];
        ids.dedup();
        let keys = ids.into_iter().map(|id| Mac::key(id, &Mac::octets(seed, id)));
        let keys = SymmetricKeys::new(keys, Allowed::default(), 1).expect("each identifier is there once");
        server.symmetric = Some(keys);
        server
    }

    fn client(&self, party: Party, server: &mut Server, _: u64) -> Box<dyn Client> {
        let id = self.id_of(party);
        let keys = server.symmetric.as_ref().expect("the server has keys");
        let octets = keys.find(id).expect("the client has a key").key().expose().to_vec();
        let key = Arc::new(Mac::key(id, &octets));
        Box::new(MacClient { bound: self.bound, key, octets, waiting: None })
    }

    fn forge(&self, secret: Option<&Secret>, request: &[u8], header: &Header) -> Option<Vec<u8>> {
        let id = MacFields::locate(&Packet::parse(request).ok()?)?.key_id;
        let (id, octets) = match secret {
            Some(Secret::Mac { id, octets }) => (*id, octets.clone()),
            // A key of the adversary's own.
            _ => (id, vec![0; KEY_SIZE]),
        };
        let key = Mac::key(id, &octets);
        let size = digest_size(ALGORITHM.tag_size());
        let mut message = octets_of(header);
        message.resize(HEADER_SIZE + KEY_ID_SIZE + size, 0);
        let (covered, trailer) = message.split_at_mut(HEADER_SIZE);
        emit_trailer(&mut Writer::new(trailer), id, size).ok()?;
        let tag = Tag { key: key.key(), nonce: None, message: covered, tag: &mut trailer[KEY_ID_SIZE..] };
        run_batch(std::iter::once(tag));
        Some(message)
    }

    fn corrupt(&self, server: &Server, seen: &[Vec<u8>]) -> Option<Secret> {
        let id = seen.iter().rev().find_map(|message| {
            let packet = Packet::parse(message).ok()?;
            MacFields::locate(&packet).map(|fields| fields.key_id)
        })?;
        let octets = server.symmetric.as_ref()?.find(id)?.key().expose().to_vec();
        Some(Secret::Mac { id, octets })
    }
}

#[derive(Clone, Debug)]
struct MacClient {
    bound: Option<NtpSpan>,
    key: Arc<SymmetricKey>,
    octets: Vec<u8>,
    waiting: Option<(Exchange, NtpTime)>,
}

impl Client for MacClient {
    fn ask(&mut self, now: NtpTime, _: u64, entropy: &mut Entropy) -> Option<Vec<u8>> {
        let mut request = vec![0; REQUEST_SIZE_MAX];
        let (exchange, size) = Exchange::mac(&self.key, entropy, &mut request);
        request.truncate(size);
        self.waiting = Some((exchange, now));
        Some(request)
    }

    fn receive(&mut self, message: &[u8], now: NtpTime, _: u64) -> Heard {
        let Some((exchange, sent)) = &mut self.waiting else {
            return Heard::Rejected("nothing was asked".to_owned());
        };
        match exchange.receive_mac(message, &self.key) {
            Ok(response) => within(self.bound, Sample::new(&response.header, *sent, now)),
            Err(check) => Heard::Rejected(check.to_string()),
        }
    }

    fn secret(&mut self) -> Option<Secret> {
        Some(Secret::Mac { id: self.key.id(), octets: self.octets.clone() })
    }

    fn fork(&self) -> Box<dyn Client> {
        Box::new(self.clone())
    }
}
