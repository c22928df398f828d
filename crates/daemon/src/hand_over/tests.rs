//! What root hands over, and to whom it does not.

use std::os::unix::fs::{lchown, symlink};

use authentick_lab::skip::is_root;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tempfile::TempDir;

use super::*;

/// A group that Debian, Alpine and others have; nobody's and not root's.
const GROUP: &str = "daemon";
const USER: u32 = 65534;

/// A folder of root's with pairs, and one in which they are handed over.
struct Bench {
    folder: TempDir,
    group: u32,
}

impl Bench {
    /// `None`, with a word of why, where there is no root.
    fn new() -> Option<Self> {
        let bench = Bench {
            folder: tempfile::tempdir().unwrap(),
            group: privilege::find_group(GROUP).unwrap().expect("a group of the base system"),
        };
        is_root("to hand over what root alone can read").then_some(bench)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Puts a new pair where a table looks for it; the certificate's name is that of the folder.
    fn put(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![format!("{name}.example")]).unwrap();
        change(&mut params);
        let chain = params.self_signed(&key).unwrap().pem();
        fs::create_dir_all(self.at(name)).unwrap();
        for (kind, text, mode) in [("chain", chain, 0o644), ("key", key.serialize_pem(), 0o600)] {
            let path = self.at(name).join(kind);
            fs::write(&path, text).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
    }

    fn config(&self, names: &[&str]) -> Config {
        let mut text = format!("[nts]\nhand-over = {:?}\n", self.at("run"));
        for name in names {
            let [chain, key] = ["chain", "key"].map(|kind| self.at(name).join(kind));
            text += &format!("[[nts.certificate]]\ncertificate-chain = {chain:?}\nprivate-key = {key:?}\n");
        }
        Config::parse(&self.at("test.toml"), &text).unwrap()
    }

    fn hand_over(&self, names: &[&str]) -> HandOver {
        hand_over(&self.config(names), GROUP).unwrap().unwrap()
    }

    /// Where the pair of a table is handed over.
    fn file(&self, name: &str) -> PathBuf {
        self.config(&[name]).exchange().unwrap().certificates[0].handed_over.clone().unwrap()
    }
}

fn assert_failed(report: &HandOver, parts: &[&str]) {
    let [failed] = &report.failed[..] else { panic!("{report:?}") };
    for part in parts {
        assert!(failed.to_string().contains(part), "{part:?} is not in {failed}");
    }
}

#[test]
fn pairs_become_files_of_root_s_that_the_group_reads_and_are_written_only_if_they_change() {
    let Some(bench) = Bench::new() else { return };
    bench.put("a", |_| {});
    bench.put("b", |_| {});
    let [a, b] = ["a", "b"].map(|name| bench.file(name));
    let report = bench.hand_over(&["a", "b"]);
    assert_eq!(report.done, [Done::Written(a.clone()), Done::Written(b.clone())]);
    assert!(report.failed.is_empty(), "{report:?}");
    let shown = |path: &Path| {
        let metadata = fs::symlink_metadata(path).unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777, metadata.ino())
    };
    assert_eq!((shown(&bench.at("run")).1, shown(&bench.at("run")).2), (bench.group, 0o750));
    for (file, name) in [(&a, "a"), (&b, "b")] {
        let (uid, gid, mode, _) = shown(file);
        assert_eq!((uid, gid, mode), (0, bench.group, 0o640));
        let pem = fs::read(file).unwrap();
        assert_eq!(Identity::from_pem(&pem, &pem).unwrap().certificate.names, [format!("{name}.example")]);
    }
    // Nothing new, one renewed, and one whose file somebody has given rights to.
    let before = shown(&a);
    assert_eq!(bench.hand_over(&["a", "b"]).done, [Done::Unchanged(a.clone()), Done::Unchanged(b.clone())]);
    assert_eq!(shown(&a), before);
    bench.put("a", |_| {});
    fs::set_permissions(&b, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(bench.hand_over(&["a", "b"]).done, [Done::Written(a.clone()), Done::Written(b.clone())]);
    assert_ne!(shown(&a).3, before.3, "another file has the name");
    assert_eq!(shown(&b).2, 0o640);
}

#[test]
fn blocks_without_a_line_end_between_are_all_handed_over() {
    let Some(bench) = Bench::new() else { return };
    bench.put("a", |_| {});
    let chain = fs::read_to_string(bench.at("a/chain")).unwrap();
    fs::write(bench.at("a/chain"), format!("M\u{fc}nchen\n{}{chain}", chain.trim_end())).unwrap();
    assert_eq!(bench.hand_over(&["a"]).done, [Done::Written(bench.file("a"))]);
    let pem = fs::read_to_string(bench.file("a")).unwrap();
    assert_eq!(pem.matches(&chain).count(), 2, "{pem}");
}

#[test]
fn bad_pair_leaves_what_was_there_and_holds_up_no_other() {
    let Some(bench) = Bench::new() else { return };
    bench.put("a", |_| {});
    bench.put("b", |_| {});
    bench.hand_over(&["a", "b"]);
    let old = fs::read(bench.file("a")).unwrap();
    let over = |params: &mut CertificateParams| {
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    };
    let early = |params: &mut CertificateParams| params.not_before = date_time_ymd(4000, 1, 1);
    let harms: [(&dyn Fn(), &[&str]); 5] = [
        (&|| bench.put("a", over), &["nts.certificate.certificate-chain", "has expired", "renew it"]),
        (&|| bench.put("a", early), &["nts.certificate.certificate-chain", "is good from", "clock"]),
        (
            &|| assert!(fs::copy(bench.at("b/key"), bench.at("a/key")).is_ok()),
            &["nts.certificate.private-key", "does not belong", "made for"],
        ),
        (&|| fs::write(bench.at("a/chain"), "-----BEGIN CERTIFICATE-----\n").unwrap(), &["PEM certificate"]),
        (&|| fs::remove_file(bench.at("a/key")).unwrap(), &["private-key", "name a file that exists"]),
    ];
    for (harm, parts) in harms {
        bench.put("a", |_| {});
        harm();
        bench.put("b", |_| {});
        let report = bench.hand_over(&["a", "b"]);
        assert_failed(&report, parts);
        assert_eq!(report.done, [Done::Written(bench.file("b"))], "{parts:?}");
        assert!(fs::read(bench.file("a")).unwrap() == old, "{parts:?}");
    }
    // Without a better one: this host's clock may be what is wrong.
    fs::remove_file(bench.file("a")).unwrap();
    bench.put("a", over);
    assert_failed(&bench.hand_over(&["a"]), &["has expired"]);
    bench.put("a", early);
    assert_eq!(bench.hand_over(&["a", "b"]).done[0], Done::Written(bench.file("a")));
}

#[test]
fn files_of_tables_that_are_gone_are_removed_and_no_others() {
    let Some(bench) = Bench::new() else { return };
    for name in ["a", "b"] {
        bench.put(name, |_| {});
    }
    bench.hand_over(&["a", "b"]);
    // Of an operator: dated, without a first line of ours; and of another configuration.
    let foreign = ["wildcard.example.net-20261128.pem", "other-0a0a0a0a.pem", ".authentick-0123456789abcdef"];
    let texts = ["text", "# handed over by authentick for \"/etc/other.toml\"\ntext", ""];
    for (name, text) in foreign.into_iter().zip(texts) {
        fs::write(bench.at("run").join(name), text).unwrap();
    }
    // What a crash has left behind: a part of the first line.
    let half_made = bench.at("run/.authentick-00112233aabbccdd");
    fs::write(&half_made, &marker(&bench.config(&["a"]))[..20]).unwrap();
    let report = bench.hand_over(&["a"]);
    let removed = [half_made, bench.file("b")].map(Done::Removed);
    assert_eq!(report.done, [vec![Done::Unchanged(bench.file("a"))], removed.to_vec()].concat());
    assert!(foreign.iter().all(|name| bench.at("run").join(name).exists()) && bench.file("a").exists());
    // A table whose pair is bad keeps its file.
    fs::write(bench.at("a/key"), "").unwrap();
    let report = bench.hand_over(&["a"]);
    assert!(report.done.is_empty() && report.failed.len() == 1 && bench.file("a").exists(), "{report:?}");
}

#[test]
fn directory_that_is_not_root_s_alone_is_refused() {
    let Some(bench) = Bench::new() else { return };
    bench.put("a", |_| {});
    let run = bench.at("run");
    let refused = |part: &str| {
        let error = hand_over(&bench.config(&["a"]), GROUP).unwrap_err().to_string();
        assert!(error.contains("nts.hand-over") && error.contains(part), "{part:?} is not in {error}");
        assert!(error.contains("name a directory of root's"), "{error}");
    };
    fs::create_dir(&run).unwrap();
    for mode in [0o775, 0o757, 0o1777] {
        fs::set_permissions(&run, Permissions::from_mode(mode)).unwrap();
        refused("write to");
    }
    fs::set_permissions(&run, Permissions::from_mode(0o755)).unwrap();
    chown(&run, Some(USER), None).unwrap();
    refused("belongs to another user than root");
    // A link of another user's, to a directory of root's.
    fs::remove_dir(&run).unwrap();
    fs::create_dir(bench.at("root-s")).unwrap();
    symlink(bench.at("root-s"), &run).unwrap();
    lchown(&run, Some(USER), None).unwrap();
    refused("belongs to another user than root");
    assert!(fs::read_dir(bench.at("root-s")).unwrap().next().is_none());
    fs::remove_file(&run).unwrap();
    fs::write(&run, "").unwrap();
    refused("not a directory");
    // Planted before the directory became root's alone: what it leads to is not written to.
    fs::remove_file(&run).unwrap();
    fs::create_dir(&run).unwrap();
    let target = bench.at("target");
    fs::write(&target, "precious").unwrap();
    symlink(&target, bench.file("a")).unwrap();
    assert_eq!(bench.hand_over(&["a"]).done, [Done::Written(bench.file("a"))]);
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    assert!(fs::symlink_metadata(bench.file("a")).unwrap().is_file());
    let error = hand_over(&bench.config(&["a"]), "no such group").unwrap_err().to_string();
    assert!(error.contains("there is no group no such group") && error.contains("--group"), "{error}");
}

#[test]
fn user_who_leads_to_a_pair_gets_none_handed_over_but_its_own() {
    let Some(bench) = Bench::new() else { return };
    bench.put("root-s", |_| {});
    bench.put("user-s", |_| {});
    chown(bench.at("user-s"), Some(USER), None).unwrap();
    for kind in ["chain", "key"] {
        chown(bench.at("user-s").join(kind), Some(USER), None).unwrap();
    }
    assert_eq!(bench.hand_over(&["user-s"]).done, [Done::Written(bench.file("user-s"))]);
    // Its chain may be anybody's; the key is root's, and only a link to it is the user's.
    for kind in ["chain", "key"] {
        fs::remove_file(bench.at("user-s").join(kind)).unwrap();
        symlink(bench.at("root-s").join(kind), bench.at("user-s").join(kind)).unwrap();
    }
    let report = bench.hand_over(&["user-s"]);
    assert_failed(
        &report,
        &[
            "nts.certificate.certificate-chain",
            "that another user can change",
            "give it to the owner of the link",
        ],
    );
    // Where a whole group may write, nobody is responsible.
    chown(bench.at("user-s"), Some(0), None).unwrap();
    fs::set_permissions(bench.at("user-s"), Permissions::from_mode(0o775)).unwrap();
    assert_failed(&bench.hand_over(&["user-s"]), &["others may write to"]);
}

#[test]
fn without_a_directory_there_is_nothing_to_do() {
    for text in ["", "[nts]\nke-listen = []\n", "[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n"] {
        let config = Config::parse(Path::new("test.toml"), text).unwrap();
        assert!(hand_over(&config, GROUP).unwrap().is_none(), "{text}");
    }
}
