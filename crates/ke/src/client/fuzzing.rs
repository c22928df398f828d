//! What a server may send to a client, below TLS and behind a handshake that is right, cut in any way.

use std::io::{self, Cursor, Read, Write};
use std::sync::Arc;

use authentick_wire::ke::{Response, message_size};
use authentick_wire::limits::KE_RESPONSE_SIZE_MAX;
use rustls::{ServerConfig, ServerConnection};

use super::{Ask, Dialogue, Established, KeError, Phase};
use crate::fuzzing::tls::{ASK, SERVER};

/// The most octets of a response that are kept: the client stops after a read that goes beyond the limit.
const HELD_MAX: usize = KE_RESPONSE_SIZE_MAX + 4096;

/// Rounds of a handshake that gets through.
const ROUND_COUNT_MAX: usize = 8;

/// Any octets as what a server sends, after two that say how: as they are, and as a response behind a handshake that
/// is right. The end follows from the response, however it was cut, and no client keeps more than its limit. Returns
/// whether there was a response that the client could read.
pub fn ke_dialogue(octets: &[u8]) -> bool {
    let Some((&[shape, cut], content)) = octets.split_first_chunk::<2>() else { return false };
    let cut = usize::from(cut) + 1;
    if shape & 1 != 0 {
        raw(content, cut);
        return false;
    }
    // Up to the limit of a response and beyond it, in larger pieces.
    let count = if shape & 2 != 0 { 40 } else { 1 };
    let (mut repeated, cut) = (content.repeat(count), cut * count);
    if shape & 0x40 != 0 {
        // The end of a message, which would stand behind it by chance only.
        repeated.extend(b"\x80\0\0\0");
    }
    let says_goodbye = shape & 4 != 0;
    let speaks_ntske = shape & 0x38 != 0x38;
    behind_tls(&repeated, cut, says_goodbye, speaks_ntske)
}

/// Octets in place of TLS: they bring nothing.
fn raw(octets: &[u8], cut: usize) {
    let mut dialogue = Dialogue::new(&ASK).expect("TLS can start");
    dialogue.write(&mut io::sink()).expect("a sink takes everything");
    for piece in octets.chunks(cut) {
        match dialogue.read(&mut &piece[..]) {
            Ok(established) => assert!(established.is_none(), "keys without a handshake"),
            Err(_) => return,
        }
    }
    assert!(dialogue.is_handshaking(), "a handshake without a key");
    let end = dialogue.read(&mut io::empty());
    assert!(matches!(end, Err(KeError::Closed(Phase::Handshake))), "the server has closed");
}

/// The response as a server sends it that has agreed on keys.
fn behind_tls(response: &[u8], cut: usize, says_goodbye: bool, speaks_ntske: bool) -> bool {
    let mut config = Arc::clone(&SERVER);
    if !speaks_ntske {
        Arc::<ServerConfig>::make_mut(&mut config).alpn_protocols.clear();
    }
    let mut server = ServerConnection::new(config).expect("the settings are right");
    server.set_buffer_limit(None);
    let mut dialogue = Dialogue::new(&ASK).expect("TLS can start");
    let shaken = shake_hands(&mut dialogue, &mut server);
    if !speaks_ntske {
        assert!(matches!(shaken, Err(KeError::Alpn { alert: false })), "another protocol was taken");
        return false;
    }
    shaken.expect("a handshake that is right gets through");
    server.writer().write_all(response).expect("there is no limit");
    if says_goodbye {
        server.send_close_notify();
    }
    let mut flight = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut flight).expect("a vector takes everything");
    }
    let mut flight = Cursor::new(flight);
    let end = loop {
        // At the end the connection is closed.
        match dialogue.read(&mut (&mut flight).take(cut as u64)) {
            Ok(None) => {}
            Ok(Some(established)) => break Ok(established),
            Err(error) => break Err(error),
        }
        assert!(dialogue.response.len() <= HELD_MAX, "{} octets are kept", dialogue.response.len());
    };
    assert!(dialogue.response.len() <= HELD_MAX, "{} octets are kept", dialogue.response.len());
    judge(response, &ASK, &end)
}

/// Both sides in turn, until the client has asked.
fn shake_hands(dialogue: &mut Dialogue, server: &mut ServerConnection) -> Result<(), KeError> {
    for _ in 0..ROUND_COUNT_MAX {
        let mut flight = Vec::new();
        while dialogue.wants_write() {
            dialogue.write(&mut flight).expect("a vector takes everything");
        }
        let mut flight = &flight[..];
        while !flight.is_empty() {
            server.read_tls(&mut flight).expect("memory can be read");
            server.process_new_packets().expect("the client is right");
        }
        if dialogue.asked {
            return Ok(());
        }
        let mut answer = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut answer).expect("a vector takes everything");
        }
        let mut answer = &answer[..];
        while !answer.is_empty() {
            assert!(dialogue.read(&mut answer)?.is_none(), "keys before the response");
        }
    }
    panic!("a handshake without end");
}

/// Whether the end is the one that the response has as a whole; returns whether it could be read.
fn judge(response: &[u8], ask: &Ask, end: &Result<Established, KeError>) -> bool {
    let Some(size) = message_size(response) else {
        match response.len() > KE_RESPONSE_SIZE_MAX {
            true => assert!(matches!(end, Err(KeError::TooLong)), "{end:?}"),
            false => assert!(matches!(end, Err(KeError::Closed(Phase::Exchange))), "{end:?}"),
        }
        return false;
    };
    // The read that goes beyond the limit may also make it whole.
    if size > KE_RESPONSE_SIZE_MAX && matches!(end, Err(KeError::TooLong)) {
        return false;
    }
    match (Response::parse(&response[..size], &ask.aeads), end) {
        (Ok(Response::Agreed(agreement)), Ok(established)) => {
            assert_eq!(established.aead, agreement.aead);
            assert_eq!(established.ntp_server.as_deref(), agreement.server);
            assert_eq!(established.ntp_port, agreement.port);
            assert!((1..=agreement.cookies().count()).contains(&established.session.jar.count()));
            assert!(established.certificate.is_some(), "the server has one");
        }
        (Ok(Response::Agreed(agreement)), Err(KeError::NoCookie)) => {
            let mut jar = authentick_proto::client::CookieJar::default();
            assert!(agreement.cookies().all(|cookie| !jar.add(cookie)), "a cookie was lost");
        }
        (Ok(Response::Error(code)), Err(KeError::Refused(told))) => assert_eq!(code, *told),
        (Ok(Response::Warning(code)), Err(KeError::Warning(told))) => assert_eq!(code, *told),
        (Ok(Response::NoProtocol), Err(KeError::NoProtocol)) => {}
        (Ok(Response::NoAead), Err(KeError::NoAead)) => {}
        (Err(malformed), Err(KeError::Response(told))) => assert_eq!(malformed, *told),
        (parsed, end) => panic!("{parsed:?}, and {end:?}"),
    }
    true
}
