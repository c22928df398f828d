//! Requests of every scheme, good ones and bad ones, as octets that are sent again and again; and what becomes of them.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

use authentick_crypto::Entropy;
use authentick_crypto::kem::PublicKey;
use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_ke::client::{Ask, dial};
use authentick_ke::tls::{Roots, client_config, public_key_info};
use authentick_net::clock;
use authentick_proto::antp::client::{Bounds, Negotiation, Offer, Progress, SeparateTag, Wanted};
use authentick_proto::antp::kem;
use authentick_proto::client::Exchange;
use authentick_proto::server::outcome::Outcome;
use authentick_proto::symmetric::SymmetricKey;
use authentick_wire::antp::{Suite, SuiteList};
use authentick_wire::header::Header;
use authentick_wire::ke::AeadId;
use authentick_wire::limits::{COOKIE_COUNT, DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::time::NtpTime;
use rustls::pki_types::ServerName;

use super::PATIENCE;
use super::node::{Limits, Node, Refusal};

pub(crate) const ALGORITHMS: &[MacAlgorithm] = &MacAlgorithm::ALL;

/// Where the cookie of an NTS request begins, with the number of its key: behind a header, a unique identifier of 32
/// octets, and two headers of fields.
const COOKIE: usize = HEADER_SIZE + 4 + 32 + 4;

/// A client with an address of its own.
pub(crate) struct Client(UdpSocket);

impl Client {
    /// One that may ask.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        let [high, low] = COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        Client::at([127, 1, high, low])
    }

    fn at(address: [u8; 4]) -> Self {
        let socket = UdpSocket::bind(SocketAddr::from((address, 0))).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Client(socket)
    }

    pub(crate) fn send(&self, node: &Node, request: &[u8]) {
        assert_eq!(self.0.send_to(request, node.address()).unwrap(), request.len());
    }

    fn ask(&self, node: &Node, request: &[u8]) -> Vec<u8> {
        let mut buffer = [0; DATAGRAM_SIZE_MAX];
        self.send(node, request);
        let size = self.0.recv(&mut buffer).unwrap();
        buffer[..size].to_vec()
    }
}

/// A request, who sends it, and how it ends when it is sent many times.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) request: Vec<u8>,
    /// In each of these ways at least once.
    pub(crate) ends: Vec<Outcome>,
    /// And in this way, if other threads are slow.
    pub(crate) perhaps: Option<Outcome>,
}

impl Case {
    fn new(name: impl Into<String>, request: Vec<u8>, end: Outcome) -> Self {
        Case { name: name.into(), client: Client::new(), request, ends: vec![end], perhaps: None }
    }

    /// The same with the octet at a place changed.
    fn damaged(&self, how: &str, place: usize, end: Outcome) -> Self {
        let mut request = self.request.clone();
        request[place] ^= 1;
        Case::new(format!("{}, {how}", self.name), request, end)
    }

    fn last(&self) -> usize {
        self.request.len() - 1
    }
}

/// What `write` writes, which returns how much that is.
fn octets(write: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut out = vec![0; DATAGRAM_SIZE_MAX];
    let size = write(&mut out);
    out.truncate(size);
    out
}

fn entropy() -> Entropy {
    Entropy::from_system().unwrap()
}

fn plain_request() -> Vec<u8> {
    octets(|out| Exchange::plain(&mut entropy(), out).1)
}

/// Without authentication; the first one is good.
pub(crate) fn plain() -> Vec<Case> {
    let plain = Case::new("plain", plain_request(), Outcome::Plain);
    let with_first = |octet: u8| [&[octet], &plain.request[1..]].concat();
    let with_field = |field: &[u8]| [&plain.request[..], field].concat();
    let mut overlong = with_field(&[0; DATAGRAM_SIZE_MAX]);
    overlong.truncate(DATAGRAM_SIZE_MAX + 4);
    let cases = vec![
        Case::new("a response", with_first(0x24), Outcome::NotARequest),
        Case::new("another version", with_first(0x3b), Outcome::Version),
        Case::new("too short", plain.request[..47].to_vec(), Outcome::Malformed),
        Case::new("empty", Vec::new(), Outcome::Malformed),
        Case::new("too long", overlong, Outcome::Malformed),
        Case::new("field of no size", with_field(&[1, 4, 0, 0].repeat(7)), Outcome::Malformed),
        // An odd origin asks for interleaved mode; nothing was sent with this one.
        plain.damaged("interleaved in vain", 31, Outcome::Plain),
    ];
    [plain].into_iter().chain(cases).collect()
}

/// Asks again and again as RFC 9769 has it: each answer says when the one before left.
pub(crate) fn interleaved(node: &Node, client: &Client) {
    let mut request = plain_request();
    let mut is_interleaved = false;
    for _ in 0..64 {
        let answer = Header::parse(client.ask(node, &request).first_chunk().unwrap());
        let asked = Header::parse(request.first_chunk().unwrap());
        is_interleaved |= answer.origin == asked.receive && asked.receive != NtpTime::ZERO;
        let (arrived, transmit) = (clock::now(), NtpTime::from_bits(asked.transmit.to_bits() + 2));
        let next = Header { origin: answer.receive, receive: arrived, transmit, ..asked };
        next.emit(request.first_chunk_mut().unwrap());
    }
    assert!(is_interleaved, "no answer was in interleaved mode");
}

/// By who may not ask.
pub(crate) fn denied(refusal: Refusal) -> Case {
    let end = match refusal {
        Refusal::Kiss => Outcome::KissDeny,
        Refusal::Silence => Outcome::Denied,
    };
    Case { client: Client::at([127, 200, 0, 1]), ..Case::new("denied", plain_request(), end) }
}

pub(crate) fn key_id(algorithm: MacAlgorithm) -> u32 {
    1 + algorithm as u32
}

pub(crate) fn key_octets(algorithm: MacAlgorithm) -> Vec<u8> {
    vec![7; (*algorithm.key_sizes().start()).max(16)]
}

/// With a MAC of each type.
pub(crate) fn mac() -> Vec<Case> {
    let request = |algorithm, id| {
        let key = SymmetricKey::new(id, MacKey::new(algorithm, &key_octets(algorithm)).unwrap());
        octets(|out| Exchange::mac(&key, &mut entropy(), out).1)
    };
    let mut cases = Vec::new();
    for &algorithm in ALGORITHMS {
        let good = Case::new(algorithm.to_string(), request(algorithm, key_id(algorithm)), Outcome::Mac);
        let bad = good.damaged("wrong", good.last(), Outcome::MacNakTag);
        cases.extend([good, bad]);
    }
    cases.push(Case::new("unknown key", request(MacAlgorithm::Cmac128, 4711), Outcome::MacNakUnknownKey));
    cases
}

/// Under NTS with one algorithm, with each number of placeholders.
pub(crate) fn nts(node: &Node, aead: u16) -> Vec<Case> {
    let roots = Roots::from_pem(&std::fs::read(node.folder().join("nts.pem")).unwrap()).unwrap();
    let ask = Ask {
        tls: client_config(roots),
        server_name: ServerName::try_from("localhost").unwrap(),
        aeads: vec![AeadId(aead)],
    };
    let mut session = dial(&ask, node.ke_addresses(), PATIENCE).unwrap().established.session;
    let mut cases: Vec<Case> = (0..COOKIE_COUNT)
        .map(|count| {
            let request = octets(|out| Exchange::nts(&mut session, &mut entropy(), out).unwrap().1);
            Case::new(format!("NTS {aead}, {count} placeholders"), request, Outcome::Nts)
        })
        .collect();
    assert_eq!(session.jar.count(), 0, "each cookie was used");
    let good = &cases[0];
    let bad = [
        good.damaged("wrong tag", good.last(), Outcome::NakTag),
        good.damaged("cookie of no key", COOKIE, Outcome::NakUnknownKey),
        good.damaged("wrong cookie", COOKIE + 40, Outcome::NakCookie),
        // The size of the unique identifier.
        good.damaged("identifier without end", HEADER_SIZE + 2, Outcome::Malformed),
    ];
    let mut twice = good.request.clone();
    twice.splice(HEADER_SIZE..HEADER_SIZE, good.request[HEADER_SIZE..HEADER_SIZE + 36].to_vec());
    cases.extend(bad);
    cases.push(Case::new(format!("NTS {aead}, two identifiers"), twice, Outcome::NtsMalformed));
    cases
}

/// All phases of ANTP. The one that sends an m3 has to be the one that has negotiated.
pub(crate) fn antp(node: &Node, limits: Limits) -> Vec<Case> {
    let (client, mut entropy) = (Client::new(), entropy());
    let limited = |end| match limits {
        Limits::None | Limits::OfAllRequests => vec![end],
        Limits::OfAntp => vec![end, Outcome::AntpRate],
    };
    let (mut negotiation, mut negotiations) = (Negotiation::new(Offer::p256()), Vec::new());
    let done = loop {
        let request = octets(|out| negotiation.request(&mut entropy, out));
        let answer = client.ask(node, &request);
        negotiations.push(request);
        if let Progress::Done(done) = negotiation.receive(&answer).unwrap() {
            break done;
        }
    };
    let spki = public_key_info(done.chain().certificates().next().unwrap()).unwrap();
    let public = PublicKey::from_spki(kem(done.suite()).unwrap(), spki).unwrap();
    let mut out = [0; DATAGRAM_SIZE_MAX];
    let (mut exchange, size) = done.exchange(&public, &mut entropy, &mut out).unwrap();
    let m3 = out[..size].to_vec();
    let session = exchange.receive(&client.ask(node, &m3)).unwrap();
    let mut time = |wanted| octets(|out| session.ask(wanted, Bounds::WAN, clock::now(), &mut entropy, out).1);
    let (fresh, separate) = (true, Some(SeparateTag::Ipv4));
    let m5 = Case::new("ANTP m5", time(Wanted::default()), Outcome::AntpTime);
    let m3 = Case::new("ANTP m3", m3, Outcome::AntpKeyExchange);
    let m3 = Case { client, ends: limited(Outcome::AntpKeyExchange), ..m3 };
    let mut cases = vec![
        m5.damaged("C2 does not open", m5.last(), Outcome::AntpExpired),
        m5,
        Case::new("ANTP m5 for a fresh C2", time(Wanted { fresh, separate: None }), Outcome::AntpTime),
        Case::new("ANTP m5, tag apart", time(Wanted { fresh, separate }), Outcome::AntpSeparateTag),
        Case { perhaps: Some(Outcome::AntpQueueFull), ..m3 },
    ];
    let suites = SuiteList::new(&[Suite::X25519]).unwrap();
    let mut foreign = Negotiation::new(Offer { suites, ..Offer::p256() });
    negotiations.push(octets(|out| foreign.request(&mut self::entropy(), out)));
    let foreign = negotiations.len() - 1;
    for (number, request) in negotiations.into_iter().enumerate() {
        let end = if number == foreign { Outcome::AntpNoSuite } else { Outcome::AntpNegotiated };
        cases.push(Case { ends: limited(end), ..Case::new(format!("ANTP m1, {number}"), request, end) });
    }
    cases
}
