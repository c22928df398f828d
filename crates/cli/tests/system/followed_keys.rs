//! Keys that are made elsewhere, those of cookies, of ANTP's state and symmetric ones: servers read them from a file
//! that something else replaces.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use authentick_lab::certificates::write_private;

use crate::lab::{Lab, Server, authentick, program, refused, start, text, wait_for};

/// Where keys are made, and a folder in which servers find them, as an orchestrator mounts a secret: through a link to
/// a folder, which is replaced as a whole.
struct Maker {
    state: PathBuf,
    mounted: PathBuf,
    /// How many secrets were mounted.
    count: usize,
}

impl Maker {
    fn new(lab: &Lab) -> Self {
        let maker = Maker { state: lab.path().join("maker"), mounted: lab.path().join("mounted"), count: 0 };
        fs::create_dir(&maker.mounted).unwrap();
        symlink("data/cookie-keys", maker.mounted.join("cookie-keys")).unwrap();
        maker
    }

    fn file(&self) -> PathBuf {
        self.mounted.join("cookie-keys")
    }

    /// What a server is configured with.
    fn settings(&self) -> String {
        format!("cookie-keys = {{ store = \"follow\", file = {:?} }}", self.file())
    }

    fn keys(&self, verb: &str) {
        let output = authentick(["keys", verb, "--state-directory", self.state.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }

    /// The keys as they are now.
    fn text(&self) -> String {
        fs::read_to_string(self.state.join("cookie-keys")).unwrap()
    }

    /// Puts a text where servers look.
    fn mount(&mut self, text: &str) {
        self.count += 1;
        let name = format!("..{}", self.count);
        let folder = self.mounted.join(&name);
        fs::create_dir(&folder).unwrap();
        write(&folder.join("cookie-keys"), text);
        symlink(&name, self.mounted.join("next")).unwrap();
        fs::rename(self.mounted.join("next"), self.mounted.join("data")).unwrap();
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o440)).unwrap();
}

/// The identifier of the key that seals.
fn current(text: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix("current ")).unwrap();
    line.split(' ').next().unwrap().to_owned()
}

/// A client that asks again and again with the cookies of one key exchange.
fn client(lab: &Lab, server: &Server) -> Child {
    let (ca, host, port) = (lab.ca(), server.ke.ip().to_string(), server.ke.port().to_string());
    let arguments = ["query", &host, "--ke-port", &port, "--count", "40", "--interval", "0.2", "--json"];
    let mut command = Command::new(program().path());
    command.args(arguments).arg("--ca").arg(ca).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn rotation_elsewhere_reaches_every_server_and_costs_a_client_nothing() {
    let labs = [Lab::new(), Lab::new()];
    let mut maker = Maker::new(&labs[0]);
    maker.keys("generate");
    maker.mount(&maker.text());
    let mut servers = [0, 1].map(|index| start(&labs[index].config("", &maker.settings())));
    let clients = [0, 1].map(|index| client(&labs[index], &servers[index]));
    for _ in 0..3 {
        maker.keys("rotate");
        maker.mount(&maker.text());
        for server in &mut servers {
            server.process.wait_for_line(&format!("key {} is now current", current(&maker.text())));
        }
    }
    for client in clients {
        let output = client.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["exchanges"].as_array().unwrap().len(), 40);
    }
    for server in &servers {
        assert_eq!(server.metric("nts_ke_connections_accepted_total"), 1.0);
        assert_eq!(server.metric("nts_cookie_key_rotation_failures_total"), 0.0);
    }
}

#[test]
fn client_with_a_newer_key_than_a_server_has_waits_for_it_and_is_not_sent_away() {
    let labs = [Lab::new(), Lab::new()];
    let mut maker = Maker::new(&labs[0]);
    maker.keys("generate");
    maker.mount(&maker.text());
    let mut late = start(&labs[0].config("", &maker.settings()));
    // Two rotations later another server has the keys, and sends its clients to the late one.
    (0..2).for_each(|_| maker.keys("rotate"));
    let mut other = Maker::new(&labs[1]);
    other.mount(&maker.text());
    let to_late = format!("{}\nadvertise = {{ port = {} }}", other.settings(), late.ntp.port());
    let exchange = start(&labs[1].config("", &to_late));
    let ask = || exchange.query(&labs[1], &["--timeout", "0.3"]);
    let output = ask();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(late.outcome("nts_key_ahead") > 0.0);
    assert_eq!(late.outcome("nts_nak_unknown_key"), 0.0);
    maker.mount(&maker.text());
    late.process.wait_for_line(&format!("key {} is now current", current(&maker.text())));
    let output = ask();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn keys_that_would_lose_clients_are_refused_until_a_restart() {
    let lab = Lab::new();
    let mut maker = Maker::new(&lab);
    let config = lab.config("", &maker.settings());
    let file = maker.file();
    let path = file.to_str().unwrap();
    let refused_start = || {
        for arguments in [&["serve"][..], &["serve", "--check"]] {
            let output = authentick([arguments, &["--config", config.to_str().unwrap()]].concat());
            refused(&output, 78, &["nts.cookie-keys.file", path, "no such file", "put the file there"]);
        }
    };
    refused_start();
    maker.keys("generate");
    let first = maker.text();
    maker.mount(&first);
    maker.keys("rotate");
    let second = maker.text();
    maker.mount(&second);
    let mut server = start(&config);
    let failures = |server: &Server| server.metric("nts_cookie_key_rotation_failures_total");
    let serves = |server: &Server| {
        let output = server.query(&lab, &[]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    };
    // Last month's, those of another fleet, and another key under the same identifier.
    let digit = |at: usize| if second[at..].starts_with('0') { "1" } else { "0" };
    let at = second.find("current ").unwrap() + "current ".len() + "xxxxxxxx ".len();
    let at = at + second[at..].find(' ').unwrap() + 1;
    let changed = format!("{}{}{}", &second[..at], digit(at), &second[at + 1..]);
    let other = Lab::new();
    let stranger = Maker::new(&other);
    stranger.keys("generate");
    // Half of a file is counted, and nothing is lost by it.
    maker.mount(&second[..second.len() / 2]);
    server.process.wait_for_line(&format!("cookie keys not changed: {path}: "));
    wait_for("the metric", || (failures(&server) == 1.0).then_some(()));
    serves(&server);
    let clash = format!("key {} is another one", current(&second));
    let given =
        [(&first, "they are older"), (&stranger.text(), "they have no key in common"), (&changed, &clash)];
    for (number, (given, why)) in given.into_iter().enumerate() {
        maker.mount(given);
        let line = server.process.wait_for_line(&format!("cookie keys not changed: {path}: {why}"));
        assert!(line.contains("restart the server"), "{line}");
        wait_for("the metric", || (failures(&server) == number as f64 + 2.0).then_some(()));
        serves(&server);
    }
    fs::remove_file(&file).unwrap();
    let line =
        server.process.wait_for_line(&format!("cookie keys not changed: {path}: there is no such file"));
    assert!(line.contains("put the file there"), "{line}");
    serves(&server);
    assert!(!file.exists(), "nothing is written there");
    refused_start();
    write(&file, &first);
    drop(server);
    let mut server = start(&config);
    serves(&server);
    // What follows is taken, also if it is no link any more.
    fs::remove_file(&file).unwrap();
    write(&file, &second);
    server.process.wait_for_line(&format!("key {} is now current", current(&second)));
    // Those who make no keys change none.
    let output = authentick(["keys", "rotate", "--config", config.to_str().unwrap()]);
    refused(&output, 78, &[path, "made elsewhere"]);
    let output = authentick(["keys", "list", "--config", config.to_str().unwrap()]);
    assert!(text(&output).contains(&current(&second)), "{}", text(&output));
}

#[test]
fn symmetric_keys_are_followed_without_a_signal_and_stay_while_the_file_is_bad_or_gone() {
    let lab = Lab::new();
    let (file, next) = (lab.path().join("keys"), lab.path().join("next"));
    let put = |text: &str| {
        write_private(&next, text);
        fs::rename(&next, &file).unwrap();
    };
    let key = |id: u32| format!("{id} AES128 HEX:{id:032x}\n");
    put(&key(1));
    let mut server = start(&lab.config("", &format!("[symmetric]\nkeys = {file:?}")));
    put(&(key(1) + &key(2)));
    server.process.wait_for_line("symmetric keys read again: 2");
    put("1 AES128 HEX:00\n");
    server.process.wait_for_line("line 1: key 1: a key of AES128 has 16 octets");
    fs::remove_file(&file).unwrap();
    server.process.wait_for_line("No such file");
    assert_eq!(server.metric("ntp_symmetric_keys"), 2.0);
    // Each is told of once.
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(server.metric("ntp_symmetric_key_reload_failures_total"), 2.0);
    // Written in place, as an editor may.
    write_private(&file, &key(3));
    server.process.wait_for_line("symmetric keys read again: 1");
}

#[test]
fn state_keys_of_antp_are_followed_and_derived_as_cookie_keys_are() {
    let lab = Lab::new();
    lab.antp_identity("ecdh", |_| {});
    let (made, file) = (lab.path().join("maker"), lab.path().join("state-keys"));
    let keys = |verb: &str| {
        let directory = made.to_str().unwrap();
        let output = authentick(["keys", verb, "--antp", "--state-directory", directory]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let next = lab.path().join("next");
        fs::copy(made.join("antp-state-keys"), &next).unwrap();
        fs::rename(next, &file).unwrap();
    };
    keys("generate");
    let followed = format!("state-keys = {{ store = \"follow\", file = {file:?} }}");
    let config = lab.antp_config(&["ecdh"], "", &followed);
    let mut server = start(&config);
    keys("rotate");
    let shown = fs::read_to_string(&file).unwrap();
    let line =
        format!("ANTP's state keys received from {}; key {} is now current", file.display(), current(&shown));
    server.process.wait_for_line(&line);
    let output = authentick(["keys", "rotate", "--antp", "--config", config.to_str().unwrap()]);
    refused(&output, 78, &["made elsewhere"]);
    drop(server);
    // Derived ones begin with a file, too, and are not rotated by hand.
    let derived = "state-keys = { next = \"derived\", rotate = \"12h\" }";
    let config = lab.antp_config(&["ecdh"], "", derived);
    let check = || authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
    refused(&check(), 78, &["antp-state-keys does not exist", "authentick keys --antp generate"]);
    let verb = |verb: &str| authentick(["keys", verb, "--antp", "--config", config.to_str().unwrap()]);
    assert_eq!(verb("generate").status.code(), Some(0));
    assert_eq!(check().status.code(), Some(0));
    refused(&verb("rotate"), 78, &["its keys are derived", "authentick keys --antp refresh"]);
    let output = verb("refresh");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}
