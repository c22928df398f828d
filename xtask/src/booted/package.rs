//! The package that is tried, and one of a higher version.

use std::fs;
use std::path::{Path, PathBuf};

use super::machine::Machine;

/// A package for Debian.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) file: PathBuf,
}

/// How names of packages end: for Debian, and for those that use RPM.
const DEB: &str = "deb";
const RPM: &str = "rpm";

/// Where it is in a machine.
const PLACE: &str = "/root/authentick.deb";
const NEWER: &str = "/root/authentick-newer.deb";

impl Package {
    /// The file that is named, or the newest that `cargo xtask package` has left.
    pub(crate) fn find(root: &Path, file: Option<PathBuf>) -> Result<Self, String> {
        if let Some(file) = file {
            return match file.is_file() {
                true => Ok(Package { file }),
                false => Err(format!(
                    "{}: there is no such file; `cargo xtask package` makes packages in target/package",
                    file.display()
                )),
            };
        }
        let folder = root.join("target/package");
        newest(&folder, DEB).map(|file| Package { file }).ok_or_else(|| {
            format!("{}: there is no package; `cargo xtask package` makes it", folder.display())
        })
    }

    /// The newest package for the others, beside it.
    pub(crate) fn rpm(&self) -> Option<PathBuf> {
        newest(self.file.parent()?, RPM)
    }

    /// Copies it into a machine and installs it.
    pub(crate) fn install(&self, machine: &Machine) -> Result<(), String> {
        machine.put(&self.file, PLACE)?;
        machine.succeed(&format!("dpkg --install {PLACE}")).map(drop)
    }

    /// The same package with a higher version, in the machine that it is installed in.
    pub(crate) fn newer(&self, machine: &Machine) -> Result<String, String> {
        machine.succeed(&format!(
            r#"set -e
            rm -rf /root/newer
            dpkg-deb --raw-extract {PLACE} /root/newer
            sed --in-place 's/^Version: .*/&+newer/' /root/newer/DEBIAN/control
            dpkg-deb -Znone --root-owner-group --build /root/newer {NEWER}"#
        ))?;
        Ok(NEWER.to_owned())
    }
}

/// The package with such a name that was written last.
fn newest(folder: &Path, ending: &str) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let packages = files.filter(|file| file.extension().is_some_and(|it| it == ending));
    let dated = packages.filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file)));
    dated.max().map(|(_, file)| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_is_the_named_one_or_the_newest() {
        let root = tempfile::tempdir().unwrap();
        let absent = Package::find(root.path(), None).unwrap_err();
        assert!(absent.contains("cargo xtask package"), "{absent}");
        let folder = root.path().join("target/package");
        fs::create_dir_all(&folder).unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        for name in ["b.deb", "a.deb", "c.txt"] {
            fs::write(folder.join(name), "").unwrap();
        }
        fs::File::options().write(true).open(folder.join("b.deb")).unwrap().set_modified(old).unwrap();
        let found = Package::find(root.path(), None).unwrap();
        assert!(found.file.ends_with("a.deb") && found.rpm().is_none());
        fs::write(folder.join("d.rpm"), "").unwrap();
        assert!(found.rpm().is_some_and(|rpm| rpm.ends_with("d.rpm")));
        let named = folder.join("b.deb");
        assert_eq!(Package::find(root.path(), Some(named.clone())).unwrap().file, named);
        assert!(Package::find(root.path(), Some(folder.join("d.deb"))).is_err());
    }
}
