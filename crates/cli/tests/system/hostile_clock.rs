//! A server on a host whose disk hangs or whose memory is short, and what a client that asks ten times a second makes
//! of it.

use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use authentick_lab::disk::Disk;
use authentick_lab::memory::MemoryLimit;
use authentick_lab::prober::{Prober, lost_count};
use authentick_wire::header::Leap;

use crate::lab::{Lab, is_root, start, wait_for};

/// Half the time that systemd gives a service to stop.
const PROMPT: Duration = Duration::from_secs(45);

#[test]
fn disk_that_hangs_stops_neither_time_nor_the_end() {
    if !is_root("to mount a disk that hangs") {
        return;
    }
    let lab = Lab::new();
    std::fs::create_dir(lab.state()).unwrap();
    let disk = match Disk::mount(&lab.path().join("disk.img"), &lab.state()) {
        Ok(disk) => disk,
        Err(skip) => return skip.tell(),
    };
    std::fs::set_permissions(lab.state(), PermissionsExt::from_mode(0o700)).unwrap();
    let mut server = start(&lab.config("", "cookie-keys = { rotate = \"3s\", keep = 60 }"));
    let prober = Prober::start(server.ntp);
    wait_for("a rotation", || (server.metric("nts_cookie_key_rotations_total") >= 1.0).then_some(()));
    assert_eq!((server.get("/healthz"), server.get("/readyz")), ("ok\n".to_owned(), "ok\n".to_owned()));
    if let Err(skip) = disk.freeze() {
        return skip.tell();
    }
    // The next rotation hangs; the server goes on with the key that it has, and says so.
    server.process.wait_for_line("writing cookie keys or their age hangs");
    assert!(server.metric("ntp_heartbeat_age_seconds{thread=\"files\"}") > 10.0);
    assert!(server.metric("ntp_heartbeat_age_seconds{thread=\"clock\"}") < 10.0);
    assert_eq!(server.get("/healthz"), "ok\n", "another start would not bring the disk back");
    let said = server.get("/readyz");
    assert!(said.starts_with("files: writing cookie keys or their age has hung for "), "{said}");
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0), "keys are exchanged all the same");
    let told = prober.during(Duration::from_secs(2));
    assert!(told.len() > 5);
    assert_eq!(lost_count(&told), 0);
    assert!(told.iter().all(|probe| probe.told.is_some_and(|told| told.leap == Leap::None)));
    assert_eq!(lost_count(&prober.stop()), 0, "from the beginning");
    // It ends all the same, and says what it does not wait for.
    let (asked, port) = (Instant::now(), server.ntp);
    server.process.signal("-TERM");
    server
        .process
        .wait_for_line("stopped without waiting any longer: writing cookie keys or their age hangs");
    assert!(asked.elapsed() < PROMPT);
    assert!(UdpSocket::bind(port).is_ok(), "its port is free for whoever takes its place");
    // The kernel takes the thread away only when the disk answers.
    drop(disk);
    assert_eq!(server.process.wait(), 70);
}

#[test]
fn server_under_load_stays_within_the_memory_that_it_has() {
    /// Twice what an idle server of two workers has.
    const LIMIT: u64 = 96 << 20;
    if !is_root("to limit the memory of a server") {
        return;
    }
    let memory = match MemoryLimit::new(LIMIT) {
        Ok(memory) => memory,
        Err(skip) => return skip.tell(),
    };
    let lab = Lab::new();
    let server = start(&lab.config("", "ke-limits = { connections = 200, per-prefix = 200 }"));
    memory.add(server.process.id());
    let prober = Prober::start(server.ntp);
    let flood = UdpSocket::bind("127.0.0.1:0").unwrap();
    flood.connect(server.ntp).unwrap();
    let mut request = [0; 48];
    request[0] = 0x23;
    // Connections that say nothing, and more of them than there is room for; beside them requests without end.
    let mut strangers = Vec::new();
    let started = Instant::now();
    let mut number: u64 = 0;
    while started.elapsed() < Duration::from_secs(4) {
        for _ in 0..20 {
            number += 1;
            request[40..].copy_from_slice(&number.to_be_bytes());
            let _ = flood.send(&request);
        }
        if strangers.len() < 400 {
            strangers.extend(TcpStream::connect(server.ke));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let probes = prober.stop();
    drop(strangers);
    assert!(memory.most() < LIMIT && memory.kill_count() == 0, "{} of {LIMIT}", memory.most());
    assert!(probes.len() > 20 && lost_count(&probes) == 0, "{} of {}", lost_count(&probes), probes.len());
    assert!(probes.iter().all(|probe| probe.told.is_some_and(|told| told.leap == Leap::None)));
    assert!(server.metric("ntp_server_received_packets_total") > 1000.0);
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0));
}
