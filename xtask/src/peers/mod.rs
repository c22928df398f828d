//! The real components that the tests run against: other people's servers and clients, and a tool of the lab.
//!
//! All of them are in one folder of the checkout, so the system is not changed. What is there already is reused.

mod chrony;
mod debian;
mod facebook_time;
mod memcached;
mod nftables;
mod ntpd_rs;
mod ntpsec;

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The environment variable that names the folder, here and in the tests.
pub(crate) const FOLDER: &str = "AUTHENTICK_PEERS";

/// One peer.
struct Peer {
    name: &'static str,
    /// The version that is installed in this folder, if it runs.
    installed: fn(&Path) -> Option<String>,
    /// Whether this machine could have it; if not, why not.
    possible: fn() -> Result<(), String>,
    /// Puts it into this folder, which does not exist.
    install: fn(&Path) -> Result<(), String>,
}

const PEERS: [Peer; 6] =
    [chrony::PEER, ntpsec::PEER, ntpd_rs::PEER, facebook_time::PEER, memcached::PEER, nftables::PEER];

/// What became of one peer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs: its version.
    Ready(String),
    /// It should be here but is not: why.
    Missing(String),
    /// This machine cannot have it: why.
    Impossible(String),
}

/// The folder of the peers, as an absolute path.
pub(crate) fn folder(root: &Path) -> Result<PathBuf, String> {
    let folder = env::var_os(FOLDER).map_or_else(|| root.join("target/peers"), PathBuf::from);
    std::path::absolute(&folder).map_err(|error| format!("{FOLDER}: {}: {error}", folder.display()))
}

/// The name of one peer's folder.
pub(crate) fn folder_of(peer: &str) -> String {
    peer.replace('/', "-")
}

/// Provides all peers, prints a line for each, and says what became of them. With `require`, fails if one is missing.
pub(crate) fn provide(root: &Path, require: bool) -> Result<Vec<(&'static str, State)>, String> {
    let folder = folder(root)?;
    let io = |error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(io)?;
    // Held until the end: a second run waits, and then finds the peers in place.
    let lock = fs::File::create(folder.join("lock")).map_err(io)?;
    lock.lock().map_err(io)?;
    let mut states = Vec::new();
    for peer in &PEERS {
        let place = folder.join(folder_of(peer.name));
        let state = provide_one(peer, &place);
        println!("{}", line(peer.name, &place, &state));
        states.push((peer.name, state));
    }
    let missing = states.iter().filter(|(_, state)| matches!(state, State::Missing(_)));
    let missing: Vec<&str> = missing.map(|(name, _)| *name).collect();
    if require && !missing.is_empty() {
        return Err(format!("missing peers: {}", missing.join(", ")));
    }
    Ok(states)
}

fn provide_one(peer: &Peer, place: &Path) -> State {
    if let Some(version) = (peer.installed)(place) {
        return State::Ready(version);
    }
    if let Err(reason) = (peer.possible)() {
        return State::Impossible(reason);
    }
    eprintln!("{}: fetching it into {}", peer.name, place.display());
    // Left behind by an interrupted run.
    let _ = fs::remove_dir_all(place);
    match (peer.install)(place) {
        Err(reason) => State::Missing(reason),
        Ok(()) => match (peer.installed)(place) {
            Some(version) => State::Ready(version),
            None => State::Missing(format!("it is in {} but does not run there", place.display())),
        },
    }
}

fn line(name: &str, place: &Path, state: &State) -> String {
    match state {
        State::Ready(version) => format!("{name} {version}: {}", place.display()),
        State::Missing(reason) => format!("{name}: missing: {reason}"),
        State::Impossible(reason) => format!("{name}: not on this machine: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_in(place: &Path) -> Option<String> {
        fs::read_to_string(place.join("version")).ok()
    }

    fn write_version(place: &Path) -> Result<(), String> {
        fs::create_dir(place)
            .and_then(|()| fs::write(place.join("version"), "1"))
            .map_err(|error| error.to_string())
    }

    const GOOD: Peer =
        Peer { name: "a/b", installed: version_in, possible: || Ok(()), install: write_version };

    #[test]
    fn peer_is_installed_once_and_leftovers_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a-b");
        fs::create_dir(&place).unwrap();
        assert_eq!(provide_one(&GOOD, &place), State::Ready("1".to_owned()));
        let again = Peer { install: |_| panic!("it is there"), ..GOOD };
        assert_eq!(provide_one(&again, &place), State::Ready("1".to_owned()));
    }

    #[test]
    fn absent_peer_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a-b");
        let offline = Peer { install: |_| Err("no network".to_owned()), ..GOOD };
        assert_eq!(provide_one(&offline, &place), State::Missing("no network".to_owned()));
        let foreign = Peer { possible: || Err("no Go".to_owned()), ..GOOD };
        assert_eq!(provide_one(&foreign, &place), State::Impossible("no Go".to_owned()));
        let silent = Peer { installed: |_| None, ..GOOD };
        assert!(
            matches!(provide_one(&silent, &place), State::Missing(reason) if reason.ends_with("does not run there"))
        );
    }

    #[test]
    fn line_says_what_which_version_and_where() {
        let place = Path::new("/peers/a-b");
        assert_eq!(line("a/b", place, &State::Ready("1".to_owned())), "a/b 1: /peers/a-b");
        assert_eq!(line("a/b", place, &State::Missing("no".to_owned())), "a/b: missing: no");
        assert_eq!(line("a/b", place, &State::Impossible("no".to_owned())), "a/b: not on this machine: no");
    }
}
