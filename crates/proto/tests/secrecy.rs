//! Whether a branch or an address of the responder depends on a secret, as valgrind's memcheck sees it: see
//! `authentick_lanes::secrecy`. Without valgrind these tests only compute. `cargo xtask ci --only memcheck` runs them
//! under it, on the path that the processor has there.
//!
//! A client, to whom nothing is secret, makes a request under each AEAD of NTS, each MAC and ANTP. The server, whose
//! keys are secret, opens cookie or state, verifies, and answers. What is absent is the key exchange.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::Arc;

use authentick_crypto::kem::SessionKey;
use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_crypto::{Algorithm, Entropy, Key};
use authentick_lanes::secrecy::{complaint_count, make_secret};
use authentick_proto::antp::client::{Bounds, Session, Wanted};
use authentick_proto::antp::nonce::Nonces;
use authentick_proto::antp::seconds;
use authentick_proto::antp::server::{KeyExchange, Service, Settings};
use authentick_proto::antp::state::Established;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::client::{Exchange, NtsSession};
use authentick_proto::cookie::{self, SessionKeys};
use authentick_proto::keyset::{CookieKey, KeySet};
use authentick_proto::server::antp::{AntpLimits, AntpMoment, Full, KeyExchanges};
use authentick_proto::server::outcome::Outcome;
use authentick_proto::server::snapshot::Snapshot;
use authentick_proto::server::{Moment, Policy, Responder};
use authentick_proto::symmetric::{Allowed, SymmetricKeys};
use authentick_wire::antp::{C2_SIZE, Suite};
use authentick_wire::datagram::Datagram;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

const NOW: NtpTime = NtpTime::from_unix(1_700_000_001, 0);

/// More than one group of lanes, and less than two.
const COUNT: usize = 19;

/// What a server has to answer with.
#[derive(Default)]
struct Keys {
    cookies: Option<KeySet>,
    symmetric: Option<SymmetricKeys>,
    antp: Option<StateKeys>,
}

struct Nowhere;

impl KeyExchanges for Nowhere {
    fn offer(&self, _: usize, _: KeyExchange) -> Result<(), Full> {
        Err(Full)
    }
}

/// Answers copies of a request, of which one has each of these octets changed; how many had this outcome.
fn answered(keys: &Keys, request: &[u8], wrong: &[usize], outcome: Outcome) -> u64 {
    let mut requests = vec![request.to_vec(); COUNT];
    for (request, at) in requests.iter_mut().zip(wrong) {
        request[*at] ^= 0x10;
    }
    let mut responses = vec![vec![0; request.len()]; COUNT];
    let mut batch: Vec<Datagram<'_>> = requests
        .iter_mut()
        .zip(&mut responses)
        .map(|(request, response)| Datagram {
            source: ([198, 18, 0, 2], 40_000).into(),
            received: NOW,
            truncated: false,
            to_many: false,
            request,
            response,
            response_size: 0,
        })
        .collect();
    let snapshot = Snapshot::primary(-25, ReferenceId(*b"GPS\0"), NtpTime::from_unix(1_700_000_000, 0));
    let service = Service::new(Vec::new(), Settings::default()).unwrap();
    let limits = AntpLimits::default();
    let antp = keys.antp.as_ref();
    let antp = antp.map(|keys| AntpMoment { service: &service, keys, limits: &limits, exchanges: &Nowhere });
    let moment = Moment { snapshot, keys: keys.cookies.as_ref(), symmetric: keys.symmetric.as_ref(), antp };
    let mut responder = Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(2));
    responder.respond(moment, &mut NOW.clone(), &mut (), &mut batch);
    responder.outcomes().of(outcome)
}

/// Requests are answered if no octet of a tag is wrong.
fn check(keys: &Keys, request: &[u8], tag_octets: &[usize], outcome: Outcome) {
    assert_eq!(answered(keys, request, &[], outcome), COUNT as u64, "{outcome:?}");
    let right = (COUNT - tag_octets.len()) as u64;
    assert_eq!(answered(keys, request, tag_octets, outcome), right, "{outcome:?}");
}

/// Where `part` stands in a request.
fn position(request: &[u8], part: &[u8]) -> usize {
    request.windows(part.len()).position(|octets| octets == part).unwrap()
}

fn cookie_keys(is_secret: bool) -> KeySet {
    let key = |id: u32| {
        let mut octets = [id as u8; 32];
        if is_secret {
            make_secret(&mut octets);
        }
        CookieKey::new(id, 0, &octets)
    };
    KeySet::from_keys(key(1), key(2), Vec::new(), 0).unwrap()
}

/// A request under NTS, and where in it the tag of the cookie and its own begin.
fn nts(algorithm: Algorithm) -> (Vec<u8>, [usize; 2]) {
    let key = |octet| Key::new(algorithm, &vec![octet; algorithm.key_size()]).unwrap();
    let keys = SessionKeys::new(&key(3), &key(4)).unwrap();
    let mut cookie = vec![0; cookie::size(algorithm)];
    let known = cookie_keys(false);
    cookie::seal_all(&known, &mut Entropy::from_seed(9), std::iter::once((&keys, &mut cookie[..])));
    let mut session = NtsSession::new(keys, None);
    assert!(session.jar.add(&cookie));
    let mut request = vec![0; DATAGRAM_SIZE_MAX];
    let (_, size) = Exchange::nts(&mut session, &mut Entropy::from_seed(2), &mut request).unwrap();
    request.truncate(size);
    let tags = [position(&request, &cookie) + 16, size - 16];
    (request, tags)
}

#[test]
fn no_branch_and_no_address_of_a_server_of_nts_depends_on_a_secret() {
    let keys = Keys { cookies: Some(cookie_keys(true)), ..Keys::default() };
    for algorithm in Algorithm::ALL {
        let (request, tags) = nts(algorithm);
        check(&keys, &request, &tags.map(|at| [at, at + 15]).concat(), Outcome::Nts);
    }
}

fn symmetric_keys(is_secret: bool) -> SymmetricKeys {
    let key = |(algorithm, id): (MacAlgorithm, u32)| {
        let mut octets = [id as u8; 32];
        if is_secret {
            make_secret(&mut octets);
        }
        (id, MacKey::new(algorithm, &octets[..(*algorithm.key_sizes().end()).min(32)]).unwrap())
    };
    SymmetricKeys::new(MacAlgorithm::ALL.into_iter().zip(1..).map(key), Allowed::ALL, 1).unwrap()
}

#[test]
fn no_branch_and_no_address_of_a_server_with_macs_depends_on_a_secret() {
    let known = symmetric_keys(false);
    let keys = Keys { symmetric: Some(symmetric_keys(true)), ..Keys::default() };
    for key in known.iter() {
        let mut request = vec![0; DATAGRAM_SIZE_MAX];
        let (_, size) = Exchange::mac(key, &mut Entropy::from_seed(2), &mut request);
        request.truncate(size);
        // Longer ones are cut there.
        let tag_size = key.algorithm().tag_size().min(20);
        check(&keys, &request, &[size - tag_size, size - 1], Outcome::Mac);
    }
}

/// What else is in C2 is public, so its key is known here, and the session key in it is secret as it is sent.
#[test]
fn no_branch_and_no_address_of_a_server_of_antp_depends_on_a_session_key() {
    let mut entropy = Entropy::from_seed(1);
    let state_keys = StateKeys::generate(0, &mut entropy);
    let (suite, key) = (Suite::P256, SessionKey::new([6; 16]));
    let (issued, expires) = (seconds(NOW), seconds(NOW) + 1000);
    let established = Established { suite, issued, expires, key: key.clone() };
    let state = established.seal(&state_keys, &mut Nonces::new(), &mut entropy);
    let session = Session::new(suite, key, state, 1000);
    let mut request = vec![0; DATAGRAM_SIZE_MAX];
    let wanted = Wanted { fresh: true, separate: None };
    let size = session.ask(wanted, Bounds::WAN, NOW, &mut entropy, &mut request).1;
    request.truncate(size);
    let at = position(&request, &state);
    let tag = at + C2_SIZE - 16;
    make_secret(&mut request[tag - 16..tag]);
    let keys = Keys { antp: Some(state_keys), ..Keys::default() };
    check(&keys, &request, &[tag, tag + 15], Outcome::AntpTime);
}

/// The control: a server that looks at what was in a cookie is complained of.
#[test]
#[ignore = "counts complaints of memcheck"]
fn server_that_branches_on_a_session_key_is_complained_of() {
    let known = cookie_keys(false);
    let secret = cookie_keys(true);
    let key = |octet| Key::new(Algorithm::SivCmac256, &[octet; 32]).unwrap();
    let mut sealed = vec![0; cookie::size(Algorithm::SivCmac256)];
    let mut session = SessionKeys::new(&key(3), &key(4)).unwrap();
    cookie::seal_all(&known, &mut Entropy::from_seed(9), std::iter::once((&session, &mut sealed[..])));
    let mut genuine = false;
    let job = cookie::open_job(&secret, &sealed, &mut session, &mut genuine).unwrap();
    authentick_crypto::run_batch(std::iter::once(job));
    assert!(genuine);
    assert_eq!(complaint_count(), 0);
    assert!(session.expose().iter().all(|octet| std::hint::black_box(*octet) != 0));
    assert!(complaint_count() > 0);
}
