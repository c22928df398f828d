//! Requests that are written and not sent.
//!
//! They are written to slots one after the other, sealed or tagged side by side, and leave in runs: those of one
//! client that lie side by side, for one system call. What follows a request that could not be sent is written
//! meanwhile, to slots of requests that are gone.

use std::ops::Range;

use authentick_proto::client::{Unsealed, Untagged};
use authentick_report::load::Cause;

use crate::flight::Request;
use crate::limits::BATCH_SIZE;

/// A request that is written and not sent.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Absent once it has left.
    pub(crate) request: Option<Request>,
    /// Whether it continues an operation that was counted as sent already.
    pub(crate) continued: bool,
    /// What it lacks.
    pub(crate) unfinished: Option<Unfinished>,
    pub(crate) client: u32,
    /// Octets, with what it lacks.
    pub(crate) size: usize,
}

/// What a request lacks that is written.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// To be sealed with the keys that it was made with.
    Sealed(Unsealed),
    /// A tag.
    Tagged(Untagged),
}

/// Why a request could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// It would not arrive, says the network: it is as good as sent.
    Obstacle(Cause),
    /// The socket, or the interface, has no room.
    NoRoom,
    /// The host refused otherwise.
    Local,
}

/// Requests of one client that lie side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Whose.
    pub client: u32,
    /// The slots of the buffers that hold them.
    pub slots: Range<usize>,
}

/// Requests of one worker that are written and not sent.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Those that are written, in the order of their slots.
    pub(crate) pending: Vec<Pending>,
    /// Those that are being sent, the first `left_count` of which are done with.
    leaving: Vec<Pending>,
    left_count: usize,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        let room = || Vec::with_capacity(BATCH_SIZE);
        Outbox { pending: room(), leaving: room(), left_count: 0 }
    }

    /// How many are written: the slot of the next one.
    pub(crate) fn count(&self) -> usize {
        self.pending.len()
    }

    /// Adds a request that was written to the slot of the next one.
    pub(crate) fn push(&mut self, pending: Pending) {
        debug_assert!(self.pending.len() < BATCH_SIZE, "a full batch is sent first");
        self.pending.push(pending);
    }

    /// From here on those that are written are being sent.
    pub(crate) fn close(&mut self) {
        self.leaving.clear();
        self.left_count = 0;
        std::mem::swap(&mut self.pending, &mut self.leaving);
    }

    /// What is to be sent next; `None` if all is done with.
    pub(crate) fn next_run(&self) -> Option<Run> {
        let client = self.leaving.get(self.left_count)?.client;
        let rest = &self.leaving[self.left_count..];
        let count = rest.iter().take_while(|other| other.client == client).count();
        Some(Run { client, slots: self.left_count..self.left_count + count })
    }

    /// Octets of a request that is being sent.
    pub(crate) fn size_of(&self, slot: usize) -> usize {
        self.leaving[slot].size
    }

    /// The next request is done with: it, and whether it continues an operation.
    pub(crate) fn next_left(&mut self) -> Option<(Request, bool)> {
        let pending = self.leaving.get_mut(self.left_count)?;
        self.left_count += 1;
        Some((pending.request.take()?, pending.continued))
    }
}
