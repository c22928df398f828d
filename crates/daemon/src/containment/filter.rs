//! Which system calls a thread of each kind makes. Every other one is refused and counted (`net::refusal`).
//!
//! The lists hold what the code calls, what Rust's and C's libraries call for it (memory, the end of a thread, a
//! panic), and no more. Where one call does many things, arguments decide: no memory is made executable, no socket is
//! opened but for UDP, and a packet worker wakes others but never waits for them: it has no way to take a lock that
//! somebody else holds.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use super::ThreadKind;

/// The filter of a kind.
#[derive(Clone, Debug)]
pub(super) struct Program(BpfProgram);

impl Program {
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] on a processor whose system calls are not known.
    pub(super) fn new(kind: ThreadKind) -> io::Result<Self> {
        let unknown = |_| io::Error::new(io::ErrorKind::Unsupported, "this processor's calls are not known");
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(unknown)?;
        let filter = SeccompFilter::new(rules(kind), SeccompAction::Trap, SeccompAction::Allow, arch);
        let program: Result<BpfProgram, _> = filter.and_then(TryInto::try_into);
        let mut program = program.map_err(io::Error::other)?;
        for instruction in &mut program {
            if (instruction.code, instruction.k) == (RETURN, TRAP) {
                instruction.k |= kind as u32;
            }
        }
        Ok(Program(program))
    }

    /// Puts it on the calling thread.
    pub(super) fn apply(&self) -> io::Result<()> {
        apply_filter(&self.0).map_err(io::Error::other)
    }
}

/// BPF_RET with a constant, and SECCOMP_RET_TRAP without data. linux/bpf_common.h, linux/seccomp.h.
const RETURN: u16 = 0x06;
const TRAP: u32 = 0x0003_0000;

/// One call, and what an argument must be, if that matters: its place, a mask, and what it is under that mask.
type Rule = (libc::c_long, Option<(u8, u64, u64)>);

const fn any(call: libc::c_long) -> Rule {
    (call, None)
}

/// Standard error, where messages go.
const STDERR: u64 = 2;
const FUTEX_COMMAND: u64 = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as u32 as u64;
const EXECUTABLE: u64 = libc::PROT_EXEC as u64;
/// The type of a socket without its flags.
const SOCKET_TYPE: u64 = 0xf;

/// What every thread needs: memory, random octets, the time where it is no matter of memory alone, waking others,
/// complaining, ending.
const ALL: &[Rule] = &[
    (libc::SYS_mmap, Some((2, EXECUTABLE, 0))),
    (libc::SYS_mprotect, Some((2, EXECUTABLE, 0))),
    any(libc::SYS_munmap),
    any(libc::SYS_mremap),
    any(libc::SYS_madvise),
    any(libc::SYS_brk),
    any(libc::SYS_clock_gettime),
    any(libc::SYS_gettimeofday),
    (libc::SYS_futex, Some((1, FUTEX_COMMAND, libc::FUTEX_WAKE as u64))),
    (libc::SYS_write, Some((0, u32::MAX as u64, STDERR))),
    (libc::SYS_writev, Some((0, u32::MAX as u64, STDERR))),
    // A generator of random octets takes new ones from the system every 64 KiB.
    any(libc::SYS_getrandom),
    any(libc::SYS_sched_yield),
    // A descriptor goes with its owner; builds with assertions look first whether it is there.
    any(libc::SYS_close),
    (libc::SYS_fcntl, Some((1, u32::MAX as u64, libc::F_GETFD as u64))),
    any(libc::SYS_getpid),
    any(libc::SYS_gettid),
    any(libc::SYS_rt_sigreturn),
    any(libc::SYS_restart_syscall),
    any(libc::SYS_sigaltstack),
    any(libc::SYS_exit),
];

/// What every thread needs that may wait: all but packet workers.
const WAITING: &[Rule] = &[any(libc::SYS_futex), any(libc::SYS_clock_nanosleep), any(libc::SYS_nanosleep)];

const PACKET: &[Rule] = &[
    any(libc::SYS_recvmmsg),
    any(libc::SYS_sendmmsg),
    any(libc::SYS_ppoll),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_poll),
    // How many datagrams were dropped.
    any(libc::SYS_getsockopt),
    // Steps that a test slows down.
    #[cfg(feature = "delays")]
    any(libc::SYS_clock_nanosleep),
];

/// Connections of TCP, and waiting for many of them.
const STREAMS: &[Rule] = &[
    any(libc::SYS_accept4),
    any(libc::SYS_read),
    any(libc::SYS_readv),
    any(libc::SYS_recvfrom),
    any(libc::SYS_recvmsg),
    any(libc::SYS_write),
    any(libc::SYS_writev),
    any(libc::SYS_sendto),
    any(libc::SYS_sendmsg),
    any(libc::SYS_shutdown),
    any(libc::SYS_setsockopt),
    any(libc::SYS_getsockopt),
    any(libc::SYS_getsockname),
    any(libc::SYS_getpeername),
    any(libc::SYS_fcntl),
    any(libc::SYS_epoll_ctl),
    any(libc::SYS_epoll_pwait),
    any(libc::SYS_epoll_pwait2),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_epoll_wait),
];

/// Of metrics: the event loop is made by the thread that it belongs to.
const EVENT_LOOP: &[Rule] = &[any(libc::SYS_epoll_create1), any(libc::SYS_eventfd2)];

const PUBLIC_KEY: &[Rule] = &[any(libc::SYS_sendmsg)];

/// Files, which Landlock and their owners narrow down.
const SUPERVISOR: &[Rule] = &[
    any(libc::SYS_openat),
    any(libc::SYS_openat2),
    any(libc::SYS_read),
    any(libc::SYS_readv),
    any(libc::SYS_pread64),
    any(libc::SYS_write),
    any(libc::SYS_writev),
    any(libc::SYS_pwrite64),
    any(libc::SYS_lseek),
    any(libc::SYS_fcntl),
    any(libc::SYS_fstat),
    any(libc::SYS_statx),
    any(libc::SYS_newfstatat),
    any(libc::SYS_statfs),
    any(libc::SYS_fstatfs),
    any(libc::SYS_faccessat),
    any(libc::SYS_faccessat2),
    any(libc::SYS_readlinkat),
    any(libc::SYS_getdents64),
    any(libc::SYS_getcwd),
    any(libc::SYS_ftruncate),
    any(libc::SYS_fallocate),
    any(libc::SYS_fchmod),
    any(libc::SYS_fchmodat),
    any(libc::SYS_fchown),
    any(libc::SYS_fchownat),
    any(libc::SYS_fsync),
    any(libc::SYS_fdatasync),
    any(libc::SYS_flock),
    any(libc::SYS_linkat),
    any(libc::SYS_mkdirat),
    any(libc::SYS_unlinkat),
    any(libc::SYS_renameat2),
    any(libc::SYS_umask),
    any(libc::SYS_getuid),
    any(libc::SYS_geteuid),
    any(libc::SYS_getgid),
    any(libc::SYS_getegid),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_open),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_stat),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_lstat),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_access),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_readlink),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_chmod),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_chown),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_mkdir),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_link),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_unlink),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_rename),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_renameat),
];

/// The kernel's clock state, and the daemon that vouches for the time, asked over UDP.
const CLOCK: &[Rule] = &[
    any(libc::SYS_adjtimex),
    any(libc::SYS_clock_adjtime),
    any(libc::SYS_clock_getres),
    any(libc::SYS_ppoll),
    (libc::SYS_socket, Some((1, SOCKET_TYPE, libc::SOCK_DGRAM as u64))),
    any(libc::SYS_bind),
    any(libc::SYS_connect),
    any(libc::SYS_getsockname),
    any(libc::SYS_getpeername),
    any(libc::SYS_setsockopt),
    any(libc::SYS_getsockopt),
    any(libc::SYS_sendto),
    any(libc::SYS_sendmsg),
    any(libc::SYS_recvfrom),
    any(libc::SYS_recvmsg),
    any(libc::SYS_fcntl),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_poll),
];

/// Of the threads that hear signals and the end of standard input, and of the first one, which ends the process.
const CONTROL: &[Rule] = &[
    any(libc::SYS_read),
    any(libc::SYS_recvfrom),
    any(libc::SYS_sendto),
    any(libc::SYS_write),
    any(libc::SYS_writev),
    any(libc::SYS_rt_sigaction),
    any(libc::SYS_ppoll),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_poll),
    any(libc::SYS_exit_group),
];

fn lists(kind: ThreadKind) -> &'static [&'static [Rule]] {
    match kind {
        ThreadKind::Packet => &[ALL, PACKET],
        ThreadKind::KeyExchange => &[ALL, WAITING, STREAMS],
        ThreadKind::PublicKey => &[ALL, WAITING, PUBLIC_KEY],
        ThreadKind::Metrics => &[ALL, WAITING, STREAMS, EVENT_LOOP],
        ThreadKind::Clock => &[ALL, WAITING, CLOCK],
        ThreadKind::Supervisor => &[ALL, WAITING, SUPERVISOR],
        ThreadKind::Control => &[ALL, WAITING, CONTROL],
    }
}

/// The rules of a kind, as the compiler wants them: a call without any rule is allowed whatever its arguments are.
fn rules(kind: ThreadKind) -> BTreeMap<i64, Vec<SeccompRule>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let listed: Vec<Rule> = lists(kind).concat();
    for (call, argument) in &listed {
        let is_free = listed.iter().any(|(other, argument)| other == call && argument.is_none());
        let of_call = rules.entry(*call).or_default();
        if let (Some((place, mask, value)), false) = (*argument, is_free) {
            of_call.push(condition(place, mask, value));
        }
    }
    // A panic that cannot be carried on ends the process: a signal, to itself and to nobody else.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![condition(0, u64::from(u32::MAX), own)]);
    rules
}

fn condition(place: u8, mask: u64, value: u64) -> SeccompRule {
    let compare = SeccompCmpOp::MaskedEq(mask);
    let condition = SeccompCondition::new(place, SeccompCmpArgLen::Dword, compare, value);
    condition
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .expect("a call has six arguments, and a rule a condition")
}

#[cfg(test)]
mod tests;
