//! AES-128-GCM (NIST SP 800-38D) over one job per lane, all under one key that is kept.

use std::hint::black_box;
use std::ptr;

use super::aead::{AeadJob, AeadVerb, Part};
use super::block::{Block, Blocks};
use super::cmac::{REVERSE, add};
use super::counter::{Position, counter_mode};
use super::entry::{Kernel, choose};
use super::group::{LaneJob, Work};
use super::kept::{Kept, KeptKey};
use super::mac::MacKey;
use super::message::{Messages, Padding};
use super::schedule::RoundKeys;
use super::{claimed_tags, finish, polyval};
use crate::{GcmOpen, MAC_NONCE_SIZE, Path, TAG_SIZE, Text};

/// Words of an AES-128 key.
const WORDS: usize = 4;

/// What decides which instructions a job takes. All of it is public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GcmShape {
    /// The key of all jobs, expanded as for GMAC.
    pub(super) key: *const KeptKey,
    /// Octets of the associated data.
    associated: usize,
    /// Octets of the text.
    text: usize,
}

/// AES-128-GCM.
pub enum Gcm {}

impl Work for Gcm {
    type Path = Path;
    type Verb = AeadVerb;
    type Shape = GcmShape;
    type Job = AeadJob;
    const START: GcmShape = GcmShape { key: ptr::null(), associated: 0, text: 0 };

    #[inline(never)]
    unsafe fn run(path: Path, verb: AeadVerb, shape: &GcmShape, jobs: &[AeadJob]) {
        let run = choose::<Gcm>(path, jobs.len());
        // SAFETY: as promised to this function; the key lives as long as the jobs.
        unsafe { run(verb, shape, jobs) };
    }
}

/// Seals one text under a key of GMAC.
///
/// # Panics
/// If the path has no lanes, or the processor lacks what it needs.
pub fn gcm_seal(
    path: Path,
    key: &MacKey,
    nonce: &[u8; MAC_NONCE_SIZE],
    associated: &[u8],
    text: &mut [u8],
    tag: &mut [u8; TAG_SIZE],
) {
    let (shape, job) = job(key, nonce, associated, text.into(), tag, ptr::null_mut());
    // SAFETY: the job is of this shape, and borrowed.
    unsafe { <Gcm as Work>::run(path, AeadVerb::Seal, &shape, &[job]) };
}

// SAFETY: the job borrows its parts.
unsafe impl LaneJob for GcmOpen<'_> {
    type Path = Path;
    type Work = Gcm;
    const VERB: AeadVerb = AeadVerb::Open;

    #[inline(always)]
    fn sort(self) -> (GcmShape, AeadJob) {
        let GcmOpen { key, nonce, associated, text, tag, genuine } = self;
        job(key, nonce, associated, text, ptr::from_ref(tag).cast_mut(), genuine)
    }
}

#[inline(always)]
fn job(
    key: &MacKey,
    nonce: &[u8; MAC_NONCE_SIZE],
    associated: &[u8],
    mut text: Text<'_>,
    tag: *mut [u8; TAG_SIZE],
    genuine: *mut bool,
) -> (GcmShape, AeadJob) {
    let shape = GcmShape { key: key.kept(), associated: associated.len(), text: text.len() };
    let (source, text) = (text.get_in().as_ptr(), text.get_out().as_mut_ptr());
    let parts = [associated.as_ptr(), nonce.as_ptr(), source, text.cast_const()];
    (shape, AeadJob { key: ptr::null(), parts, tag, genuine })
}

impl Kernel for Gcm {
    type Work = Gcm;

    #[inline(always)]
    unsafe fn run<V: Blocks, const N: usize, const L: usize>(
        verb: AeadVerb,
        shape: &GcmShape,
        jobs: &[AeadJob; L],
        used: usize,
    ) {
        // SAFETY: the caller says so.
        let key: &KeptKey = unsafe { &*shape.key };
        // SAFETY: a job has a nonce of so many octets.
        let nonces = unsafe { Messages::new(MAC_NONCE_SIZE, |lane| jobs[lane].part(Part::Nonce)) };
        let nonces: [V; N] = nonces.last::<V, N, L>(Padding::Zeros);
        // Section 7.1: the counter that masks the tag is 1, the text's begin with 2.
        let counters = |number: u8| {
            let counter = V::broadcast(u128::from(number).to_be_bytes());
            add(nonces, &[counter; N])
        };
        let (text, claimed) = match verb {
            AeadVerb::Seal => (Part::Text, [V::zero(); N]),
            // SAFETY: a tag has sixteen octets.
            AeadVerb::Open => (Part::Source, unsafe { claimed_tags(jobs) }),
        };
        let mut tags = counters(1);
        key.encrypt::<WORDS>(0, &mut tags);
        for step in 0..2 {
            let shape = black_box(shape);
            // The tag is of the ciphertext: read before that is decrypted, which may be in its place, or once it is
            // there.
            if (step == 0) == (verb == AeadVerb::Open) {
                // SAFETY: the caller says so.
                tags = unsafe { self::tags::<V, N, L>(key, &tags, shape, jobs, text) };
            } else {
                // SAFETY: the caller says so.
                unsafe {
                    counter_mode::<V, N, L, WORDS>(&key, 0, &counters(2), Position::End, shape.text, jobs);
                }
            }
        }
        // SAFETY: the caller says so.
        unsafe { finish(verb, shape.text, &tags, &claimed, jobs, used) };
    }
}

/// The tags of associated data and ciphertexts, which are the part `text`.
///
/// # Safety
/// The jobs have this shape.
#[inline(always)]
unsafe fn tags<V: Blocks, const N: usize, const L: usize>(
    key: &KeptKey,
    masks: &[V; N],
    shape: &GcmShape,
    jobs: &[AeadJob; L],
    text: Part,
) -> [V; N] {
    let polyval = polyval::Keys::from_parts([key.masks(0), key.masks(1)]);
    let mut sums = [V::zero(); N];
    for (part, size) in [(Part::Associated, shape.associated), (text, shape.text)] {
        // SAFETY: the caller says so.
        let messages = unsafe { Messages::new(size, |lane| jobs[lane].part(part)) };
        absorb::<V, N, L>(&polyval, &mut sums, &messages);
    }
    add(ghash(&polyval, &sums, [shape.associated, shape.text]), masks)
}

/// GHASH of what was absorbed, and the sizes of associated data and text.
#[inline(always)]
pub(super) fn ghash<V: Blocks, const N: usize>(
    polyval: &polyval::Keys<V, N>,
    sums: &[V; N],
    sizes: [usize; 2],
) -> [V; N] {
    let [associated, text] = sizes.map(|size| 8 * size as u128);
    let sizes: Block = (associated << 64 | text).to_le_bytes();
    reversed(polyval.absorb_blocks(sums, &[V::broadcast(sizes); N]))
}

/// GHASH is POLYVAL with the octets of each block reversed. RFC 8452 appendix A.
#[inline(always)]
fn reversed<V: Blocks, const N: usize>(mut blocks: [V; N]) -> [V; N] {
    blocks.iter_mut().for_each(|block| *block = block.reorder(V::broadcast(REVERSE)));
    blocks
}

/// Adds messages to the sums, the octets of their blocks reversed. An empty message adds nothing.
#[inline(always)]
pub(super) fn absorb<V: Blocks, const N: usize, const L: usize>(
    polyval: &polyval::Keys<V, N>,
    sums: &mut [V; N],
    messages: &Messages<impl Fn(usize) -> *const u8>,
) {
    for step in 0..messages.count_before_last() {
        *sums = polyval.absorb_blocks(sums, &reversed(messages.blocks(step)));
    }
    if messages.size() > 0 {
        *sums = polyval.absorb_blocks(sums, &reversed(messages.last::<V, N, L>(Padding::Zeros)));
    }
}
