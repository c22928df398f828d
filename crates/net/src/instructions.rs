//! Hiding instructions from this process, so that what asks the processor for them does without; and a clean start for
//! who measures others' instructions.
//!
//! Linux can make CPUID fault (`arch_prctl`, `ARCH_SET_CPUID`), on processors that can. A handler then answers in its
//! stead, without the bits of AES, carry-less multiplication and SHA. Who asked before keeps what it was told, as do
//! libraries that ask when they are loaded: they need masks of their own. The instructions themselves go on working.

use std::io;

/// Hides AES-NI, PCLMULQDQ, VAES, VPCLMULQDQ, GFNI and the SHA extensions from whatever asks CPUID later, in this
/// thread and those that it starts. There is no way back.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] where the processor or the kernel cannot.
pub fn hide_aes_and_sha() -> io::Result<()> {
    #[cfg(target_arch = "x86_64")]
    {
        fault::install()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let message = "instructions can be hidden on x86-64 alone";
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }
}

/// Clears the upper halves of the vector registers. Code that uses them is to do so when it ends; until somebody does,
/// instructions of SSE, those for SHA among them, take up to twice as long. OpenSSL 3.0's ChaCha20-Poly1305 leaves that
/// to others. Intel 64 and IA-32 Architectures Optimization Reference Manual, "Mixing AVX Code With SSE Code".
pub fn clear_upper_halves() {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx")]
        fn clear() {
            std::arch::x86_64::_mm256_zeroupper();
        }
        if std::arch::is_x86_feature_detected!("avx") {
            // SAFETY: the processor has AVX, as was just asked; nothing of ours is in those halves.
            unsafe { clear() };
        }
    }
}

/// The four registers of CPUID, without what is hidden. `leaf` and `subleaf` are what was asked for. Intel SDM, volume
/// 2A, CPUID, leaves 1 and 7.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "nothing is hidden there"))]
fn without_hidden(leaf: u32, subleaf: u32, [eax, ebx, ecx, edx]: [u32; 4]) -> [u32; 4] {
    const PCLMULQDQ_AES: u32 = 1 << 1 | 1 << 25;
    const SHA: u32 = 1 << 29;
    const GFNI_VAES_VPCLMULQDQ: u32 = 1 << 8 | 1 << 9 | 1 << 10;
    const SHA512: u32 = 1;
    match (leaf, subleaf) {
        (1, _) => [eax, ebx, ecx & !PCLMULQDQ_AES, edx],
        (7, 0) => [eax, ebx & !SHA, ecx & !GFNI_VAES_VPCLMULQDQ, edx],
        (7, 1) => [eax & !SHA512, ebx, ecx, edx],
        _ => [eax, ebx, ecx, edx],
    }
}

#[cfg(target_arch = "x86_64")]
mod fault {
    //! The handler of the fault. It makes one system call and touches nothing but the registers of who faulted.

    use std::arch::x86_64::__cpuid_count;
    use std::io;

    use super::without_hidden;
    use crate::process;

    /// asm/prctl.h. libc does not name it.
    const ARCH_SET_CPUID: libc::c_long = 0x1012;
    /// The two octets of the instruction.
    const CPUID: [u8; 2] = [0x0f, 0xa2];

    /// Whether CPUID works in this thread.
    fn set_cpuid(works: bool) -> libc::c_long {
        // SAFETY: arch_prctl(2) takes two integers here, and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_CPUID, libc::c_long::from(works)) }
    }

    pub(super) fn install() -> io::Result<()> {
        // SAFETY: the handler changes registers, and makes system calls that may be made in one.
        unsafe { process::answer(libc::SIGSEGV, on_fault, 0) }?;
        match set_cpuid(false) {
            0 => Ok(()),
            // ENODEV: the processor cannot. EINVAL: the kernel does not know.
            _ => {
                let message = "this processor, its hypervisor or the kernel has no faulting CPUID";
                Err(io::Error::new(io::ErrorKind::Unsupported, message))
            }
        }
    }

    extern "C" fn on_fault(
        _signal: libc::c_int,
        _information: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    ) {
        // SAFETY: sigaction(2): with SA_SIGINFO the third argument points to a ucontext_t, ours until we return.
        let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        let at = registers[libc::REG_RIP as usize] as usize as *const [u8; 2];
        // SAFETY: the processor has just fetched an instruction from there, of which there is no shorter one than a
        // single octet. Where the second lies on a page that is not there, we fault again and end, as we would anyway.
        let instruction = unsafe { at.read_unaligned() };
        if instruction != CPUID {
            // Somebody else's fault: it comes again when we return, and ends the process.
            // SAFETY: signal(2) with the default action is always possible.
            unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
            return;
        }
        let [leaf, subleaf] =
            [libc::REG_RAX, libc::REG_RCX].map(|register| registers[register as usize] as u32);
        set_cpuid(true);
        let found = __cpuid_count(leaf, subleaf);
        set_cpuid(false);
        let shown = without_hidden(leaf, subleaf, [found.eax, found.ebx, found.ecx, found.edx]);
        let places = [libc::REG_RAX, libc::REG_RBX, libc::REG_RCX, libc::REG_RDX];
        for (register, value) in places.into_iter().zip(shown) {
            registers[register as usize] = i64::from(value);
        }
        registers[libc::REG_RIP as usize] += CPUID.len() as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// XGETBV tells which parts of the registers are in use. They are used in assembly: a compiler may keep 256 bits in
    /// two registers of 128, and clears upper halves itself before a function that uses them returns.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn upper_halves_are_clean_afterwards() {
        use std::arch::asm;
        fn are_in_use() -> bool {
            const IN_USE: u32 = 1;
            const UPPER_HALVES: u32 = 1 << 2;
            let parts: u32;
            // SAFETY: the caller has asked for XGETBV of this part; it changes the registers that are named.
            unsafe {
                asm!(
                    "xgetbv",
                    in("ecx") IN_USE, out("eax") parts, out("edx") _,
                    options(nomem, nostack, preserves_flags)
                );
            }
            parts & UPPER_HALVES != 0
        }
        fn use_them() {
            // SAFETY: the caller has asked for AVX; it changes one register and reads the integer.
            unsafe {
                asm!(
                    "vbroadcastss ymm0, [{}]",
                    in(reg) &1u32, out("xmm0") _,
                    options(readonly, nostack, preserves_flags)
                );
            }
        }
        let tells = std::arch::x86_64::__cpuid_count(0xd, 1).eax & 1 << 2 != 0;
        if !tells || !std::arch::is_x86_feature_detected!("avx") {
            return;
        }
        use_them();
        let before = are_in_use();
        clear_upper_halves();
        let after = are_in_use();
        assert_eq!((before, after), (true, false));
    }

    #[test]
    fn nothing_else_is_hidden() {
        let all = [u32::MAX; 4];
        let hidden = |leaf, subleaf| {
            let shown = without_hidden(leaf, subleaf, all);
            shown.map(u32::count_zeros)
        };
        assert_eq!(hidden(1, 0), [0, 0, 2, 0]);
        assert_eq!(hidden(7, 0), [0, 1, 3, 0]);
        assert_eq!(hidden(7, 1), [1, 0, 0, 0]);
        assert!([0, 2, 6, 8, 0xd, 0x8000_0001].iter().all(|&leaf| hidden(leaf, 0) == [0; 4]));
    }

    /// Runs in a process of its own, as there is no way back.
    #[test]
    #[ignore = "hides instructions from the process that it runs in; the test below starts it"]
    #[cfg(target_arch = "x86_64")]
    fn this_process_sees_none_of_them() {
        use std::arch::is_x86_feature_detected as has;
        match hide_aes_and_sha() {
            Ok(()) => {
                assert!(!has!("aes") && !has!("pclmulqdq") && !has!("sha") && !has!("vaes"));
                assert!(has!("sse2"), "nothing else is hidden");
                std::thread::spawn(|| assert_eq!(std::arch::x86_64::__cpuid(1).ecx & 1 << 25, 0))
                    .join()
                    .unwrap();
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::Unsupported);
                assert!(error.to_string().contains("CPUID"), "{error}");
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn who_asks_later_is_told_without() {
        let this = std::env::current_exe().unwrap();
        let name = "instructions::tests::this_process_sees_none_of_them";
        let arguments = ["--ignored", "--exact", name, "--test-threads", "1"];
        let output = std::process::Command::new(this).args(arguments).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    }
}
