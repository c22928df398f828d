//! Octets of each message against views of it, and what is refused.

use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

mod refusals;

use super::*;
use crate::header::{Header, Mode};
use crate::limits::{
    ANTP_CHAIN_SIZE_MAX, ANTP_PAYLOAD_SIZE_DEFAULT, ANTP_PAYLOAD_SIZE_MAX, HEADER_SIZE, LAST_FIELD_SIZE_MIN,
};
use crate::packet::Packet;
use crate::time::NtpTime;

const N: [u8; 32] = [0x11; 32];
const H: [u8; 32] = [0x22; 32];
const C1: [u8; C1_SIZE] = [0xC1; C1_SIZE];
const C2: [u8; C2_SIZE] = [0xC2; C2_SIZE];
const TAU: [u8; 32] = [0x7A; 32];
const R: [u8; 16] = [0x66; 16];

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}

fn times(octet: &str, count: usize) -> String {
    octet.repeat(count)
}

/// What `build` writes behind a header.
fn packet(build: impl FnOnce(&mut Writer<'_>) -> Result<(), NoRoom>) -> Vec<u8> {
    let mut octets = vec![0xEE; 4096];
    let mut header = [0; HEADER_SIZE];
    Header::minimal_request(NtpTime::from_bits(1)).emit(&mut header);
    let mut out = Writer::new(&mut octets);
    out.put(&header).unwrap();
    build(&mut out).unwrap();
    let size = out.offset();
    octets.truncate(size);
    octets
}

fn locate(octets: &[u8]) -> Result<Option<Antp<'_>>, Malformed> {
    Antp::locate(&Packet::parse(octets)?)
}

fn message(octets: &[u8]) -> Message<'_> {
    locate(octets).unwrap().unwrap().message
}

fn request(suites: &[Suite]) -> NegotiationRequest<'static> {
    NegotiationRequest {
        suites: SuiteList::new(suites).unwrap(),
        nonce: &N,
        held: &H,
        chain_offset: 0x0304,
        payload_size_max: 1072,
    }
}

fn response() -> NegotiationResponse<'static> {
    NegotiationResponse {
        suite: Suite::P256,
        suites: Suites::default().with(Suite::RSA_PKCS1).with(Suite::P256),
        chain_size: 950,
        chunk_offset: 884,
        chain_hash: &H,
        state: &C1,
    }
}

/// Every message, with its field as the specification draws it.
fn fixtures() -> Vec<(Message<'static>, String)> {
    let (n, h, tau) = (times("11", 32), times("22", 32), times("7a", 32));
    let (c1, c2) = (times("c1", 72), times("c2", 60));
    static POINT: [u8; 65] = [0x04; 65];
    static X: [u8; 32] = [0x09; 32];
    static RSA: [u8; 256] = [0x52; 256];
    let key = |suite, ciphertext| Message::KeyRequest(KeyRequest { suite, state: &C1, ciphertext });
    let time = |wants_fresh, wants_early| {
        Message::TimeRequest(TimeRequest {
            suite: Suite::P256,
            wants_fresh,
            wants_early,
            nonce: &N,
            state: &C2,
        })
    };
    let answer = |fresh| Message::TimeResponse {
        early: None,
        response: TimeResponse { suite: Suite::P256, fresh, tag: &TAU },
    };
    let early = Early { suite: Suite::P256, random: &R };
    let early_hex = format!("fa07001c 414e5450 0100 0002 {}", times("66", 16));
    vec![
        (
            Message::NegotiationRequest(request(&[Suite::P256])),
            format!("fa010054 414e5450 0100 0001 0002 0000 {n} {h} 0304 0430"),
        ),
        (
            Message::NegotiationRequest(request(&[Suite::P256, Suite::RSA_PKCS1])),
            format!("fa010054 414e5450 0100 0002 0002 0001 {n} {h} 0304 0430"),
        ),
        (
            Message::NegotiationRequest(request(&[Suite::X25519, Suite::P256, Suite::RSA_OAEP])),
            format!("fa010058 414e5450 0100 0003 0102 0002 0101 0000 {n} {h} 0304 0430"),
        ),
        (
            Message::NegotiationResponse(response(), None),
            format!("fa020080 414e5450 0100 0002 00000003 03b6 0374 {h} 0048 0000 {c1}"),
        ),
        (
            key(Suite::P256, &POINT),
            format!("fa03009c 414e5450 0100 0002 {c1} 0041 0000 {} 000000", times("04", 65)),
        ),
        (
            key(Suite::RSA_PKCS1, &RSA),
            format!("fa030158 414e5450 0100 0001 {c1} 0100 0000 {}", times("52", 256)),
        ),
        (key(Suite::X25519, &X), format!("fa030078 414e5450 0100 0102 {c1} 0020 0000 {}", times("09", 32))),
        (
            Message::KeyResponse(KeyResponse {
                suite: Suite::RSA_PKCS1,
                state: &C2,
                lifetime_seconds: 604_800,
                tag: &TAU,
            }),
            format!("fa040070 414e5450 0100 0001 003c 0000 {c2} 00093a80 {tau}"),
        ),
        (time(false, false), format!("fa050068 414e5450 0100 0002 {n} {c2}")),
        (time(true, false), format!("fa050068 414e5450 0101 0002 {n} {c2}")),
        (time(true, true), format!("fa050068 414e5450 0103 0002 {n} {c2}")),
        (answer(None), format!("fa06002c 414e5450 0100 0002 {tau}")),
        (answer(Some(&C2)), format!("fa060068 414e5450 0101 0002 {c2} {tau}")),
        (Message::Early(early), early_hex.clone()),
        (
            Message::TimeResponse {
                early: Some(early),
                response: TimeResponse { suite: Suite::P256, fresh: None, tag: &TAU },
            },
            format!("{early_hex} fa06002c 414e5450 0100 0002 {tau}"),
        ),
        (
            Message::Error(ErrorMessage { code: ErrorCode::EXPIRED }),
            format!("fa090028 414e5450 0100 0000 0003 0000 {}", times("00", 24)),
        ),
    ]
}

//= antp#messages-2
#[test]
fn every_message_is_written_and_read_as_drawn() {
    for (message, hex) in fixtures() {
        let whole = packet(|out| message.emit(out));
        assert_eq!(whole[HEADER_SIZE..], octets(&hex), "{message:?}");
        assert_eq!(locate(&whole).unwrap().unwrap().message, message);
        let found = locate(&whole).unwrap().unwrap();
        let field = found.field(&whole);
        assert!(field.len() >= LAST_FIELD_SIZE_MIN);
        assert_eq!(
            usize::from(u16::from_be_bytes([field[2], field[3]])),
            field.len(),
            "it is the last field"
        );
    }
}

#[test]
fn writers_say_that_there_is_no_room_and_never_panic() {
    for (message, hex) in fixtures() {
        let size = octets(&hex).len();
        for room in 0..size {
            let mut buffer = vec![0; room];
            assert_eq!(message.emit(&mut Writer::new(&mut buffer)), Err(NoRoom), "{message:?} {room}");
        }
        assert_eq!(message.emit(&mut Writer::new(&mut vec![0; size])), Ok(()));
    }
}

#[test]
fn sizes_of_datagrams_are_those_of_the_specification() {
    let p256 = KeyRequest::field_size(65);
    let rsa = KeyRequest::field_size(256);
    let sizes = [
        (NegotiationRequest::field_size(2), 84),
        (NegotiationRequest::field_size(3), 88),
        (negotiation_response_size(None) - HEADER_SIZE, 128),
        (negotiation_response_size(Some(884)), 1072),
        (p256, 156),
        (rsa, 344),
        (KeyResponse::FIELD_SIZE, 112),
        (TimeRequest::FIELD_SIZE, 104),
        (TimeResponse::field_size(false), 44),
        (TimeResponse::field_size(true), 104),
        (Early::FIELD_SIZE, 28),
        (ErrorMessage::FIELD_SIZE, 40),
    ];
    for (size, expected) in sizes {
        assert_eq!(size, expected);
    }
    assert_eq!(chunk_size_max(ANTP_PAYLOAD_SIZE_DEFAULT), Some(884));
    assert_eq!(chunk_size_max(ANTP_PAYLOAD_SIZE_MAX), Some(1044));
}

#[test]
fn response_of_any_room_is_no_larger_than_it() {
    for room in 0..=2048 {
        match chunk_size_max(room) {
            Some(chunk) => {
                let size = negotiation_response_size(Some(chunk));
                assert!(chunk > 0 && size <= room && size <= ANTP_PAYLOAD_SIZE_MAX, "{room}");
                let is_capped = room >= ANTP_PAYLOAD_SIZE_MAX;
                assert!(is_capped || size + 4 > room, "{room}: a longer chunk would fit");
                // A shorter chunk gives no larger packet.
                assert!((0..=chunk).all(|shorter| negotiation_response_size(Some(shorter)) <= size));
            }
            None => assert!(room < negotiation_response_size(Some(4)), "{room}"),
        }
    }
    // The fixed answers of the other phases, against the smallest requests.
    let smallest = Suite::ALL.iter().filter_map(|suite| suite.ciphertext_size()).min().unwrap();
    assert!(KeyResponse::FIELD_SIZE <= KeyRequest::field_size(smallest));
    assert!(TimeResponse::field_size(true) <= TimeRequest::FIELD_SIZE);
    assert!(ErrorMessage::FIELD_SIZE <= NegotiationRequest::field_size(1));
}

#[test]
fn chunk_comes_before_its_message_and_loses_its_padding() {
    let chunk = [0x30; 66];
    let whole = packet(|out| {
        emit_padding(out, 20)?;
        emit_chunk(out, Suite::P256, &chunk)?;
        response().emit(out)
    });
    let found = locate(&whole).unwrap().unwrap();
    let Message::NegotiationResponse(read, Some(read_chunk)) = found.message else { panic!() };
    assert_eq!((read, found.padding_size), (response(), 20));
    assert_eq!(read_chunk, Chunk { offset: 884, octets: &chunk });
}

//= antp#carrier-7
#[test]
fn foreign_fields_and_foreign_magic_are_passed_over() {
    let whole = packet(|out| {
        crate::extension::emit(out, FieldType(0x0104), &[5; 32])?;
        crate::extension::emit(out, PAD, &[0; 12])?;
        crate::extension::emit(out, TS_RSP, b"antp\x01\0\0\x02 somebody else's")?;
        fixtures()[0].0.emit(out)
    });
    assert_eq!(message(&whole), fixtures()[0].0);
    let none = packet(|out| crate::extension::emit(out, NEG_REQ, b"NTPA\x01\0\0\x02 somebody else's"));
    assert_eq!(locate(&none), Ok(None));
    assert_eq!(locate(&packet(|_| Ok(()))), Ok(None));
}

#[test]
fn suites_without_a_bit_leave_a_set_as_it_is() {
    let set = Suites(0x8000_0000).with(Suite(7)).with(Suite::X25519);
    assert_eq!(set, Suites(0x8000_0008));
    assert!(set.contains(Suite::X25519) && !set.contains(Suite(7)) && !set.contains(Suite::P256));
    for (index, suite) in Suite::ALL.into_iter().enumerate() {
        assert_eq!(Suites::default().with(suite).0, 1 << index);
    }
}

//= antp#messages-3
#[test]
fn chain_is_one_to_eight_certificates_that_fill_it() {
    let list: [&[u8]; 3] = [&[1; 485], &[2; 458], &[3; 1]];
    let mut buffer = vec![0; chain_size(&list)];
    emit_chain(&mut Writer::new(&mut buffer), &list).unwrap();
    let chain = Chain::parse(&buffer).unwrap();
    assert_eq!(chain.certificates().collect::<Vec<_>>(), list);
    for cut in 0..buffer.len() {
        let is_boundary = cut == 487 || cut == 487 + 460;
        assert_eq!(Chain::parse(&buffer[..cut]).is_ok(), is_boundary, "{cut}");
    }
    assert_eq!(Chain::parse(&[0, 0]).unwrap_err().reason, Reason::Value);
    assert_eq!(Chain::parse(&[0, 1, 5].repeat(8)).unwrap().certificates().count(), 8);
    assert_eq!(Chain::parse(&[0, 1, 5].repeat(9)).unwrap_err().reason, Reason::TooLong);
    let mut long = vec![0; ANTP_CHAIN_SIZE_MAX + 1];
    long[..2].copy_from_slice(&(ANTP_CHAIN_SIZE_MAX as u16 - 1).to_be_bytes());
    assert_eq!(Chain::parse(&long).unwrap_err().reason, Reason::TooLong);
    assert_eq!(emit_chain(&mut Writer::new(&mut vec![0; 70_000]), &[vec![0; 65_536]]), Err(NoRoom));
}

#[test]
fn every_prefix_of_a_packet_is_judged_without_panic_and_none_is_the_message() {
    for (message, _) in fixtures() {
        let whole = packet(|out| {
            emit_padding(out, 16)?;
            message.emit(out)
        });
        for cut in 0..whole.len() {
            if let Ok(Some(found)) = locate(&whole[..cut]) {
                assert!(
                    matches!((found.message, message), (Message::Early(_), Message::TimeResponse { .. })),
                    "an early packet is all that a follow-up begins with: {message:?} {cut}"
                );
            }
        }
    }
}

#[test]
fn every_bit_of_a_field_changes_what_is_read_but_for_reserved_ones() {
    for (message, _) in fixtures() {
        let whole = packet(|out| message.emit(out));
        let mut unseen = Vec::new();
        for bit in HEADER_SIZE * 8..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            if locate(&changed) == locate(&whole) {
                unseen.push(bit / 8 - HEADER_SIZE);
            }
        }
        // Flags, unused slots, reserved words and the padding of a ciphertext; transcripts cover them.
        let is_reserved = |at: usize| whole[HEADER_SIZE + at] == 0 || at == 9;
        assert!(unseen.into_iter().all(is_reserved), "{message:?}");
    }
}

proptest! {
    #[test]
    fn any_negotiation_request_survives_a_round_trip(
        list in prop::collection::vec(any::<u16>(), 1..=8),
        nonce: [u8; 32],
        held: [u8; 32],
        chain_offset: u16,
        payload_size_max: u16,
        padding in 0usize..200,
    ) {
        let list: Vec<Suite> = list.into_iter().map(Suite).collect();
        let suites = SuiteList::new(&list).unwrap();
        let sent = NegotiationRequest { suites, nonce: &nonce, held: &held, chain_offset, payload_size_max };
        let padding = if padding < 4 { 0 } else { padding * 4 };
        let whole = packet(|out| { emit_padding(out, padding)?; sent.emit(out) });
        let found = locate(&whole).unwrap().unwrap();
        prop_assert_eq!(found.message, Message::NegotiationRequest(sent));
        prop_assert_eq!(found.padding_size, padding);
    }

    #[test]
    fn any_negotiation_response_survives_a_round_trip(
        suite: u16,
        suites: u32,
        sizes in (0..=ANTP_CHAIN_SIZE_MAX as u16).prop_flat_map(|size| (Just(size), 0..=size)),
        chunk in prop::collection::vec(any::<u8>(), 0..=1044),
    ) {
        let (chain_size, chunk_offset) = sizes;
        let sent = NegotiationResponse {
            suite: Suite(suite), suites: Suites(suites), chain_size, chunk_offset, chain_hash: &H, state: &C1,
        };
        let left = usize::from(chain_size - chunk_offset);
        let chunk = &chunk[..chunk.len().min(left)];
        // Shorter chunks than the rest of the chain fill their field.
        let chunk = if chunk.len() < left { &chunk[..chunk.len() / 4 * 4] } else { chunk };
        prop_assume!(chunk.len() >= 4);
        let whole = packet(|out| { emit_chunk(out, sent.suite, chunk)?; sent.emit(out) });
        prop_assert_eq!(whole.len(), negotiation_response_size(Some(chunk.len())));
        let read = Chunk { offset: chunk_offset, octets: chunk };
        prop_assert_eq!(message(&whole), Message::NegotiationResponse(sent, Some(read)));
    }

    #[test]
    fn any_octets_behind_a_prefix_are_judged_without_panic(
        kind in 0xFA00u16..0xFA11,
        body in prop::collection::vec(any::<u8>(), 16..400),
    ) {
        let mut body = body;
        let prefix = [b'A', b'N', b'T', b'P', 1, body[5] & 3, 0, body[7] & 3];
        body[..8].copy_from_slice(&prefix);
        let whole = packet(|out| crate::extension::emit(out, FieldType(kind), &body));
        if let Ok(Some(found)) = locate(&whole) {
            let again = packet(|out| found.message.emit(out));
            prop_assert_eq!(message(&again), found.message);
        }
    }
}

#[test]
fn header_of_a_request_is_left_to_the_header() {
    // An ANTP message says nothing about its mode: a server looks at the header first.
    let mut whole = packet(|out| fixtures()[0].0.emit(out));
    whole[0] = 4 << 3 | Mode::Server.to_bits();
    assert!(matches!(message(&whole), Message::NegotiationRequest(_)));
}

/// Every octet of header and field changed in some ways, and every size.
#[test]
fn time_request_alone_is_what_the_search_of_all_fields_finds() {
    let sent =
        TimeRequest { suite: Suite::P256, wants_fresh: true, wants_early: false, nonce: &N, state: &C2 };
    let whole = packet(|out| sent.emit(out));
    assert_eq!(TimeRequest::alone(&whole), Some(sent));
    let mut seen = [0, 0];
    for (at, change) in (0..whole.len()).flat_map(|at| [1, 2, 8, 0x80, 0xFF].map(|change| (at, change))) {
        let mut changed = whole.clone();
        changed[at] ^= change;
        let found = locate(&changed).ok().flatten().map(|found| found.message);
        assert_eq!(TimeRequest::alone(&changed).map(Message::TimeRequest), found, "{at} {change}");
        seen[usize::from(found.is_some())] += 1;
    }
    assert!(seen[0] > 30 && seen[1] > 500, "{seen:?}");
    for size in 0..whole.len() {
        assert_eq!(TimeRequest::alone(&whole[..size]), None, "{size}");
    }
    let padded = packet(|out| emit_padding(out, 28).and_then(|()| sent.emit(out)));
    assert_eq!((TimeRequest::alone(&padded), message(&padded)), (None, Message::TimeRequest(sent)));
}
