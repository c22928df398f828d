//! `cargo xtask package`: one .deb and one .rpm, with the program, its units, man pages, completions and what it is
//! made of.
//!
//! What goes in is staged in a folder, from which cargo-deb and cargo-generate-rpm take it as their sections in the
//! manifest say. Two runs make the same octets, whenever and wherever they are: no path of this machine is in the
//! program ([`remaps`]), and all times are `SOURCE_DATE_EPOCH`, which is the time of the newest commit unless it is
//! set.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, io};

use crate::process;
use crate::supply::sbom;
use crate::tools::{self, Tool};

const DEB: Tool = Tool { word: "deb", version: "3.8.0", level: "1" };
const RPM: Tool = Tool { word: "generate-rpm", version: "0.21.1", level: "1" };

/// Where all of it is made, in the checkout.
const FOLDER: &str = "target/package";
/// What cargo-deb calls this processor and libc, for the list of what the program is made of.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// A package for Debian and its relatives
    Deb,
    /// A package for Fedora, Red Hat Enterprise Linux and their relatives
    Rpm,
}

/// Makes packages and returns where they are: of `binary`, or of a release that is built for it.
///
/// # Errors
/// If something of it fails, or the same input makes two packages.
pub(crate) fn run(root: &Path, binary: Option<&Path>, kinds: &[Kind]) -> Result<Vec<PathBuf>, String> {
    let epoch = epoch(root)?;
    let built;
    let binary = match binary {
        Some(binary) => binary,
        None => {
            built = build(root)?;
            &built
        }
    };
    stage(root, binary, epoch)?;
    let mut packages = Vec::new();
    for kind in [Kind::Deb, Kind::Rpm].into_iter().filter(|kind| kinds.is_empty() || kinds.contains(kind)) {
        let [first, second] = [(); 2].map(|()| pack(root, kind, epoch));
        let ((path, first), (_, second)) = (first?, second?);
        if first != second {
            return Err(format!("{}: the same input makes other octets each time", path.display()));
        }
        println!("{}: {} octets", path.display(), first.len());
        packages.push(path);
    }
    Ok(packages)
}

/// The time of all files in a package, in Unix seconds.
fn epoch(root: &Path) -> Result<u64, String> {
    let text = match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => process::output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))?,
    };
    text.trim().parse().map_err(|_| format!("SOURCE_DATE_EPOCH is no number of seconds: {text:?}"))
}

/// Has paths of this machine replaced in the program: `root` is the checkout, `home` cargo's folder.
fn remaps(root: &Path, home: &Path) -> [(String, String); 2] {
    [(root, "/source"), (home, "/cargo")].map(|(from, to)| (from.display().to_string(), to.to_owned()))
}

fn build(root: &Path) -> Result<PathBuf, String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let remaps = remaps(root, &home.ok_or("there is no home directory")?);
    let join = |flag: &str| {
        let flags = remaps.iter().map(|(from, to)| format!("{flag}={from}={to}"));
        flags.collect::<Vec<_>>().join(" ")
    };
    let folder = root.join(FOLDER).join("build");
    let mut command = process::cargo(root);
    command
        .args(["build", "--profile", "dist", "--locked", "--package", "authentick", "--target-dir"])
        .arg(&folder);
    command.env("RUSTFLAGS", join("--remap-path-prefix"));
    command.env("CFLAGS", join("-ffile-prefix-map")).env("CXXFLAGS", join("-ffile-prefix-map"));
    process::run(&mut command)?;
    let program = folder.join("dist/authentick");
    let octets = fs::read(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    match remaps.iter().find(|(from, _)| holds(&octets, from)) {
        Some((from, _)) => {
            Err(format!("{}: {from} is in it, which is a path of this machine", program.display()))
        }
        None => Ok(program),
    }
}

fn holds(octets: &[u8], text: &str) -> bool {
    octets.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Puts everything that is made, and not in the checkout as it is, where the manifest has it.
fn stage(root: &Path, binary: &Path, epoch: u64) -> Result<(), String> {
    let folder = root.join(FOLDER).join("stage");
    let io = |error: io::Error| format!("{}: {error}", folder.display());
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    fs::create_dir_all(&folder).map_err(io)?;
    let program = folder.join("authentick");
    process::run(Command::new("strip").args(["--strip-all", "-o"]).arg(&program).arg(binary))?;
    process::output(Command::new(&program).arg("manual").arg(&folder))?;
    let list = sbom::run(root, TARGET)?;
    fs::copy(list, folder.join("authentick.cdx.json")).map_err(io)?;
    fs::write(folder.join("changelog"), changelog(epoch, &maintainer(root)?)).map_err(io)?;
    Ok(())
}

/// What Debian calls a changelog: of the package. That of the program goes beside it.
fn changelog(epoch: u64, maintainer: &str) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(epoch);
    let version = env!("CARGO_PKG_VERSION");
    let date = httpdate::fmt_http_date(time).replace("GMT", "+0000");
    format!(
        "authentick ({version}-1) unstable; urgency=medium\n\n  * What is new is in CHANGELOG.md.\n\n \
         -- {maintainer}  {date}\n"
    )
}

/// Who is named in the manifest's section for cargo-deb.
fn maintainer(root: &Path) -> Result<String, String> {
    let path = root.join("crates/cli/Cargo.toml");
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let manifest: toml::Table = toml::from_str(&text).map_err(|error| wrong(&error))?;
    let found = ["metadata", "deb", "maintainer"]
        .iter()
        .try_fold(manifest.get("package"), |value, key| Some(value?.get(key)))
        .flatten();
    Ok(found.and_then(toml::Value::as_str).ok_or_else(|| wrong(&"it names no maintainer"))?.to_owned())
}

/// Makes a package; where it is, and its octets.
fn pack(root: &Path, kind: Kind, epoch: u64) -> Result<(PathBuf, Vec<u8>), String> {
    let folder = root.join(FOLDER);
    let (tool, ending) = match kind {
        Kind::Deb => (DEB, "deb"),
        Kind::Rpm => (RPM, "rpm"),
    };
    tools::provide(root, &tool)?;
    let io = |error: io::Error| format!("{}: {error}", folder.display());
    let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == ending);
    let packages = || -> Result<Vec<PathBuf>, String> {
        Ok(fs::read_dir(&folder)
            .map_err(io)?
            .flatten()
            .map(|entry| entry.path())
            .filter(is_package)
            .collect())
    };
    packages()?.iter().try_for_each(fs::remove_file).map_err(io)?;
    let mut command = tools::cargo(root);
    command.arg(tool.word).env("SOURCE_DATE_EPOCH", epoch.to_string());
    match kind {
        Kind::Deb => {
            command.args(["--package", "authentick", "--quiet", "--no-build", "--no-strip", "--output"])
        }
        Kind::Rpm => {
            command.args(["--package", "crates/cli", "--source-date", &epoch.to_string(), "--output"])
        }
    };
    process::run(command.arg(&folder))?;
    let [path] = &packages()?[..] else {
        return Err(format!("{}: there is not one .{ending} now", folder.display()));
    };
    Ok((path.clone(), fs::read(path).map_err(io)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changelog_is_as_debian_has_it() {
        let text = changelog(1_795_856_400, "a <b@c.example>");
        assert!(
            text.starts_with("authentick (0.") && text.contains("-1) unstable; urgency=medium\n\n  * "),
            "{text}"
        );
        assert!(text.ends_with(&"\n -- a <b@c.example>  Sat, 28 Nov 2026 09:00:00 +0000\n"), "{text}");
    }

    #[test]
    fn maintainer_is_the_manifest_s() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(maintainer(root).unwrap().ends_with("@authentick.example>"));
        assert!(maintainer(&root.join("docs")).unwrap_err().contains("docs/crates/cli/Cargo.toml"));
    }

    #[test]
    fn paths_of_this_machine_are_replaced() {
        let remaps = remaps(Path::new("/home/u/authentick"), Path::new("/home/u/.cargo"));
        let all = remaps.map(|(from, to)| format!("{from} {to}"));
        assert_eq!(all, ["/home/u/authentick /source", "/home/u/.cargo /cargo"]);
        assert!(
            holds(b"\0/home/u/.cargo/registry\0", "/home/u/.cargo")
                && !holds(b"/cargo/registry", "/home/u/.cargo")
        );
    }
}
