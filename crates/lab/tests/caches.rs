//! A cache that lies tells each lie, counts what it is asked, and remembers what it was given.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use authentick_lab::caches::{Behaviour, CONNECTION_COUNT_MAX, CacheClient, CacheServer, Counts};
use authentick_lab::peers::{Memcached, Memory};
use authentick_lab::process::wait_for;

const MS: Duration = Duration::from_millis(1);
const SHORT: Duration = Duration::from_millis(200);

/// An honest server that holds `one` as `a` and `two` as `b`, and a client.
fn filled() -> (CacheServer, CacheClient) {
    let server = CacheServer::on_loopback(Behaviour::Honest);
    let mut client = CacheClient::connect(server.address()).unwrap();
    assert_eq!(client.add("a", b"one").unwrap(), "STORED");
    assert_eq!(client.add("b", b"two").unwrap(), "STORED");
    (server, client)
}

/// The values that `gets` finds.
fn values(client: &mut CacheClient, names: &[&str]) -> Vec<(String, Vec<u8>)> {
    client.gets(names).unwrap().into_iter().map(|found| (found.name, found.value)).collect()
}

fn pair(name: &str, value: &[u8]) -> (String, Vec<u8>) {
    (name.to_owned(), value.to_vec())
}

/// The lines that come in answer to these octets, in which there are so many fetches, one of them at the end.
fn conversation(address: SocketAddr, octets: &[u8], end_count: usize) -> Vec<String> {
    let mut client = CacheClient::connect(address).unwrap();
    client.send(octets).unwrap();
    let mut lines = Vec::new();
    while lines.iter().filter(|line| *line == "END").count() < end_count {
        lines.push(client.line().unwrap());
    }
    lines
}

#[test]
fn honest_cache_answers_as_memcached_does() {
    let Some(memcached) = Memcached::find() else { return };
    let real = memcached.start("127.0.0.1:0".parse().unwrap(), Memory::megabytes(8));
    let ours = CacheServer::on_loopback(Behaviour::Honest);
    let octets =
        b"gets a b\r\nadd a 5 0 3\r\none\r\nadd a 0 0 3\r\ntwo\r\ngets a\r\nadd b 0 0 0\r\n\r\nget b a\r\n\
        cas a 6 0 5 1\r\nth\r\ne\r\ncas a 0 0 1 1\r\nx\r\ncas c 0 0 1 1\r\nx\r\ngets a c b a\r\nnonsense\r\n\
        set c 0 0 1 noreply\r\ny\r\nset b 1 0 1\r\nz\r\ngets a b c\r\ngets\r\nget d\r\n";
    let told = conversation(ours.address(), octets, 6);
    assert_eq!(told, conversation(real.address(), octets, 6));
    assert_eq!(told.iter().filter(|line| line.starts_with("VALUE")).count(), 9, "{told:?}");
    let broken = b"add a 0 0\r\n";
    let first = |address| {
        let mut client = CacheClient::connect(address).unwrap();
        client.send(broken).unwrap();
        client.line().unwrap()
    };
    // memcached goes on after this; ours closes.
    let lines = [first(real.address()), first(ours.address())];
    assert_eq!(lines, ["ERROR", "CLIENT_ERROR bad command line format"]);
}

#[test]
fn everything_is_counted_and_remembered() {
    let (server, mut client) = filled();
    assert_eq!(client.add("a", b"three").unwrap(), "NOT_STORED");
    let unique = client.gets(&["a"]).unwrap()[0].unique;
    assert_eq!(client.cas("a", b"four", unique).unwrap(), "STORED");
    assert_eq!(client.cas("a", b"five", unique).unwrap(), "EXISTS");
    client.send(b"version\r\n").unwrap();
    assert_eq!(client.line().unwrap(), "ERROR");
    let mut other = CacheClient::connect(server.address()).unwrap();
    assert_eq!(values(&mut other, &["a", "c", "b"]), [pair("a", b"four"), pair("b", b"two")]);
    let counts = Counts { connections: 2, fetches: 2, names: 4, writes: 5, malformed: 1 };
    assert_eq!(server.counts(), counts);
    assert_eq!(server.history("a"), [&b"one"[..], b"three", b"four", b"five"]);
    assert_eq!((server.history("c"), server.names()), (Vec::new(), vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!((server.value("a"), server.value("c")), (Some(b"four".to_vec()), None));
    // An old value is played back: as a write that nobody made.
    let old = server.history("a").remove(0);
    let unique = client.gets(&["a"]).unwrap()[0].unique;
    server.put("a", &old);
    assert_eq!(values(&mut client, &["a"]), [pair("a", b"one")]);
    assert_eq!(client.cas("a", b"six", unique).unwrap(), "EXISTS");
    assert_eq!(server.history("a").len(), 5);
}

#[test]
fn replay_answers_with_the_first_and_throws_writes_away() {
    let (server, mut client) = filled();
    assert_eq!(client.set("a", b"new").unwrap(), "STORED");
    server.behave(Behaviour::Replay);
    assert_eq!(server.behaviour(), Behaviour::Replay);
    let first = [pair("a", b"one"), pair("b", b"two")];
    assert_eq!(values(&mut client, &["a", "b", "c"]), first);
    for answer in [client.add("a", b"x"), client.cas("b", b"x", 999), client.set("b", b"x")] {
        assert_eq!(answer.unwrap(), "STORED");
    }
    // What nobody had is stored, once.
    assert_eq!(client.add("c", b"three").unwrap(), "STORED");
    assert_eq!(client.set("c", b"four").unwrap(), "STORED");
    server.forget();
    assert_eq!(values(&mut client, &["a", "b", "c"]), [&first[..], &[pair("c", b"three")]].concat());
    assert_eq!(server.history("c"), [&b"three"[..], b"four"]);
    server.behave(Behaviour::Honest);
    assert_eq!(values(&mut client, &["a", "b", "c"]), []);
}

#[test]
fn swap_answers_with_the_value_of_another_name() {
    let (server, mut client) = filled();
    client.add("c", b"three").unwrap();
    server.behave(Behaviour::Swap);
    let expected = [pair("a", b"two"), pair("c", b"one"), pair("aa", b"two"), pair("b", b"three")];
    assert_eq!(values(&mut client, &["a", "c", "aa", "b"]), expected);
    server.forget();
    server.put("b", b"alone");
    assert_eq!(values(&mut client, &["b", "z"]), [pair("z", b"alone")]);
}

#[test]
fn flip_flips_each_bit_once_and_keeps_the_value() {
    let (server, mut client) = filled();
    client.add("empty", b"").unwrap();
    server.behave(Behaviour::Flip);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..24 {
        let [(_, value), (_, empty)] = &values(&mut client, &["a", "empty"])[..] else { panic!("both") };
        let flipped: u32 =
            value.iter().zip(b"one").map(|(told, true_one)| (told ^ true_one).count_ones()).sum();
        assert_eq!((flipped, value.len(), empty.len()), (1, 3, 0));
        seen.insert(value.clone());
    }
    assert_eq!(seen.len(), 24);
    server.behave(Behaviour::Honest);
    assert_eq!(values(&mut client, &["a"]), [pair("a", b"one")]);
}

#[test]
fn length_is_what_was_set_whatever_follows() {
    let (server, mut client) = filled();
    server.behave(Behaviour::Length(4_294_967_295));
    client.send(b"gets a c\r\n").unwrap();
    let lines = std::array::from_fn(|_| client.line().unwrap());
    assert_eq!(lines, ["VALUE a 0 4294967295 1", "one", "VALUE c 0 4294967295 1", "", "END"]);
    let kind = |result: std::io::Result<_>| result.unwrap_err().kind();
    assert_eq!(kind(client.gets(&["a"])), ErrorKind::InvalidData);
    server.behave(Behaviour::Length(2));
    let mut client = CacheClient::connect(server.address()).unwrap();
    assert_eq!(kind(client.gets(&["a"])), ErrorKind::InvalidData);
}

#[test]
fn endless_line_has_no_end_until_the_behaviour_has() {
    let (server, mut client) = filled();
    server.behave(Behaviour::Endless);
    assert_eq!(client.gets(&["a"]).unwrap_err().kind(), ErrorKind::InvalidData);
    // It can be read on and on, and who does not read does not keep the server from ending.
    assert_eq!(client.line().unwrap_err().kind(), ErrorKind::InvalidData);
    let mut idle = CacheClient::connect(server.address()).unwrap();
    idle.send(b"add c 0 0 1\r\nx\r\n").unwrap();
    std::thread::sleep(SHORT);
    server.behave(Behaviour::Honest);
    wait_for("the end", || {
        let error = client.line().unwrap_err().kind();
        (error != ErrorKind::InvalidData).then_some(())
    });
    let mut client = CacheClient::connect(server.address()).unwrap();
    assert_eq!(values(&mut client, &["a", "c"]), [pair("a", b"one")]);
    server.behave(Behaviour::Endless);
    client.send(b"gets a\r\n").unwrap();
    std::thread::sleep(SHORT);
    drop(server);
}

#[test]
fn dripped_answer_takes_its_time_for_each_octet_and_ends_at_once_with_the_behaviour() {
    let (server, mut client) = filled();
    server.behave(Behaviour::Drip(20 * MS));
    // VALUE a 0 3 1, one, END, with line ends.
    let (size, start) = (15 + 5 + 5, Instant::now());
    assert_eq!(values(&mut client, &["a"]), [pair("a", b"one")]);
    assert!(start.elapsed() >= (size - 1) * 20 * MS, "{:?}", start.elapsed());
    server.behave(Behaviour::Drip(Duration::from_secs(3600)));
    client.set_patience(SHORT).unwrap();
    assert_eq!(client.gets(&["a"]).unwrap_err().kind(), ErrorKind::WouldBlock);
    server.behave(Behaviour::Honest);
    client.set_patience(Duration::from_secs(20)).unwrap();
    // The first octet was lost when nothing followed, if it had come.
    assert!(["VALUE a 0 3 1", "ALUE a 0 3 1"].contains(&client.line().unwrap().as_str()));
}

#[test]
fn silence_reads_counts_and_keeps_nothing_and_what_is_unanswered_is_kept() {
    for (behaviour, kept) in [(Behaviour::Silent, None), (Behaviour::Unanswered, Some(b"x".to_vec()))] {
        let (server, mut client) = filled();
        server.behave(behaviour);
        client.set_patience(SHORT).unwrap();
        assert_eq!(client.gets(&["a"]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(client.add("c", b"x").unwrap_err().kind(), ErrorKind::WouldBlock);
        let mut late = CacheClient::connect(server.address()).unwrap();
        late.set_patience(SHORT).unwrap();
        assert_eq!(late.gets(&["a"]).unwrap_err().kind(), ErrorKind::WouldBlock);
        let counts = Counts { connections: 2, fetches: 2, names: 2, writes: 3, malformed: 0 };
        wait_for("all that was asked", || (server.counts() == counts).then_some(()));
        assert_eq!((server.value("c"), server.history("c")), (kept, vec![b"x".to_vec()]));
        server.behave(Behaviour::Honest);
        // The old question is never answered, the next one is.
        assert_eq!(values(&mut client, &["b"]), [pair("b", b"two")]);
    }
}

#[test]
fn refused_connections_are_closed_at_once_open_ones_too() {
    let (server, mut client) = filled();
    server.behave(Behaviour::Refuse);
    assert_eq!(client.line().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    for _ in 0..3 {
        let mut client = CacheClient::connect(server.address()).unwrap();
        assert_eq!(client.line().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
    assert_eq!(server.counts().connections, 4);
    server.behave(Behaviour::Honest);
    let mut client = CacheClient::connect(server.address()).unwrap();
    assert_eq!(values(&mut client, &["a"]), [pair("a", b"one")]);
}

#[test]
fn forgetting_cache_says_stored_and_finds_nothing() {
    let (server, mut client) = filled();
    server.behave(Behaviour::Forget);
    assert_eq!(client.add("c", b"x").unwrap(), "STORED");
    assert_eq!(client.add("c", b"x").unwrap(), "STORED");
    assert_eq!(client.cas("a", b"x", 1).unwrap(), "NOT_FOUND");
    assert_eq!(values(&mut client, &["a", "b", "c"]), []);
    server.behave(Behaviour::Honest);
    assert_eq!(values(&mut client, &["a", "b", "c"]), []);
    assert_eq!(server.history("a"), [&b"one"[..], b"x"]);
}

#[test]
fn full_cache_refuses_writes_and_answers() {
    let (server, mut client) = filled();
    server.behave(Behaviour::Full);
    for answer in [client.add("c", b"x"), client.set("a", b"x"), client.cas("a", b"x", 1)] {
        assert_eq!(answer.unwrap(), "SERVER_ERROR out of memory storing object");
    }
    assert_eq!(values(&mut client, &["a", "b", "c"]), [pair("a", b"one"), pair("b", b"two")]);
}

#[test]
fn cache_ends_with_its_value_and_another_takes_its_place() {
    let (server, mut client) = filled();
    let address = server.address();
    drop(server);
    assert_eq!(client.line().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(CacheClient::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let _server = CacheServer::start(TcpListener::bind(address).unwrap(), Behaviour::Honest);
    let mut client = CacheClient::connect(address).unwrap();
    assert_eq!(values(&mut client, &["a"]), []);
}

#[test]
fn connections_beyond_the_most_wait_for_their_turn() {
    let (server, client) = filled();
    let mut clients: Vec<CacheClient> =
        (0..CONNECTION_COUNT_MAX).map(|_| CacheClient::connect(server.address()).unwrap()).collect();
    let most = CONNECTION_COUNT_MAX as u64;
    wait_for("connections", || (server.counts().connections == most).then_some(()));
    let last = clients.last_mut().unwrap();
    last.set_patience(SHORT).unwrap();
    assert_eq!(last.gets(&["a"]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(server.counts().connections, most);
    drop(client);
    last.set_patience(Duration::from_secs(20)).unwrap();
    assert_eq!(last.line().unwrap(), "VALUE a 0 3 1");
}
