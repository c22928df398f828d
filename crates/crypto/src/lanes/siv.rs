//! AES-SIV-CMAC (RFC 5297) over one job per lane.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::block::{Block, Blocks, LANES_MAX, Places};
use super::cmac::{chain, cmac, double, subkeys};
use super::counter::{Position, Texts, counter_mode};
use super::message::{Messages, Padding, PerLane, choose, mask, slides};
use super::schedule::{Schedules, wipe};
use super::settle;
use crate::aead::{Key, KeyRef, Open, Seal};

/// Which of a lane's two keys does what. RFC 5297 section 2.6: the first half authenticates, the second encrypts.
const MAC: usize = 0;
const CTR: usize = 1;

const ROUND_KEYS: usize = 11;

/// An expanded key of AES-SIV-CMAC-256, and what every S2V under it starts with.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct SivKey {
    rounds: [[Block; 2]; ROUND_KEYS],
    subkeys: [Block; 2],
    start: Block,
}

impl SivKey {
    #[inline(always)]
    pub(super) fn new<V: Blocks>(key: &Key) -> Self {
        let mut keys = Keys::<V, 1>::new();
        keys.expand::<4>(1, |_| key);
        let first = |register: V| PerLane::of(&[register]).0[0];
        let mut out = SivKey {
            rounds: [[[0; 16]; 2]; ROUND_KEYS],
            subkeys: keys.subkeys.map(|[register]| first(register)),
            start: first(keys.start[0]),
        };
        for (out, [[mac], [ctr]]) in out.rounds.iter_mut().zip(&keys.schedules.0) {
            *out = [first(*mac), first(*ctr)];
        }
        keys.wipe::<4>();
        out
    }
}

/// Both expanded keys of each lane, and what follows from the first.
struct Keys<V, const N: usize> {
    schedules: Schedules<V, 2, N>,
    /// K1 and K2 of CMAC. RFC 4493 section 2.3.
    subkeys: [[V; N]; 2],
    /// The CMAC of a zero block, from which S2V starts. RFC 5297 section 2.4.
    start: [V; N],
}

impl<V: Blocks, const N: usize> Keys<V, N> {
    #[inline(always)]
    fn new() -> Self {
        let zero = [V::zero(); N];
        Keys { schedules: Schedules::new(), subkeys: [zero; 2], start: zero }
    }

    /// Takes the keys of `used` jobs, of which the last one's is repeated in the lanes beyond.
    #[inline(always)]
    fn take<'k, const WORDS: usize>(&mut self, used: usize, key: impl Fn(usize) -> KeyRef<'k>) {
        let lanes = || (0..used).map(|lane| key(lane).expanded());
        match key(0).expanded() {
            // AES-SIV-CMAC-256 alone is ever kept expanded.
            Some(first) if WORDS == 4 && lanes().all(|it| it.is_some_and(|it| std::ptr::eq(it, first))) => {
                self.copy_to_all(first);
            }
            _ => {
                if lanes().any(|expanded| expanded.is_none()) {
                    self.expand::<WORDS>(used, |lane| key(lane).key());
                }
                for lane in 0..N * V::WIDTH {
                    if let Some(expanded) = key(lane.min(used - 1)).expanded() {
                        self.copy(lane, expanded);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn expand<'k, const WORDS: usize>(&mut self, used: usize, key: impl Fn(usize) -> &'k Key) {
        let mut places: Places = [std::ptr::null(); LANES_MAX];
        for (lane, place) in places[..N * V::WIDTH].iter_mut().enumerate() {
            *place = key(lane.min(used - 1)).padded().as_ptr();
        }
        let mut octets = [[[V::zero(); N]; 2]; 2];
        for index in 0..N {
            for (part, octets) in octets.iter_mut().enumerate() {
                for (half, octets) in octets.iter_mut().enumerate() {
                    let offset = 4 * WORDS * half + 16 * part;
                    // SAFETY: offsets are at most 48, and a key is padded to 64 octets.
                    octets[index] = unsafe { V::gather(&places, index, offset) };
                }
            }
        }
        self.schedules.expand::<WORDS>(&octets);
        octets.iter_mut().for_each(wipe);
        self.subkeys = subkeys::<V, 2, N, WORDS>(&self.schedules, MAC);
        // A zero block is a whole block: it is masked with K1 alone.
        self.start = self.subkeys[0];
        self.schedules.encrypt::<WORDS>(MAC, &mut self.start);
    }

    #[inline(always)]
    fn copy_to_all(&mut self, key: &SivKey) {
        for (registers, blocks) in self.schedules.0.iter_mut().zip(&key.rounds) {
            *registers = blocks.map(|block| [V::broadcast(block); N]);
        }
        self.subkeys = key.subkeys.map(|block| [V::broadcast(block); N]);
        self.start = [V::broadcast(key.start); N];
    }

    #[inline(always)]
    fn copy(&mut self, lane: usize, key: &SivKey) {
        for (registers, blocks) in self.schedules.0.iter_mut().zip(&key.rounds) {
            for (registers, block) in registers.iter_mut().zip(blocks) {
                put(registers, lane, block);
            }
        }
        for (registers, block) in self.subkeys.iter_mut().zip(&key.subkeys) {
            put(registers, lane, block);
        }
        put(&mut self.start, lane, &key.start);
    }

    #[inline(always)]
    fn wipe<const WORDS: usize>(&mut self) {
        self.schedules.wipe::<WORDS>();
        wipe(&mut self.subkeys);
        wipe(std::array::from_mut(&mut self.start));
    }

    /// S2V over associated data (where there is any), nonce and plaintext. RFC 5297 section 2.4.
    #[inline(always)]
    fn s2v<'a, const WORDS: usize>(
        &self,
        used: usize,
        associated: impl Fn(usize) -> Option<&'a [u8]>,
        nonce: impl Fn(usize) -> &'a [u8],
        text: impl Fn(usize) -> &'a [u8],
    ) -> [V; N] {
        let lanes = N * V::WIDTH;
        let nonces = Messages::new(lanes, used, Padding::OneBit, nonce);
        let nonces = cmac::<V, 2, N, WORDS>(&self.schedules, &self.subkeys, &nonces);
        let mut sums = self.start;
        if (0..used).any(|lane| associated(lane).is_some()) {
            let messages =
                Messages::new(lanes, used, Padding::OneBit, |lane| associated(lane).unwrap_or_default());
            let codes = cmac::<V, 2, N, WORDS>(&self.schedules, &self.subkeys, &messages);
            let doubled = double(sums);
            let is_there: [V; N] = mask(|lane| associated(lane.min(used - 1)).is_some());
            for index in 0..N {
                sums[index] = choose(is_there[index], doubled[index].xor(codes[index]), sums[index]);
            }
        }
        sums = double(sums);
        for index in 0..N {
            sums[index] = sums[index].xor(nonces[index]);
        }
        let mut messages = Messages::new(lanes, used, Padding::OneBit, text);
        let tags = self.s2v_end::<WORDS>(sums, &messages);
        messages.last.wipe();
        tags
    }

    /// The last component: its CMAC with the sum over its last 16 octets, or under its padding if it has fewer.
    #[inline(always)]
    fn s2v_end<const WORDS: usize>(&self, sums: [V; N], texts: &Messages<'_>) -> [V; N] {
        let is_short = |lane: usize| texts.size(lane) < 16;
        // The sum covers this many octets of the last block, and the rest of it the end of the block before.
        let covered = |lane: usize| if is_short(lane) { 16 } else { texts.last_size(lane) };
        let short: [V; N] = texts.mask(is_short);
        // A short text is padded before CMAC, which then sees a whole block.
        let whole: [V; N] = texts.mask(|lane| covered(lane) == 16);
        let (down, up): ([V; N], [V; N]) =
            (slides(|lane| 32 - covered(lane)), slides(|lane| 16 - covered(lane)));
        let doubled = double(sums);
        let (mut last, mut before_last): ([V; N], [V; N]) = (texts.last.registers(), sums);
        for index in 0..N {
            let sum = choose(short[index], doubled[index], sums[index]);
            let subkey = choose(whole[index], self.subkeys[0][index], self.subkeys[1][index]);
            last[index] = last[index].xor(sum.reorder(down[index])).xor(subkey);
            before_last[index] = sum.reorder(up[index]);
        }
        chain::<V, 2, N, WORDS>(&self.schedules, texts, Some(&before_last), &last)
    }

    /// Encrypts or decrypts each lane's text in place under the synthetic IV. RFC 5297 section 2.5.
    #[inline(always)]
    fn counter_mode<const WORDS: usize>(&self, tags: &[V; N], texts: &mut Texts<'_>) {
        /// Zeroes bits 31 and 63, from the right.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, 0x7f, !0, !0, !0, 0x7f, !0, !0, !0];
        let start = tags.map(|tag| tag.and(V::broadcast(MASK)));
        counter_mode::<V, 2, N, WORDS>(&self.schedules, CTR, &start, Position::End, texts);
    }
}

/// Writes one lane of registers in memory.
#[inline(always)]
fn put<V: Blocks, const N: usize>(registers: &mut [V; N], lane: usize, block: &Block) {
    let mut blocks = PerLane::of(registers);
    blocks.0[lane] = *block;
    *registers = blocks.registers();
    blocks.wipe();
}

/// Encrypts jobs under keys of two times `WORDS` words.
#[inline(always)]
pub(super) fn seal<V: Blocks, const N: usize, const WORDS: usize>(jobs: &mut [Seal<'_>]) {
    let lanes = N * V::WIDTH;
    let mut keys = Keys::<V, N>::new();
    for jobs in jobs.chunks_mut(lanes) {
        let used = jobs.len();
        keys.take::<WORDS>(used, |lane| jobs[lane].key);
        let tags = keys.s2v::<WORDS>(
            used,
            |lane| jobs[lane].associated,
            |lane| jobs[lane].nonce,
            |lane| &*jobs[lane].text,
        );
        for (job, tag) in jobs.iter_mut().zip(PerLane::of(&tags).0) {
            *job.tag = tag;
        }
        let texts = &mut Texts::new(lanes, jobs.iter_mut().map(|job| &mut *job.text));
        keys.counter_mode::<WORDS>(&tags, texts);
    }
    keys.wipe::<WORDS>();
}

/// Verifies and decrypts jobs under keys of two times `WORDS` words.
#[inline(always)]
pub(super) fn open<V: Blocks, const N: usize, const WORDS: usize>(jobs: &mut [Open<'_>]) {
    let lanes = N * V::WIDTH;
    let mut keys = Keys::<V, N>::new();
    for jobs in jobs.chunks_mut(lanes) {
        let used = jobs.len();
        keys.take::<WORDS>(used, |lane| jobs[lane].key);
        let mut claimed = PerLane::ZERO;
        for (lane, claimed) in claimed.0[..lanes].iter_mut().enumerate() {
            *claimed = *jobs[lane.min(used - 1)].tag;
        }
        let texts = &mut Texts::new(lanes, jobs.iter_mut().map(|job| &mut *job.text));
        keys.counter_mode::<WORDS>(&claimed.registers(), texts);
        let tags = keys.s2v::<WORDS>(
            used,
            |lane| jobs[lane].associated,
            |lane| jobs[lane].nonce,
            |lane| &*jobs[lane].text,
        );
        settle(jobs, &PerLane::of(&tags));
    }
    keys.wipe::<WORDS>();
}
