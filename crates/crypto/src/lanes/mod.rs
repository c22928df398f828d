//! AEAD over many independent packets at once, with the AES instructions of x86-64.
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
//! - `siv`, `gcm_siv`: AES-SIV-CMAC and AES-128-GCM-SIV;
//! - `entry`: one function per path and algorithm, into which all this is inlined.
//!
//! No branch and no address depends on a secret; lengths and whether a tag was right are public. Round keys are
//! overwritten once per call.

#[cfg(target_arch = "x86_64")]
mod block;
#[cfg(target_arch = "x86_64")]
mod cmac;
#[cfg(target_arch = "x86_64")]
mod counter;
#[cfg(target_arch = "x86_64")]
mod entry;
#[cfg(target_arch = "x86_64")]
mod floor;
#[cfg(target_arch = "x86_64")]
mod gcm_siv;
mod group;
#[cfg(target_arch = "x86_64")]
mod message;
mod path;
#[cfg(target_arch = "x86_64")]
mod polyval;
#[cfg(target_arch = "x86_64")]
mod schedule;
#[cfg(all(test, target_arch = "x86_64"))]
mod secrecy;
#[cfg(target_arch = "x86_64")]
mod siv;

pub(crate) use group::{OpenQueue, SealQueue};
pub use path::{Path, path};

#[cfg(target_arch = "x86_64")]
pub(crate) use siv::SivKey;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) enum SivKey {}

impl SivKey {
    /// Expands a key of AES-SIV-CMAC-256; `None` on a processor without lanes.
    pub(crate) fn expand(key: &crate::aead::Key) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return entry::expand(key);
        #[cfg(not(target_arch = "x86_64"))]
        return None;
    }
}

/// Encrypts `count` blocks in each lane of a path, from registers to registers, and returns how many these are; `None`
/// for the portable path, which has no lanes. The floor of benchmarks.
///
/// # Panics
/// If the processor lacks what the path needs.
#[doc(hidden)]
#[must_use]
pub fn encrypt_alone_on(path: Path, count: usize) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if path != Path::Portable {
        return entry::encrypt_alone(path, count);
    }
    let _ = (path, count);
    None
}

/// Tells which jobs are genuine, and zeroes the texts of those that are not.
///
/// # Safety
/// The first `used` lanes are of jobs of this shape, to be opened.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn settle<const L: usize>(
    differences: &message::PerLane<L>,
    shape: &group::Shape,
    lanes: &[group::Lane; L],
    used: usize,
) {
    use subtle::ConstantTimeEq;
    for (lane, difference) in lanes[..used.min(L)].iter().zip(differences.0) {
        let difference = u128::from_ne_bytes(difference);
        let is_equal = (difference as u64 | (difference >> 64) as u64).ct_eq(&0).unwrap_u8();
        // From here on it is public.
        #[cfg(test)]
        let is_equal = secrecy::made_public(is_equal);
        // SAFETY: the job borrows this place alone.
        unsafe { *lane.genuine = is_equal == 1 };
        if is_equal != 1 {
            // SAFETY: the text has as many octets, and the job borrows them alone.
            unsafe { std::ptr::write_bytes(lane.text, 0, shape.text) };
        }
    }
}
