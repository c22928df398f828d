//! A drill's threads against responders that share keys, and against one that is behind.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};

use authentick_crypto::{Algorithm, Key};
use authentick_proto::client::NtsSession;
use authentick_proto::cookie::{self, SessionKeys};
use authentick_proto::keyset::KeySet;
use authentick_proto::server::snapshot::Snapshot;
use authentick_proto::server::{Moment, Policy, Responder};
use authentick_wire::datagram::Datagram;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

use super::*;
use crate::lock;

/// A server whose keys can be changed. It has no deadline: it ends with its socket's silence.
struct Responding {
    address: SocketAddr,
    keys: Arc<Mutex<KeySet>>,
}

impl Responding {
    fn start<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        keys: &KeySet,
        is_over: &'scope AtomicBool,
    ) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (address, keys) = (socket.local_addr().unwrap(), Arc::new(Mutex::new(keys.clone())));
        let shared = Arc::clone(&keys);
        scope.spawn(move || {
            let mut responder = Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(1));
            let mut now = NtpTime::from_unix(1_700_000_000, 0);
            let snapshot = Snapshot::primary(-25, ReferenceId(*b"GPS\0"), now);
            let (mut request, mut response) = ([0; DATAGRAM_SIZE_MAX], [0; DATAGRAM_SIZE_MAX]);
            while !is_over.load(Ordering::Relaxed) {
                let Ok((size, source)) = socket.recv_from(&mut request) else { continue };
                let keys = lock(&shared).clone();
                let moment = Moment { snapshot, keys: Some(&keys), symmetric: None, antp: None };
                let mut batch = [Datagram {
                    source,
                    received: now,
                    truncated: false,
                    to_many: false,
                    request: &mut request[..size],
                    response: &mut response,
                    response_size: 0,
                }];
                responder.respond(moment, &mut now, &mut (), &mut batch);
                let [Datagram { response_size: size, .. }] = batch;
                socket.send_to(&response[..size], source).unwrap();
            }
        });
        Responding { address, keys }
    }
}

/// A session with a cookie of the key that seals.
fn session(keys: &KeySet, octet: u8) -> NtsSession {
    let key = |octet| Key::new(Algorithm::SivCmac256, &[octet; 32]).unwrap();
    let session = SessionKeys::new(&key(octet), &key(!octet)).unwrap();
    let mut octets = vec![0; cookie::size(Algorithm::SivCmac256)];
    cookie::seal_all(keys, &mut Entropy::from_seed(9), [(&session, &mut octets[..])].into_iter());
    let mut session = NtsSession::new(session, None);
    assert!(session.jar.add(&octets));
    session
}

/// Lets one thread for each server work until `is_done` of the book; returns what each counted.
fn drill(book: &Book, servers: &[&Responding], is_done: impl Fn(&Book) -> bool) -> Vec<Counts> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let lanes: Vec<_> = servers
            .iter()
            .map(|server| {
                let patience = Duration::from_secs(20);
                let lane = Lane::new(server.address, 500.0, patience, book, Entropy::from_seed(5)).unwrap();
                scope.spawn(|| lane.run(&is_over))
            })
            .collect();
        let end = Instant::now() + Duration::from_secs(60);
        while !is_done(book) {
            assert!(Instant::now() < end, "{book:?}");
            thread::sleep(Duration::from_millis(5));
        }
        // All cookies go to all servers once more.
        thread::sleep(Duration::from_millis(100));
        is_over.store(true, Ordering::Relaxed);
        lanes.into_iter().map(|lane| lane.join().unwrap()).collect()
    })
}

#[test]
fn every_key_that_is_kept_is_tried_everywhere_and_who_is_behind_is_found() {
    let mut entropy = Entropy::from_seed(3);
    let sets: Vec<KeySet> = std::iter::successors(Some(KeySet::generate(0, &mut entropy)), |keys| {
        Some(keys.rotate(1, 7, &mut Entropy::from_seed(u64::from(keys.current().id()))))
    })
    .take(6)
    .collect();
    let ids: Vec<u32> = sets.iter().map(|keys| keys.current().id()).collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let [a, b] = [(); 2].map(|()| Responding::start(scope, &sets[0], &is_over));
        let book = Book::new(vec![session(&sets[0], 1), session(&sets[0], 2)], 3);
        for (rotations, keys) in sets.iter().enumerate().take(4) {
            for server in [&a, &b] {
                *lock(&server.keys) = keys.clone();
            }
            for counted in drill(&book, &[&a, &b], |book| book.rotations() == rotations) {
                let expected = ids[rotations.saturating_sub(2)..=rotations].iter();
                let expected: Vec<_> =
                    (0..2).flat_map(|from| expected.clone().map(move |id| (from, *id))).collect();
                for place in expected {
                    let fates = counted[&place];
                    assert!(fates.answered > 0 && fates.sent == fates.answered, "{place:?}: {fates:?}");
                }
            }
        }
        // One goes on for two rotations, and the other stays.
        *lock(&a.keys) = sets[5].clone();
        let counted = drill(&book, &[&a, &b], |book| book.rotations() == 4);
        for from in 0..2 {
            let place = (from, ids[5]);
            assert!(counted[0][&place].answered > 0 && counted[0][&place].ntsn == 0, "{counted:?}");
            assert!(counted[1][&place].ntsn > 0 && counted[1][&place].answered == 0, "{counted:?}");
            assert_eq!(counted[1][&place].sent, counted[1][&place].ntsn);
            assert_eq!(counted[1][&(from, ids[3])].ntsn, 0, "{counted:?}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// The keys whose cookies are in use after all `keys` were seen to seal, in this order.
fn in_use(keys: &[u32], keep: usize) -> Vec<u32> {
    let sealed = |key: &u32| {
        let keys = KeySet::generate(0, &mut Entropy::from_seed(3));
        let mut session = session(&keys, 1);
        let mut cookie = session.jar.take().unwrap();
        cookie[..4].copy_from_slice(&key.to_be_bytes());
        assert!(session.jar.add(&cookie));
        (session, cookie)
    };
    let book = Book::new(vec![sealed(&keys[0]).0], keep);
    for (session, cookie) in keys[1..].iter().map(sealed) {
        book.learn(0, &session, &cookie);
    }
    book.entries(&mut 0).unwrap().iter().map(|entry| entry.key).collect()
}

#[test]
fn rotation_that_was_missed_counts() {
    assert_eq!(in_use(&[1, 2, 3, 4, 5], 4), [2, 3, 4, 5]);
    // Key 4 sealed too briefly to be seen: a server that keeps three retired keys no longer opens key 1's cookies.
    assert_eq!(in_use(&[1, 2, 3, 5], 4), [2, 3, 5]);
    assert_eq!(in_use(&[u32::MAX - 1, u32::MAX, 1], 3), [u32::MAX, 1]);
    // A slow server may still seal with an older key.
    assert_eq!(in_use(&[1, 3, 2], 3), [1, 3, 2]);
    // Random identifiers do not count rotations.
    assert_eq!(in_use(&[0x9000_0000, 7, 0x1234_5678], 3), [0x9000_0000, 7, 0x1234_5678]);
}

#[test]
fn outcome_is_good_only_if_all_was_answered_and_enough_was_seen() {
    let fates = Fates { sent: 5, answered: 4, ntsn: 0, lost: 1, invalid: 0 };
    let line = |server: &str, fates| Line {
        server: server.to_owned(),
        key_exchange: "ke:4460".to_owned(),
        key: "0000000a".to_owned(),
        fates,
    };
    let outcome = |fates: Fates, rotations| Outcome {
        lines: vec![line("a", Fates { lost: 0, sent: 4, ..fates }), line("b", fates)],
        total: fates,
        rotations,
        rotations_wanted: 2,
        seconds: 2.0,
        sent_rps: 2.5,
    };
    assert!(outcome(fates, 2).is_good() && !outcome(fates, 1).is_good());
    for bad in [Fates { ntsn: 1, ..fates }, Fates { invalid: 1, ..fates }, Fates { answered: 0, ..fates }] {
        let outcome = outcome(bad, 3);
        assert!(!outcome.is_good());
        assert!(
            outcome.to_string().contains("b with cookies of ke:4460 under 0000000a: 5 sent"),
            "{outcome}"
        );
    }
    let text = outcome(fates, 2).to_string();
    assert!(
        !text.contains("with cookies of ke:4460") && text.ends_with("rotations seen: 2 of 2\n"),
        "{text}"
    );
}
