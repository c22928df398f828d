//! What README, SECURITY.md and the manual promise and nothing else shows: that strangers write no log.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::Command;

use authentick_lab::process::Process;

use crate::lab::{Lab, authentick, program};

/// The first octets of TLS from a client that names the server so.
fn client_hello(server_name: &[u8]) -> Vec<u8> {
    let sized = |octets: &[u8]| [&(octets.len() as u16).to_be_bytes()[..], octets].concat();
    let name = [&[0][..], &sized(server_name)].concat();
    let extension = [&[0, 0][..], &sized(&sized(&name))].concat();
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],                // no session
        &[0, 2, 0x13, 0x01], // a cipher suite
        &[1, 0],             // no compression
        &sized(&extension),
    ]
    .concat();
    let message = [&[1, 0][..], &sized(&body)].concat();
    [&[22, 3, 1][..], &sized(&message)].concat()
}

fn connect_and_say(address: SocketAddr, octets: &[u8]) {
    let mut stream = TcpStream::connect(address).unwrap();
    // It may have closed already.
    let _ = stream.write_all(octets);
}

#[test]
fn strangers_write_no_log() {
    const PACKETS: usize = 100;
    const CONNECTIONS: usize = 10;
    let lab = Lab::new();
    for level in ["info", "debug"] {
        let config = lab.config("", "");
        let mut command = Command::new(program().path());
        command.arg("serve").arg("--config").arg(&config).env("RUST_LOG", level);
        let mut process = Process::start(&mut command);
        let ntp: SocketAddr = process.wait_for_line("serving time on ").parse().unwrap();
        let ke: SocketAddr = process.wait_for_line("exchanging keys on ").parse().unwrap();
        process.wait_for_line("showing metrics");
        let before = process.log().lines().count();

        // Every first octet, with sizes that are headers, MACs, fields, cut ones and longer ones than are read.
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        for (size, first) in [0, 1, 47, 48, 52, 68, 72, 76, 124, 3000].iter().zip((0..=255u8).cycle()) {
            for number in 0..PACKETS as u8 {
                let mut datagram = vec![1; *size];
                datagram.iter_mut().take(1).for_each(|octet| *octet = first.wrapping_mul(7) ^ number);
                client.send_to(&datagram, ntp).unwrap();
            }
        }
        // Silence, garbage, a message out of turn, alerts, and names that TLS has warnings for.
        let sayings = [
            Vec::new(),
            b"GET / HTTP/1.0\r\n\r\n".to_vec(),
            vec![23, 3, 3, 0, 1, 0],
            vec![21, 3, 3, 0, 2, 2, 40],
            vec![21, 3, 3, 0, 2, 1, 90],
            client_hello(b"127.0.0.1"),
            client_hello(b"no name\x1b["),
            client_hello(b"ntp.test"),
        ];
        for saying in sayings.iter().cycle().take(CONNECTIONS * sayings.len()) {
            connect_and_say(ke, saying);
        }
        // A name that the certificate is not good for: this client ends the handshake with an alert.
        let port = ke.port().to_string();
        let arguments =
            ["query", "localhost", "--server-name", "other.test", "--timeout", "2", "--ke-port", &port];
        assert_ne!(authentick(arguments).status.code(), Some(0));

        // What was written before this line has been read when it has.
        process.signal("-HUP");
        process.wait_for_line("certificate read again");
        process.wait_for_line("cookie keys read again");
        process.signal("-TERM");
        process.wait_for_line("stopping on signal");
        assert_eq!(process.wait(), 0, "{}", process.log());
        let log = process.log();
        let written = log.lines().count() - before;
        // Two lines of the reload and one of the stop.
        assert!(written <= 3 + 3, "{level}: {written} lines:\n{log}");
    }
}
