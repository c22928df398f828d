//! What does the authentication of one NTS request cost, alone and in batches?
//!
//! Goal: the time of the four AEAD jobs of a request with AEAD 15 or 30 (open the cookie, verify the request, seal the
//! response, seal a fresh cookie), per request, for several batch sizes. Non-goal: parsing, copying, sockets.
//!
//! Run with `cargo bench -p authentick-crypto`; among the tests it runs once, with a few rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use authentick_crypto::{
    Algorithm, CachedKey, Entropy, Key, KeyRef, Open, Seal, TAG_SIZE, open_batch, seal_batch,
};

const ASSOCIATED_SIZE: usize = 188;
const RESPONSE_HEAD_SIZE: usize = 84;

struct Request {
    c2s: Key,
    s2c: Key,
    cookie: Vec<u8>,
    cookie_tag: [u8; TAG_SIZE],
    tag: [u8; TAG_SIZE],
}

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let budget = if full { Duration::from_millis(400) } else { Duration::from_millis(2) };
    println!("AEAD jobs of one NTS request, ns per request (median of 9 rounds)");
    println!(
        "{:<20} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "AEAD", "batch", "open", "verify", "seal", "fresh", "all"
    );
    for algorithm in [Algorithm::SivCmac256, Algorithm::Aes128GcmSiv] {
        for batch in [1, 4, 16, 64] {
            let costs = measure(algorithm, batch, budget / 9);
            let all: f64 = costs.iter().sum();
            print!("{:<20} {batch:>6}", format!("{algorithm:?}"));
            costs.iter().for_each(|cost| print!(" {cost:>8.0}"));
            println!(" {all:>8.0}");
        }
    }
}

fn measure(algorithm: Algorithm, batch: usize, budget: Duration) -> [f64; 4] {
    let mut entropy = Entropy::from_seed(1);
    let master = CachedKey::new(&entropy.array());
    let associated = [0x23; ASSOCIATED_SIZE];
    let head = [0x24; RESPONSE_HEAD_SIZE];
    let (nonce, cookie_nonce) = ([9; 16], [8; 12]);
    let nonce = &nonce[..algorithm.nonce_size()];
    let cookie_size = 4 + 2 * algorithm.key_size();
    let requests: Vec<Request> = (0..batch)
        .map(|_| {
            let mut octets = [0; 64];
            entropy.fill(&mut octets);
            let key = Key::new(algorithm, &octets[..algorithm.key_size()]).expect("the size is right");
            let mut request = Request {
                c2s: key.clone(),
                s2c: key,
                cookie: vec![7; cookie_size],
                cookie_tag: [0; TAG_SIZE],
                tag: [0; TAG_SIZE],
            };
            seal_batch(std::iter::once(Seal {
                key: KeyRef::Cached(&master),
                nonce: &cookie_nonce,
                associated: None,
                text: &mut request.cookie,
                tag: &mut request.cookie_tag,
            }));
            seal_batch(std::iter::once(Seal {
                key: KeyRef::Session(&request.c2s),
                nonce,
                associated: Some(&associated),
                text: &mut [],
                tag: &mut request.tag,
            }));
            request
        })
        .collect();

    let mut cookies: Vec<Vec<u8>> = requests.iter().map(|request| request.cookie.clone()).collect();
    let mut genuine = vec![false; batch];
    let open = time(batch, budget, || {
        for (cookie, request) in cookies.iter_mut().zip(&requests) {
            cookie.copy_from_slice(&request.cookie);
        }
        open_batch(requests.iter().zip(&mut cookies).zip(&mut genuine).map(|((request, text), genuine)| {
            Open {
                key: KeyRef::Cached(&master),
                nonce: &cookie_nonce,
                associated: None,
                text,
                tag: &request.cookie_tag,
                genuine,
            }
        }));
    });
    assert!(genuine.iter().all(|&genuine| genuine), "every cookie opens");

    let verify = time(batch, budget, || {
        open_batch(requests.iter().zip(&mut genuine).map(|(request, genuine)| Open {
            key: KeyRef::Session(&request.c2s),
            nonce,
            associated: Some(&associated),
            text: &mut [],
            tag: &request.tag,
            genuine,
        }));
    });
    assert!(genuine.iter().all(|&genuine| genuine), "every request verifies");

    let mut responses = vec![(vec![3; 4 + 32 + cookie_size], [0; TAG_SIZE]); batch];
    let seal = time(batch, budget, || {
        seal_batch(requests.iter().zip(&mut responses).map(|(request, (text, tag))| Seal {
            key: KeyRef::Session(&request.s2c),
            nonce,
            associated: Some(&head),
            text,
            tag,
        }));
    });

    let mut fresh_cookies = vec![(vec![3; cookie_size], [0; TAG_SIZE]); batch];
    let fresh = time(batch, budget, || {
        seal_batch(fresh_cookies.iter_mut().map(|(text, tag)| Seal {
            key: KeyRef::Cached(&master),
            nonce: &cookie_nonce,
            associated: None,
            text,
            tag,
        }));
    });
    black_box((&responses, &fresh_cookies));
    [open, verify, seal, fresh]
}

/// Nanoseconds per job: the median of nine rounds of `budget` each.
fn time(batch: usize, budget: Duration, mut run: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            let mut count = 0;
            while start.elapsed() < budget {
                for _ in 0..16 {
                    run();
                }
                count += 16 * batch;
            }
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[4]
}
