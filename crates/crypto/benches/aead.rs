//! What does the authentication of one NTS request cost, alone and in batches, on each path?
//!
//! Goal: the time of the four AEAD jobs of a request with AEAD 15 or 30 (open the cookie, verify the request, seal the
//! response, seal a fresh cookie), per request, for several batch sizes. Beside it stand the floor, which is the time
//! that the AES blocks alone take from register to register, and how many times as long RustCrypto takes, one job after
//! another. Non-goal: parsing, copying, sockets.
//!
//! Run with `cargo bench -p authentick-crypto --bench aead`; among the tests it runs once, with a few rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use authentick_crypto::{
    Algorithm, CachedKey, Entropy, Key, KeyRef, Open, OpenBatch, Path, Seal, SealBatch, TAG_SIZE, Text,
    encrypt_alone_on, run_batch,
};

const ASSOCIATED_SIZE: usize = 184;
const RESPONSE_HEAD_SIZE: usize = 84;
const BATCHES: [usize; 4] = [1, 4, 16, 64];
const ROUNDS: usize = 15;

/// The texts of the jobs of one request.
struct Request {
    c2s: Key,
    s2c: Key,
    cookie: Vec<u8>,
    cookie_tag: [u8; TAG_SIZE],
    tag: [u8; TAG_SIZE],
}

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let budget = if full { Duration::from_millis(8) } else { Duration::from_micros(20) };
    let paths: Vec<Path> = Path::ALL.into_iter().filter(|path| path.is_available()).collect();
    println!("AEAD jobs of one NTS request, ns per request (fastest of {ROUNDS} rounds of {budget:?})");
    let columns = ["open", "verify", "seal", "fresh", "all", "floor", "x RustCrypto"];
    print!("{:<14} {:<9} {:>5}", "AEAD", "path", "batch");
    columns.iter().for_each(|column| print!(" {column:>7}"));
    println!();
    for algorithm in [Algorithm::SivCmac256, Algorithm::Aes128GcmSiv] {
        for batch in BATCHES {
            let mut bench = Bench::new(algorithm, batch);
            // Paths take turns, so that a machine that slows down slows all of them.
            let mut costs = vec![[f64::INFINITY; 4]; paths.len()];
            for _ in 0..ROUNDS {
                for (costs, path) in costs.iter_mut().zip(&paths) {
                    let round = bench.round(*path, budget);
                    costs.iter_mut().zip(round).for_each(|(cost, new)| *cost = cost.min(new));
                }
            }
            let alls: Vec<f64> = costs.iter().map(|costs| costs.iter().sum()).collect();
            let rustcrypto = alls.last().expect("the portable path is available");
            for ((path, costs), all) in paths.iter().zip(&costs).zip(&alls) {
                print!("{:<14} {path:<9} {batch:>5}", format!("{algorithm:?}"));
                costs.iter().chain([all]).for_each(|cost| print!(" {cost:>7.1}"));
                match block_cost(*path, budget) {
                    Some(cost) => print!(" {:>7.1}", cost * block_count(algorithm) as f64),
                    None => print!(" {:>7}", "-"),
                }
                println!(" {:>12.1}", rustcrypto / all);
            }
        }
    }
}

/// AES blocks of the four jobs of a request: of the modes and of what they derive from keys, without key expansion.
fn block_count(algorithm: Algorithm) -> usize {
    let blocks = |size: usize| size.div_ceil(16);
    let cookie = cookie_size(algorithm);
    let sealed = response_text_size(algorithm);
    // Nonce, text twice; what the cookie's key gives is kept.
    let cookies = 2 * (1 + 2 * blocks(cookie));
    match algorithm {
        Algorithm::Aes128GcmSiv => cookies + 2 * (4 + 1) + blocks(sealed),
        Algorithm::SivCmac256 | Algorithm::SivCmac384 | Algorithm::SivCmac512 => {
            let verify = blocks(ASSOCIATED_SIZE) + 1 + 1;
            let seal = blocks(RESPONSE_HEAD_SIZE) + 1 + 2 * blocks(sealed);
            cookies + verify + seal + 2 * 2
        }
    }
}

fn cookie_size(algorithm: Algorithm) -> usize {
    2 * algorithm.key_size()
}

/// An extension field with one cookie.
fn response_text_size(algorithm: Algorithm) -> usize {
    4 + 16 + TAG_SIZE + cookie_size(algorithm)
}

/// Nanoseconds per AES block with nothing around it.
fn block_cost(path: Path, budget: Duration) -> Option<f64> {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed() < budget / 4 {
            count += encrypt_alone_on(path, 200)?;
        }
        Some(start.elapsed().as_nanos() as f64 / count as f64)
    });
    rounds.reduce(|a, b| Some(a?.min(b?))).flatten()
}

/// The jobs of `batch` requests, and room for their results.
struct Bench {
    master: CachedKey,
    nonce: Vec<u8>,
    requests: Vec<Request>,
    cookies: Vec<Vec<u8>>,
    responses: Vec<(Vec<u8>, [u8; TAG_SIZE])>,
    fresh: Vec<(Vec<u8>, [u8; TAG_SIZE])>,
    genuine: Vec<bool>,
}

const COOKIE_NONCE: [u8; 16] = [8; 16];
const ASSOCIATED: [u8; ASSOCIATED_SIZE] = [0x23; ASSOCIATED_SIZE];
const RESPONSE_HEAD: [u8; RESPONSE_HEAD_SIZE] = [0x24; RESPONSE_HEAD_SIZE];

impl Bench {
    fn new(algorithm: Algorithm, batch: usize) -> Self {
        let mut entropy = Entropy::from_seed(1);
        let master = CachedKey::new(&entropy.array());
        let nonce = vec![9; algorithm.nonce_size()];
        let cookie = vec![7; cookie_size(algorithm)];
        let requests: Vec<Request> = (0..batch)
            .map(|_| {
                let [c2s, s2c] = std::array::from_fn(|_| {
                    let octets: [u8; 64] = entropy.array();
                    Key::new(algorithm, &octets[..algorithm.key_size()]).expect("the size is right")
                });
                let (mut cookie, mut cookie_tag, mut tag) = (cookie.clone(), [0; TAG_SIZE], [0; TAG_SIZE]);
                let key = (&master).into();
                let text = &mut cookie[..];
                let tag_out = &mut cookie_tag;
                let job =
                    Seal { key, nonce: &COOKIE_NONCE, associated: None, text: text.into(), tag: tag_out };
                run_batch(std::iter::once(job));
                let key = (&c2s).into();
                let job =
                    Seal { key, nonce: &nonce, associated: Some(&ASSOCIATED), text: empty(), tag: &mut tag };
                run_batch(std::iter::once(job));
                Request { c2s, s2c, cookie, cookie_tag, tag }
            })
            .collect();
        Bench {
            master,
            nonce,
            cookies: requests.iter().map(|request| request.cookie.clone()).collect(),
            responses: vec![(vec![3; response_text_size(algorithm)], [0; TAG_SIZE]); batch],
            fresh: vec![(cookie, [0; TAG_SIZE]); batch],
            genuine: vec![false; batch],
            requests,
        }
    }

    /// Nanoseconds per request of opening, verifying, sealing, and sealing a fresh cookie.
    fn round(&mut self, path: Path, budget: Duration) -> [f64; 4] {
        let Bench { master, nonce, requests, cookies, responses, fresh, genuine } = self;
        let batch = requests.len();
        let open = time(batch, budget, || {
            let mut jobs = OpenBatch::on(path);
            for ((request, text), genuine) in requests.iter().zip(&mut *cookies).zip(&mut *genuine) {
                let (key, tag) = (KeyRef::from(&*master), &request.cookie_tag);
                let text = Text::new(&request.cookie, text).expect("the sizes are equal");
                jobs.push(Open { key, nonce: &COOKIE_NONCE, associated: None, text, tag, genuine });
            }
            jobs.run();
        });
        assert!(genuine.iter().all(|&genuine| genuine), "every cookie opens");
        genuine.fill(false);
        let verify = time(batch, budget, || {
            let mut jobs = OpenBatch::on(path);
            for (request, genuine) in requests.iter().zip(&mut *genuine) {
                let (key, associated) = ((&request.c2s).into(), Some(&ASSOCIATED[..]));
                jobs.push(Open { key, nonce, associated, text: empty(), tag: &request.tag, genuine });
            }
            jobs.run();
        });
        assert!(genuine.iter().all(|&genuine| genuine), "every request verifies");
        let seal = time(batch, budget, || {
            let mut jobs = SealBatch::on(path);
            for (request, (text, tag)) in requests.iter().zip(&mut *responses) {
                let (key, text) = ((&request.s2c).into(), text.as_mut_slice().into());
                jobs.push(Seal { key, nonce, associated: Some(&RESPONSE_HEAD), text, tag });
            }
            jobs.run();
        });
        let fresh_cost = time(batch, budget, || {
            let mut jobs = SealBatch::on(path);
            for ((text, tag), cookie) in fresh.iter_mut().zip(&*cookies) {
                let key = KeyRef::from(&*master);
                let text = Text::new(cookie, text).expect("the sizes are equal");
                jobs.push(Seal { key, nonce: &COOKIE_NONCE, associated: None, text, tag });
            }
            jobs.run();
        });
        black_box((responses, fresh));
        [open, verify, seal, fresh_cost]
    }
}

fn empty<'a>() -> Text<'a> {
    (&mut [][..]).into()
}

/// Nanoseconds per job over about `budget`.
fn time(batch: usize, budget: Duration, mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < budget {
        let calls = 128_usize.div_ceil(batch);
        (0..calls).for_each(|_| run());
        count += calls * batch;
    }
    start.elapsed().as_nanos() as f64 / count as f64
}
