//! Servers with several addresses, some of which cannot be reached, and addresses that need a zone.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use authentick_lab::hosts::{Host, Hosts};

use crate::lab::{Lab, program, text};

const NTP: u16 = 1123;
const KE: u16 = 1460;

/// A star with one client, or why there is none.
fn star() -> Option<Hosts> {
    Hosts::new(1).map_err(|skip| skip.tell()).ok()
}

fn ip(hosts: &Hosts, host: Host, words: &str) {
    let status = hosts.on(host, "ip").args(words.split(' ')).status().unwrap();
    assert!(status.success(), "ip {words}");
}

/// A server of time and keys on all addresses of its host.
fn serve(hosts: &Hosts, lab: &Lab) -> impl Sized {
    let listen = format!("listen = [\"0.0.0.0:{NTP}\", \"[::]:{NTP}\"]");
    let config = lab.config(&listen, &format!("ke-listen = [\"0.0.0.0:{KE}\", \"[::]:{KE}\"]"));
    program().serve_on(hosts, Host::Server, &config)
}

/// Runs the program on the client, whose names are those of the files in `folder`.
fn run(hosts: &Hosts, folder: &Path, arguments: &str) -> Output {
    let script = "mount --make-rprivate / && mount --bind $0/hosts /etc/hosts \
                  && mount --bind $0/nsswitch /etc/nsswitch.conf && mount --bind $0/resolv /etc/resolv.conf \
                  && exec \"$@\"";
    let mut command = hosts.on(Host::Client(0), "unshare");
    command.args(["-m", "sh", "-c", script]).arg(folder).arg(program().path());
    command.args(arguments.split(' ')).output().unwrap()
}

fn names(folder: &Path, hosts: &str, order: &str) {
    fs::write(folder.join("hosts"), hosts).unwrap();
    fs::write(folder.join("nsswitch"), format!("hosts: {order}\n")).unwrap();
    fs::write(folder.join("resolv"), "nameserver 127.0.0.1\noptions timeout:20\n").unwrap();
}

#[test]
fn name_whose_first_address_is_silent_is_reached_by_its_next() {
    let Some(hosts) = star() else { return };
    let lab = Lab::new();
    let _server = serve(&hosts, &lab);
    // Neighbours that do not exist swallow what is sent to them.
    ip(&hosts, Host::Client(0), &format!("-6 route add fd00:77::/64 dev {}", Hosts::client_interface()));
    let folder = tempfile::tempdir().unwrap();
    let address = hosts.address(Host::Server);
    names(folder.path(), &format!("fd00:77::9 ntp.test\n{address} ntp.test\n"), "files");
    let nts = format!("ntp.test:{NTP} --ke-port {KE} --ca {}", lab.ca().display());
    for arguments in [
        format!("query {nts} --timeout 2"),
        format!("query --auth plain ntp.test:{NTP} --timeout 1"),
        format!("load plain ntp.test:{NTP} --rate 20 --step-seconds 0.5 --json"),
        format!("load nts {nts} --rate 20 --step-seconds 0.5 --json"),
    ] {
        let output = run(&hosts, folder.path(), &arguments);
        // Exit code 3: other work on this machine kept the generator from its rate.
        assert!(matches!(output.status.code(), Some(0 | 3)), "{arguments}: {}", text(&output));
        if arguments.contains("json") {
            let named = format!("\"address\":\"{address}:{NTP}\"");
            assert!(text(&output).contains(&named), "{arguments}: {}", text(&output));
        }
    }
}

/// The name that the key exchange gives has a silent address of each family before the server's.
#[test]
fn server_named_by_the_key_exchange_is_reached_at_its_next_address() {
    let Some(hosts) = star() else { return };
    let lab = Lab::new();
    let listen = format!("listen = [\"0.0.0.0:{NTP}\", \"[::]:{NTP}\"]");
    let exchange = format!(
        "ke-listen = [\"0.0.0.0:{KE}\", \"[::]:{KE}\"]\nadvertise = {{ server = \"time.lab.example\", port = {NTP} }}"
    );
    let _server = program().serve_on(&hosts, Host::Server, &lab.config(&listen, &exchange));
    let (v4, v6) = (hosts.address(Host::Server), hosts.address_v6(Host::Server));
    let swallowed = Hosts::client_interface();
    // Addresses of which getaddrinfo prefers none: each differs from the client's own as early as the others.
    for (range, last, way) in
        [("198.19.77.0/24", "198.19.78.1", v4.to_string()), ("fd00:77::/64", "fd00:78::1", v6.to_string())]
    {
        ip(&hosts, Host::Client(0), &format!("route add {range} dev {swallowed}"));
        ip(&hosts, Host::Client(0), &format!("route add {last} via {way}"));
        ip(&hosts, Host::Server, &format!("addr add {last} dev lo"));
    }
    let folder = tempfile::tempdir().unwrap();
    for (key_server, first, last, other) in [
        (v4.to_string(), "198.19.77.9", "198.19.78.1", "fd00:77::8"),
        (format!("[{v6}]"), "fd00:77::9", "fd00:78::1", "198.19.77.8"),
    ] {
        // The other family's address is first in the file, and silent: its turn would be after these.
        let lines = [other, first, last].map(|address| format!("{address} time.lab.example\n"));
        names(folder.path(), &lines.concat(), "files");
        let trust = format!("--ke-port {KE} --server-name ntp.test --ca {}", lab.ca().display());
        let start = Instant::now();
        let output = run(&hosts, folder.path(), &format!("query {key_server} {trust} --timeout 2 --json"));
        assert_eq!(output.status.code(), Some(0), "{key_server}: {}", text(&output));
        let named = SocketAddr::new(last.parse().unwrap(), NTP).to_string();
        assert!(text(&output).contains(&named), "{}", text(&output));
        assert!(start.elapsed() >= Duration::from_secs(1), "the first address is asked before");
    }
}

#[test]
fn zone_reaches_a_link_local_server_in_each_scheme() {
    let Some(hosts) = star() else { return };
    let lab = Lab::new();
    let to_client = authentick_rig::hosts::Hosts::server_interface(0);
    ip(&hosts, Host::Server, &format!("addr add fe80::77/64 dev {to_client} nodad"));
    let _server = serve(&hosts, &lab);
    let folder = tempfile::tempdir().unwrap();
    names(folder.path(), "", "files");
    let server = format!("[fe80::77%{}]:{NTP}", Hosts::client_interface());
    let ca = format!("--ke-port {KE} --ca {} --server-name ntp.test", lab.ca().display());
    for arguments in [
        format!("query --auth plain {server} --timeout 5"),
        format!("query {server} {ca} --timeout 5"),
        format!("load plain {server} --rate 20 --step-seconds 0.5"),
        format!("load nts {server} {ca} --rate 20 --step-seconds 0.5"),
    ] {
        let output = run(&hosts, folder.path(), &arguments);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{arguments}: {}", text(&output));
    }
    let output = run(&hosts, folder.path(), "query --auth plain fe80::77");
    assert!(text(&output).contains("fe80::77%eth0"), "{}", text(&output));
}

#[test]
fn routes_that_refuse_have_one_exit_code_and_sentence() {
    let Some(hosts) = star() else { return };
    let folder = tempfile::tempdir().unwrap();
    names(folder.path(), "", "files");
    for (number, kind) in ["blackhole", "prohibit", "unreachable"].iter().enumerate() {
        for address in [format!("198.19.77.{number}"), format!("fd00:77::{number}")] {
            ip(&hosts, Host::Client(0), &format!("route add {kind} {address}"));
            let server =
                if address.contains(':') { format!("[{address}]:1") } else { format!("{address}:1") };
            for arguments in
                ["query", "query --auth plain --json", "load plain --rate 10", "load ke --rate 10"]
            {
                let output = run(&hosts, folder.path(), &format!("{arguments} {server}"));
                let said = text(&output);
                assert_eq!(output.status.code(), Some(1), "{kind} {arguments}: {said}");
                assert!(said.contains("this host has no route to it"), "{kind} {arguments}: {said}");
            }
        }
    }
}

#[test]
fn look_up_without_a_response_ends_with_the_timeout() {
    let Some(hosts) = star() else { return };
    let _silent = hosts.within(Host::Client(0), || std::net::UdpSocket::bind("127.0.0.1:53").unwrap());
    let folder = tempfile::tempdir().unwrap();
    names(folder.path(), "", "dns");
    for arguments in [
        "query --timeout 1",
        "query --auth plain --timeout 1",
        "query --json --timeout 1",
        "load plain --rate 10",
        "load plain --json --rate 10",
    ] {
        let start = Instant::now();
        let output = run(&hosts, folder.path(), &format!("{arguments} time.lab.example"));
        assert_eq!(output.status.code(), Some(1), "{arguments}: {}", text(&output));
        assert!(start.elapsed() < Duration::from_secs(10), "{arguments}: {:?}", start.elapsed());
        if arguments.contains("--json") {
            let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(object["exit"], 1, "{arguments}: {object}");
        }
    }
}
