//! Filters are run here over every call, as the kernel runs them, and put on threads that then try what is forbidden.

use std::process::Command;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::*;

/// What the kernel would answer: a filter over `struct seccomp_data`. linux/filter.h; only what the compiler emits.
fn answer(program: &Program, call: libc::c_long, arguments: [u64; 6]) -> u32 {
    const AUDIT_ARCH: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
    let mut words = vec![call as u32, AUDIT_ARCH, 0, 0];
    words.extend(arguments.iter().flat_map(|argument| [*argument as u32, (*argument >> 32) as u32]));
    let (mut at, mut value) = (0, 0);
    loop {
        let seccompiler::sock_filter { code, jt, jf, k } = program.0[at];
        at += 1;
        let jump = |is_true: bool| usize::from(if is_true { jt } else { jf });
        match code {
            0x20 => value = words[k as usize / 4],
            0x54 => value &= k,
            0x05 => at += k as usize,
            0x15 => at += jump(value == k),
            0x25 => at += jump(value > k),
            0x35 => at += jump(value >= k),
            RETURN => return k,
            other => panic!("instruction {other:#x}"),
        }
    }
}

const ALLOW: u32 = 0x7fff_0000;
/// Whichever they are, so that no argument makes a call a permitted one.
const ARGUMENTS: [u64; 6] = [u64::MAX; 6];

fn program(kind: ThreadKind) -> Program {
    Program::new(kind).unwrap()
}

fn is_allowed(kind: ThreadKind, call: libc::c_long, arguments: [u64; 6]) -> bool {
    match answer(&program(kind), call, arguments) {
        ALLOW => true,
        refused => {
            assert_eq!(refused, TRAP | kind as u32, "a refusal says whose it is");
            false
        }
    }
}

/// Numbers of calls that are allowed whatever their arguments.
fn free(kind: ThreadKind) -> Vec<i64> {
    let program = program(kind);
    (0..600).filter(|&call| answer(&program, call, ARGUMENTS) == ALLOW).collect()
}

#[test]
fn only_metrics_may_listen_and_they_open_no_socket() {
    for kind in ThreadKind::ALL {
        let is_metrics = kind == ThreadKind::Metrics;
        assert_eq!(is_allowed(kind, libc::SYS_listen, ARGUMENTS), is_metrics, "{}", kind.name());
    }
    for socket_type in [libc::SOCK_STREAM, libc::SOCK_DGRAM] {
        let arguments = [libc::AF_INET as u64, socket_type as u64, 0, 0, 0, 0];
        assert!(!is_allowed(ThreadKind::Metrics, libc::SYS_socket, arguments));
    }
}

#[test]
fn what_takes_a_host_over_is_refused_to_every_kind_of_thread() {
    let calls = [
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_clone,
        libc::SYS_clone3,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_tgkill,
        libc::SYS_prctl,
        libc::SYS_setuid,
        libc::SYS_setgid,
        libc::SYS_setresuid,
        libc::SYS_setgroups,
        libc::SYS_capset,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_io_uring_setup,
        libc::SYS_userfaultfd,
        libc::SYS_keyctl,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_kexec_load,
        libc::SYS_memfd_create,
        libc::SYS_clock_settime,
        libc::SYS_settimeofday,
        libc::SYS_ioctl,
        libc::SYS_socketpair,
    ];
    for kind in ThreadKind::ALL {
        for call in calls {
            assert!(!is_allowed(kind, call, ARGUMENTS), "{}: {call}", kind.name());
        }
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            let with = |rights: i32| [0, 4096, rights as u64, 0, 0, 0];
            assert!(is_allowed(kind, call, with(libc::PROT_READ | libc::PROT_WRITE)));
            // A process that looks a name up has the C library's modules mapped.
            let is_code = is_allowed(kind, call, with(libc::PROT_READ | libc::PROT_EXEC));
            assert_eq!(is_code, kind == ThreadKind::Names && call == libc::SYS_mmap, "{}", kind.name());
        }
        let own = u64::from(std::process::id());
        assert!(is_allowed(kind, libc::SYS_tgkill, [own, 1, 6, 0, 0, 0]), "a process may end itself");
        assert!(!is_allowed(kind, libc::SYS_tgkill, [own + 1, 1, 6, 0, 0, 0]), "and no other");
    }
    // The highest bit tells calls of another table on x86-64.
    assert!(!is_allowed(ThreadKind::Supervisor, libc::SYS_openat | 0x4000_0000, [0; 6]));
}

#[test]
fn files_are_the_supervisors_alone_and_sockets_the_clock_s_for_datagrams_and_the_fleet_s_for_streams() {
    for kind in ThreadKind::ALL.into_iter().filter(|kind| *kind != ThreadKind::Names) {
        let has = |call| is_allowed(kind, call, ARGUMENTS);
        assert_eq!(has(libc::SYS_openat), kind == ThreadKind::Supervisor, "{}", kind.name());
        let (looks_at_the_clock, asks_servers) = (kind == ThreadKind::Clock, kind == ThreadKind::Fleet);
        assert_eq!(has(libc::SYS_connect), looks_at_the_clock || asks_servers, "{}", kind.name());
        let of = |family: i32, sort: i32| {
            is_allowed(kind, libc::SYS_socket, [family as u64, sort as u64, 0, 0, 0, 0])
        };
        for domain in 0..64 {
            let is_internet = [libc::AF_INET, libc::AF_INET6].contains(&domain);
            for sort in 0..16 {
                let may_open = is_internet
                    && (sort == libc::SOCK_DGRAM && looks_at_the_clock
                        || sort == libc::SOCK_STREAM && asks_servers);
                let name = kind.name();
                assert_eq!(of(domain, sort | libc::SOCK_CLOEXEC), may_open, "{name}: {domain} {sort}");
            }
        }
        // What stands above the 32 bits that the kernel looks at changes nothing.
        assert!(!is_allowed(kind, libc::SYS_socket, [1 << 32 | 1, 1, 0, 0, 0, 0]));
    }
}

#[test]
fn look_up_may_open_files_and_sockets_of_resolvers() {
    let is_allowed = |call, arguments| is_allowed(ThreadKind::Names, call, arguments);
    let socket = |family: i32, sort: i32| {
        is_allowed(libc::SYS_socket, [family as u64, (sort | libc::SOCK_CLOEXEC) as u64, 0, 0, 0, 0])
    };
    for family in [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX, libc::AF_NETLINK] {
        assert!(socket(family, libc::SOCK_DGRAM) && socket(family, libc::SOCK_STREAM), "{family}");
    }
    assert!(!socket(libc::AF_PACKET, libc::SOCK_RAW) && !socket(libc::AF_VSOCK, libc::SOCK_STREAM));
    assert!(is_allowed(libc::SYS_openat, ARGUMENTS) && is_allowed(libc::SYS_connect, ARGUMENTS));
    assert!(is_allowed(libc::SYS_ioctl, [3, libc::FIONREAD, 0, 0, 0, 0]));
    assert!(!is_allowed(libc::SYS_ioctl, [3, libc::TIOCSTI, 0, 0, 0, 0]));
    for call in
        [libc::SYS_unlinkat, libc::SYS_renameat2, libc::SYS_mkdirat, libc::SYS_fchmodat, libc::SYS_accept4]
    {
        assert!(!is_allowed(call, ARGUMENTS), "{call}");
    }
}

/// The proof that the data plane takes no lock, as far as a filter can give it: it could not wait for one.
#[test]
fn packet_workers_wake_others_and_never_wait() {
    let futex = |kind, command: i32| is_allowed(kind, libc::SYS_futex, [0, command as u64, 0, 0, 0, 0]);
    for kind in ThreadKind::ALL {
        for flag in [0, libc::FUTEX_PRIVATE_FLAG, libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME] {
            assert!(futex(kind, libc::FUTEX_WAKE | flag), "{}", kind.name());
            for wait in [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET, libc::FUTEX_LOCK_PI] {
                assert_eq!(futex(kind, wait | flag), kind != ThreadKind::Packet, "{} {wait}", kind.name());
            }
        }
    }
    // Every 64 KiB of random octets: rarely enough for other tests not to come to it.
    assert!(is_allowed(ThreadKind::Packet, libc::SYS_getrandom, ARGUMENTS));
    let mut expected = vec![libc::SYS_recvmmsg, libc::SYS_sendmmsg, libc::SYS_ppoll, libc::SYS_getsockopt];
    #[cfg(target_arch = "x86_64")]
    expected.push(libc::SYS_poll);
    #[cfg(feature = "delays")]
    expected.push(libc::SYS_clock_nanosleep);
    expected.extend(ALL.concat());
    expected.sort_unstable();
    assert_eq!(free(ThreadKind::Packet), expected, "nothing else, whatever its arguments");
}

/// On a thread of its own, under the filter of `kind`: runs `work`; returns what it says and which calls were refused.
fn under<T: Send>(kind: ThreadKind, work: impl FnOnce() -> T + Send) -> (T, u64) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap();
    authentick_net::refusal::install().unwrap();
    let before = kind.refused_count();
    let run = move || {
        program(kind).apply().unwrap();
        work()
    };
    let told = thread::scope(|scope| scope.spawn(run).join().unwrap());
    (told, kind.refused_count() - before)
}

#[test]
fn refused_call_returns_an_error_is_counted_and_named() {
    for kind in ThreadKind::ALL {
        let ((spawned, opened, killed), count) = under(kind, || {
            let spawned = Command::new("/bin/true").spawn().unwrap_err();
            let opened = std::net::TcpListener::bind("127.0.0.1:0").unwrap_err();
            let killed = rustix::process::test_kill_process(rustix::process::Pid::INIT).unwrap_err();
            (spawned, opened, killed)
        });
        for error in [spawned.raw_os_error(), opened.raw_os_error(), Some(killed.raw_os_error())] {
            assert_eq!(error, Some(libc::EPERM), "{}", kind.name());
        }
        assert!(count >= 3, "{}: {count}", kind.name());
        assert!(kind.refused_calls().any(|call| call == libc::SYS_kill as usize), "{}", kind.name());
    }
}

/// A lock that is held makes the thread spin and does not end the process: glibc's own would otherwise.
#[test]
fn packet_worker_that_meets_a_lock_is_counted_and_goes_on() {
    let lock = Mutex::new(1);
    let (ready, held) = mpsc::channel();
    thread::scope(|scope| {
        let lock = &lock;
        scope.spawn(move || {
            let mut value = lock.lock().unwrap();
            ready.send(()).unwrap();
            thread::sleep(Duration::from_millis(50));
            *value = 2;
        });
        held.recv().unwrap();
        let (value, count) = under(ThreadKind::Packet, || *lock.lock().unwrap());
        assert!(value == 2 && count > 0, "{value} after {count} refused calls");
    });
}
