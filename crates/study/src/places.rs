//! Where programs of others are.

use std::ffi::OsString;
use std::path::PathBuf;

use authentick_rig::peers::Search;

/// Where memcached and servers of others are looked for, as whoever calls knows it.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// A folder with one for each of them, as `cargo xtask peers` makes it.
    pub folder: Option<PathBuf>,
    /// The value of PATH.
    pub path: Option<OsString>,
}

impl Places {
    pub(crate) fn search(&self) -> Search<'_> {
        Search { folder: self.folder.as_deref(), path: self.path.as_deref() }
    }
}
