//! Servers with several addresses, some of which cannot be reached, and addresses that need a zone.

use std::fs;
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
