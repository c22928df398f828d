//! The lanes of x86-64.
//!
//! One AES block takes ten rounds, each of which must wait for the one before; a CMAC is a chain of such blocks. The
//! processor could start a round of another packet in every cycle of that wait. So the same step of up to sixteen
//! packets is done before the next step of any, and the wait is filled. Where an instruction works on two or four
//! blocks at once (VAES), these blocks are those of different packets.
//!
//! Each packet has a lane: its place in a register, and its register among those of the step. Keys and octets differ
//! between lanes, sizes do not. The algorithms are written once, over a register of any width:
//!
//! - `block`: the registers, and what the processor can do with them;
//! - `schedule`: round keys of all lanes, and one block in each;
//! - `group`, `aead`: jobs that wait for others of their shape, and those of AEADs;
//! - `message`: octets as chains of blocks;
//! - `cmac`, `counter`, `polyval`: the parts;
//! - `siv`, `gcm_siv`, `gcm`: AES-SIV-CMAC, AES-128-GCM-SIV and AES-128-GCM;
//! - `mac`, `kept`, `tag`: jobs of MACs, their keys, and CMAC, GMAC and GMAC-SIV;
//! - `word`, `sha256`, `hmac`: a register as words of many messages, SHA-256 over them, jobs of HMAC;
//! - `sha512`: one packet after another, but with an instruction of the processor's own;
//! - `entry`: one function per path, width and algorithm, into which all this is inlined;
//! - `floor`, `secrecy`: for benchmarks and tests.
//!
//! No branch and no address depends on a secret; lengths and whether a tag was right are public. Round keys are
//! overwritten once per call.

mod aead;
mod block;
mod cmac;
mod counter;
mod entry;
mod floor;
mod gcm;
mod gcm_siv;
mod group;
mod hmac;
mod kept;
mod mac;
mod message;
mod polyval;
mod schedule;
#[doc(hidden)]
pub mod secrecy;
mod sha256;
mod sha512;
mod siv;
mod tag;
mod word;

use aead::{AeadJob, AeadVerb};
use block::{Block, Blocks};
use cmac::add;
use message::PerLane;

pub use gcm::gcm_seal;
pub use group::{LaneJob, Queue};
pub use mac::MacKey;
pub use sha512::compress as compress_sha512;
pub(crate) use siv::SivKey;

use crate::{HashPath, Path};

/// Encrypts `count` blocks in each lane of a path, from registers to registers, and returns how many these are; `None`
/// for the portable path, which has no lanes. The floor of benchmarks.
///
/// # Panics
/// If the processor lacks what the path needs.
#[doc(hidden)]
#[must_use]
pub fn encrypt_alone_on(path: Path, count: usize) -> Option<usize> {
    entry::encrypt_alone(path, count)
}

/// The state of SHA-256 behind `blocks` in each lane of a path, which all read the same; `None` for the portable path,
/// which has no lanes. For tests of the compression alone.
///
/// # Panics
/// If the processor lacks what the path needs.
#[doc(hidden)]
#[must_use]
pub fn digest_on(path: HashPath, blocks: &[[u8; 64]]) -> Option<Vec<[u32; 8]>> {
    entry::hmac::digest(path, blocks)
}

/// Compresses `count` blocks of SHA-256 in each lane of a path, from registers to registers, and returns how many these
/// are; `None` for the portable path, which has no lanes. The floor of benchmarks.
///
/// # Panics
/// If the processor lacks what the path needs.
#[doc(hidden)]
#[must_use]
pub fn hash_alone_on(path: HashPath, count: usize) -> Option<usize> {
    entry::hmac::hash_alone(path, count)
}

/// The tags that jobs are opened with.
///
/// # Safety
/// Each job has a tag.
#[inline(always)]
unsafe fn claimed_tags<V: Blocks, const N: usize, const L: usize>(jobs: &[AeadJob; L]) -> [V; N] {
    let mut tags = [V::zero(); N];
    for (index, tag) in tags.iter_mut().enumerate() {
        // SAFETY: a tag has sixteen octets.
        *tag = unsafe { V::gather(|lane| jobs[lane].tag.cast_const().cast(), index) };
    }
    tags
}

/// Writes tags; or tells which of the first `used` jobs are genuine, and zeroes the texts of those that are not.
///
/// # Safety
/// The jobs are of this shape, and want this.
#[inline(always)]
unsafe fn finish<V: Blocks, const N: usize, const L: usize>(
    verb: AeadVerb,
    text_size: usize,
    tags: &[V; N],
    claimed: &[V; N],
    jobs: &[AeadJob; L],
    used: usize,
) {
    match verb {
        AeadVerb::Seal => {
            for (index, tag) in tags.iter().enumerate() {
                // SAFETY: a tag has sixteen octets, and the job borrows it alone.
                unsafe { tag.scatter(|lane| jobs[lane].tag.cast(), index) };
            }
        }
        AeadVerb::Open => {
            let differences = PerLane::<L>::of(&add(*tags, claimed)).0;
            for (job, difference) in jobs[..used.min(L)].iter().zip(differences) {
                let is_genuine = is_none(difference);
                // SAFETY: the job borrows this place alone.
                unsafe { *job.genuine = is_genuine };
                if !is_genuine {
                    // SAFETY: the text has as many octets, and the job borrows them alone.
                    unsafe { std::ptr::write_bytes(job.text(), 0, text_size) };
                }
            }
        }
    }
}

/// Whether a computed and a claimed tag differ in nothing, which is public from here on.
#[inline(always)]
fn is_none(difference: Block) -> bool {
    use subtle::ConstantTimeEq;
    let difference = u128::from_ne_bytes(difference);
    let is_equal = (difference as u64 | (difference >> 64) as u64).ct_eq(&0).unwrap_u8();
    secrecy::made_public(is_equal) == 1
}
