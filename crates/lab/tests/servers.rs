//! Servers that misbehave do what they count.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use authentick_ke::client::{Ask, Dialled, KeError, Phase, dial};
use authentick_ke::tls::{Roots, client_config};
use authentick_lab::certificates::Lab;
use authentick_lab::exchanges::{Behaviour, Counts, KeServer};
use authentick_lab::process::{PATIENCE, wait_for};
use authentick_lab::servers::{Ending, Fault, NtpServer, Policy};
use authentick_wire::Writer;
use authentick_wire::extension::{self, FieldType};
use authentick_wire::header::{Header, Leap, Mode, ReferenceId};
use authentick_wire::ke::{AeadId, ErrorCode};
use authentick_wire::packet::Packet;
use authentick_wire::time::NtpTime;

const MS: Duration = Duration::from_millis(1);

/// A request whose transmit timestamp is its number.
fn request(number: u64) -> [u8; 48] {
    let mut octets = [0; 48];
    Header::minimal_request(NtpTime::from_bits(number)).emit(&mut octets);
    octets
}

fn client(server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(100 * MS)).unwrap();
    socket
}

/// Everything that comes in answer to one request.
fn ask(socket: &UdpSocket, number: u64) -> Vec<Vec<u8>> {
    socket.send(&request(number)).unwrap();
    let mut buffer = [0; 2048];
    std::iter::from_fn(|| socket.recv(&mut buffer).ok().map(|size| buffer[..size].to_vec())).collect()
}

fn header(answers: &[Vec<u8>]) -> Header {
    assert_eq!(answers.len(), 1);
    Header::parse(answers[0].first_chunk().unwrap())
}

#[test]
fn every_fault_is_what_it_says_and_every_request_is_counted_once() {
    let kiss = Fault::Kiss { code: ReferenceId::RATE, identifier: true };
    let faults = [
        Fault::Drop,
        Fault::Stratum(16),
        Fault::Unsynchronised,
        Fault::WrongOrigin,
        Fault::Twice,
        Fault::Late(30 * MS),
        Fault::Garbage(7),
        kiss,
    ];
    let policy = faults
        .iter()
        .zip(1..)
        .fold(Policy::good(), |policy, (fault, phase)| policy.every_from(9, phase, *fault));
    let server = NtpServer::on_loopback(policy);
    let socket = client(server.address());
    for round in 0..2 {
        let number = |phase: u64| round * 9 + phase;
        let origin = |phase: u64| NtpTime::from_bits(number(phase));
        assert_eq!(ask(&socket, number(1)), Vec::<Vec<u8>>::new());
        assert_eq!(header(&ask(&socket, number(2))).stratum, 16);
        assert_eq!(header(&ask(&socket, number(3))).leap, Leap::Unsynchronised);
        assert_ne!(header(&ask(&socket, number(4))).origin, origin(4));
        let twice = ask(&socket, number(5));
        assert!(twice.len() == 2 && twice[0] == twice[1]);
        let start = Instant::now();
        socket.send(&request(number(6))).unwrap();
        let size = socket.recv(&mut [0; 48]).unwrap();
        assert!(size == 48 && start.elapsed() >= 30 * MS);
        assert_eq!(ask(&socket, number(7)), [vec![0xA5; 7]]);
        let kiss = header(&ask(&socket, number(8)));
        assert_eq!((kiss.stratum, kiss.reference_id, kiss.origin), (0, ReferenceId::RATE, origin(8)));
        let good = header(&ask(&socket, number(9)));
        assert_eq!(
            (good.mode, good.stratum, good.leap, good.origin),
            (Mode::Server, 1, Leap::None, origin(9))
        );
    }
    socket.send(&[0; 48]).unwrap();
    let counts =
        wait_for("the last datagram", || Some(server.counts()).filter(|counts| counts.received == 19));
    assert_eq!((counts.good, &counts.faults[..]), (2, &[2; 8][..]));
    assert_eq!((counts.malformed, counts.ignored, counts.sent), (1, 0, 18));
    assert_eq!(server.dropped(), 0);
}

#[test]
fn one_in_ten_dropped_and_one_in_twenty_lied_to_are_exact() {
    let policy = Policy::good().every(10, Fault::Drop).every_from(20, 5, Fault::Stratum(0));
    let server = NtpServer::on_loopback(policy);
    let socket = client(server.address());
    socket.set_read_timeout(Some(5 * MS)).unwrap();
    let mut seen = [0; 3];
    for number in 1..=200 {
        let answers = ask_once(&socket, number);
        seen[match answers {
            None => 0,
            Some(0) => 1,
            Some(_) => 2,
        }] += 1;
    }
    assert_eq!(seen, [20, 10, 170]);
    let counts = server.counts();
    assert_eq!((counts.received, counts.good, counts.faults), (200, 170, vec![20, 10]));
}

/// The stratum of the answer to a request, waited for as long as it takes on a busy machine if it is not to be dropped.
fn ask_once(socket: &UdpSocket, number: u64) -> Option<u8> {
    let patience = if number.is_multiple_of(10) { 5 * MS } else { 5000 * MS };
    socket.set_read_timeout(Some(patience)).unwrap();
    socket.send(&request(number)).unwrap();
    let mut buffer = [0; 48];
    socket.recv(&mut buffer).ok().map(|_| buffer[1])
}

#[test]
fn kiss_repeats_the_identifier_of_the_request_or_leaves_it_out() {
    for wanted in [true, false] {
        let kiss = Fault::Kiss { code: ReferenceId::DENY, identifier: wanted };
        let server = NtpServer::on_loopback(Policy::good().every(1, kiss));
        let mut octets = [0; 48 + 36];
        octets[..48].copy_from_slice(&request(1));
        extension::emit(&mut Writer::new(&mut octets[48..]), FieldType::UNIQUE_IDENTIFIER, &[7; 32]).unwrap();
        let socket = client(server.address());
        socket.set_read_timeout(Some(5000 * MS)).unwrap();
        socket.send(&octets).unwrap();
        let mut buffer = [0; 2048];
        let size = socket.recv(&mut buffer).unwrap();
        let answer = Packet::parse(&buffer[..size]).unwrap();
        assert_eq!(answer.header().reference_id, ReferenceId::DENY);
        let bodies: Vec<&[u8]> = answer.fields().map(|field| field.body).collect();
        assert_eq!(bodies, if wanted { vec![&[7; 32][..]] } else { vec![] });
    }
}

#[test]
fn server_that_ends_is_silent_or_refuses() {
    for ending in [Ending::Silent, Ending::Closed] {
        let server = NtpServer::on_loopback(Policy::good().stop_after(3, ending));
        let socket = client(server.address());
        let answered = (1..=3).map(|number| ask(&socket, number).len()).sum::<usize>();
        assert_eq!(answered, 3);
        socket.send(&request(4)).unwrap();
        let error = socket.recv(&mut [0; 48]).unwrap_err();
        let counts = server.counts();
        assert_eq!(counts.good, 3);
        match ending {
            Ending::Silent => {
                assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
                assert_eq!((counts.received, counts.ignored), (4, 1));
            }
            Ending::Closed => {
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
                assert_eq!((counts.received, counts.ignored), (3, 0));
            }
        }
    }
}

#[test]
fn pausing_server_answers_late_and_loses_nothing() {
    let server = NtpServer::on_loopback(Policy::good().pause(300 * MS, 200 * MS));
    let socket = client(server.address());
    socket.set_read_timeout(Some(5000 * MS)).unwrap();
    // 600 requests, a millisecond apart: two whole periods.
    let sender = socket.try_clone().unwrap();
    let sent = std::thread::spawn(move || {
        let start = Instant::now();
        let sent = (0..600).map(|number| {
            std::thread::sleep((start + MS * number).saturating_duration_since(Instant::now()));
            let now = Instant::now();
            sender.send(&request(number.into())).unwrap();
            now
        });
        sent.collect::<Vec<Instant>>()
    });
    let mut arrivals = vec![None; 600];
    for _ in 0..600 {
        let mut buffer = [0; 48];
        assert_eq!(socket.recv(&mut buffer).unwrap(), 48);
        let number = Header::parse(&buffer).origin.to_bits() as usize;
        assert!(arrivals[number].replace(Instant::now()).is_none());
    }
    let sent = sent.join().unwrap();
    let waits: Vec<Duration> = sent.iter().zip(&arrivals).map(|(sent, at)| at.unwrap() - *sent).collect();
    // Of 300 ms the server does nothing for 200: two thirds wait, evenly between 0 and 200 ms.
    let longer = |than: Duration| waits.iter().filter(|wait| **wait > than).count();
    assert!(longer(20 * MS).abs_diff(600 * 180 / 300) < 60, "{}", longer(20 * MS));
    assert!(longer(100 * MS).abs_diff(600 * 100 / 300) < 60, "{}", longer(100 * MS));
    // Whoever came into a pause was answered after it.
    let pauses = |at: Instant| {
        let elapsed = at.duration_since(server.started()).as_millis() % 300;
        (105..295).contains(&elapsed)
    };
    assert!(sent.iter().zip(&waits).all(|(at, wait)| !pauses(*at) || *wait >= 4 * MS));
    assert_eq!((server.counts().good, server.dropped()), (600, 0));
}

fn tls(lab: &Lab) -> Arc<rustls::ClientConfig> {
    client_config(Roots::from_pem(&std::fs::read(lab.ca()).unwrap()).unwrap())
}

/// What our own client gets from a server in `timeout`.
fn offer(aeads: &[AeadId], server: &KeServer, lab: &Lab, timeout: Duration) -> Result<Dialled, KeError> {
    let ask = Ask { tls: tls(lab), server_name: "ntp.test".try_into().unwrap(), aeads: aeads.to_vec() };
    dial(&ask, &[server.address()], timeout)
}

/// What our own client says of a server, in two seconds.
fn exchange(server: &KeServer, lab: &Lab) -> KeError {
    offer(&[AeadId::SIV_CMAC_256], server, lab, 2000 * MS).map(|_| ()).unwrap_err()
}

#[test]
fn each_behaviour_of_a_key_exchange_server_is_what_a_client_sees() {
    let lab = Lab::new();
    let run = |behaviour, counts: Counts, expected: fn(&KeError) -> bool| {
        let server = KeServer::on_loopback(behaviour, &lab);
        let error = exchange(&server, &lab);
        assert!(expected(&error), "{behaviour:?}: {error:?}");
        // A handshake that fails is counted after the client was told.
        wait_for("the counts", || (server.counts() == counts).then_some(()));
    };
    let counted = |accepted, requests, failed| Counts { passed: 0, accepted, requests, failed };
    run(Behaviour::Deaf, counted(0, 0, 0), |error| {
        matches!(error, KeError::Timeout(Phase::Connect) | KeError::Connect(_))
    });
    run(Behaviour::Gone, counted(0, 0, 0), |error| match error {
        KeError::Connect(error) => error.kind() == ErrorKind::ConnectionRefused,
        _ => false,
    });
    run(Behaviour::Mute, counted(1, 0, 0), |error| matches!(error, KeError::Timeout(Phase::Handshake)));
    run(Behaviour::Reset, counted(1, 0, 0), |error| match error {
        KeError::Io(error) | KeError::Connect(error) => error.kind() == ErrorKind::ConnectionReset,
        _ => false,
    });
    run(Behaviour::Alert(40), counted(1, 0, 1), |error| {
        let handshake_failure = rustls::AlertDescription::HandshakeFailure;
        matches!(error, KeError::Tls(rustls::Error::AlertReceived(alert)) if *alert == handshake_failure)
    });
    run(Behaviour::NoProtocol, counted(1, 0, 1), |error| matches!(error, KeError::Alpn { alert: true }));
    run(Behaviour::Close, counted(1, 1, 0), |error| matches!(error, KeError::Closed(Phase::Exchange)));
    run(Behaviour::Error(ErrorCode::INTERNAL), counted(1, 1, 0), |error| {
        matches!(error, KeError::Refused(ErrorCode::INTERNAL))
    });
    run(Behaviour::Nonsense, counted(1, 1, 0), |error| matches!(error, KeError::Response(_)));
}

#[test]
fn client_gets_its_cookies_from_servers_that_an_early_close_notify_upsets() {
    let lab = Lab::new();
    for behaviour in [Behaviour::OneRecord, Behaviour::NoEarlyClose] {
        let server = KeServer::on_loopback(behaviour, &lab);
        for _ in 0..10 {
            let answer = offer(&[AeadId::SIV_CMAC_256], &server, &lab, PATIENCE);
            let dialled = answer.unwrap_or_else(|error| panic!("{behaviour:?}: {error}"));
            assert_eq!(dialled.established.session.jar.count(), 8);
        }
        assert_eq!(server.counts(), Counts { accepted: 10, requests: 10, ..Counts::default() });
    }
}

/// A client that says goodbye with its request; what it reads until the connection ends, if it ends well.
fn ask_and_close_at_once(server: &KeServer, lab: &Lab) -> std::io::Result<Vec<u8>> {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let connection = rustls::ClientConnection::new(tls(lab), "ntp.test".try_into().unwrap()).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).unwrap();
    }
    let mut request = [0; 64];
    let mut out = Writer::new(&mut request);
    authentick_wire::ke::Request::emit(&mut out, &[AeadId::SIV_CMAC_256]).unwrap();
    let size = out.offset();
    // Nothing has left yet when close_notify joins it.
    stream.conn.writer().write_all(&request[..size]).unwrap();
    stream.conn.send_close_notify();
    stream.conn.write_tls(&mut stream.sock).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map(|_| answer)
}

#[test]
fn early_close_notify_gets_no_answer_from_servers_that_it_upsets() {
    let lab = Lab::new();
    let server = KeServer::on_loopback(Behaviour::OneRecord, &lab);
    assert_eq!(ask_and_close_at_once(&server, &lab).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let server = KeServer::on_loopback(Behaviour::NoEarlyClose, &lab);
    assert!(ask_and_close_at_once(&server, &lab).unwrap_or_default().is_empty());
    // Another server minds neither.
    let server = KeServer::on_loopback(Behaviour::OnlyAead15, &lab);
    assert!(!ask_and_close_at_once(&server, &lab).unwrap().is_empty());
}

#[test]
fn server_of_one_algorithm_closes_without_a_word_when_more_are_offered() {
    let lab = Lab::new();
    let server = KeServer::on_loopback(Behaviour::OnlyAead15, &lab);
    let both = [AeadId::AES_128_GCM_SIV, AeadId::SIV_CMAC_256];
    let error = offer(&both, &server, &lab, PATIENCE).unwrap_err();
    assert!(matches!(error, KeError::Closed(Phase::Exchange)), "{error:?}");
    assert!(offer(&both[1..], &server, &lab, PATIENCE).is_ok());
}

#[test]
fn first_connections_reach_the_real_server_and_the_next_one_does_not() {
    let lab = Lab::new();
    let real = KeServer::on_loopback(Behaviour::Error(ErrorCode::INTERNAL), &lab);
    for behaviour in [Behaviour::Gone, Behaviour::Deaf, Behaviour::Close] {
        let server = KeServer::start_after(2, real.address(), behaviour, &lab);
        for _ in 0..2 {
            let error = exchange(&server, &lab);
            assert!(matches!(error, KeError::Refused(ErrorCode::INTERNAL)), "{behaviour:?}: {error:?}");
        }
        let error = exchange(&server, &lab);
        let is_expected = match behaviour {
            Behaviour::Close => matches!(error, KeError::Closed(Phase::Exchange)),
            _ => matches!(error, KeError::Timeout(Phase::Connect) | KeError::Connect(_)),
        };
        assert!(is_expected, "{behaviour:?}: {error:?}");
        assert_eq!(server.counts().passed, 2);
    }
    assert_eq!(real.counts().requests, 6);
}

#[test]
fn limited_server_answers_its_rate_and_counts_the_rest() {
    let server = NtpServer::on_loopback(Policy::good().limit(1.0, 5));
    let socket = client(server.address());
    let start = Instant::now();
    for number in 1..=100 {
        socket.send(&request(number)).unwrap();
    }
    let counts = wait_for("all datagrams", || Some(server.counts()).filter(|counts| counts.received == 100));
    let most = 5 + start.elapsed().as_secs() + 1;
    assert!((5..=most).contains(&counts.good) && counts.good + counts.limited == 100, "{counts:?}");
}

#[test]
fn deaf_server_lets_nobody_connect() {
    let server = KeServer::on_loopback(Behaviour::Deaf, &Lab::new());
    let error = TcpStream::connect_timeout(&server.address(), 300 * MS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn mute_server_ends_its_connections_with_itself() {
    let server = KeServer::on_loopback(Behaviour::Mute, &Lab::new());
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(50 * MS)).unwrap();
    assert!(stream.read(&mut [0]).is_err(), "silence");
    drop(server);
    stream.set_read_timeout(Some(5000 * MS)).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}
