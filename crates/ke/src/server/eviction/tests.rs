//! The order against its definition, over every small crowd; then floods against honest clients far away, over real TLS
//! and a clock that is set.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_proto::prefix::PrefixSet;
use rustls::ClientConnection;

use super::*;
use crate::client::Dialogue;
use crate::fuzzing::tls::ASK;
use crate::server::connections::Connections;
use crate::server::fuzzing::{Client, Counts, End, Memory, Speaker};
use crate::server::{Admission, Limits, Rates};

/// Of one /24, of another one in the same /16, and of another /16.
const SOURCES: [&str; 4] = ["198.18.1.1", "198.18.1.2", "198.18.2.1", "198.19.0.1"];
/// The same with a /48 and a /40.
const SOURCES_V6: [&str; 4] = ["2001:db8:1::1", "2001:db8:1:2::1", "2001:db8:2::1", "2001:db8:100::1"];

/// What gives way, word for word as the module's documentation says.
fn expected(crowd: &[(Id, IpAddr, Class)]) -> Option<Id> {
    let class = CLASSES.into_iter().find(|&class| crowd.iter().any(|entry| entry.2 == class))?;
    let places = |source, lengths: (u32, u32)| {
        let network = |address| masked(address, lengths.0, lengths.1);
        crowd.iter().filter(|entry| network(entry.1) == network(source)).count()
    };
    let of_class = || crowd.iter().filter(|entry| entry.2 == class);
    let most = of_class().map(|entry| places(entry.1, (24, 48))).max()?;
    let lengths = if most > 1 { (24, 48) } else { (16, 40) };
    of_class().max_by_key(|entry| (places(entry.1, lengths), entry.0.serial)).map(|entry| entry.0)
}

#[test]
fn next_in_every_crowd_of_four_is_as_defined() {
    let start = Instant::now();
    let now = start + SILENCE_MAX;
    for sources in [SOURCES, SOURCES_V6] {
        let sources = sources.map(|text| text.parse::<IpAddr>().unwrap());
        for case in 0..1_usize << 16 {
            let mut order = EvictionOrder::default();
            let mut crowd = Vec::new();
            for key in 0..4 {
                let which = case >> (4 * key) & 15;
                let (source, class) = (sources[which & 3], CLASSES[which >> 2]);
                let id = Id { serial: key as u64, key };
                order.add(id, source);
                match class {
                    Class::Silent => {}
                    Class::Greeting => order.advance(id, Stage::Greeting, start),
                    Class::Stalled => order.advance(id, Stage::Answered, start),
                    Class::Active => order.advance(id, Stage::Answered, now),
                }
                crowd.push((id, source, class));
            }
            while let Some(id) = order.next(now) {
                assert_eq!(Some(id), expected(&crowd), "{crowd:?}");
                order.remove(id);
                crowd.retain(|entry| entry.0 != id);
            }
            assert!(crowd.is_empty() && order.held.is_empty() && order.stalls.is_empty());
            assert!(order.networks.networks.is_empty() && order.wide_networks.networks.is_empty());
        }
    }
}

#[test]
fn stalled_connection_that_sends_again_is_active() {
    let (mut order, start) = (EvictionOrder::default(), Instant::now());
    let [first, second] = [0, 1].map(|key| Id { serial: key as u64, key });
    for (id, source) in [(first, SOURCES[0]), (second, SOURCES[2])] {
        order.add(id, source.parse().unwrap());
        order.advance(id, Stage::Answered, start);
    }
    order.advance(second, Stage::Answered, start + SILENCE_MAX / 2);
    assert_eq!(order.next(start + SILENCE_MAX), Some(first), "the only one that was silent for so long");
    order.advance(first, Stage::Answered, start + SILENCE_MAX);
    assert_eq!(order.next(start + SILENCE_MAX), Some(second), "the newest of two that are active");
}

/// What hostile clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    Idle,
    OctetEachSecond,
    HelloThenSilence,
}

/// Honest clients that were lost and that were served, and what was evicted.
#[derive(Debug, Default)]
struct Toll {
    lost: usize,
    served: usize,
}

/// Half of a round trip between the server and its honest clients.
const ONE_WAY: Duration = Duration::from_millis(100);

struct Honest {
    client: Client,
    /// When its next flight reaches the server.
    speaks_at: Instant,
}

/// A worker beside a flood: hostile connections come each `interval`, and honest ones each `honest_interval`, 200 ms
/// away. Returns the losses among the last `honest_count`, after `before` has passed.
fn flood(
    habit: Habit,
    interval: Duration,
    sources: impl Fn(u32) -> IpAddr,
    before: Duration,
    (honest_interval, honest_count): (Duration, usize),
) -> Toll {
    let start = Instant::now();
    let mut entropy = Entropy::from_seed(1);
    let everyone = PrefixSet::everything();
    let admission = Admission::new(everyone, Limits::default(), Rates::default(), &mut entropy, start);
    let counts = Arc::<Counts>::default();
    let mut connections = Connections::new(Memory, Arc::new(admission), entropy, counts);
    let hello = first_flight();
    let mut now = start;
    let (mut hostile_count, mut next_honest) = (0_u32, start + before);
    let mut hostile: VecDeque<(Instant, Client)> = VecDeque::new();
    let mut honest: Vec<Honest> = Vec::new();
    let (mut begun_count, mut toll) = (0, Toll::default());
    while begun_count < honest_count || !honest.is_empty() {
        connections.end_overdue(now);
        let client = Client::new(Speaker::Raw, now);
        if habit == Habit::HelloThenSilence {
            client.pipe.borrow_mut().to_server.extend(&hello);
        }
        let end = End::of(&client);
        connections.admit(end, SocketAddr::new(sources(hostile_count), 9), now);
        hostile_count += 1;
        hostile.push_back((now, client));
        if habit == Habit::OctetEachSecond {
            // The first octets of a record that goes on.
            while hostile.front().is_some_and(|(since, _)| *since + Duration::from_secs(1) <= now) {
                let Some((_, client)) = hostile.pop_front() else { break };
                let octet = [22, 3, 1, 2, 0, 1, 0][client.pipe.borrow().taken_size % 7];
                client.pipe.borrow_mut().to_server.push_back(octet);
                let key = client.pipe.borrow().key;
                key.into_iter().for_each(|key| connections.advance(key, now));
                if client.is_open() {
                    hostile.push_back((now, client));
                }
            }
        } else {
            hostile.pop_front().filter(|_| hostile.len() > 8192);
        }
        if now >= next_honest && begun_count < honest_count {
            next_honest += honest_interval;
            let source = [172, 16 + (begun_count >> 8 & 15) as u8, begun_count as u8, 1];
            begun_count += 1;
            let mut client = Client::new(Speaker::Right(Dialogue::new(&ASK).expect("it is a dialogue")), now);
            client.send(usize::MAX);
            connections.admit(End::of(&client), SocketAddr::new(source.into(), 9), now);
            honest.push(Honest { client, speaks_at: now + 2 * ONE_WAY });
        }
        honest.retain_mut(|Honest { client, speaks_at }| {
            if *speaks_at > now {
                return true;
            }
            if !client.is_open() && client.pipe.borrow().to_client.is_empty() {
                toll.lost += 1;
                return false;
            }
            client.take(usize::MAX);
            client.send(usize::MAX);
            let key = client.pipe.borrow().key;
            key.into_iter().for_each(|key| connections.advance(key, now));
            *speaks_at = now + 2 * ONE_WAY;
            if client.is_done {
                client.pipe.borrow_mut().client_ended = true;
                key.into_iter().for_each(|key| connections.advance(key, now));
                toll.served += 1;
            }
            !client.is_done
        });
        now += interval;
    }
    assert_eq!(toll.lost + toll.served, honest_count);
    toll
}

fn first_flight() -> Vec<u8> {
    let mut tls =
        ClientConnection::new(Arc::clone(&ASK.tls), ASK.server_name.clone()).expect("its name is one");
    let mut flight = Vec::new();
    tls.write_tls(&mut flight).expect("memory takes it");
    flight
}

/// Of the /40 2001:db8::/40, each time another /48, and another address in it.
fn of_40(number: u32) -> IpAddr {
    Ipv6Addr::from_bits(0x2001_0db8_0000_u128 << 80 | u128::from(number & 255) << 80 | u128::from(number))
        .into()
}

/// Of a /32, with 65,536 /48s.
fn of_32(number: u32) -> IpAddr {
    Ipv6Addr::from_bits(0x2001_0db9_0000_u128 << 80 | u128::from(number & 0xFFFF) << 80 | 1).into()
}

/// Of a hundred /24s.
fn of_hundred_24s(number: u32) -> IpAddr {
    Ipv4Addr::from(0xC612_0000 | (number % 100) << 8 | ((number / 100) & 255)).into()
}

/// Of three /24s and three /48s.
fn of_six(number: u32) -> IpAddr {
    match number % 6 {
        network @ 0..3 => Ipv4Addr::from(0xC612_0000 | network << 8 | ((number / 6) & 255)).into(),
        network => {
            let prefix = 0x2001_0db8_0000_u128 + u128::from(network);
            Ipv6Addr::from_bits(prefix << 80 | u128::from(number / 6) << 64 | 1).into()
        }
    }
}

/// Time in which the places are filled, at 4,000 a second.
const FILLING: Duration = Duration::from_millis(1200);

#[test]
fn fast_idle_flood_costs_distant_clients_nothing() {
    for (name, sources) in
        [("a /40", of_40 as fn(u32) -> IpAddr), ("a /32", of_32), ("a hundred /24s", of_hundred_24s)]
    {
        let honest = (Duration::from_millis(10), 200);
        let toll = flood(Habit::Idle, Duration::from_micros(250), sources, FILLING, honest);
        assert_eq!(toll.lost, 0, "{name}: {toll:?}");
    }
}

#[test]
fn fast_octet_flood_costs_distant_clients_nothing() {
    for (name, sources) in [("a /40", of_40 as fn(u32) -> IpAddr), ("a hundred /24s", of_hundred_24s)] {
        let honest = (Duration::from_millis(10), 200);
        let toll = flood(Habit::OctetEachSecond, Duration::from_micros(250), sources, FILLING, honest);
        assert_eq!(toll.lost, 0, "{name}: {toll:?}");
    }
}

/// The processor is not part of this model: what 4,000 handshakes a second cost is another matter.
#[test]
fn fast_hello_flood_costs_distant_clients_nothing() {
    for (name, sources) in [("a /40", of_40 as fn(u32) -> IpAddr), ("a hundred /24s", of_hundred_24s)] {
        let honest = (Duration::from_millis(10), 40);
        let toll = flood(Habit::HelloThenSilence, Duration::from_micros(250), sources, FILLING, honest);
        assert_eq!(toll.lost, 0, "{name}: {toll:?}");
    }
}

#[test]
fn slow_floods_cost_a_thousand_clients_nothing() {
    for habit in [Habit::Idle, Habit::OctetEachSecond, Habit::HelloThenSilence] {
        let honest = (Duration::from_millis(7), 1000);
        let interval = Duration::from_nanos(1_000_000_000 / 150);
        let toll = flood(habit, interval, of_six, Duration::from_secs(6), honest);
        assert_eq!(toll.lost, 0, "{habit:?}: {toll:?}");
    }
}
