//! Before time: suites, certificates, and what servers have their clients keep.

use authentick_wire::Writer;
use authentick_wire::antp::{Antp, Message, Suite, SuiteList};
use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::packet::Packet;
use authentick_wire::time::NtpSpan;

use super::REJECT;
use crate::model::{OTHER_CLIENT, START};
use crate::strategy::{Expected, Play, Strategy};

const ANTP_REFUSES: Expected = Expected::of([None, None, None, None, REJECT, REJECT]);

pub(super) const ROWS: [Strategy; 7] = [
    Strategy {
        id: "downgrade-offer",
        title: "remove the best suite from m1",
        says: "The client sees that the server has a better suite than it chose.",
        play: |play| {
            let offer = play.first_request();
            negotiate(play, offer, (weaken, NOTHING));
        },
        expected: ANTP_REFUSES,
    },
    Strategy {
        id: "downgrade-both",
        title: "remove the best suite from m1, and from what the server says it has in m2",
        says: "Now the client goes on with the weaker suite. The tag of m4 is over what each has seen of the \
               negotiation, and that differs.",
        play: |play| {
            let offer = play.first_request();
            negotiate(play, offer, (weaken, weaken));
        },
        expected: ANTP_REFUSES,
    },
    Strategy {
        id: "swap-chain",
        title: "change the hash of the certificate chain in m2",
        says: "The chain that comes does not have it. Another chain that does is another server's, and the tag of m4 \
               needs the private key that belongs to it.",
        play: |play| {
            let offer = play.first_request();
            let answers = play.serve(&offer);
            let victim = play.victim();
            let mut request = None;
            for mut answer in answers {
                if let Some(part) = play.part(&answer, "chain-hash") {
                    answer[part.start] ^= 1;
                }
                request = play.deliver(victim, &answer).messages.into_iter().next().or(request);
            }
            go_on_with(play, request);
        },
        expected: ANTP_REFUSES,
    },
    Strategy {
        id: "others-c1",
        title: "give a client C1 of another client's negotiation",
        says: "C1 has the hash of the negotiation in which it was made, and the tag of m4 is over that.",
        play: |play| {
            let offer = play.first_request();
            let (_, others) = play.client(OTHER_CLIENT, START);
            let (answers, others) = (play.serve(&offer), play.serve(&others));
            let victim = play.victim();
            let mut request = None;
            for (answer, other) in answers.iter().zip(&others) {
                let spliced = play.spliced(answer, other, "c1");
                request = play.deliver(victim, &spliced).messages.into_iter().next().or(request);
            }
            go_on_with(play, request);
        },
        expected: ANTP_REFUSES,
    },
    Strategy {
        id: "stale-negotiation",
        title: "hold m3 back for two minutes",
        says: "C1 opens for a minute, so that nobody can collect negotiations.",
        play: |play| {
            let offer = play.first_request();
            let victim = play.victim();
            let mut request = None;
            for answer in play.serve(&offer) {
                request = play.deliver(victim, &answer).messages.into_iter().next().or(request);
            }
            play.pass(NtpSpan::from_nanos(120_000_000_000));
            go_on_with(play, request);
        },
        expected: ANTP_REFUSES,
    },
    Strategy {
        id: "others-state",
        title: "put another client's cookie or C2 into a request",
        says: "The server takes the request for the other client's. Under NTS the tag of the request is wrong, under \
               ANTP that of the response.",
        play: |play| {
            let request = play.request();
            let (other, first) = play.client(OTHER_CLIENT, START);
            let others = play.up_to_time(other, first);
            let spliced = play.spliced(&request, &others, "field-0204");
            let spliced = play.spliced(&spliced, &others, "c2");
            let answers = play.serve(&spliced);
            play.deliver_all(&answers);
        },
        expected: Expected::of([None, None, None, REJECT, REJECT, REJECT]),
    },
    Strategy {
        id: "bad-ciphertext",
        title: "put points that are on no curve into m3",
        says: "A server is silent about what everybody can see to be no ciphertext. What looks like one gets an m4 \
               whose tag fails.",
        play: bad_ciphertext,
        expected: ANTP_REFUSES,
    },
];

/// A packet with its ANTP message changed.
fn rewritten(packet: &[u8], change: Rewrite) -> Vec<u8> {
    let found = Packet::parse(packet).ok().and_then(|packet| Antp::locate(&packet).ok().flatten());
    let Some(Antp { mut message, offset, .. }) = found else { return packet.to_vec() };
    change(&mut message);
    // What comes before the message's own field, as a chunk of certificates does, stays as it is.
    if let Message::NegotiationResponse(_, chunk) = &mut message {
        *chunk = None;
    }
    let mut field = vec![0; DATAGRAM_SIZE_MAX];
    let mut writer = Writer::new(&mut field);
    message.emit(&mut writer).expect("a datagram has room for a message");
    let size = writer.offset();
    [&packet[..offset], &field[..size]].concat()
}

/// Leaves nothing of the best suite.
fn weaken(message: &mut Message<'_>) {
    match message {
        Message::NegotiationRequest(request) => {
            let rest: Vec<Suite> =
                request.suites.as_slice().iter().copied().filter(|suite| *suite != Suite::P256).collect();
            request.suites = SuiteList::new(&rest).expect("there is another suite");
        }
        Message::NegotiationResponse(response, _) => {
            response.suites.0 &= !authentick_wire::antp::Suites::default().with(Suite::P256).0;
        }
        _ => {}
    }
}

/// What an adversary does to each message of a negotiation.
type Rewrite = fn(&mut Message<'_>);

/// Nothing.
const NOTHING: Rewrite = |_| {};

/// The victim's `request` to the server, and the answers back, with `request` and `answers` rewritten, until nobody
/// says anything more. If the victim has a key then, it asks for time.
fn negotiate(play: &mut Play<'_>, request: Vec<u8>, (there, back): (Rewrite, Rewrite)) {
    let victim = play.victim();
    let mut request = Some(request);
    while let Some(asked) = request.take() {
        for answer in play.serve(&rewritten(&asked, there)) {
            let reply = play.deliver(victim, &rewritten(&answer, back));
            request = reply.messages.into_iter().next().or(request);
        }
    }
    if play.model_mut().has_key(victim) {
        let request = play.go_on(victim);
        let answers = play.serve(&request);
        play.deliver_all(&answers);
    }
}

/// The same with messages as they are, if there is a request.
fn go_on_with(play: &mut Play<'_>, request: Option<Vec<u8>>) {
    if let Some(request) = request {
        negotiate(play, request, (NOTHING, NOTHING));
    }
}

fn bad_ciphertext(play: &mut Play<'_>) {
    let offer = play.first_request();
    let victim = play.victim();
    let mut request = Some(offer);
    while let Some(asked) = request.take() {
        let Some(part) = play.part(&asked, "ciphertext") else {
            for answer in play.serve(&asked) {
                request = play.deliver(victim, &answer).messages.into_iter().next().or(request);
            }
            continue;
        };
        // Infinity, a point off the curve, and nothing at all, where a point stands.
        for octets in [[0, 0], [4, 0], [4, 0xFF]] {
            let mut bad = asked.clone();
            bad[part.start..part.end].fill(octets[1]);
            bad[part.start] = octets[0];
            let answers = play.serve(&bad);
            play.deliver_all(&answers);
        }
        let mut other = asked;
        other[part.end - 1] ^= 1;
        let answers = play.serve(&other);
        play.deliver_all(&answers);
    }
}
