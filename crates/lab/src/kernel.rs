//! Kernels that lack something, as a process sees them: system calls that fail as they do where nobody knows them.

use std::collections::BTreeMap;

use authentick_rig::threads::on_own_thread;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Runs `work` on a thread that has no Landlock, nor has what it starts: `landlock_create_ruleset(2)` fails with
/// `errno`, ENOSYS where it was not built in, EOPNOTSUPP where it was not turned on. Threads so treated get no new
/// privileges.
///
/// # Panics
/// If the kernel has no filters, or `work` panics.
pub fn without_landlock<T: Send>(errno: i32, work: impl FnOnce() -> T + Send) -> T {
    without(libc::SYS_landlock_create_ruleset, Vec::new(), errno, work)
}

/// The same without IPv6: a socket is refused with EAFNOSUPPORT, as after a start with `ipv6.disable=1`.
/// (`net.ipv6.conf.all.disable_ipv6` refuses no socket.)
///
/// # Panics
/// If the kernel has no filters, or `work` panics.
pub fn without_ipv6<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let family = libc::AF_INET6.unsigned_abs().into();
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, family).unwrap();
    let rules = vec![SeccompRule::new(vec![condition]).unwrap()];
    without(libc::SYS_socket, rules, libc::EAFNOSUPPORT, work)
}

/// The same where `sched_setattr(2)` fails with `errno`, as in a container that refuses it; for 0 it succeeds without
/// effect, as it does with slices before Linux 6.12.
///
/// # Panics
/// If the kernel has no filters, or `work` panics.
pub fn without_slices<T: Send>(errno: i32, work: impl FnOnce() -> T + Send) -> T {
    without(libc::SYS_sched_setattr, Vec::new(), errno, work)
}

/// Runs `work` where `call`, with any of these arguments or with all, fails with `errno`.
fn without<T: Send>(
    call: libc::c_long,
    arguments: Vec<SeccompRule>,
    errno: i32,
    work: impl FnOnce() -> T + Send,
) -> T {
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let rules = BTreeMap::from([(call, arguments)]);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    on_own_thread(|| {
        seccompiler::apply_filter(&program).unwrap();
        work()
    })
}
