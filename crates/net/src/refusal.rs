//! System calls that a filter refuses: answered in the kernel's stead, and counted.
//!
//! A filter that answers with an error by itself counts nothing. So filters trap (`SECCOMP_RET_TRAP`, seccomp(2)): the
//! thread gets SIGSYS, and the handler here counts the call and lets it return an error. It makes no system call, takes
//! no lock and allocates nothing. Which thread it was, the filter says itself, in the sixteen bits of data that a trap
//! carries.
//!
//! The error is EPERM, but for `futex`, where it is EAGAIN, "look again". Who waits for a lock would not expect the
//! former: glibc ends the process (`futex_fatal_error`), where a lock that spins does no harm.
//!
//! The kernel ends a process whose SIGSYS is blocked when it is due. So filters trap `rt_sigprocmask` too, which glibc
//! calls before it starts or ends a thread or a process, and the handler does what was asked for, but for SIGSYS, which
//! stays as it is. That is nobody's mischief, and not counted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Data of traps are below this.
pub const KIND_COUNT_MAX: usize = 16;
/// Numbers of system calls are below this; greater ones are counted and not remembered.
const CALL_COUNT_MAX: usize = 512;
const WORD_COUNT: usize = CALL_COUNT_MAX / u64::BITS as usize;

static COUNTS: [AtomicU64; KIND_COUNT_MAX] = [const { AtomicU64::new(0) }; KIND_COUNT_MAX];
/// A bit for each system call that was refused.
static CALLS: [[AtomicU64; WORD_COUNT]; KIND_COUNT_MAX] =
    [const { [const { AtomicU64::new(0) }; WORD_COUNT] }; KIND_COUNT_MAX];

/// How many calls were refused by filters that trap with this `kind`.
///
/// # Panics
/// If there is no such kind.
#[must_use]
pub fn count(kind: usize) -> u64 {
    COUNTS[kind].load(Ordering::Relaxed)
}

/// Counts a call that another process of this server was refused, as it says.
pub fn note(kind: usize, call: usize) {
    if let Some(count) = COUNTS.get(kind) {
        count.fetch_add(1, Ordering::Relaxed);
    }
    if let Some(word) = CALLS.get(kind).and_then(|words| words.get(call / 64)) {
        word.fetch_or(1 << (call % 64), Ordering::Relaxed);
    }
}

/// The numbers of these calls, each once, in order.
///
/// # Panics
/// If there is no such kind.
pub fn calls(kind: usize) -> impl Iterator<Item = usize> {
    let words = &CALLS[kind];
    (0..CALL_COUNT_MAX).filter(|call| words[call / 64].load(Ordering::Relaxed) & (1 << (call % 64)) != 0)
}

/// From here on SIGSYS of a filter is answered so, in all threads. To be called before the first filter is in force.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] on a processor whose registers are not known here; the kernel's.
pub fn install() -> io::Result<()> {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        handler::install()
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the registers of this processor are not known"))
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod handler {
    //! The handler, which knows the registers.

    use std::io;

    use super::note;
    use crate::process;

    /// asm-generic/siginfo.h: a filter has sent the signal.
    const SYS_SECCOMP: libc::c_int = 1;

    pub(super) fn install() -> io::Result<()> {
        // SAFETY: the handler counts in memory, and calls nothing.
        unsafe { process::answer(libc::SIGSYS, on_trap, libc::SA_RESTART) }
    }

    extern "C" fn on_trap(_: libc::c_int, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: sigaction(2): with SA_SIGINFO the second argument points to a siginfo_t.
        let information = unsafe { &*information };
        // Anybody may send the signal; then there is no call to answer.
        if information.si_code != SYS_SECCOMP {
            return;
        }
        // SAFETY: sigaction(2): with SA_SIGINFO the third argument points to a ucontext_t, ours until we return.
        let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
        // seccomp(2): the data of the filter's answer are in si_errno. The registers are as before the call, so that
        // the number is still there, and what stands in the first one on return is the call's result.
        let kind = information.si_errno as usize;
        #[cfg(target_arch = "x86_64")]
        {
            let of = |register: libc::c_int| context.uc_mcontext.gregs[register as usize] as usize;
            let call = of(libc::REG_RAX);
            let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX].map(of);
            context.uc_mcontext.gregs[libc::REG_RAX as usize] =
                answer(kind, call, arguments, &mut context.uc_sigmask);
        }
        #[cfg(target_arch = "aarch64")]
        {
            let [how, signals, old] = [0, 1, 2].map(|register| context.uc_mcontext.regs[register] as usize);
            let call = context.uc_mcontext.regs[8] as usize;
            let result = answer(kind, call, [how, signals, old], &mut context.uc_sigmask);
            context.uc_mcontext.regs[0] = result as u64;
        }
    }

    /// `mask` holds what is blocked once the handler has returned. The kernel knows of its first 64 bits.
    fn answer(kind: usize, call: usize, arguments: [usize; 3], mask: &mut libc::sigset_t) -> i64 {
        if call != libc::SYS_rt_sigprocmask as usize {
            return refuse(kind, call);
        }
        let [how, signals, old] = arguments;
        let (signals, old) = (signals as *const u64, old as *mut u64);
        let mask = (&raw mut *mask).cast::<u64>();
        // SAFETY: a sigset_t is at least as large as the kernel's, and aligned like it.
        let before = unsafe { mask.read() };
        if !signals.is_null() {
            // SAFETY: sigprocmask(2): who calls it gives a set of eight octets or none. If that is not so, we end here,
            // where the kernel would have said EFAULT.
            let signals = unsafe { signals.read_unaligned() };
            // SAFETY: as above.
            unsafe { mask.write(masked(before, how as libc::c_int, signals)) };
        }
        if !old.is_null() {
            // SAFETY: likewise, for the set that is to hold what was blocked before.
            unsafe { old.write_unaligned(before) };
        }
        0
    }

    /// Counts a call; returns its result.
    pub(super) fn refuse(kind: usize, call: usize) -> i64 {
        note(kind, call);
        let error = if call == libc::SYS_futex as usize { libc::EAGAIN } else { libc::EPERM };
        -i64::from(error)
    }

    /// The mask of blocked signals after `rt_sigprocmask` with these arguments, SIGSYS aside. sigprocmask(2); a bit for
    /// each signal, the lowest for the first.
    pub(super) const fn masked(before: u64, how: libc::c_int, signals: u64) -> u64 {
        const SIGSYS: u64 = 1 << (libc::SIGSYS - 1);
        let after = match how {
            libc::SIG_BLOCK => before | signals,
            libc::SIG_UNBLOCK => before & !signals,
            _ => signals,
        };
        after & !SIGSYS
    }
}

#[cfg(test)]
mod tests {
    use super::handler::{masked, refuse};
    use super::*;

    #[test]
    fn refusals_are_counted_by_kind_and_named_once() {
        let kind = KIND_COUNT_MAX - 1;
        let execve = libc::SYS_execve as usize;
        for call in [execve, 3, 511, 512, execve] {
            assert_eq!(refuse(kind, call), -i64::from(libc::EPERM));
        }
        assert_eq!(refuse(kind, libc::SYS_futex as usize), -i64::from(libc::EAGAIN));
        let mut named = vec![3, execve, libc::SYS_futex as usize, 511];
        named.sort_unstable();
        assert_eq!((count(kind), calls(kind).collect::<Vec<_>>()), (6, named));
        assert_eq!(refuse(usize::MAX, 3), -i64::from(libc::EPERM));
        assert_eq!(count(kind - 1), 0);
    }

    #[test]
    fn signals_are_masked_as_by_the_kernel_but_for_the_one_that_filters_send() {
        let of = |signals: &[i32]| signals.iter().fold(0, |mask, signal| mask | 1 << (signal - 1));
        let (term, hup) = (of(&[libc::SIGTERM]), of(&[libc::SIGHUP]));
        assert_eq!(masked(term, libc::SIG_BLOCK, hup), term | hup);
        assert_eq!(masked(term | hup, libc::SIG_UNBLOCK, hup), term);
        assert_eq!(masked(term, libc::SIG_SETMASK, hup), hup);
        let all = masked(0, libc::SIG_BLOCK, u64::MAX);
        assert_eq!(all, !of(&[libc::SIGSYS]));
    }

    /// Without a filter: a signal that somebody sends changes nothing.
    #[test]
    fn signal_that_is_no_trap_is_passed_over() {
        install().unwrap();
        let before: u64 = (0..KIND_COUNT_MAX - 1).map(count).sum();
        // SAFETY: raise(3) takes a number.
        assert_eq!(unsafe { libc::raise(libc::SIGSYS) }, 0);
        assert_eq!((0..KIND_COUNT_MAX - 1).map(count).sum::<u64>(), before);
    }
}
