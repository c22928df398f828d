//! HMAC (RFC 2104) with a kept key.

use hmac::digest::{KeyInit, Mac, OutputSizeUser};
use hmac::{EagerHash, Hmac};

use super::MAC_TAG_SIZE_MAX;

/// Both digests, inner and outer, that have read their pads.
pub(super) struct Key<D: EagerHash>(Hmac<D>);

impl<D: EagerHash> Key<D> {
    /// A key of any size.
    pub(super) fn new(octets: &[u8]) -> Self {
        Key(Hmac::new_from_slice(octets).expect("HMAC takes keys of any size"))
    }
}
impl<D: EagerHash> Key<D>
where
    Hmac<D>: Mac + Clone,
{
    /// Writes the untruncated output to the first octets of `out`.
    #[inline]
    pub(super) fn tag(&self, message: &[u8], out: &mut [u8; MAC_TAG_SIZE_MAX]) {
        let mut mac = self.0.clone();
        mac.update(message);
        let tag = mac.finalize().into_bytes();
        out[..<Hmac<D> as OutputSizeUser>::output_size()].copy_from_slice(&tag);
    }
}
