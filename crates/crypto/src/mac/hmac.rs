//! HMAC (RFC 2104) with a kept key.

use authentick_lanes::{HmacDigest, HmacKey};
use zeroize::Zeroize;

use super::MAC_TAG_SIZE_MAX;
use super::digest::{self, Digest, Sha224};

/// Both digests after their pads: all that is left of a packet are its own blocks and one for the outer digest.
pub(super) struct Key<D: Digest> {
    inner: digest::Key<D>,
    outer: digest::Key<D>,
}

impl<D: Digest> Key<D> {
    /// A key of any size. Section 2.
    pub(super) fn new(octets: &[u8]) -> Self {
        let mut block = D::EMPTY;
        let padded = block.as_mut();
        if octets.len() <= padded.len() {
            padded[..octets.len()].copy_from_slice(octets);
        } else {
            let mut short = [0; MAC_TAG_SIZE_MAX];
            digest::Key::<D>::new(octets).tag(&[], &mut short);
            padded[..D::SIZE].copy_from_slice(&short[..D::SIZE]);
            short.zeroize();
        }
        padded.iter_mut().for_each(|octet| *octet ^= 0x36);
        let inner = digest::Key::new(padded);
        padded.iter_mut().for_each(|octet| *octet ^= 0x36 ^ 0x5c);
        let outer = digest::Key::new(padded);
        padded.zeroize();
        Key { inner, outer }
    }

    /// Writes the untruncated output to the first octets of `out`.
    #[inline]
    pub(super) fn tag(&self, message: &[u8], out: &mut [u8; MAC_TAG_SIZE_MAX]) {
        let mut hash = [0; MAC_TAG_SIZE_MAX];
        self.inner.tag(message, &mut hash);
        self.outer.tag(&hash[..D::SIZE], out);
    }
}

impl Key<Sha224> {
    /// The key as the lanes take it.
    #[inline(always)]
    pub(super) fn for_lanes(&self) -> HmacKey<'_> {
        HmacKey::Kept(HmacDigest::Sha224, [self.inner.state(), self.outer.state()])
    }
}
