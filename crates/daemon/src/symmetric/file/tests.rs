//! Modes, kinds of files, and what a failure leaves behind.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn file(text: &str, mode: u32) -> (tempfile::TempDir, KeyFile) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    (directory, KeyFile::new(&path, None))
}

#[test]
fn files_open_to_others_are_refused_with_the_remedy() {
    for mode in [0o660, 0o604, 0o620, 0o602, 0o610, 0o666] {
        let (_directory, file) = file("1 MD5 tulips-tulips\n", mode);
        let error = file.load().unwrap_err();
        assert!(error.to_string().contains(&format!("mode {mode:o}")), "{error}");
        assert_eq!(error.remedy(), format!("run: chmod 600 {}", file.path().display()));
    }
    for mode in [0o600, 0o400, 0o640] {
        let (_directory, file) = file("1 MD5 tulips-tulips\n", mode);
        assert_eq!(file.load().unwrap().keys.len(), 1, "{mode:o}");
    }
}

#[test]
fn mistakes_name_file_and_line() {
    let (_directory, file) = file("# x\n0 MD5 tulip\n", 0o600);
    let error = file.load().unwrap_err();
    let place = format!("{}: line 2: 0 is no key id", file.path().display());
    assert!(error.to_string().starts_with(&place), "{error}");
    assert!(error.remedy().contains("4294967295"), "{}", error.remedy());
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let error = KeyFile::new(directory.path(), None).load().unwrap_err();
    assert!(matches!(error, KeyFileError::NotAFile(_)), "{error}");
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let error = KeyFile::new(&pipe, None).load().unwrap_err();
    assert!(matches!(error, KeyFileError::NotAFile(_)), "{error}");
    let error = KeyFile::new(&directory.path().join("none"), None).load().unwrap_err();
    assert!(error.is_missing() && error.remedy().contains("keys symmetric generate"), "{}", error.remedy());
}

#[test]
fn stored_text_is_read_again_with_mode_0600_through_a_link() {
    let (directory, file) = file("1 MD5 tulips-tulips\n", 0o400);
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    let by_link = KeyFile::new(&link, None);
    by_link.store(b"2 MD5 crocus-crocus\n").unwrap();
    assert_eq!(file.load().unwrap().keys[0].id(), 2);
    assert_eq!(fs::metadata(file.path()).unwrap().mode() & 0o7777, 0o600);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn file_that_cannot_be_written_leaves_the_old_one() {
    let (directory, file) = file("1 MD5 tulips-tulips\n", 0o600);
    // Without the directory writing fails for root too.
    let away = directory.path().with_extension("away");
    fs::rename(directory.path(), &away).unwrap();
    let error = file.store(b"2 MD5 crocus-crocus\n").unwrap_err();
    assert!(matches!(error, KeyFileError::Io(..)), "{error}");
    fs::rename(&away, directory.path()).unwrap();
    assert_eq!(file.load().unwrap().keys[0].id(), 1);
}
