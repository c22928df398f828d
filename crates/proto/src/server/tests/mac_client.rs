//! Requests and responses with a MAC at the client: what it makes, and what it refuses.

use authentick_crypto::mac::Tag;
use authentick_crypto::run_batch;

use super::mac::{every_key, mac_request, server_with};
use super::*;
use crate::client::{Unsound, Untagged};
use crate::symmetric::Allowed;

//= rfc5905#9.2-10
#[test]
fn no_flipped_bit_of_a_response_passes_the_client() {
    let mut server = server_with(Allowed::ALL);
    for key in &every_key() {
        let (exchange, request) = mac_request(key, 1);
        let response = server.ask(&request);
        for bit in 0..response.len() * 8 {
            let mut response = response.clone();
            response[bit / 8] ^= 1 << (bit % 8);
            let answer = exchange.clone().receive_mac(&response, key);
            assert!(answer.is_err(), "{key:?}, bit {bit}: {answer:?}");
        }
        assert!(exchange.clone().receive_mac(&response, key).is_ok());
    }
}

/// A digest of another length is none, though it is right as far as it goes.
#[test]
fn client_takes_one_size_of_digest_for_each_key() {
    let mut server = server_with(Allowed::ALL);
    for key in every_key().iter().filter(|key| key.algorithm().nonce_size().is_none()) {
        let (exchange, request) = mac_request(key, 1);
        let response = server.ask(&request);
        let covered = &response[..HEADER_SIZE];
        let tag_size = key.algorithm().tag_size();
        let mut whole = vec![0; tag_size];
        let job = Tag { key: key.key(), nonce: None, message: covered, tag: &mut whole };
        run_batch(std::iter::once(job));
        let accepted = (0..=tag_size).filter(|&size| {
            let answer = [covered, &key.id().to_be_bytes(), &whole[..size]].concat();
            exchange.clone().receive_mac(&answer, key).is_ok()
        });
        assert_eq!(accepted.collect::<Vec<_>>(), [tag_size.min(20)], "{key:?}");
    }
}

//= rfc8573#3-5
#[test]
fn stripped_exchanged_or_foreign_macs_pass_no_client() {
    let mut server = server_with(Allowed::ALL);
    let keys = every_key();
    let (key, other) = (&keys[7], &keys[8]);
    let (mut exchange, request) = mac_request(key, 1);
    let response = server.ask(&request);
    let stripped = &response[..HEADER_SIZE];
    assert_eq!(exchange.receive_mac(stripped, key), Err(Check::Authenticator), "a downgrade");
    assert_eq!(exchange.receive(&mut stripped.to_vec(), None), Err(Check::Authenticator));
    assert_eq!(exchange.receive(&mut response.clone(), None), Err(Check::UnaskedMac));
    let third_version = [&[3 << 3 | 4], &response[1..]].concat();
    assert_eq!(exchange.receive_mac(&third_version, key), Err(Check::Mode));
    let plain = server.ask(&request[..HEADER_SIZE]);
    assert_eq!(exchange.receive_mac(&plain, key), Err(Check::Authenticator));
    let other_id = [stripped, &other.id().to_be_bytes(), &response[HEADER_SIZE + 4..]].concat();
    assert_eq!(exchange.receive_mac(&other_id, key), Err(Check::KeyId(other.id())));
    let (mut second, request) = mac_request(key, 2);
    assert_eq!(second.receive_mac(&response, key), Err(Check::Origin));
    assert_eq!(second.receive_mac(&request, key), Err(Check::Mode), "a reflected request");
    let (mut without, _) = Exchange::plain(&mut Entropy::from_seed(1), &mut [0; HEADER_SIZE]);
    assert_eq!(without.receive_mac(&response, key), Err(Check::Authenticator), "no MAC was asked for");
    assert!(exchange.receive_mac(&response, key).is_ok());
}

#[test]
fn client_heeds_what_a_genuine_answer_says() {
    let key = &every_key()[7];
    let check = |change: &dyn Fn(&mut Snapshot)| {
        let mut server = server_with(Allowed::ALL);
        change(&mut server.snapshot);
        let (mut exchange, request) = mac_request(key, 1);
        exchange.receive_mac(&server.ask(&request), key).unwrap_err()
    };
    assert_eq!(check(&|s| s.leap = Leap::Unsynchronised), Check::Clock(Unsound::Leap));
    assert_eq!(check(&|s| s.stratum = 16), Check::Clock(Unsound::Stratum(16)));
    assert_eq!(check(&|s| s.root_dispersion = NtpShort::MAX), Check::Clock(Unsound::RootDistance));
    assert_eq!(check(&|s| s.stratum = 0), Check::Kiss(ReferenceId(*b"GPS\0")));
}

#[test]
fn requests_that_are_tagged_together_are_those_that_are_tagged_alone() {
    let keys = every_key();
    let mut entropy = Entropy::from_seed(5);
    let mut requests: Vec<(Untagged, Vec<u8>)> = keys
        .iter()
        .map(|key| {
            let mut octets = vec![0; DATAGRAM_SIZE_MAX];
            (Exchange::mac_untagged(key, &mut entropy, &mut octets).1, octets)
        })
        .collect();
    let jobs = keys.iter().zip(&mut requests).map(|(key, (untagged, octets))| untagged.job(key, octets));
    run_batch(jobs);
    let mut entropy = Entropy::from_seed(5);
    for (key, (untagged, octets)) in keys.iter().zip(&requests) {
        let mut alone = vec![0; DATAGRAM_SIZE_MAX];
        let (_, size) = Exchange::mac(key, &mut entropy, &mut alone);
        assert_eq!((size, &alone[..size]), (untagged.size(), &octets[..size]));
    }
}
