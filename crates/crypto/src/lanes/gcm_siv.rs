//! AES-128-GCM-SIV (RFC 8452) over one job per lane.

use super::block::{Block, Blocks, LANES_MAX, Places};
use super::counter::{Position, Texts, counter_mode};
use super::message::{Messages, Padding, PerLane, slides};
use super::polyval::{absorb, absorb_blocks};
use super::schedule::{Schedules, wipe};
use super::settle;
use crate::aead::{Key, Open, Seal};

/// Words of an AES-128 key.
const WORDS: usize = 4;

/// What a job's key and nonce give. Section 4.
struct Keys<V, const N: usize> {
    /// First of the key-generating key, then of the message-encryption key.
    schedule: Schedules<V, 1, N>,
    /// The message-authentication key.
    polyval: [V; N],
    /// The nonce and four zero octets.
    nonces: [V; N],
}

impl<V: Blocks, const N: usize> Keys<V, N> {
    #[inline(always)]
    fn new() -> Self {
        let zero = [V::zero(); N];
        Keys { schedule: Schedules::new(), polyval: zero, nonces: zero }
    }

    /// Derives the keys of `used` jobs, of which the last one's are repeated in the lanes beyond.
    #[inline(always)]
    fn derive<'k>(&mut self, used: usize, key: impl Fn(usize) -> &'k Key, nonce: impl Fn(usize) -> &'k [u8]) {
        let mut places: Places = [std::ptr::null(); LANES_MAX];
        let mut counters = PerLane::ZERO;
        for lane in 0..N * V::WIDTH {
            places[lane] = key(lane.min(used - 1)).padded().as_ptr();
            let nonce = nonce(lane.min(used - 1)).first_chunk::<12>().expect("the caller checks the size");
            counters.0[lane][4..].copy_from_slice(nonce);
        }
        let mut octets = [[[V::zero(); N]; 1]; 2];
        for index in 0..N {
            // SAFETY: a key is padded to 64 octets.
            octets[0][0][index] = unsafe { V::gather(&places, index, 0) };
        }
        self.schedule.expand::<WORDS>(&octets);
        wipe(&mut octets[0]);
        let mut blocks: [[V; N]; 4] = [counters.registers(); 4];
        let up: [V; N] = slides(|_| 20);
        for index in 0..N {
            self.nonces[index] = blocks[0][index].reorder(up[index]);
        }
        for (number, blocks) in blocks.iter_mut().enumerate() {
            let mut counter = [0; 16];
            counter[0] = number as u8;
            *blocks = blocks.map(|block| block.xor(V::broadcast(counter)));
            self.schedule.encrypt::<WORDS>(0, blocks);
        }
        for index in 0..N {
            self.polyval[index] = blocks[0][index].low_halves(blocks[1][index]);
            octets[0][0][index] = blocks[2][index].low_halves(blocks[3][index]);
        }
        self.schedule.expand::<WORDS>(&octets);
        wipe(&mut octets[0]);
    }

    #[inline(always)]
    fn wipe(&mut self) {
        self.schedule.wipe::<WORDS>();
        wipe(std::array::from_mut(&mut self.polyval));
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
        let lanes = N * V::WIDTH;
        let associated = Messages::new(lanes, used, Padding::Zeros, associated);
        let mut texts = Messages::new(lanes, used, Padding::Zeros, text);
        let mut sums = [V::zero(); N];
        absorb(&self.polyval, &mut sums, &associated);
        absorb(&self.polyval, &mut sums, &texts);
        texts.last.wipe();
        let mut sizes = PerLane::ZERO;
        for (lane, block) in sizes.0[..lanes].iter_mut().enumerate() {
            let bits = |messages: &Messages<'_>| 8 * messages.size(lane) as u128;
            *block = (bits(&associated) | bits(&texts) << 64).to_le_bytes();
        }
        let mut tags = absorb_blocks(&self.polyval, &sums, &sizes.registers());
        for index in 0..N {
            tags[index] = tags[index].xor(self.nonces[index]).and(V::broadcast(MASK));
        }
        self.schedule.encrypt::<WORDS>(0, &mut tags);
        tags
    }

    #[inline(always)]
    fn counter_mode(&self, tags: &[V; N], texts: &mut Texts<'_>) {
        /// All but the most significant bit, which is set.
        const MASK: Block = [!0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, !0, 0x7f];
        const BIT: Block = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
        let start = tags.map(|tag| tag.and(V::broadcast(MASK)).xor(V::broadcast(BIT)));
        counter_mode::<V, 1, N, WORDS>(&self.schedule, 0, &start, Position::Start, texts);
    }
}

/// Encrypts jobs.
#[inline(always)]
pub(super) fn seal<V: Blocks, const N: usize>(jobs: &mut [Seal<'_>]) {
    let lanes = N * V::WIDTH;
    let mut keys = Keys::<V, N>::new();
    for jobs in jobs.chunks_mut(lanes) {
        keys.derive(jobs.len(), |lane| jobs[lane].key.key(), |lane| jobs[lane].nonce);
        let tags =
            keys.tags(jobs.len(), |lane| jobs[lane].associated.unwrap_or_default(), |lane| &*jobs[lane].text);
        for (job, tag) in jobs.iter_mut().zip(PerLane::of(&tags).0) {
            *job.tag = tag;
        }
        keys.counter_mode(&tags, &mut Texts::new(lanes, jobs.iter_mut().map(|job| &mut *job.text)));
    }
    keys.wipe();
}

/// Verifies and decrypts jobs.
#[inline(always)]
pub(super) fn open<V: Blocks, const N: usize>(jobs: &mut [Open<'_>]) {
    let lanes = N * V::WIDTH;
    let mut keys = Keys::<V, N>::new();
    for jobs in jobs.chunks_mut(lanes) {
        let used = jobs.len();
        keys.derive(used, |lane| jobs[lane].key.key(), |lane| jobs[lane].nonce);
        let mut claimed = PerLane::ZERO;
        for (lane, claimed) in claimed.0[..lanes].iter_mut().enumerate() {
            *claimed = *jobs[lane.min(used - 1)].tag;
        }
        let texts = &mut Texts::new(lanes, jobs.iter_mut().map(|job| &mut *job.text));
        keys.counter_mode(&claimed.registers(), texts);
        let tags =
            keys.tags(used, |lane| jobs[lane].associated.unwrap_or_default(), |lane| &*jobs[lane].text);
        settle(jobs, &PerLane::of(&tags));
    }
    keys.wipe();
}
