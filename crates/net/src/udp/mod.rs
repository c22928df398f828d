//! UDP sockets: an engine ([`crate::engine`]) over the kernel's, and a client's.
//!
//! - `socket`: opening and setting up sockets.
//! - `engine`: one worker's loop body: wait, receive a batch, let it be answered, flush.
//! - `mmsg`: `recvmmsg` and `sendmmsg` over memory that is laid out once.
//! - `slots`: the memory that message headers point to.
//! - `control`: ancillary data: kernel receive stamps and the address that was asked.
//! - `segment`: requests that leave as one message.
//! - `reply`: answers that leave later, from another thread.
//! - `icmp`: errors that are only what the network says.
//! - `client`: one connected socket with receive stamps.
//! - `bulk`: batches of requests and answers over many such sockets.

mod buffer;
mod bulk;
mod client;
mod control;
mod engine;
mod icmp;
mod mmsg;
mod reply;
mod segment;
mod slots;
mod socket;

pub use bulk::{Arrival, ReceiveBatch, SendBatch};
pub use client::{ClientSocket, Received, anywhere};
pub(crate) use control::Asked;
pub use engine::{SOCKET_COUNT_MAX, UdpEngine};
pub use icmp::{Hint, Report, hint, send_past_hints};
pub use reply::ReplySockets;
pub(crate) use socket::set_flag;
pub use socket::{
    SendBuffer, ServerSocket, SocketMemory, bind_group, dropped_count, has_ipv6, is_broadcast, is_local,
    join_group,
};
