//! What Landlock keeps a thread from, tried under each of its versions, with files as a server has them.

use std::fs::{File, OpenOptions, create_dir_all, rename, write};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::symlink;
use std::thread;

use super::*;

/// On a thread of its own, with the rights of `abi`; `None`, with a word of why, where the kernel has no Landlock.
fn restricted<T: Send>(
    readable: &BTreeSet<PathBuf>,
    writable: &[&Path],
    ports: &[u16],
    abi: ABI,
    work: impl FnOnce() -> T + Send,
) -> Option<T> {
    let run = || {
        let ports: Vec<_> = ports.iter().map(|port| (*port, AccessNet::ConnectTcp)).collect();
        let status = enforce(readable, writable.iter().copied(), &ports, abi).unwrap();
        if let Err(reason) = version_of(&status) {
            eprintln!("skipped {}: Landlock: {reason}", thread::current().name().unwrap_or("a test"));
            return None;
        }
        Some(work())
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

fn is_denied<T>(result: std::io::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

#[test]
fn folders_of_every_link_and_target_are_covered() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let at = |path: &str| base.join(path);
    for path in ["live/name", "archive/name", "tls/..2026", "elsewhere", "plain"] {
        create_dir_all(at(path)).unwrap();
    }
    for path in ["archive/name/key1.pem", "tls/..2026/tls.key", "elsewhere/key.pem", "plain/key.pem"] {
        write(at(path), "key").unwrap();
    }
    for (target, link) in [
        ("../../archive/name/key1.pem", "live/name/key.pem"),
        ("..2026", "tls/..data"),
        ("..data/tls.key", "tls/tls.key"),
        ("round", "round"),
        ("missing/file", "dangling"),
    ] {
        symlink(target, at(link)).unwrap();
    }
    symlink(at("elsewhere/key.pem"), at("plain/absolute.pem")).unwrap();
    for (file, expected) in [
        ("plain/key.pem", &["plain"][..]),
        ("live/name/key.pem", &["live/name", "archive/name"]),
        ("tls/tls.key", &["tls", "tls/..2026"]),
        ("plain/absolute.pem", &["plain", "elsewhere"]),
        ("round", &[""]),
        ("dangling", &[""]),
        ("missing/key.pem", &[]),
    ] {
        let expected: BTreeSet<PathBuf> =
            expected.iter().map(|path| at(path).components().collect()).collect();
        assert_eq!(folders(&at(file)), expected, "{file}");
    }
    // The whole of a file system is never readable for the sake of one file.
    assert_eq!(folders(Path::new("/missing.pem")), BTreeSet::from([PathBuf::from("/missing.pem")]));
}

#[test]
fn path_is_known_to_lead_out_of_the_folders_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let at = |path: &str| base.join(path);
    for path in ["known", "other", "again"] {
        create_dir_all(at(path)).unwrap();
        write(at(path).join("file"), "text").unwrap();
    }
    symlink("../known/file", at("other/in")).unwrap();
    symlink("../other/file", at("known/out")).unwrap();
    let readable = ruled([at("known"), at("again"), at("late")]);
    for (path, leads_into) in [
        ("known/file", true),
        ("known/none", true),
        ("other/in", true),
        ("known/out", false),
        ("other/file", false),
        ("other/none", false),
        // Nobody can tell, and whoever reads it says that it is not there.
        ("none/file", true),
    ] {
        assert_eq!(super::leads_into(&readable, &at(path)), leads_into, "{path}");
    }
    // A folder that was made again has no rule, even if its inode's number is used again for another.
    rename(at("again"), at("old")).unwrap();
    for path in ["again", "late"] {
        create_dir_all(at(path)).unwrap();
        write(at(path).join("file"), "text").unwrap();
        assert!(!leads_into(&readable, &at(path).join("file")), "{path}");
    }
}

/// As on kernels of 5.13, 5.19, 6.2, 6.7, 6.10 and 6.12.
#[test]
fn nothing_else_is_read_or_written_under_any_version() {
    for abi in [ABI::V1, ABI::V2, ABI::V3, ABI::V4, ABI::V5, ABI::V6] {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["read", "state", "other"] {
            create_dir_all(at(path)).unwrap();
            write(at(path).join("file"), path).unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let fleet = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let readable = folders(&at("read/file"));
        let ran = restricted(&readable, &[&at("state")], &[fleet.port()], abi, || {
            assert_eq!(fs::read(at("read/file")).unwrap(), b"read");
            assert!(is_denied(File::create(at("read/new"))));
            assert!(is_denied(OpenOptions::new().write(true).open(at("read/file"))));
            // As key files are replaced.
            write(at("state/file.new"), "new").unwrap();
            rename(at("state/file.new"), at("state/file")).unwrap();
            assert_eq!(fs::read(at("state/file")).unwrap(), b"new");
            fs::remove_file(at("state/file")).unwrap();
            assert!(is_denied(symlink("/etc", at("state/link"))));
            for path in ["other/file", "read/../other/file"] {
                assert!(is_denied(fs::read(at(path))), "{abi:?} {path}");
            }
            assert!(is_denied(fs::remove_file(at("other/file"))));
            assert!(is_denied(File::open("/etc/passwd")) && is_denied(fs::read_dir("/")));
            // TCP since version 4.
            assert_eq!(is_denied(TcpStream::connect(address)), abi >= ABI::V4, "{abi:?}");
            // Nobody is there, and it may be asked.
            assert!(
                TcpStream::connect(fleet).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
            );
            assert_eq!(is_denied(TcpListener::bind("127.0.0.1:0")), abi >= ABI::V4, "{abi:?}");
            UdpSocket::bind("127.0.0.1:0").unwrap().connect(address).unwrap();
        });
        if ran.is_none() {
            return;
        }
    }
}

/// What certbot does: new files in the archive, and links in `live` that are made anew.
#[test]
fn renewed_certificate_is_read_through_new_links() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    create_dir_all(at("live/name")).unwrap();
    create_dir_all(at("archive/name")).unwrap();
    write(at("archive/name/key1.pem"), "old").unwrap();
    symlink("../../archive/name/key1.pem", at("live/name/key.pem")).unwrap();
    let readable = folders(&at("live/name/key.pem"));
    restricted(&readable, &[], &[], NEWEST, || {
        assert_eq!(fs::read(at("live/name/key.pem")).unwrap(), b"old");
        thread::scope(|scope| {
            // A thread of the restricted one is restricted too, so somebody else has to renew.
            assert!(scope.spawn(|| is_denied(write(at("archive/name/key2.pem"), "new"))).join().unwrap());
        });
    });
    write(at("archive/name/key2.pem"), "new").unwrap();
    fs::remove_file(at("live/name/key.pem")).unwrap();
    symlink("../../archive/name/key2.pem", at("live/name/key.pem")).unwrap();
    // By rules that were made before, as far as a path can tell: folders are the same files now as then.
    restricted(&readable, &[], &[], NEWEST, || {
        assert_eq!(fs::read(at("live/name/key.pem")).unwrap(), b"new");
        assert!(is_denied(fs::read("/etc/passwd")));
    });
}
