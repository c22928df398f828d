//! What engines, and whoever works with one, are tested with: an engine without sockets, and handlers.

#[cfg(test)]
pub(crate) mod handlers;
mod memory;

pub use self::memory::{MemoryEngine, MemoryPeer, MemoryReplies};
