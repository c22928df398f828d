//! The responder under every message: what it sends, what it refuses, and what is left of it.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_lockfree::{Allowance, Bucket};
use authentick_proto::antp::client::{
    Bounds, Event, Negotiation, SeparateTag, Session, TimeExchange, Wanted,
};
use authentick_proto::antp::server::{KeyExchange, Settings};
use authentick_proto::antp::source::PrefixSizes;
use authentick_proto::antp::transcript;
use authentick_proto::limits::BATCH_SIZE;
use authentick_proto::server::antp::{AntpLimits, AntpMoment, Full, KeyExchanges};
use authentick_proto::server::limit::{Limiter, Rate};
use authentick_proto::server::outcome::Outcome;
use authentick_proto::server::snapshot::Snapshot;
use authentick_proto::server::uses::KeyUses;
use authentick_proto::server::{Moment, Policy, Responder};
use authentick_sim::antp::{offer, published_key, published_service};
use authentick_sim::{AntpServer, Link, Server, World};
use authentick_wire::Writer;
use authentick_wire::antp::{
    Antp, C1_SIZE, C2_SIZE, ErrorCode, ErrorMessage, Message, PAD, Suite, TAG_SIZE, emit_padding,
};
use authentick_wire::datagram::{Datagram, Early};
use authentick_wire::extension;
use authentick_wire::header::{Header, ReferenceId};
use authentick_wire::limits::{ANTP_PAYLOAD_SIZE_MAX, DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::packet::Packet;
use authentick_wire::time::NtpTime;

use super::{BEGIN, antp, flipped, rotate, world, world_with};

/// A request behind a minimal header, with `padding` octets of padding before it.
pub(super) fn request(padding: usize, build: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut octets = vec![0; DATAGRAM_SIZE_MAX];
    let mut header = [0; HEADER_SIZE];
    Header::minimal_request(NtpTime::from_bits(7)).emit(&mut header);
    let mut out = Writer::new(&mut octets);
    out.put(&header).unwrap();
    emit_padding(&mut out, if padding < 16 { 0 } else { padding / 4 * 4 }).unwrap();
    build(&mut out);
    let size = out.offset();
    octets.truncate(size);
    octets
}

pub(super) fn asked(session: &Session, wanted: Wanted, seed: u64) -> (TimeExchange, Vec<u8>) {
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let (exchange, size) = session.ask(wanted, Bounds::WAN, BEGIN, &mut Entropy::from_seed(seed), &mut out);
    (exchange, out[..size].to_vec())
}

/// Whether an answer carries a tag of the session over `request`.
fn is_tagged(session: &Session, request: &[u8], answer: &[u8]) -> bool {
    let found =
        Packet::parse(answer).ok().and_then(|packet| Antp::locate(&packet).ok().flatten().map(|a| a.message));
    let Some(Message::TimeResponse { response, .. }) = found else { return false };
    transcript::is_time(session.key(), request, &answer[..answer.len() - TAG_SIZE], response.tag)
}

#[test]
fn no_flipped_bit_of_a_time_request_gets_an_answer_with_a_tag_over_the_request_as_it_was() {
    let mut world = world(1);
    let session = world.session(Suite::P256);
    for wanted in [Wanted::default(), Wanted { fresh: true, separate: Some(SeparateTag::Ipv4) }] {
        let (_, good) = asked(&session, wanted, 1);
        let answer = world.answer(&good);
        assert!(is_tagged(&session, &good, answer.datagrams.last().unwrap()));
        for bit in 0..good.len() * 8 {
            let bad = flipped(&good, bit);
            let answer = world.answer(&bad);
            for datagram in &answer.datagrams {
                assert!(!is_tagged(&session, &good, datagram), "bit {bit}");
            }
            // The server cannot tell a changed nonce from another one. C2 and the suite are its own.
            let is_state = bit / 8 >= good.len() - C2_SIZE;
            let is_suite = (6..8).contains(&(bit / 8 + C2_SIZE + 40).wrapping_sub(good.len()));
            if is_state || is_suite {
                assert_eq!(answer.outcome, Outcome::AntpExpired, "bit {bit}");
            }
        }
    }
}

//= antp#carrier-7, antp#carrier-8
#[test]
fn fields_without_the_magic_are_served_as_plain_ntp_and_version_2_gets_an_error() {
    let mut world = world(1);
    let session = world.session(Suite::P256);
    let (_, m5) = asked(&session, Wanted::default(), 1);
    let magic_at = HEADER_SIZE + 4;
    for bit in 0..32 {
        let answer = world.answer(&flipped(&m5, magic_at * 8 + bit));
        assert_eq!((answer.outcome, answer.datagrams[0].len()), (Outcome::Plain, HEADER_SIZE), "bit {bit}");
    }
    let mut two = m5.clone();
    two[magic_at + 4] = 2;
    let answer = world.answer(&two);
    assert_eq!((answer.outcome, answer.datagrams[0].len()), (Outcome::AntpVersion, 88));
    assert_eq!(error_of(&answer.datagrams[0]), ErrorCode::VERSION);
}

/// C1 of an m2.
fn c1_of(answer: &[u8]) -> [u8; C1_SIZE] {
    let found = Antp::locate(&Packet::parse(answer).unwrap()).unwrap().unwrap();
    let Message::NegotiationResponse(response, _) = found.message else { panic!("no m2") };
    *response.state
}

//= antp#computations-5
#[test]
fn flood_of_m1_makes_no_nonce_twice_under_a_state_key() {
    let mut world = world(1);
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let size = Negotiation::new(offer(&[Suite::P256])).request(&mut Entropy::from_seed(3), &mut out);
    let nonces: Vec<[u8; 12]> = (0..500)
        .map(|_| *c1_of(&world.answer(&out[..size]).datagrams[0])[4..].first_chunk().unwrap())
        .collect();
    for (count, nonce) in nonces.iter().enumerate() {
        // They differ by a count, and not by luck.
        let (prefix, last) = nonce.split_first_chunk::<9>().unwrap();
        assert_eq!(prefix[..], nonces[0][..9]);
        assert_eq!(*last, (count as u32).to_be_bytes()[1..]);
    }
    let c2 = *world.session(Suite::P256).state();
    assert_ne!(c2[4..13], nonces[0][..9], "another thread seals C2, under a prefix of its own");
}

fn error_of(answer: &[u8]) -> ErrorCode {
    let found = Antp::locate(&Packet::parse(answer).unwrap()).unwrap().unwrap();
    let Message::Error(ErrorMessage { code }) = found.message else { panic!("no error") };
    code
}

//= antp#carrier-3, antp#carrier-5, antp#carrier-4, rfc7822#3-4
#[test]
fn oversized_requests_and_those_with_a_mac_or_under_nts_are_not_answered() {
    let mut world = world(1);
    let session = world.session(Suite::P256);
    let (_, m5) = asked(&session, Wanted::default(), 1);
    for size in [ANTP_PAYLOAD_SIZE_MAX, ANTP_PAYLOAD_SIZE_MAX + 4] {
        let mut padded = request(size - m5.len(), |_| {});
        padded.extend_from_slice(&m5[HEADER_SIZE..]);
        assert_eq!(padded.len(), size);
        let expected = if size > ANTP_PAYLOAD_SIZE_MAX { Outcome::AntpMalformed } else { Outcome::AntpTime };
        assert_eq!(world.answer(&padded).outcome, expected, "{size}");
    }
    let with_mac = [&m5[..], &[1; 20]].concat();
    assert_eq!(world.answer(&with_mac).outcome, Outcome::AntpMalformed);
    let trailing = [&m5[..], &request(28, |_| {})[HEADER_SIZE..]].concat();
    assert_eq!(world.answer(&trailing).outcome, Outcome::AntpMalformed, "nothing follows a message");
    let nobody = request(0, |out| {
        extension::emit(out, PAD, &[7; 24]).unwrap();
    });
    assert_eq!(world.answer(&nobody).outcome, Outcome::Plain, "a field of that type without the magic");
}

#[test]
fn full_queue_gets_an_error_and_no_public_key_work() {
    let mut world = world(1);
    let m3 = key_request(&mut world);
    antp(&mut world).room = 0;
    let answer = world.answer(&m3);
    assert_eq!(answer.outcome, Outcome::AntpQueueFull);
    assert_eq!((answer.datagrams.len(), error_of(&answer.datagrams[0])), (1, ErrorCode::RATE));
    antp(&mut world).room = 1;
    assert_eq!(world.answer(&m3).datagrams[0].len(), 160);
}

fn limiter(burst: u32) -> Option<Arc<Limiter>> {
    let rate = Rate { interval_us: u64::from(u32::MAX), burst, prefix_v4: 32, prefix_v6: 64 };
    Some(Arc::new(Limiter::new(rate, 64, &mut Entropy::from_seed(1))))
}

//= antp#servers-8
#[test]
fn each_phase_has_buckets_of_its_own_and_only_state_that_opens_takes_from_them() {
    let mut world = world(1);
    let session = world.session(Suite::P256);
    let m3 = key_request(&mut world);
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let size = Negotiation::new(offer(&[Suite::P256])).request(&mut Entropy::from_seed(3), &mut out);
    let m1 = out[..size].to_vec();
    let (_, m5) = asked(&session, Wanted::default(), 1);
    antp(&mut world).limits = AntpLimits {
        negotiations: limiter(2),
        exchanges: limiter(3),
        network_exchanges: None,
        all_exchanges: None,
        times: limiter(4),
    };
    let mut bad = m3.clone();
    bad[HEADER_SIZE + 30] ^= 1;
    for _ in 0..10 {
        assert_eq!(world.answer(&bad).outcome, Outcome::AntpExpired, "C1 does not open");
    }
    let served = [Outcome::AntpNegotiated, Outcome::AntpKeyExchange, Outcome::AntpTime];
    for ((request, burst), outcome) in [(m1, 2), (m3, 3), (m5, 4)].into_iter().zip(served) {
        for number in 0..10 {
            let answer = world.answer(&request);
            let expected = if number < burst { outcome } else { Outcome::AntpRate };
            assert_eq!(answer.outcome, expected, "{number}");
            if number >= burst {
                assert_eq!(error_of(&answer.datagrams[0]), ErrorCode::RATE);
            }
        }
    }
}

/// An m3 for `world`, whose C1 is for where the world's client is.
fn key_request(world: &mut World) -> Vec<u8> {
    let (done, _) = world.negotiate(offer(&[Suite::P256]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let public = published_key(Suite::P256);
    let (_, size) = done.exchange(&public, &mut Entropy::from_seed(2), &mut out).unwrap();
    out[..size].to_vec()
}

#[test]
fn m3_is_served_where_its_c1_went_and_nowhere_else() {
    let address = |text: &str| -> IpAddr { text.parse().unwrap() };
    for (negotiates, asks, is_served) in [
        ("198.18.0.2", "198.18.0.2", true),
        ("198.18.0.2", "::ffff:198.18.0.2", true),
        ("198.18.0.2", "198.18.0.3", false),
        ("198.18.0.2", "2001:db8::2", false),
        ("2001:db8:0:1::2", "2001:db8:0:1:8000::3", true),
        ("2001:db8:0:1::2", "2001:db8:0:2::2", false),
    ] {
        for is_checked in [true, false] {
            let source_prefix = is_checked.then(PrefixSizes::default);
            let settings = Settings { source_prefix, ..Settings::default() };
            let mut world = world_with(1, &[Suite::P256], settings);
            world.source = SocketAddr::new(address(negotiates), 40_000);
            let m3 = key_request(&mut world);
            // Another port is no other source: address translators change it.
            world.source = SocketAddr::new(address(asks), 50_000);
            let outcome = world.answer(&m3).outcome;
            let expected = match is_served || !is_checked {
                true => Outcome::AntpKeyExchange,
                false => Outcome::AntpExpired,
            };
            assert_eq!(outcome, expected, "{negotiates} {asks} {is_checked}");
        }
    }
}

#[test]
fn requests_that_get_time_are_counted_under_the_key_of_their_state_and_no_others() {
    let mut world = world(1);
    let mut expected = Vec::new();
    for (rotation, requests) in [(1, 5), (2, 3)] {
        rotate(&mut world, rotation, 7);
        let session = world.session(Suite::P256);
        for seed in 0..requests {
            let separate = (seed == 0).then_some(SeparateTag::Ipv4);
            let answer = world.answer(&asked(&session, Wanted { fresh: false, separate }, seed).1);
            assert!(matches!(answer.outcome, Outcome::AntpTime | Outcome::AntpSeparateTag), "{answer:?}");
        }
        let (_, m5) = asked(&session, Wanted::default(), requests);
        for bit in [0, 8 * C2_SIZE - 1] {
            let forged = flipped(&m5, 8 * (m5.len() - C2_SIZE) + bit);
            assert_eq!(world.answer(&forged).outcome, Outcome::AntpExpired);
        }
        expected.push(KeyUses { id: antp(&mut world).keys.current().id(), requests });
    }
    assert_eq!(world.server.responder().state_key_uses(), expected);
    assert!(world.server.responder().key_uses().is_empty(), "they are none of cookies");
}

#[test]
fn state_under_the_next_keys_gets_silence_where_others_may_have_them_first() {
    for awaits_state_keys in [false, true] {
        let policy = Policy { awaits_state_keys, ..Policy::open() };
        let service = published_service(&[Suite::P256], Settings::default());
        let server = Server::new(1).with_antp(service).interleaved(policy);
        let mut world = World::with_server(1, Link::default(), server);
        let ours = antp(&mut world).keys.clone();
        for count in [0, 1, 2, 3, 65, 66] {
            // Sealed where the keys are made, or where they have come already.
            antp(&mut world).keys = ours.clone();
            (0..count).for_each(|index| rotate(&mut world, index, 7));
            let session = world.session(Suite::P256);
            let (_, m5) = asked(&session, Wanted::default(), 1);
            let requests = [(m5, Outcome::AntpTime), (key_request(&mut world), Outcome::AntpKeyExchange)];
            for (request, good) in requests {
                let theirs = std::mem::replace(&mut antp(&mut world).keys, ours.clone());
                let expected = match (count, awaits_state_keys) {
                    (0 | 1, _) => good,
                    (2..=65, true) => Outcome::AntpKeyAhead,
                    _ => Outcome::AntpExpired,
                };
                let answer = world.answer(&request);
                let is_silent = answer.datagrams.is_empty();
                assert_eq!(
                    (answer.outcome, is_silent),
                    (expected, expected == Outcome::AntpKeyAhead),
                    "{count}"
                );
                // Without any keys it is as if there were no ANTP, or as if all were ahead.
                let without = world.server.antp.take();
                let expected = if awaits_state_keys { Outcome::AntpKeyAhead } else { Outcome::Plain };
                assert_eq!(world.answer(&request).outcome, expected);
                world.server.antp = without;
                antp(&mut world).keys = theirs;
                assert_eq!(world.answer(&request).outcome, good);
            }
        }
    }
}

#[test]
fn one_c1_from_many_sources_takes_nothing_from_any_bucket() {
    let mut world = world(1);
    let home = world.source;
    let m3 = key_request(&mut world);
    let all = || Some(Arc::new(Bucket::new(Allowance::new(u64::from(u32::MAX), 2))));
    antp(&mut world).limits =
        AntpLimits { exchanges: limiter(1), all_exchanges: all(), ..AntpLimits::default() };
    for last in 3..=200 {
        world.source = ([198, 18, 0, last], 123).into();
        assert_eq!(world.answer(&m3).outcome, Outcome::AntpExpired, "{last}");
    }
    world.source = home;
    for expected in [Outcome::AntpKeyExchange, Outcome::AntpRate, Outcome::AntpRate] {
        assert_eq!(world.answer(&m3).outcome, expected);
    }
    for (last, expected) in [(2, Outcome::AntpKeyExchange), (3, Outcome::AntpBusy), (4, Outcome::AntpBusy)] {
        world.source = ([198, 18, 1, last], 123).into();
        let m3 = key_request(&mut world);
        let answer = world.answer(&m3);
        assert_eq!(answer.outcome, expected, "one each, and two in all");
        if expected == Outcome::AntpBusy {
            assert_eq!(error_of(&answer.datagrams[0]), ErrorCode::RATE);
        }
    }
}

//= antp#servers-8
#[test]
fn network_that_asks_too_often_leaves_exchanges_to_others() {
    let rate = |burst, prefix_v4| Rate { interval_us: u64::from(u32::MAX), burst, prefix_v4, prefix_v6: 48 };
    let limiter = |burst, prefix_v4| {
        Some(Arc::new(Limiter::new(rate(burst, prefix_v4), 64, &mut Entropy::from_seed(1))))
    };
    let mut world = world(1);
    antp(&mut world).limits = AntpLimits {
        exchanges: limiter(2, 32),
        network_exchanges: limiter(3, 24),
        all_exchanges: Some(Arc::new(Bucket::new(Allowance::new(u64::from(u32::MAX), 4)))),
        ..AntpLimits::default()
    };
    let mut exchange = |address: [u8; 4]| {
        world.source = (address, 123).into();
        let m3 = key_request(&mut world);
        world.answer(&m3).outcome
    };
    let served = (1..=200).filter(|&last| exchange([198, 18, 0, last]) == Outcome::AntpKeyExchange).count();
    assert_eq!(served, 3, "of one /24");
    assert_eq!(exchange([198, 18, 1, 1]), Outcome::AntpKeyExchange, "what is left for all");
    assert_eq!(exchange([198, 18, 1, 1]), Outcome::AntpBusy);
}

/// Keeps what it is offered.
#[derive(Default)]
struct Kept(RefCell<Vec<(usize, KeyExchange)>>);

impl KeyExchanges for Kept {
    fn offer(&self, index: usize, exchange: KeyExchange) -> Result<(), Full> {
        self.0.borrow_mut().push((index, exchange));
        Ok(())
    }
}

const SNAPSHOT: Snapshot = Snapshot::primary(-25, ReferenceId(*b"SIM\0"), BEGIN);

//= antp#separate-1
#[test]
fn whole_batch_of_all_kinds_keeps_its_order_and_tags_of_early_packets_come_last() {
    let mut world = world(1);
    let session = world.session(Suite::P256);
    let m3 = key_request(&mut world);
    let separate = Wanted { fresh: false, separate: Some(SeparateTag::Ipv4) };
    let source: SocketAddr = ([198, 18, 0, 2], 123).into();
    let mut exchanges: Vec<Option<TimeExchange>> = Vec::new();
    let mut requests: Vec<Vec<u8>> = Vec::new();
    for index in 0..BATCH_SIZE {
        let (exchange, octets) = match index % 4 {
            0 => (None, request(0, |_| {})),
            1 => (None, m3.clone()),
            kind => {
                let wanted = if kind == 2 { separate } else { Wanted::default() };
                let (exchange, octets) = asked(&session, wanted, index as u64);
                (Some(exchange), octets)
            }
        };
        exchanges.push(exchange);
        requests.push(octets);
    }
    let mut buffers = vec![vec![0xEE; DATAGRAM_SIZE_MAX]; BATCH_SIZE];
    let mut batch: Vec<Datagram<'_>> = requests
        .iter_mut()
        .zip(&mut buffers)
        .map(|(request, response)| Datagram {
            source,
            received: BEGIN,
            truncated: false,
            to_many: false,
            request,
            response,
            response_size: 0,
        })
        .collect();
    let kept = Kept::default();
    let limits = AntpLimits::default();
    let AntpServer { service, keys, .. } = antp(&mut world);
    let antp = Some(AntpMoment { service, keys, limits: &limits, exchanges: &kept });
    let moment = Moment { snapshot: SNAPSHOT, keys: None, symmetric: None, antp };
    let mut responder = Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(3));
    responder.begin(moment, &mut BEGIN.clone(), &mut (), &mut batch);
    let early: Vec<Early> = responder.early().to_vec();
    assert_eq!(early, (2..BATCH_SIZE).step_by(4).map(|index| Early { index, size: 76 }).collect::<Vec<_>>());
    let mut session = session;
    let is_done = |exchange: &TimeExchange, octets: &[u8], session: &mut Session| {
        matches!(exchange.clone().receive(octets, BEGIN, session), Ok(Event::Accepted(_)))
    };
    let early_octets: Vec<Vec<u8>> =
        early.iter().map(|early| batch[early.index].response[..early.size].to_vec()).collect();
    for early in &early {
        let datagram = &batch[early.index];
        let follow_up = &datagram.response[early.size..][..datagram.response_size];
        let exchange = exchanges[early.index].as_ref().unwrap();
        assert!(!is_done(exchange, follow_up, &mut session), "the tag is not there yet");
    }
    responder.finish(&mut batch);
    for (number, early) in early.iter().enumerate() {
        let datagram = &batch[early.index];
        assert_eq!(datagram.response[..early.size], early_octets[number], "what has left stays as it was");
        assert_eq!(datagram.response[early.size..][..early.size], early_octets[number]);
    }
    for (index, (datagram, exchange)) in batch.iter().zip(&exchanges).enumerate() {
        let start = early.iter().find(|early| early.index == index).map_or(0, |early| early.size);
        let response = &datagram.response[start..][..datagram.response_size];
        match index % 4 {
            0 => assert_eq!(response.len(), HEADER_SIZE),
            1 => assert_eq!(response.len(), 0, "it is answered later"),
            _ => assert!(is_done(exchange.as_ref().unwrap(), response, &mut session), "{index}"),
        }
    }
    let offered: Vec<usize> = kept.0.borrow().iter().map(|(index, _)| *index).collect();
    assert_eq!(offered, (1..BATCH_SIZE).step_by(4).collect::<Vec<_>>());
    assert!(kept.0.borrow().iter().all(|(_, exchange)| exchange.source() == source));
    let outcomes = responder.outcomes();
    for outcome in [Outcome::Plain, Outcome::AntpKeyExchange, Outcome::AntpSeparateTag, Outcome::AntpTime] {
        assert_eq!(outcomes.of(outcome), BATCH_SIZE as u64 / 4, "{outcome:?}");
    }
    assert!(responder.is_blank());
}

#[test]
fn server_without_antp_answers_all_of_it_as_plain_ntp() {
    let mut world = world(1);
    let session = world.session(Suite::P256);
    let (_, m5) = asked(&session, Wanted::default(), 1);
    world.server.antp = None;
    let answer = world.answer(&m5);
    assert_eq!((answer.datagrams[0].len(), answer.outcome), (HEADER_SIZE, Outcome::Plain));
}
