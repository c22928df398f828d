//! What is joined, sampled, kept in rows, and said of an endpoint that fails.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;

use authentick_report::load::span_rows;

use super::*;

#[test]
fn exchanges_are_joined_by_address_and_timestamp() {
    let source: SocketAddr = "192.0.2.1:1000".parse().unwrap();
    let other: SocketAddr = "192.0.2.1:1001".parse().unwrap();
    let mut read = Read::new(Next::default(), 10);
    let text = format!(
        r#"{{ "next": {{ "ntp": 1, "ke": 1 }},
             "ntp": [{{ "source": "{source}", "origin": "{:016x}", "d_sntp_ns": 50, "d_snts_ns": 300 }}],
             "ke": [{{ "source": "{other}", "d_ske_from_accept_ns": 900 }}] }}"#,
        77
    );
    read.add(Answer::parse(&text));
    let joinable = |source, transmit, whole_ns| Joinable { source, transmit, whole_ns };
    let joinables = [
        joinable(source, Some(77), 1000),
        joinable(other, Some(77), 2000),
        joinable(source, Some(78), 3000),
        joinable(other, None, 5000),
        joinable(source, None, 6000),
    ];
    let spans = join(&read, &joinables, 7, |_, server| assert_eq!(server, None, "it tells no stages"));
    assert_eq!((spans.joined, spans.unmatched, spans.left_out), (2, 3, 7));
    assert_eq!((spans.clock_ns, spans.every), (None, None));
    // Equation (6): d_CNTP = d_CNTS - d_SNTS.
    assert_eq!(spans.d_cntp_ns.pairs(), [(700, 1)]);
    assert_eq!(spans.d_ske_ns.pairs(), [(900, 1)]);
    assert_eq!((spans.d_cnts_ns.count(), spans.d_cke_ns.count()), (3, 2));
}

/// Requests of one client in readings of 1,000: the client keeps at most 2,000 of 20,000, the server's side 8,000.
#[test]
fn both_sides_take_the_same_bounded_sample_and_count_the_rest() {
    let source: SocketAddr = "192.0.2.1:1000".parse().unwrap();
    let joinable = |n| Joinable { source, transmit: Some(n), whole_ns: 1000 };
    for (client_max, server_max) in [(2_000, 8_000), (8_000, 2_000), (20_000, 512), (512, 20_000)] {
        let mut read = Read::new(Next::default(), server_max);
        for reading in 0..20u64 {
            let record = |origin| NtpTimes {
                source,
                origin,
                batch_size: 1,
                d_sntp_ns: 5,
                d_snts_ns: 30,
                stages: None,
            };
            let ntp = (0..1000).map(|n| record(reading * 1000 + n)).collect();
            read.add(Ok(Answer { ntp, ..Answer::default() }));
            assert!(read.ntp.kept().len() <= server_max, "{}", read.ntp.kept().len());
        }
        let mut client = Selection::new(client_max);
        client.extend((0..20_000).map(joinable));
        let (joinables, left_out) = client.take();
        let mut row_count = 0;
        let spans = join(&read, &joinables, left_out, |_, _| row_count += 1);
        // The smaller sample is joined as a whole.
        let smaller = joinables.len().min(read.ntp.kept().len()) as u64;
        assert_eq!((spans.joined, spans.unmatched, row_count), (smaller, 0, smaller));
        assert_eq!(spans.joined + spans.left_out, 20_000);
        assert!(spans.joined * 3 > client_max.min(server_max) as u64, "{}", spans.joined);
        assert_eq!(spans.d_cntp_ns.count(), spans.joined);
    }
}

#[test]
fn reading_that_fails_loses_nothing_and_is_named_unless_a_later_one_succeeds() {
    let source: SocketAddr = "192.0.2.1:1000".parse().unwrap();
    let ke = || vec![KeTimes { source, d_ske_from_accept_ns: 900, stages: None }];
    let mut read = Read::new(Next::default(), 10);
    read.add(Ok(Answer { next: Next { ntp: 0, ke: 1 }, ke: ke(), ..Answer::default() }));
    read.add(Err("refused".to_owned()));
    assert_eq!((read.next.ke, read.ke.kept().len()), (1, 1));
    assert_eq!(read.problem.as_deref(), Some("refused"));
    read.add(Ok(Answer { next: Next { ntp: 0, ke: 2 }, ..Answer::default() }));
    assert_eq!((read.next.ke, read.problem), (2, None));
}

/// An endpoint that gives these answers one after the other, and the last one from then on.
fn endpoint(answers: &[&str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answers: Vec<String> = answers.iter().map(ToString::to_string).collect();
    std::thread::spawn(move || {
        for turn in 0.. {
            let body = &answers[answers.len().min(turn + 1) - 1];
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close", body.len());
            stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
        }
    });
    address
}

const NOTHING: &str = r#"{ "clock_ns": 20, "every": 2, "next": { "ntp": 0, "ke": 0 }, "ntp": [], "ke": [] }"#;

#[test]
fn rows_have_both_sides_of_each_exchange_and_what_is_left_out_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("spans.csv");
    let (source, other): (SocketAddr, SocketAddr) =
        ("192.0.2.1:1000".parse().unwrap(), "192.0.2.1:1001".parse().unwrap());
    let records = format!(
        r#"{{ "clock_ns": 20, "every": 2, "next": {{ "ntp": 1, "ke": 1 }},
             "ntp": [{{ "source": "{source}", "origin": "4d", "batch_size": 1, "d_sntp_ns": 70, "d_snts_ns": 90,
                "instants_ns": [0, 10, 20, 50, 80, 90, 160, 190],
                "counts": {{ "parse": 1, "admit": 1, "open": 1, "verify": 1, "fresh": 1, "build": 1, "seal": 1 }} }}],
             "ke": [{{ "source": "{other}", "d_ske_from_accept_ns": 900,
                "stages_ns": {{ "handshake": 700, "choose": 30, "export": 100, "cookies": 70, "response": 50 }} }}] }}"#
    );
    let mut spans = SpanSource::new(&endpoint(&[NOTHING, &records, NOTHING])).unwrap();
    spans.keep_rows(report_file(&file)).unwrap();
    let joinable = |source, transmit| Joinable { source, transmit, whole_ns: 5000 };
    let order = Order { rate_rps: Some(40.0), number: 0, ..Order::default() };
    spans.begin().unwrap();
    let joinables = [joinable(source, Some(0x4d)), joinable(other, None), joinable(other, Some(1))];
    let (joined, remarks) = spans.join(&order, &joinables, 1995);
    assert_eq!((joined.joined, joined.unmatched, joined.clock_ns, joined.every), (2, 1, Some(20), Some(2)));
    assert_eq!(joined.d_ske_ns.pairs(), [(680 + 10 + 80 + 50, 1)]);
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(remarks[0].contains("spans.csv has no rows of 1,995 exchanges of this step"), "{remarks:?}");
    let rows = span_rows::parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        rows.iter().map(|row| (row.source, row.transmit)).collect::<Vec<_>>(),
        [(source, Some(0x4d)), (other, None), (other, Some(1))]
    );
    assert!(rows.iter().all(|row| (row.step, row.client_ns, row.clock_ns) == (1, 5000, 20)));
    let d_snts = rows[0].d_snts().unwrap();
    assert_eq!((d_snts.raw_ns, d_snts.ns), (90, 30));
    assert_eq!(rows[1].d_ske_to_response().unwrap().ns, 10 + 80 + 50 + 30);
    assert_eq!(rows[2].server, None);
}

fn report_file(path: &Path) -> ReportFile {
    ReportFile::open(path, || true).unwrap()
}

#[test]
fn file_of_rows_is_bounded_over_all_steps_and_one_that_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spans.csv");
    let row = SpanRow {
        step: 1,
        offered_rps: None,
        source: "192.0.2.1:1000".parse().unwrap(),
        transmit: Some(1),
        client_ns: 5,
        clock_ns: 0,
        server: None,
    };
    let mut rows = RowFile::begin(report_file(&path)).unwrap().with_room(3);
    (0..2).for_each(|_| rows.add(&row));
    assert_eq!(rows.end_step(0), None);
    (0..5).for_each(|_| rows.add(&row));
    let told = rows.end_step(10).unwrap();
    assert!(told.contains("no rows of 14 exchanges") && told.contains("at most"), "{told}");
    assert_eq!(span_rows::parse(&std::fs::read_to_string(&path).unwrap()).unwrap(), [row; 3]);

    let mut full = RowFile::begin(report_file(Path::new("/dev/full"))).unwrap();
    full.add(&row);
    let told = [full.end_step(0).unwrap(), full.end_step(0).unwrap()];
    assert!(told[0].starts_with("Rows of spans are missing: /dev/full: cannot write: "), "{told:?}");
    assert!(told[1].starts_with("Rows of spans are missing, as before: "), "{told:?}");
}

#[test]
fn server_without_stages_rows_are_refused() {
    let earlier = r#"{ "next": { "ntp": 0, "ke": 0 }, "ntp": [], "ke": [] }"#;
    let mut spans = SpanSource::new(&endpoint(&[earlier])).unwrap();
    let problem = spans.keep_rows(report_file(Path::new("/dev/null"))).unwrap_err();
    assert!(problem.contains("neither all stages") && problem.contains("update the server"), "{problem}");
}

#[test]
fn endpoint_that_is_not_there_is_named() {
    let problem = SpanSource::new("127.0.0.1:1").unwrap_err();
    assert!(problem.contains("http://127.0.0.1:1/spans"), "{problem}");
}

#[test]
fn redirection_is_not_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/spans", listener.local_addr().unwrap());
    let place = url.clone();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        assert!(stream.read(&mut head).unwrap() > 0);
        write!(stream, "HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n").unwrap();
        listener
    });
    let problem = fetch(&url, Next::default()).unwrap_err();
    assert!(problem.contains("302"), "{problem}");
    let listener = server.join().unwrap();
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "it was asked again");
}
