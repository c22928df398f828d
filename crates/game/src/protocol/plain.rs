//! NTP without authentication. RFC 5905.

use authentick_crypto::Entropy;
use authentick_proto::client::{Exchange, Sample};
use authentick_sim::Server;
use authentick_wire::header::Header;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::{NtpSpan, NtpTime};

use super::{Client, Family, Heard, Protocol, Secret, drawn, octets_of, within};
use crate::model::Party;

/// Plain NTP.
#[derive(Clone, Copy, Debug)]
pub struct Plain {
    /// The longest round trip that clients believe.
    pub bound: Option<NtpSpan>,
}

impl Protocol for Plain {
    fn name(&self) -> &'static str {
        if self.bound.is_some() { "plain-e" } else { "plain" }
    }

    fn says(&self) -> &'static str {
        "NTP without authentication; the origin timestamp is a random number"
    }

    fn family(&self) -> Family {
        Family::Plain
    }

    fn bound(&self) -> Option<NtpSpan> {
        self.bound
    }

    fn server(&self, party: Party, seed: u64) -> Server {
        Server::new(drawn(seed, &format!("server {}", party.0)).u64())
    }

    fn client(&self, _: Party, _: &mut Server, _: u64) -> Box<dyn Client> {
        Box::new(PlainClient { bound: self.bound, waiting: None })
    }

    fn covered<'m>(&self, message: &'m [u8]) -> &'m [u8] {
        &message[..HEADER_SIZE.min(message.len())]
    }

    fn forge(&self, _: Option<&Secret>, _: &[u8], header: &Header) -> Option<Vec<u8>> {
        Some(octets_of(header))
    }

    fn corrupt(&self, _: &Server, _: &[Vec<u8>]) -> Option<Secret> {
        None
    }
}

#[derive(Clone, Debug)]
struct PlainClient {
    bound: Option<NtpSpan>,
    waiting: Option<(Exchange, NtpTime)>,
}

impl Client for PlainClient {
    fn ask(&mut self, now: NtpTime, _: u64, entropy: &mut Entropy) -> Option<Vec<u8>> {
        let mut request = vec![0; HEADER_SIZE];
        let (exchange, _) = Exchange::plain(entropy, &mut request);
        self.waiting = Some((exchange, now));
        Some(request)
    }

    fn receive(&mut self, message: &[u8], now: NtpTime, _: u64) -> Heard {
        let Some((exchange, sent)) = &mut self.waiting else {
            return Heard::Rejected("nothing was asked".to_owned());
        };
        match exchange.receive(&mut message.to_vec(), None) {
            Ok(response) => within(self.bound, Sample::new(&response.header, *sent, now)),
            Err(check) => Heard::Rejected(check.to_string()),
        }
    }

    fn secret(&mut self) -> Option<Secret> {
        None
    }

    fn fork(&self) -> Box<dyn Client> {
        Box::new(self.clone())
    }
}
