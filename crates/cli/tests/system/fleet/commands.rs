//! What an operator tells a fleet: `keys rotate --now`, `revoke`, `take-over` and `status`.

use std::fs;
use std::process::Output;
use std::time::{Duration, Instant};

use authentick_lab::certificates::write_private;
use serde_json::{Value, json};

use super::{Fleet, NAMES, caches, has_lost_nothing};
use crate::lab::{Lab, authentick, refused, start, text, wait_for};

/// Due too late for these tests.
pub(super) const SELDOM: &str = ", rotate = \"1h\"";

impl Fleet {
    pub(super) fn keys(&self, index: usize, arguments: &[&str]) -> Output {
        let config = self.config(index, index == 0);
        authentick([&["keys"], arguments, &["--json", "--config", config.to_str().unwrap()]].concat())
    }

    #[track_caller]
    pub(super) fn done(&self, index: usize, arguments: &[&str]) -> Value {
        let output = self.keys(index, arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Waits until all that run have this version.
    pub(super) fn reach(&mut self, version: f64) {
        for node in self.nodes.iter_mut().filter(|node| node.server.is_some()) {
            wait_for("the document", || (node.version() == version).then_some(()));
        }
    }

    /// Waits until nobody would refuse anybody, as this node sees it.
    fn is_good(&self, index: usize) -> Value {
        wait_for("a good status", || {
            let output = self.keys(index, &["status"]);
            (output.status.code() == Some(0)).then(|| serde_json::from_slice(&output.stdout).unwrap())
        })
    }
}

/// The identifier of the key in this role, of what `keys list` shows.
pub(super) fn key(shown: &Value, role: &str) -> String {
    let found = shown.as_array().unwrap().iter().find(|key| key["role"] == role);
    found.unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn rotations_by_hand_are_in_force_everywhere_within_seconds() {
    let (_caches, addresses) = caches::<2>();
    let mut fleet = Fleet::running(&addresses, SELDOM);
    let clients: Vec<_> = fleet.nodes.iter().map(|node| node.client(30)).collect();
    for version in [2.0, 3.0] {
        let before = fleet.done(0, &["list"]);
        let began = Instant::now();
        let after = fleet.done(0, &["rotate", "--now"]);
        assert_eq!(
            (key(&after, "current"), key(&after, "retired")),
            (key(&before, "future"), key(&before, "current"))
        );
        fleet.reach(version);
        eprintln!("in force everywhere after {:?}", began.elapsed());
    }
    let retired = key(&fleet.done(0, &["list"]), "retired");
    for (index, arguments, parts) in [
        (
            1,
            &["rotate", "--now"][..],
            &["a writes the keys of this fleet, not this node", "run this there"][..],
        ),
        (0, &["rotate"], &["not changed like this here", "rotate --now"]),
        (0, &["retire", &retired], &["not changed like this here", "revoke"]),
        (0, &["revoke", "00000001"], &["there is no key 00000001", "keys list"]),
        (0, &["take-over", "--without", "d"], &["d is not among fleet.members"]),
    ] {
        refused(&fleet.keys(index, arguments), 78, parts);
    }
    for (arguments, part) in [
        (&["status", "--state-directory", "/nowhere"][..], "name a configuration with --config"),
        (&["rotate", "--now", "--state-directory", "/nowhere"], "name a configuration with --config"),
        (&["rotate", "--wait", "1s"], "--now"),
        (&["rotate", "--drop"], "--now"),
        (&["rotate", "--now", "--keep", "3"], "cannot be used with"),
    ] {
        refused(&fleet.keys(0, arguments), 64, &[part]);
    }
    clients.into_iter().for_each(|client| has_lost_nothing(client, 30));
    fleet.is_unharmed();
}

#[test]
fn revoked_key_opens_nowhere_any_more() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, SELDOM);
    fleet.done(0, &["rotate", "--now"]);
    fleet.reach(2.0);
    let shown = fleet.done(0, &["list"]);
    for (version, role) in [(3.0, "retired"), (4.0, "future"), (5.0, "current")] {
        let id = key(&shown, role);
        let left = fleet.done(0, &["revoke", &id]);
        assert!(left.as_array().unwrap().iter().all(|key| key["id"] != id.as_str()), "{left}");
        fleet.reach(version);
        let status = fleet.is_good(1);
        for member in status["cookie-keys"]["members"].as_array().unwrap() {
            assert!(!member["opens"].as_array().unwrap().contains(&Value::from(id.as_str())), "{member}");
        }
    }
    // Clients that come now are served by all.
    let clients: Vec<_> = fleet.nodes.iter().map(|node| node.client(5)).collect();
    clients.into_iter().for_each(|client| has_lost_nothing(client, 5));
}

/// The member of a list whose `name` is this.
#[track_caller]
fn named<'a>(list: &'a Value, name: &str, is: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|one| one[name] == is).unwrap_or_else(|| panic!("no {is}: {list}"))
}

#[test]
fn requests_are_counted_by_key_and_a_revocation_says_what_it_refuses() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, SELDOM);
    // Each asks the next node ten times, under the key that seals.
    fleet.nodes.iter().map(|node| node.client(10)).for_each(|client| has_lost_nothing(client, 10));
    let id = key(&fleet.done(0, &["list"]), "current");
    for node in &mut fleet.nodes {
        assert_eq!(node.metric(&format!("nts_cookie_key_requests_total{{key={id:?}}}")), 10.0);
        assert_eq!(node.metric(&format!("nts_cookie_key_seals{{key={id:?}}}")), 1.0);
    }
    // Members say so within a quarter of a minute.
    let status = wait_for("the counts", || {
        let status = fleet.done(1, &["status"])["cookie-keys"].take();
        (named(&status["keys"], "key", &id)["requests"] == 30).then_some(status)
    });
    let of_key = named(&status["keys"], "key", &id);
    assert_eq!((&of_key["seals"], &of_key["opened_by"]), (&Value::from(true), &Value::from(3)));
    assert_eq!(of_key["requests_per_second"], 0.5);
    for member in status["members"].as_array().unwrap() {
        assert_eq!(member["requests_per_second"], 10.0 / 60.0, "{member}");
    }
    let others = status["keys"].as_array().unwrap().iter().filter(|key| key["key"] != *id);
    others.for_each(|key| assert_eq!(key["requests"], 0, "{key}"));
    let output = fleet.keys(0, &["revoke", &id]);
    let said = format!("0.5 requests a second come under {id}, and will be refused");
    assert!(text(&output).contains(&said), "{}", text(&output));
}

#[test]
fn pages_of_metrics_say_what_hosts_without_a_store_share() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, SELDOM);
    let url = |fleet: &Fleet, index: usize| {
        format!("http://{}/metrics", fleet.nodes[index].server.as_ref().unwrap().metrics)
    };
    let status = |urls: &[String]| {
        let urls = urls.iter().map(String::as_str);
        let output = authentick(["keys", "status", "--json", "--metrics"].into_iter().chain(urls));
        let mut all = serde_json::from_slice::<Value>(&output.stdout).unwrap();
        assert_eq!(all.as_object().unwrap().len(), 1, "they say nothing of other keys: {all}");
        (output.status.code(), all["cookie-keys"].take())
    };
    let urls = [0, 1, 2].map(|index| url(&fleet, index));
    let client = fleet.nodes[0].client(60);
    wait_for("requests between two looks", || {
        let (code, all) = status(&urls);
        assert_eq!((code, all["refusals"].as_array().map(Vec::len)), (Some(0), Some(0)), "{all}");
        // It asks `b`, and nobody else is asked.
        let rates =
            [0, 1, 2].map(|index| &named(&all["members"], "name", &urls[index])["requests_per_second"]);
        assert!(*rates[0] == 0.0 && *rates[2] == 0.0, "{all}");
        (*rates[1] != 0.0).then_some(())
    });
    has_lost_nothing(client, 60);
    // A host that has none of these keys, and one that is not there.
    let lab = Lab::new();
    let stranger = start(&lab.config("", ""));
    let stranger = format!("http://{}/metrics", stranger.metrics);
    fleet.kill(2);
    let (code, status) = status(&[urls[0].clone(), stranger.clone(), urls[2].clone()]);
    assert_eq!(code, Some(1), "{status}");
    let refused = |by: &str, of: &str| {
        let refusals = status["refusals"].as_array().unwrap().iter();
        refusals.filter(|refusal| refusal["by"] == by && refusal["clients_of"] == of).count()
    };
    assert_eq!((refused(&urls[0], &stranger), refused(&stranger, &urls[0])), (1, 1), "{status}");
    let problem = named(&status["members"], "name", &urls[2])["problem"].as_str().unwrap();
    assert!(problem.contains(&urls[2]), "{problem}");
    let output = authentick(["keys", "status", "--metrics", &urls[0]]);
    let said = "cookie keys: no others are on pages of metrics\n";
    assert!(text(&output).contains(said), "{}", text(&output));
    crate::lab::refused(
        &authentick(["keys", "status", "--antp", "--metrics", &urls[0]]),
        64,
        &["--antp", "--metrics"],
    );
}

#[test]
fn uses_of_a_symmetric_key_are_added_up_from_the_store_and_from_pages_of_metrics() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::new(&addresses, SELDOM);
    let file = fleet.nodes[0].lab.path().join("symmetric-keys");
    write_private(&file, "7 AES128 HEX:000102030405060708090a0b0c0d0e0f\n");
    fleet.more = format!("[symmetric]\nkeys = {file:?}\n");
    (0..3).for_each(|index| fleet.start(index));
    let file = file.to_str().unwrap();
    for (index, count) in [(1, "2"), (2, "3")] {
        let server = format!("127.0.0.1:{}", fleet.nodes[index].port);
        let ask = ["query", "--auth", "mac", "--keys", file, "--key-id", "7", "--interval", "0.1", "--count"];
        let output = authentick(ask.into_iter().chain([count, &server]));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }
    // A request that is answered makes two uses.
    let expected = json!([{ "key": 7, "type": "AES128", "members": 3, "uses": 10, "limit": 1_u64 << 46 }]);
    wait_for("the uses", || {
        let said: Value = serde_json::from_slice(&fleet.keys(0, &["status"]).stdout).unwrap();
        (said["symmetric-keys"] == expected).then_some(())
    });
    let urls: Vec<String> = fleet
        .nodes
        .iter()
        .map(|node| format!("http://{}/metrics", node.server.as_ref().unwrap().metrics))
        .collect();
    let ask = ["keys", "status", "--metrics"].into_iter().chain(urls.iter().map(String::as_str));
    let output = authentick(ask.clone());
    let said = "symmetric key 7 (AES128): 10 uses at 3 hosts together, to be replaced after 70368744177664\n";
    assert!(text(&output).ends_with(said), "{}", text(&output));
    let output = authentick(ask.chain(["--json"]));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["symmetric-keys"], expected);
}

/// `keys drill` from each node's key exchange to these ports, with the authorities of all.
fn drill(fleet: &Fleet, ports: &[u16], arguments: &[&str]) -> (Option<i32>, Value) {
    let nodes = || fleet.nodes.iter();
    let authorities: String = nodes().map(|node| fs::read_to_string(node.lab.ca()).unwrap()).collect();
    let ca = fleet.nodes[0].lab.path().join("authorities.pem");
    fs::write(&ca, authorities).unwrap();
    let mut all: Vec<String> =
        ["keys", "drill", "--json", "--ca", ca.to_str().unwrap()].map(str::to_owned).into();
    for node in nodes() {
        all.extend(["--key-exchange".to_owned(), node.server.as_ref().unwrap().ke.to_string()]);
    }
    for port in ports {
        all.extend(["--server".to_owned(), format!("127.0.0.1:{port}")]);
    }
    let output = authentick(all.iter().map(String::as_str).chain(arguments.iter().copied()));
    assert!(!output.stdout.is_empty(), "{}", text(&output));
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn drill_finds_no_refusal_in_a_fleet_and_each_of_a_stranger() {
    let (_caches, addresses) = caches::<2>();
    let mut fleet = Fleet::running(&addresses, super::OFTEN);
    let ports: Vec<u16> = fleet.nodes.iter().map(|node| node.port).collect();
    // Three rotations are to spare for a machine that is busy.
    let (code, seen) = drill(&fleet, &ports, &["--rotations", "3", "--rate", "300", "--keep", "4"]);
    assert_eq!(
        (code, &seen["total"]["ntsn"], &seen["total"]["invalid"]),
        (Some(0), &0.into(), &0.into()),
        "{seen}"
    );
    assert!(seen["rotations"].as_u64() >= Some(3), "{seen}");
    // Each server had cookies of each key exchange under each of four keys or more.
    let lines = seen["lines"].as_array().unwrap();
    assert!(lines.len() >= 3 * 3 * 4, "{seen}");
    assert!(lines.iter().all(|line| line["answered"].as_u64() > Some(0)), "{seen}");
    fleet.is_unharmed();
    // One that shares nothing with them.
    let lab = Lab::new();
    let stranger = start(&lab.config("", ""));
    let ports = [ports[0], stranger.ntp.port()];
    let (code, seen) = drill(&fleet, &ports, &["--rotations", "0", "--rate", "100"]);
    assert_eq!(code, Some(1), "{seen}");
    for line in seen["lines"].as_array().unwrap() {
        let is_stranger = line["server"] == format!("127.0.0.1:{}", ports[1]);
        let (refused, answered) = (&line["ntsn"], &line["answered"]);
        assert_eq!((refused == 0, answered == 0), (!is_stranger, is_stranger), "{line}");
    }
    // Rotations that do not come are no good sign.
    let (code, seen) = drill(&fleet, &ports[..1], &["--rotations", "60", "--for", "500ms"]);
    assert_eq!((code, seen["rotations_wanted"].as_u64()), (Some(1), Some(60)), "{seen}");
    assert_eq!(seen["total"]["ntsn"], 0, "{seen}");
    let refused_drill = |arguments: &[&str], part: &str| {
        let output = authentick([&["keys", "drill"], arguments].concat());
        refused(&output, 64, &[part]);
    };
    refused_drill(&["--server", "127.0.0.1"], "--key-exchange");
    refused_drill(&["--key-exchange", "127.0.0.1", "--server", "192.0.2.1"], "public address");
    refused_drill(
        &["--key-exchange", "a b", "--server", "127.0.0.1"],
        "invalid server \"a b\": expected HOST",
    );
}

#[test]
fn take_over_from_a_writer_that_is_gone_waits_unless_it_is_left_out() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, SELDOM);
    fleet.kill(0);
    refused(
        &fleet.keys(1, &["take-over", "--wait", "3s"]),
        1,
        &["authentick: no answer from a; start these nodes", "run this again"],
    );
    // The claim stands: whoever hears of it stops writing.
    let line = "b is taking over as the writer, with term 2";
    fleet.nodes[2].server().process.wait_for_line(line);
    fleet.done(1, &["take-over", "--without", "a"]);
    fleet.nodes[0].server = None;
    for index in [1, 2] {
        let node = &mut fleet.nodes[index];
        wait_for("the new term", || {
            (node.metric("fleet_document_term{kind=\"cookie-keys\"}") == 2.0).then_some(())
        });
    }
    // The old writer comes back, takes what there is, and writes nothing.
    fleet.start(0);
    wait_for("the new term", || {
        (fleet.nodes[0].metric("fleet_document_term{kind=\"cookie-keys\"}") == 2.0).then_some(())
    });
    assert_eq!(fleet.nodes[0].metric("fleet_writer{kind=\"cookie-keys\"}"), 0.0);
    fleet.is_good(0);
    fleet.is_unharmed();
}

#[test]
fn status_says_who_would_refuse_whom() {
    let (caches, addresses) = caches::<2>();
    let mut fleet = Fleet::running(&addresses, SELDOM);
    let status = fleet.is_good(2);
    assert_eq!(status["cookie-keys"]["document"], "version 1 of term 1 by a");
    let named: Vec<&str> = status["cookie-keys"]["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| member["name"].as_str().unwrap())
        .collect();
    assert_eq!(named, NAMES);
    // One that is away does not acknowledge.
    fleet.kill(2);
    fleet.done(0, &["rotate", "--now"]);
    refused(
        &fleet.keys(0, &["rotate", "--now", "--wait", "3s"]),
        1,
        &["authentick: not acknowledged by c; start these nodes"],
    );
    let output = fleet.keys(0, &["status"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "it has the key that seals: {}", text(&output));
    assert_eq!(
        (&status["cookie-keys"]["members"][2]["has_document"], &status["cookie-keys"]["refusals"]),
        (&false.into(), &Value::Array(vec![]))
    );
    // With patience it is left behind, and the others' clients come to it in vain.
    fleet.more = "patience = \"1s\"".to_owned();
    fleet.keys = ", rotate = \"1s\"".to_owned();
    fleet.kill(0);
    fleet.start(0);
    let status = wait_for("a refusal", || {
        let output = fleet.keys(0, &["status"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code() == Some(1)).then_some(status)
    });
    let refusal = &status["cookie-keys"]["refusals"][0];
    assert_eq!(
        (&refusal["by"], &refusal["clients_of"], &refusal["answer"]),
        (&"c".into(), &"a".into(), &"silence".into())
    );
    drop(caches);
    std::thread::sleep(Duration::from_millis(100));
    refused(&fleet.keys(0, &["status"]), 1, &["none of the servers can be read", "see that memcached runs"]);
}
