//! Names in the configuration of a server: looked up while it runs, by a process of its own.

use std::fmt::Write as _;
use std::fs::{read_dir, read_link, read_to_string, write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use authentick_lab::caches::{Behaviour, CacheServer};
use authentick_lab::certificates::write_private;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::process::{Process, wait_for, wait_within};
use authentick_lab::skip::skip;
use authentick_rig::Error;
use authentick_rig::resolver::{PORT, Resolver};

use crate::lab::{Lab, is_root, program, start};

const NAME: &str = "time.rig.test";
const UPSTREAM_PORT: u16 = 11_123;
/// A minute without a word, where the kernel calls the clock synchronised, and what follows it.
const MOVE_PATIENCE: Duration = Duration::from_secs(150);

/// A host with a resolver of its own, or none.
struct Site {
    lab: Lab,
    folder: tempfile::TempDir,
    hosts: Hosts,
    resolver: Option<Resolver>,
}

impl Site {
    fn new() -> Option<Self> {
        let hosts = Hosts::new(1).map_err(|skip| skip.tell()).ok()?;
        Some(Site { lab: Lab::new(), folder: tempfile::tempdir().unwrap(), hosts, resolver: None })
    }

    /// From here on the name is at this address.
    fn resolve(&mut self, address: [u8; 4]) {
        self.resolver = None;
        let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, PORT)).unwrap();
        let socket = self.hosts.within(Host::Server, bind);
        self.resolver = Some(Resolver::start(socket, NAME, address.into(), self.folder.path()).unwrap());
    }

    /// Starts a server whose resolver is this site's; `None` where that cannot be.
    fn start(&mut self, config: &Path) -> Option<Process> {
        let is_silent = self.resolver.is_none();
        if is_silent {
            self.resolve([127, 0, 0, 1]);
        }
        let mut command = self.hosts.on(Host::Server, program().path());
        command.arg("serve").arg("--config").arg(config);
        let resolver = self.resolver.as_ref().unwrap();
        let command = match resolver.asked_by(&command) {
            Ok(command) => command,
            Err(error @ Error::Unavailable { .. }) => {
                skip(&error.to_string());
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        if is_silent {
            self.resolver = None;
            write(self.folder.path().join("resolv.conf"), "nameserver 127.0.0.1\nsearch .\n").unwrap();
        }
        Some(Process::start(&mut { command }))
    }

    /// A server that the name may lead to.
    fn upstream(&self, address: [u8; 4]) -> Process {
        let config = self.folder.path().join(format!("upstream-{}.toml", address[3]));
        let listen = SocketAddr::from((address, UPSTREAM_PORT));
        let text = format!(
            "[server]\nlisten = [\"{listen}\"]\nworkers = 1\nuser = \"root\"\n\
             reference = {{ stratum = 1, id = \"UP\" }}\n"
        );
        write(&config, text).unwrap();
        let mut command = self.hosts.on(Host::Server, program().path());
        let mut upstream = Process::start(command.arg("serve").arg("--config").arg(&config));
        upstream.wait_for_line("serving time on ");
        upstream
    }

    fn config(&self) -> std::path::PathBuf {
        self.lab.config(&format!("reference = {{ upstream = \"{NAME}:{UPSTREAM_PORT}\" }}"), "")
    }
}

/// The leap indicator that is served.
fn leap(site: &Site, address: SocketAddr) -> u8 {
    site.hosts.within(Host::Server, || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut request = [0; 48];
        (request[0], request[47]) = (0x23, 1);
        socket.send_to(&request, address).unwrap();
        socket.recv(&mut request).unwrap();
        request[0] >> 6
    })
}

fn wait_for_log(server: &Process, part: &str) {
    wait_within(MOVE_PATIENCE, part, || server.log().contains(part).then_some(()));
}

#[test]
fn upstream_whose_dns_comes_late_is_followed() {
    let Some(mut site) = Site::new() else { return };
    let _upstream = site.upstream([127, 0, 0, 1]);
    let config = site.config();
    let Some(mut server) = site.start(&config) else { return };
    let address = server.wait_for_line("serving time on ").parse().unwrap();
    wait_for_log(&server, "server.reference.upstream = \"time.rig.test:11123\": name lookup failed: ");
    assert_eq!(leap(&site, address), 3, "it serves, and vouches for nothing");
    site.resolve([127, 0, 0, 1]);
    wait_within(Duration::from_secs(30), "synchronised time", || (leap(&site, address) == 0).then_some(()));
    wait_for_log(&server, "resolved to 127.0.0.1:11123");
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
}

#[test]
fn upstream_that_moves_is_found_and_one_that_answers_is_kept() {
    let Some(mut site) = Site::new() else { return };
    let first = site.upstream([127, 0, 0, 1]);
    site.resolve([127, 0, 0, 1]);
    let config = site.config();
    let Some(mut server) = site.start(&config) else { return };
    let address = server.wait_for_line("serving time on ").parse().unwrap();
    wait_for("synchronised time", || (leap(&site, address) == 0).then_some(()));
    site.resolve([127, 0, 0, 2]);
    server.signal("-HUP");
    wait_for_log(&server, "resolved to 127.0.0.1:11123, 127.0.0.2:11123");
    assert_eq!(leap(&site, address), 0, "the first one answers");
    let _second = site.upstream([127, 0, 0, 2]);
    drop(first);
    wait_for_log(&server, "resolved to 127.0.0.2:11123");
    wait_within(MOVE_PATIENCE, "the second's time", || (leap(&site, address) == 0).then_some(()));
}

#[test]
fn memcached_is_reached_by_name() {
    let Some(mut site) = Site::new() else { return };
    let listener = site.hosts.within(Host::Server, || TcpListener::bind("127.0.0.2:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let cache = CacheServer::start(listener, Behaviour::Honest);
    let seal = site.folder.path().join("seal");
    write_private(&seal, &format!("authentick-fleet-seal 1\nkey 0 {}\n", "5a".repeat(32)));
    let config = site.lab.config("", "cookie-keys = { store = \"memcached\" }");
    let mut text = read_to_string(&config).unwrap();
    write!(
        text,
        "\n[fleet]\nid = \"f\"\nnode = \"a\"\nmembers = [\"a\"]\nservers = [\"{NAME}:{port}\"]\nwriter = true\n\
         seal-key = {seal:?}\n"
    )
    .unwrap();
    write(&config, text).unwrap();
    let Some(mut server) = site.start(&config) else { return };
    server.wait_for_line("serving time on ");
    wait_for_log(&server, &format!("fleet.servers = \"{NAME}:{port}\": name lookup failed: "));
    assert_eq!(cache.counts().fetches, 0);
    site.resolve([127, 0, 0, 2]);
    wait_within(Duration::from_secs(30), "a look into memcached", || {
        (cache.counts().fetches > 0).then_some(())
    });
}

/// The processes that look names up for this one, and for those the same.
fn children(process: u32) -> Vec<u32> {
    let text = read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

#[test]
fn name_that_never_resolves_leaves_a_server_that_serves() {
    let lab = Lab::new();
    let mut server = start(&lab.config("reference = { upstream = \"no-such-name.invalid:123\" }", ""));
    wait_for_log(
        &server.process,
        "server.reference.upstream = \"no-such-name.invalid:123\": name lookup failed: ",
    );
    assert!(server.process.log().contains("check the name"), "the remedy: {}", server.process.log());
    assert_eq!(server.metric("ntp_system_leap_indicator"), 3.0);
    server.process.signal("-HUP");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(server.metric("ntp_system_leap_indicator"), 3.0);
    server.process.signal("-TERM");
    assert_eq!(server.process.wait(), 0);
}

#[test]
fn helper_has_no_files_and_ends_with_a_killed_server() {
    if !is_root("to look at the files of a process that hides them") {
        return;
    }
    let lab = Lab::new();
    let mut server = start(&lab.config("reference = { upstream = \"no-such-name.invalid:123\" }", ""));
    let helpers = children(server.process.id());
    let [helper] = helpers[..] else { panic!("{helpers:?}") };
    let files = read_dir(format!("/proc/{helper}/fd")).unwrap();
    let mut files: Vec<String> =
        files.map(|file| read_link(file.unwrap().path()).unwrap().display().to_string()).collect();
    files.sort();
    assert_eq!(files[..3], ["/dev/null"; 3]);
    assert!(files.len() == 4 && files[3].starts_with("socket:"), "{files:?}");
    // A service manager stops all processes of a service at once.
    assert!(Command::new("kill").args(["-TERM", &helper.to_string()]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(children(server.process.id()), [helper]);
    server.process.signal("-KILL");
    server.process.wait();
    wait_for("the end of the helper", || {
        let state = read_to_string(format!("/proc/{helper}/stat")).unwrap_or_default();
        (state.is_empty() || state.contains(") Z ")).then_some(())
    });
}

#[test]
fn server_without_names_has_no_helper() {
    let lab = Lab::new();
    let server = start(&lab.config("reference = { upstream = \"127.0.0.1:11123\" }", ""));
    assert!(children(server.process.id()).is_empty());
}
