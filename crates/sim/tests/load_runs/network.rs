//! The way between the generator and the server, and the server: what is done to each request is decided here.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{Ipv4Addr, SocketAddr};

use authentick_crypto::Entropy;
use authentick_generator::{Exchange, Scheme};
use authentick_proto::client::NtsSession;
use authentick_report::load::{Cause, Stray};
use authentick_sim::{Arrival, Server, TrueTime};

use super::deed::Deed;
use super::scenario::{Scenario, TIMEOUT_NS};

/// Something on its way.
#[derive(Debug)]
pub(crate) enum Event {
    /// A request reaches the server.
    Request { transmit: u64, octets: Vec<u8> },
    /// A datagram reaches a client.
    Datagram { client: u32, octets: Vec<u8>, part: Part },
    /// The network tells a client that a request does not arrive: which, if it quotes enough of it.
    Obstacle { client: u32, transmit: Option<u64>, quoted: Vec<u8>, cause: Cause },
    /// A key exchange ends.
    Ended { exchange: Exchange, begun_ns: u64, end: Result<Box<NtsSession>, Cause> },
}

/// What a datagram is to the request with this transmit timestamp.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// The end of its answer.
    End(u64),
    /// More of it, or something that fails a check.
    Other(u64),
    /// Nothing to any request.
    Nothing(Stray),
}

/// A request that was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) client: u32,
    pub(crate) deed: Deed,
    pub(crate) sent_ns: u64,
    /// An answer to it has come in time, or late.
    pub(crate) is_answered: bool,
    /// The generator has said what became of it.
    pub(crate) has_ended: bool,
}

/// All between the generator and the server, and the server.
pub(crate) struct Network {
    pub(crate) scenario: Scenario,
    pub(crate) server: Server,
    entropy: Entropy,
    /// By time and number, so that what happens at once keeps its order.
    on_the_way: BinaryHeap<Reverse<(u64, u64)>>,
    events: HashMap<u64, Event>,
    next_number: u64,
    /// Requests that were sent, by their transmit timestamps.
    pub(crate) requests: HashMap<u64, Sent>,
    /// Whether all goes well.
    pub(crate) is_kind: bool,
    /// When the step begins, if it does.
    pub(crate) start_ns: Option<u64>,
}

impl Network {
    pub(crate) fn new(scenario: Scenario, mut entropy: Entropy) -> Self {
        Network {
            server: scenario.server(entropy.u64()),
            is_kind: scenario.is_kind_at_first,
            scenario,
            entropy,
            on_the_way: BinaryHeap::new(),
            events: HashMap::new(),
            next_number: 0,
            requests: HashMap::new(),
            start_ns: None,
        }
    }

    /// When something happens next.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.on_the_way.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// The next that reaches the generator by `now_ns`, and when.
    pub(crate) fn next(&mut self, now_ns: u64) -> Option<(u64, Event)> {
        loop {
            let Reverse((at_ns, number)) = *self.on_the_way.peek().filter(|next| next.0.0 <= now_ns)?;
            self.on_the_way.pop();
            match self.events.remove(&number)? {
                Event::Request { transmit, octets } => self.serve(transmit, &octets, at_ns),
                event => return Some((at_ns, event)),
            }
        }
    }

    /// A request leaves, and what is done to it is drawn. Returns its transmit timestamp.
    pub(crate) fn depart(&mut self, client: u32, octets: Vec<u8>, now_ns: u64) -> u64 {
        let deed = Deed::draw(self.scenario.scheme, self.is_kind, &mut self.entropy);
        let transmit = field(&octets, TRANSMIT);
        let sent = Sent { client, deed, sent_ns: now_ns, is_answered: false, has_ended: false };
        assert!(self.requests.insert(transmit, sent).is_none(), "a transmit timestamp was used twice");
        let at_ns = now_ns + self.way();
        match deed {
            Deed::LostThere => {}
            Deed::Refused => self.refuse(at_ns, client, &octets, Cause::Refused),
            Deed::Unreachable => self.refuse(at_ns, client, &octets, Cause::Unreachable),
            Deed::Vague => {
                let size = self.below(TRANSMIT.end as u64) as usize;
                self.refuse(at_ns, client, &octets[..size], Cause::Unreachable);
            }
            Deed::Reflected => {
                let mut back = octets;
                back.copy_within(TRANSMIT, ORIGIN.start);
                self.send(at_ns, Event::Datagram { client, octets: back, part: Part::Other(transmit) });
            }
            Deed::Kissed => {
                let (octets, part) = (kiss(&octets, *b"RATE"), Part::Other(transmit));
                self.send(at_ns, Event::Datagram { client, octets, part });
            }
            Deed::Refusal => {
                let mut refusal = kiss(&octets, *b"NTSN");
                if self.scenario.scheme == Scheme::Mac {
                    // A crypto-NAK: key identifier 0, and no digest.
                    refusal.truncate(HEADER_SIZE);
                    refusal.extend([0; 4]);
                }
                self.send(at_ns, Event::Datagram { client, octets: refusal, part: Part::Other(transmit) });
            }
            _ => self.send(at_ns, Event::Request { transmit, octets }),
        }
        transmit
    }

    /// A request has reached the server.
    fn serve(&mut self, transmit: u64, octets: &[u8], now_ns: u64) {
        let Sent { client, mut deed, sent_ns, .. } = self.requests[&transmit];
        if self.is_away(now_ns) {
            let is_silent = self.below(2) == 0;
            self.change(transmit, if is_silent { Deed::LostThere } else { Deed::Refused });
            if !is_silent {
                let at_ns = now_ns + self.way();
                self.refuse(at_ns, client, octets, Cause::Refused);
            }
            return;
        }
        let received = self.server.clock.at(TrueTime(now_ns));
        let arrival = Arrival { source: address(client), received, octets: octets.to_vec() };
        let sent = self.server.clock.at(TrueTime(now_ns + 2_000));
        let mut answers = self.server.answer_batch(vec![arrival], sent).remove(0);
        let mut at_ns = now_ns + self.way();
        let is_nak = answers.iter().any(|answer| answer[1] == 0 && answer[12..16] == *b"NTSN");
        if is_nak {
            if !matches!(deed, Deed::LostBack | Deed::AnsweredTooLate) {
                self.change(transmit, Deed::KeysLost);
                let (octets, part) = (answers.remove(0), Part::Other(transmit));
                self.send(at_ns, Event::Datagram { client, octets, part });
            }
            return;
        }
        let last = answers.last_mut().expect("the server is not silent");
        // m2 of ANTP has no tag: what is changed in it shows in m4.
        let is_tagged =
            !self.scenario.scheme.nature().is_antp || matches!(last[HEADER_SIZE..], [0xFA, 4 | 6 | 7, ..]);
        if deed == Deed::Tampered && !is_tagged {
            self.change(transmit, Deed::Answered);
            deed = Deed::Answered;
        }
        match deed {
            Deed::LostBack => return,
            Deed::KissedAndAnswered => {
                let (octets, part) = (kiss(octets, *b"RATE"), Part::Other(transmit));
                self.send(now_ns + 1, Event::Datagram { client, octets, part });
            }
            Deed::RefusedAndAnswered => {
                let told_ns = now_ns + self.way();
                self.refuse(told_ns, client, octets, Cause::Refused);
            }
            Deed::AnsweredLate => at_ns = sent_ns + TIMEOUT_NS + TIMEOUT_NS / 4 + self.below(TIMEOUT_NS / 2),
            Deed::AnsweredTooLate => {
                at_ns = sent_ns + 2 * TIMEOUT_NS + TIMEOUT_NS / 4 + self.below(TIMEOUT_NS);
            }
            Deed::Tampered => *last.last_mut().expect("an answer is not empty") ^= 1,
            // As an NTP server answers that is not synchronised: by leap indicator and stratum.
            Deed::BadStratum => {
                last[0] |= 0b1100_0000;
                last[1] = 16;
            }
            Deed::BadLeap => last[0] |= 0b1100_0000,
            Deed::Shortened => {
                last.truncate(ORIGIN.end + self.below((HEADER_SIZE - ORIGIN.end) as u64) as usize);
            }
            Deed::CutOff => last.truncate(self.below(ORIGIN.end as u64) as usize),
            Deed::Lengthened => last.extend([0xEE; 3]),
            Deed::Stranger => {
                let origin = if self.below(2) == 0 { [0; 8] } else { self.entropy.array() };
                last[ORIGIN].copy_from_slice(&origin);
            }
            _ => {}
        }
        if matches!(deed, Deed::Shortened | Deed::CutOff | Deed::Stranger) {
            // Of two packets the first would tell that they are an answer.
            answers.drain(..answers.len() - 1);
        }
        self.deliver((transmit, client), deed, answers, at_ns);
    }

    /// The server's answer goes to a client, in one or several datagrams, of which the last is what was made of it.
    fn deliver(
        &mut self,
        (transmit, client): (u64, u32),
        deed: Deed,
        mut answers: Vec<Vec<u8>>,
        mut at_ns: u64,
    ) {
        let end = match deed {
            Deed::Tampered | Deed::BadStratum | Deed::BadLeap | Deed::Shortened | Deed::Lengthened => {
                Part::Other(transmit)
            }
            Deed::CutOff => Part::Nothing(Stray::Malformed),
            Deed::Stranger => Part::Nothing(Stray::BadOrigin),
            _ => Part::End(transmit),
        };
        let last = answers.pop().expect("the server is not silent");
        for octets in answers {
            self.send(at_ns, Event::Datagram { client, octets, part: Part::Other(transmit) });
            at_ns += 1;
        }
        if deed == Deed::AnsweredTwice {
            let again_ns = at_ns + 1 + self.way();
            self.send(again_ns, Event::Datagram { client, octets: last.clone(), part: end });
        }
        self.send(at_ns, Event::Datagram { client, octets: last, part: end });
    }

    /// The network says that a request does not arrive of which it quotes this much.
    fn refuse(&mut self, at_ns: u64, client: u32, quoted: &[u8], cause: Cause) {
        let transmit = (quoted.len() >= TRANSMIT.end).then(|| field(quoted, TRANSMIT));
        self.send(at_ns, Event::Obstacle { client, transmit, quoted: quoted.to_vec(), cause });
    }

    /// Something else was done to a request than was drawn.
    fn change(&mut self, transmit: u64, deed: Deed) {
        if let Some(request) = self.requests.get_mut(&transmit) {
            request.deed = deed;
        }
    }

    /// Whether the server is away; when it is back, it may have lost its keys.
    pub(crate) fn is_away(&mut self, now_ns: u64) -> bool {
        let since_ns = self.start_ns.and_then(|start_ns| now_ns.checked_sub(start_ns));
        let is_away = since_ns.is_some_and(|since_ns| self.scenario.away_ns.contains(&since_ns));
        if is_away && self.scenario.loses_keys {
            self.scenario.loses_keys = false;
            self.server.lose_cookie_keys(now_ns / 1_000_000_000);
        }
        is_away
    }

    pub(crate) fn send(&mut self, at_ns: u64, event: Event) {
        self.next_number += 1;
        self.on_the_way.push(Reverse((at_ns, self.next_number)));
        self.events.insert(self.next_number, event);
    }

    /// How long a datagram takes, one way: so much that some overtake others.
    fn way(&mut self) -> u64 {
        100_000 + self.below(TIMEOUT_NS / 4)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.entropy.u64() % limit
    }
}

pub(crate) const HEADER_SIZE: usize = 48;
pub(crate) const ORIGIN: std::ops::Range<usize> = 24..32;
pub(crate) const TRANSMIT: std::ops::Range<usize> = 40..48;

pub(crate) fn field(octets: &[u8], place: std::ops::Range<usize>) -> u64 {
    u64::from_be_bytes(octets[place].try_into().expect("a timestamp has eight octets"))
}

pub(crate) fn address(client: u32) -> SocketAddr {
    (Ipv4Addr::from(0xC612_0001 + client), 40_000).into()
}

/// A kiss by somebody who has seen the request: with its origin and, if it has one, its unique identifier.
fn kiss(request: &[u8], code: [u8; 4]) -> Vec<u8> {
    const IDENTIFIER: [u8; 4] = [0x01, 0x04, 0, 36];
    let has_identifier = request.get(HEADER_SIZE..HEADER_SIZE + 4) == Some(&IDENTIFIER);
    let mut kiss = request[..if has_identifier { HEADER_SIZE + 36 } else { HEADER_SIZE }].to_vec();
    kiss.copy_within(TRANSMIT, ORIGIN.start);
    // Version 4, mode 4, stratum 0.
    (kiss[0], kiss[1]) = (0b00_100_100, 0);
    kiss[12..16].copy_from_slice(&code);
    kiss
}
