//! States of a host that pass: addresses, interfaces and ports that come later, a full disk, too few descriptors, and
//! signals sent by habit. None of them is a mistake in the configuration, and none ends a server for good.

use std::fs;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use authentick_lab::disk::RamDisk;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::manager::ServiceManager;
use authentick_lab::process::Process;
use authentick_wire::header::Header;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::NtpTime;

use crate::lab::{
    Lab, Server, authentick, free_port, is_root, program, refused, serve, start, text, wait_for,
};

fn launch(config: &Path) -> Process {
    Process::start(Command::new(program().path()).arg("serve").arg("--config").arg(config))
}

/// Runs a server that does not come up to its end.
fn ended(config: &Path) -> std::process::Output {
    authentick(["serve", "--config", config.to_str().unwrap()])
}

fn checked(config: &Path) -> String {
    let output = authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    text(&output)
}

/// Whether a request for time is answered at `server`.
fn is_answered(server: SocketAddr) -> bool {
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut request = [0; HEADER_SIZE];
    Header::minimal_request(NtpTime::from_bits(1)).emit(&mut request);
    socket.send_to(&request, server).is_ok() && socket.recv(&mut [0; 512]).is_ok()
}

/// Whether a process has ended; it may not have been waited for. proc_pid_stat(5).
fn has_ended(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

fn hosts() -> Option<Hosts> {
    Hosts::new(1).map_err(|skip| skip.tell()).ok()
}

fn ip(hosts: &Hosts, arguments: &str) {
    let status = hosts.on(Host::Server, "ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// The usual configuration with metrics at this port.
fn with_metrics(lab: &Lab, server: &str, port: u16) -> PathBuf {
    let config = lab.config(server, "");
    let written = fs::read_to_string(&config).unwrap();
    let metrics = format!("[metrics]\nlisten = \"127.0.0.1:{port}\"");
    fs::write(&config, written.replace("[metrics]\nlisten = \"127.0.0.1:0\"", &metrics)).unwrap();
    config
}

#[test]
fn late_address_is_served_once_it_is_there() {
    let Some(hosts) = hosts() else { return };
    let lab = Lab::new();
    let config = lab.config(
        "listen = [\"127.0.0.1:123\", \"198.18.4.1:123\", \"[fd00:4::1]:123\"]",
        "ke-listen = [\"198.18.4.1:4460\"]",
    );
    let server = program().serve_on(&hosts, Host::Server, &config);
    let present = |key: &str, address: &str| {
        let name = format!("ntp_server_address_present{{key=\"{key}\",address=\"{address}\"}}");
        hosts.within(Host::Server, || server.metric(&name))
    };
    assert_eq!(present("server.listen", "127.0.0.1:123"), 1.0);
    for address in ["198.18.4.1:123", "[fd00:4::1]:123"] {
        assert!(server.process.log().contains(&format!("no interface has {address} now")), "{address}");
        assert_eq!(present("server.listen", address), 0.0);
    }
    assert_eq!(hosts.within(Host::Server, || server.get("/readyz")), "ok\n", "one address is there");
    ip(&hosts, "addr add 198.18.4.1/24 dev lo");
    ip(&hosts, "addr add fd00:4::1/64 dev lo");
    for (key, address) in [
        ("server.listen", "198.18.4.1:123"),
        ("server.listen", "[fd00:4::1]:123"),
        ("nts.ke-listen", "198.18.4.1:4460"),
    ] {
        wait_for(address, || (present(key, address) == 1.0).then_some(()));
    }
    for address in ["127.0.0.1:123", "198.18.4.1:123", "[fd00:4::1]:123"] {
        let address = address.parse().unwrap();
        assert!(hosts.within(Host::Server, || is_answered(address)), "{address}");
    }
    assert!(hosts.within(Host::Server, || std::net::TcpStream::connect("198.18.4.1:4460")).is_ok());
}

#[test]
fn server_without_any_of_its_addresses_is_not_ready() {
    let Some(hosts) = hosts() else { return };
    let lab = Lab::new();
    let config = lab.config("listen = [\"198.18.4.1:123\"]", "");
    let warning = checked(&config);
    assert!(warning.contains("server.listen: no interface has 198.18.4.1:123 now"), "{warning}");
    let server = program().serve_on(&hosts, Host::Server, &config);
    let readiness = || hosts.within(Host::Server, || server.get("/readyz"));
    let why = readiness();
    assert!(why.contains("server.listen: no interface has an address of it (198.18.4.1:123)"), "{why}");
    assert_eq!(hosts.within(Host::Server, || server.get("/healthz")), "ok\n", "a restart mends nothing");
    ip(&hosts, "addr add 198.18.4.1/24 dev lo");
    wait_for("readiness", || (readiness() == "ok\n").then_some(()));
}

#[test]
fn zone_whose_interface_comes_later_is_served() {
    let Some(hosts) = hosts() else { return };
    for (text, port) in [("[fe80::1%late0]:123", 123), ("fe80::1%late0:124", 124)] {
        let lab = Lab::new();
        let config = lab.config(&format!("listen = [\"127.0.0.1:{port}\", \"{text}\"]"), "");
        let mut command = hosts.on(Host::Server, program().path());
        let mut server = Process::start(command.arg("serve").arg("--config").arg(&config));
        let line = server.wait_for_line("server.listen = ");
        assert!(line.contains("No such device") && line.contains("trying again for 30 s"), "{line}");
        // None of its ports is held meanwhile.
        wait_for("a free port", || {
            hosts.within(Host::Server, || UdpSocket::bind(("127.0.0.1", port))).ok().map(drop)
        });
        ip(&hosts, "link add late0 type veth peer name late1");
        ip(&hosts, "addr add fe80::1/64 dev late0 nodad");
        ip(&hosts, "link set late0 up");
        ip(&hosts, "link set late1 up");
        server.wait_for_line("all ports are bound, after ");
        let served = server.wait_for_line("serving time on [fe80::1%");
        let scope: u32 = served.split(']').next().unwrap().parse().unwrap();
        let address = SocketAddrV6::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), port, 0, scope);
        wait_for("an answer", || hosts.within(Host::Server, || is_answered(address.into())).then_some(()));
        drop(server);
        ip(&hosts, "link del late0");
    }
}

#[test]
fn taken_port_is_tried_again_until_it_is_free() {
    let lab = Lab::new();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = lab.config(&format!("listen = [\"{}\"]", taken.local_addr().unwrap()), "");
    let mut server = launch(&config);
    server.wait_for_line("trying again for 30 s (server.bind-patience)");
    drop(taken);
    server.wait_for_line("serving time on ");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = lab.config("", &format!("ke-listen = [\"{}\"]", listener.local_addr().unwrap()));
    let mut server = launch(&config);
    server.wait_for_line("trying again for 30 s (server.bind-patience)");
    drop(listener);
    server.wait_for_line("exchanging keys on ");
    assert_eq!(server.log().matches("trying again for").count(), 1, "{}", server.log());
}

#[test]
fn taken_port_ends_with_75_after_patience() {
    let lab = Lab::new();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let config = lab.config(&format!("bind-patience = \"2s\"\nlisten = [\"{address}\"]"), "");
    let begun = Instant::now();
    refused(&ended(&config), 75, &["server.listen", &address.to_string(), "in use", "stop what uses port"]);
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn missing_interface_ends_with_75_after_patience() {
    let lab = Lab::new();
    let config = lab.config("bind-patience = \"1s\"\nlisten = [\"[fe80::1%nosuch0]:123\"]", "");
    let warning = checked(&config);
    assert!(warning.contains("no interface has [fe80::1%nosuch0]:123 now"), "{warning}");
    refused(&ended(&config), 75, &["server.listen", "[fe80::1%nosuch0]:123", "its interface is up"]);
}

#[test]
fn kept_sockets_stay_open_while_a_port_is_taken() {
    let lab = Lab::new();
    let (port, ke) = (free_port(), free_port());
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = |more: &str| {
        let nts = format!("ke-listen = [\"127.0.0.1:{ke}\"]");
        lab.config(&format!("listen = [\"127.0.0.1:{port}\"{more}]"), &nts)
    };
    let mut manager = ServiceManager::new();
    let serve = |manager: &ServiceManager, config: &Path| {
        manager.start(Command::new(program().path()).arg("serve").arg("--config").arg(config))
    };
    let mut server = serve(&manager, &config(""));
    manager.hear("READY=1");
    server.signal("-KILL");
    server.wait();
    let mut server = serve(&manager, &config(&format!(", \"{}\"", taken.local_addr().unwrap())));
    manager.hear("EXTEND_TIMEOUT_USEC=");
    server.wait_for_line("trying again for");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut request = [0; HEADER_SIZE];
    Header::minimal_request(NtpTime::from_bits(1)).emit(&mut request);
    client.send_to(&request, ("127.0.0.1", port)).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    drop(taken);
    assert!(client.recv(&mut [0; 512]).is_ok(), "what came while the other port was taken is answered");
    manager.hear("READY=1");
}

#[test]
fn taken_metrics_port_does_not_stop_time() {
    let lab = Lab::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut server = launch(&with_metrics(&lab, "", port));
    let line = server.wait_for_line("nothing is served on metrics.listen, until its port can be bound");
    assert!(line.contains("metrics.listen = ") && line.contains("in use"), "{line}");
    let address = server.wait_for_line("serving time on ").parse().unwrap();
    assert!(is_answered(address));
    drop(taken);
    assert_eq!(server.wait_for_line("showing metrics on http://"), format!("127.0.0.1:{port}/metrics"));
    assert!(is_answered(address));
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
}

#[test]
fn full_disk_at_the_first_start_does_not_end_it() {
    if !is_root("to mount a file system") {
        return;
    }
    let lab = Lab::new();
    fs::create_dir(lab.state()).unwrap();
    let disk = match RamDisk::mount(&lab.state(), 64 << 10) {
        Ok(disk) => disk,
        Err(reason) => return reason.tell(),
    };
    disk.fill();
    let config = lab.config("bind-patience = \"1s\"", "");
    let keys = |verb: &str| authentick(["keys", verb, "--config", config.to_str().unwrap()]);
    refused(&keys("generate"), 75, &["No space left", "make room"]);
    let _server = serves_until_there_is_room(&lab, &config, &disk, "cookie keys not written");
    disk.fill();
    refused(&keys("rotate"), 75, &["No space left", "make room"]);
}

#[test]
fn state_directory_on_a_full_disk_is_made_later() {
    if !is_root("to mount a file system") {
        return;
    }
    let lab = Lab::new();
    let folder = lab.path().join("disk");
    fs::create_dir(&folder).unwrap();
    let disk = match RamDisk::mount(&folder, 256 << 10) {
        Ok(disk) => disk,
        Err(reason) => return reason.tell(),
    };
    disk.fill_names();
    let config = lab.config("", "");
    let written = fs::read_to_string(&config).unwrap();
    let state = folder.join("above/state");
    fs::write(&config, written.replace(lab.state().to_str().unwrap(), state.to_str().unwrap())).unwrap();
    serves_until_there_is_room(&lab, &config, &disk, "state directory not made");
    assert!(fs::read_dir(&state).unwrap().count() > 0);
}

/// A server that starts on the full disk logs this, serves, and writes its keys once there is room.
#[track_caller]
fn serves_until_there_is_room(lab: &Lab, config: &Path, disk: &RamDisk, logged: &str) -> Server {
    let mut server = start(config);
    assert!(server.process.log().contains(logged), "{}", server.process.log());
    let query = server.query(lab, &[]);
    assert_eq!(query.status.code(), Some(0), "{}", text(&query));
    let why = wait_for("the reason", || Some(server.get("/readyz")).filter(|why| why != "ok\n"));
    assert!(why.contains("cookie keys: not written") && why.contains("make room"), "{why}");
    disk.empty();
    server.process.wait_for_line("cookie keys are written to ");
    wait_for("readiness", || (server.get("/readyz") == "ok\n").then_some(()));
    server
}

#[test]
fn signal_without_a_meaning_is_logged_and_ignored() {
    let lab = Lab::new();
    let mut server = serve(&lab);
    for signal in ["USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "XFSZ"] {
        server.process.signal(&format!("-{signal}"));
        server.process.wait_for_line(&format!("SIG{signal} ignored"));
    }
    server.process.signal("-40");
    server.process.wait_for_line("signal 40 ignored");
    server.process.signal("-PIPE");
    server.process.signal("-HUP");
    server.process.wait_for_line("cookie keys read again");
    assert!(is_answered(server.ntp));
    server.process.signal("-QUIT");
    server.process.wait_for_line("stopping on SIGQUIT");
    assert_eq!(server.process.wait(), 0);
}

#[test]
fn signals_during_the_start_wait_for_its_end() {
    let lab = Lab::new();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = lab.config(&format!("listen = [\"{}\"]", taken.local_addr().unwrap()), "");
    let mut server = launch(&config);
    server.wait_for_line("trying again for");
    for signal in ["-USR1", "-HUP", "-ALRM"] {
        server.signal(signal);
    }
    std::thread::sleep(Duration::from_millis(500));
    drop(taken);
    server.wait_for_line("serving time on ");
    server.wait_for_line("cookie keys read again");
    assert!(server.log().contains("SIGUSR1 ignored"), "{}", server.log());
    // And a start that waits is stopped at once.
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = lab.config(&format!("listen = [\"{}\"]", taken.local_addr().unwrap()), "");
    let mut server = launch(&config);
    server.wait_for_line("trying again for");
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
}

#[test]
fn too_few_descriptors_are_no_panic() {
    let lab = Lab::new();
    let config = lab.config("bind-patience = \"0s\"", "");
    let mut served_count = 0;
    // With fewer the program itself cannot be loaded.
    for count in 6..=32 {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {count} && exec \"$0\" \"$@\"")]).arg(program().path());
        command.env("RUST_BACKTRACE", "1").arg("serve").arg("--config").arg(&config);
        let mut server = Process::start(&mut command);
        let serves = wait_for("a server or its end", || {
            let serves = server.log().contains("serving time on ");
            (serves || has_ended(server.id())).then_some(serves)
        });
        if serves {
            served_count += 1;
            let address = server.wait_for_line("serving time on ").parse().unwrap();
            assert!(is_answered(address), "{count}: {}", server.log());
            server.signal("-TERM");
        }
        let code = server.wait();
        let log = server.log();
        assert!(!log.contains("panicked") && !log.contains("intruder"), "{count}: {log}");
        assert!(if serves { code == 0 } else { matches!(code, 70 | 75) }, "{count}: {code}: {log}");
        assert!(serves || log.contains("open files"), "{count}: {log}");
    }
    assert!(served_count > 0);
}

#[test]
fn wildcard_beside_an_address_serves_both() {
    let lab = Lab::new();
    let (port, ke) = (free_port(), free_port());
    for workers in [1, 2] {
        let config = lab.config(
            &format!("listen = [\"127.0.0.1:{port}\", \"0.0.0.0:{port}\"]\nworkers = {workers}"),
            &format!("ke-listen = [\"0.0.0.0:{ke}\", \"127.0.0.1:{ke}\"]\nke-workers = {workers}"),
        );
        let warning = checked(&config);
        for (key, port) in [("server.listen", port), ("nts.ke-listen", ke)] {
            let words = format!("{key} = \"127.0.0.1:{port}\": 0.0.0.0:{port} covers it");
            assert!(warning.contains(&words), "{warning}");
        }
        let mut server = launch(&config);
        server.wait_for_line("exchanging keys on ");
        for address in ["127.0.0.1", "127.0.0.2"] {
            assert!(is_answered(format!("{address}:{port}").parse().unwrap()), "{address}");
            assert!(std::net::TcpStream::connect((address, ke)).is_ok(), "{address}");
        }
    }
}

#[test]
fn wildcard_of_ipv6_is_said_to_be_ipv6_alone() {
    let lab = Lab::new();
    let (port, ke) = (free_port(), free_port());
    let config = lab.config(&format!("listen = [\"[::]:{port}\"]"), &format!("ke-listen = [\"[::]:{ke}\"]"));
    let mut server = launch(&config);
    server.wait_for_line("exchanging keys on ");
    for log in [checked(&config), server.log()] {
        for (key, port) in [("server.listen", port), ("nts.ke-listen", ke)] {
            let words = format!(
                "{key} = \"[::]:{port}\": IPv4 is not served: this is IPv6 alone; add \"0.0.0.0:{port}\""
            );
            assert!(log.contains(&words), "{log}");
        }
    }
}
