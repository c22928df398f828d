//! Which targets the user allows `load`, `stress` and `study` to load.

use std::path::PathBuf;

use authentick_load::{NotAllowed, Permission};
use clap::Args;

/// Whom the user allows to load, besides what is nobody else's.
#[derive(Args, Clone, Debug)]
pub(crate) struct Permit {
    /// Load this host even though its address is public; repeats the name of the server
    #[arg(long, value_name = "HOST")]
    pub(crate) permit: Option<String>,
    /// A file of prefixes that may be loaded besides loopback and private addresses, one on a line
    #[arg(long, value_name = "FILE")]
    pub(crate) allow_list: Option<PathBuf>,
}

impl Permit {
    /// The same, with the file read.
    pub(crate) fn permission(&self) -> Result<Permission, NotAllowed> {
        Permission::new(self.permit.clone(), self.allow_list.as_deref())
    }
}
