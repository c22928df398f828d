//! Renewals of every kind, good and bad, over real files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use tempfile::TempDir;

use super::*;
use crate::advertised::Advertiser;
use crate::containment::Process;

/// Two tables, a.example and b.example, and what looks after them.
struct Bench {
    folder: TempDir,
    config: Config,
    containment: Containment,
    state: ExchangeState,
    certificates: Certificates,
    now: Instant,
}

/// A self-signed certificate for a name with a title, and its key.
fn pair(title: &str, name: &str, change: impl FnOnce(&mut CertificateParams)) -> [String; 2] {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, title);
    change(&mut params);
    [params.self_signed(&key).unwrap().pem(), key.serialize_pem()]
}

fn write(path: &Path, text: &str, mode: u32) {
    let _ = fs::remove_file(path);
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn put(at: [&Path; 2], [chain, key]: &[String; 2]) {
    write(at[0], chain, 0o644);
    write(at[1], key, 0o600);
}

fn parse(folder: &Path, nts: &str) -> Config {
    let text = format!(
        "[server]\nuser = \"root\"\ncontainment = \"off\"\nstate-directory = {:?}\n[nts]\n{nts}",
        folder.join("state")
    );
    Config::parse(&folder.join("test.toml"), &text).unwrap()
}

fn table(folder: &Path, name: &str) -> String {
    let [chain, key] = ["chain", "key"].map(|kind| folder.join(format!("{name}-{kind}.pem")));
    format!("[[nts.certificate]]\ncertificate-chain = {chain:?}\nprivate-key = {key:?}\n")
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let nts = ["a", "b"].map(|name| table(folder.path(), name)).concat();
        let config = parse(folder.path(), &nts);
        for name in ["a", "b"] {
            let [chain, key] = ["chain", "key"].map(|kind| folder.path().join(format!("{name}-{kind}.pem")));
            put([&chain, &key], &pair(&format!("{name} 1"), &format!("{name}.example"), |_| {}));
        }
        Bench::of(folder, config)
    }

    fn of(folder: TempDir, config: Config) -> Self {
        let exchange = config.exchange().unwrap();
        let in_force = load(&config, exchange).unwrap();
        let now = Instant::now();
        let certificates = Certificates::new(&in_force, &config, now);
        let containment = Containment::begin(&config, Process::Shared);
        let state = ExchangeState::new(in_force, Advertiser::new(exchange, &[]));
        Bench { folder, config, containment, state, certificates, now }
    }

    fn at(&self, name: &str) -> [PathBuf; 2] {
        ["chain", "key"].map(|kind| self.folder.path().join(format!("{name}-{kind}.pem")))
    }

    fn put(&self, name: &str, pair: &[String; 2]) {
        put(self.at(name).each_ref().map(PathBuf::as_path), pair);
    }

    /// The next look at the files; what is logged.
    fn look(&mut self) -> Vec<Line> {
        self.now += LOOK_INTERVAL;
        assert!(self.certificates.is_due(self.now));
        self.certificates.look(&self.config, &self.containment, &self.state, self.now)
    }

    /// SIGHUP, with another `[nts]`; what is logged.
    fn reload(&mut self, nts: &str) -> Vec<Line> {
        self.config = parse(self.folder.path(), nts);
        let exchange = self.config.exchange().unwrap();
        self.certificates.reload(&self.config, exchange, &self.containment, &self.state, self.now)
    }

    /// The certificate that a client gets who asks for this name.
    fn served(&self, name: &str) -> String {
        let in_force = self.state.certificates();
        let title = in_force.by_name().choose(Some(name)).certificate.title().to_owned();
        title.trim_start_matches("CN=").to_owned()
    }

    /// How often a table was renewed, how often that failed, and whether its files were refused.
    fn counts(&self, index: usize) -> (u64, u64, bool) {
        let served = self.state.certificates().served()[index].clone();
        (served.reloads.done.get(), served.reloads.failed.get(), served.is_refused)
    }
}

fn over(params: &mut CertificateParams) {
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
}

#[test]
fn each_bad_renewal_leaves_its_own_pair_in_force_and_holds_up_no_other() {
    let half = |text: &str| text[..text.len() / 2].to_owned();
    type Harm = Box<dyn Fn(&Bench, &[String; 2])>;
    let harm = |harm: fn(&Bench, &[String; 2])| Box::new(harm) as Harm;
    let [chain_at, key_at] = [0, 1].map(|part| move |bench: &Bench| bench.at("a")[part].clone());
    let harms: [(&str, &str, Harm); 11] = [
        ("half of the chain", "broken PEM certificate", {
            Box::new(move |bench, [chain, key]| bench.put("a", &[half(chain), key.clone()]))
        }),
        ("half of the key", "broken PEM private key: line 1", {
            Box::new(move |bench, [chain, key]| bench.put("a", &[chain.clone(), half(key)]))
        }),
        ("the key before the chain", "does not belong", {
            Box::new(move |bench, [_, key]| write(&key_at(bench), key, 0o600))
        }),
        ("the key of the other table", "does not belong", {
            Box::new(move |bench, [chain, _]| {
                write(&chain_at(bench), chain, 0o644);
                fs::copy(&bench.at("b")[1], key_at(bench)).unwrap();
            })
        }),
        ("a key that others may read", "mode 644", {
            Box::new(move |bench, pair| {
                bench.put("a", pair);
                fs::set_permissions(key_at(bench), Permissions::from_mode(0o644)).unwrap();
            })
        }),
        (
            "no key",
            "name a file that exists",
            Box::new(move |bench, _| fs::remove_file(key_at(bench)).unwrap()),
        ),
        ("a folder", "not a file", {
            Box::new(move |bench, _| {
                fs::remove_file(chain_at(bench)).unwrap();
                fs::create_dir(chain_at(bench)).unwrap();
            })
        }),
        ("a loop of links", "symbolic links", {
            Box::new(move |bench, _| {
                fs::remove_file(chain_at(bench)).unwrap();
                symlink(chain_at(bench), chain_at(bench)).unwrap();
            })
        }),
        ("nothing in the files", "no PEM", harm(|bench, _| bench.put("a", &[String::new(), String::new()]))),
        ("a certificate that is over", "has expired", {
            harm(|bench, _| bench.put("a", &pair("a over", "a.example", over)))
        }),
        ("a certificate of the future", "is good from 4000-01-01", {
            harm(|bench, _| {
                let early = |params: &mut CertificateParams| params.not_before = date_time_ymd(4000, 1, 1);
                bench.put("a", &pair("a early", "a.example", early));
            })
        }),
    ];
    for (what, part, harm) in harms {
        let mut bench = Bench::new();
        let fresh = pair("a 2", "a.example", |_| {});
        harm(&bench, &fresh);
        bench.put("b", &pair("b 2", "b.example", |_| {}));
        let lines = bench.look();
        let [Err(line), Ok(done)] = &lines[..] else { panic!("{what}: {lines:?}") };
        assert!(line.starts_with("certificate not changed: ") && line.contains(part), "{what}: {line}");
        assert_eq!(done, "certificate read again: CN=b 2", "{what}");
        assert_eq!([bench.served("a.example"), bench.served("b.example")], ["a 1", "b 2"], "{what}");
        assert_eq!((bench.counts(0), bench.counts(1)), ((0, 1, true), (1, 0, false)), "{what}");
        // Nothing new: it is neither counted nor logged again.
        assert!(bench.look().is_empty(), "{what}");
        assert_eq!(bench.counts(0), (0, 1, true), "{what}");
        let _ = fs::remove_dir(&bench.at("a")[0]);
        bench.put("a", &fresh);
        assert_eq!(bench.look(), [Ok("certificate read again: CN=a 2".to_owned())], "{what}");
        assert_eq!((bench.served("a.example"), bench.counts(0)), ("a 2".to_owned(), (1, 1, false)), "{what}");
    }
}

#[test]
fn renewals_are_seen_however_files_change() {
    let bench = Bench::new();
    let at = |path: &str| bench.folder.path().join(path);
    for folder in ["live", "archive", "tls/..1", "tls/..2"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    let chain_and_key =
        |folder: &str, number: u32| ["chain", "key"].map(|kind| at(&format!("{folder}/{kind}{number}.pem")));
    let put_at = |[chain, key]: &[PathBuf; 2], title: &str| {
        put([chain, key], &pair(title, "a.example", |_| {}));
    };
    // As certbot: links in `live`, which are made anew.
    let link = |number: u32| {
        for (file, kind) in chain_and_key("archive", number).iter().zip(["chain", "key"]) {
            let link = at(&format!("live/{kind}.pem"));
            let _ = fs::remove_file(&link);
            symlink(Path::new("../archive").join(file.file_name().unwrap()), link).unwrap();
        }
    };
    put_at(&chain_and_key("archive", 1), "1");
    link(1);
    // As kubelet: a link to a folder, which another one is renamed over.
    put_at(&["chain", "key"].map(|kind| at(&format!("tls/..1/{kind}"))), "1");
    symlink("..1", at("tls/..data")).unwrap();
    for kind in ["chain", "key"] {
        symlink(format!("..data/{kind}"), at(&format!("tls/{kind}"))).unwrap();
    }
    let nts =
        |chain: PathBuf, key: PathBuf| format!("certificate-chain = {chain:?}\nprivate-key = {key:?}\n");
    let watched = |nts: String| {
        let config = parse(bench.folder.path(), &nts);
        Bench::of(tempfile::tempdir().unwrap(), config)
    };
    let renewed = |bench: &mut Bench| {
        assert_eq!(bench.served("any"), "1");
        assert!(bench.look().is_empty());
        move |bench: &mut Bench| {
            assert_eq!(bench.look(), [Ok("certificate read again: CN=2".to_owned())]);
            assert_eq!((bench.served("any"), bench.counts(0)), ("2".to_owned(), (1, 0, false)));
        }
    };
    let mut certbot = watched(nts(at("live/chain.pem"), at("live/key.pem")));
    let is_renewed = renewed(&mut certbot);
    put_at(&chain_and_key("archive", 2), "2");
    link(2);
    is_renewed(&mut certbot);

    let mut kubelet = watched(nts(at("tls/chain"), at("tls/key")));
    let is_renewed = renewed(&mut kubelet);
    put_at(&["chain", "key"].map(|kind| at(&format!("tls/..2/{kind}"))), "2");
    symlink("..2", at("tls/..data_tmp")).unwrap();
    fs::rename(at("tls/..data_tmp"), at("tls/..data")).unwrap();
    is_renewed(&mut kubelet);

    put_at(&chain_and_key("archive", 3), "1");
    let [chain, key] = chain_and_key("archive", 3);
    let mut renamed = watched(nts(chain.clone(), key.clone()));
    let is_renewed = renewed(&mut renamed);
    put_at(&chain_and_key("archive", 4), "2");
    let [new_chain, new_key] = chain_and_key("archive", 4);
    fs::rename(new_chain, &chain).unwrap();
    fs::rename(new_key, &key).unwrap();
    is_renewed(&mut renamed);
}

#[test]
fn certificate_of_tomorrow_is_put_in_force_when_its_time_has_come() {
    let mut bench = Bench::new();
    let begin = authentick_net::clock::unix_seconds() + 2;
    let early = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(1970, 1, 1) + Duration::from_secs(begin);
    };
    bench.put("a", &pair("a 2", "a.example", early));
    assert!(matches!(&bench.look()[..], [Err(line)] if line.contains("is good from")));
    while authentick_net::clock::unix_seconds() < begin {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(bench.look(), [Ok("certificate read again: CN=a 2".to_owned())], "the files are the same");
    assert_eq!(bench.counts(0), (1, 1, false));
}

#[test]
fn refusals_are_logged_once_a_minute_at_most_and_the_same_one_once_an_hour() {
    let (start, mut told) = (Instant::now(), Told::default());
    let mut lines = Vec::new();
    // Each half minute files are changed to something else that is bad, for ten minutes; then they stay as they are.
    for turn in 0..600 {
        let problem = format!("problem {}", turn.min(20));
        if told.is_due(&problem, start + turn * LOOK_INTERVAL) {
            lines.push(turn);
        }
    }
    let expected: Vec<u32> =
        (0..=10).map(|minute| 2 * minute).chain((1..=4).map(|hour| 20 + 120 * hour)).collect();
    assert_eq!(lines, expected);
}

#[test]
fn other_tables_are_taken_at_once_and_a_mistake_takes_no_certificate_away() {
    let mut bench = Bench::new();
    let table = |name: &str| table(bench.folder.path(), name);
    let [a, b, c] = ["a", "b", "c"].map(table);
    bench.put("c", &pair("c 1", "c.example", |_| {}));
    // Another order: clients who are not known get another one.
    assert_eq!(bench.served("unknown"), "a 1");
    bench.reload(&format!("{b}{a}{c}names = [\"C.example\", \"*.c.example\"]\n"));
    let served =
        |bench: &Bench| ["unknown", "a.example", "c.example", "x.c.example"].map(|name| bench.served(name));
    assert_eq!(served(&bench), ["b 1", "a 1", "c 1", "c 1"]);
    assert_eq!(bench.counts(1), (0, 0, false), "what is in both is not counted as renewed");
    // A table whose files are missing, in place of the first.
    let missing = table_of(&bench, "missing");
    let lines = bench.reload(&format!("{missing}{a}"));
    assert!(matches!(&lines[..], [Err(line), Ok(_)] if line.contains("missing-chain.pem")), "{lines:?}");
    assert_eq!(served(&bench), ["b 1", "a 1", "c 1", "c 1"], "those without a table serve on");
    assert_eq!(bench.state.certificates().served().len(), 4);
    bench.put("missing", &pair("d 1", "d.example", |_| {}));
    assert_eq!(bench.look(), [Ok("certificate read again: CN=d 1".to_owned())]);
    assert_eq!(served(&bench), ["d 1", "a 1", "d 1", "d 1"], "all tables have one");
    assert_eq!(bench.state.certificates().served().len(), 2);
    // One that comes back is read again.
    bench.put("b", &pair("b 2", "b.example", |_| {}));
    bench.reload(&format!("{missing}{a}{b}"));
    assert_eq!(bench.served("b.example"), "b 2");
}

fn table_of(bench: &Bench, name: &str) -> String {
    table(bench.folder.path(), name)
}

#[test]
fn pair_that_is_handed_over_is_read_from_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let nts = format!("hand-over = {:?}\n{}", folder.path(), table(folder.path(), "a"));
    let config = parse(folder.path(), &nts);
    let error = load(&config, config.exchange().unwrap()).unwrap_err().to_string();
    assert!(error.contains("nts.hand-over") && error.contains("the hand-over has not run yet"), "{error}");
    assert!(error.contains("run as root: authentick certificates hand-over"), "{error}");
    let file = config.exchange().unwrap().certificates[0].handed_over.clone().unwrap();
    write(&file, &pair("a 1", "a.example", |_| {}).concat(), 0o640);
    let mut bench = Bench::of(folder, config);
    assert_eq!(bench.served("a.example"), "a 1");
    let [chain, _] = pair("a 2", "a.example", |_| {});
    let [_, key] = pair("a 3", "a.example", |_| {});
    write(&file, &(chain + &key), 0o640);
    let lines = bench.look();
    assert!(matches!(&lines[..], [Err(line)] if line.contains("nts.hand-over")), "{lines:?}");
    write(&file, &pair("a 4", "a.example", |_| {}).concat(), 0o640);
    bench.look();
    assert_eq!((bench.served("a.example"), bench.counts(0)), ("a 4".to_owned(), (1, 1, false)));
}

#[test]
fn names_that_will_not_do_what_they_should_are_told_of() {
    let mut bench = Bench::new();
    assert!(bench.state.certificates().remarks().is_empty());
    bench.put("b", &pair("b 2", "192.0.2.1", |_| {}));
    bench.put("c", &pair("c 1", "*.example", |_| {}));
    let [a, b, c] = ["a", "b", "c"].map(|name| table(bench.folder.path(), name));
    bench.reload(&format!("{a}{b}{c}names = [\"a.example\", \"a.test\", \"*.example\"]\n"));
    let remarks = bench.state.certificates().remarks();
    let parts =
        ["b-chain.pem: no client gets", "a.example get the certificate of a table before", "ask for a.test"];
    assert_eq!(remarks.len(), parts.len(), "{remarks:?}");
    for (remark, part) in remarks.iter().zip(parts) {
        assert!(remark.contains(part), "{remark}");
    }
}
