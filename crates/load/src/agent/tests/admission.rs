//! Whom an agent obeys and in what, whom a coordinator believes to be an agent, and what nonsense leads to.

use std::io::Read as _;

use super::*;

#[test]
fn busy_agent_says_with_whom() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let first = connect(&authority, &[agent.name()]).unwrap();
    let error = connect(&authority, &[agent.name()]).map(drop).unwrap_err();
    assert_eq!((error.fault, error.agent.as_deref()), (Fault::Busy, Some(&*agent.name())));
    assert!(error.message.contains("CN=coordinator.test (127.0.0.1:"), "{error}");
    drop(first);
    assert!(connect(&authority, &[agent.name()]).is_ok(), "runs may follow each other");
}

#[test]
fn target_outside_of_the_list_is_refused_before_a_generator_is_made() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let identity = authority.identity("coordinator.test", &authority);
    let foreign = Plan { ntp: "192.0.2.7:123".parse().unwrap(), ..plan() };
    let refused = Coordinator::connect(&[agent.name()], &identity, &foreign, &Watch::default());
    let error = refused.map(drop).unwrap_err();
    assert_eq!((error.fault, error.agent.as_deref()), (Fault::Refused, Some(&*agent.name())));
    assert!(error.message.contains("192.0.2.7") && error.message.contains("--allow"), "{error}");
    assert!(agent.deeds.plans.lock().unwrap().is_empty());
}

#[test]
fn order_beyond_the_limits_is_refused_before_anything_is_sent() {
    let authority = Authority::new();
    let limits = Limits { rate_rps_max: 100.0, ..Limits::default() };
    let make = |deeds| Box::new(Counter { deeds, bulk: false }) as Box<dyn Crew>;
    let agent = TestAgent::with(&authority, &authority, limits, make);
    let mut coordinator = connect(&authority, &[agent.name()]).unwrap();
    let refused = coordinator.step(&order(100.5, 0.1), Instant::now(), &Watch::default());
    let error = refused.unwrap_err();
    assert_eq!(error.fault, Fault::Refused);
    assert!(error.message.contains("100.5") && error.message.contains("--rate-limit"), "{error}");
    assert_eq!(agent.deeds.sent.load(Ordering::SeqCst), 0);
}

#[test]
fn strangers_who_say_nothing_keep_no_coordinator_out() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    // As many as are served at once, and some more behind them.
    let strangers: Vec<TcpStream> = (0..12).map(|_| TcpStream::connect(agent.address).unwrap()).collect();
    let run = connect(&authority, &[agent.name()]);
    assert!(run.is_ok(), "{}", run.err().unwrap());
    let mut first = &strangers[0];
    first.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(first.read(&mut [0; 1]).unwrap_or(0), 0, "the oldest was closed");
    // Who gives orders is not a stranger: more of them close each other.
    let more: Vec<TcpStream> = (0..12).map(|_| TcpStream::connect(agent.address).unwrap()).collect();
    let mut coordinator = run.unwrap();
    let step = coordinator.step(&order(100.0, 0.1), Instant::now(), &Watch::default());
    assert!(step.is_ok(), "{}", step.err().unwrap());
    drop((strangers, more));
}

#[test]
fn idle_connections_end_no_handshake() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    let mut tls = ClientConnection::new(Arc::new(config), "agent.test".try_into().unwrap()).unwrap();
    let mut slow = TcpStream::connect(agent.address).unwrap();
    tls.write_tls(&mut slow).unwrap();
    slow.read_exact(&mut [0; 100]).unwrap();
    // It has the agent's flight, and its own is on a long path.
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(agent.address).unwrap()).collect();
    thread::sleep(Duration::from_millis(200));
    slow.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let end = loop {
        match slow.read(&mut [0; 4096]) {
            Ok(1..) => {}
            Ok(0) => break std::io::ErrorKind::ConnectionReset,
            Err(error) => break error.kind(),
        }
    };
    assert_eq!(end, std::io::ErrorKind::WouldBlock, "still open, with nothing more to read");
    drop(idle);
}

#[test]
fn no_certificate_no_orders() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.0.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    let tls = ClientConnection::new(Arc::new(config), "agent.test".try_into().unwrap()).unwrap();
    let (_sender, mut receiver) =
        link::open::<ToAgent, FromAgent>(TcpStream::connect(agent.address).unwrap(), tls).unwrap();
    let error = receiver.receive().unwrap_err();
    let alert = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
    assert!(matches!(&error, LinkError::Tls(tls) if *tls == alert), "{error}");
    assert_free(&authority, &agent);
}

#[test]
fn certificates_of_another_authority_are_refused_on_both_sides() {
    let (authority, other) = (Authority::new(), Authority::new());
    let agent = TestAgent::start(&authority);
    let connect = |identity: Identity| {
        Coordinator::connect(&[agent.name()], &identity, &plan(), &Watch::default()).map(drop).unwrap_err()
    };
    let error = connect(other.identity("coordinator.test", &authority));
    assert_eq!((error.fault, error.agent.as_deref()), (Fault::Authentication, Some(&*agent.name())));
    assert!(error.message.contains("does not accept our certificate"), "{error}");
    let error = connect(authority.identity("coordinator.test", &other));
    assert_eq!(error.fault, Fault::Authentication);
    assert!(error.message.contains("another authority"), "{error}");
    assert_free(&authority, &agent);
}

#[test]
fn certificate_for_servers_alone_is_refused_and_what_it_lacks_is_said() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let (chain, key) = authority.issue_for("coordinator.test", vec![ExtendedKeyUsagePurpose::ServerAuth]);
    let identity =
        Identity::from_pem(chain.as_bytes(), key.as_bytes(), authority.0.pem().as_bytes()).unwrap();
    let refused = Coordinator::connect(&[agent.name()], &identity, &plan(), &Watch::default());
    let error = refused.map(drop).unwrap_err();
    assert_eq!(error.fault, Fault::Authentication);
    assert!(error.message.contains("clientAuth") && !error.message.contains("authority"), "{error}");
}

#[test]
fn agent_must_have_a_certificate_for_the_name_it_is_called_by() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let name = format!("localhost:{}", agent.address.port());
    let error = connect(&authority, std::slice::from_ref(&name)).map(drop).unwrap_err();
    assert_eq!((error.fault, error.agent.as_deref()), (Fault::Authentication, Some(&*name)));
    assert!(error.message.contains("\"localhost\""), "{error}");
}

#[test]
fn agents_that_cannot_be_reached_are_named() {
    let authority = Authority::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for (name, fault) in [
        (closed.as_str(), Fault::Unreachable),
        ("no-such-host.invalid:4470", Fault::Unreachable),
        ("127.0.0.1", Fault::Usage),
        ("127.0.0.1:0", Fault::Usage),
        (":4470", Fault::Usage),
        ("a b:4470", Fault::Usage),
    ] {
        let error = connect(&authority, &[name.to_owned()]).map(drop).unwrap_err();
        assert_eq!((error.fault, error.agent.as_deref()), (fault, Some(name)), "{error}");
    }
    assert_eq!(connect(&authority, &[]).map(drop).unwrap_err().fault, Fault::Usage);
    let twice = connect(&authority, &[closed.clone(), closed]).map(drop).unwrap_err();
    assert_eq!(twice.fault, Fault::Usage);
}

#[test]
fn something_else_that_listens_is_no_agent() {
    let authority = Authority::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = listener.local_addr().unwrap().to_string();
    let thread = thread::spawn(move || listener.accept().unwrap().0.write_all(b"220 smtp ready\r\n"));
    let error = connect(&authority, &[name]).map(drop).unwrap_err();
    assert!(matches!(error.fault, Fault::Authentication | Fault::Unreachable), "{error}");
    thread.join().unwrap().unwrap();
}

#[test]
fn garbage_and_oversized_messages_to_an_agent_end_their_connection_alone() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    for (octets, part) in [
        ([&5u32.to_be_bytes()[..], b"\"no\"!"].concat(), "not understood"),
        ([&4u32.to_be_bytes()[..], b"\xff\xff\xff\xff"].concat(), "not understood"),
        ((ORDER_SIZE_MAX + 1).to_be_bytes().to_vec(), "1048577 octets"),
    ] {
        let (sender, mut receiver) = raw(&authority, &agent);
        sender.send_octets(&octets).unwrap();
        let why = refusal(&mut receiver);
        assert!(why.contains(part), "{why}");
        drop((sender, receiver));
        assert_free(&authority, &agent);
    }
    // Not even TLS, and more connections than are served at once.
    let crowd: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(agent.address).unwrap()).collect();
    for mut stream in &crowd {
        let _ = stream.write_all(b"GET / HTTP/1.0\r\n\r\n\0\xff\xff\xff\xff");
    }
    drop(crowd);
    await_that(|| connect(&authority, &[agent.name()]).is_ok());
}

#[test]
fn orders_out_of_turn_are_refused() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let step = |number, start_ns| ToAgent::Step { number, order: order(10.0, 0.5), start_ns };
    let prepare = || ToAgent::Prepare(Box::new(plan()));
    let cases = [
        (vec![step(1, 0)], "before the plan"),
        (vec![prepare(), prepare()], "a second plan"),
        (vec![prepare(), step(2, 0)], "step 2 was ordered after step 0"),
        (vec![prepare(), step(1, 0)], "the start is"),
        (vec![prepare(), step(1, u64::MAX)], "the start is"),
    ];
    for (messages, part) in cases {
        let (sender, mut receiver) = raw(&authority, &agent);
        for message in messages {
            sender.send(&message).unwrap();
            if matches!(message, ToAgent::Prepare(_)) {
                // The next order is not to come while this one is carried out.
                thread::sleep(Duration::from_millis(50));
            }
        }
        let why = refusal(&mut receiver);
        assert!(why.contains(part), "{why}");
        drop((sender, receiver));
        assert_free(&authority, &agent);
    }
    assert_eq!(agent.deeds.sent.load(Ordering::SeqCst), 0);
}

#[test]
fn two_orders_at_once_are_refused_and_the_step_stops() {
    let authority = Authority::new();
    let agent = TestAgent::start(&authority);
    let (sender, mut receiver) = raw(&authority, &agent);
    begin(&agent, &sender, &mut receiver);
    sender.send(&ToAgent::Step { number: 2, order: order(1000.0, 60.0), start_ns: 0 }).unwrap();
    let why = refusal(&mut receiver);
    assert!(why.contains("while another one"), "{why}");
    agent.await_step_end();
}

#[test]
fn files_that_do_not_fit_are_told_apart() {
    use crate::agent::IdentityError::{Authorities, Chain, Key};
    let authority = Authority::new();
    let ((chain, key), (_, other_key)) = (authority.issue("a.test"), authority.issue("b.test"));
    let root = authority.0.pem();
    let make = |chain: &str, key: &str, root: &str| {
        Identity::from_pem(chain.as_bytes(), key.as_bytes(), root.as_bytes()).map(drop)
    };
    assert_eq!(make(&chain, &key, &root), Ok(()));
    assert!(matches!(make("", &key, &root), Err(Chain(_))));
    assert!(matches!(make(&chain, "nothing", &root), Err(Key(_))));
    assert!(matches!(make(&chain, &other_key, &root), Err(Key(_))));
    assert!(matches!(make(&chain, &key, &key), Err(Authorities(_))));
}

/// The commands are those of the manual, as it stands.
#[test]
fn certificates_made_as_the_manual_says_fit_their_uses() {
    const MANUAL: &str = include_str!("../../../../../docs/manual/agents.md");
    if std::process::Command::new("openssl").arg("version").output().is_err() {
        return authentick_lab::skip::skip("there is no openssl(1)");
    }
    let commands = MANUAL.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let run =
        std::process::Command::new("sh").args(["-euc", commands]).current_dir(directory.path()).output();
    let run = run.unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let identity = |name: &str| {
        let read = |file: String| std::fs::read(directory.path().join(file)).unwrap();
        let (chain, key) = (read(format!("{name}.pem")), read(format!("{name}.key")));
        Identity::from_pem(&chain, &key, &read("authority.pem".to_owned())).unwrap()
    };
    let ordered_by = |client: &str| {
        let (agent, coordinator) = (identity("a.lab"), identity(client));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let tls = ServerConnection::new(agent.server_config().unwrap()).unwrap();
                link::open::<FromAgent, ToAgent>(listener.accept().unwrap().0, tls).map(drop)
            });
            let name = "a.lab".try_into().unwrap();
            let tls = ClientConnection::new(coordinator.client_config(), name).unwrap();
            let _ = link::open::<ToAgent, FromAgent>(stream, tls);
            serving.join().unwrap()
        })
    };
    assert!(ordered_by("coordinator.lab").is_ok());
    let refused = ordered_by("b.lab").unwrap_err();
    assert!(matches!(refused, LinkError::Tls(rustls::Error::InvalidCertificate(_))), "{refused}");
}
