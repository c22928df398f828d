//! The same with ANTP: nodes share its state keys beside cookie keys, or alone.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use authentick_lab::caches::CacheClient;
use authentick_lab::peers::{Memcached, Memory};
use authentick_lab::process::{PATIENCE, wait_within};
use serde_json::Value;

use super::{Fleet, NAMES, caches, has_lost_little, has_lost_nothing};
use crate::antp::kind;
use crate::lab::{authentick, program, refused, start, text, wait_for};

/// The type of a request for time.
const M5: u8 = 5;

impl Fleet {
    /// A fleet that runs and shares state keys, with this in `[antp]` besides, and cookie keys that rotate seldom.
    fn of_antp(servers: &[SocketAddr], state_keys: &str) -> Self {
        let mut fleet = Fleet::new(servers, ", rotate = \"1h\"");
        fleet.antp =
            Some(format!("lifetime = \"60s\"\nstate-keys = {{ store = \"memcached\"{state_keys} }}"));
        fleet.nodes.iter().for_each(|node| node.lab.antp_identity("ecdh", |_| {}));
        fleet.keys_of_antp(0, &["generate"]);
        (0..NAMES.len()).for_each(|index| fleet.start(index));
        for index in 0..NAMES.len() {
            wait_for("both documents", || {
                (fleet.nodes[index].version() > 0.0 && fleet.state(index, "version") > 0.0).then_some(())
            });
        }
        fleet
    }

    /// What a node says of the document of its state keys.
    fn state(&mut self, index: usize, what: &str) -> f64 {
        self.nodes[index].metric(&format!("fleet_document_{what}{{kind=\"antp-state-keys\"}}"))
    }

    fn run_of_antp(&self, index: usize, arguments: &[&str]) -> Output {
        let config = self.config(index, index == 0);
        let options = ["--antp", "--json", "--config", config.to_str().unwrap()];
        authentick([&["keys"], arguments, &options].concat())
    }

    #[track_caller]
    fn keys_of_antp(&self, index: usize, arguments: &[&str]) -> Value {
        let output = self.run_of_antp(index, arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Waits until all that run have this version of state keys.
    fn reach_state(&mut self, version: f64) {
        let running: Vec<usize> =
            (0..NAMES.len()).filter(|index| self.nodes[*index].server.is_some()).collect();
        for index in running {
            wait_for("state keys", || (self.state(index, "version") >= version).then_some(()));
        }
    }

    /// An address at which `a` negotiates and exchanges keys, and the two others tell the time in turns.
    fn spread(&self) -> SocketAddr {
        let ports: Vec<SocketAddr> =
            self.nodes.iter().map(|node| SocketAddr::from(([127, 0, 0, 1], node.port))).collect();
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = front.local_addr().unwrap();
        std::thread::spawn(move || {
            let behind = UdpSocket::bind("127.0.0.1:0").unwrap();
            behind.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            let (mut octets, mut turn) = ([0; 2048], 0);
            while let Ok((size, client)) = front.recv_from(&mut octets) {
                turn += usize::from(kind(&octets[..size]) == M5);
                let to = if kind(&octets[..size]) == M5 { ports[1 + turn % 2] } else { ports[0] };
                behind.send_to(&octets[..size], to).unwrap();
                let Ok((size, _)) = behind.recv_from(&mut octets) else { continue };
                front.send_to(&octets[..size], client).unwrap();
            }
        });
        address
    }

    /// A client that negotiates once, and asks five times a second through [`Fleet::spread`].
    fn client_of_antp(&self, count: u32) -> Child {
        let lab = &self.nodes[0].lab;
        let mut command = Command::new(program().path());
        command.args(["query", &self.spread().to_string(), "--auth", "antp", "--interval", "0.2", "--json"]);
        command.args(["--count", &count.to_string(), "--ca"]).arg(lab.ca());
        command.arg("--state-directory").arg(lab.path().join("client"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn told(&mut self, outcome: &str) -> f64 {
        self.nodes.iter_mut().map(|node| node.server().outcome(outcome)).sum()
    }
}

/// The identifier of the key in this role.
fn key(shown: &Value, role: &str) -> String {
    let found = shown.as_array().unwrap().iter().find(|key| key["role"] == role);
    found.unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn session_with_one_node_is_good_at_the_others_over_rotations_and_an_empty_memcached() {
    let Some(memcached) = Memcached::find() else { return };
    let mut cache = memcached.start("127.0.0.1:0".parse().unwrap(), Memory::megabytes(64));
    let address = cache.address();
    let mut fleet = Fleet::of_antp(&[address], ", rotate = \"2s\"");
    let client = fleet.client_of_antp(100);
    let version = fleet.state(0, "version");
    fleet.reach_state(version + 1.0);
    cache.kill();
    cache.restart();
    wait_for("both documents to be back", || {
        let mut client = CacheClient::connect(address).ok()?;
        let names =
            ["cookie-keys", "antp-state-keys"].map(|kind| format!("authentick/fleet/{kind}/document"));
        let found = client.gets(&[&names[0], &names[1]]).ok()?;
        (found.len() == 2).then_some(())
    });
    fleet.reach_state(version + 3.0);
    has_lost_nothing(client, 100);
    let told: Vec<f64> = fleet.nodes.iter_mut().map(|node| node.server().outcome("antp_time")).collect();
    assert!(told[0] == 0.0 && told[1] >= 50.0 && told[2] >= 50.0, "{told:?}");
    assert_eq!((fleet.told("antp_expired"), fleet.told("antp_key_ahead")), (0.0, 0.0));
    assert_eq!(fleet.told("antp_key_exchange"), 1.0, "one for all");
    // The writer has rotated those of ANTP, and not the others.
    let mut rotations = |name: &str| fleet.nodes[0].metric(&format!("{name}_rotations_total"));
    assert!(rotations("antp_state_key") >= 3.0 && rotations("nts_cookie_key") == 0.0);
    fleet.is_unharmed();
}

#[test]
fn revoked_state_key_opens_nowhere_and_cookies_do_not_notice() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::of_antp(&addresses, ", rotate = \"1d\"");
    let nts = fleet.nodes[0].client(60);
    let client = fleet.client_of_antp(1000);
    wait_for("answers", || (fleet.told("antp_time") >= 3.0).then_some(()));
    // Over rotations by hand it stays.
    fleet.keys_of_antp(0, &["rotate", "--now"]);
    fleet.reach_state(2.0);
    let (answers, shown) = (fleet.told("antp_time"), fleet.keys_of_antp(0, &["list"]));
    wait_for("answers", || (fleet.told("antp_time") >= answers + 3.0).then_some(()));
    assert_eq!(fleet.told("antp_expired"), 0.0);
    // The client has state under it since the rotation, and members say so.
    let id = key(&shown, "current");
    let counted = || {
        let status = fleet.keys_of_antp(1, &["status"])["antp-state-keys"].take();
        let mut keys = status["keys"].as_array().unwrap().iter();
        keys.find(|key| key["key"] == id.as_str()).unwrap()["requests"].as_u64()
    };
    // Of two kinds of keys they do so each half of a minute.
    wait_within(2 * PATIENCE, "counts", || (counted() >= Some(10)).then_some(()));
    let output = fleet.run_of_antp(0, &["revoke", &id]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let said = format!(" requests a second come under {id}, and will be refused");
    assert!(text(&output).contains(&said) && !text(&output).contains(" 0.0 requests"), "{}", text(&output));
    let left: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(left.as_array().unwrap().iter().all(|key| key["id"] != id.as_str()), "{left}");
    fleet.reach_state(3.0);
    wait_for("a refusal", || (fleet.told("antp_expired") >= 1.0).then_some(()));
    let mut client = client;
    client.kill().unwrap();
    client.wait().unwrap();
    // A future key that was passed over is read back after a restart.
    let future = key(&left, "future");
    fleet.keys_of_antp(0, &["revoke", &future]);
    fleet.reach_state(4.0);
    let shown = fleet.keys_of_antp(0, &["list"]);
    let killed = Instant::now();
    fleet.kill(1);
    fleet.start(1);
    let away = killed.elapsed();
    let ids = |shown: &Value| ["current", "future", "retired"].map(|role| key(shown, role));
    assert_eq!(ids(&fleet.keys_of_antp(1, &["list"])), ids(&shown));
    has_lost_nothing(fleet.client_of_antp(10), 10);
    let status = wait_for("a good status", || {
        let output = fleet.run_of_antp(2, &["status"]);
        (output.status.code() == Some(0)).then(|| serde_json::from_slice::<Value>(&output.stdout).unwrap())
    });
    assert!(status["antp-state-keys"]["members"].is_array() && status.get("cookie-keys").is_none());
    has_lost_little(nts, 60, away);
    for (arguments, part) in
        [(&["symmetric", "list"][..], "leave it out"), (&["seal", "list"], "leave it out")]
    {
        refused(&fleet.run_of_antp(0, arguments), 64, &[part]);
    }
}

#[test]
fn take_over_of_state_keys_leaves_cookie_keys_to_their_writer() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::of_antp(&addresses, ", rotate = \"2s\"");
    let client = fleet.client_of_antp(80);
    let nts = fleet.nodes[0].client(80);
    fleet.keys_of_antp(1, &["take-over"]);
    for index in 0..NAMES.len() {
        wait_for("the new term", || (fleet.state(index, "term") == 2.0).then_some(()));
        assert_eq!(fleet.nodes[index].metric("fleet_document_term{kind=\"cookie-keys\"}"), 1.0);
    }
    let config = fleet.config(0, true);
    let output = authentick(["keys", "status", "--json", "--config", config.to_str().unwrap()]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(status["antp-state-keys"]["document"].as_str().unwrap().ends_with("of term 2 by b"), "{status}");
    assert_eq!(status["cookie-keys"]["document"], "version 1 of term 1 by a");
    let shown = text(&authentick(["keys", "status", "--config", config.to_str().unwrap()]));
    assert!(shown.contains("cookie keys: version 1") && shown.contains("ANTP's state keys: "), "{shown}");
    let retired = key(&fleet.keys_of_antp(0, &["list"]), "current");
    let remedy = "authentick keys --antp take-over";
    refused(&fleet.run_of_antp(0, &["revoke", &retired]), 78, &["b writes the keys of this fleet", remedy]);
    // The new writer rotates when its operator says so.
    let killed = Instant::now();
    fleet.kill(1);
    let config = fleet.config(1, true);
    fleet.nodes[1].server = Some(start(&config));
    let away = killed.elapsed();
    let version = fleet.state(1, "version");
    fleet.reach_state(version + 1.0);
    // Those who ask `b` while it is away lose that, and nothing else.
    [client, nts].into_iter().for_each(|client| has_lost_little(client, 80, away));
    assert_eq!((fleet.told("antp_expired"), fleet.told("antp_key_ahead")), (0.0, 0.0));
    fleet.is_unharmed();
}
