//! Hosts of one service with different tasks: some exchange keys, others serve time.

use std::fs;
use std::path::{Path, PathBuf};

use authentick_lab::caches::{Behaviour, CacheServer};
use authentick_lab::certificates::write_private;
use serde_json::Value;

use crate::lab::{Lab, Server, authentick, free_port, refused, start, text, wait_for};

/// A host that serves time, and says nothing of the metrics and threads of key exchange.
#[track_caller]
fn serves_only_time(server: &Server) {
    let page = server.get("/metrics");
    assert!(page.contains("ntp_server_received_packets") && !page.contains("nts_ke_"), "{page}");
    assert!(page.contains("nts_cookie_keys"), "{page}");
    let names = threads(server);
    assert!(
        names.contains(&"ntp-0".to_owned()) && !names.iter().any(|name| name.starts_with("ke-")),
        "{names:?}"
    );
    is_contained(&page);
}

/// A host that exchanges keys, and says nothing of the metrics and threads of time.
#[track_caller]
fn only_exchanges_keys(server: &Server) {
    let page = server.get("/metrics");
    assert!(page.contains("nts_ke_connections_accepted") && !page.contains("ntp_server_packets"), "{page}");
    assert!(
        page.contains("nts_ke_certificate_expiry") && page.contains("ntp_heartbeat_age_seconds"),
        "{page}"
    );
    let names = threads(server);
    assert!(
        names.contains(&"ke-0".to_owned()) && !names.iter().any(|name| name.starts_with("ntp-")),
        "{names:?}"
    );
    is_contained(&page);
}

#[track_caller]
fn is_contained(page: &str) {
    let refused: Vec<&str> =
        page.lines().filter(|line| line.starts_with("ntp_server_refused_system_calls_total{")).collect();
    assert!(!refused.is_empty() && refused.iter().all(|line| line.ends_with(" 0")), "{refused:?}");
}

fn threads(server: &Server) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.process.id())).unwrap();
    tasks
        .map(|task| fs::read_to_string(task.unwrap().path().join("comm")).unwrap().trim().to_owned())
        .collect()
}

/// A client gets keys once, and time with them for so many requests, five a second.
#[track_caller]
fn loses_nothing(keys: &Server, lab: &Lab, count: usize) {
    let output = keys.query(lab, &["--count", &count.to_string(), "--interval", "0.2", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["exchanges"].as_array().unwrap().len(), count);
}

/// What sends clients to a port of this host.
fn to(port: u16) -> String {
    format!("advertise = {{ server = \"127.0.0.1\", port = {port} }}")
}

#[test]
fn keys_of_one_host_are_good_for_time_of_another_over_rotations() {
    let (labs, port) = ([Lab::new(), Lab::new()], free_port());
    let made = format!("{}\ncookie-keys = {{ rotate = \"2s\" }}", to(port));
    let mut keys = start(&labs[0].config("listen = []", &made));
    keys.process.wait_for_line("no time is served here");
    let file = labs[0].state().join("cookie-keys");
    let followed = format!("ke-listen = []\ncookie-keys = {{ store = \"follow\", file = {file:?} }}");
    let mut time = start(&labs[1].config(&format!("listen = [\"127.0.0.1:{port}\"]"), &followed));
    time.process.wait_for_line("no keys are exchanged here");
    loses_nothing(&keys, &labs[0], 30);
    assert_eq!((time.outcome("nts"), keys.metric("nts_ke_connections_accepted_total")), (30.0, 1.0));
    assert_eq!(time.outcome("nts_nak_unknown_key") + time.outcome("nts_nak_cookie"), 0.0);
    assert!(keys.metric("nts_cookie_key_rotations_total") >= 2.0);
    assert!(time.metric("nts_cookie_keys") >= 4.0, "the retired ones, the current one, and the next");
    // The one has a certificate to read again, and the other has none.
    keys.process.signal("-HUP");
    keys.process.wait_for_line("certificate read again");
    time.process.signal("-HUP");
    loses_nothing(&keys, &labs[0], 1);
    only_exchanges_keys(&keys);
    serves_only_time(&time);
    assert!(!time.process.log().contains("certificate read"), "{}", time.process.log());
}

#[test]
fn clients_are_sent_to_some_hosts_by_weight_and_to_none_of_weight_0() {
    let (labs, ports) = ([(); 4].map(|()| Lab::new()), [(); 3].map(|()| free_port()));
    let [a, b, none] = ports;
    let to =
        |port: u16, weight: u32| format!("{{ server = \"127.0.0.1\", port = {port}, weight = {weight} }}");
    let list = format!("advertise = [{}, {}, {}]", to(a, 1), to(none, 0), to(b, 1));
    let keys = start(&labs[3].config("listen = []", &list));
    let file = labs[3].state().join("cookie-keys");
    let followed = format!("ke-listen = []\ncookie-keys = {{ store = \"follow\", file = {file:?} }}");
    let time = |index: usize| {
        start(&labs[index].config(&format!("listen = [\"127.0.0.1:{}\"]", ports[index]), &followed))
    };
    let hosts = [0, 1, 2].map(time);
    // One of the two is left out with a probability of 2^-29.
    (0..30).for_each(|_| loses_nothing(&keys, &labs[3], 1));
    let [a, b, none] = hosts.each_ref().map(|host| host.outcome("nts"));
    assert!(a > 0.0 && b > 0.0 && a + b == 30.0 && none == 0.0, "{a} {b} {none}");
}

/// The configuration of the host `node` in a fleet, whose writer is `ke`.
fn config(lab: &Lab, node: &str, server: &str, nts: &str, fleet: &str) -> PathBuf {
    let seal = lab.path().join("seal");
    write_private(&seal, &format!("authentick-fleet-seal 1\nkey 0 {}\n", "5a".repeat(32)));
    let nts = format!(
        "{nts}\ncookie-keys = {{ store = \"memcached\", rotate = \"1s\" }}\n[fleet]\nid = \"fleet\"\n{fleet}\n\
         node = {node:?}\nseal-key = {seal:?}\nwriter = {}",
        node == "ke"
    );
    lab.config(server, &nts)
}

/// Starts the writer, which makes the first keys.
#[track_caller]
fn start_writer(config: &Path) -> Server {
    let output = authentick(["keys", "generate", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    start(config)
}

fn waits_for_a_document(server: &Server) {
    wait_for("a document", || {
        (server.metric("fleet_document_version{kind=\"cookie-keys\"}") > 0.0).then_some(())
    });
}

#[test]
fn fleet_of_hosts_with_one_task_each_loses_no_client_over_rotations() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let (labs, port) = ([Lab::new(), Lab::new()], free_port());
    let fleet = format!("members = [\"ke\", \"ntp\"]\nservers = [\"{}\"]", cache.address());
    let keys = start_writer(&config(&labs[0], "ke", "listen = []", &to(port), &fleet));
    let listen = format!("listen = [\"127.0.0.1:{port}\"]");
    let time = start(&config(&labs[1], "ntp", &listen, "ke-listen = []", &fleet));
    [&keys, &time].into_iter().for_each(waits_for_a_document);
    let before = time.metric("fleet_document_version{kind=\"cookie-keys\"}");
    loses_nothing(&keys, &labs[0], 40);
    assert!(time.metric("fleet_document_version{kind=\"cookie-keys\"}") > before, "the keys have rotated");
    assert_eq!(time.outcome("nts"), 40.0);
    assert_eq!(time.outcome("nts_nak_unknown_key") + time.outcome("nts_nak_cookie"), 0.0);
    only_exchanges_keys(&keys);
    serves_only_time(&time);
}

#[test]
fn host_that_does_not_open_cookies_gets_no_new_clients_until_it_does() {
    let cache = CacheServer::on_loopback(Behaviour::Honest);
    let (labs, ports) = ([(); 3].map(|()| Lab::new()), [(); 2].map(|()| free_port()));
    let members = "members = [\"ke\", \"a\", \"b\"]\npatience = \"4s\"";
    let fleet = format!("{members}\nservers = [\"{}\"]", cache.address());
    let at = |port: u16, member: &str| {
        format!("{{ server = \"127.0.0.1\", port = {port}, member = \"{member}\" }}")
    };
    let list = format!("advertise = [{}, {}]", at(ports[0], "a"), at(ports[1], "b"));
    let mut keys = start_writer(&config(&labs[2], "ke", "listen = []", &list, &fleet));
    let time = |index: usize| {
        let listen = format!("listen = [\"127.0.0.1:{}\"]", ports[index]);
        start(&config(&labs[index], ["a", "b"][index], &listen, "ke-listen = []", &fleet))
    };
    let [a, b] = [0, 1].map(time);
    [&a, &b].into_iter().for_each(waits_for_a_document);
    let label = |index: usize| format!("nts_ke_advertised{{server=\"127.0.0.1\",port=\"{}\"}}", ports[index]);
    let is_in = |keys: &Server| [0, 1].map(|index| keys.metric(&label(index)) == 1.0);
    wait_for("both to be in", || (is_in(&keys) == [true, true]).then_some(()));
    // It has the key that seals next, and not the one after that.
    b.process.signal("-KILL");
    drop(b);
    for version in [1.0, 2.0].map(|more| keys.metric("fleet_document_version{kind=\"cookie-keys\"}") + more) {
        wait_for("a rotation without it", || {
            (keys.metric("fleet_document_version{kind=\"cookie-keys\"}") >= version).then_some(())
        });
    }
    wait_for("it to be out", || (is_in(&keys) == [true, false]).then_some(()));
    keys.process.wait_for_line(&format!("and not to b at 127.0.0.1:{}: ", ports[1]));
    let before = a.outcome("nts");
    (0..10).for_each(|_| loses_nothing(&keys, &labs[2], 1));
    assert_eq!(a.outcome("nts"), before + 10.0);
    let b = time(1);
    wait_for("both to be in again", || (is_in(&keys) == [true, true]).then_some(()));
    wait_for("a client to come back", || {
        loses_nothing(&keys, &labs[2], 1);
        (b.outcome("nts") > 0.0).then_some(())
    });
    only_exchanges_keys(&keys);
    [&a, &b].into_iter().for_each(serves_only_time);
}

#[test]
fn hosts_that_would_send_clients_nowhere_or_do_nothing_do_not_start() {
    let lab = Lab::new();
    for (server, nts, parts) in [
        ("listen = []", "", &["nts.advertise.server: missing", "no time is served here"][..]),
        ("listen = []", "ke-listen = []", &["server.listen", "nothing to listen on"]),
        ("", "ke-listen = []\nadvertise = { port = 123 }", &["nts.advertise: without effect", "remove it"]),
        ("", "ke-listen = []\nke-limits = { connections = 1 }", &["nts.ke-limits: without effect"]),
    ] {
        let config = lab.config(server, nts);
        for arguments in [&["serve"][..], &["serve", "--check"]] {
            let output = authentick([arguments, &["--config", config.to_str().unwrap()]].concat());
            refused(&output, 78, parts);
        }
    }
    let output =
        authentick(["serve", "--check", "--config", lab.config("", "ke-listen = []").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}
