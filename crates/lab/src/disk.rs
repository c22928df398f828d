//! A disk that hangs: a file system in a file, mounted on a folder, which is frozen and thawed. And one that is full.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use authentick_rig::process;

use crate::Skip;

/// Octets of the file system.
const SIZE: u64 = 8 << 20;

/// An ext4 that is mounted until this is dropped, and then thawed first: what waits for it goes on.
#[derive(Debug)]
pub struct Disk {
    image: PathBuf,
    folder: PathBuf,
}

impl Disk {
    /// Mounts a fresh file system on `folder`, which exists; `image` is the file that it is made in.
    ///
    /// # Errors
    /// A skip, with the reason, where file systems in files cannot be mounted.
    pub fn mount(image: &Path, folder: &Path) -> Result<Self, Skip> {
        let file = fs::File::create(image).and_then(|file| file.set_len(SIZE));
        file.map_err(|error| Skip::new(format!("{}: {error}", image.display())))?;
        run("mkfs.ext4", &["-q".as_ref(), "-F".as_ref(), image])?;
        run("mount", &["-o".as_ref(), "loop".as_ref(), image, folder])?;
        Ok(Disk { image: image.to_owned(), folder: folder.to_owned() })
    }

    /// From now on nobody can write to it, and whoever tries waits.
    ///
    /// # Errors
    /// A skip, with the reason, where the kernel cannot do this.
    pub fn freeze(&self) -> Result<(), Skip> {
        run("fsfreeze", &["--freeze".as_ref(), &self.folder])
    }

    /// Whoever waits goes on.
    pub fn thaw(&self) {
        // A file system that is not frozen says so, which is no matter.
        let _ = run("fsfreeze", &["--unfreeze".as_ref(), &self.folder]);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.thaw();
        let _ = run("umount", &["-l".as_ref(), &self.folder]);
        let _ = fs::remove_file(&self.image);
    }
}

/// A folder that takes no new file, or a file that nothing can replace, until this is dropped; for root too. Without
/// root's rights only folders are closed.
#[derive(Debug)]
pub struct Closed(PathBuf);

impl Closed {
    /// Closes a folder or a file.
    ///
    /// # Errors
    /// A skip, with the reason, where the file system knows no such files.
    pub fn close(path: &Path) -> Result<Self, Skip> {
        set_closed(path, true)?;
        Ok(Closed(path.to_owned()))
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let _ = set_closed(&self.0, false);
    }
}

/// Root writes whatever the mode is, but to nothing that is immutable. chattr(1).
fn set_closed(path: &Path, is_closed: bool) -> Result<(), Skip> {
    let (program, mode) = match (rustix::process::geteuid().is_root(), is_closed) {
        (true, true) => ("chattr", "+i"),
        (true, false) => ("chattr", "-i"),
        (false, true) => ("chmod", "500"),
        (false, false) => ("chmod", "700"),
    };
    run(program, &[mode.as_ref(), path])
}

/// A small file system in memory (tmpfs) that is mounted until this is dropped.
#[derive(Debug)]
pub struct RamDisk {
    folder: PathBuf,
}

impl RamDisk {
    /// Mounts one of so many octets on `folder`, which exists; its owner alone may enter it then.
    ///
    /// # Errors
    /// A skip, with the reason, where it cannot be mounted.
    pub fn mount(folder: &Path, size: u32) -> Result<Self, Skip> {
        let options = format!("size={size},nr_inodes=64,mode=700");
        let options = ["-t", "tmpfs", "-o", &options, "tmpfs"].map(Path::new);
        run("mount", &[&options[..], &[folder]].concat())?;
        Ok(RamDisk { folder: folder.to_owned() })
    }

    /// Fills what room there is.
    ///
    /// # Panics
    /// If writing fails in another way than for lack of room.
    pub fn fill(&self) {
        let mut file = OpenOptions::new().create(true).append(true).open(self.filler()).unwrap();
        for size in [4096, 1] {
            let full =
                std::iter::repeat_with(|| file.write_all(&vec![0; size])).find_map(Result::err).unwrap();
            assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
        }
    }

    /// Takes the room for further names, so that no folder can be made.
    ///
    /// # Panics
    /// If there is no end of it.
    pub fn fill_names(&self) {
        fs::create_dir(self.names()).unwrap();
        let mut made = (0..1000).map(|number| fs::File::create(self.names().join(number.to_string())));
        assert!(made.any(|made| made.is_err()));
    }

    /// There is room again.
    ///
    /// # Panics
    /// If it was not filled.
    pub fn empty(&self) {
        match self.names().exists() {
            true => fs::remove_dir_all(self.names()).unwrap(),
            false => fs::remove_file(self.filler()).unwrap(),
        }
    }

    fn names(&self) -> PathBuf {
        self.folder.join("names")
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }
}

impl Drop for RamDisk {
    fn drop(&mut self) {
        let _ = run("umount", &["-l".as_ref(), &self.folder]);
    }
}

fn run(program: &str, arguments: &[&Path]) -> Result<(), Skip> {
    process::run(Command::new(program).args(arguments), "").map_err(|error| Skip::new(error.to_string()))
}
