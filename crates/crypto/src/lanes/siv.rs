//! AES-SIV-CMAC (RFC 5297) over one job per lane.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::block::{BLOCK_SIZE, Block, Blocks, Places};
use super::cmac::{chain, cmac, double, subkeys};
use super::counter::{Position, Texts, counter_mode};
use super::message::{Messages, Padding, PerLane, choose, mask, repeat_last};
use super::schedule::{RoundKeys, Schedules, wipe};
use super::settle;
use crate::aead::{Key, Open, Seal};

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
    #[inline(always)]
    pub(super) fn new<V: Blocks>(key: &Key) -> Self {
        let zero = [V::zero(); 1];
        // SAFETY: `expand_into` puts the round keys in.
        let mut keys = Keys { schedules: unsafe { Schedules::new() }, subkeys: [zero; 2], start: zero };
        expand_into::<V, 1, 1, 4>(&mut keys, 1, |_| key);
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
        keys.schedules.wipe::<4>();
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

/// Both expanded keys of each lane, and what follows from the first.
struct Keys<V, const N: usize, K> {
    schedules: K,
    /// K1 and K2 of CMAC. RFC 4493 section 2.3.
    subkeys: [[V; N]; 2],
    /// The CMAC of a zero block, from which S2V starts. RFC 5297 section 2.4.
    start: [V; N],
}

/// Expands the keys of `used` jobs, of which the last one's is repeated in the lanes beyond.
#[inline(always)]
fn expand_into<'k, V: Blocks, const N: usize, const L: usize, const WORDS: usize>(
    keys: &mut Keys<V, N, Schedules<V, 2, N>>,
    used: usize,
    key: impl Fn(usize) -> &'k Key,
) {
    let mut places: Places<L> = [std::ptr::null(); L];
    for (lane, place) in places[..used].iter_mut().enumerate() {
        *place = key(lane).padded().as_ptr();
    }
    repeat_last(&mut places, used);
    let mut octets = [[[V::zero(); N]; 2]; 2];
    for (part, octets) in octets.iter_mut().enumerate().take(WORDS.div_ceil(4)) {
        for (half, octets) in octets.iter_mut().enumerate() {
            for (index, octets) in octets.iter_mut().enumerate() {
                let offset = 4 * WORDS * half + BLOCK_SIZE * part;
                // SAFETY: offsets are at most 48, and a key is padded to 64 octets.
                *octets = unsafe { V::gather(&places, index, offset) };
            }
        }
    }
    keys.schedules.expand::<WORDS>(&octets);
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

    /// S2V over associated data (where there is any), nonce and plaintext. RFC 5297 section 2.4.
    #[inline(always)]
    fn s2v<'a, const L: usize, const WORDS: usize>(
        &self,
        used: usize,
        associated: impl Fn(usize) -> Option<&'a [u8]>,
        nonce: impl Fn(usize) -> &'a [u8],
        text: impl Fn(usize) -> &'a [u8],
    ) -> [V; N] {
        let (mut short, mut short_texts) = (PerLane::ZERO, PerLane::ZERO);
        let mut nonces = Messages::<L>::new(&mut short, Padding::OneBit);
        nonces.cut(used, nonce);
        let nonces = cmac::<V, N, L, WORDS>(&self.schedules, &self.subkeys, &nonces);
        let mut sums = self.start;
        if (0..used).any(|lane| associated(lane).is_some()) {
            let mut messages = Messages::<L>::new(&mut short, Padding::OneBit);
            messages.cut(used, |lane| associated(lane).unwrap_or_default());
            let codes = cmac::<V, N, L, WORDS>(&self.schedules, &self.subkeys, &messages);
            let doubled = double(sums);
            let all_have = (0..used).all(|lane| associated(lane).is_some());
            for index in 0..N {
                sums[index] = doubled[index].xor(codes[index]);
            }
            if !all_have {
                let has: [V; N] = mask::<V, N, L>(|lane| associated(lane.min(used - 1)).is_some());
                for index in 0..N {
                    sums[index] = choose(has[index], sums[index], self.start[index]);
                }
            }
        }
        sums = double(sums);
        for index in 0..N {
            sums[index] = sums[index].xor(nonces[index]);
        }
        let mut messages = Messages::<L>::new(&mut short_texts, Padding::OneBit);
        messages.cut(used, text);
        let tags = self.s2v_end::<L, WORDS>(sums, &messages);
        messages.wipe();
        tags
    }

    /// The last component: its CMAC with the sum over its last 16 octets, or under its padding if it has fewer.
    #[inline(always)]
    fn s2v_end<const L: usize, const WORDS: usize>(&self, sums: [V; N], texts: &Messages<'_, L>) -> [V; N] {
        let is_short = |lane: usize| texts.size(lane) < BLOCK_SIZE;
        // The sum covers this many octets of the last block, and the rest of it the end of the block before.
        let covered = |lane: usize| if is_short(lane) { BLOCK_SIZE } else { texts.last_size(lane) };
        let short: [V; N] = texts.mask(is_short);
        // A short text is padded before CMAC, which then sees a whole block.
        let whole: [V; N] = texts.mask(|lane| covered(lane) == BLOCK_SIZE);
        let down: [V; N] = texts.slides(|lane| 32 - covered(lane));
        let up: [V; N] = texts.slides(|lane| 16 - covered(lane));
        let doubled = double(sums);
        let (mut last, mut before_last): ([V; N], [V; N]) = (texts.last(), sums);
        for index in 0..N {
            let sum = choose(short[index], doubled[index], sums[index]);
            let subkey = choose(whole[index], self.subkeys[0][index], self.subkeys[1][index]);
            last[index] = last[index].xor(sum.reorder(down[index])).xor(subkey);
            before_last[index] = sum.reorder(up[index]);
        }
        chain::<V, N, L, WORDS>(&self.schedules, texts, Some(&before_last), &last)
    }

    /// Encrypts or decrypts each lane's text in place under the synthetic IV. RFC 5297 section 2.5.
    #[inline(always)]
    fn counter_mode<const L: usize, const WORDS: usize>(&self, tags: &[V; N], texts: &mut Texts<'_, L>) {
        /// Zeroes bits 31 and 63, from the right.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, 0x7f, !0, !0, !0, 0x7f, !0, !0, !0];
        let mut start = *tags;
        for tag in &mut start {
            *tag = tag.and(V::broadcast(MASK));
        }
        counter_mode::<V, N, L, WORDS>(&self.schedules, CTR, &start, Position::End, texts);
    }

    #[inline(always)]
    fn seal<const L: usize, const WORDS: usize>(&self, jobs: &mut [Seal<'_>]) {
        let tags = self.s2v::<L, WORDS>(
            jobs.len(),
            |lane| jobs[lane].associated,
            |lane| jobs[lane].nonce,
            |lane| &*jobs[lane].text,
        );
        for (job, tag) in jobs.iter_mut().zip(PerLane::<L>::of(&tags).0) {
            *job.tag = tag;
        }
        let mut texts = Texts::new();
        texts.take(jobs.iter_mut().map(|job| &mut *job.text));
        self.counter_mode::<L, WORDS>(&tags, &mut texts);
    }

    #[inline(always)]
    fn open<const L: usize, const WORDS: usize>(&self, jobs: &mut [Open<'_>]) {
        let used = jobs.len();
        let mut claimed = PerLane::<L>::ZERO;
        claimed.0.iter_mut().zip(&*jobs).for_each(|(claimed, job)| *claimed = *job.tag);
        repeat_last(&mut claimed.0, used);
        let mut texts = Texts::new();
        texts.take(jobs.iter_mut().map(|job| &mut *job.text));
        self.counter_mode::<L, WORDS>(&claimed.registers(), &mut texts);
        let tags = self.s2v::<L, WORDS>(
            used,
            |lane| jobs[lane].associated,
            |lane| jobs[lane].nonce,
            |lane| &*jobs[lane].text,
        );
        settle(jobs, &PerLane::<L>::of(&tags));
    }
}

macro_rules! verb {
    ($fresh:ident, $kept:ident, $verb:ident, $job:ident) => {
        /// Runs jobs under keys of two times `WORDS` words, which are expanded for them.
        #[inline(always)]
        pub(super) fn $fresh<V: Blocks, const N: usize, const L: usize, const WORDS: usize>(
            jobs: &mut [$job<'_>],
        ) {
            let zero = [V::zero(); N];
            // SAFETY: `expand_into` puts the round keys in.
            let mut keys = Keys { schedules: unsafe { Schedules::new() }, subkeys: [zero; 2], start: zero };
            for jobs in jobs.chunks_mut(L) {
                expand_into::<V, N, L, WORDS>(&mut keys, jobs.len(), |lane| jobs[lane].key.key());
                keys.$verb::<L, WORDS>(jobs);
            }
            keys.schedules.wipe::<WORDS>();
            keys.wipe();
        }

        /// Runs jobs that are all under `key`.
        #[inline(always)]
        pub(super) fn $kept<V: Blocks, const N: usize, const L: usize>(key: &SivKey, jobs: &mut [$job<'_>]) {
            let [first, second] = key.subkeys;
            let mut keys = Keys {
                schedules: key,
                subkeys: [[V::broadcast(first); N], [V::broadcast(second); N]],
                start: [V::broadcast(key.start); N],
            };
            for jobs in jobs.chunks_mut(L) {
                keys.$verb::<L, 4>(jobs);
            }
            keys.wipe();
        }
    };
}

verb!(seal, seal_under, seal, Seal);
verb!(open, open_under, open, Open);

/// CMACs under the first half of each key, at most one per lane.
#[cfg(test)]
#[inline(always)]
pub(super) fn cmac_of<V: Blocks, const N: usize, const L: usize>(
    keys: &[Key],
    messages: &[&[u8]],
) -> Vec<Block> {
    let zero = [V::zero(); N];
    // SAFETY: `expand_into` puts the round keys in.
    let mut expanded = Keys { schedules: unsafe { Schedules::new() }, subkeys: [zero; 2], start: zero };
    expand_into::<V, N, L, 4>(&mut expanded, keys.len(), |lane| &keys[lane]);
    let mut short = PerLane::ZERO;
    let mut cut = Messages::<L>::new(&mut short, Padding::OneBit);
    cut.cut(messages.len(), |lane| messages[lane]);
    let codes = cmac::<V, N, L, 4>(&expanded.schedules, &expanded.subkeys, &cut);
    PerLane::<L>::of(&codes).0[..keys.len()].to_vec()
}
