//! What a record says of the machine that it was made on.

use authentick_report::Host;

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
        cpu_count: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        memory_octets: memory_kib.map(|kib| kib * 1024),
        kernel: match read("/proc/sys/kernel/osrelease").trim() {
            "" => "unknown".to_owned(),
            release => format!("Linux {release}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_has_a_processor_memory_and_a_kernel() {
        let Host { cpu, cpu_count, memory_octets, kernel } = machine();
        assert!(!cpu.is_empty() && cpu_count > 0 && kernel.starts_with("Linux "), "{cpu} {kernel}");
        assert!(memory_octets.is_some_and(|octets| octets > 1 << 26), "{memory_octets:?}");
    }
}
