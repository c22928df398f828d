//! What tells valgrind's memcheck which octets are secret, so that it sees whether a branch or an address depends on
//! them.
//!
//! Secrets are declared uninitialised. Memcheck follows such octets through every computation, and complains of jumps
//! and addresses that depend on them; it complains of nothing else here. The tests that declare some are those of
//! `authentick-crypto`; `cargo xtask ci --only memcheck` runs them. Elsewhere a declaration does nothing.

use std::arch::asm;

/// `VG_USERREQ__MAKE_MEM_UNDEFINED` and `VG_USERREQ__MAKE_MEM_DEFINED` of memcheck.h.
const UNDEFINED: u64 = 0x4d43_0001;
const DEFINED: u64 = 0x4d43_0002;

/// A client request to memcheck; does nothing elsewhere.
fn request(code: u64, start: *mut u8, size: usize) {
    let arguments = [code, start as u64, size as u64, 0, 0, 0];
    // SAFETY: rotations by 128 bits in sum leave the register as it was, and the exchange does nothing: valgrind.h,
    // "special instruction preamble". Valgrind reads `arguments` and changes no memory that the program sees.
    unsafe {
        asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") arguments.as_ptr(), inout("rdx") 0_u64 => _, options(nostack)
        );
    }
}

/// Declares octets secret.
pub fn make_secret(octets: &mut [u8]) {
    request(UNDEFINED, octets.as_mut_ptr(), octets.len());
}

/// Declares public whether a tag is right.
#[cfg(debug_assertions)]
pub(super) fn made_public(mut is_equal: u8) -> u8 {
    request(DEFINED, &raw mut is_equal, 1);
    is_equal
}
