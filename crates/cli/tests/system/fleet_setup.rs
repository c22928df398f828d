//! What an operator sets up for a fleet: its section of the configuration, and the file of seal keys.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::lab::{Lab, authentick, is_root, refused, text};
use crate::operator::as_nobody;

const SERVERS: &str = "servers = [\"127.0.0.1:11211\"]";

/// A lab with a file of seal keys, and a node that is to read it.
struct Node {
    lab: Lab,
    seal: PathBuf,
}

impl Node {
    fn new() -> Self {
        let lab = Lab::new();
        let node = Node { seal: lab.path().join("seal"), lab };
        node.done("generate", &[]);
        node
    }

    /// A configuration whose cookie keys are in `store`, with these lines in place of those of the same keys.
    fn config_with(&self, server: &str, store: &str, lines: &[&str]) -> PathBuf {
        let seal_key = format!("seal-key = {:?}", self.seal);
        let mut fleet =
            vec!["id = \"fleet\"", "node = \"a\"", "members = [\"a\", \"b\"]", SERVERS, &seal_key];
        let key = |line: &str| line.split(' ').next().unwrap().to_owned();
        fleet.retain(|line| lines.iter().all(|other| key(other) != key(line)));
        let fleet = [&fleet[..], lines].concat().join("\n");
        self.lab.config(server, &format!("cookie-keys = {{ store = {store:?} }}\n[fleet]\n{fleet}"))
    }

    fn config(&self) -> PathBuf {
        self.config_with("", "memcached", &[])
    }

    fn verb(&self, verb: &str, more: &[&str]) -> Output {
        authentick([&["keys", "seal", verb, "--file", self.seal.to_str().unwrap()], more].concat())
    }

    #[track_caller]
    fn done(&self, verb: &str, more: &[&str]) -> Output {
        let output = self.verb(verb, more);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        output
    }

    fn write(&self, text: &str, mode: u32) {
        fs::write(&self.seal, text).unwrap();
        fs::set_permissions(&self.seal, PermissionsExt::from_mode(mode)).unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.seal).unwrap()
    }
}

/// Neither `serve` nor `serve --check` takes it, and both say why.
#[track_caller]
fn is_refused(config: &Path, parts: &[&str]) {
    for arguments in [&["serve"][..], &["serve", "--check"]] {
        let output = authentick([arguments, &["--config", config.to_str().unwrap()]].concat());
        refused(&output, 78, parts);
    }
}

#[track_caller]
fn is_good(config: &Path) {
    let output = authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn mistakes_in_the_configuration_of_a_fleet_are_exit_78() {
    let node = Node::new();
    is_good(&node.config());
    for (store, lines, parts) in [
        ("redis", &[][..], &["nts.cookie-keys.store = \"redis\"", "unknown key store", "\"memcached\""][..]),
        ("file", &[], &["fleet: without effect", "store = \"memcached\"", "or remove [fleet]"]),
        ("memcached", &["servers = []"], &["fleet.servers", "no server", "name at least one memcached"]),
        (
            "memcached",
            &["servers = [\"memcached\"]"],
            &["fleet.servers", "the port is missing", "ADDRESS:PORT or NAME:PORT"],
        ),
        (
            "memcached",
            &["members = [\"a\", \"b\", \"a\"]"],
            &["fleet.members = \"a\"", "listed twice", "name each node once"],
        ),
        ("memcached", &["node = \"c\""], &["fleet.node = \"c\"", "not among fleet.members", "add it there"]),
        ("memcached", &["id = \"a b\""], &["fleet.id = \"a b\"", "no name", "letters, digits"]),
        ("memcached", &["seal-key = \"seal\""], &["fleet.seal-key = \"seal\"", "starts with a slash"]),
    ] {
        is_refused(&node.config_with("", store, lines), parts);
    }
    let config = node.config();
    let whole = fs::read_to_string(&config).unwrap();
    fs::write(&config, whole.replace(SERVERS, "")).unwrap();
    is_refused(&config, &["authentick.toml", "fleet.servers", "no server", "name at least one memcached"]);
    let (from, to) = (whole.find("[fleet]").unwrap(), whole.find("[metrics]").unwrap());
    fs::write(&config, format!("{}{}", &whole[..from], &whole[to..])).unwrap();
    is_refused(&config, &["nts.cookie-keys.store = \"memcached\"", "no fleet", "add a table [fleet]"]);
}

#[test]
fn seal_file_that_is_missing_damaged_or_open_is_exit_78() {
    let node = Node::new();
    let (config, good) = (node.config(), node.text());
    let path = node.seal.to_str().unwrap();
    for mode in [0o600, 0o400, 0o640, 0o440] {
        node.write(&good, mode);
        is_good(&config);
    }
    // Open to others, and writable by the group.
    for mode in [0o644, 0o604, 0o660, 0o620, 0o602] {
        node.write(&good, mode);
        let mode = format!("mode {mode:o}");
        is_refused(&config, &["fleet.seal-key", path, &mode, "run: chmod 600", "keys seal rotate"]);
    }
    let twice = format!("{good}{}", good.lines().nth(1).unwrap());
    let long = format!("{good}{}", "key 1 00\n".repeat(1000));
    for (text, parts) in [
        (
            &good[..good.len() - 2],
            &["line 2: its key is not 64", "copy it from a node that has it whole"][..],
        ),
        ("authentick-fleet-seal 1\n", &["line 2: there is no key", "copy it from a node"]),
        ("", &["line 1: the file does not begin with its kind", "keys seal generate"]),
        (&twice, &["line 3: its key stands above already", "copy it from a node"]),
        (&long, &["octets are too many", "name a file of seal keys"]),
    ] {
        node.write(text, 0o600);
        is_refused(&config, &[&["fleet.seal-key", path][..], parts].concat());
        refused(&node.verb("rotate", &[]), 78, parts);
        assert_eq!(node.text(), text, "it stays as it was");
    }
    fs::remove_file(&node.seal).unwrap();
    is_refused(
        &config,
        &["fleet.seal-key", path, "No such file", "copy it from another node", "seal generate"],
    );
    fs::create_dir(&node.seal).unwrap();
    is_refused(&config, &["fleet.seal-key", path, "not a file", "name a file of seal keys"]);
}

#[test]
fn unreadable_seal_file_is_exit_77_and_one_that_sighup_cannot_read_is_told_of() {
    if !is_root("to start as a user who may not read the file") {
        return;
    }
    let node = Node::new();
    let path = node.lab.path();
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    chown(node.lab.key(), Some(65534), Some(65534)).unwrap();
    let output = as_nobody(path, &["serve", "--check", "--config", node.config().to_str().unwrap()]);
    refused(&output, 77, &["fleet.seal-key", "Permission denied", "let nobody read it"]);
    let config = node.config_with("user = \"nobody\"", "memcached", &[]);
    let output = authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("fleet.seal-key = "), "{}", text(&output));
    // What root makes for the server is the server's.
    fs::remove_file(&node.seal).unwrap();
    let output = authentick(["keys", "seal", "generate", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let metadata = fs::metadata(&node.seal).unwrap();
    assert_eq!((metadata.uid(), metadata.mode() & 0o7777), (65534, 0o600));
    let output = authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
    assert!(!text(&output).contains("fleet.seal-key"), "{}", text(&output));
}

#[test]
fn seal_key_is_replaced_in_three_steps_that_say_what_comes_next() {
    let node = Node::new();
    let config = node.config();
    let by_config = ["--config", config.to_str().unwrap()];
    let run = |verb: &str, more: &[&str]| {
        let output = authentick([&["keys", "seal", verb], &by_config[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        output
    };
    let keys = |output: &Output| {
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        let shown = shown.as_array().unwrap().iter();
        let key = |key: &Value| {
            assert!(key["age_s"].as_u64().unwrap() < 3600 && key["made"].as_str().unwrap().ends_with('Z'));
            (key["fingerprint"].as_str().unwrap().to_owned(), key["seals"].as_bool().unwrap())
        };
        shown.map(key).collect::<Vec<_>>()
    };
    let mut before = keys(&run("list", &["--json"]));
    let old = before[0].0.clone();
    assert_eq!(before, [(old.clone(), true)]);
    let mut secrets = Vec::new();
    for (step, next) in [
        ("step 1 of 3: a new key opens, and does not seal yet", "then run this again"),
        ("step 2 of 3: the new key seals", "then run this again"),
        ("step 3 of 3: the old key is removed", "each read it (SIGHUP)"),
    ] {
        let output = run("rotate", &["--json"]);
        let said = text(&output);
        assert!(said.contains(step) && said.contains("copy the file to all nodes"), "{said}");
        assert!(said.contains(next), "{said}");
        let after = keys(&output);
        assert_eq!(after, keys(&run("list", &["--json"])));
        let text = node.text();
        secrets.extend(text.lines().skip(1).map(|line| line.rsplit(' ').next().unwrap().to_owned()));
        assert!(secrets.iter().all(|secret| secret.len() == 64 && !said.contains(&secret[..8])), "{said}");
        assert_eq!(fs::metadata(&node.seal).unwrap().mode() & 0o7777, 0o600);
        is_good(&config);
        // What seals afterwards opened before.
        assert!(after[0].1 && after[1..].iter().all(|(_, seals)| !seals), "{after:?}");
        assert!(before.iter().any(|(key, _)| *key == after[0].0), "{before:?} {after:?}");
        before = after;
    }
    assert!(before.len() == 1 && before[0].0 != old, "{before:?}");
    let listed = text(&run("list", &[]));
    assert!(listed.contains(&format!("{}  seals  made ", before[0].0)), "{listed}");
    refused(&node.verb("generate", &[]), 78, &["it exists already", "keys seal rotate"]);
    let config = node.lab.config("", "");
    let output = authentick(["keys", "seal", "list", "--config", config.to_str().unwrap()]);
    refused(&output, 78, &["there is no [fleet] in it", "--file"]);
}
