//! ANTP/1: negotiation, key exchange and time, as in `docs/antp.md`.

use authentick_crypto::Entropy;
use authentick_proto::antp::client::{Bounds, Check, SeparateTag, Wanted};
use authentick_proto::antp::server::Settings;
use authentick_proto::antp::state::Established;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::antp::{kem, seconds, transcript};
use authentick_sim::Server;
use authentick_sim::antp::{AntpClient, Heard as Said, published_service, vector, vector_name};
use authentick_wire::Writer;
use authentick_wire::antp::{Antp as Fields, KeyRequest, Message, Suite, TAG_SIZE, TimeResponse};
use authentick_wire::header::Header;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::packet::Packet;
use authentick_wire::time::{NtpSpan, NtpTime};

use super::{Client, Family, Heard, Part, Protocol, Secret, drawn, part_of};
use crate::model::{Party, SERVER, START};

/// What clients offer to the server that they mean, the best first; and what it has.
const SUITES: [Suite; 2] = [Suite::P256, Suite::RSA_OAEP];
/// What the other server has.
const OTHER_SUITES: [Suite; 1] = [Suite::X25519];

/// ANTP. E is [`super::E`] in either mode: the profile has no client without it.
#[derive(Clone, Copy, Debug)]
pub struct Antp {
    /// Whether time comes first, and the tag in a packet of its own.
    pub is_separate: bool,
}

/// The message in a packet.
fn message_in(packet: &[u8]) -> Option<Message<'_>> {
    Fields::locate(&Packet::parse(packet).ok()?).ok()?.map(|found| found.message)
}

impl Protocol for Antp {
    fn name(&self) -> &'static str {
        if self.is_separate { "antp-separate" } else { "antp" }
    }

    fn says(&self) -> &'static str {
        match self.is_separate {
            true => "ANTP/1 in separate-tag mode: the tag follows in a packet of its own",
            false => "ANTP/1 with the tag in the packet that has the time",
        }
    }

    fn family(&self) -> Family {
        if self.is_separate { Family::AntpSeparate } else { Family::Antp }
    }

    fn bound(&self) -> Option<NtpSpan> {
        Some(Bounds::WAN.round_trip_max)
    }

    fn looks_at_dates(&self) -> bool {
        true
    }

    fn server(&self, party: Party, seed: u64) -> Server {
        let suites = if party == SERVER { &SUITES[..] } else { &OTHER_SUITES };
        let service = published_service(suites, Settings::default());
        Server::new(drawn(seed, &format!("server {}", party.0)).u64()).with_antp(service)
    }

    fn client(&self, _: Party, server: &mut Server, _: u64) -> Box<dyn Client> {
        let is_first = server.antp.as_ref().is_some_and(|antp| antp.service.serves(SUITES[0]));
        let suites = if is_first { &SUITES[..] } else { &OTHER_SUITES };
        let separate = self.is_separate.then_some(SeparateTag::Ipv4);
        let wanted = Wanted { fresh: true, separate };
        Box::new(AntpClient::new(suites, wanted, Bounds::WAN))
    }

    /// Of negotiation and key exchange the message's own field: nothing rests on their headers.
    fn covered<'m>(&self, message: &'m [u8]) -> &'m [u8] {
        let found = Packet::parse(message).ok().and_then(|packet| Fields::locate(&packet).ok().flatten());
        match found {
            Some(found) => match found.message {
                Message::NegotiationRequest(_)
                | Message::NegotiationResponse(..)
                | Message::KeyRequest(_)
                | Message::KeyResponse(_) => found.field(message),
                _ => message,
            },
            None => message,
        }
    }

    fn parts(&self, message: &[u8]) -> Vec<Part> {
        let mut parts = super::parts(message);
        let inner: Vec<Option<Part>> = match message_in(message) {
            Some(Message::NegotiationResponse(response, _)) => {
                vec![
                    part_of(message, "c1", response.state),
                    part_of(message, "chain-hash", response.chain_hash),
                ]
            }
            Some(Message::KeyRequest(request)) => {
                vec![
                    part_of(message, "c1", request.state),
                    part_of(message, "ciphertext", request.ciphertext),
                ]
            }
            Some(Message::KeyResponse(response)) => {
                vec![part_of(message, "c2", response.state), part_of(message, "tag", response.tag)]
            }
            Some(Message::TimeRequest(request)) => {
                vec![part_of(message, "c2", request.state), part_of(message, "nonce", request.nonce)]
            }
            Some(Message::TimeResponse { response, .. }) => vec![part_of(message, "tag", response.tag)],
            _ => vec![],
        };
        parts.extend(inner.into_iter().flatten());
        parts
    }

    fn kind(&self, message: &[u8]) -> &'static str {
        match message_in(message) {
            Some(Message::NegotiationRequest(_)) => "m1",
            Some(Message::NegotiationResponse(..)) => "m2",
            Some(Message::KeyRequest(_)) => "m3",
            Some(Message::KeyResponse(_)) => "m4",
            Some(Message::TimeRequest(_)) => "m5",
            Some(Message::TimeResponse { .. }) => "m6",
            Some(Message::Early(_)) => "early packet",
            Some(Message::Error(_)) => "error",
            None => "plain NTP",
        }
    }

    fn asks_for_time(&self, message: &[u8]) -> bool {
        matches!(message_in(message), Some(Message::TimeRequest(_)))
    }

    fn forge(&self, secret: Option<&Secret>, request: &[u8], header: &Header) -> Option<Vec<u8>> {
        let Some(Message::TimeRequest(asked)) = message_in(request) else { return None };
        let mut message = vec![0; DATAGRAM_SIZE_MAX];
        let mut writer = Writer::new(&mut message);
        header.put(&mut writer).ok()?;
        TimeResponse { suite: asked.suite, fresh: None, tag: &[0; TAG_SIZE] }.emit(&mut writer).ok()?;
        let size = writer.offset();
        message.truncate(size);
        if let Some(Secret::Antp(key)) = secret {
            let (head, tag) = message.split_last_chunk_mut::<TAG_SIZE>()?;
            *tag = transcript::time(key, request, head);
        }
        Some(message)
    }

    /// The session key, by the private key and an m3: ANTP has no forward secrecy.
    fn corrupt(&self, _: &Server, seen: &[Vec<u8>]) -> Option<Secret> {
        seen.iter().rev().find_map(|message| {
            let Some(Message::KeyRequest(KeyRequest { suite, ciphertext, .. })) = message_in(message) else {
                return None;
            };
            let private = vector(&format!("{}.private", vector_name(suite)));
            let private = authentick_crypto::kem::PrivateKey::from_pkcs8(kem(suite)?, &private).ok()?;
            private.decapsulate(ciphertext).map(Secret::Antp)
        })
    }

    fn state_key_ids(&self, server: &Server) -> Vec<u32> {
        keys_of(server).map_or(vec![], |keys| keys.keys().map(|(_, key)| key.id()).collect())
    }

    fn state_key_of(&self, request: &[u8]) -> Option<u32> {
        let sealed: &[u8] = match message_in(request)? {
            Message::KeyRequest(request) => request.state,
            Message::TimeRequest(request) => request.state,
            _ => return None,
        };
        sealed.first_chunk().map(|id| u32::from_be_bytes(*id))
    }

    fn open_state(&self, server: &Server, request: &[u8]) -> Option<Secret> {
        let Some(Message::TimeRequest(asked)) = message_in(request) else { return None };
        // Who has the key does not mind that a C2 has expired.
        let opened = Established::open(keys_of(server)?, asked.state, seconds(START));
        opened.map(|established| Secret::Antp(established.key))
    }

    fn rotate(&self, server: &mut Server, now: u64) {
        let mut entropy = drawn(now, &format!("rotation {:?}", self.state_key_ids(server)));
        if let Some(antp) = &mut server.antp {
            antp.keys = antp.keys.rotate(now, 1, Some(&mut entropy));
        }
    }

    fn lose_state(&self, server: &mut Server, now: u64) {
        let mut entropy = drawn(now, &format!("loss {:?}", self.state_key_ids(server)));
        if let Some(antp) = &mut server.antp {
            antp.keys = StateKeys::generate(now, &mut entropy);
        }
    }
}

fn keys_of(server: &Server) -> Option<&StateKeys> {
    server.antp.as_ref().map(|antp| &antp.keys)
}

impl Client for AntpClient {
    fn ask(&mut self, now: NtpTime, second: u64, entropy: &mut Entropy) -> Option<Vec<u8>> {
        let mut request = vec![0; DATAGRAM_SIZE_MAX];
        let size = AntpClient::ask(self, second, now, entropy, &mut request);
        request.truncate(size);
        Some(request)
    }

    fn receive(&mut self, message: &[u8], now: NtpTime, second: u64) -> Heard {
        match AntpClient::receive(self, message, second, now) {
            Ok(Said::Time(accepted)) => Heard::Time(accepted.sample),
            Ok(Said::Early) => Heard::Part,
            Ok(Said::Keys) => Heard::Keys,
            Ok(Said::Asking) => Heard::Asks,
            Err(
                check @ (Check::Syntax(_)
                | Check::Mode
                | Check::Origin
                | Check::Duplicate
                | Check::Untagged
                | Check::Phase
                | Check::Suite(_)
                | Check::Choice(_)
                | Check::Tag),
            ) => Heard::Rejected(check.to_string()),
            // Rounds and complaints are counted, and what is tagged and fails has used its request up.
            Err(check) => Heard::Spent(check.to_string()),
        }
    }

    fn secret(&mut self) -> Option<Secret> {
        self.session().map(|session| Secret::Antp(session.key().clone()))
    }

    fn fork(&self) -> Box<dyn Client> {
        Box::new(self.clone())
    }
}
