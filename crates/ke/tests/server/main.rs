//! Server and client over real sockets: what they agree on, what each refuses, and what a hostile client can not do.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crowd;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_ke::client::{self, Ask, CertificateCheck, Dialled, KeError, Phase};
use authentick_ke::ntp_servers::{NtpServer, NtpServers};
use authentick_ke::server::{
    Admission, Environment, Instants, Limits, Outcome, Rates, Stopper, Worker, bind_group,
};
use authentick_ke::session::Terms;
use authentick_ke::tls::{Identity, Roots, client_config, server_config};
use authentick_proto::keyset::KeySet;
use authentick_proto::prefix::PrefixSet;
use authentick_wire::ke::{AeadId, ErrorCode, Response};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::ServerName;

const TIMEOUT: Duration = Duration::from_secs(5);

struct World {
    keys: Mutex<Option<Arc<KeySet>>>,
    tls: Arc<rustls::ServerConfig>,
    accepted: AtomicU64,
    ended: Mutex<Vec<Outcome>>,
    spans: Mutex<Vec<Instants>>,
}

impl Environment for World {
    fn keys(&self) -> Option<Arc<KeySet>> {
        self.keys.lock().unwrap().clone()
    }

    fn tls(&self) -> Arc<rustls::ServerConfig> {
        Arc::clone(&self.tls)
    }

    fn terms(&self) -> Arc<Terms> {
        let server = NtpServer { name: None, port: Some(4123) };
        Arc::new(Terms { ntp_servers: NtpServers::new([(server, 1)]).unwrap(), ..Terms::default() })
    }

    fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::SeqCst);
    }

    fn accept_failed(&self) {}

    fn ended(&self, outcome: Outcome) {
        self.ended.lock().unwrap().push(outcome);
    }

    fn is_watched(&self, _: IpAddr) -> bool {
        true
    }

    fn timed(&self, instants: Instants) {
        self.spans.lock().unwrap().push(instants);
    }
}

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    fn identity(&self, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["ntp.test".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let chain = format!("{}{}", certificate.pem(), self.issuer.pem());
        Identity::from_pem(chain.as_bytes(), key.serialize_pem().as_bytes()).unwrap()
    }

    fn roots(&self) -> Roots {
        Roots::from_pem(self.issuer.pem().as_bytes()).unwrap()
    }
}

struct Server {
    address: SocketAddr,
    world: Arc<World>,
    authority: Authority,
    stoppers: Vec<Stopper>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
}

impl Server {
    fn start() -> Self {
        Server::with(|_| {}, Limits { connection_count: 64, per_prefix_count: 64, timeout: TIMEOUT })
    }

    fn with(change: impl FnOnce(&mut CertificateParams), limits: Limits) -> Self {
        Server::admitting(change, PrefixSet::everything(), limits, Rates::NONE, 1)
    }

    fn admitting(
        change: impl FnOnce(&mut CertificateParams),
        allow: PrefixSet,
        limits: Limits,
        rates: Rates,
        thread_count: usize,
    ) -> Self {
        let authority = Authority::new();
        let mut entropy = Entropy::from_system().unwrap();
        let world = Arc::new(World {
            keys: Mutex::new(Some(Arc::new(KeySet::generate(0, &mut entropy)))),
            tls: server_config(&authority.identity(change)),
            accepted: AtomicU64::new(0),
            ended: Mutex::default(),
            spans: Mutex::default(),
        });
        let admission = Arc::new(Admission::new(allow, limits, rates, &mut entropy, Instant::now()));
        let listeners = bind_group("127.0.0.1:0".parse().unwrap(), thread_count).unwrap();
        let address = listeners[0].local_addr().unwrap();
        let (mut stoppers, mut threads) = (Vec::new(), Vec::new());
        for listener in listeners {
            let (admission, world) = (Arc::clone(&admission), Arc::clone(&world));
            let entropy = Entropy::from_system().unwrap();
            let worker = Worker::new(vec![listener], admission, entropy, world).unwrap();
            stoppers.push(worker.stopper());
            threads.push(std::thread::spawn(|| worker.run()));
        }
        Server { address, world, authority, stoppers, threads }
    }

    fn ask(&self, aeads: &[u16], name: &str) -> Result<Dialled, KeError> {
        self.ask_with(self.authority.roots(), aeads, name)
    }

    fn ask_with(&self, roots: Roots, aeads: &[u16], name: &str) -> Result<Dialled, KeError> {
        let ask = Ask {
            tls: client_config(roots),
            server_name: ServerName::try_from(name.to_owned()).unwrap(),
            aeads: aeads.iter().map(|&id| AeadId(id)).collect(),
        };
        client::dial(&ask, &[self.address], TIMEOUT)
    }

    /// A TLS connection on which the test speaks for itself.
    fn raw(&self, alpn: &[&[u8]]) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
        let mut config = (*client_config(self.authority.roots())).clone();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from("ntp.test").unwrap();
        let tls = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(2 * TIMEOUT)).unwrap();
        rustls::StreamOwned::new(tls, stream)
    }

    fn error_after(&self, request: &[&[u8]]) -> ErrorCode {
        let mut stream = self.raw(&[b"ntske/1"]);
        for part in request {
            stream.write_all(part).unwrap();
            stream.flush().unwrap();
        }
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        match Response::parse(&response, &[]) {
            Ok(Response::Error(code)) => code,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until `count` connections have ended; returns how.
    fn ended(&self, count: usize) -> Vec<Outcome> {
        let deadline = Instant::now() + 2 * TIMEOUT;
        loop {
            let ended = self.world.ended.lock().unwrap().clone();
            if ended.len() >= count {
                return ended;
            }
            assert!(Instant::now() < deadline, "{ended:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stoppers.iter().for_each(Stopper::stop);
        for thread in self.threads.drain(..) {
            let result = thread.join();
            if !std::thread::panicking() {
                result.unwrap().unwrap();
            }
        }
    }
}

//= rfc8915#4-2, rfc8915#4-3, rfc8915#4.1.8-2
#[test]
fn cookies_for_every_algorithm_and_both_kinds_of_name() {
    let server = Server::start();
    for aead in [15, 16, 17, 30] {
        for name in ["ntp.test", "127.0.0.1"] {
            let dialled = server.ask(&[aead], name).unwrap();
            assert_eq!(dialled.established.aead, AeadId(aead));
            assert_eq!(dialled.established.session.jar.count(), 8);
            assert_eq!(dialled.established.ntp_port, Some(4123));
            let certificate = dialled.established.certificate.unwrap();
            assert_eq!(certificate.names, ["ntp.test", "127.0.0.1"]);
        }
    }
    assert_eq!(server.ended(8), [Outcome::Served; 8]);
    let spans = server.world.spans.lock().unwrap();
    assert_eq!(spans.len(), 8);
    for span in &*spans {
        let (first, last) = (span.request_parsed, span.response_written);
        let between = [first, span.algorithm_chosen, span.keys_exported, span.cookies_sealed, last];
        assert!(span.accepted <= first && between.is_sorted(), "{span:?}");
    }
}

//= rfc8915#3-4, rfc8915#8.5-1
#[test]
fn certificate_that_fails_a_check_is_named_by_the_check() {
    let check = |server: &Server, name: &str| match server.ask(&[15], name) {
        Err(error @ KeError::Certificate(check, _)) => {
            assert!(error.is_authentication());
            check
        }
        other => panic!("{other:?}"),
    };
    let limits = Limits { connection_count: 8, per_prefix_count: 8, timeout: TIMEOUT };
    assert_eq!(check(&Server::start(), "other.test"), CertificateCheck::Name);
    let expired = Server::with(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1), limits);
    assert_eq!(check(&expired, "ntp.test"), CertificateCheck::Expired);
    let early = Server::with(|params| params.not_before = rcgen::date_time_ymd(2090, 1, 1), limits);
    assert_eq!(check(&early, "ntp.test"), CertificateCheck::NotYetValid);
    let authority = |params: &mut CertificateParams| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    };
    let error = Server::with(authority, limits).ask(&[15], "ntp.test").unwrap_err();
    assert!(error.to_string().starts_with("certificate usage: ") && error.to_string().contains("CA:FALSE"));
    let server = Server::start();
    let stranger = Authority::new();
    let result = server.ask_with(stranger.roots(), &[15], "ntp.test");
    assert!(matches!(
        result,
        Err(KeError::Certificate(CertificateCheck::Issuer | CertificateCheck::Other, _))
    ));
    assert_eq!(server.ended(1), [Outcome::Tls]);
}

//= rfc8915#3-3, rfc8915#4-1
#[test]
fn client_without_the_application_protocol_is_told_so_by_an_alert() {
    let server = Server::start();
    for alpn in [&[][..], &[&b"http/1.1"[..]], &[&b"h2"[..], &b"ntske/2"[..]]] {
        let mut stream = server.raw(alpn);
        let error = stream.write_all(b"\x80\x01\0\x02\0\0\x80\x04\0\x02\0\x0f\x80\0\0\0").unwrap_err();
        let error = error.downcast::<rustls::Error>().unwrap();
        assert_eq!(error, rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol));
        assert!(stream.conn.peer_certificates().is_none(), "nothing was signed");
    }
    let mut stream = server.raw(&[b"h2", b"ntske/1"]);
    stream.write_all(b"\x80\0\0\0").unwrap();
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"ntske/1"[..]), "among others is enough");
    drop(stream);
    server.ended(4);
    assert_eq!(server.ended(3)[..3], [Outcome::Alpn; 3]);
}

#[test]
fn first_message_without_an_end_ends_before_its_time() {
    let limits = Limits { timeout: Duration::from_secs(60), ..Limits::default() };
    let server = Server::with(|_| {}, limits);
    // The beginning of a first message of 65,535 octets, one octet in each TLS record.
    let message = [1, 0, 0xFF, 0xFF].into_iter().chain(std::iter::repeat_n(3, 50_000));
    let records: Vec<u8> = message.flat_map(|octet| [22, 3, 1, 0, 1, octet]).collect();
    let mut stream = TcpStream::connect(server.address).unwrap();
    // The server may close while this goes on.
    let _ = stream.write_all(&records);
    assert_eq!(server.ended(1), [Outcome::Tls]);
}

#[test]
fn request_in_records_without_end_is_refused_and_others_are_served_meanwhile() {
    let limits = Limits { timeout: Duration::from_secs(60), ..Limits::default() };
    let server = Server::with(|_| {}, limits);
    std::thread::scope(|scope| {
        let streams: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = server.raw(&[b"ntske/1"]);
                    // Records of one octet, which are 23 on the way: a request that is not too long yet.
                    for _ in 0..2300 {
                        stream.write_all(&[0x40]).unwrap();
                        stream.flush().unwrap();
                    }
                    let mut response = Vec::new();
                    let _ = stream.read_to_end(&mut response);
                    response
                })
            })
            .collect();
        for _ in 0..5 {
            server.ask(&[15], "ntp.test").unwrap();
        }
        for stream in streams {
            let response = stream.join().unwrap();
            assert_eq!(Response::parse(&response, &[]), Ok(Response::Error(ErrorCode::BAD_REQUEST)));
        }
    });
}

#[test]
fn crowd_above_the_rate_is_served_as_it_comes_back() {
    let rates = Rates { per_prefix: Some(Rates::of_prefix(20_000, 5)), per_network: None };
    let server = Server::admitting(|_| {}, PrefixSet::everything(), Limits::default(), rates, 2);
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                let deadline = Instant::now() + 4 * TIMEOUT;
                while server.ask(&[15], "ntp.test").is_err() {
                    assert!(Instant::now() < deadline, "no cookies");
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
        }
    });
    let ended = server.world.ended.lock().unwrap();
    assert!(ended.contains(&Outcome::PrefixRate), "{ended:?}");
}

//= rfc8915#4-3, rfc8915#4-4, rfc8915#4-8
#[test]
fn request_of_1024_octets_in_fragments_is_served() {
    let server = Server::start();
    let mut request = b"\x80\x01\0\x02\0\0\x80\x04\0\x02\0\x0f\x40\0\x03\xec".to_vec();
    request.resize(request.len() + 1004, 7);
    request.extend(b"\x80\0\0\0");
    assert_eq!(request.len(), 1024);
    let mut stream = server.raw(&[b"ntske/1"]);
    for part in request.chunks(100) {
        stream.write_all(part).unwrap();
        stream.flush().unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    assert!(matches!(Response::parse(&response, &[AeadId(15)]), Ok(Response::Agreed(_))));
}

//= rfc8915#4-9, rfc8915#4-10
#[test]
fn response_of_65536_octets_is_read() {
    let authority = Authority::new();
    let config = server_config(&authority.identity(|_| {}));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ask = Ask {
        tls: client_config(authority.roots()),
        server_name: ServerName::try_from("ntp.test").unwrap(),
        aeads: vec![AeadId(15)],
    };
    // What was agreed on, one cookie, and as much as there is room for of a record that nobody knows.
    let mut response = b"\x80\x01\0\x02\0\0\x80\x04\0\x02\0\x0f\0\x05\0\x60".to_vec();
    response.resize(response.len() + 96, 7);
    let filler = 65_536 - response.len() - 8;
    response.extend([0x40, 0, (filler >> 8) as u8, filler as u8]);
    response.resize(response.len() + filler, 0);
    response.extend(b"\x80\0\0\0");
    assert_eq!(response.len(), 65_536);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| client::dial(&ask, &[listener.local_addr().unwrap()], TIMEOUT));
        let (stream, _) = listener.accept().unwrap();
        let mut stream = rustls::StreamOwned::new(rustls::ServerConnection::new(config).unwrap(), stream);
        stream.read_exact(&mut [0; 16]).unwrap();
        stream.write_all(&response).unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        let dialled = client.join().unwrap().unwrap();
        assert_eq!(dialled.established.session.jar.count(), 1);
    });
}

//= rfc8915#4.1.3-4, rfc8915#4.1.3-5
#[test]
fn bad_requests_get_error_records() {
    let server = Server::start();
    assert_eq!(server.error_after(&[b""]), ErrorCode::BAD_REQUEST);
    assert_eq!(server.error_after(&[b"\x80\x01\0\x02\0\0"]), ErrorCode::BAD_REQUEST);
    assert_eq!(server.error_after(&[b"\x80\0\0\0"]), ErrorCode::BAD_REQUEST);
    assert_eq!(server.error_after(&[&[0x40; 5000]]), ErrorCode::BAD_REQUEST);
    let critical = b"\x80\x01\0\x02\0\0\x80\x04\0\x02\0\x0f\x80\x63\0\0\x80\0\0\0";
    assert_eq!(server.error_after(&[critical]), ErrorCode::UNRECOGNISED_CRITICAL);
}

#[test]
fn server_without_keys_says_that_it_is_not_the_clients_fault_until_it_has_some() {
    let server = Server::start();
    let keys = server.world.keys.lock().unwrap().take();
    let refused = server.ask(&[15], "ntp.test").unwrap_err();
    assert!(matches!(refused, KeError::Refused(ErrorCode::INTERNAL)), "{refused:?}");
    *server.world.keys.lock().unwrap() = keys;
    assert!(server.ask(&[15], "ntp.test").is_ok());
    assert_eq!(server.ended(2), [Outcome::Internal, Outcome::Served]);
}

#[test]
fn garbage_resets_and_silence_end_only_their_own_connection() {
    let limits = Limits { connection_count: 64, per_prefix_count: 64, timeout: Duration::from_millis(400) };
    let server = Server::with(|_| {}, limits);
    let mut garbage = TcpStream::connect(server.address).unwrap();
    garbage.write_all(&[0xFF; 2000]).unwrap();
    drop(TcpStream::connect(server.address).unwrap());
    let silent = TcpStream::connect(server.address).unwrap();
    assert!(server.ask(&[15], "ntp.test").is_ok());
    let mut ended = server.ended(4);
    ended.sort_by_key(|&outcome| outcome as usize);
    assert_eq!(ended, [Outcome::Served, Outcome::Tls, Outcome::Timeout, Outcome::Closed]);
    assert_eq!(server.world.accepted.load(Ordering::SeqCst), 4);
    drop(silent);
}

//= rfc8915#4.1.3-6
#[test]
fn request_that_does_not_come_in_time_gets_an_error_record() {
    let limits = Limits { connection_count: 8, per_prefix_count: 8, timeout: Duration::from_millis(300) };
    let server = Server::with(|_| {}, limits);
    let mut stream = server.raw(&[b"ntske/1"]);
    stream.write_all(b"\x80\x01\0\x02\0\0").unwrap();
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    assert_eq!(Response::parse(&response, &[]), Ok(Response::Error(ErrorCode::BAD_REQUEST)));
    assert_eq!(server.ended(1), [Outcome::Timeout]);
}

#[test]
fn client_that_may_not_ask_is_reset_before_tls() {
    for (allow, rates, outcome) in [
        (PrefixSet::new(vec!["198.18.0.0/15".parse().unwrap()]), Rates::NONE, Outcome::Denied),
        (
            PrefixSet::everything(),
            Rates { per_prefix: Some(Rates::of_prefix(3_600_000_000, 2)), per_network: None },
            Outcome::PrefixRate,
        ),
    ] {
        let limits = Limits { timeout: TIMEOUT, ..Limits::default() };
        let server = Server::admitting(|_| {}, allow, limits, rates, 1);
        let admitted_count = if outcome == Outcome::Denied { 0 } else { 2 };
        for _ in 0..admitted_count {
            server.ask(&[15], "ntp.test").unwrap();
        }
        for _ in 0..20 {
            // No alert, and no octet of TLS at all. The reset may be here before the connection stands.
            let read = TcpStream::connect(server.address).and_then(|mut stream| {
                stream.set_read_timeout(Some(2 * TIMEOUT))?;
                stream.read(&mut [0; 1])
            });
            assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
        }
        let mut expected = vec![Outcome::Served; admitted_count];
        expected.extend([outcome; 20]);
        let mut ended = server.ended(20 + admitted_count);
        ended.sort_by_key(|&outcome| outcome as usize);
        assert_eq!(ended, expected);
    }
}

#[test]
fn many_at_once_are_all_served() {
    let server = Server::start();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..8 {
                    server.ask(&[30, 15], "ntp.test").unwrap();
                }
            });
        }
    });
    assert_eq!(server.ended(128), [Outcome::Served; 128]);
}

#[test]
fn silent_or_closed_server_is_told_apart() {
    let authority = Authority::new();
    let ask = Ask {
        tls: client_config(authority.roots()),
        server_name: ServerName::try_from("ntp.test").unwrap(),
        aeads: vec![AeadId(15)],
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let short = Duration::from_millis(200);
    assert!(matches!(client::dial(&ask, &[address], short), Err(KeError::Timeout(Phase::Handshake))));
    drop(listener);
    assert!(matches!(client::dial(&ask, &[address], short), Err(KeError::Connect(_))));
    assert!(matches!(client::dial(&ask, &[], short), Err(KeError::Connect(_))));
}

#[test]
fn identity_needs_a_chain_and_its_own_key() {
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let certificate = CertificateParams::new(vec!["ntp.test".to_owned()]).unwrap().self_signed(&key).unwrap();
    let error = |chain: &str, key: &str| {
        Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err().to_string()
    };
    assert!(error(&certificate.pem(), &other.serialize_pem()).contains("does not belong"));
    assert!(error("", &key.serialize_pem()).contains("no PEM certificate"));
    assert!(error(&certificate.pem(), "").contains("no PEM private key"));
    assert!(error(&key.serialize_pem(), &key.serialize_pem()).contains("no PEM certificate"));
}
