//! A server of ANTP on loopback without a daemon around it: a thread, a socket, the protocol's server half, and counts.

use std::cell::RefCell;
use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_net::clock;
use authentick_proto::antp::nonce::Nonces;
use authentick_proto::antp::server::{
    ExchangeOutcome, Identity, KEY_RESPONSE_SIZE, KeyExchange, Request, Service, Settings, classify,
};
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::server::antp::{AntpLimits, AntpMoment, Full, KeyExchanges};
use authentick_proto::server::snapshot::Snapshot;
use authentick_proto::server::{Moment, Policy, Responder};
use authentick_wire::antp::Suite;
use authentick_wire::datagram::Datagram;
use authentick_wire::header::ReferenceId;
use authentick_wire::limits::{DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::packet::Packet;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_ED25519, PublicKeyData,
    SignatureAlgorithm, SigningKey,
};
use tempfile::TempDir;

/// Requests of each phase that came.
#[derive(Debug, Default)]
struct Counts {
    phases: [AtomicU64; 3],
    /// What came of m3 behind its header, each once.
    exchanges: Mutex<HashSet<Vec<u8>>>,
    is_over: AtomicBool,
    forgets: AtomicBool,
}

/// The server, until it is dropped.
pub(super) struct AntpServer {
    pub(super) address: SocketAddr,
    folder: TempDir,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl AntpServer {
    /// Serves these suites.
    pub(super) fn start(suites: &[Suite]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = authority();
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        let identities = suites.iter().map(|&suite| identity(suite, authority)).collect();
        let service = Service::new(identities, Settings::default()).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (address, counts) = (socket.local_addr().unwrap(), Arc::<Counts>::default());
        let seen = Arc::clone(&counts);
        let thread = std::thread::spawn(move || serve(&service, &socket, &seen));
        AntpServer { address, folder, counts, thread: Some(thread) }
    }

    pub(super) fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// How many requests of each phase came.
    pub(super) fn counts(&self) -> [u64; 3] {
        [0, 1, 2].map(|phase| self.counts.phases[phase].load(Ordering::SeqCst))
    }

    /// How many m3 came that differ in more than their header.
    pub(super) fn distinct_exchanges(&self) -> usize {
        self.counts.exchanges.lock().unwrap().len()
    }

    /// Takes other state keys: no C1 and no C2 opens any more.
    pub(super) fn forget(&self) {
        self.counts.forgets.store(true, Ordering::SeqCst);
    }
}

impl Drop for AntpServer {
    fn drop(&mut self) {
        self.counts.is_over.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn serve(service: &Service, socket: &UdpSocket, counts: &Counts) {
    let (mut nonces, mut entropy) = (Nonces::new(), Entropy::from_system().unwrap());
    let mut responder = Responder::new(Arc::new(Policy::open()), None, Entropy::from_system().unwrap());
    let mut keys = StateKeys::generate(1, &mut entropy);
    let (mut request, mut response) = ([0; 2048], [0; DATAGRAM_SIZE_MAX]);
    while !counts.is_over.load(Ordering::SeqCst) {
        let Ok((size, source)) = socket.recv_from(&mut request) else { continue };
        if counts.forgets.swap(false, Ordering::SeqCst) {
            keys = StateKeys::generate(1, &mut entropy);
        }
        let received = clock::now();
        let Some(phase) = phase_of(&request[..size]) else { continue };
        counts.phases[phase].fetch_add(1, Ordering::SeqCst);
        if phase == 1 {
            counts.exchanges.lock().unwrap().insert(request[HEADER_SIZE..size].to_vec());
        }
        let mut batch = [Datagram {
            source,
            received,
            truncated: false,
            to_many: false,
            request: &mut request[..size],
            response: &mut response,
            response_size: 0,
        }];
        let inline = Inline::default();
        let limits = AntpLimits::default();
        let antp = AntpMoment { service, keys: &keys, limits: &limits, exchanges: &inline };
        let moment = Moment { snapshot: snapshot(), keys: None, symmetric: None, antp: Some(antp) };
        responder.respond(moment, &mut clock::now(), &mut (), &mut batch);
        let early_size = responder.early().first().map_or(0, |early| early.size);
        let rest_size = batch[0].response_size;
        let mut exchanged = [0; KEY_RESPONSE_SIZE];
        for exchange in inline.0.take() {
            if service.exchange(&keys, (&mut nonces, &mut entropy), &exchange, &mut exchanged)
                == ExchangeOutcome::Done
            {
                socket.send_to(&exchanged, source).unwrap();
            }
        }
        for datagram in [&response[..early_size], &response[early_size..][..rest_size]] {
            if !datagram.is_empty() {
                socket.send_to(datagram, source).unwrap();
            }
        }
    }
}

/// The phase that a datagram asks for, from 0; `None` if it is no request of ANTP.
fn phase_of(datagram: &[u8]) -> Option<usize> {
    Some(match classify(&Packet::parse(datagram).ok()?).ok()? {
        Request::Negotiation(..) => 0,
        Request::KeyExchange(..) => 1,
        Request::Time(_) => 2,
    })
}

/// Key exchanges are done at once, after the batch.
#[derive(Default)]
struct Inline(RefCell<Vec<KeyExchange>>);

impl KeyExchanges for Inline {
    fn offer(&self, _: usize, exchange: KeyExchange) -> Result<(), Full> {
        self.0.borrow_mut().push(exchange);
        Ok(())
    }
}

fn snapshot() -> Snapshot {
    Snapshot::primary(-25, ReferenceId(*b"TEST"), clock::now())
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    })
}

/// A key of the published vectors with a certificate for loopback.
fn identity(suite: Suite, authority: &Authority) -> Identity {
    let name = match suite {
        Suite::P256 => "p256",
        Suite::X25519 => "x25519",
        _ => "rsa",
    };
    let private = vector(&format!("{name}.private"));
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = match suite {
        Suite::X25519 => agreement_certificate(&params, authority),
        _ => {
            let key = KeyPair::try_from(private.as_slice()).unwrap();
            params.signed_by(&key, authority).unwrap().der().to_vec()
        }
    };
    Identity::new(suite, &private, &[certificate, authority.der().to_vec()]).unwrap()
}

/// A certificate of the vectors' X25519 key. The library makes none for keys that cannot sign: it is made for the
/// signature scheme of the same size, renamed, and signed again.
fn agreement_certificate(params: &CertificateParams, authority: &Authority) -> Vec<u8> {
    struct Renamed(Vec<u8>);
    impl PublicKeyData for Renamed {
        fn der_bytes(&self) -> &[u8] {
            &self.0
        }
        fn algorithm(&self) -> &'static SignatureAlgorithm {
            &PKCS_ED25519
        }
    }
    let public = vector("x25519.public");
    let key = Renamed(public[public.len() - 32..].to_vec());
    let certificate = params.clone().signed_by(&key, authority).unwrap().der().to_vec();
    let whole_size = |der: &[u8]| match der[1] {
        0x82 => 4 + usize::from(u16::from_be_bytes([der[2], der[3]])),
        0x81 => 3 + usize::from(der[2]),
        short => 2 + usize::from(short),
    };
    // Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signature BIT STRING }
    let inner = if certificate[1] == 0x82 { 4 } else { 3 };
    let mut signed = certificate[inner..][..whole_size(&certificate[inner..])].to_vec();
    let algorithm = &certificate[inner + signed.len()..];
    let algorithm = &algorithm[..whole_size(algorithm)];
    const ED25519: [u8; 6] = [0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    let at = signed.windows(6).position(|octets| octets == ED25519).unwrap();
    signed[at + 2] = 0x6e;
    let signature = authority.key().sign(&signed).unwrap();
    let mut content = [&signed, algorithm].concat();
    content.extend([0x03, u8::try_from(signature.len() + 1).unwrap(), 0]);
    content.extend(signature);
    let mut der = vec![0x30, 0x82];
    der.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
    der.extend(content);
    der
}

/// A value of the published vectors.
pub(super) fn vector(name: &str) -> Vec<u8> {
    let file = include_str!("../../../../../../docs/antp-vectors.txt");
    let value = file.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = ")).unwrap();
    value.as_bytes().chunks(2).map(|d| u8::from_str_radix(str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}
