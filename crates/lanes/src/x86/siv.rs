//! AES-SIV-CMAC (RFC 5297) over one job per lane.
//!
//! Sealing and opening, and jobs with and without a text, run through the same code: there is a kernel for each path,
//! width and size of key, and compilers take long for each.

use std::hint::black_box;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::aead::{Aead, AeadJob, AeadShape, AeadVerb, Part};
use super::block::{BLOCK_SIZE, Block, Blocks};
use super::cmac::{add, chain, cmac, double, subkeys};
use super::counter::{Position, counter_mode};
use super::entry::Kernel;
use super::message::{Messages, Padding, PerLane, slide};
use super::schedule::{RoundKeys, Schedules, wipe};
use super::{claimed_tags, entry, finish};
use crate::Key;

/// Which of a lane's two keys does what. RFC 5297 section 2.6: the first half authenticates, the second encrypts.
const MAC: usize = 0;
const CTR: usize = 1;

const ROUND_KEYS: usize = 11;

/// An expanded key of AES-SIV-CMAC-256, and what every S2V under it starts with.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
#[repr(C)]
pub(crate) struct SivKey {
    rounds: [[Block; 2]; ROUND_KEYS],
    subkeys: [Block; 2],
    start: Block,
}

impl SivKey {
    /// Expands a key of AES-SIV-CMAC-256; `None` on a processor without lanes.
    pub(crate) fn expand(key: &Key) -> Option<Self> {
        entry::expand(key)
    }

    #[inline(always)]
    pub(super) fn new<V: Blocks>(key: &Key) -> Self {
        let zero = [V::zero(); 1];
        // SAFETY: `expand_into` puts the round keys in.
        let mut keys = Keys { schedules: unsafe { Schedules::new() }, subkeys: [zero; 2], start: zero };
        // SAFETY: the key is one of AES-SIV-CMAC-256, which has 32 octets.
        unsafe { expand_into::<V, 2, 1, 4>(&mut keys, |_| key.expose().as_ptr()) };
        let first = |register: V| PerLane::<1>::of(&[register]).0[0];
        let mut out = SivKey {
            rounds: [[[0; 16]; 2]; ROUND_KEYS],
            subkeys: [first(keys.subkeys[0][0]), first(keys.subkeys[1][0])],
            start: first(keys.start[0]),
        };
        for (round, out) in out.rounds.iter_mut().enumerate() {
            *out = [
                first(keys.schedules.round_key(MAC, round, 0)),
                first(keys.schedules.round_key(CTR, round, 0)),
            ];
        }
        keys.schedules.wipe::<4>(2);
        keys.wipe();
        out
    }
}

/// One key for all lanes.
impl<V: Blocks, const N: usize> RoundKeys<V, N> for &SivKey {
    #[inline(always)]
    fn round_key(&self, which: usize, round: usize, _: usize) -> V {
        V::broadcast(self.rounds[round][which])
    }
}

/// The expanded keys of each lane, and what follows from the first. The second is needed by jobs with a text.
struct Keys<V, const N: usize, K> {
    schedules: K,
    /// K1 and K2 of CMAC. RFC 4493 section 2.3.
    subkeys: [[V; N]; 2],
    /// The CMAC of a zero block, from which S2V starts. RFC 5297 section 2.4.
    start: [V; N],
}

/// Expands the first `S` keys of each lane, each of `WORDS` words.
///
/// # Safety
/// At the place of each lane all of its keys are readable.
#[inline(always)]
unsafe fn expand_into<V: Blocks, const S: usize, const N: usize, const WORDS: usize>(
    keys: &mut Keys<V, N, Schedules<V, 2, N>>,
    place: impl Fn(usize) -> *const u8,
) {
    let mut octets = [[[V::zero(); N]; S]; 2];
    for (part, octets) in octets.iter_mut().enumerate().take(WORDS.div_ceil(4)) {
        for (which, octets) in octets.iter_mut().enumerate() {
            let offset = 4 * WORDS * which + (4 * WORDS - BLOCK_SIZE) * part;
            for (index, octets) in octets.iter_mut().enumerate() {
                // SAFETY: the sixteen octets end where the key does, or begin where it does.
                *octets = unsafe { V::gather(|lane| place(lane).wrapping_add(offset), index) };
            }
        }
    }
    keys.schedules.expand::<WORDS, S>(&octets);
    octets.iter_mut().for_each(wipe);
    keys.subkeys = subkeys::<V, N, WORDS>(&keys.schedules, MAC);
    // A zero block is a whole block: it is masked with K1 alone.
    keys.start = keys.subkeys[0];
    keys.schedules.encrypt::<WORDS>(MAC, &mut keys.start);
}

impl<V: Blocks, const N: usize, K: RoundKeys<V, N>> Keys<V, N, K> {
    #[inline(always)]
    fn wipe(&mut self) {
        wipe(&mut self.subkeys);
        wipe(std::array::from_mut(&mut self.start));
    }

    /// S2V over associated data (where there is any), nonce and plaintext, which is the part `text`. RFC 5297
    /// section 2.4.
    ///
    /// # Safety
    /// The jobs have this shape.
    #[inline(always)]
    unsafe fn s2v<const L: usize, const WORDS: usize>(
        &self,
        shape: &AeadShape,
        jobs: &[AeadJob; L],
        text: Part,
    ) -> [V; N] {
        let mut sums = self.start;
        if let Some(size) = shape.associated {
            // SAFETY: the caller says so.
            let messages = unsafe { Messages::new(size, |lane| jobs[lane].part(Part::Associated)) };
            sums = add(double(sums), &cmac::<V, N, L, WORDS>(&self.schedules, &self.subkeys, &messages));
        }
        // SAFETY: the caller says so.
        let messages = unsafe { Messages::new(shape.nonce, |lane| jobs[lane].part(Part::Nonce)) };
        sums = add(double(sums), &cmac::<V, N, L, WORDS>(&self.schedules, &self.subkeys, &messages));
        // SAFETY: the caller says so.
        self.s2v_end::<L, WORDS>(sums, &unsafe { Messages::new(shape.text, |lane| jobs[lane].part(text)) })
    }

    /// The last component: its CMAC with the sum over its last 16 octets, or under its padding if it has fewer.
    #[inline(always)]
    fn s2v_end<const L: usize, const WORDS: usize>(
        &self,
        sums: [V; N],
        texts: &Messages<impl Fn(usize) -> *const u8>,
    ) -> [V; N] {
        let mut last: [V; N] = texts.last::<V, N, L>(Padding::OneBit);
        let [whole, padded] = &self.subkeys;
        let mut before_last = None;
        let covered = texts.last_size();
        if texts.size() < BLOCK_SIZE {
            // Padded before CMAC, which then sees a whole block.
            last = add(add(last, &double(sums)), whole);
        } else if covered == BLOCK_SIZE {
            last = add(add(last, &sums), whole);
        } else {
            // The sum covers so many octets of the last block, and the rest of it the end of the block before.
            let (down, up): (V, V) = (slide(2 * BLOCK_SIZE - covered), slide(BLOCK_SIZE - covered));
            let (mut end, mut before) = (sums, sums);
            end.iter_mut().for_each(|sum| *sum = sum.reorder(down));
            before.iter_mut().for_each(|sum| *sum = sum.reorder(up));
            last = add(add(last, &end), padded);
            before_last = Some(before);
        }
        chain::<V, N, WORDS>(&self.schedules, texts, before_last.as_ref(), &last)
    }

    /// Encrypts or decrypts each lane's text under the synthetic IV. RFC 5297 section 2.5.
    ///
    /// # Safety
    /// The jobs have texts of `size` octets.
    #[inline(always)]
    unsafe fn counter_mode<const L: usize, const WORDS: usize>(
        &self,
        tags: &[V; N],
        size: usize,
        jobs: &[AeadJob; L],
    ) {
        /// Zeroes bits 31 and 63, from the right.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, 0x7f, !0, !0, !0, 0x7f, !0, !0, !0];
        let mut start = *tags;
        for tag in &mut start {
            *tag = tag.and(V::broadcast(MASK));
        }
        // SAFETY: the caller says so.
        unsafe {
            counter_mode::<V, N, L, WORDS>(&self.schedules, CTR, &start, Position::End, size, jobs);
        }
    }

    /// # Safety
    /// The jobs are of this shape.
    #[inline(always)]
    unsafe fn run<const L: usize, const WORDS: usize>(
        &self,
        verb: AeadVerb,
        shape: &AeadShape,
        jobs: &[AeadJob; L],
        used: usize,
    ) {
        let (text, mut tags) = match verb {
            AeadVerb::Seal => (Part::Source, [V::zero(); N]),
            // SAFETY: a tag has sixteen octets.
            AeadVerb::Open => (Part::Text, unsafe { claimed_tags(jobs) }),
        };
        let claimed = tags;
        for step in 0..2 {
            // Opaque: else all that follows from sizes would be computed before the loop, for both steps, and be kept.
            let shape = black_box(shape);
            // The tag of a plaintext that is about to be encrypted comes first, that of one that was decrypted last.
            if (step == 0) == (verb == AeadVerb::Seal) {
                // SAFETY: the caller says so.
                tags = unsafe { self.s2v::<L, WORDS>(shape, jobs, text) };
            } else {
                // SAFETY: the caller says so. A text that is sealed has been read.
                unsafe { self.counter_mode::<L, WORDS>(&tags, shape.text, jobs) };
            }
        }
        // SAFETY: the caller says so.
        unsafe { finish(verb, shape.text, &tags, &claimed, jobs, used) };
    }
}

/// Jobs under keys of two times `WORDS` words, which are expanded for them.
pub(super) enum Siv<const WORDS: usize> {}

impl<const WORDS: usize> Kernel for Siv<WORDS> {
    type Work = Aead;

    const FITS_HALF_ONLY: bool = WORDS > 4;

    #[inline(always)]
    unsafe fn run<V: Blocks, const N: usize, const L: usize>(
        verb: AeadVerb,
        shape: &AeadShape,
        jobs: &[AeadJob; L],
        used: usize,
    ) {
        let zero = [V::zero(); N];
        // SAFETY: `expand_into` puts in the round keys, of the second key if there is a text to encrypt under it.
        let schedules = unsafe { Schedules::<V, 2, N>::new() };
        let mut keys = Keys { schedules, subkeys: [zero; 2], start: zero };
        let count = match shape.text {
            0 => {
                // SAFETY: the caller says so.
                unsafe { expand_into::<V, 1, N, WORDS>(&mut keys, |lane| jobs[lane].key) };
                1
            }
            _ => {
                // SAFETY: the caller says so.
                unsafe { expand_into::<V, 2, N, WORDS>(&mut keys, |lane| jobs[lane].key) };
                2
            }
        };
        // SAFETY: the caller says so.
        unsafe { keys.run::<L, WORDS>(verb, shape, jobs, used) };
        keys.schedules.wipe::<WORDS>(count);
        keys.wipe();
    }
}

/// Jobs that are all under one kept key.
pub(super) enum SivUnder {}

impl Kernel for SivUnder {
    type Work = Aead;

    #[inline(always)]
    unsafe fn run<V: Blocks, const N: usize, const L: usize>(
        verb: AeadVerb,
        shape: &AeadShape,
        jobs: &[AeadJob; L],
        used: usize,
    ) {
        // SAFETY: the caller says so.
        let key = unsafe { &*shape.kept };
        let [first, second] = key.subkeys;
        let mut keys = Keys {
            schedules: key,
            subkeys: [[V::broadcast(first); N], [V::broadcast(second); N]],
            start: [V::broadcast(key.start); N],
        };
        // SAFETY: the caller says so.
        unsafe { keys.run::<L, 4>(verb, shape, jobs, used) };
        keys.wipe();
    }
}
