//! Files that a user names, of every kind that needs no mount.

use std::fs::hard_link;
use std::io::Read as _;
use std::os::unix::fs::{chown, symlink};

use super::*;

/// A user of no rights here.
const USER: u32 = 65534;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

fn open(path: &Path) -> ReportFile {
    ReportFile::open(path, || true).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn opened_file_keeps_its_octets_until_it_is_written() {
    let (_folder, at) = folder();
    let path = at.join("run.json");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let mut file = open(&path);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    file.write(b"first").unwrap();
    file.write(b"2").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "2");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    assert_eq!(names(&at), ["run.json"]);
}

#[test]
fn new_file_that_is_not_written_is_removed() {
    let (_folder, at) = folder();
    drop(open(&at.join("new")));
    assert!(names(&at).is_empty());
    fs::write(at.join("old"), "old").unwrap();
    drop(open(&at.join("old")));
    assert_eq!(fs::read_to_string(at.join("old")).unwrap(), "old");
}

#[test]
fn reader_of_a_replaced_file_sees_all_or_nothing_of_it() {
    let (_folder, at) = folder();
    let path = at.join("run.json");
    fs::write(&path, "old").unwrap();
    let mut reader = File::open(&path).unwrap();
    write(&path, b"new").unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), fs::read_to_string(&path).unwrap().as_str()), ("old", "new"));
}

#[test]
fn links_stay_and_their_target_is_written() {
    let (_folder, at) = folder();
    fs::create_dir(at.join("runs")).unwrap();
    for (link, target, is_there) in [("latest", "runs/today", false), ("other", "runs/old", true)] {
        if is_there {
            fs::write(at.join(target), "old").unwrap();
        }
        symlink(target, at.join(link)).unwrap();
        write(&at.join(link), b"new").unwrap();
        assert!(fs::symlink_metadata(at.join(link)).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(at.join(target)).unwrap(), "new");
    }
    // A dangling link whose target is not written after all stays one.
    symlink("runs/never", at.join("dangling")).unwrap();
    drop(open(&at.join("dangling")));
    assert!(
        fs::symlink_metadata(at.join("dangling")).unwrap().is_symlink() && !at.join("runs/never").exists()
    );
}

#[test]
fn every_name_of_a_file_has_what_was_written() {
    let (_folder, at) = folder();
    fs::write(at.join("one"), "much that was there before").unwrap();
    hard_link(at.join("one"), at.join("other")).unwrap();
    write(&at.join("one"), b"new").unwrap();
    assert_eq!(fs::read_to_string(at.join("other")).unwrap(), "new");
}

#[test]
fn longest_name_is_replaced() {
    let (_folder, at) = folder();
    let path = at.join("n".repeat(255));
    write(&path, b"first").unwrap();
    write(&path, b"second").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "second");
}

#[test]
fn file_named_like_an_old_temporary_one_stays() {
    let (_folder, at) = folder();
    fs::write(at.join("run.new"), "mine").unwrap();
    write(&at.join("run"), b"text").unwrap();
    assert_eq!(fs::read_to_string(at.join("run.new")).unwrap(), "mine");
}

#[test]
fn pipe_waits_for_its_reader_and_takes_all() {
    let (_folder, at) = folder();
    let path = at.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let reader = std::thread::spawn({
        let path = path.clone();
        move || {
            std::thread::sleep(Duration::from_millis(200));
            fs::read(path).unwrap()
        }
    });
    let mut waited = 0;
    let mut file = ReportFile::open(&path, || {
        waited += 1;
        true
    })
    .unwrap();
    let text = vec![b'a'; 1 << 20];
    file.write(&text).unwrap();
    drop(file);
    assert_eq!(reader.join().unwrap(), text);
    assert!(waited >= 1);
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
}

#[test]
fn reader_that_leaves_ends_the_write() {
    let (_folder, at) = folder();
    let path = at.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let opened = path.clone();
    let reader = std::thread::spawn(move || drop(File::open(opened).unwrap()));
    let mut file = open(&path);
    reader.join().unwrap();
    assert_eq!(file.write(&[b'a'; 1 << 20]).unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn full_device_and_missing_folder_are_errors() {
    let mut full = open(Path::new("/dev/full"));
    assert!(full.id().is_none() && !full.is_plain());
    assert_eq!(full.write(b"text").unwrap_err().kind(), ErrorKind::StorageFull);
    let missing = ReportFile::open(Path::new("/no/such/folder/file"), || true).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert_eq!(ReportFile::open(Path::new("/tmp"), || true).unwrap_err().kind(), ErrorKind::IsADirectory);
}

#[test]
fn one_file_under_two_names_has_one_identity() {
    let (_folder, at) = folder();
    let one = open(&at.join("one"));
    symlink("one", at.join("link")).unwrap();
    assert_eq!(open(&at.join("link")).id(), one.id());
    assert_eq!(FileId::of_path(&at.join("./one")), one.id());
    assert_ne!(open(&at.join("two")).id(), one.id());
}

#[test]
fn link_of_another_user_has_that_users_rights() {
    if !privilege::is_root() {
        return;
    }
    let (_folder, at) = folder();
    fs::set_permissions(&at, Permissions::from_mode(0o755)).unwrap();
    fs::write(at.join("precious"), "precious").unwrap();
    fs::create_dir(at.join("theirs")).unwrap();
    chown(at.join("theirs"), Some(USER), Some(USER)).unwrap();
    symlink(at.join("precious"), at.join("theirs/link")).unwrap();
    let error = ReportFile::open(&at.join("theirs/link"), || true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert_eq!(fs::read_to_string(at.join("precious")).unwrap(), "precious");
    // What is that user's to write is written, and stays that user's.
    write(&at.join("theirs/run.json"), b"text").unwrap();
    write(&at.join("theirs/run.json"), b"again").unwrap();
    let metadata = fs::metadata(at.join("theirs/run.json")).unwrap();
    assert_eq!((metadata.uid(), metadata.len()), (USER, 5));
    assert_eq!(privilege::acting_uid(), 0, "the rights of this thread are as they were");
    // In a folder of many users no link is followed.
    fs::create_dir(at.join("open")).unwrap();
    fs::set_permissions(at.join("open"), Permissions::from_mode(0o777)).unwrap();
    symlink(at.join("precious"), at.join("open/link")).unwrap();
    assert!(ReportFile::open(&at.join("open/link"), || true).is_err());
    write(&at.join("open/run.json"), b"text").unwrap();
}

#[test]
fn file_of_another_owner_keeps_its_owner() {
    if !privilege::is_root() {
        return;
    }
    let (_folder, at) = folder();
    fs::write(at.join("run.json"), "old").unwrap();
    chown(at.join("run.json"), Some(USER), Some(USER)).unwrap();
    write(&at.join("run.json"), b"new and longer").unwrap();
    let metadata = fs::metadata(at.join("run.json")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (USER, USER));
    assert_eq!(fs::read_to_string(at.join("run.json")).unwrap(), "new and longer");
}
