//! Certificates by the names that clients ask for, their renewals under load, and root's hand-over of what root alone
//! can read.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use authentick_ke::client::{self, Ask};
use authentick_ke::tls::{Roots, client_config};
use authentick_lab::certificates::write_private;
use authentick_wire::ke::AeadId;
use rcgen::{CertificateParams, DnType, date_time_ymd};
use rustls::pki_types::ServerName;

use crate::hostile_files::memory_of;
use crate::lab::{Lab, Server, authentick, is_root, program, refused, start, text, wait_for};

/// The files of a table, and what it has besides.
struct Table {
    folder: PathBuf,
    more: &'static str,
}

impl Table {
    fn new(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).unwrap();
        Table { folder, more: "" }
    }

    fn chain(&self) -> PathBuf {
        self.folder.join("fullchain.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.join("privkey.pem")
    }

    /// The texts of a new certificate of the lab's authority and of its key.
    fn issue(
        lab: &Lab,
        title: &str,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> [String; 2] {
        lab.renew(|params| {
            *params = CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
                .unwrap();
            params.distinguished_name.push(DnType::CommonName, title);
            change(params);
        });
        [lab.chain(), lab.key()].map(|file| fs::read_to_string(file).unwrap())
    }

    fn put(&self, [chain, key]: &[String; 2]) {
        fs::write(self.chain(), chain).unwrap();
        write_private(&self.key(), key);
    }
}

/// Writes a configuration with tables instead of the lab's pair.
fn config(lab: &Lab, server: &str, nts: &str, tables: &[&Table]) -> PathBuf {
    let file = lab.config(server, nts);
    let text = fs::read_to_string(&file).unwrap();
    let is_pair =
        |line: &&str| !line.starts_with("certificate-chain = ") && !line.starts_with("private-key = ");
    let mut text: String = text.lines().filter(is_pair).map(|line| format!("{line}\n")).collect();
    for table in tables {
        text += &format!(
            "[[nts.certificate]]\ncertificate-chain = {:?}\nprivate-key = {:?}\n{}\n",
            table.chain(),
            table.key(),
            table.more
        );
    }
    fs::write(&file, text).unwrap();
    file
}

/// Whom the certificate names that a client is shown who asks for `name`, or for nothing.
fn shown(server: &Server, name: Option<&str>) -> String {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-alpn", "ntske/1", "-connect", &server.ke.to_string()]);
    match name {
        Some(name) => command.args(["-servername", name]),
        None => command.arg("-noservername"),
    };
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = text(&output);
    let subject = said.lines().find_map(|line| line.trim().strip_prefix("subject="));
    subject.unwrap_or_else(|| panic!("{said}")).rsplit('=').next().unwrap().trim().to_owned()
}

/// Exchanges keys as a client of `name`; whom the certificate names.
fn exchange(roots: &Roots, address: SocketAddr, name: &str) -> Result<String, String> {
    let ask = Ask {
        tls: client_config(roots.clone()),
        server_name: ServerName::try_from(name.to_owned()).unwrap(),
        aeads: vec![AeadId::SIV_CMAC_256],
    };
    let dialled =
        client::dial(&ask, &[address], Duration::from_secs(20)).map_err(|error| error.to_string())?;
    Ok(dialled.established.certificate.unwrap().subject)
}

fn roots(lab: &Lab) -> Roots {
    Roots::from_pem(&fs::read(lab.ca()).unwrap()).unwrap()
}

/// Has the server read its files again, and waits until it has read what `tables` have.
fn reload(server: &Server, tables: usize) -> String {
    let lines = || {
        let log = server.process.log();
        log.matches("certificate read again").count() + log.matches("certificate not changed").count()
    };
    let before = lines();
    let length = server.process.log().len();
    server.process.signal("-HUP");
    wait_for("certificates to be read", || (lines() >= before + tables).then_some(()));
    server.process.log()[length..].to_owned()
}

#[test]
fn clients_get_the_certificate_of_the_name_that_they_ask_for() {
    let lab = Lab::new();
    let [a, wild] = ["a", "wild"].map(|name| Table::new(lab.path().join(name)));
    let listed = Table { more: "names = [\"B.test\"]", ..Table::new(lab.path().join("listed")) };
    a.put(&Table::issue(&lab, "a 1", &["a.test", "127.0.0.1"], |_| {}));
    wild.put(&Table::issue(&lab, "wild 1", &["*.wild.test"], |_| {}));
    listed.put(&Table::issue(&lab, "listed 1", &["b.test", "c.test"], |_| {}));
    let file = config(&lab, "", "", &[&a, &wild, &listed]);
    let server = start(&file);
    for (name, expected) in [
        (Some("a.test"), "a 1"),
        (Some("x.wild.test"), "wild 1"),
        (Some("X.WILD.test"), "wild 1"),
        (Some("x.y.wild.test"), "a 1"),
        (Some("b.test"), "listed 1"),
        // Of its certificate, but not of its table.
        (Some("c.test"), "a 1"),
        (Some("unknown.test"), "a 1"),
        (None, "a 1"),
    ] {
        assert_eq!(shown(&server, name), expected, "{name:?}");
    }
    let roots = roots(&lab);
    assert_eq!(exchange(&roots, server.ke, "x.wild.test").unwrap(), "CN=wild 1");
    let error = exchange(&roots, server.ke, "c.test").unwrap_err();
    assert!(error.contains("certificate name"), "{error}");
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0), "an address is no name that is asked for");
    let page = server.get("/metrics");
    for (table, name) in [(&a, "a.test"), (&wild, "*.wild.test"), (&listed, "b.test")] {
        let labels = format!("{{certificate={:?},name=\"{name}\"}}", table.chain());
        assert!(page.contains(&format!("nts_ke_certificate_expiry_timestamp_seconds{labels}")), "{page}");
    }
    // Both forms at once.
    let both = fs::read_to_string(&file).unwrap().replace("[nts]\n", "[nts]\nprivate-key = \"/k\"\n");
    fs::write(&file, both).unwrap();
    let output = authentick(["serve", "--check", "--config", file.to_str().unwrap()]);
    refused(&output, 78, &["nts.private-key = \"/k\"", "beside tables [[nts.certificate]]"]);
}

#[test]
fn no_exchange_fails_while_one_of_two_certificates_is_renewed_well_and_badly() {
    const THREADS: usize = 3;
    let lab = Lab::new();
    let [a, b] = ["a", "b"].map(|name| Table::new(lab.path().join(name)));
    let issue = |title: &str| Table::issue(&lab, title, &["b.test"], |_| {});
    a.put(&Table::issue(&lab, "a 1", &["a.test"], |_| {}));
    b.put(&issue("b 1"));
    let limits = "ke-limits = { per-prefix-rate = 0, per-network-rate = 0 }";
    let server = start(&config(&lab, "", limits, &[&a, &b]));
    let (roots, is_over, count) = (roots(&lab), AtomicBool::new(false), AtomicUsize::new(0));
    let over = |params: &mut CertificateParams| {
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        for name in ["a.test", "b.test"] {
                            let subject = exchange(&roots, server.ke, name).unwrap();
                            assert!(subject.starts_with(&format!("CN={}", &name[..1])), "{name}: {subject}");
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        // The clients end with this, also if it panics.
        let end = End(&is_over);
        let mut expected = "b 1".to_owned();
        let mut number = 1;
        let mut step = |damage: &dyn Fn(&[String; 2]), part: Option<&str>| {
            number += 1;
            let title = format!("b {number}");
            let pair = issue(&title);
            // What came before may have left something else in its place.
            let _ = fs::remove_file(b.chain());
            b.put(&pair);
            damage(&pair);
            let log = reload(&server, 2);
            assert!(log.contains("certificate read again: CN=a 1"), "{log}");
            match part {
                Some(part) => {
                    assert!(log.contains("certificate not changed: ") && log.contains(part), "{log}");
                }
                None => expected = title,
            }
            assert_eq!([shown(&server, Some("b.test")), shown(&server, None)], [&*expected, "a 1"], "{log}");
            let refused = server.of_certificate("nts_ke_certificate_refused", &b.chain());
            assert_eq!(refused, f64::from(u8::from(part.is_some())));
        };
        for _ in 0..3 {
            step(&|_| {}, None);
        }
        step(&|[chain, _]| fs::write(b.chain(), &chain[..200]).unwrap(), Some("PEM certificate"));
        step(&|[_, key]| fs::write(b.key(), &key[..100]).unwrap(), Some("has no end"));
        step(&|_| {}, None);
        step(&|_| assert!(fs::copy(a.chain(), b.chain()).is_ok()), Some("does not belong"));
        step(&|_| assert!(fs::copy(a.key(), b.key()).is_ok()), Some("does not belong"));
        step(&|_| b.put(&Table::issue(&lab, "b over", &["b.test"], over)), Some("has expired"));
        let looped = |_: &[String; 2]| {
            fs::remove_file(b.chain()).unwrap();
            symlink(b.chain(), b.chain()).unwrap();
        };
        step(&looped, Some("symbolic links"));
        step(&|_| {}, None);
        drop(end);
        for client in clients {
            client.join().unwrap();
        }
    });
    let count = count.into_inner() as f64;
    assert!(count > 20.0, "{count}");
    // A connection is counted when it ends, after its client has what it came for.
    wait_for("all exchanges to be counted", || {
        (server.metric("nts_ke_connections_total{outcome=\"served\"}") >= count).then_some(())
    });
    let metric = |name: &str, table: &Table| {
        server.of_certificate(&format!("nts_ke_certificate_{name}_total"), &table.chain())
    };
    assert_eq!(metric("reloads", &b), 5.0);
    // A look of the server's own may fall between two files that are written.
    assert!(metric("reload_failures", &b) >= 6.0, "{}", metric("reload_failures", &b));
    assert_eq!([metric("reloads", &a), metric("reload_failures", &a)], [0.0, 0.0]);
}

/// Says so when it is dropped.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The way of kubelet: a folder of each version, and a link that another one is renamed over.
#[test]
fn secret_that_kubelet_swaps_is_read_again_under_landlock() {
    let lab = Lab::new();
    let secret = tempfile::tempdir().unwrap();
    let version = |number: u32| {
        let folder = secret.path().join(format!("..{number}"));
        fs::create_dir(&folder).unwrap();
        let table = Table { folder, more: "" };
        table.put(&Table::issue(&lab, &format!("version {number}"), &["a.test"], |_| {}));
        let link = secret.path().join("..data_tmp");
        symlink(format!("..{number}"), &link).unwrap();
        fs::rename(&link, secret.path().join("..data")).unwrap();
    };
    version(1);
    for name in ["fullchain.pem", "privkey.pem"] {
        symlink(format!("..data/{name}"), secret.path().join(name)).unwrap();
    }
    let table = Table { folder: secret.path().to_owned(), more: "" };
    let server = start(&config(&lab, "", "", &[&table]));
    version(2);
    fs::remove_dir_all(secret.path().join("..1")).unwrap();
    assert!(reload(&server, 1).contains("certificate read again: CN=version 2"));
    assert_eq!(shown(&server, None), "version 2");
}

#[test]
fn sighup_takes_other_tables_at_once_but_for_folders_that_need_a_restart() {
    if authentick_daemon::containment::offer().landlock.is_err() {
        return authentick_lab::skip::skip("this kernel has no Landlock");
    }
    let lab = Lab::new();
    let [a, b] = ["a", "b"].map(|name| Table::new(lab.path().join(name)));
    for (table, title, name) in [(&a, "a 1", "a.test"), (&b, "b 1", "b.test")] {
        table.put(&Table::issue(&lab, title, &[name], |_| {}));
    }
    let server = start(&config(&lab, "", "", &[&a]));
    assert_eq!(shown(&server, Some("b.test")), "a 1");
    let _ = config(&lab, "", "", &[&b, &a]);
    let log = reload(&server, 2);
    assert!(log.contains("configuration: in force now: nts.certificate"), "{log}");
    assert_eq!([shown(&server, Some("a.test")), shown(&server, None)], ["a 1", "b 1"]);
    // A folder that the rules of this process do not have.
    let elsewhere = tempfile::tempdir().unwrap();
    let far = Table::new(elsewhere.path().to_owned());
    far.put(&Table::issue(&lab, "far", &["far.test"], |_| {}));
    let _ = config(&lab, "", "", &[&far]);
    let log = reload(&server, 1);
    let parts = [
        "a restart is needed: a contained server reads only folders that its configuration named when it started",
        "configuration: a restart is needed for changes of nts.certificate",
        "certificate not changed: ",
        elsewhere.path().to_str().unwrap(),
    ];
    for part in parts {
        assert!(log.contains(part), "{part:?} is not in {log}");
    }
    assert!(!log.contains("in force now"), "{log}");
    assert_eq!([shown(&server, Some("a.test")), shown(&server, None)], ["a 1", "b 1"], "they serve on");
    drop(server);
    let server = start(&lab.path().join("authentick.toml"));
    assert_eq!(shown(&server, Some("a.test")), "far");
}

/// The program with the rights that a service for it has: root's name, two capabilities, no network.
fn hand_over(config: &Path, group: &str) -> std::process::Output {
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-all,+chown,+dac_read_search", "--inh-caps=-all", "--"])
        .arg(program().path());
    command.args(["certificates", "hand-over", "--group", group, "--config"]).arg(config).output().unwrap()
}

#[test]
fn keys_of_root_s_alone_are_handed_over_to_a_server_that_is_nobody() {
    if !is_root("to hand over what root alone can read") {
        return;
    }
    const GROUP: &str = "nogroup";
    let lab = Lab::new();
    fs::set_permissions(lab.path(), Permissions::from_mode(0o755)).unwrap();
    let [a, b] = ["live/a", "live/b"].map(|name| Table::new(lab.path().join(name)));
    // As certbot has it: nobody but root enters, and nobody but root reads the key.
    fs::set_permissions(lab.path().join("live"), Permissions::from_mode(0o700)).unwrap();
    a.put(&Table::issue(&lab, "a 1", &["a.test", "127.0.0.1"], |_| {}));
    b.put(&Table::issue(&lab, "b 1", &["b.test"], |_| {}));
    assert_eq!(fs::metadata(b.key()).unwrap().mode() & 0o7777, 0o600);
    let run = lab.path().join("run");
    let nobody = "user = \"nobody\"";
    let file = config(&lab, nobody, &format!("hand-over = {run:?}"), &[&a, &b]);
    let serve = |more: &[&str]| {
        let mut words = vec!["serve", "--config", file.to_str().unwrap()];
        words.extend(more);
        authentick(words)
    };
    for output in [serve(&["--check"]), serve(&[])] {
        let parts = ["nts.hand-over", "the hand-over has not run yet", "authentick certificates hand-over"];
        refused(&output, 78, &parts);
    }
    let output = hand_over(&file, GROUP);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(text(&output).matches("written ").count(), 2, "{}", text(&output));
    for entry in fs::read_dir(&run).unwrap() {
        let metadata = entry.unwrap().metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o7777), (0, 65534, 0o640));
    }
    assert_eq!(serve(&["--check"]).status.code(), Some(0));
    let server = start(&file);
    assert!(!server.process.log().contains("cannot read it"), "{}", server.process.log());
    assert_eq!([shown(&server, None), shown(&server, Some("b.test"))], ["a 1", "b 1"]);
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0));

    // One is renewed, the other badly: that one is named, and stays.
    a.put(&Table::issue(&lab, "a 2", &["a.test", "127.0.0.1"], |_| {}));
    let output = serve(&["--check"]);
    assert!(text(&output).contains("the hand-over has not run since it was renewed"), "{}", text(&output));
    fs::copy(a.key(), b.key()).unwrap();
    let output = hand_over(&file, GROUP);
    refused(
        &output,
        78,
        &["nts.certificate.private-key", "live/b/privkey.pem", "does not belong", "made for"],
    );
    assert_eq!(text(&output).matches("written ").count(), 1, "{}", text(&output));
    reload(&server, 2);
    assert_eq!([shown(&server, None), shown(&server, Some("b.test"))], ["a 2", "b 1"]);
    assert!(!server.process.log().contains("certificate not changed"), "{}", server.process.log());

    // Neither chain nor key, which are in one file, leave anything of the key in memory that is given back.
    let memory = memory_of(server.process.id());
    assert!(memory.len() > 1 << 20, "{} octets, which is no server", memory.len());
    let secret = fs::read_to_string(a.key()).unwrap().lines().nth(1).unwrap().as_bytes()[32..64].to_vec();
    assert_eq!(memory.windows(32).filter(|window| *window == secret).count(), 0, "copies of the key's text");

    // The table is gone, and so is its file.
    let file = config(&lab, nobody, &format!("hand-over = {run:?}"), &[&a]);
    let output = hand_over(&file, GROUP);
    assert!(text(&output).contains("unchanged ") && text(&output).contains("removed "), "{}", text(&output));
    assert_eq!(fs::read_dir(&run).unwrap().count(), 1);
    let output = hand_over(&config(&lab, nobody, "", &[&a]), GROUP);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("nothing to do"), "{}", text(&output));
    let file = config(&lab, "", &format!("hand-over = {run:?}"), &[&a]);
    let words = ["certificates", "hand-over", "--config", file.to_str().unwrap()];
    refused(&crate::operator::as_nobody(lab.path(), &words), 77, &["nts.hand-over", "run this as root"]);
}
