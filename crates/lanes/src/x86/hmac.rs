//! HMAC-SHA-256 and HMAC-SHA-224 (RFC 2104) of many messages at once: one in each 32-bit word of a register.
//!
//! Messages share a step if they have as many blocks and their keys are of one kind; octets behind a message are
//! padding anyway, so sizes may differ. Two digests start with a block of the key each. Where the key is kept, the
//! states behind these blocks are. Texts are put together block by block before, as their parts end anywhere.

use std::mem::MaybeUninit;
use std::ptr;

use zeroize::optimization_barrier;

use super::block::Block;
use super::group::{LaneJob, Work};
use super::mac::MacVerb;
use super::message::{Messages, Padding, PerLane};
use super::schedule::{turn, wipe};
use super::sha256::{BLOCK_SIZE, START_256, Sha256State};
use super::word::Words;
use super::{entry, is_none};
use crate::job::HASH_BLOCK_SIZE;
use crate::{HashPath, HmacDigest, HmacKey, HmacTag, HmacText, HmacVerify, LANE_TEXT_SIZE_MAX};

const _: () = assert!(BLOCK_SIZE == HASH_BLOCK_SIZE, "the limits of jobs are in blocks of this hash");

/// Blocks of the longest text with its padding.
const BLOCK_COUNT_MAX: usize = block_count(LANE_TEXT_SIZE_MAX);

/// Octets of a hash.
const HASH_SIZE: usize = 32;

/// What the key is added to. RFC 2104 section 2.
const PADS: [u32; 2] = [0x3636_3636, 0x5c5c_5c5c];

/// What decides which instructions a job takes. All of it is public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HmacShape {
    digest: HmacDigest,
    keys: Keys,
    /// Blocks of the text with its padding.
    block_count: usize,
}

/// What there is of the keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// So many octets, at most a block.
    Octets(usize),
    /// The states of both digests behind the key's blocks.
    Kept,
}

/// Where the parts of one job lie.
#[derive(Clone, Copy)]
pub struct HmacJob {
    /// The octets of the key, or the states of the inner and the outer digest.
    keys: [*const u8; 2],
    text: Text,
    /// As many octets as a tag has; only read when verifying.
    tag: *mut u8,
    /// Written when verifying, else null.
    genuine: *mut bool,
}

/// Where a text lies.
#[derive(Clone, Copy)]
enum Text {
    Whole(*const [u8]),
    Parts(*const [*const [u8]]),
}

/// HMAC over SHA-256 and SHA-224.
pub enum Hmac {}

impl Work for Hmac {
    type Path = HashPath;
    type Verb = MacVerb;
    type Shape = HmacShape;
    type Job = HmacJob;
    // All zeros: a start of other octets would be copied to its place, and all the room for jobs with it.
    const START: HmacShape = HmacShape { digest: HmacDigest::Sha224, keys: Keys::Octets(0), block_count: 0 };

    #[inline(never)]
    unsafe fn run(path: HashPath, verb: MacVerb, shape: &HmacShape, jobs: &[HmacJob]) {
        // SAFETY: as promised to this function.
        unsafe { entry::hmac::run(path, verb, shape, jobs) };
    }
}

/// Blocks of a text of `size` octets, a bit that ends it, and a count of 64 bits.
const fn block_count(size: usize) -> usize {
    (size + 9).div_ceil(BLOCK_SIZE)
}

/// Octets of a tag: all of SHA-256, and of SHA-224 as many as a MAC in a packet has.
const fn tag_size(digest: HmacDigest) -> usize {
    match digest {
        HmacDigest::Sha224 => 16,
        HmacDigest::Sha256 => 32,
    }
}

/// Shape and places of a job. The tag has a place and a size.
#[inline(always)]
fn job(
    key: HmacKey<'_>,
    text: HmacText<'_>,
    (tag, size): (*mut u8, usize),
    genuine: *mut bool,
) -> (HmacShape, HmacJob) {
    let (digest, kind, keys) = match key {
        HmacKey::Octets(octets) => {
            assert!(octets.len() <= BLOCK_SIZE, "longer keys are hashed first");
            (HmacDigest::Sha256, Keys::Octets(octets.len()), [octets.as_ptr(), ptr::null()])
        }
        HmacKey::Kept(digest, states) => (digest, Keys::Kept, states.map(|state| state.as_ptr().cast())),
    };
    let shape = HmacShape { digest, keys: kind, block_count: block_count(text.size()) };
    assert!(shape.block_count <= BLOCK_COUNT_MAX, "longer texts have no lanes");
    assert_eq!(size, tag_size(digest), "tags have the size of their digest's");
    let text = match text {
        HmacText::Whole(octets) => Text::Whole(octets),
        HmacText::Parts(parts) => Text::Parts(ptr::from_ref(parts) as *const [*const [u8]]),
    };
    (shape, HmacJob { keys, text, tag, genuine })
}

// SAFETY: the job borrows its parts.
unsafe impl LaneJob for HmacTag<'_> {
    type Path = HashPath;
    type Work = Hmac;
    const VERB: MacVerb = MacVerb::Tag;

    #[inline(always)]
    fn sort(self) -> (HmacShape, HmacJob) {
        job(self.key, self.text, (self.tag.as_mut_ptr(), self.tag.len()), ptr::null_mut())
    }
}

// SAFETY: the job borrows its parts.
unsafe impl LaneJob for HmacVerify<'_> {
    type Path = HashPath;
    type Work = Hmac;
    const VERB: MacVerb = MacVerb::Verify;

    #[inline(always)]
    fn sort(self) -> (HmacShape, HmacJob) {
        job(self.key, self.text, (self.tag.as_ptr().cast_mut(), self.tag.len()), self.genuine)
    }
}

/// Texts as digests read them, from their first block to their last. They are no secrets.
struct Texts<const L: usize>([[MaybeUninit<[u8; BLOCK_SIZE]>; BLOCK_COUNT_MAX]; L]);

impl<const L: usize> Texts<L> {
    /// Room for texts. They are filled where they stay, as to move them takes as long as to copy all of this room.
    const EMPTY: Self = Texts([const { [const { MaybeUninit::uninit() }; BLOCK_COUNT_MAX] }; L]);

    /// Puts the texts together, which stand behind a block of the key.
    ///
    /// # Safety
    /// The jobs are of this shape, of which there are at most `L`.
    #[inline(always)]
    unsafe fn fill(&mut self, shape: &HmacShape, jobs: &[HmacJob]) {
        for (job, blocks) in jobs.iter().zip(&mut self.0) {
            // What stays of the last two blocks is zeros.
            for block in blocks[..shape.block_count].iter_mut().rev().take(2) {
                block.write([0; BLOCK_SIZE]);
            }
            let start: *mut u8 = blocks.as_mut_ptr().cast();
            let mut size = 0;
            let mut put = |part: *const [u8]| {
                // SAFETY: the part is borrowed by the job, and all parts together have so many blocks as there are.
                unsafe { copy(part.cast(), start.wrapping_add(size), part.len()) };
                size += part.len();
            };
            match job.text {
                Text::Whole(octets) => put(octets),
                // SAFETY: the job borrows the list.
                Text::Parts(parts) => unsafe { &*parts }.iter().copied().for_each(put),
            }
            // SAFETY: behind the text there are at least nine octets.
            unsafe { start.wrapping_add(size).write(0x80) };
            let count = (8 * (BLOCK_SIZE + size) as u64).to_be_bytes();
            let end = start.wrapping_add(shape.block_count * BLOCK_SIZE - count.len());
            // SAFETY: as above; no alignment is needed.
            unsafe { end.cast::<[u8; 8]>().write(count) };
        }
    }

    /// Where block number `step` of a lane's text is.
    #[inline(always)]
    fn place(&self, lane: usize, step: usize) -> *const [u8; BLOCK_SIZE] {
        self.0[lane][step].as_ptr()
    }
}

/// Copies `size` octets. Parts of a text are short, and a call of memcpy takes as long as to copy one.
///
/// # Safety
/// As of [`ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, size: usize) {
    match size {
        // SAFETY: as promised to this function, and the size is at least that of a piece.
        64.. => unsafe { copy_pieces::<64>(from, to, size) },
        // SAFETY: as above.
        16.. => unsafe { copy_pieces::<16>(from, to, size) },
        // SAFETY: as above.
        8.. => unsafe { copy_pieces::<8>(from, to, size) },
        // SAFETY: as above.
        2.. => unsafe { copy_pieces::<2>(from, to, size) },
        // SAFETY: as promised to this function.
        _ => unsafe { ptr::copy_nonoverlapping(from, to, size) },
    }
}

/// Copies `size` octets in pieces of `N`, of which the last one reaches back over what is copied already.
///
/// # Safety
/// As of [`ptr::copy_nonoverlapping`], and `size` is at least `N`.
#[inline(always)]
unsafe fn copy_pieces<const N: usize>(from: *const u8, to: *mut u8, size: usize) {
    let copy_piece = |at: usize| {
        let (from, to) = (from.wrapping_add(at), to.wrapping_add(at));
        // SAFETY: callers ask for pieces that end inside of `size`; octets need no alignment.
        unsafe { ptr::copy_nonoverlapping(from.cast::<[u8; N]>(), to.cast(), 1) };
    };
    (0..size / N).for_each(|index| copy_piece(index * N));
    copy_piece(size - N);
}

/// The octets of each word reversed: SHA's numbers are big-endian, the processor's little-endian.
const SWAP: Block = [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12];

/// Reads the words of each lane's block.
///
/// # Safety
/// `BLOCK_SIZE` octets are readable at the place of each lane.
#[inline(always)]
pub(super) unsafe fn read_words<V: Words>(words: &mut [V; 16], place: impl Fn(usize) -> *const u8) {
    for (quarter, words) in words.as_chunks_mut().0.iter_mut().enumerate() {
        let place = |lane| place(lane).wrapping_add(16 * quarter);
        let mut blocks = [V::zero(); 4];
        for (register, block) in blocks.iter_mut().enumerate() {
            // SAFETY: the caller says so.
            *block = unsafe { V::gather(place, register) }.reorder(V::broadcast(SWAP));
        }
        *words = turn(blocks);
    }
}

/// Reads the words of each lane's key; those behind stay as they are.
///
/// # Safety
/// `size` octets are readable at the place of each lane.
#[inline(always)]
unsafe fn read_key_words<V: Words, const L: usize>(
    words: &mut [V; 16],
    size: usize,
    place: impl Fn(usize) -> *const u8,
) {
    // SAFETY: the caller says so.
    let keys = unsafe { Messages::new(size, place) };
    for (quarter, words) in words.as_chunks_mut().0.iter_mut().enumerate() {
        let mut blocks: [V; 4] = match quarter.cmp(&keys.count_before_last()) {
            std::cmp::Ordering::Less => keys.blocks(quarter),
            std::cmp::Ordering::Equal => keys.last::<V, 4, L>(Padding::Zeros),
            std::cmp::Ordering::Greater => continue,
        };
        blocks.iter_mut().for_each(|block| *block = block.reorder(V::broadcast(SWAP)));
        *words = turn(blocks);
    }
}

/// The states that are kept of each lane's key number `which`.
///
/// # Safety
/// The jobs have kept keys.
#[inline(always)]
unsafe fn kept_states<V: Words>(place: impl Fn(usize) -> *const u8) -> [V; 8] {
    let mut states = [V::zero(); 8];
    for (half, states) in states.as_chunks_mut().0.iter_mut().enumerate() {
        let place = |lane| place(lane).wrapping_add(16 * half);
        let mut blocks = [V::zero(); 4];
        for (register, block) in blocks.iter_mut().enumerate() {
            // SAFETY: a state has twice sixteen octets.
            *block = unsafe { V::gather(place, register) };
        }
        *states = turn(blocks);
    }
    states
}

/// Runs up to `L` jobs, four in each block of a register. `compress` is [`super::sha256::compress`].
///
/// # Safety
/// The jobs are of this shape, at least one and at most `L`, which is four times the width of a register.
#[inline(always)]
pub(super) unsafe fn run<V: Words, const L: usize>(
    verb: MacVerb,
    shape: &HmacShape,
    jobs: &[HmacJob],
    compress: impl Fn(&mut [V; 8], &[V; 16]),
) {
    // Those beyond repeat the last, and what they compute is dropped.
    let repeated = |lane: usize| lane.min(jobs.len() - 1);
    // Read where it stays, as all of it would be copied else.
    let mut block = [[V::zero(); 16]];
    let mut states: [[V; 8]; 2] = match shape.keys {
        Keys::Kept => {
            // SAFETY: the keys are kept.
            let inner = unsafe { kept_states(|lane| jobs[repeated(lane)].keys[0]) };
            // SAFETY: as above.
            [inner, unsafe { kept_states(|lane| jobs[repeated(lane)].keys[1]) }]
        }
        Keys::Octets(size) => {
            // SAFETY: the keys have so many octets.
            unsafe { read_key_words::<V, L>(&mut block[0], size, |lane| jobs[repeated(lane)].keys[0]) };
            let mut states = [start(); 2];
            // From the key to the first pad, and from each pad to the next.
            for (state, change) in states.iter_mut().zip([PADS[0], PADS[0] ^ PADS[1]]) {
                block[0].iter_mut().for_each(|word| *word = word.xor(V::splat(change)));
                compress(state, &block[0]);
            }
            wipe(&mut block);
            states
        }
    };
    let mut texts = Texts::<L>::EMPTY;
    // SAFETY: the caller says so.
    unsafe { texts.fill(shape, jobs) };
    for step in 0..shape.block_count {
        // SAFETY: the texts have so many blocks.
        unsafe { read_words(&mut block[0], |lane| texts.place(repeated(lane), step).cast()) };
        compress(&mut states[0], &block[0]);
    }
    let block = outer_block(shape.digest, states[0], V::splat);
    compress(&mut states[1], &block);
    let [a, b, c, d, e, f, g, h] = states[1];
    let (first, second) = (octets_of::<V, L>([a, b, c, d]), octets_of::<V, L>([e, f, g, h]));
    wipe(&mut states);
    for (index, job) in jobs.iter().enumerate() {
        // SAFETY: the job is one of these.
        unsafe { settle(verb, shape, job, &[first.0[index], second.0[index]]) };
    }
}

/// The state of every message before its first block.
#[inline(always)]
fn start<V: Words>() -> [V; 8] {
    let mut state = [V::zero(); 8];
    for (state, word) in state.iter_mut().zip(START_256) {
        *state = V::splat(word);
    }
    state
}

/// Four words of each lane as octets, big-endian.
#[inline(always)]
fn octets_of<V: Words, const L: usize>(words: [V; 4]) -> PerLane<L> {
    let mut blocks = turn(words);
    blocks.iter_mut().for_each(|block| *block = block.reorder(V::broadcast(SWAP)));
    PerLane::of(&blocks)
}

/// What the outer digest reads behind the block of the key: the inner hash and the padding.
#[inline(always)]
fn outer_block<W: Copy>(digest: HmacDigest, hash: [W; 8], word: impl Fn(u32) -> W) -> [W; 16] {
    let size = match digest {
        HmacDigest::Sha224 => 28,
        HmacDigest::Sha256 => 32,
    };
    let mut block = [word(0); 16];
    block[..size / 4].copy_from_slice(&hash[..size / 4]);
    block[size / 4] = word(1 << 31);
    block[15] = word(8 * (BLOCK_SIZE + size) as u32);
    block
}

/// Writes a tag, or tells whether it is the one that was claimed.
///
/// # Safety
/// The job wants this.
#[inline(always)]
unsafe fn settle(verb: MacVerb, shape: &HmacShape, job: &HmacJob, hash: &[Block; HASH_SIZE / 16]) {
    let (place, blocks) = (job.tag.cast::<Block>(), &hash[..tag_size(shape.digest) / 16]);
    let mut difference = 0;
    for (index, block) in blocks.iter().enumerate() {
        match verb {
            // SAFETY: a tag has so many octets, and the job borrows it alone.
            MacVerb::Tag => unsafe { place.wrapping_add(index).write(*block) },
            MacVerb::Verify => {
                // SAFETY: a tag has so many octets.
                let claimed = unsafe { place.wrapping_add(index).read() };
                difference |= u128::from_ne_bytes(claimed) ^ u128::from_ne_bytes(*block);
            }
        }
    }
    if verb == MacVerb::Verify {
        // SAFETY: the job borrows this place alone.
        unsafe { *job.genuine = is_none(difference.to_ne_bytes()) };
    }
}

/// Runs `S` jobs. `compress_pads` is the compression of two messages, `compress` that of so many as there are jobs.
///
/// # Safety
/// The jobs are of this shape.
#[inline(always)]
pub(super) unsafe fn run_few<const S: usize>(
    verb: MacVerb,
    shape: &HmacShape,
    jobs: &[HmacJob; S],
    compress_pads: impl Fn(&mut [Sha256State; 2], [&[u8; BLOCK_SIZE]; 2]),
    compress: impl Fn(&mut [Sha256State; S], [&[u8; BLOCK_SIZE]; S]),
) {
    let [mut inner, mut outer] = [[START_256; S]; 2];
    for (index, job) in jobs.iter().enumerate() {
        let mut both = match shape.keys {
            // SAFETY: the key is kept; no alignment is needed.
            Keys::Kept => job.keys.map(|state| unsafe { state.cast::<Sha256State>().read_unaligned() }),
            Keys::Octets(size) => {
                // SAFETY: the key has so many octets.
                let key = unsafe { std::slice::from_raw_parts(job.keys[0], size) };
                let mut padded = PADS.map(|pad| [pad as u8; BLOCK_SIZE]);
                for padded in &mut padded {
                    padded.iter_mut().zip(key).for_each(|(padded, octet)| *padded ^= octet);
                }
                let mut both = [START_256; 2];
                compress_pads(&mut both, padded.each_ref());
                padded = [[0; BLOCK_SIZE]; 2];
                optimization_barrier(&padded);
                both
            }
        };
        [inner[index], outer[index]] = both;
        both = [[0; 8]; 2];
        optimization_barrier(&both);
    }
    let mut texts = Texts::<S>::EMPTY;
    // SAFETY: the caller says so.
    unsafe { texts.fill(shape, jobs) };
    for step in 0..shape.block_count {
        // SAFETY: the texts have so many blocks.
        let mut blocks = [unsafe { &*texts.place(0, step) }; S];
        for (lane, block) in blocks.iter_mut().enumerate() {
            // SAFETY: as above.
            *block = unsafe { &*texts.place(lane, step) };
        }
        compress(&mut inner, blocks);
    }
    let mut blocks = [[0; BLOCK_SIZE]; S];
    for (block, hash) in blocks.iter_mut().zip(inner) {
        *block = octets(&outer_block(shape.digest, hash, |word| word));
    }
    compress(&mut outer, blocks.each_ref());
    for (job, hash) in jobs.iter().zip(&outer) {
        let hash: [u8; HASH_SIZE] = octets(hash);
        let (blocks, _) = hash.as_chunks();
        // SAFETY: the job is one of these.
        unsafe { settle(verb, shape, job, &[blocks[0], blocks[1]]) };
    }
    (inner, outer) = ([[0; 8]; S], [[0; 8]; S]);
    optimization_barrier(&inner);
    optimization_barrier(&outer);
}

/// Words as octets, big-endian.
#[inline(always)]
fn octets<const WORDS: usize, const OCTETS: usize>(words: &[u32; WORDS]) -> [u8; OCTETS] {
    let mut octets = [0; OCTETS];
    for (octets, word) in octets.as_chunks_mut().0.iter_mut().zip(words) {
        *octets = word.to_be_bytes();
    }
    octets
}
