//! Counter mode: each lane's text, in place, with the key stream of its own counter.

use std::marker::PhantomData;
use std::ptr;

use super::block::{BLOCK_SIZE, Block, Blocks, Places};
use super::message::{PerLane, partial, put_partial, repeat_last, slide};
use super::schedule::RoundKeys;

/// The texts of all lanes: exclusive, and as raw parts, since lanes without a job repeat the last one's.
pub(super) struct Texts<'a, const L: usize> {
    places: Places<L>,
    sizes: [usize; L],
    /// The smallest and the largest size.
    least: usize,
    largest: usize,
    used: usize,
    octets: PhantomData<&'a mut [u8]>,
}

impl<'a, const L: usize> Texts<'a, L> {
    /// No texts yet.
    #[inline(always)]
    pub(super) fn new() -> Self {
        Texts {
            places: [ptr::null(); L],
            sizes: [0; L],
            least: usize::MAX,
            largest: 0,
            used: 0,
            octets: PhantomData,
        }
    }

    /// Takes the texts, at least one and at most one per lane; lanes beyond repeat the last one.
    #[inline(always)]
    pub(super) fn take(&mut self, texts: impl Iterator<Item = &'a mut [u8]>) {
        for text in texts.take(L) {
            self.places[self.used] = text.as_mut_ptr();
            self.sizes[self.used] = text.len();
            self.least = self.least.min(text.len());
            self.largest = self.largest.max(text.len());
            self.used += 1;
        }
        repeat_last(&mut self.places, self.used);
        repeat_last(&mut self.sizes, self.used);
    }

    /// A lane's text.
    #[inline(always)]
    fn text(&mut self, lane: usize) -> &mut [u8] {
        // SAFETY: place and size are those of a slice that is borrowed for `'a`; the result borrows all of them.
        unsafe { std::slice::from_raw_parts_mut(self.places[lane].cast_mut(), self.sizes[lane]) }
    }
}

/// Where in a block the counter is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// The last 32 bits, big-endian. RFC 5297 section 2.5; its start leaves room for 2^31 blocks.
    End,
    /// The first 32 bits, little-endian. RFC 8452 section 4.
    Start,
}

const ONE_AT_END: Block = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
const ONE_AT_START: Block = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Turns the last word from big-endian to little-endian and back.
const REVERSE_END: Block = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 14, 13, 12];

/// Encrypts or decrypts each lane's text under its key number `which`.
#[inline(always)]
pub(super) fn counter_mode<V: Blocks, const N: usize, const L: usize, const WORDS: usize>(
    keys: &impl RoundKeys<V, N>,
    which: usize,
    start: &[V; N],
    position: Position,
    texts: &mut Texts<'_, L>,
) {
    let reverse = V::broadcast(REVERSE_END);
    let one = V::broadcast(if position == Position::End { ONE_AT_END } else { ONE_AT_START });
    let mut counters = *start;
    if position == Position::End {
        for counter in &mut counters {
            *counter = counter.reorder(reverse);
        }
    }
    let whole_count = texts.least / BLOCK_SIZE;
    let count = texts.largest.div_ceil(BLOCK_SIZE);
    // Octets behind the whole blocks, if all texts have as many and none is shorter than a block.
    let is_even = texts.least >= BLOCK_SIZE && texts.least == texts.largest;
    let even_rest = is_even.then_some(texts.least % BLOCK_SIZE);
    for step in 0..count {
        let mut stream = counters;
        for index in 0..N {
            if position == Position::End {
                stream[index] = stream[index].reorder(reverse);
            }
            counters[index] = counters[index].add_words(one);
        }
        keys.encrypt::<WORDS>(which, &mut stream);
        if step < whole_count {
            // All are read before any is written, as lanes may repeat each other.
            for (index, stream) in stream.iter_mut().enumerate() {
                // SAFETY: each text has this block, as `step` is below `whole_count`.
                *stream = stream.xor(unsafe { V::gather(&texts.places, index, step * BLOCK_SIZE) });
            }
            for (index, stream) in stream.iter().enumerate() {
                // SAFETY: as above, and `texts` is an exclusive borrow of all texts.
                unsafe { stream.scatter(&texts.places, index, step * BLOCK_SIZE) };
            }
        } else if let Some(rest) = even_rest {
            // The last 16 octets of each text, of which the first are done: the stream moves behind them.
            let behind: V = slide(rest);
            let offset = step * BLOCK_SIZE + rest - BLOCK_SIZE;
            for (index, stream) in stream.iter_mut().enumerate() {
                // SAFETY: each text ends after these 16 octets and has at least as many.
                let octets = unsafe { V::gather(&texts.places, index, offset) };
                *stream = stream.reorder(behind).xor(octets);
            }
            for (index, stream) in stream.iter().enumerate() {
                // SAFETY: as above, and `texts` is an exclusive borrow of all texts.
                unsafe { stream.scatter(&texts.places, index, offset) };
            }
        } else {
            let mut stream = PerLane::of(&stream);
            ends(texts, step, &stream);
            stream.wipe();
        }
    }
}

/// Step `step` where texts end that differ in size, or are shorter than a block.
#[inline(never)]
fn ends<const L: usize>(texts: &mut Texts<'_, L>, step: usize, stream: &PerLane<L>) {
    for lane in 0..texts.used {
        let stream = u128::from_le_bytes(stream.0[lane]);
        let Some(rest) = texts.text(lane).get_mut(step * BLOCK_SIZE..) else { continue };
        match rest.first_chunk_mut() {
            Some(block) => *block = (u128::from_le_bytes(*block) ^ stream).to_le_bytes(),
            None => put_partial(rest, partial(rest) ^ stream),
        }
    }
}
