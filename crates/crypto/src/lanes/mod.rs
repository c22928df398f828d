//! AEADs and MACs over many independent packets at once, with the AES instructions of x86-64.
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
//! - `group`: jobs that wait for others of their shape;
//! - `message`: octets as chains of blocks;
//! - `cmac`, `counter`, `polyval`: the parts;
//! - `siv`, `gcm_siv`, `gcm`: AES-SIV-CMAC, AES-128-GCM-SIV and AES-128-GCM;
//! - `mac`, `kept`, `tag`: jobs of MACs, their keys, and CMAC, GMAC and GMAC-SIV;
//! - `word`, `sha256`, `hmac`: a register as words of many messages, SHA-256 over them, jobs of HMAC;
//! - `sha512`: one packet after another, but with an instruction of the processor's own;
//! - `entry`: one function per path and algorithm, into which all this is inlined.
//!
//! A build for another processor has `none.rs` in the place of this module. So has one with
//! `--cfg authentick_lanes="none"`, which is how the portable path is tested without any instruction that is made for
//! cryptography (`cargo xtask ci --only portable`).
//!
//! No branch and no address depends on a secret; lengths and whether a tag was right are public. Round keys are
//! overwritten once per call.

mod block;
mod cmac;
mod counter;
mod entry;
mod floor;
mod gcm;
mod gcm_siv;
mod group;
mod hash_path;
mod hmac;
mod kept;
mod mac;
mod message;
mod path;
mod polyval;
mod schedule;
#[cfg(test)]
mod secrecy;
mod sha256;
mod sha512;
mod siv;
mod tag;
mod word;

pub(crate) use gcm::{GcmOpenQueue, gcm_seal};
pub(crate) use group::{OpenQueue, SealQueue};
pub use hash_path::{HashPath, hash_path};
pub(crate) use hmac::{HmacTagQueue, HmacVerifyQueue};
pub(crate) use mac::{MacKey, TagQueue, VerifyQueue};
pub use path::{Path, path};
pub(crate) use sha512::compress as compress_sha512;
pub(crate) use siv::SivKey;

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

/// Tells which jobs are genuine, and zeroes the texts of those that are not.
///
/// # Safety
/// The first `used` lanes are of jobs to be opened, with texts of so many octets.
#[inline(always)]
unsafe fn settle<const L: usize>(
    differences: &message::PerLane<L>,
    text_size: usize,
    lanes: &[group::Lane; L],
    used: usize,
) {
    for (lane, difference) in lanes[..used.min(L)].iter().zip(differences.0) {
        let is_genuine = is_none(difference);
        // SAFETY: the job borrows this place alone.
        unsafe { *lane.genuine = is_genuine };
        if !is_genuine {
            // SAFETY: the text has as many octets, and the job borrows them alone.
            unsafe { std::ptr::write_bytes(lane.text, 0, text_size) };
        }
    }
}

/// Whether a computed and a claimed tag differ in nothing, which is public from here on.
#[inline(always)]
fn is_none(difference: block::Block) -> bool {
    use subtle::ConstantTimeEq;
    let difference = u128::from_ne_bytes(difference);
    let is_equal = (difference as u64 | (difference >> 64) as u64).ct_eq(&0).unwrap_u8();
    #[cfg(test)]
    let is_equal = secrecy::made_public(is_equal);
    is_equal == 1
}
