//! Messages of the key exchange: what is read, what is refused, and what is written.

use super::*;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const MINIMAL: [u8; 16] = *b"\x80\x01\0\x02\0\0\x80\x04\0\x02\0\x0f\x80\0\0\0";
const CHRONY: [u8; 22] = *b"\x80\x01\0\x02\0\0\x80\x04\0\x04\0\x1e\0\x0f\x04\0\0\0\x80\0\0\0";

fn message(records: &[(bool, u16, &[u8])]) -> Vec<u8> {
    let mut octets = vec![0; 8192];
    let mut out = Writer::new(&mut octets);
    for &(critical, kind, body) in records {
        emit(&mut out, critical, RecordType(kind), body).unwrap();
    }
    let size = out.offset();
    octets.truncate(size);
    octets
}

fn refused(records: &[(bool, u16, &[u8])]) -> Reason {
    Request::parse(&message(records)).expect_err("must not parse").reason
}

//= rfc8915#4-5, rfc8915#4-6
#[test]
fn minimal_request_of_the_rfc_parses() {
    let request = Request::parse(&MINIMAL).unwrap();
    assert_eq!(request.protocols.iter().collect::<Vec<_>>(), [PROTOCOL_NTPV4]);
    assert_eq!(request.aeads.iter().collect::<Vec<_>>(), [15]);
    assert!(!request.compliant_128gcm);
}

//= rfc8915#4.1.2-4, rfc8915#4.1.5-2, rfc8915#4-5, rfc8915#4.1.1-2, rfc8915#4.1.2-2
#[test]
fn our_request_equals_the_minimal_one_and_chrony_s() {
    let mut octets = [0; 22];
    let mut out = Writer::new(&mut octets);
    Request::emit(&mut out, &[AeadId::SIV_CMAC_256]).unwrap();
    assert_eq!((out.offset(), &octets[..16]), (16, &MINIMAL[..]));
    Request::emit(&mut Writer::new(&mut octets), &[AeadId::AES_128_GCM_SIV, AeadId::SIV_CMAC_256]).unwrap();
    assert_eq!(octets, CHRONY);
    assert!(Request::parse(&CHRONY).unwrap().compliant_128gcm);
}

//= rfc8915#4-7
#[test]
fn message_is_complete_only_with_its_last_octet() {
    for size in 0..CHRONY.len() {
        assert_eq!(message_size(&CHRONY[..size]), None, "{size}");
        assert!(Request::parse(&CHRONY[..size]).is_err());
    }
    assert_eq!(message_size(&[&CHRONY[..], &[9]].concat()), Some(CHRONY.len()));
}

//= rfc8915#4-6, rfc8915#4-10, rfc8915#4-11, rfc8915#4.1.1-1, rfc8915#4.1.1-2, rfc8915#4.1.2-1
//= rfc8915#4.1.2-2, rfc8915#4.1.3-2, rfc8915#4.1.4-1, rfc8915#4.1.5-1, rfc8915#4.1.6-2
#[test]
fn each_rule_of_section_4_1_is_enforced() {
    let (protocol, aead, end) = ((true, 1, &[0u8, 0][..]), (true, 4, &[0u8, 15][..]), (true, 0, &[][..]));
    assert_eq!(refused(&[protocol, end]), Reason::Missing);
    assert_eq!(refused(&[aead, end]), Reason::Missing);
    assert_eq!(refused(&[protocol, protocol, aead, end]), Reason::Duplicate);
    assert_eq!(refused(&[protocol, aead, aead, end]), Reason::Duplicate);
    assert_eq!(refused(&[(false, 1, &[0, 0]), aead, end]), Reason::NotCritical);
    assert_eq!(refused(&[protocol, aead, (false, 0, &[])]), Reason::NotCritical);
    assert_eq!(refused(&[protocol, aead, (true, 0, &[1])]), Reason::Value);
    assert_eq!(refused(&[protocol, aead, end, end]), Reason::TooLong);
    assert_eq!(refused(&[(true, 1, &[0]), aead, end]), Reason::InnerLength);
    assert_eq!(refused(&[protocol, aead, (true, 77, &[]), end]), Reason::UnknownCritical);
    for kind in [2, 3, 5] {
        assert_eq!(refused(&[protocol, aead, (true, kind, &[0, 0]), end]), Reason::WrongDirection);
    }
    assert!(Request::parse(&message(&[protocol, aead, (false, 77, &[1]), end])).is_ok());
    assert!(Request::parse(&message(&[(true, 1, &[0x80, 1]), end])).is_ok());
}

//= rfc8915#4.1.3-4, rfc8915#4.1.3-5
#[test]
fn unknown_critical_record_is_error_0_and_the_rest_error_1() {
    let unknown = Malformed::new(Reason::UnknownCritical, 0);
    assert_eq!(ErrorCode::from(unknown), ErrorCode::UNRECOGNISED_CRITICAL);
    assert_eq!(ErrorCode::from(Malformed::new(Reason::Missing, 0)), ErrorCode::BAD_REQUEST);
}

//= rfc8915#4.1.5-3, rfc8915#4.1.6-1, rfc8915#4.1.8-2
#[test]
fn response_yields_what_the_server_chose() {
    let cookie = [7; 100];
    let octets = message(&[
        (true, 1, &[0, 0]),
        (true, 4, &[0, 15]),
        (false, 5, &cookie),
        (false, 5, &[]),
        (false, 5, &[0; COOKIE_SIZE_MAX + 1]),
        (true, 6, b"time.example"),
        (true, 7, &[0x10, 0x1b]),
        (true, 0, &[]),
    ]);
    let Ok(Response::Agreed(agreement)) = Response::parse(&octets, &[AeadId::SIV_CMAC_256]) else {
        panic!("not agreed")
    };
    assert_eq!((agreement.server, agreement.port), (Some("time.example"), Some(4123)));
    assert_eq!(agreement.cookies().collect::<Vec<_>>(), [&cookie]);
    assert_eq!(
        Response::parse(&octets, &[AeadId::SIV_CMAC_512]).unwrap_err().reason,
        Reason::Value,
        "an algorithm that was not offered"
    );
}

//= rfc8915#4.1.3-3, rfc8915#4.1.4-2, rfc8915#4.1.5-3, rfc8915#4.1.7-1
#[test]
fn response_without_agreement_says_why() {
    let offered = [AeadId::SIV_CMAC_256];
    let end = (true, 0, &[][..]);
    let parse = |records: &[(bool, u16, &[u8])]| match Response::parse(&message(records), &offered) {
        Ok(Response::Agreed(_)) => panic!("agreed"),
        Ok(Response::Error(code)) => Ok(Response::Error(code)),
        Ok(Response::Warning(code)) => Ok(Response::Warning(code)),
        Ok(Response::NoProtocol) => Ok(Response::NoProtocol),
        Ok(Response::NoAead) => Ok(Response::NoAead),
        Err(malformed) => Err(malformed.reason),
    };
    assert_eq!(parse(&[(true, 2, &[0, 1]), end]), Ok(Response::Error(ErrorCode::BAD_REQUEST)));
    assert_eq!(parse(&[(true, 3, &[0, 9]), end]), Ok(Response::Warning(9)));
    assert_eq!(parse(&[(true, 1, &[]), end]), Ok(Response::NoProtocol));
    assert_eq!(parse(&[(true, 1, &[0, 0]), (true, 4, &[]), end]), Ok(Response::NoAead));
    assert_eq!(parse(&[(true, 1, &[0, 0]), (true, 4, &[0, 15]), end]), Err(Reason::Missing));
    assert_eq!(parse(&[(true, 1, &[0, 0]), (true, 4, &[0, 15, 0, 15]), end]), Err(Reason::Value));
    assert_eq!(parse(&[(true, 6, b"a b"), end]), Err(Reason::Value));
    assert_eq!(parse(&[(true, 7, &[0, 0]), end]), Err(Reason::Value));
}

//= rfc8915#4-10, rfc8915#4-11
#[test]
fn response_with_unknown_records_is_read_unless_one_is_critical() {
    let parse = |critical| {
        let octets = message(&[
            (true, 1, &[0, 0]),
            (true, 4, &[0, 15]),
            (critical, 77, &[1]),
            (false, 5, &[7; 96]),
            (true, 0, &[]),
        ]);
        Response::parse(&octets, &[AeadId::SIV_CMAC_256]).map(|response| match response {
            Response::Agreed(agreement) => agreement.cookies().count(),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(parse(false), Ok(1));
    assert_eq!(parse(true).unwrap_err().reason, Reason::UnknownCritical);
}

proptest! {
    #[test]
    fn no_octets_panic(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Request::parse(&octets);
        let _ = Response::parse(&octets, &[AeadId::SIV_CMAC_256]);
        if let Some(size) = message_size(&octets) { prop_assert!(size <= octets.len()); }
    }

    #[test]
    fn a_message_that_parses_is_complete(octets in proptest::collection::vec(any::<u8>(), 0..64)) {
        if Request::parse(&octets).is_ok() {
            prop_assert_eq!(message_size(&octets), Some(octets.len()));
        }
    }
}
