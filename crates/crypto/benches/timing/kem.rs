//! Decapsulations, in classes of ciphertexts and of private keys.
//!
//! A changed ciphertext of RSA decrypts to something random, and nearly all of that is garbage from its first octet on.
//! Attacks live on what is nearly right (Bleichenbacher 1998, Klima and others 2003, Manger 2001), so blocks of such
//! classes are made, and encrypted without padding.
//!
//! Each class is compared with the first, which is that of honest ciphertexts, and has a time of its own only where
//! that tells nothing: a point off the curve is refused before any secret is used, and its sender knows what it is.

use std::hint::black_box;

use authentick_crypto::Entropy;
use authentick_crypto::kdf::{hkdf_sha256, sha256};
use authentick_crypto::kem::{Kem, PrivateKey, PublicKey};
use num_bigint::BigUint;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::delay::delay;
use crate::judge::{Difference, Sample};
use crate::keys::{Pair, ecdh, rsa};

/// What is to be seen of a class beside the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Nothing.
    Same,
    /// A difference: it is public, or planted.
    Seen,
    /// Either: it is planted, and small.
    Either,
}

/// A class of ciphertexts or of keys.
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) wanted: Wanted,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// An honest ciphertext, and after it so many steps of a delay.
    Honest(u32),
    /// A block that is encrypted after this was done to it.
    Spoilt(fn(&mut [u8; BLOCK_SIZE])),
    /// One honest ciphertext again and again.
    Fixed,
    /// The point of an honest ciphertext, negated: on the curve, and not what the client sent.
    Negated,
    /// A point off the curve.
    OffCurve,
    /// Private keys in which one bit of each octet is set, or all others.
    Weight(Weight),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Low,
    High,
}

const BLOCK_SIZE: usize = 256;
/// Where the zero or the one before the secret stands.
const END: usize = BLOCK_SIZE - 16 - 1;

/// The name of a class, and what it does to a right block before encryption.
type Spoiler = (&'static str, fn(&mut [u8; BLOCK_SIZE]));

/// Classes of PKCS#1 v1.5. RFC 8017 section 7.2.2.
const PKCS1: [Spoiler; 6] = [
    ("garbage", |block| block[..END].fill(0x5A)),
    ("00 02, early zero", |block| block[5] = 0),
    ("00 02, late zero", |block| block[END - 9] = 0),
    ("00 02, 15 octets", |block| (block[END], block[END + 1]) = (5, 0)),
    ("00 02, no zero", |block| block[END..].fill(5)),
    ("00 01", |block| block[1] = 1),
];

/// Classes of OAEP, of the block before it is masked. RFC 8017 section 7.1.2.
const OAEP: [Spoiler; 5] = [
    ("first octet", |block| block[0] = 1),
    ("hash of the label", |block| block[40] ^= 1),
    ("octet before the one", |block| block[100] = 7),
    ("15 octets", |block| (block[END], block[END + 1]) = (0, 1)),
    ("no one", |block| block[END..].fill(0)),
];

/// The classes of a mechanism, the honest one first. `delays`: steps and nanoseconds of delays that are planted, of
/// which the last has to be seen.
pub(crate) fn classes(kem: Kem, delays: &[(u32, f64)]) -> Vec<Class> {
    let class = |name: &str, wanted, kind| Class { name: name.to_owned(), wanted, kind };
    let same = |name: &str, kind| class(name, Wanted::Same, kind);
    let mut classes = vec![same("honest", Kind::Honest(0))];
    match kem {
        Kem::RsaPkcs1 => classes.extend(PKCS1.map(|(name, spoil)| same(name, Kind::Spoilt(spoil)))),
        Kem::RsaOaep => classes.extend(OAEP.map(|(name, spoil)| same(name, Kind::Spoilt(spoil)))),
        Kem::P256 | Kem::X25519 => classes.extend([
            same("one point", Kind::Fixed),
            same("keys of low weight", Kind::Weight(Weight::Low)),
            same("keys of high weight", Kind::Weight(Weight::High)),
        ]),
    }
    if kem == Kem::P256 {
        classes.push(same("on the curve, negated", Kind::Negated));
        classes.push(class("off the curve", Wanted::Seen, Kind::OffCurve));
    }
    for (index, (steps, ns)) in delays.iter().enumerate() {
        let wanted = if index + 1 == delays.len() { Wanted::Seen } else { Wanted::Either };
        classes.push(class(&format!("honest, {ns:.0} ns later"), wanted, Kind::Honest(*steps)));
    }
    classes
}

/// So many private keys, which take turns at random, and their public ones.
const KEY_COUNT: usize = 16;

/// Private keys of one mechanism, and what is encrypted for them.
struct Keys {
    kem: Kem,
    pairs: Vec<(PrivateKey, PublicKey)>,
    /// The modulus of the first, if it is one of RSA.
    modulus: BigUint,
}

impl Keys {
    /// Random keys, or, where the mechanism has scalars, such of a weight. RSA has one.
    fn new(kem: Kem, weight: Option<Weight>, entropy: &mut Entropy) -> Self {
        let scalar = |entropy: &mut Entropy| {
            let octets = entropy.array::<32>();
            match weight {
                Some(Weight::Low) => octets.map(|octet| 1 << (octet % 8)),
                Some(Weight::High) => octets.map(|octet| !(1 << (octet % 8))),
                None => octets,
            }
        };
        let pairs: Vec<Pair> = match kem {
            Kem::RsaPkcs1 | Kem::RsaOaep => vec![rsa()],
            Kem::P256 | Kem::X25519 => (0..KEY_COUNT).map(|_| ecdh(kem, scalar(entropy)).0).collect(),
        };
        let modulus = match kem {
            Kem::RsaPkcs1 | Kem::RsaOaep => modulus(&pairs[0].spki),
            Kem::P256 | Kem::X25519 => BigUint::ZERO,
        };
        let read = |pair: &Pair| {
            let private = PrivateKey::from_pkcs8(kem, &pair.pkcs8).expect("the key was just made");
            (private, PublicKey::from_spki(kem, &pair.spki).expect("the key was just made"))
        };
        Keys { kem, pairs: pairs.iter().map(read).collect(), modulus }
    }

    fn draw(&self, entropy: &mut Entropy) -> &(PrivateKey, PublicKey) {
        &self.pairs[entropy.u64() as usize % self.pairs.len()]
    }

    /// A ciphertext of RSA whose block was spoilt, and the key that an honest one would have.
    fn padded(&self, entropy: &mut Entropy, spoil: fn(&mut [u8; BLOCK_SIZE])) -> (Vec<u8>, [u8; 16]) {
        let mut block = right_block(self.kem, entropy);
        spoil(&mut block);
        let secret: [u8; 16] = *block.last_chunk().expect("a block is longer than a secret");
        if self.kem == Kem::RsaOaep {
            let (seed, data) = block[1..].split_at_mut(32);
            mask(data, seed);
            mask(seed, data);
        }
        // The public operation without padding.
        let power = BigUint::from_bytes_be(&block).modpow(&BigUint::from(65_537_u32), &self.modulus);
        let octets = power.to_bytes_be();
        let ciphertext = [&[0; BLOCK_SIZE][octets.len()..], &octets].concat();
        (ciphertext, hkdf_sha256(&secret, &[b"ANTP"]))
    }
}

/// Out of the SubjectPublicKeyInfo of a key of 2048 bits. RFC 8017 appendix A.1.1: INTEGER of 257 octets.
fn modulus(spki: &[u8]) -> BigUint {
    let start = [0x02, 0x82, 0x01, 0x01, 0x00];
    let at = spki.windows(start.len()).position(|octets| octets == start).expect("the modulus has 2048 bits");
    BigUint::from_bytes_be(&spki[at + start.len()..][..BLOCK_SIZE])
}

/// A right block: for OAEP before it is masked.
fn right_block(kem: Kem, entropy: &mut Entropy) -> [u8; BLOCK_SIZE] {
    let mut block = [0; BLOCK_SIZE];
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

/// The negative of an uncompressed point of P-256. SEC 1 section 2.2.1; the prime is that of section D.1.2.3 of FIPS
/// 186-4.
fn negated(point: &[u8]) -> Vec<u8> {
    let one = BigUint::from(1_u32);
    let power = |exponent: u32| &one << exponent;
    let prime = power(256) - power(224) + power(192) + power(96) - &one;
    let (head, y) = point.split_at(33);
    let octets = (prime - BigUint::from_bytes_be(y)).to_bytes_be();
    [head, &[0; 32][octets.len()..], &octets].concat()
}

/// A ciphertext as it was sent, another one, the same negated, and off the curve; where there is none, as it was sent.
fn variants(kem: Kem, sent: Vec<u8>, fixed: &[u8]) -> [Vec<u8>; 4] {
    let (negated, mut off_curve) =
        (if kem == Kem::P256 { negated(&sent) } else { sent.clone() }, sent.clone());
    if kem == Kem::P256 {
        *off_curve.last_mut().expect("a point has octets") ^= 1;
    }
    [sent, fixed.to_vec(), negated, off_curve]
}

/// What a decapsulation has to give.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Honest,
    OtherKey,
    Refused,
}

/// Nanoseconds for which this thread has run. A decapsulation of RSA takes so long that on a busy machine others often
/// have the processor meanwhile, and their time would hide microseconds; asking takes less than one.
fn thread_ns() -> f64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    tv_sec as f64 * 1e9 + tv_nsec as f64
}

/// Times decapsulations, `count` of each class, drawn at random; what each class but the first shows beside it.
pub(crate) fn differences(kem: Kem, classes: &[Class], count: usize, seed: u64) -> Vec<Difference> {
    let mut entropy = Entropy::from_seed(seed);
    let any = Keys::new(kem, None, &mut entropy);
    let weighed: Vec<Keys> = match kem {
        Kem::RsaPkcs1 | Kem::RsaOaep => Vec::new(),
        Kem::P256 | Kem::X25519 => {
            [Weight::Low, Weight::High].map(|weight| Keys::new(kem, Some(weight), &mut entropy)).into()
        }
    };
    let fixed = any.pairs[0].1.encapsulate(&mut entropy).0;
    let mut place = [0; BLOCK_SIZE];
    let mut times: Vec<(f64, usize)> = Vec::with_capacity(count * classes.len());
    for _ in 0..count * classes.len() {
        let index = entropy.u64() as usize % classes.len();
        let kind = classes[index].kind;
        let keys = if let Kind::Weight(weight) = kind { &weighed[weight as usize] } else { &any };
        let (private, public) = keys.draw(&mut entropy);
        let (sent, honest) = match kem {
            Kem::RsaPkcs1 | Kem::RsaOaep => {
                keys.padded(&mut entropy, if let Kind::Spoilt(spoil) = kind { spoil } else { |_| () })
            }
            Kem::P256 | Kem::X25519 => {
                let (sent, key) = public.encapsulate(&mut entropy);
                (sent.to_vec(), *key.expose())
            }
        };
        let (variant, wanted) = match kind {
            Kind::Honest(_) | Kind::Weight(_) => (0, Outcome::Honest),
            Kind::Spoilt(_) => (0, Outcome::OtherKey),
            Kind::Fixed => (1, Outcome::OtherKey),
            Kind::Negated => (2, Outcome::OtherKey),
            Kind::OffCurve => (3, Outcome::Refused),
        };
        // All are made for each sample, and put in one place: else how they are made is what is measured.
        let variants = variants(kem, sent, &fixed);
        let ciphertext = &mut place[..kem.ciphertext_size()];
        ciphertext.copy_from_slice(&black_box(&variants)[variant]);
        let steps = if let Kind::Honest(steps) = kind { steps } else { 0 };
        // A key that was used a moment ago is found at once, whichever class it is of.
        if keys.pairs.len() > 1 {
            black_box(private.decapsulate(&fixed));
        }
        let start = thread_ns();
        let opened = private.decapsulate(black_box(ciphertext));
        delay(steps);
        times.push((thread_ns() - start, index));
        let outcome = match opened {
            None => Outcome::Refused,
            Some(key) if *key.expose() == honest => Outcome::Honest,
            Some(_) => Outcome::OtherKey,
        };
        assert_eq!(outcome, wanted, "{kem}, {}", classes[index].name);
    }
    (1..classes.len())
        .map(|class| {
            let is_of_pair = |time: &&(f64, usize)| time.1 == 0 || time.1 == class;
            let mut samples: Vec<Sample> =
                times.iter().filter(is_of_pair).map(|(ns, index)| (*ns, *index == class)).collect();
            Difference::of(&mut samples)
        })
        .collect()
}
