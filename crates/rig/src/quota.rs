//! Control groups: groups of processes under a limit, and one that limits processor time. Of version 2 where the host
//! has its controllers there, of version 1 otherwise. cgroups(7), Documentation/admin-guide/cgroup-v2.rst.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;
use crate::process::is_running;

/// Where the kernel has its controllers.
const CONTROLLERS: &str = "/sys/fs/cgroup";
/// The controller of processor time.
const CPU: &str = "cpu";

/// The time over which a quota is kept. Short, so that a process is slow rather than stopped and started.
const PERIOD_US: u64 = 20_000;
/// The kernel takes no quota below a millisecond: for a smaller share the period is longer, up to this.
const QUOTA_US_MIN: u64 = 1000;
const PERIOD_US_MAX: u64 = 100_000;

/// Groups that this process has made: their names must differ.
static GROUP_COUNT: AtomicU32 = AtomicU32::new(0);

/// The version of a host's control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A tree for each controller.
    One,
    /// One tree, in which a group hands controllers down to those below it.
    Two,
}

/// A group of processes, which are free again when it goes away.
#[derive(Debug)]
pub struct Group {
    version: Version,
    /// The group that it lies in: where its processes go in the end.
    above: PathBuf,
    folder: PathBuf,
}

impl Group {
    /// A new group with a controller, such as `memory`; removes those of processes that were killed.
    ///
    /// # Errors
    /// Where control groups cannot be made, with what would help there.
    pub fn new(controller: &str) -> Result<Self, Error> {
        Group::below(Path::new(CONTROLLERS), controller)
    }

    /// The same below the folder at which a host has its control groups.
    fn below(root: &Path, controller: &str) -> Result<Self, Error> {
        let version = version(root);
        let above = match version {
            Version::One => root.join(controller),
            Version::Two => {
                hand_down(root, controller)?;
                root.to_owned()
            }
        };
        remove_orphans(&above);
        let name = format!("atk-{}-{}", std::process::id(), GROUP_COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = above.join(name);
        fs::create_dir(&folder).map_err(|error| {
            Error::unavailable(format!("no control groups in {}", above.display()), &error)
        })?;
        Ok(Group { version, above, folder })
    }

    /// The version of the host's control groups, on which the names of limits depend.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Sets a limit.
    ///
    /// # Errors
    /// If the kernel does not know it, or does not take the value.
    pub fn set(&self, limit: &str, value: &impl ToString) -> Result<(), Error> {
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

    /// Puts one thread of a process into the group, by its number, and leaves the others where they are.
    ///
    /// # Errors
    /// If there is no such thread, or a group takes whole processes alone, as those of version 2 do that are made here.
    pub fn add_thread(&self, thread: u32) -> Result<(), Error> {
        let what = format!("thread {thread} under {}", self.folder.display());
        match self.version {
            Version::One => {
                fs::write(self.folder.join("tasks"), thread.to_string()).map_err(Error::system(what))
            }
            Version::Two => Err(Error::unavailable(what, &"groups of version 2 take whole processes")),
        }
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
            let _ = fs::write(self.above.join("cgroup.procs"), pid);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

/// What a host has at `root`. One that has both versions has its controllers in trees of version 1.
fn version(root: &Path) -> Version {
    match root.join("cgroup.controllers").exists() {
        true => Version::Two,
        false => Version::One,
    }
}

/// Lets the groups below `root`, of version 2, have a controller.
///
/// # Errors
/// If it is not `root`'s to give, or not this process's to hand down. More rights are no help against the first.
fn hand_down(root: &Path, controller: &str) -> Result<(), Error> {
    let names = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let has = |file: &str| names(file).split_whitespace().any(|name| name == controller);
    let shown = root.display();
    if !has("cgroup.controllers") {
        let why = format!("it was not delegated; {shown}/cgroup.controllers does not name it");
        return Err(Error::unavailable(format!("no controller {controller} in {shown}"), &why));
    }
    if has("cgroup.subtree_control") {
        return Ok(());
    }
    fs::write(root.join("cgroup.subtree_control"), format!("+{controller}")).map_err(|error| {
        let why = match error.kind() {
            // EBUSY: a group with processes of its own cannot hand down.
            std::io::ErrorKind::ResourceBusy => {
                format!("{error}: processes are in {shown} itself; a delegated group without any would do")
            }
            _ => error.to_string(),
        };
        Error::unavailable(format!("controller {controller} is not handed down in {shown}"), &why)
    })
}

/// Removes groups whose process has ended without doing so, killed perhaps. Such groups are empty, or stay.
fn remove_orphans(controller: &Path) {
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

/// Quota and period of a share of a processor, in microseconds.
fn limits_us(share: f64) -> [u64; 2] {
    let quota_us = (PERIOD_US as f64 * share) as u64;
    match quota_us < QUOTA_US_MIN {
        true => [QUOTA_US_MIN, ((QUOTA_US_MIN as f64 / share) as u64).clamp(PERIOD_US, PERIOD_US_MAX)],
        false => [quota_us, PERIOD_US],
    }
}

/// A limit on processor time, shared by the processes in it.
#[derive(Debug)]
pub struct Quota(Group);

impl Quota {
    /// A quota of `share` processors: 0.25 is a quarter of one. It is kept over 20 ms, and below 0.05 over longer
    /// periods with a millisecond each; the least is 0.01.
    ///
    /// # Errors
    /// Where control groups cannot be made, with what would help there.
    pub fn new(share: f64) -> Result<Self, Error> {
        Quota::of(Group::new(CPU)?, share)
    }

    /// Puts a quota on a group.
    fn of(group: Group, share: f64) -> Result<Self, Error> {
        let [quota_us, period_us] = limits_us(share);
        match group.version {
            Version::One => {
                group.set("cpu.cfs_period_us", &period_us)?;
                group.set("cpu.cfs_quota_us", &quota_us)?;
            }
            Version::Two => group.set("cpu.max", &format!("{quota_us} {period_us}"))?,
        }
        Ok(Quota(group))
    }

    /// Puts a process with all its threads under the quota.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn add(&self, pid: u32) -> Result<(), Error> {
        self.0.add(pid)
    }

    /// Puts one thread of a process under the quota, by its number; its others are free.
    ///
    /// # Errors
    /// As [`Group::add_thread`].
    pub fn add_thread(&self, thread: u32) -> Result<(), Error> {
        self.0.add_thread(thread)
    }

    /// Whether single threads can be put under it.
    #[must_use]
    pub fn takes_threads(&self) -> bool {
        self.0.version == Version::One
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

    /// A folder that looks like the root of control groups, with these files in it.
    fn root(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("atk-cgroups-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        for (file, text) in files {
            fs::write(root.join(file), text).unwrap();
        }
        root
    }

    #[test]
    fn controllers_of_version_2_are_handed_down_and_quotas_are_one_line() {
        let files =
            [("cgroup.controllers", "cpuset cpu io memory\n"), ("cgroup.subtree_control", "memory\n")];
        let root = root("given", &files);
        let quota = Quota::of(Group::below(&root, CPU).unwrap(), 0.25).unwrap();
        assert_eq!(quota.0.version(), Version::Two);
        // The kernel adds what is written here; a file of a test has it alone.
        assert_eq!(fs::read_to_string(root.join("cgroup.subtree_control")).unwrap(), "+cpu");
        assert_eq!(quota.0.read("cpu.max"), "5000 20000");
        assert_eq!(quota.0.folder.parent(), Some(&*root));
        assert!(!quota.takes_threads());
        assert!(quota.add_thread(1).unwrap_err().to_string().contains("whole processes"));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn shares_are_kept_over_short_periods_as_far_as_the_kernel_lets_them() {
        let limits = [1.0, 0.25, 0.05, 0.04, 0.02, 0.01, 0.001, 0.0].map(limits_us);
        let short = [[20_000, 20_000], [5_000, 20_000], [1_000, 20_000], [1_000, 25_000]];
        assert_eq!(limits[..4], short);
        assert_eq!(limits[4..], [[1_000, 50_000], [1_000, 100_000], [1_000, 100_000], [1_000, 100_000]]);
    }

    #[test]
    fn thread_of_a_process_is_put_under_a_quota_alone() {
        let quota = match Quota::new(0.5) {
            Ok(quota) if quota.takes_threads() => quota,
            // A host without rights, or with version 2.
            Ok(_) | Err(_) => return,
        };
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("under-quota".to_owned());
        let thread = thread.spawn(move || told.recv()).unwrap();
        let of_name = || crate::process::threads(std::process::id(), "under-quota");
        let number = std::iter::repeat_with(of_name).find_map(|found| found.first().copied()).unwrap();
        quota.add_thread(number).unwrap();
        assert_eq!(quota.0.read("tasks").trim(), number.to_string());
        drop(tell);
        assert!(thread.join().unwrap().is_err(), "nothing was sent");
    }

    #[test]
    fn controller_that_version_2_does_not_have_is_not_a_matter_of_rights() {
        let root = root("bare", &[("cgroup.controllers", "hugetlb\n"), ("cgroup.subtree_control", "")]);
        let error = Group::below(&root, CPU).unwrap_err().to_string();
        assert!(error.contains("was not delegated") && !error.contains("root"), "{error}");
        assert_eq!(
            fs::read_to_string(root.join("cgroup.subtree_control")).unwrap(),
            "",
            "nothing was written"
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn hosts_with_trees_of_their_own_have_version_1() {
        let root = root("trees", &[]);
        fs::create_dir(root.join(CPU)).unwrap();
        let quota = Quota::of(Group::below(&root, CPU).unwrap(), 0.05).unwrap();
        assert_eq!(quota.0.version(), Version::One);
        let limits = ["cpu.cfs_period_us", "cpu.cfs_quota_us"].map(|file| quota.0.read(file));
        assert_eq!(limits, ["20000", "1000"]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn owners_are_read_from_names_of_groups_alone() {
        assert_eq!((owner("atk-1234-0"), owner("atk-1-17")), (Some(1234), Some(1)));
        for other in ["atk-x-0", "atk-1234", "atk-1-0-s", "other-1-0", "atk--0"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
