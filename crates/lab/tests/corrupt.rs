//! A relay in front of a server passes what it should, damages what it should, and counts both.
//!
//! The server here only has NTS's syntax; the system tests put the relay before real ones.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use authentick_lab::corrupt::{Corrupt, Damage, Middle, Record, Relay, Tap};
use authentick_lab::servers::make_room;
use authentick_wire::Writer;
use authentick_wire::extension::{self, FieldType};
use authentick_wire::header::{Header, Mode, ReferenceId};
use authentick_wire::nts::{NtsFields, emit_authenticator};
use authentick_wire::packet::Packet;
use authentick_wire::time::NtpTime;

const PATIENCE: Duration = Duration::from_secs(5);

/// An NTS packet without cryptography: identifier, cookie, placeholders, authenticator.
fn packet(mode: Mode, number: u64, cookie: u8, placeholder_count: usize) -> Vec<u8> {
    let mut octets = vec![0; 2048];
    let header = Header { mode, stratum: 1, ..Header::minimal_request(NtpTime::from_bits(number)) };
    header.emit(octets.first_chunk_mut().unwrap());
    let mut out = Writer::new(&mut octets[48..]);
    let mut identifier = [0; 32];
    identifier[..8].copy_from_slice(&number.to_be_bytes());
    extension::emit(&mut out, FieldType::UNIQUE_IDENTIFIER, &identifier).unwrap();
    if mode == Mode::Client {
        extension::emit(&mut out, FieldType::NTS_COOKIE, &[cookie; 100]).unwrap();
        for _ in 0..placeholder_count {
            extension::emit(&mut out, FieldType::NTS_COOKIE_PLACEHOLDER, &[0; 100]).unwrap();
        }
    }
    emit_authenticator(&mut out, &[1; 16], 16, 0).unwrap();
    let size = 48 + out.offset();
    octets.truncate(size);
    octets
}

/// Answers NTS requests until a datagram of one octet comes; returns how many it answered.
fn serve() -> (SocketAddr, std::thread::JoinHandle<u64>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    make_room(&socket);
    let address = socket.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut buffer, mut count) = ([0; 2048], 0);
        loop {
            let (size, client) = socket.recv_from(&mut buffer).unwrap();
            if size == 1 {
                return count;
            }
            count += 1;
            let request = Packet::parse(&buffer[..size]).unwrap().header();
            let answer = packet(Mode::Server, request.transmit.to_bits(), 0, 0);
            socket.send_to(&answer, client).unwrap();
        }
    });
    (address, thread)
}

fn stop(server: SocketAddr) {
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[0], server).unwrap();
}

fn front() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

fn client<M: Middle>(relay: &Relay<M>) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    make_room(&socket);
    socket.connect(relay.address()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn ask(socket: &UdpSocket, request: &[u8]) -> Option<Vec<u8>> {
    let mut buffer = [0; 2048];
    socket.send(request).unwrap();
    socket.recv(&mut buffer).ok().map(|size| buffer[..size].to_vec())
}

#[test]
fn one_bit_of_one_tag_in_ten_is_flipped() {
    let (server, thread) = serve();
    let relay = Relay::start(front(), server, Corrupt::new(Damage::Tag, 10));
    let socket = client(&relay);
    let mut damaged = Vec::new();
    for number in 1..=100 {
        let (answer, good) =
            (ask(&socket, &packet(Mode::Client, number, 1, 0)).unwrap(), packet(Mode::Server, number, 0, 0));
        let flipped: u32 = answer.iter().zip(&good).map(|(one, other)| (one ^ other).count_ones()).sum();
        assert!(answer.len() == good.len() && flipped <= 1);
        if flipped == 1 {
            let place = answer.iter().zip(&good).position(|(one, other)| one != other).unwrap();
            let fields = NtsFields::locate(&Packet::parse(&good).unwrap()).unwrap();
            assert_eq!(place, fields.authenticator.unwrap().ciphertext.start());
            damaged.push(number);
        }
    }
    assert_eq!(damaged, (1..=10).map(|tens| tens * 10).collect::<Vec<_>>());
    assert_eq!(relay.with(|corrupt| (corrupt.seen(), corrupt.damaged())), (100, 10));
    stop(server);
    assert_eq!(thread.join().unwrap(), 100);
}

#[test]
fn kiss_in_place_of_an_answer_has_its_identifier_and_no_authenticator() {
    let (server, _thread) = serve();
    let relay = Relay::start(front(), server, Corrupt::new(Damage::Kiss(ReferenceId::NTSN), 2));
    let socket = client(&relay);
    for number in 1..=6 {
        let answer = ask(&socket, &packet(Mode::Client, number, 1, 0)).unwrap();
        let answer = Packet::parse(&answer).unwrap();
        let fields = NtsFields::locate(&answer).unwrap();
        let identifier = fields.identifier.unwrap().of(answer.octets());
        assert_eq!(identifier[..8], number.to_be_bytes());
        let (is_kiss, header) = (number % 2 == 0, answer.header());
        assert_eq!(header.stratum == 0 && header.reference_id == ReferenceId::NTSN, is_kiss);
        assert_eq!(fields.authenticator.is_none(), is_kiss);
    }
    stop(server);
}

#[test]
fn lost_requests_do_not_reach_the_server_and_lost_responses_do_not_come_back() {
    for (damage, served) in [(Damage::LostRequest, 4), (Damage::LostResponse, 6)] {
        let (server, thread) = serve();
        let relay = Relay::start(front(), server, (Tap::default(), Corrupt::new(damage, 3)));
        let socket = client(&relay);
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let answers = (1..=6)
            .map(|number| ask(&socket, &packet(Mode::Client, number, 1, 0)).is_some())
            .collect::<Vec<_>>();
        assert_eq!(answers, [true, true, false, true, true, false]);
        stop(server);
        assert_eq!(thread.join().unwrap(), served);
        relay.with(|(tap, corrupt)| {
            assert_eq!((tap.requests().len(), tap.responses().len(), corrupt.damaged()), (6, 4, 2));
        });
        assert_eq!(relay.counts().lost, 0);
    }
}

#[test]
fn tap_sees_cookies_placeholders_sizes_and_clients() {
    let (server, _thread) = serve();
    let relay = Relay::start(front(), server, Tap::default());
    let sockets = [client(&relay), client(&relay)];
    let requests = [(0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 2, 0), (1, 3, 2)];
    for (number, (socket, cookie, placeholders)) in (1..).zip(requests) {
        ask(&sockets[socket], &packet(Mode::Client, number, cookie, placeholders)).unwrap();
    }
    relay.with(|tap| {
        assert_eq!(tap.cookie_uses(), [3, 1, 1]);
        let placeholders: Vec<usize> = tap.requests().iter().map(Record::placeholder_count).collect();
        assert_eq!(placeholders, [0, 0, 0, 0, 2]);
        assert_eq!(tap.requests()[4].octets.len() - tap.requests()[3].octets.len(), 2 * 104);
        assert_eq!(tap.requests()[0].client, sockets[0].local_addr().unwrap());
        assert_eq!(tap.responses()[4].client, sockets[1].local_addr().unwrap());
        assert_eq!((tap.responses().len(), tap.unrecorded()), (5, 0));
    });
    assert_eq!(relay.counts().clients, 2);
    stop(server);
}

/// In bursts of 50 every 10 ms, from eight ports.
#[test]
fn relay_keeps_up_with_5000_requests_a_second() {
    const COUNT: u64 = 10_000;
    let (server, thread) = serve();
    let relay = Relay::start(front(), server, (Tap::default(), Corrupt::new(Damage::Tag, 1000)));
    let sockets: Vec<UdpSocket> = (0..8).map(|_| client(&relay)).collect();
    let readers: Vec<_> = sockets
        .iter()
        .map(|socket| {
            let socket = socket.try_clone().unwrap();
            std::thread::spawn(move || (0..COUNT / 8).filter(|_| socket.recv(&mut [0; 2048]).is_ok()).count())
        })
        .collect();
    let start = Instant::now();
    for number in 0..COUNT {
        if number % 50 == 0 {
            let due = start + Duration::from_millis(number / 5);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        sockets[number as usize % 8].send(&packet(Mode::Client, number, 1, 0)).unwrap();
    }
    let received: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
    assert_eq!(received as u64, COUNT);
    let counts = relay.counts();
    assert_eq!((counts.requests, counts.responses, counts.clients, counts.lost), (COUNT, COUNT, 8, 0));
    relay.with(|(tap, corrupt)| {
        assert_eq!((tap.requests().len() as u64, corrupt.damaged()), (COUNT, COUNT / 1000));
    });
    stop(server);
    assert_eq!(thread.join().unwrap(), COUNT);
}
