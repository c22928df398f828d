//! A serving node allocates at its start only: answers of every scheme, and refusals, cost no allocation.
//!
//! Method: the allocator of this process counts, and node and client are in it. The client sends octets that were made
//! before, and reads into one buffer, so whatever is counted is the node's. Its other threads allocate about once a
//! second; a packet worker that did so for each request, or for each batch, would be seen by the hundred.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;
use std::fmt::Write as _;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_daemon::{Config, node};
use authentick_ke::client::{Ask, dial};
use authentick_ke::tls::{Roots, client_config, public_key_info};
use authentick_net::clock;
use authentick_proto::antp::client::{Bounds, Negotiation, Offer, Progress, Wanted};
use authentick_proto::antp::kem;
use authentick_proto::client::Exchange;
use authentick_proto::symmetric::{Allowed, SymmetricKeys};
use authentick_wire::ke::AeadId;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use rustls::pki_types::ServerName;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const PATIENCE: Duration = Duration::from_secs(20);
/// Requests of each kind that are counted.
const REQUEST_COUNT: usize = 512;
/// What threads may allocate meanwhile that are not packet workers, and how much more in each second.
const ELSEWHERE: usize = 64;
const ELSEWHERE_EACH_SECOND: u64 = 64;
const KEY: [u8; 16] = [7; 16];

/// A certificate of its own making; returns the two lines that name it.
fn identity(folder: &Path, name: &str) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let (chain, key_file) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    std::fs::write(&chain, certificate.pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key_file, PermissionsExt::from_mode(0o600)).unwrap();
    format!("certificate-chain = {chain:?}\nprivate-key = {key_file:?}\n")
}

fn node(folder: &Path) -> node::Running {
    let keys = folder.join("keys");
    let hexadecimal = KEY.iter().fold(String::new(), |mut text, octet| {
        write!(text, "{octet:02x}").unwrap();
        text
    });
    std::fs::write(&keys, format!("1 AES128 HEX:{hexadecimal}\n")).unwrap();
    std::fs::set_permissions(&keys, PermissionsExt::from_mode(0o600)).unwrap();
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\nuser = \"root\"\nrefusal = \"kiss\"\n\
         reference = {{ stratum = 1, id = \"TEST\" }}\nstate-directory = {:?}\n\
         rate-limit = {{ requests-per-second = 1000000, burst = 1000000 }}\n\
         [nts]\nke-listen = [\"127.0.0.1:0\"]\nke-workers = 1\n{}[symmetric]\nkeys = {keys:?}\n\
         [antp]\nenable = true\n[antp.ecdh]\n{}",
        folder.join("state"),
        identity(folder, "nts"),
        identity(folder, "antp"),
    );
    node::start(&Config::parse(&folder.join("test.toml"), &text).unwrap()).unwrap()
}

struct Client {
    socket: UdpSocket,
    buffer: [u8; DATAGRAM_SIZE_MAX],
}

impl Client {
    fn ask(&mut self, request: &[u8]) -> &[u8] {
        self.socket.send(request).unwrap();
        let size = self.socket.recv(&mut self.buffer).unwrap();
        &self.buffer[..size]
    }

    /// A request for time by a client that went through the phases of ANTP.
    fn antp(&mut self, entropy: &mut Entropy) -> Vec<u8> {
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let mut negotiation = Negotiation::new(Offer::p256());
        let done = loop {
            let size = negotiation.request(entropy, &mut out);
            if let Progress::Done(done) = negotiation.receive(self.ask(&out[..size])).unwrap() {
                break done;
            }
        };
        let spki = public_key_info(done.chain().certificates().next().unwrap()).unwrap();
        let public = PublicKey::from_spki(kem(done.suite()).unwrap(), spki).unwrap();
        let (mut exchange, size) = done.exchange(&public, entropy, &mut out).unwrap();
        let session = exchange.receive(self.ask(&out[..size])).unwrap();
        let wanted = Wanted { fresh: false, separate: None };
        let (_, size) = session.ask(wanted, Bounds::WAN, clock::now(), entropy, &mut out);
        out[..size].to_vec()
    }
}

/// A request under NTS with these keys.
fn nts(node: &node::Running, folder: &Path, aead: u16, entropy: &mut Entropy) -> Vec<u8> {
    let roots = Roots::from_pem(&std::fs::read(folder.join("nts.pem")).unwrap()).unwrap();
    let ask = Ask {
        tls: client_config(roots),
        server_name: ServerName::try_from("localhost").unwrap(),
        aeads: vec![AeadId(aead)],
    };
    let mut session = dial(&ask, node.ke_addresses(), PATIENCE).unwrap().established.session;
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let (_, size) = Exchange::nts(&mut session, entropy, &mut out).unwrap();
    out[..size].to_vec()
}

/// Does `work`; fails if the process has allocated more meanwhile than its other threads do.
fn without_allocation(what: &str, work: impl FnOnce()) {
    let (region, start) = (Region::new(COUNTING), Instant::now());
    work();
    let seen = region.change();
    let count = seen.allocations + seen.reallocations;
    let elsewhere = ELSEWHERE + (ELSEWHERE_EACH_SECOND * start.elapsed().as_secs()) as usize;
    assert!(count < elsewhere, "{what}: {count} allocations in {:?}: {seen:?}", start.elapsed());
}

/// The request with its last octet changed, which is a tag's.
fn damaged(request: &[u8]) -> Vec<u8> {
    let mut request = request.to_vec();
    *request.last_mut().unwrap() ^= 1;
    request
}

#[test]
fn answers_and_refusals_of_every_scheme_allocate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let node = node(folder);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(node.ntp_addresses()[0]).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut client = Client { socket, buffer: [0; DATAGRAM_SIZE_MAX] };
    let mut entropy = Entropy::from_system().unwrap();
    let mut out = [0; DATAGRAM_SIZE_MAX];

    let (_, size) = Exchange::plain(&mut entropy, &mut out);
    let plain = out[..size].to_vec();
    // An odd origin asks for interleaved mode.
    let mut interleaved = plain.clone();
    interleaved[24..32].copy_from_slice(&[1; 8]);
    let key = MacKey::new(MacAlgorithm::Cmac128, &KEY).unwrap();
    let keys = SymmetricKeys::new([(1, key)], Allowed::default(), 1).unwrap();
    let (_, size) = Exchange::mac(keys.iter().next().unwrap(), &mut entropy, &mut out);
    let mac = out[..size].to_vec();
    let mut requests = vec![
        ("plain", plain.clone(), true),
        ("interleaved", interleaved, true),
        ("wrong MAC", damaged(&mac), true),
        ("MAC", mac, true),
        ("a response", [&[0x24][..], &plain[1..]].concat(), false),
        ("cut", plain[..47].to_vec(), false),
        ("ANTP", client.antp(&mut entropy), true),
    ];
    for (name, aead) in [("AEAD 15", 15), ("AEAD 16", 16), ("AEAD 17", 17), ("AEAD 30", 30)] {
        let request = nts(&node, folder, aead, &mut entropy);
        requests.push(("damaged NTS", damaged(&request), true));
        requests.push((name, request, true));
    }

    for (name, request, is_answered) in &requests {
        let mut ask = |count: usize| {
            for _ in 0..count {
                if *is_answered {
                    client.ask(request);
                } else {
                    client.socket.send(request).unwrap();
                    client.ask(&plain);
                }
            }
        };
        ask(16);
        without_allocation(name, || ask(REQUEST_COUNT));
    }

    // Many in one batch.
    let answered: Vec<&Vec<u8>> =
        requests.iter().filter(|request| request.2).map(|(_, request, _)| request).collect();
    without_allocation("batches", || {
        for _ in 0..REQUEST_COUNT {
            answered.iter().for_each(|request| assert!(client.socket.send(request).is_ok()));
            answered.iter().for_each(|_| assert!(client.socket.recv(&mut client.buffer).is_ok()));
        }
    });
    assert!(node.stop());
}
