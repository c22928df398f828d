//! What a server's process uses: processor time and memory, as `/proc` tells. proc(5).

use std::fs;
use std::time::Duration;

/// A process of this host.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    pid: u32,
    /// Clock ticks a second, the unit of `/proc/PID/stat`.
    ticks_per_second: u64,
    page_size: u64,
}

/// What a process has used so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Processor time of all its threads, in user and kernel mode.
    pub cpu: Duration,
    /// Resident memory, in octets.
    pub resident_size: u64,
}

impl Process {
    /// The process with this number.
    ///
    /// # Errors
    /// A sentence, if there is none or it cannot be seen.
    pub fn new(pid: u32) -> Result<Self, String> {
        let process = Process {
            pid,
            ticks_per_second: authentick_net::clock::ticks_per_second(),
            page_size: authentick_net::clock::page_size(),
        };
        process.usage().map(|_| process)
    }

    /// What it has used so far.
    ///
    /// # Errors
    /// A sentence, if it has ended.
    pub fn usage(&self) -> Result<Usage, String> {
        let path = format!("/proc/{}/stat", self.pid);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("process {}: {path}: {error}", self.pid))?;
        usage(&text, self.ticks_per_second, self.page_size)
            .ok_or_else(|| format!("{path}: not as proc(5) says"))
    }
}

/// Fields 14 (utime), 15 (stime) and 24 (rss), counted from 1; the name in field 2 may hold spaces and parentheses.
fn usage(text: &str, ticks_per_second: u64, page_size: u64) -> Option<Usage> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = field(14)? + field(15)?;
    let cpu = Duration::from_nanos(ticks.checked_mul(1_000_000_000)? / ticks_per_second.max(1));
    Some(Usage { cpu, resident_size: field(24)?.checked_mul(page_size)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_parentheses_does_not_shift_the_fields() {
        let numbers: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        let text = format!("7 (a) b) c) S {}\n", numbers.join(" "));
        let found = usage(&text, 100, 4096).unwrap();
        assert_eq!(found.cpu, Duration::from_millis(290));
        assert_eq!(found.resident_size, 24 * 4096);
        assert_eq!(usage("7 (x) S 1 2", 100, 4096), None);
    }

    #[test]
    fn own_work_is_seen_and_no_process_is_an_error() {
        let process = Process::new(std::process::id()).unwrap();
        let before = process.usage().unwrap();
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_millis(60) {
            std::hint::black_box(0);
        }
        let after = process.usage().unwrap();
        assert!(after.cpu > before.cpu && after.resident_size > 1 << 20);
        assert!(Process::new(u32::MAX).unwrap_err().contains("process 4294967295"));
    }
}
