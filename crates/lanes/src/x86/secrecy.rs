//! What tells valgrind's memcheck which octets are secret, so that it sees whether a branch or an address depends on
//! them.
//!
//! Secrets are declared uninitialised. Memcheck follows such octets through every computation, and complains of jumps
//! and addresses that depend on them; it complains of nothing else here. The tests that declare some are those of
//! `authentick-crypto`; `cargo xtask ci --only memcheck` runs them. Elsewhere a declaration does nothing.

use std::arch::asm;

/// `VG_USERREQ__MAKE_MEM_UNDEFINED` and `VG_USERREQ__MAKE_MEM_DEFINED` of memcheck.h.
const UNDEFINED: u64 = 0x4d43_0001;
#[cfg(debug_assertions)]
const DEFINED: u64 = 0x4d43_0002;
/// `VG_USERREQ__COUNT_ERRORS` of valgrind.h.
const COUNT: u64 = 0x1201;

/// A client request to memcheck, and its answer; does nothing elsewhere, where the answer is zero.
fn request(code: u64, start: *mut u8, size: usize) -> u64 {
    let arguments = [code, start as u64, size as u64, 0, 0, 0];
    let answer;
    // SAFETY: rotations by 128 bits in sum leave the register as it was, and the exchange does nothing: valgrind.h,
    // "special instruction preamble". Valgrind reads `arguments` and changes no memory that the program sees.
    unsafe {
        asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") arguments.as_ptr(), inout("rdx") 0_u64 => answer, options(nostack)
        );
    }
    answer
}

/// Declares octets secret.
pub fn make_secret(octets: &mut [u8]) {
    request(UNDEFINED, octets.as_mut_ptr(), octets.len());
}

/// Declares public whether a tag is right, one or zero. What it was computed from stays secret.
#[inline(always)]
#[must_use]
pub fn made_public(verdict: u8) -> u8 {
    // Builds with assertions are those that memcheck runs.
    #[cfg(debug_assertions)]
    let verdict = {
        let mut verdict = verdict;
        request(DEFINED, &raw mut verdict, 1);
        verdict
    };
    verdict
}

/// How often memcheck has complained of this process so far; zero elsewhere.
#[must_use]
pub fn complaint_count() -> u64 {
    request(COUNT, std::ptr::null_mut(), 0)
}
