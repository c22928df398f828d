//! Authenticated encryption and MACs over batches of independent packets, key encapsulation, and where random octets
//! come from.
//!
//! The only crate that calls cryptographic primitives (TLS keeps its own provider inside `ke`). It knows no NTP: a
//! job is a key, a nonce, associated data and a text, or a key, a nonce and a message.
//!
//! Secrets are zeroised when dropped and print as their algorithm alone. Tags are compared in constant time, and no
//! branch or table index depends on a secret.

pub mod aead;
pub mod entropy;
pub mod gcm;
pub mod hash;
pub mod kdf;
pub mod kem;
#[cfg(all(target_arch = "x86_64", not(authentick_lanes = "none")))]
#[expect(unsafe_code, reason = "loads, stores and the entry to AES instructions")]
mod lanes;
#[cfg(any(not(target_arch = "x86_64"), authentick_lanes = "none"))]
#[path = "lanes/none.rs"]
mod lanes;
pub mod mac;

pub use aead::{
    Algorithm, CachedKey, Key, KeyRef, Open, OpenBatch, Seal, SealBatch, TAG_SIZE, Text, open_batch,
    open_batch_on, seal_batch, seal_batch_on,
};
pub use entropy::Entropy;
pub use hash::KeyedHash;
pub use lanes::{HashPath, Path, encrypt_alone_on, hash_path, path};

/// Overwrites a secret with zeros, in a way that is not optimised out.
#[inline]
pub fn wipe(octets: &mut [u8]) {
    octets.fill(0);
    zeroize::optimization_barrier(octets);
}
