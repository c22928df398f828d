//! Files that the server's user cannot reach, must not trust, or should not hold on to.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;

use authentick_lab::prober::Prober;
use authentick_lab::process::Process;

use super::{Bench, NOBODY, assert_names, assert_served, check, run, set_mode, text_of};
use crate::lab::{Lab, Server, is_root, program, start, wait_for};

#[test]
fn parents_of_the_state_directory_can_be_entered_by_its_owner() {
    if !is_root("to have rights to give away") {
        return;
    }
    let bench = Bench::new();
    let config = bench.lab.config("user = \"nobody\"", "");
    let state = bench.lab.path().join("one/two/state");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace(bench.lab.state().to_str().unwrap(), state.to_str().unwrap())).unwrap();
    // The shell's mask is inherited by the program.
    let script = format!(
        "umask 077; exec {} serve --until-eof --config {} < /dev/null",
        program().path().display(),
        config.display()
    );
    let mut server = Process::start(Command::new("sh").args(["-c", &script]));
    assert_eq!(server.wait(), 0, "{}", server.log());
    let shown = |path: &Path| fs::metadata(path).map(|it| (it.uid(), it.mode() & 0o7777)).unwrap();
    assert_eq!(shown(&bench.lab.path().join("one")), (0, 0o755));
    assert_eq!(shown(&bench.lab.path().join("one/two")), (0, 0o755));
    assert_eq!(shown(&state), (NOBODY, 0o700));
    assert_eq!(shown(&state.join("cookie-keys")), (NOBODY, 0o600));
}

#[test]
fn everything_is_read_again_after_rights_were_given_up_or_a_warning_comes_at_the_start() {
    if !is_root("to have rights to give away") {
        return;
    }
    let bench = Bench::new();
    let lab = &bench.lab;
    lab.antp_identity("ecdh", |_| {});
    let config = lab.antp_config(&["ecdh"], "user = \"nobody\"", "");
    let shared = lab.path().join("shared-keys");
    fs::write(&shared, "1 AES128 HEX:7EA62AE64D190114D46D5A082F948EC1\n").unwrap();
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}\n[symmetric]\nkeys = {shared:?}\n")).unwrap();
    let secret = [lab.key(), lab.antp_key("ecdh"), shared.clone()];
    let let_group_read = || {
        for file in &secret {
            chown(file, Some(0), Some(NOBODY)).unwrap();
            set_mode(file, 0o640);
        }
    };
    let_group_read();
    let mut server = start(&config);
    assert!(!server.process.log().contains("cannot read"), "{}", server.process.log());
    let prober = Prober::start(server.ntp);
    lab.renew(|params| params.distinguished_name.push(rcgen::DnType::CommonName, "renewed.test"));
    lab.antp_identity("ecdh", |_| {});
    let_group_read();
    server.process.signal("-HUP");
    for line in
        ["symmetric keys read again: 1", "certificate read again: CN=renewed.test", "cookie keys read again"]
            .into_iter()
            .chain(["ANTP's certificates read again, of 1 suites", "ANTP's state keys read again"])
    {
        server.process.wait_for_line(line);
    }
    assert_names(&text_of(&server.query(lab, &[])), &["CN=renewed.test"]);

    // Keys of root's alone: said at the start, by `--check`, and at SIGHUP, which changes nothing.
    for file in &secret {
        set_mode(file, 0o600);
    }
    server.process.signal("-HUP");
    let line = server.process.wait_for_line("certificate not changed: ");
    assert_names(&line, &["nts.private-key", "Permission denied", "let nobody read it", "chmod 640"]);
    server.process.wait_for_line("ANTP's certificates not changed: ");
    server.process.wait_for_line("symmetric keys not changed: ");
    assert_names(&text_of(&server.query(lab, &[])), &["CN=renewed.test"]);
    assert!(server.metric("ntp_symmetric_key_reload_failures_total") >= 1.0);
    assert_served(&prober.stop());
    let (code, said) = check(&config);
    assert_eq!(code, 0, "{said}");
    let again = start(&config);
    for said in [said, again.process.log()] {
        for key in ["nts.private-key", "antp.ecdh.private-key", "symmetric.keys"] {
            let line = said.lines().find(|line| line.contains(&format!("{key} = ")));
            assert_names(
                line.unwrap_or(&said),
                &["the user nobody, whom the server becomes, cannot read it", key],
            );
        }
        assert!(!said.contains("nts.certificate-chain"), "everybody may read that: {said}");
    }
}

#[test]
fn check_looks_as_the_user_that_the_server_becomes() {
    if !is_root("to check as somebody else") {
        return;
    }
    let bench = Bench::new();
    let config = bench.lab.config("user = \"nobody\"", "");
    let state = bench.lab.state();
    assert_eq!(check(&config).0, 0);
    assert!(fs::read_dir(&state).unwrap().next().is_none(), "nothing is made");
    chown(&state, Some(0), Some(0)).unwrap();
    for (code, said) in [check(&config), run(&["serve", "--config", config.to_str().unwrap()])] {
        assert_eq!(code, 77, "{said}");
        assert_names(
            &said,
            &["server.state-directory", "Permission denied", "accessible to the user nobody"],
        );
        assert!(!said.contains("cookie-keys.lock"), "{said}");
    }
    // None yet: root would make it, below folders that the user may enter.
    fs::remove_dir(&state).unwrap();
    assert_eq!(check(&config).0, 0);
    set_mode(bench.lab.path(), 0o700);
    let (code, said) = check(&config);
    assert_eq!(code, 77, "{said}");
    assert!(!state.exists());

    let itself =
        bench.lab.config("listen = [\"0.0.0.0:11129\"]\nreference = { upstream = \"127.0.0.1:11129\" }", "");
    for (code, said) in [check(&itself), run(&["serve", "--config", itself.to_str().unwrap()])] {
        assert_eq!(code, 78, "{said}");
        assert_names(&said, &["server.reference", "127.0.0.1:11129", "the server itself", "port 11123"]);
    }
}

#[test]
fn good_certificates_are_not_given_up_for_ones_that_are_over_or_not_yet_good() {
    let lab = Lab::new();
    lab.antp_identity("ecdh", |_| {});
    let config = lab.antp_config(&["ecdh"], "", "");
    let mut server = start(&config);
    let prober = Prober::start(server.ntp);
    let over = |params: &mut rcgen::CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    };
    let early = |params: &mut rcgen::CertificateParams| params.not_before = rcgen::date_time_ymd(4000, 1, 1);
    let expiry =
        |server: &Server| server.of_certificate("nts_ke_certificate_expiry_timestamp_seconds", &lab.chain());
    let before = expiry(&server);
    lab.renew(over);
    server.process.signal("-HUP");
    let line = server.process.wait_for_line("certificate not changed: ");
    assert_names(&line, &["chain.pem", "CN=ntp.test has expired, at 2021-01-01T00:00:00Z", "renew it"]);
    let (code, said) = check(&config);
    assert_eq!(code, 78, "{said}");
    assert_names(&said, &["nts.certificate-chain", "has expired", "this host's clock"]);
    lab.renew(early);
    server.process.signal("-HUP");
    server.process.wait_for_line("is good from 4000-01-01T00:00:00Z only; renew it");
    let (code, said) = check(&config);
    assert_eq!(code, 78, "{said}");
    lab.renew(|_| {});
    lab.antp_identity("ecdh", over);
    server.process.signal("-HUP");
    server
        .process
        .wait_for_line("ANTP's certificates not changed: the certificate of CN=ntp.test has expired");
    let (code, said) = check(&config);
    assert_eq!(code, 78, "{said}");
    assert_names(&said, &["antp.ecdh.certificate-chain", "has expired"]);
    assert_eq!(expiry(&server), before);
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0));
    assert_served(&prober.stop());

    // A start is no time to judge: the host's clock may be what is wrong. One bad certificate takes another's place.
    lab.renew(over);
    let mut server = start(&config);
    assert_names(&server.process.log(), &["has expired", "clients will refuse it"]);
    lab.renew(early);
    server.process.signal("-HUP");
    server.process.wait_for_line("certificate read again");
    lab.renew(|_| {});
    server.process.signal("-HUP");
    wait_for("the good one", || (server.query(&lab, &[]).status.code() == Some(0)).then_some(()));
}

#[test]
fn private_keys_that_others_may_read_or_change_are_refused_at_start_check_and_reload() {
    let lab = Lab::new();
    lab.antp_identity("ecdh", |_| {});
    let config = lab.antp_config(&["ecdh"], "", "");
    let serve = ["serve", "--config", config.to_str().unwrap()];
    for (file, key) in [(lab.key(), "nts.private-key"), (lab.antp_key("ecdh"), "antp.ecdh.private-key")] {
        for mode in [0o644, 0o604, 0o660, 0o602] {
            set_mode(&file, mode);
            for (code, said) in [check(&config), run(&serve)] {
                assert_eq!(code, 78, "{mode:o}: {said}");
                assert_names(&said, &[key, &format!("mode {mode:o}"), "run: chmod 640", "make another key"]);
            }
        }
        for mode in [0o600, 0o400, 0o640, 0o440] {
            set_mode(&file, mode);
            assert_eq!(check(&config).0, 0, "{mode:o}");
        }
    }
    let mut server = start(&config);
    lab.renew(|params| params.distinguished_name.push(rcgen::DnType::CommonName, "renewed.test"));
    set_mode(&lab.key(), 0o644);
    set_mode(&lab.antp_key("ecdh"), 0o644);
    server.process.signal("-HUP");
    assert_names(&server.process.wait_for_line("certificate not changed: "), &["mode 644"]);
    assert_names(&server.process.wait_for_line("ANTP's certificates not changed: "), &["mode 644"]);
    assert_names(&text_of(&server.query(&lab, &[])), &["CN=ntp.test"]);

    let agent = [
        "load",
        "agent",
        "--listen",
        "127.0.0.1:0",
        "--certificate-chain",
        lab.chain().to_str().unwrap(),
        "--private-key",
        lab.key().to_str().unwrap(),
        "--coordinators-ca",
        lab.ca().to_str().unwrap(),
    ]
    .map(str::to_owned);
    let (code, said) = run(&agent.each_ref().map(String::as_str));
    assert_eq!(code, 78, "{said}");
    assert_names(&said, &["--private-key", "mode 644", "run: chmod 600"]);
}

#[test]
fn nothing_of_a_private_key_s_file_is_left_in_the_server_s_memory() {
    if !is_root("to read another process's memory") {
        return;
    }
    let lab = Lab::new();
    let mut server = start(&lab.config("", ""));
    server.process.signal("-HUP");
    server.process.wait_for_line("certificate read again");
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0));
    let pem = fs::read_to_string(lab.key()).unwrap();
    let lines: Vec<&[u8]> = pem.lines().filter(|line| !line.contains("-----")).map(str::as_bytes).collect();
    let memory = memory_of(server.process.id());
    assert!(memory.len() > 1 << 20, "{} octets, which is no server", memory.len());
    // The first line has the key itself in it.
    let left = memory.windows(32).filter(|window| *window == &lines[0][32..64]).count();
    assert_eq!(left, 0, "copies of the key's text");
}

/// All that can be written in a process's memory.
pub(crate) fn memory_of(pid: u32) -> Vec<u8> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let file = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut memory = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).unwrap());
        let mut part = vec![0; (to - from).min(64 << 20) as usize];
        // Some parts cannot be read by anyone.
        if let Ok(size) = std::os::unix::fs::FileExt::read_at(&file, &mut part, from) {
            memory.extend_from_slice(&part[..size]);
        }
    }
    memory
}
