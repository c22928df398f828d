//! AES-128-GCM (NIST SP 800-38D) over one job per lane, all under one key that is kept.

use std::ptr;

use super::block::{Block, Blocks};
use super::cmac::{REVERSE, add};
use super::counter::{Position, counter_mode};
use super::group::{Groups, Lane, Verb, Work};
use super::kept::{Kept, KeptKey};
use super::mac::{MacKey, NONCE_SIZE};
use super::message::{Messages, Padding, PerLane};
use super::schedule::RoundKeys;
use super::{Path, entry, polyval, settle};
use crate::aead::Text;
use crate::gcm::GCM_TAG_SIZE;

/// Words of an AES-128 key.
const WORDS: usize = 4;

/// What decides which instructions a job takes. All of it is public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// The key of all jobs, expanded as for GMAC.
    key: *const KeptKey,
    /// Octets of the associated data.
    associated: usize,
    /// Octets of the text.
    text: usize,
}

/// What is done to the jobs of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Gcm(Verb);

impl Work for (Path, Gcm) {
    type Shape = Shape;
    type Lane = Lane;
    const START: Shape = Shape { key: ptr::null(), associated: 0, text: 0 };

    #[inline(always)]
    unsafe fn run(self, shape: &Shape, lanes: &[Lane]) {
        // SAFETY: as promised to this function.
        unsafe { entry::gcm::run(self.0, self.1.0, shape, lanes) };
    }
}

/// Seals one text under a key of GMAC.
pub(crate) fn gcm_seal(
    path: Path,
    key: &MacKey,
    nonce: &[u8; NONCE_SIZE],
    associated: &[u8],
    text: &mut [u8],
    tag: &mut [u8; GCM_TAG_SIZE],
) {
    let (shape, lane) = job(key, nonce, associated, text.into(), tag, ptr::null_mut());
    // SAFETY: the lane is of a job of this shape, which is borrowed.
    unsafe { (path, Gcm(Verb::Seal)).run(&shape, &[lane]) };
}

/// Texts that wait to be opened.
pub(crate) struct GcmOpenQueue<'a>(Groups<'a, (Path, Gcm)>);

impl<'a> GcmOpenQueue<'a> {
    #[inline(always)]
    pub(crate) fn new(path: Path) -> Self {
        GcmOpenQueue(Groups::new((path, Gcm(Verb::Open))))
    }

    /// Adds a job under a key of GMAC; runs its group when that is full.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        key: &'a MacKey,
        nonce: &'a [u8; NONCE_SIZE],
        associated: &'a [u8],
        text: Text<'a>,
        tag: &'a [u8; GCM_TAG_SIZE],
        genuine: &'a mut bool,
    ) {
        let (shape, lane) = job(key, nonce, associated, text, ptr::from_ref(tag).cast_mut(), genuine);
        self.0.push(shape, lane);
    }

    /// Runs what waits.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        self.0.flush();
    }
}

#[inline(always)]
fn job(
    key: &MacKey,
    nonce: &[u8; NONCE_SIZE],
    associated: &[u8],
    mut text: Text<'_>,
    tag: *mut [u8; GCM_TAG_SIZE],
    genuine: *mut bool,
) -> (Shape, Lane) {
    let shape = Shape { key: key.kept(), associated: associated.len(), text: text.len() };
    let lane = Lane {
        key: ptr::null(),
        nonce: nonce.as_ptr(),
        associated: associated.as_ptr(),
        source: text.get_in().as_ptr(),
        text: text.get_out().as_mut_ptr(),
        tag,
        genuine,
    };
    (shape, lane)
}

/// Runs jobs.
///
/// # Safety
/// The lanes are of jobs of this shape, and the key is the caller's.
#[inline(always)]
pub(super) unsafe fn run<V: Blocks, const N: usize, const L: usize>(
    verb: Verb,
    shape: &Shape,
    lanes: &[Lane; L],
    used: usize,
) {
    // SAFETY: the caller says so.
    let key: &KeptKey = unsafe { &*shape.key };
    // SAFETY: a job has a nonce of so many octets.
    let nonces = unsafe { Messages::new(NONCE_SIZE, |lane| lanes[lane].nonce) };
    let nonces: [V; N] = nonces.last::<V, N, L>(Padding::Zeros);
    // Section 7.1: the counter that masks the tag is 1, the text's begin with 2.
    let counters = |number: u8| {
        let counter = V::broadcast(u128::from(number).to_be_bytes());
        add(nonces, &[counter; N])
    };
    let mut masks = counters(1);
    key.encrypt::<WORDS>(0, &mut masks);
    match verb {
        Verb::Seal => {
            // SAFETY: the caller says so.
            unsafe {
                counter_mode::<V, N, L, WORDS>(&key, 0, &counters(2), Position::End, shape.text, lanes);
            }
            // SAFETY: the caller says so.
            let tags =
                unsafe { tags::<V, N, L>(key, &masks, shape, lanes, |lane| lanes[lane].text.cast_const()) };
            for (index, tag) in tags.into_iter().enumerate() {
                // SAFETY: a tag has sixteen octets, and the job borrows it alone.
                unsafe { tag.scatter(|lane| lanes[lane].tag.cast(), index) };
            }
        }
        Verb::Open => {
            // SAFETY: the caller says so.
            let mut tags = unsafe { tags::<V, N, L>(key, &masks, shape, lanes, |lane| lanes[lane].source) };
            for (index, tag) in tags.iter_mut().enumerate() {
                // SAFETY: a tag has sixteen octets.
                *tag = tag.xor(unsafe { V::gather(|lane| lanes[lane].tag.cast_const().cast(), index) });
            }
            // SAFETY: the caller says so.
            unsafe {
                counter_mode::<V, N, L, WORDS>(&key, 0, &counters(2), Position::End, shape.text, lanes);
            }
            // SAFETY: the caller says so.
            unsafe { settle(&PerLane::<L>::of(&tags), shape.text, lanes, used) };
        }
    }
}

/// The tags of associated data and ciphertexts, which lie at `text`.
///
/// # Safety
/// The lanes have this shape.
#[inline(always)]
unsafe fn tags<V: Blocks, const N: usize, const L: usize>(
    key: &KeptKey,
    masks: &[V; N],
    shape: &Shape,
    lanes: &[Lane; L],
    text: impl Fn(usize) -> *const u8,
) -> [V; N] {
    let polyval = polyval::Keys::from_parts([key.masks(0), key.masks(1)]);
    let mut sums = [V::zero(); N];
    // SAFETY: the caller says so.
    let headers = unsafe { Messages::new(shape.associated, |lane| lanes[lane].associated) };
    absorb::<V, N, L>(&polyval, &mut sums, &headers);
    // SAFETY: the caller says so.
    let texts = unsafe { Messages::new(shape.text, text) };
    absorb::<V, N, L>(&polyval, &mut sums, &texts);
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
