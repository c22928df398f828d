//! What a client session does over many exchanges; single exchanges are tested against the responder.

use authentick_crypto::{Algorithm, Entropy, Key};
use authentick_wire::extension::FieldType;
use authentick_wire::header::{Header, Mode, ReferenceId};
use authentick_wire::limits::{COOKIE_COUNT, COOKIE_SIZE_MAX, DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::nts::NtsFields;
use authentick_wire::packet::Packet;
use authentick_wire::time::NtpTime;

use super::*;
use crate::cookie::SessionKeys;
use crate::limits::REQUEST_SIZE_MAX;

fn session() -> NtsSession {
    let key = |octet| Key::new(Algorithm::SivCmac256, &[octet; 32]).unwrap();
    let keys = |a, b| SessionKeys::new(&key(a), &key(b)).unwrap();
    NtsSession::new(keys(1, 2), Some(keys(3, 4)))
}

//= rfc8915#4.1.6-1, rfc8915#5.7-8
#[test]
fn jar_holds_eight_cookies_of_usable_sizes() {
    let mut jar = CookieJar::default();
    for size in [0, 1, 2, 3, 5, COOKIE_SIZE_MAX + 4] {
        assert!(!jar.add(&vec![1; size]), "{size}");
    }
    for _ in 0..COOKIE_COUNT {
        assert!(jar.add(&[1; 100]));
    }
    assert!(!jar.add(&[1; 100]));
    assert_eq!(jar.count(), COOKIE_COUNT);
}

//= rfc8915#4.1.6-1, rfc8915#5.4-1, rfc8915#5.7-3, rfc8915#5.7-4, rfc8915#5.7-5
#[test]
fn no_cookie_is_used_twice_and_an_empty_jar_asks_for_a_new_exchange() {
    let (mut session, mut entropy) = (session(), Entropy::from_seed(1));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    session.jar.add(&[1; 100]);
    session.jar.add(&[2; 100]);
    for octet in [1, 2] {
        let (_, size) = Exchange::nts(&mut session, &mut entropy, &mut out).unwrap();
        let fields = NtsFields::locate(&Packet::parse(&out[..size]).unwrap()).unwrap();
        assert_eq!(fields.cookie.unwrap().of(&out), [octet; 100]);
    }
    assert_eq!(Exchange::nts(&mut session, &mut entropy, &mut out).unwrap_err(), NoCookie);
}

//= rfc8915#5.7-19, rfc8915#5.7-22
#[test]
fn answer_to_an_authenticated_request_never_passes_without_its_session() {
    let (mut session, mut entropy) = (session(), Entropy::from_seed(1));
    let mut out = [0; DATAGRAM_SIZE_MAX];
    session.jar.add(&[1; 100]);
    let (mut exchange, _) = Exchange::nts(&mut session, &mut entropy, &mut out).unwrap();
    let request = Header::minimal_request(exchange.transmit());
    let now = request.transmit;
    let good = Header { mode: Mode::Server, stratum: 1, origin: now, receive: now, ..request };
    let kiss = Header { stratum: 0, reference_id: ReferenceId::NTSN, ..good };
    let mut identifier = [0; 36];
    identifier.copy_from_slice(&out[HEADER_SIZE..HEADER_SIZE + 36]);
    let mut check = |header: Header, identifier: &[u8], with_session: bool| {
        let mut answer = [0; 48];
        header.emit(&mut answer);
        let mut answer = [&answer[..], identifier].concat();
        exchange.receive(&mut answer, with_session.then_some(&mut session)).unwrap_err()
    };
    for with_session in [false, true] {
        assert_eq!(check(good, &identifier, with_session), Check::Authenticator);
        assert_eq!(check(kiss, &identifier, with_session), Check::Kiss(ReferenceId::NTSN));
        assert_eq!(check(good, &[], with_session), Check::Identifier);
        assert_eq!(check(kiss, &[], with_session), Check::Identifier);
    }
}

//= rfc8915#5.5-3, rfc8915#5.7-8, rfc8915#5.7-10
#[test]
fn placeholders_ask_for_a_full_jar_but_never_for_a_fragmented_datagram() {
    for cookie_size in [64, 100, 168, 300, COOKIE_SIZE_MAX] {
        let (mut session, mut entropy) = (session(), Entropy::from_seed(1));
        let mut out = [0; DATAGRAM_SIZE_MAX];
        session.jar.add(&vec![1; cookie_size]);
        let (_, size) = Exchange::nts(&mut session, &mut entropy, &mut out).unwrap();
        assert!(size <= REQUEST_SIZE_MAX);
        let fields = NtsFields::locate(&Packet::parse(&out[..size]).unwrap()).unwrap();
        let one_more = size + 4 + cookie_size > REQUEST_SIZE_MAX;
        assert!(fields.placeholder_count == COOKIE_COUNT - 1 || one_more, "{cookie_size}");
    }
}

#[test]
fn alternative_keys_are_tried_once() {
    let mut session = session();
    let first = session.keys().clone();
    assert!(session.switch_keys());
    assert_ne!(session.keys().expose(), first.expose());
    assert!(!session.switch_keys());
}

#[test]
fn replayed_cookie_stays_in_the_jar_and_asks_for_no_others() {
    let mut session = session();
    assert!(
        Exchange::nts_replayed(&session, &mut Entropy::from_seed(1), &mut [0; DATAGRAM_SIZE_MAX]).is_err()
    );
    session.jar.add(&[7; 100]);
    let mut entropy = Entropy::from_seed(1);
    for _ in 0..3 {
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let size = Exchange::nts_replayed(&session, &mut entropy, &mut out).unwrap().1.size();
        assert_eq!(size, 228);
        assert_eq!(session.jar.oldest(), Some([7; 100].as_slice()));
    }
}

//= rfc8915#5.7-8
#[test]
fn requests_in_flight_count_as_cookies_to_come() {
    let mut session = session();
    for _ in 0..COOKIE_COUNT {
        session.jar.add(&[7; 100]);
    }
    let mut entropy = Entropy::from_seed(1);
    let mut out = [0; DATAGRAM_SIZE_MAX];
    for expected in 0..COOKIE_COUNT {
        let size = Exchange::nts_among(&mut session, expected, &mut entropy, &mut out).unwrap().1.size();
        assert_eq!(size, 228, "a burst out of a full jar asks for no placeholder");
    }
    assert!(Exchange::nts_among(&mut session, 0, &mut entropy, &mut out).is_err());
}

/// A session whose jar has one cookie of 100 octets.
fn session_with_a_cookie() -> NtsSession {
    let mut session = session();
    assert!(session.jar.add(&[7; 100]));
    session
}

//= rfc8915#5.3-1, rfc8915#5.7-2
#[test]
fn identifier_nonce_and_number_are_drawn_for_each_request() {
    let mut entropy = Entropy::from_seed(1);
    let mut requests = [(); 2].map(|()| {
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let (_, size) = Exchange::nts(&mut session_with_a_cookie(), &mut entropy, &mut out).unwrap();
        out[..size].to_vec()
    });
    requests.sort();
    let parts = requests.each_ref().map(|request| {
        let fields = NtsFields::locate(&Packet::parse(request).unwrap()).unwrap();
        let header = Header::parse(request.first_chunk().unwrap());
        let identifier = fields.identifier.unwrap();
        assert_eq!(identifier.size(), 32);
        (header.transmit, identifier.of(request), fields.authenticator.unwrap().nonce.of(request))
    });
    assert_ne!(parts[0].0, parts[1].0);
    assert_ne!(parts[0].1, parts[1].1);
    assert_ne!(parts[0].2, parts[1].2);
}

//= rfc8915#5.5-2, rfc8915#5.5-4
#[test]
fn placeholders_come_with_a_cookie_and_are_zeros_of_its_size() {
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let mut entropy = Entropy::from_seed(1);
    let (_, size) = Exchange::nts(&mut session_with_a_cookie(), &mut entropy, &mut out).unwrap();
    let packet = Packet::parse(&out[..size]).unwrap();
    let bodies = |kind: FieldType| -> Vec<&[u8]> {
        packet.fields().filter(|field| field.kind == kind).map(|field| field.body).collect()
    };
    assert_eq!(bodies(FieldType::NTS_COOKIE), [[7; 100]]);
    assert_eq!(bodies(FieldType::NTS_COOKIE_PLACEHOLDER), [[0; 100]; 7]);
}

//= rfc5905#6-5
#[test]
fn answer_whose_times_are_not_known_is_refused() {
    let mut request = [0; HEADER_SIZE];
    let (mut exchange, _) = Exchange::plain(&mut Entropy::from_seed(1), &mut request);
    let now = NtpTime::from_unix(1_700_000_000, 0);
    let good = Header {
        mode: Mode::Server,
        stratum: 1,
        origin: exchange.transmit(),
        receive: now,
        ..Header::minimal_request(now)
    };
    let mut answer = |header: Header| {
        header.emit(&mut request);
        exchange.receive(&mut request, None).map(|response| response.header)
    };
    assert_eq!(answer(Header { receive: NtpTime::ZERO, ..good }), Err(Check::Timestamps));
    assert_eq!(answer(Header { transmit: NtpTime::ZERO, ..good }), Err(Check::Timestamps));
    assert_eq!(answer(good), Ok(good));
}
