//! Control groups, version 1: groups of processes under a limit, and one that limits processor time.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;
use crate::process::is_running;

/// Where the kernel has its controllers.
const CONTROLLERS: &str = "/sys/fs/cgroup";
/// The controller of processor time.
const CPU: &str = "cpu";

/// The time over which a quota is kept. Short, so that a process is slow rather than stopped and started.
const PERIOD_US: u64 = 20_000;
/// The kernel takes no quota below a millisecond.
const QUOTA_US_MIN: u64 = 1000;

/// Groups that this process has made: their names must differ.
static GROUP_COUNT: AtomicU32 = AtomicU32::new(0);

/// A group of processes, which are free again when it goes away.
#[derive(Debug)]
pub struct Group {
    controller: PathBuf,
    folder: PathBuf,
}

impl Group {
    /// A new group below a controller, such as `memory`, and removes those of processes that were killed.
    ///
    /// # Errors
    /// Where control groups of version 1 cannot be made.
    pub fn new(controller: &str) -> Result<Self, Error> {
        let controller = PathBuf::from(CONTROLLERS).join(controller);
        remove_orphans(&controller);
        let name = format!("atk-{}-{}", std::process::id(), GROUP_COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = controller.join(name);
        fs::create_dir(&folder).map_err(|error| {
            Error::unavailable(format!("no control groups in {}", controller.display()), &error)
        })?;
        Ok(Group { controller, folder })
    }

    /// Sets a limit.
    ///
    /// # Errors
    /// If the kernel does not know it, or does not take the value.
    pub fn set(&self, limit: &str, value: u64) -> Result<(), Error> {
        let file = self.folder.join(limit);
        fs::write(&file, value.to_string())
            .map_err(|error| Error::unavailable(file.display().to_string(), &error))
    }

    /// Puts a process with all its threads into the group.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn add(&self, pid: u32) -> Result<(), Error> {
        let file = self.folder.join("cgroup.procs");
        let what = format!("process {pid} under {}", self.folder.display());
        fs::write(file, pid.to_string()).map_err(Error::system(what))
    }

    /// What the kernel tells of the group in this file; empty if it does not.
    #[must_use]
    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_default()
    }

    /// The number that follows `name` in this file; 0 if there is none.
    #[must_use]
    pub fn count(&self, file: &str, name: &str) -> u64 {
        let text = self.read(file);
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Only an empty group goes away: whoever is left in it is set free first.
        for pid in self.read("cgroup.procs").lines() {
            // One that has ended meanwhile is no matter.
            let _ = fs::write(self.controller.join("cgroup.procs"), pid);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes groups whose process has ended without doing so, killed perhaps. Such groups are empty, or stay.
fn remove_orphans(controller: &std::path::Path) {
    for entry in fs::read_dir(controller).into_iter().flatten().flatten() {
        let owner = entry.file_name().to_str().and_then(owner);
        if owner.is_some_and(|pid| !is_running(pid)) {
            // Somebody else may be doing the same.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The process that made the group of this name, as in `atk-1234-0`.
fn owner(name: &str) -> Option<u32> {
    let (pid, number) = name.strip_prefix("atk-")?.split_once('-')?;
    number.parse::<u32>().ok()?;
    pid.parse().ok()
}

/// A limit on processor time, shared by the processes in it.
#[derive(Debug)]
pub struct Quota(Group);

impl Quota {
    /// A quota of `share` processors: 0.25 is a quarter of one. The least is 0.05.
    ///
    /// # Errors
    /// Where control groups of version 1 cannot be made.
    pub fn new(share: f64) -> Result<Self, Error> {
        let quota = Quota(Group::new(CPU)?);
        quota.0.set("cpu.cfs_period_us", PERIOD_US)?;
        quota.0.set("cpu.cfs_quota_us", ((PERIOD_US as f64 * share) as u64).max(QUOTA_US_MIN))?;
        Ok(quota)
    }

    /// Puts a process with all its threads under the quota.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn add(&self, pid: u32) -> Result<(), Error> {
        self.0.add(pid)
    }

    /// In how many periods the processes wanted more than their quota.
    #[must_use]
    pub fn throttled_count(&self) -> u64 {
        self.0.count("cpu.stat", "nr_throttled ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_read_from_names_of_groups_alone() {
        assert_eq!((owner("atk-1234-0"), owner("atk-1-17")), (Some(1234), Some(1)));
        for other in ["atk-x-0", "atk-1234", "atk-1-0-s", "other-1-0", "atk--0"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
