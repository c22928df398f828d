//! Bodies of the fuzz targets of this crate; `fuzz/` calls them with new octets, the tests with the kept corpus.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use authentick_crypto::kem::SessionKey;
use authentick_crypto::{Algorithm, Entropy, Key, KeyRef, Seal, run_batch};
use authentick_wire::Writer;
use authentick_wire::antp::{self, KeyRequest, Suite, TimeRequest};
use authentick_wire::datagram::Datagram;
use authentick_wire::extension::{self, FieldType};
use authentick_wire::header::Header;
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::nts::{Span, emit_authenticator};
use authentick_wire::time::{NtpSpan, NtpTime};

use crate::antp::nonce::Nonces;
use crate::antp::seconds;
use crate::antp::server::{self as antp_server, Identity, KeyExchange, Service, Settings};
use crate::antp::state::{Established, Pending};
use crate::antp::state_key::StateKeys;
use crate::cookie::{self, SessionKeys};
use crate::keyset::{KeySet, Role};
use crate::server::antp::{AntpLimits, AntpMoment, Full, KeyExchanges};
use crate::server::interleave::Interleave;
use crate::server::outcome::Outcomes;
use crate::server::snapshot::Snapshot;
use crate::server::{Moment, Policy, Responder};
use crate::symmetric::SymmetricKeys;

mod antp_client;
mod mac;
mod nts_client;

pub use antp_client::antp_response;
pub use mac::{mac_request, mac_response};
pub use nts_client::client_response;

fn keys() -> KeySet {
    KeySet::generate(0, &mut Entropy::from_seed(1))
}

fn session_keys(algorithm: Algorithm) -> SessionKeys {
    let key = |octet| Key::new(algorithm, &vec![octet; algorithm.key_size()]).expect("the size is right");
    SessionKeys::new(&key(1), &key(2)).expect("both are of one algorithm")
}

/// Any octets as a cookie, as they are and behind a known key's identifier: no panic, and nothing opens that was not
/// sealed.
pub fn cookie(octets: &[u8]) {
    let keys = keys();
    let known = [&keys.current().id().to_be_bytes(), octets].concat();
    for cookie in [octets, &known] {
        let mut session = session_keys(Algorithm::SivCmac256);
        let mut genuine = false;
        if let Some(job) = cookie::open_job(&keys, cookie, &mut session, &mut genuine) {
            run_batch(std::iter::once(job));
            assert!(!genuine, "a forged cookie opened");
            assert_eq!(cookie::size(session.algorithm()), cookie.len(), "only whole cookies are tried");
            assert!(session.expose().iter().all(|&octet| octet == 0), "what does not open leaves zeros");
        }
    }
}

/// A batch through the responder: the input as a datagram as it is, and as fields and text of a request that is sealed
/// under a valid cookie, so that the fuzzer gets behind the AEAD. No panic, one outcome each, nothing amplified.
pub fn responder(octets: &[u8]) {
    let keys = keys();
    let mut requests: Vec<Vec<u8>> = vec![octets[..octets.len().min(DATAGRAM_SIZE_MAX)].to_vec()];
    if let Some((&shape, rest)) = octets.split_first() {
        let algorithm = Algorithm::ALL[usize::from(shape) & 3];
        let cut = usize::from(shape >> 2) * rest.len() / 64;
        requests.extend(sealed(&keys, algorithm, &rest[..cut], &rest[cut..]));
    }
    respond_to(requests, None);
}

/// Answers `requests` as one batch under the same keys, and checks what is always so; returns what became of them.
fn respond_to(requests: Vec<Vec<u8>>, symmetric: Option<&SymmetricKeys>) -> Outcomes {
    let keys = keys();
    let mut entropy = Entropy::from_seed(2);
    let interleave = Arc::new(Interleave::new(16, &mut entropy));
    let mut responder = Responder::new(Arc::new(Policy::open()), Some(interleave), entropy);
    let moment = Moment { snapshot: Snapshot::unsynchronised(-20), keys: Some(&keys), symmetric, antp: None };
    answers(&mut responder, moment, requests);
    *responder.outcomes()
}

/// The responses to a batch, of which each has one outcome, and none is amplified or a request.
fn answers(responder: &mut Responder, moment: Moment<'_>, mut requests: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut buffers = vec![vec![0xEE; DATAGRAM_SIZE_MAX]; requests.len()];
    let mut batch: Vec<Datagram<'_>> = requests
        .iter_mut()
        .zip(&mut buffers)
        .map(|(request, response)| Datagram {
            source: CLIENT,
            received: NOW,
            truncated: false,
            to_many: false,
            request,
            response,
            response_size: 0,
        })
        .collect();
    let mut now = NOW + NtpSpan::from_nanos(1000);
    responder.respond(moment, &mut now, &mut (), &mut batch);
    responder.sent(now, now);
    assert_eq!(responder.outcomes().total(), batch.len() as u64);
    let headers = antp_server::overhead(&CLIENT);
    for (index, datagram) in batch.iter().enumerate() {
        let early = responder.early().iter().find(|early| early.index == index);
        let early = early.map_or(0, |early| early.size + headers);
        assert!(early + datagram.response_size <= datagram.request.len(), "amplified");
        assert!(datagram.response_size == 0 || datagram.response[0] & 7 != 3, "a request came back");
    }
    batch.iter().map(|datagram| datagram.response[..datagram.response_size].to_vec()).collect()
}

/// Any octets as an ANTP request, as they are and as the parts of a key exchange and of a time request behind state
/// that opens: no panic, and no answer is larger than its request or comes back as one.
pub fn antp_request(octets: &[u8]) {
    let world = AntpServer::new();
    world.answer(octets);
    let (c1, c2) = world.state();
    for suite in Suite::ALL {
        let key = antp_packet(|out| {
            let size = suite.ciphertext_size().unwrap_or_default();
            let ciphertext: Vec<u8> = octets.iter().copied().chain(std::iter::repeat(0)).take(size).collect();
            KeyRequest { suite, state: &c1, ciphertext: &ciphertext }.emit(out)
        });
        world.answer(&key);
    }
    let time = antp_packet(|out| {
        let mut nonce = [0; 32];
        octets.iter().zip(&mut nonce).for_each(|(octet, place)| *place = *octet);
        let [wants_fresh, wants_early] = [1, 2].map(|bit| nonce[0] & bit != 0);
        antp::emit_padding(out, usize::from(nonce[1] & 0x3F) * 4)?;
        TimeRequest { suite: Suite::P256, wants_fresh, wants_early, nonce: &nonce, state: &c2 }.emit(out)
    });
    world.answer(&time);
}

const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2)), 123);
const NOW: NtpTime = NtpTime::from_unix(1_700_000_000, 0);

/// PKCS#8 of the scalar one. RFC 5915.
fn pkcs8_of_one() -> Vec<u8> {
    let mut pkcs8 = vec![
        0x30, 0x41, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06,
        0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x27, 0x30, 0x25, 0x02, 0x01, 0x01, 0x04,
        0x20,
    ];
    pkcs8.extend_from_slice(&[0; 31]);
    pkcs8.push(1);
    pkcs8
}

/// Its public key, the curve's generator. RFC 5480; SEC 2, section 2.4.2.
const P256_SPKI_OF_ONE: [u8; 91] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04, 0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42,
    0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40, 0xf2, 0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0,
    0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96, 0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e,
    0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e, 0x16, 0x2b, 0xce, 0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6,
    0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5,
];

/// An ANTP server with a P-256 key that everybody knows.
struct AntpServer {
    service: Service,
    keys: StateKeys,
}

impl AntpServer {
    fn new() -> Self {
        let identity =
            Identity::new(Suite::P256, &pkcs8_of_one(), &[vec![0x30; 500]]).expect("the key is one");
        let service = Service::new(vec![identity], Settings::default()).expect("there is one identity");
        AntpServer { service, keys: StateKeys::generate(0, &mut Entropy::from_seed(7)).rotate(1, 1, None) }
    }

    /// C1 and C2 of some client, the latter under a retired key.
    fn state(&self) -> ([u8; antp::C1_SIZE], [u8; antp::C2_SIZE]) {
        let (issued, suite) = (seconds(NOW), Suite::P256);
        let pending = Pending { suite, issued, transcript: [3; 32] };
        let source = self.service.source_prefix(CLIENT.ip());
        let expires = issued.wrapping_add(1000);
        let established = Established { suite, issued, expires, key: SessionKey::new([4; 16]) };
        let retired = self.keys.keys().find(|(role, _)| *role == Role::Retired).expect("it was rotated").1;
        (
            pending.seal(&self.keys, &source, &mut Nonces::new(), &mut Entropy::from_seed(8)),
            established.seal_with(retired, &[5; 12]),
        )
    }

    /// Answers `octets` as a datagram, with public-key work done at once. Returns what is sent at once.
    fn answer(&self, octets: &[u8]) -> Vec<u8> {
        let mut responder = Responder::new(Arc::new(Policy::open()), None, Entropy::from_seed(9));
        let (service, keys, limits) = (&self.service, &self.keys, &AntpLimits::default());
        let antp = Some(AntpMoment { service, keys, limits, exchanges: self });
        let moment = Moment { snapshot: Snapshot::unsynchronised(-20), keys: None, symmetric: None, antp };
        let request = octets[..octets.len().min(DATAGRAM_SIZE_MAX)].to_vec();
        answers(&mut responder, moment, vec![request]).remove(0)
    }
}

impl KeyExchanges for AntpServer {
    fn offer(&self, _: usize, exchange: KeyExchange) -> Result<(), Full> {
        let mut out = [0; antp_server::KEY_RESPONSE_SIZE];
        let source = (&mut Nonces::new(), &mut Entropy::from_seed(9));
        self.service.exchange(&self.keys, source, &exchange, &mut out);
        Ok(())
    }
}

fn antp_packet(build: impl FnOnce(&mut Writer<'_>) -> Result<(), authentick_wire::NoRoom>) -> Vec<u8> {
    let mut octets = vec![0; DATAGRAM_SIZE_MAX];
    let mut out = Writer::new(&mut octets);
    let written = Header::minimal_request(NtpTime::from_bits(5)).put(&mut out).and_then(|()| build(&mut out));
    let size = if written.is_ok() { out.offset() } else { 0 };
    octets.truncate(size);
    octets
}

/// A request with `fields` before the authenticator and `plaintext` inside it, under a genuine cookie.
fn sealed(keys: &KeySet, algorithm: Algorithm, fields: &[u8], plaintext: &[u8]) -> Option<Vec<u8>> {
    let session = session_keys(algorithm);
    let mut cookie = vec![0; cookie::size(algorithm)];
    cookie::seal_all(keys, &mut Entropy::from_seed(4), std::iter::once((&session, &mut cookie[..])));
    let mut octets = vec![0; DATAGRAM_SIZE_MAX];
    let mut out = Writer::new(&mut octets);
    Header::minimal_request(NtpTime::from_bits(5)).put(&mut out).ok()?;
    extension::emit(&mut out, FieldType::UNIQUE_IDENTIFIER, &[6; 32]).ok()?;
    extension::emit(&mut out, FieldType::NTS_COOKIE, &cookie).ok()?;
    out.put(fields).ok()?;
    out.zeros(fields.len().next_multiple_of(4) - fields.len()).ok()?;
    let associated_size = out.offset();
    let nonce = &[7; 16][..algorithm.nonce_size()];
    let (_, sealed) = emit_authenticator(&mut out, nonce, 16 + plaintext.len(), 0).ok()?;
    let size = out.offset();
    octets.truncate(size);
    seal(session.c2s(), nonce, &mut octets, associated_size, sealed, plaintext)?;
    Some(octets)
}

/// Puts a text where `place` says, sealed with everything before the authenticator.
fn seal(
    key: KeyRef<'_>,
    nonce: &[u8],
    octets: &mut [u8],
    associated_size: usize,
    place: Span,
    plaintext: &[u8],
) -> Option<()> {
    let (before, rest) = octets.split_at_mut(place.start());
    let (text, tag) = key.algorithm().split_sealed(&mut rest[..place.size()])?;
    text.copy_from_slice(plaintext);
    run_batch(std::iter::once(Seal {
        key,
        nonce,
        associated: Some(&before[..associated_size]),
        text: text.into(),
        tag,
    }));
    Some(())
}

#[cfg(test)]
mod tests {
    fn replay(target: &str, run: fn(&[u8])) {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let mut count = 0;
        for entry in std::fs::read_dir(folder).expect("the corpus is kept") {
            run(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 10, "{target}: {count}");
    }

    #[test]
    fn kept_corpora_have_no_finding() {
        replay("cookie", super::cookie);
        replay("responder", super::responder);
        replay("client_response", super::client_response);
        replay("mac_request", super::mac_request);
        replay("mac_response", super::mac_response);
        replay("antp_request", super::antp_request);
        replay("antp_response", super::antp_response);
    }
}
