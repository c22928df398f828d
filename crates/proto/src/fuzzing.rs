//! Bodies of the fuzz targets of this crate; `fuzz/` calls them with new octets, the tests with the kept corpus.

use std::sync::Arc;

use authentick_crypto::{Algorithm, Entropy, Key, Seal, open_batch, seal_batch};
use authentick_wire::Writer;
use authentick_wire::datagram::Datagram;
use authentick_wire::extension::{self, FieldType};
use authentick_wire::header::Header;
use authentick_wire::limits::{DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::nts::emit_authenticator;
use authentick_wire::time::NtpTime;

use crate::client::{Exchange, NtsSession};
use crate::cookie::{self, SessionKeys};
use crate::keyset::KeySet;
use crate::server::interleave::Interleave;
use crate::server::outcome::Outcomes;
use crate::server::snapshot::Snapshot;
use crate::server::{Moment, Policy, Responder};
use crate::symmetric::SymmetricKeys;

mod mac;

pub use mac::{mac_request, mac_response};

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
            open_batch(std::iter::once(job));
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
fn respond_to(mut requests: Vec<Vec<u8>>, symmetric: Option<&SymmetricKeys>) -> Outcomes {
    let keys = keys();
    let mut buffers = vec![vec![0xEE; DATAGRAM_SIZE_MAX]; requests.len()];
    let mut batch: Vec<Datagram<'_>> = requests
        .iter_mut()
        .zip(&mut buffers)
        .map(|(request, response)| Datagram {
            source: ([198, 18, 0, 2], 123).into(),
            received: NtpTime::from_unix(1_700_000_000, 0),
            truncated: false,
            request,
            response,
            response_size: 0,
        })
        .collect();
    let mut entropy = Entropy::from_seed(2);
    let interleave = Arc::new(Interleave::new(16, &mut entropy));
    let mut responder = Responder::new(Arc::new(Policy::open()), Some(interleave), entropy);
    let moment = Moment { snapshot: Snapshot::unsynchronised(-20), keys: Some(&keys), symmetric };
    let mut now = NtpTime::from_unix(1_700_000_000, 1000);
    responder.respond(moment, &mut now, &mut (), &mut batch);
    responder.sent(now, now);
    assert_eq!(responder.outcomes().total(), batch.len() as u64);
    for datagram in &batch {
        assert!(datagram.response_size <= datagram.request.len(), "amplified");
        assert!(datagram.response_size == 0 || datagram.response[0] & 7 != 3, "a request came back");
    }
    *responder.outcomes()
}

/// Any octets as a response: a client takes none of them for an answer to its NTS request.
pub fn client_response(octets: &[u8]) {
    let keys = session_keys(Algorithm::SivCmac256);
    let mut session = NtsSession::new(keys, None);
    session.jar.add(&[7; 100]);
    let mut request = [0; DATAGRAM_SIZE_MAX];
    let (mut exchange, _) =
        Exchange::nts(&mut session, &mut Entropy::from_seed(3), &mut request).expect("there is a cookie");
    let mut response = octets.to_vec();
    // Past the origin check, which a fuzzer cannot guess.
    if let Some(header) = response.first_chunk_mut::<HEADER_SIZE>() {
        header[24..32].copy_from_slice(&request[40..48]);
    }
    assert!(exchange.receive(&mut response, Some(&mut session)).is_err(), "a forged response passed");
}

/// A request with `fields` before the authenticator and `plaintext` inside it, under a genuine cookie.
fn sealed(keys: &KeySet, algorithm: Algorithm, fields: &[u8], plaintext: &[u8]) -> Option<Vec<u8>> {
    let session = session_keys(algorithm);
    let mut cookie = vec![0; cookie::size(algorithm)];
    cookie::seal_all(keys, &mut Entropy::from_seed(4), std::iter::once((&session, &mut cookie[..])));
    let mut octets = vec![0; DATAGRAM_SIZE_MAX];
    let mut out = Writer::new(&mut octets);
    let mut header = [0; HEADER_SIZE];
    Header::minimal_request(NtpTime::from_bits(5)).emit(&mut header);
    out.put(&header).ok()?;
    extension::emit(&mut out, FieldType::UNIQUE_IDENTIFIER, &[6; 32]).ok()?;
    extension::emit(&mut out, FieldType::NTS_COOKIE, &cookie).ok()?;
    out.put(fields).ok()?;
    out.zeros(fields.len().next_multiple_of(4) - fields.len()).ok()?;
    let associated_size = out.offset();
    let nonce = &[7; 16][..algorithm.nonce_size()];
    let (_, sealed) = emit_authenticator(&mut out, nonce, 16 + plaintext.len(), 0).ok()?;
    let size = out.offset();
    octets.truncate(size);
    let (before, rest) = octets.split_at_mut(sealed.start());
    let (text, tag) = algorithm.split_sealed(&mut rest[..sealed.size()])?;
    text.copy_from_slice(plaintext);
    seal_batch(std::iter::once(Seal {
        key: session.c2s(),
        nonce,
        associated: Some(&before[..associated_size]),
        text: text.into(),
        tag,
    }));
    Some(octets)
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
    }
}
