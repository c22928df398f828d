//! Children that go on in this program, for work that the process itself is to have no rights for.
//!
//! A child has one thread, the descriptors that it is given, and `/dev/null` in the place of the first three. It ends
//! with its parent, and not by the signals that stop a service: a service manager sends these to all processes of one.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, set_parent_process_death_signal, waitpid};

/// Signals that a child does not obey.
const IGNORED: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
/// The first descriptor that is not one of the standard ones.
const FIRST: RawFd = 3;
/// Descriptors that are closed one by one where the kernel has no close_range(2), which is of Linux 5.9.
const CLOSED_COUNT_MAX: RawFd = 65_536;

/// Has a child do `work` with the descriptors `kept`, and end then, also if it panics. Nothing is dropped there but
/// what `work` owns.
///
/// # Errors
/// If this process has other threads, whose locks would stay locked in the child, or the kernel refuses.
pub fn fork(kept: &[BorrowedFd<'_>], work: impl FnOnce()) -> io::Result<Pid> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("this process has other threads already"));
    }
    let parent = getpid();
    // SAFETY: fork(2) takes no pointer. The calling thread is the only one, so nobody holds a lock of the child's copy.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let _ = catch_unwind(AssertUnwindSafe(|| {
                if become_child(kept).and_then(|()| end_with(parent)).is_ok() {
                    work();
                }
            }));
            // SAFETY: _exit(2) takes a number and does not return.
            unsafe { libc::_exit(0) }
        }
        child => Pid::from_raw(child).ok_or_else(|| io::Error::other("a process without a number")),
    }
}

/// Has the calling process killed when `parent` ends. To be called again after it has become another user, which
/// switches that off.
///
/// # Errors
/// If that is so already.
pub fn end_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match getppid() == Some(parent) {
        true => Ok(()),
        false => Err(io::Error::other("the parent has ended")),
    }
}

/// Has the kernel end the calling process after so many seconds.
pub fn end_after(seconds: u32) {
    // SAFETY: alarm(2) takes a number; nothing handles the signal, which ends the process by default.
    unsafe { libc::alarm(seconds) };
}

/// Whether a child still runs. One that does not is taken out of the kernel's table.
#[must_use]
pub fn is_running(child: Pid) -> bool {
    matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(None))
}

fn become_child(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    for signal in IGNORED {
        // SAFETY: SIG_IGN is no function that could be called.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    for standard in 0..FIRST {
        // SAFETY: dup2(2) closes a standard descriptor, which nothing in this process owns, and opens it again.
        if unsafe { libc::dup2(null.as_raw_fd(), standard) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // It is one of those that are closed below, and has no owner that would close it again.
    let _ = std::os::fd::IntoRawFd::into_raw_fd(null);
    let kept: Vec<RawFd> = kept.iter().map(AsRawFd::as_raw_fd).collect();
    between(kept).into_iter().for_each(close);
    Ok(())
}

/// The descriptors that are not kept, standard ones aside.
fn between(mut kept: Vec<RawFd>) -> Vec<RangeInclusive<RawFd>> {
    kept.sort_unstable();
    let mut first = FIRST;
    let mut ranges = Vec::with_capacity(kept.len() + 1);
    for number in kept.into_iter().filter(|number| *number >= FIRST) {
        ranges.push(first..=number - 1);
        first = number + 1;
    }
    ranges.push(first..=RawFd::MAX);
    ranges.retain(|range| !range.is_empty());
    ranges
}

fn close(range: RangeInclusive<RawFd>) {
    let (first, last) = (range.start().cast_unsigned(), range.end().cast_unsigned());
    // SAFETY: close_range(2) takes numbers. Owners of these descriptors are in frames to which the child never returns.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
        return;
    }
    for number in range.take_while(|number| *number < CLOSED_COUNT_MAX) {
        // SAFETY: as above; a number without a file is an error.
        unsafe { libc::close(number) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_kept_descriptors_are_closed() {
        assert_eq!(between(vec![]), [3..=RawFd::MAX]);
        assert_eq!(between(vec![7, 3, 4]), [5..=6, 8..=RawFd::MAX]);
        assert_eq!(between(vec![2, 5]), [3..=4, 6..=RawFd::MAX]);
    }

    #[test]
    fn process_with_threads_forks_no_child() {
        // The harness of tests waits on another one.
        let blocked = std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_secs(1)));
        assert!(fork(&[], || ()).unwrap_err().to_string().contains("other threads"));
        blocked.join().unwrap();
    }
}
