//! Where programs that steer clocks run: they are told that they did, and nothing happens.

use std::io;
use std::process::Command;

use rustix::thread::{CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::Error;
use crate::process::Process;
use crate::threads::on_own_thread;

/// Starts a program that cannot set a clock.
///
/// # Errors
/// Where there is no such filter, or the program does not start.
pub fn start(command: &mut Command) -> Result<Process, Error> {
    within(|| Process::start(command))?
}

/// Does `work` on a thread of its own from which no clock can be set, nor by the programs that it starts. The filter
/// and the missing right belong to that thread and are inherited.
///
/// # Errors
/// Where the kernel has no such filters, or refuses one.
pub fn within<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    on_own_thread(|| {
        forbid_setting_clocks()?;
        Ok(work())
    })
}

/// From here on the calling thread, and what it starts, cannot set a clock, and is told that it could.
fn forbid_setting_clocks() -> Result<(), Error> {
    const WHAT: &str = "no filter that keeps programs from the clock";
    // The names of libc besides, ntp_adjtime, adjtime and stime, are these calls on 64-bit systems. Calls of another
    // architecture, where there are more, end the program.
    let calls =
        [libc::SYS_clock_adjtime, libc::SYS_adjtimex, libc::SYS_clock_settime, libc::SYS_settimeofday];
    let rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
    let unavailable = |error: seccompiler::BackendError| Error::unavailable(WHAT, &error);
    let arch = std::env::consts::ARCH.try_into().map_err(unavailable)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(0), arch);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(unavailable)?;
    give_up_the_right().map_err(Error::system("giving up the right to set clocks"))?;
    seccompiler::apply_filter(&program).map_err(|error| Error::unavailable(WHAT, &error))
}

/// Without `CAP_SYS_TIME` no call sets a clock, whatever the filter would not know.
fn give_up_the_right() -> io::Result<()> {
    let right = CapabilitySet::SYS_TIME;
    let mut own = capabilities(None)?;
    // Who has none cannot get it back: the filter comes with no_new_privs.
    if own.permitted.contains(CapabilitySet::SETPCAP) || own.effective.contains(CapabilitySet::SETPCAP) {
        remove_capability_from_bounding_set(right)?;
    }
    for set in [&mut own.effective, &mut own.permitted, &mut own.inheritable] {
        set.remove(right);
    }
    Ok(set_capabilities(None, own)?)
}

#[cfg(test)]
mod tests {
    use std::process::Output;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn output(command: &mut Command) -> Output {
        within(|| command.output().unwrap()).unwrap()
    }

    #[test]
    fn program_that_sets_the_clock_is_told_so_and_the_clock_stays() {
        let status = String::from_utf8(output(Command::new("cat").arg("/proc/self/status")).stdout).unwrap();
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        // Before anything is tried: a filter is there, and the right to set clocks, number 25, is not.
        assert_eq!(value("Seccomp:"), "2");
        for set in ["CapEff:", "CapPrm:", "CapInh:"] {
            assert_eq!(u64::from_str_radix(value(set), 16).unwrap() >> 25 & 1, 0, "{set}");
        }
        // The first would set it, the second says what it is.
        let before = SystemTime::now();
        let output = output(Command::new("sh").args(["-c", "date -s 2000-01-01 >/dev/null && date +%s"]));
        assert!(output.status.success(), "{output:?}");
        let told: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        let told = SystemTime::UNIX_EPOCH + Duration::from_secs(told);
        assert!(told + Duration::from_secs(5) > before && SystemTime::now() > before);
    }
}
