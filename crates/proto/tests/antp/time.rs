//! Time: the bound on its error, what is refused, and both ways of sending the tag.

use std::net::SocketAddr;

use authentick_crypto::Entropy;
use authentick_proto::antp::client::{
    Accepted, Bounds, Candidate, Check, Event, Inspected, SeparateTag, Session, TimeExchange, Wanted,
};
use authentick_proto::antp::nonce::Nonces;
use authentick_proto::antp::server::Settings;
use authentick_proto::antp::state::key_id;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::antp::transcript::verify_times;
use authentick_proto::server::outcome::Outcome;
use authentick_sim::World;
use authentick_wire::antp::{ErrorCode, Suite};
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::{NtpSpan, NtpTime};
use proptest::prelude::*;

use super::{BEGIN, after, antp, flipped, rotate, world, world_with};

const IPV6: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)), 123);
const MS: i64 = 1_000_000;

fn span(bits: i64) -> NtpSpan {
    NtpSpan::from_bits(bits)
}

/// Delays of one exchange, all in units of 2^-32 s.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// How far the server's clock is ahead.
    ahead: i64,
    there: i64,
    inside: i64,
    back: i64,
    /// From the early packet to the tag.
    tag: i64,
}

/// One exchange in virtual time: the client's clock is right.
fn exchange(
    world: &mut World,
    session: &mut Session,
    wanted: Wanted,
    bounds: Bounds,
    way: Way,
) -> Result<Accepted, Check> {
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let mut entropy = Entropy::from_seed(5);
    let (mut asked, size) = session.ask(wanted, bounds, BEGIN, &mut entropy, &mut out);
    let received = BEGIN + span(way.ahead + way.there);
    let answer = world.answer_at(&out[..size], received, received + span(way.inside));
    let mut arrival = BEGIN + span(way.there + way.inside + way.back);
    let mut end = Err(Check::Untagged);
    for datagram in &answer.datagrams {
        match asked.receive(datagram, arrival, session)? {
            Event::Early => {}
            Event::Accepted(accepted) => end = Ok(accepted),
        }
        arrival = arrival + span(way.tag);
    }
    end
}

fn far(nanos: i64) -> i64 {
    NtpSpan::from_nanos(nanos).to_bits()
}

fn symmetric() -> Way {
    Way { ahead: far(5_000 * MS), there: far(10 * MS), inside: far(MS), back: far(10 * MS), tag: far(MS) }
}

fn ask(session: &Session, wanted: Wanted, seed: u64) -> (TimeExchange, Vec<u8>) {
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let (asked, size) = session.ask(wanted, Bounds::WAN, BEGIN, &mut Entropy::from_seed(seed), &mut out);
    (asked, out[..size].to_vec())
}

fn separate() -> Wanted {
    Wanted { separate: Some(SeparateTag::Ipv4), ..Wanted::default() }
}

#[test]
fn symmetric_ways_give_the_offset_exactly_in_both_modes() {
    let mut world = world(1);
    for suite in Suite::ALL {
        let mut session = world.session(suite);
        for wanted in [Wanted::default(), separate()] {
            let accepted = exchange(&mut world, &mut session, wanted, Bounds::WAN, symmetric()).unwrap();
            assert_eq!(accepted.sample.offset, span(symmetric().ahead), "{suite}");
            assert_eq!(accepted.sample.delay, span(2 * symmetric().there));
            assert_eq!(accepted.is_early, wanted.separate.is_some());
        }
    }
}

//= antp#clients-6
#[test]
fn bound_on_the_error_is_reached_and_one_unit_more_is_refused() {
    let mut world = world(1);
    let mut session = world.session(Suite::P256);
    let e = Bounds::WAN.round_trip_max.to_bits();
    for wanted in [Wanted::default(), separate()] {
        for (there, back, sign) in [(e, 0, 1), (0, e, -1)] {
            let way = Way { ahead: far(77 * MS), there, inside: 1000, back, tag: 1 };
            let accepted = exchange(&mut world, &mut session, wanted, Bounds::WAN, way).unwrap();
            assert_eq!(accepted.sample.offset.to_bits() - way.ahead, sign * e / 2, "half of E, no less");
            assert_eq!(accepted.error_max(), span(e / 2));
            let more = Way { there: there + i64::from(sign > 0), back: back + i64::from(sign < 0), ..way };
            let end = exchange(&mut world, &mut session, wanted, Bounds::WAN, more);
            assert_eq!(end, Err(Check::RoundTrip(span(e + 1))));
        }
    }
}

proptest! {
    // More if PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(300)))]

    #[test]
    fn error_is_at_most_half_the_round_trip(
        ahead in -(1_i64 << 60)..1 << 60,
        there in 0_i64..1 << 33,
        inside in 0_i64..1 << 32,
        back in 0_i64..1 << 33,
        tag in 0_i64..1 << 30,
        is_separate: bool,
    ) {
        let mut world = world(1);
        // State does not expire however far off the server's clock is: it is the server's own time that counts.
        let way = Way { ahead, there, inside, back, tag };
        let mut session = session_at(&mut world, BEGIN + span(ahead));
        let wanted = if is_separate { separate() } else { Wanted::default() };
        let end = exchange(&mut world, &mut session, wanted, Bounds::WAN, way);
        let round_trip = there + back;
        if round_trip > Bounds::WAN.round_trip_max.to_bits() {
            prop_assert_eq!(end, Err(Check::RoundTrip(span(round_trip))));
        } else if round_trip + inside > Bounds::WAN.residence_max.to_bits() {
            prop_assert_eq!(end, Err(Check::Residence(span(round_trip + inside))));
        } else {
            let accepted = end.unwrap();
            let error = (accepted.sample.offset.to_bits() - ahead).abs();
            prop_assert_eq!(accepted.sample.delay, span(round_trip));
            prop_assert!(error <= (round_trip + 1) / 2, "{} {}", error, round_trip);
            prop_assert!(error <= accepted.error_max().to_bits());
        }
    }

    //= antp#carrier-6
    #[test]
    fn no_time_request_gets_more_than_it_sent(
        padding in 0_usize..40,
        fresh: bool,
        early: bool,
        is_ipv6: bool,
        is_rotated: bool,
    ) {
        let mut world = world(1);
        let session = world.session(Suite::P256);
        if is_rotated {
            rotate(&mut world, 1, 7);
        }
        if is_ipv6 {
            world.source = IPV6;
        }
        let padding = if padding < 4 { 0 } else { padding * 4 };
        let (_, plain) = ask(&session, Wanted { fresh, ..Wanted::default() }, 1);
        let mut request = plain[..48].to_vec();
        let mut pad = vec![0; padding];
        authentick_wire::antp::emit_padding(&mut authentick_wire::Writer::new(&mut pad), padding).unwrap();
        request.extend_from_slice(&pad);
        request.extend_from_slice(&plain[48..]);
        request[48 + padding + 4 + 5] |= u8::from(early) * 2;
        let overhead = if is_ipv6 { 48 } else { 28 };
        // `answer` asserts that nothing is amplified; here is that what fits is given.
        let answer = world.answer(&request);
        let is_early = early && padding >= 44 + overhead;
        prop_assert_eq!(answer.datagrams.len(), if is_early { 2 } else { 1 });
        let is_fresh = fresh && is_rotated && padding >= if is_early { 104 + overhead } else { 0 };
        let size = if is_early { 76 } else { 48 } + if is_fresh { 104 } else { 44 };
        prop_assert_eq!(answer.datagrams.last().unwrap().len(), size);
    }
}

/// A session whose keys were made when the server's clock showed `now`.
fn session_at(world: &mut World, now: NtpTime) -> Session {
    let session = world.session(Suite::X25519);
    let state = authentick_proto::antp::state::Established {
        suite: Suite::X25519,
        issued: authentick_proto::antp::seconds(now),
        expires: authentick_proto::antp::seconds(now).wrapping_add(1000),
        key: session.key().clone(),
    };
    Session::new(
        Suite::X25519,
        session.key().clone(),
        state.seal(&antp(world).keys, &mut Nonces::new(), &mut Entropy::from_seed(4)),
        1000,
    )
}

#[test]
fn requests_of_both_modes_are_as_large_as_what_they_ask_for() {
    let mut world = world(1);
    let session = world.session(Suite::P256);
    rotate(&mut world, 1, 7);
    for (separate, source, size, fresh_size) in [
        (None, world.source, 152, 152),
        (Some(SeparateTag::Ipv4), world.source, 224, 284),
        (Some(SeparateTag::Ipv6), IPV6, 244, 304),
    ] {
        world.source = source;
        for (fresh, size) in [(false, size), (true, fresh_size)] {
            let (_, request) = ask(&session, Wanted { fresh, separate }, 1);
            assert_eq!(request.len(), size);
            let answer = world.answer(&request);
            let expected = if separate.is_some() { Outcome::AntpSeparateTag } else { Outcome::AntpTime };
            assert_eq!(answer.outcome, expected);
            let sizes: Vec<usize> = answer.datagrams.iter().map(Vec::len).collect();
            let tag = if fresh { 104 } else { 44 };
            assert_eq!(sizes, if separate.is_some() { vec![76, 76 + tag] } else { vec![48 + tag] });
        }
    }
}

//= antp#clients-5
#[test]
fn no_flipped_bit_of_a_request_or_its_answer_gives_time() {
    let mut world = world(1);
    let mut session = world.session(Suite::P256);
    let (asked, request) = ask(&session, Wanted::default(), 1);
    let good = world.answer(&request).datagrams.remove(0);
    for bit in 0..good.len() * 8 {
        let end = asked.clone().receive(&flipped(&good, bit), BEGIN, &mut session);
        assert!(end.is_err(), "answer, bit {bit}");
    }
    for bit in 0..request.len() * 8 {
        for answer in world.answer(&flipped(&request, bit)).datagrams {
            assert!(asked.clone().receive(&answer, BEGIN, &mut session).is_err(), "request, bit {bit}");
        }
    }
    assert!(asked.clone().receive(&good, BEGIN, &mut session).is_ok());
}

#[test]
fn no_flipped_bit_of_a_follow_up_gives_time() {
    let mut world = world(1);
    let mut session = world.session(Suite::P256);
    let (asked, request) = ask(&session, separate(), 1);
    let answer = world.answer(&request).datagrams;
    for bit in 0..answer[1].len() * 8 {
        let mut asked = asked.clone();
        asked.receive(&answer[0], BEGIN, &mut session).unwrap();
        assert!(asked.receive(&flipped(&answer[1], bit), BEGIN, &mut session).is_err(), "{bit}");
    }
}

//= antp#clients-5
#[test]
fn answer_is_taken_once_and_only_for_its_own_request() {
    let mut world = world(1);
    let mut session = world.session(Suite::P256);
    let (mut first, request) = ask(&session, Wanted::default(), 1);
    let answer = world.answer(&request).datagrams.remove(0);
    assert!(first.receive(&answer, after(MS), &mut session).is_ok());
    assert_eq!(first.receive(&answer, after(2 * MS), &mut session), Err(Check::Duplicate));
    let (mut second, _) = ask(&session, Wanted::default(), 2);
    assert_eq!(second.receive(&answer, after(3 * MS), &mut session), Err(Check::Origin), "a replay");
    // With the origin rewritten to the new token it is the tag that fails.
    let (mut third, request) = ask(&session, Wanted::default(), 3);
    let mut replayed = answer.clone();
    replayed[24..32].copy_from_slice(&request[40..48]);
    assert_eq!(third.receive(&replayed, after(3 * MS), &mut session), Err(Check::Tag));
    assert_eq!(third.receive(&request, after(3 * MS), &mut session), Err(Check::Mode), "a reflection");
}

fn candidate(asked: &mut TimeExchange, datagram: &[u8], arrived: NtpTime, suite: Suite) -> Candidate {
    let Inspected::Candidate(candidate) = asked.inspect(datagram, arrived, suite).unwrap() else {
        panic!("an early packet")
    };
    candidate
}

#[test]
fn answers_that_are_verified_together_end_like_each_alone() {
    let mut world = world(1);
    let mut sessions = [world.session(Suite::P256), world.session(Suite::X25519)];
    rotate(&mut world, 1, 7);
    let wanted = [separate(), Wanted::default(), Wanted { fresh: true, separate: None }];
    let mut asked = Vec::new();
    for number in 0..60_usize {
        let (exchange, request) = ask(&sessions[number % 2], wanted[number % 3], number as u64);
        let mut answer = world.answer(&request).datagrams;
        // What is wrong: nothing, the tag, the time that it covers.
        let last = answer.last_mut().unwrap();
        match number % 7 {
            1 => *last.last_mut().unwrap() ^= 1,
            4 => last[47] ^= 1,
            _ => {}
        }
        asked.push((exchange, answer));
    }
    let alone: Vec<Result<Accepted, Check>> = asked
        .iter()
        .enumerate()
        .map(|(number, (exchange, answer))| {
            let (mut exchange, mut session) = (exchange.clone(), sessions[number % 2].clone());
            let mut end = Err(Check::Untagged);
            for (datagram, arrival) in answer.iter().zip([MS, 2 * MS]) {
                end = exchange
                    .receive(datagram, after(arrival), &mut session)
                    .map(|event| match event {
                        Event::Early => None,
                        Event::Accepted(accepted) => Some(accepted),
                    })
                    .and_then(|accepted| accepted.ok_or(Check::Untagged));
            }
            end
        })
        .collect();
    let mut candidates = Vec::new();
    for (number, (exchange, answer)) in asked.iter_mut().enumerate() {
        let suite = sessions[number % 2].suite();
        let (last, early) = answer.split_last().unwrap();
        for early in early {
            assert!(matches!(exchange.inspect(early, after(MS), suite), Ok(Inspected::Early)));
        }
        let arrived = after(if early.is_empty() { MS } else { 2 * MS });
        candidates.push((candidate(exchange, last, arrived, suite), false));
    }
    let claims = asked.iter().zip(&mut candidates).enumerate();
    let mut claims: Vec<_> = claims
        .map(|(number, ((exchange, answer), (_, genuine)))| {
            exchange.claim(answer.last().unwrap(), &sessions[number % 2], genuine).unwrap()
        })
        .collect();
    verify_times(&mut claims);
    drop(claims);
    let before = sessions.clone();
    for (number, ((exchange, _), (candidate, genuine))) in asked.iter_mut().zip(&candidates).enumerate() {
        let session = &mut sessions[number % 2];
        let end = exchange.conclude(candidate, *genuine, Some(session));
        assert_eq!(end, alone[number], "{number}");
        let expected = if matches!(number % 7, 1 | 4) { Err(Check::Tag) } else { Ok(number % 3 == 0) };
        assert_eq!(end.map(|accepted| accepted.is_early), expected, "{number}");
        // What is not genuine leaves the exchange waiting; what is ends it.
        let again = exchange.conclude(candidate, true, None);
        assert_eq!(again.err(), (expected.is_ok()).then_some(Check::Duplicate), "{number}");
    }
    for (before, session) in before.iter().zip(&sessions) {
        assert!(before.state() != session.state(), "a fresh C2 is kept");
    }
}

#[test]
fn two_copies_of_an_answer_that_are_inspected_together_give_time_once() {
    let mut world = world(1);
    let session = world.session(Suite::P256);
    let (mut asked, request) = ask(&session, Wanted { fresh: true, separate: None }, 1);
    let answer = world.answer(&request).datagrams.remove(0);
    let copies = [MS, 2 * MS].map(|at| candidate(&mut asked, &answer, after(at), Suite::P256));
    let mut genuine = false;
    verify_times(&mut [asked.claim(&answer, &session, &mut genuine).unwrap()]);
    assert!(genuine);
    let accepted = asked.conclude(&copies[0], genuine, None).unwrap();
    assert_eq!(accepted.sample.round_trip, after(MS).since(BEGIN));
    assert_eq!(asked.conclude(&copies[1], genuine, None), Err(Check::Duplicate));
    assert_eq!(asked.inspect(&answer, after(MS), Suite::P256).unwrap_err(), Check::Duplicate);
}

#[test]
fn exchange_in_the_room_of_another_keeps_nothing_of_it() {
    let mut world = world(1);
    let mut session = world.session(Suite::P256);
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let mut entropy = Entropy::from_seed(8);
    let (mut exchange, request) = ask(&session, separate(), 1);
    let old = world.answer(&request).datagrams;
    for datagram in &old {
        exchange.receive(datagram, after(MS), &mut session).unwrap();
    }
    let size = session.ask_in(&mut exchange, Wanted::default(), Bounds::WAN, BEGIN, &mut entropy, &mut out);
    assert_eq!(size, 152);
    let early = old[0].clone();
    assert_eq!(exchange.receive(&early, after(MS), &mut session), Err(Check::Origin));
    let answer = world.answer(&out[..size]).datagrams.remove(0);
    let fixed = exchange.clone();
    assert!(exchange.receive(&answer, after(MS), &mut session).is_ok());
    let size = fixed.again_in(&mut exchange, BEGIN, &mut entropy, &mut out);
    assert_eq!(exchange.receive(&answer, after(MS), &mut session), Err(Check::Origin));
    let answer = world.answer(&out[..size]).datagrams.remove(0);
    assert!(exchange.receive(&answer, after(MS), &mut session).is_ok());
    let mut idle = TimeExchange::idle();
    let mut to_nobody = answer.clone();
    to_nobody[24..32].fill(0);
    assert_eq!(idle.receive(&to_nobody, after(MS), &mut session), Err(Check::Duplicate));
}

#[test]
fn guess_of_an_early_packet_gains_nothing() {
    let mut world = world(1);
    let mut session = world.session(Suite::P256);
    let way = symmetric();
    let (mut asked, request) = ask(&session, separate(), 1);
    let received = BEGIN + span(way.ahead + way.there);
    let answer = world.answer_at(&request, received, received + span(way.inside)).datagrams;
    // The attacker knows every octet but the random ones, and is early by nearly the whole way back.
    let mut guess = answer[0].clone();
    guess[60..].fill(0);
    let mut arrival = BEGIN + span(way.there + 1);
    for guessed in 0..4_u8 {
        guess[75] = guessed;
        let kept = asked.receive(&guess, arrival, &mut session);
        assert_eq!(kept, Ok(Event::Early), "nobody can tell yet");
        arrival = arrival + span(1);
    }
    let arrived = BEGIN + span(way.there + way.inside + way.back);
    assert_eq!(
        asked.receive(&answer[0], arrived, &mut session),
        Err(Check::Duplicate),
        "a flood is not kept"
    );
    let late = arrived + span(way.tag);
    let Ok(Event::Accepted(accepted)) = asked.receive(&answer[1], late, &mut session) else { panic!() };
    assert!(!accepted.is_early, "T4 is the arrival of the follow-up: looser, and sound");
    let error = (accepted.sample.offset.to_bits() - way.ahead).abs();
    assert!(error <= accepted.error_max().to_bits());
}

//= antp#separate-2
#[test]
fn first_copy_of_the_early_packet_counts_and_without_any_the_follow_up_does() {
    let mut world = world(1);
    let mut session = world.session(Suite::P256);
    for (arrivals, expected, is_early) in
        [(vec![10, 11, 12], 10, true), (vec![11], 11, true), (vec![], 20, false)]
    {
        let (mut asked, request) = ask(&session, separate(), 1);
        let answer = world.answer(&request).datagrams;
        for arrival in arrivals {
            assert_eq!(asked.receive(&answer[0], after(arrival * MS), &mut session), Ok(Event::Early));
        }
        let Ok(Event::Accepted(accepted)) = asked.receive(&answer[1], after(20 * MS), &mut session) else {
            panic!()
        };
        assert_eq!(
            (accepted.sample.round_trip, accepted.is_early),
            (after(expected * MS).since(BEGIN), is_early)
        );
    }
    let (mut inline, request) = ask(&session, Wanted::default(), 1);
    let (_, early_request) = ask(&session, separate(), 1);
    let mut early = world.answer(&early_request).datagrams.remove(0);
    early[24..32].copy_from_slice(&request[40..48]);
    assert_eq!(inline.receive(&early, BEGIN, &mut session), Err(Check::Phase), "nobody asked for it");
}

//= antp#servers-6
#[test]
fn fresh_c2_comes_with_a_rotation_and_outlives_the_key_before() {
    let mut world = world(1);
    let mut session = world.session(Suite::P256);
    let wanted = Wanted { fresh: true, separate: None };
    let first = *session.state();
    let accepted = exchange(&mut world, &mut session, wanted, Bounds::WAN, symmetric()).unwrap();
    assert!(!accepted.is_fresh && *session.state() == first, "the key is the current one");
    let old = session.clone();
    rotate(&mut world, 1, 1);
    let accepted = exchange(&mut world, &mut session, wanted, Bounds::WAN, symmetric()).unwrap();
    assert!(accepted.is_fresh);
    assert_eq!(key_id(session.state()), antp(&mut world).keys.current().id());
    assert_eq!(session.key(), old.key(), "the session key stays");
    rotate(&mut world, 2, 1);
    assert!(exchange(&mut world, &mut session, Wanted::default(), Bounds::WAN, symmetric()).is_ok());
    let mut old = old;
    let end = exchange(&mut world, &mut old, Wanted::default(), Bounds::WAN, symmetric());
    assert_eq!(end, Err(Check::Server(ErrorCode::EXPIRED)), "its key is forgotten");
}

//= antp#servers-5, antp#servers-6
#[test]
fn fresh_c2_does_not_prolong_the_life_of_its_key() {
    let settings = Settings { lifetime_seconds: 100, ..Settings::default() };
    let mut world = world_with(1, &[Suite::P256], settings);
    let mut session = world.session(Suite::P256);
    rotate(&mut world, 1, 7);
    let at = |seconds: i64| Way { ahead: far(seconds * 1_000 * MS), ..symmetric() };
    let wanted = Wanted { fresh: true, separate: None };
    assert!(exchange(&mut world, &mut session, wanted, Bounds::WAN, at(90)).unwrap().is_fresh);
    assert!(exchange(&mut world, &mut session, wanted, Bounds::WAN, at(99)).is_ok());
    let end = exchange(&mut world, &mut session, wanted, Bounds::WAN, at(100));
    assert_eq!(end, Err(Check::Server(ErrorCode::EXPIRED)));
}

#[test]
fn state_of_another_client_or_another_server_gives_no_time() {
    let mut world = world(1);
    let (mut mine, other) = (world.session(Suite::P256), world.session(Suite::P256));
    let mut mixed = Session::new(Suite::P256, mine.key().clone(), *other.state(), 1000);
    let end = exchange(&mut world, &mut mixed, Wanted::default(), Bounds::WAN, symmetric());
    assert_eq!(end, Err(Check::Tag));
    antp(&mut world).keys = StateKeys::generate(0, &mut Entropy::from_seed(55));
    let end = exchange(&mut world, &mut mine, Wanted::default(), Bounds::WAN, symmetric());
    assert_eq!(end, Err(Check::Server(ErrorCode::EXPIRED)));
}

//= antp#servers-5
#[test]
fn c2_under_the_name_of_another_suite_is_refused() {
    let mut world = world(1);
    let session = world.session(Suite::P256);
    let mut renamed = Session::new(Suite::X25519, session.key().clone(), *session.state(), 1000);
    let end = exchange(&mut world, &mut renamed, Wanted::default(), Bounds::WAN, symmetric());
    assert_eq!(end, Err(Check::Server(ErrorCode::EXPIRED)));
}

//= antp#clients-6
#[test]
fn server_whose_clock_runs_backwards_is_refused() {
    let mut world = world(1);
    let mut session = world.session(Suite::P256);
    let way = Way { inside: -1, ..symmetric() };
    assert_eq!(exchange(&mut world, &mut session, Wanted::default(), Bounds::WAN, way), Err(Check::Order));
    // A server that claims to have held the request for longer than the exchange took.
    let way = Way { inside: far(100 * MS), back: -far(100 * MS), ..symmetric() };
    let end = exchange(&mut world, &mut session, Wanted::default(), Bounds::WAN, way);
    assert!(matches!(end, Err(Check::RoundTrip(span)) if span < NtpSpan::ZERO));
}

#[test]
fn bounds_are_lowered_and_never_raised() {
    let seen = NtpSpan::from_nanos(10 * MS);
    assert_eq!(Bounds::WAN.lowered(seen, 4).round_trip_max, span(seen.to_bits() * 4));
    assert_eq!(Bounds::LAN.lowered(seen, 400).round_trip_max, Bounds::LAN.round_trip_max);
    assert_eq!(Bounds::WAN.lowered(span(-5), 4).round_trip_max, NtpSpan::ZERO);
}
