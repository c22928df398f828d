//! A share of a processor for a process: quotas of control groups, version 1.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Skip;

/// Where the kernel's processor controller is.
const CONTROLLER: &str = "/sys/fs/cgroup/cpu";

/// The time over which a quota is kept. Short, so that a process is slow rather than stopped and started.
const PERIOD_US: u64 = 20_000;

/// The kernel takes no quota below a millisecond.
const QUOTA_US_MIN: u64 = 1000;

static GROUP_COUNT: AtomicU32 = AtomicU32::new(0);

/// A limit on processor time, shared by the processes in it; they are free again when it goes away.
#[derive(Debug)]
pub struct Quota {
    folder: PathBuf,
}

impl Quota {
    /// A quota of `share` processors: 0.25 is a quarter of one. The least is 0.05.
    ///
    /// # Errors
    /// A skip, with the reason, where control groups cannot be made.
    pub fn new(share: f64) -> Result<Self, Skip> {
        let name = format!("atk-{}-{}", std::process::id(), GROUP_COUNT.fetch_add(1, Ordering::Relaxed));
        let quota = Quota { folder: Path::new(CONTROLLER).join(name) };
        quota
            .make(share)
            .map_err(|error| Skip::new(format!("no quotas in {}: {error}", quota.folder.display())))?;
        Ok(quota)
    }

    fn make(&self, share: f64) -> std::io::Result<()> {
        let quota_us = ((PERIOD_US as f64 * share) as u64).max(QUOTA_US_MIN);
        fs::create_dir(&self.folder)?;
        fs::write(self.folder.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
        fs::write(self.folder.join("cpu.cfs_quota_us"), quota_us.to_string())
    }

    /// Puts a process with all its threads under the quota.
    ///
    /// # Panics
    /// If there is no such process.
    pub fn add(&self, pid: u32) {
        let file = self.folder.join("cgroup.procs");
        fs::write(&file, pid.to_string())
            .unwrap_or_else(|error| panic!("{} < {pid}: {error}", file.display()));
    }

    /// In how many periods the processes wanted more than their quota.
    #[must_use]
    pub fn throttled_count(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join("cpu.stat")).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let processes = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        for pid in processes.lines() {
            // One that has ended meanwhile is no matter.
            let _ = fs::write(Path::new(CONTROLLER).join("cgroup.procs"), pid);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}
