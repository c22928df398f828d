//! A limit on the memory of a process, by the rig's control groups.

use authentick_rig::quota::Group;

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
        group.set("memory.limit_in_bytes", size).map_err(Skip::of)?;
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
        self.0.count("memory.max_usage_in_bytes", "")
    }

    /// How often the kernel killed a process for want of memory.
    #[must_use]
    pub fn kill_count(&self) -> u64 {
        self.0.count("memory.oom_control", "oom_kill ")
    }
}
