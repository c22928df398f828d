//! What is forbidden, tried from inside every thread of a running node: in this build each of them trespasses once its
//! filter is on, if a test asks for it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair};
use rustix::process::{Pid, test_kill_process};

use super::*;
use crate::log_queue::LOG;
use crate::manager::Manager;
use crate::names::NameLookups;
use crate::node;

const PATIENCE: Duration = Duration::from_secs(20);

/// Where to trespass.
struct Ground {
    /// A file that a server has no business with, and one that it may read.
    foreign: PathBuf,
    own: PathBuf,
}

/// By kind, what each attempt came to: its name, and the number of the error; `None` if it was let through.
type Attempts = BTreeMap<&'static str, Vec<(&'static str, Option<i32>)>>;

static GROUND: Mutex<Option<Ground>> = Mutex::new(None);
static ATTEMPTS: Mutex<Attempts> = Mutex::new(Attempts::new());

/// Called by every thread of a node when its filter is on.
pub(super) fn trespass(kind: ThreadKind) {
    let ground = GROUND.lock().unwrap();
    let Some(Ground { foreign, own }) = &*ground else { return };
    let address = ("127.0.0.1", 9);
    // Two ways to wait for a lock; they end, as what they wait for comes by itself.
    thread::park_timeout(Duration::from_millis(1));
    let attempts = [
        ("execute", Command::new("/bin/true").spawn().err()),
        ("start a thread", thread::Builder::new().spawn(|| ()).err()),
        ("read a foreign file", File::open(foreign).err()),
        ("write a foreign file", fs::write(foreign, "gone").err()),
        ("make a foreign file", File::create(foreign.with_extension("new")).err()),
        ("read an own file", File::open(own).err()),
        ("listen", TcpListener::bind("127.0.0.1:0").err()),
        ("connect", TcpStream::connect(address).err()),
        ("open a local stream socket", UnixListener::bind(foreign.with_extension("stream")).err()),
        ("open a local datagram socket", UnixDatagram::unbound().err()),
        ("signal", test_kill_process(Pid::INIT).err().map(Into::into)),
        ("show memory", set_dumpable_behavior(DumpableBehavior::Dumpable).err().map(Into::into)),
    ];
    let attempts =
        attempts.map(|(name, error)| (name, error.and_then(|error: io::Error| error.raw_os_error())));
    ATTEMPTS.lock().unwrap().insert(kind.name(), attempts.into());
}

/// Writes a certificate for a key of its own; returns the two lines that name them.
fn identity(folder: &Path, name: &str) -> String {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let (chain, file) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    fs::write(&chain, certificate.pem()).unwrap();
    fs::write(&file, key.serialize_pem()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    format!("certificate-chain = {chain:?}\nprivate-key = {file:?}\n")
}

fn seal(folder: &Path) -> PathBuf {
    let file = folder.join("seal");
    fs::write(&file, format!("authentick-fleet-seal 1\nkey 0 {}\n", "5a".repeat(32))).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

fn config(folder: &Path, more: &str) -> Config {
    let keys = folder.join("keys");
    fs::create_dir(&keys).unwrap();
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = 2\nuser = \"root\"\nstate-directory = {:?}\n{more}\n\
         reference = {{ stratum = 1, id = \"TEST\" }}\n\
         [nts]\nke-listen = [\"127.0.0.1:0\"]\nke-workers = 1\ncookie-keys = {{ store = \"memcached\" }}\n{}\
         [fleet]\nid = \"f\"\nnode = \"a\"\nmembers = [\"a\"]\nservers = [\"127.0.0.1:10\"]\nseal-key = {:?}\n\
         [metrics]\nlisten = \"127.0.0.1:0\"\n\
         [antp]\nenable = true\n[antp.ecdh]\n{}",
        folder.join("state"),
        identity(&keys, "tls"),
        seal(&keys),
        identity(&keys, "antp"),
    );
    Config::parse(&folder.join("test.toml"), &text).unwrap()
}

#[test]
fn each_thread_of_a_server_tries_in_vain_what_it_has_no_use_for() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "");
    // Not beside the configuration, whose folder is read when a signal says so.
    let elsewhere = tempfile::tempdir().unwrap();
    let foreign = elsewhere.path().join("foreign");
    fs::write(&foreign, "secret").unwrap();
    *GROUND.lock().unwrap() = Some(Ground {
        foreign: foreign.clone(),
        own: config.exchange().unwrap().certificates[0].private_key.clone(),
    });
    let before = ThreadKind::ALL.map(ThreadKind::refused_count);
    LOG.start(true);
    // Of a thread of its own: what a process gives up, a thread gives up for those that it starts, and no others.
    let attempts = thread::scope(|scope| {
        let run = || {
            let node = node::start_alone(&config, &mut Manager::none(), NameLookups::default()).unwrap();
            LOG.contain(node.containment());
            // As in the process that looks names up; the thread stands for its process.
            thread::scope(|scope| scope.spawn(|| contain_lookup(&config)).join().unwrap());
            let end = Instant::now() + PATIENCE;
            while ATTEMPTS.lock().unwrap().len() < ThreadKind::ALL.len() - 1 {
                assert!(Instant::now() < end, "only {:?}", ATTEMPTS.lock().unwrap());
                thread::sleep(Duration::from_millis(10));
            }
            node.containment().enter(ThreadKind::Control);
            assert!(node.stop(), "none of them failed by it");
            std::mem::take(&mut *ATTEMPTS.lock().unwrap())
        };
        scope.spawn(run).join().unwrap()
    });
    *GROUND.lock().unwrap() = None;
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "secret");
    assert!(!foreign.with_extension("new").exists());
    let landlock = landlock::version();
    for (kind, before) in ThreadKind::ALL.into_iter().zip(before) {
        let tried = &attempts[kind.name()];
        for &(what, error) in tried {
            let expected = match (kind, what) {
                (ThreadKind::Supervisor, "read an own file") => None,
                // The filter lets it through: files are what the thread is for. Which ones, Landlock decides.
                (
                    ThreadKind::Supervisor,
                    "read a foreign file" | "write a foreign file" | "make a foreign file",
                ) => {
                    if landlock.is_err() {
                        continue;
                    }
                    Some(libc::EACCES)
                }
                // Of files, Landlock leaves the resolver's; of ports, that of DNS to connect to.
                (
                    ThreadKind::Names,
                    "read a foreign file"
                    | "write a foreign file"
                    | "make a foreign file"
                    | "read an own file",
                ) => match landlock {
                    Ok(_) => Some(libc::EACCES),
                    Err(_) => continue,
                },
                (ThreadKind::Names, "listen") => match landlock {
                    Ok(4..) => Some(libc::EACCES),
                    Ok(_) | Err(_) => Some(libc::EPERM),
                },
                // So is it with connections; the port is none of the fleet's. Landlock knows of ports since version 4.
                // Caches of names answer on local sockets.
                (ThreadKind::Names, what) if what.contains(" local ") => continue,
                (ThreadKind::Fleet | ThreadKind::Names, "connect") => match landlock {
                    Ok(4..) => Some(libc::EACCES),
                    Ok(_) | Err(_) => continue,
                },
                _ => Some(libc::EPERM),
            };
            assert_eq!(error, expected, "{}: {what}", kind.name());
        }
        let refused = tried.iter().filter(|(_, error)| *error == Some(libc::EPERM)).count() as u64;
        let counted = kind.refused_count() - before;
        assert!(counted >= refused, "{}: {counted} of {refused} were counted", kind.name());
        let waited = kind.refused_calls().any(|call| call == libc::SYS_futex as usize);
        assert_eq!(waited, kind == ThreadKind::Packet, "{}", kind.name());
    }
}

#[test]
fn switch_leaves_threads_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "containment = \"off\"");
    let ran = thread::scope(|scope| {
        let run = || {
            Containment::begin(&config, Process::Own).enter(ThreadKind::Packet);
            fs::read(folder.path().join("test.toml"))
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
                && rustix::thread::no_new_privs().is_ok_and(|is_set| !is_set)
        };
        scope.spawn(run).join().unwrap()
    });
    assert!(ran);
}

#[test]
fn report_names_what_is_missing_and_why() {
    let mut report = Report::default();
    report.add("Landlock", Err::<String, _>("this kernel has none"));
    report.add("filters", Ok::<_, io::Error>("system calls by thread".to_owned()));
    assert_eq!(
        report.to_string(),
        "contained: system calls by thread; not here: Landlock (this kernel has none)"
    );
    let offer = Offer { landlock: Err("this kernel has none".to_owned()), filters: true };
    assert!(offer.to_string().contains("without Landlock: this kernel has none; system calls by thread"));
}
