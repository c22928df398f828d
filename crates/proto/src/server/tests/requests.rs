//! What the specifications ask of single requests and their responses, one rule each.

use authentick_wire::nts::NtsFields;

use super::nts::sealed;
use super::*;

/// A session, and the identifier and the cookie field of a request under it.
fn parts(server: &mut Server) -> (NtsSession, Vec<u8>, Vec<u8>) {
    let session = server.session(Algorithm::SivCmac256, 1);
    let cookie = session.clone().jar.take().unwrap();
    let identifier = field(FieldType::UNIQUE_IDENTIFIER, &[9; 32]);
    (session, identifier, field(FieldType::NTS_COOKIE, &cookie))
}

/// A request in this mode, and with these fields before its authenticator.
fn in_mode(mode: Mode, session: &NtsSession, fields: &[&[u8]]) -> Vec<u8> {
    let mut request = [plain_request(), fields.concat()].concat();
    request[0] = 4 << 3 | mode.to_bits();
    sealed(request, session, &[1; 16], &[], 0)
}

//= rfc8915#5.4-2, rfc8915#5.5-1, rfc8915#5.6-9, rfc8915#5.7-1
#[test]
fn request_under_nts_has_each_field_once_and_is_in_mode_3() {
    let mut server = Server::new();
    let (session, identifier, cookie) = parts(&mut server);
    let mut outcome = |request: &[u8]| server.outcome(request).1;
    let client = |fields: &[&[u8]]| in_mode(Mode::Client, &session, fields);
    assert_eq!(outcome(&client(&[&identifier, &cookie])), Outcome::Nts);
    let without_authenticator = [plain_request(), identifier.clone(), cookie.clone()].concat();
    let placeholder = field(FieldType::NTS_COOKIE_PLACEHOLDER, &[0; 96]);
    for broken in [
        client(&[&cookie]),
        client(&[&identifier]),
        client(&[&identifier, &identifier, &cookie]),
        client(&[&identifier, &cookie, &cookie]),
        without_authenticator,
        in_mode(Mode::SymmetricActive, &session, &[&identifier, &cookie]),
        in_mode(Mode::SymmetricActive, &session, &[&identifier, &cookie, &placeholder]),
    ] {
        assert_eq!(outcome(&broken), Outcome::NtsMalformed);
    }
}

//= rfc8915#5.5-1, rfc8915#5.5-5
#[test]
fn contents_of_a_placeholder_do_not_matter_and_none_comes_back() {
    let mut server = Server::new();
    let (session, identifier, cookie) = parts(&mut server);
    let placeholder = field(FieldType::NTS_COOKIE_PLACEHOLDER, &[0xA5; 96]);
    let request = in_mode(Mode::Client, &session, &[&identifier, &cookie, &placeholder]);
    let mut response = server.ask(&request);
    assert_eq!(response.len(), request.len(), "two cookies");
    let packet = Packet::parse(&response).unwrap();
    let kinds: Vec<FieldType> = packet.fields().map(|field| field.kind).collect();
    assert_eq!(kinds, [FieldType::UNIQUE_IDENTIFIER, FieldType::NTS_AUTHENTICATOR]);
    let sealed = NtsFields::locate(&packet).unwrap().authenticator.unwrap();
    let (before, rest) = response.split_at_mut(sealed.ciphertext.start());
    let (text, tag) = session.algorithm().split_sealed(&mut rest[..sealed.ciphertext.size()]).unwrap();
    let mut genuine = false;
    let job = authentick_crypto::Open {
        key: session.keys().s2c(),
        nonce: sealed.nonce.of(before),
        associated: Some(&before[..sealed.associated_size]),
        text: text.into(),
        tag,
        genuine: &mut genuine,
    };
    authentick_crypto::run_batch(std::iter::once(job));
    assert!(genuine);
    let sealed = &response[sealed.ciphertext.start() + 16..];
    let kinds: Vec<FieldType> = extension::Fields::new(sealed, 0, 4).map(|f| f.unwrap().kind).collect();
    assert_eq!(kinds, [FieldType::NTS_COOKIE; 2]);
}

//= rfc8915#5.7-15, rfc8915#5.5-3
#[test]
fn room_without_placeholders_of_the_right_size_brings_no_further_cookie() {
    let mut server = Server::new();
    let (session, identifier, cookie) = parts(&mut server);
    let other = field(FieldType(0xF001), &[0; 400]);
    let short = field(FieldType::NTS_COOKIE_PLACEHOLDER, &[0; 92]);
    for more in [&[&other[..]][..], &[&other, &short, &short]] {
        let fields = [&[&identifier[..], &cookie], more].concat();
        let response = server.ask(&in_mode(Mode::Client, &session, &fields));
        assert_eq!(response.len(), HEADER_SIZE + 36 + 8 + 16 + 16 + 100, "one cookie");
    }
}

//= rfc9769#2-4
#[test]
fn responses_to_requests_of_one_instant_have_receive_times_of_their_own() {
    let mut server = Server::new();
    let responses = server.ask_all(&vec![plain_request(); 2]);
    let [first, second] = [0, 1].map(|index| header(&responses[index]).receive);
    assert_ne!(first, second);
}

//= rfc5905#7.3-5, rfc5905#7.3-6, rfc5905#14-1, rfc5905#14-2, rfc5905#14-4
#[test]
fn header_of_a_response_is_made_of_request_and_clock() {
    let mut server = Server::new();
    server.snapshot.leap = Leap::Delete;
    server.snapshot.stratum = 3;
    server.snapshot.root_delay = NtpShort::from_bits(0x1234);
    server.snapshot.reference_id = ReferenceId([192, 0, 2, 7]);
    let asked = Header { version: 3, poll: 9, ..Header::minimal_request(NtpTime::from_bits(0xABCD)) };
    let mut request = vec![0; HEADER_SIZE];
    asked.emit(request.first_chunk_mut().unwrap());
    let answered = header(&server.ask(&request));
    let expected = Header {
        leap: Leap::Delete,
        mode: Mode::Server,
        stratum: 3,
        precision: server.snapshot.precision,
        root_delay: NtpShort::from_bits(0x1234),
        reference_id: ReferenceId([192, 0, 2, 7]),
        reference: server.snapshot.reference,
        origin: NtpTime::from_bits(0xABCD),
        root_dispersion: answered.root_dispersion,
        receive: answered.receive,
        transmit: answered.transmit,
        ..asked
    };
    assert_eq!(answered, expected);
}

//= rfc9769#3-1, rfc9769#3-2
#[test]
fn symmetric_peer_is_told_when_the_response_before_left_only_if_it_asks() {
    let mut server = Server::new();
    let mut peer = |origin: NtpTime, receive: u64| {
        let mut request = plain_request();
        let mut asked = header(&request);
        (asked.mode, asked.origin) = (Mode::SymmetricActive, origin);
        asked.receive = NtpTime::from_bits(receive);
        asked.emit(request.first_chunk_mut().unwrap());
        server.now = server.now + NtpSpan::SECOND;
        (asked, header(&server.ask(&request)))
    };
    let (_, first) = peer(NtpTime::ZERO, 0);
    let (_, second) = peer(first.receive, 0x1234);
    let (asked, basic) = peer(second.transmit, 0x1234);
    assert_eq!((basic.mode, basic.origin), (Mode::SymmetricPassive, asked.transmit));
    let (_, interleaved) = peer(second.receive, 0x5678);
    assert_eq!(interleaved.origin, NtpTime::from_bits(0x5678));
    assert_eq!(interleaved.transmit, second.transmit);
}
