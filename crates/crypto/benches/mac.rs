//! What does the MAC of one NTP packet cost, alone and in batches?
//!
//! Goal: for each algorithm, the time to compute and to verify the tag of a packet of 48 octets, per packet, for
//! several batch sizes. Each packet of a batch has a key of its own that is kept; the tags under one key for all, one
//! packet after another on the portable path, and what it costs to expand a key, stand beside. Non-goal: other
//! libraries (`authentick bench mac`), parsing, sockets.
//!
//! Run with `cargo bench -p authentick-crypto --bench mac`; among the tests it runs once, with a few rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use authentick_crypto::mac::{MAC_TAG_SIZE_MAX, MacAlgorithm, MacKey, Tag, Verify};
use authentick_crypto::{Entropy, Path, run_batch, run_batch_on};

const PACKET_SIZE: usize = 48;
const BATCHES: [usize; 4] = [1, 4, 16, 64];
const ROUNDS: usize = 15;

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let budget = if full { Duration::from_millis(5) } else { Duration::from_micros(20) };
    println!(
        "MAC of a packet of {PACKET_SIZE} octets, ns per packet (fastest of {ROUNDS} rounds of {budget:?})"
    );
    println!(
        "{:<12} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "algorithm", "batch", "tag", "one key", "portable", "verify", "expand"
    );
    for algorithm in MacAlgorithm::ALL {
        for batch in BATCHES {
            let mut bench = Bench::new(algorithm, batch);
            let mut costs = [f64::INFINITY; 5];
            for _ in 0..ROUNDS {
                costs.iter_mut().zip(bench.round(budget)).for_each(|(cost, new)| *cost = cost.min(new));
            }
            let [tag, one_key, portable, verify, expand] = costs;
            println!(
                "{algorithm:<12} {batch:>5} {tag:>8.1} {one_key:>8.1} {portable:>8.1} {verify:>8.1} {expand:>8.1}"
            );
        }
    }
}

/// A packet, its key and its tag.
struct Packet {
    octets: Vec<u8>,
    key: MacKey,
    message: [u8; PACKET_SIZE],
    nonce: [u8; 12],
    tag: [u8; MAC_TAG_SIZE_MAX],
    genuine: bool,
}

/// The packets of a batch.
struct Bench {
    algorithm: MacAlgorithm,
    packets: Vec<Packet>,
}

impl Bench {
    fn new(algorithm: MacAlgorithm, batch: usize) -> Self {
        let mut entropy = Entropy::from_seed(1);
        let packets = (0..batch).map(|_| {
            // The drafts' keys have 16 octets, where the algorithm has no other size.
            let size = if algorithm.key_sizes().contains(&16) { 16 } else { *algorithm.key_sizes().end() };
            let mut octets = vec![0; size];
            entropy.fill(&mut octets);
            let key = MacKey::new(algorithm, &octets).expect("the size is right");
            let (message, nonce) = (entropy.array(), entropy.array());
            Packet { octets, key, message, nonce, tag: [0; MAC_TAG_SIZE_MAX], genuine: false }
        });
        Bench { algorithm, packets: packets.collect() }
    }

    /// Nanoseconds per packet of computing a tag, the same where all packets are under one key, and on the portable
    /// path, verifying one, and expanding a key.
    fn round(&mut self, budget: Duration) -> [f64; 5] {
        let Bench { algorithm, packets } = self;
        let one_key = MacKey::new(*algorithm, &packets[0].octets).expect("the size is right");
        let (tag_size, batch) = (algorithm.tag_size(), packets.len());
        let nonce_size = algorithm.nonce_size();
        let one_key_cost = time(batch, budget, || {
            run_batch(packets.iter_mut().map(|packet| {
                let Packet { message, nonce, tag, .. } = packet;
                let nonce = nonce_size.map(|size| &nonce[..size]);
                Tag { key: &one_key, nonce, message, tag: &mut tag[..tag_size] }
            }));
        });
        let tag_cost = time(batch, budget, || {
            run_batch(packets.iter_mut().map(|packet| {
                let Packet { key, message, nonce, tag, .. } = packet;
                Tag { key, nonce: nonce_size.map(|size| &nonce[..size]), message, tag: &mut tag[..tag_size] }
            }));
        });
        let portable_cost = time(batch, budget, || {
            let tags = packets.iter_mut().map(|packet| {
                let Packet { key, message, nonce, tag, .. } = packet;
                Tag { key, nonce: nonce_size.map(|size| &nonce[..size]), message, tag: &mut tag[..tag_size] }
            });
            run_batch_on(Path::Portable, tags);
        });
        let verify_cost = time(batch, budget, || {
            run_batch(packets.iter_mut().map(|packet| {
                let Packet { key, message, nonce, tag, genuine, .. } = packet;
                let nonce = nonce_size.map(|size| &nonce[..size]);
                Verify { key, nonce, message, tag: &tag[..tag_size], genuine }
            }));
        });
        assert!(packets.iter().all(|packet| packet.genuine), "every packet verifies");
        let expand_cost = time(batch, budget, || {
            for packet in &mut *packets {
                black_box(MacKey::new(*algorithm, &packet.octets).expect("the size is right"));
            }
        });
        [tag_cost, one_key_cost, portable_cost, verify_cost, expand_cost]
    }
}

/// Nanoseconds per packet over about `budget`.
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
