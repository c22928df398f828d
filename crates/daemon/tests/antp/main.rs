//! A node that serves ANTP, over sockets: every phase of every suite, what its public-key threads refuse, and what
//! becomes of its state keys.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod flood;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_daemon::{Config, node};
use authentick_ke::tls::public_key_info;
use authentick_net::clock;
use authentick_proto::antp::client::{
    Bounds, Check, Event, KeyExchange, Negotiated, Negotiation, Offer, Progress, SeparateTag, Session, Wanted,
};
use authentick_proto::antp::kem;
use authentick_proto::server::outcome::Outcome;
use authentick_wire::antp::{ErrorCode, Suite, SuiteList};
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use rcgen::{CertificateParams, KeyPair};

const PATIENCE: Duration = Duration::from_secs(20);

/// A key of our vectors, for a certificate that the test makes.
fn vector_key(name: &str) -> KeyPair {
    let file = include_str!("../../../../docs/antp-vectors.txt");
    let prefix = format!("{name}.private = ");
    let hex = file.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap();
    let octets: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    KeyPair::try_from(octets).unwrap()
}

/// Writes a key and a certificate for it; returns the table of the suite.
fn suite(folder: &Path, table: &str, key: &KeyPair) -> String {
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(key).unwrap();
    let (chain, key_file) = (folder.join(format!("{table}.pem")), folder.join(format!("{table}.key")));
    std::fs::write(&chain, certificate.pem()).unwrap();
    authentick_daemon::replace::replace(&key_file, key.serialize_pem().as_bytes(), None).unwrap();
    format!("[antp.{table}]\ncertificate-chain = {chain:?}\nprivate-key = {key_file:?}\n")
}

fn suites(folder: &Path) -> String {
    let rsa = vector_key("rsa");
    suite(folder, "ecdh", &KeyPair::generate().unwrap()) + &suite(folder, "rsa", &rsa)
}

fn config(folder: &Path, antp: &str, suites: &str) -> Config {
    let text = format!(
        "[server]\nlisten = [\"0.0.0.0:0\"]\nworkers = 1\nuser = \"root\"\n\
         reference = {{ stratum = 1, id = \"TEST\" }}\nstate-directory = {:?}\n\
         [metrics]\nlisten = \"127.0.0.1:0\"\n[antp]\nenable = true\n{antp}\n{suites}",
        folder.join("state"),
    );
    Config::parse(&folder.join("test.toml"), &text).unwrap()
}

struct Client {
    socket: UdpSocket,
    entropy: Entropy,
}

impl Client {
    fn new(node: &node::Running) -> Self {
        Client::at(node, [127, 0, 0, 1])
    }

    /// A client with this address.
    fn at(node: &node::Running, address: [u8; 4]) -> Self {
        let socket = UdpSocket::bind(SocketAddr::from((address, 0))).unwrap();
        // An address of loopback that is not the first: answers come from the one that was asked, or not at all.
        socket.connect(("127.0.0.5", node.ntp_addresses()[0].port())).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { socket, entropy: Entropy::from_system().unwrap() }
    }

    fn receive(&self) -> Vec<u8> {
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        let size = self.socket.recv(&mut buffer).unwrap();
        buffer[..size].to_vec()
    }

    fn ask(&self, request: &[u8]) -> Vec<u8> {
        self.socket.send(request).unwrap();
        self.receive()
    }

    fn negotiate(&mut self, suite: Suite) -> Negotiated {
        let offer = Offer { suites: SuiteList::new(&[suite]).unwrap(), ..Offer::p256() };
        let mut negotiation = Negotiation::new(offer);
        loop {
            let mut out = [0; DATAGRAM_SIZE_MAX];
            let size = negotiation.request(&mut self.entropy, &mut out);
            let answer = self.ask(&out[..size]);
            assert!(answer.len() <= size, "amplified");
            if let Progress::Done(done) = negotiation.receive(&answer).unwrap() {
                return done;
            }
        }
    }

    fn key_request(&mut self, done: &Negotiated) -> (KeyExchange, Vec<u8>) {
        let chain = done.chain();
        let spki = public_key_info(chain.certificates().next().unwrap()).unwrap();
        let public = PublicKey::from_spki(kem(done.suite()).unwrap(), spki).unwrap();
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let (exchange, size) = done.exchange(&public, &mut self.entropy, &mut out).unwrap();
        (exchange, out[..size].to_vec())
    }

    fn session(&mut self, suite: Suite) -> Session {
        let done = self.negotiate(suite);
        let (mut exchange, request) = self.key_request(&done);
        exchange.receive(&self.ask(&request)).unwrap()
    }

    fn time(&mut self, session: &mut Session, wanted: Wanted) -> Result<Event, Check> {
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let (mut exchange, size) =
            session.ask(wanted, Bounds::WAN, clock::now(), &mut self.entropy, &mut out);
        self.socket.send(&out[..size]).unwrap();
        loop {
            let answer = self.receive();
            match exchange.receive(&answer, clock::now(), session)? {
                Event::Early => {}
                end => return Ok(end),
            }
        }
    }
}

fn page(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Waits until `is_so`, as counters are shown a moment after an answer has left.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_phase_of_both_suites_of_the_paper_ends_in_time_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "", &suites(folder.path()));
    node::check(&config).unwrap();
    let node = node::start(&config).unwrap();
    let mut client = Client::new(&node);
    for suite in [Suite::P256, Suite::RSA_PKCS1] {
        let mut session = client.session(suite);
        for separate in [None, Some(SeparateTag::Ipv4)] {
            let wanted = Wanted { fresh: true, separate };
            let Ok(Event::Accepted(accepted)) = client.time(&mut session, wanted) else { panic!("{suite}") };
            assert_eq!(accepted.is_early, separate.is_some(), "{suite}");
            assert!(accepted.sample.offset.as_nanos().abs() < 1_000_000_000, "{suite}: it is one clock");
        }
    }
    for (outcome, count) in
        [(Outcome::AntpKeyExchange, 2), (Outcome::AntpTime, 2), (Outcome::AntpSeparateTag, 2)]
    {
        eventually(outcome.label(), || node.totals().of_outcome(outcome) == count);
    }
    let totals = node.totals();
    assert_eq!(totals.received, totals.outcomes.iter().sum::<u64>());
    let page = page(node.metrics_address().unwrap());
    for line in [
        "antp_key_exchanges_total{suite=\"ecdh\",outcome=\"done\"} 1",
        "antp_key_exchanges_total{suite=\"rsa\",outcome=\"done\"} 1",
        "antp_key_exchanges_total{suite=\"rsa\",outcome=\"bad_ciphertext\"} 0",
        "antp_key_exchanges_waiting_limit 256",
        "antp_key_exchanges_refused_total 0",
        "antp_state_keys 2",
        "ntp_server_packets_total{outcome=\"antp_time\"} 2",
    ] {
        assert!(page.contains(line), "{line} is not in:\n{page}");
    }
    assert!(node.stop());
}

#[test]
fn state_outlives_the_process_and_its_key_rotates() {
    let folder = tempfile::tempdir().unwrap();
    let antp = "lifetime = \"1m\"\nstate-keys = { rotate = \"1s\" }";
    let config = config(folder.path(), antp, &suites(folder.path()));
    let node = node::start(&config).unwrap();
    let mut session = Client::new(&node).session(Suite::P256);
    let first = *session.state();
    assert!(node.stop());
    let node = node::start(&config).unwrap();
    let mut client = Client::new(&node);
    let wanted = Wanted { fresh: true, separate: None };
    eventually("a fresh C2 comes with a rotation", || {
        let Ok(Event::Accepted(accepted)) = client.time(&mut session, wanted) else { panic!("not served") };
        accepted.is_fresh
    });
    assert_ne!(first, *session.state());
    assert!(node.stop());
}

#[test]
fn bad_padding_gets_an_answer_like_any_other_whose_tag_never_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let node = node::start(&config(folder.path(), "", &suites(folder.path()))).unwrap();
    let mut client = Client::new(&node);
    let done = client.negotiate(Suite::RSA_PKCS1);
    let (mut exchange, request) = client.key_request(&done);
    let good = client.ask(&request);
    for bit in [0, 77, 2000] {
        let mut bad = request.clone();
        let ciphertext = bad.len() - 256;
        // The first octet stays below the modulus.
        bad[ciphertext + 1 + bit / 8] ^= 1 << (bit % 8);
        let answer = client.ask(&bad);
        assert_eq!(answer.len(), good.len());
        assert_eq!(exchange.receive(&answer).err(), Some(Check::Tag));
    }
    exchange.receive(&good).unwrap();
    assert!(node.stop());
}

#[test]
fn mistakes_name_key_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (one, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let ecdh = suite(folder, "ecdh", &one);
    suite(folder, "other", &other);
    suite(folder, "rsa", &vector_key("rsa"));
    let table = |name: &str, chain: &str, key: &str| {
        let [chain, key] = [format!("{chain}.pem"), format!("{key}.key")].map(|file| folder.join(file));
        format!("[antp.{name}]\ncertificate-chain = {chain:?}\nprivate-key = {key:?}\n")
    };
    let shared = |table: &str| {
        let (chain, key) = (folder.join("ecdh.pem"), folder.join("ecdh.key"));
        format!(
            "[nts]\nke-listen = [\"127.0.0.1:0\"]\ncertificate-chain = {chain:?}\nprivate-key = {key:?}\n{table}"
        )
    };
    node::check(&config(folder, "", &ecdh)).unwrap();
    for (tables, parts) in [
        (table("ecdh", "ecdh", "other"), &["antp.ecdh.private-key", "does not belong", "was made for"][..]),
        (table("ecdh", "rsa", "rsa"), &["antp.ecdh.private-key", "curve P-256", "make a key of that kind"]),
        (table("rsa", "ecdh", "ecdh"), &["antp.rsa.private-key", "RSA key of 2048 bits"]),
        (table("x25519", "ecdh", "ecdh"), &["antp.x25519.private-key", "X25519"]),
        (table("ecdh", "none", "ecdh"), &["antp.ecdh.certificate-chain", "cannot read", "exists"]),
        (shared(&ecdh), &["antp.ecdh.private-key", "nts.private-key", "for ANTP alone"]),
    ] {
        let message = node::check(&config(folder, "", &tables)).unwrap_err().to_string();
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in {message:?}");
        }
    }
    // A key file without a key, and a chain without a certificate.
    std::fs::write(folder.join("empty.pem"), "").unwrap();
    authentick_daemon::replace::replace(&folder.join("empty.key"), b"", None).unwrap();
    for (chain, key, part) in
        [("empty", "ecdh", "no PEM certificate"), ("ecdh", "empty", "no PEM private key")]
    {
        let message = node::check(&config(folder, "", &table("ecdh", chain, key))).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn exchanges_above_the_rate_of_a_prefix_get_an_error_and_time_is_still_served() {
    let folder = tempfile::tempdir().unwrap();
    // The burst of [server] rate-limit is 16.
    let antp = "rate-limit = { exchanges-per-second = 0.001 }";
    let node = node::start(&config(folder.path(), antp, &suites(folder.path()))).unwrap();
    let mut client = Client::new(&node);
    let mut session = client.session(Suite::P256);
    let done = client.negotiate(Suite::P256);
    let mut refused = 0;
    for _ in 0..20 {
        let (mut exchange, request) = client.key_request(&done);
        match exchange.receive(&client.ask(&request)) {
            Ok(_) => {}
            Err(Check::Server(ErrorCode::RATE)) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(refused, 5, "one was spent on the session");
    eventually("refusals are counted", || node.totals().of_outcome(Outcome::AntpRate) == 5);
    assert!(matches!(client.time(&mut session, Wanted::default()), Ok(Event::Accepted(_))));
    assert!(node.stop());
}

/// Sends `request` at `rate` for as long as `is_on` says so; returns how many were sent.
fn flood(node: &node::Running, request: &[u8], rate: u32, is_on: impl Fn() -> bool) -> u64 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.5", node.ntp_addresses()[0].port())).unwrap();
    let (start, mut sent) = (Instant::now(), 0);
    while is_on() {
        // Open loop: what is due by now, in bursts of a millisecond.
        let due = (start.elapsed().as_secs_f64() * f64::from(rate)) as u64;
        while sent < due {
            sent += u64::from(socket.send(request).is_ok());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    sent
}

/// Asks for time so many times; returns the 99th percentile of how long an answer took.
fn p99_of_time(client: &mut Client, session: &mut Session, count: usize) -> Duration {
    let mut taken: Vec<Duration> = (0..count)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            let start = Instant::now();
            assert!(matches!(client.time(session, Wanted::default()), Ok(Event::Accepted(_))));
            start.elapsed()
        })
        .collect();
    taken.sort_unstable();
    taken[count * 99 / 100]
}

#[test]
fn time_is_answered_while_key_exchanges_come_at_ten_times_what_is_admitted() {
    const ADMITTED: u32 = 100;
    const BURST: u64 = 16;
    const COUNT: usize = 1000;
    let folder = tempfile::tempdir().unwrap();
    let antp = format!("rate-limit = {{ exchanges-per-second = {ADMITTED} }}");
    let node = node::start(&config(folder.path(), &antp, &suites(folder.path()))).unwrap();
    let mut client = Client::new(&node);
    let mut session = client.session(Suite::RSA_PKCS1);
    let alone = p99_of_time(&mut client, &mut session, COUNT);
    let done = client.negotiate(Suite::RSA_PKCS1);
    let (_, m3) = client.key_request(&done);
    let before = node.totals();
    let (start, is_on) = (Instant::now(), AtomicBool::new(true));
    let (flooded, sent) = std::thread::scope(|scope| {
        let flood = scope.spawn(|| flood(&node, &m3, 10 * ADMITTED, || is_on.load(Ordering::Relaxed)));
        let flooded = p99_of_time(&mut client, &mut session, COUNT);
        is_on.store(false, Ordering::Relaxed);
        (flooded, flood.join().unwrap())
    });
    let elapsed = start.elapsed();
    let ratio = flooded.as_secs_f64() / alone.as_secs_f64();
    println!(
        "p99 of time: {alone:?} alone, {flooded:?} beside {sent} key exchanges in {elapsed:?}, ratio {ratio:.2}"
    );
    let since = |outcome| node.totals().of_outcome(outcome) - before.of_outcome(outcome);
    let ends = [Outcome::AntpKeyExchange, Outcome::AntpRate, Outcome::AntpQueueFull];
    eventually("each key exchange has one end", || ends.into_iter().map(since).sum::<u64>() == sent);
    let (admitted, refused) = (since(Outcome::AntpKeyExchange), since(Outcome::AntpRate));
    let most = BURST + (elapsed.as_secs_f64() * f64::from(ADMITTED)).ceil() as u64;
    assert!((1..=most + 1).contains(&admitted), "{admitted} of {sent} admitted, at most {most} may be");
    assert!(refused >= sent - most - 1, "{refused} of {sent} refused");
    assert_eq!(since(Outcome::AntpTime), COUNT as u64, "every request for time is answered");
    assert!(node.stop());
}

#[test]
fn burst_that_overflows_the_queue_is_refused_one_by_one() {
    // As many answers as a socket keeps until they are read.
    const COUNT: u64 = 150;
    let folder = tempfile::tempdir().unwrap();
    let antp = "queue = 2\nrate-limit = { exchanges-per-second = 0, all-exchanges-per-second = 0 }";
    let node = node::start(&config(folder.path(), antp, &suites(folder.path()))).unwrap();
    let mut client = Client::new(&node);
    let mut session = client.session(Suite::P256);
    let done = client.negotiate(Suite::RSA_PKCS1);
    let (mut exchange, m3) = client.key_request(&done);
    for _ in 0..COUNT {
        client.socket.send(&m3).unwrap();
    }
    let answers: Vec<Vec<u8>> = (0..COUNT).map(|_| client.receive()).collect();
    let made = answers.iter().filter(|answer| answer.len() > 88).count() as u64;
    assert!((2..COUNT).contains(&made), "{made}");
    let good = answers.iter().find(|answer| answer.len() > 88).unwrap();
    assert!(exchange.receive(good).is_ok(), "those that were taken are answered as ever");
    eventually("refusals are counted", || {
        node.totals().of_outcome(Outcome::AntpQueueFull) == COUNT - made
            && page(node.metrics_address().unwrap())
                .contains(&format!("antp_key_exchanges_refused_total {}", COUNT - made))
    });
    assert!(matches!(client.time(&mut session, Wanted::default()), Ok(Event::Accepted(_))));
    assert!(node.stop());
}
