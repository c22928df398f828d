//! How long quotas on processor time kept a process from running: `cpu.stat` of its control group and of those above.
//!
//! Version 1 has `throttled_time` in nanoseconds, version 2 `throttled_usec` (cgroups(7), Documentation/admin-guide/
//! cgroup-v2.rst). Both add up over processors.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The files that tell of a process's groups, of both versions; empty if there are no such groups here.
pub(super) fn files(pids: &[u32]) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let of = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let found: BTreeSet<PathBuf> =
        pids.iter().map(of).flat_map(|groups| candidates(&mounts, &groups)).collect();
    found.into_iter().filter(|file| throttled(file).is_some()).collect()
}

/// How long each of these quotas has kept its processes from running so far.
pub(super) fn times(files: &[PathBuf]) -> Vec<Duration> {
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

/// `cpu.stat` of each group that `groups` names, as `/proc/PID/cgroup` does, and of those above, at the mount points
/// that `mounts` names, as `/proc/self/mounts` does.
fn candidates(mounts: &str, groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Some(root) = mount_point(mounts, controllers) else { continue };
        let group = root.join(path.trim_start_matches('/'));
        files.extend(
            group
                .ancestors()
                .take_while(|folder| folder.starts_with(&root))
                .map(|folder| folder.join("cpu.stat")),
        );
    }
    files
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
        let files = |groups: &str| -> Vec<String> {
            candidates(MOUNTS, groups).iter().map(|file| file.display().to_string()).collect()
        };
        assert_eq!(
            files("9:name=systemd:/a\n2:cpuacct:/x\n1:cpu:/a/b\n"),
            ["/c/cpu/a/b/cpu.stat", "/c/cpu/a/cpu.stat", "/c/cpu/cpu.stat"]
        );
        assert_eq!(files("0::/system.slice\n"), ["/c/unified/system.slice/cpu.stat", "/c/unified/cpu.stat"]);
        assert!(files("4:memory:/a\n:\n").is_empty());
        assert!(candidates("", "1:cpu:/a").is_empty());
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
