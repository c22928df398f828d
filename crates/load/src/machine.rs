//! What a record says of the machine that it was made on.

use authentick_net::affinity;
use authentick_report::Host;

use crate::cgroup;

/// Processor, memory and kernel, as far as the system tells.
#[must_use]
pub fn machine() -> Host {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (cpu, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let memory_kib = memory.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    Host {
        cpu: model.map_or("unknown processor", |(_, model)| model).to_owned(),
        cpu_count: affinity::allowed().map_or(1, |cpus| cpus.len() as u32),
        online_cpu_count: online(&read("/sys/devices/system/cpu/online"))
            .or_else(|| Some(cpu.lines().filter(|line| line.starts_with("processor")).count() as u32))
            .filter(|&count| count > 0),
        cpu_quota_millicpus: cgroup::own_quota_millicpus(),
        memory_octets: memory_kib.map(|kib| kib * 1024),
        kernel: match read("/proc/sys/kernel/osrelease").trim() {
            "" => "unknown".to_owned(),
            release => format!("Linux {release}"),
        },
    }
}

/// How many processors a list such as `0-3,8` has.
fn online(list: &str) -> Option<u32> {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.trim().split(',').try_fold(0u32, |sum, range| sum.checked_add(count(range)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn online_processors_are_those_of_all_ranges() {
        assert_eq!(online("0-3\n"), Some(4));
        assert_eq!(online("0,2-3,8\n"), Some(4));
        for wrong in ["", "3-1", "0-4294967295", "x"] {
            assert_eq!(online(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn machine_has_a_processor_memory_and_a_kernel() {
        let Host { cpu, cpu_count, online_cpu_count, memory_octets, kernel, .. } = machine();
        assert!(
            online_cpu_count.is_some_and(|online| online >= cpu_count),
            "{online_cpu_count:?} {cpu_count}"
        );
        assert!(!cpu.is_empty() && cpu_count > 0 && kernel.starts_with("Linux "), "{cpu} {kernel}");
        assert!(memory_octets.is_some_and(|octets| octets > 1 << 26), "{memory_octets:?}");
    }
}
