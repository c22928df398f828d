//! The rig's share of a processor for a process.

use std::ops::Deref;

use authentick_rig::quota;

use crate::Skip;

/// A limit on processor time, shared by the processes in it; they are free again when it goes away.
#[derive(Debug)]
pub struct Quota(quota::Quota);

impl Quota {
    /// A quota of `share` processors: 0.25 is a quarter of one. The least is 0.05.
    ///
    /// # Errors
    /// A skip, with the reason, where control groups cannot be made.
    pub fn new(share: f64) -> Result<Self, Skip> {
        quota::Quota::new(share).map(Quota).map_err(Skip::of)
    }

    /// Puts a process with all its threads under the quota.
    ///
    /// # Panics
    /// If there is no such process.
    pub fn add(&self, pid: u32) {
        self.0.add(pid).unwrap_or_else(|error| panic!("{error}"));
    }
}

impl Deref for Quota {
    type Target = quota::Quota;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
