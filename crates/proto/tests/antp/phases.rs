//! Negotiation and key exchange: what comes out, and what no change on the way can bring about.

use authentick_crypto::Entropy;
use authentick_proto::antp::client::{Check, HeldChain, Negotiation, Offer, Progress};
use authentick_proto::antp::server::{BadIdentity, Identity, Service, Settings};
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::server::outcome::Outcome;
use authentick_sim::Answer;
use authentick_sim::antp::{offer, published_key, vector};
use authentick_wire::Writer;
use authentick_wire::antp::{
    Antp, ErrorCode, KeyRequest, Message, NegotiationRequest, Suite, Suites, TAG_SIZE, TimeRequest,
    emit_padding,
};
use authentick_wire::header::Header;
use authentick_wire::limits::{DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::packet::Packet;
use authentick_wire::time::NtpTime;
use proptest::prelude::*;

use super::{BEGIN, after, antp, flipped, rotate, world, world_with};

/// The bits of a header that a client checks without a tag: version, mode and origin. Nothing vouches for the others in
/// m2 and m4, and nothing uses them.
fn is_checked(bit: usize) -> bool {
    matches!(bit / 8, 24..32) || bit < 6
}

fn written(build: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut octets = vec![0; DATAGRAM_SIZE_MAX];
    let mut header = [0; HEADER_SIZE];
    Header::minimal_request(NtpTime::from_bits(7)).emit(&mut header);
    let mut out = Writer::new(&mut octets);
    out.put(&header).unwrap();
    build(&mut out);
    let size = out.offset();
    octets.truncate(size);
    octets
}

#[test]
fn every_suite_ends_in_one_key_on_both_sides_with_the_sizes_of_the_specification() {
    for (suite, rounds) in [
        (Suite::P256, vec![(1072, 848)]),
        (Suite::RSA_PKCS1, vec![(1072, 1072), (760, 760)]),
        (Suite::RSA_OAEP, vec![(1072, 1072), (760, 760)]),
        (Suite::X25519, vec![(1072, 1072), (760, 760)]),
    ] {
        let mut world = world(1);
        let (done, sizes) = world.negotiate(offer(&[suite]));
        assert_eq!((done.suite(), sizes), (suite, rounds), "{suite}");
        let session = world.exchange(&done).unwrap();
        assert_eq!(session.suite(), suite);
    }
}

//= antp#servers-3
#[test]
fn client_that_holds_the_chain_needs_one_round_with_176_octets_back() {
    let mut world = world(1);
    let (done, _) = world.negotiate(offer(&[Suite::RSA_PKCS1]));
    let held = Some(HeldChain::new(&done.chain()));
    let (again, sizes) = world.negotiate(Offer { held: held.clone(), ..offer(&[Suite::RSA_PKCS1]) });
    assert_eq!(sizes, [(176, 176)]);
    assert_eq!(again.chain(), done.chain());
    world.exchange(&again).unwrap();
    // The chain of another key is replaced.
    let (other, sizes) = world.negotiate(Offer { held, ..offer(&[Suite::P256]) });
    assert_eq!(sizes, [(176, 176), (848, 848)]);
    assert_eq!(other.chain().octets(), vector("p256.chain"));
    world.exchange(&other).unwrap();
}

//= antp#servers-2
#[test]
fn client_prefers_and_the_server_follows() {
    for list in [[Suite::P256, Suite::RSA_PKCS1], [Suite::RSA_PKCS1, Suite::P256]] {
        let (done, _) = world(1).negotiate(offer(&list));
        assert_eq!(done.suite(), list[0]);
        let served = [list[1]];
        let (done, _) = world_with(1, &served, Settings::default()).negotiate(offer(&list));
        assert_eq!(done.suite(), list[1], "the best that both have");
    }
}

/// What becomes of a handshake in which `change` sees each datagram with its number, 1 to 4.
fn tampered(change: &dyn Fn(usize, &[u8]) -> Vec<u8>) -> Result<(), Option<Check>> {
    let mut world = world(3);
    let mut negotiation = Negotiation::new(offer(&[Suite::P256, Suite::RSA_PKCS1]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let size = negotiation.request(&mut world.entropy, &mut out);
    let m2 = world.answer(&change(1, &out[..size])).datagrams.pop().ok_or(None)?;
    let done = match negotiation.receive(&change(2, &m2)).map_err(Some)? {
        Progress::Done(done) => done,
        Progress::More => return Err(None),
    };
    let public = published_key(done.suite());
    let (mut exchange, size) = done.exchange(&public, &mut world.entropy, &mut out).unwrap();
    let m4 = world.answer(&change(3, &out[..size])).datagrams.pop().ok_or(None)?;
    exchange.receive(&change(4, &m4)).map(|_| ()).map_err(Some)
}

//= antp#clients-4
#[test]
fn no_flipped_bit_of_the_four_messages_leads_to_a_session() {
    assert_eq!(tampered(&|_, octets| octets.to_vec()), Ok(()));
    let sizes = [1072, 848, 204, 160];
    for (index, size) in sizes.into_iter().enumerate() {
        let number = index + 1;
        // Padding and certificates are many octets of one kind: a part of their bits stands for all.
        let step = if size > 300 { 7 } else { 1 };
        for bit in (0..size * 8).step_by(step) {
            let end = tampered(&|now, octets| match now == number {
                true => flipped(octets, bit),
                false => octets.to_vec(),
            });
            // The server reads of a request's header version, mode and token.
            let is_request = number % 2 == 1;
            let is_seen = if is_request { bit < 6 || (40..48).contains(&(bit / 8)) } else { is_checked(bit) };
            // Padding is in no transcript, and is not ours any more under another type or magic; of a certificate field
            // flags and suite say nothing. The chain itself is bound by its hash.
            let is_loose = match number {
                1 => (48..60).contains(&(bit / 8)),
                2 => (57..60).contains(&(bit / 8)),
                _ => false,
            };
            match bit < HEADER_SIZE * 8 && !is_seen {
                true => assert_eq!(end, Ok(()), "m{number}, bit {bit}"),
                false => assert!(end != Ok(()) || is_loose, "m{number}, bit {bit}"),
            }
        }
    }
}

//= antp#clients-1
#[test]
fn removing_the_stronger_suite_from_the_offer_is_noticed() {
    // The suite list follows header, padding, field header and prefix; without a change it is 0002 0001.
    let list_at = 1072 - 84 + 4 + 8;
    let weaken = |octets: &[u8]| {
        assert_eq!(octets[list_at..list_at + 4], [0, 2, 0, 1]);
        let mut changed = octets.to_vec();
        changed[list_at..list_at + 4].copy_from_slice(&[0, 1, 0, 1]);
        changed
    };
    let end = tampered(&|number, octets| if number == 1 { weaken(octets) } else { octets.to_vec() });
    assert_eq!(end, Err(Some(Check::Choice(Suite::RSA_PKCS1))));
}

//= antp#clients-4
#[test]
fn hiding_the_stronger_suite_from_the_answer_too_is_noticed_by_the_tag() {
    let mut world = world(3);
    let mut negotiation = Negotiation::new(offer(&[Suite::P256, Suite::RSA_PKCS1]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let done = loop {
        let size = negotiation.request(&mut world.entropy, &mut out);
        let list_at = size - 84 + 4 + 8;
        out[list_at..list_at + 4].copy_from_slice(&[0, 1, 0, 1]);
        let mut m2 = world.answer(&out[..size]).datagrams.remove(0);
        let suites_at = m2.len() - 128 + 4 + 8;
        m2[suites_at..suites_at + 4]
            .copy_from_slice(&Suites::default().with(Suite::RSA_PKCS1).0.to_be_bytes());
        if let Progress::Done(done) = negotiation.receive(&m2).unwrap() {
            break done;
        }
    };
    assert_eq!(done.suite(), Suite::RSA_PKCS1, "the client believes the server has no better one");
    assert_eq!(world.exchange(&done), Err(Check::Tag), "but the server saw another offer");
}

#[test]
fn negotiation_that_a_stranger_answered_leads_to_no_session() {
    // Another server answers the negotiation, the real one the key exchange.
    let (mut real, mut other) = (world(1), world_with(2, &[Suite::X25519], Settings::default()));
    let (done, _) = other.negotiate(offer(&[Suite::X25519]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let (_, size) = done.exchange(&published_key(Suite::X25519), &mut real.entropy, &mut out).unwrap();
    let answer = real.answer(&out[..size]);
    assert_eq!(answer.outcome, Outcome::AntpExpired, "C1 is sealed by a stranger");
}

#[test]
fn c1_of_another_handshake_gives_no_session() {
    let mut world = world(1);
    let (first, _) = world.negotiate(offer(&[Suite::P256]));
    let (second, _) = world.negotiate(offer(&[Suite::P256]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let public = published_key(Suite::P256);
    let (_, size) = second.exchange(&public, &mut world.entropy, &mut out).unwrap();
    let foreign = out[HEADER_SIZE + 12..HEADER_SIZE + 84].to_vec();
    assert!(size > HEADER_SIZE + 84);
    let (mut exchange, size) = first.exchange(&public, &mut world.entropy, &mut out).unwrap();
    assert_ne!(out[HEADER_SIZE + 12..HEADER_SIZE + 84], foreign);
    out[HEADER_SIZE + 12..HEADER_SIZE + 84].copy_from_slice(&foreign);
    let answer = world.answer(&out[..size]);
    assert_eq!(answer.outcome, Outcome::AntpKeyExchange, "to the server it is as good as any");
    assert_eq!(exchange.receive(&answer.datagrams[0]), Err(Check::Tag));
}

//= antp#computations-3, antp#servers-4
#[test]
fn c1_serves_for_a_minute_and_never_as_c2() {
    let mut world = world(1);
    let (done, _) = world.negotiate(offer(&[Suite::P256]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let public = published_key(Suite::P256);
    for (seconds, outcome) in
        [(0, Outcome::AntpKeyExchange), (60, Outcome::AntpKeyExchange), (61, Outcome::AntpExpired)]
    {
        let (mut exchange, size) = done.exchange(&public, &mut world.entropy, &mut out).unwrap();
        let at = after(seconds * 1_000_000_000);
        let answer = world.answer_at(&out[..size], at, at);
        assert_eq!(answer.outcome, outcome, "{seconds}");
        let end = exchange.receive(&answer.datagrams[0]);
        let is_expired = outcome == Outcome::AntpExpired;
        assert_eq!(end.is_err(), is_expired);
        assert!(!is_expired || end == Err(Check::Server(ErrorCode::EXPIRED)));
    }
    let (_, size) = done.exchange(&public, &mut world.entropy, &mut out).unwrap();
    let c1 = out[HEADER_SIZE + 12..][..60].try_into().unwrap();
    assert!(size > HEADER_SIZE + 72);
    let m5 = written(|out| {
        let request = TimeRequest {
            suite: Suite::P256,
            wants_fresh: false,
            wants_early: false,
            nonce: &[1; 32],
            state: c1,
        };
        request.emit(out).unwrap();
    });
    assert_eq!(world.answer(&m5).outcome, Outcome::AntpExpired);
}

//= antp#servers-4
#[test]
fn c1_of_one_suite_is_refused_for_another() {
    let mut world = world(1);
    let (done, _) = world.negotiate(offer(&[Suite::P256]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    done.exchange(&published_key(Suite::P256), &mut world.entropy, &mut out).unwrap();
    let state = out[HEADER_SIZE + 12..][..72].try_into().unwrap();
    let (ciphertext, _) = published_key(Suite::X25519).encapsulate(&mut world.entropy);
    let m3 = written(|out| {
        KeyRequest { suite: Suite::X25519, state, ciphertext: &ciphertext }.emit(out).unwrap();
    });
    assert_eq!(world.answer(&m3).outcome, Outcome::AntpExpired);
}

//= antp#servers-1
#[test]
fn bad_rsa_padding_gets_an_answer_like_any_other_whose_tag_never_verifies() {
    let mut world = world(1);
    let (done, _) = world.negotiate(offer(&[Suite::RSA_PKCS1]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let public = published_key(Suite::RSA_PKCS1);
    for octet in [0, 100, 255] {
        let (mut exchange, size) = done.exchange(&public, &mut world.entropy, &mut out).unwrap();
        let good = world.answer(&out[..size]);
        let mut bad = out[..size].to_vec();
        bad[size - 256 + octet] ^= 1;
        let bad = world.answer(&bad);
        assert_eq!(bad.outcome, good.outcome);
        assert_eq!(bad.datagrams[0].len(), good.datagrams[0].len());
        // All but C2 and the tag is the same.
        assert_eq!(bad.datagrams[0][..HEADER_SIZE + 16], good.datagrams[0][..HEADER_SIZE + 16]);
        assert_eq!(exchange.receive(&bad.datagrams[0]), Err(Check::Tag));
        exchange.receive(&good.datagrams[0]).unwrap();
    }
}

//= antp#computations-2, antp#servers-9
#[test]
fn point_off_the_curve_gets_silence() {
    let mut world = world(1);
    let (done, _) = world.negotiate(offer(&[Suite::P256]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let (_, size) = done.exchange(&published_key(Suite::P256), &mut world.entropy, &mut out).unwrap();
    for change in [0, 1, 33, 64] {
        let mut bad = out[..size].to_vec();
        bad[size - 68 + change] ^= 2;
        let answer = world.answer(&bad);
        assert_eq!(answer, Answer { datagrams: vec![], outcome: Outcome::AntpKeyExchange });
    }
}

//= antp#carrier-1, antp#servers-7, antp#paper-1
#[test]
fn stripped_requests_and_plain_answers_end_in_nothing_in_every_phase() {
    let mut world = world(1);
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let plain = |request: &[u8]| {
        // What a plain server says to the header alone.
        let mut header = Header::parse(request.first_chunk().unwrap());
        (header.origin, header.mode, header.stratum) =
            (header.transmit, authentick_wire::header::Mode::Server, 1);
        (header.receive, header.transmit) = (BEGIN, BEGIN);
        let mut octets = [0; HEADER_SIZE];
        header.emit(&mut octets);
        octets
    };
    let mut negotiation = Negotiation::new(offer(&[Suite::P256]));
    let size = negotiation.request(&mut world.entropy, &mut out);
    assert_eq!(world.answer(&out[..HEADER_SIZE]).outcome, Outcome::Plain, "what is left is plain NTP");
    assert_eq!(negotiation.receive(&plain(&out[..size])).unwrap_err(), Check::Untagged);
    let (done, _) = world.negotiate(offer(&[Suite::P256]));
    let (mut exchange, _) = done.exchange(&published_key(Suite::P256), &mut world.entropy, &mut out).unwrap();
    assert_eq!(exchange.receive(&plain(&out)), Err(Check::Untagged));
    let mut session = world.session(Suite::P256);
    let (mut time, _) = session.ask(
        authentick_proto::antp::client::Wanted::default(),
        authentick_proto::antp::client::Bounds::WAN,
        BEGIN,
        &mut world.entropy,
        &mut out,
    );
    assert_eq!(time.receive(&plain(&out), BEGIN, &mut session), Err(Check::Untagged));
    let mut kiss = plain(&out);
    kiss[1] = 0;
    assert!(matches!(time.receive(&kiss, BEGIN, &mut session), Err(Check::Kiss(_))));
}

//= antp#carrier-1, antp#carrier-8, antp#servers-2
#[test]
fn other_versions_and_unknown_suites_get_an_error_that_decides_nothing() {
    let mut world = world(1);
    let mut negotiation = Negotiation::new(offer(&[Suite(0x0999)]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let size = negotiation.request(&mut world.entropy, &mut out);
    let answer = world.answer(&out[..size]);
    assert_eq!((answer.outcome, answer.datagrams[0].len()), (Outcome::AntpNoSuite, 88));
    assert_eq!(negotiation.receive(&answer.datagrams[0]).unwrap_err(), Check::Server(ErrorCode::NO_SUITE));
    let mut two = out[..size].to_vec();
    two[HEADER_SIZE + 8] = 2;
    assert_eq!(world.answer(&two).outcome, Outcome::AntpMalformed, "padding of version 2 asks for nothing");
    let at = size - 84 + 8;
    two[HEADER_SIZE + 8] = 1;
    two[at] = 2;
    let answer = world.answer(&two);
    assert_eq!(answer.outcome, Outcome::AntpVersion);
    assert_eq!(negotiation.receive(&answer.datagrams[0]).unwrap_err(), Check::Server(ErrorCode::VERSION));
}

//= antp#servers-7
#[test]
fn server_never_answers_what_servers_send() {
    let mut world = world(1);
    let mut negotiation = Negotiation::new(offer(&[Suite::P256]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let size = negotiation.request(&mut world.entropy, &mut out);
    let m2 = world.answer(&out[..size]).datagrams.remove(0);
    for mode in 0..8 {
        for message in [&m2[..], &out[..size]] {
            let mut octets = message.to_vec();
            octets[0] = 4 << 3 | mode;
            let is_request = mode == 3 && message.len() == size;
            assert_eq!(world.answer(&octets).datagrams.len(), usize::from(is_request), "mode {mode}");
        }
    }
}

//= antp#paper-3
#[test]
fn answers_do_not_depend_on_what_the_server_did_before() {
    let (mut busy, mut idle) = (world(1), world(1));
    let before: Vec<_> =
        antp(&mut busy).keys.keys().map(|(role, key)| (role, key.id(), *key.expose())).collect();
    for suite in [Suite::P256, Suite::X25519, Suite::P256] {
        let session = busy.session(suite);
        assert_eq!(session.suite(), suite);
    }
    let printed = format!("{:?}", antp(&mut busy).service);
    let after: Vec<_> =
        antp(&mut busy).keys.keys().map(|(role, key)| (role, key.id(), *key.expose())).collect();
    assert_eq!(before, after);
    assert_eq!(printed, format!("{:?}", antp(&mut idle).service));
    // From here on both draw the same random octets, and differ in nothing but their history.
    let mut client = Entropy::from_seed(8);
    let (done, _) = idle.negotiate(offer(&[Suite::P256]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let (_, size) = done.exchange(&published_key(Suite::P256), &mut client, &mut out).unwrap();
    busy.server.reseed(9);
    idle.server.reseed(9);
    assert_eq!(busy.answer(&out[..size]), idle.answer(&out[..size]));
    let mut negotiation = Negotiation::new(offer(&[Suite::RSA_PKCS1]));
    let size = negotiation.request(&mut client, &mut out);
    assert_eq!(busy.answer(&out[..size]), idle.answer(&out[..size]));
}

//= antp#clients-2
#[test]
fn chunks_out_of_order_are_refused_and_a_changed_chain_begins_anew() {
    let mut world = world(1);
    let mut negotiation = Negotiation::new(offer(&[Suite::RSA_PKCS1]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let size = negotiation.request(&mut world.entropy, &mut out);
    // The server is asked for the second part first.
    let mut skipped = out[..size].to_vec();
    skipped[size - 4..size - 2].copy_from_slice(&884_u16.to_be_bytes());
    let answer = world.answer(&skipped);
    assert_eq!(negotiation.receive(&answer.datagrams[0]).unwrap_err(), Check::Chunk);
    let good = world.answer(&out[..size]);
    assert!(matches!(negotiation.receive(&good.datagrams[0]), Ok(Progress::More)), "it went on waiting");
    assert_eq!(negotiation.receive(&good.datagrams[0]).unwrap_err(), Check::Duplicate);
    // A changed octet of the second part shows in the hash, and the next request begins anew.
    let size = negotiation.request(&mut world.entropy, &mut out);
    let answer = world.answer(&out[..size]);
    assert_eq!(negotiation.receive(&flipped(&answer.datagrams[0], 8 * 100)).unwrap_err(), Check::Chain);
    let size = negotiation.request(&mut world.entropy, &mut out);
    assert_eq!((size, &out[size - 4..size - 2]), (1072, &[0, 0][..]));
}

//= antp#clients-3
#[test]
fn negotiation_does_not_go_on_for_ever() {
    let mut world = world(1);
    let mut negotiation = Negotiation::new(offer(&[Suite::RSA_PKCS1]));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    for round in 0..100 {
        let size = negotiation.request(&mut world.entropy, &mut out);
        let mut m2 = world.answer(&out[..size]).datagrams.remove(0);
        // A new hash each time: the chain is never complete.
        let at = m2.len() - 128 + 4 + 16;
        m2[at] = round;
        if negotiation.receive(&m2).is_err_and(|check| check == Check::Chain) {
            assert!((10..50).contains(&round), "{round}");
            return;
        }
    }
    panic!("a hundred rounds without an end");
}

//= antp#messages-3
#[test]
fn identities_that_cannot_serve_say_what_is_wrong() {
    let key = vector("p256.private");
    let make =
        |suite, certificates: &[Vec<u8>]| Identity::new(suite, &key, certificates).map(|_| ()).unwrap_err();
    assert_eq!(make(Suite(9), &[vec![1]]), BadIdentity::Suite(Suite(9)));
    assert!(matches!(make(Suite::RSA_PKCS1, &[vec![1]]), BadIdentity::Key(_)));
    assert_eq!(make(Suite::P256, &[]), BadIdentity::Count(0));
    assert_eq!(make(Suite::P256, &vec![vec![1]; 9]), BadIdentity::Count(9));
    assert_eq!(make(Suite::P256, &[vec![]]), BadIdentity::Count(1));
    assert_eq!(make(Suite::P256, &[vec![1; 8191]]), BadIdentity::Size(8193));
    let identity = || Identity::new(Suite::P256, &key, &[vec![1; 8190]]).unwrap();
    let twice = Service::new(vec![identity(), identity()], Settings::default()).unwrap_err();
    assert_eq!(twice.to_string(), "there are two keys for P-256 ECIES-KEM; keep one");
}

#[test]
fn rotation_keeps_a_negotiation_alive_and_a_lost_set_ends_it() {
    let mut world = world(1);
    let (done, _) = world.negotiate(offer(&[Suite::P256]));
    rotate(&mut world, 1, 7);
    world.exchange(&done).unwrap();
    antp(&mut world).keys = StateKeys::generate(1, &mut Entropy::from_seed(77));
    assert_eq!(world.exchange(&done), Err(Check::Server(ErrorCode::EXPIRED)));
}

proptest! {
    // More if PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(400)))]

    //= antp#carrier-6
    #[test]
    fn no_negotiation_request_gets_more_than_it_sent(
        padding in 0_usize..320,
        payload_size_max: u16,
        chain_offset in 0_u16..3000,
        suites in prop::collection::vec(prop::sample::select(&[1_u16, 2, 0x101, 0x102, 9][..]), 1..=8),
        server_max in 0_usize..2000,
        is_held: bool,
    ) {
        let mut world = world_with(
            1, &[Suite::P256, Suite::RSA_PKCS1], Settings { payload_size_max: server_max, ..Settings::default() },
        );
        let list: Vec<Suite> = suites.into_iter().map(Suite).collect();
        let held = if is_held { authentick_crypto::kdf::sha256(&[&vector("p256.chain")]) } else { [3; 32] };
        let padding = if padding < 4 { 0 } else { padding * 4 };
        let request = written(|out| {
            emit_padding(out, padding).unwrap();
            let suites = authentick_wire::antp::SuiteList::new(&list).unwrap();
            NegotiationRequest { suites, nonce: &[1; 32], held: &held, chain_offset, payload_size_max }
                .emit(out)
                .unwrap();
        });
        // `answer` asserts that nothing is amplified.
        let answer = world.answer(&request);
        for datagram in &answer.datagrams {
            let found = Antp::locate(&Packet::parse(datagram).unwrap()).unwrap().unwrap();
            let limit = if matches!(found.message, Message::Error(_)) { request.len() } else { server_max };
            prop_assert!(datagram.len() <= limit);
        }
    }

    #[test]
    fn no_octets_behind_a_prefix_get_more_than_was_sent(
        kind in 0xFA00_u16..0xFA11,
        body in prop::collection::vec(any::<u8>(), 16..300),
        version in 1_u8..3,
    ) {
        let mut body = body;
        body[..6].copy_from_slice(&[b'A', b'N', b'T', b'P', version, 0]);
        let request = written(|out| {
            authentick_wire::extension::emit(out, authentick_wire::extension::FieldType(kind), &body).unwrap();
        });
        let answer = world(1).answer(&request);
        prop_assert!(answer.datagrams.iter().all(|datagram| datagram.len() > TAG_SIZE));
    }
}
