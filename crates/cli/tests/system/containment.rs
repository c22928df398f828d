//! What a running server has given up, as the kernel tells it, however it was started; and that it serves on without.

use std::collections::BTreeMap;
use std::fs::{copy, create_dir_all, read_dir, read_to_string, remove_file, set_permissions, write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use authentick_lab::kernel::without_landlock;
use authentick_lab::process::Process;

use crate::lab::{Lab, Server, authentick, is_root, serve, start, text, wait_for};

/// ENOSYS and EOPNOTSUPP. errno(3).
const NO_LANDLOCK: [i32; 2] = [38, 95];

/// The lines of a `status` of proc(5).
fn status(path: &Path) -> BTreeMap<String, String> {
    let text = read_to_string(path.join("status")).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
}

/// Asserts that no thread of the process has rights, or can get or keep any; the bounding set goes only with root's.
#[track_caller]
fn assert_contained(process: &Process, threads: usize, bounding_set_is_empty: bool) {
    let of_process = PathBuf::from(format!("/proc/{}", process.id()));
    // The last thread to put its filter on is the one that started the others.
    let tasks = wait_for("every thread to have a filter", || {
        let tasks = read_dir(of_process.join("task")).unwrap();
        let tasks: Vec<_> = tasks.map(|task| status(&task.unwrap().path())).collect();
        (tasks.len() == threads && tasks.iter().all(|task| task["Seccomp"] == "2")).then_some(tasks)
    });
    for task in tasks {
        let name = &task["Name"];
        assert_eq!(task["NoNewPrivs"], "1", "{name}");
        for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
            assert_eq!(task[set], "0".repeat(16), "{name}: {set}");
        }
        assert_eq!(task["CapBnd"] == "0".repeat(16), bounding_set_is_empty, "{name}: {}", task["CapBnd"]);
    }
    let limits = read_to_string(of_process.join("limits")).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"]);
}

/// Whether others of the process's own user may look at its memory: what is not dumpable belongs to root in /proc.
fn may_be_read(process: &Process, user: &str) -> bool {
    let environment = format!("/proc/{}/environ", process.id());
    let output = Command::new("setpriv")
        .args([
            "--reuid",
            user,
            "--regid",
            user,
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
            "--",
        ])
        .args(["cat", &environment])
        .output()
        .unwrap();
    output.status.success()
}

fn refused_count(server: &Server) -> f64 {
    let kinds = ["packet", "key-exchange", "public-key", "metrics", "clock", "supervisor", "log", "control"];
    let count = |kind| server.metric(&format!("ntp_server_refused_system_calls_total{{thread=\"{kind}\"}}"));
    kinds.into_iter().map(count).sum()
}

#[test]
fn server_that_root_started_keeps_nothing_whoever_it_becomes() {
    if !is_root("to have rights to give away") {
        return;
    }
    for user in ["root", "nobody"] {
        let lab = Lab::new();
        set_permissions(lab.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let server = start(&lab.config(&format!("user = \"{user}\""), "ke-workers = 2"));
        // ntp-0, ke-0, ke-1, metrics, clock, supervisor, log, signals and the first.
        assert_contained(&server.process, 9, true);
        if user == "nobody" {
            assert!(!may_be_read(&server.process, "65534"), "it is not dumpable");
        }
        assert!(server.query(&lab, &[]).status.success());
        assert_eq!(refused_count(&server), 0.0);
        let log = server.process.log();
        assert!(log.contains("contained: ") && log.contains("system calls by thread"), "{log}");
    }
}

/// As a unit of systemd with `AmbientCapabilities=CAP_NET_BIND_SERVICE` starts it.
#[test]
fn server_that_was_given_one_capability_drops_it_when_its_port_is_bound() {
    if !is_root("to give a capability to a user") {
        return;
    }
    let lab = Lab::new();
    set_permissions(lab.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let (program, config) = (lab.path().join("authentick"), lab.path().join("plain.toml"));
    copy(env!("CARGO_BIN_EXE_authentick"), &program).unwrap();
    write(&config, "[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = 2\n").unwrap();
    let mut server = Process::start(
        Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .args(["--inh-caps=-all,+net_bind_service", "--ambient-caps=-all,+net_bind_service", "--"])
            .arg(program)
            .args(["serve", "--config", config.to_str().unwrap()]),
    );
    server.wait_for_line("serving time on ");
    // Two workers, clock, supervisor, log, signals and the first.
    assert_contained(&server, 7, false);
    assert!(!may_be_read(&server, "65534"), "it is not dumpable");
}

#[test]
fn switch_leaves_all_of_it_out_and_says_so() {
    let lab = Lab::new();
    let server = start(&lab.config("containment = \"off\"", ""));
    let status = status(&PathBuf::from(format!("/proc/{}", server.process.id())));
    assert_eq!((status["NoNewPrivs"].as_str(), status["Seccomp"].as_str()), ("0", "0"));
    assert!(server.query(&lab, &[]).status.success());
    let log = server.process.log();
    assert!(log.contains("not contained: server.containment is \"off\""), "{log}");
}

/// Puts the lab's certificate and key in place as certbot does, for the `number`th time.
fn deploy(lab: &Lab, etc: &Path, number: u32) {
    let (live, archive) = (etc.join("live/ntp.test"), etc.join("archive/ntp.test"));
    create_dir_all(&live).unwrap();
    create_dir_all(&archive).unwrap();
    for (from, name) in [(lab.chain(), "fullchain"), (lab.key(), "privkey")] {
        let file = format!("{name}{number}.pem");
        copy(from, archive.join(&file)).unwrap();
        let link = live.join(format!("{name}.pem"));
        let _ = remove_file(&link);
        symlink(format!("../../archive/ntp.test/{file}"), link).unwrap();
    }
}

/// The lab's configuration with certificate and key where [`deploy`] puts them.
fn with_certbot(lab: &Lab, etc: &Path) -> PathBuf {
    let config = lab.config("", "");
    let live = etc.join("live/ntp.test");
    let text = read_to_string(&config)
        .unwrap()
        .replace(&format!("{:?}", lab.chain()), &format!("{:?}", live.join("fullchain.pem")))
        .replace(&format!("{:?}", lab.key()), &format!("{:?}", live.join("privkey.pem")));
    write(&config, text).unwrap();
    config
}

fn renew(lab: &Lab, etc: &Path, number: u32, server: &Server) {
    lab.renew(|_| {});
    deploy(lab, etc, number);
    server.process.signal("-HUP");
    let read = || {
        (server.process.log().matches("certificate read again").count() == number as usize - 1).then_some(())
    };
    wait_for("the renewed certificate", read);
    assert!(server.query(lab, &["--count", "2"]).status.success());
    let log = server.process.log();
    assert!(!log.contains("not changed"), "{log}");
}

#[test]
fn certificate_that_certbot_renews_is_read_again_under_landlock() {
    let lab = Lab::new();
    let etc = lab.path().join("letsencrypt");
    deploy(&lab, &etc, 1);
    let server = start(&with_certbot(&lab, &etc));
    for number in [2, 3] {
        renew(&lab, &etc, number, &server);
    }
    assert_eq!(refused_count(&server), 0.0);
}

#[test]
fn server_without_landlock_in_its_kernel_says_so_and_has_the_rest() {
    let output = without_landlock(NO_LANDLOCK[0], || authentick(["doctor", "--host"]));
    assert!(text(&output).contains("without Landlock: this kernel has none"), "{}", text(&output));
    for errno in NO_LANDLOCK {
        let lab = Lab::new();
        let etc = lab.path().join("letsencrypt");
        deploy(&lab, &etc, 1);
        let config = with_certbot(&lab, &etc);
        let server = without_landlock(errno, || start(&config));
        let log = server.process.log();
        assert!(log.contains("; not here: Landlock (this kernel "), "{log}");
        assert!(log.contains("no new privileges, no capabilities, no core files, not dumpable"), "{log}");
        renew(&lab, &etc, 2, &server);
    }
}

/// A file that lies in no folder of the configuration's is out of reach, though its owner is the server's user.
#[test]
fn file_outside_the_configured_folders_is_not_read_even_through_a_link() {
    if authentick_daemon::containment::offer().landlock.is_err() {
        return authentick_lab::skip::skip("this kernel has no Landlock");
    }
    let (lab, elsewhere) = (Lab::new(), Lab::new());
    let etc = lab.path().join("letsencrypt");
    deploy(&lab, &etc, 1);
    let server = start(&with_certbot(&lab, &etc));
    let link = etc.join("live/ntp.test/privkey.pem");
    remove_file(&link).unwrap();
    symlink(elsewhere.key(), &link).unwrap();
    server.process.signal("-HUP");
    let refused = || {
        server.process.log().lines().find(|line| line.contains("certificate not changed")).map(str::to_owned)
    };
    let line = wait_for("the refusal", refused);
    assert!(line.contains("Permission denied") && line.contains("privkey.pem"), "{line}");
    assert!(server.query(&lab, &[]).status.success(), "the one before stays in force");
}

#[test]
fn server_stops_in_order_under_its_filters() {
    let lab = Lab::new();
    let mut server = serve(&lab);
    for _ in 0..3 {
        server.process.signal("-HUP");
    }
    server.process.signal("-TERM");
    assert_eq!(server.process.wait(), 0, "{}", server.process.log());
    assert!(server.process.log().contains("stopping on SIGTERM"), "{}", server.process.log());
}
