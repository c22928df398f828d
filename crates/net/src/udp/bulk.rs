//! A client's batches: many requests over few or many connected sockets, and whatever comes back.
//!
//! Buffers and headers are laid out once and shared by all sockets of a thread. Requests of one socket that lie side
//! by side leave in one `sendmmsg`, and those of one size as one message where the kernel can take it apart again.
//!
//! **Invariant:** everything that a header points to lies in [`Slots`], whose addresses stay good. References into a
//! slot never exist during a system call.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr;

use authentick_wire::limits::DATAGRAM_SIZE_MAX;
use authentick_wire::time::NtpTime;

use super::buffer::Buffer;
use super::control::{self, Control};
use super::mmsg;
use super::segment::{self, Segmentation};
use super::slots::Slots;
use crate::engine::BATCH_SIZE;

/// Buffers, and the headers that describe them to the kernel.
struct Messages {
    buffers: Slots<Buffer>,
    /// Read through the headers' pointers only, but for their lengths.
    parts: Slots<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Messages {
    fn new() -> Self {
        let buffers = Slots::new(Buffer::ZERO);
        let mut parts = Slots::new(libc::iovec { iov_base: ptr::null_mut(), iov_len: DATAGRAM_SIZE_MAX });
        let mut headers = vec![mmsg::zeroed_header(); BATCH_SIZE];
        for (slot, header) in headers.iter_mut().enumerate() {
            parts[slot].iov_base = buffers.address(slot).cast();
            header.msg_hdr.msg_iov = parts.address(slot);
            header.msg_hdr.msg_iovlen = 1;
        }
        Messages { buffers, parts, headers }
    }
}

/// Up to [`BATCH_SIZE`] requests that are written first and sent together.
pub struct SendBatch {
    messages: Messages,
    /// What the headers of messages of several requests point to.
    controls: Slots<Control>,
    segmentation: Segmentation,
    /// Requests that have left in one message with one before them.
    joined_count: u64,
}

// SAFETY: the pointers in the headers point into slots of the same value, which move with it.
unsafe impl Send for SendBatch {}

impl Default for SendBatch {
    fn default() -> Self {
        SendBatch {
            messages: Messages::new(),
            controls: Slots::new(Control([0; control::CONTROL_SIZE])),
            segmentation: Segmentation::probe(),
            joined_count: 0,
        }
    }
}

impl SendBatch {
    /// The buffer of a slot, to write a request to.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn buffer(&mut self, slot: usize) -> &mut [u8; DATAGRAM_SIZE_MAX] {
        &mut self.messages.buffers[slot].octets
    }

    /// The buffers of all slots.
    pub fn buffers(&mut self) -> impl Iterator<Item = &mut [u8; DATAGRAM_SIZE_MAX]> {
        self.messages.buffers.each().map(|buffer| &mut buffer.octets)
    }

    /// Says how many octets of a slot are the request.
    ///
    /// # Panics
    /// If there is no such slot, or `size` is larger than a buffer.
    pub fn set_size(&mut self, slot: usize, size: usize) {
        assert!(size <= DATAGRAM_SIZE_MAX, "a request fits its buffer");
        self.messages.parts[slot].iov_len = size;
    }

    /// Whether requests of one size can leave as one message: the kernel knows of it, and no route has refused it.
    #[must_use]
    pub fn joins(&self) -> bool {
        self.segmentation != Segmentation::Impossible
    }

    /// How many requests have left in one message with one before them: the host counts each message as one datagram
    /// sent, whatever the kernel makes of it.
    #[must_use]
    pub const fn joined_count(&self) -> u64 {
        self.joined_count
    }

    /// Sends the requests in `slots` from a connected socket without waiting; returns how many left, the first ones.
    /// Each is a datagram of its own. With `joined`, those of one size that lie side by side take one way through the
    /// kernel, if it can do that, and then leave or fail together.
    ///
    /// # Errors
    /// The kernel's, if the first of them cannot be sent.
    ///
    /// # Panics
    /// If there are no such slots.
    pub fn send(&mut self, socket: BorrowedFd<'_>, slots: Range<usize>, joined: bool) -> io::Result<usize> {
        loop {
            let count = self.lay_out(slots.clone(), joined);
            let headers = &mut self.messages.headers[..count];
            // SAFETY: the headers point to live memory of this batch, of the sizes that they give, to which no
            // reference exists now.
            let sent = unsafe { mmsg::send(socket, headers) };
            let is_joined = |header: &libc::mmsghdr| header.msg_hdr.msg_iovlen > 1;
            match sent {
                Ok(count) => {
                    let left = &headers[..count];
                    if left.iter().any(is_joined) {
                        self.segmentation.succeeded();
                    }
                    let request_count: usize = left.iter().map(|header| header.msg_hdr.msg_iovlen).sum();
                    self.joined_count += (request_count - left.len()) as u64;
                    return Ok(request_count);
                }
                Err(error) if headers.first().is_some_and(is_joined) && self.segmentation.failed(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Describes the requests in `slots` to the kernel; returns with how many messages.
    fn lay_out(&mut self, slots: Range<usize>, joined: bool) -> usize {
        let Messages { parts, headers, .. } = &mut self.messages;
        let (mut start, mut message_count) = (slots.start, 0);
        while start < slots.end {
            let sizes = (start..slots.end).map(|slot| parts[slot].iov_len);
            let count = if joined { self.segmentation.count(sizes) } else { 1 };
            let header = &mut headers[message_count].msg_hdr;
            header.msg_iov = parts.address(start);
            header.msg_iovlen = count;
            (header.msg_control, header.msg_controllen) = match count {
                1 => (ptr::null_mut(), 0),
                _ => {
                    let control = self.controls.address(message_count);
                    // SAFETY: the batch is borrowed mutably, and nothing else uses this buffer.
                    (control.cast(), unsafe { segment::write(control, parts[start].iov_len) })
                }
            };
            (start, message_count) = (start + count, message_count + 1);
        }
        message_count
    }
}

/// Room for up to [`BATCH_SIZE`] datagrams, of one socket or of several.
pub struct ReceiveBatch {
    messages: Messages,
    #[expect(dead_code, reason = "read and written through the headers' pointers only")]
    controls: Slots<Control>,
    count: usize,
}

// SAFETY: the pointers in the headers point into slots of the same value, which move with it.
unsafe impl Send for ReceiveBatch {}

impl Default for ReceiveBatch {
    fn default() -> Self {
        let mut messages = Messages::new();
        let controls = Slots::new(Control([0; control::CONTROL_SIZE]));
        for (slot, header) in messages.headers.iter_mut().enumerate() {
            header.msg_hdr.msg_control = controls.address(slot).cast();
        }
        let mut batch = ReceiveBatch { messages, controls, count: BATCH_SIZE };
        batch.clear();
        batch
    }
}

/// A datagram in a [`ReceiveBatch`].
#[derive(Debug)]
pub struct Arrival<'a> {
    /// Its octets, as many as a buffer holds.
    pub octets: &'a mut [u8],
    /// The kernel's receive stamp, if there was one.
    pub at: Option<NtpTime>,
}

impl ReceiveBatch {
    /// Forgets all datagrams.
    pub fn clear(&mut self) {
        for header in &mut self.messages.headers[..self.count] {
            header.msg_hdr.msg_controllen = control::CONTROL_SIZE;
            header.msg_hdr.msg_flags = 0;
        }
        self.count = 0;
    }

    /// How many more datagrams there is room for.
    #[must_use]
    pub const fn room(&self) -> usize {
        BATCH_SIZE - self.count
    }

    /// Adds what waits on a connected socket, at most `count_max` and as much as there is room for; returns how many
    /// datagrams were added.
    ///
    /// # Errors
    /// The kernel's, among them what the network has said about requests before; nothing that waits is none.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, count_max: usize) -> io::Result<usize> {
        let count = count_max.min(self.room());
        let headers = &mut self.messages.headers[self.count..][..count];
        // SAFETY: the headers point to live memory of this batch, of the sizes that they give, to which no reference
        // exists now.
        let count = unsafe { mmsg::receive(socket, headers, libc::MSG_DONTWAIT) }?;
        self.count += count;
        Ok(count)
    }

    /// The octets of all datagrams, in the order in which they were added.
    pub fn datagrams(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let Messages { buffers, headers, .. } = &mut self.messages;
        let filled = buffers.each().zip(&*headers).take(self.count);
        filled.map(|(buffer, header)| &mut buffer.octets[..(header.msg_len as usize).min(DATAGRAM_SIZE_MAX)])
    }

    /// A datagram, counted from the first that was added.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn arrival(&mut self, index: usize) -> Arrival<'_> {
        assert!(index < self.count, "only received datagrams are read");
        let header = &self.messages.headers[index];
        // SAFETY: the kernel has filled this message's control part, and nothing writes to it now.
        let ancillary = unsafe { control::read(&header.msg_hdr) };
        let size = (header.msg_len as usize).min(DATAGRAM_SIZE_MAX);
        Arrival { octets: &mut self.messages.buffers[index].octets[..size], at: ancillary.received }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use rustix::net::sockopt;

    use super::super::client::ClientSocket;
    use super::super::socket::{dropped_count, set_flag};
    use super::*;
    use crate::clock;

    #[test]
    fn requests_leave_together_and_answers_come_back_stamped() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = ClientSocket::connect(server.local_addr().unwrap()).unwrap();
        let (mut out, mut back) = (SendBatch::default(), ReceiveBatch::default());
        for slot in 0..5 {
            out.buffer(slot)[..48].fill(slot as u8);
            out.set_size(slot, 48 - slot);
        }
        let before = clock::now();
        assert_eq!(out.send(client.as_fd(), 1..4, true).unwrap(), 3);
        let mut buffer = [0; 2048];
        for slot in 1..4usize {
            let (size, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(buffer[..size], vec![slot as u8; 48 - slot]);
            server.send_to(&buffer[..size], from).unwrap();
        }
        assert_eq!(back.receive(client.as_fd(), 1).unwrap(), 1);
        assert_eq!(back.arrival(0).octets, vec![1; 47]);
        back.clear();
        assert_eq!(back.receive(client.as_fd(), 1).unwrap(), 1);
        assert_eq!(back.receive(client.as_fd(), 64).unwrap(), 1);
        assert_eq!(back.room(), BATCH_SIZE - 2);
        let sizes: Vec<usize> = back.datagrams().map(|datagram| datagram.len()).collect();
        assert_eq!(sizes, [46, 45]);
        let arrival = back.arrival(1);
        assert_eq!(arrival.octets, vec![3; 45]);
        assert!(arrival.at.unwrap().since(before).as_nanos() >= 0);
        assert_eq!(back.receive(client.as_fd(), 64).unwrap(), 0);
    }

    /// A server's socket, a client's, and requests of these sizes, each filled with the number of its slot.
    fn written(sizes: &[usize]) -> (UdpSocket, ClientSocket, SendBatch) {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let client = ClientSocket::connect(server.local_addr().unwrap()).unwrap();
        let mut out = SendBatch::default();
        for (slot, &size) in sizes.iter().enumerate() {
            out.buffer(slot)[..size].fill(slot as u8);
            out.set_size(slot, size);
        }
        (server, client, out)
    }

    fn assert_arrived(server: &UdpSocket, sizes: &[usize]) {
        let mut buffer = [0; 2048];
        for (slot, &size) in sizes.iter().enumerate() {
            assert_eq!(server.recv(&mut buffer).unwrap(), size);
            assert_eq!(buffer[..size], vec![slot as u8; size]);
        }
        server.set_nonblocking(true).unwrap();
        assert_eq!(server.recv(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn requests_that_leave_as_one_message_arrive_one_by_one() {
        let sizes = [48, 48, 48, 228, 48, 228, 228, 227, 2048];
        let (server, client, mut out) = written(&sizes);
        assert_eq!(out.lay_out(0..sizes.len(), true), 6);
        assert_eq!(out.send(client.as_fd(), 0..sizes.len(), true).unwrap(), sizes.len());
        assert!(out.joins());
        assert_arrived(&server, &sizes);
    }

    #[test]
    fn requests_leave_one_by_one_if_that_is_asked_for() {
        let sizes = [48; 4];
        let (server, client, mut out) = written(&sizes);
        assert_eq!(out.lay_out(0..sizes.len(), false), sizes.len());
        assert_eq!(out.send(client.as_fd(), 0..sizes.len(), false).unwrap(), sizes.len());
        assert_arrived(&server, &sizes);
    }

    #[test]
    fn what_the_kernel_refuses_to_take_apart_leaves_one_by_one() {
        let sizes = [48; 5];
        let (server, client, mut out) = written(&sizes);
        // net/ipv4/udp.c, udp_send_skb: segments need checksums.
        set_flag(client.as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK).unwrap();
        assert_eq!(out.send(client.as_fd(), 0..sizes.len(), true).unwrap(), sizes.len());
        assert!(!out.joins());
        assert_arrived(&server, &sizes);
    }

    #[test]
    fn receiver_without_room_counts_each_request() {
        let (server, client, mut out) = written(&[1000; BATCH_SIZE]);
        assert_eq!(out.lay_out(0..BATCH_SIZE, true), 1);
        sockopt::set_socket_recv_buffer_size(&server, 16 << 10).unwrap();
        let sent: usize = (0..4).map(|_| out.send(client.as_fd(), 0..BATCH_SIZE, true).unwrap()).sum();
        assert!(sent == 4 * BATCH_SIZE && out.joins());
        server.set_nonblocking(true).unwrap();
        let came = std::iter::from_fn(|| server.recv(&mut [0; 2048]).ok()).count();
        let dropped = dropped_count(server.as_fd()).unwrap() as usize;
        assert!(dropped > 0 && came + dropped == sent, "{came} came, {dropped} were dropped");
    }

    #[test]
    fn refusal_is_an_error_of_the_next_call() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = ClientSocket::connect(server.local_addr().unwrap()).unwrap();
        drop(server);
        let (mut out, mut back) = (SendBatch::default(), ReceiveBatch::default());
        out.set_size(0, 48);
        assert_eq!(out.send(client.as_fd(), 0..1, true).unwrap(), 1);
        let error = back.receive(client.as_fd(), 64).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
