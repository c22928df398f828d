//! The boundary between an engine, which moves datagrams, and whoever answers them.
//!
//! [`crate::udp::UdpEngine`] moves them through the kernel's sockets, and `MemoryEngine`, for tests, through queues of
//! this process. An engine is chosen once, when a worker starts; from then on every call is static.

use std::io;
use std::net::SocketAddr;

use authentick_wire::datagram::{Datagram, Early};
use authentick_wire::time::NtpTime;

use crate::udp::{Asked, SocketMemory};

/// Datagrams that are received, answered and sent together.
pub const BATCH_SIZE: usize = 64;

/// What moves the datagrams of one worker. Lives in the thread that made it.
pub trait Engine {
    /// Waits for datagrams, at most as long as the engine's patience, has `handler` answer them batch by batch, and
    /// sends the responses.
    ///
    /// # Errors
    /// If the engine cannot wait or receive and never will again. What may pass is counted instead, as are single
    /// datagrams that cannot be sent.
    fn turn(&mut self, handler: &mut impl Handler) -> io::Result<Turn>;

    /// The state of the engine's buffers, of all its sockets together.
    fn memory(&self) -> SocketMemory;
}

/// What one turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Datagrams received and lent.
    pub received: usize,
    /// Responses sent.
    pub sent: usize,
    /// Responses that could not be sent.
    pub send_failures: usize,
    /// Of these, responses for which the send buffer had no room.
    pub send_buffer_full: usize,
    /// Failures to wait or to receive that may pass.
    pub receive_failures: usize,
}

/// What an engine asks of whoever answers its datagrams.
pub trait Handler {
    /// The time of day.
    fn now(&mut self) -> NtpTime;
    /// Writes responses into a batch of 1 to [`BATCH_SIZE`] datagrams. `paths` has for each of them the path back, for
    /// an answer that another thread sends later.
    fn respond(&mut self, batch: &mut [Datagram<'_>], paths: &[ReplyPath]);
    /// Packets of the batch that leave before the responses behind which they lie. They leave before
    /// [`Handler::finish`] is called.
    fn early(&self) -> &[Early] {
        &[]
    }
    /// Completes the responses of those datagrams that have early packets. Called for a batch that has any.
    fn finish(&mut self, _batch: &mut [Datagram<'_>]) {}
    /// The batch's responses were sent between these times.
    fn sent(&mut self, from: NtpTime, to: NtpTime);
}

/// The path back for an answer to one datagram. Only the engine that made it can interpret it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyPath {
    /// The number of the socket, in the order in which the engine was given them.
    pub(crate) socket: usize,
    /// The address that was asked, where the socket has more than one.
    pub(crate) asked: Option<Asked>,
}

/// Sends answers that leave later than the batch in which they were asked for, from another thread.
pub trait ReplySender: Send + Sync {
    /// Sends `octets` to `destination`, from the address that was asked. Never waits: what there is no room for is
    /// lost.
    ///
    /// # Errors
    /// If the answer cannot be sent.
    fn send(&self, octets: &[u8], destination: SocketAddr, path: &ReplyPath) -> io::Result<()>;
}

#[cfg(any(test, feature = "testing"))]
pub mod tests;
