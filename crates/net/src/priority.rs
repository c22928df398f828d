//! How much a thread may get in the way of others.

use std::io;

use rustix::process::setpriority_process;

/// The lowest of the nice values. setpriority(2).
const NICE_MAX: i32 = 19;

/// Gives the calling thread the lowest priority for which nobody needs rights: it runs on a processor that others leave
/// free, and gets a little of one that they do not.
///
/// # Errors
/// If the kernel refuses.
pub fn lowest() -> io::Result<()> {
    // Linux keeps nice values by thread, and no number means the calling one.
    Ok(setpriority_process(None, NICE_MAX)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn only_the_calling_thread_steps_back() {
        let before = getpriority_process(None).unwrap();
        std::thread::spawn(|| {
            lowest().unwrap();
            assert_eq!(getpriority_process(None).unwrap(), NICE_MAX);
        })
        .join()
        .unwrap();
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
