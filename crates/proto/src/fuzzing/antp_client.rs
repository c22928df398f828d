//! Responses to a client of ANTP: octets that nobody tagged, and the same behind a tag that is right, as a server that
//! the client trusts might send them.

use std::sync::OnceLock;

use authentick_crypto::Entropy;
use authentick_crypto::kem::{Kem, PrivateKey, PublicKey, SessionKey};
use authentick_wire::Writer;
use authentick_wire::antp::{
    Antp, C2_SIZE, Early, HASH_SIZE, KeyResponse, Message, Suite, TAG_SIZE, TimeResponse,
};
use authentick_wire::limits::{DATAGRAM_SIZE_MAX, FIELD_HEADER_SIZE, HEADER_SIZE};
use authentick_wire::packet::Packet;
use authentick_wire::time::{NtpSpan, NtpTime};

use super::{AntpServer, CLIENT, NOW, P256_SPKI_OF_ONE, pkcs8_of_one};
use crate::antp::client::{
    Bounds, Event, KeyExchange, Negotiation, Offer, Progress, SeparateTag, Session, Wanted,
};
use crate::antp::state::Pending;
use crate::antp::{seconds, transcript};

const C2: [u8; C2_SIZE] = [2; C2_SIZE];

/// Any octets as the answer to each request of an ANTP client: without the right tag none of them gives it a key or
/// time. Behind a right tag they give what stands in them, and time only within every bound.
pub fn antp_response(octets: &[u8]) {
    forged(octets);
    confirmed(octets);
    for separate in [None, Some(SeparateTag::Ipv4)] {
        tagged(octets, separate);
    }
}

/// `octets` past the origin check, which a fuzzer cannot guess: as the answer to the request with this token.
fn aimed(octets: &[u8], token: NtpTime) -> Vec<u8> {
    let mut response = octets.to_vec();
    if let Some(header) = response.first_chunk_mut::<HEADER_SIZE>() {
        header[24..32].copy_from_slice(&token.to_bits().to_be_bytes());
    }
    response
}

fn forged(octets: &[u8]) {
    let mut entropy = Entropy::from_seed(6);
    let mut request = [0; DATAGRAM_SIZE_MAX];
    let mut negotiation = Negotiation::new(Offer::p256());
    negotiation.request(&mut entropy, &mut request);
    let token =
        NtpTime::from_bits(u64::from_be_bytes(*request[40..].first_chunk().expect("it has a header")));
    let _ = negotiation.receive(&aimed(octets, token));
    let mut exchange = agreement().exchange.clone();
    assert!(exchange.receive(&aimed(octets, exchange.token())).is_err(), "a forged m4 passed");
    let mut session = Session::new(Suite::P256, SessionKey::new([1; 16]), C2, 1000);
    for separate in [None, Some(SeparateTag::Ipv4)] {
        let wanted = Wanted { fresh: true, separate };
        let (mut time, _) = session.ask(wanted, Bounds::WAN, NOW, &mut entropy, &mut request);
        let end = time.receive(&aimed(octets, time.token()), NOW, &mut session);
        assert!(!matches!(end, Ok(Event::Accepted(_))), "a forged m6 passed");
    }
    assert_eq!(session.state(), &C2, "forged state was kept");
}

/// A key exchange that waits for its m4, and what its server knows.
struct Agreement {
    exchange: KeyExchange,
    /// The field of m3.
    field: Vec<u8>,
    h1: [u8; HASH_SIZE],
    key: SessionKey,
}

/// The same for every input: public-key work is dear.
fn agreement() -> &'static Agreement {
    const KNOWN: &str = "a server that is known agrees";
    static AGREEMENT: OnceLock<Agreement> = OnceLock::new();
    AGREEMENT.get_or_init(|| {
        let (server, mut entropy) = (AntpServer::new(), Entropy::from_seed(6));
        let mut negotiation = Negotiation::new(Offer::p256());
        let mut out = [0; DATAGRAM_SIZE_MAX];
        let size = negotiation.request(&mut entropy, &mut out);
        let Ok(Progress::Done(negotiated)) = negotiation.receive(&server.answer(&out[..size])) else {
            panic!("{KNOWN}")
        };
        let public = PublicKey::from_spki(Kem::P256, &P256_SPKI_OF_ONE).expect(KNOWN);
        let (exchange, size) = negotiated.exchange(&public, &mut entropy, &mut out).expect(KNOWN);
        let packet = Packet::parse(&out[..size]).expect(KNOWN);
        let found = Antp::locate(&packet).expect(KNOWN).expect(KNOWN);
        let Message::KeyRequest(asked) = found.message else { panic!("{KNOWN}") };
        let source = server.service.source_prefix(CLIENT.ip());
        let pending = Pending::open(&server.keys, asked.state, &source, seconds(NOW)).expect(KNOWN);
        let private = PrivateKey::from_pkcs8(Kem::P256, &pkcs8_of_one()).expect(KNOWN);
        let key = private.decapsulate(asked.ciphertext).expect(KNOWN);
        Agreement { exchange, field: found.field(&out[..size]).to_vec(), h1: pending.transcript, key }
    })
}

/// The value of m4 before tau1 is taken from the input, with its prefix and sizes or with right ones.
fn confirmed(octets: &[u8]) {
    let Some((header, rest)) = octets.split_first_chunk::<HEADER_SIZE>() else { return };
    let Some((&shape, rest)) = rest.split_first() else { return };
    let Agreement { exchange, field, h1, key } = agreement();
    let mut exchange = exchange.clone();
    let mut m4 = aimed(header, exchange.token());
    m4[0] = m4[0] & 0xC0 | 0x24;
    m4.resize(HEADER_SIZE + KeyResponse::FIELD_SIZE, 0);
    let response = KeyResponse { suite: Suite::P256, state: &C2, lifetime_seconds: 60, tag: &[0; TAG_SIZE] };
    response.emit(&mut Writer::new(&mut m4[HEADER_SIZE..])).expect("there is room");
    // The prefix and sizes, or C2 and the lifetime alone.
    let skipped = FIELD_HEADER_SIZE + if shape & 1 == 0 { 12 } else { 0 };
    let (head, tag) = m4.split_last_chunk_mut::<TAG_SIZE>().expect("an m4 ends with its tag");
    head[HEADER_SIZE + skipped..].iter_mut().zip(rest).for_each(|(place, octet)| *place = *octet);
    let value = &head[HEADER_SIZE + FIELD_HEADER_SIZE..];
    *tag = transcript::confirmation(key, &transcript::key_exchange(h1, field, value));
    if let Ok(session) = exchange.receive(&m4) {
        assert_eq!(session.suite(), Suite::P256, "the suite that was agreed on");
        assert_eq!(session.state()[..], m4[HEADER_SIZE + 16..][..C2_SIZE]);
        let lifetime = m4[HEADER_SIZE + 16 + C2_SIZE..].first_chunk().expect("tau1 is behind it");
        assert_eq!(session.lifetime_seconds(), u32::from_be_bytes(*lifetime));
        assert!(exchange.receive(&m4).is_err(), "one m4 each");
    } else {
        assert!(shape & 1 != 0, "whatever C2 and lifetime, a right tag is right");
    }
}

/// Header, and fields before the tag, are taken from the input.
fn tagged(octets: &[u8], separate: Option<SeparateTag>) {
    let Some((header, rest)) = octets.split_first_chunk::<HEADER_SIZE>() else { return };
    let Some((&[shape, late], fields)) = rest.split_first_chunk::<2>() else { return };
    let key = SessionKey::new([1; 16]);
    let mut session = Session::new(Suite::P256, key.clone(), C2, 1000);
    let mut request = [0; DATAGRAM_SIZE_MAX];
    let wanted = Wanted { fresh: shape & 1 != 0, separate };
    let (mut exchange, size) =
        session.ask(wanted, Bounds::WAN, NOW, &mut Entropy::from_seed(6), &mut request);
    let m5 = &request[..size];
    let mut m6 = vec![0; DATAGRAM_SIZE_MAX];
    let mut out = Writer::new(&mut m6);
    let mut head = aimed(header, exchange.token());
    head[0] = head[0] & 0xC0 | 0x24;
    let fields = &fields[..fields.len().min(600)];
    let fresh = (shape & 2 != 0).then_some(&[7; C2_SIZE]);
    let suite = if shape & 4 != 0 { Suite::X25519 } else { Suite::P256 };
    let mut start = 0;
    let written = out.put(&head).and_then(|()| {
        if separate.is_some() && shape & 8 != 0 {
            Early { suite, random: &[9; 16] }.emit(&mut out)?;
        }
        out.put(fields)?;
        out.zeros(fields.len().next_multiple_of(4) - fields.len())?;
        start = out.offset();
        TimeResponse { suite, fresh, tag: &[0; TAG_SIZE] }.emit(&mut out)
    });
    written.expect("there is room");
    let size = out.offset();
    m6.truncate(size);
    let is_ours = ends_at(&m6, start);
    let (before, tag) = m6.split_last_chunk_mut::<TAG_SIZE>().expect("an m6 ends with its tag");
    *tag = transcript::time(&key, m5, before);
    // Sixteenths of a second; some are too late, and some are before the request.
    let arrived = NOW + NtpSpan::from_bits((i64::from(late) - 16) << 28);
    if separate.is_some() && m6.len() > HEADER_SIZE + Early::FIELD_SIZE {
        let early = exchange.receive(&m6[..HEADER_SIZE + Early::FIELD_SIZE], NOW, &mut session);
        assert!(!matches!(early, Ok(Event::Accepted(_))), "an early packet has no tag");
    }
    let end = exchange.receive(&m6, arrived, &mut session);
    if let Ok(Event::Accepted(accepted)) = end {
        let (sample, seen) = (accepted.sample, accepted.header);
        assert!((NtpSpan::ZERO..=Bounds::WAN.round_trip_max).contains(&sample.delay));
        assert!(sample.round_trip <= Bounds::WAN.residence_max);
        assert!(
            accepted.error_max() + accepted.error_max() <= Bounds::WAN.round_trip_max + NtpSpan::from_bits(1)
        );
        assert!(seen.transmit.since(seen.receive) >= NtpSpan::ZERO && !seen.receive.is_zero());
        assert!((1..16).contains(&seen.stratum), "a server without time gives none");
        assert!(!is_ours || suite == Suite::P256, "the suite of the session");
        assert!(!is_ours || accepted.is_fresh == (wanted.fresh && fresh.is_some()));
        assert!(!accepted.is_early || separate.is_some());
        assert!(exchange.receive(&m6, arrived, &mut session).is_err(), "one m6 each");
    }
    let state = session.state();
    let stands_there = || match is_ours {
        true => fresh == Some(state),
        false => m6.windows(C2_SIZE).any(|octets| octets == state),
    };
    assert!(*state == C2 || stands_there(), "C2 is the old one or the one behind the tag");
    assert!(*state == C2 || wanted.fresh, "nobody asked for a fresh C2");
}

/// Whether fields end at this offset, so that the next one begins there: the length of one that comes from the input
/// may take in what follows it.
fn ends_at(datagram: &[u8], offset: usize) -> bool {
    let mut at = HEADER_SIZE;
    while at < offset {
        let size = datagram
            .get(at + 2..at + 4)
            .map_or(0, |size| usize::from(u16::from_be_bytes([size[0], size[1]])));
        if size < FIELD_HEADER_SIZE {
            return false;
        }
        at += size;
    }
    at == offset
}
