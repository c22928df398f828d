//! Servers that share their cookie keys through memcached.
//!
//! - `hosts`: what may befall a fleet, on hosts of its own, with real memcached and under load.
//! - `commands`, `doubles`, `settings`, `mistakes`, `antp`: three nodes on loopback, which need no rights.

mod antp;
mod commands;
mod doubles;
mod hosts;
mod mistakes;
mod options;
mod seals;
mod settings;
mod silence;
mod strangers;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use authentick_lab::caches::{Behaviour, CacheServer};
use authentick_lab::certificates::write_private;
use serde_json::Value;

use crate::lab::{Lab, Server, authentick, free_port, program, start, text, wait_for};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// How often keys are due to rotate. With what it takes to tell all of it, that is every three seconds or so.
const OFTEN: &str = ", rotate = \"1s\"";

/// How often clients ask.
const INTERVAL: Duration = Duration::from_millis(200);

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

    /// It has refused no client's cookie, done nothing that it may not, and seen no document that it should not.
    #[track_caller]
    fn is_unharmed(&mut self) {
        assert_eq!(self.server().outcome("nts_nak_unknown_key"), 0.0);
        assert_eq!(self.server().outcome("nts_nak_cookie"), 0.0);
        assert_eq!(self.metric("fleet_refused_documents_total{kind=\"cookie-keys\"}"), 0.0);
        for thread in ["fleet", "supervisor"] {
            let name = format!("ntp_server_refused_system_calls_total{{thread={thread:?}}}");
            assert_eq!(self.metric(&name), 0.0, "{name}");
        }
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
        self.config_on(&self.nodes[index], index, is_writer)
    }

    /// The configuration of a member on a host.
    fn config_on(&self, node: &Node, index: usize, is_writer: bool) -> PathBuf {
        let next = self.nodes[(index + 1) % NAMES.len()].port;
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

    /// Kills a server, which has done no harm: what it has counted is gone then.
    #[track_caller]
    fn kill(&mut self, index: usize) {
        self.nodes[index].is_unharmed();
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

    /// Waits until the writer says that a rotation waits for this member, and waits for it alone.
    fn waits_for(&mut self, name: &str) {
        wait_for(&format!("a rotation to wait for {name}"), || {
            let log = self.writer().server().process.log();
            let (_, names) = log.rsplit_once("due to rotate, and wait: not acknowledged by ")?;
            let (names, _) = names.split_once(';')?;
            let mut is_silent = |member: &&str| {
                let metric = format!("fleet_member_acknowledged{{kind=\"cookie-keys\",member={member:?}}}");
                self.writer().metric(&metric) == 0.0
            };
            let silent: Vec<&str> = NAMES[1..].iter().copied().filter(&mut is_silent).collect();
            (names.split(", ").any(|one| one == name) && silent == [name]).then_some(())
        });
    }

    /// Nobody who runs has done any harm.
    #[track_caller]
    fn is_unharmed(&mut self) {
        self.nodes.iter_mut().filter(|node| node.server.is_some()).for_each(Node::is_unharmed);
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

/// A client of which nothing was lost but what it sent while a node was `away`, and what was under way then.
#[track_caller]
fn has_lost_little(client: Child, count: usize, away: Duration) {
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [answered, lost] = ["exchanges", "failures"].map(|name| result[name].as_array().map_or(0, Vec::len));
    let most = 1 + away.as_millis().div_ceil(INTERVAL.as_millis()) as usize;
    assert_eq!(answered + lost, count, "{}", text(&output));
    assert!(lost <= most, "{lost} of {count} were lost, in {away:?}: {}", text(&output));
}

fn caches<const N: usize>() -> ([CacheServer; N], [SocketAddr; N]) {
    let caches = [(); N].map(|()| CacheServer::on_loopback(Behaviour::Honest));
    let addresses = core::array::from_fn(|index| caches[index].address());
    (caches, addresses)
}

/// Whether patience with this member is over, by the line in the log; how many it answered stands there if it has said
/// so.
fn is_left_behind(line: &str, name: &str) -> bool {
    let (names, _) = line.split_once(" did not acknowledge the keys, and will refuse clients").unwrap();
    names.split(", ").any(|one| one.split(' ').next() == Some(name))
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
