//! A fleet of four hosts with networks of their own, and its memcached on a fifth, where clients are, too.
//!
//! Each scenario runs under a load of `keys drill`, from before it begins until after it has ended: cookies of all go
//! to all. Nobody is refused, and nothing is lost but what is sent to a host whose server was killed.
//!
//! - `clients`: rotation as chrony, `query` and `load nts` see it, half of the nodes cut off, and `patience`.
//! - `caches`: memcached killed, full, and started anew; nodes started without it.
//! - `by_hand`: the first start without memcached, `rotate --now`, and a memcached that is empty.
//! - `writers`: two by mistake, and a take-over; `lies`: a server that tells them; `files`: disk and seal keys.

mod by_hand;
mod caches;
mod clients;
mod files;
mod lies;
mod load;
mod writers;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use authentick_lab::certificates::write_private;
use authentick_lab::filter::{Action, Filter, Traffic, Way};
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::{Memcached, MemcachedServer, Memory};
use authentick_lab::skip::skip;
use serde_json::Value;

use crate::lab::{Lab, Server, program, text, wait_for};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const NTP: u16 = 4123;
const KE: u16 = 4460;

/// How often keys are due to rotate. Each rotation takes two of the values that a node may put into a server, which are
/// sixty before it has to save them up.
const PERIOD: Duration = Duration::from_secs(2);
const OFTEN: &str = "2s";
/// Too late for these tests: keys rotate by hand alone.
const SELDOM: &str = "1h";

/// A node, whose server runs or not.
struct Node {
    lab: Lab,
    server: Option<Server>,
    killed: Option<Instant>,
    /// How long its server was away, all in all.
    outage: Duration,
}

/// Four nodes, `a` being their writer; each sends its clients to the next one for time.
struct Fleet<'h> {
    hosts: &'h Hosts,
    servers: Vec<SocketAddr>,
    rotate: &'static str,
    /// How many periods keys that have sealed are kept.
    keep: u32,
    /// What `[fleet]` says besides what it has to.
    more: String,
    nodes: Vec<Node>,
}

impl<'h> Fleet<'h> {
    /// A fleet that has not started; its writer has made the first keys.
    fn new(hosts: &'h Hosts, servers: &[SocketAddr], rotate: &'static str) -> Self {
        let node = |_| Node { lab: Lab::new(), server: None, killed: None, outage: Duration::ZERO };
        let nodes: Vec<Node> = NAMES.into_iter().map(node).collect();
        let fleet = Fleet { hosts, servers: servers.to_vec(), rotate, keep: 7, more: String::new(), nodes };
        (0..NAMES.len()).for_each(|index| fleet.seal(index, "5a"));
        let _ = fleet.config(0, true);
        let output = fleet.on(0, &["keys", "generate"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        fleet
    }

    /// A fleet that runs, and whose nodes all have a document of the writer.
    fn running(hosts: &'h Hosts, servers: &[SocketAddr], rotate: &'static str) -> Self {
        let mut fleet = Fleet::new(hosts, servers, rotate);
        fleet.start_all();
        fleet
    }

    fn start_all(&mut self) {
        (0..NAMES.len()).for_each(|index| self.start(index));
        for index in 0..NAMES.len() {
            wait_for("a document", || (self.version(index) > 0.0).then_some(()));
        }
    }

    fn address(&self, index: usize, port: u16) -> String {
        format!("{}:{port}", self.hosts.address(Host::Client(index)))
    }

    /// Gives a node a seal key, of these digits.
    fn seal(&self, index: usize, digits: &str) {
        let text = format!("authentick-fleet-seal 1\nkey 0 {}\n", digits.repeat(32));
        write_private(&self.seal_file(index), &text);
    }

    fn seal_file(&self, index: usize) -> PathBuf {
        self.nodes[index].lab.path().join("seal")
    }

    fn config(&self, index: usize, is_writer: bool) -> PathBuf {
        let Fleet { rotate, keep, more, .. } = self;
        let servers: Vec<String> = self.servers.iter().map(SocketAddr::to_string).collect();
        let next = self.hosts.address(Host::Client((index + 1) % NAMES.len()));
        let nts = format!(
            "ke-listen = [{:?}]\nadvertise = {{ server = \"{next}\", port = {NTP} }}\n\
             cookie-keys = {{ store = \"memcached\", rotate = {rotate:?}, keep = {keep} }}\n\
             [fleet]\nid = \"fleet\"\nnode = {:?}\nmembers = {NAMES:?}\nservers = {servers:?}\n\
             seal-key = {:?}\nwriter = {is_writer}\n{more}",
            self.address(index, KE),
            NAMES[index],
            self.seal_file(index),
        );
        self.nodes[index].lab.config(&format!("listen = [{:?}]", self.address(index, NTP)), &nts)
    }

    fn start(&mut self, index: usize) {
        self.start_as(index, index == 0);
    }

    fn start_as(&mut self, index: usize, is_writer: bool) {
        let config = self.config(index, is_writer);
        let node = &mut self.nodes[index];
        node.server = Some(program().serve_on(self.hosts, Host::Client(index), &config));
        node.outage += node.killed.take().map_or(Duration::ZERO, |when| when.elapsed());
    }

    /// Kills a server, which has done no harm: what it has counted is gone then.
    #[track_caller]
    fn kill(&mut self, index: usize) {
        self.is_unharmed(index);
        let node = &mut self.nodes[index];
        node.killed = Some(Instant::now());
        let mut server = node.server.take().expect("it runs");
        server.process.signal("-KILL");
        server.process.wait();
    }

    fn server(&self, index: usize) -> &Server {
        self.nodes[index].server.as_ref().expect("it runs")
    }

    /// What a node's page of metrics says.
    fn page(&self, index: usize) -> String {
        let server = self.server(index);
        self.hosts.within(Host::Client(index), || server.get("/metrics"))
    }

    #[track_caller]
    fn metric(&self, index: usize, name: &str) -> f64 {
        value(&self.page(index), name)
    }

    /// What a node says of a server, such as `reads_total`.
    #[track_caller]
    fn of_server(&self, index: usize, what: &str, server: SocketAddr) -> f64 {
        self.metric(index, &format!("fleet_server_{what}{{server=\"{server}\"}}"))
    }

    fn version(&self, index: usize) -> f64 {
        self.metric(index, "fleet_document_version{kind=\"cookie-keys\"}")
    }

    /// Members that have not acknowledged what the writer `a` has.
    fn silent(&self) -> Vec<&'static str> {
        let page = self.page(0);
        let has_said = |name: &&str| {
            let metric = format!("fleet_member_acknowledged{{kind=\"cookie-keys\",member={name:?}}}");
            value(&page, &metric) == 1.0
        };
        NAMES[1..].iter().copied().filter(|name| !has_said(name)).collect()
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

    /// Waits until no rotation takes place in three periods, after what was on its way; which version that is.
    fn stops(&self) -> f64 {
        wait_for("rotations to stop", || {
            let version = self.version(0);
            std::thread::sleep(3 * PERIOD);
            (self.version(0) == version).then_some(version)
        })
    }

    /// Waits until a node has logged this; what follows it in the line.
    fn says(&mut self, index: usize, part: &str) -> String {
        self.nodes[index].server.as_mut().expect("it runs").process.wait_for_line(part)
    }

    /// The lines of a node's log with this part.
    fn lines(&self, index: usize, part: &str) -> Vec<String> {
        let log = self.server(index).process.log();
        log.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }

    /// A command on a node.
    fn on(&self, index: usize, arguments: &[&str]) -> Output {
        let config = self.nodes[index].lab.path().join("authentick.toml");
        let mut command = self.hosts.on(Host::Client(index), program().path());
        command.args(arguments).arg("--config").arg(config).output().unwrap()
    }

    /// A command on a node, which does what it should.
    #[track_caller]
    fn done(&self, index: usize, arguments: &[&str]) -> Value {
        let output = self.on(index, &[&["keys"], arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The authorities of all nodes.
    fn authorities(&self) -> PathBuf {
        let all: String =
            self.nodes.iter().map(|node| std::fs::read_to_string(node.lab.ca()).unwrap()).collect();
        let file = self.nodes[0].lab.path().join("authorities.pem");
        std::fs::write(&file, all).unwrap();
        file
    }

    /// Cuts a node off from memcached.
    fn cut_off(&self, index: usize) {
        let mut filter = Filter::new(self.hosts, Host::Client(index)).unwrap();
        for server in &self.servers {
            filter.add(Way::Out, Traffic::TcpTo(server.port()), Action::Drop);
        }
    }

    fn reconnect(&self, index: usize) {
        drop(Filter::new(self.hosts, Host::Client(index)).unwrap());
    }

    /// A node has refused no client's cookie, seen no document that it should not, and done nothing that it may not.
    #[track_caller]
    fn is_unharmed(&self, index: usize) {
        let page = self.page(index);
        let outcomes = ["nts_nak_unknown_key", "nts_nak_cookie"]
            .map(|name| format!("ntp_server_packets_total{{outcome={name:?}}}"));
        let calls = ["fleet", "supervisor"]
            .map(|thread| format!("ntp_server_refused_system_calls_total{{thread={thread:?}}}"));
        let refused = "fleet_refused_documents_total{kind=\"cookie-keys\"}".to_owned();
        for name in outcomes.into_iter().chain(calls).chain([refused]) {
            assert_eq!(value(&page, &name), 0.0, "{} {name}", NAMES[index]);
        }
    }
}

/// A metric of a page, by its name and labels as they are written.
#[track_caller]
fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
}

/// Tries something that has a time limit, up to three times: a busy machine is late now and then, a fault always.
#[track_caller]
fn in_time(what: &str, limit: Duration, mut work: impl FnMut() -> Duration) {
    let mut all = Vec::new();
    for _ in 0..3 {
        let taken = work();
        if taken <= limit {
            return eprintln!("{what} after {taken:?}");
        }
        all.push(taken);
    }
    panic!("{what} after {all:?}, and never within {limit:?}");
}

/// Debian's memcached where clients are, and the hosts; `None`, and said why, where something is missing.
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

/// Two memcached with room for everything, and where they are.
fn caches(hosts: &Hosts, memcached: &Memcached) -> ([MemcachedServer; 2], [SocketAddr; 2]) {
    let address = SocketAddr::new(hosts.address(Host::Server), 0);
    let caches = [(); 2].map(|()| memcached.start(address, Memory::megabytes(64)));
    let addresses = [0, 1].map(|index| caches[index].address());
    (caches, addresses)
}

/// Our program where clients are.
fn client(hosts: &Hosts) -> Command {
    hosts.on(Host::Server, program().path())
}
