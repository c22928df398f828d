//! A resolver of the rig, as programs on a host ask it through the C library.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::Command;

use authentick_lab::certificates::Lab;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::skip::skip;
use authentick_rig::Error;
use authentick_rig::resolver::{PORT, Resolver};

const NAME: &str = "ntp.rig.test";
const FOUND: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap()
}

#[test]
fn process_on_a_host_finds_the_name_and_nobody_else_is_asked() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let (lab, before) = (Lab::new(), (fs::read("/etc/resolv.conf").ok(), mounts()));
    let IpAddr::V4(address) = hosts.address(Host::Server) else { unreachable!("it is of IPv4") };
    let socket = hosts.within(Host::Server, || UdpSocket::bind((address, PORT))).unwrap();
    let resolver = Resolver::start(socket, NAME, FOUND, lab.path()).unwrap();
    let run = |command: &Command| match resolver.asked_by(command) {
        Ok(mut command) => Ok(command.output().unwrap()),
        Err(error @ Error::Unavailable { .. }) => Err(error.to_string()),
        Err(error) => panic!("{error}"),
    };
    let mut getent = hosts.on(Host::Client(0), "getent");
    getent.args(["ahosts", NAME]).env("RIG_TEST", "kept").current_dir(lab.path());
    let output = match run(&getent) {
        Ok(output) => output,
        Err(why) => return skip(&why),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.lines().all(|line| line.starts_with("198.18.0.1 ")), "{text:?}");
    let counts = resolver.counts();
    assert!(counts.addresses >= 1 && counts.malformed == 0, "{counts:?}");
    assert_eq!(counts.queries, counts.addresses + counts.without);

    let mut other = hosts.on(Host::Client(0), "getent");
    let output = run(other.args(["ahosts", "elsewhere.rig.test"])).unwrap();
    // getent(1): one of the names was not found.
    assert_eq!(output.status.code(), Some(2));
    assert!(resolver.counts().without > counts.without);

    // The command is as it was otherwise, and its end is the program's.
    let mut shell = hosts.on(Host::Client(0), "sh");
    shell.args(["-c", "echo \"$RIG_TEST $PWD\"; cat /etc/resolv.conf; exit 7"]).env("RIG_TEST", "kept");
    let output = run(shell.current_dir(lab.path())).unwrap();
    assert_eq!(output.status.code(), Some(7));
    let told = String::from_utf8(output.stdout).unwrap();
    let expected = format!("kept {}\nnameserver {address}\nsearch .\n", lab.path().display());
    assert_eq!(told, expected);

    // Killed in the middle of it, a process leaves nothing behind either.
    let mut sleeper = hosts.on(Host::Client(0), "sleep");
    let mut sleeper = resolver.asked_by(sleeper.arg("60")).unwrap().spawn().unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    drop(resolver);
    assert_eq!((fs::read("/etc/resolv.conf").ok(), mounts()), before);
    assert!(!lab.path().join("resolv.conf").exists());
}
