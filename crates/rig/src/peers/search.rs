//! Where programs of others are looked for.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Place;
use crate::Error;
use crate::process::Process;

/// Where servers are that are not on a user's PATH.
const SERVER_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// How long a program may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// Octets of a program that are read at once when something is looked for in it.
const BLOCK_SIZE: usize = 1 << 16;

/// Where it is looked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Search<'a> {
    /// A folder with one for each peer, as `cargo xtask peers` makes it. It is asked first.
    pub folder: Option<&'a Path>,
    /// The value of PATH.
    pub path: Option<&'a OsStr>,
}

/// A program that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    /// Where its libraries are, if it was unpacked with them.
    libraries: Option<PathBuf>,
}

impl Search<'_> {
    /// Finds a program: in the peer's folder at `inside`, or where programs are under its name.
    ///
    /// # Errors
    /// [`Error::Unavailable`], with where it was looked for and the remedy.
    pub fn program(&self, peer: &str, inside: &str) -> Result<Program, Error> {
        let name = inside.rsplit('/').next().unwrap_or(inside);
        let folder = self.folder.map(|folder| folder.join(peer.replace('/', "-")));
        if let Some(folder) = &folder {
            let path = folder.join(inside);
            if path.is_file() {
                let libraries = folder.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
                return Ok(Program { path, libraries: libraries.is_dir().then_some(libraries) });
            }
        }
        let on_path = self.path.into_iter().flat_map(std::env::split_paths);
        let mut all = on_path.chain(SERVER_FOLDERS.map(PathBuf::from)).map(|folder| folder.join(name));
        all.find(|path| path.is_file()).map(|path| Program { path, libraries: None }).ok_or_else(|| {
            let unpacked = folder.map_or_else(String::new, |folder| format!("neither in {} nor ", folder.display()));
            let not = if unpacked.is_empty() { "not " } else { "" };
            Error::unavailable(
                format!("no {peer}"),
                &format!(
                    "{name} is {not}{unpacked}on PATH; install {peer}, or name a folder that cargo xtask peers \
                     has filled"
                ),
            )
        })
    }
}

impl Program {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A command that will run it there, with its libraries.
    #[must_use]
    pub fn command(&self, place: &Place) -> Command {
        let mut command = place.command(&self.path);
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }

    /// What it prints with these arguments, on both outputs. It is stopped if it does not end.
    ///
    /// # Errors
    /// If it does not start, fails, or does not end.
    pub(super) fn say(&self, arguments: &[&str]) -> Result<String, Error> {
        let mut process = Process::start(self.command(&Place::here()).args(arguments).stdin(Stdio::null()))?;
        let status = process.wait(PATIENCE)?;
        match status.success() {
            true => Ok(process.log()),
            false => {
                let problem = format!("{} ({status}): {}", arguments.join(" "), process.log());
                Err(Error::Command { program: self.path.display().to_string(), problem })
            }
        }
    }

    /// Whether these octets are in the program's file. What cannot be read has none.
    pub(super) fn contains(&self, octets: &[u8]) -> bool {
        self.after(octets, 0).is_some()
    }

    /// Up to `count` octets that follow the first place of `octets` in the program's file.
    pub(super) fn after(&self, octets: &[u8], count: usize) -> Option<Vec<u8>> {
        let mut file = File::open(&self.path).ok()?;
        let (mut kept, wanted) = (Vec::new(), octets.len() + count);
        loop {
            let before = kept.len();
            file.by_ref().take(BLOCK_SIZE as u64).read_to_end(&mut kept).ok()?;
            let is_end = kept.len() == before;
            let found = kept.windows(octets.len()).position(|window| window == octets);
            if let Some(start) = found.filter(|start| is_end || start + wanted <= kept.len()) {
                let after = start + octets.len();
                return Some(kept[after..kept.len().min(after + count)].to_vec());
            }
            if is_end {
                return None;
            }
            // What began in this block may end in the next one.
            if found.is_none() {
                kept.drain(..kept.len().saturating_sub(octets.len()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("atk-search-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn folder_of_peers_comes_before_the_path_and_what_is_missing_is_told_with_the_remedy() {
        let (peers, bin) = (folder("peers"), folder("bin"));
        let libraries = peers.join(format!("a-b/usr/lib/{}-linux-gnu", std::env::consts::ARCH));
        fs::create_dir_all(&libraries).unwrap();
        fs::create_dir_all(peers.join("a-b/bin")).unwrap();
        let path = std::env::join_paths([Path::new("/nowhere"), &bin]).unwrap();
        let search = Search { folder: Some(&peers), path: Some(&path) };
        let error = search.program("a/b", "bin/atk-no-such-server").unwrap_err().to_string();
        let looked = format!(
            "atk-no-such-server is neither in {} nor on PATH; install a/b",
            peers.join("a-b").display()
        );
        assert!(error.starts_with("no a/b: ") && error.contains(&looked), "{error}");
        let error = Search::default().program("a/b", "bin/atk-no-such-server").unwrap_err().to_string();
        assert!(error.contains("atk-no-such-server is not on PATH"), "{error}");
        fs::write(bin.join("atk-no-such-server"), "").unwrap();
        let found = search.program("a/b", "bin/atk-no-such-server").unwrap();
        assert_eq!(found, Program { path: bin.join("atk-no-such-server"), libraries: None });
        fs::write(peers.join("a-b/bin/atk-no-such-server"), "").unwrap();
        let found = search.program("a/b", "bin/atk-no-such-server").unwrap();
        assert_eq!(found.path(), peers.join("a-b/bin/atk-no-such-server"));
        let command = found.command(&Place::here());
        assert!(
            command
                .get_envs()
                .any(|(name, value)| { name == "LD_LIBRARY_PATH" && value == Some(libraries.as_os_str()) })
        );
        // A shell is on every PATH, and what it says comes from both outputs.
        let shell =
            Search { folder: None, path: Some(OsStr::new("/usr/bin:/bin")) }.program("sh", "bin/sh").unwrap();
        assert_eq!(shell.say(&["-c", "echo one; echo two >&2"]).unwrap().lines().count(), 2);
        let error = shell.say(&["-c", "echo why; exit 3"]).unwrap_err().to_string();
        assert!(error.contains("why") && error.contains('3'), "{error}");
        fs::remove_dir_all(&peers).unwrap();
        fs::remove_dir_all(&bin).unwrap();
    }

    #[test]
    fn octets_are_found_across_blocks() {
        let folder = folder("octets");
        let path = folder.join("program");
        for start in [0, BLOCK_SIZE - 3, BLOCK_SIZE, 3 * BLOCK_SIZE - 1] {
            let mut octets = vec![b'x'; start];
            octets.extend(b"needle v1.2");
            fs::write(&path, &octets).unwrap();
            let program = Program { path: path.clone(), libraries: None };
            assert!(program.contains(b"needle") && !program.contains(b"noodle"));
            assert_eq!(program.after(b"needle ", 100).unwrap(), b"v1.2", "{start}");
            assert_eq!(program.after(b"needle ", 2).unwrap(), b"v1", "{start}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
