//! What resources key exchange may use: processors, descriptors and memory.
//!
//! Requests for time have priority. Threads of key exchange have processors of their own if packet workers leave some,
//! and otherwise yield to packet workers, and to no other program. Enough descriptors are reserved for everything else
//! that the server does.

use std::io;
use std::thread;

use authentick_ke::server::{CONNECTION_SIZE, Limits};
use authentick_net::priority::Priority;
use authentick_net::{affinity, descriptors, memory};

use crate::config::{Config, ConfigError, KePriority};
use crate::metrics::READER_COUNT_MAX;

/// Descriptors for what is open briefly: files that are read again, keys that are written, the socket to an upstream, a
/// log.
const FILE_COUNT: usize = 32;
/// Of the endpoints of metrics and of health: an event queue, what wakes it, and connections with one that is about to
/// be closed.
const ENDPOINT_COUNT: usize = 2 * (8 + READER_COUNT_MAX);
/// Of a thread of key exchange: its event queue, what wakes it, a connection that is being refused, and the one that a
/// thread may have beyond the limit.
const THREAD_COUNT: usize = 4;
/// How many descriptors are assumed to be open if the system does not tell.
const OPEN_COUNT: usize = 128;

/// How many threads of key exchange there are if the configuration does not say: as many as processors that they run
/// on.
pub(crate) fn thread_count(cpus: &[usize], worker_count: usize) -> usize {
    match own_cpus(cpus, worker_count) {
        [] => cpus.len(),
        own => own.len(),
    }
}

/// The processors that no packet worker is pinned to.
pub(crate) fn own_cpus(cpus: &[usize], worker_count: usize) -> &[usize] {
    cpus.get(worker_count..).unwrap_or_default()
}

/// The priority of key exchange threads on processors of packet workers, and a line about it, a warning if the kernel
/// refused something.
///
/// No thread can leave SCHED_IDLE without rights, nor change its priority once it is contained; so all threads choose
/// at the start.
pub(crate) fn exchange_priority(wanted: KePriority) -> (Priority, Result<String, String>) {
    chosen(wanted, can_be_prompt())
}

/// Whether the kernel takes what packet workers ask for; tried by a thread that ends.
fn can_be_prompt() -> io::Result<()> {
    thread::scope(|scope| scope.spawn(|| Priority::Prompt.set()).join().expect("it does not panic"))
}

fn chosen(wanted: KePriority, prompt: io::Result<()>) -> (Priority, Result<String, String>) {
    let priority = match (wanted, &prompt) {
        (KePriority::Idle, _) => Priority::Idle,
        (KePriority::Fair, Ok(())) => Priority::Fair,
        // A thread that wakes does not preempt a packet worker then.
        (KePriority::Fair, Err(_)) => Priority::Batch,
    };
    let line = match prompt {
        Ok(()) => Ok(format!("priorities: packet workers have slices of 0.1 ms, key exchange is {priority}")),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(format!(
            "priorities: key exchange is {priority}; packet workers have no shorter slices, which take Linux 6.12"
        )),
        Err(error) => Err(format!(
            "priorities: key exchange is {priority}; packet workers have no shorter slices: sched_setattr(2): {error}; \
             allow this call in the service's or container's filter"
        )),
    };
    (priority, line)
}

/// Has the calling packet worker preempt other threads of its processor. What the kernel refuses of it has been logged.
pub(crate) fn step_forward() {
    let _ = Priority::Prompt.set();
}

/// Confines the calling thread to `own_cpus`, and gives it `priority` where it shares processors with packet workers.
pub(crate) fn step_back(thread: &str, own_cpus: &[usize], priority: Priority) {
    if !own_cpus.is_empty() {
        match affinity::confine(own_cpus) {
            Ok(()) if priority == Priority::Idle => {}
            Ok(()) => return,
            Err(error) => log::warn!("{thread} may use the processors of packet workers: {error}"),
        }
    }
    if let Err(error) = priority.set() {
        log::warn!("{thread} is not {priority}: {error}");
    }
}

/// The same for the metrics thread, which gets its share: timed requests are lost that it does not collect in time.
pub(crate) fn step_back_metrics(own_cpus: &[usize]) {
    step_back("the metrics thread", own_cpus, Priority::Batch);
}

/// Raises the limit on descriptors as far as the system lets this process.
pub(crate) fn raise_descriptor_limit() {
    if let Err(error) = descriptors::raise_limit() {
        log::warn!("the limit on descriptors stays as it was: {error}");
    }
}

/// The limits of key exchange, with as many connections as the memory limit of this process's control group allows.
/// Called before files are out of reach; logs a warning if there are fewer than configured.
pub(crate) fn bounded_by_memory(limits: Limits) -> Limits {
    let Some(limit) = memory::cgroup_limit() else { return limits };
    let room = memory_room(limit);
    if room >= limits.connection_count {
        return limits;
    }
    log::warn!(
        "nts.ke-limits.connections = {}: the control group's memory limit is {} MiB, and a quarter of it holds {room} \
         connections, so at most {room} are admitted at once; raise the limit (MemoryMax= in a unit of systemd, \
         resources.limits.memory in Kubernetes), or lower the number",
        limits.connection_count,
        limit >> 20,
    );
    Limits { connection_count: room, ..limits }
}

/// How many key exchange connections a quarter of so many octets of memory holds; at least one.
fn memory_room(limit: u64) -> usize {
    usize::try_from(limit / 4).unwrap_or(usize::MAX).div_euclid(CONNECTION_SIZE).max(1)
}

/// The limits of key exchange, with as many connections as there are descriptors for. Called when all sockets of the
/// server are open, or by `--check` with none open; logs a warning if there are fewer than configured.
pub(crate) fn bounded_by_descriptors(limits: Limits, thread_count: usize) -> Limits {
    let Some(limit) = descriptors::limit() else { return limits };
    let open_count = descriptors::open_count().unwrap_or(OPEN_COUNT);
    let room = connection_room(limit, open_count, thread_count);
    if room >= limits.connection_count {
        return limits;
    }
    log::warn!(
        "nts.ke-limits.connections = {}: this process may have {limit} descriptors, and keeps {} of them for other \
         things than key exchange, so it takes {room} connections at once; raise its limit (LimitNOFILE= in a unit of \
         systemd, ulimit -n in a shell), or lower the number",
        limits.connection_count,
        limit.saturating_sub(room as u64),
    );
    Limits { connection_count: room, ..limits }
}

/// How many key exchange connections fit beside `open_count` open descriptors and the reserved ones; at least one.
fn connection_room(limit: u64, open_count: usize, thread_count: usize) -> usize {
    let kept = FILE_COUNT + ENDPOINT_COUNT + THREAD_COUNT * thread_count;
    usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(open_count + kept).max(1)
}

/// Descriptors that containment and the threads after it take at once, with some to spare.
const DESCRIPTOR_ROOM: usize = 8;

/// Whether there are descriptors left for containment, which would otherwise leave out rules for files that it could
/// not open.
pub(crate) fn check_descriptors(config: &Config) -> Result<(), ConfigError> {
    descriptors::have_room(DESCRIPTOR_ROOM).map_err(|error| {
        let limit = descriptors::limit().map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
        let remedy = "raise the limit on open files (LimitNOFILE= of systemd, ulimit -n) to 64 or more";
        config.wrong("file descriptors", limit, error, remedy).of_passing(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_processors_are_those_that_packet_workers_leave() {
        let cpus = [2, 3, 5, 7];
        assert_eq!((own_cpus(&cpus, 1), thread_count(&cpus, 1)), (&[3, 5, 7][..], 3));
        for worker_count in [4, 9] {
            assert_eq!((own_cpus(&cpus, worker_count), thread_count(&cpus, worker_count)), (&[][..], 4));
        }
    }

    #[test]
    fn key_exchange_yields_to_packet_workers_alone() {
        let refused = || io::Error::from_raw_os_error(libc::EPERM);
        for (wanted, prompt, expected, parts) in [
            (KePriority::Fair, Ok(()), Priority::Fair, &["slices of 0.1 ms", "SCHED_OTHER"][..]),
            (KePriority::Idle, Ok(()), Priority::Idle, &["slices of 0.1 ms", "SCHED_IDLE"]),
            (
                KePriority::Fair,
                Err(io::ErrorKind::Unsupported.into()),
                Priority::Batch,
                &["6.12", "SCHED_BATCH"],
            ),
            (KePriority::Fair, Err(refused()), Priority::Batch, &["SCHED_BATCH", "not permitted", "allow"]),
            (KePriority::Idle, Err(refused()), Priority::Idle, &["SCHED_IDLE", "not permitted"]),
        ] {
            let (priority, line) = chosen(wanted, prompt);
            assert_eq!(priority, expected);
            assert_eq!(line.is_err(), parts.contains(&"not permitted"));
            let (Ok(line) | Err(line)) = line;
            assert!(parts.iter().all(|part| line.contains(part)), "{line}");
        }
    }

    #[test]
    fn connections_get_what_the_rest_does_not_need() {
        let kept = FILE_COUNT + ENDPOINT_COUNT;
        assert_eq!(connection_room(1024, 20, 2), 1024 - 20 - 8 - kept);
        assert_eq!(connection_room(u64::MAX, 20, 2), usize::MAX - 28 - kept);
        assert_eq!((connection_room(64, 20, 64), connection_room(0, 0, 0)), (1, 1));
    }

    #[test]
    fn pod_with_256_mib_has_room_for_the_default() {
        assert!(memory_room(256 << 20) >= Limits::default().connection_count);
        assert_eq!((memory_room(64 << 20), memory_room(0)), (1638, 1));
    }
}
