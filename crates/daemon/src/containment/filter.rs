//! Which system calls a thread of each kind makes. Every other one is refused and counted (`net::refusal`).
//!
//! The lists hold what the code calls, what Rust's and C's libraries call for it (memory, the end of a thread, a
//! panic), and no more. Where one call does many things, arguments decide: memory is never made executable, the clock's
//! thread opens sockets of UDP and a fleet's of TCP, the others none, and a packet worker wakes others but never waits
//! for them: it cannot wait for a lock that another thread holds.

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

    /// Installs it on the calling thread.
    pub(super) fn apply(&self) -> io::Result<()> {
        apply_filter(&self.0).map_err(io::Error::other)
    }
}

/// BPF_RET with a constant, and SECCOMP_RET_TRAP without data. linux/bpf_common.h, linux/seccomp.h.
const RETURN: u16 = 0x06;
const TRAP: u32 = 0x0003_0000;

/// The number of a call.
type Call = libc::c_long;

/// A call, and what an argument of it must be: its place, a mask, and what it is under that mask.
type Bound = (Call, u8, u64, u64);

/// Standard error, where messages go.
const STDERR: u64 = 2;
const FUTEX_COMMAND: u64 = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as u32 as u64;
const EXECUTABLE: u64 = libc::PROT_EXEC as u64;
/// The type of a socket without its flags.
const SOCKET_TYPE: u64 = 0xf;
/// Domains in which a thread that may open sockets does so.
const SOCKET_DOMAINS: [u64; 2] = [libc::AF_INET as u64, libc::AF_INET6 as u64];

/// What every thread needs with certain arguments only, unless its kind has the call with any arguments.
const BOUNDS: [Bound; 6] = [
    (libc::SYS_mmap, 2, EXECUTABLE, 0),
    (libc::SYS_mprotect, 2, EXECUTABLE, 0),
    (libc::SYS_futex, 1, FUTEX_COMMAND, libc::FUTEX_WAKE as u64),
    (libc::SYS_write, 0, u32::MAX as u64, STDERR),
    (libc::SYS_writev, 0, u32::MAX as u64, STDERR),
    // A descriptor is closed with its owner; builds with assertions check first whether it is open.
    (libc::SYS_fcntl, 1, u32::MAX as u64, libc::F_GETFD as u64),
];

/// What every thread needs whatever the arguments: memory, the time where it is no matter of memory alone, random
/// octets, complaining, ending.
const ALL: &[&[Call]] = &[
    &[libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_brk],
    &[libc::SYS_clock_gettime, libc::SYS_gettimeofday],
    // A generator of random octets takes new ones from the system every 64 KiB.
    &[libc::SYS_getrandom],
    &[libc::SYS_sched_yield, libc::SYS_close, libc::SYS_getpid, libc::SYS_gettid],
    &[libc::SYS_rt_sigreturn, libc::SYS_restart_syscall, libc::SYS_sigaltstack, libc::SYS_exit],
];

/// What every thread needs that may wait: all but packet workers.
const WAITING: &[&[Call]] = &[&[libc::SYS_futex, libc::SYS_clock_nanosleep, libc::SYS_nanosleep]];

/// Waiting for a descriptor.
const POLL: &[Call] = &[
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

const PACKET: &[&[Call]] = &[
    POLL,
    // The last one: how many datagrams were dropped.
    &[libc::SYS_recvmmsg, libc::SYS_sendmmsg, libc::SYS_getsockopt],
    // Steps that a test slows down.
    #[cfg(feature = "delays")]
    &[libc::SYS_clock_nanosleep],
];

/// Connections of TCP, and waiting for many of them.
const STREAMS: &[&[Call]] = &[
    &[libc::SYS_accept4, libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_shutdown],
    &[libc::SYS_setsockopt, libc::SYS_getsockopt, libc::SYS_fcntl],
    &[libc::SYS_read, libc::SYS_readv, libc::SYS_recvfrom, libc::SYS_recvmsg],
    &[libc::SYS_write, libc::SYS_writev, libc::SYS_sendto, libc::SYS_sendmsg],
    &[libc::SYS_epoll_ctl, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2],
    #[cfg(target_arch = "x86_64")]
    &[libc::SYS_epoll_wait],
];

/// Of metrics: the event loop is made by the thread that it belongs to.
const EVENT_LOOP: &[&[Call]] = &[&[libc::SYS_epoll_create1, libc::SYS_eventfd2]];

/// Of metrics: their port may be free later than those of time. The thread has one socket for it, and opens none.
const LISTEN: &[&[Call]] = &[&[libc::SYS_bind, libc::SYS_listen]];

const PUBLIC_KEY: &[&[Call]] = &[&[libc::SYS_sendmsg]];

/// Files, which Landlock and permissions restrict further.
const SUPERVISOR: &[&[Call]] = &[
    &[libc::SYS_openat, libc::SYS_openat2, libc::SYS_getdents64, libc::SYS_getcwd, libc::SYS_readlinkat],
    &[libc::SYS_read, libc::SYS_readv, libc::SYS_pread64, libc::SYS_lseek, libc::SYS_fcntl],
    &[libc::SYS_write, libc::SYS_writev, libc::SYS_pwrite64, libc::SYS_ftruncate, libc::SYS_fallocate],
    &[libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_flock],
    &[libc::SYS_fstat, libc::SYS_statx, libc::SYS_newfstatat, libc::SYS_statfs, libc::SYS_fstatfs],
    &[libc::SYS_faccessat, libc::SYS_faccessat2],
    &[libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_umask],
    &[libc::SYS_linkat, libc::SYS_mkdirat, libc::SYS_unlinkat, libc::SYS_renameat2],
    &[libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid],
    #[cfg(target_arch = "x86_64")]
    &[libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink],
    #[cfg(target_arch = "x86_64")]
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_mkdir, libc::SYS_link, libc::SYS_unlink],
    #[cfg(target_arch = "x86_64")]
    &[libc::SYS_rename, libc::SYS_renameat],
];

/// The kernel's clock state, and the daemon that vouches for the time, asked over UDP.
const CLOCK: &[&[Call]] = &[
    POLL,
    &[libc::SYS_adjtimex, libc::SYS_clock_adjtime, libc::SYS_clock_getres],
    &[libc::SYS_bind, libc::SYS_connect, libc::SYS_getsockname, libc::SYS_getpeername],
    &[libc::SYS_setsockopt, libc::SYS_getsockopt, libc::SYS_fcntl],
    &[libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_recvfrom, libc::SYS_recvmsg],
];

/// Of a fleet, or of hosts with CFNTS's keys: connections to memcached.
const FLEET: &[&[Call]] = &[
    POLL,
    &[libc::SYS_connect, libc::SYS_setsockopt, libc::SYS_getsockopt, libc::SYS_sendto, libc::SYS_recvfrom],
];

/// Of a process that looks up one name: the C library with its modules, files of which Landlock decides, resolvers.
const NAMES: &[&[Call]] = &[
    POLL,
    // A module of the C library is mapped as code.
    &[libc::SYS_mmap],
    &[
        libc::SYS_openat,
        libc::SYS_getdents64,
        libc::SYS_readlinkat,
        libc::SYS_faccessat,
        libc::SYS_faccessat2,
    ],
    &[libc::SYS_read, libc::SYS_readv, libc::SYS_pread64, libc::SYS_lseek, libc::SYS_fcntl],
    &[libc::SYS_fstat, libc::SYS_statx, libc::SYS_newfstatat],
    &[libc::SYS_bind, libc::SYS_connect, libc::SYS_getsockname, libc::SYS_getpeername],
    &[libc::SYS_setsockopt, libc::SYS_getsockopt, libc::SYS_shutdown],
    &[libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg, libc::SYS_recvfrom, libc::SYS_recvmsg],
    &[libc::SYS_write, libc::SYS_writev],
    &[libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid, libc::SYS_uname],
    &[libc::SYS_rt_sigaction, libc::SYS_prlimit64, libc::SYS_sysinfo, libc::SYS_sched_getaffinity],
    &[libc::SYS_exit_group],
    #[cfg(target_arch = "x86_64")]
    &[libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink],
];

/// The sockets that it may open, to resolvers on this host and elsewhere, and the question how much there is to read.
const NAMES_BOUNDS: &[Bound] = &[
    (libc::SYS_socket, 0, u32::MAX as u64, libc::AF_UNIX as u64),
    (libc::SYS_socket, 0, u32::MAX as u64, libc::AF_INET as u64),
    (libc::SYS_socket, 0, u32::MAX as u64, libc::AF_INET6 as u64),
    (libc::SYS_socket, 0, u32::MAX as u64, libc::AF_NETLINK as u64),
    (libc::SYS_ioctl, 1, u32::MAX as u64, libc::FIONREAD),
];

/// Of the log: standard error, which all may write to, may not take more at once.
const LOG: &[&[Call]] = &[POLL];

/// Of the threads that hear signals and the end of standard input, and of the first one, which ends the process.
const CONTROL: &[&[Call]] = &[
    POLL,
    &[libc::SYS_read, libc::SYS_recvfrom, libc::SYS_sendto, libc::SYS_write, libc::SYS_writev],
    &[libc::SYS_rt_sigaction, libc::SYS_exit_group],
];

fn lists(kind: ThreadKind) -> &'static [&'static [&'static [Call]]] {
    match kind {
        ThreadKind::Packet => &[ALL, PACKET],
        ThreadKind::KeyExchange => &[ALL, WAITING, STREAMS],
        ThreadKind::PublicKey => &[ALL, WAITING, PUBLIC_KEY],
        ThreadKind::Metrics => &[ALL, WAITING, STREAMS, EVENT_LOOP, LISTEN],
        ThreadKind::Clock => &[ALL, WAITING, CLOCK],
        ThreadKind::Supervisor => &[ALL, WAITING, SUPERVISOR],
        ThreadKind::Fleet => &[ALL, WAITING, FLEET],
        ThreadKind::Log => &[ALL, WAITING, LOG],
        ThreadKind::Names => &[ALL, WAITING, NAMES],
        ThreadKind::Control => &[ALL, WAITING, CONTROL],
    }
}

/// The rules of a kind, as the compiler wants them: a call without any rule is allowed whatever its arguments are.
fn rules(kind: ThreadKind) -> BTreeMap<i64, Vec<SeccompRule>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    // A panic that cannot be carried on ends the process: a signal, to itself and to nobody else.
    let own_end = (libc::SYS_tgkill, 0, u64::from(u32::MAX), u64::from(std::process::id()));
    // The type of sockets that it may open.
    let socket = match kind {
        ThreadKind::Clock => Some(libc::SOCK_DGRAM as u64),
        ThreadKind::Fleet => Some(libc::SOCK_STREAM as u64),
        ThreadKind::Names
        | ThreadKind::Packet
        | ThreadKind::KeyExchange
        | ThreadKind::PublicKey
        | ThreadKind::Metrics
        | ThreadKind::Supervisor
        | ThreadKind::Log
        | ThreadKind::Control => None,
    };
    let bounds = if kind == ThreadKind::Names { NAMES_BOUNDS } else { &[] };
    for (call, place, mask, value) in BOUNDS.iter().chain(bounds).copied().chain([own_end]) {
        rules.entry(call).or_default().push(rule(&[(place, mask, value)]));
    }
    for domain in SOCKET_DOMAINS {
        let sockets = socket.map(|of| rule(&[(0, u32::MAX.into(), domain), (1, SOCKET_TYPE, of)]));
        if let Some(sockets) = sockets {
            rules.entry(libc::SYS_socket).or_default().push(sockets);
        }
    }
    rules.extend(lists(kind).concat().concat().into_iter().map(|call| (call, Vec::new())));
    rules
}

/// Allows a call if all of these arguments are right: the place of each, a mask, and what it is under that mask.
fn rule(arguments: &[(u8, u64, u64)]) -> SeccompRule {
    let conditions = arguments.iter().map(|&(place, mask, value)| {
        SeccompCondition::new(place, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
    });
    conditions
        .collect::<Result<_, _>>()
        .and_then(SeccompRule::new)
        .expect("a call has six arguments, and a rule a condition")
}

#[cfg(test)]
mod tests;
