//! ANTP/1, our profile of "Authenticated Network Time Synchronization" (USENIX Security 2016): both ends of its three
//! phases. The specification is `docs/antp.md`.
//!
//! - [`state_key`], [`nonce`], [`state`]: what makes the server stateless. It seals its state for itself and hands it
//!   to the client.
//! - [`source`]: whom a C1 is for.
//! - [`transcript`]: the hashes and tags that bind the phases together.
//! - `server`: answers to m1, m3 and m5, and nothing kept of any client.
//! - `client`: the three phases, when to go through them again, and what is never accepted.
//! - [`sticky`]: servers that were once asked with ANTP are never asked without it.
//!
//! What is absent: sockets, limits on rates, and the validation of certificates, which the caller does between
//! negotiation and key exchange.

#[cfg(feature = "client")]
pub mod client;
pub mod nonce;
#[cfg(feature = "server")]
pub mod server;
pub mod source;
pub mod state;
pub mod state_key;
pub mod sticky;
pub mod transcript;

use authentick_crypto::kem::Kem;
use authentick_wire::antp::Suite;
use authentick_wire::time::NtpTime;

/// The KEM of a suite; `None` for a suite that is not known here.
#[must_use]
pub const fn kem(suite: Suite) -> Option<Kem> {
    match suite {
        Suite::RSA_PKCS1 => Some(Kem::RsaPkcs1),
        Suite::P256 => Some(Kem::P256),
        Suite::RSA_OAEP => Some(Kem::RsaOaep),
        Suite::X25519 => Some(Kem::X25519),
        Suite(_) => None,
    }
}

/// The whole seconds of an instant, as sealed state holds them: they wrap with the era.
#[must_use]
pub const fn seconds(time: NtpTime) -> u32 {
    (time.to_bits() >> 32) as u32
}
