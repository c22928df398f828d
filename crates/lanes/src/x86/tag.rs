//! CMAC, GMAC and GMAC-SIV of one packet per lane, under keys that are kept.

use std::ptr;

use super::block::{BLOCK_SIZE, Block, Blocks};
use super::cmac::{add, chain};
use super::entry::Kernel;
use super::kept::{Kept, KeptKey, Own};
use super::mac::{MacJob, MacShape, MacVerb, Macs};
use super::message::{Messages, Padding, PerLane};
use super::{gcm, gcm_siv, is_none, polyval};
use crate::MAC_NONCE_SIZE;

/// Whether all jobs have one key, which is then read once for all.
#[inline(always)]
pub(super) fn have_one_key<const L: usize>(jobs: &[MacJob; L]) -> bool {
    // Without a branch per lane.
    jobs.iter().fold(true, |is_one, job| is_one & ptr::eq(job.key, jobs[0].key))
}

/// CMAC (RFC 4493) under keys of `WORDS` words.
pub(super) enum Cmac<const WORDS: usize> {}

impl<const WORDS: usize> Kernel for Cmac<WORDS> {
    type Work = Macs;

    #[inline(always)]
    unsafe fn run<V: Blocks, const N: usize, const L: usize>(
        verb: MacVerb,
        shape: &MacShape,
        jobs: &[MacJob; L],
        used: usize,
    ) {
        // SAFETY: the caller says so.
        let messages = unsafe { Messages::new(shape.size, |lane| jobs[lane].message) };
        // Section 2.4: a whole last block is masked with K1, another with K2.
        let which = usize::from(messages.last_size() != BLOCK_SIZE);
        let last = messages.last::<V, N, L>(Padding::OneBit);
        let tags = if have_one_key(jobs) {
            // SAFETY: the key is the caller's.
            let key = unsafe { &*jobs[0].key };
            chain::<V, N, WORDS>(&key, &messages, None, &add(last, &Kept::<V, N>::masks(&key, which)))
        } else {
            // SAFETY: the keys are the caller's, and have so many words.
            let own = unsafe { Own::new(jobs) };
            chain::<V, N, WORDS>(&own, &messages, None, &add(last, &Kept::<V, N>::masks(&own, which)))
        };
        // SAFETY: the caller says so.
        unsafe { settle(verb, tags, jobs, used) };
    }
}

/// GMAC: AES-128-GCM (NIST SP 800-38D section 7.1) of an empty text.
pub(super) enum Gmac {}

impl Kernel for Gmac {
    type Work = Macs;

    #[inline(always)]
    unsafe fn run<V: Blocks, const N: usize, const L: usize>(
        verb: MacVerb,
        shape: &MacShape,
        jobs: &[MacJob; L],
        used: usize,
    ) {
        let tags = if have_one_key(jobs) {
            // SAFETY: the key is the caller's.
            let key: &KeptKey = unsafe { &*jobs[0].key };
            // SAFETY: the caller says so.
            unsafe { gmac_under::<V, N, L>(&key, shape, jobs) }
        } else {
            // SAFETY: the keys are the caller's.
            let own = unsafe { Own::new(jobs) };
            // SAFETY: the caller says so.
            unsafe { gmac_under::<V, N, L>(&own, shape, jobs) }
        };
        // SAFETY: the caller says so.
        unsafe { settle(verb, tags, jobs, used) };
    }
}

/// # Safety
/// As [`Kernel::run`].
#[inline(always)]
unsafe fn gmac_under<V: Blocks, const N: usize, const L: usize>(
    keys: &impl Kept<V, N>,
    shape: &MacShape,
    jobs: &[MacJob; L],
) -> [V; N] {
    /// The counter behind the nonce.
    const ONE: Block = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    // SAFETY: the caller says so.
    let mut tags: [V; N] = unsafe { nonces(jobs) };
    tags.iter_mut().for_each(|nonce| *nonce = nonce.xor(V::broadcast(ONE)));
    keys.encrypt::<4>(0, &mut tags);
    let polyval = polyval::Keys::from_parts([keys.masks(0), keys.masks(1)]);
    // SAFETY: the caller says so.
    let messages = unsafe { Messages::new(shape.size, |lane| jobs[lane].message) };
    let mut sums = [V::zero(); N];
    gcm::absorb::<V, N, L>(&polyval, &mut sums, &messages);
    add(gcm::ghash(&polyval, &sums, [shape.size, 0]), &tags)
}

/// GMAC-SIV: AES-128-GCM-SIV (RFC 8452 section 4) of an empty text.
pub(super) enum GmacSiv {}

impl Kernel for GmacSiv {
    type Work = Macs;

    #[inline(always)]
    unsafe fn run<V: Blocks, const N: usize, const L: usize>(
        verb: MacVerb,
        shape: &MacShape,
        jobs: &[MacJob; L],
        used: usize,
    ) {
        // SAFETY: the caller says so.
        let nonces: [V; N] = unsafe { nonces(jobs) };
        // SAFETY: they are derived next.
        let mut keys = unsafe { gcm_siv::Keys::new() };
        if have_one_key(jobs) {
            // SAFETY: the key is the caller's.
            let key: &KeptKey = unsafe { &*jobs[0].key };
            keys.derive_under(&key, nonces);
        } else {
            // SAFETY: the keys are the caller's.
            let own = unsafe { Own::new(jobs) };
            let mut generating = own.gather::<V, N, 4>();
            keys.derive_under(&generating, nonces);
            generating.wipe::<4>(1);
        }
        // SAFETY: the caller says so; nothing is read of the empty text.
        let tags = unsafe { keys.tags::<L, _>([(shape.size, ()), (0, ())], |lane, ()| jobs[lane].message) };
        keys.wipe();
        // SAFETY: the caller says so.
        unsafe { settle(verb, tags, jobs, used) };
    }
}

/// The nonces, and zeros behind them.
///
/// # Safety
/// Each job has a nonce of 12 octets.
#[inline(always)]
unsafe fn nonces<V: Blocks, const N: usize, const L: usize>(jobs: &[MacJob; L]) -> [V; N] {
    // SAFETY: the caller says so.
    let nonces = unsafe { Messages::new(MAC_NONCE_SIZE, |lane| jobs[lane].nonce) };
    nonces.last::<V, N, L>(Padding::Zeros)
}

/// Writes the tags, or tells which of the first `used` are those that were claimed.
///
/// # Safety
/// The jobs want this.
#[inline(always)]
unsafe fn settle<V: Blocks, const N: usize, const L: usize>(
    verb: MacVerb,
    mut tags: [V; N],
    jobs: &[MacJob; L],
    used: usize,
) {
    match verb {
        MacVerb::Tag => {
            for (index, tag) in tags.into_iter().enumerate() {
                // SAFETY: a tag has sixteen octets, and the job borrows it alone.
                unsafe { tag.scatter(|lane| jobs[lane].tag.cast(), index) };
            }
        }
        MacVerb::Verify => {
            for (index, tag) in tags.iter_mut().enumerate() {
                // SAFETY: a tag has sixteen octets.
                *tag = tag.xor(unsafe { V::gather(|lane| jobs[lane].tag.cast_const().cast(), index) });
            }
            let differences = PerLane::<L>::of(&tags).0;
            for (job, difference) in jobs[..used.min(L)].iter().zip(differences) {
                // SAFETY: the job borrows this place alone.
                unsafe { *job.genuine = is_none(difference) };
            }
        }
    }
}
