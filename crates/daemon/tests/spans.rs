//! Each span measures its own step: a step made forty milliseconds slower shows in its spans and in no other.
//!
//! Method: exchanges with a node in this process, first as it is, then with one step slowed down; medians of the spans
//! that the node shows are compared. The delay is long against what a busy machine adds to the median of a span, which
//! is most where a span has the client's turns in it. Needs the feature `delays`, which no shipped build has.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
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
use serde_json::Value;

const EXCHANGE_COUNT: usize = 15;
const DELAY_US: f64 = 40_000.0;

/// Medians in microseconds, by the kind of the record and the name of the span.
type Spans = BTreeMap<String, f64>;

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

fn get(address: SocketAddr, path: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// The medians of the last exchanges.
fn spans(node: &node::Running) -> Spans {
    let answer = get(node.metrics_address().unwrap(), "/spans");
    let mut medians = Spans::new();
    for kind in ["ntp", "ke"] {
        let records = answer[kind].as_array().unwrap();
        assert!(records.len() >= EXCHANGE_COUNT);
        let last = &records[records.len() - EXCHANGE_COUNT..];
        let mut add = |name: String, of: &dyn Fn(&Value) -> f64| {
            let mut values: Vec<f64> = last.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            medians.insert(format!("{kind}: {name}"), values[values.len() / 2] / 1e3);
        };
        for (name, value) in last[0].as_object().unwrap() {
            if name.starts_with("d_") {
                add(name.clone(), &|record| record[name].as_f64().unwrap());
            } else if name == "stages_ns" {
                for stage in value.as_object().unwrap().keys() {
                    add(stage.clone(), &|record| record["stages_ns"][stage].as_f64().unwrap());
                }
            }
        }
    }
    medians
}

fn measured(node: &node::Running, folder: &Path) -> Spans {
    exchange(node, folder);
    spans(node)
}

/// Which spans each step is in: its stage, and the sums that the study has of them.
const MOVED: [(Step, &[&str]); 12] = [
    (Step::Parse, &["ntp: parse", "ntp: d_sntp_ns"]),
    (Step::Admit, &["ntp: admit"]),
    (Step::OpenCookies, &["ntp: open", "ntp: d_snts_ns"]),
    (Step::VerifyRequests, &["ntp: verify", "ntp: d_snts_ns"]),
    (Step::SealFreshCookies, &["ntp: fresh", "ntp: d_fresh_cookie_ns"]),
    (Step::BuildHeaders, &["ntp: build", "ntp: d_sntp_ns"]),
    (Step::SealResponses, &["ntp: seal", "ntp: d_snts_ns"]),
    (Step::ShakeHands, &["ke: handshake", FROM_ACCEPT]),
    (Step::ChooseAlgorithm, &["ke: choose", FROM_ACCEPT, FROM_REQUEST, TO_RESPONSE]),
    (Step::ExportKeys, &["ke: export", FROM_ACCEPT, FROM_REQUEST, TO_RESPONSE]),
    (Step::SealCookies, &["ke: cookies", FROM_ACCEPT, FROM_REQUEST, TO_RESPONSE]),
    (Step::WriteResponse, &["ke: response", TO_RESPONSE]),
];

/// d_SKE by the study's equations, what both readings have in common, and d_SKE as its program took it.
const FROM_ACCEPT: &str = "ke: d_ske_from_accept_ns";
const FROM_REQUEST: &str = "ke: d_ske_from_request_ns";
const TO_RESPONSE: &str = "ke: d_ske_to_response_ns";

#[test]
fn slowed_step_moves_its_own_spans_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(folder.path());
    measured(&node, folder.path());
    let before = measured(&node, folder.path());
    println!("as it is: {before:.0?} us");
    for (step, moved) in MOVED {
        set(step, DELAY_US as u64);
        let after = measured(&node, folder.path());
        set(step, 0);
        println!("{step:?} slowed: {after:.0?} us");
        for (name, value) in &after {
            let share = (value - before[name]) / DELAY_US;
            match moved.contains(&name.as_str()) {
                true => assert!((0.6..1.6).contains(&share), "{name} rose by {share:.2} of {step:?}"),
                false => assert!(share.abs() < 0.4, "{name} rose by {share:.2} of {step:?}"),
            }
        }
    }
    let moved: BTreeSet<&str> = MOVED.iter().flat_map(|(_, moved)| *moved).copied().collect();
    let shown: BTreeSet<&str> = before.keys().map(String::as_str).collect();
    assert_eq!(moved, shown, "every span that is shown was moved");
    assert!(node.stop());
}
