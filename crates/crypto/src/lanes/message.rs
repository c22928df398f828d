//! One message per lane, cut into blocks: whole blocks are read where they lie, the last one is made.
//!
//! Lengths differ between lanes. A shorter message starts later, so that all end in the same step: what is special
//! about a last block is then done for all lanes at once. Until its turn a lane takes part with blocks that do not
//! count. Where all lengths are equal, which is the normal case, no lane waits and nothing is looked up per lane.

use std::marker::PhantomData;
use std::ptr;

use super::block::{BLOCK_SIZE, Block, Blocks, Places};

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
pub(super) struct Messages<'a, const L: usize> {
    /// Sizes of the messages in octets.
    sizes: [usize; L],
    /// Where the first block would lie if the message had `most` blocks before its last.
    places: Places<L>,
    /// Where the last 16 octets lie; those of messages with fewer are in `short`, at the end of a block.
    ends: Places<L>,
    short: &'a mut PerLane<L>,
    /// Blocks before the last, over all lanes.
    fewest: usize,
    most: usize,
    /// Whether all sizes are equal.
    is_even: bool,
    padding: Padding,
    octets: PhantomData<&'a [u8]>,
}

impl<'a, const L: usize> Messages<'a, L> {
    /// Nothing yet; `short` is room for the messages that are shorter than a block.
    #[inline(always)]
    pub(super) fn new(short: &'a mut PerLane<L>, padding: Padding) -> Self {
        Messages {
            sizes: [0; L],
            places: [ptr::null(); L],
            ends: [ptr::null(); L],
            short,
            fewest: 0,
            most: 0,
            is_even: true,
            padding,
            octets: PhantomData,
        }
    }

    /// Cuts `message(lane)` for each lane below `used`; those from there on repeat the last one.
    ///
    /// Not inlined: there are several messages per job, and little of this is about registers.
    #[inline(never)]
    pub(super) fn cut<'m: 'a>(&mut self, used: usize, message: impl Fn(usize) -> &'m [u8]) {
        let (mut least, mut largest) = (usize::MAX, 0);
        for lane in 0..used.min(L) {
            let octets = message(lane);
            self.sizes[lane] = octets.len();
            self.places[lane] = octets.as_ptr();
            self.ends[lane] = match octets.last_chunk::<BLOCK_SIZE>() {
                Some(end) => end.as_ptr(),
                None => {
                    copy_to_end(octets, &mut self.short.0[lane]);
                    self.short.0[lane].as_ptr()
                }
            };
            least = least.min(octets.len());
            largest = largest.max(octets.len());
        }
        repeat_last(&mut self.sizes, used);
        repeat_last(&mut self.places, used);
        repeat_last(&mut self.ends, used);
        self.fewest = blocks_before_last(least);
        self.most = blocks_before_last(largest);
        self.is_even = least == largest;
        if !self.is_even {
            for (place, size) in self.places.iter_mut().zip(self.sizes) {
                *place = place.wrapping_sub((self.most - blocks_before_last(size)) * BLOCK_SIZE);
            }
        }
    }

    /// The last blocks, padded.
    #[inline(always)]
    pub(super) fn last<V: Blocks, const N: usize>(&self) -> [V; N] {
        let down: [V; N] = self.slides(|lane| 32 - self.last_size(lane));
        let bits: [V; N] = match self.padding {
            Padding::OneBit => self.pick(&BITS, |lane| 16 - self.last_size(lane)),
            Padding::Zeros => [V::zero(); N],
        };
        let mut out = [V::zero(); N];
        for (index, out) in out.iter_mut().enumerate() {
            // SAFETY: each place is that of the last 16 octets of the lane's message, or of a block of `short`.
            let octets: V = unsafe { V::gather(&self.ends, index, 0) };
            *out = octets.reorder(down[index]).xor(bits[index]);
        }
        out
    }

    /// Overwrites what this holds of the messages.
    #[inline(always)]
    pub(super) fn wipe(&mut self) {
        self.short.wipe();
    }

    /// Blocks of the longest message before its last.
    #[inline(always)]
    pub(super) fn step_count(&self) -> usize {
        self.most
    }

    /// Size of the message of a lane in octets.
    #[inline(always)]
    pub(super) fn size(&self, lane: usize) -> usize {
        self.sizes[lane]
    }

    /// Octets in the last block of a lane.
    #[inline(always)]
    pub(super) fn last_size(&self, lane: usize) -> usize {
        match self.sizes[lane] {
            0 => 0,
            size => (size - 1) % BLOCK_SIZE + 1,
        }
    }

    /// Whether some lane has not begun before `step`.
    #[inline(always)]
    pub(super) fn some_wait(&self, step: usize) -> bool {
        self.fewest != self.most && step <= self.most - self.fewest
    }

    /// Ones where the lane has begun before `step`.
    #[inline(always)]
    pub(super) fn begun<V: Blocks, const N: usize>(&self, step: usize) -> [V; N] {
        self.mask(|lane| self.blocks_of(lane) + step > self.most)
    }

    /// Block number `step` of each lane, counted in the longest message; anything where the lane has not begun.
    #[inline(always)]
    pub(super) fn blocks<V: Blocks, const N: usize>(&self, step: usize) -> [V; N] {
        let mut out = [V::zero(); N];
        if !self.some_wait(step) {
            for (index, out) in out.iter_mut().enumerate() {
                // SAFETY: `step` is below `most`, which all messages have as blocks before their last one, or at least
                // as many as there are from `step` on.
                *out = unsafe { V::gather(&self.places, index, step * BLOCK_SIZE) };
            }
            return out;
        }
        let places: Places<L> = each_lane(|lane| match self.blocks_of(lane) + step >= self.most {
            true => self.places[lane].wrapping_add(step * BLOCK_SIZE),
            false => ZEROS.as_ptr(),
        });
        for (index, out) in out.iter_mut().enumerate() {
            // SAFETY: each place is that of a whole block of the lane's message, or of `ZEROS`.
            *out = unsafe { V::gather(&places, index, 0) };
        }
        out
    }

    /// Whether no message has octets.
    #[inline(always)]
    pub(super) fn all_are_empty(&self) -> bool {
        self.is_even && self.sizes[0] == 0
    }

    /// Whether some message has no octets.
    #[inline(always)]
    pub(super) fn some_are_empty(&self) -> bool {
        self.sizes.contains(&0)
    }

    /// Whether the lane has a block in `step`, where step `step_count` is that of the last blocks.
    #[inline(always)]
    pub(super) fn is_in(&self, lane: usize, step: usize) -> bool {
        self.sizes[lane] > 0 && self.blocks_of(lane) + step >= self.most
    }

    #[inline(always)]
    fn blocks_of(&self, lane: usize) -> usize {
        blocks_before_last(self.sizes[lane])
    }

    /// Ones in the lanes that something is true of which follows from the sizes.
    #[inline(always)]
    pub(super) fn mask<V: Blocks, const N: usize>(&self, is_true: impl Fn(usize) -> bool) -> [V; N] {
        match self.is_even {
            true => [V::broadcast(if is_true(0) { ONES } else { ZEROS }); N],
            false => mask::<V, N, L>(is_true),
        }
    }

    /// [`slide`] by what follows from the sizes.
    #[inline(always)]
    pub(super) fn slides<V: Blocks, const N: usize>(&self, down: impl Fn(usize) -> usize) -> [V; N] {
        self.pick(&SLIDES, down)
    }

    /// Sixteen octets of a table, from a place that follows from the sizes.
    #[inline(always)]
    fn pick<V: Blocks, const N: usize>(&self, table: &'static [u8], at: impl Fn(usize) -> usize) -> [V; N] {
        let block = |lane: usize| table[at(lane)..].first_chunk::<BLOCK_SIZE>().expect("the table is longer");
        if self.is_even {
            return [V::broadcast(*block(0)); N];
        }
        let places: Places<L> = each_lane(|lane| block(lane).as_ptr());
        let mut out = [V::zero(); N];
        for (index, out) in out.iter_mut().enumerate() {
            // SAFETY: each place is that of sixteen octets of the table.
            *out = unsafe { V::gather(&places, index, 0) };
        }
        out
    }
}

/// The place of each lane. Not inlined: what runs once per lane would be there sixteen times.
#[cold]
#[inline(never)]
fn each_lane<const L: usize>(place: impl Fn(usize) -> *const u8) -> Places<L> {
    let mut places = [ZEROS.as_ptr(); L];
    places.iter_mut().enumerate().for_each(|(lane, out)| *out = place(lane));
    places
}

/// Fills the lanes from `used` on with what the last one before them has.
#[inline(always)]
pub(super) fn repeat_last<T: Copy, const L: usize>(lanes: &mut [T; L], used: usize) {
    if let Some((before, rest)) = lanes.split_at_mut_checked(used)
        && let Some(last) = before.last()
    {
        rest.fill(*last);
    }
}

const fn blocks_before_last(size: usize) -> usize {
    size.saturating_sub(1) / BLOCK_SIZE
}

static ZEROS: Block = [0; BLOCK_SIZE];
static ONES: Block = [0xff; BLOCK_SIZE];

/// Ones in the lanes that a public fact is true of.
#[inline(always)]
pub(super) fn mask<V: Blocks, const N: usize, const L: usize>(is_true: impl Fn(usize) -> bool) -> [V; N] {
    let places: Places<L> = each_lane(|lane| if is_true(lane) { ONES.as_ptr() } else { ZEROS.as_ptr() });
    let mut out = [V::zero(); N];
    for (index, out) in out.iter_mut().enumerate() {
        // SAFETY: each place is that of a static block.
        *out = unsafe { V::gather(&places, index, 0) };
    }
    out
}

/// `yes` where `mask` has ones, `no` where it has zeros.
#[inline(always)]
pub(super) fn choose<V: Blocks>(mask: V, yes: V, no: V) -> V {
    no.xor(yes.xor(no).and(mask))
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
    V::broadcast(*SLIDES[down..].first_chunk().expect("`down` is at most 32"))
}

/// A one bit behind octets that end a block: the block from `16 - size` on is that of a last block of `size` octets.
static BITS: [u8; 32] = {
    let mut table = [0; 32];
    table[BLOCK_SIZE] = 0x80;
    table
};

/// Puts fewer than 16 octets at the end of a block, in two pieces that overlap.
#[inline(always)]
fn copy_to_end(octets: &[u8], block: &mut Block) {
    let start = BLOCK_SIZE - octets.len();
    if let (Some(first), Some(last)) = (octets.first_chunk::<8>(), octets.last_chunk::<8>()) {
        block[8..].copy_from_slice(last);
        block[start..start + 8].copy_from_slice(first);
    } else if let (Some(first), Some(last)) = (octets.first_chunk::<4>(), octets.last_chunk::<4>()) {
        block[12..].copy_from_slice(last);
        block[start..start + 4].copy_from_slice(first);
    } else {
        block[start..].iter_mut().zip(octets).for_each(|(to, from)| *to = *from);
    }
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
    let value = value.to_le_bytes();
    let piece = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().expect("eight octets are eight"));
    if size >= 8 {
        octets[..8].copy_from_slice(&piece(0).to_le_bytes());
        octets[size - 8..].copy_from_slice(&piece(size - 8).to_le_bytes());
    } else if size >= 4 {
        octets[..4].copy_from_slice(&value[..4]);
        octets[size - 4..].copy_from_slice(&value[size - 4..size]);
    } else if size > 0 {
        octets[0] = value[0];
        octets[size / 2] = value[size / 2];
        octets[size - 1] = value[size - 1];
    }
}
