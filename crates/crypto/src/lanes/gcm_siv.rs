//! AES-128-GCM-SIV (RFC 8452) over one job per lane.

use super::block::{Block, Blocks};
use super::cmac::add;
use super::counter::{Position, counter_mode};
use super::group::{Lane, Shape, Verb};
use super::message::{Messages, Padding, PerLane, slide};
use super::polyval;
use super::schedule::{RoundKeys, Schedules, wipe};
use super::settle;

/// Words of an AES-128 key.
const WORDS: usize = 4;

/// What a job's key and nonce give. Section 4.
struct Keys<V, const N: usize> {
    /// First of the key-generating key, then of the message-encryption key.
    schedule: Schedules<V, 1, N>,
    /// The message-authentication key.
    polyval: polyval::Keys<V, N>,
    /// The nonce and four zero octets.
    nonces: [V; N],
}

impl<V: Blocks, const N: usize> Keys<V, N> {
    /// Derives the keys of all lanes.
    ///
    /// # Safety
    /// Each lane has a key of 16 octets and a nonce of 12.
    #[inline(always)]
    unsafe fn derive<const L: usize>(lanes: &[Lane; L]) -> Self {
        // SAFETY: `expand` puts in the round keys of `WORDS` words.
        let mut schedule: Schedules<V, 1, N> = unsafe { Schedules::new() };
        let mut octets = [[[V::zero(); N]; 1]; 2];
        for (index, octets) in octets[0][0].iter_mut().enumerate() {
            // SAFETY: the caller says that the key is readable.
            *octets = unsafe { V::gather(|lane| lanes[lane].key, index) };
        }
        schedule.expand::<WORDS>(&octets);
        wipe(&mut octets[0]);
        // SAFETY: the caller says that the nonce is readable.
        let nonces = unsafe { Messages::new(12, |lane| lanes[lane].nonce) };
        let nonces: [V; N] = nonces.last::<V, N, L>(Padding::Zeros);
        let behind_counter: V = slide(12);
        let mut blocks = [nonces; 4];
        for (number, blocks) in blocks.iter_mut().enumerate() {
            let mut counter = [0; 16];
            counter[0] = number as u8;
            for block in &mut *blocks {
                *block = block.reorder(behind_counter).xor(V::broadcast(counter));
            }
            schedule.encrypt::<WORDS>(0, blocks);
        }
        let mut polyval = [V::zero(); N];
        for index in 0..N {
            polyval[index] = blocks[0][index].low_halves(blocks[1][index]);
            octets[0][0][index] = blocks[2][index].low_halves(blocks[3][index]);
        }
        schedule.expand::<WORDS>(&octets);
        wipe(&mut octets[0]);
        Keys { schedule, polyval: polyval::Keys::new(polyval), nonces }
    }

    #[inline(always)]
    fn wipe(&mut self) {
        self.schedule.wipe::<WORDS>();
        self.polyval.wipe();
    }

    /// The tags of associated data and plaintext. Section 4.
    ///
    /// # Safety
    /// The lanes have this shape, and the plaintexts are `shape.text` octets at `text`.
    #[inline(always)]
    unsafe fn tags<const L: usize>(
        &self,
        shape: &Shape,
        lanes: &[Lane; L],
        text: impl Fn(usize) -> *const u8,
    ) -> [V; N] {
        /// Clears the most significant bit.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, 0x7f];
        let associated_size = shape.associated.unwrap_or(0);
        // SAFETY: the caller says so.
        let headers = unsafe { Messages::new(associated_size, |lane| lanes[lane].associated) };
        // SAFETY: the caller says so.
        let texts = unsafe { Messages::new(shape.text, text) };
        let mut sums = [V::zero(); N];
        self.polyval.absorb::<L>(&mut sums, &headers);
        self.polyval.absorb::<L>(&mut sums, &texts);
        let bits = |size: usize| 8 * size as u128;
        let sizes = V::broadcast((bits(associated_size) | bits(shape.text) << 64).to_le_bytes());
        let mut tags = add(self.polyval.absorb_blocks(&sums, &[sizes; N]), &self.nonces);
        tags.iter_mut().for_each(|tag| *tag = tag.and(V::broadcast(MASK)));
        self.schedule.encrypt::<WORDS>(0, &mut tags);
        tags
    }

    /// # Safety
    /// The lanes have texts of `size` octets.
    #[inline(always)]
    unsafe fn counter_mode<const L: usize>(&self, tags: &[V; N], size: usize, lanes: &[Lane; L]) {
        /// All but the most significant bit, which is set.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, 0x7f];
        const BIT: Block = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
        let mut start = *tags;
        for tag in &mut start {
            *tag = tag.and(V::broadcast(MASK)).xor(V::broadcast(BIT));
        }
        // SAFETY: the caller says so.
        unsafe { counter_mode::<V, N, L, WORDS>(&self.schedule, 0, &start, Position::Start, size, lanes) };
    }
}

/// Runs jobs, each under a key of its own.
///
/// # Safety
/// The lanes are of jobs of this shape.
#[inline(always)]
pub(super) unsafe fn run<V: Blocks, const N: usize, const L: usize>(
    verb: Verb,
    shape: &Shape,
    lanes: &[Lane; L],
    used: usize,
) {
    // SAFETY: the caller says so.
    let mut keys = unsafe { Keys::<V, N>::derive(lanes) };
    match verb {
        Verb::Seal => {
            // SAFETY: the caller says so.
            let tags = unsafe { keys.tags(shape, lanes, |lane| lanes[lane].source) };
            // SAFETY: the caller says so.
            unsafe { keys.counter_mode(&tags, shape.text, lanes) };
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
            unsafe { keys.counter_mode(&claimed, shape.text, lanes) };
            // SAFETY: the caller says so.
            let tags = unsafe { keys.tags(shape, lanes, |lane| lanes[lane].text.cast_const()) };
            // SAFETY: the caller says so.
            unsafe { settle(&PerLane::<L>::of(&add(tags, &claimed)), shape, lanes, used) };
        }
    }
    keys.wipe();
}
