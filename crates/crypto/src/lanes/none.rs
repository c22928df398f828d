//! What stands for the lanes where a build has none: keys of which there is no value, and queues that nothing enters.

use std::marker::PhantomData;

use crate::aead::{Key, Open, Seal, Text};
use crate::kdf::{HmacKey, HmacText};
use crate::mac::MacAlgorithm;

mod hash_path;
mod path;

pub use hash_path::{HashPath, hash_path};
pub use path::{Path, path};
pub(crate) use sha2::block_api::compress512 as compress_sha512;

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

pub(crate) enum SivKey {}

impl SivKey {
    pub(crate) fn expand(_: &Key) -> Option<Self> {
        None
    }
}

pub(crate) enum MacKey {}

impl MacKey {
    pub(crate) fn expand(_: MacAlgorithm, _: &[u8]) -> Option<Self> {
        None
    }
}

macro_rules! queue {
    ($name:ident($path:ty; $($argument:ident: $type:ty),*) $never:block) => {
        pub(crate) struct $name<'a>(PhantomData<&'a mut [u8]>);

        impl<'a> $name<'a> {
            pub(crate) fn new(_: $path) -> Self {
                $name(PhantomData)
            }

            pub(crate) fn push(&mut self, $($argument: $type),*) $never

            pub(crate) fn flush(&mut self) {}
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

pub(crate) fn gcm_seal(
    _: Path,
    key: &MacKey,
    _nonce: &[u8; 12],
    _associated: &[u8],
    _text: &mut [u8],
    _tag: &mut [u8; 16],
) {
    match *key {}
}

pub(crate) struct GcmOpenQueue<'a>(PhantomData<&'a mut [u8]>);

impl<'a> GcmOpenQueue<'a> {
    pub(crate) fn new(_: Path) -> Self {
        GcmOpenQueue(PhantomData)
    }

    pub(crate) fn push(
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

    pub(crate) fn flush(&mut self) {}
}
