//! A fleet of four hosts with networks of their own, and two of Debian's memcached on a fifth, where clients are too.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use authentick_lab::certificates::write_private;
use authentick_lab::filter::{Action, Filter, Traffic, Way};
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::{Chrony, Memcached, MemcachedServer, Memory};
use authentick_lab::skip::skip;
use serde_json::Value;

use super::{PERIOD, is_left_behind};
use crate::lab::{Lab, Server, program, text, wait_for};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const NTP: u16 = 4123;
const KE: u16 = 4460;

/// Four nodes, `a` being their writer; each sends its clients to the next one for time.
struct Fleet<'h> {
    hosts: &'h Hosts,
    nodes: Vec<(Lab, Server)>,
}

impl<'h> Fleet<'h> {
    fn start(hosts: &'h Hosts, caches: &[MemcachedServer], keep: u32, more: &str) -> Self {
        let labs = NAMES.map(|_| Lab::new());
        let servers: Vec<String> = caches.iter().map(|cache| cache.address().to_string()).collect();
        let mut nodes = Vec::new();
        for (index, lab) in labs.into_iter().enumerate() {
            write_private(
                &lab.path().join("seal"),
                &format!("authentick-fleet-seal 1\nkey 0 {}\n", "5a".repeat(32)),
            );
            let (own, next) = (Host::Client(index), Host::Client((index + 1) % NAMES.len()));
            let (own, next) = (hosts.address(own), hosts.address(next));
            let nts = format!(
                "ke-listen = [\"{own}:{KE}\"]\nadvertise = {{ server = \"{next}\", port = {NTP} }}\n\
                 cookie-keys = {{ store = \"memcached\", rotate = \"1s\", keep = {keep} }}\n\
                 [fleet]\nid = \"fleet\"\nnode = {:?}\nmembers = {NAMES:?}\nservers = {servers:?}\n\
                 seal-key = {:?}\nwriter = {}\n{more}",
                NAMES[index],
                lab.path().join("seal"),
                index == 0,
            );
            let config = lab.config(&format!("listen = [\"{own}:{NTP}\"]"), &nts);
            if index == 0 {
                let output = program().run(["keys", "generate", "--config", config.to_str().unwrap()]);
                assert_eq!(output.status.code(), Some(0), "{}", text(&output));
            }
            let server = program().serve_on(hosts, Host::Client(index), &config);
            nodes.push((lab, server));
        }
        let fleet = Fleet { hosts, nodes };
        for index in 0..NAMES.len() {
            wait_for("a document", || (fleet.version(index) > 0.0).then_some(()));
        }
        fleet
    }

    fn metric(&self, index: usize, name: &str) -> f64 {
        let server = &self.nodes[index].1;
        self.hosts.within(Host::Client(index), || server.metric(name))
    }

    fn version(&self, index: usize) -> f64 {
        self.metric(index, "fleet_document_version{kind=\"cookie-keys\"}")
    }

    /// Waits until the writer has rotated so often, and all have that.
    fn rotate(&self, count: u32) {
        let version = self.version(0) + f64::from(count);
        (0..NAMES.len()).for_each(|index| self.reach(index, version));
    }

    /// Waits until a node has this version, or a later one.
    fn reach(&self, index: usize, version: f64) {
        wait_for("a rotation", || (self.version(index) >= version).then_some(()));
    }

    /// A command on a node.
    fn on(&self, index: usize, arguments: &[&str]) -> std::process::Output {
        let config = self.nodes[index].0.path().join("authentick.toml");
        let mut command = self.hosts.on(Host::Client(index), program().path());
        command.args(arguments).arg("--config").arg(config).output().unwrap()
    }

    /// The authorities of all nodes.
    fn authorities(&self) -> PathBuf {
        let all: String =
            self.nodes.iter().map(|(lab, _)| std::fs::read_to_string(lab.ca()).unwrap()).collect();
        let file = self.nodes[0].0.path().join("authorities.pem");
        std::fs::write(&file, all).unwrap();
        file
    }

    /// Cookies of all to all, until so many rotations were seen.
    fn drill(&self, arguments: &[&str]) -> Command {
        let mut command = self.hosts.on(Host::Server, program().path());
        command.args(["keys", "drill", "--json", "--ca"]).arg(self.authorities()).args(arguments);
        for index in 0..NAMES.len() {
            let address = self.hosts.address(Host::Client(index));
            command.args(["--key-exchange", &format!("{address}:{KE}")]);
            command.args(["--server", &format!("{address}:{NTP}")]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Cuts a node off from memcached, both ways of it.
    fn cut_off(&self, index: usize, caches: &[MemcachedServer]) -> Filter<'h> {
        let mut filter = Filter::new(self.hosts, Host::Client(index)).unwrap();
        for cache in caches {
            filter.add(Way::Out, Traffic::TcpTo(cache.address().port()), Action::Drop);
        }
        filter
    }

    fn is_unharmed(&self) {
        for (index, node) in NAMES.iter().enumerate() {
            for name in ["nts_nak_unknown_key", "nts_nak_cookie"] {
                let metric = format!("ntp_server_packets_total{{outcome={name:?}}}");
                assert_eq!(self.metric(index, &metric), 0.0, "{node} {name}");
            }
        }
    }
}

/// What the drill has seen, and how it ended.
fn seen(drill: Child) -> (Option<i32>, Value) {
    let output = drill.wait_with_output().unwrap();
    assert!(!output.stdout.is_empty(), "{}", text(&output));
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

/// Two memcached where clients are, and the hosts; `None`, and said why, where something is missing.
fn laboratory() -> Option<(Hosts, Memcached)> {
    let memcached = Memcached::find()?;
    let hosts = match Hosts::new(NAMES.len()) {
        Ok(hosts) => hosts,
        Err(reason) => {
            skip(&reason.to_string());
            return None;
        }
    };
    if let Err(reason) = Filter::new(&hosts, Host::Server) {
        reason.tell();
        return None;
    }
    let memcached = memcached.on(&hosts, Host::Server);
    Some((hosts, memcached))
}

fn caches(hosts: &Hosts, memcached: &Memcached) -> [MemcachedServer; 2] {
    let address = SocketAddr::new(hosts.address(Host::Server), 0);
    [(); 2].map(|()| memcached.start(address, Memory::megabytes(64)))
}

#[test]
fn four_hosts_lose_no_client_while_half_of_them_are_cut_off_and_memcached_dies() {
    let Some((hosts, memcached)) = laboratory() else { return };
    let Some(chrony) = Chrony::find() else { return };
    let mut caches = caches(&hosts, &memcached);
    let mut fleet = Fleet::start(&hosts, &caches, 7, "");
    // Cookies of all go to all, with some rotations to spare for a machine that is busy; and chrony takes time from
    // `b` with keys of `a`, until the end.
    let drill =
        fleet.drill(&["--rotations", "9", "--keep", "4", "--rate", "400", "--for", "5m"]).spawn().unwrap();
    let keys = hosts.address(Host::Client(0));
    let lines = format!("server {keys} iburst minpoll 0 maxpoll 0 nts ntsport {KE}");
    let mut client = chrony.on(&hosts, Host::Server).daemon(&fleet.nodes[0].0, &lines);
    fleet.rotate(1);

    // Half of the nodes are cut off: rotation waits, names them, and goes on soon after.
    let filters = [2, 3].map(|index| fleet.cut_off(index, &caches));
    // What was on its way arrives, and then nothing for three periods.
    wait_for("rotations to stop", || {
        let version = fleet.version(0);
        std::thread::sleep(3 * PERIOD);
        (fleet.version(0) == version).then_some(())
    });
    let line = "cookie keys are due to rotate, and wait: not acknowledged by c, d;";
    fleet.nodes[0].1.process.wait_for_line(line);
    for name in ["c", "d"] {
        let metric = format!("fleet_member_acknowledged{{kind=\"cookie-keys\",member={name:?}}}");
        assert_eq!(fleet.metric(0, &metric), 0.0);
    }
    drop(filters);
    [2, 3].into_iter().for_each(|index| drop(Filter::new(&hosts, Host::Client(index)).unwrap()));
    let healed = Instant::now();
    fleet.rotate(1);
    eprintln!("rotated on all four {:?} after the network was whole", healed.elapsed());

    // One memcached dies and comes back empty, then both do.
    caches[0].kill();
    fleet.rotate(1);
    caches[0].restart();
    caches[1].kill();
    fleet.rotate(1);
    caches[0].kill();
    std::thread::sleep(2 * PERIOD);
    caches.iter_mut().for_each(MemcachedServer::restart);
    fleet.rotate(1);

    // By hand, twice.
    for _ in 0..2 {
        let (version, began) = (fleet.version(0) + 1.0, Instant::now());
        let output = fleet.on(0, &["keys", "rotate", "--now"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        (0..NAMES.len()).for_each(|index| fleet.reach(index, version));
        eprintln!("by hand in force on all four after {:?}", began.elapsed());
    }
    // A host leaves the room and comes back as it was.
    fleet.nodes[3].1.process.signal("-KILL");
    fleet.nodes[3].1.process.wait();
    let config = fleet.nodes[3].0.path().join("authentick.toml");
    fleet.nodes[3].1 = program().serve_on(&hosts, Host::Client(3), &config);
    fleet.rotate(1);

    let (code, seen) = seen(drill);
    // What was under way to `d` while it was dead is lost, and nothing else.
    assert_eq!(
        (code, &seen["total"]["ntsn"], &seen["total"]["invalid"]),
        (Some(0), &0.into(), &0.into()),
        "{seen}"
    );
    let of_d = format!("{}:{NTP}", hosts.address(Host::Client(3)));
    let others = seen["lines"].as_array().unwrap().iter().filter(|line| line["server"] != *of_d);
    others.for_each(|line| assert_eq!(line["sent"], line["answered"], "{line}"));
    // host,NTS,KeyID,Type,KLen,Last,Atmp,NAK,Cook,CLen
    let line = client.ask("authdata");
    let fields: Vec<&str> = line.trim().split(',').collect();
    assert_eq!((fields[2], fields[7]), ("1", "0"), "one key exchange ever, and no NAK: {line}");
    fleet.is_unharmed();
}

#[test]
fn patience_refuses_exactly_where_status_says() {
    let Some((hosts, memcached)) = laboratory() else { return };
    let caches = caches(&hosts, &memcached);
    // Long enough for a busy machine that is not cut off.
    let mut fleet = Fleet::start(&hosts, &caches, 60, "patience = \"8s\"\n");
    fleet.rotate(1);
    let filters = [2, 3].map(|index| fleet.cut_off(index, &caches));
    // One of them may have had what was on its way.
    let log = &mut fleet.nodes[0].1.process;
    wait_for("both to be left behind", || {
        let line = log.wait_for_line("patience is over: ");
        ["c", "d"].iter().all(|name| is_left_behind(&line, name)).then_some(())
    });
    // The next one seals with a key that these have never seen; `c` and `d` stay where they are.
    let version = fleet.version(0);
    wait_for("two rotations", || (fleet.version(0) >= version + 2.0).then_some(()));
    let output = fleet.on(0, &["keys", "status", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let status = serde_json::from_slice::<Value>(&output.stdout).unwrap()["cookie-keys"].take();
    // Fresh cookies of all at all, with keys that follow meanwhile.
    let drill = fleet.drill(&["--rotations", "0", "--rate", "200", "--timeout", "1"]).spawn().unwrap();
    let (_, seen) = seen(drill);
    let lines = || seen["lines"].as_array().unwrap().iter();
    let is_lost = |name: &str, key: &Value| {
        let index = NAMES.iter().position(|other| *other == name).unwrap();
        let server = format!("{}:{NTP}", hosts.address(Host::Client(index)));
        let mut of_it = lines().filter(|line| line["server"] == *server && line["key"] == *key);
        of_it.any(|line| line["answered"] == 0)
    };
    // All that status names is refused, by the two that are cut off; and of these, no key that they open.
    let refusals = status["refusals"].as_array().unwrap();
    for name in ["c", "d"] {
        assert!(
            refusals.iter().any(|refusal| refusal["by"] == name && refusal["clients_of"] == "a"),
            "{status}"
        );
    }
    for refusal in refusals {
        let (by, key) = (refusal["by"].as_str().unwrap(), &refusal["key"]);
        assert_eq!((by == "c" || by == "d", &refusal["answer"]), (true, &"silence".into()), "{refusal}");
        // Keys that sealed earlier count, too: nobody gave cookies under them to the drill.
        let seals =
            status["keys"].as_array().unwrap().iter().any(|one| one["key"] == *key && one["seals"] == true);
        let is_tried = seals || lines().any(|line| line["key"] == *key);
        assert!(!is_tried || is_lost(by, key), "{refusal}: {seen}");
    }
    for member in status["members"].as_array().unwrap() {
        let (name, opens) = (member["name"].as_str().unwrap(), member["opens"].as_array().unwrap());
        for line in lines() {
            let is_cut_off = name == "c" || name == "d";
            let expected = is_cut_off && !opens.contains(&line["key"]);
            assert_eq!(is_lost(name, &line["key"]), expected, "{name} {}: {seen}", line["key"]);
        }
    }
    assert_eq!(seen["total"]["ntsn"], 0, "{seen}");
    // Whoever comes back has what the others have.
    drop(filters);
    [2, 3].into_iter().for_each(|index| drop(Filter::new(&hosts, Host::Client(index)).unwrap()));
    wait_for("a good status", || (fleet.on(0, &["keys", "status"]).status.code() == Some(0)).then_some(()));
    fleet.is_unharmed();
}
