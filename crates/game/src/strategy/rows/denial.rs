//! Refusals, garbage, and other ways to keep a client from its time.

use authentick_wire::Writer;
use authentick_wire::antp::{ErrorCode, ErrorMessage};
use authentick_wire::header::{Header, ReferenceId};
use authentick_wire::limits::HEADER_SIZE;

use super::{BOUND, REJECT};
use crate::model::{OTHER_CLIENT, START};
use crate::strategy::{Expected, Play, SHORT, Strategy};
use crate::verdict::Verdict;

/// Refusals in a flood.
const FLOOD: usize = 100;

pub(super) const ROWS: [Strategy; 5] = [
    Strategy {
        id: "refusals",
        title: "flood the victim with kisses of death, crypto-NAKs, NTSN and errors",
        says: "Nothing vouches for a refusal. It may be told of, and may make a client poll less often; it ends \
               nothing (CVE-2015-7704, CVE-2015-7979).",
        play: refusals,
        expected: Expected::all(Verdict::Reject),
    },
    Strategy {
        id: "reply-loop",
        title: "put what servers say before the server, as two of them would in a loop",
        says: "Only what asks is answered, so no two servers can keep each other busy (CVE-2009-3563, VU#417980): the \
               server's world checks that for every datagram of every game.",
        play: |play| {
            let request = play.request();
            let answers = play.serve(&request);
            let said = [answers, all_refusals(play, &request)].concat();
            // As a server, a broadcaster, a passive peer, and what controls servers say it.
            for mode in [4, 5, 2, 6, 7] {
                for one in &said {
                    let mut octets = one.clone();
                    octets[0] = octets[0] & !7 | mode;
                    let echoed = play.serve(&octets);
                    play.deliver_all(&echoed);
                }
            }
        },
        expected: Expected::all(Verdict::Reject),
    },
    Strategy {
        id: "bad-before-good",
        title: "deliver a response that fails before the one that is right",
        says: "A datagram that fails a check changes nothing, so the right one is still waited for.",
        play: |play| {
            let request = play.request();
            let (other, first) = play.client(OTHER_CLIENT, START);
            let others = play.up_to_time(other, first);
            let wrong = play.serve(&others);
            let right = play.serve(&request);
            play.deliver_all(&wrong);
            play.deliver_all(&right);
        },
        expected: Expected::of([BOUND; 6]),
    },
    Strategy {
        id: "truncation",
        title: "cut requests and responses off at every octet",
        says: "Nothing crashes, nothing is believed, and no answer is larger than what it answers: the server's world \
               checks that for every datagram of every game.",
        play: |play| {
            let request = play.request();
            let answers = play.serve(&request);
            for answer in &answers {
                for size in 0..answer.len() {
                    play.deliver_all(&[answer[..size].to_vec()]);
                }
            }
            for size in 0..request.len() {
                // What is a request of its own may be answered: to that, not to what the victim asked.
                play.serve(&request[..size]);
            }
        },
        expected: Expected::of([REJECT; 6]),
    },
    Strategy {
        id: "field-lengths",
        title: "give extension fields impossible lengths",
        says: "Lengths of 0, 3, 15, more than is there, and more than a datagram has.",
        play: |play| {
            let request = play.request();
            for length in [0_u16, 3, 15, 17, 1028, u16::MAX] {
                let mut field = vec![0x01, 0x04, 0, 0];
                field[2..].copy_from_slice(&length.to_be_bytes());
                field.resize(28, 0);
                play.serve(&[&request[..HEADER_SIZE], &field].concat());
                let forged = play.forge(None, &request);
                play.deliver_all(&[[&forged[..HEADER_SIZE], &field].concat()]);
            }
        },
        expected: Expected::all(Verdict::Reject),
    },
];

/// What refuses `request`, in every way that there is.
fn all_refusals(play: &Play<'_>, request: &[u8]) -> Vec<Vec<u8>> {
    let kiss = |code: &[u8; 4]| {
        let mut octets = [0; HEADER_SIZE];
        let header = Header { stratum: 0, reference_id: ReferenceId(*code), ..play.lie(request) };
        header.emit(&mut octets);
        octets.to_vec()
    };
    let mut refusals: Vec<Vec<u8>> = [b"RATE", b"DENY", b"RSTR", b"NTSN"].map(kiss).to_vec();
    // With the identifier of the request, as a server of NTS refuses.
    if let Some(part) = play.part(request, "field-0104") {
        refusals.push([&kiss(b"NTSN")[..], &request[part.start..part.end]].concat());
    }
    // A crypto-NAK is a key identifier of zero.
    refusals.push([&kiss(b"NTSN")[..], &[0; 4]].concat());
    for code in [ErrorCode::RATE, ErrorCode::NO_SUITE] {
        let mut field = [0; ErrorMessage::FIELD_SIZE];
        if (ErrorMessage { code }).emit(&mut Writer::new(&mut field)).is_ok() {
            refusals.push([&kiss(b"RATE")[..], &field].concat());
        }
    }
    refusals
}

fn refusals(play: &mut Play<'_>) {
    let request = play.request();
    let refusals = all_refusals(play, &request);
    for refusal in refusals.iter().cycle().take(FLOOD) {
        play.pass(SHORT);
        play.deliver_all(std::slice::from_ref(refusal));
    }
}
