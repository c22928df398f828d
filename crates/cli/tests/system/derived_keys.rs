//! Cookie keys that hosts derive alike: servers that share no service, each with a copy of one file.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::lab::{Lab, Server, authentick, free_port, program, refused, start, text, wait_for};

/// Two hosts: who exchanges keys with one is sent to the other for time.
struct Sites {
    labs: [Lab; 2],
    configs: [PathBuf; 2],
}

impl Sites {
    /// Hosts of which the first has made keys, and the second a copy of them.
    fn new(keys: &str) -> Self {
        let labs = [Lab::new(), Lab::new()];
        let ports = [free_port(), free_port()];
        let configs = [0, 1].map(|index: usize| {
            let listen = format!("listen = [\"127.0.0.1:{}\"]", ports[index]);
            let nts = format!(
                "cookie-keys = {{ next = \"derived\", {keys} }}\nadvertise = {{ port = {} }}",
                ports[1 - index]
            );
            labs[index].config(&listen, &nts)
        });
        let sites = Sites { labs, configs };
        sites.keys("generate", 0);
        fs::DirBuilder::new().mode(0o700).create(sites.labs[1].state()).unwrap();
        sites.copy();
        sites
    }

    fn file(&self, index: usize) -> PathBuf {
        self.labs[index].state().join("cookie-keys")
    }

    /// Gives the first one's file to the second.
    fn copy(&self) {
        let new = self.labs[1].path().join("copy");
        fs::copy(self.file(0), &new).unwrap();
        fs::set_permissions(&new, PermissionsExt::from_mode(0o600)).unwrap();
        fs::rename(new, self.file(1)).unwrap();
    }

    fn start(&self, index: usize) -> Server {
        start(&self.configs[index])
    }

    /// Runs a command on the first host's keys.
    #[track_caller]
    fn keys(&self, verb: &str, code: i32) -> String {
        let output = authentick(["keys", verb, "--config", self.configs[0].to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        text(&output)
    }

    /// A client that exchanges keys with one of them, and asks the other for time so often.
    fn client(&self, server: &Server, index: usize, count: &str) -> Child {
        let (ca, host, port) =
            (self.labs[index].ca(), server.ke.ip().to_string(), server.ke.port().to_string());
        let arguments = ["query", &host, "--ke-port", &port, "--count", count, "--interval", "0.2"];
        let mut command = Command::new(program().path());
        command
            .args(arguments)
            .arg("--ca")
            .arg(ca)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Each host's cookies open at the other.
    #[track_caller]
    fn try_both(&self, servers: [&Server; 2]) {
        let clients = [0, 1].map(|index| self.client(servers[index], index, "3"));
        clients.into_iter().for_each(succeeds);
    }
}

#[track_caller]
fn succeeds(client: Child) {
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// The first word after `name` in a file of keys.
fn word(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
    line.split(' ').next().unwrap().to_owned()
}

#[test]
fn cookies_of_one_host_open_at_the_other_over_rotations_and_a_restart() {
    let sites = Sites::new("rotate = \"3s\", keep = 60");
    let first = read(&sites.file(0));
    assert_eq!(first, read(&sites.file(1)));
    let (one, other) = (sites.start(0), sites.start(1));
    // One with the cookies of a single exchange, all the time; and others.
    let stays = sites.client(&one, 0, "70");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        sites.try_both([&one, &other]);
    }
    drop(one);
    // It is away for more than one rotation, and has made them when it is back.
    std::thread::sleep(Duration::from_secs(4));
    let one = sites.start(0);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        sites.try_both([&one, &other]);
    }
    succeeds(stays);
    assert!(other.metric("nts_cookie_key_rotations_total") >= 4.0);
    for server in [&one, &other] {
        for outcome in ["nts_nak_unknown_key", "nts_nak_cookie", "nts_key_ahead"] {
            assert_eq!(server.outcome(outcome), 0.0, "{outcome}");
        }
        assert_eq!(server.metric("nts_cookie_key_rotation_failures_total"), 0.0);
    }
    let last = wait_for("equal files", || {
        let files = [0, 1].map(|index| read(&sites.file(index)));
        (files[0] == files[1]).then(|| files[0].clone())
    });
    let rotated = |text: &str| word(text, "rotated").parse::<u64>().unwrap();
    assert_eq!((rotated(&last) - rotated(&first)) % 3, 0, "the phase is the file's");
    let count = ((rotated(&last) - rotated(&first)) / 3) as u32;
    let id = |text: &str| u32::from_str_radix(&word(text, "current"), 16).unwrap();
    assert_eq!(id(&last), id(&first).wrapping_add(count));
}

#[test]
fn refreshed_keys_are_brought_to_all_hosts_and_no_client_sees_it() {
    let sites = Sites::new("rotate = \"1h\"");
    let (mut one, mut other) = (sites.start(0), sites.start(1));
    let before = read(&sites.file(0));
    let stays = sites.client(&one, 0, "25");
    let said = sites.keys("refresh", 0);
    for part in ["copy", sites.file(0).to_str().unwrap(), "SIGHUP", "before the next rotation, at 20"] {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
    let after = read(&sites.file(0));
    assert_eq!(word(&after, "current"), word(&before, "current"));
    assert_ne!(word(&after, "future"), word(&before, "future"));
    sites.copy();
    for server in [&mut one, &mut other] {
        server.process.signal("-HUP");
        server.process.wait_for_line("cookie keys read again");
    }
    sites.try_both([&one, &other]);
    succeeds(stays);
    assert_eq!(one.outcome("nts_nak_unknown_key") + other.outcome("nts_nak_unknown_key"), 0.0);
}

#[test]
fn what_would_part_hosts_with_derived_keys_is_refused_with_the_remedy() {
    let sites = Sites::new("rotate = \"1h\"");
    let before = read(&sites.file(0));
    let said = sites.keys("rotate", 78);
    assert!(said.contains("its keys are derived") && said.contains("keys refresh"), "{said}");
    assert_eq!(read(&sites.file(0)), before);
    // A host that has not got the file makes none of its own.
    fs::remove_file(sites.file(1)).unwrap();
    let config = sites.configs[1].to_str().unwrap();
    for arguments in [&["serve"][..], &["serve", "--check"]] {
        let output = authentick([arguments, &["--config", config]].concat());
        refused(
            &output,
            78,
            &[sites.file(1).to_str().unwrap(), "does not exist", "copy it from another host"],
        );
    }
    assert!(!sites.file(1).exists());
    // Those that are drawn have nothing to refresh, and those that others share rotate by a service of their own.
    let lab = Lab::new();
    let drawn = lab.config("", "");
    assert_eq!(authentick(["keys", "generate", "--config", drawn.to_str().unwrap()]).status.code(), Some(0));
    let output = authentick(["keys", "refresh", "--config", drawn.to_str().unwrap()]);
    refused(&output, 78, &["are drawn one by one", "keys rotate"]);
    for keys in ["store = \"memcached\"", "store = \"follow\", file = \"/keys\""] {
        let config = lab.config("", &format!("cookie-keys = {{ {keys}, next = \"derived\" }}"));
        let output = authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
        refused(&output, 78, &["nts.cookie-keys.next", "\"derived\"", "leave it out"]);
    }
}
