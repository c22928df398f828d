//! Who stands between NTP clients and a real server, on a relay: damages or records what passes, and counts it.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Deref;
use std::time::{Duration, Instant};

use authentick_rig::relay;
pub use authentick_rig::relay::{CLIENT_COUNT_MAX, Counts, Middle};
use authentick_wire::header::ReferenceId;
use authentick_wire::mac::MacFields;
use authentick_wire::packet::Packet;

use crate::servers::{emit, identifier_of, kiss, nts_fields};

/// The most datagrams that a tap keeps.
pub const RECORD_COUNT_MAX: usize = 400_000;

/// Passes responses through a function, which may also make several of one, or none.
pub struct Changed<F>(pub F);

impl<F: FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static> Middle for Changed<F> {
    fn response(&mut self, response: Vec<u8>, _: SocketAddr) -> Vec<Vec<u8>> {
        (self.0)(response)
    }
}

/// What is done to an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// One bit of the response's tag is flipped: the first of the ciphertext, which with AES-SIV begins with its tag;
    /// with other algorithms it fails the same check. Under a symmetric key, the first of the digest.
    Tag,
    /// The response is replaced by a kiss with the request's unique identifier and no authenticator.
    Kiss(ReferenceId),
    /// The request never reaches the server.
    LostRequest,
    /// The response never reaches the client.
    LostResponse,
}

/// Damages one in a set number of authenticated exchanges, under NTS or a symmetric key.
#[derive(Clone, Copy, Debug)]
pub struct Corrupt {
    damage: Damage,
    every: u64,
    seen: u64,
    damaged: u64,
}

impl Corrupt {
    /// Damages exactly one exchange of each `every`: the last of them.
    ///
    /// # Panics
    /// If `every` is 0.
    #[must_use]
    pub fn new(damage: Damage, every: u64) -> Self {
        assert!(every > 0, "one of none");
        Corrupt { damage, every, seen: 0, damaged: 0 }
    }

    /// Authenticated requests or responses that it has had before it, whichever it damages.
    #[must_use]
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    /// How many of them it has damaged.
    #[must_use]
    pub const fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Counts one more; whether it is to be damaged.
    fn strikes(&mut self) -> bool {
        self.seen += 1;
        let strikes = self.seen.is_multiple_of(self.every);
        self.damaged += u64::from(strikes);
        strikes
    }
}

impl Middle for Corrupt {
    fn request(&mut self, request: &[u8], _: SocketAddr) -> bool {
        self.damage != Damage::LostRequest || tag_start(request).is_none() || !self.strikes()
    }

    fn response(&mut self, mut response: Vec<u8>, _: SocketAddr) -> Vec<Vec<u8>> {
        let (false, Some(tag_start)) = (self.damage == Damage::LostRequest, tag_start(&response)) else {
            return vec![response];
        };
        if !self.strikes() {
            return vec![response];
        }
        match self.damage {
            Damage::Tag => {
                response[tag_start] ^= 1;
                vec![response]
            }
            Damage::Kiss(code) => {
                let packet = Packet::parse(&response).expect("its fields were found");
                let mut header = packet.header();
                kiss(&mut header, code);
                vec![emit(&header, identifier_of(&packet))]
            }
            Damage::LostRequest | Damage::LostResponse => Vec::new(),
        }
    }
}

/// Where the tag of a packet begins, if it is authenticated.
fn tag_start(octets: &[u8]) -> Option<usize> {
    match nts_fields(octets) {
        Some(fields) => Some(fields.authenticator?.ciphertext.start()),
        None => Some(MacFields::locate(&Packet::parse(octets).ok()?)?.digest.start()),
    }
}

/// A datagram that passed.
#[derive(Clone, Debug)]
pub struct Record {
    /// When it passed.
    pub at: Instant,
    /// The client from which it came or to which it goes.
    pub client: SocketAddr,
    /// Its octets.
    pub octets: Vec<u8>,
}

impl Record {
    /// The cookie in it, if it is an NTS request.
    #[must_use]
    pub fn cookie(&self) -> Option<&[u8]> {
        Some(nts_fields(&self.octets)?.cookie?.of(&self.octets))
    }

    /// The clear placeholders in it.
    #[must_use]
    pub fn placeholder_count(&self) -> usize {
        nts_fields(&self.octets).map_or(0, |fields| fields.placeholder_count)
    }
}

/// Keeps a copy of everything that passes.
#[derive(Debug, Default)]
pub struct Tap {
    requests: Vec<Record>,
    responses: Vec<Record>,
    unrecorded: u64,
}

impl Tap {
    /// What clients sent, in the order in which it came.
    #[must_use]
    pub fn requests(&self) -> &[Record] {
        &self.requests
    }

    /// What servers sent.
    #[must_use]
    pub fn responses(&self) -> &[Record] {
        &self.responses
    }

    /// Datagrams beyond [`RECORD_COUNT_MAX`].
    #[must_use]
    pub const fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    /// How many requests carried each cookie, in the order in which the cookies first came.
    #[must_use]
    pub fn cookie_uses(&self) -> Vec<usize> {
        let (mut places, mut uses) = (HashMap::new(), Vec::new());
        for cookie in self.requests.iter().filter_map(Record::cookie) {
            let place = *places.entry(cookie).or_insert(uses.len());
            if place == uses.len() {
                uses.push(0);
            }
            uses[place] += 1;
        }
        uses
    }

    fn record(&mut self, is_request: bool, octets: &[u8], client: SocketAddr) {
        if self.requests.len() + self.responses.len() >= RECORD_COUNT_MAX {
            self.unrecorded += 1;
            return;
        }
        let record = Record { at: Instant::now(), client, octets: octets.to_vec() };
        if is_request { self.requests.push(record) } else { self.responses.push(record) }
    }
}

impl Middle for Tap {
    fn request(&mut self, request: &[u8], client: SocketAddr) -> bool {
        self.record(true, request, client);
        true
    }

    fn response(&mut self, response: Vec<u8>, client: SocketAddr) -> Vec<Vec<u8>> {
        self.record(false, &response, client);
        vec![response]
    }
}

/// The rig's relay, which panics where a test would, and does not make the path longer.
#[derive(Debug)]
pub struct Relay<M>(relay::Relay<M>);

impl<M: Middle> Relay<M> {
    /// Relays between clients that ask at `front` and `server`. To be called where `front` was bound: within a host,
    /// the sockets towards the server are on that host.
    ///
    /// # Panics
    /// If the socket cannot be set up.
    #[must_use]
    pub fn start(front: UdpSocket, server: SocketAddr, middle: M) -> Self {
        Relay(relay::Relay::start(front, server, Duration::ZERO, middle).unwrap())
    }

    /// Relays between a port of 127.0.0.1 and `server`.
    ///
    /// # Panics
    /// If the port is taken.
    #[must_use]
    pub fn on_loopback(port: u16, server: SocketAddr, middle: M) -> Self {
        Relay(relay::Relay::on_loopback(port, server, Duration::ZERO, middle).unwrap())
    }

    /// What the relay has done until now.
    ///
    /// # Panics
    /// If the kernel does not tell.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.0.counts().unwrap()
    }
}

impl<M> Deref for Relay<M> {
    type Target = relay::Relay<M>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
