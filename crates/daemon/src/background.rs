//! What resources key exchange may use: processors, descriptors and memory.
//!
//! Requests for time have priority. Threads of key exchange have processors of their own if packet workers leave some,
//! and otherwise run only when a processor is idle. Enough descriptors are reserved for everything else that the server
//! does.

use authentick_ke::server::{CONNECTION_SIZE, Limits};
use authentick_net::{affinity, descriptors, memory, priority};

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

/// Pins the calling key exchange thread to `own_cpus`, or gives it the lowest priority if there are none.
pub(crate) fn step_back(index: usize, own_cpus: &[usize]) {
    if !own_cpus.is_empty() {
        match affinity::confine(own_cpus) {
            Ok(()) => return,
            Err(error) => {
                log::warn!("key exchange thread {index} may use the processors of packet workers: {error}");
            }
        }
    }
    // With a nice value, the thread would keep its processor for a time slice while datagrams wait.
    if let Err(error) = priority::lowest() {
        log::warn!("key exchange thread {index} has the priority of packet workers: {error}");
    }
}

/// Pins the metrics thread to `own_cpus`, or has it wait for its turn where packet workers wake, if there are none. It
/// gets its share of a busy processor, since timed requests are lost that it does not collect in time.
pub(crate) fn step_back_metrics(own_cpus: &[usize]) {
    let result = if own_cpus.is_empty() { priority::batch() } else { affinity::confine(own_cpus) };
    if let Err(error) = result {
        log::warn!("the metrics thread has the priority of packet workers: {error}");
    }
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
