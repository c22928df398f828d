//! Batches of sixteen jobs on one path, and their times in two classes that differ in one secret, or in a delay that is
//! planted.

use std::fmt;
use std::hint::black_box;
use std::time::Instant;

use authentick_crypto::gcm::{GcmKey, GcmOpen, GcmSeal, gcm_seal_on};
use authentick_crypto::kdf::{HmacTag, HmacTagBatch, HmacVerify, HmacVerifyBatch};
use authentick_crypto::mac::{MAC_TAG_SIZE_MAX, MacAlgorithm, MacKey, Tag, Verify};
use authentick_crypto::{
    Algorithm, CachedKey, Entropy, HashPath, Key, KeyRef, Open, Path, Seal, run_batch_on,
};

use crate::delay::delay;
use crate::judge::Sample;

const BATCH: usize = 16;
/// Octets of the longest key and of the longest text.
const KEY_SIZE_MAX: usize = 64;
const TEXT_SIZE_MAX: usize = 225;

/// What is timed.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    /// An AEAD of NTS, each job under a key of its own.
    Session(Algorithm, Path),
    /// Cookies, under one key that is kept.
    Cookie(Path),
    /// C2 of ANTP, under one key that is kept. C1 differs in its size alone.
    State(Path),
    /// A MAC, each job under a key of its own.
    Mac(MacAlgorithm, Path),
    /// HMAC-SHA256 of an ANTP request and its response.
    Hmac(HashPath),
}

/// Whether the lanes compute a MAC; else it is the same on each path.
fn has_lanes(algorithm: MacAlgorithm) -> bool {
    match algorithm {
        MacAlgorithm::Cmac128
        | MacAlgorithm::Cmac256
        | MacAlgorithm::Gmac128
        | MacAlgorithm::GmacSiv128
        | MacAlgorithm::HmacSha224 => true,
        MacAlgorithm::Md5
        | MacAlgorithm::Sha1
        | MacAlgorithm::Sha256
        | MacAlgorithm::Sha384
        | MacAlgorithm::Sha512
        | MacAlgorithm::HmacMd5
        | MacAlgorithm::Poly1305 => false,
    }
}

impl Subject {
    /// Everything, on every path that this processor has.
    pub(crate) fn all() -> Vec<Subject> {
        let of_path = |path: Path| {
            let macs =
                MacAlgorithm::ALL.into_iter().filter(move |mac| path == Path::Portable || has_lanes(*mac));
            (Algorithm::ALL.into_iter().map(move |algorithm| Subject::Session(algorithm, path)))
                .chain([Subject::Cookie(path), Subject::State(path)])
                .chain(macs.map(move |mac| Subject::Mac(mac, path)))
        };
        let paths = Path::ALL.into_iter().filter(|path| path.is_available());
        let hashes = HashPath::ALL.into_iter().filter(|path| path.is_available());
        paths.flat_map(of_path).chain(hashes.map(Subject::Hmac)).collect()
    }

    /// The name of the path.
    pub(crate) fn path(self) -> String {
        match self {
            Subject::Session(_, path)
            | Subject::Cookie(path)
            | Subject::State(path)
            | Subject::Mac(_, path) => path.to_string(),
            Subject::Hmac(path) => path.to_string(),
        }
    }

    const fn text_size(self) -> usize {
        match self {
            Subject::Session(..) => 104,
            Subject::Cookie(_) => 64,
            Subject::State(_) => 28,
            Subject::Mac(..) => 48,
            Subject::Hmac(_) => TEXT_SIZE_MAX,
        }
    }

    const fn tag_size(self) -> usize {
        match self {
            Subject::Session(..) | Subject::Cookie(_) | Subject::State(_) => 16,
            Subject::Mac(algorithm, _) => algorithm.tag_size(),
            Subject::Hmac(_) => 32,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Session(algorithm, _) => f.pad(&format!("{algorithm:?}")),
            Subject::Cookie(_) => f.pad("cookie"),
            Subject::State(_) => f.pad("C2"),
            Subject::Mac(algorithm, _) => f.pad(algorithm.name()),
            Subject::Hmac(_) => f.pad("HMAC-SHA256"),
        }
    }
}

/// What is done with each text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// It is sealed, or its tag computed.
    Make,
    /// It is opened, or its tag verified.
    Check,
}

/// What differs between the two classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contrast {
    /// A fixed key, random keys.
    Key,
    /// Keys in which one bit of each octet is set, keys in which all others are.
    Weight,
    /// A fixed text, random texts.
    Text,
    /// Tags that are wrong in their first octet, tags that are wrong in their last. Where there is something to check.
    WrongOctet,
    /// So many steps of a delay in the second class: the control.
    Planted(u32),
}

impl Contrast {
    /// The contrasts of secrets.
    pub(crate) const SECRETS: [Contrast; 4] =
        [Contrast::Key, Contrast::Weight, Contrast::Text, Contrast::WrongOctet];

    /// Whether an operation can differ in this.
    pub(crate) fn is_of(self, operation: Operation) -> bool {
        self != Contrast::WrongOctet || operation == Operation::Check
    }
}

/// One array for each class.
type Sources<const N: usize> = [[u8; N]; 2];

/// Octets of which each has one bit set, and such of which each has all others set.
fn weights(entropy: &mut Entropy) -> Sources<KEY_SIZE_MAX> {
    let low = entropy.array::<KEY_SIZE_MAX>().map(|octet| 1 << (octet % 8));
    let high = entropy.array::<KEY_SIZE_MAX>().map(|octet| !(1 << (octet % 8)));
    [low, high]
}

/// Times of `count` batches, each of a class that is drawn. All that a batch works on is written anew for each.
pub(crate) fn samples(
    subject: Subject,
    operation: Operation,
    contrast: Contrast,
    count: usize,
    seed: u64,
) -> Vec<Sample> {
    let mut entropy = Entropy::from_seed(seed);
    let (fixed_key, fixed_text): ([u8; KEY_SIZE_MAX], [u8; TEXT_SIZE_MAX]) =
        (entropy.array(), entropy.array());
    let mut key_sources = [[fixed_key; 2]; BATCH];
    let mut text_sources = [[fixed_text; 2]; BATCH];
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        let is_second = entropy.u64() & 1 == 1;
        let class = usize::from(is_second);
        for (key, text) in key_sources.iter_mut().zip(&mut text_sources) {
            *key = if contrast == Contrast::Weight {
                weights(&mut entropy)
            } else {
                [fixed_key, entropy.array()]
            };
            *text = [fixed_text, entropy.array()];
        }
        // Both classes are read from a place of one kind, by one piece of code: else that is what is measured.
        let is_of_key = matches!(contrast, Contrast::Key | Contrast::Weight);
        let keys = key_sources.map(|source| black_box(&source)[if is_of_key { class } else { 0 }]);
        let is_of_text = contrast == Contrast::Text;
        let texts = text_sources.map(|source| black_box(&source)[if is_of_text { class } else { 0 }]);
        let mut batch = Batch::new(subject, &keys, texts);
        if operation == Operation::Check {
            batch.make();
        }
        if contrast == Contrast::WrongOctet {
            let at = if is_second { subject.tag_size() - 1 } else { 0 };
            batch.tags.iter_mut().for_each(|tag| tag[at] ^= 0x10);
        }
        let steps = match contrast {
            Contrast::Planted(steps) if is_second => steps,
            Contrast::Key
            | Contrast::Weight
            | Contrast::Text
            | Contrast::WrongOctet
            | Contrast::Planted(_) => 0,
        };
        let start = Instant::now();
        match operation {
            Operation::Make => batch.make(),
            Operation::Check => batch.check(),
        }
        delay(steps);
        out.push((start.elapsed().as_nanos() as f64, is_second));
        if operation == Operation::Check {
            let is_genuine = contrast != Contrast::WrongOctet;
            assert_eq!(batch.genuine, [is_genuine; BATCH], "{subject}, {contrast:?}");
        }
    }
    out
}

/// The keys of a subject, and what else it says.
enum Keys {
    Session(Algorithm, Path, Vec<Key>),
    Cookie(Path, CachedKey),
    State(Path, GcmKey),
    Mac(MacAlgorithm, Path, Vec<MacKey>),
    Hmac(HashPath, [[u8; 16]; BATCH]),
}

/// The first octets of a key.
fn first<const N: usize>(octets: &[u8; KEY_SIZE_MAX]) -> &[u8; N] {
    octets.first_chunk().expect("no key is longer")
}

struct Batch {
    text_size: usize,
    keys: Keys,
    texts: [[u8; TEXT_SIZE_MAX]; BATCH],
    tags: [[u8; MAC_TAG_SIZE_MAX]; BATCH],
    genuine: [bool; BATCH],
}

impl Batch {
    fn new(
        subject: Subject,
        keys: &[[u8; KEY_SIZE_MAX]; BATCH],
        texts: [[u8; TEXT_SIZE_MAX]; BATCH],
    ) -> Self {
        let session = |algorithm: Algorithm| {
            let key = |octets: &[u8; KEY_SIZE_MAX]| Key::new(algorithm, &octets[..algorithm.key_size()]);
            keys.iter().map(|octets| key(octets).expect("the size is right")).collect()
        };
        let mac = |algorithm: MacAlgorithm| {
            let size = (*algorithm.key_sizes().end()).min(32);
            keys.iter()
                .map(|octets| MacKey::new(algorithm, &octets[..size]).expect("the size is right"))
                .collect()
        };
        let keys = match subject {
            Subject::Session(algorithm, path) => Keys::Session(algorithm, path, session(algorithm)),
            Subject::Cookie(path) => Keys::Cookie(path, CachedKey::new(first(&keys[0]))),
            Subject::State(path) => Keys::State(path, GcmKey::new(first(&keys[0]))),
            Subject::Mac(algorithm, path) => Keys::Mac(algorithm, path, mac(algorithm)),
            Subject::Hmac(path) => Keys::Hmac(path, keys.map(|octets| *first(&octets))),
        };
        let text_size = subject.text_size();
        Batch { text_size, keys, texts, tags: [[0; MAC_TAG_SIZE_MAX]; BATCH], genuine: [false; BATCH] }
    }

    /// Seals the texts, or computes their tags.
    #[inline(never)]
    fn make(&mut self) {
        let size = self.text_size;
        let jobs = self.texts.iter_mut().map(|text| &mut text[..size]).zip(&mut self.tags);
        match &self.keys {
            Keys::Session(algorithm, path, keys) => {
                let nonce = &[3; 16][..algorithm.nonce_size()];
                run_batch_on(
                    *path,
                    keys.iter().zip(jobs).map(|(key, (text, tag))| {
                        let (text, tag) = (text.into(), first_mut(tag));
                        Seal { key: key.into(), nonce, associated: Some(&[4; 84]), text, tag }
                    }),
                );
            }
            Keys::Cookie(path, key) => run_batch_on(
                *path,
                jobs.map(|(text, tag)| {
                    let (text, tag) = (text.into(), first_mut(tag));
                    Seal { key: KeyRef::from(key), nonce: &[3; 16], associated: None, text, tag }
                }),
            ),
            Keys::State(path, key) => jobs.for_each(|(text, tag)| {
                let (nonce, associated, tag) = (&[3; 12], &[4; 13], first_mut(tag));
                gcm_seal_on(*path, GcmSeal { key, nonce, associated, text, tag });
            }),
            Keys::Mac(algorithm, path, keys) => {
                let nonce = algorithm.nonce_size().map(|size| &[3; 12][..size]);
                run_batch_on(
                    *path,
                    keys.iter().zip(jobs).map(|(key, (message, tag))| {
                        let tag = &mut tag[..algorithm.tag_size()];
                        Tag { key, nonce, message, tag }
                    }),
                );
            }
            Keys::Hmac(path, keys) => {
                let (texts, tags): (Vec<[&[u8]; 1]>, Vec<_>) =
                    jobs.map(|(text, tag)| ([&*text], tag)).unzip();
                let mut batch = HmacTagBatch::on(*path);
                for ((key, parts), tag) in keys.iter().zip(&texts).zip(tags) {
                    batch.push(HmacTag { key, parts, tag: first_mut(tag) });
                }
                batch.run();
            }
        }
    }

    /// Opens the texts, or verifies their tags.
    #[inline(never)]
    fn check(&mut self) {
        let size = self.text_size;
        let jobs = self.texts.iter_mut().map(|text| &mut text[..size]).zip(&self.tags).zip(&mut self.genuine);
        match &self.keys {
            Keys::Session(algorithm, path, keys) => {
                let nonce = &[3; 16][..algorithm.nonce_size()];
                run_batch_on(
                    *path,
                    keys.iter().zip(jobs).map(|(key, ((text, tag), genuine))| {
                        let (text, tag) = (text.into(), first(tag));
                        Open { key: key.into(), nonce, associated: Some(&[4; 84]), text, tag, genuine }
                    }),
                );
            }
            Keys::Cookie(path, key) => run_batch_on(
                *path,
                jobs.map(|((text, tag), genuine)| {
                    let (text, tag) = (text.into(), first(tag));
                    Open { key: KeyRef::from(key), nonce: &[3; 16], associated: None, text, tag, genuine }
                }),
            ),
            Keys::State(path, key) => run_batch_on(
                *path,
                jobs.map(|((text, tag), genuine)| {
                    let (text, tag) = (text.into(), first(tag));
                    GcmOpen { key, nonce: &[3; 12], associated: &[4; 13], text, tag, genuine }
                }),
            ),
            Keys::Mac(algorithm, path, keys) => {
                let nonce = algorithm.nonce_size().map(|size| &[3; 12][..size]);
                run_batch_on(
                    *path,
                    keys.iter().zip(jobs).map(|(key, ((message, tag), genuine))| {
                        let tag = &tag[..algorithm.tag_size()];
                        Verify { key, nonce, message, tag, genuine }
                    }),
                );
            }
            Keys::Hmac(path, keys) => {
                let (texts, rest): (Vec<[&[u8]; 1]>, Vec<_>) =
                    jobs.map(|((text, tag), genuine)| ([&*text], (tag, genuine))).unzip();
                let mut batch = HmacVerifyBatch::on(*path);
                for ((key, parts), (tag, genuine)) in keys.iter().zip(&texts).zip(rest) {
                    batch.push(HmacVerify { key, parts, tag: first(tag), genuine });
                }
                batch.run();
            }
        }
    }
}

/// The place of a tag.
fn first_mut<const N: usize>(tag: &mut [u8; MAC_TAG_SIZE_MAX]) -> &mut [u8; N] {
    tag.first_chunk_mut().expect("no tag is longer")
}
