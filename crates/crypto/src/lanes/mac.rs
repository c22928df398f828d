//! Packets that wait for others of their shape, to compute or to verify their MACs together.

use std::ptr;

use super::group::{Groups, Work};
use super::{KeptKey, Path};
use crate::mac::MacAlgorithm;

/// A MAC that has lanes. Its tag has sixteen octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mac {
    Cmac128,
    Cmac256,
    Gmac128,
    GmacSiv128,
}

/// Octets of a tag.
pub(crate) const TAG_SIZE: usize = 16;

/// Octets of a nonce, where there is one.
pub(super) const NONCE_SIZE: usize = 12;

impl Mac {
    /// What an algorithm is here; `None` if its packets run one after another.
    pub(crate) const fn of(algorithm: MacAlgorithm) -> Option<Self> {
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

impl Work for Verb {
    type Shape = Shape;
    type Lane = Lane;
    const START: Shape = Shape { mac: Mac::Cmac128, size: 0 };

    #[inline(always)]
    unsafe fn run(self, path: Path, shape: &Shape, lanes: &[Lane]) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as promised to this function.
        unsafe {
            super::entry::mac::run(path, self, shape, lanes);
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("{path} has no lanes for {:?} of {} octets, {}", shape.mac, shape.size, lanes.len());
    }
}

/// What all jobs have: a key, a nonce, which is empty if the algorithm takes none, and a message.
#[derive(Clone, Copy)]
pub(crate) struct Packet<'a> {
    pub(crate) mac: Mac,
    pub(crate) key: &'a KeptKey,
    pub(crate) nonce: &'a [u8],
    pub(crate) message: &'a [u8],
}

impl Packet<'_> {
    #[inline(always)]
    fn shape(&self) -> Shape {
        Shape { mac: self.mac, size: self.message.len() }
    }

    #[inline(always)]
    fn lane(&self, tag: *mut [u8; TAG_SIZE], genuine: *mut bool) -> Lane {
        Lane { key: self.key, nonce: self.nonce.as_ptr(), message: self.message.as_ptr(), tag, genuine }
    }
}

/// Tags that wait to be computed.
pub(crate) struct TagQueue<'a>(Groups<'a, Verb>);

impl<'a> TagQueue<'a> {
    #[inline(always)]
    pub(crate) fn new(path: Path) -> Self {
        TagQueue(Groups::new(path, Verb::Tag))
    }

    /// Adds a job, whose key was expanded for its algorithm and whose nonce has that one's size; runs its group when
    /// that is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, packet: Packet<'a>, tag: &'a mut [u8; TAG_SIZE]) {
        self.0.push(packet.shape(), packet.lane(tag, ptr::null_mut()));
    }

    /// Runs what waits.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        self.0.flush();
    }
}

/// Tags that wait to be verified.
pub(crate) struct VerifyQueue<'a>(Groups<'a, Verb>);

impl<'a> VerifyQueue<'a> {
    #[inline(always)]
    pub(crate) fn new(path: Path) -> Self {
        VerifyQueue(Groups::new(path, Verb::Verify))
    }

    /// As [`TagQueue::push`].
    #[inline(always)]
    pub(crate) fn push(&mut self, packet: Packet<'a>, tag: &'a [u8; TAG_SIZE], genuine: &'a mut bool) {
        self.0.push(packet.shape(), packet.lane(ptr::from_ref(tag).cast_mut(), genuine));
    }

    /// Runs what waits.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        self.0.flush();
    }
}
