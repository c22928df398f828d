//! The client that asks ten times a second tells what was lost from what was answered.

use std::net::UdpSocket;
use std::time::Duration;

use authentick_lab::prober::{Prober, lost_count};
use authentick_wire::header::{Header, Mode};
use authentick_wire::limits::HEADER_SIZE;

#[test]
fn silence_is_counted_and_answers_are_kept() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let prober = Prober::start(server.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        // Every third request is lost, and each answer comes twice.
        for number in 0..9 {
            let mut octets = [0; HEADER_SIZE];
            let (_, from) = server.recv_from(&mut octets).unwrap();
            let request = Header::parse(&octets);
            let header = Header { mode: Mode::Server, stratum: 7, origin: request.transmit, ..request };
            header.emit(&mut octets);
            if number % 3 != 0 {
                server.send_to(&octets, from).unwrap();
                server.send_to(&octets, from).unwrap();
            }
        }
        server
    });
    let server = answering.join().unwrap();
    std::thread::sleep(Duration::from_millis(250));
    let probes = prober.stop();
    drop(server);
    assert!(probes.len() > 9, "{}", probes.len());
    assert_eq!(lost_count(&probes[..9]), 3);
    assert_eq!(lost_count(&probes[9..]), probes.len() - 9, "nobody answers any more");
    assert!(probes.iter().filter_map(|probe| probe.told).all(|header| header.stratum == 7));
}
