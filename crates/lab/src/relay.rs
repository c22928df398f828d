//! The rig's paths between hosts.

use std::ops::Deref;

pub use authentick_rig::link::{ETHERNET_OVERHEAD, ETHERNET_SIZE_MIN, Fate, Link};
use authentick_rig::path;
pub use authentick_rig::path::Traffic;

use crate::Skip;
use crate::hosts::Hosts;

/// A path between the server and one client, beside their cable. It ends with this value.
#[derive(Debug)]
pub struct Path(path::Path);

impl Path {
    /// Lays a path: `there` leads from the client to the server, `back` from the server to the client. Random decisions
    /// come from `seed`.
    ///
    /// # Errors
    /// A skip, with the reason, where TUN devices cannot be had.
    ///
    /// # Panics
    /// If the hosts have 128 paths already.
    pub fn new(hosts: &Hosts, client: usize, there: Link, back: Link, seed: u64) -> Result<Self, Skip> {
        path::Path::new(hosts, client, there, back, seed).map(Path).map_err(Skip::of)
    }
}

impl Deref for Path {
    type Target = path::Path;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
