//! What does a key encapsulation cost beside the primitive under it, and does the time of RSA tell what padding it met?
//!
//! Goal: for each mechanism, microseconds of one encapsulation and one decapsulation, of the raw primitive of the
//! library (P-256 and X25519 agreement, RSA with its private key and no padding), and the ratio of decapsulation to it;
//! then the ratio of RSA to P-256, which the ANTP paper gives as 8.62 for the primitives (section 4.2). For both
//! paddings of RSA, Welch's t between right ones and each class of wrong ones: below 4.5 in magnitude nothing is seen.
//!
//! A changed ciphertext decrypts to something random, and nearly all of that is garbage from its first octet on.
//! Attacks live on what is nearly right (Bleichenbacher 1998, Klima and others 2003, Manger 2001), so blocks of such
//! classes are made, and encrypted without padding.
//!
//! Non-goal: sealing of state, tags, sockets.
//!
//! Run with `cargo bench -p authentick-crypto --bench kem`; among the tests it runs once, with a few rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_crypto::kdf::{hkdf_sha256, sha256};
use authentick_crypto::kem::{Kem, PrivateKey, PublicKey};
use aws_lc_rs::agreement::{self, ECDH_P256, UnparsedPublicKey, X25519};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeySize, PrivateDecryptingKey};
use num_bigint::BigUint;

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
    let sample_count = if full { 10_000 } else { 40 };
    for kem in [Kem::RsaPkcs1, Kem::RsaOaep] {
        println!(
            "Welch's t of wrong against right padding of {kem}, {sample_count} decapsulations of each class:"
        );
        for (class, t) in padding_ts(kem, sample_count) {
            println!("{class:<28} {t:>6.1}");
        }
    }
}

struct Keys {
    kem: Kem,
    private: PrivateKey,
    public: PublicKey,
    /// SubjectPublicKeyInfo.
    spki: Vec<u8>,
    raw: Raw,
}

/// The primitive without anything of ours around it.
enum Raw {
    Agreement(&'static agreement::Algorithm, agreement::PrivateKey),
    /// OAEP of the library: its padding is 8 hashes, a thousandth of the operation.
    Rsa(Box<aws_lc_rs::rsa::OaepPrivateDecryptingKey>, Box<aws_lc_rs::rsa::OaepPublicEncryptingKey>),
}

impl Keys {
    fn new(kem: Kem) -> Self {
        let (pkcs8, spki, raw) = match kem {
            Kem::RsaPkcs1 | Kem::RsaOaep => {
                let key =
                    PrivateDecryptingKey::generate(KeySize::Rsa2048).expect("the system gives randomness");
                let pkcs8: Pkcs8V1Der<'_> = key.as_der().expect("a key can be written");
                let spki: aws_lc_rs::encoding::PublicKeyX509Der<'_> =
                    key.public_key().as_der().expect("a key can be written");
                let (pkcs8, spki) = (pkcs8.as_ref().to_vec(), spki.as_ref().to_vec());
                let public = aws_lc_rs::rsa::OaepPublicEncryptingKey::new(key.public_key());
                let private = aws_lc_rs::rsa::OaepPrivateDecryptingKey::new(key);
                let (private, public) = (private.expect("2048 bits"), public.expect("2048 bits"));
                (pkcs8, spki, Raw::Rsa(Box::new(private), Box::new(public)))
            }
            Kem::P256 => ecdh(&ECDH_P256, &P256_PKCS8, &P256_SPKI),
            Kem::X25519 => ecdh(&X25519, &X25519_PKCS8, &X25519_SPKI),
        };
        Keys {
            kem,
            private: PrivateKey::from_pkcs8(kem, &pkcs8).expect("the key was just made"),
            public: PublicKey::from_spki(kem, &spki).expect("the key was just made"),
            spki,
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
                let oaep = &aws_lc_rs::rsa::OAEP_SHA256_MGF1SHA256;
                public.encrypt(oaep, &[1; 16], &mut ciphertext, None).expect("16 octets fit");
                time(budget, || {
                    black_box(private.decrypt(oaep, black_box(&ciphertext), &mut out, None))
                        .expect("it opens");
                })
            }
        }
    }
}

/// PKCS#8 of P-256 up to the scalar, without the public key. RFC 5208, RFC 5915.
const P256_PKCS8: [u8; 36] = [
    0x30, 0x41, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06,
    0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x27, 0x30, 0x25, 0x02, 0x01, 0x01, 0x04,
    0x20, 0x00,
];
/// RFC 5480 section 2, up to the point.
const P256_SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// RFC 8410 section 7, up to the key.
const X25519_PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x04, 0x22, 0x04, 0x20];
/// RFC 8410 section 4, up to the key.
const X25519_SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21, 0x00];

fn ecdh(
    algorithm: &'static agreement::Algorithm,
    pkcs8_prefix: &[u8],
    spki_prefix: &[u8],
) -> (Vec<u8>, Vec<u8>, Raw) {
    // The last octet of P-256's prefix is the first of the scalar, zero, so that the scalar is below the order.
    let mut scalar = Entropy::from_seed(9).array::<32>();
    scalar[0] = 0;
    let own =
        agreement::PrivateKey::from_private_key(algorithm, &scalar).expect("the scalar is below the order");
    let public = own.compute_public_key().expect("a private key has a public one");
    let skipped = usize::from(pkcs8_prefix.len() == P256_PKCS8.len());
    let pkcs8 = [pkcs8_prefix, &scalar[skipped..]].concat();
    (pkcs8, [spki_prefix, public.as_ref()].concat(), Raw::Agreement(algorithm, own))
}

/// A way in which a padding is wrong: its name, and what it does to a right block before encryption.
type Class = (&'static str, fn(&mut [u8; 256]));

/// Where the zero before the secret stands.
const END: usize = 256 - 16 - 1;

/// Classes of PKCS#1 v1.5. RFC 8017 section 7.2.2.
const PKCS1_CLASSES: [Class; 6] = [
    ("garbage", |block| block[..END].fill(0x5A)),
    ("00 02, early zero", |block| block[5] = 0),
    ("00 02, late zero", |block| block[END - 9] = 0),
    ("00 02, 15 octets", |block| (block[END], block[END + 1]) = (5, 0)),
    ("00 02, no zero", |block| block[END..].fill(5)),
    ("00 01", |block| block[1] = 1),
];

/// Classes of OAEP, of the block before it is masked. RFC 8017 section 7.1.2.
const OAEP_CLASSES: [Class; 5] = [
    ("first octet", |block| block[0] = 1),
    ("hash of the label", |block| block[40] ^= 1),
    ("octet before the one", |block| block[100] = 7),
    ("15 octets", |block| (block[END], block[END + 1]) = (0, 1)),
    ("no one", |block| block[END..].fill(0)),
];

/// The public operation of RSA without padding.
struct RawRsa {
    modulus: BigUint,
}

impl RawRsa {
    /// Out of the SubjectPublicKeyInfo of a key of 2048 bits. RFC 8017 appendix A.1.1: INTEGER of 257 octets.
    fn new(spki: &[u8]) -> Self {
        let start = [0x02, 0x82, 0x01, 0x01, 0x00];
        let at =
            spki.windows(start.len()).position(|octets| octets == start).expect("the modulus has 2048 bits");
        RawRsa { modulus: BigUint::from_bytes_be(&spki[at + start.len()..][..256]) }
    }

    fn encrypt(&self, block: &[u8; 256]) -> [u8; 256] {
        let block = BigUint::from_bytes_be(block);
        let octets = block.modpow(&BigUint::from(65_537_u32), &self.modulus).to_bytes_be();
        let mut out = [0; 256];
        out[256 - octets.len()..].copy_from_slice(&octets);
        out
    }
}

/// A right block: for OAEP before it is masked.
fn right_block(kem: Kem, entropy: &mut Entropy) -> [u8; 256] {
    let mut block = [0; 256];
    match kem {
        Kem::RsaPkcs1 => {
            block[1] = 2;
            block[2..END].iter_mut().for_each(|octet| *octet = (entropy.u64() % 255 + 1) as u8);
        }
        Kem::RsaOaep => {
            entropy.fill(&mut block[1..33]);
            block[33..65].copy_from_slice(&sha256(&[]));
            block[END] = 1;
        }
        Kem::P256 | Kem::X25519 => unreachable!("they have no padding"),
    }
    entropy.fill(&mut block[END + 1..]);
    block
}

/// Adds MGF1 with SHA-256. RFC 8017 appendix B.2.1.
fn mask(octets: &mut [u8], seed: &[u8]) {
    for (number, chunk) in octets.chunks_mut(32).enumerate() {
        let stream = sha256(&[seed, &(number as u32).to_be_bytes()]);
        chunk.iter_mut().zip(stream).for_each(|(octet, key)| *octet ^= key);
    }
}

/// Welch's t between the times of right paddings and of each class of wrong ones, interleaved at random, each with
/// ciphertexts of its own, so many of each.
fn padding_ts(kem: Kem, sample_count: usize) -> Vec<(&'static str, f64)> {
    let classes: &[Class] = if kem == Kem::RsaPkcs1 { &PKCS1_CLASSES } else { &OAEP_CLASSES };
    let keys = Keys::new(kem);
    let (raw, mut entropy) = (RawRsa::new(&keys.spki), Entropy::from_seed(2));
    let mut samples: Vec<(f64, usize)> = Vec::new();
    for _ in 0..sample_count * (classes.len() + 1) {
        // The last class is that of right ones.
        let class = entropy.u64() as usize % (classes.len() + 1);
        let mut block = right_block(kem, &mut entropy);
        if let Some((_, spoil)) = classes.get(class) {
            spoil(&mut block);
        }
        let secret: [u8; 16] = *block.last_chunk().expect("a block is longer than a secret");
        if kem == Kem::RsaOaep {
            let (seed, data) = block[1..].split_at_mut(32);
            mask(data, seed);
            mask(seed, data);
        }
        let ciphertext = raw.encrypt(&block);
        let start = Instant::now();
        let opened = keys.private.decapsulate(black_box(&ciphertext));
        let elapsed = start.elapsed().as_nanos() as f64;
        let key = hkdf_sha256(&secret, &[b"ANTP"]);
        let is_right = *opened.expect("the size is right").expose() == key;
        assert_eq!(is_right, class == classes.len(), "the classes are what they are said to be");
        samples.push((elapsed, class));
    }
    // What is slower than nine tenths was interrupted.
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let kept = &samples[..samples.len() * 9 / 10];
    let moments = |class: usize| {
        let values = || kept.iter().filter(|sample| sample.1 == class).map(|sample| sample.0);
        let count = values().count() as f64;
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    };
    let right = moments(classes.len());
    let t = |class| {
        let wrong = moments(class);
        (right.0 - wrong.0) / (right.1 + wrong.1).sqrt()
    };
    classes.iter().enumerate().map(|(class, (name, _))| (*name, t(class))).collect()
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
