//! AES-128-GCM-SIV (RFC 8452) over one job per lane.
#![expect(clippy::needless_range_loop, reason = "several arrays of registers are walked together")]

use super::block::{Block, Blocks, Places};
use super::counter::{Position, Texts, counter_mode};
use super::message::{Messages, Padding, PerLane, repeat_last, slide};
use super::polyval;
use super::schedule::{RoundKeys, Schedules, wipe};
use super::settle;
use crate::aead::{Key, Open, Seal};

/// Words of an AES-128 key.
const WORDS: usize = 4;

/// What a job's key and nonce give. Section 4.
struct Keys<V, const N: usize, const L: usize> {
    /// First of the key-generating key, then of the message-encryption key.
    schedule: Schedules<V, 1, N>,
    /// The message-authentication key.
    polyval: polyval::Keys<V, N>,
    /// The nonce and four zero octets.
    nonces: [V; N],
}

impl<V: Blocks, const N: usize, const L: usize> Keys<V, N, L> {
    #[inline(always)]
    fn new() -> Self {
        let zero = [V::zero(); N];
        // SAFETY: all callers call `derive` next, which expands keys of `WORDS` words.
        let schedule = unsafe { Schedules::new() };
        Keys { schedule, polyval: polyval::Keys::new(zero), nonces: zero }
    }

    /// Derives the keys of `used` jobs, of which the last one's are repeated in the lanes beyond.
    #[inline(always)]
    fn derive<'k>(&mut self, used: usize, key: impl Fn(usize) -> &'k Key, nonce: impl Fn(usize) -> &'k [u8]) {
        let mut places: Places<L> = [std::ptr::null(); L];
        let mut counters = PerLane::<L>::ZERO;
        for lane in 0..used.min(L) {
            places[lane] = key(lane).padded().as_ptr();
            let nonce = nonce(lane).first_chunk::<12>().expect("the caller checks the size");
            counters.0[lane][4..].copy_from_slice(nonce);
        }
        repeat_last(&mut places, used);
        repeat_last(&mut counters.0, used);
        let mut octets = [[[V::zero(); N]; 1]; 2];
        for index in 0..N {
            // SAFETY: a key is padded to 64 octets.
            octets[0][0][index] = unsafe { V::gather(&places, index, 0) };
        }
        self.schedule.expand::<WORDS>(&octets);
        wipe(&mut octets[0]);
        let mut blocks: [[V; N]; 4] = [counters.registers(); 4];
        let up: V = slide(20);
        for index in 0..N {
            self.nonces[index] = blocks[0][index].reorder(up);
        }
        for (number, blocks) in blocks.iter_mut().enumerate() {
            let mut counter = [0; 16];
            counter[0] = number as u8;
            for block in &mut *blocks {
                *block = block.xor(V::broadcast(counter));
            }
            self.schedule.encrypt::<WORDS>(0, blocks);
        }
        let mut polyval = [V::zero(); N];
        for index in 0..N {
            polyval[index] = blocks[0][index].low_halves(blocks[1][index]);
            octets[0][0][index] = blocks[2][index].low_halves(blocks[3][index]);
        }
        self.polyval = polyval::Keys::new(polyval);
        self.schedule.expand::<WORDS>(&octets);
        wipe(&mut octets[0]);
    }

    #[inline(always)]
    fn wipe(&mut self) {
        self.schedule.wipe::<WORDS>();
        self.polyval.wipe();
    }

    /// The tags of associated data and plaintext. Section 4.
    #[inline(always)]
    fn tags<'a>(
        &self,
        used: usize,
        associated: impl Fn(usize) -> &'a [u8],
        text: impl Fn(usize) -> &'a [u8],
    ) -> [V; N] {
        /// Clears the most significant bit.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, 0x7f];
        let (mut short, mut short_texts) = (PerLane::ZERO, PerLane::ZERO);
        let mut headers = Messages::<L>::new(&mut short, Padding::Zeros);
        headers.cut(used, associated);
        let mut texts = Messages::<L>::new(&mut short_texts, Padding::Zeros);
        texts.cut(used, text);
        let mut sums = [V::zero(); N];
        self.polyval.absorb(&mut sums, &headers);
        self.polyval.absorb(&mut sums, &texts);
        let mut sizes = PerLane::<L>::ZERO;
        for (lane, block) in sizes.0[..used].iter_mut().enumerate() {
            let bits = |messages: &Messages<'_, L>| 8 * messages.size(lane) as u128;
            *block = (bits(&headers) | bits(&texts) << 64).to_le_bytes();
        }
        repeat_last(&mut sizes.0, used);
        texts.wipe();
        let mut tags = self.polyval.absorb_blocks(&sums, &sizes.registers());
        for index in 0..N {
            tags[index] = tags[index].xor(self.nonces[index]).and(V::broadcast(MASK));
        }
        self.schedule.encrypt::<WORDS>(0, &mut tags);
        tags
    }

    #[inline(always)]
    fn counter_mode(&self, tags: &[V; N], texts: &mut Texts<'_, L>) {
        /// All but the most significant bit, which is set.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, 0x7f];
        const BIT: Block = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
        let mut start = *tags;
        for tag in &mut start {
            *tag = tag.and(V::broadcast(MASK)).xor(V::broadcast(BIT));
        }
        counter_mode::<V, N, L, WORDS>(&self.schedule, 0, &start, Position::Start, texts);
    }
}

/// Encrypts jobs.
#[inline(always)]
pub(super) fn seal<V: Blocks, const N: usize, const L: usize>(jobs: &mut [Seal<'_>]) {
    let mut keys = Keys::<V, N, L>::new();
    for jobs in jobs.chunks_mut(L) {
        keys.derive(jobs.len(), |lane| jobs[lane].key.key(), |lane| jobs[lane].nonce);
        let tags =
            keys.tags(jobs.len(), |lane| jobs[lane].associated.unwrap_or_default(), |lane| &*jobs[lane].text);
        for (job, tag) in jobs.iter_mut().zip(PerLane::<L>::of(&tags).0) {
            *job.tag = tag;
        }
        let mut texts = Texts::new();
        texts.take(jobs.iter_mut().map(|job| &mut *job.text));
        keys.counter_mode(&tags, &mut texts);
    }
    keys.wipe();
}

/// Verifies and decrypts jobs.
#[inline(always)]
pub(super) fn open<V: Blocks, const N: usize, const L: usize>(jobs: &mut [Open<'_>]) {
    let mut keys = Keys::<V, N, L>::new();
    for jobs in jobs.chunks_mut(L) {
        let used = jobs.len();
        keys.derive(used, |lane| jobs[lane].key.key(), |lane| jobs[lane].nonce);
        let mut claimed = PerLane::<L>::ZERO;
        claimed.0.iter_mut().zip(&*jobs).for_each(|(claimed, job)| *claimed = *job.tag);
        repeat_last(&mut claimed.0, used);
        let mut texts = Texts::new();
        texts.take(jobs.iter_mut().map(|job| &mut *job.text));
        keys.counter_mode(&claimed.registers(), &mut texts);
        let tags =
            keys.tags(used, |lane| jobs[lane].associated.unwrap_or_default(), |lane| &*jobs[lane].text);
        settle(jobs, &PerLane::<L>::of(&tags));
    }
    keys.wipe();
}
