//! The same against memcached itself, where it is installed.

use std::net::{IpAddr, Ipv4Addr};

use authentick_lab::peers::{Memcached, Memory};

use super::*;

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[test]
fn memcached_stores_for_two_and_refuses_what_is_too_large_or_too_much() {
    let Some(found) = Memcached::find() else { return };
    let memcached = found.start(LOOPBACK, Memory::megabytes(64));
    let (mut one, mut two) = (patient(memcached.address()), patient(memcached.address()));
    let large = vec![0xA5; VALUE_SIZE_MAX];
    assert_eq!(one.put(&name("a"), &large, None).unwrap(), Put::Stored);
    assert_eq!(two.put(&name("a"), b"two", None).unwrap(), Put::Lost);
    let (of_one, of_two) = (token(&mut one, "a"), token(&mut two, "a"));
    assert_eq!(two.put(&name("a"), b"", Some(of_two)).unwrap(), Put::Stored);
    assert_eq!(one.put(&name("a"), &large, Some(of_one)).unwrap(), Put::Lost);
    assert_eq!(one.put(&name("b"), &large, Some(of_one)).unwrap(), Put::Lost, "the token is used up anyway");
    assert_eq!(one.put(&name("b"), &large, None).unwrap(), Put::Stored);
    let values = two.get(&names(&["b", "x", "a"])).unwrap();
    let values: Vec<Option<Vec<u8>>> = values.into_iter().map(octets).collect();
    assert!(values == [Some(large.clone()), None, Some(Vec::new())]);

    let memcached = found.start(LOOPBACK, Memory::megabytes(1).item_size_max(4096).refusing());
    let mut server = patient(memcached.address());
    let put = server.put(&name("a"), &large, None).unwrap();
    assert_eq!(put, Put::Refused("object too large for cache".to_owned()));
    assert_eq!(server.put(&name("a"), b"one", None).unwrap(), Put::Stored);
    memcached.fill(2000);
    let put = server.put(&name("b"), &[0; 2000], None).unwrap();
    assert_eq!(put, Put::Refused("out of memory storing object".to_owned()));
    assert_eq!(octets(read(&mut server, "a").unwrap()), Some(b"one".to_vec()), "on the same connection");
}

#[test]
fn memcached_that_hangs_or_is_killed_fails_and_is_asked_again_when_it_is_back() {
    /// The first answer that is more than that the server is left alone.
    fn answer(server: &mut Server) -> Result<Option<Value>, ServerError> {
        wait_for("the pause to end", || match read(server, "a") {
            Err(ServerError::NotYet) => None,
            answer => Some(answer),
        })
    }
    let Some(memcached) = Memcached::find() else { return };
    let mut memcached = memcached.start(LOOPBACK, Memory::megabytes(8));
    let mut server = limited(memcached.address(), Limits { pause: PAUSE, ..NONE });
    assert_eq!(server.put(&name("a"), b"one", None).unwrap(), Put::Stored);
    memcached.pause();
    server.limits.exchange = EXCHANGE;
    assert!(matches!(read(&mut server, "a"), Err(ServerError::Deadline)));
    // The kernel accepts for it.
    assert!(matches!(answer(&mut server), Err(ServerError::Deadline)));
    memcached.resume();
    server.limits.exchange = PATIENCE;
    let value = answer(&mut server).unwrap().unwrap();
    assert_eq!(value.octets, b"one");

    memcached.kill();
    let error = read(&mut server, "a").unwrap_err();
    assert!(matches!(error, ServerError::Ended | ServerError::Io(_)), "{error}");
    assert!(matches!(read(&mut server, "a"), Err(ServerError::Connect(_))), "at once");
    assert!(left_alone(&server).is_some());
    memcached.restart();
    assert_eq!(octets(answer(&mut server).unwrap()), None);
    assert_eq!(server.put(&name("a"), b"two", None).unwrap(), Put::Stored);
    assert_eq!(server.put(&name("a"), b"three", Some(value.token)).unwrap(), Put::Lost);
    assert_eq!(token(&mut server, "a").number, value.token.number, "it counts from 1 again");
    assert_eq!(octets(read(&mut server, "a").unwrap()), Some(b"two".to_vec()));
}
