//! The responder under every kind of request: what it answers, what it refuses, and what it never does.

use std::collections::HashMap;

use authentick_crypto::{Algorithm, Key};
use authentick_wire::Writer;
use authentick_wire::extension::{self, FieldType};
use authentick_wire::header::{Header, Leap};
use authentick_wire::limits::{COOKIE_COUNT, DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::packet::Packet;
use authentick_wire::time::{NtpShort, NtpSpan};
use proptest::prelude::*;

mod limits;
mod mac;
mod mac_client;
mod nts;
mod requests;

use super::limit::{ClientLimits, Rate};
use super::*;
use crate::client::{Check, Exchange, NtsSession, Response, Unsound};
use crate::cookie::{self, SessionKeys};
use crate::prefix::PrefixSet;

const CLIENT: &str = "198.18.0.2:40000";

/// A responder with everything around it that it takes as arguments.
struct Server {
    responder: Responder,
    keys: Option<KeySet>,
    /// Whether the kernel cuts its datagrams off.
    truncated: bool,
    /// Whether they are sent to a broadcast or multicast address.
    to_many: bool,
    symmetric: Option<SymmetricKeys>,
    snapshot: Snapshot,
    now: NtpTime,
}

impl Server {
    fn new() -> Self {
        Server::with_policy(Policy::open())
    }

    fn with_policy(policy: Policy) -> Self {
        let mut entropy = Entropy::from_seed(7);
        let interleave = Arc::new(Interleave::new(1024, &mut entropy));
        Server {
            keys: Some(KeySet::generate(0, &mut entropy)),
            truncated: false,
            to_many: false,
            symmetric: None,
            responder: Responder::new(Arc::new(policy), Some(interleave), entropy),
            snapshot: Snapshot {
                root_dispersion: NtpShort::from_nanos(1000),
                ..Snapshot::primary(-25, ReferenceId(*b"GPS\0"), NtpTime::from_unix(1_700_000_000, 0))
            },
            now: NtpTime::from_unix(1_700_000_001, 0),
        }
    }

    /// Sends all of `requests` as one batch; returns the responses, empty for silence.
    fn ask_all(&mut self, requests: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let before = self.responder.outcomes().total();
        let mut requests = requests.to_vec();
        let mut buffers = vec![vec![0xEE; DATAGRAM_SIZE_MAX]; requests.len()];
        let mut batch: Vec<Datagram<'_>> = requests
            .iter_mut()
            .zip(&mut buffers)
            .map(|(request, response)| Datagram {
                source: CLIENT.parse().unwrap(),
                received: self.now - NtpSpan::from_nanos(5_000),
                truncated: self.truncated,
                to_many: self.to_many,
                request,
                response,
                response_size: 0,
            })
            .collect();
        let (keys, symmetric) = (self.keys.as_ref(), self.symmetric.as_ref());
        let moment = Moment { snapshot: self.snapshot, keys, symmetric, antp: None };
        self.responder.respond(moment, &mut self.now, &mut (), &mut batch);
        let responses: Vec<Vec<u8>> =
            batch.iter().map(|datagram| datagram.response[..datagram.response_size].to_vec()).collect();
        for (datagram, response) in batch.iter().zip(&responses) {
            assert!(response.len() <= datagram.request.len(), "amplified");
        }
        self.responder.sent(self.now, self.now);
        assert_eq!(self.responder.outcomes().total() - before, requests.len() as u64, "an outcome each");
        responses
    }

    fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.ask_all(&[request.to_vec()]).remove(0)
    }

    /// As [`Server::ask`], and the outcome.
    fn outcome(&mut self, request: &[u8]) -> (Vec<u8>, Outcome) {
        let before = *self.responder.outcomes();
        let response = self.ask(request);
        let after = *self.responder.outcomes();
        let outcome = *Outcome::ALL.iter().find(|&&o| after.of(o) > before.of(o)).unwrap();
        assert_eq!(outcome.is_answered(), !response.is_empty(), "{outcome:?}");
        (response, outcome)
    }

    fn session(&mut self, algorithm: Algorithm, cookie_count: usize) -> NtsSession {
        self.session_of(0xC2, algorithm, cookie_count)
    }

    /// The session of a client whose keys consist of other octets.
    fn session_of(&mut self, octet: u8, algorithm: Algorithm, cookie_count: usize) -> NtsSession {
        let key = |octet| Key::new(algorithm, &vec![octet; algorithm.key_size()]).unwrap();
        let keys = SessionKeys::new(&key(octet), &key(octet ^ 0xFF)).unwrap();
        let mut cookies = vec![vec![0; cookie::size(algorithm)]; cookie_count];
        let places = cookies.iter_mut().map(|cookie| (&keys, &mut cookie[..]));
        cookie::seal_all(self.keys.as_ref().unwrap(), &mut Entropy::from_seed(9), places);
        let mut session = NtsSession::new(keys.clone(), None);
        cookies.iter().for_each(|cookie| assert!(session.jar.add(cookie)));
        session
    }
}

fn plain_request() -> Vec<u8> {
    let mut request = vec![0; HEADER_SIZE];
    Exchange::plain(&mut Entropy::from_seed(1), &mut request);
    request
}

fn nts_request(session: &mut NtsSession) -> (Exchange, Vec<u8>) {
    let mut request = vec![0; DATAGRAM_SIZE_MAX];
    let (exchange, size) = Exchange::nts(session, &mut Entropy::from_seed(2), &mut request).unwrap();
    request.truncate(size);
    (exchange, request)
}

fn header(octets: &[u8]) -> Header {
    Header::parse(octets.first_chunk().unwrap())
}

fn field(kind: FieldType, body: &[u8]) -> Vec<u8> {
    let mut octets = vec![0; body.len() + 8];
    let mut out = Writer::new(&mut octets);
    extension::emit(&mut out, kind, body).unwrap();
    let size = out.offset();
    octets.truncate(size);
    octets
}

//= rfc5905#14-3, rfc5905#14-5, rfc5905#8-2
#[test]
fn plain_request_gets_time_in_48_octets() {
    let mut server = Server::new();
    let mut request = vec![0; HEADER_SIZE];
    let (mut exchange, _) = Exchange::plain(&mut Entropy::from_seed(3), &mut request);
    let (mut response, outcome) = server.outcome(&request);
    assert_eq!((response.len(), outcome), (48, Outcome::Plain));
    let header = header(&response);
    assert_eq!((header.mode, header.version, header.stratum), (Mode::Server, 4, 1));
    assert!(header.transmit.since(header.receive).as_nanos().abs_diff(5_000) <= 2);
    assert!(header.root_dispersion.as_nanos() >= 16_000, "1 us, and 15 us for the second since");
    assert_eq!(exchange.receive(&mut response, None).unwrap().header, header);
    assert_eq!(exchange.receive(&mut response, None), Err(Check::Duplicate));
}

//= rfc5905#1-1, rfc5905#14-1, rfc5905#9.2-4, rfc5905#9.2-5, rfc5905#9.2-14, rfc9769#3-1
#[test]
fn every_first_octet_is_answered_in_kind_or_not_at_all() {
    for first in 0..=255u8 {
        let mut server = Server::new();
        let mut request = plain_request();
        request[0] = first;
        let (response, outcome) = server.outcome(&request);
        let (version, mode) = (first >> 3 & 7, first & 7);
        match (version, mode) {
            (1..=4, 3) => assert_eq!(response[0], version << 3 | 4, "{first:02x}"),
            (1..=4, 1) => assert_eq!(response[0], version << 3 | 2, "{first:02x}"),
            (1..=4, _) => assert_eq!(outcome, Outcome::NotARequest, "{first:02x}"),
            _ => assert_eq!(outcome, Outcome::Version, "{first:02x}"),
        }
    }
}

//= rfc5905#9.2-5
#[test]
fn nothing_the_server_sends_is_answered_by_it() {
    let mut server = Server::new();
    let mut session = server.session(Algorithm::SivCmac256, 1);
    let (_, request) = nts_request(&mut session);
    let mut unknown = request.clone();
    unknown[HEADER_SIZE + 36 + 4] ^= 1;
    for request in [plain_request(), request, unknown] {
        let response = server.ask(&request);
        assert!(!response.is_empty());
        assert_eq!(server.ask(&response), []);
    }
}

//= rfc8915#5.3-3
#[test]
fn identifier_alone_is_echoed() {
    let mut server = Server::new();
    let request = [plain_request(), field(FieldType::UNIQUE_IDENTIFIER, &[9; 64])].concat();
    let (response, outcome) = server.outcome(&request);
    assert_eq!((response.len(), outcome), (request.len(), Outcome::Plain));
    assert_eq!(response[HEADER_SIZE..], request[HEADER_SIZE..]);
}

//= rfc7822#3-1
#[test]
fn unknown_fields_are_ignored() {
    let mut server = Server::new();
    let request = [plain_request(), field(FieldType(0xF001), &[9; 24])].concat();
    assert_eq!(server.outcome(&request).1, Outcome::Plain);
}

//= rfc5905#9.2-11, rfc5905#9.2-12, rfc5905#7.4-1, rfc5905#7.4-5, rfc5905#7.3-2
#[test]
fn client_refuses_servers_that_do_not_know_the_time() {
    let exchange_with = |change: &dyn Fn(&mut Snapshot)| -> Result<Response, Check> {
        let mut server = Server::new();
        change(&mut server.snapshot);
        let mut request = vec![0; HEADER_SIZE];
        let (mut exchange, _) = Exchange::plain(&mut Entropy::from_seed(3), &mut request);
        exchange.receive(&mut server.ask(&request), None)
    };
    assert_eq!(exchange_with(&|s| s.leap = Leap::Unsynchronised), Err(Check::Clock(Unsound::Leap)));
    assert_eq!(exchange_with(&|s| s.stratum = 16), Err(Check::Clock(Unsound::Stratum(16))));
    assert_eq!(
        exchange_with(&|s| s.root_dispersion = NtpShort::MAX),
        Err(Check::Clock(Unsound::RootDistance))
    );
    assert_eq!(
        exchange_with(&|s| s.root_delay = NtpShort::from_nanos(32_000_000_000)),
        Err(Check::Clock(Unsound::RootDistance))
    );
    assert_eq!(exchange_with(&|s| s.stratum = 0), Err(Check::Kiss(ReferenceId(*b"GPS\0"))));
    assert!(exchange_with(&|s| s.stratum = 15).is_ok());
}

//= rfc8915#5.7-19, rfc5905#8-1, rfc5905#9.2-9
#[test]
fn client_refuses_what_does_not_answer_its_request() {
    let mut server = Server::new();
    let mut session = server.session(Algorithm::SivCmac256, COOKIE_COUNT);
    let (mut exchange, request) = nts_request(&mut session);
    let response = server.ask(&request);
    let mut refuse = |octets: &[u8]| exchange.receive(&mut octets.to_vec(), Some(&mut session)).unwrap_err();
    assert_eq!(refuse(&request), Check::Mode, "a reflected request");
    assert_eq!(refuse(&server.ask(&plain_request())), Check::Origin, "the answer to another request");
    let mut unprotected = response.clone();
    unprotected.truncate(HEADER_SIZE + 36);
    assert_eq!(refuse(&unprotected), Check::Authenticator);
    let mut crypto_nak = response[..HEADER_SIZE].to_vec();
    crypto_nak.extend([0; 4]);
    assert_eq!(refuse(&crypto_nak), Check::UnaskedMac);
    let mut third_version = response;
    third_version[0] = 3 << 3 | 4;
    // Version 3 has no extension fields.
    assert!(matches!(refuse(&third_version), Check::Syntax(_)));
}

//= rfc5905#9.2-9
#[test]
fn plain_response_of_an_earlier_version_passes() {
    let mut server = Server::new();
    let mut request = [0; HEADER_SIZE];
    for version in 1..=4 {
        let (mut exchange, _) = Exchange::plain(&mut Entropy::from_seed(version.into()), &mut request);
        let mut response = server.ask(&request);
        response[0] = version << 3 | 4;
        assert_eq!(exchange.receive(&mut response, None).map(|taken| taken.header.version), Ok(version));
    }
    for version in [0, 5, 6, 7] {
        let (mut exchange, _) = Exchange::plain(&mut Entropy::from_seed(version.into()), &mut request);
        let mut response = server.ask(&request);
        response[0] = version << 3 | 4;
        assert!(exchange.receive(&mut response, None).is_err(), "version {version}");
    }
}

//= rfc5905#8-6
#[test]
fn batch_of_64_kinds_is_answered_as_one_by_one() {
    let mut server = Server::new();
    let requests: Vec<Vec<u8>> = (0..BATCH_SIZE)
        .map(|index| {
            let algorithm = Algorithm::ALL[index / 8 % 4];
            let mut session = server.session(algorithm, 1 + index % COOKIE_COUNT);
            let (_, mut request) = nts_request(&mut session);
            match index % 5 {
                0 => plain_request(),
                1 => {
                    request[HEADER_SIZE + 36 + 4 + 40] ^= 1;
                    request
                }
                2 => request[..request.len() - 4].to_vec(),
                _ => request,
            }
        })
        .collect();
    let together = server.ask_all(&requests);
    let both = *server.responder.outcomes();
    let alone: Vec<Vec<u8>> = requests.iter().map(|request| server.ask(request)).collect();
    // Nonces and cookies are random; sizes, headers and identifiers are not.
    for ((request, together), alone) in requests.iter().zip(&together).zip(&alone) {
        assert_eq!(together.len(), alone.len());
        let shown = together.len().min(HEADER_SIZE - 16);
        assert_eq!(together[..shown], alone[..shown], "{}", request.len());
    }
    for outcome in Outcome::ALL {
        assert_eq!(server.responder.outcomes().of(*outcome), 2 * both.of(*outcome), "{outcome:?}");
    }
    assert!(both.of(Outcome::Nts) > 20 && both.of(Outcome::NakCookie) > 5 && both.of(Outcome::Plain) > 5);
}

//= rfc9769#2-5, rfc9769#2-6, rfc9769#2-9, rfc9769#2-13
#[test]
fn interleaved_mode_tells_when_the_response_before_left() {
    let mut server = Server::new();
    let first = header(&server.ask(&plain_request()));
    let interleaved_request = |previous: &Header, receive: u64| {
        let mut request = plain_request();
        let mut header = Header::parse(request.first_chunk().unwrap());
        header.origin = previous.receive;
        header.receive = NtpTime::from_bits(receive);
        header.emit(request.first_chunk_mut().unwrap());
        request
    };
    // The first request was basic, so nothing is saved of it: the answer is basic and now saved.
    server.now = server.now + NtpSpan::SECOND;
    let second = header(&server.ask(&interleaved_request(&first, 0x1234)));
    assert_eq!(second.origin, header(&plain_request()).transmit);
    server.now = server.now + NtpSpan::SECOND;
    let request = interleaved_request(&second, 0x5678);
    let third = header(&server.ask(&request));
    assert_eq!(third.origin, NtpTime::from_bits(0x5678), "the request's receive time comes back");
    assert_eq!(third.transmit, second.transmit, "responses leave at once in this test");
    assert_eq!(third.receive.since(second.receive), NtpSpan::SECOND);
    // A replay finds nothing saved any more.
    assert_eq!(header(&server.ask(&request)).origin, header(&request).transmit);
}

//= rfc5905#9.2-2, rfc5905#7.4-6
#[test]
fn clients_outside_the_allowed_prefixes_get_silence_or_a_kiss() {
    let allow = PrefixSet::new(vec!["192.0.2.0/24".parse().unwrap()]);
    let mut server = Server::with_policy(Policy { allow: allow.clone(), ..Policy::open() });
    assert_eq!(server.outcome(&plain_request()).1, Outcome::Denied);
    let mut server = Server::with_policy(Policy { allow, kiss: true, ..Policy::open() });
    let (response, outcome) = server.outcome(&plain_request());
    assert_eq!((outcome, header(&response).reference_id), (Outcome::KissDeny, ReferenceId::DENY));
}

#[test]
fn rate_limit_lets_a_burst_through_and_kisses_one_in_four() {
    let rate = Rate { interval_us: 1_000_000, burst: 8, prefix_v4: 32, prefix_v6: 64 };
    let limits = Arc::new(ClientLimits::new(rate, 64, &mut Entropy::from_seed(1)));
    let mut server = Server::with_policy(Policy { limits: Some(limits), kiss: true, ..Policy::open() });
    server.ask_all(&vec![plain_request(); 48]);
    let outcomes = server.responder.outcomes();
    assert_eq!(outcomes.of(Outcome::Plain), 8);
    assert_eq!((outcomes.of(Outcome::RateLimited), outcomes.of(Outcome::KissRate)), (30, 10));
}

/// Devices that send zero set their clock by whatever comes back.
#[test]
fn kiss_to_zero_timestamp_has_time_or_is_silence() {
    let nowhere = PrefixSet::new(vec!["192.0.2.0/24".parse().unwrap()]);
    let denying = Policy { allow: nowhere, kiss: true, ..Policy::open() };
    let mut request = plain_request();
    request[40..48].fill(0);
    let mut server = Server::with_policy(denying);
    let (response, outcome) = server.outcome(&request);
    let kiss = header(&response);
    assert_eq!((outcome, kiss.stratum, kiss.leap), (Outcome::KissDeny, 0, Leap::Unsynchronised));
    assert_eq!((kiss.origin, kiss.receive, kiss.transmit), (NtpTime::ZERO, server.now, server.now));
    server.snapshot = Snapshot::unsynchronised(-25);
    assert_eq!(server.outcome(&request), (vec![], Outcome::KissUnstamped));
    assert_eq!(server.outcome(&plain_request()).1, Outcome::KissDeny, "a request with a timestamp");
    // A wrong proof gets no time, synchronised or not.
    let mut server = Server::new();
    let mut session = server.session(Algorithm::SivCmac256, 1);
    let (_, mut request) = nts_request(&mut session);
    request[40..48].fill(0);
    assert_eq!(server.outcome(&request), (vec![], Outcome::KissUnstamped));
}

#[test]
fn broadcast_or_multicast_request_gets_silence_of_its_own() {
    let mut server = Server { to_many: true, ..Server::new() };
    let mut request = vec![0; HEADER_SIZE];
    Header::minimal_request(NtpTime::from_bits(1)).emit(request.first_chunk_mut().unwrap());
    assert_eq!(server.outcome(&request), (vec![], Outcome::NotUnicast));
    server.to_many = false;
    assert_eq!(server.outcome(&request).1, Outcome::Plain);
}

#[test]
fn truncated_datagram_is_not_read() {
    let mut server = Server { truncated: true, ..Server::new() };
    assert_eq!(server.outcome(&plain_request()), (vec![], Outcome::Malformed));
}

proptest! {
    //= rfc8915#8.4-1
    #[test]
    fn no_octets_crash_it_or_are_amplified(
        octets in proptest::collection::vec(any::<u8>(), 0..700),
        first in 0..3usize,
    ) {
        let mut octets = octets;
        if let Some(octet) = octets.first_mut() { *octet = [0x23, 0x1B, *octet][first]; }
        // `ask` asserts that responses are not larger and that every datagram is counted.
        Server::new().ask(&octets);
    }
}
