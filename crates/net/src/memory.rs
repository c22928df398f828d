//! Memory limit of this process's control group.
//!
//! cgroups(7), Documentation/admin-guide/cgroup-v2.rst: `memory.max` of the group and of those above it; in version 1
//! `memory.limit_in_bytes`. Groups are looked for below `/sys/fs/cgroup`, where systemd and container runtimes mount
//! them.

use std::fs;
use std::path::Path;

/// The lowest memory limit of this process's control group and of those above it, in octets; `None` if there is none,
/// or if it cannot be read.
#[must_use]
pub fn cgroup_limit() -> Option<u64> {
    limit_below(Path::new("/sys/fs/cgroup"), &fs::read_to_string("/proc/self/cgroup").ok()?)
}

/// The same for `groups`, in the form of `/proc/PID/cgroup`, in hierarchies below `root`.
fn limit_below(root: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or("/"));
        let (mount, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ => (root.join("memory"), "memory.limit_in_bytes"),
        };
        let has_memory = controllers.split(',').any(|name| matches!(name, "" | "memory"));
        let folders = Path::new(path.trim_start_matches('/')).ancestors().filter(move |_| has_memory);
        folders.map(move |folder| mount.join(folder).join(file)).collect::<Vec<_>>()
    });
    // "max" of version 2 is not a number.
    limits.filter_map(|file| fs::read_to_string(file).ok()?.trim_ascii().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("atk-memory-{}-{name}", std::process::id()));
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    #[test]
    fn lowest_limit_of_all_groups_above_counts() {
        let two = folder(
            "two",
            &[("memory.max", "max\n"), ("pod/memory.max", "268435456\n"), ("pod/one/memory.max", "max\n")],
        );
        assert_eq!(limit_below(&two, "0::/pod/one\n"), Some(256 << 20));
        assert_eq!(limit_below(&two, "0::/\n"), None);
        assert_eq!(limit_below(&two, "0::/other/one\n"), None);
        let one = folder(
            "one",
            &[
                ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory/a/memory.limit_in_bytes", "67108864\n"),
            ],
        );
        assert_eq!(limit_below(&one, "7:cpu:/a\n3:memory:/a/b\n"), Some(64 << 20));
        assert_eq!(limit_below(&one, "7:cpu,cpuacct:/a\n"), None);
        assert_eq!(limit_below(&one, "nonsense"), None);
        for root in [two, one] {
            fs::remove_dir_all(root).unwrap();
        }
    }
}
