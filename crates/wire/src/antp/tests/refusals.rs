//! Packets that are none of ANTP, and why.

use super::*;

fn refusal(octets: &[u8]) -> Reason {
    locate(octets).unwrap_err().reason
}

#[test]
fn chunk_of_a_wrong_packet_or_a_second_one_is_refused() {
    let twice = packet(|out| {
        emit_chunk(out, Suite::P256, &[1; 8])?;
        emit_chunk(out, Suite::P256, &[2; 8])?;
        response().emit(out)
    });
    assert_eq!(refusal(&twice), Reason::Duplicate);
    for (message, _) in fixtures() {
        let whole = packet(|out| {
            emit_chunk(out, Suite::P256, &[1; 8])?;
            message.emit(out)
        });
        let is_response = matches!(message, Message::NegotiationResponse(..));
        assert_eq!(locate(&whole).is_ok(), is_response, "{message:?}");
    }
    let behind = packet(|out| {
        response().emit(out)?;
        emit_chunk(out, Suite::P256, &[1; 32])
    });
    assert_eq!(refusal(&behind), Reason::Misplaced);
}

//= antp#carrier-4
#[test]
fn two_messages_are_refused_whichever_they_are() {
    for (first, _) in fixtures() {
        for (second, _) in fixtures() {
            let whole = packet(|out| {
                first.emit(out)?;
                second.emit(out)
            });
            let is_follow_up = matches!(first, Message::Early(_))
                && matches!(second, Message::TimeResponse { early: None, .. });
            assert_eq!(locate(&whole).is_ok(), is_follow_up, "{first:?} {second:?}");
            if !is_follow_up && whole.len() <= ANTP_PAYLOAD_SIZE_MAX {
                assert_eq!(refusal(&whole), Reason::Duplicate);
            }
        }
    }
}

//= antp#carrier-4
#[test]
fn nothing_follows_the_message() {
    for (message, _) in fixtures() {
        let padded = packet(|out| {
            message.emit(out)?;
            emit_padding(out, 28)
        });
        assert_eq!(refusal(&padded), Reason::Misplaced);
        let foreign = packet(|out| {
            message.emit(out)?;
            crate::extension::emit(out, FieldType(0x0104), &[5; 32])
        });
        assert_eq!(refusal(&foreign), Reason::Misplaced);
        let signed = packet(|out| {
            message.emit(out)?;
            out.put(&[9; 20])
        });
        assert_eq!(refusal(&signed), Reason::Trailer);
    }
}

#[test]
fn other_versions_are_told_apart_from_garbage() {
    for (message, _) in fixtures() {
        for version in (0..=255).filter(|&version| version != VERSION) {
            let mut whole = packet(|out| message.emit(out));
            whole[HEADER_SIZE + 8] = version;
            assert_eq!(
                locate(&whole).unwrap_err(),
                Malformed::new(Reason::AntpVersion, HEADER_SIZE),
                "the place of the field names the message"
            );
        }
    }
}

//= antp#messages-2
#[test]
fn field_of_any_other_size_is_refused() {
    for (message, _) in fixtures().into_iter().filter(|(_, hex)| hex.matches("414e5450").count() == 1) {
        let whole = packet(|out| message.emit(out));
        let size = whole.len() - HEADER_SIZE;
        for other in (LAST_FIELD_SIZE_MIN..=size + 64).step_by(4).filter(|&other| other != size) {
            let mut changed = whole.clone();
            changed.resize(HEADER_SIZE + other, 0);
            changed[HEADER_SIZE + 2..HEADER_SIZE + 4].copy_from_slice(&(other as u16).to_be_bytes());
            let reason = refusal(&changed);
            assert!(
                matches!(reason, Reason::FieldLength | Reason::InnerLength),
                "{message:?} {other} {reason}"
            );
        }
    }
}

#[test]
fn every_inner_length_but_the_right_one_is_refused() {
    let body = HEADER_SIZE + 4;
    let places =
        [(3, body + 48, 72), (4, body + 80, 65), (5, body + 80, 256), (6, body + 80, 32), (7, body + 8, 60)];
    for (index, at, right) in places {
        let whole = packet(|out| fixtures()[index].0.emit(out));
        for size in 0..=u16::MAX {
            let mut changed = whole.clone();
            changed[at..at + 2].copy_from_slice(&size.to_be_bytes());
            assert_eq!(locate(&changed).is_ok(), size == right, "{index} {size}");
        }
    }
}

//= antp#messages-1
#[test]
fn word_behind_the_size_of_state_is_zero() {
    for (index, at) in [(3, 50), (7, 10)] {
        let whole = packet(|out| fixtures()[index].0.emit(out));
        for bit in 0..16 {
            let mut changed = whole.clone();
            changed[HEADER_SIZE + 4 + at + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(refusal(&changed), Reason::Value, "{index} {bit}");
        }
    }
}

#[test]
fn ciphertext_of_an_unknown_suite_has_the_size_that_it_says() {
    for size in [1, 4, 5, 97, 256] {
        let ciphertext = vec![7; size];
        let sent = KeyRequest { suite: Suite(0x0777), state: &C1, ciphertext: &ciphertext };
        let whole = packet(|out| sent.emit(out));
        assert_eq!(message(&whole), Message::KeyRequest(sent));
    }
}

#[test]
fn suite_counts_outside_one_to_eight_are_refused() {
    assert_eq!(SuiteList::new(&[]), None);
    assert_eq!(SuiteList::new(&[Suite::P256; 9]), None);
    let whole = packet(|out| request(&[Suite::P256; 8]).emit(out));
    assert_eq!(message(&whole), Message::NegotiationRequest(request(&[Suite::P256; 8])));
    for count in (0..=u16::MAX).filter(|count| !(7..=8).contains(count)) {
        let mut changed = whole.clone();
        changed[HEADER_SIZE + 10..HEADER_SIZE + 12].copy_from_slice(&count.to_be_bytes());
        let expected = if (1..=8).contains(&count) { Reason::FieldLength } else { Reason::Value };
        assert_eq!(refusal(&changed), expected, "{count}");
    }
}

#[test]
fn chunk_behind_the_end_of_its_chain_or_of_an_oversized_chain_is_refused() {
    let check = |chain_size: usize, chunk_offset: usize| {
        let (chain_size, chunk_offset) = (chain_size as u16, chunk_offset as u16);
        let whole = packet(|out| NegotiationResponse { chain_size, chunk_offset, ..response() }.emit(out));
        locate(&whole).map(|_| ()).map_err(|malformed| malformed.reason)
    };
    assert_eq!(check(950, 950), Ok(()));
    assert_eq!(check(950, 951), Err(Reason::Value));
    assert_eq!(check(ANTP_CHAIN_SIZE_MAX, 0), Ok(()));
    assert_eq!(check(ANTP_CHAIN_SIZE_MAX + 1, 0), Err(Reason::Value));
    assert_eq!(check(65_535, 0), Err(Reason::Value));
}

//= antp#messages-4
#[test]
fn padding_is_zeros_of_a_size_that_a_field_can_have() {
    for size in 0..=64 {
        let mut buffer = [0xEE; 64];
        let mut out = Writer::new(&mut buffer);
        let fits = size == 0 || size >= 16 && size % 4 == 0;
        assert_eq!(emit_padding(&mut out, size).is_ok(), fits, "{size}");
        assert_eq!(out.offset(), if fits { size } else { 0 });
    }
    let whole = packet(|out| {
        emit_padding(out, 72)?;
        fixtures()[8].0.emit(out)
    });
    assert_eq!(whole.len(), 224, "the request of separate-tag mode over IPv4");
    assert_eq!(locate(&whole).unwrap().unwrap().padding_size, 72);
    for at in 12..72 {
        let mut changed = whole.clone();
        changed[HEADER_SIZE + at] = 1;
        assert_eq!(refusal(&changed), Reason::Value, "{at}");
    }
}

//= antp#carrier-5
#[test]
fn padding_without_a_message_and_oversized_packets_are_refused() {
    assert_eq!(refusal(&packet(|out| emit_padding(out, 72))), Reason::Missing);
    let padded = |padding| {
        packet(|out| {
            emit_padding(out, padding)?;
            request(&[Suite::P256]).emit(out)
        })
    };
    assert!(locate(&padded(ANTP_PAYLOAD_SIZE_MAX - 132)).is_ok());
    assert_eq!(refusal(&padded(ANTP_PAYLOAD_SIZE_MAX - 128)), Reason::TooLong);
}
