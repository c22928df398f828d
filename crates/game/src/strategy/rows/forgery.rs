//! Without a secret: messages that are changed, repeated, put together, or made up.

use authentick_wire::header::Header;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::{NtpSpan, NtpTime};

use super::{BOUND, REJECT, WIN};
use crate::model::{OTHER_CLIENT, START};
use crate::protocol::Family;
use crate::strategy::{Expected, LONG, Play, SHORT, Strategy};
use crate::verdict::Verdict;

/// Where nothing vouches for a message, the adversary wins; elsewhere it is refused.
const PLAIN_LOSES: Expected = Expected::of([WIN, REJECT, REJECT, REJECT, REJECT, REJECT]);

pub(super) const ROWS: [Strategy; 11] = [
    Strategy {
        id: "alter-request",
        title: "change a request in what the client does not see in the response",
        says: "The server answers something that was not asked. Where it checks a tag of the request, it does not \
               answer; under ANTP it does, with a tag over what it was asked.",
        play: |play| {
            let mut request = play.request();
            // The poll interval, which is sent back.
            request[2] ^= 1;
            let answers = play.serve(&request);
            play.pass(SHORT);
            play.deliver_all(&answers);
        },
        expected: PLAIN_LOSES,
    },
    Strategy {
        id: "rewrite-times",
        title: "add an hour to both times of the server",
        says: "What nobody vouches for can say anything.",
        play: |play| {
            let request = play.request();
            let answers = play.serve(&request).iter().map(|answer| an_hour_on(answer)).collect::<Vec<_>>();
            play.deliver_all(&answers);
        },
        expected: PLAIN_LOSES,
    },
    Strategy {
        id: "replay",
        title: "answer a request with an old response, its origin rewritten",
        says: "A response answers one request: its tag covers the origin, under NTS the unique identifier too, and \
               under ANTP the whole request.",
        play: replay,
        expected: PLAIN_LOSES,
    },
    Strategy {
        id: "blind-guess",
        title: "answer without having seen the request: origin zero, the client's time, the last origin",
        says: "The transmit timestamp of a request is a random number, not the client's time, so who does not see it \
               has to guess 64 bits. An origin of zero is taken for none by nobody (CVE-2015-8138).",
        play: blind_guess,
        expected: Expected::all(Verdict::Reject),
    },
    Strategy {
        id: "forge-early",
        title: "answer at once, before the server does",
        says: "Who sees the request can answer it first. In separate-tag mode the early packet has no tag, but random \
               octets that the tag covers: a guess of it does not move the time of arrival.",
        play: forge_early,
        expected: PLAIN_LOSES,
    },
    Strategy {
        id: "strip",
        title: "take the MAC or the extension fields off a response",
        says: "A client that has asked with authentication believes nothing without it, and waits on.",
        play: |play| {
            let request = play.request();
            for answer in play.serve(&request) {
                let victim = play.victim();
                play.deliver(victim, &an_hour_on(&answer[..HEADER_SIZE]));
            }
        },
        expected: Expected::of([None, REJECT, REJECT, REJECT, REJECT, REJECT]),
    },
    Strategy {
        id: "reflect",
        title: "send a client its own request as a response",
        says: "Under one symmetric key for both directions, nothing but the mode tells a request from a response, and \
               the MAC covers it.",
        play: |play| {
            let request = play.request();
            play.note("the request as it is");
            let victim = play.victim();
            play.deliver(victim, &request);
            play.note("with the mode of a response, the origin that is waited for, and times");
            let mut reflected = as_response(play, &request);
            reflected.extend_from_slice(&request[HEADER_SIZE..]);
            play.deliver(victim, &reflected);
        },
        expected: PLAIN_LOSES,
    },
    Strategy {
        id: "cross-phase",
        title: "send what the server said in one phase as its answer in another",
        says: "Each tag of ANTP is over a label of its own.",
        play: cross_phase,
        expected: Expected::of([None, None, None, None, REJECT, REJECT]),
    },
    Strategy {
        id: "cross-client",
        title: "answer a client with the response to another's request, its origin rewritten",
        says: "Where clients share a key, the MAC still covers the origin. Under NTS and ANTP each has a key of its \
        own.",
        play: |play| {
            let request = play.request();
            let (other, first) = play.client(OTHER_CLIENT, START);
            let others = play.up_to_time(other, first);
            let answers = play.serve(&others);
            let answers: Vec<_> = answers.iter().map(|answer| with_origin_of(answer, &request)).collect();
            play.deliver_all(&answers);
        },
        expected: PLAIN_LOSES,
    },
    Strategy {
        id: "duplicates",
        title: "deliver each response twice, and an old one after the new one",
        says: "A request has one response. The second changes nothing, nor does a late one.",
        play: |play| {
            let old = play.exchange(SHORT, SHORT);
            play.begin();
            let new = play.exchange(SHORT, SHORT);
            play.pass(SHORT);
            play.deliver_all(&new);
            play.deliver_all(&old);
        },
        expected: Expected::all(Verdict::Bound),
    },
    Strategy {
        id: "repeat-request",
        title: "put a request before the server twice, the second time an hour later",
        says: "A server keeps nothing, so it answers again. A response an hour late is genuine, and only a bound on \
               the round trip refuses it; the first one, which arrives in time, is the only one that counts.",
        play: |play| {
            let request = play.request();
            play.pass(SHORT);
            let first = play.serve(&request);
            play.pass(SHORT);
            play.deliver_all(&first);
            play.pass(LONG);
            let second = play.serve(&request);
            play.deliver_all(&second);
        },
        expected: Expected::of([BOUND; 6]),
    },
];

/// A message whose server says an hour more.
fn an_hour_on(message: &[u8]) -> Vec<u8> {
    let mut changed = message.to_vec();
    if let Some(octets) = changed.first_chunk_mut::<HEADER_SIZE>() {
        let mut header = Header::parse(octets);
        (header.receive, header.transmit) = (header.receive + LONG, header.transmit + LONG);
        header.emit(octets);
    }
    changed
}

/// A response with the origin that `request` is to be answered with.
fn with_origin_of(message: &[u8], request: &[u8]) -> Vec<u8> {
    let mut changed = message.to_vec();
    if let (Some(octets), Some(asked)) = (changed.first_chunk_mut::<HEADER_SIZE>(), request.first_chunk()) {
        let header = Header { origin: Header::parse(asked).transmit, ..Header::parse(octets) };
        header.emit(octets);
    }
    changed
}

/// The header of a response to `request` an hour off.
fn as_response(play: &Play<'_>, request: &[u8]) -> Vec<u8> {
    let mut octets = [0; HEADER_SIZE];
    play.lie(request).emit(&mut octets);
    octets.to_vec()
}

fn replay(play: &mut Play<'_>) {
    let old = play.exchange(SHORT, SHORT);
    play.begin();
    play.pass(LONG);
    let request = play.request();
    play.pass(SHORT);
    play.note("the old response as it was");
    play.deliver_all(&old);
    play.note("with the origin of the new request");
    let replayed: Vec<Vec<u8>> = old.iter().map(|answer| with_origin_of(answer, &request)).collect();
    play.deliver_all(&replayed);
    play.note("the same with the identifier of the new request, where there is one");
    let replayed: Vec<Vec<u8>> =
        replayed.iter().map(|answer| play.spliced(answer, &request, "field-0104")).collect();
    play.deliver_all(&replayed);
}

fn blind_guess(play: &mut Play<'_>) {
    let old = play.exchange(SHORT, SHORT);
    play.begin();
    play.pass(LONG);
    let last = old.first().and_then(|answer| answer.first_chunk().map(Header::parse));
    let request = play.request();
    let shown = {
        let victim = play.victim();
        play.model().clock(victim)
    };
    let guesses = [NtpTime::ZERO, shown, last.map_or(NtpTime::ZERO, |header| header.origin)];
    for guess in guesses {
        let mut octets = [0; HEADER_SIZE];
        Header { origin: guess, ..play.lie(&request) }.emit(&mut octets);
        let mut message = octets.to_vec();
        // What else a response has, the adversary copies from the last one.
        message.extend(old.first().map_or(&[][..], |answer| &answer[HEADER_SIZE..]));
        let victim = play.victim();
        play.deliver(victim, &message);
    }
}

fn forge_early(play: &mut Play<'_>) {
    let request = play.request();
    let forged = play.forge(None, &request);
    if play.protocol().family() != Family::AntpSeparate {
        let victim = play.victim();
        play.deliver(victim, &forged);
        return;
    }
    // The server's answer in a world that the adversary makes up: an early packet with other random octets.
    let guess = play.serve(&request);
    let victim = play.victim();
    let mut early = guess.first().cloned().unwrap_or_default();
    if let Some(random) = early.last_mut() {
        *random ^= 1;
    }
    play.pass(SHORT);
    play.note("an early packet that is guessed, long before the server answers");
    play.deliver(victim, &early);
    play.pass(NtpSpan::from_nanos(1_500_000_000));
    let answers = play.serve(&request);
    play.note("the server's own follow-up; its early packet is dropped");
    play.deliver_all(&answers[1..]);
}

fn cross_phase(play: &mut Play<'_>) {
    let request = play.request();
    let earlier: Vec<Vec<u8>> =
        play.seen().iter().filter(|message| play.protocol().kind(message) == "m4").cloned().collect();
    let m4: Vec<_> = earlier.iter().map(|message| with_origin_of(message, &request)).collect();
    play.note("m4 as m6");
    play.deliver_all(&m4);
    let answers = play.serve(&request);
    let (other, first) = play.client(OTHER_CLIENT, START);
    play.note("m6 as m2 of another client");
    for answer in answers.iter().map(|answer| with_origin_of(answer, &first)) {
        play.deliver(other, &answer);
    }
}
