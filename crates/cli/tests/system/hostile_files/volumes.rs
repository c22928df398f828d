//! A state directory that is the root of a volume, with rights for others: state is in a folder of the server's own,
//! or nowhere.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use authentick_lab::process::Process;

use super::{Bench, NOBODY, assert_names, check, give, remove, run, set_mode};
use crate::lab::{is_root, refused, start, text};
use crate::operator::{as_nobody, become_nobody};

/// A bench whose state directory is as kubelet and others make the root of a volume.
fn bench(mode: u32, group: u32) -> Bench {
    let bench = Bench::new();
    chown(bench.lab.state(), Some(0), Some(group)).unwrap();
    set_mode(&bench.lab.state(), mode);
    bench
}

fn shown(path: &Path) -> (u32, u32) {
    fs::metadata(path).map(|it| (it.uid(), it.mode() & 0o777)).unwrap()
}

/// The identifiers of keys that are listed.
fn ids(listed: &str) -> Vec<String> {
    listed.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

#[test]
fn state_in_a_volume_of_others_is_in_a_private_folder_which_commands_find_too() {
    if !is_root("to have rights to give away") {
        return;
    }
    // With fsGroup, an emptyDir without it, one with the sticky bit, and a folder of the host.
    for (mode, group) in [(0o2775, NOBODY), (0o777, 0), (0o1777, 0), (0o755, 0)] {
        let bench = bench(mode, group);
        let (lab, state) = (&bench.lab, bench.lab.state());
        let (config, private) = (lab.config("user = \"nobody\"", ""), state.join("private"));
        let said = format!("state is kept in {}: ", private.display());
        let (code, checked) = check(&config);
        assert_eq!((code, checked.matches(&said).count()), (0, 1), "{mode:o}: {checked}");
        assert!(!private.exists(), "nothing is made");

        let mut server = start(&config);
        assert_eq!(server.process.log().matches(&said).count(), 1, "{mode:o}: {}", server.process.log());
        assert_eq!(shown(&private), (NOBODY, 0o700), "{mode:o}");
        assert_eq!(shown(&private.join("cookie-keys")), (NOBODY, 0o600), "{mode:o}");
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1, "nothing else is in the volume");
        let keys = || {
            let listed =
                as_nobody(lab.path(), &["keys", "list", "--state-directory", state.to_str().unwrap()]);
            let configured = as_nobody(lab.path(), &["keys", "list", "--config", config.to_str().unwrap()]);
            assert_eq!(ids(&text(&listed)), ids(&text(&configured)), "{mode:o}");
            assert_eq!(listed.status.code(), Some(0), "{mode:o}: {}", text(&listed));
            ids(&text(&listed))
        };
        let first = keys();
        assert_eq!(first.len(), 2, "{first:?}");
        server.process.signal("-TERM");
        assert_eq!(server.process.wait(), 0, "{}", server.process.log());
        let server = start(&config);
        assert_eq!(keys(), first, "they outlive the process");
        assert_eq!(server.query(lab, &[]).status.code(), Some(0));
        let as_root = run(&["keys", "list", "--config", config.to_str().unwrap()]);
        match mode & 0o1022 {
            0o022 | 0o020 => {
                assert_eq!(as_root.0, 78, "{mode:o}: {}", as_root.1);
                assert_names(&as_root.1, &["not touched as root", "others may write to"]);
            }
            _ => assert_eq!((as_root.0, ids(&as_root.1)), (0, first), "{mode:o}"),
        }
    }
}

#[test]
fn user_from_the_start_makes_the_private_folder_of_its_volume() {
    if !is_root("to start as somebody else") {
        return;
    }
    let bench = bench(0o2775, NOBODY);
    let config = bench.lab.config("", "");
    for file in [bench.lab.key(), bench.lab.chain(), config.clone()] {
        give(&file);
    }
    let mut command = Command::new("setpriv");
    become_nobody(&mut command, bench.lab.path()).args(["serve", "--config"]).arg(&config);
    let mut server = Process::start(&mut command);
    server.wait_for_line("serving time on ");
    assert_eq!(shown(&bench.lab.state().join("private/cookie-keys")), (NOBODY, 0o600));
}

#[test]
fn private_folder_that_is_not_the_server_s_own_is_refused_and_so_are_keys_beside_it() {
    if !is_root("to put another user's folders there") {
        return;
    }
    let bench = bench(0o777, 0);
    let state = bench.lab.state();
    let (config, private) = (bench.lab.config("user = \"nobody\"", ""), state.join("private"));
    let own = bench.theirs();
    for what in ["link", "dangling link", "folder", "open folder", "keys beside it"] {
        let part = match what {
            "link" => {
                symlink(&own, &private).unwrap();
                "a link, where the private folder"
            }
            "dangling link" => {
                symlink(bench.nowhere(), &private).unwrap();
                "a link, where the private folder"
            }
            "folder" => {
                fs::create_dir(&private).unwrap();
                chown(&private, Some(1), Some(1)).unwrap();
                set_mode(&private, 0o700);
                "a folder of another user"
            }
            "open folder" => {
                fs::create_dir(&private).unwrap();
                give(&private);
                set_mode(&private, 0o2770);
                "mode 2770 lets others"
            }
            _ => {
                fs::write(state.join("cookie-keys"), "").unwrap();
                "mode 777 lets others"
            }
        };
        for (code, said) in [check(&config), run(&["serve", "--config", config.to_str().unwrap()])] {
            assert_eq!(code, 78, "{what}: {said}");
            assert_names(&said, &["server.state-directory", part]);
        }
        for verb in ["list", "rotate", "generate"] {
            let command = ["keys", verb, "--state-directory", state.to_str().unwrap()];
            refused(&as_nobody(bench.lab.path(), &command), 78, &[part]);
        }
        assert!(fs::read_dir(&own).unwrap().next().is_none(), "{what}");
        bench.assert_unharmed(what);
        remove(&private);
    }
}
