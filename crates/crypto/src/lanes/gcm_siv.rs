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
pub(super) struct Keys<V, const N: usize> {
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
    unsafe fn derive<const L: usize>(&mut self, lanes: &[Lane; L]) {
        // SAFETY: the caller says that the nonce is readable.
        let nonces = unsafe { Messages::new(12, |lane| lanes[lane].nonce) };
        self.nonces = nonces.last::<V, N, L>(Padding::Zeros);
        let mut octets = [[[V::zero(); N]; 1]; 2];
        for (index, octets) in octets[0][0].iter_mut().enumerate() {
            // SAFETY: the caller says that the key is readable.
            *octets = unsafe { V::gather(|lane| lanes[lane].key, index) };
        }
        self.schedule.expand::<WORDS>(&octets);
        let polyval = Keys::generate(&self.schedule, &self.nonces, &mut octets[0][0]);
        self.polyval = polyval::Keys::new(polyval);
        self.schedule.expand::<WORDS>(&octets);
        wipe(&mut octets[0]);
    }

    /// Room for keys, in the place where they stay: to move them would cost a copy of them all.
    ///
    /// # Safety
    /// Keys are derived before they are used.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        let zero = [V::zero(); N];
        // SAFETY: to derive keys is to put the round keys in.
        let schedule = unsafe { Schedules::new() };
        Keys { schedule, polyval: polyval::Keys::from_parts([zero; 2]), nonces: zero }
    }

    /// The message-authentication keys; the message-encryption keys are written to `encryption`.
    #[inline(always)]
    fn generate(generating: &impl RoundKeys<V, N>, nonces: &[V; N], encryption: &mut [V; N]) -> [V; N] {
        let behind_counter: V = slide(12);
        let mut blocks = [*nonces; 4];
        for (number, blocks) in blocks.iter_mut().enumerate() {
            let mut counter = [0; 16];
            counter[0] = number as u8;
            for block in &mut *blocks {
                *block = block.reorder(behind_counter).xor(V::broadcast(counter));
            }
            generating.encrypt::<WORDS>(0, blocks);
        }
        let mut polyval = [V::zero(); N];
        for index in 0..N {
            polyval[index] = blocks[0][index].low_halves(blocks[1][index]);
            encryption[index] = blocks[2][index].low_halves(blocks[3][index]);
        }
        polyval
    }

    /// Derives the keys of nonces under key-generating keys that are kept.
    #[inline(always)]
    pub(super) fn derive_under(&mut self, generating: &impl RoundKeys<V, N>, nonces: [V; N]) {
        self.nonces = nonces;
        let mut octets = [[[V::zero(); N]; 1]; 2];
        let polyval = Keys::generate(generating, &self.nonces, &mut octets[0][0]);
        self.polyval = polyval::Keys::new(polyval);
        self.schedule.expand::<WORDS>(&octets);
        wipe(&mut octets[0]);
    }

    #[inline(always)]
    pub(super) fn wipe(&mut self) {
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
        // SAFETY: the caller says so.
        let headers = unsafe { Messages::new(shape.associated.unwrap_or(0), |lane| lanes[lane].associated) };
        // SAFETY: the caller says so.
        self.tags_of::<L>(&headers, &unsafe { Messages::new(shape.text, text) })
    }

    /// As `tags`.
    #[inline(always)]
    pub(super) fn tags_of<const L: usize>(
        &self,
        headers: &Messages<impl Fn(usize) -> *const u8>,
        texts: &Messages<impl Fn(usize) -> *const u8>,
    ) -> [V; N] {
        /// Clears the most significant bit.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, 0x7f];
        let mut sums = [V::zero(); N];
        self.polyval.absorb::<L>(&mut sums, headers);
        self.polyval.absorb::<L>(&mut sums, texts);
        let bits = |size: usize| 8 * size as u128;
        let sizes = V::broadcast((bits(headers.size()) | bits(texts.size()) << 64).to_le_bytes());
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
    // SAFETY: they are derived next.
    let mut keys = unsafe { Keys::<V, N>::new() };
    // SAFETY: the caller says so.
    unsafe { keys.derive(lanes) };
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
            unsafe { settle(&PerLane::<L>::of(&add(tags, &claimed)), shape.text, lanes, used) };
        }
    }
    keys.wipe();
}
