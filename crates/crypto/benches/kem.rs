//! What does a key encapsulation cost beside the primitive under it?
//!
//! Goal: for each mechanism, microseconds of one encapsulation and one decapsulation, of the raw primitive of the
//! library (P-256 and X25519 agreement, RSA with its private key and no padding), and the ratio of decapsulation to it;
//! then the ratio of RSA to P-256, which the ANTP paper gives as 8.62 for the primitives (section 4.2).
//!
//! Non-goal: whether times depend on secrets, which the bench `timing` looks at; sealing of state, tags, sockets.
//!
//! Run with `cargo bench -p authentick-crypto --bench kem`; among the tests it runs once, with a few rounds.

#[path = "timing/keys.rs"]
mod keys;

use std::hint::black_box;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_crypto::kem::{Kem, PrivateKey, PublicKey};
use aws_lc_rs::agreement::{self, ECDH_P256, UnparsedPublicKey, X25519};
use aws_lc_rs::rsa::{
    OAEP_SHA256_MGF1SHA256, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
};
use keys::{Pair, ecdh, rsa};

/// What one mechanism costs, in nanoseconds.
#[derive(Clone, Copy)]
struct Costs {
    encapsulate: f64,
    decapsulate: f64,
    raw: f64,
}

/// The ratio of the primitives in the ANTP paper, section 4.2.
const PUBLISHED_RATIO: f64 = 8.62;

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let (rounds, budget) =
        if full { (15, Duration::from_millis(40)) } else { (1, Duration::from_micros(200)) };
    println!("KEMs, us each (fastest of {rounds} rounds of {budget:?})");
    println!("{:<22} {:>11} {:>11} {:>9} {:>11}", "KEM", "encapsulate", "decapsulate", "raw", "x primitive");
    let costs = Kem::ALL.map(|kem| {
        let costs = Keys::new(kem).costs(rounds, budget);
        println!(
            "{kem:<22} {:>11.1} {:>11.1} {:>9.1} {:>11.3}",
            costs.encapsulate / 1e3,
            costs.decapsulate / 1e3,
            costs.raw / 1e3,
            costs.decapsulate / costs.raw
        );
        (kem, costs)
    });
    let of = |wanted: Kem| costs.iter().find(|(kem, _)| *kem == wanted).expect("all were measured").1;
    let (rsa, p256) = (of(Kem::RsaPkcs1), of(Kem::P256));
    println!(
        "RSA over P-256: {:.2} decapsulated, {:.2} raw; the paper's primitives: {PUBLISHED_RATIO}",
        rsa.decapsulate / p256.decapsulate,
        rsa.raw / p256.raw
    );
}

struct Keys {
    kem: Kem,
    private: PrivateKey,
    public: PublicKey,
    raw: Raw,
}

/// The primitive without anything of ours around it.
enum Raw {
    Agreement(&'static agreement::Algorithm, agreement::PrivateKey),
    /// OAEP of the library: its padding is 8 hashes, a thousandth of the operation.
    Rsa(Box<OaepPrivateDecryptingKey>, Box<OaepPublicEncryptingKey>),
}

impl Keys {
    fn new(kem: Kem) -> Self {
        let (Pair { pkcs8, spki }, raw) = match kem {
            Kem::RsaPkcs1 | Kem::RsaOaep => {
                let pair = rsa();
                let key = PrivateDecryptingKey::from_pkcs8(&pair.pkcs8).expect("the key was just made");
                let public = OaepPublicEncryptingKey::new(key.public_key()).expect("2048 bits");
                let private = OaepPrivateDecryptingKey::new(key).expect("2048 bits");
                (pair, Raw::Rsa(Box::new(private), Box::new(public)))
            }
            Kem::P256 | Kem::X25519 => {
                let (pair, own) = ecdh(kem, Entropy::from_seed(9).array());
                let algorithm = if kem == Kem::P256 { &ECDH_P256 } else { &X25519 };
                (pair, Raw::Agreement(algorithm, own))
            }
        };
        Keys {
            kem,
            private: PrivateKey::from_pkcs8(kem, &pkcs8).expect("the key was just made"),
            public: PublicKey::from_spki(kem, &spki).expect("the key was just made"),
            raw,
        }
    }

    fn costs(&self, rounds: usize, budget: Duration) -> Costs {
        let mut entropy = Entropy::from_seed(1);
        let (ciphertext, key) = self.public.encapsulate(&mut entropy);
        let mut costs = Costs { encapsulate: f64::INFINITY, decapsulate: f64::INFINITY, raw: f64::INFINITY };
        // They take turns, so that a machine that slows down slows all of them.
        for _ in 0..rounds {
            let encapsulate = time(budget, || {
                black_box(self.public.encapsulate(&mut entropy));
            });
            let decapsulate = time(budget, || {
                assert!(
                    self.private.decapsulate(black_box(&ciphertext)).as_ref() == Some(&key),
                    "{}",
                    self.kem
                );
            });
            let raw = self.raw_cost(budget);
            costs.encapsulate = costs.encapsulate.min(encapsulate);
            costs.decapsulate = costs.decapsulate.min(decapsulate);
            costs.raw = costs.raw.min(raw);
        }
        costs
    }

    fn raw_cost(&self, budget: Duration) -> f64 {
        match &self.raw {
            Raw::Agreement(algorithm, own) => {
                let peer = agreement::PrivateKey::generate(algorithm).expect("the system gives randomness");
                let peer = peer.compute_public_key().expect("a private key has a public one");
                time(budget, || {
                    let peer = UnparsedPublicKey::new(algorithm, black_box(peer.as_ref()));
                    agreement::agree(own, peer, (), |secret| Ok(black_box(secret[0])))
                        .expect("the point is good");
                })
            }
            Raw::Rsa(private, public) => {
                let (mut ciphertext, mut out) = ([0; 256], [0; 256]);
                let oaep = &OAEP_SHA256_MGF1SHA256;
                public.encrypt(oaep, &[1; 16], &mut ciphertext, None).expect("16 octets fit");
                time(budget, || {
                    black_box(private.decrypt(oaep, black_box(&ciphertext), &mut out, None))
                        .expect("it opens");
                })
            }
        }
    }
}

/// Nanoseconds per call over about `budget`.
fn time(budget: Duration, mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut count = 0_u32;
    while start.elapsed() < budget || count == 0 {
        run();
        count += 1;
    }
    start.elapsed().as_nanos() as f64 / f64::from(count)
}
