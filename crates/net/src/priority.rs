//! How much a thread may get in the way of others.

use std::io;

/// Has the calling thread run only where no other wants to. sched(7), SCHED_IDLE: lower than any nice value. Who wakes
/// takes the processor from it as soon as the kernel looks, where a nice thread would keep it to the end of its slice.
/// Nobody needs rights for it.
///
/// # Errors
/// If the kernel refuses.
pub fn lowest() -> io::Result<()> {
    schedule(libc::SCHED_IDLE)
}

/// Has the calling thread get its share of a processor without taking it from a thread that runs when this one wakes.
/// sched(7), SCHED_BATCH. It takes no rights.
///
/// # Errors
/// If the kernel refuses.
pub fn batch() -> io::Result<()> {
    schedule(libc::SCHED_BATCH)
}

fn schedule(policy: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: sched_setscheduler(2) reads the parameters during the call; 0 means the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> libc::c_int {
        // SAFETY: sched_getscheduler(2) takes no pointers; 0 means the calling thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn only_the_calling_thread_steps_back() {
        let before = policy();
        std::thread::spawn(|| {
            batch().unwrap();
            assert_eq!(policy(), libc::SCHED_BATCH);
            lowest().unwrap();
            assert_eq!(policy(), libc::SCHED_IDLE);
        })
        .join()
        .unwrap();
        assert_eq!(policy(), before);
    }
}
