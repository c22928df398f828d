//! HMAC-SHA256 of many texts at once.

use authentick_lanes::{self as lanes, HashPath, HmacKey, HmacText, LANE_TEXT_SIZE_MAX, Queue};

use super::{HASH_SIZE, hmac_sha256, verify_hmac_sha256};
use crate::batch::{Batch, Job};

/// Octets of the longest key that HMAC takes as it is.
const KEY_SIZE_MAX: usize = 64;

/// One tag to compute.
pub struct HmacTag<'a> {
    /// The key, of any size.
    pub key: &'a [u8],
    /// What is authenticated: these, one behind the other.
    pub parts: &'a [&'a [u8]],
    /// The tag, out.
    pub tag: &'a mut [u8; HASH_SIZE],
}

/// One tag to verify.
pub struct HmacVerify<'a> {
    /// The key, of any size.
    pub key: &'a [u8],
    /// What was authenticated: these, one behind the other.
    pub parts: &'a [&'a [u8]],
    /// The tag that came with it.
    pub tag: &'a [u8; HASH_SIZE],
    /// Out: whether tag, text and key belong together.
    pub genuine: &'a mut bool,
}

/// Whether a job shares lanes with others. What does not is rare, and takes its turn alone.
#[inline(always)]
fn has_lanes(path: HashPath, key: &[u8], parts: &[&[u8]]) -> bool {
    let is_short = || key.len() <= KEY_SIZE_MAX && HmacText::Parts(parts).size() <= LANE_TEXT_SIZE_MAX;
    path != HashPath::Portable && is_short()
}

/// Tags of HMAC-SHA256 to compute. Those whose texts have as many blocks, and whose keys are equally long, run side by
/// side.
pub type HmacTagBatch<'a> = Batch<HmacTag<'a>>;

/// Tags of HMAC-SHA256 to verify, otherwise as [`HmacTagBatch`].
pub type HmacVerifyBatch<'a> = Batch<HmacVerify<'a>>;

impl<'a> Job for HmacTag<'a> {
    type Queue = Queue<lanes::HmacTag<'a>>;

    #[inline(always)]
    fn push(self, path: HashPath, queue: &mut Self::Queue) {
        let HmacTag { key, parts, tag } = self;
        match has_lanes(path, key, parts) {
            true => {
                queue.push(lanes::HmacTag { key: HmacKey::Octets(key), text: HmacText::Parts(parts), tag });
            }
            false => *tag = hmac_sha256(key, parts),
        }
    }
}

impl<'a> Job for HmacVerify<'a> {
    type Queue = Queue<lanes::HmacVerify<'a>>;

    #[inline(always)]
    fn push(self, path: HashPath, queue: &mut Self::Queue) {
        let HmacVerify { key, parts, tag, genuine } = self;
        match has_lanes(path, key, parts) {
            true => queue.push(lanes::HmacVerify {
                key: HmacKey::Octets(key),
                text: HmacText::Parts(parts),
                tag,
                genuine,
            }),
            false => *genuine = verify_hmac_sha256(key, parts, tag),
        }
    }
}
