//! Files that are not what they should be: put there by the user that the server runs as, held by a process that has
//! been stopped, on a disk that is full, gone, or out of reach once rights are given up.
//!
//! Whose user the server runs as must gain nothing from what root's command line does in its directory; and nothing
//! that happens to a file may cost a client an answer.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use authentick_lab::prober::{Probe, Prober, lost_count};
use authentick_lab::process::{PATIENCE, Process};
use authentick_wire::header::Leap;

use crate::lab::{Lab, Server, authentick, is_root, program, refused, start, text, wait_for};

/// The user `nobody`, and its group.
const NOBODY: u32 = 65534;

/// A folder that everybody may enter, with a state directory and a folder for keys that are nobody's, and files of
/// root's that nobody may touch.
struct Bench {
    lab: Lab,
}

/// What can be put in a file's place.
const PLANTS: [&str; 6] = ["link", "dangling link", "hard link", "pipe", "directory", "endless device"];

impl Bench {
    fn new() -> Self {
        let lab = Lab::new();
        set_mode(lab.path(), 0o755);
        let bench = Bench { lab };
        for folder in [bench.lab.state(), bench.theirs()] {
            fs::create_dir(&folder).unwrap();
            give(&folder);
            set_mode(&folder, 0o700);
        }
        fs::write(bench.victim(), "content").unwrap();
        set_mode(&bench.victim(), 0o600);
        bench
    }

    /// A folder that belongs to nobody.
    fn theirs(&self) -> PathBuf {
        self.lab.path().join("theirs")
    }

    fn victim(&self) -> PathBuf {
        self.lab.path().join("victim")
    }

    fn nowhere(&self) -> PathBuf {
        self.lab.path().join("nowhere")
    }

    /// Puts something in the place of `path`, as its directory's owner could.
    fn plant(&self, what: &str, path: &Path) {
        remove(path);
        match what {
            "link" => symlink(self.victim(), path).unwrap(),
            "dangling link" => symlink(self.nowhere(), path).unwrap(),
            "hard link" => fs::hard_link(self.victim(), path).unwrap(),
            "pipe" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
            "directory" => fs::create_dir(path).unwrap(),
            "endless device" => symlink("/dev/zero", path).unwrap(),
            other => panic!("{other}"),
        }
        if ["pipe", "directory"].contains(&what) {
            give(path);
        }
    }

    /// Root's files are as they were, and none was made where the dangling link leads to.
    #[track_caller]
    fn assert_unharmed(&self, case: &str) {
        let victim = fs::metadata(self.victim()).unwrap();
        assert_eq!((victim.uid(), victim.gid(), victim.mode() & 0o7777), (0, 0, 0o600), "{case}");
        assert_eq!(fs::read(self.victim()).unwrap(), b"content", "{case}");
        assert!(!self.nowhere().exists(), "{case}");
        assert_eq!(fs::metadata("/dev/zero").unwrap().uid(), 0, "{case}");
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir(path);
}

/// Runs the binary to its end, which must come soon; its exit code and what it said.
#[track_caller]
fn run(arguments: &[&str]) -> (i32, String) {
    // Twice as long as anything may take here, and then an exit code that is nobody else's.
    let seconds = (2 * PATIENCE.as_secs()).to_string();
    let output = Command::new("timeout").arg(seconds).arg(program().path()).args(arguments).output().unwrap();
    let code = output.status.code().unwrap();
    assert_ne!(code, 124, "it did not end: {}", text(&output));
    (code, text(&output))
}

/// Each plant in the place of each of these files in turn, while root runs the command.
fn try_all_plants(bench: &Bench, files: &[PathBuf], arguments: &[&str]) {
    for file in files {
        let kept = fs::read(file).ok();
        for what in PLANTS {
            let case = format!("{what} at {}", file.display());
            bench.plant(what, file);
            let (code, said) = run(arguments);
            assert!([0, 77, 78].contains(&code), "{case}: {code} {said}");
            bench.assert_unharmed(&case);
            remove(file);
            if let Some(kept) = &kept {
                fs::write(file, kept).unwrap();
                set_mode(file, 0o600);
                give(file);
            }
        }
    }
    let (code, said) = run(arguments);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn root_gives_away_nothing_that_is_planted_in_the_state_directory() {
    if !is_root("to be robbed") {
        return;
    }
    let bench = Bench::new();
    let state = bench.lab.state();
    let keys = |verb: &'static str| ["keys", verb, "--state-directory", state.to_str().unwrap()];
    assert_eq!(authentick(keys("generate")).status.code(), Some(0));
    let files = ["cookie-keys.lock", "cookie-keys.new", "cookie-keys"].map(|name| state.join(name));
    try_all_plants(&bench, &files, &keys("rotate"));
    for file in fs::read_dir(&state).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().uid(), NOBODY, "{}", file.path().display());
    }
    remove(&state.join("cookie-keys"));
    for what in PLANTS {
        bench.plant(what, &files[0]);
        let (code, said) = run(&keys("generate"));
        assert!([77, 78].contains(&code), "{what}: {code} {said}");
        bench.assert_unharmed(what);
    }
}

#[test]
fn root_gives_away_nothing_that_is_planted_beside_symmetric_keys() {
    if !is_root("to be robbed") {
        return;
    }
    let bench = Bench::new();
    let file = bench.theirs().join("keys");
    let verb = |verb: &'static str| ["keys", "symmetric", verb, "--keys", file.to_str().unwrap()];
    assert_eq!(authentick(verb("generate")).status.code(), Some(0));
    assert_eq!(fs::metadata(&file).unwrap().uid(), NOBODY);
    let files = ["keys.lock", "keys.new", "keys"].map(|name| bench.theirs().join(name));
    try_all_plants(&bench, &files, &verb("generate"));
}

#[test]
fn link_of_root_s_leads_to_the_keys_and_stays() {
    if !is_root("to act for another user") {
        return;
    }
    let bench = Bench::new();
    let (file, link) = (bench.lab.path().join("keys"), bench.lab.path().join("link"));
    fs::write(&file, "1 AES128 HEX:7EA62AE64D190114D46D5A082F948EC1\n").unwrap();
    set_mode(&file, 0o640);
    give(&file);
    symlink("keys", &link).unwrap();
    let output = authentick(["keys", "symmetric", "rotate", "1", "--keys", link.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().uid(), NOBODY, "it keeps its owner");
    assert!(fs::read_to_string(&file).unwrap().contains("\n2 AES128 HEX:"));
    // Where a group may write, anyone of it could put something in the way.
    set_mode(bench.lab.path(), 0o775);
    let output = authentick(["keys", "symmetric", "rotate", "2", "--keys", link.to_str().unwrap()]);
    refused(&output, 78, &["not touched as root", "chmod go-w"]);
}

#[test]
fn state_directory_is_made_where_nobody_can_meddle_or_by_the_server_s_own_user() {
    if !is_root("to have rights to give away") {
        return;
    }
    let bench = Bench::new();
    let config = |state: &Path| {
        let file = bench.lab.config("user = \"nobody\"", "");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace(bench.lab.state().to_str().unwrap(), state.to_str().unwrap())).unwrap();
        file
    };
    let by_itself = bench.theirs().join("state");
    drop(start(&config(&by_itself)));
    assert_eq!(fs::metadata(&by_itself).unwrap().uid(), NOBODY);
    assert_eq!(fs::metadata(&by_itself).unwrap().mode() & 0o7777, 0o700);
    // A link in its place leads root nowhere.
    let linked = bench.theirs().join("linked");
    symlink(bench.nowhere(), &linked).unwrap();
    let (code, said) = run(&["serve", "--config", config(&linked).to_str().unwrap()]);
    assert!([77, 78].contains(&code), "{code} {said}");
    bench.assert_unharmed("a link in the place of the state directory");
    // A third user could put one there in between.
    let between = bench.lab.path().join("third");
    fs::create_dir(&between).unwrap();
    chown(&between, Some(1), Some(1)).unwrap();
    let (code, said) = run(&["serve", "--config", config(&between.join("state")).to_str().unwrap()]);
    assert_eq!(code, 78, "{said}");
    assert!(said.contains("install -d -m 700 -o USER"), "{said}");
    assert!(!between.join("state").exists());
}

/// A process that holds the lock of a file and has been stopped. It ends with this at the latest.
struct StoppedHolder(Process);

impl StoppedHolder {
    fn of(file: &Path) -> Self {
        let script = "echo held; kill -STOP $$";
        let mut command = Command::new("flock");
        let mut process = Process::start(command.arg("--no-fork").arg(file).args(["sh", "-c", script]));
        process.wait_for_line("held");
        StoppedHolder(process)
    }

    /// Lets it go on, to its end.
    fn let_go(mut self) {
        self.0.signal("-CONT");
        assert_eq!(self.0.wait(), 0);
    }
}

#[test]
fn lock_of_a_stopped_process_keeps_nobody_for_ever() {
    let lab = Lab::new();
    let config = lab.config("", "cookie-keys = { rotate = \"1s\", keep = 60 }");
    let mut server = start(&config);
    let (file, state) = (lab.state().join("cookie-keys.lock"), lab.state());
    let holder = StoppedHolder::of(&file);
    let prober = Prober::start(server.ntp);
    let line = server.process.wait_for_line("cookie keys not rotated: ");
    let stopped = format!("locked by process {};", holder.0.id());
    let named = ["cookie-keys.lock", &stopped, "seals on"];
    named.iter().for_each(|part| assert!(line.contains(part), "{part:?} is not in {line:?}"));
    assert!(server.metric("nts_cookie_key_rotation_failures_total") >= 1.0);
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0));
    assert_served(&prober.stop());
    // It stops when it is told to, and starts, as a file that is there is read without the lock.
    server.process.signal("-TERM");
    assert_eq!(server.process.wait(), 0, "{}", server.process.log());
    drop(start(&config));

    // The command says for whom it waits, and goes on when that process does.
    let arguments = ["keys", "rotate", "--state-directory", state.to_str().unwrap()];
    let mut command = Process::start(Command::new(program().path()).args(arguments));
    let line = command.wait_for_line("locked by process ");
    assert!(line.contains("which is stopped"), "{line}");
    holder.let_go();
    assert_eq!(command.wait(), 0, "{}", command.log());
}

#[test]
fn key_file_that_is_gone_is_written_again_and_costs_no_client_a_cookie() {
    let lab = Lab::new();
    let mut server = start(&lab.config("", "cookie-keys = { rotate = \"2s\", keep = 60 }"));
    let (prober, file) = (Prober::start(server.ntp), lab.state().join("cookie-keys"));
    let mut client = Process::start(Command::new(program().path()).args([
        "query",
        &server.ke.ip().to_string(),
        "--ke-port",
        &server.ke.port().to_string(),
        "--ca",
        lab.ca().to_str().unwrap(),
        "--count",
        "30",
        "--interval",
        "0.2",
        "--json",
    ]));
    wait_for("the client's first exchange", || (server.outcome("nts") >= 1.0).then_some(()));
    fs::remove_file(&file).unwrap();
    server.process.wait_for_line("cookie-keys was gone; the keys in force are written to it again");
    // Said before it is done.
    wait_for("the file", || file.exists().then_some(()));
    fs::remove_file(&file).unwrap();
    server.process.signal("-HUP");
    wait_for("the file", || file.exists().then_some(()));
    assert_eq!(client.wait(), 0, "{}", client.log());
    assert_eq!(server.outcome("nts"), 30.0);
    assert_eq!(server.metric("nts_ke_connections_accepted_total"), 1.0, "no cookie was refused");
    assert!(server.metric("nts_cookie_key_rotations_total") >= 1.0);
    assert_eq!(server.metric("nts_cookie_key_rotation_failures_total"), 0.0);
    assert_served(&prober.stop());
}

/// `serve --check`, or `serve` where it must not start: exit code, and what it said.
fn check(config: &Path) -> (i32, String) {
    run(&["serve", "--check", "--config", config.to_str().unwrap()])
}

#[track_caller]
fn assert_names(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

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
    assert_eq!(server.metric("ntp_symmetric_key_reload_failures_total"), 1.0);
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

fn text_of(output: &std::process::Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(output));
    text(output)
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
    let expiry = server.metric("nts_ke_certificate_expiry_timestamp_seconds");
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
    assert_eq!(server.metric("nts_ke_certificate_expiry_timestamp_seconds"), expiry);
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
fn memory_of(pid: u32) -> Vec<u8> {
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

/// A rotation has failed, for this reason, and is counted.
fn wait_for_failure(server: &mut Server, part: &str) {
    let failures = "nts_cookie_key_rotation_failures_total";
    server.process.wait_for_line(part);
    wait_for("a failure in the metrics", || (server.metric(failures) >= 1.0).then_some(()));
}

#[test]
fn server_serves_on_whatever_is_put_in_the_place_of_its_keys() {
    if !is_root("to have rights to give away") {
        return;
    }
    // One server for each file, side by side, as after a failure the next attempt comes half a minute later.
    std::thread::scope(|scope| {
        for name in ["cookie-keys.lock", "cookie-keys", "cookie-keys.new"] {
            scope.spawn(move || try_plants_on_a_server(name));
        }
    });
}

/// Each plant in the place of this file of a server that rotates, is told to read everything again, and asked.
fn try_plants_on_a_server(name: &str) {
    let bench = Bench::new();
    let lab = &bench.lab;
    give(&lab.key());
    let mut server = start(&lab.config("user = \"nobody\"", "cookie-keys = { rotate = \"2s\", keep = 60 }"));
    let (prober, file) = (Prober::start(server.ntp), lab.state().join(name));
    let kept = fs::read(&file).ok();
    for what in PLANTS {
        bench.plant(what, &file);
        server.process.signal("-HUP");
        assert_eq!(server.query(lab, &[]).status.code(), Some(0), "{what} at {name}");
        bench.assert_unharmed(what);
    }
    // The last one stays, and is what the rotation meets. A link is no obstacle to what is renamed over it.
    bench.plant("directory", &file);
    wait_for_failure(&mut server, "cookie keys not rotated: ");
    let line = server.process.wait_for_line("cookie keys not rotated: ");
    assert_names(&line, &["cookie-keys", "seals on"]);
    assert_served(&prober.so_far());
    remove(&file);
    if let Some(kept) = kept {
        fs::write(&file, kept).unwrap();
        set_mode(&file, 0o600);
        give(&file);
    }
    server.process.signal("-HUP");
    assert_eq!(server.query(lab, &[]).status.code(), Some(0));
    assert_served(&prober.stop());
    bench.assert_unharmed(name);
    server.process.signal("-TERM");
    assert_eq!(server.process.wait(), 0, "{}", server.process.log());
}

#[test]
fn disk_that_is_full_or_read_only_costs_no_client_anything() {
    if !is_root("to mount a file system") {
        return;
    }
    std::thread::scope(|scope| {
        for case in ["full", "read-only"] {
            scope.spawn(move || try_disk(case));
        }
    });
}

/// A server whose state directory is a disk of its own, which cannot be written to after a while.
fn try_disk(case: &str) {
    let lab = Lab::new();
    fs::create_dir(lab.state()).unwrap();
    let mount = |options: &str| {
        let arguments = ["-t", "tmpfs", "-o", options, "tmpfs"];
        Command::new("mount").args(arguments).arg(lab.state()).status().unwrap().success()
    };
    if !mount("size=16k,mode=700") {
        authentick_lab::skip::skip("a tmpfs cannot be mounted here");
        return;
    }
    let unmount = Unmount(lab.state());
    let config = lab.config("", "cookie-keys = { rotate = \"2s\", keep = 60 }");
    let mut server = start(&config);
    let prober = Prober::start(server.ntp);
    let reason = match case {
        "full" => {
            let fill = fs::write(lab.state().join("filler"), vec![1; 64 * 1024]);
            assert_eq!(fill.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
            "No space left"
        }
        _ => {
            assert!(mount("remount,ro"));
            "Read-only file system"
        }
    };
    wait_for_failure(&mut server, reason);
    server.process.signal("-HUP");
    server.process.wait_for_line("cookie keys read again");
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0), "{case}");
    assert_served(&prober.stop());
    // A start tells what it cannot write to, a full disk when it comes to that.
    let (code, said) = check(&config);
    let expected = if case == "full" { 0 } else { 78 };
    assert_eq!(code, expected, "{case}: {said}");
    assert!(code == 0 || said.contains(reason), "{said}");
    server.process.signal("-TERM");
    assert_eq!(server.process.wait(), 0, "{}", server.process.log());
    drop(server);
    drop(unmount);
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// None of these requests was lost, and each was told the time.
#[track_caller]
fn assert_served(probes: &[Probe]) {
    assert!(!probes.is_empty());
    assert_eq!(lost_count(probes), 0, "of {}", probes.len());
    for probe in probes {
        let told = probe.told.unwrap();
        assert_eq!((told.leap, told.stratum), (Leap::None, 1), "{told:?}");
    }
}
