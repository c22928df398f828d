//! Dozens of other people's clients at once, each with its own keys and cookies, over rotations of the cookie keys and
//! restarts of the server: none loses its source, and no chronyd exchanges keys again. An ntpd-rs whose request meets a
//! closed port while the server restarts begins anew by itself.
//!
//! Clients ask every four or sixteen seconds and give a source up after eight requests without an answer, so a server
//! that is away for seconds on a busy machine loses none of them.

use std::path::Path;
use std::time::{Duration, Instant};

use authentick_lab::peers::{Chrony, ChronyDaemon, NtpdRs, NtpdRsClient};

use crate::lab::{Lab, Server, authentick, free_port, start, text};

/// How many clients of each kind.
const CHRONY_NTS_COUNT: usize = 24;
const CHRONY_PLAIN_COUNT: usize = 16;
const NTPD_RS_COUNT: usize = 8;

/// How many answers each chrony takes after each event.
const ANSWER_COUNT: u64 = 4;

/// How long this may take on a busy machine; on an idle one it is twenty seconds.
const EVENT_DURATION_MAX: Duration = Duration::from_secs(180);

/// What is done to the server, in this order.
const EVENTS: [Event; 6] =
    [Event::Rotation, Event::Kill, Event::Rotation, Event::Stop, Event::Rotation, Event::Rotation];

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The cookie keys are rotated.
    Rotation,
    /// The server is killed, and started again.
    Kill,
    /// The server is told to stop, and started again.
    Stop,
}

/// One chronyd, and how many key exchanges it had made when the crowd was complete.
struct Client {
    daemon: ChronyDaemon,
    is_nts: bool,
    exchange_count: u64,
}

/// What a chronyd says of its only source.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    /// Whether it has selected the source, which it then follows.
    is_selected: bool,
    /// Which of its last eight requests were answered.
    reach: u8,
    answer_count: u64,
}

impl Client {
    fn source(&mut self) -> Option<Source> {
        // Mode, state, name, stratum, poll, reach.
        let sources = self.daemon.ask("sources");
        let fields: Vec<&str> = sources.split(',').collect();
        // The last four fields are totals: sent, received, valid, good.
        let data = self.daemon.ask("ntpdata");
        Some(Source {
            is_selected: *fields.get(1)? == "*",
            reach: u8::from_str_radix(fields.get(5)?, 8).ok()?,
            answer_count: data.rsplit(',').nth(1)?.parse().ok()?,
        })
    }

    /// Key exchanges until now, and whether the last answer was a NAK.
    fn keys(&mut self) -> Option<(u64, u64)> {
        // host,NTS,KeyID,Type,KLen,Last,Atmp,NAK,Cook,CLen
        let line = self.daemon.ask("authdata");
        let number = |index: usize| line.split(',').nth(index)?.parse().ok();
        Some((number(2)?, number(7)?))
    }

    /// Fails unless it follows the source, and with the keys that it had.
    fn check(&mut self, event: Event) {
        let source = wait_long_for("chrony to speak", || self.source());
        assert!(source.is_selected && source.reach != 0, "{event:?}: {source:?}");
        if self.is_nts {
            let keys = wait_long_for("chrony to speak", || self.keys());
            assert_eq!(keys, (self.exchange_count, 0), "{event:?}: key exchanges, and NAKs");
        }
    }
}

/// Asks until there is an answer.
fn wait_long_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + EVENT_DURATION_MAX;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Starts the chronyds, and waits until each of them follows the server.
fn chronyds(lab: &Lab, chrony: &Chrony, server: &Server) -> Vec<Client> {
    let plain = format!("server 127.0.0.1 port {} iburst minpoll 2 maxpoll 2", server.ntp.port());
    let nts = format!("{plain} nts ntsport {}", server.ke.port());
    let mut clients: Vec<Client> = (0..CHRONY_NTS_COUNT + CHRONY_PLAIN_COUNT)
        .map(|number| {
            let is_nts = number < CHRONY_NTS_COUNT;
            let lines = if is_nts { &nts } else { &plain };
            let daemon = chrony.daemon_called(lab, &format!("chrony-{number}"), lines);
            Client { daemon, is_nts, exchange_count: 0 }
        })
        .collect();
    for client in &mut clients {
        wait_long_for("chrony to follow", || client.source().filter(|source| source.is_selected));
        if client.is_nts {
            let (count, _) = wait_long_for("its keys", || client.keys().filter(|(_, nak)| *nak == 0));
            client.exchange_count = count;
        }
    }
    clients
}

/// Waits until this client has no request without an answer and a full jar.
fn wait_for_ntpd_rs(client: &NtpdRsClient) {
    wait_long_for("ntpd-rs to have all answers and a full jar", || {
        let status = client.status();
        let says = |name: &str, value: &str| {
            let mut lines = status.lines().filter_map(|line| line.trim().strip_prefix(name));
            lines.any(|said| said.trim() == value)
        };
        (says("Missing polls:", "0") && says("NTS cookies:", "8/8 available")).then_some(())
    });
}

/// The server after the event.
fn happen(event: Event, lab: &Lab, config: &Path, mut server: Server) -> Server {
    match event {
        Event::Rotation => {
            let state = lab.state();
            let output = authentick(["keys", "--state-directory", state.to_str().unwrap(), "rotate"]);
            assert!(output.status.success(), "{}", text(&output));
            server.process.signal("-HUP");
            server.process.wait_for_line("cookie keys read again");
            server
        }
        Event::Kill => {
            server.process.signal("-KILL");
            drop(server);
            start(config)
        }
        Event::Stop => {
            server.process.signal("-TERM");
            assert_eq!(server.process.wait(), 0, "{}", server.process.log());
            drop(server);
            start(config)
        }
    }
}

#[test]
#[ignore = "takes some minutes; `cargo xtask nightly` runs it"]
fn no_client_of_a_crowd_loses_its_source_over_rotations_and_restarts() {
    let (Some(chrony), Some(ntpd_rs)) = (Chrony::find(), NtpdRs::find()) else { return };
    let lab = Lab::new();
    let (ntp, ke) = (free_port(), free_port());
    let config =
        lab.config(&format!("listen = [\"127.0.0.1:{ntp}\"]"), &format!("ke-listen = [\"127.0.0.1:{ke}\"]"));
    let mut server = start(&config);
    let others: Vec<NtpdRsClient> = (0..NTPD_RS_COUNT)
        .map(|number| ntpd_rs.client_called(&lab, &format!("ntpd-rs-{number}"), server.ke))
        .collect();
    let mut clients = chronyds(&lab, &chrony, &server);
    others.iter().for_each(wait_for_ntpd_rs);
    let (mut answer_count, mut exchange_count) = (0.0, 0.0);
    for event in EVENTS {
        let before: Vec<u64> = clients
            .iter_mut()
            .map(|client| wait_long_for("chrony to speak", || client.source()).answer_count)
            .collect();
        if !matches!(event, Event::Rotation) {
            (answer_count, exchange_count) =
                (answer_count + answers(&server), exchange_count + exchanges(&server));
        }
        server = happen(event, &lab, &config, server);
        for (client, before) in clients.iter_mut().zip(before) {
            wait_long_for("further answers", || {
                client.source().filter(|source| source.answer_count >= before + ANSWER_COUNT)
            });
        }
        // All at the same time, after the last of them had its answers.
        clients.iter_mut().for_each(|client| client.check(event));
        for outcome in ["nts_nak_unknown_key", "nts_nak_cookie", "nts_nak_tag", "nts_malformed"] {
            assert_eq!(server.outcome(outcome), 0.0, "{event:?}: {outcome}");
        }
    }
    others.iter().for_each(wait_for_ntpd_rs);
    answer_count += answers(&server);
    exchange_count += exchanges(&server);
    println!("assurance: clients = {} clients", clients.len() + others.len());
    println!("assurance: answers = {answer_count} answers");
    println!("assurance: key-exchanges = {exchange_count} exchanges");
    println!("assurance: events = {} rotations and restarts", EVENTS.len());
}

/// How many requests the server has answered with time.
fn answers(server: &Server) -> f64 {
    server.outcome("nts") + server.outcome("plain")
}

/// How many key exchanges it has accepted.
fn exchanges(server: &Server) -> f64 {
    server.metric("nts_ke_connections_accepted_total")
}
