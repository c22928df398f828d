//! The game against other people's code: strategies that need the network alone, over real sockets, through a relay.
//!
//! `docs/others.md` has the verdicts. `AUTHENTICK_UPDATE_GOLDEN=1` writes them anew; look at what has changed, and why.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_game::verdict::Verdict;
use authentick_ke::client::{self, Ask};
use authentick_ke::tls::{Roots, client_config};
use authentick_lab::peers::{Chrony, FacebookTime, NtpdRs};
use authentick_proto::client::Exchange;
use authentick_proto::limits::REQUEST_SIZE_MAX;
use authentick_wire::extension::FieldType;
use authentick_wire::header::{Header, ReferenceId};
use authentick_wire::ke::AeadId;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::packet::Packet;
use authentick_wire::time::{NtpSpan, NtpTime};
use rustls::pki_types::ServerName;

use crate::lab::{Changed, Lab, Relay, Server, free_port, start, text, wait_for};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/others.md");

const HOUR: NtpSpan = NtpSpan::from_nanos(3_600_000_000_000);

/// Rows that are played at once, each against all clients.
const ROWS_AT_ONCE: usize = 3;

/// How long ntpd-rs goes on after an answer that it did not believe: it asks twice more.
const NTPD_RS_ROUNDS: Duration = Duration::from_secs(5);

/// How long a client may say nothing at all.
const PATIENCE_MAX: Duration = Duration::from_secs(60);

/// How long a server has for an answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// After so many answers to its own answers a server is in a loop.
const LOOP: usize = 4;

/// What somebody in the middle makes of responses.
type Change = Box<dyn FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send>;

/// A strategy against clients: its name in `authentick game list`, and what it does.
struct Row {
    id: &'static str,
    /// More of chrony's options for the source.
    options: &'static str,
    change: fn() -> Change,
}

fn with_header(message: &[u8], change: impl FnOnce(Header) -> Header) -> Vec<u8> {
    let mut changed = message.to_vec();
    if let Some(octets) = changed.first_chunk_mut::<HEADER_SIZE>() {
        change(Header::parse(octets)).emit(octets);
    }
    changed
}

fn an_hour_on(message: &[u8]) -> Vec<u8> {
    let later = |header: Header| Header {
        receive: header.receive + HOUR,
        transmit: header.transmit + HOUR,
        ..header
    };
    with_header(message, later)
}

/// The first response is held back, and answers all requests after it, with their origins.
fn replay() -> Change {
    let mut first = None;
    Box::new(move |response| match &first {
        None => {
            first = Some(response);
            vec![]
        }
        Some(old) => {
            let origin = Header::parse(response.first_chunk().unwrap()).origin;
            vec![with_header(old, |header| Header { origin, ..header })]
        }
    })
}

fn refusals() -> Change {
    Box::new(|response| {
        let kiss = |code: &[u8; 4]| {
            let refused = |header| Header { stratum: 0, reference_id: ReferenceId(*code), ..header };
            with_header(&response[..HEADER_SIZE], refused)
        };
        let mut all: Vec<_> = [b"DENY", b"RSTR", b"NTSN"].map(kiss).to_vec();
        all.push(response.clone());
        all
    })
}

const ROWS: [Row; 10] = [
    Row { id: "faithful", options: "", change: || Box::new(|response| vec![response]) },
    Row { id: "rewrite-times", options: "", change: || Box::new(|response| vec![an_hour_on(&response)]) },
    Row { id: "replay", options: "", change: replay },
    Row {
        id: "blind-guess",
        options: "",
        change: || {
            let blind = |header| Header { origin: NtpTime::ZERO, ..header };
            Box::new(move |response| vec![with_header(&an_hour_on(&response), blind)])
        },
    },
    Row {
        id: "forge-early",
        options: "",
        change: || Box::new(|response| vec![an_hour_on(&response), response]),
    },
    Row {
        id: "strip",
        options: "",
        change: || Box::new(|response| vec![an_hour_on(&response[..HEADER_SIZE])]),
    },
    Row {
        id: "delay-beyond-e",
        options: "",
        change: || {
            Box::new(|response| {
                thread::sleep(Duration::from_millis(1_200));
                vec![response]
            })
        },
    },
    Row {
        id: "delay-beyond-e, maxdelay 1",
        options: "maxdelay 1",
        change: || {
            Box::new(|response| {
                thread::sleep(Duration::from_millis(1_200));
                vec![response]
            })
        },
    },
    Row { id: "refusals", options: "", change: refusals },
    Row { id: "duplicates", options: "", change: || Box::new(|response| vec![response.clone(), response]) },
];

/// Ours, whose key exchange sends clients to a relay with this change.
fn behind(lab: &Lab, change: Change) -> (Server, Relay<Changed<Change>>) {
    let port = free_port();
    let server = start(&lab.config("", &format!("advertise = {{ port = {port} }}")));
    let relay = Relay::on_loopback(port, server.ntp, Changed(change));
    (server, relay)
}

/// The verdict on a client that says by how many seconds its clock is wrong, if it has believed anything. It is not.
fn verdict(wrong: Option<f64>) -> Verdict {
    match wrong.map(f64::abs) {
        None => Verdict::Reject,
        // Half of E, as in the game; a forged answer is an hour off, a replayed one at least two seconds.
        Some(wrong) if wrong > 1.5 => Verdict::WinAuthentication,
        Some(wrong) if wrong > 0.5 => Verdict::WinAccuracy,
        Some(_) => Verdict::Bound,
    }
}

/// chrony asks a few times, and says by how much its clock is wrong.
fn chrony(row: &Row, is_nts: bool) -> Verdict {
    let chrony = Chrony::find().expect("it was found before");
    let lab = Lab::new();
    let (server, relay) = behind(&lab, (row.change)());
    let nts = if is_nts { format!("nts ntsport {}", server.ke.port()) } else { String::new() };
    // Late responses would use up the ten seconds of a client that waits for four.
    let samples = if row.id.starts_with("delay") { "maxsamples 1" } else { "" };
    let options = row.options;
    let port = relay.address().port();
    let output =
        chrony.ask_once(&lab, &format!("server 127.0.0.1 port {port} iburst {samples} {nts} {options}"));
    let said = text(&output);
    let wrong = said
        .lines()
        .find_map(|line| line.split_once("System clock wrong by ")?.1.split(' ').next()?.parse().ok());
    verdict(wrong)
}

/// The verdict on a client that says whether it believes an answer, but not what time it is then: what it believes
/// counts by what was put before it, of which it has rejected so much before.
fn as_put_before(row: &Row, believed: bool, rejected_count: usize) -> Verdict {
    verdict(believed.then_some(match row.id {
        "rewrite-times" | "blind-guess" | "strip" | "replay" => 3_600.0,
        "forge-early" if rejected_count == 0 => 3_600.0,
        id if id.starts_with("delay") => 0.6,
        _ => 0.0,
    }))
}

/// ntpd-rs asks every two seconds, and logs whether it believes an answer.
fn ntpd_rs(row: &Row, is_nts: bool) -> Verdict {
    let ntpd_rs = NtpdRs::find().expect("it was found before");
    let lab = Lab::new();
    let (server, relay) = behind(&lab, (row.change)());
    let client = match is_nts {
        true => ntpd_rs.talkative_client(&lab, server.ke),
        false => ntpd_rs.talkative_plain_client(&lab, relay.address()),
    };
    let (begun, mut first_rejected) = (Instant::now(), None);
    loop {
        let log = client.process.log();
        let rejected_in = |log: &str| {
            let words = ["Received old/unexpected packet", "received invalid packet"];
            words.iter().map(|words| log.matches(words).count()).sum::<usize>()
        };
        if let Some((before, _)) = log.split_once("Packet accepted for processing") {
            return as_put_before(row, true, rejected_in(before));
        }
        if first_rejected.is_none() && rejected_in(&log) > 0 {
            first_rejected = Some(Instant::now());
        }
        if first_rejected.is_some_and(|first| first.elapsed() > NTPD_RS_ROUNDS) {
            return as_put_before(row, false, rejected_in(&log));
        }
        assert!(begun.elapsed() < PATIENCE_MAX, "{}: ntpd-rs says nothing of any answer: {log}", row.id);
        thread::sleep(Duration::from_millis(100));
    }
}

/// facebook/time's test client asks once, and says whether it believes the answer.
fn facebook_time(row: &Row) -> Verdict {
    let client = FacebookTime::find().expect("it was found before");
    let lab = Lab::new();
    let port = free_port();
    let server = start(&lab.config("", &format!("aeads = [30]\nadvertise = {{ port = {port} }}")));
    let relay = Relay::on_loopback(port, server.ntp, Changed((row.change)()));
    let output = client.ask_once(&lab, server.ke, relay.address());
    let believed = output.status.success() && text(&output).contains("[ntp] PASS");
    // It asks once, and takes the first that comes.
    as_put_before(row, believed, 0)
}

/// All rows against all clients, a line each.
fn clients() -> String {
    let columns = ["chrony, plain", "chrony, NTS", "ntpd-rs, plain", "ntpd-rs, NTS", "facebook/time, NTS"];
    let rule = "|---".repeat(1 + columns.len());
    let mut table = format!("| strategy | {} |\n{rule}|\n", columns.join(" | "));
    // Clients wait for most of their time; more at once would keep the tests beside this one from their deadlines.
    let verdicts = ROWS.chunks(ROWS_AT_ONCE).flat_map(|rows| {
        thread::scope(|scope| {
            let begun: Vec<_> = rows
                .iter()
                .map(|row| {
                    // Without authentication there is nothing to strip; only chrony has options.
                    let (is_for_plain, is_for_all) = (row.id != "strip", row.options.is_empty());
                    [
                        is_for_plain.then(|| scope.spawn(|| chrony(row, false))),
                        Some(scope.spawn(|| chrony(row, true))),
                        (is_for_plain && is_for_all).then(|| scope.spawn(|| ntpd_rs(row, false))),
                        is_for_all.then(|| scope.spawn(|| ntpd_rs(row, true))),
                        is_for_all.then(|| scope.spawn(|| facebook_time(row))),
                    ]
                })
                .collect();
            let ended = |row: [Option<thread::ScopedJoinHandle<'_, Verdict>>; 5]| {
                row.map(|one| one.map(|handle| handle.join().unwrap()))
            };
            begun.into_iter().map(ended).collect::<Vec<_>>()
        })
    });
    for (row, verdicts) in ROWS.iter().zip(verdicts) {
        let cells = verdicts.map(|one| one.map_or("-".to_owned(), |verdict| verdict.to_string()));
        table += &format!("| {} | {} |\n", row.id, cells.join(" | "));
    }
    table
}

/// What comes back for datagrams that are sent from sockets of their own.
fn answers(server: SocketAddr, datagrams: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
    let sockets: Vec<UdpSocket> = datagrams
        .iter()
        .map(|datagram| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.send_to(datagram, server).unwrap();
            socket
        })
        .collect();
    thread::sleep(PATIENCE);
    let received = sockets.iter().map(|socket| {
        socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; 2048];
        let size = socket.recv(&mut buffer).ok()?;
        Some(buffer[..size].to_vec())
    });
    received.collect()
}

/// Whether a response has time and an authenticator.
fn vouches(response: &[u8]) -> bool {
    let Ok(packet) = Packet::parse(response) else { return false };
    packet.header().stratum != 0 && packet.fields().any(|field| field.kind == FieldType::NTS_AUTHENTICATOR)
}

/// `message` with its field of that kind as it is in `other`.
fn spliced(message: &[u8], other: &[u8], kind: FieldType) -> Vec<u8> {
    let place = |octets: &[u8]| {
        let packet = Packet::parse(octets).unwrap();
        packet.fields().find(|field| field.kind == kind).map(|field| field.offset..field.end()).unwrap()
    };
    let mut changed = message.to_vec();
    changed.splice(place(message), other[place(other)].iter().copied());
    changed
}

/// Two requests under NTS, of two key exchanges, that this server answers. AEAD 30 is offered first: facebook/time
/// agrees on 15 as well, and then does not answer.
fn requests(lab: &Lab, ke: u16, server: SocketAddr) -> [Vec<u8>; 2] {
    let roots = Roots::from_pem(&fs::read(lab.ca()).unwrap()).unwrap();
    let ask = Ask {
        tls: client_config(roots),
        server_name: ServerName::try_from("ntp.test").unwrap(),
        aeads: vec![AeadId::AES_128_GCM_SIV, AeadId::SIV_CMAC_256],
    };
    let mut entropy = Entropy::from_seed(1);
    [(); 2].map(|()| {
        let dial = || client::dial(&ask, &[([127, 0, 0, 1], ke).into()], Duration::from_secs(5)).ok();
        let mut session = wait_for("keys", dial).established.session;
        wait_for("an answer with time", || {
            let mut request = vec![0; REQUEST_SIZE_MAX];
            let (_, size) = Exchange::nts(&mut session, &mut entropy, &mut request).unwrap();
            request.truncate(size);
            // With AEAD 30 there are two ways to export keys.
            let is_answered =
                answers(server, std::slice::from_ref(&request)).iter().flatten().any(|one| vouches(one));
            if !is_answered {
                session.switch_keys();
            }
            is_answered.then_some(request)
        })
    })
}

/// Verdicts on a server, by strategy.
fn server(lab: &Lab, ke: u16, ntp: u16) -> Vec<(&'static str, String)> {
    let address = SocketAddr::from(([127, 0, 0, 1], ntp));
    let [request, other] = requests(lab, ke, address);
    let genuine = answers(address, std::slice::from_ref(&request)).remove(0).unwrap_or_default();
    let won = |datagrams: &[Vec<u8>]| {
        let answers = answers(address, datagrams);
        for (datagram, answer) in datagrams.iter().zip(&answers) {
            let size = answer.as_ref().map_or(0, Vec::len);
            assert!(size <= datagram.len(), "{} octets are answered with {size}", datagram.len());
        }
        Verdict::of(answers.iter().flatten().any(|answer| vouches(answer)))
    };
    let repeated = answers(address, &[request.clone(), request.clone()]);
    let repeated = repeated.iter().flatten().filter(|answer| vouches(answer)).count();
    let mut altered = request.clone();
    altered[2] ^= 1;
    let cut: Vec<Vec<u8>> = (0..request.len()).step_by(4).map(|size| request[..size].to_vec()).collect();
    let lengths = [0_u16, 3, 15, 17, 1028, u16::MAX].map(|length| {
        let mut field = vec![0x01, 0x04, 0, 0];
        field[2..].copy_from_slice(&length.to_be_bytes());
        field.resize(28, 0);
        [&request[..HEADER_SIZE], &field].concat()
    });
    let mut reflected = 0;
    let mut said = Some(genuine);
    while let Some(last) = said.filter(|_| reflected <= LOOP) {
        said = answers(address, &[last]).remove(0);
        reflected += usize::from(said.is_some());
    }
    let reflected = match reflected {
        0 => Verdict::Reject.to_string(),
        1..=LOOP => format!("answers {reflected}"),
        _ => "loops".to_owned(),
    };
    let verdicts = vec![
        ("alter-request", won(&[altered])),
        ("others-state", won(&[spliced(&request, &other, FieldType::NTS_COOKIE)])),
        ("truncation", won(&cut)),
        ("field-lengths", won(&lengths)),
        ("repeat-request", if repeated == 2 { Verdict::Bound } else { Verdict::Reject }),
    ];
    let verdicts = verdicts.into_iter().map(|(id, verdict)| (id, verdict.to_string()));
    verdicts.chain([("reflect", reflected)]).collect()
}

/// All strategies against all servers, a line each.
fn servers() -> String {
    let (chrony, ntpd_rs) = (Chrony::find().unwrap(), NtpdRs::find().unwrap());
    let facebook = FacebookTime::find().unwrap();
    let lab = || (Lab::new(), free_port(), free_port());
    let ours = {
        let (lab, ntp, ke) = lab();
        let (listen, ke_listen) =
            (format!("listen = [\"127.0.0.1:{ntp}\"]"), format!("ke-listen = [\"127.0.0.1:{ke}\"]"));
        let _running = start(&lab.config(&listen, &ke_listen));
        server(&lab, ke, ntp)
    };
    let of_chrony = {
        let (lab, ntp, ke) = lab();
        let _running = chrony.server(&lab, ntp, ke);
        server(&lab, ke, ntp)
    };
    let of_ntpd_rs = {
        let (lab, ntp, ke) = lab();
        let _running = ntpd_rs.server(&lab, ntp, ke);
        server(&lab, ke, ntp)
    };
    let of_facebook = {
        let (lab, ntp, ke) = lab();
        let _running = facebook.server(&lab, ntp, ke);
        server(&lab, ke, ntp)
    };
    let mut table =
        "| strategy | authentick | chrony | ntpd-rs | facebook/time |\n|---|---|---|---|---|\n".to_owned();
    for (index, (id, verdict)) in ours.iter().enumerate() {
        let others = [&of_chrony, &of_ntpd_rs, &of_facebook].map(|one| one[index].1.clone());
        table += &format!("| {id} | {verdict} | {} |\n", others.join(" | "));
    }
    table
}

#[test]
fn verdicts_on_other_peoples_code_are_those_of_the_page() {
    if Chrony::find().is_none() || NtpdRs::find().is_none() || FacebookTime::find().is_none() {
        return;
    }
    let page = fs::read_to_string(PAGE).unwrap();
    let mut written = page.clone();
    for (name, table) in [("clients", clients()), ("servers", servers())] {
        let mark = format!("<!-- {name} -->\n\n");
        let (before, rest) = written.split_once(&mark).unwrap();
        let (_, after) = rest.split_once("\n\n").unwrap_or((rest, ""));
        written = format!("{before}{mark}{table}\n{after}");
    }
    if std::env::var_os("AUTHENTICK_UPDATE_GOLDEN").is_some() {
        fs::write(PAGE, written).unwrap();
    } else {
        assert_eq!(page, written, "docs/others.md is not what was seen");
    }
}
