//! Admission in virtual time, with clients that come back as those in the field do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

const SEED: u64 = 20;

fn admission(limits: Limits, rates: Rates) -> (Arc<Admission>, Instant) {
    let start = Instant::now();
    let everyone = PrefixSet::everything();
    let admission = Admission::new(everyone, limits, rates, &mut Entropy::from_seed(SEED), start);
    (Arc::new(admission), start)
}

/// How long a client waits before its next attempt, after so many that failed.
type Patience = fn(u32) -> Duration;

/// chrony 4: 2^4 seconds after a connection that was closed during the handshake, then twice as long each time.
fn chrony(failed_count: u32) -> Duration {
    Duration::from_secs(16 << (failed_count - 1))
}

/// ntpd-rs 1: a second, always.
fn ntpd_rs(_: u32) -> Duration {
    Duration::from_secs(1)
}

/// A client that tries again with its poll interval.
fn each_poll(_: u32) -> Duration {
    Duration::from_secs(64)
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A connection ends: the number of its client.
    End(usize),
    /// A client connects, having failed so many times.
    Attempt(usize, u32),
}

/// Clients with these addresses lose their keys, notice within a minute, and connect until they are admitted. A
/// connection takes half a second, as over a path round the world. Returns when the last one was admitted.
/// `hostile` connects a thousand times a second all the while.
fn come_back(clients: &[IpAddr], patience: Patience, hostile: Option<IpAddr>) -> Duration {
    let (admission, start) = admission(Limits::default(), Rates::default());
    let mut entropy = Entropy::from_seed(SEED);
    let mut random = || {
        let mut octets = [0; 4];
        entropy.fill(&mut octets);
        u64::from(u32::from_le_bytes(octets))
    };
    let mut events: BinaryHeap<Reverse<(Duration, Event)>> = (0..clients.len())
        .map(|client| Reverse((Duration::from_micros(random() % 60_000_000), Event::Attempt(client, 0))))
        .collect();
    let mut places: Vec<Option<Place>> = clients.iter().map(|_| None).collect();
    let mut admitted_count = 0;
    let mut attack = Duration::ZERO;
    while let Some(Reverse((time, event))) = events.pop() {
        while let Some(hostile) = hostile.filter(|_| attack < time) {
            // Its connections are over at once: it is after the tokens.
            let _ = admission.admit(hostile, start + attack);
            attack += Duration::from_millis(1);
        }
        match event {
            Event::End(client) => places[client] = None,
            Event::Attempt(client, failed_count) => match admission.admit(clients[client], start + time) {
                Ok(place) => {
                    places[client] = Some(place);
                    admitted_count += 1;
                    events.push(Reverse((time + Duration::from_millis(500), Event::End(client))));
                    if admitted_count == clients.len() {
                        return time;
                    }
                }
                Err(_) => {
                    let again = time + patience(failed_count + 1);
                    events.push(Reverse((again, Event::Attempt(client, failed_count + 1))));
                }
            },
        }
    }
    unreachable!("clients try until they are admitted");
}

fn five_thousand(address: impl Fn(u32) -> IpAddr) -> Vec<IpAddr> {
    (0..5000).map(address).collect()
}

fn v4(last: u32) -> IpAddr {
    IpAddr::V4((0xC612_0000 | last & 0xFF).into())
}

fn v6(subnet: u32, host: u32) -> IpAddr {
    IpAddr::V6((0x2001_0db8_0001_u128 << 80 | u128::from(subnet) << 64 | u128::from(host)).into())
}

#[test]
fn five_thousand_that_come_back_within_a_minute_are_all_admitted_within_five() {
    let crowds = [
        ("a /24", five_thousand(|client| v4(client % 254 + 1))),
        ("one IPv4 address", five_thousand(|_| v4(1))),
        ("a /64", five_thousand(|client| v6(1, client))),
        ("a /48", five_thousand(|client| v6(client, 1))),
    ];
    for (name, crowd) in crowds {
        for (client, patience) in
            [("chrony", chrony as Patience), ("ntpd-rs", ntpd_rs), ("one a poll", each_poll)]
        {
            let last = come_back(&crowd, patience, None);
            assert!(last <= Duration::from_secs(300), "{client} behind {name}: {last:?}, seed {SEED}");
        }
    }
}

#[test]
fn hostile_address_leaves_its_neighbours_enough() {
    let neighbours = five_thousand(|client| v4(client % 100 + 100));
    let last = come_back(&neighbours, chrony, Some(v4(7)));
    assert!(last <= Duration::from_secs(300), "{last:?}, seed {SEED}");
    let sites = five_thousand(|client| v6(client % 1000 + 1, client));
    let last = come_back(&sites, chrony, Some(v6(0, 0)));
    assert!(last <= Duration::from_secs(300), "{last:?}, seed {SEED}");
}

/// How many of these connections, each over at once, are admitted when they come in `time`, evenly.
fn admitted(sources: impl ExactSizeIterator<Item = IpAddr>, time: Duration) -> usize {
    let (admission, start) = admission(Limits::default(), Rates::default());
    let count = sources.len() as u32;
    sources
        .enumerate()
        .filter(|&(index, source)| {
            let now = start + time.mul_f64(index as f64 / f64::from(count));
            admission.admit(source, now).is_ok()
        })
        .count()
}

#[test]
fn site_that_uses_all_its_prefixes_gets_no_more_than_a_network() {
    let minute = Duration::from_secs(60);
    let of_one = admitted((0..200_000).map(|_| v4(1)), minute);
    assert!((3190..=3200).contains(&of_one), "{of_one}: 2,000 and 20 a second");
    let of_24 = admitted((0..200_000_u32).map(|index| v4(index % 256)), minute);
    let of_48 = admitted((0..200_000_u32).map(|index| v6(index % 65_536, index)), minute);
    for count in [of_24, of_48] {
        assert!((6390..=6400).contains(&count), "{count}: 4,000 and 40 a second");
    }
}

#[test]
fn refused_connection_takes_no_token_and_no_place() {
    let rates = Rates {
        per_prefix: Some(Rates::of_prefix(1_000_000, 2)),
        per_network: Some(Rates::of_network(1_000_000, 5)),
    };
    let (admission, now) = admission(Limits::default(), rates);
    let places: Vec<_> = (0..100).filter_map(|_| admission.admit(v4(1), now).ok()).collect();
    assert_eq!(places.len(), 2);
    // The network still has the three that the prefix did not get.
    let neighbours = (2..100).filter(|&last| admission.admit(v4(last), now).is_ok()).count();
    assert_eq!(neighbours, 3);
    // And who was refused by the network has its own tokens yet.
    let later = now + Duration::from_secs(3);
    assert_eq!((0..9).filter(|_| admission.admit(v4(9), later).is_ok()).count(), 2);
    drop(places);
    assert!(admission.open().per_prefix.is_empty() && admission.open().count == 0);
}

#[test]
fn prefix_has_so_many_places_and_the_crowd_is_counted_whole() {
    let limits = Limits { connection_count: 3, per_prefix_count: 2, timeout: Duration::from_secs(5) };
    let (admission, now) = admission(limits, Rates::NONE);
    let first = [admission.admit(v6(1, 1), now).unwrap(), admission.admit(v6(1, 2), now).unwrap()];
    assert_eq!(admission.admit(v6(1, 3), now).unwrap_err(), Outcome::PrefixLimit);
    let others = [admission.admit(v6(2, 1), now).unwrap(), admission.admit(v4(1), now).unwrap()];
    assert!(admission.is_crowded());
    drop(first);
    assert!(!admission.is_crowded());
    assert!(admission.admit(v6(1, 3), now).is_ok());
    drop(others);
}

#[test]
fn other_rules_decide_from_then_on_and_same_rates_keep_what_was_taken() {
    let rates = Rates { per_prefix: Some(Rates::of_prefix(1_000_000, 2)), per_network: None };
    let (admission, now) = admission(Limits::default(), rates);
    let entropy = &mut Entropy::from_seed(SEED);
    let (abuser, neighbour) = (IpAddr::from([192, 0, 2, 7]), IpAddr::from([192, 0, 2, 8]));
    let open = admission.admit(abuser, now).unwrap();
    let everyone = PrefixSet::everything();
    admission.change(
        everyone.without(&PrefixSet::new(vec![abuser.to_string().parse().unwrap()])),
        rates,
        entropy,
    );
    assert_eq!(admission.admit(abuser, now).err(), Some(Outcome::Denied));
    assert!(admission.admit(neighbour, now).is_ok());
    admission.change(everyone.clone(), rates, entropy);
    assert!(admission.admit(abuser, now).is_ok(), "its second token");
    assert_eq!(admission.admit(abuser, now).err(), Some(Outcome::PrefixRate), "the first is not given back");
    admission.change(everyone, Rates::NONE, entropy);
    assert!(admission.admit(abuser, now).is_ok());
    assert_eq!(admission.open().count, 1, "connections stay open");
    drop(open);
    assert_eq!(admission.open().count, 0);
}
