//! Symmetric keys from the operator's side: the file, the verbs, the server that reads it, and what it counts.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use authentick_lab::disk::Closed;
use authentick_lab::peers::Chrony;

use crate::lab::{Lab, Server, authentick, is_root, start, text, wait_for};

/// A lab with a key file, and a server that reads it.
struct Keyed {
    lab: Lab,
    file: PathBuf,
}

impl Keyed {
    fn new(content: &str) -> Self {
        let lab = Lab::new();
        let file = lab.path().join("keys");
        let keyed = Keyed { lab, file };
        if !content.is_empty() {
            keyed.write(content);
        }
        keyed
    }

    /// As an editor does it: a server that reads meanwhile finds the old file or the new one, and neither half of it.
    fn write(&self, content: &str) {
        let fresh = self.file.with_extension("fresh");
        std::fs::write(&fresh, content).unwrap();
        std::fs::set_permissions(&fresh, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::rename(&fresh, &self.file).unwrap();
    }

    fn chmod(&self, mode: u32) {
        std::fs::set_permissions(&self.file, PermissionsExt::from_mode(mode)).unwrap();
    }

    fn path(&self) -> &str {
        self.file.to_str().unwrap()
    }

    fn config(&self, symmetric: &str) -> PathBuf {
        self.lab.config("", &format!("[symmetric]\nkeys = {:?}\n{symmetric}", self.file))
    }

    fn start(&self, symmetric: &str) -> Server {
        start(&self.config(symmetric))
    }

    /// `keys symmetric` with the server's configuration.
    fn verb(&self, arguments: &[&str]) -> Output {
        let config = self.lab.path().join("authentick.toml");
        let mut all = vec!["keys", "symmetric", "--config", config.to_str().unwrap()];
        all.extend(arguments);
        authentick(all)
    }

    #[track_caller]
    fn good_verb(&self, arguments: &[&str]) -> String {
        let output = self.verb(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        text(&output)
    }

    fn list(&self) -> serde_json::Value {
        let output = self.verb(&["list", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn query(&self, server: &Server, id: u32, more: &[&str]) -> Output {
        let (target, id) = (server.ntp.to_string(), id.to_string());
        let mut all = vec!["query", &target, "--auth", "mac", "--keys", self.path(), "--key-id", &id];
        all.extend(["--allow-legacy", "--allow-experimental"]);
        if !more.contains(&"--timeout") {
            all.extend(["--timeout", "1"]);
        }
        all.extend(more);
        authentick(all)
    }
}

const HEX: &str = "7EA62AE64D190114D46D5A082F948EC1";

fn of_key(name: &str, id: u32, kind: &str) -> String {
    format!("ntp_symmetric_key_{name}{{key=\"{id}\",type=\"{kind}\"}}")
}

#[track_caller]
fn assert_names(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

/// A file of chrony's with keys of types that only it knows: the others are served, and these are unknown.
#[test]
fn key_of_a_type_that_is_not_implemented_is_warned_of_and_costs_no_other_key() {
    let lines = format!("1 AES128 HEX:{HEX}\n7 SHA3-256 HEX:{HEX}\n8 TIGER tulip\n9 SHA256 HEX:{HEX}\n");
    let keyed = Keyed::new(&lines);
    let mut server = keyed.start("allow-legacy = true");
    for (line, id, kind) in [(2, 7, "SHA3-256"), (3, 8, "TIGER")] {
        let part =
            format!("line {line}: key {id} cannot be used, as keys of type {kind} are not implemented");
        assert_names(&server.process.log(), &[&part]);
        let output = keyed.query(&server, id, &[]);
        assert_eq!(output.status.code(), Some(78), "{}", text(&output));
        assert_names(&text(&output), &[&format!("line {line}: key {id} is of type {kind}")]);
        // Who has another key under that id names one that the server does not know.
        let client = Keyed::new(&format!("{id} AES128 HEX:{HEX}\n"));
        let output = client.query(&server, id, &["--timeout", "0.3"]);
        assert_names(&text(&output), &["crypto-NAK, kiss code NKEY"]);
    }
    for id in [1, 9] {
        let output = keyed.query(&server, id, &[]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }
    assert_eq!(server.outcome("mac_nak_unknown_key"), 2.0);
    assert!(!server.process.log().contains(HEX) && !server.process.log().contains("tulip"));
    // The id is taken, the key is listed, and can go; rotating it is refused.
    let list = keyed.list();
    assert_eq!(
        (&list[2]["id"], &list[2]["state"], &list[2]["type"]),
        (&7.into(), &"unusable".into(), &"SHA3-256".into())
    );
    assert_eq!(keyed.verb(&["generate", "--id", "7"]).status.code(), Some(64));
    assert_names(&text(&keyed.verb(&["rotate", "7"])), &["key 7 is of type SHA3-256", "retire it"]);
    keyed.good_verb(&["retire", "7"]);
    keyed.good_verb(&["retire", "8"]);
    server.process.signal("-HUP");
    server.process.wait_for_line("symmetric keys read again: 2");
}

#[test]
fn key_is_made_served_rotated_with_overlap_and_retired() {
    let keyed = Keyed::new("");
    let config = keyed.config("");
    assert_names(&keyed.good_verb(&["generate"]), &["key 1 is made", "AES128", "128 bits", "current"]);
    assert_eq!(std::fs::metadata(&keyed.file).unwrap().permissions().mode() & 0o7777, 0o600);
    let mut server = start(&config);
    assert_eq!(
        keyed.query(&server, 1, &[]).status.code(),
        Some(0),
        "{}",
        text(&keyed.query(&server, 1, &[]))
    );

    assert_names(&keyed.good_verb(&["rotate", "1"]), &["key 2 takes the place of key 1", "replaced by 2"]);
    server.process.signal("-HUP");
    server.process.wait_for_line("symmetric keys read again: 2");
    for id in [1, 2] {
        assert_eq!(keyed.query(&server, id, &[]).status.code(), Some(0), "both are accepted");
    }
    // Clients still have the file of before.
    let old = std::fs::read_to_string(&keyed.file).unwrap();
    keyed.good_verb(&["retire", "1"]);
    server.process.signal("-HUP");
    server.process.wait_for_line("symmetric keys read again: 1");
    let client = Keyed::new(&old);
    assert_eq!(client.query(&server, 2, &[]).status.code(), Some(0));
    let refused = client.query(&server, 1, &[]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));

    let list = keyed.list();
    let states: Vec<_> =
        list.as_array().unwrap().iter().map(|key| (key["id"].as_u64(), key["state"].as_str())).collect();
    assert_eq!(states, [(Some(2), Some("current")), (Some(1), Some("retired"))]);
    let again = keyed.verb(&["generate", "--id", "1"]);
    assert_eq!(again.status.code(), Some(64));
    assert_names(&text(&again), &["there was a key 1", "another id"]);
}

#[test]
fn nothing_that_is_printed_has_a_secret_in_it() {
    let keyed = Keyed::new(&format!("1 AES128 HEX:{HEX}\n2 MD5 ASCII:secretsecret\n3 MD5 shortsec\n"));
    let config = keyed.config("allow-legacy = true");
    let mut said = String::new();
    for arguments in [&["list"][..], &["list", "--json"], &["rotate", "1"], &["generate"], &["retire", "2"]] {
        said += &keyed.good_verb(arguments);
    }
    said += &text(&authentick(["serve", "--check", "--config", config.to_str().unwrap()]));
    let mut server = start(&config);
    said += &text(&keyed.query(&server, 1, &["--json"]));
    server.process.signal("-TERM");
    server.process.wait();
    said += &server.process.log();
    said += &std::fs::read_to_string(keyed.lab.state().join("symmetric-uses")).unwrap();
    let said = said.to_ascii_lowercase();
    let file = std::fs::read_to_string(&keyed.file).unwrap();
    let made =
        file.lines().filter_map(|line| line.split_once("HEX:")).map(|(_, key)| key.to_ascii_lowercase());
    let secrets: Vec<String> = made.chain(["secretsecret".to_owned(), "shortsec".to_owned()]).collect();
    assert_eq!(secrets.len(), 5);
    for secret in secrets {
        assert!(!said.contains(&secret[..8]), "a secret is in {said}");
    }
}

#[test]
fn check_and_start_name_file_line_and_remedy() {
    let keyed = Keyed::new("# one\n0 MD5 tulip\n");
    let config = keyed.config("");
    for arguments in [&["serve", "--check", "--config"][..], &["serve", "--config"]] {
        let arguments = || arguments.iter().copied().chain([config.to_str().unwrap()]);
        keyed.write("# one\n0 MD5 tulip\n");
        let output = authentick(arguments());
        assert_eq!(output.status.code(), Some(78), "{}", text(&output));
        assert_names(
            &text(&output),
            &["authentick.toml", "symmetric.keys", "keys: line 2: 0 is no key id", "choose one"],
        );
        keyed.chmod(0o604);
        let output = authentick(arguments());
        assert_eq!(output.status.code(), Some(78), "{}", text(&output));
        assert_names(&text(&output), &["mode 604", "chmod 600"]);
        std::fs::remove_file(&keyed.file).unwrap();
        let output = authentick(arguments());
        assert_eq!(output.status.code(), Some(78), "{}", text(&output));
        assert_names(&text(&output), &["No such file", "authentick keys symmetric generate --keys"]);
    }
    assert!(!keyed.lab.state().exists(), "nothing was made");
}

#[test]
fn file_of_another_user_is_exit_77() {
    if !is_root("to start as a user who may not read the keys") {
        return;
    }
    let keyed = Keyed::new("1 MD5 tulips-tulips\n");
    let config = keyed.config("");
    std::fs::set_permissions(keyed.lab.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for file in [keyed.lab.chain(), config.clone()] {
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o644)).unwrap();
    }
    std::os::unix::fs::chown(keyed.lab.key(), Some(65534), Some(65534)).unwrap();
    let output = crate::operator::as_nobody(
        keyed.lab.path(),
        &["serve", "--check", "--config", config.to_str().unwrap()],
    );
    assert_eq!(output.status.code(), Some(77), "{}", text(&output));
    assert_names(&text(&output), &["symmetric.keys", "Permission denied", "the user who owns it"]);
}

#[test]
fn bad_file_at_sighup_leaves_the_old_keys_in_force_and_says_so() {
    let keyed = Keyed::new(&format!("1 AES128 HEX:{HEX}\n"));
    let mut server = keyed.start("");
    let client = Keyed::new(&format!("1 AES128 HEX:{HEX}\n"));
    for (content, mode, problem) in [
        ("1 AES128 HEX:00\n", 0o600, "line 1: key 1: a key of AES128 has 16 octets, this one has 1"),
        ("1 MD5 tulips-tulips\n", 0o644, "mode 644"),
        ("1 MD5 tulips-tulips\n1 MD5 tulips-tulips\n", 0o600, "line 2: key 1 stands on line 1 already"),
    ] {
        keyed.write(content);
        keyed.chmod(mode);
        server.process.signal("-HUP");
        server.process.wait_for_line(&format!("symmetric keys not changed: {}: {problem}", keyed.path()));
        assert_eq!(client.query(&server, 1, &[]).status.code(), Some(0), "{problem}");
    }
    // More, if a second look came before the signal.
    assert!(server.metric("ntp_symmetric_key_reload_failures_total") >= 3.0);
    assert_eq!(server.metric(&of_key("answers_total", 1, "AES128")), 3.0);
}

#[test]
fn reload_loses_no_request_and_no_count() {
    let keyed = Keyed::new(&format!("1 AES128 HEX:{HEX}\n"));
    let server = keyed.start("");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut asked = 0_u32;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut count = 2;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                keyed.write(&format!("{count} AES128 HEX:{HEX}\n1 AES128 HEX:{HEX}\n"));
                server.process.signal("-HUP");
                std::thread::sleep(std::time::Duration::from_millis(20));
                count += 1;
            }
        });
        let client = Keyed::new(&format!("1 AES128 HEX:{HEX}\n"));
        // A busy machine reloads less often.
        while asked == 0 || server.process.log().matches("symmetric keys read again").count() <= 10 {
            let output = client.query(&server, 1, &["--count", "100", "--interval", "0.02", "--json"]);
            let result = serde_json::from_slice::<serde_json::Value>(&output.stdout);
            asked += 100;
            // The scope waits for its thread, also in a panic.
            stop.store(result.is_err() || asked == 6000, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output));
            assert_eq!(result.unwrap()["exchanges"].as_array().unwrap().len(), 100);
            assert!(asked < 6000, "two minutes have not seen ten reloads");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(
        server.metric(&of_key("answers_total", 1, "AES128")),
        f64::from(asked),
        "counts go on over changes"
    );
    assert_eq!(server.outcome("mac"), f64::from(asked));
}

#[test]
fn legacy_and_experimental_types_need_their_switches_and_are_warned_of_either_way() {
    let keyed = Keyed::new(&format!("1 AES128 HEX:{HEX}\n2 MD5 tulips-tulips\n3 GMAC128 HEX:{HEX}\n"));
    for (switches, md5, gmac) in [
        ("", 2, 2),
        ("allow-legacy = true", 0, 2),
        ("allow-experimental = true", 2, 0),
        ("allow-legacy = true\nallow-experimental = true", 0, 0),
    ] {
        let mut server = keyed.start(switches);
        for (id, kind, expected) in [(1, "AES128", 0), (2, "MD5", md5), (3, "GMAC128", gmac)] {
            let output = keyed.query(&server, id, &[]);
            assert_eq!(output.status.code(), Some(expected), "{switches} {id}: {}", text(&output));
            let (answers, refused) = if expected == 0 { (1.0, 0.0) } else { (0.0, 1.0) };
            assert_eq!(server.metric(&of_key("requests_total", id, kind)), 1.0, "{switches} {id}");
            assert_eq!(server.metric(&of_key("answers_total", id, kind)), answers, "{switches} {id}");
            assert_eq!(server.metric(&of_key("not_allowed_total", id, kind)), refused, "{switches} {id}");
        }
        server.process.signal("-TERM");
        assert_eq!(server.process.wait(), 0);
        let log = server.process.log();
        let accepted = |code| if code == 0 { "accepted, as" } else { "not accepted, as" };
        let state = |code| if code == 0 { "is on" } else { "is off" };
        assert_names(
            &log,
            &[
                &format!("{} symmetric.allow-legacy {}: key 2 (MD5): a digest", accepted(md5), state(md5)),
                &format!(
                    "{} symmetric.allow-experimental {}: key 3 (GMAC128): it needs a nonce",
                    accepted(gmac),
                    state(gmac)
                ),
            ],
        );
    }
}

#[test]
fn wrong_tags_are_counted_by_key() {
    let keyed = Keyed::new(&format!("1 AES128 HEX:{HEX}\n2 AES128 ASCII:0123456789abcdef\n"));
    let server = keyed.start("");
    let client = Keyed::new(&format!("1 AES128 HEX:{}\n", HEX.replace('7', "8")));
    assert_eq!(client.query(&server, 1, &[]).status.code(), Some(2));
    assert_eq!(server.metric(&of_key("wrong_tags_total", 1, "AES128")), 1.0);
    assert_eq!(server.metric(&of_key("wrong_tags_total", 2, "AES128")), 0.0);
    assert_eq!(
        server.metric(&of_key("uses", 1, "AES128")),
        0.0,
        "what was no tag of the key is no use of it"
    );
    assert_eq!(server.metric(&of_key("uses_limit", 1, "AES128")), 2f64.powi(46));
}

#[test]
fn replaced_key_retires_by_itself() {
    let keyed = Keyed::new(&format!("1 AES128 HEX:{HEX}\n"));
    let config = keyed.config("");
    keyed.good_verb(&["rotate", "1", "--overlap", "10s"]);
    let mut server = start(&config);
    let client = Keyed::new(&format!("1 AES128 HEX:{HEX}\n"));
    assert_eq!(client.query(&server, 1, &[]).status.code(), Some(0));
    assert!(server.metric(&of_key("retires_timestamp_seconds", 1, "AES128")) > 1.7e9);
    assert_eq!(server.metric("ntp_symmetric_keys"), 2.0);
    server.process.wait_for_line("symmetric key 1 is not accepted any more");
    assert_eq!(client.query(&server, 1, &[]).status.code(), Some(2));
    assert_eq!(server.metric("ntp_symmetric_keys"), 1.0);
    assert_eq!(keyed.query(&server, 2, &[]).status.code(), Some(0));
    assert_eq!(keyed.list()[0]["state"], "expired");
    // After a restart too.
    drop(server);
    let server = start(&config);
    assert_eq!(client.query(&server, 1, &[]).status.code(), Some(2));
}

#[test]
fn uses_outlive_an_orderly_stop_exactly_and_a_crash_as_a_bound() {
    let keyed = Keyed::new(&format!("1 AES128 HEX:{HEX}\n2 AES128 ASCII:0123456789abcdef\n"));
    let uses = || {
        let list = keyed.list();
        (list[0]["uses"].as_u64().unwrap(), list[0]["uses_exact"].as_bool().unwrap())
    };
    for run in 1..=2 {
        let mut server = keyed.start("");
        assert_eq!(keyed.query(&server, 1, &["--count", "3", "--interval", "0"]).status.code(), Some(0));
        assert_eq!(server.metric(&of_key("uses", 1, "AES128")), f64::from(6 * run));
        wait_for("a bound, while the server runs", || (!uses().1).then_some(()));
        server.process.signal("-TERM");
        assert_eq!(server.process.wait(), 0, "{}", server.process.log());
        assert_eq!(uses(), (6 * u64::try_from(run).unwrap(), true));
    }
    assert_names(&keyed.good_verb(&["list"]), &["used 12 times of 2^46", "used 0 times of 2^46"]);
    let mut server = keyed.start("");
    assert_eq!(keyed.query(&server, 1, &["--count", "3", "--interval", "0"]).status.code(), Some(0));
    wait_for("a bound, within a second of the first use", || (!uses().1).then_some(()));
    server.process.signal("-KILL");
    server.process.wait();
    let (count, is_exact) = uses();
    assert!((18..200_000).contains(&count) && !is_exact, "{count}");
    let unused = &keyed.list()[1];
    assert_eq!((&unused["uses"], &unused["uses_exact"]), (&0.into(), &true.into()), "nobody used it");
    assert_names(&keyed.good_verb(&["list"]), &["used at most "]);
}

#[test]
fn key_that_comes_near_its_limit_is_warned_of_with_the_command_that_helps() {
    let keyed = Keyed::new("");
    let config = keyed.config("allow-experimental = true");
    keyed.good_verb(&["generate", "--type", "GMAC128", "--salt", "--id", "7"]);
    let mut server = start(&config);
    server.process.signal("-TERM");
    assert_eq!(server.process.wait(), 0);
    let file = keyed.lab.state().join("symmetric-uses");
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, written.replace(" 0 exact", " 32766 exact")).unwrap();
    let mut server = start(&config);
    assert_eq!(keyed.query(&server, 7, &[]).status.code(), Some(0));
    let line = server.process.wait_for_line("symmetric key 7 (GMAC128) has been used ");
    assert_names(&line, &["32768 times", "half of the 2^16", "authentick keys symmetric rotate 7"]);
}

#[test]
fn unwritable_uses_do_not_keep_the_server_from_serving() {
    let keyed = Keyed::new(&format!("1 AES128 HEX:{HEX}\n"));
    let config = keyed.config("");
    std::fs::create_dir(keyed.lab.state()).unwrap();
    std::fs::set_permissions(keyed.lab.state(), PermissionsExt::from_mode(0o700)).unwrap();
    if !is_root("to have a file that cannot be replaced") {
        return;
    }
    let file = keyed.lab.state().join("symmetric-uses");
    let mut first = start(&config);
    assert_eq!(keyed.query(&first, 1, &[]).status.code(), Some(0));
    first.process.signal("-TERM");
    assert_eq!(first.process.wait(), 0);
    let closed = match Closed::close(&file) {
        Ok(closed) => closed,
        Err(skip) => return skip.tell(),
    };
    let written = std::fs::metadata(&file).unwrap().modified().unwrap();
    let server = start(&config);
    assert_names(&server.process.log(), &["uses of symmetric keys are not kept", "symmetric-uses"]);
    assert_eq!(keyed.query(&server, 1, &[]).status.code(), Some(0));
    drop(closed);
    let is_newer = || std::fs::metadata(&file).and_then(|file| file.modified()).is_ok_and(|it| it > written);
    wait_for("the file", || is_newer().then_some(()));
}

#[test]
fn chrony_reads_a_file_that_was_rotated_here_and_is_answered_under_both_keys() {
    let Some(chrony) = Chrony::find() else { return };
    let keyed = Keyed::new("! of chrony\n");
    let config = keyed.config("");
    keyed.good_verb(&["generate"]);
    keyed.good_verb(&["rotate", "1"]);
    keyed.good_verb(&["generate", "--type", "AES256"]);
    let server = start(&config);
    let (ip, port) = (server.ntp.ip(), server.ntp.port());
    for (id, kind, bits) in [(1, "AES128", 128), (2, "AES128", 128), (3, "AES256", 256)] {
        let lab = Lab::new();
        let lines =
            format!("keyfile {}\nserver {ip} port {port} key {id} minpoll -2 maxpoll -2", keyed.path());
        let mut client = chrony.daemon(&lab, &lines);
        let answers = of_key("answers_total", id, kind);
        wait_for("answers under the key", || (server.metric(&answers) >= 3.0).then_some(()));
        // Mode, key, type and bits as chrony sees them.
        assert_names(
            &client.ask("authdata"),
            &[&format!(",SK,{id},{},{bits},", if bits == 128 { 13 } else { 14 })],
        );
        let valid = wait_for("a sample", || {
            client.ask("sources").split(',').nth(5).map(str::to_owned).filter(|reach| reach != "0")
        });
        assert_ne!(valid, "", "{}", client.process.log());
        assert_eq!(server.metric(&of_key("wrong_tags_total", id, kind)), 0.0);
    }
}

#[test]
fn verbs_refuse_with_remedy_and_leave_the_file() {
    let before = format!("1 AES128 HEX:{HEX}\n2 MD5 tulips-tulips\n");
    let keyed = Keyed::new(&before);
    let path = keyed.path();
    for (arguments, code, parts) in [
        (&["rotate", "9"][..], 64, &["there is no key 9", "list"][..]),
        (&["retire", "9"], 64, &["there is no key 9"]),
        (&["generate", "--id", "2"], 64, &["there is a key 2", "another id"]),
        (&["generate", "--salt"], 64, &["AES128 has no salt", "GMAC128"]),
        (&["generate", "--type", "TIGER"], 64, &["TIGER", "not implemented"]),
        (&["generate", "--type", "AES"], 0, &["key 3 is made"]),
        (&["generate", "--id", "0"], 64, &["0 is not in"]),
        (&["generate", "--id", "4294967296"], 64, &["4294967296 is not in"]),
        (&["rotate", "1", "--overlap", "soon"], 64, &["30d"]),
        (&["rotate", "1", "--overlap", "4000d"], 64, &["3650 days"]),
    ] {
        keyed.write(&before);
        let mut all = vec!["keys", "symmetric", "--keys", path];
        all.extend(arguments);
        let output = authentick(all);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output));
        assert_names(&text(&output), parts);
        assert_eq!(std::fs::read_to_string(&keyed.file).unwrap() == before, code != 0, "{arguments:?}");
    }
    keyed.chmod(0o660);
    let output = authentick(["keys", "symmetric", "list", "--keys", path]);
    assert_eq!(output.status.code(), Some(78));
    assert_names(&text(&output), &["mode 660", &format!("chmod 600 {path}")]);
    let output =
        authentick(["keys", "symmetric", "list", "--config", keyed.lab.config("", "").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(78));
    assert_names(&text(&output), &["no [symmetric]", "--keys"]);
    let output = authentick(["keys", "symmetric", "generate", "--keys", "/no/such/directory/keys"]);
    assert_eq!(output.status.code(), Some(78));
    assert_names(&text(&output), &["make the directory /no/such/directory"]);
}
