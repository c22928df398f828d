//! More connections than a server has room for.

use super::*;

#[test]
fn distant_client_outlives_a_flood_of_slow_connections() {
    let limits = Limits { connection_count: 8, per_prefix_count: 64, timeout: TIMEOUT };
    let server = Server::with(|_| {}, limits);
    let mut distant = server.raw(&[b"ntske/1"]);
    distant.conn.write_tls(&mut distant.sock).unwrap();
    while distant.conn.is_handshaking() {
        distant.conn.read_tls(&mut distant.sock).unwrap();
        distant.conn.process_new_packets().unwrap();
    }
    // Its Finished is on a long path while others connect.
    let hostile: Vec<TcpStream> = (0..60)
        .map(|number| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            if number % 2 == 0 {
                // The server may have closed it.
                let _ = stream.write_all(&[22]);
            }
            stream
        })
        .collect();
    let deadline = Instant::now() + TIMEOUT;
    while server.world.accepted.load(Ordering::SeqCst) <= hostile.len() as u64 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    distant.write_all(b"\x80\x01\0\x02\0\0\x80\x04\0\x02\0\x0f\x80\0\0\0").unwrap();
    let mut response = Vec::new();
    distant.read_to_end(&mut response).unwrap();
    assert!(matches!(Response::parse(&response, &[AeadId(15)]), Ok(Response::Agreed(_))));
}

#[test]
fn full_server_serves_the_newcomer() {
    let limits = Limits { connection_count: 4, per_prefix_count: 64, timeout: TIMEOUT };
    let server = Server::with(|_| {}, limits);
    let silent: Vec<TcpStream> = (0..10).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    assert!(server.ask(&[15], "ntp.test").is_ok());
    let ended = server.ended(8);
    assert_eq!(ended.iter().filter(|&&outcome| outcome == Outcome::Evicted).count(), 7);
    drop(silent);
}

#[test]
fn prefix_that_holds_too_many_connections_gets_no_more() {
    let limits = Limits { connection_count: 64, per_prefix_count: 3, timeout: TIMEOUT };
    let server = Server::with(|_| {}, limits);
    let silent: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(50));
    assert!(server.ask(&[15], "ntp.test").is_err());
    assert_eq!(server.ended(1), [Outcome::PrefixLimit]);
    drop(silent);
    server.ended(4);
    assert!(server.ask(&[15], "ntp.test").is_ok(), "room again");
}

#[test]
fn bounds_hold_over_all_threads_and_do_not_shrink_with_their_number() {
    let limits = Limits { connection_count: 64, per_prefix_count: 6, timeout: TIMEOUT };
    let server = Server::admitting(|_| {}, PrefixSet::everything(), limits, Rates::NONE, 4);
    let mut silent: Vec<TcpStream> = (0..6).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    let deadline = Instant::now() + TIMEOUT;
    while server.world.accepted.load(Ordering::SeqCst) < 6 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    // Wherever they landed, six are no more than may be, and a seventh is.
    assert_eq!(server.world.ended.lock().unwrap().len(), 0);
    silent.push(TcpStream::connect(server.address).unwrap());
    assert_eq!(server.ended(1), [Outcome::PrefixLimit]);
}
