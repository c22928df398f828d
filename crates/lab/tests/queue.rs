//! What a queue of the sender's own interface drops is told to a sender that keeps reports, and to no other.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use authentick_lab::hosts::{Host, Hosts};
use authentick_net::udp::{ClientSocket, SendBatch};
use rustix::io::Errno;

/// More than the queue holds.
const REQUEST_COUNT: usize = 512;
const REQUEST_SIZE: usize = 48;

/// Lets a client's interface send 1,000 octets a second, and has the others wait in 4,000.
fn narrow(hosts: &Hosts) {
    let bucket = ["root", "tbf", "rate", "8kbit", "burst", "2000", "limit", "4000"];
    let mut command = Command::new("tc");
    command.args(["-n", hosts.name(Host::Client(0)), "qdisc", "add", "dev", Hosts::client_interface()]);
    assert!(command.args(bucket).status().unwrap().success());
}

/// Sends many requests, one by one or several as one message; returns how many the host said that it took.
fn send(client: &ClientSocket, joined: bool) -> (usize, Option<Errno>) {
    let mut out = SendBatch::default();
    (0..8).for_each(|slot| out.set_size(slot, REQUEST_SIZE));
    let mut sent_count = 0;
    while sent_count < REQUEST_COUNT {
        match out.send(client.as_fd(), 0..8, joined) {
            Ok(count) => sent_count += count,
            Err(error) => return (sent_count, Errno::from_io_error(&error)),
        }
    }
    (sent_count, None)
}

#[test]
fn full_queue_is_told_to_a_sender_that_keeps_reports() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    for address in [hosts.address(Host::Server), hosts.address_v6(Host::Server)] {
        let server = hosts.within(Host::Server, || UdpSocket::bind((address, 0)).unwrap());
        server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let to = server.local_addr().unwrap();
        let client = || hosts.within(Host::Client(0), || ClientSocket::connect(to).unwrap());
        let (deaf, told) = (client(), client());
        told.keep_reports().unwrap();
        // From here on the neighbour is known, so that nothing waits for it.
        deaf.send(b"who?").unwrap();
        server.recv_from(&mut [0; 8]).unwrap();
        narrow(&hosts);
        for joined in [false, true] {
            assert_eq!(send(&deaf, joined), (REQUEST_COUNT, None), "its losses are silent");
            let (sent_count, error) = send(&told, joined);
            assert_eq!(error, Some(Errno::NOBUFS), "{sent_count}");
            assert!(sent_count < REQUEST_COUNT, "{sent_count}");
        }
        let mut command = Command::new("tc");
        let interface = Hosts::client_interface();
        command.args(["-n", hosts.name(Host::Client(0)), "qdisc", "del", "dev", interface, "root"]);
        assert!(command.status().unwrap().success());
    }
}
