//! AES-128-GCM-SIV (RFC 8452) over one job per lane.

use std::hint::black_box;

use super::aead::{Aead, AeadJob, AeadShape, AeadVerb, Part};
use super::block::{Block, Blocks};
use super::cmac::add;
use super::counter::{Position, counter_mode};
use super::entry::Kernel;
use super::message::{Messages, Padding, slide};
use super::polyval;
use super::schedule::{RoundKeys, Schedules, wipe};
use super::{claimed_tags, finish};
use crate::MAC_NONCE_SIZE;

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
    unsafe fn derive<const L: usize>(&mut self, jobs: &[AeadJob; L]) {
        // SAFETY: the caller says that the nonce is readable.
        let nonces = unsafe { Messages::new(MAC_NONCE_SIZE, |lane| jobs[lane].part(Part::Nonce)) };
        self.nonces = nonces.last::<V, N, L>(Padding::Zeros);
        let mut octets = [[[V::zero(); N]; 1]; 2];
        for (index, octets) in octets[0][0].iter_mut().enumerate() {
            // SAFETY: the caller says that the key is readable.
            *octets = unsafe { V::gather(|lane| jobs[lane].key, index) };
        }
        self.schedule.expand::<WORDS, 1>(&octets);
        let polyval = Keys::generate(&self.schedule, &self.nonces, &mut octets[0][0]);
        self.polyval = polyval::Keys::new(polyval);
        self.schedule.expand::<WORDS, 1>(&octets);
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
        self.schedule.expand::<WORDS, 1>(&octets);
        wipe(&mut octets[0]);
    }

    #[inline(always)]
    pub(super) fn wipe(&mut self) {
        self.schedule.wipe::<WORDS>(1);
        self.polyval.wipe();
    }

    /// The tags of associated data and plaintext, of which there are sizes and places. Section 4.
    ///
    /// # Safety
    /// So many octets are readable at each place of a lane.
    #[inline(always)]
    pub(super) unsafe fn tags<const L: usize, P: Copy>(
        &self,
        messages: [(usize, P); 2],
        place: impl Fn(usize, P) -> *const u8,
    ) -> [V; N] {
        /// Clears the most significant bit.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, 0x7f];
        let mut sums = [V::zero(); N];
        for (size, part) in messages {
            // SAFETY: the caller says so.
            let messages = unsafe { Messages::new(size, |lane| place(lane, part)) };
            self.polyval.absorb::<L>(&mut sums, &messages);
        }
        let [headers, texts] = messages.map(|(size, _)| 8 * size as u128);
        let sizes = V::broadcast((headers | texts << 64).to_le_bytes());
        let mut tags = add(self.polyval.absorb_blocks(&sums, &[sizes; N]), &self.nonces);
        tags.iter_mut().for_each(|tag| *tag = tag.and(V::broadcast(MASK)));
        self.schedule.encrypt::<WORDS>(0, &mut tags);
        tags
    }

    /// # Safety
    /// The jobs have texts of `size` octets.
    #[inline(always)]
    unsafe fn counter_mode<const L: usize>(&self, tags: &[V; N], size: usize, jobs: &[AeadJob; L]) {
        /// All but the most significant bit, which is set.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, 0x7f];
        const BIT: Block = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
        let mut start = *tags;
        for tag in &mut start {
            *tag = tag.and(V::broadcast(MASK)).xor(V::broadcast(BIT));
        }
        // SAFETY: the caller says so.
        unsafe { counter_mode::<V, N, L, WORDS>(&self.schedule, 0, &start, Position::Start, size, jobs) };
    }
}

/// Jobs that are each under a key of its own.
pub(super) enum GcmSiv {}

impl Kernel for GcmSiv {
    type Work = Aead;

    #[inline(always)]
    unsafe fn run<V: Blocks, const N: usize, const L: usize>(
        verb: AeadVerb,
        shape: &AeadShape,
        jobs: &[AeadJob; L],
        used: usize,
    ) {
        // SAFETY: they are derived next.
        let mut keys = unsafe { Keys::<V, N>::new() };
        // SAFETY: the caller says so.
        unsafe { keys.derive(jobs) };
        let (text, mut tags) = match verb {
            AeadVerb::Seal => (Part::Source, [V::zero(); N]),
            // SAFETY: a tag has sixteen octets.
            AeadVerb::Open => (Part::Text, unsafe { claimed_tags(jobs) }),
        };
        let claimed = tags;
        for step in 0..2 {
            let shape = black_box(shape);
            // As in `siv`.
            if (step == 0) == (verb == AeadVerb::Seal) {
                let messages = [(shape.associated.unwrap_or(0), Part::Associated), (shape.text, text)];
                // SAFETY: the caller says so.
                tags = unsafe { keys.tags::<L, _>(messages, |lane, part| jobs[lane].part(part)) };
            } else {
                // SAFETY: the caller says so. A text that is sealed has been read.
                unsafe { keys.counter_mode(&tags, shape.text, jobs) };
            }
        }
        // SAFETY: the caller says so.
        unsafe { finish(verb, shape.text, &tags, &claimed, jobs, used) };
        keys.wipe();
    }
}
