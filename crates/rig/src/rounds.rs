//! Round trips of a flow, counted from its packets in the order in which its client sees them.
//!
//! A flow is what two addresses with their ports exchange over UDP or TCP. Of its packets those *bear* something that
//! bring the other side what it has not been sent before: a UDP datagram with a payload, a TCP segment with SYN or with
//! octets beyond all that were sent in its direction. Acknowledgements, FIN and RST alone, and repeated segments bear
//! nothing.
//!
//! **Definition.** A round trip begins with a bearing packet of the client where none is under way, and ends with the
//! next bearing packet of the server. So the count is how often the direction has turned from the client to the server
//! and back: a TCP handshake is one, TLS 1.3 adds one, a request that goes with the client's last flight of TLS and its
//! response add one, and an NTP exchange is one. What the client sends without waiting for an answer adds nothing, nor
//! do further packets of an answer.
//!
//! The count is exact where packets are seen at the client: those that it sends as they leave it, those that it gets
//! before they reach it. Elsewhere on the way, what both sides send at once may look like question and answer.
//!
//! Later fragments, packets behind extension headers of IPv6 and packets of other protocols belong to no flow.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Flows that are told apart; packets of further ones are counted as [`RoundTrips::left_out`].
pub const FLOW_COUNT_MAX: usize = 4096;

/// Numbers of protocols in IP headers.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Flags in octet 13 of a TCP header. RFC 9293 section 3.1.
const SYN: u8 = 0x02;
/// The part of IPv4's flags and offset that is the offset of a fragment. RFC 791 section 3.1.
const FRAGMENT_OFFSET: u16 = 0x1FFF;

/// Who has sent a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The side that asks.
    Client,
    /// The side that is asked.
    Server,
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// A connection, or several from the same port one after the other.
    Tcp,
}

/// What two ports exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// What carries it.
    pub transport: Transport,
    /// The client's address and port.
    pub client: SocketAddr,
    /// The server's address and port.
    pub server: SocketAddr,
}

/// What a flow has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trips {
    /// Exchanges that the client has begun: connections of TCP, bearing datagrams of UDP. A client that takes a new
    /// port for each of them gets the same one again sometimes.
    pub exchanges: u64,
    /// Round trips that have ended.
    pub round_trips: u64,
    /// Bearing packets of the client.
    pub from_client: u64,
    /// Bearing packets of the server.
    pub from_server: u64,
    /// Whether a round trip is under way.
    pub is_under_way: bool,
}

/// Counts the round trips of all flows between clients on one side and servers on the other.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips {
    /// In the order in which they were first seen.
    flows: Vec<(Flow, Counter)>,
    places: HashMap<Flow, usize>,
    left_out: u64,
}

impl RoundTrips {
    /// Takes the next IP packet, from its first octet.
    pub fn see(&mut self, sender: Sender, packet: &[u8]) {
        let Some(seen) = Seen::parse(packet) else { return };
        let flow = match sender {
            Sender::Client => Flow { transport: seen.transport, client: seen.source, server: seen.target },
            Sender::Server => Flow { transport: seen.transport, client: seen.target, server: seen.source },
        };
        let place = match self.places.get(&flow) {
            Some(place) => *place,
            None if self.flows.len() >= FLOW_COUNT_MAX => {
                self.left_out += 1;
                return;
            }
            None => {
                self.places.insert(flow, self.flows.len());
                self.flows.push((flow, Counter::default()));
                self.flows.len() - 1
            }
        };
        self.flows[place].1.see(sender, &seen);
    }

    /// Every flow, in the order in which they were first seen.
    pub fn flows(&self) -> impl Iterator<Item = (Flow, Trips)> + '_ {
        self.flows.iter().map(|(flow, counter)| (*flow, counter.trips))
    }

    /// The flows towards this port of servers.
    pub fn towards(&self, transport: Transport, port: u16) -> impl Iterator<Item = (Flow, Trips)> + '_ {
        self.flows().filter(move |(flow, _)| flow.transport == transport && flow.server.port() == port)
    }

    /// Packets of flows beyond [`FLOW_COUNT_MAX`].
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// One flow.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    trips: Trips,
    /// The number of the client's SYN.
    opened: Option<u32>,
    /// The number after the last octet of TCP that the client, and the server, have sent.
    sent: [Option<u32>; 2],
}

impl Counter {
    fn see(&mut self, sender: Sender, seen: &Seen) {
        if !self.is_bearing(sender, seen) {
            return;
        }
        match sender {
            Sender::Client => {
                self.trips.from_client += 1;
                self.trips.is_under_way = true;
            }
            Sender::Server => {
                self.trips.from_server += 1;
                self.trips.round_trips += u64::from(self.trips.is_under_way);
                self.trips.is_under_way = false;
            }
        }
    }

    fn is_bearing(&mut self, sender: Sender, seen: &Seen) -> bool {
        let Some(segment) = seen.segment else {
            let is_bearing = seen.payload_size > 0;
            self.trips.exchanges += u64::from(is_bearing && sender == Sender::Client);
            return is_bearing;
        };
        // Octets and a SYN have numbers alike.
        let size = seen.payload_size + u32::from(segment.is_syn);
        if size == 0 {
            return false;
        }
        if segment.is_syn && sender == Sender::Client && self.opened != Some(segment.number) {
            // A connection from the same port as one before: numbers begin anew on both sides.
            self.opened = Some(segment.number);
            self.trips.exchanges += 1;
            self.sent = [None; 2];
        }
        let end = segment.number.wrapping_add(size);
        let sent = &mut self.sent[match sender {
            Sender::Client => 0,
            Sender::Server => 1,
        }];
        // Numbers are compared as RFC 9293 section 3.4 does it, on a circle.
        let is_new = sent.is_none_or(|sent| end.wrapping_sub(sent) as i32 > 0);
        if is_new {
            *sent = Some(end);
        }
        is_new
    }
}

/// What is to be known of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    transport: Transport,
    source: SocketAddr,
    target: SocketAddr,
    /// Octets of payload, at most 65,535.
    payload_size: u32,
    /// Of TCP alone.
    segment: Option<Segment>,
}

/// What is to be known of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    number: u32,
    is_syn: bool,
}

impl Seen {
    /// Reads a packet of UDP or TCP; `None` for every other, and for those that are not whole.
    fn parse(packet: &[u8]) -> Option<Self> {
        let (protocol, source, target, rest) = match packet.first()? >> 4 {
            4 => ipv4(packet)?,
            6 => ipv6(packet)?,
            _ => return None,
        };
        let source = SocketAddr::new(source, u16_at(rest, 0)?);
        let target = SocketAddr::new(target, u16_at(rest, 2)?);
        match protocol {
            UDP => {
                let payload_size = u32::from(u16_at(rest, 4)?).checked_sub(8)?;
                Some(Seen { transport: Transport::Udp, source, target, payload_size, segment: None })
            }
            TCP => {
                let header_size = usize::from(rest.get(12)? >> 4) * 4;
                let payload_size = u32::try_from(rest.len().checked_sub(header_size.max(20))?).ok()?;
                let number = u32::from(u16_at(rest, 4)?) << 16 | u32::from(u16_at(rest, 6)?);
                let segment = Some(Segment { number, is_syn: rest.get(13)? & SYN != 0 });
                Some(Seen { transport: Transport::Tcp, source, target, payload_size, segment })
            }
            _ => None,
        }
    }
}

/// Protocol, source, target and what follows the header. RFC 791 section 3.1.
fn ipv4(packet: &[u8]) -> Option<(u8, IpAddr, IpAddr, &[u8])> {
    let header_size = usize::from(packet.first()? & 0x0F) * 4;
    let rest = packet.get(..usize::from(u16_at(packet, 2)?))?.get(header_size..)?;
    if header_size < 20 || u16_at(packet, 6)? & FRAGMENT_OFFSET != 0 {
        return None;
    }
    let address = |start| Some(Ipv4Addr::from(*packet.get(start..)?.first_chunk::<4>()?).into());
    Some((*packet.get(9)?, address(12)?, address(16)?, rest))
}

/// The same. RFC 8200 section 3.
fn ipv6(packet: &[u8]) -> Option<(u8, IpAddr, IpAddr, &[u8])> {
    let rest = packet.get(40..40 + usize::from(u16_at(packet, 4)?))?;
    let address = |start| Some(Ipv6Addr::from(*packet.get(start..)?.first_chunk::<16>()?).into());
    Some((*packet.get(6)?, address(8)?, address(24)?, rest))
}

fn u16_at(octets: &[u8], start: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*octets.get(start..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use authentick_crypto::Entropy;

    use super::Sender::{Client, Server};
    use super::*;

    const ACK: u8 = 0x10;
    const FIN: u8 = 0x01;
    const RST: u8 = 0x04;
    const CLIENT: u16 = 40_000;
    const PORT: u16 = 4460;

    /// An IP packet of 20 or 40 octets of header around what `sender` sends.
    fn packet(sender: Sender, protocol: u8, is_v6: bool, mut rest: Vec<u8>) -> Vec<u8> {
        let (source, target) = if sender == Client { (2, 1) } else { (1, 2) };
        let (from, to) = if sender == Client { (CLIENT, PORT) } else { (PORT, CLIENT) };
        rest.splice(0..0, from.to_be_bytes().into_iter().chain(to.to_be_bytes()));
        let mut packet = if is_v6 {
            let mut header = vec![0x60, 0, 0, 0, 0, rest.len() as u8, protocol, 64];
            header.extend(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, source).octets());
            header.extend(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, target).octets());
            header
        } else {
            let mut header = vec![0x45, 0, 0, 20 + rest.len() as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
            header.extend([198, 18, 0, source as u8, 198, 18, 0, target as u8]);
            header
        };
        packet.append(&mut rest);
        packet
    }

    fn udp(sender: Sender, size: u8) -> (Sender, Vec<u8>) {
        let mut rest = vec![0, 8 + size, 0, 0];
        rest.resize(4 + usize::from(size), 0);
        (sender, packet(sender, UDP, false, rest))
    }

    fn tcp(sender: Sender, flags: u8, number: u32, size: u8) -> (Sender, Vec<u8>) {
        let mut rest = number.to_be_bytes().to_vec();
        rest.extend([0, 0, 0, 0, 5 << 4, flags, 0, 0, 0, 0, 0, 0]);
        rest.resize(16 + usize::from(size), 0);
        (sender, packet(sender, TCP, false, rest))
    }

    fn count(packets: &[(Sender, Vec<u8>)]) -> Trips {
        let mut trips = RoundTrips::default();
        packets.iter().for_each(|(sender, packet)| trips.see(*sender, packet));
        let flows: Vec<(Flow, Trips)> = trips.flows().collect();
        let [(flow, found)] = flows[..] else { panic!("{flows:?}") };
        assert_eq!((flow.client.port(), flow.server.port()), (CLIENT, PORT));
        assert_eq!(trips.towards(flow.transport, PORT).count(), 1);
        assert_eq!(trips.towards(flow.transport, CLIENT).count(), 0);
        found
    }

    #[test]
    fn exchange_of_datagrams_is_a_round_trip_and_what_is_lost_is_none() {
        let (ask, answer) = (udp(Client, 48), udp(Server, 48));
        assert_eq!(count(&[ask.clone(), answer.clone()]).round_trips, 1);
        let found = count(&[ask.clone(), ask.clone(), answer.clone(), answer.clone(), ask, answer]);
        let expected =
            Trips { exchanges: 3, round_trips: 2, from_client: 3, from_server: 3, is_under_way: false };
        assert_eq!(found, expected);
        let lost = count(&[udp(Client, 48)]);
        assert_eq!((lost.exchanges, lost.round_trips, lost.is_under_way), (1, 0, true));
        // A datagram without payload asks nothing, and what nobody asked for answers nothing.
        assert_eq!(count(&[udp(Client, 0), udp(Server, 48)]).round_trips, 0);
    }

    /// A key exchange as RFC 8915 section 4 has it, with TLS 1.3 of RFC 8446 section 2.
    fn exchange(isn: u32) -> Vec<(Sender, Vec<u8>)> {
        let at = |offset: u32| isn.wrapping_add(offset);
        vec![
            tcp(Client, SYN, isn, 0),
            tcp(Server, SYN | ACK, at(7000), 0),
            tcp(Client, ACK, at(1), 0),
            // Hello; the server's comes in two segments.
            tcp(Client, ACK, at(1), 150),
            tcp(Server, ACK, at(7001), 0),
            tcp(Server, ACK, at(7001), 200),
            tcp(Server, ACK, at(7201), 100),
            tcp(Client, ACK, at(151), 0),
            // Finished and the request, in two segments; a ticket and the response, in two.
            tcp(Client, ACK, at(151), 60),
            tcp(Client, ACK, at(211), 40),
            tcp(Server, ACK, at(7301), 90),
            tcp(Server, ACK | FIN, at(7391), 200),
            // The client says that it closes, and nobody answers but with an acknowledgement.
            tcp(Client, ACK | FIN, at(251), 24),
            tcp(Server, ACK, at(7592), 0),
            tcp(Server, RST, at(7592), 0),
        ]
    }

    #[test]
    fn key_exchange_is_three_round_trips() {
        let found = count(&exchange(1000));
        assert_eq!((found.exchanges, found.round_trips), (1, 3));
        assert_eq!((found.from_client, found.from_server), (5, 5));
        assert!(found.is_under_way, "what the client sent last is not answered");
        // Where the numbers pass their end too.
        assert_eq!(count(&exchange(u32::MAX - 160)).round_trips, 3);
    }

    #[test]
    fn repeated_segments_turn_nothing() {
        let once = exchange(1000);
        // Each packet comes twice, and the client's first flight of TLS once more after it was answered.
        let mut twice: Vec<_> = once.iter().flat_map(|packet| [packet.clone(), packet.clone()]).collect();
        twice.insert(14, once[3].clone());
        twice.insert(15, once[5].clone());
        assert_eq!(count(&twice), count(&once));
    }

    #[test]
    fn connections_from_one_port_add_up() {
        // The second one's numbers are below the first one's.
        let two: Vec<_> = exchange(2_000_000).into_iter().chain(exchange(1000)).collect();
        let found = count(&two);
        assert_eq!((found.exchanges, found.round_trips), (2, 6));
    }

    #[test]
    fn refused_connection_is_no_round_trip() {
        let found = count(&[tcp(Client, SYN, 5, 0), tcp(Server, RST | ACK, 0, 0)]);
        assert_eq!((found.round_trips, found.is_under_way), (0, true));
    }

    #[test]
    fn flows_of_both_families_are_told_apart_and_bounded() {
        let mut trips = RoundTrips::default();
        for is_v6 in [false, true] {
            trips.see(Client, &packet(Client, UDP, is_v6, vec![0, 9, 0, 0, 1]));
            trips.see(Server, &packet(Server, UDP, is_v6, vec![0, 9, 0, 0, 1]));
        }
        let found: Vec<(Flow, Trips)> = trips.flows().collect();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|(_, trips)| trips.round_trips == 1), "{found:?}");
        assert!(found[0].0.client.is_ipv4() && found[1].0.client.is_ipv6());
        for port in 0..u16::MAX {
            let mut other = udp(Client, 1).1;
            other[20..22].copy_from_slice(&port.to_be_bytes());
            trips.see(Client, &other);
        }
        assert_eq!(trips.flows().count(), FLOW_COUNT_MAX);
        // One of these ports was there already.
        assert_eq!(trips.left_out(), u64::from(u16::MAX) - 1 - (FLOW_COUNT_MAX as u64 - 2));
    }

    #[test]
    fn what_is_no_whole_packet_of_a_flow_is_passed_over() {
        let (mut trips, mut entropy) = (RoundTrips::default(), Entropy::from_seed(11));
        let mut fragment = udp(Client, 8).1;
        fragment[7] = 1;
        trips.see(Client, &fragment);
        trips.see(Client, &packet(Client, 1, false, vec![8, 0, 0, 0]));
        for whole in [udp(Client, 8).1, tcp(Client, SYN, 1, 3).1, packet(Client, TCP, true, vec![0; 16])] {
            (0..whole.len()).for_each(|size| trips.see(Client, &whole[..size]));
        }
        assert_eq!(trips.flows().count(), 0);
        // Nothing that a host may send makes it panic.
        for round in 0..20_000 {
            let mut octets = vec![0; (entropy.u64() % 80) as usize];
            entropy.fill(&mut octets);
            if let Some(first) = octets.first_mut() {
                *first = if round % 2 == 0 { 0x45 } else { 0x60 };
            }
            trips.see(if round % 3 == 0 { Server } else { Client }, &octets);
        }
    }
}
