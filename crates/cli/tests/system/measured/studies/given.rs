//! `authentick study run field --server`: servers that somebody else runs, good ones and others.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Output;
use std::thread;

use authentick_report::load::Limit;
use authentick_report::study::field::{FieldRecord, Plan, Scheme, Server, Trial};
use authentick_report::study::{Outcome, Task};

use crate::lab::{Lab, alone, authentick, free_port, refused, serve, text};
use crate::recompute;

fn run(folder: &Path, more: &[&str]) -> Output {
    let mut words = vec!["study", "run", "field", "--quick", "--step-seconds", "0.2", "--out"];
    words.push(folder.to_str().unwrap());
    words.extend(more);
    authentick(words)
}

fn plan(folder: &Path) -> Plan {
    Plan::from_json(&fs::read_to_string(folder.join("study.json")).unwrap()).unwrap()
}

fn record(folder: &Path) -> FieldRecord {
    let plan = plan(folder);
    let measured = plan.tasks.iter().filter(|task| task.sha256().is_some());
    let read = |task: &Task| fs::read_to_string(folder.join(&task.file)).unwrap();
    let records: Vec<FieldRecord> =
        measured.map(|task| FieldRecord::from_json(&read(task)).unwrap()).collect();
    FieldRecord::merged(&plan, records)
}

fn server(name: &str) -> Server {
    Server::Given(name.parse().unwrap())
}

/// The report without its line breaks.
fn report(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join("report.txt")).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn server_of_somebody_else_is_measured_under_what_it_has_beside_its_own_plain_rate() {
    let _turn = alone();
    let (lab, folder) = (Lab::new(), tempfile::tempdir().unwrap());
    let running = serve(&lab);
    let out = folder.path().join("study");
    let named = format!("mine={}:{}", running.ntp, running.ke.port());
    let (bare, pid) = (format!("bare={}", running.ntp), format!("bare={}", running.process.id()));
    let ca = format!("mine={}", lab.ca().display());
    let trust = ["--server-ca", &ca, "--server-name", "mine=ntp.test"];
    let mut more = vec!["--servers", "mine", "--server", &named, "--server", &bare, "--server-pid", &pid];
    more.extend(trust);
    let output = run(&out, &more);
    assert!(output.status.success(), "{}", text(&output));
    let (plan, found) = (plan(&out), record(&out));
    // Time and NTS in three rounds and at two levels of latency, and key exchanges; and time alone.
    assert_eq!(plan.tasks.len(), 3 * (2 + 1) + 2 * 2 + 3 + 2);
    let of = |name: &str, scheme: Scheme| -> Vec<&Trial> {
        let (server, is_it) = (server(name), |trial: &&Trial| trial.cell.scheme == scheme);
        found.trials.iter().filter(|trial| trial.cell.server == server).filter(is_it).collect()
    };
    for (name, scheme, size) in
        [("mine", Scheme::Plain, 48), ("mine", Scheme::Nts15, 200), ("bare", Scheme::Plain, 48)]
    {
        let trials = of(name, scheme);
        assert_eq!(trials.len(), 3, "{name} {scheme:?}\n{}", text(&output));
        for trial in trials {
            assert!(trial.answered_rps > 0.0 && trial.request_size >= size, "{trial:?}");
            assert!((48..=trial.request_size).contains(&trial.response_size), "{trial:?}");
            // Without its process nobody knows what it used, or that it was the limit.
            assert_eq!(trial.cpu_us.is_some(), name == "bare", "{trial:?}");
            assert_eq!(trial.memory_octets.is_some(), name == "bare", "{trial:?}");
            assert!(name == "bare" || trial.limited_by != Limit::Server, "{trial:?}");
        }
    }
    let exchanges: Vec<_> = found.exchanges.iter().map(|trial| trial.cell.server).collect();
    assert!(!exchanges.is_empty() && exchanges.iter().all(|found| *found == server("mine")), "{exchanges:?}");
    // It has this host's address, so client and server read one clock.
    let latencies = found.latencies.iter().filter(|trial| trial.latency_us.is_some());
    assert!(latencies.clone().count() > 0 && latencies.clone().all(|trial| trial.offset_error_us.is_some()));
    let report = report(&out);
    for part in [
        format!("Somebody else runs bare at {} and mine at {}, keys at port", running.ntp, running.ntp),
        "), by answers unknown unknown 224 unknown".to_owned(),
        "Its processor time is unknown".to_owned(),
        "bare is not asked for NTS, as no port of a key exchange was named: NTS, AEAD 15.".to_owned(),
        "mine is not asked under a MAC".to_owned(),
    ] {
        assert!(report.contains(&part), "{part}\n{report}");
    }
    recompute::agrees(&out);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("mine under NTS, AEAD 15: ") && !page.contains("<script"));
    // At another place it is another server.
    let elsewhere = format!("bare=127.0.0.1:{}", free_port());
    let output = run(&out, &["--servers", "mine", "--server", &named, "--server", &elsewhere]);
    refused(&output, 78, &["study.json", "under other settings"]);
}

/// What a server answers to a request for time by the number of the datagram.
fn answering(answer: impl Fn(usize, &mut [u8; 48]) -> bool + Send + 'static) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    thread::spawn(move || {
        for number in 0.. {
            let mut datagram = [0; 48];
            // The test is over, and with it the process.
            let Ok((_, client)) = socket.recv_from(&mut datagram) else { return };
            if answer(number, &mut datagram) {
                let _ = socket.send_to(&datagram, client);
            }
        }
    });
    port
}

/// Makes a good answer of a request: of stratum 1, at the time that the client has. RFC 5905 section 7.3.
fn well(datagram: &mut [u8; 48]) {
    let asked: [u8; 8] = datagram[40..].try_into().unwrap();
    *datagram = [0; 48];
    (datagram[0], datagram[1], datagram[3]) = (4 << 3 | 4, 1, 0xe9);
    datagram[12..16].copy_from_slice(b"TEST");
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = ((unix.as_secs() + 2_208_988_800) as u32).to_be_bytes();
    for place in [16, 32, 40] {
        datagram[place..place + 4].copy_from_slice(&now);
    }
    datagram[24..32].copy_from_slice(&asked);
}

/// One answers with rubbish, one not at all, and one well until it is measured: that costs their own trials, which say
/// why.
#[test]
fn servers_that_lie_or_die_are_told_and_do_not_keep_others_from_being_measured() {
    let _turn = alone();
    let (lab, folder) = (Lab::new(), tempfile::tempdir().unwrap());
    let running = serve(&lab);
    let liar = answering(|number, datagram| {
        datagram.fill(number as u8);
        true
    });
    // Once for the study, and once for the load run before it begins.
    let mute = answering(|number, datagram| {
        well(datagram);
        number < 2
    });
    let places = [
        format!("dead=127.0.0.1:{}", free_port()),
        format!("liar=127.0.0.1:{liar}"),
        format!("mute=127.0.0.1:{mute}"),
        format!("well={}", running.ntp),
    ];
    let mut more = vec!["--servers", "well", "--minutes", "0.3"];
    more.extend(places.iter().flat_map(|place| ["--server", place]));
    let output = run(folder.path(), &more);
    assert!(output.status.success(), "{}", text(&output));
    let (plan, report) = (plan(folder.path()), report(folder.path()));
    let first = |name: &str| {
        let id = format!("capacity-{name}-plain-1");
        plan.tasks.iter().find(|task| task.id == id).and_then(|task| task.end.clone()).unwrap()
    };
    assert_eq!(first("well").outcome, Outcome::Measured, "{report}");
    for (name, part) in
        [("dead", "gave no good answer"), ("liar", "gave no good answer"), ("mute", "nothing comes of it")]
    {
        let end = first(name);
        let why = end.why.unwrap();
        assert_eq!(end.outcome, Outcome::Infeasible, "{name}: {why}");
        assert!(why.contains(part), "{name}: {why}");
        assert!(report.contains(&format!("capacity-{name}-plain-1")), "{name}\n{report}");
    }
    assert!(first("dead").why.unwrap().starts_with("dead at 127.0.0.1:"));
    recompute::agrees(folder.path());
}

#[test]
fn what_makes_no_sense_of_a_server_is_refused_with_the_option_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let (out, missing) = (folder.path().join("study"), folder.path().join("ca.pem"));
    let ca = format!("a={}", missing.display());
    for (code, words, parts) in [
        (64, "--server chrony=127.0.0.1:123", ["--server", "give yours another name"]),
        (64, "--server a_b=127.0.0.1:123", ["--server", "letters, digits and hyphens"]),
        (64, "--server a=127.0.0.1", ["--server", "write NAME=HOST:PORT"]),
        (64, "--server a=127.0.0.1:1 --server A=127.0.0.1:2", ["--server: \"A\"", "give each a name"]),
        (64, "--server a=127.0.0.1:1 --servers b", ["--servers: \"b\"", "add --server b=HOST:PORT"]),
        (64, "--server a=127.0.0.1:1 --server-pid b=1", ["--server-pid", "add --server b=HOST:PORT"]),
        (64, "--server a=127.0.0.1:1 --server-name a=b", ["--server-name", "a=HOST:PORT:KEPORT"]),
        (64, "--server a=192.0.2.1:123", ["192.0.2.1 (192.0.2.1) is a public address", "--permit 192.0.2.1"]),
        (64, "--server a=127.0.0.1:1 --permit b", ["--permit b", "repeat the host of one"]),
        (
            78,
            &format!("--server a=127.0.0.1:1:2 --server-ca {ca}"),
            ["--server-ca", "ca.pem: cannot read it"],
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        refused(&run(&out, &words), code, &parts);
        let mut all = vec!["study", "run", "all", "--quick", "--out", out.to_str().unwrap()];
        all.extend(words);
        refused(&authentick(all), code, &parts);
        assert!(!out.exists());
    }
}
