//! A limit on the memory of a process: control groups, version 1.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Skip;

/// Where the kernel's memory controller is.
const CONTROLLER: &str = "/sys/fs/cgroup/memory";

/// A limit on memory, shared by the processes in it, which are killed where they need more. They are free again when it
/// goes away.
#[derive(Debug)]
pub struct MemoryLimit(PathBuf);

impl MemoryLimit {
    /// A limit of `size` octets, by a name that nobody else uses.
    ///
    /// # Errors
    /// A skip, with the reason, where control groups cannot be made.
    pub fn new(name: &str, size: u64) -> Result<Self, Skip> {
        let limit = MemoryLimit(Path::new(CONTROLLER).join(format!("atk-{name}-{}", std::process::id())));
        let made = fs::create_dir(&limit.0)
            .and_then(|()| fs::write(limit.0.join("memory.limit_in_bytes"), size.to_string()));
        made.map_err(|error| Skip::new(format!("no memory limit in {}: {error}", limit.0.display())))?;
        Ok(limit)
    }

    /// Puts a process under the limit, with what it allocates from now on.
    ///
    /// # Panics
    /// If there is no such process.
    pub fn add(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// The most that was in use, in octets.
    #[must_use]
    pub fn most(&self) -> u64 {
        let text = fs::read_to_string(self.0.join("memory.max_usage_in_bytes")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// How often the kernel killed a process for want of memory.
    #[must_use]
    pub fn kill_count(&self) -> u64 {
        let text = fs::read_to_string(self.0.join("memory.oom_control")).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()).unwrap_or(0)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        for pid in fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().lines() {
            // One that has ended meanwhile is no matter.
            let _ = fs::write(Path::new(CONTROLLER).join("cgroup.procs"), pid);
        }
        let _ = fs::remove_dir(&self.0);
    }
}
