//! Quotas on processor time of a process's control group and of those above: their size, and how long they kept the
//! process from running.
//!
//! `cpu.stat` of version 1 has `throttled_time` in nanoseconds, that of version 2 `throttled_usec`; both add up over
//! processors. The quota is `cpu.cfs_quota_us` in each `cpu.cfs_period_us`, and in version 2 `cpu.max` (cgroups(7),
//! Documentation/scheduler/sched-bwc.rst, Documentation/admin-guide/cgroup-v2.rst).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The `cpu.stat` of a process's groups, of both versions; empty if there are no such groups here.
pub(crate) fn files(pids: &[u32]) -> Vec<PathBuf> {
    let found: BTreeSet<PathBuf> =
        pids.iter().flat_map(|pid| folders(&pid.to_string())).map(|folder| folder.join("cpu.stat")).collect();
    found.into_iter().filter(|file| throttled(file).is_some()).collect()
}

/// The smallest quota of this process's groups, in thousandths of a processor; `None` if there is none.
pub(crate) fn own_quota_millicpus() -> Option<u32> {
    folders("self")
        .iter()
        .filter_map(|folder| quota_in(|file| fs::read_to_string(folder.join(file)).ok()))
        .min()
}

/// The quota that a group's files state; less than a thousandth counts as one.
fn quota_in(read: impl Fn(&str) -> Option<String>) -> Option<u32> {
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?)
        }
        None => {
            let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
            (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
        }
    };
    let millicpus = quota.saturating_mul(1000).checked_div(period)?;
    Some(u32::try_from(millicpus).unwrap_or(u32::MAX).max(1))
}

/// The folders of a process's groups and of those above.
fn folders(process: &str) -> Vec<PathBuf> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    candidates(&read("/proc/self/mounts"), &read(&format!("/proc/{process}/cgroup")))
}

/// How long each of these quotas has kept its processes from running so far.
pub(crate) fn times(files: &[PathBuf]) -> Vec<Duration> {
    files.iter().map(|file| throttled(file).unwrap_or_default()).collect()
}

fn throttled(file: &Path) -> Option<Duration> {
    time_in(&fs::read_to_string(file).ok()?)
}

/// From `cpu.stat`.
fn time_in(text: &str) -> Option<Duration> {
    let value = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    };
    value("throttled_usec")
        .map(Duration::from_micros)
        .or_else(|| value("throttled_time").map(Duration::from_nanos))
}

/// The folder of each group that `groups` names, as `/proc/PID/cgroup` does, and of those above, at the mount points
/// that `mounts` names, as `/proc/self/mounts` does.
fn candidates(mounts: &str, groups: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Some(root) = mount_point(mounts, controllers) else { continue };
        let group = root.join(path.trim_start_matches('/'));
        folders
            .extend(group.ancestors().take_while(|folder| folder.starts_with(&root)).map(Path::to_path_buf));
    }
    folders
}

/// Where the hierarchy with the controller of processor time is mounted; no controller: that of version 2.
fn mount_point(mounts: &str, controllers: &str) -> Option<PathBuf> {
    let has_cpu = |list: &str| list.split(',').any(|name| name == "cpu");
    let wanted = |kind: &str, options: &str| match controllers {
        "" => kind == "cgroup2",
        _ => kind == "cgroup" && has_cpu(controllers) && has_cpu(options),
    };
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        wanted(kind, options).then(|| PathBuf::from(point))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
        cgroup /c/cpuacct cgroup rw,relatime,cpuacct 0 0\n\
        cgroup /c/cpu cgroup rw,relatime,cpu 0 0\n\
        cgroup2 /c/unified cgroup2 rw,relatime 0 0\n";

    #[test]
    fn quotas_of_groups_above_count_too_in_both_versions() {
        let folders = |groups: &str| -> Vec<String> {
            candidates(MOUNTS, groups).iter().map(|file| file.display().to_string()).collect()
        };
        assert_eq!(
            folders("9:name=systemd:/a\n2:cpuacct:/x\n1:cpu:/a/b\n"),
            ["/c/cpu/a/b", "/c/cpu/a", "/c/cpu"]
        );
        assert_eq!(folders("0::/system.slice\n"), ["/c/unified/system.slice", "/c/unified"]);
        assert!(folders("4:memory:/a\n:\n").is_empty());
        assert!(candidates("", "1:cpu:/a").is_empty());
    }

    #[test]
    fn quota_is_read_in_both_versions() {
        let quota = |files: &[(&str, &str)]| {
            quota_in(|wanted| {
                files.iter().find(|(file, _)| *file == wanted).map(|(_, text)| (*text).to_owned())
            })
        };
        let old = |quota| [("cpu.cfs_quota_us", quota), ("cpu.cfs_period_us", "100000\n")];
        assert_eq!(quota(&old("20000\n")), Some(200));
        assert_eq!(quota(&old("-1\n")), None, "no quota");
        assert_eq!(quota(&[("cpu.max", "150000 100000\n")]), Some(1500));
        assert_eq!(quota(&[("cpu.max", "max 100000\n")]), None);
        assert_eq!(quota(&[("cpu.max", "1 1000000\n")]), Some(1));
        assert_eq!(quota(&[("cpu.max", "5 0\n")]), None);
        assert_eq!(quota(&[]), None);
    }

    #[test]
    fn times_of_both_versions_have_their_units() {
        let old = "nr_periods 25\nnr_throttled 20\nthrottled_time 676433534\n";
        let new = "usage_usec 1\nnr_throttled 20\nthrottled_usec 676433\n";
        assert_eq!(time_in(old), Some(Duration::from_nanos(676_433_534)));
        assert_eq!(time_in(new), Some(Duration::from_micros(676_433)));
        assert_eq!(time_in("usage_usec 1\n"), None);
    }
}
