//! Priorities of a server's threads where packet workers and key exchange share processors, as the kernel reports them.

use std::path::PathBuf;
use std::time::Duration;

use authentick_lab::kernel::without_slices;
use authentick_net::priority::{self, SHORTEST_SLICE, Scheduling};
use authentick_rig::process::threads;

use crate::lab::{Lab, Server, authentick, start, text, wait_for};

/// sched(7).
const SCHED_OTHER: i32 = 0;
const SCHED_BATCH: i32 = 3;
const SCHED_IDLE: i32 = 5;
/// EPERM. errno(3).
const NOT_PERMITTED: i32 = 1;

/// A server with threads of every kind, and a packet worker on each processor.
fn config(lab: &Lab, nts: &str) -> PathBuf {
    lab.antp_identity("ecdh", |_| {});
    let config = lab.antp_config(&["ecdh"], "workers = 0", "");
    let text = std::fs::read_to_string(&config).unwrap().replace("[nts]\n", &format!("[nts]\n{nts}\n"));
    std::fs::write(&config, text).unwrap();
    config
}

/// Asserts how threads whose names begin so are scheduled. A thread does that when it has begun, which may be after the
/// server has logged where it serves.
#[track_caller]
fn assert_scheduled(server: &Server, begin: &str, expected: Scheduling) {
    let found = || -> Vec<Scheduling> {
        let ids = threads(server.process.id(), begin);
        ids.into_iter().filter_map(|id| priority::of(id.cast_signed()).ok()).collect()
    };
    let is_expected = |all: &[Scheduling]| !all.is_empty() && all.iter().all(|one| *one == expected);
    wait_for(&format!("{begin} to be {expected:?}"), || is_expected(&found()).then_some(()));
}

/// The line about priorities that the start and `--check` both have.
fn assert_logged(server: &Server, config: &std::path::Path, parts: &[&str]) {
    let check = || authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
    let checked = match parts.contains(&"not permitted") {
        true => without_slices(NOT_PERMITTED, check),
        false => check(),
    };
    for log in [server.process.log(), text(&checked)] {
        let line = log.lines().find(|line| line.contains("priorities: "));
        let line = line.unwrap_or_else(|| panic!("{log}"));
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }
}

fn usual() -> Scheduling {
    priority::of(0).unwrap()
}

fn has_slices() -> bool {
    usual().slice != Duration::ZERO
}

#[test]
fn key_exchange_yields_to_packet_workers_alone() {
    let lab = Lab::new();
    let config = config(&lab, "");
    let server = start(&config);
    let (packet, exchange, part) = match has_slices() {
        true => (Scheduling { slice: SHORTEST_SLICE, ..usual() }, usual(), "slices of 0.1 ms"),
        false => (usual(), Scheduling { policy: SCHED_BATCH, ..usual() }, "Linux 6.12"),
    };
    assert_eq!(usual().policy, SCHED_OTHER);
    for (begin, expected) in [
        ("ntp-", packet),
        ("ke-", exchange),
        ("antp-", exchange),
        ("metrics", Scheduling { policy: SCHED_BATCH, ..usual() }),
        ("clock", usual()),
        ("supervisor", usual()),
    ] {
        assert_scheduled(&server, begin, expected);
    }
    assert_logged(&server, &config, &[part]);
}

#[test]
fn key_exchange_set_to_idle_yields_to_all() {
    let lab = Lab::new();
    let config = config(&lab, "ke-priority = \"idle\"");
    let server = start(&config);
    let idle = Scheduling { policy: SCHED_IDLE, ..usual() };
    for begin in ["ke-", "antp-"] {
        assert_scheduled(&server, begin, idle);
    }
    assert_logged(&server, &config, &["SCHED_IDLE"]);
}

#[test]
fn kernel_without_slices_has_key_exchange_in_batch() {
    for (errno, part) in [(0, "Linux 6.12"), (NOT_PERMITTED, "not permitted")] {
        let lab = Lab::new();
        let config = config(&lab, "");
        let server = without_slices(errno, || start(&config));
        assert_scheduled(&server, "ntp-", usual());
        for begin in ["ke-", "antp-"] {
            assert_scheduled(&server, begin, Scheduling { policy: SCHED_BATCH, ..usual() });
        }
        let log = server.process.log();
        let line = log.lines().find(|line| line.contains("priorities: ")).unwrap();
        assert!(line.contains(part) && line.contains("SCHED_BATCH"), "{line}");
    }
}
