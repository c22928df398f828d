//! The slot in which one datagram travels from an engine through the responder and back.
//!
//! It stands in this crate because engines (`net`) and protocol (`proto`) both name it and may not know each other.

use core::net::SocketAddr;

use crate::time::NtpTime;

/// One received datagram and the room for its response. The engine owns both buffers and lends them for a batch.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// Where it came from, and where a response goes.
    pub source: SocketAddr,
    /// When it arrived: the kernel's stamp where there is one, else the engine's clock after the read.
    pub received: NtpTime,
    /// Whether the kernel cut octets off because the buffer was too small.
    pub truncated: bool,
    /// Whether it was sent to a broadcast or multicast address.
    pub to_many: bool,
    /// The request's octets. The responder may decrypt in place.
    pub request: &'a mut [u8],
    /// Room for the response: at least as long as the request; holds old octets.
    pub response: &'a mut [u8],
    /// Octets of `response` to send; zero for silence.
    pub response_size: usize,
}

/// A packet that leaves before the response to a datagram. It lies at the start of the datagram's `response`, the
/// response proper, of `response_size` octets, behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Early {
    /// Which datagram of the batch.
    pub index: usize,
    /// Octets of the early packet.
    pub size: usize,
}
