//! Connections to an agent that have sent nothing yet. They have no thread, and compete only with each other.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use super::limits::{HANDSHAKE_MAX, PENDING_COUNT_MAX};

/// A connection, and when it was accepted.
struct Pending {
    stream: TcpStream,
    peer: SocketAddr,
    accepted: Instant,
}

/// All of them, the oldest in front.
#[derive(Default)]
pub(super) struct PendingConnections(VecDeque<Pending>);

impl PendingConnections {
    /// Adds one that was accepted now. If there are too many, one is closed: of the address that has most of them, the
    /// oldest.
    ///
    /// # Errors
    /// If the kernel refuses to let it be asked without waiting.
    pub(super) fn add(&mut self, stream: TcpStream, peer: SocketAddr, now: Instant) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        if self.0.len() >= PENDING_COUNT_MAX {
            let count =
                |peer: &Pending| self.0.iter().filter(|other| other.peer.ip() == peer.peer.ip()).count();
            // Of several with the most, the last one that is found: so it is looked for from behind.
            let most = (0..self.0.len()).rev().max_by_key(|&index| count(&self.0[index]));
            if let Some(index) = most {
                self.0.remove(index);
            }
        }
        self.0.push_back(Pending { stream, peer, accepted: now });
        Ok(())
    }

    /// Takes out one that has sent something, and drops those that have ended or waited for too long.
    pub(super) fn next(&mut self, now: Instant) -> Option<(TcpStream, SocketAddr)> {
        let mut spoken = None;
        self.0.retain(|pending| match pending.stream.peek(&mut [0]) {
            Ok(1..) if spoken.is_none() => {
                spoken = pending.stream.try_clone().ok().map(|stream| (stream, pending.peer));
                false
            }
            Ok(1..) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                now.duration_since(pending.accepted) < HANDSHAKE_MAX
            }
            Ok(0) | Err(_) => false,
        });
        spoken
    }
}
