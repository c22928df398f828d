//! What a machine did while a task was measured: which boot of it, and what a host above it took.

use std::fs;

/// Ticks a second in which the kernel shows processor time, on every architecture that this runs on.
const TICKS_PER_SECOND: f64 = 100.0;
/// The column of /proc/stat with time that a host above this machine gave to others.
const STEAL: usize = 8;

/// Which boot of the machine this is; `None` if the kernel does not tell.
pub(crate) fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Seconds that a host above this machine gave to others since it started, over all processors; `None` if the kernel
/// does not tell.
pub(crate) fn steal_seconds() -> Option<f64> {
    steal(&fs::read_to_string("/proc/stat").ok()?)
}

fn steal(text: &str) -> Option<f64> {
    let all = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: u64 = all.split_whitespace().nth(STEAL)?.parse().ok()?;
    Some(ticks as f64 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_that_of_all_processors() {
        let text = "cpu  1 2 3 4 5 6 7 850 9 10\ncpu0 1 2 3 4 5 6 7 400 9 10\n";
        assert_eq!(steal(text), Some(8.5));
        assert_eq!(steal("cpu  1 2 3\n"), None);
        assert_eq!(steal("cpu0 1 2 3 4 5 6 7 8\n"), None);
    }

    #[test]
    fn kernel_tells_its_boot_and_what_was_stolen() {
        assert!(boot_id().unwrap().len() >= 32);
        assert!(steal_seconds().unwrap() >= 0.0);
    }
}
