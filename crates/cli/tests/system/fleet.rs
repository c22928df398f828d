//! Servers that share their cookie keys through memcached.

mod antp;
mod commands;
mod hosts;
mod mistakes;
mod options;
mod seals;
mod silence;
mod strangers;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use authentick_lab::caches::{Behaviour, CacheClient, CacheServer};
use authentick_lab::certificates::write_private;
use authentick_lab::peers::{Chrony, Memcached, MemcachedServer, Memory};
use authentick_lab::process::closed_port;
use serde_json::Value;

use crate::lab::{Lab, Server, authentick, free_port, program, refused, start, text, wait_for};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// How often keys are due to rotate. With what it takes to tell all of it, that is every three seconds or so.
const PERIOD: Duration = Duration::from_secs(1);
const OFTEN: &str = ", rotate = \"1s\"";

/// A node of a fleet, running or not. Its key exchange sends clients to the next node for time.
struct Node {
    lab: Lab,
    port: u16,
    server: Option<Server>,
}

impl Node {
    fn server(&mut self) -> &mut Server {
        self.server.as_mut().expect("it runs")
    }

    fn metric(&mut self, name: &str) -> f64 {
        self.server().metric(name)
    }

    /// Which document it has, 0 if none.
    fn version(&mut self) -> f64 {
        self.metric("fleet_document_version{kind=\"cookie-keys\"}")
    }

    /// Gives it a seal key, of these digits.
    fn seal(&self, digits: &str) {
        let text = format!("authentick-fleet-seal 1\nkey 0 {}\n", digits.repeat(32));
        write_private(&self.lab.path().join("seal"), &text);
    }

    fn query(&mut self, arguments: &[&str]) -> Output {
        let server = self.server.as_ref().expect("it runs");
        server.query(&self.lab, arguments)
    }

    /// A client that takes cookies here, and asks the next node with them, five times a second.
    fn client(&self, count: u32) -> Child {
        let server = self.server.as_ref().expect("it runs");
        let (host, port) = (server.ke.ip().to_string(), server.ke.port().to_string());
        let arguments = ["query", &host, "--ke-port", &port, "--interval", "0.2", "--json"];
        let mut command = Command::new(program().path());
        command.args(arguments).args(["--count", &count.to_string(), "--ca"]).arg(self.lab.ca());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// A fleet of three, `a` being its writer.
struct Fleet {
    nodes: Vec<Node>,
    servers: Vec<SocketAddr>,
    /// What `cookie-keys` say besides the store, and `[fleet]` besides what it has to.
    keys: String,
    more: String,
    /// What `[antp]` says, if it is served.
    antp: Option<String>,
}

impl Fleet {
    /// A fleet that has not started; its writer has made the first keys.
    fn new(servers: &[SocketAddr], keys: &str) -> Self {
        let nodes = NAMES.map(|_| Node { lab: Lab::new(), port: free_port(), server: None });
        let (keys, more) = (keys.to_owned(), String::new());
        let fleet = Fleet { nodes: nodes.into(), servers: servers.to_vec(), keys, more, antp: None };
        fleet.nodes.iter().for_each(|node| node.seal("5a"));
        let config = fleet.config(0, true);
        let output = authentick(["keys", "generate", "--config", config.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        fleet
    }

    /// A fleet that runs, and whose nodes all have a document of the writer.
    fn running(servers: &[SocketAddr], keys: &str) -> Self {
        let mut fleet = Fleet::new(servers, keys);
        (0..NAMES.len()).for_each(|index| fleet.start(index));
        for node in &mut fleet.nodes {
            wait_for("a document", || (node.version() > 0.0).then_some(()));
        }
        fleet
    }

    fn config(&self, index: usize, is_writer: bool) -> PathBuf {
        let (node, next) = (&self.nodes[index], self.nodes[(index + 1) % NAMES.len()].port);
        let servers: Vec<String> = self.servers.iter().map(SocketAddr::to_string).collect();
        let nts = format!(
            "advertise = {{ port = {next} }}\ncookie-keys = {{ store = \"memcached\"{} }}\n[fleet]\nid = \"fleet\"\n\
             node = {:?}\nmembers = {NAMES:?}\nservers = {servers:?}\nseal-key = {:?}\nwriter = {is_writer}\n{}",
            self.keys,
            NAMES[index],
            node.lab.path().join("seal"),
            self.more,
        );
        let server = format!("listen = [\"127.0.0.1:{}\"]", node.port);
        let Some(antp) = &self.antp else { return node.lab.config(&server, &nts) };
        let file = node.lab.antp_config(&["ecdh"], &server, antp);
        let text = fs::read_to_string(&file).unwrap();
        let (before, after) = text.split_once("[nts]\n").unwrap();
        // The table of the fleet stands behind all others.
        let (nts, fleet) = nts.split_once("[fleet]").unwrap();
        fs::write(&file, format!("{before}[nts]\n{nts}{after}\n[fleet]{fleet}")).unwrap();
        file
    }

    fn start(&mut self, index: usize) {
        let config = self.config(index, index == 0);
        self.nodes[index].server = Some(start(&config));
    }

    fn kill(&mut self, index: usize) {
        self.nodes[index].server().process.signal("-KILL");
        self.nodes[index].server = None;
    }

    fn writer(&mut self) -> &mut Node {
        &mut self.nodes[0]
    }

    /// Waits until the writer has rotated so many times more, and all that run have the last of these documents.
    fn rotate(&mut self, count: u32) {
        let version = self.writer().version() + f64::from(count);
        for node in self.nodes.iter_mut().filter(|node| node.server.is_some()) {
            wait_for("a rotation", || (node.version() >= version).then_some(()));
        }
    }

    /// Waits until the writer says that a rotation waits for this member alone.
    fn waits_for(&mut self, name: &str) {
        let line = format!("cookie keys are due to rotate, and wait: not acknowledged by {name};");
        self.writer().server().process.wait_for_line(&line);
    }

    /// No rotation takes place in three periods, after the one that may have been on its way.
    fn stands_still(&mut self) {
        std::thread::sleep(2 * PERIOD);
        let version = self.writer().version();
        std::thread::sleep(3 * PERIOD);
        assert_eq!(self.writer().version(), version);
    }

    /// Nobody who runs has refused a client's cookie, done what it may not, or seen what it should not.
    #[track_caller]
    fn is_unharmed(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| node.server.is_some()) {
            assert_eq!(node.server().outcome("nts_nak_unknown_key"), 0.0);
            assert_eq!(node.server().outcome("nts_nak_cookie"), 0.0);
            assert_eq!(node.metric("fleet_refused_documents_total{kind=\"cookie-keys\"}"), 0.0);
            for thread in ["fleet", "supervisor"] {
                let name = format!("ntp_server_refused_system_calls_total{{thread={thread:?}}}");
                assert_eq!(node.metric(&name), 0.0, "{name}");
            }
        }
    }
}

/// Every request of the client was answered, with the cookies of one key exchange.
#[track_caller]
fn has_lost_nothing(client: Child, count: usize) {
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["exchanges"].as_array().unwrap().len(), count);
}

fn caches<const N: usize>() -> ([CacheServer; N], [SocketAddr; N]) {
    let caches = [(); N].map(|()| CacheServer::on_loopback(Behaviour::Honest));
    let addresses = core::array::from_fn(|index| caches[index].address());
    (caches, addresses)
}

#[test]
fn rotations_reach_all_nodes_and_cost_no_client_anything() {
    let (_caches, addresses) = caches::<2>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    let clients: Vec<Child> = fleet.nodes.iter().map(|node| node.client(60)).collect();
    clients.into_iter().for_each(|client| has_lost_nothing(client, 60));
    let rotations = fleet.writer().metric("nts_cookie_key_rotations_total");
    assert!(rotations >= 2.0, "{rotations}");
    for node in &mut fleet.nodes {
        assert_eq!(node.metric("nts_ke_connections_accepted_total"), 1.0);
        assert_eq!(node.server().outcome("nts_key_ahead"), 0.0);
        assert_eq!(node.metric("nts_cookie_key_rotation_failures_total"), 0.0);
    }
    fleet.is_unharmed();
}

#[test]
fn chrony_keeps_its_cookies_over_rotations_that_another_node_makes() {
    let Some(chrony) = Chrony::find() else { return };
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    // Keys from `b`, time from `c`, and `a` rotates.
    let ke = fleet.nodes[1].server().ke.port();
    let lines = format!("server 127.0.0.1 iburst minpoll 0 maxpoll 0 nts ntsport {ke}");
    let mut client = chrony.daemon(&fleet.nodes[1].lab, &lines);
    wait_for("answers", || (fleet.nodes[2].server().outcome("nts") >= 4.0).then_some(()));
    fleet.rotate(3);
    let answered = fleet.nodes[2].server().outcome("nts");
    wait_for("answers", || (fleet.nodes[2].server().outcome("nts") >= answered + 2.0).then_some(()));
    // host,NTS,KeyID,Type,KLen,Last,Atmp,NAK,Cook,CLen
    let line = client.ask("authdata");
    let fields: Vec<&str> = line.trim().split(',').collect();
    assert_eq!((fields[2], fields[7]), ("1", "0"), "one key exchange ever, and no NAK: {line}");
    fleet.is_unharmed();
}

#[test]
fn memcached_may_be_killed_and_comes_back_empty() {
    let Some(memcached) = Memcached::find() else { return };
    let mut caches = [(); 2].map(|()| memcached.start("127.0.0.1:0".parse().unwrap(), Memory::megabytes(64)));
    let mut fleet = Fleet::running(&[caches[0].address(), caches[1].address()], OFTEN);
    let clients: Vec<Child> = fleet.nodes.iter().map(|node| node.client(100)).collect();
    // With one of the two it goes on.
    caches[0].kill();
    let server = caches[0].address();
    fleet.writer().server().process.wait_for_line(&format!("memcached {server}: "));
    fleet.rotate(1);
    // Without any it stands still, and clients are served.
    caches[1].kill();
    fleet.stands_still();
    let version = fleet.writer().version();
    caches.iter_mut().for_each(MemcachedServer::restart);
    let back = Instant::now();
    wait_for("the document to be back", || {
        let mut client = CacheClient::connect(server).ok()?;
        client.gets(&["authentick/fleet/cookie-keys/document"]).ok()?.pop()
    });
    eprintln!("the document was back after {:?}", back.elapsed());
    assert!(fleet.writer().version() >= version);
    fleet.rotate(1);
    clients.into_iter().for_each(|client| has_lost_nothing(client, 100));
    fleet.is_unharmed();
}

#[test]
fn memcached_that_is_full_holds_rotations_up_and_no_client() {
    let Some(memcached) = Memcached::find() else { return };
    let small = Memory::megabytes(2).refusing();
    let mut full = memcached.start("127.0.0.1:0".parse().unwrap(), small);
    let mut other = memcached.start("127.0.0.1:0".parse().unwrap(), Memory::megabytes(64));
    let mut fleet = Fleet::running(&[full.address(), other.address()], OFTEN);
    fleet.rotate(1);
    let clients: Vec<Child> = fleet.nodes.iter().map(|node| node.client(100)).collect();
    // Whatever size a value has that a node wants to put there.
    let sizes = std::iter::successors(Some(64), |size| (*size < 8000).then_some(size * 6 / 5));
    for size in sizes {
        full.fill(size);
    }
    let line = format!("memcached {} does not take authentick/fleet/", full.address());
    for node in &mut fleet.nodes {
        let said = node.server().process.wait_for_line(&line);
        assert!(said.contains("out of memory") && said.contains("give it more memory (-m)"), "{said}");
        let name = format!("fleet_server_refused_writes_total{{server=\"{}\"}}", full.address());
        assert!(node.metric(&name) > 0.0);
    }
    // With another one it goes on, and without it stands still.
    fleet.rotate(1);
    other.kill();
    fleet.stands_still();
    full.kill();
    full.restart();
    fleet.rotate(1);
    clients.into_iter().for_each(|client| has_lost_nothing(client, 100));
    fleet.is_unharmed();
}

#[test]
fn node_without_a_document_serves_plain_time_until_it_is_welcomed() {
    // Nobody listens there yet.
    let listener = closed_port();
    let address = listener.local_addr().unwrap();
    let mut fleet = Fleet::new(&[address], ", rotate = \"1h\"");
    (0..NAMES.len()).for_each(|index| fleet.start(index));
    let output = fleet.nodes[0].query(&["--timeout", "1"]);
    assert_eq!(output.status.code(), Some(1), "b has no keys yet: {}", text(&output));
    let output = fleet.nodes[1].query(&[]);
    refused(&output, 69, &["the server refused: internal server error"]);
    assert_eq!(fleet.nodes[1].server().outcome("nts_nak_unknown_key"), 0.0, "the client is right");
    let port = fleet.nodes[1].port;
    let plain = authentick(["query", &format!("127.0.0.1:{port}"), "--auth", "plain"]);
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain));
    drop(listener);
    let _cache = CacheServer::start(TcpListener::bind(address).unwrap(), Behaviour::Honest);
    for node in &mut fleet.nodes {
        wait_for("a document", || (node.version() > 0.0).then_some(()));
        wait_for("an answer", || (node.query(&[]).status.code() == Some(0)).then_some(()));
    }
    fleet.is_unharmed();
}

#[test]
fn killed_nodes_start_with_what_they_have_and_memcached_is_not_there() {
    let (caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    fleet.rotate(1);
    let version = fleet.nodes[1].version();
    drop(caches);
    fleet.kill(1);
    fleet.start(1);
    assert!(fleet.nodes[1].version() >= version);
    let client = fleet.nodes[0].client(5);
    has_lost_nothing(client, 5);
    // The writer too, and it rotates no more often for that.
    fleet.kill(0);
    fleet.start(0);
    fleet.stands_still();
    let client = fleet.nodes[2].client(5);
    has_lost_nothing(client, 5);
    fleet.is_unharmed();
}

#[test]
fn rotation_waits_for_a_member_that_is_away_and_names_it() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    fleet.kill(2);
    fleet.waits_for("c");
    fleet.stands_still();
    assert_eq!(fleet.writer().metric("fleet_member_acknowledged{kind=\"cookie-keys\",member=\"c\"}"), 0.0);
    fleet.start(2);
    let back = Instant::now();
    fleet.rotate(1);
    eprintln!("rotated {:?} after the member was back", back.elapsed());
    fleet.is_unharmed();
}

/// Whether patience with this member is over, by the line in the log; how many it answered stands there if it has said
/// so.
fn is_left_behind(line: &str, name: &str) -> bool {
    let (names, _) = line.split_once(" did not acknowledge the keys, and will refuse clients").unwrap();
    names.split(", ").any(|one| one.split(' ').next() == Some(name))
}

#[test]
fn patience_leaves_a_member_behind_and_says_so() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::new(&addresses, OFTEN);
    fleet.more = "patience = \"4s\"".to_owned();
    (0..NAMES.len()).for_each(|index| fleet.start(index));
    wait_for("a document", || (fleet.nodes[2].version() > 0.0).then_some(()));
    fleet.kill(2);
    let line = fleet.writer().server().process.wait_for_line("patience is over: ");
    assert!(is_left_behind(&line, "c"), "{line}");
    fleet.rotate(1);
    // It comes back, and has what the others have.
    fleet.start(2);
    fleet.rotate(1);
    fleet.is_unharmed();
}

#[test]
fn server_that_lies_hides_nothing_that_another_one_says() {
    let (caches, addresses) = caches::<2>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    let strange = format!("fleet_server_strange_values_total{{server=\"{}\"}}", addresses[0]);
    let reads = format!("fleet_server_reads_total{{server=\"{}\"}}", addresses[0]);
    let failures = format!("fleet_server_failures_total{{server=\"{}\"}}", addresses[0]);
    let client = fleet.nodes[0].client(150);
    for (behaviour, counter) in [
        (Behaviour::Replay, None),
        (Behaviour::Swap, Some(&strange)),
        (Behaviour::Flip, Some(&strange)),
        (Behaviour::Length(300_000), Some(&failures)),
        (Behaviour::Endless, Some(&failures)),
        (Behaviour::Drip(Duration::from_secs(1)), Some(&failures)),
        (Behaviour::Silent, Some(&failures)),
        (Behaviour::Forget, None),
        (Behaviour::Full, None),
    ] {
        let before = counter.map(|counter| fleet.writer().metric(counter));
        caches[0].behave(behaviour);
        fleet.rotate(1);
        if let (Some(counter), Some(before)) = (counter, before) {
            wait_for(&format!("{behaviour:?} to be counted"), || {
                (fleet.writer().metric(counter) > before).then_some(())
            });
        }
        fleet.is_unharmed();
        // What is as strange as before is not counted again, so it is read in between.
        if behaviour == Behaviour::Swap {
            caches[0].behave(Behaviour::Honest);
            let read = fleet.writer().metric(&reads);
            wait_for("it to be read", || (fleet.writer().metric(&reads) > read + 1.0).then_some(()));
        }
    }
    has_lost_nothing(client, 150);
    // In the end it tells the truth, and alone.
    caches[0].behave(Behaviour::Honest);
    caches[1].behave(Behaviour::Refuse);
    fleet.rotate(1);
    fleet.is_unharmed();
}

#[test]
fn second_writer_writes_nothing_and_says_so() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    fleet.kill(1);
    let config = fleet.config(1, true);
    fleet.nodes[1].server = Some(start(&config));
    let said =
        "a writes the keys of this fleet, not this node, though its configuration says writer = true: ";
    fleet.nodes[1].server().process.wait_for_line(said);
    fleet.rotate(2);
    assert_eq!(fleet.nodes[1].metric("fleet_writer{kind=\"cookie-keys\"}"), 0.0);
    assert_eq!(fleet.nodes[1].metric("nts_cookie_key_rotations_total"), 0.0);
    let output = authentick(["keys", "generate", "--config", config.to_str().unwrap()]);
    refused(&output, 78, &["holds keys already"]);
    fleet.is_unharmed();
}

#[test]
fn keys_that_the_disk_refuses_open_from_memory_and_the_writer_waits() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    // A directory in the way of the new file: writing fails for root too.
    let way = fleet.nodes[1].lab.state().join("fleet-cookie-keys.new");
    let made = || fs::create_dir(&way).is_ok();
    wait_for("a moment in which nothing is written", || made().then_some(()));
    fleet.nodes[1].server().process.wait_for_line("new keys open from memory until it is written");
    fleet.waits_for("b");
    assert_eq!(fleet.nodes[1].metric("fleet_disk_failures_total{kind=\"cookie-keys\"}"), 1.0);
    // The keys of `a` are newer than what is on the disk of `b`, to which it sends its clients.
    let client = fleet.nodes[0].client(5);
    has_lost_nothing(client, 5);
    fs::remove_dir(&way).unwrap();
    fleet.nodes[1].server().process.wait_for_line("is written again");
    fleet.rotate(1);
    fleet.is_unharmed();
}

#[test]
fn seal_key_is_replaced_while_keys_rotate() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::running(&addresses, OFTEN);
    for _ in 0..3 {
        let file = fleet.nodes[0].lab.path().join("seal");
        let output = authentick(["keys", "seal", "rotate", "--file", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        for node in &mut fleet.nodes {
            let other = node.lab.path().join("seal");
            if other != file {
                fs::copy(&file, &other).unwrap();
            }
            node.server().process.signal("-HUP");
            node.server().process.wait_for_line("seal keys read again");
            // The one has read it, and the next has not.
            std::thread::sleep(Duration::from_millis(1200));
        }
        fleet.rotate(1);
    }
    let strange = format!("fleet_server_strange_values_total{{server=\"{}\"}}", addresses[0]);
    for node in &mut fleet.nodes {
        assert_eq!(node.metric(&strange), 0.0);
    }
    fleet.is_unharmed();
}

#[test]
fn node_with_another_seal_key_hears_nobody_and_is_heard_by_nobody() {
    let (_caches, addresses) = caches::<1>();
    let mut fleet = Fleet::new(&addresses, OFTEN);
    fleet.nodes[1].seal("a5");
    (0..NAMES.len()).for_each(|index| fleet.start(index));
    fleet.waits_for("b");
    wait_for("a document", || (fleet.nodes[2].version() > 0.0).then_some(()));
    let said = "/document is ignored: no seal key of ours has sealed it";
    fleet.nodes[1].server().process.wait_for_line(said);
    assert_eq!(fleet.nodes[1].version(), 0.0);
    // Its operator puts the right one there.
    fleet.nodes[1].seal("5a");
    fleet.nodes[1].server().process.signal("-HUP");
    wait_for("a document", || (fleet.nodes[1].version() > 0.0).then_some(()));
    fleet.rotate(1);
    fleet.is_unharmed();
}
