//! Any octets as what a server says to requests that the first octets choose.
//!
//! Octets that change blindly seldom give a value the length that its line says, and never one that is as large as it
//! may be. So an input is either what the server sends, or steps that make it: lines, values, and values that have one
//! thing wrong.

use super::{
    Connection, Fault, LINE_SIZE_MAX, Name, RESPONSE_SIZE_MAX, RefusalKind, Request, Response, TEXT_SIZE_MAX,
    Unasked, VALUE_SIZE_MAX,
};

/// The most octets that steps make.
const STREAM_SIZE_MAX: usize = 3 << 20;

/// What a step chooses a line from.
const LINES: [&str; 8] = [
    "END",
    "STORED",
    "NOT_STORED",
    "EXISTS",
    "NOT_FOUND",
    "SERVER_ERROR out of memory storing object",
    "CLIENT_ERROR bad data chunk",
    "ERROR",
];

/// What a step chooses the size of a value from.
const SIZES: [usize; 8] = [0, 1, 2, 200, 5_000, VALUE_SIZE_MAX / 2 + 1, VALUE_SIZE_MAX, VALUE_SIZE_MAX + 1];

/// What came of a connection.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    responses: Vec<Response>,
    fault: Option<Fault>,
}

/// Any octets, after one that says what they are, one for the requests, and one for the pieces in which they come: no
/// panic; pieces make no difference; what is given fits what was asked; after a fault there is nothing but that fault;
/// memory stays in its limits. Returns whether there was a response.
pub fn memcached_response(octets: &[u8]) -> bool {
    let &[form, kinds, size, ref script @ ..] = octets else { return false };
    let requests: Vec<Request> = (0..=form & 3).map(|index| request(kinds >> (2 * index) & 3)).collect();
    let stream = if form & 4 == 0 { script.to_vec() } else { made(script) };
    let is_late = form & 8 != 0;
    // Millions of pieces tell no more than thousands.
    let size = (usize::from(size) + 1).max(stream.len() >> 12);
    let whole = run(&requests, stream.chunks(stream.len().max(1)), is_late);
    assert_eq!(whole, run(&requests, stream.chunks(size), is_late));
    assert_eq!(whole, run(&requests, stream.chunks(size), !is_late));
    check(&requests, &whole);
    !whole.responses.is_empty()
}

/// Twelve names that take two lines.
fn names() -> Vec<Name> {
    let long = ('d'..='l').map(|letter| letter.to_string().repeat(super::NAME_SIZE_MAX));
    let all = ["a", "b", "c"].map(str::to_owned).into_iter().chain(long);
    all.map(|name| Name::new(&name).expect("it is a name")).collect()
}

fn request(kind: u8) -> Request {
    let mut names = names();
    match kind {
        0 => Request::Gets { names },
        1 => Request::Gets { names: names.drain(..3).collect() },
        2 => Request::Add { name: names.remove(0), value: b"v".to_vec() },
        _ => Request::Cas { name: names.remove(1), value: Vec::new(), token: u64::MAX },
    }
}

/// What the steps of a script make a server say.
fn made(script: &[u8]) -> Vec<u8> {
    let (mut stream, mut rest, names) = (Vec::new(), script, names());
    while let Some((&step, left)) = rest.split_first() {
        rest = left;
        if let Some(line) = LINES.get(usize::from(step)) {
            stream.extend_from_slice(format!("{line}\r\n").as_bytes());
        } else if let (8..=16, &[name, size, ref left @ ..]) = (step, left) {
            rest = left;
            let name = names[usize::from(name) % names.len()].as_str();
            let size = SIZES[usize::from(size) % SIZES.len()];
            let line = match step {
                9 => format!("VALUE {name} 0 {} 7", size + 1),
                10 => format!("VALUE {name} 0 {size} 0"),
                11 => format!("VALUE {name} {} {size} {}", u32::MAX, u64::MAX),
                12 => format!("VALUE {name} 0 {size} 18446744073709551616"),
                13 => format!("VALUE {name} 4294967296 {size} 7"),
                14 => format!("VALUE {name} 0 18446744073709551616 7"),
                15 => format!("VALUE {name} 0 {size}"),
                _ => format!("VALUE {name} 0 {size} 7"),
            };
            stream.extend_from_slice(format!("{line}\r\n").as_bytes());
            stream.resize(stream.len() + size, b'v');
            stream.extend_from_slice(if step == 16 { b"\n" } else { b"\r\n" });
        } else {
            let (literal, left) = left.split_at(left.len().min(usize::from(step)));
            stream.extend_from_slice(literal);
            rest = left;
        }
        if stream.len() > STREAM_SIZE_MAX {
            break;
        }
    }
    stream
}

/// Asks, hands in the pieces, and takes responses after each of them, or only when all have come.
fn run<'a>(requests: &[Request], pieces: impl Iterator<Item = &'a [u8]>, is_late: bool) -> Outcome {
    let mut connection = Connection::new();
    for request in requests {
        connection.ask(request).expect("there is room");
    }
    let (mut responses, mut came) = (Vec::new(), 0);
    for piece in pieces {
        came += piece.len();
        let said = connection.received(piece);
        assert_eq!(said.err(), connection.fault());
        let (response_count, beside) = if is_late { (requests.len(), 0) } else { (1, piece.len()) };
        let held_max = response_count * RESPONSE_SIZE_MAX + beside + 4 * LINE_SIZE_MAX;
        let held = connection.held();
        assert!(held <= held_max.min(2 * came + LINE_SIZE_MAX), "{held} are held of {came}");
        while !is_late && let Ok(Some(response)) = connection.response() {
            responses.push(response);
        }
        if said.is_err() {
            break;
        }
    }
    while let Ok(Some(response)) = connection.response() {
        responses.push(response);
    }
    assert_eq!(connection.waiting() + responses.len(), requests.len());
    if let Some(fault) = connection.fault() {
        for octets in [&b""[..], b"END\r\n", b"STORED\r\n"] {
            assert_eq!(connection.received(octets), Err(fault));
            assert_eq!(connection.response(), Err(fault));
        }
        assert_eq!(connection.ask(&requests[0]), Err(Unasked::Ended(fault)));
        assert_eq!((connection.unsent().len(), connection.held()), (0, 0));
    }
    Outcome { responses, fault: connection.fault() }
}

fn check(requests: &[Request], outcome: &Outcome) {
    for (request, response) in requests.iter().zip(&outcome.responses) {
        match (request, response) {
            (Request::Gets { names }, Response::Values(values)) => {
                let mut left = names.clone();
                for value in values {
                    let at = left.iter().position(|name| *name == value.name).expect("asked for, and new");
                    left.remove(at);
                    assert!(value.token != 0 && value.octets.len() <= VALUE_SIZE_MAX);
                }
                assert!(values.iter().map(|value| value.octets.len()).sum::<usize>() <= RESPONSE_SIZE_MAX);
            }
            (Request::Add { .. }, Response::Stored | Response::NotStored)
            | (Request::Cas { .. }, Response::Stored | Response::Exists | Response::NotFound) => {}
            (_, Response::Refused(refusal)) => {
                assert!(refusal.text.len() <= TEXT_SIZE_MAX);
                assert!(refusal.text.bytes().all(|octet| (b' '..=b'~').contains(&octet)));
            }
            (request, response) => panic!("{response:?} to {request:?}"),
        }
    }
    let is_final = |response: &Response| match response {
        Response::Refused(refusal) => refusal.kind != RefusalKind::ServerError,
        Response::Values(_)
        | Response::Stored
        | Response::NotStored
        | Response::Exists
        | Response::NotFound => false,
    };
    if let Some(at) = outcome.responses.iter().position(is_final) {
        assert_eq!((at + 1, outcome.fault), (outcome.responses.len(), Some(Fault::OutOfStep)));
    }
}

#[cfg(test)]
mod tests {
    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/memcached_response");

    /// A corpus whose inputs get no response reaches nothing.
    #[test]
    fn kept_corpus_has_no_finding_and_gets_responses() {
        let (mut count, mut response_count) = (0, 0);
        for entry in std::fs::read_dir(FOLDER).expect("the corpus is kept") {
            let octets = std::fs::read(entry.unwrap().path()).unwrap();
            count += 1;
            response_count += usize::from(super::memcached_response(&octets));
        }
        assert!(response_count >= 10, "{response_count} of {count}");
    }

    #[test]
    #[ignore = "writes the first inputs of the corpus"]
    fn write_seeds() {
        let lines = b"\x03\xe5\x02VALUE a 0 3 1\r\nv\r\n\r\nVALUE c 9 0 2\r\n\r\n\
            END\r\nEND\r\nNOT_STORED\r\nEXISTS\r\n";
        let steps: [(&str, &[u8]); 18] = [
            ("lines", lines),
            ("stored", b"\x03\xee\x00STORED\r\nSTORED\r\nNOT_STORED\r\nNOT_FOUND\r\n"),
            ("refused", b"\x01\x0a\x04SERVER_ERROR out of memory storing object\r\nSTORED\r\n"),
            ("refused-with-more", b"\x01\x06\x04SERVER_ERROR out of memory storing object\r\nEND\r\n"),
            ("out-of-step", b"\x01\x0a\x07STORED\r\nCLIENT_ERROR bad data chunk\r\nERROR\r\n"),
            ("crowded", b"\x00\x01\x03ERROR Too many open connections\r\n"),
            ("not-asked", b"\x00\x02\x10STORED\r\nEND\r\n"),
            ("text", b"\x00\x02\x00SERVER_ERROR \xff\x1b[0;31m\r\n"),
            ("all-names", &[&[4, 0, 30], &two_lines(3)[..]].concat()),
            ("all-names-twice", &[&[5, 0, 99], &two_lines(0)[..], &two_lines(4)].concat()),
            ("large", &[4, 1, 200, 8, 0, 6, 8, 1, 6, 8, 2, 6, 0]),
            ("late", &[15, 0x95, 50, 8, 0, 6, 8, 1, 6, 8, 2, 6, 0, 8, 2, 5, 0, 8, 1, 4, 0, 2]),
            ("too-much", &[5, 2, 200, 1, 8, 0, 6, 8, 1, 6, 8, 2, 6, 8, 3, 6, 8, 4, 1]),
            ("too-large", &[5, 6, 9, 1, 8, 0, 7]),
            ("longer", &[5, 6, 9, 1, 9, 0, 3, 0]),
            ("without-token", &[5, 6, 9, 1, 10, 0, 3, 0]),
            ("largest-numbers", &[5, 6, 9, 1, 11, 0, 3, 0]),
            ("without-end", &[5, 6, 9, 1, 16, 0, 3, 0, 0]),
        ];
        std::fs::create_dir_all(FOLDER).unwrap();
        for (name, octets) in steps {
            std::fs::write(format!("{FOLDER}/{name}"), octets).unwrap();
        }
    }

    /// Steps for all twelve names, in two lines, with values of this size.
    fn two_lines(size: u8) -> Vec<u8> {
        let value = |name: u8| [8, name, size];
        (0..11).flat_map(value).chain([0]).chain(value(11)).chain([0]).collect()
    }
}
