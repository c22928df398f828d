//! The calling thread's priority among threads of the same processor; none of these takes rights.

use std::fmt;
use std::io;
use std::time::Duration;

/// The shortest slice that Linux gives.
pub const SHORTEST_SLICE: Duration = Duration::from_micros(100);

/// Priority of a thread on a busy processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Its share, in slices so short that it preempts threads with the usual ones when it wakes (Linux 6.12).
    Prompt,
    /// Its share, as any other program has it: SCHED_OTHER.
    Fair,
    /// Its share, without preempting a thread when it wakes: SCHED_BATCH.
    Batch,
    /// Nothing but idle time: SCHED_IDLE. A thread cannot leave it again without rights.
    Idle,
}

impl Priority {
    /// Gives it to the calling thread. What a service manager has set stays: the nice value, and for
    /// [`Prompt`](Self::Prompt) the policy; a real-time thread is prompter than that.
    ///
    /// # Errors
    /// If the kernel refuses; `Unsupported` if it has no slices, as before Linux 6.12.
    pub fn set(self) -> io::Result<()> {
        let policy = match self {
            Priority::Prompt => return shorten_slice(),
            Priority::Fair => libc::SCHED_OTHER,
            Priority::Batch => libc::SCHED_BATCH,
            Priority::Idle => libc::SCHED_IDLE,
        };
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: sched_setscheduler(2) reads the parameters during the call; 0 means the calling thread.
        let result = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

fn shorten_slice() -> io::Result<()> {
    let mut attributes = read(0)?;
    if [libc::SCHED_FIFO, libc::SCHED_RR].contains(&attributes.policy.cast_signed()) {
        return Ok(());
    }
    attributes.runtime_ns = shortest_ns();
    // SAFETY: sched_setattr(2) reads `size` octets during the call; 0 means the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // Kernels without slices take it without an error.
    match read(0)?.runtime_ns == shortest_ns() {
        true => Ok(()),
        false => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// The policy of sched(7).
impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Priority::Prompt => "SCHED_OTHER in slices of 0.1 ms",
            Priority::Fair => "SCHED_OTHER",
            Priority::Batch => "SCHED_BATCH",
            Priority::Idle => "SCHED_IDLE",
        })
    }
}

/// Scheduling of a thread, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// SCHED_OTHER, SCHED_BATCH or another of sched(7).
    pub policy: i32,
    /// Its slice; zero if the kernel has none.
    pub slice: Duration,
}

/// Scheduling of the thread with this id, or of the calling thread for 0.
///
/// # Errors
/// If there is no such thread.
pub fn of(thread: i32) -> io::Result<Scheduling> {
    let Attributes { policy, runtime_ns, .. } = read(thread)?;
    Ok(Scheduling { policy: policy.cast_signed(), slice: Duration::from_nanos(runtime_ns) })
}

fn shortest_ns() -> u64 {
    SHORTEST_SLICE.as_nanos() as u64
}

/// `struct sched_attr` in its first version, which every kernel takes.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

fn read(thread: i32) -> io::Result<Attributes> {
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>();
    // SAFETY: sched_getattr(2) writes at most `size` octets, which the attributes have.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attributes, size as libc::c_uint, 0)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    attributes.flags = 0;
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> i32 {
        of(0).unwrap().policy
    }

    #[test]
    fn only_the_calling_thread_steps_back() {
        let before = of(0).unwrap();
        std::thread::spawn(|| {
            for (priority, expected) in [
                (Priority::Batch, libc::SCHED_BATCH),
                (Priority::Fair, libc::SCHED_OTHER),
                (Priority::Idle, libc::SCHED_IDLE),
            ] {
                priority.set().unwrap();
                assert_eq!(policy(), expected);
            }
        })
        .join()
        .unwrap();
        assert_eq!(of(0).unwrap(), before);
    }

    #[test]
    fn prompt_thread_has_the_shortest_slice_or_an_error() {
        std::thread::spawn(|| {
            let usual = of(0).unwrap();
            match Priority::Prompt.set() {
                Ok(()) => assert_eq!(of(0).unwrap(), Scheduling { slice: SHORTEST_SLICE, ..usual }),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported),
            }
        })
        .join()
        .unwrap();
    }
}
