//! A limit on the memory of a process, by the rig's control groups.

use authentick_rig::quota::{Group, Version};

use crate::Skip;

/// A limit on memory, shared by the processes in it, which are killed where they need more. They are free again when it
/// goes away.
#[derive(Debug)]
pub struct MemoryLimit(Group);

impl MemoryLimit {
    /// A limit of `size` octets.
    ///
    /// # Errors
    /// A skip, with the reason, where control groups cannot be made.
    pub fn new(size: u64) -> Result<Self, Skip> {
        let group = Group::new("memory").map_err(Skip::of)?;
        let limit = match group.version() {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        group.set(limit, &size).map_err(Skip::of)?;
        Ok(MemoryLimit(group))
    }

    /// Puts a process under the limit, with what it allocates from now on.
    ///
    /// # Panics
    /// If there is no such process.
    pub fn add(&self, pid: u32) {
        self.0.add(pid).unwrap_or_else(|error| panic!("{error}"));
    }

    /// The most that was in use, in octets.
    #[must_use]
    pub fn most(&self) -> u64 {
        let file = match self.0.version() {
            Version::One => "memory.max_usage_in_bytes",
            Version::Two => "memory.peak",
        };
        self.0.count(file, "")
    }

    /// How often the kernel killed a process for want of memory.
    #[must_use]
    pub fn kill_count(&self) -> u64 {
        let file = match self.0.version() {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        self.0.count(file, "oom_kill ")
    }
}
