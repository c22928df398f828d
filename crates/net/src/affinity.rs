//! Which processors this process may use, pinning a thread to one of them, and the thread's number.

use std::io;

use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

/// The processors that the calling thread may run on, by number.
///
/// # Errors
/// If the kernel refuses to tell.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// The number of the calling thread, under which it is in `/proc/PID/task`.
#[must_use]
pub fn thread_number() -> i32 {
    gettid().as_raw_nonzero().get()
}

/// Keeps the calling thread on one processor.
///
/// # Errors
/// If the processor does not exist or may not be used.
pub fn pin(cpu: usize) -> io::Result<()> {
    confine(&[cpu])
}

/// Keeps the calling thread on some processors.
///
/// # Errors
/// If there is none, or one of them does not exist, or none may be used.
pub fn confine(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no processor {cpu}")));
        }
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_thread_may_use_one_processor() {
        std::thread::spawn(|| {
            let cpu = *allowed().unwrap().last().unwrap();
            pin(cpu).unwrap();
            assert_eq!(allowed().unwrap(), [cpu]);
        })
        .join()
        .unwrap();
        assert!(pin(usize::MAX).is_err());
    }

    #[test]
    fn thread_has_a_number_that_proc_knows() {
        let of_another = std::thread::spawn(thread_number).join().unwrap();
        assert_ne!(of_another, thread_number());
        assert!(std::path::Path::new(&format!("/proc/self/task/{}/stat", thread_number())).exists());
    }

    #[test]
    fn confined_thread_may_use_the_named_processors() {
        std::thread::spawn(|| {
            let cpus = allowed().unwrap();
            confine(&cpus[..cpus.len().div_ceil(2)]).unwrap();
            assert_eq!(allowed().unwrap(), cpus[..cpus.len().div_ceil(2)]);
            assert!(confine(&[]).is_err());
        })
        .join()
        .unwrap();
    }
}
