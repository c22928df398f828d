//! AES-SIV-CMAC-256 (RFC 5297) and its CMAC (RFC 4493), `N` packets in step.

use std::arch::x86_64::{__m128i, _mm_setzero_si128, _mm_xor_si128};
use std::array;

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::aesni::{BLOCK_SIZE, Schedule, encrypt, load, store};
use super::{LANE_COUNT, LaneKey, available};
use crate::aead::{Open, Seal};

/// Both expanded halves of a key, and what every S2V under it starts with.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct SivKey {
    mac: Schedule,
    ctr: Schedule,
    /// K1 and K2 of CMAC. RFC 4493 section 2.3.
    subkeys: [u128; 2],
    /// The CMAC of a zero block, from which S2V starts. RFC 5297 section 2.4.
    start: u128,
}

impl SivKey {
    /// Expands a key; `None` where the processor lacks the instructions.
    pub(crate) fn new(octets: &[u8; 32]) -> Option<Self> {
        if !available() {
            return None;
        }
        // SAFETY: `available` has just found the features that `expand` enables.
        let [key] = unsafe { expand([octets]) };
        Some(key)
    }
}

/// A message as CMAC sees it: whole blocks, then one or two blocks that were made for the end.
struct Message<'a> {
    blocks: &'a [[u8; BLOCK_SIZE]],
    end: [u128; 2],
    end_count: usize,
}

impl<'a> Message<'a> {
    /// The octets themselves. RFC 4493 section 2.4.
    fn new(octets: &'a [u8], subkeys: &[u128; 2]) -> Self {
        let whole = octets.len().saturating_sub(1) / BLOCK_SIZE;
        let (blocks, rest) = octets.split_at(whole * BLOCK_SIZE);
        Message { blocks: blocks.as_chunks().0, end: [last_block(rest, subkeys), 0], end_count: 1 }
    }

    /// The octets with `mask` over the last 16 of them. RFC 5297 section 2.1 (xorend); needs 16 octets.
    fn xor_end(octets: &'a [u8], mask: u128, subkeys: &[u128; 2]) -> Self {
        let (whole, rest) = octets.as_chunks::<BLOCK_SIZE>();
        let (last, blocks) = whole.split_last().expect("the caller checked for 16 octets");
        let last = u128::from_be_bytes(*last);
        if rest.is_empty() {
            return Message { blocks, end: [last ^ mask ^ subkeys[0], 0], end_count: 1 };
        }
        // The mask covers the end of the last whole block and all of the rest.
        let rest_bits = rest.len() * 8;
        let mut octets = [0; BLOCK_SIZE];
        octets[..rest.len()].copy_from_slice(rest);
        octets[rest.len()] = 0x80;
        let rest = u128::from_be_bytes(octets) ^ (mask << (128 - rest_bits)) ^ subkeys[1];
        Message { blocks, end: [last ^ (mask >> rest_bits), rest], end_count: 2 }
    }

    fn block_count(&self) -> usize {
        self.blocks.len() + self.end_count
    }

    #[inline]
    fn block(&self, index: usize) -> [u8; BLOCK_SIZE] {
        match self.blocks.get(index) {
            Some(block) => *block,
            None => self.end[(index - self.blocks.len()).min(1)].to_be_bytes(),
        }
    }
}

/// The final block of a CMAC: padded if it is short, and masked with a subkey.
fn last_block(rest: &[u8], subkeys: &[u128; 2]) -> u128 {
    let mut octets = [0; BLOCK_SIZE];
    octets[..rest.len()].copy_from_slice(rest);
    if rest.len() == BLOCK_SIZE {
        return u128::from_be_bytes(octets) ^ subkeys[0];
    }
    octets[rest.len()] = 0x80;
    u128::from_be_bytes(octets) ^ subkeys[1]
}

/// Multiplication by x in GF(2^128), without a branch on the secret bit. RFC 5297 section 2.3.
const fn double(value: u128) -> u128 {
    (value << 1) ^ (0x87 & (value >> 127).wrapping_neg())
}

#[target_feature(enable = "aes,sse4.1")]
fn expand<const N: usize>(keys: [&[u8; 32]; N]) -> [SivKey; N] {
    let half = |octets: &[u8; 32], start: usize| -> [u8; 16] {
        octets[start..start + 16].try_into().expect("16 octets are 16 octets")
    };
    let mut expanded = keys.map(|octets| SivKey {
        // RFC 5297 section 2.6: the first half authenticates, the second encrypts.
        mac: Schedule::expand(&half(octets, 0)),
        ctr: Schedule::expand(&half(octets, 16)),
        subkeys: [0; 2],
        start: 0,
    });
    let mut zeros = [_mm_setzero_si128(); N];
    encrypt(&expanded.each_ref().map(|key| &key.mac), &mut zeros);
    let mut starts = zeros;
    for (lane, key) in expanded.iter_mut().enumerate() {
        let first = double(u128::from_be_bytes(store(zeros[lane])));
        key.subkeys = [first, double(first)];
        starts[lane] = load(&first.to_be_bytes());
    }
    // A zero block is a whole block: it is masked with K1 alone.
    encrypt(&expanded.each_ref().map(|key| &key.mac), &mut starts);
    for (lane, key) in expanded.iter_mut().enumerate() {
        key.start = u128::from_be_bytes(store(starts[lane]));
    }
    expanded
}

/// The CMAC of each lane's message.
#[target_feature(enable = "aes,sse4.1")]
fn cmac<const N: usize>(keys: &[&Schedule; N], messages: &[Message<'_>; N]) -> [u128; N] {
    let counts = messages.each_ref().map(Message::block_count);
    let count_max = counts.iter().copied().max().unwrap_or(0);
    let mut state = [_mm_setzero_si128(); N];
    let mut codes = [0; N];
    for index in 0..count_max {
        for lane in 0..N {
            state[lane] = _mm_xor_si128(state[lane], load(&messages[lane].block(index)));
        }
        encrypt(keys, &mut state);
        for lane in 0..N {
            if index + 1 == counts[lane] {
                codes[lane] = u128::from_be_bytes(store(state[lane]));
            }
        }
    }
    codes
}

/// S2V over associated data (where there is any), nonce and plaintext. RFC 5297 section 2.4.
#[target_feature(enable = "aes,sse4.1")]
fn s2v<const N: usize>(
    keys: &[&SivKey; N],
    associated: &[Option<&[u8]>; N],
    nonces: &[&[u8]; N],
    texts: &[&[u8]; N],
) -> [u128; N] {
    let macs = keys.map(|key| &key.mac);
    let mut sums = keys.map(|key| key.start);
    if associated.iter().any(Option::is_some) {
        let messages =
            array::from_fn(|lane| Message::new(associated[lane].unwrap_or_default(), &keys[lane].subkeys));
        let codes = cmac(&macs, &messages);
        for lane in 0..N {
            if associated[lane].is_some() {
                sums[lane] = double(sums[lane]) ^ codes[lane];
            }
        }
    }
    let codes = cmac(&macs, &array::from_fn(|lane| Message::new(nonces[lane], &keys[lane].subkeys)));
    for lane in 0..N {
        sums[lane] = double(sums[lane]) ^ codes[lane];
    }
    let mut padded = [[0; BLOCK_SIZE]; N];
    for lane in 0..N {
        if texts[lane].len() < BLOCK_SIZE {
            padded[lane][..texts[lane].len()].copy_from_slice(texts[lane]);
            padded[lane][texts[lane].len()] = 0x80;
            padded[lane] = (double(sums[lane]) ^ u128::from_be_bytes(padded[lane])).to_be_bytes();
        }
    }
    let messages = array::from_fn(|lane| {
        if texts[lane].len() < BLOCK_SIZE {
            Message::new(&padded[lane], &keys[lane].subkeys)
        } else {
            Message::xor_end(texts[lane], sums[lane], &keys[lane].subkeys)
        }
    });
    cmac(&macs, &messages)
}

/// Encrypts or decrypts each lane's text in place under the synthetic IV. RFC 5297 section 2.5.
#[target_feature(enable = "aes,sse4.1")]
fn counter_mode<const N: usize>(keys: &[&SivKey; N], tags: &[u128; N], texts: &mut [&mut [u8]; N]) {
    // RFC 5297 section 2.5: bits 31 and 63 (from the right) are zeroed.
    const MASK: u128 = !(1 << 63 | 1 << 31);
    let keys = keys.map(|key| &key.ctr);
    let count_max = texts.iter().map(|text| text.len().div_ceil(BLOCK_SIZE)).max().unwrap_or(0);
    for index in 0..count_max {
        let mut stream: [__m128i; N] =
            array::from_fn(|lane| load(&((tags[lane] & MASK) + index as u128).to_be_bytes()));
        encrypt(&keys, &mut stream);
        for lane in 0..N {
            let stream = store(stream[lane]);
            let Some(rest) = texts[lane].get_mut(index * BLOCK_SIZE..) else { continue };
            if let Some(block) = rest.first_chunk_mut::<BLOCK_SIZE>() {
                *block = (u128::from_ne_bytes(*block) ^ u128::from_ne_bytes(stream)).to_ne_bytes();
            } else {
                rest.iter_mut().zip(stream).for_each(|(octet, mask)| *octet ^= mask);
            }
        }
    }
}

/// The keys of `N` lanes, expanded where they were not; those are wiped at the end of the batch.
#[target_feature(enable = "aes,sse4.1")]
fn with_keys<'k, const N: usize, R>(keys: [LaneKey<'k>; N], run: impl FnOnce(&[&SivKey; N]) -> R) -> R {
    const UNUSED: &[u8; 32] = &[0; 32];
    if let Some(expanded) = all_expanded(&keys) {
        return run(&expanded);
    }
    let fresh = expand(keys.map(|key| match key {
        LaneKey::Raw(octets) => octets,
        LaneKey::Expanded(_) => UNUSED,
    }));
    run(&array::from_fn(|lane| match keys[lane] {
        LaneKey::Raw(_) => &fresh[lane],
        LaneKey::Expanded(key) => key,
    }))
}

fn all_expanded<'k, const N: usize>(keys: &[LaneKey<'k>; N]) -> Option<[&'k SivKey; N]> {
    let LaneKey::Expanded(first) = keys.first()? else { return None };
    let mut expanded = [*first; N];
    for (slot, key) in expanded.iter_mut().zip(keys) {
        let LaneKey::Expanded(key) = key else { return None };
        *slot = key;
    }
    Some(expanded)
}

#[target_feature(enable = "aes,sse4.1")]
fn seal<const N: usize>(keys: [LaneKey<'_>; N], jobs: &mut [Seal<'_>; N]) {
    with_keys(keys, |keys| seal_under(keys, jobs));
}

#[target_feature(enable = "aes,sse4.1")]
fn seal_under<const N: usize>(keys: &[&SivKey; N], jobs: &mut [Seal<'_>; N]) {
    let tags = s2v(
        keys,
        &jobs.each_ref().map(|job| job.associated),
        &jobs.each_ref().map(|job| job.nonce),
        &jobs.each_ref().map(|job| &*job.text),
    );
    for (job, tag) in jobs.iter_mut().zip(tags) {
        *job.tag = tag.to_be_bytes();
    }
    counter_mode(keys, &tags, &mut jobs.each_mut().map(|job| &mut *job.text));
}

#[target_feature(enable = "aes,sse4.1")]
fn open<const N: usize>(keys: [LaneKey<'_>; N], jobs: &mut [Open<'_>; N]) {
    with_keys(keys, |keys| open_under(keys, jobs));
}

#[target_feature(enable = "aes,sse4.1")]
fn open_under<const N: usize>(keys: &[&SivKey; N], jobs: &mut [Open<'_>; N]) {
    let claimed = jobs.each_ref().map(|job| u128::from_be_bytes(*job.tag));
    counter_mode(keys, &claimed, &mut jobs.each_mut().map(|job| &mut *job.text));
    let tags = s2v(
        keys,
        &jobs.each_ref().map(|job| job.associated),
        &jobs.each_ref().map(|job| job.nonce),
        &jobs.each_ref().map(|job| &*job.text),
    );
    for (job, tag) in jobs.iter_mut().zip(tags) {
        *job.genuine = tag.to_be_bytes().ct_eq(job.tag).into();
        if !*job.genuine {
            job.text.fill(0);
        }
    }
}

/// Collects jobs and runs them when all lanes are taken.
macro_rules! lanes {
    ($name:ident, $job:ident, $run:ident) => {
        pub(crate) struct $name<'a> {
            waiting: [Option<(LaneKey<'a>, $job<'a>)>; LANE_COUNT],
            count: usize,
        }

        impl<'a> $name<'a> {
            pub(crate) fn new() -> Self {
                $name { waiting: [const { None }; LANE_COUNT], count: 0 }
            }

            /// Adds a job whose key is a lane key: there is none unless `available`.
            pub(crate) fn push(&mut self, key: LaneKey<'a>, job: $job<'a>) {
                self.waiting[self.count] = Some((key, job));
                self.count += 1;
                if self.count == LANE_COUNT {
                    self.run::<LANE_COUNT>(0);
                    self.count = 0;
                }
            }

            /// Runs what is waiting: four side by side if there are that many, then one by one.
            pub(crate) fn flush(&mut self) {
                let mut at = 0;
                while self.count - at >= 4 {
                    self.run::<4>(at);
                    at += 4;
                }
                while self.count - at >= 2 {
                    self.run::<2>(at);
                    at += 2;
                }
                if self.count > at {
                    self.run::<1>(at);
                }
                self.count = 0;
            }

            fn run<const N: usize>(&mut self, start: usize) {
                let taken: [_; N] = array::from_fn(|lane| {
                    self.waiting[start + lane].take().expect("`count` jobs are waiting")
                });
                let keys = taken.each_ref().map(|(key, _)| *key);
                let mut jobs = taken.map(|(_, job)| job);
                // SAFETY: a lane key was made, so `available` has found the features that this enables.
                unsafe { $run::<N>(keys, &mut jobs) };
            }
        }
    };
}

lanes!(SealLanes, Seal, seal);
lanes!(OpenLanes, Open, open);
