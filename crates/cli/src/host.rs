//! What a run record says about the host and the program.

use authentick_report::Host;

/// The commit that this program was built from.
pub(crate) const COMMIT: &str = env!("AUTHENTICK_COMMIT");
/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Processor and kernel, as far as the system tells.
pub(crate) fn host() -> Host {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    Host {
        cpu: model.map_or("unknown processor", |(_, model)| model).to_owned(),
        cpu_count: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        kernel: match read("/proc/sys/kernel/osrelease").trim() {
            "" => "unknown".to_owned(),
            release => format!("Linux {release}"),
        },
    }
}

/// The command line as it was typed, with quotes where a shell needs them.
pub(crate) fn command() -> String {
    let plain = |word: &String| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@%+[]".contains(c))
    };
    let quoted = |word: String| match plain(&word) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    std::iter::once("authentick".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
