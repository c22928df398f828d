//! Where state is, for each kind of directory, and what is refused there.

use std::os::unix::fs::{chown, symlink};

use tempfile::TempDir;

use super::*;

/// Neither root nor who runs the tests.
const OTHER: u32 = 65534;

/// A directory with this mode.
fn volume(mode: u32) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let volume = folder.path().canonicalize().unwrap().join("volume");
    fs::create_dir(&volume).unwrap();
    set_mode(&volume, mode);
    (folder, volume)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Owner and mode.
fn shown(path: &Path) -> (u32, u32) {
    let metadata = fs::symlink_metadata(path).unwrap();
    (metadata.uid(), metadata.mode() & 0o777)
}

/// Makes the private folder as the server's own user would; root alone would leave it to that user.
fn make_private(state: &StateDirectory) {
    DirBuilder::new().mode(0o700).create(state.path()).unwrap();
}

#[test]
fn state_is_in_the_directory_itself_if_nobody_else_can_look_into_it() {
    let (_folder, volume) = volume(0o700);
    let state = StateDirectory::of(&volume);
    state.prepare(None).unwrap();
    assert_eq!(state.path(), volume);
    let missing = StateDirectory::of(&volume.join("one/two"));
    missing.prepare(None).unwrap();
    assert_eq!(missing.path(), volume.join("one/two"));
    assert_eq!(shown(missing.path()).1, 0o700);
    assert_eq!(StateDirectory::of(missing.path()), missing, "as before it was there");
}

#[test]
fn state_is_in_a_private_folder_of_a_volume_that_others_can_look_into() {
    for mode in [0o755, 0o750, 0o710, 0o701, 0o770, 0o2775, 0o777, 0o1777] {
        let (_folder, volume) = volume(mode);
        let state = StateDirectory::of(&volume);
        assert_eq!(state.path(), volume.join("private"), "{mode:o}");
        if privilege::is_root() {
            make_private(&state);
        }
        state.prepare(None).unwrap();
        state.check().unwrap();
        state.check_access(false).unwrap();
        assert_eq!(shown(state.path()), (privilege::acting_uid(), 0o700), "{mode:o}");
        assert_eq!(StateDirectory::of(&volume), state, "at the next start");
        set_mode(&volume, 0o700);
        assert_eq!(StateDirectory::of(&volume), state, "once the volume is closed");
    }
}

#[test]
fn state_that_lies_in_an_open_directory_is_refused_and_not_left_behind() {
    let names = ["cookie-keys", "antp-state-keys", "cfnts-cookie-keys", "symmetric-uses"];
    for name in names.into_iter().chain(["fleet-cookie-keys", "fleet-antp-state-keys"]) {
        let (_folder, volume) = volume(0o2775);
        fs::write(volume.join(name), "").unwrap();
        for is_private_there in [false, true] {
            if is_private_there {
                fs::create_dir(volume.join(PRIVATE)).unwrap();
            }
            let state = StateDirectory::of(&volume);
            assert_eq!(state.path(), volume, "{name}");
            let error = state.check().unwrap_err();
            assert!(matches!(error, StoreError::Mode(_, 0o2775)), "{error}");
            assert!(error.remedy().starts_with("run: chmod 700 "), "{}", error.remedy());
        }
        set_mode(&volume, 0o700);
        StateDirectory::of(&volume).check().unwrap();
        assert_eq!(StateDirectory::of(&volume).path(), volume, "{name}");
    }
}

#[test]
fn private_folder_that_is_a_link_a_file_or_open_to_others_is_refused() {
    let (_folder, volume) = volume(0o777);
    let state = StateDirectory::of(&volume);
    let refused = |remedy: &str| {
        assert_eq!(StateDirectory::of(&volume), state);
        let errors = [state.check().unwrap_err(), state.prepare(None).unwrap_err()];
        for error in errors {
            assert!(error.remedy().starts_with(remedy), "{error}; {}", error.remedy());
        }
    };
    let elsewhere = volume.join("elsewhere");
    DirBuilder::new().mode(0o700).create(&elsewhere).unwrap();
    for target in [&elsewhere, &volume.join("nowhere"), Path::new("/dev/null")] {
        symlink(target, state.path()).unwrap();
        refused("find out who put it there");
        fs::remove_file(state.path()).unwrap();
    }
    fs::write(state.path(), "").unwrap();
    refused("name a directory, or remove");
    fs::remove_file(state.path()).unwrap();
    make_private(&state);
    for mode in [0o750, 0o770, 0o701, 0o2770] {
        set_mode(state.path(), mode);
        refused("run: chmod 700 ");
    }
    // As it comes in a volume whose group is inherited.
    set_mode(state.path(), 0o2700);
    state.prepare(None).unwrap();
    assert!(fs::read_dir(&elsewhere).unwrap().next().is_none(), "nothing is made through a link");
}

#[test]
fn private_folder_belongs_to_the_server_s_user_and_root_makes_it_only_where_root_alone_is() {
    if !privilege::is_root() {
        return;
    }
    let owner = User::nameless(OTHER, OTHER);
    let (_folder, roots) = volume(0o755);
    let state = StateDirectory::of(&roots);
    state.prepare(Some(&owner)).unwrap();
    assert_eq!(shown(state.path()), (OTHER, 0o700));
    state.prepare(Some(&owner)).unwrap();
    let error = state.check().unwrap_err();
    assert!(error.to_string().contains("another user"), "root acts, whose it is not: {error}");

    for (mode, user) in [(0o777, 0), (0o2775, 0), (0o777, 1), (0o755, OTHER)] {
        let (_folder, volume) = volume(mode);
        chown(&volume, Some(user), Some(OTHER)).unwrap();
        set_mode(&volume, mode);
        let state = StateDirectory::of(&volume);
        state.prepare(Some(&owner)).unwrap();
        assert!(is_missing(state.path()), "left to the user: {mode:o} {user}");
        let error = state.prepare(None).unwrap_err();
        assert!(matches!(error, StoreError::Unsafe(..)), "as root for itself: {error}");
        make_private(&state);
        let error = state.prepare(Some(&owner)).unwrap_err();
        assert!(error.to_string().contains("another user"), "{error}");
        chown(state.path(), Some(OTHER), Some(OTHER)).unwrap();
        state.prepare(Some(&owner)).unwrap();
    }
}
