//! Packets that wait for others of their shape, to compute or to verify their MACs together.

use std::ptr;

use super::group::{Groups, Work};
use super::kept::KeptKey;
use super::{Path, entry};
use crate::mac::MacAlgorithm;

/// A MAC that has lanes. Its tag has sixteen octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mac {
    Cmac128,
    Cmac256,
    Gmac128,
    GmacSiv128,
}

/// Octets of a tag.
const TAG_SIZE: usize = 16;

/// Octets of a nonce, where there is one.
pub(super) const NONCE_SIZE: usize = 12;

impl Mac {
    /// What an algorithm is here; `None` if its packets run one after another.
    const fn of(algorithm: MacAlgorithm) -> Option<Self> {
        match algorithm {
            MacAlgorithm::Cmac128 => Some(Mac::Cmac128),
            MacAlgorithm::Cmac256 => Some(Mac::Cmac256),
            MacAlgorithm::Gmac128 => Some(Mac::Gmac128),
            MacAlgorithm::GmacSiv128 => Some(Mac::GmacSiv128),
            MacAlgorithm::Md5
            | MacAlgorithm::Sha1
            | MacAlgorithm::Sha256
            | MacAlgorithm::Sha384
            | MacAlgorithm::Sha512
            | MacAlgorithm::HmacMd5
            | MacAlgorithm::HmacSha224
            | MacAlgorithm::Poly1305 => None,
        }
    }
}

/// What decides which instructions a job takes. All of it is public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) mac: Mac,
    /// Octets of the message.
    pub(super) size: usize,
}

/// Where the parts of one job lie.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub(super) key: *const KeptKey,
    /// As many octets as the algorithm's nonces have. Not read if it takes none.
    pub(super) nonce: *const u8,
    pub(super) message: *const u8,
    /// The tag: only read when verifying.
    pub(super) tag: *mut [u8; TAG_SIZE],
    /// Written when verifying, else null.
    pub(super) genuine: *mut bool,
}

/// What is done to the jobs of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Tag,
    Verify,
}

impl Work for (Path, Verb) {
    type Shape = Shape;
    type Lane = Lane;
    const START: Shape = Shape { mac: Mac::Cmac128, size: 0 };

    #[inline(always)]
    unsafe fn run(self, shape: &Shape, lanes: &[Lane]) {
        // SAFETY: as promised to this function.
        unsafe { entry::mac::run(self.0, self.1, shape, lanes) };
    }
}

/// A key of a MAC that has lanes.
pub(crate) struct MacKey {
    mac: Mac,
    expanded: Box<KeptKey>,
}

impl MacKey {
    /// Expands a key, of the size that its algorithm's keys have; `None` if the algorithm or the processor has no
    /// lanes.
    pub(crate) fn expand(algorithm: MacAlgorithm, octets: &[u8]) -> Option<Self> {
        let mac = Mac::of(algorithm)?;
        Some(MacKey { mac, expanded: Box::new(entry::mac::expand(mac, octets)?) })
    }
}

/// Shape and lane of a job. The nonce is empty if the algorithm takes none.
#[inline(always)]
fn job(
    key: &MacKey,
    nonce: &[u8],
    message: &[u8],
    tag: *mut [u8; TAG_SIZE],
    genuine: *mut bool,
) -> (Shape, Lane) {
    let shape = Shape { mac: key.mac, size: message.len() };
    (
        shape,
        Lane {
            key: &raw const *key.expanded,
            nonce: nonce.as_ptr(),
            message: message.as_ptr(),
            tag,
            genuine,
        },
    )
}

/// Tags that wait to be computed.
pub(crate) struct TagQueue<'a>(Groups<'a, (Path, Verb)>);

impl<'a> TagQueue<'a> {
    #[inline(always)]
    pub(crate) fn new(path: Path) -> Self {
        TagQueue(Groups::new((path, Verb::Tag)))
    }

    /// Adds a job, whose nonce is what its algorithm takes, or empty if it takes none; runs its group when that is
    /// full.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        key: &'a MacKey,
        nonce: &'a [u8],
        message: &'a [u8],
        tag: &'a mut [u8; TAG_SIZE],
    ) {
        let (shape, lane) = job(key, nonce, message, tag, ptr::null_mut());
        self.0.push(shape, lane);
    }

    /// Runs what waits.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        self.0.flush();
    }
}

/// Tags that wait to be verified.
pub(crate) struct VerifyQueue<'a>(Groups<'a, (Path, Verb)>);

impl<'a> VerifyQueue<'a> {
    #[inline(always)]
    pub(crate) fn new(path: Path) -> Self {
        VerifyQueue(Groups::new((path, Verb::Verify)))
    }

    /// As [`TagQueue::push`].
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        key: &'a MacKey,
        nonce: &'a [u8],
        message: &'a [u8],
        tag: &'a [u8; TAG_SIZE],
        genuine: &'a mut bool,
    ) {
        let (shape, lane) = job(key, nonce, message, ptr::from_ref(tag).cast_mut(), genuine);
        self.0.push(shape, lane);
    }

    /// Runs what waits.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        self.0.flush();
    }
}
