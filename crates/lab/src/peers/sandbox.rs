//! Where programs that steer clocks run: they are told that they did, and nothing happens.

use std::process::{Command, Output};

use authentick_rig::threads::on_own_thread;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::process::Process;

/// Starts a program that cannot set a clock.
pub(super) fn start(mut command: Command) -> Process {
    within(|| Process::start(&mut command))
}

/// Runs a program that cannot set a clock to its end.
pub(super) fn output(mut command: Command) -> Output {
    within(|| command.output().unwrap())
}

/// The filter and the missing right belong to a thread and are inherited by what it starts.
fn within<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    on_own_thread(|| {
        forbid_setting_clocks();
        work()
    })
}

/// From here on the calling thread, and what it starts, cannot set a clock, and is told that it could.
fn forbid_setting_clocks() {
    // The names of libc besides, ntp_adjtime, adjtime and stime, are these calls on 64-bit systems. Calls of another
    // architecture, where there are more, end the program.
    let calls =
        [libc::SYS_clock_adjtime, libc::SYS_adjtimex, libc::SYS_clock_settime, libc::SYS_settimeofday];
    let rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(0), arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    if authentick_net::privilege::is_root() {
        for set in [caps::CapSet::Bounding, caps::CapSet::Effective, caps::CapSet::Permitted] {
            caps::drop(None, set, caps::Capability::CAP_SYS_TIME).unwrap();
        }
    }
    seccompiler::apply_filter(&program).unwrap();
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn program_that_sets_the_clock_is_told_so_and_the_clock_stays() {
        let mut command = Command::new("cat");
        command.arg("/proc/self/status");
        let status = String::from_utf8(output(command).stdout).unwrap();
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        // Before anything is tried: a filter is there, and the right to set clocks, number 25, is not.
        assert_eq!(value("Seccomp:"), "2");
        assert_eq!(u64::from_str_radix(value("CapEff:"), 16).unwrap() >> 25 & 1, 0);
        // The first would set it, the second says what it is.
        let mut command = Command::new("sh");
        command.args(["-c", "date -s 2000-01-01 >/dev/null && date +%s"]);
        let before = SystemTime::now();
        let output = output(command);
        assert!(output.status.success(), "{output:?}");
        let told: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        let told = SystemTime::UNIX_EPOCH + Duration::from_secs(told);
        assert!(told + Duration::from_secs(5) > before && SystemTime::now() > before);
    }
}
