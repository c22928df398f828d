//! Whole histories of clients and a server in virtual time. A failure prints the seed that repeats it.

use authentick_crypto::Algorithm;
use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_proto::antp::client::{SeparateTag, Wanted};
use authentick_proto::antp::server::Settings;
use authentick_proto::client::Check;
use authentick_proto::server::outcome::Outcome;
use authentick_proto::symmetric::{Allowed, SymmetricKey, SymmetricKeys};
use authentick_sim::antp::published_service;
use authentick_sim::{Asked, Clock, Event, Link, Scheme, TrueTime, World};
use authentick_wire::antp::Suite;
use authentick_wire::header::ReferenceId;

const SECOND: u64 = 1_000_000_000;
const WAN: Link = Link {
    there_ns: 8_000_000,
    back_ns: 12_000_000,
    jitter_ns: 3_000_000,
    lost_ppm: 0,
    duplicated_ppm: 0,
    damaged_ppm: 0,
};
const NASTY: Link = Link { lost_ppm: 200_000, duplicated_ppm: 100_000, damaged_ppm: 100_000, ..WAN };

/// A world whose server serves every scheme.
fn whole_world(seed: u64, link: Link) -> World {
    let mut world = World::new(seed, link);
    world.server.symmetric = SymmetricKeys::new([mac_key()], Allowed::default(), 1).ok();
    world.server =
        world.server.with_antp(published_service(&[Suite::P256, Suite::X25519], Settings::default()));
    world
}

fn mac_key() -> SymmetricKey {
    SymmetricKey::new(7, MacKey::new(MacAlgorithm::Cmac128, &[5; 16]).expect("the size is right"))
}

/// The client with this number in a [`whole_world`].
fn scheme(index: usize) -> Scheme {
    match index % 5 {
        0 => Scheme::Plain,
        1 => Scheme::Mac(mac_key()),
        2 => Scheme::Nts(Algorithm::SivCmac256),
        3 => Scheme::Antp(Suite::P256, Wanted { fresh: true, separate: None }),
        _ => Scheme::Antp(Suite::X25519, Wanted { fresh: false, separate: Some(SeparateTag::Ipv4) }),
    }
}

fn accepted(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Accepted { .. })).count()
}

#[test]
fn error_of_an_accepted_sample_is_at_most_half_its_delay() {
    bound_errors(20);
}

#[test]
#[ignore = "takes minutes; `cargo xtask nightly` runs it"]
fn error_of_an_accepted_sample_is_at_most_half_its_delay_in_thousands_of_histories() {
    bound_errors(4000);
}

/// The histories of so many seeds.
fn bound_errors(seed_count: u64) {
    let mut sample_count = 0;
    for seed in 0..seed_count {
        let mut world = whole_world(seed, NASTY);
        world.server.clock = Clock { offset_ns: -3_000_000, drift_ppb: 20_000 };
        let mut clients = Vec::new();
        for index in 0..8i64 {
            let clock =
                Clock { offset_ns: index * 700_000_000 - 2_000_000_000, drift_ppb: index * 9_000 - 30_000 };
            clients.push(world.add_client(clock, Scheme::Nts(Algorithm::ALL[index as usize % 4])));
            // Plain ones believe what was damaged on its way.
            clients.push(world.add_client(clock, scheme([1, 3, 4][index as usize % 3])));
        }
        for _ in 0..50 {
            for &client in &clients {
                if world.ask(client) == Asked::NoCookie {
                    world.exchange_keys(client, Algorithm::SivCmac256);
                }
            }
            for event in world.pass(SECOND) {
                let Event::Accepted { sample, truth_ns, .. } = event else { continue };
                let error = (sample.offset.as_nanos() - truth_ns).unsigned_abs();
                let bound = sample.delay.as_nanos().unsigned_abs() / 2;
                // Both clocks drift during an exchange of 50 ms, by 100 ppm at the most; fields round to nanoseconds.
                assert!(
                    error <= bound + 5_000 + 2,
                    "seed {seed}: error {error} ns, half the delay {bound} ns"
                );
            }
        }
        assert!(world.totals().accepted > 300, "seed {seed}: {:?}", world.totals());
        sample_count += world.totals().accepted;
    }
    println!("assurance: histories = {seed_count} histories");
    println!("assurance: samples = {sample_count} samples");
}

#[test]
fn every_datagram_is_accounted_for() {
    account(10);
}

#[test]
#[ignore = "takes minutes; `cargo xtask nightly` runs it"]
fn every_datagram_is_accounted_for_in_thousands_of_histories() {
    account(4000);
}

/// The histories of so many seeds.
fn account(seed_count: u64) {
    let mut datagram_count = 0;
    for seed in 0..seed_count {
        let mut world = whole_world(seed, NASTY);
        let clients: Vec<usize> =
            (0..20).map(|index| world.add_client(Clock::default(), scheme(index))).collect();
        let mut events = Vec::new();
        for _ in 0..20 {
            for &client in &clients {
                world.ask(client);
            }
            events.extend(world.pass(SECOND));
        }
        let totals = world.totals();
        assert_eq!(world.outcomes().total(), totals.reached_server, "seed {seed}");
        assert_eq!(events.len() as u64, totals.reached_clients, "seed {seed}");
        assert!(totals.accepted <= totals.sent, "seed {seed}: at most one answer to a request");
        let answered: u64 = Outcome::ALL
            .iter()
            .filter(|outcome| outcome.is_answered())
            .map(|&outcome| world.outcomes().of(outcome))
            .sum();
        assert!(answered >= totals.accepted, "seed {seed}");
        for outcome in
            [Outcome::Plain, Outcome::Mac, Outcome::Nts, Outcome::AntpTime, Outcome::AntpSeparateTag]
        {
            assert!(world.outcomes().of(outcome) > 10, "seed {seed}: {outcome:?}");
        }
        datagram_count += totals.reached_server + totals.reached_clients;
    }
    println!("assurance: histories = {seed_count} histories");
    println!("assurance: datagrams = {datagram_count} datagrams");
}

/// The world itself asserts that no cookie is used twice.
#[test]
fn loss_is_made_good_by_placeholders_without_new_keys() {
    let seed = 3;
    let mut world = World::new(seed, Link { lost_ppm: 150_000, ..WAN });
    let client = world.add_client(Clock::default(), Scheme::Nts(Algorithm::SivCmac256));
    let mut fewest = usize::MAX;
    for _ in 0..2000 {
        assert_eq!(world.ask(client), Asked::Sent, "seed {seed}");
        world.pass(SECOND);
        fewest = fewest.min(world.cookie_count(client));
    }
    assert!(fewest < 6, "seed {seed}: losses did empty the jar now and then: {fewest}");
    assert_eq!(world.totals().key_exchanges, 1);
    assert_eq!(world.outcomes().of(Outcome::NakUnknownKey) + world.outcomes().of(Outcome::NakCookie), 0);
}

#[test]
fn rotation_costs_nothing_and_keys_that_are_gone_cost_one_key_exchange() {
    let seed = 4;
    let mut world = World::new(seed, WAN);
    let (steady, sleeper) = (
        world.add_client(Clock::default(), Scheme::Nts(Algorithm::SivCmac256)),
        world.add_client(Clock::default(), Scheme::Nts(Algorithm::Aes128GcmSiv)),
    );
    // 30 days; one client asks every 1024 s, the other once at the start and once at the end.
    world.ask(sleeper);
    for _day in 0..30 {
        for _ in 0..84 {
            world.ask(steady);
            let events = world.pass(1024 * SECOND);
            assert!(accepted(&events) >= 1, "seed {seed}: {events:?}");
        }
        world.rotate_keys(7);
    }
    assert_eq!(world.outcomes().of(Outcome::NakUnknownKey), 0, "seed {seed}");
    world.ask(sleeper);
    let events = world.pass(SECOND);
    let naks: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, Event::Rejected { check: Check::Kiss(ReferenceId::NTSN), .. }))
        .collect();
    assert_eq!(naks.len(), 1, "seed {seed}: {events:?}");
    world.exchange_keys(sleeper, Algorithm::Aes128GcmSiv);
    world.ask(sleeper);
    assert_eq!(accepted(&world.pass(SECOND)), 1);
    assert_eq!(world.totals().key_exchanges, 3);
}

#[test]
fn server_that_loses_its_keys_tells_every_client() {
    let mut world = World::new(5, WAN);
    let clients: Vec<usize> =
        (0..100).map(|_| world.add_client(Clock::default(), Scheme::Nts(Algorithm::SivCmac256))).collect();
    world.lose_keys();
    clients.iter().for_each(|&client| assert_eq!(world.ask(client), Asked::Sent));
    let events = world.pass(SECOND);
    let told =
        events.iter().filter(|event| matches!(event, Event::Rejected { check: Check::Kiss(_), .. })).count();
    assert_eq!(told, 100);
    assert_eq!(world.outcomes().of(Outcome::NakUnknownKey), 100);
}

#[test]
fn plain_clients_can_be_fooled_by_damage_and_nts_clients_can_not() {
    let link = Link { damaged_ppm: 1_000_000, ..WAN };
    let worst = |scheme: fn() -> Scheme| {
        let mut worst = 0u64;
        for seed in 0..40 {
            let mut world = World::new(seed, link);
            let client = world.add_client(Clock::default(), scheme());
            for _ in 0..20 {
                if world.ask(client) == Asked::NoCookie {
                    world.exchange_keys(client, Algorithm::SivCmac256);
                }
                for event in world.pass(SECOND) {
                    if let Event::Accepted { sample, truth_ns, .. } = event {
                        worst = worst.max((sample.offset.as_nanos() - truth_ns).unsigned_abs());
                    }
                }
            }
        }
        worst
    };
    assert!(
        worst(|| Scheme::Plain) > SECOND,
        "without authentication a flipped bit moves the time by seconds"
    );
    assert!(worst(|| Scheme::Nts(Algorithm::SivCmac256)) < 10_000_000);
}

/// The world begins at 1,700,000,000 s of Unix, and the first era of NTP ends at 2,085,978,496 s. RFC 5905 section 6.
#[test]
fn era_that_ends_in_2036_ends_unnoticed_on_either_side_of_it() {
    const UNTIL_ERA_1: u64 = 2_085_978_496 - 1_700_000_000;
    let seed = 6;
    let mut world = World::new(seed, WAN);
    // Some clients have crossed it when the server has not, and the other way round, by up to half a minute.
    let offsets_s = [-30, -2, 0, 2, 30];
    let clients: Vec<usize> = offsets_s
        .iter()
        .flat_map(|seconds| [(seconds, Scheme::Plain), (seconds, Scheme::Nts(Algorithm::SivCmac256))])
        .map(|(seconds, scheme)| {
            world.add_client(Clock { offset_ns: seconds * SECOND as i64, drift_ppb: 0 }, scheme)
        })
        .collect();
    world.pass((UNTIL_ERA_1 - 40) * SECOND);
    let shown =
        |world: &World, second: u64| world.server.clock.at(TrueTime((UNTIL_ERA_1 - 40 + second) * SECOND));
    assert!(
        shown(&world, 0).to_bits() > u64::MAX / 2 && shown(&world, 80).to_bits() < 1 << 40,
        "it is crossed"
    );
    for second in 0..80 {
        clients.iter().for_each(|&client| assert_eq!(world.ask(client), Asked::Sent));
        let events = world.pass(SECOND);
        assert_eq!(events.len(), clients.len());
        for event in events {
            let Event::Accepted { sample, truth_ns, client } = event else {
                panic!("seed {seed}, second {second}: {event:?}")
            };
            assert_eq!(truth_ns, -offsets_s[client / 2] * SECOND as i64);
            let error = (sample.offset.as_nanos() - truth_ns).unsigned_abs();
            let bound = sample.delay.as_nanos().unsigned_abs() / 2;
            assert!(error <= bound + 2, "seed {seed}, second {second}: error {error} ns, bound {bound} ns");
        }
    }
    assert_eq!(world.totals().key_exchanges, 5);
}

#[test]
fn same_seed_same_history() {
    let history = |seed| {
        let mut world = World::new(seed, NASTY);
        let client = world.add_client(Clock::default(), Scheme::Nts(Algorithm::SivCmac512));
        (0..50)
            .flat_map(|_| {
                world.ask(client);
                world.pass(SECOND)
            })
            .map(|event| format!("{event:?}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(history(9), history(9));
    assert_ne!(history(9), history(10));
}
