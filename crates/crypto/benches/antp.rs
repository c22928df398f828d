//! What does the cryptography of one ANTP time request cost a server, alone and in batches?
//!
//! Goal: the time to open C2 (AES-128-GCM, 28 octets under a kept key) and to compute tau2 (HMAC-SHA256 of m5 and m6
//! under a key that is used once), per request, for several batch sizes and for each path of hashes. Beside it stand
//! aws-lc, one request after another, and the floor: the seven compressions of SHA-256 from register to register, and
//! the three AES blocks of C2. Non-goal: parsing, copying, sockets (`authentick-proto`'s bench).
//!
//! Run with `cargo bench -p authentick-crypto --bench antp`; among the tests it runs once, with a few rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use authentick_crypto::gcm::{GcmKey, GcmOpen, GcmOpenBatch, GcmSeal, gcm_seal};
use authentick_crypto::kdf::{HmacTag, HmacTagBatch, HmacVerify, HmacVerifyBatch};
use authentick_crypto::{Entropy, HashPath, Text, encrypt_alone_on, hash_alone_on, hash_path, path};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hmac;

const BATCHES: [usize; 4] = [1, 4, 16, 64];
const ROUNDS: usize = 60;

/// What tau2 begins with: its label, and the size of m5.
const OPENING: &[u8] = b"ANTP1 ts\0\x00\x98";
/// Octets of m5, and of m6 before the tag.
const M5_SIZE: usize = 152;
const M6_HEAD_SIZE: usize = 60;
/// Octets of the text of C2 and of what is authenticated with it.
const TEXT_SIZE: usize = 28;
const ASSOCIATED_SIZE: usize = 13;

/// Compressions of one tau2: two for the pads, four for the text, one for the outer hash.
const COMPRESSION_COUNT: usize = 7;
/// AES blocks of one C2: the mask of the tag and two of text.
const BLOCK_COUNT: usize = 3;

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let budget = if full { Duration::from_millis(1) } else { Duration::from_micros(20) };
    println!(
        "m5/m6 crypto of one request, ns per request (fastest of {ROUNDS} rounds of {budget:?}); C2 on {}",
        path()
    );
    print!("{:<9} {:>5}", "path", "batch");
    let columns = ["open C2", "tau2", "both", "verify", "floor", "aws C2", "aws tau2", "x aws"];
    columns.iter().for_each(|column| print!(" {column:>8}"));
    println!();
    let paths: Vec<HashPath> = HashPath::ALL.into_iter().filter(|path| path.is_available()).collect();
    for batch in BATCHES {
        let mut bench = Bench::new(batch);
        let mut costs = vec![[f64::INFINITY; 5]; paths.len()];
        for _ in 0..ROUNDS {
            // Paths take turns, so that a machine that slows down slows all of them.
            for (costs, path) in costs.iter_mut().zip(&paths) {
                let round = bench.round(*path, budget);
                costs.iter_mut().zip(round).for_each(|(cost, new)| *cost = cost.min(new));
            }
        }
        for (hash_path, [open, tau2, verify, aws_open, aws_tau2]) in paths.iter().zip(costs) {
            print!("{hash_path:<9} {batch:>5} {open:>8.1} {tau2:>8.1} {:>8.1} {verify:>8.1}", open + tau2);
            match floor(*hash_path, budget) {
                Some(floor) => print!(" {floor:>8.1}"),
                None => print!(" {:>8}", "-"),
            }
            println!(" {aws_open:>8.1} {aws_tau2:>8.1} {:>8.2}", (aws_open + aws_tau2) / (open + tau2));
        }
    }
    println!("this process takes {} for hashes", hash_path());
}

/// Nanoseconds of the compressions and the AES blocks of one request, in full registers.
fn floor(hash_path: HashPath, budget: Duration) -> Option<f64> {
    let cost = |run: &dyn Fn() -> Option<usize>| {
        let mut fastest = f64::INFINITY;
        for _ in 0..ROUNDS {
            let (start, mut count) = (Instant::now(), 0);
            while start.elapsed() < budget {
                count += run()?;
            }
            fastest = fastest.min(start.elapsed().as_nanos() as f64 / count as f64);
        }
        Some(fastest)
    };
    let compression = cost(&|| hash_alone_on(hash_path, 100))?;
    let block = cost(&|| encrypt_alone_on(path(), 100)).unwrap_or(0.0);
    Some(compression * COMPRESSION_COUNT as f64 + block * BLOCK_COUNT as f64)
}

/// One request as it came, and what is made of it.
struct Request {
    nonce: [u8; 12],
    sealed: [u8; TEXT_SIZE],
    sealed_tag: [u8; 16],
    text: [u8; TEXT_SIZE],
    m5: [u8; M5_SIZE],
    m6_head: [u8; M6_HEAD_SIZE],
    tau2: [u8; 32],
    genuine: bool,
}

struct Bench {
    key: GcmKey,
    aws_key: LessSafeKey,
    associated: [u8; ASSOCIATED_SIZE],
    requests: Vec<Request>,
}

impl Bench {
    fn new(batch: usize) -> Self {
        let mut entropy = Entropy::from_seed(1);
        let (octets, associated) = (entropy.array(), entropy.array());
        let key = GcmKey::new(&octets);
        let aws_key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &octets).expect("a key has 16 octets"));
        let requests = (0..batch).map(|_| {
            let (nonce, text) = (entropy.array(), entropy.array::<TEXT_SIZE>());
            let (mut sealed, mut sealed_tag) = (text, [0; 16]);
            let (text_out, tag) = (&mut sealed, &mut sealed_tag);
            gcm_seal(GcmSeal { key: &key, nonce: &nonce, associated: &associated, text: text_out, tag });
            let (m5, m6_head) = (entropy.array(), entropy.array());
            Request { nonce, sealed, sealed_tag, text, m5, m6_head, tau2: [0; 32], genuine: false }
        });
        Bench { requests: requests.collect(), key, aws_key, associated }
    }

    /// Nanoseconds per request of opening C2, computing tau2 and verifying it, and of the first two with aws-lc.
    fn round(&mut self, hash_path: HashPath, budget: Duration) -> [f64; 5] {
        let batch = self.requests.len();
        let open = time(batch, budget, || self.open());
        let tau2 = time(batch, budget, || self.tag(hash_path));
        let verify = time(batch, budget, || self.verify(hash_path));
        assert!(self.requests.iter().all(|request| request.genuine), "every tag verifies");
        let aws_open = time(batch, budget, || self.open_with_aws());
        let aws_tau2 = time(batch, budget, || self.tag_with_aws());
        [open, tau2, verify, aws_open, aws_tau2]
    }

    /// In groups of sixteen, as a server has them.
    fn open(&mut self) {
        let Bench { key, associated, requests, .. } = self;
        for requests in requests.chunks_mut(16) {
            let mut batch = GcmOpenBatch::new();
            for Request { nonce, sealed, sealed_tag: tag, text, genuine, .. } in &mut *requests {
                let text = Text::new(sealed, text).expect("both are of one size");
                batch.push(GcmOpen { key, nonce, associated, text, tag, genuine });
            }
            batch.run();
            assert!(requests.iter().all(|request| request.genuine), "every C2 opens");
        }
    }

    fn tag(&mut self, hash_path: HashPath) {
        let size = (M6_HEAD_SIZE as u16).to_be_bytes();
        for requests in self.requests.chunks_mut(16) {
            let mut lists = arrayvec::ArrayVec::<[&[u8]; 4], 16>::new();
            let mut jobs = arrayvec::ArrayVec::<(&[u8], &mut [u8; 32]), 16>::new();
            for Request { m5, m6_head, text, tau2, .. } in requests {
                lists.push([OPENING, m5, &size, m6_head]);
                jobs.push((&text[12..], tau2));
            }
            let mut tags = HmacTagBatch::on(hash_path);
            for ((key, tag), parts) in jobs.into_iter().zip(&lists) {
                tags.push(HmacTag { key, parts, tag });
            }
            tags.run();
        }
    }

    fn verify(&mut self, hash_path: HashPath) {
        let size = (M6_HEAD_SIZE as u16).to_be_bytes();
        for requests in self.requests.chunks_mut(16) {
            let mut lists = arrayvec::ArrayVec::<[&[u8]; 4], 16>::new();
            let mut jobs = arrayvec::ArrayVec::<(&[u8], &[u8; 32], &mut bool), 16>::new();
            for Request { m5, m6_head, text, tau2, genuine, .. } in requests {
                lists.push([OPENING, m5, &size, m6_head]);
                jobs.push((&text[12..], tau2, genuine));
            }
            let mut tags = HmacVerifyBatch::on(hash_path);
            for ((key, tag, genuine), parts) in jobs.into_iter().zip(&lists) {
                tags.push(HmacVerify { key, parts, tag, genuine });
            }
            tags.run();
        }
    }

    fn open_with_aws(&self) {
        for request in &self.requests {
            let mut octets = [0; TEXT_SIZE + 16];
            octets[..TEXT_SIZE].copy_from_slice(&request.sealed);
            octets[TEXT_SIZE..].copy_from_slice(&request.sealed_tag);
            let nonce = Nonce::assume_unique_for_key(request.nonce);
            let text = self.aws_key.open_in_place(nonce, Aad::from(self.associated), &mut octets);
            assert_eq!(black_box(text).expect("every C2 opens"), request.text, "both find the same");
        }
    }

    fn tag_with_aws(&self) {
        let size = (M6_HEAD_SIZE as u16).to_be_bytes();
        for request in &self.requests {
            let key = hmac::Key::new(hmac::HMAC_SHA256, &request.text[12..]);
            let mut context = hmac::Context::with_key(&key);
            let parts: [&[u8]; 4] = [OPENING, &request.m5, &size, &request.m6_head];
            parts.iter().for_each(|part| context.update(part));
            assert_eq!(black_box(context.sign()).as_ref(), request.tau2, "both find the same");
        }
    }
}

/// Nanoseconds per request over about `budget`.
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
