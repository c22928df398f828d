//! What stands for the lanes where a build has none: keys of which there is no value, and queues that nothing enters.

use std::marker::PhantomData;

use crate::{
    GcmOpen, HashPath, HmacTag, HmacVerify, Key, Mac, MacTag, MacVerify, Open, Path, PathKind, Seal,
};

pub use sha2::block_api::compress512 as compress_sha512;

/// No path of this build has lanes.
#[doc(hidden)]
#[must_use]
pub fn encrypt_alone_on(_: Path, _: usize) -> Option<usize> {
    None
}

/// No path of this build has lanes.
#[doc(hidden)]
#[must_use]
pub fn hash_alone_on(_: HashPath, _: usize) -> Option<usize> {
    None
}

/// No path of this build has lanes.
#[doc(hidden)]
#[must_use]
pub fn digest_on(_: HashPath, _: &[[u8; 64]]) -> Option<Vec<[u32; 8]>> {
    None
}

#[doc(hidden)]
pub mod secrecy {
    //! What tests of secrecy say to memcheck, which is not asked here.

    /// Nothing is declared.
    pub fn make_secret(_: &mut [u8]) {}

    /// Nothing is declared.
    #[inline(always)]
    #[must_use]
    pub fn made_public(verdict: u8) -> u8 {
        verdict
    }

    /// Nothing is complained of.
    #[must_use]
    pub fn complaint_count() -> u64 {
        0
    }
}

pub(crate) enum SivKey {}

impl SivKey {
    pub(crate) fn expand(_: &Key) -> Option<Self> {
        None
    }
}

/// A key that no build without lanes expands.
pub enum MacKey {}

impl MacKey {
    /// No key is expanded.
    #[must_use]
    pub fn expand(_: Mac, _: &[u8]) -> Option<Self> {
        None
    }
}

/// A job that would have lanes in another build.
pub trait LaneJob {
    /// The kind of paths that it can take.
    type Path: PathKind;
}

macro_rules! jobs {
    ($($job:ident: $path:ident),*) => {
        $(impl LaneJob for $job<'_> {
            type Path = $path;
        })*
    };
}

jobs!(Seal: Path, Open: Path, GcmOpen: Path, MacTag: Path, MacVerify: Path, HmacTag: HashPath, HmacVerify: HashPath);

/// Jobs that no build without lanes has.
pub struct Queue<J>(PhantomData<J>);

impl<J: LaneJob> Queue<J> {
    /// No jobs.
    #[must_use]
    pub fn new(_: J::Path) -> Self {
        Queue(PhantomData)
    }

    /// Adds a job.
    ///
    /// # Panics
    /// Always.
    pub fn push(&mut self, _: J) {
        unreachable!("the portable path has no lanes")
    }

    /// Runs nothing.
    pub fn flush(&mut self) {}
}

/// No path of this build has lanes.
pub fn gcm_seal(
    _: Path,
    key: &MacKey,
    _nonce: &[u8; 12],
    _associated: &[u8],
    _text: &mut [u8],
    _tag: &mut [u8; 16],
) {
    match *key {}
}
