//! A server under a service manager: what it says of itself, and what becomes of its sockets when it ends, in whichever
//! way. A unit of systemd has the same words; it is tried in a machine of its own.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use authentick_lab::manager::ServiceManager;
use authentick_lab::process::{PATIENCE, Process};
use authentick_wire::header::Header;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::NtpTime;

use crate::lab::{Lab, free_port, program, wait_for};

/// A server with a port for time and one for keys, both named, and so many workers of each.
fn config(lab: &Lab, port: u16, workers: usize) -> std::path::PathBuf {
    let server = format!("listen = [\"127.0.0.1:{port}\"]\nworkers = {workers}");
    lab.config(&server, &format!("ke-listen = [\"127.0.0.1:{port}\"]\nke-workers = {workers}"))
}

fn start(manager: &ServiceManager, config: &Path) -> Process {
    manager.start(Command::new(program().path()).arg("serve").arg("--config").arg(config))
}

/// A client that can send requests without waiting for their answers.
struct Client(UdpSocket);

impl Client {
    fn new(port: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Client(socket)
    }

    fn send(&self, number: u64) {
        let mut request = [0; HEADER_SIZE];
        Header::minimal_request(NtpTime::from_bits(number + 1)).emit(&mut request);
        self.0.send(&request).unwrap();
    }

    /// Waits for answers to all of the first `count`.
    fn all_answered(&self, count: u64) {
        let mut missing: std::collections::BTreeSet<u64> = (1..=count).collect();
        let mut answer = [0; 512];
        while !missing.is_empty() {
            let size =
                self.0.recv(&mut answer).unwrap_or_else(|error| panic!("{error}: {missing:?} are lost"));
            assert!(size >= HEADER_SIZE);
            missing.remove(&u64::from_be_bytes(answer[24..32].try_into().unwrap()));
        }
    }
}

#[test]
fn service_manager_hears_how_the_server_does() {
    let lab = Lab::new();
    let mut manager = ServiceManager::new();
    let mut command = Command::new(program().path());
    command.arg("serve").arg("--config").arg(config(&lab, free_port(), 1)).env("WATCHDOG_USEC", "400000");
    let mut server = manager.start(&command);
    let ready = manager.hear("READY=1");
    assert!(ready.contains("STATUS=stratum 1; 0 requests received"), "{ready}");
    manager.hear("WATCHDOG=1");
    server.signal("-HUP");
    let reloading = manager.hear("RELOADING=1");
    let instant = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC=")).unwrap();
    assert!(instant.parse::<u64>().unwrap() > 0);
    manager.hear("READY=1");
    // What it wrote before that is on its way here.
    let is_told = || server.log().contains("certificate read again").then_some(());
    wait_for("the certificate, which was read before it was ready", is_told);
    server.signal("-TERM");
    manager.hear("STOPPING=1");
    assert_eq!(server.wait(), 0);
}

#[test]
fn what_comes_while_no_server_runs_waits_for_the_next() {
    const COUNT: u64 = 200;
    let lab = Lab::new();
    let port = free_port();
    let mut manager = ServiceManager::new();
    let mut server = start(&manager, &config(&lab, port, 1));
    manager.hear("READY=1");
    let names = [format!("udp-127.0.0.1_{port}"), format!("tcp-127.0.0.1_{port}")];
    assert_eq!(manager.kept(), names);
    let client = Client::new(port);
    client.send(0);
    client.all_answered(1);
    server.signal("-KILL");
    server.wait();
    (0..COUNT).for_each(|number| client.send(number));
    let connection = std::net::TcpStream::connect(("127.0.0.1", port)).expect("it waits to be accepted");
    let mut server = start(&manager, &config(&lab, port, 1));
    client.all_answered(COUNT);
    manager.hear("READY=1");
    assert_eq!(manager.kept(), names, "the same sockets");
    drop(connection);
    let query = program().run([
        "query",
        "127.0.0.1",
        "--ke-port",
        &port.to_string(),
        "--ca",
        lab.ca().to_str().unwrap(),
    ]);
    assert_eq!(query.status.code(), Some(0), "keys are exchanged on the listener that was kept: {query:?}");
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
}

#[test]
fn more_workers_join_the_sockets_that_were_kept_and_fewer_leave_none_unread() {
    const COUNT: u64 = 64;
    let lab = Lab::new();
    let port = free_port();
    let mut manager = ServiceManager::new();
    for workers in [1, 3, 2] {
        let mut server = start(&manager, &config(&lab, port, workers));
        manager.hear("READY=1");
        let count = |kind: &str| manager.kept().iter().filter(|name| name.starts_with(kind)).count();
        assert_eq!((count("udp"), count("tcp")), (workers, workers));
        // Each from a port of its own: all sockets of the group have their share.
        let clients: Vec<Client> = (0..COUNT).map(|_| Client::new(port)).collect();
        clients.iter().for_each(|client| client.send(0));
        clients.iter().for_each(|client| client.all_answered(1));
        server.signal("-KILL");
        server.wait();
    }
}

#[test]
fn socket_of_an_address_that_is_served_no_more_is_closed() {
    let lab = Lab::new();
    let (old, new) = (free_port(), free_port());
    let mut manager = ServiceManager::new();
    let mut server = start(&manager, &config(&lab, old, 1));
    manager.hear("READY=1");
    server.signal("-TERM");
    server.wait();
    let mut server = start(&manager, &config(&lab, new, 1));
    manager.hear("READY=1");
    assert_eq!(manager.kept(), [format!("udp-127.0.0.1_{new}"), format!("tcp-127.0.0.1_{new}")]);
    assert!(server.log().contains(&format!("nothing is served on 127.0.0.1:{old} now")), "{}", server.log());
    assert!(UdpSocket::bind(("127.0.0.1", old)).is_ok(), "it is free again");
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
}

#[test]
fn service_manager_that_is_gone_keeps_no_server_from_serving() {
    let lab = Lab::new();
    let port = free_port();
    let file = config(&lab, port, 1);
    let mut command = Command::new(program().path());
    command.arg("serve").arg("--config").arg(&file).env("NOTIFY_SOCKET", lab.path().join("nobody"));
    let mut server = Process::start(&mut command);
    server.wait_for_line("serving time on ");
    assert!(server.log().contains("NOTIFY_SOCKET: "), "{}", server.log());
    let client = Client::new(port);
    client.send(0);
    client.all_answered(1);
    drop(server);

    let manager = ServiceManager::new();
    let mut server = start(&manager, &file);
    server.wait_for_line("serving time on ");
    drop(manager);
    server.signal("-HUP");
    server.wait_for_line("the service manager does not hear how this server does");
    std::thread::sleep(Duration::from_millis(50));
    client.send(0);
    client.all_answered(1);
    server.signal("-TERM");
    assert_eq!(server.wait(), 0, "{}", server.log());
}
