//! Files that a user names for results: every kind of file that is there, under every command that writes one.
//!
//! All of it runs in a mount namespace with a /dev of its own: one of these runs has replaced a host's /dev/stdout.

mod folders;
mod standard;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use authentick_lab::servers::{NtpServer, Policy};

use crate::lab::{Lab, Server, authentick, is_root, program, refused, serve, text};

const RECORD: &str = "../report/tests/golden/load.json";

/// A command with its outputs: `{0}` and further ones stand for their paths, and each has these words in it then.
struct Writer {
    /// Its rows in the table.
    rows: &'static [(&'static str, &'static str)],
    command: String,
    words: &'static [&'static str],
    /// How many of [`STATES`] it is run with.
    state_count: usize,
}

impl Writer {
    const fn new(
        rows: &'static [(&'static str, &'static str)],
        command: String,
        words: &'static [&'static str],
    ) -> Self {
        Writer { rows, command, words, state_count: STATES.len() }
    }

    fn name(&self) -> &'static str {
        self.rows[0].0
    }
}

/// The servers that are loaded.
struct Servers {
    plain: NtpServer,
    /// One with metrics.
    whole: Server,
    _lab: Lab,
}

impl Servers {
    fn start() -> Self {
        let lab = Lab::new();
        Servers { plain: NtpServer::on_loopback(Policy::good()), whole: serve(&lab), _lab: lab }
    }
}

/// All that name files.
fn writers(servers: &Servers) -> Vec<Writer> {
    let (target, record) = (servers.plain.address(), fs::canonicalize(RECORD).unwrap());
    let (whole, metrics) = (servers.whole.ntp, servers.whole.metrics);
    let further = "--rate 50 --step-seconds 0.2 --unpinned --workers 1";
    vec![
        Writer::new(
            &[("load", "--record"), ("load", "--csv"), ("load", "--html")],
            format!("load plain {target} {further} --record {{0}} --csv {{1}} --html {{2}}"),
            &["\"format\"", "offered", "<html"],
        ),
        Writer::new(
            &[("load", "--spans")],
            format!("load plain {whole} {further} --server-metrics {metrics} --spans {{0}}"),
            &["offered_rps"],
        ),
        Writer::new(&[("stress", "REPORT")], format!("stress {target} 50 0.2 {{0}}"), &["NTP"]),
        Writer::new(&[("report", "--html")], format!("report {} --html {{0}}", record.display()), &["<html"]),
        Writer::new(
            &[("game trace", "--svg")],
            "game trace --protocol nts replay --svg {0}".to_owned(),
            &["<svg"],
        ),
        Writer::new(
            &[("bench mac", "--html")],
            "bench mac --quick --rounds 1 --turn-ms 1 --singles 2 --html {0}".to_owned(),
            &["<html"],
        ),
        // It plays for ten seconds and more.
        Writer {
            state_count: 1,
            ..Writer::new(
                &[("game report", "--html")],
                "game report --depth 1 --random 1 --html {0}".to_owned(),
                &["<html"],
            )
        },
    ]
}

#[test]
fn every_output_of_the_table_is_tried() {
    let servers = Servers::start();
    let tried: BTreeSet<_> = writers(&servers).iter().flat_map(|writer| writer.rows).copied().collect();
    assert_eq!(tried, table::FILES.into_iter().collect());
    let folders: BTreeSet<_> = folders::WRITERS.iter().map(|writer| writer.row).collect();
    assert_eq!(folders, table::FOLDERS.into_iter().collect());
}

/// What is there: how it is made at `$p`, and what holds afterwards, when `$w` is to be in it.
struct State {
    name: &'static str,
    prepare: &'static str,
    check: &'static str,
}

/// After each of these the command ends as it would with a plain file.
const STATES: [State; 9] = [
    State { name: "dangling link", prepare: "ln -s $p.to $p", check: "test -L $p && grep -q \"$w\" $p.to" },
    State { name: "new", prepare: "", check: "grep -q \"$w\" $p" },
    State {
        name: "link",
        prepare: "echo old > $p.to; ln -s $p.to $p",
        check: "test -L $p && grep -q \"$w\" $p.to",
    },
    State {
        name: "pipe",
        prepare: "mkfifo $p; timeout 60 cat $p > $p.got 2> /dev/null &",
        check: "for i in $(seq 100); do grep -q \"$w\" $p.got && break; sleep 0.05; done; test -p $p && \
                grep -q \"$w\" $p.got",
    },
    State {
        name: "bind mount",
        prepare: "echo old > $p.host; touch $p; mount --bind $p.host $p",
        check: "grep -q \"$w\" $p.host && ! grep -qx old $p.host",
    },
    State {
        name: "writable file in a read-only folder",
        prepare: "mkdir $p.ro; touch $p.rw $p.ro/f; mount --bind $p.ro $p.ro; mount -o remount,ro,bind $p.ro; \
                  mount --bind $p.rw $p.ro/f; ln -s $p.ro/f $p",
        check: "grep -q \"$w\" $p.rw",
    },
    State {
        name: "name of 255 octets",
        prepare: "l=$(printf 'n%.0s' $(seq 255)); mkdir $p.d; echo old > $p.d/$l; ln -s $p.d/$l $p",
        check: "grep -q \"$w\" $p.d/nnn* && [ $(ls -A $p.d | wc -l) = 1 ]",
    },
    State {
        name: "another owner",
        prepare: "echo old > $p; chown 65534:65534 $p; chmod 640 $p",
        check: "grep -q \"$w\" $p && [ \"$(stat -c %u:%g:%a $p)\" = 65534:65534:640 ]",
    },
    State { name: "two names", prepare: "echo old > $p; ln $p $p.other", check: "grep -q \"$w\" $p.other" },
];

/// Runs a script as root of its own mounts, with a private /dev.
fn in_mounts(folder: &Path, script: &str) -> Output {
    const HEAD: &str = r#"
        set -eu; mount --make-rprivate /; mkdir -p dev; mount -t tmpfs none dev
        for d in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0 ptmx:5:2; do
            IFS=: read n a b <<< "$d"; mknod dev/$n c $a $b; chmod 666 dev/$n
        done
        mkdir dev/pts; mount --bind /dev/pts dev/pts; ln -s /proc/self/fd dev/fd
        for n in 0:stdin 1:stdout 2:stderr; do ln -s /proc/self/fd/${n%%:*} dev/${n##*:}; done
        mount --rbind dev /dev; set +e
    "#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-c", &format!("{HEAD}{script}")]).current_dir(folder);
    command.env("A", program().path()).output().unwrap()
}

fn has_rights() -> bool {
    is_root("to mount what outputs are written to")
}

#[test]
fn output_to_every_kind_of_file_is_written_where_it_leads() {
    if !has_rights() {
        return;
    }
    let servers = Servers::start();
    let mut failures = Vec::new();
    for writer in writers(&servers) {
        for state in &STATES[..writer.state_count] {
            let folder = tempfile::tempdir().unwrap();
            fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            let paths: Vec<String> = (0..writer.words.len())
                .map(|index| format!("{}/o{index}", folder.path().display()))
                .collect();
            let mut command = writer.command.clone();
            let (mut prepare, mut check) = (String::new(), String::new());
            for (index, (path, word)) in paths.iter().zip(writer.words).enumerate() {
                command = command.replace(&format!("{{{index}}}"), path);
                prepare += &format!("p={path}; {}\n", state.prepare);
                check += &format!("p={path}; w='{word}'; {} || {{ echo LOST $p; exit 9; }}\n", state.check);
            }
            let script = format!("{prepare}$A {command} > out 2> err; rc=$?\n{check}[ $rc = 0 -o $rc = 3 ]");
            let output = in_mounts(folder.path(), &script);
            if !output.status.success() {
                let err = fs::read_to_string(folder.path().join("err")).unwrap_or_default();
                failures.push(format!("{} x {}: {}{err}", writer.name(), state.name, text(&output)));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn standard_output_by_name_is_a_file_a_pipe_or_a_terminal() {
    if !has_rights() {
        return;
    }
    let servers = Servers::start();
    for writer in writers(&servers).iter().filter(|writer| writer.state_count > 1) {
        for name in ["/dev/stdout", "/proc/self/fd/1", "-"] {
            if name == "-" && writer.words.len() > 1 {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let mut command = writer.command.clone();
            for index in 0..writer.words.len() {
                command = command.replace(&format!("{{{index}}}"), name);
            }
            let words: String =
                writer.words.iter().map(|word| format!("grep -q '{word}' $f || exit 9; ")).collect();
            let script = format!(
                "$A {command} > file 2> err; $A {command} 2>> err | cat > piped; \
                 script -qec \"$A {command}\" typed > /dev/null 2>&1 < /dev/null\n\
                 test -L /dev/stdout || exit 8; for f in file piped typed; do {words} done"
            );
            let output = in_mounts(folder.path(), &script);
            let err = fs::read_to_string(folder.path().join("err")).unwrap_or_default();
            assert!(output.status.success(), "{} to {name}: {}{err}", writer.name(), text(&output));
        }
    }
}

#[test]
fn full_disk_keeps_the_old_file_and_names_each_that_is_lost() {
    if !has_rights() {
        return;
    }
    let servers = Servers::start();
    // Rows of spans are written as they come, over what was there.
    let is_whole = |writer: &&Writer| writer.state_count > 1 && writer.rows != [("load", "--spans")];
    for writer in writers(&servers).iter().filter(is_whole) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = writer.command.clone();
        let (mut prepare, mut check) = (String::new(), String::new());
        for index in 0..writer.words.len() {
            let path = format!("disk/o{index}");
            command = command.replace(&format!("{{{index}}}"), &path);
            prepare += &format!("echo old > {path}; ");
            check +=
                &format!("[ \"$(cat {path})\" = old ] || exit 9; grep -q 'disk/o{index}' err || exit 8; ");
        }
        let script = format!(
            "mkdir disk; mount -t tmpfs -o size=64k none disk; {prepare} dd if=/dev/zero of=disk/fill 2> /dev/null; \
             $A {command} > out 2> err; [ $? != 0 ] || exit 7; {check}"
        );
        let output = in_mounts(folder.path(), &script);
        let err = fs::read_to_string(folder.path().join("err")).unwrap_or_default();
        assert!(output.status.success(), "{}: {:?} {}{err}", writer.name(), output.status, text(&output));
    }
}

#[test]
fn one_file_named_twice_is_refused_and_keeps_its_octets() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["run.json", "old.json"] {
        fs::copy(RECORD, at(name)).unwrap();
    }
    std::os::unix::fs::symlink(at("run.json"), at("link.json")).unwrap();
    fs::hard_link(at("run.json"), at("other.json")).unwrap();
    let whole = fs::read(RECORD).unwrap();
    let server = NtpServer::on_loopback(Policy::good());
    let target = server.address().to_string();
    let (run, old) = (at("run.json"), at("old.json"));
    for arguments in [
        vec!["report", &run, "--html", &run],
        vec!["report", &run, "--html", &at("link.json")],
        vec!["report", &run, "--html", &at("other.json")],
        vec!["report", &run, "--against", &old, "--html", &old],
        vec!["load", "plain", &target, "--record", &run, "--csv", &run],
        vec!["load", "plain", &target, "--record", &run, "--html", &at("link.json")],
    ] {
        refused(&authentick(arguments.iter().copied()), 64, &["are one file; name another one"]);
        assert!(fs::read(&run).unwrap() == whole && fs::read(&old).unwrap() == whole, "{arguments:?}");
    }
    assert_eq!(server.counts().received, 0, "nothing was sent");
    // Devices and terminals may be named as often as one likes.
    let twice =
        ["load", "plain", &target, "--step-seconds", "0.2", "--record", "/dev/null", "--csv", "/dev/null"];
    let output = authentick(twice);
    assert!(!text(&output).contains("one file"), "{}", text(&output));
}

#[test]
fn pipe_without_a_reader_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let server = NtpServer::on_loopback(Policy::good());
    let target = server.address().to_string();
    let output = authentick(["load", "plain", &target, "--record", pipe.to_str().unwrap()]);
    refused(&output, 75, &["waiting 10 s for a reader", "no reader opened the pipe within 10 s"]);
    assert_eq!(text(&output).matches("waiting 10 s").count(), 1, "{}", text(&output));
    assert_eq!(server.counts().received, 0);
}

#[test]
fn lost_standard_output_is_a_failure_and_a_reader_that_left_is_none() {
    let run =
        |script: &str| Command::new("bash").args(["-c", script]).env("A", program().path()).output().unwrap();
    for command in ["--help", "--version", "game list", "game list --json", "doctor --host"] {
        let output = run(&format!("$A {command} > /dev/full"));
        refused(&output, 70, &["cannot write to standard output"]);
        let output = run(&format!("$A {command} | true; exit ${{PIPESTATUS[0]}}"));
        assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), ""), "{command}");
    }
}
