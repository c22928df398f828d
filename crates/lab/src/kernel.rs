//! Kernels that lack something, as a process sees them: system calls that fail as they do where nobody knows them.

use std::collections::BTreeMap;
use std::thread;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// Runs `work` on a thread that has no Landlock, nor has what it starts: `landlock_create_ruleset(2)` fails with `errno`,
/// ENOSYS where it was not built in, EOPNOTSUPP where it was not turned on. Threads so treated get no new privileges.
///
/// # Panics
/// If the kernel has no filters.
pub fn without_landlock<T: Send>(errno: i32, work: impl FnOnce() -> T + Send) -> T {
    let calls = [libc::SYS_landlock_create_ruleset];
    let rules: BTreeMap<_, _> = calls.into_iter().map(|call| (call, Vec::new())).collect();
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    let run = || {
        seccompiler::apply_filter(&program).unwrap();
        work()
    };
    thread::scope(|scope| match scope.spawn(run).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
