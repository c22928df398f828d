//! What a server may do over a socket, and what the caller is told, and when. What values are worth is not tested here:
//! a flipped bit or an old value is an answer. Where a test is not about a limit, there is none that it could meet.

mod real;

use std::io::{BufRead, BufReader};
use std::net::{Shutdown, TcpListener};
use std::sync::mpsc;
use std::thread::JoinHandle;

use authentick_fleet::memcached::{RESPONSE_SIZE_MAX, Unfit, VALUE_SIZE_MAX};
use authentick_lab::caches::{Behaviour, CacheServer, Counts};
use authentick_lab::process::{PATIENCE, closed_port, wait_for};
use rustix::net::{listen, sockopt};

use super::*;

/// A server with the limits of a running daemon.
fn running(address: SocketAddr) -> Server {
    Server::new(Endpoint::from(address).into(), Entropy::from_seed(1))
}

/// Limits that no test meets.
const NONE: Limits = Limits { connect: PATIENCE, exchange: PATIENCE, pause: PATIENCE };

fn limited(address: SocketAddr, limits: Limits) -> Server {
    Server { limits, ..running(address) }
}

fn patient(address: SocketAddr) -> Server {
    limited(address, NONE)
}

/// A server on a connection for which the kernel takes little at once.
fn narrow(address: SocketAddr) -> Server {
    let open = Open::new(address, PATIENCE).unwrap();
    sockopt::set_socket_send_buffer_size(&open.stream, 4096).unwrap();
    Server { link: Link::Open(open), ..patient(address) }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn names(texts: &[&str]) -> Vec<Name> {
    texts.iter().map(|text| name(text)).collect()
}

/// What is under one name.
fn read(server: &mut Server, text: &str) -> Result<Option<Value>, ServerError> {
    server.get(&names(&[text])).map(|mut values| values.remove(0))
}

/// The token of the value under a name.
fn token(server: &mut Server, text: &str) -> Token {
    read(server, text).unwrap().unwrap().token
}

fn octets(value: Option<Value>) -> Option<Vec<u8>> {
    value.map(|value| value.octets)
}

/// A server that does what `work` says with its only connection; it is waited for at the end of the test.
fn peer(work: impl FnOnce(TcpStream) + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (address, std::thread::spawn(move || work(accept(&listener))))
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line
}

/// The instant from which on a server may be connected to again, if there is one.
fn left_alone(server: &Server) -> Option<Instant> {
    match server.link {
        Link::Closed(before) => before,
        Link::Open(_) => panic!("there is a connection"),
    }
}

/// As if the pause after a failure were over.
fn rest(server: &mut Server) {
    server.link = Link::Closed(None);
}

#[test]
fn values_come_in_the_order_of_their_names_with_one_fetch_on_one_connection() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut server = patient(cache.address());
    assert_eq!(cache.counts().connections, 0, "nothing was asked yet");
    for (name, value) in [("b", "two"), ("a", "one"), ("empty", "")] {
        cache.put(name, value.as_bytes());
    }
    for _ in 0..3 {
        let values = server.get(&names(&["empty", "x", "a", "b", "y"])).unwrap();
        let texts: Vec<Option<&[u8]>> =
            values.iter().map(|value| value.as_ref().map(|value| value.octets.as_slice())).collect();
        assert_eq!(texts, [Some(&b""[..]), None, Some(b"one"), Some(b"two"), None]);
    }
    let counts = cache.counts();
    assert_eq!((counts.connections, counts.fetches, counts.names), (1, 3, 15));
}

#[test]
fn what_does_not_fit_into_one_response_is_read_by_several_requests() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut server = patient(cache.address());
    let count = RESPONSE_SIZE_MAX / VALUE_SIZE_MAX;
    let all: Vec<Name> = (0..=count).map(|index| name(&index.to_string())).collect();
    for (index, name) in all.iter().enumerate() {
        let value = vec![index as u8; VALUE_SIZE_MAX];
        assert_eq!(server.put(name, &value, None).unwrap(), Put::Stored);
    }
    for (index, value) in server.get(&all[..count]).unwrap().into_iter().enumerate() {
        assert!(octets(value).unwrap() == vec![index as u8; VALUE_SIZE_MAX], "{index}");
    }
    let before = cache.counts();
    for (index, value) in server.get(&all).unwrap().into_iter().enumerate() {
        assert!(octets(value).unwrap() == vec![index as u8; VALUE_SIZE_MAX], "{index}");
    }
    // What is known of sizes needs no request that is too large.
    assert_eq!((cache.counts().fetches - before.fetches, cache.counts().connections), (2, 1));
    assert_eq!(server.fetches(), 3);
}

#[test]
fn fleet_of_the_largest_size_is_read_whatever_its_members_say_of_symmetric_keys() {
    use authentick_fleet::{Asker, SYMMETRIC_COUNT_MAX, SymmetricUses};

    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let member = |index| authentick_fleet::Name::new(&format!("m{index}")).unwrap();
    let members: Vec<_> = (0..crate::config::MEMBER_COUNT_MAX).map(member).collect();
    let line =
        |id| SymmetricUses { id, algorithm: "HMAC-SHA224".to_owned(), uses: u64::MAX, limit: Some(u64::MAX) };
    let symmetric: Vec<_> = (0..SYMMETRIC_COUNT_MAX as u32).map(|index| line(u32::MAX - index)).collect();
    let fleet = authentick_fleet::Name::new("fleet").unwrap();
    let asker = Asker { fleet, me: members[0].clone(), members: members.clone(), kind: "cookie-keys" };
    let head = "authentick-fleet-node 1\nfleet fleet\nnode m0\ntime 1\n";
    let mut said = authentick_fleet::Acknowledgement::parse(head, &asker.fleet, &members[0]).unwrap();
    said.symmetric = symmetric;
    let text = said.emit();
    let size = text.len() * members.len();
    assert!(size > 2 * RESPONSE_SIZE_MAX, "{size}");
    for member in &members {
        cache.put(asker.name(authentick_fleet::seal::Topic::Node(member)).as_str(), text.as_bytes());
    }
    let mut server = patient(cache.address());
    let mut counts = Vec::new();
    for _ in 0..3 {
        let values = server.get(&asker.names()).unwrap();
        assert_eq!(values.iter().flatten().count(), members.len());
        assert!(values.iter().flatten().all(|value| value.octets == text.as_bytes()));
        counts.push((cache.counts().fetches, cache.counts().connections));
    }
    eprintln!("{size} octets: {counts:?}");
    // The first reading finds out; the others ask as often as it takes, on one connection.
    assert_eq!((counts[2].0 - counts[1].0, counts[2].1), (counts[1].0 - counts[0].0, counts[0].1));
    assert!((6..=12).contains(&(counts[2].0 - counts[1].0)), "{counts:?}");
    assert!(server.fetches() >= cache.counts().fetches);
}

#[test]
fn of_two_that_store_one_wins_and_the_other_reads_again() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let (mut one, mut two) = (patient(cache.address()), patient(cache.address()));
    assert_eq!(one.put(&name("a"), b"one", None).unwrap(), Put::Stored);
    assert_eq!(two.put(&name("a"), b"two", None).unwrap(), Put::Lost);
    let (of_one, of_two) = (token(&mut one, "a"), token(&mut two, "a"));
    assert_eq!(two.put(&name("a"), b"two", Some(of_two)).unwrap(), Put::Stored);
    assert_eq!(one.put(&name("a"), b"three", Some(of_one)).unwrap(), Put::Lost);
    assert_eq!(
        two.put(&name("a"), b"three", Some(of_two)).unwrap(),
        Put::Lost,
        "its own value is another now"
    );
    let of_one = token(&mut one, "a");
    cache.forget();
    assert_eq!(one.put(&name("a"), b"three", Some(of_one)).unwrap(), Put::Lost, "there is none any more");
    assert_eq!(cache.history("a"), [&b"one"[..], b"two", b"two", b"three", b"three", b"three"]);
}

#[test]
fn what_cannot_be_asked_is_not_sent_and_costs_no_connection() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut server = patient(cache.address());
    let large = vec![0; VALUE_SIZE_MAX + 1];
    for _ in 0..2 {
        for (asked, unfit) in [(vec![], Unfit::NoNames), (names(&["a", "a"]), Unfit::NameTwice)] {
            let error = server.get(&asked).unwrap_err();
            assert!(matches!(error, ServerError::Unasked(Unasked::Unfit(why)) if why == unfit), "{error}");
        }
        let error = server.put(&name("a"), &large, None).unwrap_err();
        assert!(matches!(error, ServerError::Unasked(Unasked::Unfit(Unfit::ValueSize))), "{error}");
        assert_eq!(octets(read(&mut server, "a").unwrap()), None);
    }
    assert_eq!(cache.counts(), Counts { connections: 1, fetches: 2, names: 2, ..Counts::default() });
}

#[test]
fn token_of_an_earlier_connection_or_another_server_loses_without_being_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let again = listener.try_clone().unwrap();
    let cache = CacheServer::start(listener, Behaviour::Honest);
    let (mut server, mut other) = (patient(cache.address()), patient(cache.address()));
    cache.put("a", b"before");
    let (old, of_other) = (token(&mut server, "a"), token(&mut other, "a"));
    assert_eq!(server.put(&name("a"), b"mine", Some(of_other)).unwrap(), Put::Lost);
    assert_eq!(cache.counts().writes, 0);
    drop(cache);
    let cache = CacheServer::start(again, Behaviour::Honest);
    cache.put("a", b"after");
    assert!(matches!(read(&mut server, "a"), Err(ServerError::Ended)));
    assert_eq!(server.put(&name("a"), b"mine", Some(old)).unwrap(), Put::Lost, "there is no connection");
    assert_eq!(cache.counts().connections, 0);
    let new = token(&mut server, "a");
    assert_eq!(new.number, old.number, "the server counts from 1 again");
    assert_eq!(server.put(&name("a"), b"mine", Some(old)).unwrap(), Put::Lost);
    assert_eq!((cache.counts().writes, cache.value("a")), (0, Some(b"after".to_vec())));
    assert_eq!(server.put(&name("a"), b"mine", Some(new)).unwrap(), Put::Stored);
}

#[test]
fn restarted_server_fails_one_request_and_is_connected_to_again_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let clone = || listener.try_clone().unwrap();
    let mut cache = CacheServer::start(clone(), Behaviour::Honest);
    let mut server = patient(cache.address());
    assert_eq!(octets(read(&mut server, "a").unwrap()), None);
    for _ in 0..3 {
        drop(cache);
        cache = CacheServer::start(clone(), Behaviour::Honest);
        assert!(matches!(server.put(&name("a"), b"lost", None), Err(ServerError::Ended)));
        assert_eq!(server.put(&name("a"), b"one", None).unwrap(), Put::Stored);
        assert_eq!(octets(read(&mut server, "a").unwrap()), Some(b"one".to_vec()));
        assert_eq!((cache.counts().connections, cache.history("a").len()), (1, 1));
    }
}

#[test]
fn connection_that_never_served_is_not_made_again_at_once() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut server = patient(cache.address());
    read(&mut server, "a").unwrap();
    cache.behave(Behaviour::Refuse);
    // It may have been reset, or closed, or both.
    let ended = |error: &ServerError| matches!(error, ServerError::Ended | ServerError::Io(_));
    let error = wait_for("the connection to end", || read(&mut server, "a").err());
    assert!(ended(&error), "{error}");
    let error = read(&mut server, "a").unwrap_err();
    assert!(ended(&error), "{error}");
    for _ in 0..3 {
        assert!(matches!(read(&mut server, "a"), Err(ServerError::NotYet)));
        assert!(matches!(server.put(&name("a"), b"", None), Err(ServerError::NotYet)));
    }
    assert_eq!(cache.counts().connections, 2);
}

#[test]
fn server_that_failed_is_asked_again_after_a_second_and_not_before() {
    let cache = CacheServer::on_loopback(Behaviour::Refuse);
    let mut server = limited(cache.address(), Limits { pause: PAUSE, ..NONE });
    let start = Instant::now();
    for failure_count in 1..=2 {
        let asked = || match read(&mut server, "a") {
            Err(ServerError::NotYet) => None,
            answer => Some(answer.unwrap_err()),
        };
        let error = wait_for("the pause to end", asked);
        assert!(matches!(error, ServerError::Ended | ServerError::Io(_)), "{error}");
        assert!(start.elapsed() >= PAUSE * (failure_count - 1));
        assert_eq!(cache.counts().connections, u64::from(failure_count));
    }
    cache.behave(Behaviour::Honest);
    rest(&mut server);
    assert_eq!(octets(read(&mut server, "a").unwrap()), None);
}

#[test]
fn pauses_are_drawn_between_one_and_two_seconds() {
    let drawn = |seed| {
        let mut entropy = Entropy::from_seed(seed);
        (0..1000).map(|_| pause(&mut entropy, PAUSE)).collect::<Vec<_>>()
    };
    let (first, second) = (drawn(1), drawn(2));
    let (least, most) = (*first.iter().min().unwrap(), *first.iter().max().unwrap());
    assert!(least >= PAUSE && least < PAUSE.mul_f64(1.1), "{least:?}");
    assert!(most < 2 * PAUSE && most > PAUSE.mul_f64(1.9), "{most:?}");
    assert_ne!(first, second);
    let closed = closed_port();
    let mut server = running(closed.local_addr().unwrap());
    let before = Instant::now();
    assert!(matches!(read(&mut server, "a"), Err(ServerError::Connect(_))));
    let until = left_alone(&server).unwrap();
    assert!(until >= before + PAUSE && until < Instant::now() + 2 * PAUSE);
}

/// Asks a server that is not done within the deadline of a running daemon, which has to end it. It may take far longer,
/// for a busy machine, but not as long as the server.
fn overdue(address: SocketAddr, ask: impl FnOnce(&mut Server) -> ServerError) {
    let mut server = limited(address, Limits { exchange: EXCHANGE, ..NONE });
    let start = Instant::now();
    let error = ask(&mut server);
    let took = start.elapsed();
    assert!(matches!(error, ServerError::Deadline), "{error}");
    assert!(took >= EXCHANGE && took < PATIENCE, "{took:?}");
    assert!(matches!(read(&mut server, "a"), Err(ServerError::NotYet)));
    assert!(left_alone(&server).is_some());
}

#[test]
fn deadline_holds_for_silence_and_however_slowly_octets_come() {
    let drip = |interval_ms| Behaviour::Drip(Duration::from_millis(interval_ms));
    // Those that come octet by octet take twice as long as the test waits.
    let behaviours = [
        (Behaviour::Silent, 0),
        (drip(1000), 40),
        (drip(50), 800),
        (Behaviour::Length(VALUE_SIZE_MAX as u64), 1000),
    ];
    std::thread::scope(|scope| {
        for (behaviour, size) in behaviours {
            scope.spawn(move || {
                let cache = CacheServer::on_loopback(behaviour);
                cache.put("a", &vec![0; size]);
                overdue(cache.address(), |server| read(server, "a").unwrap_err());
                assert_eq!(cache.counts().connections, 1, "{behaviour:?}");
            });
        }
    });
}

#[test]
fn value_may_have_been_stored_though_no_answer_came() {
    let cache = CacheServer::on_loopback(Behaviour::Unanswered);
    overdue(cache.address(), |server| server.put(&name("a"), b"one", None).unwrap_err());
    assert_eq!(cache.value("a"), Some(b"one".to_vec()));
}

#[test]
fn deadline_holds_for_a_server_that_does_not_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // Small ones, so that the kernel does not take all of the value.
    sockopt::set_socket_recv_buffer_size(&listener, 4096).unwrap();
    let address = listener.local_addr().unwrap();
    overdue(address, |server| {
        server.link = narrow(address).link;
        server.put(&name("a"), &[0; VALUE_SIZE_MAX], None).unwrap_err()
    });
    let mut sent = Vec::new();
    accept(&listener).read_to_end(&mut sent).unwrap();
    assert!(!sent.is_empty() && sent.len() < VALUE_SIZE_MAX, "{}", sent.len());
}

#[test]
fn server_that_cannot_be_reached_fails_within_a_second_or_at_once() {
    let closed = closed_port();
    let mut server = patient(closed.local_addr().unwrap());
    let error = read(&mut server, "a").unwrap_err();
    let refused = |error: &io::Error| error.kind() == ErrorKind::ConnectionRefused;
    assert!(matches!(&error, ServerError::Connect(error) if refused(error)), "{error}");
    assert!(matches!(read(&mut server, "a"), Err(ServerError::NotYet)));

    // A queue with room for one connection, which takes it: the kernel answers no further ones.
    listen(&closed, 0).unwrap();
    let address = closed.local_addr().unwrap();
    let _queued = TcpStream::connect(address).unwrap();
    let mut server = limited(address, Limits { connect: CONNECT, ..NONE });
    let start = Instant::now();
    let error = read(&mut server, "a").unwrap_err();
    let took = start.elapsed();
    let overdue = |error: &io::Error| error.kind() == ErrorKind::TimedOut;
    assert!(matches!(&error, ServerError::Connect(error) if overdue(error)), "{error}");
    assert!(took >= CONNECT && took < PATIENCE, "{took:?}");
    assert!(matches!(read(&mut server, "a"), Err(ServerError::NotYet)));
}

#[test]
fn lies_are_faults_or_answers_and_a_fault_ends_the_connection() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let mut server = patient(cache.address());
    let (length, most) = (Behaviour::Length, VALUE_SIZE_MAX as u64);
    for (behaviour, fault) in [
        (Behaviour::Endless, Fault::LineSize),
        (length(1), Fault::ValueEnd),
        (length(most + 1), Fault::ValueSize),
        (length(u64::MAX), Fault::ValueSize),
    ] {
        cache.behave(Behaviour::Honest);
        cache.put("a", b"one");
        cache.put("b", b"two");
        rest(&mut server);
        let old = token(&mut server, "a");
        cache.behave(behaviour);
        let error = read(&mut server, "a").unwrap_err();
        assert!(matches!(error, ServerError::Fault(why) if why == fault), "{behaviour:?}: {error}");
        assert!(matches!(read(&mut server, "a"), Err(ServerError::NotYet)), "{behaviour:?}");
        assert_eq!(server.put(&name("a"), b"", Some(old)).unwrap(), Put::Lost);
    }
    rest(&mut server);
    for (behaviour, value, put) in [
        (Behaviour::Replay, Some(&b"one"[..]), Put::Stored),
        (Behaviour::Swap, Some(b"two"), Put::Lost),
        (Behaviour::Flip, Some(b"nne"), Put::Lost),
        (Behaviour::Full, Some(b"one"), Put::Refused("out of memory storing object".to_owned())),
        (Behaviour::Forget, None, Put::Stored),
    ] {
        cache.behave(behaviour);
        assert_eq!(octets(read(&mut server, "a").unwrap()).as_deref(), value, "{behaviour:?}");
        assert_eq!(server.put(&name("a"), b"new", None).unwrap(), put, "{behaviour:?}");
    }
}

#[test]
fn many_names_are_asked_for_while_the_server_sends_and_does_not_read() {
    let all: Vec<Name> =
        (0..memcached::NAME_COUNT_MAX).map(|index| name(&format!("{index:0>250}"))).collect();
    let asked = all.clone();
    let (address, thread) = peer(move |mut stream| {
        sockopt::set_socket_send_buffer_size(&stream, 32 << 10).unwrap();
        for name in &asked[..3] {
            stream.write_all(format!("VALUE {name} 0 {VALUE_SIZE_MAX} 1\r\n").as_bytes()).unwrap();
            stream.write_all(&[b'x'; VALUE_SIZE_MAX]).unwrap();
            stream.write_all(b"\r\n").unwrap();
        }
        let (mut reader, mut name_count) = (BufReader::new(stream.try_clone().unwrap()), 0);
        while name_count < asked.len() {
            name_count += line(&mut reader).split_ascii_whitespace().count() - 1;
            stream.write_all(b"END\r\n").unwrap();
        }
    });
    let mut server = narrow(address);
    let values = server.get(&all).unwrap();
    assert_eq!(values.iter().take_while(|value| value.is_some()).count(), 3);
    assert_eq!(values.iter().flatten().count(), 3);
    thread.join().unwrap();
}

#[test]
fn value_that_is_refused_at_its_first_line_is_sent_whole_all_the_same() {
    let (is_whole, whole) = mpsc::channel();
    let (address, thread) = peer(move |mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        assert_eq!(line(&mut reader), format!("add a 0 0 {VALUE_SIZE_MAX}\r\n"));
        stream.write_all(b"SERVER_ERROR object too large for cache\r\n").unwrap();
        reader.read_exact(&mut vec![0; VALUE_SIZE_MAX + 2]).unwrap();
        is_whole.send(()).unwrap();
        assert_eq!(line(&mut reader), "gets a\r\n");
        stream.write_all(b"END\r\n").unwrap();
    });
    let mut server = narrow(address);
    let put = server.put(&name("a"), &[0; VALUE_SIZE_MAX], None).unwrap();
    assert_eq!(put, Put::Refused("object too large for cache".to_owned()));
    whole.recv_timeout(PATIENCE).unwrap();
    assert_eq!(octets(read(&mut server, "a").unwrap()), None);
    thread.join().unwrap();
}

#[test]
fn what_a_server_says_before_it_closes_is_told() {
    // memcached closes without reading, so the connection is reset: before a value is sent, or meanwhile.
    for is_before in [true, false] {
        let said = b"ERROR Too many open connections\r\n";
        let (address, thread) = peer(move |mut stream| {
            if !is_before {
                stream.read_exact(&mut [0]).unwrap();
            }
            stream.write_all(said).unwrap();
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        });
        let mut server = narrow(address);
        let thread = if is_before { thread.join().map(|()| None).unwrap() } else { Some(thread) };
        let error = server.put(&name("a"), &[0; VALUE_SIZE_MAX], None).unwrap_err();
        assert_eq!(error.to_string(), "the server refuses to answer: ERROR Too many open connections");
        assert!(matches!(read(&mut server, "a"), Err(ServerError::NotYet)));
        thread.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn refused_fetch_and_an_end_amid_a_value_are_failures() {
    let (address, thread) = peer(|mut stream| {
        line(&mut BufReader::new(stream.try_clone().unwrap()));
        stream.write_all(b"SERVER_ERROR out of memory writing get response\r\n").unwrap();
    });
    let mut server = patient(address);
    let error = read(&mut server, "a").unwrap_err();
    assert!(
        matches!(&error, ServerError::Refused(refusal) if refusal.kind == RefusalKind::ServerError),
        "{error}"
    );
    assert!(matches!(read(&mut server, "a"), Err(ServerError::NotYet)));
    thread.join().unwrap();

    let (address, thread) = peer(|mut stream| {
        line(&mut BufReader::new(stream.try_clone().unwrap()));
        stream.write_all(b"VALUE a 0 10 1\r\nhalf").unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    });
    let mut server = patient(address);
    assert!(matches!(read(&mut server, "a"), Err(ServerError::Ended)));
    assert!(matches!(read(&mut server, "a"), Err(ServerError::NotYet)));
    thread.join().unwrap();
}

#[test]
fn what_comes_between_two_requests_answers_neither() {
    // At once with the response before, or later.
    for (first, later) in [("END\r\nSTORED\r\n", ""), ("END\r\n", "STORED\r\n"), ("END\r\n", "STOR")] {
        let (told, tell) = (mpsc::channel(), mpsc::channel());
        let (has_read, is_sent) = (told.1, tell.0);
        let (address, thread) = peer(move |mut stream| {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            line(&mut reader);
            stream.write_all(first.as_bytes()).unwrap();
            has_read.recv().unwrap();
            stream.write_all(later.as_bytes()).unwrap();
            is_sent.send(()).unwrap();
            assert_eq!(line(&mut reader), "", "nothing else is asked");
        });
        let mut server = patient(address);
        assert_eq!(octets(read(&mut server, "a").unwrap()), None);
        told.0.send(()).unwrap();
        tell.1.recv().unwrap();
        let error = server.put(&name("a"), b"one", None).unwrap_err();
        assert!(matches!(error, ServerError::Fault(Fault::NotWaiting)), "{error}");
        assert!(matches!(read(&mut server, "a"), Err(ServerError::NotYet)));
        thread.join().unwrap();
    }
}

#[test]
fn errors_are_parts_of_a_line_of_the_log() {
    let io = || io::Error::from(ErrorKind::ConnectionReset);
    let refusal = Refusal { kind: RefusalKind::ServerError, text: "busy".to_owned() };
    for (error, text) in [
        (ServerError::Connect(ErrorKind::TimedOut.into()), "cannot connect: timed out"),
        (ServerError::Io(io()), "the connection failed: connection reset"),
        (ServerError::Deadline, "no whole answer within 2s"),
        (ServerError::Ended, "the server closed the connection"),
        (ServerError::Fault(Fault::NotWaiting), "the server sent what nobody has asked for"),
        (ServerError::Refused(refusal), "the server refuses to answer: SERVER_ERROR busy"),
        (ServerError::Unasked(Unfit::NoNames.into()), "no name is asked for"),
        (ServerError::NotYet, "the server failed a moment ago and is left alone"),
    ] {
        assert_eq!(error.to_string(), text);
    }
}
