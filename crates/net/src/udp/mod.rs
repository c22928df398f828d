//! UDP sockets: a server engine that moves batches, and a client's socket.
//!
//! - `socket`: opening and setting up sockets.
//! - `engine`: one worker's loop body: wait, receive a batch, let it be answered, flush.
//! - `handler`: whoever answers, as an engine sees it.
//! - `mmsg`: `recvmmsg` and `sendmmsg` over memory that is laid out once.
//! - `slots`: the memory that message headers point to.
//! - `control`: ancillary data: kernel receive stamps and the address that was asked.
//! - `reply`: answers that leave later, from another thread.
//! - `icmp`: errors that are only what the network says.
//! - `client`: one connected socket with receive stamps.
//! - `bulk`: batches of requests and answers over many such sockets.

mod buffer;
mod bulk;
mod client;
mod control;
mod engine;
mod handler;
mod icmp;
mod mmsg;
mod reply;
mod slots;
mod socket;

pub use bulk::{Arrival, ReceiveBatch, SendBatch};
pub use client::{ClientSocket, Received, anywhere};
pub use engine::{SOCKET_COUNT_MAX, Turn, UdpEngine};
pub use handler::Handler;
pub use icmp::{Hint, hint, send_past_hints};
pub use mmsg::BATCH_SIZE;
pub use reply::{ReplySocket, Way};
pub(crate) use socket::set_flag;
pub use socket::{ServerSocket, bind_group, dropped_count, has_ipv6};
