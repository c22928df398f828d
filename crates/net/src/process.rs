//! Signals: asking a process of ours to end, who hears it, and what answers a fault.

use std::io;
use std::mem::MaybeUninit;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

/// Sends SIGTERM to a child that has not been waited for, so that its number is still its own.
///
/// # Errors
/// If it may not be signalled, as one that has become another user.
pub fn terminate(child: &Child) -> io::Result<()> {
    Ok(kill_process(Pid::from_child(child), Signal::TERM)?)
}

/// Keeps SIGHUP, SIGINT and SIGTERM from the calling thread; the kernel gives them to another one of the process. A
/// handler makes system calls, which this thread may be about to give up.
///
/// # Errors
/// The kernel's.
pub fn leave_signals_to_others() -> io::Result<()> {
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset(3) writes the whole set.
    unsafe { libc::sigemptyset(signals.as_mut_ptr()) };
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the set was initialised above, and the number is that of a signal.
        unsafe { libc::sigaddset(signals.as_mut_ptr(), signal) };
    }
    // SAFETY: pthread_sigmask(3) reads an initialised set and writes nowhere, as it is not asked for the old one.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, signals.as_ptr(), std::ptr::null_mut()) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// What answers a signal: its number, what is known of it, and a `ucontext_t`. sigaction(2), SA_SIGINFO.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) type Answer = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Has `answer` called for a signal, in whichever thread gets it.
///
/// # Errors
/// The kernel's.
///
/// # Safety
/// `answer` calls nothing but what may be called in a handler. signal-safety(7).
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) unsafe fn answer(signal: libc::c_int, answer: Answer, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: `sigaction` is a plain C structure, for which all zeros is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = answer as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | flags;
    // SAFETY: sigaction(2) reads the structure, which outlives the call; the handler has the form that SA_SIGINFO
    // asks for, and for what it does the caller answers.
    match unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn child_ends_by_the_signal() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        terminate(&child).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(15));
    }
}
