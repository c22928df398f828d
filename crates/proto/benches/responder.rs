//! What does the responder take per request, without sockets: plain, under ANTP, under each MAC, and NTS under each
//! AEAD?
//!
//! Goal: nanoseconds per request from datagram to response, for several batch sizes, over 512 clients with keys and
//! cookies of their own, or one symmetric key; and the share of NTS that is not AEAD, by comparison with the bench
//! `aead` of the crate `crypto`. Non-goals: system calls, and the cost of memory that no cache holds.
//!
//! Run with `cargo bench -p authentick-proto --bench responder`; among the tests it runs once, with a few rounds. A
//! name from the first column and a batch size as arguments run that alone, as a profiler wants it.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use authentick_crypto::kem::SessionKey;
use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_crypto::{Algorithm, Entropy, Key, SealBatch, path};
use authentick_proto::antp::client::{Bounds, SeparateTag, Session, Wanted};
use authentick_proto::antp::nonce::Nonces;
use authentick_proto::antp::seconds;
use authentick_proto::antp::server::{KeyExchange, Service, Settings};
use authentick_proto::antp::state::Established;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::client::{Exchange, NtsSession};
use authentick_proto::cookie::{self, SessionKeys};
use authentick_proto::keyset::KeySet;
use authentick_proto::server::antp::{AntpLimits, AntpMoment, Full, KeyExchanges};
use authentick_proto::server::outcome::Outcome;
use authentick_proto::server::snapshot::Snapshot;
use authentick_proto::server::{Moment, Policy, Responder};
use authentick_proto::symmetric::{Allowed, SymmetricKeys};
use authentick_wire::antp::Suite;
use authentick_wire::datagram::Datagram;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::{COOKIE_COUNT, HEADER_SIZE};
use authentick_wire::time::NtpTime;

const CLIENT_COUNT: usize = 512;
const BATCHES: [usize; 4] = [1, 4, 16, 64];
const ROUNDS: usize = 15;
const BUFFER_SIZE: usize = 1500;

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let budget = if full { Duration::from_millis(10) } else { Duration::from_micros(50) };
    println!("Responder, ns per request (fastest of {ROUNDS} rounds of {budget:?}), AES path {}", path());
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let mut batches = BATCHES.to_vec();
    if let Some(batch) = wanted.get(1) {
        batches.retain(|known| known.to_string() == *batch);
        assert!(!batches.is_empty(), "{batch} is none of {BATCHES:?}");
    }
    print!("{:<14}", "batch");
    batches.iter().for_each(|batch| print!(" {batch:>7}"));
    println!();
    let (macs, aeads) = (MacAlgorithm::ALL.map(Scheme::Mac), Algorithm::ALL.map(Scheme::Nts));
    let mut benches: Vec<Bench> = [Scheme::Plain, Scheme::Antp, Scheme::AntpSeparate]
        .into_iter()
        .chain(macs)
        .chain(aeads)
        .map(Bench::new)
        .collect();
    if !wanted.is_empty() {
        benches.retain(|bench| wanted.contains(&bench.name));
        assert!(!benches.is_empty(), "{wanted:?} name no row");
    }
    let mut costs = vec![[f64::INFINITY; BATCHES.len()]; benches.len()];
    for _ in 0..ROUNDS {
        for (bench, costs) in benches.iter_mut().zip(&mut costs) {
            for (cost, batch) in costs.iter_mut().zip(&batches) {
                *cost = cost.min(bench.round(*batch, budget));
            }
        }
    }
    for (bench, costs) in benches.iter().zip(costs) {
        print!("{:<14}", bench.name);
        costs.iter().for_each(|cost| print!(" {cost:>7.1}"));
        println!();
    }
}

/// How requests are authenticated.
#[derive(Clone, Copy)]
enum Scheme {
    Plain,
    /// m5, inline.
    Antp,
    /// m5 in separate-tag mode.
    AntpSeparate,
    Mac(MacAlgorithm),
    Nts(Algorithm),
}

/// A server, and a request of each of many clients.
struct Bench {
    name: String,
    responder: Responder,
    keys: KeySet,
    symmetric: SymmetricKeys,
    antp: Option<(Service, StateKeys)>,
    requests: Vec<Vec<u8>>,
    responses: Vec<[u8; BUFFER_SIZE]>,
    next: usize,
    outcome: Outcome,
    limits: AntpLimits,
}

/// Nobody asks for a key exchange here.
struct Nowhere;

impl KeyExchanges for Nowhere {
    fn offer(&self, _: usize, _: KeyExchange) -> Result<(), Full> {
        Err(Full)
    }
}

impl Bench {
    fn new(scheme: Scheme) -> Self {
        let mut entropy = Entropy::from_seed(1);
        let keys = KeySet::generate(0, &mut entropy);
        let shared = MacAlgorithm::ALL.into_iter().zip(1..).map(|(algorithm, id)| {
            let key = MacKey::new(algorithm, &[7; 32][..(*algorithm.key_sizes().end()).min(32)]);
            (id, key.expect("the size is right"))
        });
        let symmetric = SymmetricKeys::new(shared, Allowed::ALL, 1).expect("identifiers are distinct");
        let state_keys = StateKeys::generate(0, &mut entropy);
        let request = |_| {
            let mut request = vec![0; BUFFER_SIZE];
            let size = match scheme {
                Scheme::Plain => {
                    Exchange::plain(&mut entropy, &mut request);
                    HEADER_SIZE
                }
                Scheme::Antp | Scheme::AntpSeparate => {
                    let suite = Suite::P256;
                    let key = SessionKey::new(entropy.array());
                    let (issued, expires) = (seconds(NOW), seconds(NOW) + 1000);
                    let established = Established { suite, issued, expires, key: key.clone() };
                    let state = established.seal(&state_keys, &mut Nonces::new(), &mut entropy);
                    let separate = matches!(scheme, Scheme::AntpSeparate).then_some(SeparateTag::Ipv4);
                    let wanted = Wanted { fresh: true, separate };
                    let session = Session::new(suite, key, state, 1000);
                    session.ask(wanted, Bounds::WAN, NOW, &mut entropy, &mut request).1
                }
                Scheme::Mac(algorithm) => {
                    let key = symmetric.iter().find(|key| key.algorithm() == algorithm);
                    Exchange::mac(key.expect("each has a key"), &mut entropy, &mut request).1
                }
                Scheme::Nts(algorithm) => {
                    let mut session = session(algorithm, &keys, &mut entropy);
                    // As a client whose jar is full: no placeholders.
                    let made = Exchange::nts_among(&mut session, COOKIE_COUNT, &mut entropy, &mut request);
                    let (_, unsealed) = made.expect("there is a cookie");
                    let mut batch = SealBatch::new();
                    batch.push(unsealed.job(&session, &mut request));
                    batch.run();
                    unsealed.size()
                }
            };
            request.truncate(size);
            request
        };
        let requests = (0..CLIENT_COUNT).map(request).collect();
        let (name, outcome) = match scheme {
            Scheme::Plain => ("plain".to_owned(), Outcome::Plain),
            Scheme::Antp => ("ANTP".to_owned(), Outcome::AntpTime),
            Scheme::AntpSeparate => ("ANTP-separate".to_owned(), Outcome::AntpSeparateTag),
            Scheme::Mac(algorithm) => (algorithm.name().to_owned(), Outcome::Mac),
            Scheme::Nts(algorithm) => (format!("{algorithm:?}"), Outcome::Nts),
        };
        Bench {
            name,
            responder: Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(2)),
            keys,
            symmetric,
            // Time needs no private key. A server without ANTP is what the other rows measure.
            antp: matches!(scheme, Scheme::Antp | Scheme::AntpSeparate).then(|| {
                let service = Service::new(Vec::new(), Settings::default());
                (service.expect("no suite is there twice"), state_keys)
            }),
            requests,
            responses: vec![[0; BUFFER_SIZE]; BATCHES[BATCHES.len() - 1]],
            next: 0,
            outcome,
            limits: AntpLimits::default(),
        }
    }

    /// Nanoseconds per request in batches of `batch`.
    fn round(&mut self, batch: usize, budget: Duration) -> f64 {
        let before = self.responder.outcomes().of(self.outcome);
        let (mut count, mut spent) = (0, Duration::ZERO);
        while spent < budget {
            let start = Instant::now();
            for _ in 0..256_usize.div_ceil(batch) {
                self.respond(batch);
                count += batch;
            }
            spent += start.elapsed();
        }
        let answered = self.responder.outcomes().of(self.outcome) - before;
        assert_eq!(answered, count as u64, "every request is answered");
        black_box(&self.responses);
        spent.as_nanos() as f64 / count as f64
    }

    fn respond(&mut self, batch: usize) {
        if self.next + batch > CLIENT_COUNT {
            self.next = 0;
        }
        let mut now = NOW;
        let requests = &mut self.requests[self.next..][..batch];
        let mut datagrams: arrayvec::ArrayVec<Datagram<'_>, 64> = requests
            .iter_mut()
            .zip(&mut self.responses)
            .map(|(request, response)| Datagram {
                source: ([198, 18, 0, 2], 40_000).into(),
                received: now,
                truncated: false,
                to_many: false,
                response: &mut response[..request.len()],
                request,
                response_size: 0,
            })
            .collect();
        let (keys, symmetric) = (Some(&self.keys), Some(&self.symmetric));
        let antp = self.antp.as_ref().map(|(service, keys)| AntpMoment {
            service,
            keys,
            limits: &self.limits,
            exchanges: &Nowhere,
        });
        let moment = Moment { snapshot: SNAPSHOT, keys, symmetric, antp };
        self.responder.respond(moment, &mut now, &mut (), &mut datagrams);
        self.next += batch;
    }
}

const NOW: NtpTime = NtpTime::from_unix(1_700_000_001, 0);

const SNAPSHOT: Snapshot =
    Snapshot::primary(-25, ReferenceId(*b"GPS\0"), NtpTime::from_unix(1_700_000_000, 0));

/// A client with keys of its own and a cookie.
fn session(algorithm: Algorithm, keys: &KeySet, entropy: &mut Entropy) -> NtsSession {
    let [c2s, s2c] = std::array::from_fn(|_| {
        let octets: [u8; 64] = entropy.array();
        Key::new(algorithm, &octets[..algorithm.key_size()]).expect("the size is right")
    });
    let session_keys = SessionKeys::new(&c2s, &s2c).expect("both are of one algorithm");
    let mut cookie = vec![0; cookie::size(algorithm)];
    cookie::seal_all(keys, entropy, std::iter::once((&session_keys, &mut cookie[..])));
    let mut session = NtsSession::new(session_keys, None);
    assert!(session.jar.add(&cookie), "a jar takes a cookie");
    session
}
