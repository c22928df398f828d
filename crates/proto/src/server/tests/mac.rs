//! Requests with a MAC, from the client to the responder and back: every algorithm, every way to be wrong.

use authentick_crypto::mac::{MacAlgorithm, MacKey, Tag};
use authentick_crypto::run_batch;
use authentick_wire::mac::{MacFields, emit_nonce};

use super::*;
use crate::symmetric::{Allowed, Counts, SymmetricKey};

/// The identifier of the first key; the others follow.
const FIRST_ID: u32 = 0x0100_0064;

/// The packets of "plain NTP" that were captured from public servers.
const CAPTURED_REQUEST: &str =
    "230206e8000003ff0000037d5ec69f0fe5f662987b61b9afe5f663667b64995de5f6636681405590e5f663a8761dde48";
const CAPTURED_RESPONSE: &str =
    "240206e900000236000003b7c035676ce5f661fd6f165f03e5f663a87619ef40e5f663a8798c6581e5f663a8798eae2b";

/// Digests of the captured packets, with the nonce field if there is one, under key octets 00 01 02 ...: of the request
/// and of the response. From Python's hashlib and cryptography 48 (OpenSSL 3), cut off at 20 octets.
const PACKETS: [(MacAlgorithm, &str, &str, &str); 13] = {
    use MacAlgorithm as M;
    const NONCE: &str = "fb010010a0a1a2a3a4a5a6a7a8a9aaab";
    const SALTED: &str = "fb010010a0a1a2a3a4a5a6a700000000";
    [
        (M::Md5, "", "f577fcf80ee8506d89615a0d79716014", "38b0286467280b2dabb85662690b1ac2"),
        (M::Sha1, "", "1ca4bcea860e4d9f780675056883bc17507e32e4", "b1eaf12c423b1a4a96f005350bc9fd58e01a73f9"),
        (
            M::Sha256,
            "",
            "dfd38e48754d8acc529063fe2e2e70a9a8c6c849",
            "66d098fae42dd7de0b2625e5626acd1de62c913c",
        ),
        (
            M::Sha384,
            "",
            "19cc6ef3c8ff7a12a6debe9f4701affa030e2d20",
            "f6c84da8698d04695928ddd51ee95a2279b5a3a8",
        ),
        (
            M::Sha512,
            "",
            "3088c6a88ffd67e292cf790f5c4b68f6593781e6",
            "d8eea998d08012f4e4a7a6954f065a154605e129",
        ),
        (M::HmacMd5, "", "13533f70f975b1f2cc0f622c8ea86dfc", "3436c81e6aea69b5696fcd3d5e0a8385"),
        (M::HmacSha224, "", "1a3d814726a65400e0078914176bef4a", "ed247a963605b2f78aa22ca7bbd447a8"),
        (M::Cmac128, "", "1c006546f9e1e2ee2fd609df10c42cea", "1735bf0242a0aeb0da24b33f88fc8f0e"),
        (M::Cmac256, "", "0a079276b6772b1f3370bad7081c03e6", "c6375dc10d72efce0f9de2b3ef8b40fe"),
        (M::Gmac128, NONCE, "4698c218f72e1124255862921bbf9510", "75fee31d7ccd81ee2d2f3dd9ee48a007"),
        (M::Gmac128, SALTED, "4586d6936a1ae301f2a40c5bcb127ee7", "76e0f796e1f973cbfad353103ee54bf0"),
        (M::GmacSiv128, NONCE, "ad19b0c8e24fc9280401f62051145a00", "1a5ee5a195850f2e38fe0b0006c4257c"),
        (M::Poly1305, NONCE, "fb4be9100b55f5ed2caefbebf766e2a8", "b2b3c41910b334c2f4fd646e70d4ae63"),
    ]
};

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn mac_key(algorithm: MacAlgorithm, first: u8) -> MacKey {
    let size = if algorithm.key_sizes().contains(&16) { 16 } else { 32 };
    let octets: Vec<u8> = (first..first + size).collect();
    MacKey::new(algorithm, &octets).unwrap()
}

/// A key for each row of [`PACKETS`]; the second one of GMAC has a salt.
pub(super) fn every_key() -> Vec<SymmetricKey> {
    let rows = PACKETS.iter().zip(FIRST_ID..);
    rows.map(|(&(algorithm, field, ..), id)| {
        let key = SymmetricKey::new(id, mac_key(algorithm, 0));
        if field.ends_with("00000000") { key.with_salt(*b"salt").unwrap() } else { key }
    })
    .collect()
}

pub(super) fn server_with(allowed: Allowed) -> Server {
    Server { symmetric: Some(SymmetricKeys::new(every_key(), allowed, 1).unwrap()), ..Server::new() }
}

pub(super) fn mac_request(key: &SymmetricKey, seed: u64) -> (Exchange, Vec<u8>) {
    let mut request = vec![0; DATAGRAM_SIZE_MAX];
    let (exchange, size) = Exchange::mac(key, &mut Entropy::from_seed(seed), &mut request);
    request.truncate(size);
    (exchange, request)
}

/// A request of any version, with any fields, whose tag of `digest_size` octets is right.
fn tagged(key: &SymmetricKey, version: u8, fields: &[u8], digest_size: usize) -> Vec<u8> {
    let mut octets = [plain_request(), fields.to_vec()].concat();
    octets[0] = version << 3 | 3;
    let nonce = key.algorithm().nonce_size().map(|_| {
        let (mut field, body) = (vec![0; 16], [0xA0; 12]);
        emit_nonce(&mut Writer::new(&mut field), &body).unwrap();
        octets.extend(field);
        body
    });
    let mut digest = vec![0; digest_size];
    let job = Tag {
        key: key.key(),
        nonce: nonce.as_ref().map(<[u8; 12]>::as_slice),
        message: &octets,
        tag: &mut digest,
    };
    run_batch(std::iter::once(job));
    [octets, key.id().to_be_bytes().to_vec(), digest].concat()
}

fn counts(server: &Server, id: u32) -> Counts {
    server.symmetric.as_ref().unwrap().find(id).unwrap().counts()
}

fn assert_is_crypto_nak(response: &[u8], code: ReferenceId) {
    assert_eq!((response.len(), &response[HEADER_SIZE..]), (52, &[0; 4][..]));
    let nak = header(response);
    assert_eq!((nak.mode, nak.leap, nak.stratum), (Mode::Server, Leap::Unsynchronised, 0));
    assert_eq!(nak.reference_id, code);
    assert_eq!((nak.receive, nak.transmit), (nak.origin, nak.origin), "no time of ours");
}

//= rfc5905#7.3-8, rfc5905#7.3-9, rfc5905#9.2-3
#[test]
fn captured_packets_with_digests_of_another_implementation_pass_both_sides() {
    let mut server = server_with(Allowed::ALL);
    for ((_, field, request, response), key) in PACKETS.into_iter().zip(every_key()) {
        let whole = |packet: &str, digest: &str| {
            [hex(packet), hex(field), key.id().to_be_bytes().to_vec(), hex(digest)].concat()
        };
        let request = whole(CAPTURED_REQUEST, request);
        let (answer, outcome) = server.outcome(&request);
        assert_eq!((outcome, answer.len()), (Outcome::Mac, request.len()), "{key:?}");
        assert_eq!(header(&answer).origin, header(&request).transmit);
        let response = whole(CAPTURED_RESPONSE, response);
        let mut exchange = Exchange::mac_waiting_for(header(&response).origin);
        assert_eq!(exchange.receive_mac(&response, &key).unwrap().header, header(&response), "{key:?}");
    }
}

//= rfc8573#3-4
#[test]
fn request_of_ntpsec_with_aes_cmac_is_answered() {
    // NTPsec, tests of its MAC code: a packet off the wire, key 100.
    let octets = hex("0fd2287c1e97a50cb9d3cb9f80debcb6");
    let key = SymmetricKey::new(100, MacKey::new(MacAlgorithm::Cmac128, &octets).unwrap());
    let mut server = Server {
        symmetric: Some(SymmetricKeys::new([key], Allowed::default(), 1).unwrap()),
        ..Server::new()
    };
    let tail = "e6136a712d8c48000000006401c167a4df28f25a4794bf00c8b35469";
    let request = hex(&["e3", &"00".repeat(39), tail].concat());
    assert_eq!(server.outcome(&request).1, Outcome::Mac);
}

//= rfc7822#3-3, rfc8573#3-3, rfc8573#3-4, rfc5905#14-6
#[test]
fn exchange_under_every_algorithm_is_answered_in_as_many_octets() {
    let mut server = server_with(Allowed::ALL);
    for (seed, key) in every_key().iter().enumerate() {
        let (mut exchange, request) = mac_request(key, seed as u64);
        let (response, outcome) = server.outcome(&request);
        assert_eq!(outcome, Outcome::Mac, "{key:?}");
        let digest_size = key.algorithm().tag_size().min(20);
        let nonce_size = if key.algorithm().nonce_size().is_some() { 16 } else { 0 };
        assert_eq!((request.len(), response.len()), (48 + nonce_size + 4 + digest_size, request.len()));
        let answer = exchange.receive_mac(&response, key).unwrap();
        assert_eq!(answer.header.transmit.since(server.now).as_nanos().abs(), 0);
        assert_eq!(exchange.receive_mac(&response, key), Err(Check::Duplicate));
        assert_eq!(counts(&server, key.id()), Counts { answered: 1, ..Counts::default() });
    }
}

#[test]
fn no_flipped_bit_of_a_request_is_given_time() {
    let mut server = server_with(Allowed::ALL);
    for key in &every_key() {
        let (_, request) = mac_request(key, 1);
        let mut outcomes = HashMap::new();
        for bit in 0..request.len() * 8 {
            let mut request = request.clone();
            request[bit / 8] ^= 1 << (bit % 8);
            let (_, outcome) = server.outcome(&request);
            assert!(!matches!(outcome, Outcome::Mac | Outcome::Plain | Outcome::Nts), "{key:?}, bit {bit}");
            *outcomes.entry(outcome).or_insert(0_u64) += 1;
        }
        assert_eq!(counts(&server, key.id()).answered, 0);
        // Versions, modes and, where there is a nonce, the length of its field go wrong before a tag is looked at.
        assert!(outcomes[&Outcome::MacNakTag] > 47 * 8 + 16 * 8, "{key:?}: {outcomes:?}");
        // Some bits of the identifier lead from one key to another.
        assert!((20..=32).contains(&outcomes[&Outcome::MacNakUnknownKey]), "{outcomes:?}");
    }
}

#[test]
fn no_prefix_or_extension_passes_either_side() {
    let mut server = server_with(Allowed::ALL);
    for key in &every_key() {
        let (exchange, request) = mac_request(key, 1);
        let response = server.ask(&request);
        for size in (0..request.len()).chain(request.len() + 1..request.len() + 60) {
            let (mut short, mut answer) = (request.clone(), response.clone());
            short.resize(size, 0);
            answer.resize(size, 0);
            let outcome = server.outcome(&short).1;
            // Without the MAC it is a plain request, and gets what a plain request gets.
            assert!(outcome != Outcome::Mac && (outcome != Outcome::Plain || size == 48), "{key:?}, {size}");
            assert!(exchange.clone().receive_mac(&answer, key).is_err(), "{key:?}, {size} octets");
        }
    }
}

//= rfc5905#9.2-6, rfc8573#3-5, rfc9769#2-11
#[test]
fn unknown_key_and_wrong_tag_get_a_crypto_nak_without_time_that_resets_nothing() {
    let mut server = server_with(Allowed::default());
    let known = &every_key()[7];
    let other = SymmetricKey::new(known.id(), mac_key(known.algorithm(), 99));
    let unknown = SymmetricKey::new(77, mac_key(known.algorithm(), 0));
    for (key, expected, code) in [
        (&other, Outcome::MacNakTag, ReferenceId::CRYP),
        (&unknown, Outcome::MacNakUnknownKey, ReferenceId::NKEY),
    ] {
        let (mut exchange, request) = mac_request(key, 3);
        let (nak, outcome) = server.outcome(&request);
        assert_eq!(outcome, expected);
        assert_is_crypto_nak(&nak, code);
        assert_eq!(exchange.receive_mac(&nak, key), Err(Check::CryptoNak(Some(code))));
        let mut without_code = nak.clone();
        without_code[1] = 3;
        assert_eq!(exchange.receive_mac(&without_code, key), Err(Check::CryptoNak(None)));
        // The exchange still waits, and the genuine answer passes.
        let whole = SymmetricKeys::new(
            [(key.id(), mac_key(key.algorithm(), key.key().expose()[0]))],
            Allowed::default(),
            0,
        );
        let mut genuine = Server { symmetric: Some(whole.unwrap()), ..Server::new() };
        assert!(exchange.receive_mac(&genuine.ask(&request), key).is_ok());
        assert_eq!(server.outcome(&nak).1, Outcome::NotARequest, "a crypto-NAK is not answered");
    }
    assert_eq!(counts(&server, known.id()), Counts { wrong_tags: 1, ..Counts::default() });
}

#[test]
fn server_without_symmetric_keys_knows_no_key() {
    let mut server = Server::new();
    let (nak, outcome) = server.outcome(&mac_request(&every_key()[7], 1).1);
    assert_eq!(outcome, Outcome::MacNakUnknownKey);
    assert_is_crypto_nak(&nak, ReferenceId::NKEY);
    assert_eq!(server.outcome(&[plain_request(), vec![0; 4]].concat()).1, Outcome::NotARequest);
}

//= rfc8573#2-1
#[test]
fn keyed_digests_and_nonces_are_refused_unless_they_are_allowed() {
    let mut server = server_with(Allowed::default());
    for key in &every_key() {
        let (nak, outcome) = server.outcome(&mac_request(key, 1).1);
        match Allowed::default().objection(key.algorithm()) {
            None => assert_eq!(outcome, Outcome::Mac, "{key:?}"),
            Some(_) => {
                assert_eq!(outcome, Outcome::MacNakNotAllowed, "{key:?}");
                assert_is_crypto_nak(&nak, ReferenceId::NKEY);
                assert_eq!(counts(&server, key.id()), Counts { not_allowed: 1, ..Counts::default() });
            }
        }
    }
    assert_eq!(server.symmetric.unwrap().objections().count(), 9);
}

#[test]
fn digests_of_older_versions_may_be_whole_and_are_answered_in_kind() {
    let mut server = server_with(Allowed::ALL);
    for key in every_key().iter().filter(|key| key.algorithm().nonce_size().is_none()) {
        let tag_size = key.algorithm().tag_size();
        for version in 1..=4 {
            for digest_size in (16..=tag_size).step_by(4) {
                let request = tagged(key, version, &[], digest_size);
                let (response, outcome) = server.outcome(&request);
                let good = digest_size == tag_size.min(20) || version < 4 && digest_size == tag_size;
                assert_eq!(outcome == Outcome::Mac, good, "{key:?}, version {version}, {digest_size} octets");
                if good {
                    assert_eq!((response.len(), response[0]), (request.len(), version << 3 | 4));
                    let mut expected = vec![0; digest_size];
                    let message = &response[..HEADER_SIZE];
                    let job = Tag { key: key.key(), nonce: None, message, tag: &mut expected };
                    run_batch(std::iter::once(job));
                    assert_eq!(response[HEADER_SIZE..HEADER_SIZE + 4], key.id().to_be_bytes());
                    assert_eq!(response[HEADER_SIZE + 4..], expected);
                }
            }
        }
    }
}

/// As ntpdig 1.2.2 sends SHA-256 and longer. Its user learns that the server has another idea of it.
#[test]
fn digest_that_is_too_long_for_version_4_gets_a_crypto_nak_and_never_time() {
    let mut server = server_with(Allowed::ALL);
    let small_ids = every_key().into_iter().zip(1..).map(|(key, id)| {
        let octets = MacKey::new(key.algorithm(), key.key().expose()).unwrap();
        SymmetricKey::new(id, octets)
    });
    let small_ids: Vec<SymmetricKey> = small_ids.collect();
    server.symmetric = SymmetricKeys::new(small_ids, Allowed::ALL, 1).ok();
    let symmetric = server.symmetric.take().unwrap();
    let long = [MacAlgorithm::Sha256, MacAlgorithm::Sha384, MacAlgorithm::Sha512];
    let requests: Vec<(u32, Vec<u8>)> = symmetric
        .iter()
        .filter(|key| long.contains(&key.algorithm()))
        .flat_map(|key| {
            let sizes = (24..=key.algorithm().tag_size()).step_by(4);
            sizes.map(|size| (key.id(), tagged(key, 4, &[], size))).collect::<Vec<_>>()
        })
        .collect();
    server.symmetric = Some(symmetric);
    assert_eq!(requests.len(), 3 + 7 + 11);
    for (id, request) in &requests {
        let before = counts(&server, *id).wrong_tags;
        let (response, outcome) = server.outcome(request);
        assert_eq!(outcome, Outcome::MacNakTag, "key {id}, {} octets", request.len());
        assert_is_crypto_nak(&response, ReferenceId::CRYP);
        assert_eq!((counts(&server, *id).wrong_tags, counts(&server, *id).answered), (before + 1, 0));
        assert_eq!(server.outcome(&response).1, Outcome::NotARequest, "no loop");
        let mut unknown = request.clone();
        unknown[HEADER_SIZE + 2] = 0x7F;
        let (response, outcome) = server.outcome(&unknown);
        assert_eq!(outcome, Outcome::MacNakUnknownKey);
        assert_is_crypto_nak(&response, ReferenceId::NKEY);
        // What may be a field that is cut, and MS-SNTP's 72 octets, stay without an answer.
        let mut field = request.clone();
        field[HEADER_SIZE..HEADER_SIZE + 4].copy_from_slice(&[1, 4, 0, 200]);
        assert_eq!(server.outcome(&field).1, Outcome::Malformed);
        let mut ms_sntp = request.clone();
        ms_sntp.resize(HEADER_SIZE + 72, 0);
        assert_eq!(server.outcome(&ms_sntp).1, Outcome::Malformed);
    }
}

#[test]
fn tag_that_needs_a_nonce_is_wrong_without_one() {
    let mut server = server_with(Allowed::ALL);
    for key in every_key().iter().filter(|key| key.algorithm().nonce_size().is_some()) {
        let (_, request) = mac_request(key, 1);
        let without = [&request[..HEADER_SIZE], &request[HEADER_SIZE + 16..]].concat();
        assert_eq!(server.outcome(&without).1, Outcome::MacNakTag, "{key:?}");
        let mut version_3 = without;
        version_3[0] = 0x1B;
        assert_eq!(
            server.outcome(&version_3).1,
            Outcome::MacNakTag,
            "{key:?}: older versions have no fields"
        );
    }
}

#[test]
fn each_tag_has_a_nonce_of_its_own_and_no_salt_is_on_the_wire() {
    let mut server = server_with(Allowed::ALL);
    for key in every_key().iter().filter(|key| key.algorithm().nonce_size().is_some()) {
        let mut seen = Vec::new();
        for seed in 0..20 {
            let (_, request) = mac_request(key, seed);
            let response = server.ask(&request);
            for packet in [request, response] {
                let fields = MacFields::locate(&Packet::parse(&packet).unwrap()).unwrap();
                let body = *fields.nonce_of(&packet).unwrap();
                assert_eq!(body.ends_with(&[0; 4]), key.salt().is_some());
                assert!(!body.windows(4).any(|part| part == b"salt"));
                assert!(!seen.contains(&body));
                seen.push(body);
            }
        }
    }
}

#[test]
fn kiss_for_a_request_with_a_mac_carries_none_and_counts_no_use_of_the_key() {
    let policy = Policy { allow: PrefixSet::new(vec![]), kiss: true, ..Policy::open() };
    let mut server = Server { symmetric: server_with(Allowed::ALL).symmetric, ..Server::with_policy(policy) };
    let key = &every_key()[7];
    let (mut exchange, request) = mac_request(key, 1);
    let (response, outcome) = server.outcome(&request);
    assert_eq!((outcome, response.len()), (Outcome::KissDeny, HEADER_SIZE));
    assert_eq!(exchange.receive_mac(&response, key), Err(Check::Kiss(ReferenceId::DENY)));
    assert_eq!(counts(&server, key.id()), Counts::default());
}

//= rfc8573#3-1
#[test]
fn fields_before_a_mac_are_covered_and_an_identifier_comes_back() {
    let mut server = server_with(Allowed::ALL);
    for key in &every_key()[5..] {
        if key.salt().is_some() {
            continue;
        }
        let size = key.algorithm().tag_size();
        let identifier = field(FieldType::UNIQUE_IDENTIFIER, &[9; 32]);
        let fields = [field(FieldType(0xF001), &[1; 12]), identifier.clone()].concat();
        let request = tagged(key, 4, &fields, size);
        let (response, outcome) = server.outcome(&request);
        assert_eq!((outcome, response.len()), (Outcome::Mac, request.len() - 16), "{key:?}");
        assert_eq!(response[HEADER_SIZE..HEADER_SIZE + 36], identifier);
        let mut changed = request;
        changed[HEADER_SIZE + 8] ^= 1;
        assert_eq!(server.outcome(&changed).1, Outcome::MacNakTag);
    }
}

//= rfc7822#3-4
#[test]
fn mac_and_nts_are_not_combined() {
    let mut server = server_with(Allowed::ALL);
    let key = &every_key()[7];
    let mut session = server.session(Algorithm::SivCmac256, 1);
    let (_, request) = nts_request(&mut session);
    for fields in [&request[HEADER_SIZE..], &field(FieldType::NTS_COOKIE, &[1; 96])] {
        assert_eq!(server.outcome(&tagged(key, 4, fields, 16)).1, Outcome::NtsMalformed);
    }
}

#[test]
fn requests_for_an_ms_sntp_signature_get_no_answer() {
    let mut server = server_with(Allowed::ALL);
    let mut request = [plain_request(), vec![0x64, 0, 0, 1], vec![0; 16]].concat();
    request[0] = 0x1B;
    assert_eq!(server.outcome(&request).1, Outcome::MsSntp);
    request.resize(HEADER_SIZE + 72, 0);
    assert_eq!(server.outcome(&request).1, Outcome::Malformed);
}

#[test]
fn symmetric_peers_with_a_key_are_answered() {
    let mut server = server_with(Allowed::ALL);
    let key = &every_key()[7];
    let mut request = plain_request();
    request[0] = 0x21;
    let mut digest = [0; 16];
    run_batch(std::iter::once(Tag { key: key.key(), nonce: None, message: &request, tag: &mut digest }));
    let request = [&request[..], &key.id().to_be_bytes(), &digest].concat();
    let (response, outcome) = server.outcome(&request);
    assert_eq!((outcome, response.len(), response[0]), (Outcome::Mac, 68, 0x22));
}

#[test]
fn batch_of_plain_nts_and_mac_is_answered_as_one_by_one() {
    let mut server = server_with(Allowed { keyed_digests: true, nonces: false });
    let keys = every_key();
    let mut exchanges = Vec::new();
    let requests: Vec<Vec<u8>> = (0..BATCH_SIZE)
        .map(|index| {
            let (exchange, mut request) = mac_request(&keys[index / 4 % keys.len()], index as u64);
            exchanges.push(exchange);
            match index % 4 {
                0 => plain_request(),
                1 => nts_request(&mut server.session(Algorithm::ALL[index / 16], 1 + index % 8)).1,
                2 => request,
                _ if index % 8 == 3 => {
                    *request.last_mut().unwrap() ^= 1;
                    request
                }
                _ => request,
            }
        })
        .collect();
    let together = server.ask_all(&requests);
    let both = *server.responder.outcomes();
    for (index, ((request, together), mut exchange)) in
        requests.iter().zip(&together).zip(exchanges).enumerate()
    {
        let alone = server.ask(request);
        assert_eq!(together.len(), alone.len());
        let shown = together.len().min(HEADER_SIZE - 16);
        assert_eq!(together[..shown], alone[..shown]);
        let key = &keys[index / 4 % keys.len()];
        let good = index % 4 > 1 && index % 8 != 3 && key.algorithm().nonce_size().is_none();
        assert_eq!(exchange.receive_mac(together, key).is_ok(), good, "{index}");
    }
    for outcome in Outcome::ALL {
        assert_eq!(server.responder.outcomes().of(*outcome), 2 * both.of(*outcome), "{outcome:?}");
    }
    let seen = [Outcome::Plain, Outcome::Nts, Outcome::Mac, Outcome::MacNakTag, Outcome::MacNakNotAllowed];
    assert!(seen.iter().all(|&outcome| both.of(outcome) > 3), "{both:?}");
}

proptest! {
    #[test]
    fn nothing_with_a_mac_is_amplified(
        version in 1..=4u8,
        mode in 0..8u8,
        key in 0..PACKETS.len(),
        kinds in proptest::collection::vec((0..5usize, 3..20usize), 0..5),
        digest_words in 4..=16usize,
        damage in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut server = server_with(Allowed::ALL);
        let keys = every_key();
        let kinds = kinds.into_iter().map(|(kind, words)| {
            let kind = [0xF001, 0x0104, 0xFB01, 0x0304, 0x0204][kind];
            field(FieldType(kind), &vec![1; 4 * words])
        });
        let fields = kinds.collect::<Vec<_>>().concat();
        let digest_size = (4 * digest_words).min(keys[key].algorithm().tag_size());
        let mut request = tagged(&keys[key], version, &fields, digest_size);
        request[0] = request[0] & !7 | mode;
        if let Some((place, octet)) = damage {
            let place = place.index(request.len());
            request[place] = octet;
        }
        // `ask` asserts that responses are not larger and that every datagram is counted.
        let response = server.ask(&request);
        prop_assert!(response.is_empty() || response.len() >= HEADER_SIZE);
    }
}
