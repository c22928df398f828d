//! What an operator does to a server, rightly and wrongly.

use std::net::UdpSocket;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use authentick_lab::certificates::write_private;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::process::{PATIENCE, Process, wait_within};

use crate::lab::{Lab, Server, authentick, is_root, serve, start, text, wait_for};

/// Starts a server that must not start; returns what it said.
fn refused(config: &Path, code: i32) -> String {
    let output = authentick(["serve", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(code), "{}", text(&output));
    text(&output)
}

#[track_caller]
fn assert_names(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[test]
fn check_finds_what_start_would_and_changes_nothing() {
    let lab = Lab::new();
    let config = lab.config("", "");
    let check = |code: i32| {
        let output = authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        text(&output)
    };
    assert_names(&check(0), &["good"]);
    assert!(!lab.state().exists());
    std::fs::write(lab.key(), "no key").unwrap();
    assert_names(&check(78), &["authentick.toml", "nts.private-key", "key.pem", "no PEM private key"]);
}

#[test]
fn file_of_the_manual_is_good_as_it_is() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual/authentick.toml");
    let output = authentick(["serve", "--check", "--config", example.to_str().unwrap()]);
    // Root misses the user on a host without the package; nothing else is wrong with it.
    let message = text(&output);
    let is_good = output.status.code() == Some(0) && message.contains("authentick.toml: good");
    let has_no_user = output.status.code() == Some(78)
        && message.contains("line 18: server.user = \"authentick\": there is no such user");
    assert!(is_good || has_no_user, "{message}");
}

#[test]
fn values_of_the_environment_are_taken_at_the_start_and_at_sighup() {
    let lab = Lab::new();
    let file = lab.config("listen = [\"${AUTHENTICK_HOST}:0\"]", "");
    let message = refused(&file, 78);
    assert_names(
        &message,
        &["server.listen = \"${AUTHENTICK_HOST}:0\"", "AUTHENTICK_HOST is not set", "set it"],
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_authentick"));
    command.env("AUTHENTICK_HOST", "127.0.0.1").env("AUTHENTICK_NET", "192.0.2.0/24");
    let mut server = Process::start(command.args(["serve", "--config"]).arg(&file));
    server.wait_for_line("serving time on 127.0.0.1:");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("[server]\n", "[server]\ndeny = [\"${AUTHENTICK_NET}\"]\n")).unwrap();
    server.signal("-HUP");
    assert_names(
        &server.wait_for_line("configuration: in force now: "),
        &["server.deny; files=1 allow=2 deny=1 "],
    );
    assert!(!server.log().contains("restart"), "{}", server.log());
}

#[test]
fn certificate_and_key_must_be_readable_and_fit() {
    let (lab, other) = (Lab::new(), Lab::new());
    let config = lab.config("", "");
    std::fs::copy(other.key(), lab.key()).unwrap();
    assert_names(&refused(&config, 78), &["nts.private-key", "key.pem", "does not belong", "made for"]);
    std::fs::remove_file(lab.chain()).unwrap();
    assert_names(&refused(&config, 78), &["nts.certificate-chain", "chain.pem", "cannot read", "exists"]);
}

#[test]
fn unreadable_key_is_exit_77() {
    if !is_root("to start as a user who may not read the key") {
        return;
    }
    let lab = Lab::new();
    let config = lab.config("", "");
    std::fs::set_permissions(lab.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(lab.key(), PermissionsExt::from_mode(0o600)).unwrap();
    let output = as_nobody(lab.path(), &["serve", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(77), "{}", text(&output));
    assert_names(
        &text(&output),
        &["nts.private-key", "Permission denied", "let nobody read it", "chgrp \"$(id -gn nobody)\""],
    );
}

const NOBODY: u32 = 65534;

/// Runs a copy of the binary, in a folder that anyone can enter, as the user `nobody`.
pub(crate) fn as_nobody(folder: &Path, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new("setpriv");
    become_nobody(&mut command, folder).args(arguments).output().unwrap()
}

/// The arguments of `setpriv` for that, with a copy of the binary in the folder.
pub(crate) fn become_nobody<'a>(setpriv: &'a mut Command, folder: &Path) -> &'a mut Command {
    let (program, nobody) = (folder.join("authentick"), NOBODY.to_string());
    // By a process of its own: what another thread starts while this one writes a program would have the file open for
    // writing until it runs its own, and such a file cannot be run. execve(2), ETXTBSY.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_authentick")).arg(&program).status().unwrap();
    assert!(copied.success());
    setpriv
        .args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups", "--inh-caps=-all", "--"])
        .arg(program)
}

/// A container may let everyone bind any port, so the server starts on a host of its own, where all else is in order.
#[test]
fn privileged_port_without_rights_is_exit_77() {
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let lab = Lab::new();
    let config = lab.config("listen = [\"127.0.0.1:123\"]\nuser = \"nobody\"", "");
    std::fs::create_dir(lab.state()).unwrap();
    std::fs::set_permissions(lab.state(), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::set_permissions(lab.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for file in [lab.state(), lab.key(), lab.chain(), config.clone()] {
        std::os::unix::fs::chown(file, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let serve = || {
        let mut command = hosts.on(Host::Server, "setpriv");
        become_nobody(&mut command, lab.path()).arg("serve").arg("--config").arg(&config);
        command
    };
    hosts.set(Host::Server, "ipv4/ip_unprivileged_port_start", "1024");
    let output = serve().output().unwrap();
    assert_eq!(output.status.code(), Some(77), "{}", text(&output));
    let parts = ["server.listen", "127.0.0.1:123", "Permission denied", "CAP_NET_BIND_SERVICE"];
    assert_names(&text(&output), &parts);
    let check = serve().arg("--check").output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
    let parts = ["server.listen", "127.0.0.1:123", "nobody may not bind its port", "CAP_NET_BIND_SERVICE"];
    assert_names(&text(&check), &parts);
    // Nothing else was wanting.
    hosts.set(Host::Server, "ipv4/ip_unprivileged_port_start", "0");
    Process::start(&mut serve()).wait_for_line("serving time on 127.0.0.1:123");
}

#[test]
fn root_becomes_the_configured_user_after_binding() {
    if !is_root("to have rights to give away") {
        return;
    }
    let lab = Lab::new();
    std::fs::set_permissions(lab.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let server = start(&lab.config("user = \"nobody\"", ""));
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
    let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert_eq!(line("Uid:").split_whitespace().nth(1), Some("65534"));
    assert_eq!(line("CapEff:").split_whitespace().nth(1), Some("0000000000000000"));
    assert_eq!(line("NoNewPrivs:").split_whitespace().nth(1), Some("1"));
    assert_eq!(line("Groups:").split_whitespace().nth(1), Some("65534"), "its own groups and none of root's");
    // Every thread, and the state directory, belong to that user.
    for task in std::fs::read_dir(format!("/proc/{}/task", server.process.id())).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        assert!(status.contains("Uid:\t65534"), "{status}");
    }
    let owner =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(lab.state().join("cookie-keys")).unwrap());
    assert_eq!(owner, 65534);
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0));
    let message = refused(&lab.config("user = \"nobody-at-all\"", ""), 78);
    assert_names(&message, &["server.user", "nobody-at-all", "no such user", "useradd"]);
}

#[test]
fn state_directory_open_to_others_is_refused_with_the_remedy_if_keys_are_in_it() {
    let lab = Lab::new();
    std::fs::create_dir(lab.state()).unwrap();
    std::fs::write(lab.state().join("cookie-keys"), "garbage").unwrap();
    std::fs::set_permissions(lab.state(), PermissionsExt::from_mode(0o755)).unwrap();
    let message = refused(&lab.config("", ""), 78);
    assert_names(&message, &["server.state-directory", "mode 755", "chmod 700"]);
    std::fs::set_permissions(lab.state(), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::set_permissions(lab.state().join("cookie-keys"), PermissionsExt::from_mode(0o644)).unwrap();
    assert_names(&refused(&lab.config("", ""), 78), &["cookie-keys", "mode 644", "chmod 600"]);
    std::fs::set_permissions(lab.state().join("cookie-keys"), PermissionsExt::from_mode(0o600)).unwrap();
    assert_names(&refused(&lab.config("", ""), 78), &["cookie-keys", "line 1", "restore"]);
}

//= rfc8915#3-2
#[test]
fn tls_1_2_is_refused_and_counted() {
    let lab = Lab::new();
    let server = serve(&lab);
    let shake_hands = |version: &str| {
        let address = server.ke.to_string();
        let ca = lab.ca();
        let mut command = Command::new("openssl");
        command.args(["s_client", version, "-alpn", "ntske/1", "-verify_return_error", "-connect", &address]);
        // At the end of its input it closes.
        command.arg("-CAfile").arg(ca).stdin(std::process::Stdio::null()).output().unwrap()
    };
    let count = |outcome: &str| server.metric(&format!("nts_ke_connections_total{{outcome=\"{outcome}\"}}"));
    let output = shake_hands("-tls1_2");
    assert!(!output.status.success() && text(&output).contains("protocol version"), "{}", text(&output));
    wait_for("the count", || (count("tls_failure") == 1.0).then_some(()));
    // The same with a version that is served does not fail.
    let output = shake_hands("-tls1_3");
    assert!(output.status.success() && text(&output).contains("ALPN protocol: ntske/1"), "{}", text(&output));
    wait_for("its end", || (server.metric("nts_ke_connections_accepted_total") == 2.0).then_some(()));
    assert_eq!(count("tls_failure"), 1.0);
}

#[test]
fn sigterm_stops_cleanly() {
    let lab = Lab::new();
    let mut server = serve(&lab);
    server.process.signal("-TERM");
    assert_eq!(server.process.wait(), 0, "{}", server.process.log());
}

#[test]
fn sighup_takes_over_a_new_certificate_and_keeps_the_old_one_if_the_new_is_bad() {
    let lab = Lab::new();
    let mut server = serve(&lab);
    lab.renew(|params| params.distinguished_name.push(rcgen::DnType::CommonName, "renewed.test"));
    server.process.signal("-HUP");
    server.process.wait_for_line("certificate read again");
    let line = server.process.wait_for_line("configuration: ");
    assert_names(
        &line,
        &["in force now: files of certificates; files=1 allow=", "certificates=1 (", ", until "],
    );
    assert_names(&text(&server.query(&lab, &[])), &["CN=renewed.test"]);
    server.process.signal("-HUP");
    assert_names(&server.process.wait_for_line("configuration: no changes; "), &["files=1 allow="]);
    std::fs::write(lab.key(), "no key").unwrap();
    server.process.signal("-HUP");
    server.process.wait_for_line("certificate not changed");
    assert_names(&text(&server.query(&lab, &[])), &["CN=renewed.test"]);
}

#[test]
fn sighup_turns_an_abuser_away_and_says_what_needs_a_restart() {
    let lab = Lab::new();
    let file = lab.config("refusal = \"kiss\"", "");
    let server = start(&file);
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0));
    let before = std::fs::read_to_string(&file).unwrap();
    let change = |text: &str| {
        std::fs::write(&file, text).unwrap();
        server.process.signal("-HUP");
    };
    let wait = |count: usize, words: &str| {
        wait_for(words, || (server.process.log().matches(words).count() == count).then_some(()));
    };
    let (address, in_force) = (server.ntp.to_string(), "in force now: server.deny");
    let plain = || authentick(["query", &address, "--auth", "plain"]);
    let denied = before.replace("[server]\n", "[server]\ndeny = [\"127.0.0.0/8\"]\n");
    change(&denied.replace("workers = 1", "workers = 2"));
    wait(1, "a restart is needed for changes of server.workers");
    wait(1, in_force);
    assert_names(&text(&plain()), &["DENY"]);
    assert_ne!(server.query(&lab, &[]).status.code(), Some(0), "no keys are exchanged either");
    change("[server]\nallow = [\"everyone\"]\n");
    wait(1, "configuration not changed: ");
    assert_names(&text(&plain()), &["DENY"]);
    change(&before);
    wait(2, in_force);
    assert_eq!(plain().status.code(), Some(0));
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0));
}

/// Puts the lab's pair into a volume as kubelet does with a Secret, for the `number`th time: the files are in a folder
/// of their own, and a link to that is turned to the next one.
fn mount_secret(lab: &Lab, volume: &Path, number: u32) {
    let name = format!("..2026_11_28_09_00_0{number}.123456789");
    let folder = volume.join(&name);
    std::fs::create_dir_all(&folder).unwrap();
    for (from, file) in [(lab.chain(), "tls.crt"), (lab.key(), "tls.key")] {
        std::fs::copy(from, folder.join(file)).unwrap();
        std::fs::set_permissions(folder.join(file), PermissionsExt::from_mode(0o440)).unwrap();
        let _ = symlink(format!("..data/{file}"), volume.join(file));
    }
    let (data, new) = (volume.join("..data"), volume.join("..data_tmp"));
    let before = std::fs::read_link(&data).ok();
    symlink(name, &new).unwrap();
    std::fs::rename(new, &data).unwrap();
    before.iter().for_each(|before| std::fs::remove_dir_all(volume.join(before)).unwrap());
}

/// A server whose pair is in such a volume.
fn with_secret(lab: &Lab, volume: &Path) -> Server {
    mount_secret(lab, volume, 1);
    let config = lab.config("", "");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace(&format!("{:?}", lab.chain()), &format!("{:?}", volume.join("tls.crt")));
    std::fs::write(
        &config,
        text.replace(&format!("{:?}", lab.key()), &format!("{:?}", volume.join("tls.key"))),
    )
    .unwrap();
    start(&config)
}

#[test]
fn renewed_certificate_is_taken_without_a_signal_once_its_pair_is_whole() {
    let (lab, pod) = (Lab::new(), Lab::new());
    let (server, volume) = (serve(&lab), pod.path().join("tls"));
    let in_pod = with_secret(&pod, &volume);
    pod.renew(|params| params.distinguished_name.push(rcgen::DnType::CommonName, "turned.test"));
    assert_names(&text(&in_pod.query(&pod, &[])), &["CN=ntp.test"]);
    mount_secret(&pod, &volume, 2);
    // A look each half minute.
    let wait = |words: &str| {
        wait_within(3 * PATIENCE, words, || server.process.log().contains(words).then_some(()));
    };
    let old_key = std::fs::read(lab.key()).unwrap();
    lab.renew(|params| params.distinguished_name.push(rcgen::DnType::CommonName, "renewed.test"));
    let key = std::fs::read(lab.key()).unwrap();
    std::fs::write(lab.key(), old_key).unwrap();
    wait("certificate not changed: ");
    assert!(!text(&server.query(&lab, &[])).contains("CN=renewed.test"), "the old pair serves");
    let metric = |name: &str| server.of_certificate(&format!("nts_ke_certificate_{name}"), &lab.chain());
    assert!(metric("reload_failures_total") >= 1.0);
    assert_eq!((metric("reloads_total"), metric("refused")), (0.0, 1.0));
    // As by a link that is turned: another file has the name.
    let whole = lab.path().join("key.new");
    write_private(&whole, &String::from_utf8(key).unwrap());
    std::fs::rename(&whole, lab.key()).unwrap();
    wait("certificate read again: ");
    assert_names(&text(&server.query(&lab, &[])), &["CN=renewed.test"]);
    assert_eq!((metric("reloads_total"), metric("refused")), (1.0, 0.0));
    assert!(metric("reloaded_timestamp_seconds") > 1.7e9);
    // That of the volume has long been taken, once, and with both files of the same folder.
    assert_names(&text(&in_pod.query(&pod, &[])), &["CN=turned.test"]);
    let metric =
        |name: &str| in_pod.of_certificate(&format!("nts_ke_certificate_{name}"), &volume.join("tls.crt"));
    assert_eq!((metric("reloads_total"), metric("reload_failures_total")), (1.0, 0.0));
}

#[test]
fn rotation_by_command_line_keeps_every_cookie_good_until_its_key_is_retired() {
    let lab = Lab::new();
    let mut server = serve(&lab);
    let state = lab.state();
    let keys = |arguments: &[&str]| {
        let mut all = vec!["keys", "--state-directory", state.to_str().unwrap()];
        all.extend(arguments);
        let output = authentick(all);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let ids = |shown: &str, role: &str| -> Vec<String> {
        let of_role = shown.lines().filter(|line| line.contains(role));
        of_role.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let before = keys(&["list"]);
    assert!(
        !before.contains(&std::fs::read_to_string(state.join("cookie-keys")).unwrap()[80..100]),
        "a secret"
    );
    let after = keys(&["rotate"]);
    assert_eq!(ids(&before, "future"), ids(&after, "current"));
    assert_eq!(ids(&before, "current"), ids(&after, "retired"));
    server.process.signal("-HUP");
    server.process.wait_for_line("cookie keys read again");
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0));
    let retired = ids(&after, "retired").remove(0);
    assert!(ids(&keys(&["retire", &retired]), "retired").is_empty());
    let output = authentick(["keys", "retire", &retired, "--state-directory", state.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(64), "{}", text(&output));
    let json: serde_json::Value = serde_json::from_str(&keys(&["list", "--json"])).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 2);
}

#[test]
fn keys_are_generated_once() {
    let lab = Lab::new();
    let state = lab.state();
    let generate = || authentick(["keys", "generate", "--state-directory", state.to_str().unwrap()]);
    assert_eq!(generate().status.code(), Some(0));
    let again = generate();
    assert_eq!(again.status.code(), Some(78));
    assert_names(
        &text(&again),
        &["holds keys already", "run: authentick keys rotate", "on the node that writes"],
    );
    let none = authentick(["keys", "list", "--state-directory", "/no/such/directory"]);
    assert_eq!(none.status.code(), Some(78), "{}", text(&none));
}

#[test]
fn full_disk_at_rotation_leaves_the_old_keys_sealing() {
    if !is_root("to mount a file system of a few pages") {
        return;
    }
    let lab = Lab::new();
    std::fs::create_dir(lab.state()).unwrap();
    let mount = |arguments: &[&str]| {
        Command::new("mount").args(arguments).arg(lab.state()).status().unwrap().success()
    };
    if !mount(&["-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs"]) {
        authentick_lab::skip::skip("a tmpfs cannot be mounted here");
        return;
    }
    let unmount = Unmount(lab.state());
    let mut server = start(&lab.config("", "cookie-keys = { rotate = \"3s\", keep = 60 }"));
    let fill = std::fs::write(lab.state().join("filler"), vec![1; 64 * 1024]);
    assert_eq!(fill.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    let line = server.process.wait_for_line("cookie keys not rotated: ");
    assert_names(&line, &["No space left", "make room", "stays in use"]);
    assert!(server.metric("nts_cookie_key_rotation_failures_total") >= 1.0);
    wait_for("the word to those who ask", || {
        server.get("/readyz").starts_with("cookie keys: not rotated: ").then_some(())
    });
    assert_eq!(server.get("/healthz"), "ok\n", "another start would make no room");
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0), "it still serves");
    drop(server);
    drop(unmount);
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn rotation_happens_by_itself_and_costs_a_client_nothing() {
    let lab = Lab::new();
    let server = start(&lab.config("", "cookie-keys = { rotate = \"1s\", keep = 60 }"));
    let output = server.query(&lab, &["--count", "25", "--interval", "0.2", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["exchanges"].as_array().unwrap().len(), 25);
    assert!(server.metric("nts_cookie_key_rotations_total") >= 2.0);
    assert_eq!(server.metric("nts_ke_connections_accepted_total"), 1.0);
}

#[test]
fn received_datagrams_equal_the_sum_of_outcomes() {
    let lab = Lab::new();
    let server = serve(&lab);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut request = [0; 48];
    request[0] = 0x23;
    for size in [0, 1, 44, 48, 52, 68, 100, 3000] {
        let mut datagram = request.to_vec();
        datagram.resize(size, 1);
        client.send_to(&datagram, server.ntp).unwrap();
    }
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0));
    wait_for("all outcomes", || (server.metric("ntp_server_received_packets_total") == 9.0).then_some(()));
    let text = server.get("/metrics");
    let outcomes = text.lines().filter(|line| line.starts_with("ntp_server_packets_total{"));
    let sum: f64 = outcomes.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum();
    assert_eq!(sum, 9.0);
    assert!(!text.contains("antp_"), "ANTP is off: {text}");
    assert!(server.get("/").contains("/metrics"));
}

#[test]
fn spans_can_be_joined_by_source_and_origin() {
    let lab = Lab::new();
    let server = serve(&lab);
    let output = server.query(&lab, &["--aead", "15", "--json"]);
    let query: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let spans: serde_json::Value = serde_json::from_str(&server.get("/spans")).unwrap();
    let (ntp, ke) = (&spans["ntp"][0], &spans["ke"][0]);
    assert_eq!((ntp["batch_size"].as_u64(), ntp["per"].as_str()), (Some(1), Some("request")));
    assert_eq!(ntp["source"], query["exchanges"][0]["source"]);
    assert_eq!(ntp["origin"], query["exchanges"][0]["origin"]);
    assert_eq!(ke["source"], query["authentication"]["key_exchange_source"]);
    let ns = |name: &str| ntp[name].as_u64().unwrap();
    assert!(ns("d_sntp_ns") > 0 && ns("d_snts_ns") > 0 && ns("d_fresh_cookie_ns") > 0);
    assert!(ke["d_ske_from_accept_ns"].as_u64() > ke["d_ske_from_request_ns"].as_u64());
    // Reading does not use records up.
    let again: serde_json::Value = serde_json::from_str(&server.get("/spans")).unwrap();
    assert_eq!(again, spans);
}
