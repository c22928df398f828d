//! What is written, what is read, and what ends a connection. Texts of servers are those of doc/protocol.txt, and what
//! memcached 1.6.18 was seen to send.

mod histories;
mod model;

use self::model::shown;
use super::*;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn names(texts: &[&str]) -> Vec<Name> {
    texts.iter().map(|text| name(text)).collect()
}

fn gets(texts: &[&str]) -> Request {
    Request::Gets { names: names(texts) }
}

fn add(text: &str, value: &[u8]) -> Request {
    Request::Add { name: name(text), value: value.to_vec() }
}

fn cas(text: &str, value: &[u8], token: u64) -> Request {
    Request::Cas { name: name(text), value: value.to_vec(), token }
}

fn value(text: &str, octets: &[u8], token: u64) -> Value {
    Value { name: name(text), octets: octets.to_vec(), token }
}

fn refused(kind: RefusalKind, text: &str) -> Response {
    Response::Refused(Refusal { kind, text: text.to_owned() })
}

fn emitted(request: &Request) -> String {
    let mut out = Vec::new();
    request.emit(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What comes of requests when a server says this: the responses, and the fault.
fn outcome(requests: &[Request], said: &[u8]) -> (Vec<Response>, Option<Fault>) {
    let mut connection = Connection::new();
    requests.iter().for_each(|request| connection.ask(request).unwrap());
    let _ = connection.received(said);
    let mut responses = Vec::new();
    while let Ok(Some(response)) = connection.response() {
        responses.push(response);
    }
    assert_eq!(connection.fault(), connection.response().err());
    (responses, connection.fault())
}

/// The fault with which a connection ends that was asked for `a` and `b`.
fn fault(said: &[u8]) -> Option<Fault> {
    outcome(&[gets(&["a", "b"])], said).1
}

#[test]
fn names_are_printable_and_at_most_250_octets() {
    assert_eq!(Name::new(""), Err(BadName::Empty));
    assert_eq!(Name::new(&"n".repeat(250)).unwrap().as_str().len(), 250);
    assert_eq!(Name::new(&"n".repeat(251)), Err(BadName::Size));
    for code in 0..=u8::MAX {
        let is_fit = (0x21..=0x7E).contains(&code);
        assert_eq!(Name::new(&format!("a{}b", char::from(code))).is_ok(), is_fit, "{code:#x}");
    }
    assert_eq!("a:b/7".parse::<Name>().unwrap().to_string(), "a:b/7");
}

#[test]
fn requests_are_written_as_the_protocol_says() {
    assert_eq!(emitted(&gets(&["a"])), "gets a\r\n");
    assert_eq!(emitted(&gets(&["a", "b", "c"])), "gets a b c\r\n");
    assert_eq!(emitted(&add("k", b"data")), "add k 0 0 4\r\ndata\r\n");
    assert_eq!(emitted(&add("k", b"")), "add k 0 0 0\r\n\r\n");
    assert_eq!(emitted(&cas("k", b"\r\n", u64::MAX)), "cas k 0 0 2 18446744073709551615\r\n\r\n\r\n");
}

#[test]
fn unfit_requests_are_not_written() {
    let many = |count| Request::Gets { names: (0..count).map(|index| name(&index.to_string())).collect() };
    let size = VALUE_SIZE_MAX + 1;
    for (request, unfit) in [
        (gets(&[]), Unfit::NoNames),
        (gets(&["b", "a", "b"]), Unfit::NameTwice),
        (many(1025), Unfit::NameCount),
        (add("k", &vec![0; size]), Unfit::ValueSize),
        (cas("k", &vec![0; size], 1), Unfit::ValueSize),
    ] {
        let mut out = b"before".to_vec();
        assert_eq!(request.emit(&mut out), Err(unfit));
        assert_eq!(out, b"before");
        let mut connection = Connection::new();
        assert_eq!(connection.ask(&request), Err(Unasked::Unfit(unfit)));
        assert_eq!((connection.waiting(), connection.unsent()), (0, &b""[..]));
    }
    for request in [many(1024), add("k", &vec![0; size - 1]), cas("k", &vec![0; size - 1], 1)] {
        assert_eq!(request.emit(&mut Vec::new()), Ok(()));
    }
}

#[test]
fn many_names_take_lines_that_are_as_long_as_they_may_be() {
    // The size of the first name, and of all others; with 33 and eight of 250, a line has exactly as much as it may.
    for (first, others, count, line_count) in
        [(33, 250, 9, 1), (34, 250, 9, 2), (250, 250, 1024, 128), (7, 60, 1024, 31), (4, 4, 1024, 3)]
    {
        let numbered = |index: usize| {
            let size = if index == 0 { first } else { others };
            name(&format!("{index:0>size$}"))
        };
        let asked: Vec<Name> = (0..count).map(numbered).collect();
        let out = emitted(&Request::Gets { names: asked.clone() });
        let lines: Vec<&str> = out.split_inclusive("\r\n").collect();
        assert!(lines.iter().flat_map(|line| line.trim_end().split(' ').skip(1)).map(name).eq(asked));
        assert!(lines.iter().all(|line| line.starts_with("gets ") && line.len() <= 2048));
        for pair in lines.windows(2) {
            let next = pair[1].trim_end().split(' ').nth(1).unwrap();
            assert!(pair[0].len() + 1 + next.len() > 2048);
        }
        assert_eq!(lines.len(), line_count, "{first} {others}");
    }
}

#[test]
fn every_line_of_a_server_answers_what_it_may() {
    let a = value("a", b"data", 3);
    let both = vec![value("b", b"", 4), a.clone()];
    for (request, said, response) in [
        (gets(&["a", "b"]), "END\r\n", Response::Values(Vec::new())),
        (gets(&["a", "b"]), "VALUE a 0 4 3\r\ndata\r\nEND\r\n", Response::Values(vec![a])),
        (
            gets(&["a", "b"]),
            "VALUE b 5 0 4\r\n\r\nVALUE a 4294967295 4 3\r\ndata\r\nEND\r\n",
            Response::Values(both),
        ),
        (add("a", b""), "STORED\r\n", Response::Stored),
        (add("a", b""), "NOT_STORED\r\n", Response::NotStored),
        (cas("a", b"", 1), "STORED\r\n", Response::Stored),
        (cas("a", b"", 1), "EXISTS\r\n", Response::Exists),
        (cas("a", b"", 1), "NOT_FOUND\r\n", Response::NotFound),
    ] {
        assert_eq!(outcome(&[request], said.as_bytes()), (vec![response], None), "{said}");
    }
}

#[test]
fn line_that_answers_another_request_ends_the_connection() {
    let lines = ["END", "STORED", "NOT_STORED", "EXISTS", "NOT_FOUND", "VALUE a 0 0 1\r\n\r\nEND"];
    let fits = [(gets(&["a"]), vec![0, 5]), (add("a", b""), vec![1, 2]), (cas("a", b"", 1), vec![1, 3, 4])];
    for (request, fitting) in fits {
        for (index, line) in lines.iter().enumerate() {
            let expected = (!fitting.contains(&index)).then_some(Fault::Line);
            let (_, fault) = outcome(std::slice::from_ref(&request), format!("{line}\r\n").as_bytes());
            assert_eq!(fault, expected, "{line} to {request:?}");
        }
    }
    for line in ["", "end", "END ", " END", "DELETED", "OK", "ERRORS", "VALUE", "STORED x"] {
        assert_eq!(fault(format!("{line}\r\n").as_bytes()), Some(Fault::Line), "{line:?}");
    }
}

#[test]
fn fields_of_values_are_four_numbers_and_names_with_single_spaces() {
    let line = |line: &str| fault(format!("VALUE {line}\r\n\r\nEND\r\n").as_bytes());
    assert_eq!(line("a 0 0 18446744073709551615"), None);
    assert_eq!(line("a 0 00 1"), None);
    for fields in ["a 0 0", "a 0", "a", "a 0 0 1 ", "a 0 0 1 1", "a 0 0"] {
        assert_eq!(line(fields), Some(Fault::Line), "{fields:?}");
    }
    for fields in [
        "a 0 0 18446744073709551616",
        "a 0 0 99999999999999999999",
        "a 0 0 340282366920938463463374607431768211457",
        "a 0 0 +1",
        "a 0 0 -1",
        "a 0 0 1a",
        "a 0 0 ",
        "a 0  1",
        "a  0 1",
        "a 0 :0 1",
        "a 0 -0 1",
        "a 4294967296 0 1",
        "a x 0 1",
        "a 0 18446744073709551616 1",
    ] {
        assert_eq!(line(fields), Some(Fault::Number), "{fields:?}");
    }
    assert_eq!(line("a 0 0 0"), Some(Fault::NoToken));
}

#[test]
fn values_that_were_not_asked_for_or_come_twice_end_the_connection() {
    assert_eq!(fault(b"VALUE c 0 0 1\r\n"), Some(Fault::NotAsked));
    assert_eq!(fault(b"VALUE A 0 0 1\r\n"), Some(Fault::NotAsked));
    assert_eq!(fault(b"VALUE \xff 0 0 1\r\n"), Some(Fault::NotAsked));
    assert_eq!(fault(b"VALUE a 0 0 1\r\n\r\nVALUE a 0 0 1\r\n"), Some(Fault::Twice));
    assert_eq!(fault(b"VALUE a 0 0 1\r\n\r\nVALUE b 0 0 1\r\n\r\nEND\r\n"), None);
    // A name of the second line in the response to the first.
    let long: Vec<String> = (0..9).map(|index| index.to_string().repeat(250)).collect();
    let asked = [gets(&long.iter().map(String::as_str).collect::<Vec<_>>())];
    let said = |at: usize| format!("VALUE {} 0 0 1\r\n\r\n", long[at]);
    assert_eq!(outcome(&asked, said(8).as_bytes()).1, Some(Fault::NotAsked));
    let both = format!("{}END\r\n{}END\r\n", said(7), said(8));
    let found = vec![value(&long[7], b"", 1), value(&long[8], b"", 1)];
    assert_eq!(outcome(&asked, both.as_bytes()), (vec![Response::Values(found)], None));
    assert_eq!(outcome(&asked, b"END\r\n"), (Vec::new(), None));
    // To another request, the same name is new again.
    let twice = b"VALUE a 0 0 1\r\n\r\nEND\r\nVALUE a 0 0 1\r\n\r\nEND\r\n";
    assert_eq!(outcome(&[gets(&["a"]), gets(&["a"])], twice).0.len(), 2);
}

#[test]
fn value_ends_where_its_line_says() {
    assert_eq!(fault(b"VALUE a 0 2 1\r\n\r\n\r\nEND\r\n"), None);
    for said in [&b"VALUE a 0 2 1\r\nxyz\r\n"[..], b"VALUE a 0 2 1\r\nx\r\nE", b"VALUE a 0 2 1\r\nxy\nE"] {
        assert_eq!(fault(said), Some(Fault::ValueEnd));
    }
    assert_eq!(fault(b"VALUE a 0 2 1\r\nxy\rx"), Some(Fault::ValueEnd));
    assert_eq!(fault(b"VALUE a 0 2 1\r\nxyz\n"), Some(Fault::ValueEnd));
}

#[test]
fn lines_end_with_both_octets_and_have_at_most_512() {
    assert_eq!(fault(b"END\n"), Some(Fault::LineEnd));
    assert_eq!(fault(b"\n"), Some(Fault::LineEnd));
    assert_eq!(fault(b"END\r"), None);
    assert_eq!(fault(b"END\rx\r\n"), Some(Fault::Line));
    let text = |size: usize| format!("SERVER_ERROR {}\r\n", "x".repeat(size - 15));
    assert_eq!(outcome(&[gets(&["a"])], text(512).as_bytes()).1, None);
    assert_eq!(outcome(&[gets(&["a"])], text(513).as_bytes()), (Vec::new(), Some(Fault::LineSize)));
    assert_eq!(fault(&[b'x'; 511]), None);
    assert_eq!(fault(&[b'x'; 512]), Some(Fault::LineSize));
}

#[test]
fn values_are_limited_alone_and_together() {
    assert_eq!(fault(b"VALUE a 0 262144 1\r\n"), None);
    assert_eq!(fault(b"VALUE a 0 262145 1\r\n"), Some(Fault::ValueSize));
    assert_eq!(fault(b"VALUE a 0 18446744073709551615 1\r\n"), Some(Fault::ValueSize));
    let largest = vec![7; VALUE_SIZE_MAX];
    let asked = [gets(&["a", "b", "c", "d", "e"])];
    let mut found: Vec<Value> = ["a", "b", "c", "d"].map(|text| value(text, &largest, 1)).to_vec();
    let said = |found: &[Value]| shown(&Response::Values(found.to_vec()));
    assert_eq!(outcome(&asked, &said(&found)), (vec![Response::Values(found.clone())], None));
    found.push(value("e", b"x", 1));
    assert_eq!(outcome(&asked, &said(&found)), (Vec::new(), Some(Fault::ResponseSize)));
    found[4].octets.clear();
    assert_eq!(outcome(&asked, &said(&found)).1, None);
}

#[test]
fn announced_size_takes_no_memory() {
    let mut connection = Connection::new();
    connection.ask(&gets(&["a"])).unwrap();
    connection.received(b"VALUE a 0 262144 1\r\nxy").unwrap();
    assert!(connection.held() <= 64, "{}", connection.held());
    for _ in 0..63 {
        connection.received(&[b'x'; 4096]).unwrap();
    }
    assert!(connection.held() <= VALUE_SIZE_MAX + 2, "{}", connection.held());
}

#[test]
fn refusals_are_told_and_those_after_which_nothing_is_certain_end_the_connection() {
    use RefusalKind::{ClientError, Error, ServerError};
    let memory = "out of memory storing object";
    let (one, error) = (|| vec![add("a", b"")], format!("SERVER_ERROR {memory}\r\n"));
    let told = |kind, text: &str, fault| (vec![refused(kind, text)], fault);
    assert_eq!(outcome(&one(), error.as_bytes()), told(ServerError, memory, None));
    let large = b"SERVER_ERROR object too large for cache\r\n";
    assert_eq!(outcome(&one(), large), told(ServerError, "object too large for cache", None));
    let writing = b"SERVER_ERROR out of memory writing get response\r\n";
    let text = "out of memory writing get response";
    assert_eq!(outcome(&[gets(&["a"])], writing), told(ServerError, text, None));
    assert_eq!(outcome(&[gets(&["a"])], b"SERVER_ERROR\r\n"), told(ServerError, "", None));

    let ended = Some(Fault::OutOfStep);
    assert_eq!(outcome(&one(), b"ERROR\r\n"), told(Error, "", ended));
    let crowd = b"ERROR Too many open connections\r\n";
    assert_eq!(outcome(&[gets(&["a"])], crowd), told(Error, "Too many open connections", ended));
    let chunk = b"CLIENT_ERROR bad data chunk\r\nERROR\r\n";
    assert_eq!(outcome(&one(), chunk), told(ClientError, "bad data chunk", ended));

    // With more that waits: stores are answered each by themselves, but an error of a `gets` may hide others.
    let stores = [add("a", b""), cas("a", b"", 1)];
    let both = vec![refused(ServerError, memory), Response::Stored];
    assert_eq!(outcome(&stores, format!("{error}STORED\r\n").as_bytes()), (both, None));
    for asked in [[add("a", b""), gets(&["a"])], [gets(&["a"]), add("a", b"")], [gets(&["a"]), gets(&["a"])]]
    {
        assert_eq!(outcome(&asked, error.as_bytes()), told(ServerError, memory, ended));
    }
    // Once the `gets` has its response, errors are certain again.
    let asked = [gets(&["a"]), add("a", b"")];
    assert_eq!(outcome(&asked, format!("END\r\n{error}").as_bytes()).1, None);
    let long: Vec<String> = (0..9).map(|index| index.to_string().repeat(250)).collect();
    let two_lines = [gets(&long.iter().map(String::as_str).collect::<Vec<_>>())];
    assert_eq!(outcome(&two_lines, writing), told(ServerError, text, ended));
    assert_eq!(outcome(&two_lines, &[b"END\r\n", &writing[..]].concat()), told(ServerError, text, None));
}

#[test]
fn values_before_a_refusal_do_not_belong_to_the_next_response() {
    let mut connection = Connection::new();
    connection.ask(&gets(&["a", "b"])).unwrap();
    connection.received(b"VALUE a 0 1 1\r\nx\r\nSERVER_ERROR out\r\n").unwrap();
    assert_eq!(connection.response(), Ok(Some(refused(RefusalKind::ServerError, "out"))));
    connection.ask(&gets(&["a", "b"])).unwrap();
    connection.received(b"VALUE b 0 1 1\r\ny\r\nEND\r\n").unwrap();
    assert_eq!(connection.response(), Ok(Some(Response::Values(vec![value("b", b"y", 1)]))));
}

#[test]
fn text_of_a_refusal_is_printable_and_short() {
    let said = format!("SERVER_ERROR \u{1b}[2J\u{e4} \0{}\r\n", "x".repeat(300));
    let (responses, fault) = outcome(&[add("a", b"")], said.as_bytes());
    let Response::Refused(refusal) = &responses[0] else { panic!("{responses:?}") };
    assert_eq!(refusal.text, format!("?[2J?? ?{}", "x".repeat(TEXT_SIZE_MAX - 8)));
    assert_eq!(fault, None);
}

#[test]
fn octets_that_nobody_asked_for_end_the_connection() {
    assert_eq!(outcome(&[], b"E"), (Vec::new(), Some(Fault::NotWaiting)));
    let (responses, fault) = outcome(&[add("a", b"")], b"STORED\r\n\r");
    assert_eq!((responses, fault), (vec![Response::Stored], Some(Fault::NotWaiting)));
    assert_eq!(outcome(&[], b""), (Vec::new(), None));
}

#[test]
fn ended_connection_says_why_to_every_call_and_sends_nothing() {
    let mut connection = Connection::new();
    connection.ask(&add("a", b"")).unwrap();
    connection.ask(&add("b", b"")).unwrap();
    connection.sent(3);
    assert_eq!(connection.received(b"STORED\r\nEND\r\nSTORED\r\n"), Err(Fault::Line));
    assert_eq!(connection.unsent(), b"");
    assert_eq!(connection.received(b"STORED\r\n"), Err(Fault::Line));
    assert_eq!(connection.ask(&add("c", b"")), Err(Unasked::Ended(Fault::Line)));
    assert_eq!(connection.response(), Ok(Some(Response::Stored)));
    assert_eq!(connection.response(), Err(Fault::Line));
    assert_eq!(connection.response(), Err(Fault::Line));
    assert_eq!((connection.fault(), connection.waiting()), (Some(Fault::Line), 1));
}

#[test]
fn only_so_many_requests_and_octets_wait() {
    let mut connection = Connection::new();
    for _ in 0..REQUEST_COUNT_MAX {
        connection.ask(&add("a", b"")).unwrap();
    }
    assert_eq!(connection.ask(&add("a", b"")), Err(Unasked::Full));
    // A response that nobody has taken waits too.
    connection.received(b"STORED\r\n").unwrap();
    assert_eq!(connection.ask(&add("a", b"")), Err(Unasked::Full));
    connection.response().unwrap();
    assert_eq!(connection.ask(&add("a", b"")), Ok(()));

    let mut connection = Connection::new();
    let largest = add("a", &vec![0; VALUE_SIZE_MAX]);
    for _ in 0..3 {
        connection.ask(&largest).unwrap();
    }
    let size = connection.unsent().len();
    assert_eq!(connection.ask(&largest), Err(Unasked::Full));
    assert_eq!((connection.unsent().len(), connection.waiting()), (size, 3));
    connection.sent(size / 3);
    assert_eq!(connection.ask(&largest), Ok(()));
    connection.sent(usize::MAX);
    assert_eq!(connection.unsent(), b"");
}

#[test]
fn contents_of_values_are_not_shown() {
    let mut connection = Connection::new();
    connection.ask(&add("a", b"secret")).unwrap();
    let shown = format!("{:?} {:?} {connection:?}", add("a", b"secret"), value("a", b"secret", 1));
    let octets = format!("{:?}", b"secret");
    assert!(!shown.contains("secret") && !shown.contains(octets.trim_matches(['[', ']'])), "{shown}");
}
