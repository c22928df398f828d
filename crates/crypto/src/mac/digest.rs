//! Keyed digests of RFC 5905 section 7.3: the digest of key and packet, one behind the other.
//!
//! Not a MAC by today's measure: who knows a tag of MD5, SHA-1, SHA-256 or SHA-512 can go on where the digest stopped.
//! Truncation to 20 octets (NTPv4) or to 48 (SHA-384) prevents it.

use hmac::digest::{Digest, Output};

use super::MAC_TAG_SIZE_MAX;

/// A digest that has read the key.
pub(super) struct Key<D>(D);

impl<D: Digest + Clone> Key<D> {
    pub(super) fn new(octets: &[u8]) -> Self {
        Key(D::new_with_prefix(octets))
    }

    /// Writes the digest to the first octets of `out`.
    #[inline]
    pub(super) fn tag(&self, message: &[u8], out: &mut [u8; MAC_TAG_SIZE_MAX]) {
        let mut digest = self.0.clone();
        digest.update(message);
        let place: &mut Output<D> =
            (&mut out[..<D as Digest>::output_size()]).try_into().expect("no digest is longer");
        digest.finalize_into(place);
    }
}
