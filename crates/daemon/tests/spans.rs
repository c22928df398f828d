//! Each span measures its own step: a step made a millisecond slower shows in its span and in no other.
//!
//! Method: exchanges with a node in this process, first as it is, then with one step slowed down; medians of the spans
//! that the node shows are compared. Needs the feature `delays`, which no shipped build has.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_daemon::{Config, node};
use authentick_ke::client::{Ask, dial};
use authentick_ke::tls::{Roots, client_config};
use authentick_net::udp::{ClientSocket, Received};
use authentick_proto::client::Exchange;
use authentick_proto::delays::{Step, set};
use authentick_wire::ke::AeadId;
use rustls::pki_types::ServerName;

const EXCHANGE_COUNT: usize = 40;
const DELAY_US: u64 = 1000;

/// Medians in microseconds, by the name of the span.
type Spans = HashMap<&'static str, f64>;

fn node(folder: &Path) -> node::Running {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let (chain, key_file) = (folder.join("chain.pem"), folder.join("key.pem"));
    std::fs::write(&chain, certificate.pem()).unwrap();
    authentick_daemon::replace::replace(&key_file, key.serialize_pem().as_bytes(), None).unwrap();
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\nuser = \"root\"\n\
         reference = {{ stratum = 1, id = \"TEST\" }}\nstate-directory = {:?}\n\
         [nts]\nke-listen = [\"127.0.0.1:0\"]\nke-workers = 1\n\
         certificate-chain = {chain:?}\nprivate-key = {key_file:?}\n\
         [metrics]\nlisten = \"127.0.0.1:0\"\nspan-clients = [\"127.0.0.0/8\"]\n",
        folder.join("state"),
    );
    node::start(&Config::parse(&folder.join("test.toml"), &text).unwrap()).unwrap()
}

/// Exchanges keys and time, one after the other.
fn exchange(node: &node::Running, folder: &Path) {
    let roots = Roots::from_pem(&std::fs::read(folder.join("chain.pem")).unwrap()).unwrap();
    let ask = Ask {
        tls: client_config(roots),
        server_name: ServerName::try_from("localhost").unwrap(),
        aeads: vec![AeadId::SIV_CMAC_256],
    };
    let mut entropy = Entropy::from_system().unwrap();
    for _ in 0..EXCHANGE_COUNT {
        let mut session =
            dial(&ask, node.ke_addresses(), Duration::from_secs(5)).unwrap().established.session;
        let socket = ClientSocket::connect(node.ntp_addresses()[0]).unwrap();
        let mut buffer = [0; 2048];
        let (mut exchange, size) = Exchange::nts(&mut session, &mut entropy, &mut buffer).unwrap();
        socket.send(&buffer[..size]).unwrap();
        let received = socket.receive(&mut buffer, Instant::now() + Duration::from_secs(5)).unwrap();
        let Received::Datagram { size, .. } = received else { panic!("{received:?}") };
        exchange.receive(&mut buffer[..size], Some(&mut session)).unwrap();
    }
}

fn get(address: SocketAddr, path: &str) -> serde_json::Value {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// The medians of the last exchanges.
fn spans(node: &node::Running) -> Spans {
    let records = get(node.metrics_address().unwrap(), "/spans");
    let median = |kind: &str, name: &str| {
        let records = records[kind].as_array().unwrap();
        assert!(records.len() >= EXCHANGE_COUNT);
        let last = &records[records.len() - EXCHANGE_COUNT..];
        let mut values: Vec<f64> = last.iter().map(|record| record[name].as_f64().unwrap() / 1e3).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    HashMap::from([
        ("d_SNTP", median("ntp", "d_sntp_ns")),
        ("d_SNTS", median("ntp", "d_snts_ns")),
        ("fresh cookie", median("ntp", "d_fresh_cookie_ns")),
        ("d_SKE from accept", median("ke", "d_ske_from_accept_ns")),
        ("d_SKE from request", median("ke", "d_ske_from_request_ns")),
    ])
}

fn measured(node: &node::Running, folder: &Path) -> Spans {
    exchange(node, folder);
    spans(node)
}

#[test]
fn slowed_step_moves_its_own_span_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(folder.path());
    measured(&node, folder.path());
    let before = measured(&node, folder.path());
    println!("as it is: {before:.0?} us");
    for (step, moved) in [
        (Step::OpenCookies, &["d_SNTS"][..]),
        (Step::BuildHeaders, &["d_SNTP"]),
        // Cookies are sealed in both: in a key exchange, and in an exchange of time as a span of its own.
        (Step::SealCookies, &["d_SKE from accept", "d_SKE from request", "fresh cookie"]),
    ] {
        set(step, DELAY_US);
        let after = measured(&node, folder.path());
        set(step, 0);
        println!("{step:?} slowed: {after:.0?} us");
        for (name, value) in &after {
            let rise = value - before[name];
            match moved.contains(name) {
                true => assert!((900.0..1900.0).contains(&rise), "{name} rose by {rise:.0} us with {step:?}"),
                false => assert!(rise.abs() < 500.0, "{name} rose by {rise:.0} us with {step:?}"),
            }
        }
    }
    assert!(node.stop());
}
