//! AEADs and MACs over many independent packets at once, with the AES and SHA instructions of x86-64.
//!
//! The crate exists so that all of this `unsafe` is in one place, and is compiled once for all who test what is built
//! on it: `authentick-crypto`, which adds the portable path and is what others use. It has no path but those with
//! lanes.
//!
//! A build for another processor has `none.rs` in the place of `x86`. So has one with `--cfg authentick_lanes="none"`,
//! which is how the portable path is tested without any instruction that is made for cryptography
//! (`cargo xtask ci --only portable`).

mod algorithm;
mod hash_path;
mod job;
mod key;
#[cfg(any(not(target_arch = "x86_64"), authentick_lanes = "none"))]
mod none;
mod path;
#[cfg(all(target_arch = "x86_64", not(authentick_lanes = "none")))]
#[expect(unsafe_code, reason = "loads, stores and the entry to AES instructions")]
mod x86;

pub use algorithm::{Algorithm, HmacDigest, MAC_NONCE_SIZE, Mac, TAG_SIZE};
pub use hash_path::{HashPath, hash_path};
pub use job::{
    GcmOpen, HmacKey, HmacTag, HmacText, HmacVerify, LANE_TEXT_SIZE_MAX, MacTag, MacVerify, Open, Seal, Text,
};
pub use key::{CachedKey, Key, KeyRef};
#[cfg(any(not(target_arch = "x86_64"), authentick_lanes = "none"))]
use none as chosen;
pub use path::{Path, PathKind, path};
#[cfg(all(target_arch = "x86_64", not(authentick_lanes = "none")))]
use x86 as chosen;

use chosen::SivKey;
pub use chosen::{LaneJob, MacKey, Queue, compress_sha512, gcm_seal};
#[doc(hidden)]
pub use chosen::{digest_on, encrypt_alone_on, hash_alone_on, secrecy};

/// Overwrites a secret with zeros, in a way that is not optimised out.
#[inline]
pub fn wipe(octets: &mut [u8]) {
    octets.fill(0);
    zeroize::optimization_barrier(octets);
}
