//! Requests and responses with a MAC: octets that nobody tagged, and the same behind a tag that is right.

use authentick_crypto::mac::{MacAlgorithm, MacKey, Tag};
use authentick_crypto::{Entropy, run_batch};
use authentick_wire::Writer;
use authentick_wire::header::Leap;
use authentick_wire::limits::{DATAGRAM_SIZE_MAX, HEADER_SIZE};
use authentick_wire::mac::{digest_size, emit_nonce};

use super::respond_to;
use crate::client::Exchange;
use crate::limits::REQUEST_SIZE_MAX;
use crate::server::outcome::Outcome;
use crate::symmetric::{Allowed, Nonce, SymmetricKey, SymmetricKeys};

/// A key for each algorithm, and one of GMAC with a salt, with the identifiers from 1 on.
fn keys() -> Vec<SymmetricKey> {
    let key = |algorithm: MacAlgorithm| {
        MacKey::new(algorithm, &vec![5; *algorithm.key_sizes().start()]).expect("the size is right")
    };
    let salted =
        SymmetricKey::new(13, key(MacAlgorithm::Gmac128)).with_salt([6; 4]).expect("GMAC has a salt");
    let keys = (1..).zip(MacAlgorithm::ALL).map(|(id, algorithm)| SymmetricKey::new(id, key(algorithm)));
    keys.chain([salted]).collect()
}

/// `packet` with a MAC that is right; in version 4 with the nonce that the key needs.
fn tagged(key: &SymmetricKey, mut packet: Vec<u8>) -> Vec<u8> {
    let nonce = key.draw_nonce(&mut Entropy::from_seed(7)).filter(|_| packet[0] >> 3 & 7 == 4);
    if let Some(nonce) = &nonce {
        let mut field = [0; 16];
        emit_nonce(&mut Writer::new(&mut field), &key.body_of(nonce)).expect("16 octets hold it");
        packet.extend(field);
    }
    let mut digest = vec![0; digest_size(key.algorithm().tag_size())];
    if nonce.is_some() == key.algorithm().nonce_size().is_some() {
        let nonce = nonce.as_ref().map(Nonce::octets);
        run_batch(std::iter::once(Tag { key: key.key(), nonce, message: &packet, tag: &mut digest }));
    }
    packet.extend(key.id().to_be_bytes());
    packet.extend(digest);
    packet
}

/// Splits an input into a key and the rest, whole words that leave room for a MAC.
fn shape(octets: &[u8]) -> Option<(SymmetricKey, &[u8])> {
    let (&index, rest) = octets.split_first()?;
    let rest = &rest[..rest.len().min(DATAGRAM_SIZE_MAX - 64) & !3];
    let mut keys = keys();
    Some((keys.swap_remove(usize::from(index) % keys.len()), rest))
}

/// A batch through the responder: the input as it is; as header and fields behind a right tag; the same with one bit of
/// the tag flipped. No panic, one outcome each, nothing amplified, and only the right tag is given authenticated time.
pub fn mac_request(octets: &[u8]) {
    let Some((key, packet)) = shape(octets) else { return };
    if packet.len() < HEADER_SIZE {
        return;
    }
    let good = tagged(&key, packet.to_vec());
    let mut bad = good.clone();
    *bad.last_mut().expect("there is a digest") ^= 1;
    let keys = SymmetricKeys::new(keys(), Allowed::ALL, 1).expect("the identifiers are distinct");
    let outcomes = respond_to(vec![packet.to_vec(), good, bad], Some(&keys));
    assert!(outcomes.of(Outcome::Mac) <= 1, "a forged tag was taken");
    let answered: u64 = keys.iter().map(|key| key.counts().answered).sum();
    assert_eq!(answered, outcomes.of(Outcome::Mac));
    let needs_nonce = key.algorithm().nonce_size().is_some();
    let (version, mode) = (packet[0] >> 3 & 7, packet[0] & 7);
    if packet.len() == HEADER_SIZE && version == 4 && mode == 3 {
        assert_eq!(outcomes.of(Outcome::Mac), 1, "a right tag was not taken");
    }
    assert!(version == 4 || !needs_nonce || answered == 0, "there is no nonce without fields");
}

/// Any octets as a response: a client takes none of them for an answer to its request with a MAC. Behind a right tag
/// it takes only what it may set a clock by.
pub fn mac_response(octets: &[u8]) {
    let Some((key, packet)) = shape(octets) else { return };
    let mut request = [0; REQUEST_SIZE_MAX];
    let (mut exchange, _) = Exchange::mac(&key, &mut Entropy::from_seed(3), &mut request);
    let mut response = packet.to_vec();
    // Past the origin check, which a fuzzer cannot guess.
    let Some(header) = response.first_chunk_mut::<HEADER_SIZE>() else { return };
    header[24..32].copy_from_slice(&request[40..48]);
    assert!(exchange.receive_mac(&response, &key).is_err(), "a forged response passed");
    let good = tagged(&key, response);
    if let Ok(response) = exchange.receive_mac(&good, &key) {
        let header = response.header;
        assert!((1..16).contains(&header.stratum) && header.leap != Leap::Unsynchronised);
        assert!(exchange.receive_mac(&good, &key).is_err(), "one answer is enough");
    }
}
