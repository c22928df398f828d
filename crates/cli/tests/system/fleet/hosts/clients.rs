//! Rotation as clients of all kinds see it, with all nodes there, with half of them cut off, and when patience with
//! these is over.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use authentick_lab::hosts::Host;
use authentick_lab::peers::Chrony;
use authentick_lab::process::{PATIENCE, Process, wait_within};
use authentick_report::load::LoadRecord;
use serde_json::Value;

use super::super::{has_lost_nothing, is_left_behind};
use super::{Fleet, KE, NAMES, NTP, OFTEN, caches, client, in_time, laboratory};
use crate::lab::{text, wait_for};

impl Fleet<'_> {
    /// A client that takes cookies from a node, and asks the next one with them, five times a second.
    fn query(&self, index: usize, count: usize) -> Child {
        let (host, port) = (self.hosts.address(Host::Client(index)).to_string(), KE.to_string());
        let mut command = client(self.hosts);
        command.args(["query", &host, "--ke-port", &port, "--interval", "0.2", "--json"]);
        command.args(["--count", &count.to_string(), "--ca"]).arg(self.nodes[index].lab.ca());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// `load nts` from a node's key exchange to the next one, for so many seconds.
    fn load_nts(&self, index: usize, seconds: &str) -> Process {
        let (host, port) = (self.hosts.address(Host::Client(index)).to_string(), KE.to_string());
        let mut command = client(self.hosts);
        command.args(["load", "nts", &host, "--ke-port", &port, "--json", "--unpinned", "--clients", "8"]);
        command.args(["--rate", "100", "--timeout", "5", "--step-seconds", seconds, "--ca"]);
        Process::start(command.arg(self.nodes[index].lab.ca()))
    }
}

/// A load whose clients were all answered, whatever it says of the server's speed.
#[track_caller]
fn load_has_lost_nothing(mut load: Process) {
    let (code, log) = (load.wait(), load.log());
    assert!(matches!(code, 0 | 3), "{log}");
    let line =
        log.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no record in: {log}"));
    let record = LoadRecord::from_json(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    for step in &record.steps {
        assert!(step.tally.answered > 0, "{line}");
        let failure = step.tally.causes.iter().find(|(cause, _)| !cause.is_skip());
        assert_eq!(failure, None, "{line}");
    }
}

#[test]
fn clients_of_all_kinds_are_served_over_rotations_and_while_half_of_the_nodes_are_cut_off() {
    let Some((hosts, memcached)) = laboratory() else { return };
    let Some(chrony) = Chrony::find() else { return };
    let (_caches, servers) = caches(&hosts, &memcached);
    let mut fleet = Fleet::running(&hosts, &servers, OFTEN);
    let chrony = chrony.on(&hosts, Host::Server);
    fleet.under_load("rotation, with chrony, query and load nts", |fleet| {
        // chrony takes time from `b` with keys of `a`.
        let keys = hosts.address(Host::Client(0));
        let lines = format!("server {keys} iburst minpoll 0 maxpoll 0 nts ntsport {KE}");
        let mut chronyd = chrony.daemon(&fleet.nodes[0].lab, &lines);
        let load = fleet.load_nts(2, "6");
        let queries = [0, 1, 2, 3].map(|index| fleet.query(index, 30));
        fleet.rotate(3);
        queries.into_iter().for_each(|query| has_lost_nothing(query, 30));
        load_has_lost_nothing(load);
        // host,NTS,KeyID,Type,KLen,Last,Atmp,NAK,Cook,CLen
        let line = chronyd.ask("authdata");
        let fields: Vec<&str> = line.trim().split(',').collect();
        assert_eq!((fields[2], fields[7]), ("1", "0"), "one key exchange ever, and no NAK: {line}");
        assert!(fleet.metric(0, "nts_cookie_key_rotations_total") >= 3.0);
        assert_eq!(fleet.metric(0, "nts_cookie_key_rotation_failures_total"), 0.0);
        fleet.says(0, "cookie keys rotated; key ");
        (1..NAMES.len()).for_each(|index| drop(fleet.says(index, "cookie keys received from ")));
    });
    fleet.under_load("half of the nodes cut off for three periods", |fleet| {
        in_time("rotated once the network was whole", Duration::from_secs(5), || half_is_cut_off(fleet));
        fleet.rotate(1);
    });
}

/// Rotation waits for those who are cut off, and names them; how long it still waits when the network is whole.
fn half_is_cut_off(fleet: &mut Fleet<'_>) -> Duration {
    [2, 3].into_iter().for_each(|index| fleet.cut_off(index));
    let version = fleet.stops();
    // One of them may have said that it has this.
    let silent = fleet.silent();
    assert!(!silent.is_empty() && silent.iter().all(|name| ["c", "d"].contains(name)), "{silent:?}");
    let lines = fleet.lines(0, "cookie keys are due to rotate, and wait: ");
    let said = format!("not acknowledged by {};", silent.join(", "));
    assert!(lines.last().is_some_and(|line| line.contains(&said)), "{said}: {lines:?}");
    for index in [2, 3] {
        for server in &fleet.servers {
            assert_eq!(fleet.of_server(index, "up", *server), 0.0);
        }
    }
    [2, 3].into_iter().for_each(|index| fleet.reconnect(index));
    let healed = Instant::now();
    fleet.reach(0, version + 1.0);
    healed.elapsed()
}

/// Requests a second that a member will refuse, as the writer's log has it when patience with it is over.
fn refuses(line: &str, name: &str) -> String {
    let start = format!("{name} (which answered ");
    let (_, rest) = line.split_once(&start).unwrap_or_else(|| panic!("nothing of {name} in {line}"));
    rest.split_once(" requests a second when it was heard last)").unwrap().0.to_owned()
}

#[test]
fn patience_refuses_exactly_where_status_says_and_says_how_much() {
    let Some((hosts, memcached)) = laboratory() else { return };
    let (_caches, servers) = caches(&hosts, &memcached);
    let mut fleet = Fleet::new(&hosts, &servers, OFTEN);
    // Long enough for a busy machine that is not cut off.
    (fleet.more, fleet.keep) = ("patience = \"8s\"\n".to_owned(), 60);
    fleet.start_all();
    fleet.under_load("clients before patience is over", |fleet| fleet.rotate(2));
    [2, 3].into_iter().for_each(|index| fleet.cut_off(index));
    let line = wait_for_long("both to be left behind", || {
        let lines = fleet.lines(0, "patience is over: ");
        let of_line = |line: &String| line.split_once("patience is over: ").unwrap().1.to_owned();
        let is_of_both = |line: &String| ["c", "d"].iter().all(|name| is_left_behind(line, name));
        lines.iter().map(of_line).find(is_of_both)
    });
    // The next one seals with a key that these have never seen; `c` and `d` stay where they are.
    let version = fleet.version(0);
    wait_for("two rotations", || (fleet.version(0) >= version + 2.0).then_some(()));
    let output = fleet.on(0, &["keys", "status", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let status = serde_json::from_slice::<Value>(&output.stdout).unwrap()["cookie-keys"].take();
    let members = status["members"].as_array().unwrap();
    // They have said last how many clients they served, and will refuse no more than these.
    for name in ["c", "d"] {
        let of_it = members.iter().find(|member| member["name"] == name).unwrap();
        let rate = of_it["requests_per_second"].as_f64().unwrap();
        assert!(rate > 0.0, "{of_it}");
        assert_eq!(refuses(&line, name), format!("{rate:.1}"), "{name}: {status}");
    }
    // Fresh cookies of all at all, with keys that follow meanwhile.
    let seen = fleet.drill(&[0, 1, 2, 3], &["--rotations", "0", "--rate", "200", "--timeout", "1"]);
    let lines = || seen["lines"].as_array().unwrap().iter();
    let is_lost = |name: &str, key: &Value| {
        let index = NAMES.iter().position(|other| *other == name).unwrap();
        let server = fleet.address(index, NTP);
        let mut of_it = lines().filter(|line| line["server"] == *server && line["key"] == *key);
        of_it.any(|line| line["answered"] == 0)
    };
    // All that status names is refused, by the two that are cut off; and of these, no key that they open.
    let refusals = status["refusals"].as_array().unwrap();
    for name in ["c", "d"] {
        let is_of_a = |refusal: &Value| refusal["by"] == name && refusal["clients_of"] == "a";
        assert!(refusals.iter().any(is_of_a), "{status}");
    }
    for refusal in refusals {
        let (by, key) = (refusal["by"].as_str().unwrap(), &refusal["key"]);
        assert_eq!((by == "c" || by == "d", &refusal["answer"]), (true, &"silence".into()), "{refusal}");
        // Keys that sealed earlier count, too, and the writer may have rotated since: the drill had no cookie of these.
        let is_tried = lines().any(|line| line["key"] == *key);
        assert!(!is_tried || is_lost(by, key), "{refusal}: {seen}");
    }
    for member in members {
        let (name, opens) = (member["name"].as_str().unwrap(), member["opens"].as_array().unwrap());
        for line in lines() {
            let is_cut_off = name == "c" || name == "d";
            let expected = is_cut_off && !opens.contains(&line["key"]);
            assert_eq!(is_lost(name, &line["key"]), expected, "{name} {}: {seen}", line["key"]);
        }
    }
    assert_eq!(seen["total"]["ntsn"], 0, "{seen}");
    // Whoever comes back has what the others have.
    [2, 3].into_iter().for_each(|index| fleet.reconnect(index));
    wait_for("a good status", || (fleet.on(0, &["keys", "status"]).status.code() == Some(0)).then_some(()));
    (0..NAMES.len()).for_each(|index| fleet.is_unharmed(index));
}

/// Waits twice as long as for other things: one may be left behind after the other, each after its own patience.
fn wait_for_long<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    wait_within(2 * PATIENCE, what, ask)
}
