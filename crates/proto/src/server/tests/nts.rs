//! Requests of NTS, from the client to the responder and back: every algorithm, every way to be wrong.

use authentick_crypto::{Seal, run_batch};
use authentick_wire::nts::{NtsFields, emit_authenticator};

use super::*;

/// A request sealed under the session's key, with `fields` before the authenticator and `plaintext` inside it.
fn sealed_request(
    session: &NtsSession,
    fields: &[u8],
    nonce: &[u8],
    plaintext: &[u8],
    padding: usize,
) -> Vec<u8> {
    sealed([&plain_request(), fields].concat(), session, nonce, plaintext, padding)
}

/// The same behind any octets, header and fields.
pub(super) fn sealed(
    mut octets: Vec<u8>,
    session: &NtsSession,
    nonce: &[u8],
    plaintext: &[u8],
    padding: usize,
) -> Vec<u8> {
    let associated_size = octets.len();
    octets.resize(associated_size + 200 + nonce.len() + plaintext.len() + padding, 0);
    let mut out = Writer::new(&mut octets);
    out.reserve(associated_size).unwrap();
    let (nonce_at, sealed) = emit_authenticator(&mut out, nonce, 16 + plaintext.len(), padding).unwrap();
    let size = out.offset();
    octets.truncate(size);
    let (before, rest) = octets.split_at_mut(sealed.start());
    let (text, tag) = session.algorithm().split_sealed(&mut rest[..sealed.size()]).unwrap();
    text.copy_from_slice(plaintext);
    run_batch(std::iter::once(Seal {
        key: session.keys().c2s(),
        nonce: nonce_at.of(before),
        associated: Some(&before[..associated_size]),
        text: text.into(),
        tag,
    }));
    octets
}

//= rfc8915#5.7-13, rfc8915#5.7-14, rfc8915#5.7-16, rfc8915#5.7-12, rfc8915#5.6-2, rfc8915#5.6-3
//= rfc8915#4.1.5-4, rfc8915#5.6-7
#[test]
fn nts_exchange_restores_the_jar_under_every_algorithm() {
    for algorithm in Algorithm::ALL {
        for cookie_count in 1..=COOKIE_COUNT {
            let mut server = Server::new();
            let mut session = server.session(algorithm, cookie_count);
            let (mut exchange, request) = nts_request(&mut session);
            let (mut response, outcome) = server.outcome(&request);
            assert_eq!(outcome, Outcome::Nts);
            let left = session.jar.count();
            let answer = exchange.receive(&mut response, Some(&mut session)).unwrap();
            let room_for_all = algorithm != Algorithm::SivCmac512 || cookie_count > 2;
            assert_eq!(session.jar.count() == COOKIE_COUNT, room_for_all, "{algorithm:?} {cookie_count}");
            assert_eq!(session.jar.count(), left + answer.cookie_count);
            // The fresh cookies work.
            let (mut exchange, request) = nts_request(&mut session);
            let mut response = server.ask(&request);
            assert!(exchange.receive(&mut response, Some(&mut session)).is_ok());
        }
    }
}

//= rfc8915#5.6-5, rfc8915#5.7-7, rfc8915#5.7-15
#[test]
fn placeholders_inside_the_ciphertext_count() {
    let mut server = Server::new();
    let session = server.session(Algorithm::SivCmac256, 1);
    let cookie = session.clone().jar.take().unwrap();
    let fields =
        [field(FieldType::UNIQUE_IDENTIFIER, &[9; 32]), field(FieldType::NTS_COOKIE, &cookie)].concat();
    let placeholder = field(FieldType::NTS_COOKIE_PLACEHOLDER, &vec![0; cookie.len()]);
    let request = sealed_request(&session, &fields, &[1; 16], &placeholder.repeat(3), 0);
    let response = server.ask(&request);
    assert_eq!(response.len(), 48 + 36 + 8 + 16 + 16 + 4 * 100);
    let request = sealed_request(&session, &fields, &[1; 16], &placeholder.repeat(14), 0);
    assert_eq!(server.ask(&request).len(), 48 + 36 + 8 + 16 + 16 + 8 * 100, "eight cookies at the most");
}

//= rfc8915#5.6-5
#[test]
fn encrypted_nonsense_is_dropped() {
    let mut server = Server::new();
    let session = server.session(Algorithm::SivCmac256, 1);
    let cookie = session.clone().jar.take().unwrap();
    let fields =
        [field(FieldType::UNIQUE_IDENTIFIER, &[9; 32]), field(FieldType::NTS_COOKIE, &cookie)].concat();
    let request = sealed_request(&session, &fields, &[1; 16], &[0xFF; 20], 0);
    assert_eq!(server.outcome(&request).1, Outcome::NtsMalformed);
}

/// RFC 5297 section 6: any nonce from one octet up. chrony answers 100 octets.
//= rfc8915#5.6-6
#[test]
fn long_nonce_of_siv_is_taken_and_answered_under_one_of_ours() {
    for algorithm in [Algorithm::SivCmac256, Algorithm::SivCmac384, Algorithm::SivCmac512] {
        for nonce_size in [16, 64, 65, 100, 511, 1500] {
            let mut server = Server::new();
            let mut session = server.session(algorithm, 1);
            let cookie = session.jar.take().unwrap();
            let fields =
                [field(FieldType::UNIQUE_IDENTIFIER, &[7; 32]), field(FieldType::NTS_COOKIE, &cookie)]
                    .concat();
            let request = sealed_request(&session, &fields, &vec![1; nonce_size], &[], 0);
            let (response, outcome) = server.outcome(&request);
            assert_eq!(outcome, Outcome::Nts, "{algorithm:?} {nonce_size}");
            let found = NtsFields::locate(&Packet::parse(&response).unwrap()).unwrap();
            assert_eq!(found.authenticator.unwrap().nonce.size(), 16);
            let mut changed = request.clone();
            changed[HEADER_SIZE + fields.len() + 8 + nonce_size - 1] ^= 1;
            assert_eq!(server.outcome(&changed).1, Outcome::NakTag, "the nonce is covered to its end");
        }
    }
}

//= rfc8915#5.6-6, rfc8915#5.6-8
#[test]
fn short_nonce_needs_padding() {
    let mut server = Server::new();
    for (algorithm, nonce_size, padding, good) in [
        (Algorithm::SivCmac256, 1, 0, false),
        (Algorithm::SivCmac256, 1, 8, false),
        (Algorithm::SivCmac256, 1, 12, true),
        (Algorithm::SivCmac256, 12, 4, true),
        (Algorithm::SivCmac256, 32, 0, true),
        (Algorithm::Aes128GcmSiv, 12, 0, true),
        (Algorithm::Aes128GcmSiv, 16, 0, false),
    ] {
        let session = server.session(algorithm, 1);
        let cookie = session.clone().jar.take().unwrap();
        let fields =
            [field(FieldType::UNIQUE_IDENTIFIER, &[9; 32]), field(FieldType::NTS_COOKIE, &cookie)].concat();
        // A nonce that the algorithm cannot use is sealed under one that it can; it is refused before that matters.
        let nonce = if algorithm == Algorithm::Aes128GcmSiv { vec![1; 12] } else { vec![1; nonce_size] };
        let mut request = sealed_request(&session, &fields, &nonce, &[], padding);
        if nonce.len() != nonce_size {
            let at = 48 + fields.len() + 4;
            request.splice(at + 4 + 12..at + 4 + 12, [0; 4]);
            request[at..at + 2].copy_from_slice(&16u16.to_be_bytes());
            request[at - 2..at].copy_from_slice(&40u16.to_be_bytes());
        }
        let expected = if good { Outcome::Nts } else { Outcome::NtsMalformed };
        assert_eq!(server.outcome(&request).1, expected, "{algorithm:?} {nonce_size} {padding}");
    }
}

#[test]
fn requests_that_get_time_are_counted_under_the_key_of_their_cookie_and_no_others() {
    let mut server = Server::new();
    let keys = server.keys.clone().expect("it has keys");
    let mut jars = Vec::new();
    let next = keys.rotate(1, 7, &mut Entropy::from_seed(3));
    for (set, count) in [(&keys, 5), (&next, 3)] {
        server.keys = Some(set.clone());
        jars.push((set.current().id(), server.session(Algorithm::SivCmac256, COOKIE_COUNT), count));
    }
    for (_, session, count) in &mut jars {
        let mut requests: Vec<_> = (0..*count).map(|_| nts_request(session).1).collect();
        // Forgeries: a cookie, and a tag.
        for bit_at in [HEADER_SIZE + 36 + 4 + 50, HEADER_SIZE + 36 + 104 + 8] {
            let (_, mut request) = nts_request(session);
            request[bit_at] ^= 1;
            requests.push(request);
        }
        server.ask_all(&requests);
    }
    let expected = jars.iter().map(|(id, _, requests)| KeyUses { id: *id, requests: *requests });
    assert_eq!(server.responder.key_uses(), expected.collect::<Vec<_>>());
}

//= rfc8915#5.3-3, rfc8915#5.7-20, rfc8915#5.7-21, rfc8915#6-7, rfc5905#7.4-6
#[test]
fn each_failure_of_nts_gets_a_kiss_without_time_that_the_client_understands() {
    let mut server = Server::new();
    let (identifier_end, cookie_at) = (HEADER_SIZE + 36, HEADER_SIZE + 36 + 4);
    for (bit_at, expected) in [
        (cookie_at, Outcome::NakUnknownKey),
        (cookie_at + 50, Outcome::NakCookie),
        (identifier_end + 104 + 8, Outcome::NakTag),
    ] {
        let mut session = server.session(Algorithm::SivCmac256, COOKIE_COUNT);
        let (mut exchange, mut request) = nts_request(&mut session);
        request[bit_at] ^= 1;
        let (mut response, outcome) = server.outcome(&request);
        assert_eq!(outcome, expected);
        assert_eq!(response.len(), identifier_end, "the identifier and nothing else");
        let kiss = header(&response);
        assert_eq!((kiss.leap, kiss.stratum), (Leap::Unsynchronised, 0));
        assert_eq!((kiss.receive, kiss.transmit), (kiss.origin, kiss.origin), "no time of ours");
        let answer = exchange.receive(&mut response, Some(&mut session));
        assert_eq!(answer, Err(Check::Kiss(ReferenceId::NTSN)));
    }
}

#[test]
fn cookie_under_a_key_that_is_on_its_way_gets_silence_and_then_time() {
    for awaits_keys in [false, true] {
        let mut server = Server::with_policy(Policy { awaits_keys, ..Policy::open() });
        let keys = server.keys.take().expect("it has keys");
        let mut entropy = Entropy::from_seed(7);
        for count in [0, 1, 2, 3, 65, 66] {
            let mut next = keys.clone();
            (0..count).for_each(|index| next = next.rotate(index, 7, &mut entropy));
            // Sealed where the keys are made, or where they have come already.
            server.keys = Some(next);
            let mut session = server.session(Algorithm::SivCmac256, COOKIE_COUNT);
            let (_, request) = nts_request(&mut session);
            let next = server.keys.replace(keys.clone());
            let (response, outcome) = server.outcome(&request);
            let expected = match (count, awaits_keys) {
                (0 | 1, _) => Outcome::Nts,
                (2..=65, true) => Outcome::NtsKeyAhead,
                _ => Outcome::NakUnknownKey,
            };
            assert_eq!(
                (outcome, response.is_empty()),
                (expected, expected == Outcome::NtsKeyAhead),
                "{count}"
            );
            server.keys = None;
            let none = if awaits_keys { Outcome::NtsKeyAhead } else { Outcome::NakUnknownKey };
            assert_eq!(server.outcome(&request).1, none);
            server.keys = next;
            assert_eq!(server.outcome(&request).1, Outcome::Nts);
        }
    }
}

//= rfc8915#5.7-22
#[test]
fn kiss_without_the_identifier_means_nothing() {
    let mut server = Server::new();
    let mut session = server.session(Algorithm::SivCmac256, COOKIE_COUNT);
    let (mut exchange, mut request) = nts_request(&mut session);
    request[HEADER_SIZE + 36 + 4 + 50] ^= 1;
    let mut kiss = server.ask(&request);
    kiss[HEADER_SIZE + 4] ^= 1;
    assert_eq!(exchange.receive(&mut kiss, Some(&mut session)), Err(Check::Identifier));
    assert_eq!(
        exchange.receive(&mut kiss[..HEADER_SIZE].to_vec(), Some(&mut session)),
        Err(Check::Identifier)
    );
}

#[test]
fn nts_without_keys_is_refused_and_plain_still_served() {
    let mut server = Server::new();
    let mut session = server.session(Algorithm::SivCmac256, COOKIE_COUNT);
    let (_, request) = nts_request(&mut session);
    server.keys = None;
    assert_eq!(server.outcome(&request).1, Outcome::NakUnknownKey);
    assert_eq!(server.outcome(&plain_request()).1, Outcome::Plain);
}

//= rfc8915#5.6-4, rfc8915#5.7-2, rfc8915#5.7-3, rfc8915#5.7-7, rfc8915#5.7-12
#[test]
fn no_flipped_bit_of_a_request_is_answered_with_authenticated_time() {
    let mut server = Server::new();
    let mut session = server.session(Algorithm::SivCmac256, COOKIE_COUNT - 2);
    let (_, request) = nts_request(&mut session);
    let mut outcomes = HashMap::new();
    for bit in 0..request.len() * 8 {
        let mut request = request.clone();
        request[bit / 8] ^= 1 << (bit % 8);
        let (_, outcome) = server.outcome(&request);
        assert_ne!(outcome, Outcome::Nts, "bit {bit}");
        *outcomes.entry(outcome).or_insert(0) += 1;
    }
    assert_eq!(outcomes[&Outcome::NakUnknownKey], 48, "the key identifier and the AEAD number");
    assert_eq!(outcomes[&Outcome::NakCookie], 90 * 8, "the rest of the cookie");
    assert!(outcomes[&Outcome::NakTag] > 1000, "{outcomes:?}");
}

//= rfc8915#5.6-4, rfc8915#5.7-13, rfc8915#5.7-18
#[test]
fn no_flipped_bit_of_a_response_passes_the_client() {
    for algorithm in Algorithm::ALL {
        let mut server = Server::new();
        let mut session = server.session(algorithm, COOKIE_COUNT);
        let (exchange, request) = nts_request(&mut session);
        let response = server.ask(&request);
        for bit in 0..response.len() * 8 {
            let mut response = response.clone();
            response[bit / 8] ^= 1 << (bit % 8);
            let answer = exchange.clone().receive(&mut response, Some(&mut session.clone()));
            assert!(answer.is_err(), "{algorithm:?} bit {bit}: {answer:?}");
        }
        assert!(exchange.clone().receive(&mut response.clone(), Some(&mut session)).is_ok());
    }
}

//= rfc8915#5.7-17
#[test]
fn no_prefix_or_extension_of_a_response_passes_the_client() {
    let mut server = Server::new();
    let mut session = server.session(Algorithm::SivCmac256, COOKIE_COUNT);
    let (exchange, request) = nts_request(&mut session);
    let response = server.ask(&request);
    for size in (0..response.len()).chain(response.len() + 1..response.len() + 28) {
        let mut response = response.clone();
        response.resize(size, 0);
        assert!(exchange.clone().receive(&mut response, Some(&mut session.clone())).is_err(), "{size}");
    }
    // A whole field behind the authenticator is not covered by it: RFC 8915 section 5.7 has it ignored.
    let mut longer = [response, field(FieldType::NTS_COOKIE, &[1; 100])].concat();
    let answer = exchange.clone().receive(&mut longer, Some(&mut session)).unwrap();
    assert_eq!(answer.cookie_count, 1, "the cookie in the clear is not taken");
}

proptest! {
    #[test]
    fn damaged_nts_requests_neither_crash_it_nor_are_amplified(
        cookie_count in 1..=COOKIE_COUNT,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut server = Server::new();
        let mut session = server.session(Algorithm::SivCmac256, cookie_count);
        let (_, mut request) = nts_request(&mut session);
        for (place, octet) in damage { let place = place.index(request.len()); request[place] = octet; }
        request.truncate(cut.index(request.len()) + 1);
        server.ask(&request);
    }

    //= rfc8915#8.4-1
    #[test]
    fn attacker_chosen_text_behind_a_valid_tag_is_not_amplified(
        plaintext in proptest::collection::vec(any::<u8>(), 0..600),
        nonce_size in 1..40usize,
    ) {
        let mut server = Server::new();
        let session = server.session(Algorithm::SivCmac256, 1);
        let cookie = session.clone().jar.take().unwrap();
        let fields = [field(FieldType::UNIQUE_IDENTIFIER, &[9; 32]), field(FieldType::NTS_COOKIE, &cookie)].concat();
        server.ask(&sealed_request(&session, &fields, &vec![1; nonce_size], &plaintext, 16));
    }
}
