//! One message per lane, all of one size, cut into blocks: whole blocks are read where they lie, the last one is made.

use std::ptr;

use super::block::{BLOCK_SIZE, Block, Blocks};

/// Blocks per lane, aligned for a register of any path.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct PerLane<const L: usize>(pub(super) [Block; L]);

impl<const L: usize> PerLane<L> {
    pub(super) const ZERO: Self = PerLane([[0; BLOCK_SIZE]; L]);

    #[inline(always)]
    pub(super) fn registers<V: Blocks, const N: usize>(&self) -> [V; N] {
        let mut out = [V::zero(); N];
        for (index, out) in out.iter_mut().enumerate() {
            *out = V::load(&self.0, index);
        }
        out
    }

    /// Overwrites the blocks in a way that is not optimised out.
    #[inline(always)]
    pub(super) fn wipe(&mut self) {
        // SAFETY: a reference is valid for writes.
        unsafe { ptr::write_volatile(self, PerLane::ZERO) };
    }

    #[inline(always)]
    pub(super) fn of<V: Blocks, const N: usize>(registers: &[V; N]) -> Self {
        let mut out = PerLane::ZERO;
        for (index, register) in registers.iter().enumerate() {
            register.store(&mut out.0, index);
        }
        out
    }
}

/// What stands behind the octets of a last block that is not whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    /// A one bit, then zeros: CMAC.
    OneBit,
    /// Zeros: POLYVAL.
    Zeros,
}

/// The messages of all lanes.
#[derive(Clone, Copy)]
pub(super) struct Messages<F> {
    place: F,
    size: usize,
}

impl<F: Fn(usize) -> *const u8> Messages<F> {
    /// Messages of `size` octets at the place of each lane.
    ///
    /// # Safety
    /// As many octets are readable at each place, as long as this value is used.
    #[inline(always)]
    pub(super) unsafe fn new(size: usize, place: F) -> Self {
        Messages { place, size }
    }

    /// Octets of each message.
    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Blocks of a message before its last one.
    #[inline(always)]
    pub(super) fn count_before_last(&self) -> usize {
        self.size.saturating_sub(1) / BLOCK_SIZE
    }

    /// Octets in the last block: none in an empty message's.
    #[inline(always)]
    pub(super) fn last_size(&self) -> usize {
        self.size - self.count_before_last() * BLOCK_SIZE
    }

    /// Block number `step` of each message, one of those before the last.
    #[inline(always)]
    pub(super) fn blocks<V: Blocks, const N: usize>(&self, step: usize) -> [V; N] {
        debug_assert!(step < self.count_before_last(), "only blocks before the last are whole");
        self.read(step * BLOCK_SIZE)
    }

    #[inline(always)]
    fn read<V: Blocks, const N: usize>(&self, offset: usize) -> [V; N] {
        let mut out = [V::zero(); N];
        for (index, out) in out.iter_mut().enumerate() {
            // SAFETY: callers ask for sixteen octets that lie inside the messages.
            *out = unsafe { V::gather(|lane| (self.place)(lane).wrapping_add(offset), index) };
        }
        out
    }

    /// The last blocks, padded.
    #[inline(always)]
    pub(super) fn last<V: Blocks, const N: usize, const L: usize>(&self, padding: Padding) -> [V; N] {
        let size = self.last_size();
        if size == BLOCK_SIZE {
            return self.read(self.size - BLOCK_SIZE);
        }
        let behind: V = match padding {
            Padding::OneBit => V::broadcast(*table(&BITS, BLOCK_SIZE - size)),
            Padding::Zeros => V::zero(),
        };
        if size == 0 {
            return [behind; N];
        }
        let mut out = match self.size > BLOCK_SIZE {
            true => {
                let down: V = slide(2 * BLOCK_SIZE - size);
                let mut ends: [V; N] = self.read(self.size - BLOCK_SIZE);
                ends.iter_mut().for_each(|end| *end = end.reorder(down));
                ends
            }
            false => {
                let mut short = PerLane::<L>::ZERO;
                self.copy(&mut short);
                let out = short.registers();
                short.wipe();
                out
            }
        };
        out.iter_mut().for_each(|last| *last = last.xor(behind));
        out
    }

    /// Copies messages that are shorter than a block.
    #[inline(always)]
    fn copy<const L: usize>(&self, out: &mut PerLane<L>) {
        for (lane, out) in out.0.iter_mut().enumerate() {
            // SAFETY: so many octets are readable at the place.
            let octets = unsafe { std::slice::from_raw_parts((self.place)(lane), self.size) };
            *out = partial(octets).to_le_bytes();
        }
    }
}

/// Sixteen octets of this, from any place, are an order for `reorder` that moves a block by octets.
static SLIDES: [u8; 48] = {
    let mut table = [0x80; 48];
    let mut at = 0;
    while at < BLOCK_SIZE {
        table[BLOCK_SIZE + at] = at as u8;
        at += 1;
    }
    table
};

/// The order after which octet `i` is octet `i + down - 16` of before, or zero if there is none. `down` is at most 32,
/// and public.
#[inline(always)]
pub(super) fn slide<V: Blocks>(down: usize) -> V {
    V::broadcast(*table(&SLIDES, down))
}

/// A one bit behind octets that end a block: the block from `16 - size` on is that of a last block of `size` octets.
static BITS: [u8; 32] = {
    let mut table = [0; 32];
    table[BLOCK_SIZE] = 0x80;
    table
};

#[inline(always)]
fn table(table: &'static [u8], at: usize) -> &'static Block {
    table[at..].first_chunk().expect("sixteen octets follow each place that is asked for")
}

/// Fewer than 16 octets as a little-endian number, read in two pieces that overlap.
#[inline(always)]
pub(super) fn partial(octets: &[u8]) -> u128 {
    let size = octets.len();
    if let (Some(first), Some(last)) = (octets.first_chunk(), octets.last_chunk()) {
        let [first, last] = [first, last].map(|piece| u128::from(u64::from_le_bytes(*piece)));
        return first | last << (8 * (size - 8));
    }
    if let (Some(first), Some(last)) = (octets.first_chunk(), octets.last_chunk()) {
        let [first, last] = [first, last].map(|piece| u128::from(u32::from_le_bytes(*piece)));
        return first | last << (8 * (size - 4));
    }
    let (Some(first), Some(last)) = (octets.first(), octets.last()) else { return 0 };
    let middle = u128::from(octets[size / 2]) << (8 * (size / 2));
    u128::from(*first) | middle | u128::from(*last) << (8 * (size - 1))
}

/// The opposite of `partial`.
#[inline(always)]
pub(super) fn put_partial(octets: &mut [u8], value: u128) {
    let size = octets.len();
    octets.copy_from_slice(&value.to_le_bytes()[..size]);
}
