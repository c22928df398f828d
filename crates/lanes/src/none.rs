//! What stands for the lanes where a build has none: keys of which there is no value, and queues that nothing enters.

use std::marker::PhantomData;

use crate::{HashPath, HmacKey, HmacText, Key, Mac, Open, Path, Seal, Text};

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

macro_rules! queue {
    ($name:ident($path:ty; $($argument:ident: $type:ty),*) $never:block) => {
        /// Jobs that no build without lanes has.
        pub struct $name<'a>(PhantomData<&'a mut [u8]>);

        impl<'a> $name<'a> {
            /// No jobs.
            #[must_use]
            pub fn new(_: $path) -> Self {
                $name(PhantomData)
            }

            /// Adds a job.
            ///
            /// # Panics
            /// Always.
            pub fn push(&mut self, $($argument: $type),*) $never

            /// Runs nothing.
            pub fn flush(&mut self) {}
        }
    };
}

const PORTABLE: &str = "the portable path has no lanes";

queue!(SealQueue(Path; job: Seal<'a>) { unreachable!("{PORTABLE}, {:?}", job.key.parts().0) });
queue!(OpenQueue(Path; job: Open<'a>) { unreachable!("{PORTABLE}, {:?}", job.key.parts().0) });
queue!(TagQueue(Path; key: &'a MacKey, _nonce: &'a [u8], _message: &'a [u8], _tag: &'a mut [u8; 16]) {
    match *key {}
});
queue!(VerifyQueue(Path;
    key: &'a MacKey,
    _nonce: &'a [u8],
    _message: &'a [u8],
    _tag: &'a [u8; 16],
    _genuine: &'a mut bool
) {
    match *key {}
});
queue!(HmacTagQueue(HashPath; _key: HmacKey<'a>, text: HmacText<'a>, _tag: &'a mut [u8]) {
    unreachable!("{PORTABLE}, {}", text.size())
});
queue!(HmacVerifyQueue(
    HashPath;
    _key: HmacKey<'a>,
    text: HmacText<'a>,
    _tag: &'a [u8],
    _genuine: &'a mut bool
) {
    unreachable!("{PORTABLE}, {}", text.size())
});

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

/// Jobs that no build without lanes has.
pub struct GcmOpenQueue<'a>(PhantomData<&'a mut [u8]>);

impl<'a> GcmOpenQueue<'a> {
    /// No jobs.
    #[must_use]
    pub fn new(_: Path) -> Self {
        GcmOpenQueue(PhantomData)
    }

    /// Adds a job.
    pub fn push(
        &mut self,
        key: &'a MacKey,
        _nonce: &'a [u8; 12],
        _associated: &'a [u8],
        _text: Text<'a>,
        _tag: &'a [u8; 16],
        _genuine: &'a mut bool,
    ) {
        match *key {}
    }

    /// Runs nothing.
    pub fn flush(&mut self) {}
}
