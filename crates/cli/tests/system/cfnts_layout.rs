//! Hosts that share the cookie keys of CFNTS's layout through memcached.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use authentick_lab::caches::CacheClient;
use authentick_lab::certificates::write_private;
use authentick_lab::peers::{Memcached, Memory};
use serde_json::Value;

use crate::lab::{Lab, Server, authentick, free_port, refused, start, text, wait_for};

const HOUR: u64 = 3600;

/// A host with the master key of all, and its configuration.
struct Host {
    lab: Lab,
    server: String,
    nts: String,
}

impl Host {
    fn new(memcached: SocketAddr, server: &str, nts: &str) -> Self {
        let lab = Lab::new();
        write_private(&lab.path().join("cookie.key"), "the same octets on every host");
        let keys = format!(
            "store = \"cfnts\", server = \"{memcached}\", master-key = {:?}",
            lab.path().join("cookie.key")
        );
        Host { lab, server: server.to_owned(), nts: format!("{nts}\ncookie-keys = {{ {keys} }}") }
    }

    /// One that exchanges keys for the host that serves time on this port.
    fn of_keys(memcached: SocketAddr, port: u16) -> Self {
        let advertise = format!("advertise = {{ server = \"127.0.0.1\", port = {port} }}");
        Host::new(memcached, "listen = []", &advertise)
    }

    /// One that serves time on this port.
    fn of_time(memcached: SocketAddr, port: u16) -> Self {
        Host::new(memcached, &format!("listen = [\"127.0.0.1:{port}\"]"), "ke-listen = []")
    }

    fn config(&self) -> PathBuf {
        self.lab.config(&self.server, &self.nts)
    }

    fn start(&self) -> Server {
        start(&self.config())
    }
}

/// This hour, as CFNTS counts them.
fn hour() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    now - now % HOUR
}

fn name(epoch: u64) -> String {
    format!("/nts/nts-keys/{epoch}")
}

fn value(client: &mut CacheClient, epoch: u64) -> Option<Vec<u8>> {
    client.gets(&[&name(epoch)]).unwrap().pop().map(|found| found.value)
}

fn has_keys(server: &Server) {
    wait_for("keys", || (server.metric("nts_cookie_keys") >= 26.0).then_some(()));
}

/// A client gets keys once, and time with them three times.
#[track_caller]
fn is_served(keys: &Server, host: &Host) {
    let output = keys.query(&host.lab, &["--count", "3", "--interval", "0.1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["exchanges"].as_array().unwrap().len(), 3);
}

#[track_caller]
fn is_unharmed(server: &Server) {
    for thread in ["fleet", "supervisor"] {
        let name = format!("ntp_server_refused_system_calls_total{{thread={thread:?}}}");
        assert_eq!(server.metric(&name), 0.0, "{name}");
    }
}

#[test]
fn hosts_fill_an_empty_memcached_share_its_keys_and_outlive_it() {
    let Some(memcached) = Memcached::find() else { return };
    let mut memcached = memcached.start("127.0.0.1:0".parse().unwrap(), Memory::megabytes(64));
    let (address, port, begun) = (memcached.address(), free_port(), hour());
    let (keys_host, time_host) = (Host::of_keys(address, port), Host::of_time(address, port));
    let (keys, time) = (keys_host.start(), time_host.start());
    [&keys, &time].into_iter().for_each(has_keys);
    is_served(&keys, &keys_host);
    let mut client = CacheClient::connect(address).unwrap();
    // An hour may have ended meanwhile.
    for epoch in (begun - 23 * HOUR..=begun + 2 * HOUR).step_by(HOUR as usize) {
        assert_eq!(value(&mut client, epoch).unwrap().len(), 16, "{epoch}");
    }
    let before = value(&mut client, begun).unwrap();
    // Without memcached: what was read serves on, also after a kill.
    memcached.kill();
    wait_for("memcached to be missed", || {
        (time.metric(&format!("cfnts_server_up{{server=\"{address}\"}}")) == 0.0).then_some(())
    });
    assert!(time.metric("cfnts_keys_end_timestamp_seconds") >= (begun + 3 * HOUR) as f64);
    is_served(&keys, &keys_host);
    time.process.signal("-KILL");
    drop(time);
    let time = time_host.start();
    assert!(time.metric("nts_cookie_keys") >= 26.0, "from its disk");
    is_served(&keys, &keys_host);
    // It comes back empty, and gets the same values.
    memcached.restart();
    let back = wait_for("the values to be back", || value(&mut CacheClient::connect(address).ok()?, begun));
    assert_eq!(back, before);
    is_served(&keys, &keys_host);
    assert_eq!(time.outcome("nts_nak_unknown_key") + time.outcome("nts_nak_cookie"), 0.0);
    [&keys, &time].into_iter().for_each(is_unharmed);
    let listed = authentick(["keys", "list", "--json", "--config", time_host.config().to_str().unwrap()]);
    assert_eq!(listed.status.code(), Some(0), "{}", text(&listed));
    assert!(serde_json::from_slice::<Value>(&listed.stdout).unwrap().as_array().unwrap().len() >= 26);
    let config = time_host.config();
    for verb in [&["rotate"][..], &["refresh"], &["retire", "1"]] {
        let output = authentick([&["keys"], verb, &["--config", config.to_str().unwrap()]].concat());
        let parts = match verb {
            ["retire", ..] => ["there is no key 00000001", ""],
            _ => ["are not changed by hand", "another nts.cookie-keys.master-key"],
        };
        assert_ne!(output.status.code(), Some(0), "{verb:?}: {}", text(&output));
        assert!(parts.iter().all(|part| text(&output).contains(part)), "{verb:?}: {}", text(&output));
    }
    let output = authentick(["keys", "generate", "--config", config.to_str().unwrap()]);
    refused(&output, 78, &["holds keys already"]);
}

#[test]
fn values_of_cfnts_are_taken_and_one_that_changes_is_refused() {
    let Some(memcached) = Memcached::find() else { return };
    let memcached = memcached.start("127.0.0.1:0".parse().unwrap(), Memory::megabytes(64));
    let (address, port, begun) = (memcached.address(), free_port(), hour());
    let mut client = CacheClient::connect(address).unwrap();
    // As CFNTS's fill-memcached.py does it.
    let all = (begun - 50 * HOUR..=begun + 3 * HOUR).step_by(HOUR as usize);
    for epoch in all.clone() {
        let octet = (epoch / HOUR % 251) as u8;
        assert_eq!(client.set(&name(epoch), &[octet; 16]).unwrap(), "STORED");
    }
    let (keys_host, time_host) = (Host::of_keys(address, port), Host::of_time(address, port));
    let (keys, mut time) = (keys_host.start(), time_host.start());
    [&keys, &time].into_iter().for_each(has_keys);
    is_served(&keys, &keys_host);
    for epoch in all {
        assert_eq!(value(&mut client, epoch).unwrap()[0], (epoch / HOUR % 251) as u8, "as it was");
    }
    let label = |name: &str| format!("cfnts_server_{name}_total{{server=\"{address}\"}}");
    // Somebody runs the script again, for these hours at least: one that seals now, or soon.
    for epoch in [begun, begun + HOUR] {
        assert_eq!(client.set(&name(epoch), &[0xEE; 16]).unwrap(), "STORED");
    }
    for server in [&keys, &time] {
        wait_for("the change to be seen", || (server.metric(&label("refused_values")) >= 2.0).then_some(()));
    }
    let line = time.process.wait_for_line(&format!("the value under {} is refused: ", name(begun)));
    assert!(line.contains("another one than before"), "{line}");
    is_served(&keys, &keys_host);
    assert_eq!(value(&mut client, begun).unwrap(), [0xEE; 16], "nothing is overwritten");
    assert_eq!(time.outcome("nts_nak_unknown_key") + time.outcome("nts_nak_cookie"), 0.0);
    [&keys, &time].into_iter().for_each(is_unharmed);
}

#[test]
fn master_key_that_is_missing_short_or_open_is_exit_78() {
    let host = Host::of_time("127.0.0.1:11211".parse().unwrap(), free_port());
    let file = host.lab.path().join("cookie.key");
    let is_refused = |parts: &[&str]| {
        let config = host.config();
        for arguments in [&["serve"][..], &["serve", "--check"]] {
            let output = authentick([arguments, &["--config", config.to_str().unwrap()]].concat());
            refused(&output, 78, &[&["nts.cookie-keys.master-key"], parts].concat());
        }
    };
    fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    is_refused(&["mode 644", "run: chmod 600"]);
    fs::set_permissions(&file, PermissionsExt::from_mode(0o440)).unwrap();
    let output = authentick(["serve", "--check", "--config", host.config().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    fs::remove_file(&file).unwrap();
    is_refused(&["No such file", "copy it from another host"]);
    write_private(&file, "fifteen octets.");
    is_refused(&["15 octets are too few", "16 random octets"]);
}
