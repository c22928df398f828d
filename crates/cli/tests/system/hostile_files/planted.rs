//! What the user that the server runs as puts in the place of files: root's command line gives nothing away, and the
//! server serves on.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};

use authentick_lab::prober::Prober;

use super::{
    Bench, NOBODY, PLANTS, assert_names, assert_served, give, remove, run, set_mode, wait_for_failure,
};
use crate::lab::{Lab, authentick, is_root, refused, start, text};

/// Each plant in the place of each of these files in turn, while root runs the command.
fn try_all_plants(bench: &Bench, files: &[PathBuf], arguments: &[&str]) {
    for file in files {
        let kept = fs::read(file).ok();
        for what in PLANTS {
            let case = format!("{what} at {}", file.display());
            bench.plant(what, file);
            let (code, said) = run(arguments);
            assert!([0, 77, 78].contains(&code), "{case}: {code} {said}");
            bench.assert_unharmed(&case);
            remove(file);
            if let Some(kept) = &kept {
                fs::write(file, kept).unwrap();
                set_mode(file, 0o600);
                give(file);
            }
        }
    }
    let (code, said) = run(arguments);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn root_gives_away_nothing_that_is_planted_in_the_state_directory() {
    if !is_root("to be robbed") {
        return;
    }
    let bench = Bench::new();
    let state = bench.lab.state();
    let keys = |verb: &'static str| ["keys", verb, "--state-directory", state.to_str().unwrap()];
    assert_eq!(authentick(keys("generate")).status.code(), Some(0));
    let files = ["cookie-keys.lock", "cookie-keys.new", "cookie-keys"].map(|name| state.join(name));
    try_all_plants(&bench, &files, &keys("rotate"));
    for file in fs::read_dir(&state).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().uid(), NOBODY, "{}", file.path().display());
    }
    remove(&state.join("cookie-keys"));
    for what in PLANTS {
        bench.plant(what, &files[0]);
        let (code, said) = run(&keys("generate"));
        assert!([77, 78].contains(&code), "{what}: {code} {said}");
        bench.assert_unharmed(what);
    }
}

#[test]
fn root_gives_away_nothing_that_is_planted_beside_symmetric_keys() {
    if !is_root("to be robbed") {
        return;
    }
    let bench = Bench::new();
    let file = bench.theirs().join("keys");
    let verb = |verb: &'static str| ["keys", "symmetric", verb, "--keys", file.to_str().unwrap()];
    assert_eq!(authentick(verb("generate")).status.code(), Some(0));
    assert_eq!(fs::metadata(&file).unwrap().uid(), NOBODY);
    let files = ["keys.lock", "keys.new", "keys"].map(|name| bench.theirs().join(name));
    try_all_plants(&bench, &files, &verb("generate"));
}

#[test]
fn root_gives_away_nothing_that_is_planted_beside_seal_keys() {
    if !is_root("to be robbed") {
        return;
    }
    let bench = Bench::new();
    let file = bench.theirs().join("seal");
    let verb = |verb: &'static str| ["keys", "seal", verb, "--file", file.to_str().unwrap()];
    assert_eq!(authentick(verb("generate")).status.code(), Some(0));
    assert_eq!(fs::metadata(&file).unwrap().uid(), NOBODY);
    let files = ["seal.lock", "seal.new", "seal"].map(|name| bench.theirs().join(name));
    try_all_plants(&bench, &files, &verb("rotate"));
    remove(&file);
    for what in PLANTS {
        bench.plant(what, &file);
        let (code, said) = run(&verb("generate"));
        assert!([77, 78].contains(&code), "{what}: {code} {said}");
        bench.assert_unharmed(what);
    }
}

#[test]
fn link_of_root_s_leads_to_the_keys_and_stays() {
    if !is_root("to act for another user") {
        return;
    }
    let bench = Bench::new();
    let (file, link) = (bench.lab.path().join("keys"), bench.lab.path().join("link"));
    fs::write(&file, "1 AES128 HEX:7EA62AE64D190114D46D5A082F948EC1\n").unwrap();
    set_mode(&file, 0o640);
    give(&file);
    symlink("keys", &link).unwrap();
    let output = authentick(["keys", "symmetric", "rotate", "1", "--keys", link.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().uid(), NOBODY, "it keeps its owner");
    assert!(fs::read_to_string(&file).unwrap().contains("\n2 AES128 HEX:"));
    // Where a group may write, anyone of it could put something in the way.
    set_mode(bench.lab.path(), 0o775);
    let output = authentick(["keys", "symmetric", "rotate", "2", "--keys", link.to_str().unwrap()]);
    refused(&output, 78, &["not touched as root", "chmod go-w"]);
}

#[test]
fn state_directory_is_made_where_nobody_can_meddle_or_by_the_server_s_own_user() {
    if !is_root("to have rights to give away") {
        return;
    }
    let bench = Bench::new();
    let config = |state: &Path| {
        let file = bench.lab.config("user = \"nobody\"", "");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace(bench.lab.state().to_str().unwrap(), state.to_str().unwrap())).unwrap();
        file
    };
    let by_itself = bench.theirs().join("state");
    drop(start(&config(&by_itself)));
    assert_eq!(fs::metadata(&by_itself).unwrap().uid(), NOBODY);
    assert_eq!(fs::metadata(&by_itself).unwrap().mode() & 0o7777, 0o700);
    // A link in its place leads root nowhere.
    let linked = bench.theirs().join("linked");
    symlink(bench.nowhere(), &linked).unwrap();
    let (code, said) = run(&["serve", "--config", config(&linked).to_str().unwrap()]);
    assert!([77, 78].contains(&code), "{code} {said}");
    bench.assert_unharmed("a link in the place of the state directory");
    // A third user could put one there in between.
    let between = bench.lab.path().join("third");
    fs::create_dir(&between).unwrap();
    chown(&between, Some(1), Some(1)).unwrap();
    let (code, said) = run(&["serve", "--config", config(&between.join("state")).to_str().unwrap()]);
    assert_eq!(code, 78, "{said}");
    assert!(said.contains("install -d -m 700 -o USER"), "{said}");
    assert!(!between.join("state").exists());
}

#[test]
fn server_serves_on_whatever_is_put_in_the_place_of_its_keys() {
    if !is_root("to have rights to give away") {
        return;
    }
    // One server for each file, side by side, as after a failure the next attempt comes half a minute later.
    std::thread::scope(|scope| {
        for name in ["cookie-keys.lock", "cookie-keys"] {
            scope.spawn(move || try_plants_on_a_server(name));
        }
    });
}

/// Each plant in the place of this file of a server that rotates, is told to read everything again, and asked.
fn try_plants_on_a_server(name: &str) {
    let bench = Bench::new();
    let lab = &bench.lab;
    give(&lab.key());
    let mut server = start(&lab.config("user = \"nobody\"", "cookie-keys = { rotate = \"2s\", keep = 60 }"));
    let (prober, file) = (Prober::start(server.ntp), lab.state().join(name));
    let kept = fs::read(&file).ok();
    for what in PLANTS {
        bench.plant(what, &file);
        server.process.signal("-HUP");
        assert_eq!(server.query(lab, &[]).status.code(), Some(0), "{what} at {name}");
        bench.assert_unharmed(what);
    }
    // The last one stays, and is what the rotation meets. A link is no obstacle to what is renamed over it.
    bench.plant("directory", &file);
    wait_for_failure(&mut server, "cookie keys not rotated: ");
    let line = server.process.wait_for_line("cookie keys not rotated: ");
    assert_names(&line, &["cookie-keys", "stays in use"]);
    assert_served(&prober.so_far());
    remove(&file);
    if let Some(kept) = kept {
        fs::write(&file, kept).unwrap();
        set_mode(&file, 0o600);
        give(&file);
    }
    server.process.signal("-HUP");
    assert_eq!(server.query(lab, &[]).status.code(), Some(0));
    assert_served(&prober.stop());
    bench.assert_unharmed(name);
    server.process.signal("-TERM");
    assert_eq!(server.process.wait(), 0, "{}", server.process.log());
}

#[test]
fn root_reads_no_file_through_another_users_link() {
    if !is_root("to have files that another user must not have read") {
        return;
    }
    let lab = Lab::new();
    let theirs = lab.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    set_mode(lab.path(), 0o755);
    chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
    let keys = lab.path().join("shared-keys");
    fs::write(&keys, "1 AES128 HEX:7EA62AE64D190114D46D5A082F948EC1\n").unwrap();
    set_mode(&keys, 0o600);
    let seen = |replaced: &Path, by: &Path| {
        let config = lab.config("user = \"root\"", "");
        let text = fs::read_to_string(&config).unwrap() + &format!("\n[symmetric]\nkeys = {keys:?}\n");
        fs::write(&config, text.replace(replaced.to_str().unwrap(), by.to_str().unwrap())).unwrap();
        super::check(&config)
    };
    assert_eq!(seen(&keys, &keys).0, 0);
    for secret in [lab.key(), keys.clone()] {
        let link = theirs.join("link");
        symlink(&secret, &link).unwrap();
        let (code, said) = seen(&secret, &link);
        assert_eq!(code, 78, "{said}");
        assert_names(&said, &["a link leads to it that another user can change", "name the file itself"]);
        fs::remove_file(&link).unwrap();
    }
}
