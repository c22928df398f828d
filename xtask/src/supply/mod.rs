//! What others wrote and we ship: which packages those are, how far each was read, and the list for a release.
//!
//! [`reviews`] compares `reviewed.toml` with what is compiled into the binary, [`review`] helps to read a package, and
//! [`sbom`] writes the list. Deliberately absent: licences, duplicates and sources, which cargo-deny checks by
//! `deny.toml`; and advisories, whose database builds do not rely on: see CONTRIBUTING.

mod facts;
mod graph;
mod lock;
pub(crate) mod review;
pub(crate) mod reviews;
pub(crate) mod sbom;
pub(crate) mod yanked;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

pub(crate) use self::graph::TARGET;

use cargo_metadata::{MetadataCommand, Package, TargetKind};

/// A package, by name and version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Id {
    fn new(name: &str, version: &str) -> Self {
        Id { name: name.to_owned(), version: version.to_owned() }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// The manifests of all packages that the workspace at `root` may be built with.
fn packages(root: &Path) -> Result<BTreeMap<Id, Package>, String> {
    let mut command = MetadataCommand::new();
    command.current_dir(root).other_options(["--locked".to_owned()]);
    let metadata = command.exec().map_err(|error| format!("cargo metadata: {error}"))?;
    let named = metadata.packages.into_iter();
    Ok(named.map(|package| (Id::new(package.name.as_str(), &package.version.to_string()), package)).collect())
}

/// The build script of a package.
fn build_script(package: &Package) -> Option<&Path> {
    let is_script = |kinds: &[TargetKind]| kinds.contains(&TargetKind::CustomBuild);
    package.targets.iter().find(|target| is_script(&target.kind)).map(|target| target.src_path.as_std_path())
}

/// Whether a package is a macro, which runs in the compiler.
fn is_macro(package: &Package) -> bool {
    package.targets.iter().any(|target| target.kind.contains(&TargetKind::ProcMacro))
}
