//! What is read and what is refused, and that a key is replaced without one that some node lacks.

use std::os::unix::fs::{PermissionsExt, symlink};

use authentick_fleet::seal::Topic;

use super::*;

const NOW: u64 = 1_763_719_200;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("seal")
    }

    fn write(&self, text: impl AsRef<[u8]>, mode: u32) {
        fs::write(self.file(), text).unwrap();
        fs::set_permissions(self.file(), PermissionsExt::from_mode(mode)).unwrap();
    }

    fn error(&self) -> SealFileError {
        SealFile::read(&self.file()).unwrap_err()
    }

    fn rotate(&self, now: u64, entropy: &mut Entropy) -> (SealFile, Step) {
        SealFile::rotate(&self.file(), now, entropy).unwrap()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn line(made: u64, digit: char) -> String {
    format!("key {made} {}\n", digit.to_string().repeat(2 * SEAL_KEY_SIZE))
}

fn text(lines: &[String]) -> String {
    format!("{MAGIC}\n{}", lines.concat())
}

fn name() -> Name {
    Name::new("fleet").unwrap()
}

/// Whether nodes that have read these files understand each other.
fn agree(files: [&SealFile; 2]) -> bool {
    let keys = files.map(|file| file.keys(name()));
    let sealed = |keys: &SealKeys| keys.seal(Topic::Claim, "cookie-keys", "text", &mut Entropy::from_seed(9));
    let is_opened =
        |[by, of]: [usize; 2]| keys[by].open(Topic::Claim, "cookie-keys", &sealed(&keys[of])).is_some();
    is_opened([0, 1]) && is_opened([1, 0])
}

#[test]
fn file_is_read_as_it_was_written() {
    let (folder, mut entropy) = (Folder::new(), Entropy::from_seed(1));
    let made = SealFile::generate(&folder.file(), None, NOW, &mut entropy).unwrap();
    assert_eq!(mode(&folder.file()), 0o600);
    let found = SealFile::read(&folder.file()).unwrap();
    assert!(agree([&made, &found]));
    let shown = found.shown(NOW + 60);
    assert_eq!((shown.len(), shown[0].seals, shown[0].age_s), (1, true, 60));
    assert_eq!((shown[0].made.as_str(), shown[0].fingerprint.len()), ("2025-11-21T10:00:00Z", 8));
    assert!(!fs::read_to_string(folder.file()).unwrap().contains(&shown[0].fingerprint));
    assert_eq!(format!("{found:?}"), "1 seal keys");
    // The last line may lack its end, as templates of secrets do.
    let four: Vec<String> = "0af9".chars().map(|digit| line(NOW, digit)).collect();
    for text in [text(&four), text(&four).trim_end().to_owned()] {
        folder.write(text, 0o400);
        assert_eq!(SealFile::read(&folder.file()).unwrap().keys.len(), 4);
    }
}

#[test]
fn mistakes_are_named_with_line_and_remedy() {
    let folder = Folder::new();
    let good = line(NOW, 'a');
    let change = |from: &str, to: &str| text(&[good.replace(from, to)]);
    for (text, number, problem) in [
        (String::new(), 1, "does not begin with its kind and version"),
        (format!("{MAGIC}\n"), 2, "there is no key"),
        (format!("{MAGIC}\n\n{good}"), 2, "not a word, a time and a key"),
        (change("key", "current"), 2, "not a word, a time and a key"),
        (change(" ", "  "), 2, "not a word, a time and a key"),
        (change("key ", "key +"), 2, "no number of seconds"),
        (change("1763719200", "today"), 2, "no number of seconds"),
        (change("1763719200", &"9".repeat(21)), 2, "no number of seconds"),
        (change("aa\n", "\n"), 2, "not 64 lower-case hexadecimal digits"),
        (change("a\n", "aa\n"), 2, "not 64 lower-case"),
        (change("a\n", "a\r\n"), 2, "not 64 lower-case"),
        (change("aaa", "AAA"), 2, "not 64 lower-case"),
        (change("aaaa", "a+aa"), 2, "not 64 lower-case"),
        (change("aaaa", "aaaé"), 2, "not 64 lower-case"),
        (text(&[good.clone(), line(NOW + 1, 'a')]), 3, "stands above already"),
        (text(&"abcde".chars().map(|digit| line(NOW, digit)).collect::<Vec<_>>()), 6, "more than four keys"),
    ] {
        folder.write(&text, 0o600);
        let error = folder.error();
        let place = format!("{}: line {number}: ", folder.file().display());
        let message = error.to_string();
        assert!(message.starts_with(&place) && message.contains(problem), "{text:?}: {message}");
        let remedy = error.remedy();
        assert!(remedy.contains("copy it from a node") && remedy.contains("keys seal generate"), "{remedy}");
        assert!(!error.is_permission() && !error.is_held());
    }
    folder.write(MAGIC.replace('1', "2"), 0o600);
    let error = folder.error();
    assert!(
        error.to_string().ends_with("line 1: it was written by another version of authentick"),
        "{error}"
    );
    assert!(error.remedy().contains("the file is good") && !error.remedy().contains("remove"), "{error}");
    folder.write([text(&[]).as_bytes(), b"key \xff\n"].concat(), 0o600);
    assert!(folder.error().to_string().ends_with("line 2: it is not text"));
    folder.write(vec![b'a'; FILE_SIZE_MAX as usize + 1], 0o600);
    let error = folder.error();
    assert!(error.to_string().ends_with("4097 octets are too many"), "{error}");
    assert_eq!(error.remedy(), "name a file of seal keys");
    fs::remove_file(folder.file()).unwrap();
    let error = folder.error();
    assert!(error.to_string().contains("No such file"), "{error}");
    assert!(error.remedy().starts_with("copy it from another node, or make the first: authentick keys seal"));
    fs::create_dir(folder.file()).unwrap();
    assert!(folder.error().to_string().ends_with("not a file"));
}

#[test]
fn file_open_to_others_or_written_by_the_group_is_refused() {
    let folder = Folder::new();
    for mode in 0..0o1000 {
        folder.write(text(&[line(NOW, 'a')]), mode | 0o400);
        let [group, others] = [mode >> 3 & 7, mode & 7];
        if [0, 4].contains(&group) && others == 0 {
            SealFile::read(&folder.file()).unwrap();
            continue;
        }
        let error = folder.error();
        assert!(error.to_string().contains(&format!("mode {:o}", mode | 0o400)), "{error}");
        let remedy = error.remedy();
        assert!(remedy.starts_with("run: chmod 600 ") && remedy.contains("keys seal rotate"), "{remedy}");
    }
}

#[test]
fn three_steps_replace_a_key_and_nodes_one_step_apart_understand_each_other() {
    let (folder, mut entropy) = (Folder::new(), Entropy::from_seed(2));
    let first = SealFile::generate(&folder.file(), None, NOW, &mut entropy).unwrap();
    let old = first.shown(NOW)[0].fingerprint.clone();
    let mut before = first;
    // Within a second, and with a clock that was set back.
    for now in [NOW, NOW, 0] {
        let mut steps = Vec::new();
        for _ in 0..3 {
            let (file, step) = folder.rotate(now, &mut entropy);
            assert!(agree([&before, &file]), "{step:?}");
            assert_eq!(SealFile::read(&folder.file()).unwrap().shown(now), file.shown(now));
            steps.push((step, file.keys.len()));
            before = file;
        }
        assert_eq!(steps, [(Step::Added, 2), (Step::Moved, 2), (Step::Removed, 1)]);
    }
    assert_ne!(before.shown(NOW)[0].fingerprint, old);
    // More than two keys, as somebody has written them.
    folder.write(text(&[line(1, 'a'), line(2, 'b'), line(3, 'c')]), 0o600);
    let (file, step) = folder.rotate(NOW, &mut entropy);
    assert_eq!((step, file.keys[0].made, file.keys.len()), (Step::Moved, 3, 3));
    let (file, step) = folder.rotate(NOW, &mut entropy);
    assert_eq!((step, file.keys[0].made, file.keys.len()), (Step::Removed, 3, 1));
    for (step, is_last) in [(Step::Added, false), (Step::Moved, false), (Step::Removed, true)] {
        let said = step.to_string();
        assert!(said.contains("copy the file to all nodes") && said.contains("SIGHUP"), "{said}");
        assert_eq!(said.contains("run this again"), !is_last, "{said}");
    }
}

#[test]
fn existing_file_is_neither_made_anew_nor_lost() {
    let (folder, mut entropy) = (Folder::new(), Entropy::from_seed(3));
    let there = text(&[line(NOW, 'a')]);
    folder.write(&there, 0o600);
    let error = SealFile::generate(&folder.file(), None, NOW, &mut entropy).unwrap_err();
    assert!(matches!(error, SealFileError::Exists(_)) && error.remedy().contains("keys seal rotate"));
    assert_eq!(fs::read_to_string(folder.file()).unwrap(), there);
    // What cannot be read is not rotated.
    folder.write(&there[..there.len() - 2], 0o600);
    let error = SealFile::rotate(&folder.file(), NOW, &mut entropy).unwrap_err();
    assert!(matches!(error, SealFileError::Line(..)), "{error}");
    assert_eq!(fs::read_to_string(folder.file()).unwrap(), there[..there.len() - 2]);
    let nowhere = folder.0.path().join("nowhere");
    let error = SealFile::rotate(&nowhere, NOW, &mut entropy).unwrap_err();
    assert!(matches!(error, SealFileError::Unreadable(..)), "{error}");
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 2, "the file and its lock");
    let error = SealFile::generate(&nowhere.join("seal"), None, NOW, &mut entropy).unwrap_err();
    assert!(matches!(error, SealFileError::Unwritten(..)), "{error}");
    assert!(error.remedy().starts_with("make the directory of "), "{}", error.remedy());
    symlink(&nowhere, folder.0.path().join("link")).unwrap();
    let error = SealFile::generate(&folder.0.path().join("link"), None, NOW, &mut entropy).unwrap_err();
    assert!(matches!(error, SealFileError::Exists(_)), "{error}");
}

#[test]
fn rotation_keeps_link_owner_and_the_group_s_right_to_read() {
    let (folder, mut entropy) = (Folder::new(), Entropy::from_seed(4));
    folder.write(text(&[line(NOW, 'a')]), 0o600);
    let link = folder.0.path().join("link");
    symlink(folder.file(), &link).unwrap();
    SealFile::rotate(&link, NOW, &mut entropy).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!((SealFile::read(&folder.file()).unwrap().keys.len(), mode(&folder.file())), (2, 0o600));
    if !privilege::is_root() {
        return;
    }
    const NOBODY: u32 = 65534;
    std::os::unix::fs::chown(folder.file(), Some(0), Some(NOBODY)).unwrap();
    for (before, after) in [(0o640, 0o640), (0o440, 0o640), (0o400, 0o600)] {
        fs::set_permissions(folder.file(), PermissionsExt::from_mode(before)).unwrap();
        folder.rotate(NOW, &mut entropy);
        let metadata = fs::metadata(folder.file()).unwrap();
        assert_eq!((metadata.uid(), metadata.gid(), mode(&folder.file())), (0, NOBODY, after));
    }
}
