//! Authenticated encryption and MACs over batches of independent packets, key encapsulation, and where random octets
//! come from.
//!
//! The only crate that calls cryptographic primitives (TLS keeps its own provider inside `ke`). It knows no NTP: a
//! job is a key, a nonce, associated data and a text, or a key, a nonce and a message.
//!
//! Secrets are zeroised when dropped and print as their algorithm alone. Tags are compared in constant time, and no
//! branch or table index depends on a secret.

pub mod aead;
pub mod batch;
pub mod entropy;
pub mod gcm;
pub mod hash;
pub mod kdf;
pub mod kem;
pub mod mac;
mod verdict;

pub use authentick_lanes::{HashPath, Path, hash_path, path, wipe};
#[doc(hidden)]
pub use authentick_lanes::{encrypt_alone_on, hash_alone_on};

pub use aead::{Algorithm, CachedKey, Key, KeyRef, Open, OpenBatch, Seal, SealBatch, TAG_SIZE, Text};
pub use batch::{Batch, run_batch, run_batch_on};
pub use entropy::Entropy;
pub use hash::KeyedHash;
