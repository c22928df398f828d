//! What README, SECURITY.md and the manual promise and nothing else shows: that what is printed stands in the manual,
//! that strangers write no log, how a server ends.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use authentick_lab::process::Process;
use serde_json::Value;

use crate::lab::{Lab, authentick, program, serve, start, text, wait_for};

/// A file of the project.
fn file(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// Words between backticks that consist of such characters; labels in braces are no part of them.
fn quoted(text: &str) -> BTreeSet<String> {
    let spans = text.split('`').skip(1).step_by(2).map(|span| span.split('{').next().unwrap());
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    spans.filter(|span| !span.is_empty() && span.chars().all(is_name)).map(str::to_owned).collect()
}

/// The part of `text` from one phrase to the next.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap_or_else(|| panic!("{from:?} is not there"));
    let rest = &text[start..];
    &rest[..rest.find(to).unwrap_or_else(|| panic!("{to:?} is not behind {from:?}"))]
}

/// A server of everything: NTS, symmetric keys, ANTP.
fn serve_everything(lab: &Lab, key_count: u32) -> crate::lab::Server {
    lab.antp_identity("ecdh", |_| {});
    let config = lab.antp_config(&["ecdh"], "", "");
    let keys = lab.path().join("keys");
    let lines: String = (1..=key_count).map(|id| format!("{id} AES128 HEX:{id:032x}\n")).collect();
    std::fs::write(&keys, lines).unwrap();
    std::fs::set_permissions(&keys, PermissionsExt::from_mode(0o600)).unwrap();
    let text = std::fs::read_to_string(&config).unwrap() + &format!("[symmetric]\nkeys = {keys:?}\n");
    std::fs::write(&config, text).unwrap();
    start(&config)
}

#[test]
fn every_metric_and_outcome_is_in_the_manual_and_none_besides() {
    let lab = Lab::new();
    let shown = serve_everything(&lab, 1).get("/metrics");
    let manual = file("docs/manual/metrics.md");

    let types = shown.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names: BTreeSet<String> = types
        .map(|line| match line.split_once(' ').unwrap() {
            (name, "counter") => format!("{name}_total"),
            (name, _) => name.to_owned(),
        })
        .collect();
    let mut told = quoted(between(&manual, "## `GET /metrics`", "## `GET /spans`"));
    told.retain(|word| ["ntp_", "nts_", "antp_"].iter().any(|prefix| word.starts_with(prefix)));
    let outcomes: BTreeSet<String> = ["ntp_server_packets_total", "nts_ke_connections_total"]
        .iter()
        .flat_map(|name| shown.lines().filter(move |line| line.starts_with(&format!("{name}{{"))))
        .map(|line| line.split('"').nth(1).unwrap().to_owned())
        .collect();
    let paragraphs = [
        between(&manual, "Outcomes of NTP:", "Outcomes of ANTP:"),
        between(&manual, "Outcomes of ANTP:", "With more than"),
        between(&manual, "Outcomes of key exchange:", "## `GET /spans`"),
    ];
    let told_outcomes: BTreeSet<String> = paragraphs.iter().flat_map(|paragraph| quoted(paragraph)).collect();
    let untold: Vec<&String> = outcomes.difference(&told_outcomes).collect();
    assert!(untold.is_empty(), "outcomes that the manual does not tell: {untold:?}");
    let unknown: Vec<&String> = told_outcomes.difference(&outcomes).collect();
    assert!(unknown.is_empty(), "outcomes that do not exist: {unknown:?}");
    // Outcomes of ANTP begin as metrics do.
    told.retain(|word| !outcomes.contains(word));
    let untold: Vec<&String> = names.difference(&told).collect();
    assert!(untold.is_empty(), "metrics that the manual does not tell: {untold:?}");
    let unknown: Vec<&String> = told.difference(&names).collect();
    assert!(unknown.is_empty(), "metrics that do not exist: {unknown:?}");
}

#[test]
fn of_more_than_1024_symmetric_keys_those_are_shown_that_somebody_named() {
    let lab = Lab::new();
    let server = serve_everything(&lab, 1100);
    let shown = || {
        let page = server.get("/metrics");
        page.lines().filter(|line| line.starts_with("ntp_symmetric_key_requests_total{")).count()
    };
    assert_eq!((server.metric("ntp_symmetric_keys"), shown()), (1100.0, 0));
    let (address, keys) = (server.ntp.to_string(), lab.path().join("keys"));
    let keys = keys.to_str().unwrap();
    let output = authentick(["query", &address, "--auth", "mac", "--keys", keys, "--key-id", "1090"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    wait_for("the key to be shown", || (shown() == 1).then_some(()));
}

#[test]
fn every_finding_of_doctor_is_in_the_manual_and_none_besides() {
    let output = authentick(["doctor", "--host", "--json"]);
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: BTreeSet<String> = findings.as_object().unwrap().keys().cloned().collect();
    let manual = file("docs/manual/doctor.md");
    let rows: String = manual.lines().filter(|line| line.starts_with("| `")).collect();
    let first_cells: String =
        manual.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next()).collect();
    let told = quoted(&rows);
    let untold: Vec<&String> = names.iter().filter(|name| !told.contains(*name)).collect();
    assert!(untold.is_empty(), "not in the manual: {untold:?}");
    let words = String::from_utf8(authentick(["doctor", "--host"]).stdout).unwrap();
    let headings = first_cells.split('`').skip(1).step_by(2);
    for heading in headings.filter(|heading| !names.contains(*heading)) {
        assert!(words.lines().any(|line| line.starts_with(heading)), "{heading} is not printed");
    }
    for line in words.lines() {
        let heading = line.split("  ").next().unwrap();
        assert!(first_cells.contains(&format!("`{heading}`")), "{heading} is not in the manual");
    }
}

/// The names of all fields in a record, but for those of tables whose names are data.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                found.insert(name.clone());
                fields(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_field_of_a_load_record_is_in_the_manual() {
    // The record that the renderers are tested with has each field that there is.
    let record: Value = serde_json::from_str(&file("crates/report/tests/golden/load.json")).unwrap();
    let mut found = BTreeSet::new();
    fields(&record, &mut found);
    let told = quoted(&file("docs/manual/load-record.md"));
    let untold: Vec<&String> = found.difference(&told).collect();
    assert!(untold.is_empty(), "not in the manual: {untold:?}");
    assert!(found.len() > 60, "{found:?}");
}

#[test]
fn causes_are_the_same_in_both_pages_and_in_the_code() {
    let known: BTreeSet<String> =
        authentick_report::load::Cause::ALL.iter().map(ToString::to_string).collect();
    let (load, record) = (file("docs/manual/load.md"), file("docs/manual/load-record.md"));
    let of = |table: &str| -> BTreeSet<String> {
        table.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next()).flat_map(quoted).collect()
    };
    assert_eq!(of(between(&load, "| cause | counted as", "## When a step")), known);
    assert_eq!(of(between(&record, "| cause | counted as", "## ANTP")), known);
}

#[test]
fn figures_of_readme_are_those_of_the_run_that_it_names() {
    let (readme, run) = (file("README.md"), file("bench/runs/2026-11-21-xeon-veth/README.md"));
    let (first, antp) = run.split_at(run.find("## With ANTP").unwrap());
    let table = between(&readme, "| one core | ratio |", "`cargo bench");
    for (row, run, name) in [
        ("plain NTP, to chrony 4.3", first, "plain / chrony "),
        ("plain NTP, to a bare", first, "plain / echo "),
        ("AES-CMAC, to chrony 4.3", first, "AES-CMAC / chrony "),
        ("AES-CMAC, to our own plain NTP", first, "AES-CMAC / our plain "),
        ("NTS with AEAD 15, to chrony 4.3", first, "NTS 15 / chrony "),
        ("NTS with AEAD 15, to our own", first, "NTS 15 / our plain "),
        ("NTS with AEAD 30, to our own", first, "NTS 30 / our plain "),
        ("NTS with AEAD 30, to chrony's", first, "NTS 30 / chrony's 15 "),
        ("resident memory", first, "authentick: resident "),
        ("ANTP, time requests", antp, "ANTP / our plain "),
        ("ANTP, key exchanges with ECDH", antp, "ecdh "),
        ("ANTP, key exchanges with RSA", antp, "rsa "),
    ] {
        let line = table.lines().find(|line| line.starts_with(&format!("| {row}"))).unwrap();
        let figure = line.trim_end_matches([' ', '|']).rsplit("| ").next().unwrap();
        let measured = run.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(measured.contains(&format!(" {figure}")), "{row}: {figure} is not in {measured:?}");
    }
    let rows = table.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows, 1 + 12, "each row is compared");
}

/// The first octets of TLS from a client that names the server so.
fn client_hello(server_name: &[u8]) -> Vec<u8> {
    let sized = |octets: &[u8]| [&(octets.len() as u16).to_be_bytes()[..], octets].concat();
    let name = [&[0][..], &sized(server_name)].concat();
    let extension = [&[0, 0][..], &sized(&sized(&name))].concat();
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],                // no session
        &[0, 2, 0x13, 0x01], // a cipher suite
        &[1, 0],             // no compression
        &sized(&extension),
    ]
    .concat();
    let message = [&[1, 0][..], &sized(&body)].concat();
    [&[22, 3, 1][..], &sized(&message)].concat()
}

fn connect_and_say(address: SocketAddr, octets: &[u8]) {
    let mut stream = TcpStream::connect(address).unwrap();
    // It may have closed already.
    let _ = stream.write_all(octets);
}

#[test]
fn strangers_write_no_log() {
    const PACKETS: usize = 100;
    const CONNECTIONS: usize = 10;
    let lab = Lab::new();
    for level in ["info", "debug"] {
        let config = lab.config("", "");
        let mut command = Command::new(program().path());
        command.arg("serve").arg("--config").arg(&config).env("RUST_LOG", level);
        let mut process = Process::start(&mut command);
        let ntp: SocketAddr = process.wait_for_line("serving time on ").parse().unwrap();
        let ke: SocketAddr = process.wait_for_line("exchanging keys on ").parse().unwrap();
        process.wait_for_line("showing metrics");
        let before = process.log().lines().count();

        // Every first octet, with sizes that are headers, MACs, fields, cut ones and longer ones than are read.
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        for (size, first) in [0, 1, 47, 48, 52, 68, 72, 76, 124, 3000].iter().zip((0..=255u8).cycle()) {
            for number in 0..PACKETS as u8 {
                let mut datagram = vec![1; *size];
                datagram.iter_mut().take(1).for_each(|octet| *octet = first.wrapping_mul(7) ^ number);
                client.send_to(&datagram, ntp).unwrap();
            }
        }
        // Silence, garbage, a message out of turn, alerts, and names that TLS has warnings for.
        let sayings = [
            Vec::new(),
            b"GET / HTTP/1.0\r\n\r\n".to_vec(),
            vec![23, 3, 3, 0, 1, 0],
            vec![21, 3, 3, 0, 2, 2, 40],
            vec![21, 3, 3, 0, 2, 1, 90],
            client_hello(b"127.0.0.1"),
            client_hello(b"no name\x1b["),
            client_hello(b"ntp.test"),
        ];
        for saying in sayings.iter().cycle().take(CONNECTIONS * sayings.len()) {
            connect_and_say(ke, saying);
        }
        // A name that the certificate is not good for: this client ends the handshake with an alert.
        let port = ke.port().to_string();
        let arguments =
            ["query", "localhost", "--server-name", "other.test", "--timeout", "2", "--ke-port", &port];
        assert_ne!(authentick(arguments).status.code(), Some(0));

        // What was written before this line has been read when it has.
        process.signal("-HUP");
        process.wait_for_line("certificate read again");
        process.wait_for_line("cookie keys read again");
        process.signal("-TERM");
        process.wait_for_line("stopping on SIG");
        assert_eq!(process.wait(), 0, "{}", process.log());
        let log = process.log();
        let written = log.lines().count() - before;
        // Two lines of the reload and one of the stop.
        assert!(written <= 3 + 3, "{level}: {written} lines:\n{log}");
    }
}

#[test]
fn endpoint_has_its_pages_and_takes_nothing_else() {
    let lab = Lab::new();
    let server = serve(&lab);
    let ask_at = |address: SocketAddr, request: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        std::io::read_to_string(stream).unwrap().to_lowercase()
    };
    let ask = |request: &str| ask_at(server.metrics, request);
    let metrics = ask("GET /metrics");
    assert!(metrics.starts_with("http/1.1 200 "), "{metrics}");
    assert!(metrics.contains("content-type: application/openmetrics-text; version=1.0.0"), "{metrics}");
    assert!(metrics.ends_with("# eof\n"), "{metrics}");
    assert!(ask("GET /spans").contains("content-type: application/json"));
    assert!(ask("POST /metrics").starts_with("http/1.1 405 "));
    assert!(ask("GET /etc/passwd").starts_with("http/1.1 404 "));
    for page in ["/healthz", "/readyz"] {
        let said = ask(&format!("GET {page}"));
        assert!(said.starts_with("http/1.1 200 ") && said.ends_with("\r\n\r\nok\n"), "{page}: {said}");
    }
    // A server whose upstream is silent is healthy, and clients are better off elsewhere.
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let upstream = format!("reference = {{ upstream = \"{}\" }}", nobody.local_addr().unwrap());
    let lab = Lab::new();
    let waiting = start(&lab.config(&upstream, ""));
    assert!(ask_at(waiting.metrics, "GET /healthz").starts_with("http/1.1 200 "));
    let said = ask_at(waiting.metrics, "GET /readyz");
    assert!(said.starts_with("http/1.1 503 ") && said.contains("clock: it is not synchronised"), "{said}");
}

#[test]
fn sigint_ends_it_and_so_does_the_end_of_its_input_where_that_is_wanted() {
    let lab = Lab::new();
    let mut server = serve(&lab);
    server.process.signal("-INT");
    assert_eq!(server.process.wait(), 0, "{}", server.process.log());

    let lab = Lab::new();
    let config = lab.config("", "");
    let mut command = Command::new(program().path());
    command.args(["serve", "--until-eof", "--config"]).arg(&config);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take();
    // It stands while somebody holds the other end.
    wait_for("the state directory", || lab.state().join("cookie-keys").exists().then_some(()));
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(child.try_wait().unwrap(), None);
    drop(input);
    let status = wait_for("the server to end", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}
