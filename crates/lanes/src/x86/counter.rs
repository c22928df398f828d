//! Counter mode: each lane's text, from where it lies to where it goes, with the key stream of its own counter.

use super::aead::{AeadJob, Part};
use super::block::{BLOCK_SIZE, Block, Blocks};
use super::message::{PerLane, partial, put_partial, slide};
use super::schedule::RoundKeys;

/// Where in a block the counter is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// The last 32 bits, big-endian. RFC 5297 section 2.5; its start leaves room for 2^31 blocks.
    End,
    /// The first 32 bits, little-endian. RFC 8452 section 4.
    Start,
}

/// Turns the last word from big-endian to little-endian and back.
const REVERSE_END: Block = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 14, 13, 12];

/// The counters of one step, from those of the first.
#[inline(always)]
fn counters<V: Blocks, const N: usize>(mut start: [V; N], position: Position, step: usize) -> [V; N] {
    // A text has far fewer than 2^32 blocks.
    let number = (step as u32).to_le_bytes();
    let mut addend = [0; BLOCK_SIZE];
    let (at, reverse) = match position {
        Position::End => (12, Some(V::broadcast(REVERSE_END))),
        Position::Start => (0, None),
    };
    addend[at..at + 4].copy_from_slice(&number);
    let addend = V::broadcast(addend);
    for counter in &mut start {
        *counter = match reverse {
            Some(reverse) => counter.reorder(reverse).add_words(addend).reorder(reverse),
            None => counter.add_words(addend),
        };
    }
    start
}

/// Encrypts or decrypts `size` octets of text in each lane under its key number `which`.
///
/// # Safety
/// So many octets are readable at each lane's source, and writable at its text. The two are the same, or apart.
#[inline(always)]
pub(super) unsafe fn counter_mode<V: Blocks, const N: usize, const L: usize, const WORDS: usize>(
    keys: &impl RoundKeys<V, N>,
    which: usize,
    start: &[V; N],
    position: Position,
    size: usize,
    jobs: &[AeadJob; L],
) {
    // From the end: a last block that is not whole is written together with octets before it, which come right later.
    for step in (0..size.div_ceil(BLOCK_SIZE)).rev() {
        let mut stream = counters(*start, position, step);
        keys.encrypt::<WORDS>(which, &mut stream);
        let offset = step * BLOCK_SIZE;
        let rest = size - offset;
        if size >= BLOCK_SIZE {
            if rest < BLOCK_SIZE {
                // Of the last 16 octets of each text only the last are meant: the stream moves behind the others.
                let behind: V = slide(rest);
                stream.iter_mut().for_each(|stream| *stream = stream.reorder(behind));
            }
            // SAFETY: each text has at least 16 octets, and these lie in it.
            unsafe { apply(&stream, offset.min(size - BLOCK_SIZE), jobs) };
        } else {
            let mut stream = PerLane::of(&stream);
            // SAFETY: as promised to this function.
            unsafe { apply_short(&stream, size, jobs) };
            stream.wipe();
        }
    }
}

/// Adds a block of stream to the 16 octets at `offset` of each text.
///
/// # Safety
/// Each text has these octets.
#[inline(always)]
unsafe fn apply<V: Blocks, const N: usize, const L: usize>(
    stream: &[V; N],
    offset: usize,
    jobs: &[AeadJob; L],
) {
    let mut blocks = *stream;
    // All are read before any is written, as lanes may repeat each other.
    for (index, block) in blocks.iter_mut().enumerate() {
        // SAFETY: the caller says so.
        let octets = unsafe { V::gather(|lane| jobs[lane].part(Part::Source).wrapping_add(offset), index) };
        *block = block.xor(octets);
    }
    for (index, block) in blocks.into_iter().enumerate() {
        // SAFETY: the caller says so.
        unsafe { block.scatter(|lane| jobs[lane].text().wrapping_add(offset), index) };
    }
}

/// Texts shorter than a block.
///
/// # Safety
/// Each text has `size` octets, fewer than 16.
#[inline(never)]
unsafe fn apply_short<const L: usize>(stream: &PerLane<L>, size: usize, jobs: &[AeadJob; L]) {
    let mut blocks = *stream;
    for (block, job) in blocks.0.iter_mut().zip(jobs) {
        // SAFETY: the caller says so.
        let source = unsafe { std::slice::from_raw_parts(job.part(Part::Source), size) };
        *block = (u128::from_le_bytes(*block) ^ partial(source)).to_le_bytes();
    }
    for (block, job) in blocks.0.iter().zip(jobs) {
        // SAFETY: the caller says so; no other reference to the text is in use.
        let text = unsafe { std::slice::from_raw_parts_mut(job.text(), size) };
        put_partial(text, u128::from_le_bytes(*block));
    }
    blocks.wipe();
}
