//! How long a session lasts by what the server says, and that a client replaces it before it ends.

use authentick_crypto::Entropy;
use authentick_proto::antp::client::{Association, Bounds, Check, Event, Phase, Wanted};
use authentick_proto::antp::server::{LIFETIME_SECONDS_MAX, Settings};
use authentick_sim::World;
use authentick_sim::antp::{offer, published_key};
use authentick_wire::antp::Suite;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;

use super::{BEGIN, world_with};

fn world_of_keys_that_last(lifetime_seconds: u32) -> World {
    world_with(1, &[Suite::P256], Settings { lifetime_seconds, ..Settings::default() })
}

/// Asks every five seconds of so many; how many asks found time, and how many keys were made.
fn asks(world: &mut World, seconds: u64) -> (u64, u64) {
    let (mut association, mut entropy) = (Association::new(), Entropy::from_seed(3));
    let (mut served, mut key_count) = (0, 0);
    for second in (0..seconds).step_by(5) {
        if second > 0 {
            world.pass(5_000_000_000);
        }
        if association.phase(second) == Phase::Negotiate {
            association.establish(world.session(Suite::P256), second);
            key_count += 1;
        }
        let session = association.session().unwrap();
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let (mut exchange, size) =
            session.ask(Wanted::default(), Bounds::WAN, world.server_time(), &mut entropy, &mut out);
        let answer = world.answer(&out[..size]);
        match exchange.receive(&answer.datagrams[0], world.server_time(), session) {
            Ok(Event::Accepted(_)) => {
                association.accepted();
                served += 1;
            }
            Ok(Event::Early) => panic!("nobody asked for it"),
            Err(check) => {
                association.failed(&check, second);
            }
        }
    }
    (served, key_count)
}

#[test]
fn client_has_time_at_every_ask_of_an_hour_from_a_server_whose_keys_last_a_minute() {
    // A key is replaced after 48 s, which is the ask after 50.
    assert_eq!(asks(&mut world_of_keys_that_last(60), 3600), (720, 72));
}

#[test]
fn key_that_lasts_long_is_made_once() {
    assert_eq!(asks(&mut world_of_keys_that_last(7 * 86_400), 3600), (720, 1));
}

#[test]
fn lifetime_is_what_the_server_will_take_and_stands_under_the_tag() {
    for (configured, told) in [(60, 60), (86_400, 86_400), (u32::MAX, LIFETIME_SECONDS_MAX)] {
        let mut world = world_of_keys_that_last(configured);
        let (done, _) = world.negotiate(offer(&[Suite::P256]));
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let public = published_key(Suite::P256);
        let (mut exchange, size) = done.exchange(&public, &mut Entropy::from_seed(2), &mut out).unwrap();
        let m4 = world.answer(&out[..size]).datagrams.remove(0);
        let at = m4.len() - 36;
        assert_eq!(m4[at..at + 4], told.to_be_bytes());
        let mut longer = m4.clone();
        longer[at] ^= 1;
        assert_eq!(exchange.receive(&longer).err(), Some(Check::Tag));
        let session = exchange.receive(&m4).unwrap();
        assert_eq!(session.lifetime_seconds(), told);
        for (second, is_served) in [(told - 1, true), (told, false)] {
            let then = BEGIN + authentick_wire::time::NtpSpan::from_nanos(i64::from(second) * 1_000_000_000);
            let entropy = &mut Entropy::from_seed(4);
            let (mut exchange, size) = session.ask(Wanted::default(), Bounds::WAN, then, entropy, &mut out);
            let answer = world.answer_at(&out[..size], then, then);
            let end = exchange.receive(&answer.datagrams[0], then, &mut session.clone());
            assert_eq!(matches!(end, Ok(Event::Accepted(_))), is_served, "{second} of {told}");
        }
    }
}
