//! AES-SIV-CMAC (RFC 5297) over one job per lane.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::block::{BLOCK_SIZE, Block, Blocks};
use super::cmac::{add, chain, cmac, double, subkeys};
use super::counter::{Position, counter_mode};
use super::group::{Lane, Shape, Verb};
use super::message::{Messages, Padding, PerLane, slide};
use super::schedule::{RoundKeys, Schedules, wipe};
use super::{entry, settle};
use crate::aead::Key;

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
    keys: &mut Keys<V, N, Schedules<V, S, N>>,
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
    ///
    /// # Safety
    /// The lanes have this shape, and the plaintexts are `shape.text` octets at `text`.
    #[inline(always)]
    unsafe fn s2v<const L: usize, const WORDS: usize>(
        &self,
        shape: &Shape,
        lanes: &[Lane; L],
        text: impl Fn(usize) -> *const u8,
    ) -> [V; N] {
        let mut sums = self.start;
        if let Some(size) = shape.associated {
            // SAFETY: the caller says so.
            let messages = unsafe { Messages::new(size, |lane| lanes[lane].associated) };
            sums = add(double(sums), &cmac::<V, N, L, WORDS>(&self.schedules, &self.subkeys, &messages));
        }
        // SAFETY: the caller says so.
        let messages = unsafe { Messages::new(shape.nonce, |lane| lanes[lane].nonce) };
        sums = add(double(sums), &cmac::<V, N, L, WORDS>(&self.schedules, &self.subkeys, &messages));
        // SAFETY: the caller says so.
        self.s2v_end::<L, WORDS>(sums, &unsafe { Messages::new(shape.text, text) })
    }

    /// The last component: its CMAC with the sum over its last 16 octets, or under its padding if it has fewer.
    #[inline(always)]
    fn s2v_end<const L: usize, const WORDS: usize>(
        &self,
        sums: [V; N],
        texts: &Messages<impl Fn(usize) -> *const u8>,
    ) -> [V; N] {
        let last: [V; N] = texts.last::<V, N, L>(Padding::OneBit);
        let [whole, padded] = &self.subkeys;
        let keys = &self.schedules;
        if texts.size() < BLOCK_SIZE {
            // Padded before CMAC, which then sees a whole block.
            return chain::<V, N, WORDS>(keys, texts, None, &add(add(last, &double(sums)), whole));
        }
        let covered = texts.last_size();
        if covered == BLOCK_SIZE {
            return chain::<V, N, WORDS>(keys, texts, None, &add(add(last, &sums), whole));
        }
        // The sum covers so many octets of the last block, and the rest of it the end of the block before.
        let (down, up): (V, V) = (slide(2 * BLOCK_SIZE - covered), slide(BLOCK_SIZE - covered));
        let (mut end, mut before) = (sums, sums);
        end.iter_mut().for_each(|sum| *sum = sum.reorder(down));
        before.iter_mut().for_each(|sum| *sum = sum.reorder(up));
        chain::<V, N, WORDS>(keys, texts, Some(&before), &add(add(last, &end), padded))
    }

    /// Encrypts or decrypts each lane's text under the synthetic IV. RFC 5297 section 2.5.
    ///
    /// # Safety
    /// The lanes have texts of `size` octets.
    #[inline(always)]
    unsafe fn counter_mode<const L: usize, const WORDS: usize>(
        &self,
        tags: &[V; N],
        size: usize,
        lanes: &[Lane; L],
    ) {
        /// Zeroes bits 31 and 63, from the right.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, 0x7f, !0, !0, !0, 0x7f, !0, !0, !0];
        let mut start = *tags;
        for tag in &mut start {
            *tag = tag.and(V::broadcast(MASK));
        }
        // SAFETY: the caller says so.
        unsafe {
            counter_mode::<V, N, L, WORDS>(&self.schedules, CTR, &start, Position::End, size, lanes);
        }
    }

    /// # Safety
    /// The lanes are of jobs of this shape.
    #[inline(always)]
    unsafe fn run<const L: usize, const WORDS: usize>(
        &self,
        verb: Verb,
        shape: &Shape,
        lanes: &[Lane; L],
        used: usize,
    ) {
        match verb {
            Verb::Seal => {
                // SAFETY: the caller says so.
                let tags = unsafe { self.s2v::<L, WORDS>(shape, lanes, |lane| lanes[lane].source) };
                // The text may be written, now that it has been read.
                // SAFETY: the caller says so.
                unsafe { self.counter_mode::<L, WORDS>(&tags, shape.text, lanes) };
                for (index, tag) in tags.into_iter().enumerate() {
                    // SAFETY: a tag has sixteen octets, and the job borrows it alone.
                    unsafe { tag.scatter(|lane| lanes[lane].tag.cast(), index) };
                }
            }
            Verb::Open => {
                let mut claimed = [V::zero(); N];
                for (index, claimed) in claimed.iter_mut().enumerate() {
                    // SAFETY: a tag has sixteen octets.
                    *claimed = unsafe { V::gather(|lane| lanes[lane].tag.cast_const().cast(), index) };
                }
                // SAFETY: the caller says so.
                unsafe { self.counter_mode::<L, WORDS>(&claimed, shape.text, lanes) };
                // SAFETY: the caller says so.
                let tags =
                    unsafe { self.s2v::<L, WORDS>(shape, lanes, |lane| lanes[lane].text.cast_const()) };
                // SAFETY: the caller says so.
                unsafe { settle(&PerLane::<L>::of(&add(tags, &claimed)), shape.text, lanes, used) };
            }
        }
    }
}

/// Runs jobs under keys that are expanded for them; `S` is one if there is no text, else two.
///
/// # Safety
/// The lanes are of jobs of this shape, under keys of two times `WORDS` words.
#[inline(always)]
pub(super) unsafe fn run<V: Blocks, const N: usize, const L: usize, const WORDS: usize, const S: usize>(
    verb: Verb,
    shape: &Shape,
    lanes: &[Lane; L],
    used: usize,
) {
    let zero = [V::zero(); N];
    // SAFETY: `expand_into` puts the round keys in.
    let schedules = unsafe { Schedules::<V, S, N>::new() };
    let mut keys = Keys { schedules, subkeys: [zero; 2], start: zero };
    // SAFETY: the caller says so.
    unsafe { expand_into::<V, S, N, WORDS>(&mut keys, |lane| lanes[lane].key) };
    // SAFETY: the caller says so.
    unsafe { keys.run::<L, WORDS>(verb, shape, lanes, used) };
    keys.schedules.wipe::<WORDS>();
    keys.wipe();
}

/// Runs jobs that are all under `key`.
///
/// # Safety
/// The lanes are of jobs of this shape.
#[inline(always)]
pub(super) unsafe fn run_under<V: Blocks, const N: usize, const L: usize>(
    key: &SivKey,
    verb: Verb,
    shape: &Shape,
    lanes: &[Lane; L],
    used: usize,
) {
    let [first, second] = key.subkeys;
    let mut keys = Keys {
        schedules: key,
        subkeys: [[V::broadcast(first); N], [V::broadcast(second); N]],
        start: [V::broadcast(key.start); N],
    };
    // SAFETY: the caller says so.
    unsafe { keys.run::<L, 4>(verb, shape, lanes, used) };
    keys.wipe();
}

/// CMACs under the first half of each key, of messages of one size.
#[cfg(test)]
#[inline(always)]
pub(super) fn cmac_of<V: Blocks, const N: usize, const L: usize>(
    keys: &[Key; L],
    messages: &[&[u8]; L],
) -> [Block; L] {
    let zero = [V::zero(); N];
    // SAFETY: `expand_into` puts the round keys in.
    let schedules = unsafe { Schedules::<V, 1, N>::new() };
    let mut expanded = Keys { schedules, subkeys: [zero; 2], start: zero };
    // SAFETY: the keys are readable.
    unsafe { expand_into::<V, 1, N, 4>(&mut expanded, |lane| keys[lane].expose().as_ptr()) };
    assert!(messages.iter().all(|message| message.len() == messages[0].len()), "messages are of one size");
    // SAFETY: so many octets are readable.
    let messages = unsafe { Messages::new(messages[0].len(), |lane| messages[lane].as_ptr()) };
    PerLane::<L>::of(&cmac::<V, N, L, 4>(&expanded.schedules, &expanded.subkeys, &messages)).0
}
